"""Attacks on certificates, each carried out, with what has to come of it."""

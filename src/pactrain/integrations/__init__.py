"""Thin adapters to other people's tools; each needs its own extra."""

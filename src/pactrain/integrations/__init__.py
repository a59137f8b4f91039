"""Thin adapters to other people's tools; each needs its own extra."""
"""Thin adapters for other training frameworks, each with an extra of its own."""

"""Adapters to other tools and frameworks, each thin and each behind an extra of its own."""

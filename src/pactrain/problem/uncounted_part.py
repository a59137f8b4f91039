"""Rows that no statement counts.  No torch: tables are encoded with these rows before it is loaded."""

FIRST_HALF = 0.5
"""Part of the rows that the progressive certificate does not count."""


def uncounted_part(prior_data: float, certificate: str) -> float:
    """Part of the training rows that no statement counts, from which encodings may be learned; 0 where all are counted."""
    return FIRST_HALF if certificate == "progressive" else prior_data

"""A table as the report's page shows it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table whose last `numbers` columns are aligned to the right."""

    caption: str
    columns: list[str]
    rows: list[list[str]]
    numbers: int

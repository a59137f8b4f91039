"""Values as JSON can hold them."""

from typing import Any


def plain(values: Any) -> Any:
    """The same with tuples as lists, keys as texts, and null for numbers that are not finite."""
    if isinstance(values, dict):
        return {str(k): plain(v) for k, v in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(v) for v in values]
    if isinstance(values, float):
        return values if values - values == 0 else None
    return values

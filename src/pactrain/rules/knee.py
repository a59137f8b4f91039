"""The noise at the start: the knee of the bound of the untrained network, over the stds of the scan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def knee(values: NDArray[np.floating[Any]], share: float) -> int:
    """Find the largest std that does no harm.

    That is the last one whose bound is at most `share` above the smallest.  If it is the largest of the scan and noise lowers the bound,
    there is no knee: the network is confidently wrong, as a pre-trained one under adapters may be, and noise makes its answers unsure.  Then
    only stds before the first that lowers the bound by more than `share` are considered.

    Args:
        values: The bound of the untrained network at each std, from the smallest std to the largest.
        share: What counts as no harm, relative to the bound.

    Returns:
        The place of the std.

    Example:
        >>> knee(np.array([2.3, 2.3, 2.31, 2.5, 3.0]), 0.02), knee(np.array([3.5, 3.49, 3.2, 2.9, 2.8]), 0.02)
        (2, 1)
    """
    chosen = _last_near_smallest(values, share)
    lowered = np.flatnonzero(values < values[0] - share * abs(values[0]))
    if len(lowered) and chosen == len(values) - 1:
        return _last_near_smallest(values[: lowered[0]], share)
    return chosen


def _last_near_smallest(values: NDArray[np.floating[Any]], share: float) -> int:
    return int(np.flatnonzero(values <= values.min() + share * abs(values.min())).max())

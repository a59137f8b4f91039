"""A budget of time for the whole call: what is kept for the end of a run, and how many rows the end can measure."""

import math

from pactrain.training.options import Options

START_PASSES, NOISE_PASSES = 7.0, 4.0
"""Forward passes over the training rows that scores and certificate take without noise, and a pass with noise for each row."""

REPORT_SECONDS = 2.0
"""What writing a report takes, whatever the number of rows."""

MOST_OF_REST, LEAST = 0.4, 0.1
"""Largest part of the time left before training that is kept for the end, and least part of the budget that training and the end have."""

FEWEST_ROWS = 5_000
"""Rows that the end measures however little time is left."""


def for_training(options: Options, seconds_per_pass: float) -> float:
    """Seconds that training may take: what is left, without what the end needs.

    Args:
        options: They hold the budget and the time at which the call began.
        seconds_per_pass: Time of a forward pass over the training rows.
    """
    left = options.left()
    end = REPORT_SECONDS + (START_PASSES + NOISE_PASSES) * seconds_per_pass
    return max(LEAST * options.limit.seconds, left - min(MOST_OF_REST * left, end)) if left < math.inf else left


def affordable_rows(options: Options, n: int, seconds_per_pass: float) -> tuple[int | None, float]:
    """How many of `n` training rows the end can measure in the time that is left, and in how many passes with noise.

    Returns:
        The rows, None for all of them; and the passes, infinity without a limit on time.
    """
    left = options.left()
    if left == math.inf:
        return None, math.inf
    passes = max(left - REPORT_SECONDS, LEAST * options.limit.seconds) / max(seconds_per_pass, 1e-9)
    rows = max(FEWEST_ROWS, int(n * passes / (START_PASSES + NOISE_PASSES)))
    return (None if rows >= n else rows), max(1.0, (passes - START_PASSES) / NOISE_PASSES)

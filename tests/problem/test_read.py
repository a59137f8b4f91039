"""Rows that are set aside: every row is in one part, and sizes are those that certificates need."""

from dataclasses import replace

import pytest
import torch

from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read import Problem, in_blocks, set_aside
from pactrain.runtime.errors import DataError, PactrainError


def problem(n: int) -> Problem:
    """Rows that are their own numbers."""
    table = TensorBatches((torch.arange(n)[:, None].float(), torch.arange(n) % 2), 8)
    loss = LOSSES["cross_entropy"]
    return Problem(table, None, next(iter(table.ordered())), loss, loss)


def numbers(rows: TensorBatches) -> list[int]:
    return [int(value) for value in rows.tensors[0][:, 0]]


def test_the_priors_rows_and_the_counted_ones_are_all_rows() -> None:
    parts = set_aside(problem(100), 0.3, seed=1)
    assert parts.prior_rows is not None
    assert parts.batches.table is not None
    first, rest = numbers(parts.prior_rows), numbers(parts.batches.table)
    assert (len(first), sorted(first + rest)) == (30, list(range(100)))
    again, other = (set_aside(problem(100), 0.3, seed=seed).prior_rows for seed in (1, 2))
    assert again is not None
    assert other is not None
    assert numbers(again) == first != numbers(other)


def test_too_few_rows_and_wrong_parts_are_refused() -> None:
    with pytest.raises(DataError, match="leaves one of the two parts empty"):
        set_aside(problem(3), 0.01, seed=0)
    with pytest.raises(PactrainError, match="between 0 and 1"):
        set_aside(problem(3), 1.5, seed=0)
    own = replace(problem(3), batches=LoaderBatches([(torch.ones(2, 1), torch.ones(2))], torch.device("cpu")))
    with pytest.raises(DataError, match="whose rows can be told apart"):
        set_aside(own, 0.5, seed=0)


@pytest.mark.parametrize(
    ("certificate", "sizes"),
    [("progressive", [40, 10, *[5] * 10]), ("recursive", [3, 3, 6, 13, 25, 50])],
)
def test_blocks_have_the_sizes_of_their_certificate(certificate: str, sizes: list[int]) -> None:
    cut = in_blocks(problem(100), certificate, seed=0)
    assert cut.batches.table is not None
    found = [numbers(part) for part in (cut.batches.table, *cut.blocks)]
    assert [len(part) for part in found] == sizes
    assert sorted(number for block in found for number in block) == list(range(100))


def test_certificates_in_blocks_need_classes_and_rows() -> None:
    regression = replace(problem(100), loss=LOSSES["mse"])
    with pytest.raises(DataError, match="this is no classification"):
        in_blocks(regression, "progressive", seed=0)
    with pytest.raises(DataError, match="at least 64 rows, and there are 63"):
        in_blocks(problem(63), "recursive", seed=0)


def test_a_problem_grows_block_by_block() -> None:
    cut = in_blocks(problem(100), "recursive", seed=0)
    assert [len(cut.grown(k).batches.table or ()) for k in range(6)] == [3, 6, 12, 25, 50, 100]

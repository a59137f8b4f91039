"""The Gaussian formulas against plain float64 code and against autograd over the textbook KL."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pactrain.distributions import gaussian
from pactrain.distributions.gaussian import Draw, GaussianKL, group_sums, log_density_ratio, pieces, spread

GROUPS = [slice(0, 3), slice(3, 4), slice(4, 11)]


def numbers(count: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers."""
    return torch.randn(count, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def vectors(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Shift of the mean and log-std of 11 weights, and the prior log-stds of the three groups."""
    return numbers(11, 0, dtype), 0.5 * numbers(11, 1, dtype) - 1, torch.tensor([-0.3, 0.2, -1.1], dtype=dtype)


def textbook(shift: Tensor, log_std: Tensor, prior: Tensor) -> Tensor:
    """KL of each weight: (s² + shift²) / (2 p²) − ½ + ln(p / s)."""
    sizes = torch.tensor([g.stop - g.start for g in GROUPS])
    p = prior.repeat_interleave(sizes).exp()
    s = log_std.exp()
    return (s**2 + shift**2) / (2 * p**2) - 0.5 + (p / s).log()


@pytest.mark.parametrize("piece", [1, 3, 4, 100])
def test_pieces_cover_a_slice(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "PIECE", piece)
    found = list(pieces(slice(2, 11)))
    assert [i for p in found for i in range(p.start, p.stop)] == list(range(2, 11))
    assert [p.stop - p.start for p in found[:-1]] == [piece] * (len(found) - 1)
    assert found[-1].stop - found[-1].start <= piece


@pytest.mark.parametrize("piece", [2, 100])
def test_group_sums_are_taken_in_double_precision(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "PIECE", piece)
    values = torch.tensor([1e8, 1.0, 3.0, -2.5, 1, 2, 3, 4, 5, 6, 7.5])
    assert group_sums(values, GROUPS).tolist() == [1e8 + 4, -2.5, 28.5]


@pytest.mark.parametrize("block", [1, 4, 5, 4096])
def test_block_sum(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "BLOCK", block)
    for count in (0, 3, 4, 5, 9, 20):
        values = numbers(count, 3)
        assert gaussian.block_sum(values).item() == pytest.approx(math.fsum(values.tolist()), rel=1e-12)
    monkeypatch.setattr(gaussian, "BLOCK", 4)
    blocks = torch.tensor(
        [2.0**24, 0, 0, 0, 1, 0, 0, 0, 1, 1]
    )  # as float32, 2²⁴ + 1 is 2²⁴: each block has its own sum
    assert gaussian.block_sum(blocks).item() == 2.0**24 + 3


def test_spread() -> None:
    found = spread(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64), torch.zeros(11), GROUPS)
    assert found.dtype == torch.float32
    assert found.tolist() == [1.0] * 3 + [2.0] + [3.0] * 7


@pytest.mark.parametrize("how", ["kl_by_group", "kl_by_group_at_once"])
@pytest.mark.parametrize("piece", [2, 100])
def test_kl_by_group(how: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "PIECE", piece)
    shift, log_std, prior = vectors()
    kept = [v.clone() for v in (shift, log_std, prior)]
    found = getattr(gaussian, how)(shift, log_std, prior, GROUPS)
    terms = textbook(shift, log_std, prior)
    assert found.tolist() == pytest.approx([terms[g].sum().item() for g in GROUPS], rel=1e-12)
    assert all(torch.equal(a, b) for a, b in zip(kept, (shift, log_std, prior), strict=True))
    nothing = getattr(gaussian, how)(torch.zeros(11), spread(prior, torch.zeros(11), GROUPS), prior.float(), GROUPS)
    assert nothing.dtype == torch.float64
    assert nothing.tolist() == [0.0] * 3


def test_a_draw_and_its_gradients() -> None:
    log_std = (0.3 * numbers(11, 2) - 1).requires_grad_()
    noise, means = numbers(11, 4), [numbers(6, 5).view(2, 3), numbers(5, 6)]
    where = [slice(0, 6), slice(6, 11)]
    for mean in means:
        mean.requires_grad_()
    weights: Any = Draw.apply(log_std, noise.clone(), where, *means)
    std = log_std.detach().exp()
    for weight, mean, at in zip(weights, means, where, strict=True):
        torch.testing.assert_close(weight, mean + (std * noise)[at].view_as(mean))
    factors = [numbers(6, 7).view(2, 3), numbers(5, 8)]
    sum((w * f).sum() for w, f in zip(weights, factors, strict=True)).backward()
    for mean, factor in zip(means, factors, strict=True):
        torch.testing.assert_close(mean.grad, factor)
    torch.testing.assert_close(log_std.grad, torch.cat([f.reshape(-1) for f in factors]) * std * noise)
    low: Any = Draw.apply(log_std, noise.clone(), where, *(m.detach().half() for m in means))
    assert [w.dtype for w in low] == [torch.float16] * 2


@pytest.mark.parametrize("drawn", [False, True])
def test_the_total_kl_and_its_gradients(drawn: bool) -> None:
    shift, log_std, prior = vectors()
    offset, moved = numbers(11, 9), numbers(11, 10)
    means = [(shift - offset)[:6].view(2, 3).clone().requires_grad_(), (shift - offset)[6:].clone().requires_grad_()]
    log_std.requires_grad_()
    prior.requires_grad_()
    total: Any = GaussianKL.apply(log_std, prior, shift, lambda: moved if drawn else None, GROUPS, *means)
    plain = [torch.cat([m.detach().reshape(-1) for m in means]), log_std.detach(), prior.detach()]
    for p in plain:
        p.requires_grad_()
    wanted = textbook(plain[0] + offset, plain[1], plain[2]).sum()
    assert total.item() == pytest.approx(wanted.item(), rel=1e-12)
    (0.7 * total).backward()
    (0.7 * wanted).backward()
    by_mean, by_log_std, by_prior = (p.grad for p in plain)
    assert by_mean is not None
    assert by_log_std is not None
    torch.testing.assert_close(torch.cat([m.grad.reshape(-1) for m in means if m.grad is not None]), by_mean)
    torch.testing.assert_close(prior.grad, by_prior)
    # the hook on drawn weights adds (gradient of the mean)·shift to the log-std; the KL takes its own share out
    torch.testing.assert_close(log_std.grad, by_log_std - by_mean * moved if drawn else by_log_std)


def test_gradients_have_the_type_of_what_they_belong_to() -> None:
    shift, log_std, prior = (v.requires_grad_() for v in vectors(torch.float32))
    means = [torch.zeros(6, dtype=torch.float64, requires_grad=True), torch.zeros(5, requires_grad=True)]
    total: Any = GaussianKL.apply(log_std, prior, shift.detach(), lambda: None, GROUPS, *means)
    assert total.dtype == torch.float64
    total.backward()
    assert [m.grad.dtype for m in means if m.grad is not None] == [torch.float64, torch.float32]
    assert prior.grad is not None
    assert prior.grad.dtype == torch.float32


def test_the_log_density_ratio_is_that_of_two_normal_densities() -> None:
    _, log_std, prior = vectors()
    noise, mean_shift = numbers(11, 11), numbers(11, 12)
    weights = mean_shift + log_std.exp() * noise
    found = log_density_ratio(weights, noise, log_std, prior, GROUPS)
    s, p = log_std.exp().numpy(), prior.repeat_interleave(torch.tensor([3, 1, 7])).exp().numpy()

    def log_density(x: Any, mean: Any, std: Any) -> Any:
        return -((x - mean) ** 2) / (2 * std**2) - np.log(std)

    h, m = weights.numpy(), mean_shift.numpy()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(float((log_density(h, m, s) - log_density(h, 0.0, p)).sum()), rel=1e-12)

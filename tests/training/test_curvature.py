"""Closed-form stds and natural steps on a loss whose curvature is known."""

import shutil
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import Posterior, Prior
from pactrain.runtime.events import Event
from pactrain.training.curvature import WORTH_COMPILING, CurvatureStds
from tests.zoo import build, rows

CURVATURES = torch.tensor([0.0, 0.5, 4.0])
TARGET = torch.tensor([1.0, 1.0, 1.0])
WEIGHT = 0.01


class Point(nn.Module):
    """Three weights and a quadratic loss."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3))

    def forward(self) -> Tensor:
        return 0.5 * (CURVATURES * (self.w - TARGET).square()).sum()


def trained(steps: int) -> tuple[Posterior, CurvatureStds]:
    """A posterior trained by natural steps with a fixed prior of std 0.5."""
    posterior = Posterior(Point(), Prior(std=0.5))
    stds = CurvatureStds(posterior, kl_weight=WEIGHT, memory=0.995, log_std_range=(-6, 1), first=0.01, moves="natural")
    for step in range(steps):
        stds.draw(step)
        posterior.model().backward()
        stds.learn(0.1 * (1 - step / steps), step)
    stds.rest()
    return posterior, stds


def test_stds_and_means_reach_the_minimum_of_the_objective() -> None:
    posterior, _ = trained(4000)
    wanted = 1 / (CURVATURES / WEIGHT + 1 / 0.25)
    torch.testing.assert_close((2 * posterior.log_std.detach()).exp(), wanted, rtol=0.15, atol=1e-4)
    best = CURVATURES * TARGET / (CURVATURES + WEIGHT / 0.25)
    torch.testing.assert_close(posterior.means()[0].detach(), best, rtol=0.03, atol=0.02)


def test_the_prior_minimises_the_divergence() -> None:
    posterior, stds = trained(500)
    kept = posterior.log_std.detach().clone()
    stds.update_prior()
    with torch.no_grad():
        posterior.log_std.copy_(kept)  # update_prior lets the stds follow the new prior at once
    at_best = posterior.kl_by_group().sum()
    for nudge in (-0.05, 0.05):
        assert posterior.kl_by_group(posterior.prior_log_std.detach() + nudge).sum() > at_best


def reference_step(
    h: Tensor, mean: Tensor, mean0: Tensor, weights: Tensor, grad: Tensor, precision: Tensor, forget: float
) -> tuple[Tensor, Tensor]:
    """The formulas of the module's head written out, in float64: the new curvature, and the gradient of the objective."""
    variance = 1 / (h / WEIGHT + precision)
    observed = grad * ((weights - mean) / variance.sqrt()) / variance.sqrt()
    gap = h - observed
    new = h - forget * gap + 0.5 * forget**2 * gap**2 / (h + WEIGHT * precision)
    divergence = lambda m: 0.5 * (precision * (m - mean0) ** 2).sum()  # noqa: E731
    pull = torch.autograd.functional.jacobian(divergence, mean)
    return new.clamp(min=0), grad + WEIGHT * pull


@pytest.mark.parametrize("name", ["mlp", "tied", "mixed", "compiled", "blocks"])
def test_a_step_is_the_plain_formula(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.training.curvature.WORTH_A_KERNEL", 0)
    if name == "blocks":
        monkeypatch.setattr("pactrain.training.cache_blocks.BLOCK", 20)
    model = build("tied" if name == "tied" else "mlp")
    if name == "mixed":
        model[0].to(torch.float64)  # type: ignore[index]
        model.register_forward_pre_hook(lambda _, args: (args[0].double(),))
        model[0].register_forward_hook(lambda _, args, out: out.float())  # type: ignore[index]
    x, y = rows(40)
    posterior = Posterior(model, Prior(per="tensor" if name == "blocks" else "layer", std=0.05))
    steps = int(WORTH_COMPILING) if name == "compiled" else 0
    stds = CurvatureStds(posterior, kl_weight=WEIGHT, memory=0.9, log_std_range=(-6, 1), steps=steps)
    assert (stds._kernels is not None) is (name == "compiled" and shutil.which("g++") is not None)
    stds.flat.attach()
    assert stds.flat.aliased is (name != "mixed")
    twin = nn.Parameter(stds.flat.means.double().clone())
    adam = torch.optim.Adam([twin], lr=0.01)
    mean0 = posterior.prior_mean.double().clone()
    for step in range(5):
        h, mean = stds.curvature.double().clone(), stds.flat.means.double().clone()
        stds.draw(step)
        weights = stds.flat.draw.double().clone()
        nn.functional.cross_entropy(model(x), y).backward()
        stds.flat.take_grads()
        grad = stds.flat.grads.double().clone()
        precision = torch.cat(
            [
                torch.full((at.stop - at.start,), p).double()
                for at, p in zip(posterior.group_slices, stds.precisions, strict=True)
            ]
        )
        stds.learn(0.01, step)
        new, twin.grad = reference_step(h, mean, mean0, weights, grad, precision, 0.1)
        adam.step()
        torch.testing.assert_close(stds.curvature.double(), new, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(stds.flat.means.double(), twin.detach(), rtol=1e-4, atol=2e-5)
        if step == 2:
            stds.update_prior()
    stds.rest()
    torch.testing.assert_close(
        (-2 * posterior.log_std.detach()).exp().double(),
        stds.curvature.double() / WEIGHT + spread_of(stds),
        rtol=1e-4,
        atol=0,
    )
    draw = stds.flat.draw
    stds.flat.release()
    kept = [p.detach().clone() for p in posterior.means()]
    draw.zero_()
    assert all(torch.equal(a, b) for a, b in zip(kept, posterior.means(), strict=True))


def test_log_stds_are_log_stds_throughout_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by a callback at the end of every epoch, and by a loss at every step in between."""
    made: list[Posterior] = []
    seen: dict[str, int] = {"callback": 0, "loss": 0}
    construct = Posterior.__init__

    def kept(self: Posterior, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        made.append(self)

    def read(where: str) -> None:
        log_std, prior = made[-1].log_std.detach(), made[-1].prior_log_std.detach()
        assert bool((log_std <= prior.max() + 1e-5).all()), where  # data can only make a std smaller
        assert bool((log_std >= prior.min() - 5).all()), where
        seen[where] += 1

    def callback(event: Event) -> None:
        if event.phase == "train":
            read("callback")

    def loss(predict: Any, batch: Any) -> Tensor:
        if seen["callback"]:
            read("loss")
        return nn.functional.cross_entropy(predict(batch[0]), batch[1], reduction="none")

    monkeypatch.setattr(Posterior, "__init__", kept)
    pactrain.fit(build("mlp"), rows(40), loss=loss, budget="6 epochs", callbacks=(callback,))
    assert seen["callback"] == 6
    assert seen["loss"] >= 6


def spread_of(stds: CurvatureStds) -> Tensor:
    sizes = [at.stop - at.start for at in stds.posterior.group_slices]
    return torch.cat([torch.full((n,), p).double() for n, p in zip(sizes, stds.precisions, strict=True)])


def test_noise_is_standard_normal_and_the_same_on_any_number_of_threads() -> None:
    draws = []
    threads = torch.get_num_threads()
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            posterior = Posterior(nn.Linear(800, 400), Prior(std=0.1))
            stds = CurvatureStds(posterior, kl_weight=WEIGHT, memory=0.9, log_std_range=(-6, 1))
            assert len(stds.blocks.streams) == 2
            std = posterior.log_std.detach().exp()
            stds.draw(7)
            draws.append((stds.flat.draw - stds.flat.means) / std)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(draws[0], draws[1], rtol=1e-3, atol=1e-4)
    halves = draws[0].split(len(draws[0]) // 2)
    assert abs(float((halves[0] * halves[1]).mean())) < 0.02
    assert float(draws[0].mean()) == pytest.approx(0, abs=0.01)
    assert float(draws[0].std()) == pytest.approx(1, abs=0.01)


def test_addresses_that_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """On XLA every tensor has the address 0."""

    def trained() -> Tensor:
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        pactrain.fit(model, rows(), budget="2 epochs")
        return model.weight

    expected = trained()
    monkeypatch.setattr(Tensor, "data_ptr", lambda self: 0)
    assert torch.equal(trained(), expected)

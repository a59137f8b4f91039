"""Training networks with BatchNorm, and the rules the paper has for large networks: where a table is read, how small λ may be."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain import Posterior
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import LOSSES
from pactrain.problem.module_modes import batch_statistics
from pactrain.problem.scores import measure
from pactrain.rules.presets import AUTHORS, AUTO, PAPER, Rules
from pactrain.runtime.events import Event
from tests.zoo import build


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def task() -> tuple[Tensor, Tensor]:
    x = torch.randn(48, 2, 6, 6, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0, 2:4, 2:4].mean((1, 2)) > 0).long()


def short(rules: Rules, **changes: Any) -> Rules:
    return rules.replace(batch_size=16, fixed_epochs=3, draws=2, stage2_share=0.0, **changes)


@pytest.mark.parametrize("rules", [AUTO.replace(held="gamma_max"), AUTHORS.replace(warmup_weights=1)])
def test_statistics_are_gathered_under_noise_and_estimated_anew_at_the_mean(rules: Rules) -> None:
    model, (x, _) = network(), task()
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm2d)
    seen: list[Tensor] = []

    def look(event: Event) -> None:
        if event.phase == "train":
            assert norm.running_mean is not None
            seen.append(norm.running_mean.clone())

    result = pactrain.fit(model, task(), preset=short(rules), callbacks=[look])
    hidden = model[0](x).detach()
    at_the_mean = hidden.mean((0, 2, 3))
    assert norm.running_mean is not None
    torch.testing.assert_close(norm.running_mean, at_the_mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(norm.running_var, hidden.var((0, 2, 3)), rtol=1e-3, atol=1e-5)
    assert not torch.equal(seen[0], torch.zeros(4))  # they move while training …
    assert float((seen[-1] - at_the_mean).abs().max()) > 1e-3  # … and are not those of the mean network
    groups = result.posterior.groups
    assert "1" in groups  # its scale and shift are random weights like all others
    if rules.stds == "gradient":  # warmed up: one std per group
        spans = [float(result.posterior.log_std.detach()[at].std()) for at in result.posterior.group_slices]
        assert max(spans) < 1e-5
    assert "certified" not in {s.label for s in result.certificate.statements}


def test_a_last_batch_of_one_row_does_not_stop_batch_norm() -> None:
    x = torch.randn(1025, 6)
    batches = TensorBatches((x, torch.zeros(1025, dtype=torch.long)), 64)
    model = build("batchnorm")
    assert [len(a) for a, _ in batches.ordered()] == [1025]
    assert [len(a) for a, _ in batches.chunks(512)] == [512, 513]
    assert [len(a) for a, _ in batches.chunks(1000)] == [1000, 25]
    assert len(list(TensorBatches((x[:3],), 1).chunks(1))) == 3
    with batch_statistics(model):
        assert measure(model, batches.ordered(), LOSSES["cross_entropy"])["n"] == 1025


@pytest.mark.parametrize("mode", ["paper", "cgf"])
def test_a_layerwise_prior_reads_the_table_at_its_largest_std_or_at_the_geometric_mean(mode: Any) -> None:
    posterior = Posterior(build("mlp"), pactrain.Prior(per="layer"))
    x = torch.randn(30, 6, generator=torch.Generator().manual_seed(0))
    moment = pactrain.estimate_moment(posterior, (x, torch.arange(30) % 3), draws=2)
    groups = len(posterior.groups)
    log_stds = torch.linspace(-3.0, 0.0, groups)
    found = {}
    for at in ("max", "mean"):
        bound = PAPER.replace(at=at, mode=mode).bound(30, 0.05, moment, groups)
        one = log_stds.max() if at == "max" else log_stds.mean()
        found[at] = bound.value(0.5, 10.0, log_stds)
        assert found[at] == pytest.approx(bound.value(0.5, 10.0, one.reshape(1)))
    assert found["max"][0] > found["mean"][0]


@pytest.mark.parametrize("rules", [AUTO.replace(held="gamma_max"), AUTHORS.replace(std_lr=0.5)])
def test_no_prior_std_falls_below_its_floor(rules: Rules) -> None:
    def smallest(floor: float) -> tuple[float, float]:
        result = pactrain.fit(build("mlp"), data, preset=short(rules, min_prior_std=floor))
        last = result.history[-1]["prior_std"]
        return min(last.values()), float(result.posterior.prior_log_std.detach().exp().min())

    x = torch.randn(48, 6, generator=torch.Generator().manual_seed(0))
    data = x, (x[:, 0] > 0).long() + (x[:, 1] > 0)
    free = smallest(0.0)[1]
    floor = 1.25 * free
    assert smallest(floor) == pytest.approx((floor, floor), rel=1e-5)


def test_the_floor_holds_from_the_start() -> None:
    posterior = Posterior(build("mlp"))
    x = torch.randn(20, 6, generator=torch.Generator().manual_seed(0))
    moment = pactrain.estimate_moment(posterior, (x, torch.arange(20) % 3), draws=2)
    for rules in (AUTO, PAPER, AUTHORS):
        assert rules.replace(min_prior_std=2.0).start_std(posterior, rules.bound(20, 0.05, moment, 2)) == 2.0


def test_the_rate_of_classes_behind_batch_norm_follows_how_matrices_turn() -> None:
    model, (x, y) = network(), task()
    posterior = Posterior(model)
    sizes = [float(p.detach().abs().mean()) for p in (model[0].weight, model[-1].weight)]  # type: ignore[operator]
    turning = 0.5 / sum(1 / size**2 for size in sizes) ** 0.5
    assert AUTO.rate(0.01, posterior, LOSSES["cross_entropy"], (x, y)) == pytest.approx(turning)
    assert AUTO.rate(0.01, posterior, LOSSES["mse"], (x, x[:, 0, 0, :2])) == pytest.approx(0.002)
    plain = Posterior(nn.Sequential(*(layer for layer in model if not isinstance(layer, nn.BatchNorm2d))))
    assert AUTO.rate(0.01, plain, LOSSES["cross_entropy"], (x, y)) == pytest.approx(0.002)
    assert AUTO.replace(lr=0.3).rate(0.01, posterior, LOSSES["cross_entropy"], (x, y)) == 0.3
    assert pactrain.fit(model, (x, y), preset=short(AUTO)).metrics["learning_rate"] == pytest.approx(turning)

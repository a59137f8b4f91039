"""BatchNorm under noise: statistics estimated anew at the mean, batches of one row."""

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.problem.batches import TensorBatches
from pactrain.problem.module_modes import batch_statistics
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.scores import measure
from pactrain.rules.presets import AUTHORS, AUTO
from pactrain.rules.rules import Rules
from pactrain.runtime.events import Event
from tests.problem.batch_norm import network, short, task
from tests.zoo import build


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

"""Measuring the risk: both schemes are unbiased, independent, and chosen rightly."""

import math

import pytest
import torch
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.certification.risks import CHUNK, _linear_layers, measure_risks, noise_for_each_example
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import LOSSES
from pactrain.runtime.events import silent
from tests.zoo import build, rows

CE = LOSSES["cross_entropy"]


def posterior_of(model: nn.Module, std: float = 0.3) -> Posterior:
    """A posterior with much noise."""
    return Posterior(model.eval(), Prior(std=std))


def test_noise_for_each_example_has_the_law_of_drawn_networks() -> None:
    posterior = posterior_of(nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 3)), std=0.4)
    x, count = rows(1)[0], 20_000
    with torch.no_grad(), noise_for_each_example(_linear_layers(posterior), torch.Generator().manual_seed(0)) as uses:
        quick = posterior.model(x.expand(count, 6))
    assert uses == [1, 1]
    with torch.no_grad():
        slow = torch.cat([posterior(x, generator=torch.Generator().manual_seed(i)) for i in range(count // 4)])
    for moment in (1, 2, 3):
        a, b = quick**moment, slow**moment
        error = 5 * (a.var(0) / len(a) + b.var(0) / len(b)).sqrt()
        assert ((a.mean(0) - b.mean(0)).abs() < error).all(), moment
    together = torch.corrcoef(quick.T) - torch.corrcoef(slow.T)
    assert together.abs().max() < 0.06
    assert abs(torch.corrcoef(torch.stack([quick[:-1, 0], quick[1:, 0]]))[0, 1]) < 0.03


def test_both_schemes_measure_the_same_risk() -> None:
    x, y = rows(300)
    plain = posterior_of(build("mlp"))
    batches = TensorBatches((x, y), 64)
    quick = measure_risks(plain, batches, CE, values=20_000, seed=0, progress=silent)
    assert (quick.scheme, quick.n) == ("examples", 300)
    assert quick.values >= 20_000
    hidden = posterior_of(Shared(build("mlp")))
    slow = measure_risks(hidden, batches, CE, values=2000, seed=0, progress=silent)
    assert slow.scheme == "chunks"
    assert slow.values >= 2000
    assert quick.error is not None
    assert slow.error is not None
    assert quick.error == pytest.approx(slow.error, abs=0.03)
    assert quick.clipped == pytest.approx(slow.clipped, abs=0.03)


class Shared(nn.Module):
    """A network whose layers are called twice, so that weights are shared within an example."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        self.inner(x)
        out: Tensor = self.inner(x)
        return out


@pytest.mark.parametrize("name", ["tied", "batchnorm", "adapter", "frozen", "two inputs"])
def test_the_scheme_fits_the_network(name: str) -> None:
    from tests.zoo import ZOO

    posterior = posterior_of(build(name))
    from pactrain.problem.batches import as_batches

    batches = as_batches(ZOO[name][1](), batch_size=None, device=torch.device("cpu"))
    risks = measure_risks(posterior, batches, CE, values=10, seed=0, progress=silent)
    assert risks.scheme == ("examples" if name == "frozen" else "chunks")


def test_unequal_chunks_count_by_the_largest() -> None:
    x, y = rows(CHUNK + 8)
    risks = measure_risks(
        posterior_of(build("adapter")), TensorBatches((x, y), 64), CE, values=1, seed=0, progress=silent
    )
    assert risks.values == 1  # 40 examples in chunks of 32 and 8: as good as one and a quarter equal ones
    assert risks.n == CHUNK + 8


def test_clipping_brings_the_loss_to_the_unit_interval() -> None:
    x, y = rows(50)
    posterior = posterior_of(build("mlp"), std=20.0)
    risks = measure_risks(posterior, TensorBatches((x, y), 64), CE, values=50, seed=0, progress=silent)
    assert risks.loss > math.log(1e4)
    assert risks.clipped is not None
    assert 0 < risks.clipped < 1

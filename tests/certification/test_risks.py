"""Measuring the risk: both schemes are unbiased, independent, and chosen rightly."""

import pytest
import torch
from torch import Tensor, nn

from pactrain import Posterior, Prior
from pactrain.bounds.betting import risk_bound
from pactrain.certification.measures import CROSS_ENTROPY, ERROR, Key, measures_for
from pactrain.certification.risks import CHUNK, Risks, measure_risks
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.events import silent
from tests.zoo import build, rows

CE = LOSSES["cross_entropy"]
MEASURES = measures_for(CE, 3)


def mean_of(risks: Risks, key: Key) -> float:
    """Mean over all examples that were measured."""
    found = risks.histograms[key]
    return found.mean * found.number / risks.values


def posterior_of(model: nn.Module, std: float = 0.3) -> Posterior:
    """A posterior with much noise."""
    return Posterior(model.eval(), Prior(std=std))


def test_both_schemes_measure_the_same_risk() -> None:
    x, y = rows(300)
    plain = posterior_of(build("mlp"))
    batches = TensorBatches((x, y), 64)
    quick = measure_risks(plain, batches, CE, MEASURES, values=20_000, seed=0, progress=silent)
    assert (quick.scheme, quick.n) == ("examples", 300)
    assert quick.values >= 20_000
    hidden = posterior_of(Shared(build("mlp")))
    slow = measure_risks(hidden, batches, CE, MEASURES, values=2000, seed=0, progress=silent)
    assert slow.scheme == "chunks"
    assert slow.values >= 2000
    for key in ((ERROR, 0.0, 0.0), (CROSS_ENTROPY, 0.05, 0.5)):
        assert mean_of(quick, key) == pytest.approx(mean_of(slow, key), abs=0.03)


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
    from pactrain.problem.read_data import as_batches

    batches = as_batches(ZOO[name][1](), batch_size=None, device=torch.device("cpu"))
    risks = measure_risks(posterior, batches, CE, MEASURES, values=10, seed=0, progress=silent)
    assert risks.scheme == ("examples" if name == "frozen" else "chunks")


def test_unequal_chunks_count_by_the_largest() -> None:
    data = TensorBatches(rows(CHUNK + 8), 64)
    risks = measure_risks(posterior_of(build("adapter")), data, CE, MEASURES, values=1, seed=0, progress=silent)
    assert risks.values == 1.25  # 40 examples in chunks of 32 and 8
    assert risks.n == CHUNK + 8
    found = risks.histograms[ERROR, 0.0, 0.0]
    assert (found.bins, found.number) == (CHUNK, 2)
    assert mean_of(risks, (ERROR, 0.0, 0.0)) == pytest.approx(sum(i * c for i, c in found.counts.items()) / 40)


def test_large_losses_stay_in_the_unit_interval() -> None:
    data = TensorBatches(rows(50), 64)
    risks = measure_risks(posterior_of(build("mlp"), std=20.0), data, CE, MEASURES, values=50, seed=0, progress=silent)
    assert risks.loss > 10
    for found in risks.histograms.values():
        assert 0 < found.mean <= 1


@pytest.mark.parametrize("together", [False, True])
def test_some_rows_chosen_at_random_bound_the_mean_of_all(together: bool) -> None:
    """Rows are drawn without replacement, and each has a draw of its own, or a chunk of them shares one."""
    model = posterior_of(Shared(build("mlp")) if together else build("mlp"), std=0.2)
    whole = TensorBatches(rows(400), 64)
    key, delta, size = (ERROR, 0.0, 0.0), 0.2, 256
    truth = mean_of(
        measure_risks(model, whole, CE, MEASURES, values=800 if together else 40_000, seed=0, progress=silent), key
    )
    below, means = 0, []
    for seed in range(150):
        risks = measure_risks(model, whole.sample(size, seed), CE, MEASURES, values=1, seed=seed, progress=silent)
        found = risks.histograms[key]
        assert risks.values == size / (CHUNK if together else 1)
        below += risk_bound(found.bins, found.text, risks.values, delta) < truth
        means.append(mean_of(risks, key))
    assert abs(sum(means) / len(means) - truth) < 0.01
    assert below <= 0.2 * 150 + 3 * (150 * 0.2 * 0.8) ** 0.5
    assert 0.1 < truth < 0.9

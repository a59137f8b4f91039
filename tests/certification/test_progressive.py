"""The certificate of a training that went block by block: what is stated, of how many rows, and what takes its label away."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from pactrain import Certificate, Posterior, Prior
from pactrain.bounds.progressive import Block, progressive_bound
from pactrain.certification.in_parts import InParts
from pactrain.certification.progressive import progressive_certificate
from pactrain.certification.statement import Caveat
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES

BLOCKS: list[Block] = [(10, 2), (45, 3), (45, 1)]
DELTA = 0.1


def rows(n: int = 100) -> tuple[Tensor, Tensor]:
    g = torch.Generator().manual_seed(0)
    return torch.randn(n, 6, generator=g), torch.randint(0, 3, (n,), generator=g)


def trained(data: tuple[Tensor, Tensor] | None = None) -> InParts:
    """A network that has seen nothing, as if the blocks had judged it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3)).eval()
    return InParts(
        posterior=Posterior(model, Prior(source="torch's initial weights")),
        batches=TensorBatches(data or rows(), 64),
        loss=LOSSES["cross_entropy"],
        delta=DELTA,
        seed=3,
        caveats=(),
        remarks=("a remark",),
    )


def labels(certificate: Certificate) -> list[str]:
    return [s.label for s in certificate.statements]


def test_the_one_statement_takes_the_whole_of_delta() -> None:
    certificate = progressive_certificate(trained(), BLOCKS)
    (s,) = certificate.statements
    assert s.inputs == {"blocks": "10:2 45:3 45:1", "n": 90, "delta_bound": DELTA}
    assert s.value == pytest.approx(progressive_bound(BLOCKS, DELTA), rel=1e-12)
    assert (s.label, s.quantity, certificate.n, certificate.delta) == ("certified", "0-1 error", 90, DELTA)
    assert certificate.budget == {"progressive": DELTA}
    shares = torch.bincount(rows()[1]) / 100
    assert s.constant_answer == pytest.approx(1 - float(shares.max()))
    assert (certificate.seed, certificate.loss, certificate.caveats) == (3, "cross_entropy", ())
    assert certificate.prior_source == "torch's initial weights"
    assert "a remark" in certificate.notes
    assert certificate.recheck()


def test_nothing_is_stated_before_a_block_is_counted() -> None:
    assert progressive_certificate(trained(), BLOCKS[:1]).statements == ()
    assert len(progressive_certificate(trained(), BLOCKS[:2]).statements) == 1
    assert (
        replace(trained(), posterior=Posterior(nn.Linear(6, 3))).certificate("x", 1, (), lambda *_: []).prior_source
        == ""
    )


@pytest.mark.parametrize(
    ("norm", "label"),
    [
        (nn.BatchNorm1d(4), "certified"),
        (nn.LayerNorm(4), "certified"),
        (nn.BatchNorm1d(4, track_running_stats=False), "heuristic"),
        (nn.Sequential(nn.BatchNorm1d(4), nn.BatchNorm1d(4, track_running_stats=False)), "heuristic"),
        (nn.InstanceNorm1d(4), "certified"),
        (nn.InstanceNorm2d(4), "certified"),
        (nn.InstanceNorm3d(4), "certified"),
    ],
)
def test_predictions_may_not_depend_on_the_other_rows_of_a_batch(norm: nn.Module, label: str) -> None:
    made = replace(trained(), posterior=Posterior(Judged(norm)))
    assert labels(progressive_certificate(made, BLOCKS)) == [label]


class Judged(nn.Module):
    """A network with layers that stand in it; whether they are called does not matter."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer, self.last = layer, nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(x)
        return out


def test_reasons_of_others_and_copies_of_rows_take_the_label() -> None:
    told = replace(trained(), caveats=(Caveat("somebody looked", "estimated"),))
    assert labels(progressive_certificate(told, BLOCKS)) == ["estimated"]
    x, y = rows()
    copied = progressive_certificate(trained((torch.cat([x, x[:7]]), torch.cat([y, y[:7]]))), BLOCKS)
    assert labels(copied) == ["heuristic"]
    assert any("7 rows are copies of others" in caveat.reason for caveat in copied.caveats)

"""Copies, knowledge and units where a certificate does not look first: in dictionaries, loaders, buffers and run folders."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.certification.certificate import Certificate
from pactrain.certification.data_checks import as_table, data_caveats
from pactrain.cli.main import main
from pactrain.cli.remake import make_again
from pactrain.problem.batches import LoaderBatches
from pactrain.problem.losses import Loss
from pactrain.runtime.files import load_state
from tests.attacks.forging import write_posterior

CPU = torch.device("cpu")


def random_rows(n: int, columns: int = 8, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs and labels that have nothing to do with each other."""
    g = torch.Generator().manual_seed(seed)
    return torch.randn(n, columns, generator=g), torch.randint(0, 2, (n,), generator=g)


def test_copies_in_dictionaries_whose_target_comes_first_in_the_alphabet() -> None:
    x, y = random_rows(25)
    batches = [{"labels": y, "pixel_values": x} for _ in range(200)]
    assert "copies" in data_caveats(LoaderBatches(batches, CPU))[0].reason


def test_texts_are_no_copies_of_each_other() -> None:
    batches = [([f"text {i} {j}" for j in range(20)], torch.arange(20) % 2) for i in range(5)]
    assert as_table(LoaderBatches(batches, CPU)) is None
    assert data_caveats(LoaderBatches(batches, CPU)) == []


def test_copies_in_a_loader_of_held_out_rows() -> None:
    x, y = random_rows(25)
    held_out = DataLoader(TensorDataset(x.repeat(200, 1), y.repeat(200)), batch_size=100)
    found = pactrain.certify(pactrain.Posterior(nn.Linear(8, 2)), random_rows(60, seed=1), test=held_out, draws=2)
    mean = found.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.label == "heuristic"
    assert any("copies" in note for note in found.notes)


class Knowing(nn.Module):
    """A fresh layer beside a buffer that knows the labels."""

    known: Tensor

    def __init__(self, x: Tensor, y: Tensor) -> None:
        super().__init__()
        self.layer = nn.Linear(x.shape[1], 2)
        self.register_buffer("known", (F.one_hot(y, 2).float() - 0.5).T @ x)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layer(x) + x @ self.known.T
        return out


def test_a_buffer_that_has_seen_the_rows() -> None:
    x, y = random_rows(300, columns=300)
    found = pactrain.certify(pactrain.Posterior(Knowing(x, y)), (x, y), draws=2)
    assert any("than chance allows" in c.reason for c in found.caveats)


def test_class_numbers_in_floating_point() -> None:
    x, y = random_rows(300, columns=300)
    model = nn.Linear(300, 2)
    with torch.no_grad():
        model.weight.copy_((F.one_hot(y, 2).float() - 0.5).T @ x)
    loss = Loss("own", lambda o, t: F.cross_entropy(o, t.long(), reduction="none"), "classification")
    found = pactrain.certify(pactrain.Posterior(model), (x, y.float()), loss=loss, draws=2)
    assert any("than chance allows" in c.reason for c in found.caveats)


def test_shares_of_wrong_pixels_are_not_counted_like_errors() -> None:
    g = torch.Generator().manual_seed(0)
    x, y = torch.randn(40, 1, 3, 3, generator=g), torch.randint(0, 2, (40, 3, 3), generator=g)
    found = pactrain.certify(pactrain.Posterior(nn.Conv2d(1, 2, 1)), (x[:20], y[:20]), test=(x[20:], y[20:]), draws=2)
    mean = found.best("0-1 error", "mean network")
    assert mean is not None
    assert mean.label == "heuristic"


OWN: dict[str, tuple[Any, Any]] = {
    "a column of outputs": (nn.Linear(3, 1), Loss("own", lambda o, t: (o[:, 0] - t) ** 2, "regression")),
    "squeezed outputs": (nn.Linear(3, 1), Loss("own", lambda o, t: (o.squeeze(1) - t) ** 2, "regression")),
    "weights in single precision": (
        nn.Linear(3, 4),
        Loss("own", lambda o, t: F.cross_entropy(o, t, torch.ones(4), reduction="none"), "classification"),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_losses_that_take_outputs_of_the_network_only(name: str) -> None:
    model, loss = OWN[name]
    x, y = random_rows(40, columns=3)
    result = pactrain.fit(model, (x, y if loss.task == "classification" else x[:, 0]), loss=loss, budget="1 epoch")
    answer = next(s for s in result.certificate.statements if s.bound == "unbounded (cgf)").constant_answer
    assert answer is not None
    assert answer == pytest.approx(
        0.69 if loss.task == "classification" else float(x[:, 0].var(correction=0)), rel=0.02
    )


def test_units_in_the_run_folder_are_compared_with_the_data(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(SystemExit):
        main(["train", "--data", "iris", "--model", "mlp:8", "--budget", "2 epochs", "--out", str(run)])
    stored = Certificate.read(run / "certificate.json")
    assert make_again(run, root=None).disagreements(stored) == []
    tensors, values = load_state(run / "posterior.safetensors")
    for name in [name for name in tensors if name.startswith("prior_mean/")]:
        tensors[name.replace("prior_mean/", "units/")] = torch.full_like(tensors[name], 2.0)
        tensors[name] = 2 * tensors[name]
    write_posterior(run, tensors, values)
    assert any("units of the run's weights" in line for line in make_again(run, root=None).disagreements(stored))
    write_posterior(run, *_with_nats(run, 0.5))
    assert any("units of the run's weights" in line for line in make_again(run, root=None).disagreements(stored))


def _with_nats(run: Path, nats: float) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, values = load_state(run / "posterior.safetensors")
    return {k: v for k, v in tensors.items() if not k.startswith("units/")}, values | {"unit_nats": nats}

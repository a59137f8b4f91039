"""Training on data far from the size of one."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.bounds.prior_price import priced_prior
from pactrain.certification.in_units import unit_remarks
from pactrain.distributions.posterior import Posterior
from pactrain.problem.units import Units
from pactrain.rules.choose_units import find_units
from pactrain.rules.presets import AUTO
from pactrain.runs.weight_files import load_posterior
from pactrain.runtime.events import Event
from tests.interruptions import epochs_of
from tests.rules.raw_tables import EACH, perceptron, problem, table


def test_fit_learns_from_columns_of_any_size(tmp_path: Path) -> None:
    x, y = table(400)
    test = x[200:], y[200:]
    result = pactrain.fit(perceptron(), (x[:200], y[:200]), test=test, budget="500 epochs", out=tmp_path / "run")
    assert result.metrics["test"]["accuracy"] > 0.9
    with torch.no_grad():  # the network takes raw rows
        assert float((result.model(test[0]).argmax(1) == test[1]).float().mean()) == pytest.approx(
            result.metrics["test"]["accuracy"]
        )
    assert any("inputs in units of 0.016 to 1,024" in note for note in result.certificate.notes)
    assert result.notes == []
    assert result.config["units"]["target"] == 1
    kept = load_posterior(tmp_path / "run", Posterior(perceptron()))
    assert kept.kl().item() == pytest.approx(result.posterior.kl().item(), rel=1e-5)
    assert kept.unit_nats == result.posterior.unit_nats > 4 * EACH


def test_what_is_certified_of_raw_rows_afterwards_is_what_was_certified() -> None:
    x, y = table(200)
    result = pactrain.fit(perceptron(), (x, y), budget="20 epochs")
    again = pactrain.certify(result.posterior, (x, y), draws=50)
    kl = [next(s for s in c.statements if s.bound == "kl").inputs for c in (result.certificate, again)]
    assert kl[0]["kl"] == pytest.approx(kl[1]["kl"], rel=1e-4)
    assert kl[0]["prior_nats"] == kl[1]["prior_nats"] > 4 * EACH
    assert result.certificate.hashes == again.hashes
    assert result.certificate.recheck()
    assert not result.certificate.caveats


def test_targets_far_from_one() -> None:
    x, y = table(400, numbers=True)
    result = pactrain.fit(perceptron(outputs=1), (x[:200], y[:200]), test=(x[200:], y[200:]), budget="500 epochs")
    assert result.metrics["test"]["rmse"] < 40  # of a deviation of 100
    with torch.no_grad():
        mse = float((result.model(x[200:])[:, 0] - y[200:]).square().mean())
    assert result.metrics["test"]["loss"] == pytest.approx(mse, rel=1e-4)
    assert any("targets in units of 256, so that losses are in units of 65,536" in n for n in result.certificate.notes)
    assert "mse loss, in units of 65,536" in {s.quantity for s in result.certificate.statements}
    assert result.certificate.recheck()


class Features(nn.Module):
    """Random features, which no gradient reaches."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 40), nn.Linear(40, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            features = self.first(x).relu()
        return self.last(features)  # type: ignore[no-any-return]


def test_what_is_measured_is_the_network_that_takes_raw_rows() -> None:
    x, y = table(200)
    result = pactrain.fit(Features(), (x, y), budget="40 epochs")
    with torch.no_grad():
        right = float((result.model(x).argmax(1) == y).float().mean())
    assert result.metrics["train"]["accuracy"] == pytest.approx(right)
    assert result.history[-1]["train"]["accuracy"] == pytest.approx(right, abs=0.02)
    assert result.metrics["train"]["loss"] < 1.5


def test_a_failure_before_training_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    (x, y), model = table(200), perceptron()
    before = model[0].weight.detach().clone()

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("once")

    with monkeypatch.context() as patch:
        patch.setattr("pactrain.training.prior_from_data.measure_untrained", fails)
        with pytest.raises(RuntimeError, match="once"):
            pactrain.fit(model, (x, y), budget="5 epochs", prior_data=0.5)
    assert torch.equal(model[0].weight, before)
    assert not find_units(model, problem(x, y), seed=0).ready


def test_a_network_in_double_precision_is_certified_on_the_same_arrays() -> None:
    x, y = table(100)
    arrays = x.numpy().astype(float), y.numpy()
    result = pactrain.fit(perceptron().double(), arrays, budget="5 epochs")
    again = pactrain.certify(result.posterior, arrays, test=arrays, draws=5).hashes
    assert again == result.certificate.hashes | {"test": again["data"]}


def test_rows_of_the_prior_choose_units_free_of_charge() -> None:
    x, y = table(200)
    result = pactrain.fit(perceptron(), (x, y), prior_data=0.5, budget="5 epochs")
    assert result.config["units"]["inputs"][0] == 1024
    price = priced_prior(result.posterior).nats
    assert price == 0


@pytest.mark.parametrize(
    "more",
    [{"preset": AUTO.replace(units=False)}, {"preset": "authors"}, {"prior": pactrain.Prior(std=0.05)}],
    ids=["by hand", "authors", "own std"],
)
def test_where_no_units_are_taken(more: dict[str, Any]) -> None:
    result = pactrain.fit(perceptron(), table(), budget="1 epoch", **more)
    assert "units" not in result.config
    assert result.posterior.units is None
    assert result.posterior.unit_nats == 0


def test_a_run_in_units_that_was_interrupted_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    x, y = table(200)
    whole, model = pactrain.fit(perceptron(), (x, y), budget="12 epochs"), perceptron()

    def stop(event: Any) -> None:
        if event.phase == "train" and event.done == 5:
            raise KeyboardInterrupt

    assert pactrain.fit(model, (x, y), budget="12 epochs", out=tmp_path / "run", callbacks=[stop]).interrupted
    with torch.no_grad():
        assert float(model(x).abs().max()) < 100  # it takes raw rows
    events: list[Event] = []
    resumed = pactrain.fit(
        perceptron(), (x, y), budget="12 epochs", out=tmp_path / "run", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events) == list(range(6, 13))
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])


def test_the_same_network_may_go_on_before_the_first_checkpoint(tmp_path: Path) -> None:
    x, y = table(200)
    model = perceptron()

    def stop(event: Any) -> None:
        if event.phase == "train":
            raise KeyboardInterrupt

    assert pactrain.fit(model, (x, y), budget="3 epochs", out=tmp_path / "run", callbacks=[stop]).interrupted
    assert not pactrain.fit(model, (x, y), budget="3 epochs", out=tmp_path / "run", resume=True).interrupted


def test_training_again_goes_on_from_what_was_learned() -> None:
    x, y = table(200)
    model = perceptron()
    first = pactrain.fit(model, (x, y), budget="300 epochs").metrics["train"]["loss"]
    assert pactrain.fit(model, (x, y), budget="5 epochs").metrics["train"]["loss"] < 1.2 * first + 0.1


def test_callbacks_see_a_network_that_takes_raw_rows() -> None:
    x, y = table(200)
    model, seen = perceptron(), list[tuple[float, float]]()

    def look(event: Any) -> None:
        if event.phase == "train":
            with torch.no_grad():
                own = float((model(x).argmax(1) == y).double().mean())
            seen.append((own, event.values["train"]["accuracy"]))

    watched = pactrain.fit(model, (x, y), budget="20 epochs", callbacks=[look])
    assert [own for own, _ in seen] == pytest.approx([said for _, said in seen])
    alone = pactrain.fit(perceptron(), (x, y), budget="20 epochs")
    for name, weight in watched.model.state_dict().items():
        assert torch.equal(weight, alone.model.state_dict()[name])


def test_the_kind_of_the_test_set_changes_nothing() -> None:
    x, y = table(300)
    loader = DataLoader(TensorDataset(x[200:], y[200:]), batch_size=30)
    by_loader, by_rows = (
        pactrain.fit(perceptron(), (x[:200], y[:200]), test=test, budget="10 epochs")
        for test in (list(loader), (x[200:], y[200:]))
    )
    names = ("loss", "n", "rmse") if "rmse" in by_rows.metrics["test"] else ("loss", "n", "accuracy")
    assert [by_loader.metrics["test"][k] for k in names] == pytest.approx([by_rows.metrics["test"][k] for k in names])
    assert by_loader.history[-1]["test"] == pytest.approx(by_rows.history[-1]["test"])


def test_rows_that_only_the_test_set_has_take_the_label_away() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = perceptron()

        def forward(self, x: Tensor) -> Tensor:
            return self.net(torch.where(x > 3000, 0.0, x))  # type: ignore[no-any-return]

    x, y = table(300)
    test = x[200:].clone()
    test[:60, 0] = 4000.0
    result = pactrain.fit(Cut(), (x[:200], y[:200]), test=(test, y[200:]), budget="100 epochs")
    assert any("of some sizes specially" in c.reason for c in result.certificate.caveats)
    assert not any(s.label == "certified" for s in result.certificate.statements)


def test_other_kinds_of_test_batches_are_read_as_they_are() -> None:
    x, y = table(120)
    batches = [{"input": x[100:], "labels": y[100:]}]
    assert pactrain.fit(perceptron(), (x[:100], y[:100]), test=batches, budget="1 epoch").metrics["test"]["n"] == 20


def test_columns_that_hardly_vary_are_named() -> None:
    x, y = table(200)
    x[:, 1] = 2000 + x[:, 2]
    x[:, 3] = 700.0  # a constant is none
    notes = pactrain.fit(perceptron(), (x, y), budget="1 epoch").notes
    assert any("Column 1 of the inputs hardly varies" in note for note in notes)


def test_no_units_are_nothing() -> None:
    given = problem(*table())
    assert Units().applied(given) is given
    assert unit_remarks(Units()) == []

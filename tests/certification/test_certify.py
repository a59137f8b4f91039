"""Putting a certificate together: what is read, what is counted, how δ is shared out, what is recorded."""

import hashlib
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import PactrainError, Posterior, Prior, certify
from pactrain.certification.certify import Background
from pactrain.certification.statement import Caveat
from pactrain.distributions.posterior import Snapshot
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.errors import DataError

Data = tuple[Tensor, Tensor]


def classes(n: int = 60, seed: int = 0) -> Data:
    """Two classes that overlap."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 4, generator=g)
    return x, (x[:, 0] + torch.randn(n, generator=g) > 0.4).long()


def amounts(n: int = 60, seed: int = 0) -> Data:
    """Targets for regression."""
    x, _ = classes(n, seed)
    return x, x[:, :1] - x[:, 1:2]


def posterior_of(outputs: int = 2, **prior: Any) -> Posterior:
    torch.manual_seed(0)
    return Posterior(nn.Sequential(nn.Linear(4, outputs)), Prior(**{"std": 0.3, "learn": False} | prior))


def custom(predict: Any, batch: Data) -> Tensor:
    return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")


# -- arguments ---------------------------------------------------------------------------------------------------------


def test_defaults() -> None:
    certificate = certify(posterior_of(), classes())
    assert (certificate.delta, certificate.seed, certificate.measured["draws"]) == (0.05, 0, 2000)
    assert certificate.measured["values"] == 2040  # 34 passes over 60 examples
    assert certificate == certify(posterior_of(), classes(), loss="cross_entropy", delta=0.05, draws=2000, seed=0)


@pytest.mark.parametrize("delta", [-0.1, 0.0, 1.0, 1.1, float("nan")])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(PactrainError, match="delta"):
        certify(posterior_of(), classes(), delta=delta)


def test_there_is_at_least_one_draw() -> None:
    for draws in (0, -1):
        with pytest.raises(PactrainError, match="draws"):
            certify(posterior_of(), classes(), draws=draws)
    assert certify(posterior_of(), classes(), draws=1).measured["draws"] == 1


# -- δ -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "loss", "test", "events"),
    [
        (classes(), None, None, ["0-1 error", "cross-entropy", "one drawn network"]),
        (classes(), None, classes(30, 1), ["0-1 error", "cross-entropy", "one drawn network", "test set"]),
        (classes(), "hinge", None, ["0-1 error", "one drawn network"]),
        (amounts(), None, amounts(30, 1), ["large errors", "truncated squared error"]),
        (classes(), custom, classes(30, 1), []),
    ],
)  # fmt: skip
def test_events_share_delta(data: Data, loss: Any, test: Data | None, events: list[str]) -> None:
    outputs = 1 if data[1].is_floating_point() else 2
    certificate = certify(posterior_of(outputs, learn=True), data, loss=loss, test=test, delta=0.06, draws=3)
    each = 0.06 / max(1, len(events))
    assert certificate.budget == {event: pytest.approx(each) for event in events}
    for s in certificate.statements:
        if s.bound in ("kl", "bernstein"):
            assert s.inputs["delta_bound"] == pytest.approx(0.8 * each)
            assert s.inputs["delta_draws"] == pytest.approx(0.2 * each)
        elif s.bound in ("disintegrated", "test set"):
            assert s.inputs["delta_bound"] == pytest.approx(each)
        else:
            assert s.inputs["confidence_nats"] == pytest.approx(-torch.tensor(0.06).double().log().item(), rel=1e-6)
    assert not certificate.problems()


def test_a_prior_from_elsewhere_is_judged_by_the_counted_rows() -> None:
    posterior = posterior_of(source="elsewhere")
    x, y = classes()
    at_prior = certify(posterior, (x, y), draws=3)
    with torch.no_grad():
        wrong = int((posterior.model(x).argmax(1) != y).sum())
        posterior.model.get_parameter("0.weight").add_(1.0)
    moved = certify(posterior, (x, y), draws=3)
    for certificate, who in ((at_prior, "mean network"), (moved, "prior's mean network")):
        (found,) = (s for s in certificate.statements if s.bound == "counted rows")
        assert (found.predictor, found.quantity, found.prior) == (who, "0-1 error", "")
        assert found.inputs == {"errors": wrong, "n": 60, "delta_bound": 0.025}
        assert certificate.budget == {
            "counted rows": 0.025,
            **dict.fromkeys(("0-1 error", "cross-entropy", "one drawn network"), pytest.approx(0.025 / 3)),
        }
        assert not certificate.problems()
        for s in certificate.statements:  # the posterior that was trained may have been measured before
            if s.bound in ("kl", "bernstein"):
                assert s.inputs["delta_draws"] == pytest.approx(0.2 * 0.025 / 3 / 2)
            if s.bound == "disintegrated":
                assert s.inputs["delta_bound"] == pytest.approx(0.025 / 3 / 2)
    assert moved.hashes != at_prior.hashes


def test_a_prior_that_the_rows_had_a_part_in_is_not() -> None:
    for changes in ({"source": None}, {"learn": True}, {"unit_nats": 0.1}):
        prior: dict[str, Any] = {k: v for k, v in changes.items() if k in ("source", "learn")}
        posterior = posterior_of(2, **{"source": "elsewhere"} | prior)
        for name in set(changes) - set(prior):
            setattr(posterior, name, changes[name])
        assert "counted rows" not in certify(posterior, classes(), draws=3).budget, changes
    several = torch.randint(0, 2, (60, 5), generator=torch.Generator().manual_seed(0))
    pixels = Posterior(nn.Conv1d(4, 2, 1), Prior(std=0.3, learn=False, source="elsewhere"))
    made = certify(pixels, (torch.randn(60, 4, 5), several), draws=3)
    assert list(made.budget) == [
        "0-1 error",
        "clipped loss",
        "one drawn network",
    ]  # shares of wrong pixels are not counted one by one
    assert [s.inputs["bins"] for s in made.statements if s.bound == "kl"] == [1000, 1000]


def test_measuring_is_paid_for_at_each_moment() -> None:
    posterior = posterior_of()
    now = posterior.snapshot()
    before = Snapshot(now.means + 0.5, now.log_std - 0.5, now.prior_log_std)
    certificate = certify(
        posterior, classes(), delta=0.04, draws=3, background=Background(earlier={"before": before, "once": now})
    )
    assert [s.when for s in certificate.statements if s.bound == "disintegrated"] == [
        "end of training",
        "before",
        "once",
    ]
    for s in certificate.statements:
        if s.bound == "disintegrated":
            assert s.inputs["delta_bound"] == pytest.approx(0.04 / 9)
        if s.bound == "kl":
            assert s.inputs["delta_draws"] == pytest.approx(0.2 * 0.04 / 9)
            assert s.inputs["delta_bound"] == pytest.approx(0.8 * 0.04 / 3)
            assert (s.inputs["kl"] > 0) is (s.when == "before")
    assert all(map(torch.equal, vars(posterior.snapshot()).values(), vars(now).values()))
    assert not certificate.problems()


# -- labels, caveats and notes -----------------------------------------------------------------------------------------


def test_caveats_given_and_found() -> None:
    mild = Caveat("mild", "estimated")
    certificate = certify(posterior_of(), classes(), draws=3, caveats=[mild, "hard"])
    assert certificate.caveats == (mild, Caveat("hard", "heuristic"))
    norm = Posterior(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)), Prior(std=0.3))
    assert ["BatchNorm" in c.reason for c in certify(norm, classes(), draws=3).caveats] == [True]
    x, y = classes(40)
    twice = [(x[:20], y[:20]), (x[:20], y[:20]), (x[20:], y[20:])]
    assert ["20 rows are copies" in c.reason for c in certify(posterior_of(), twice, draws=3).caveats] == [True]


def test_a_prior_that_knows_the_answers() -> None:
    def certified(source: str | None, *caveats: Caveat) -> Any:
        torch.manual_seed(0)
        model, x = nn.Sequential(nn.Linear(12, 2), nn.Dropout(0.99)), torch.randn(300, 12)
        y = model.eval()(x).argmax(1)
        prior = Prior(std=0.01, learn=False, source=source)
        return certify(Posterior(model.train(), prior), (x, y), draws=3, caveats=caveats)

    (found,) = certified(None).caveats
    assert "better on the counted examples than chance allows (100.0 % correct" in found.reason
    assert (certified("elsewhere").caveats, certified("elsewhere").prior_source) == ((), "elsewhere")
    assert certified(None).prior_source == ""
    kl = [s.label for s in certified("elsewhere").statements if (s.bound, s.quantity) == ("kl", "0-1 error")]
    assert kl == ["certified"]
    doubted = certified("elsewhere", Caveat("a", "certified"), Caveat("b", "estimated"), Caveat("c", "certified"))
    assert [s.label for s in doubted.statements if (s.bound, s.quantity) == ("kl", "0-1 error")] == ["estimated"]
    assert {s.label for s in certified(None).statements} == {"heuristic"}
    assert any("dropout" in note for note in certified(None).notes)


def test_notes_come_in_order() -> None:
    x, y = classes(40)
    data = torch.cat([x, x[:2]]), torch.cat([y, y[:2]])
    test = torch.cat([x[:5], classes(30, 7)[0], x[:1]]), torch.cat([y[:5], classes(30, 7)[1], y[:1]])
    background = Background(test_doubts=["seen"], remarks=["remark"])
    certificate = certify(posterior_of(), data, test=test, background=background, draws=3)
    starts = ["2 training rows are copies", "1 test rows are copies", "remark", "seen", "5 test rows are also"]
    assert [note.startswith(start) for note, start in zip(certificate.notes, starts, strict=True)] == [True] * 5
    assert certificate.n == 40
    (held_out,) = (s for s in certificate.statements if s.bound == "test set")
    assert (held_out.inputs["n"], held_out.label) == (35, "heuristic")
    doubted = Background(test_doubts=["seen"])
    plain = certify(posterior_of(), classes(), test=classes(30, 7), background=doubted, draws=3)
    assert plain.notes == ("seen",)


# -- what is read ------------------------------------------------------------------------------------------------------


def test_data_that_cannot_be() -> None:
    with pytest.raises(DataError, match="training data has no batch"):
        certify(posterior_of(), [], loss="cross_entropy")
    with pytest.raises(DataError, match="test data has no batch"):
        certify(posterior_of(), classes(), test=[])
    with pytest.raises(DataError, match="4 features and the test rows 3"):
        certify(posterior_of(), classes(), test=(torch.zeros(5, 3), torch.zeros(5).long()))


def test_whole_numbers_become_what_the_network_takes() -> None:
    x = torch.arange(80).view(20, 4)
    y = torch.arange(20) % 2
    assert certify(posterior_of(), (x, y), draws=3).n == 20
    with pytest.raises(DataError, match=r"x\.float\(\)"):  # batches made elsewhere are left as they are
        certify(posterior_of(), TensorBatches((x, y), 20), draws=3)


def test_one_parameter_is_enough() -> None:
    assert certify(Posterior(nn.Linear(4, 2, bias=False), Prior(std=0.3)), classes(), draws=3).n == 60


def test_doubles_become_what_the_network_takes() -> None:
    x, y = classes()
    assert certify(posterior_of().double(), (x, y), draws=3).n == 60
    assert certify(posterior_of(), (x.double(), y), draws=3).n == 60


# -- what is recorded --------------------------------------------------------------------------------------------------


def digest(*tensors: Tensor) -> str:
    """Shapes, types and bytes, one tensor after the other."""
    state = hashlib.blake2b(digest_size=16)
    for t in tensors:
        state.update(f"{tuple(t.shape)}{t.dtype}".encode())
        state.update(t.detach().numpy().tobytes())
    return state.hexdigest()


def test_fingerprints() -> None:
    posterior, data, test = posterior_of(), classes(), classes(30, 1)
    certificate = certify(posterior, data, test=test, draws=3)
    layer = posterior.model[0]  # type: ignore[index]
    own = digest(layer.weight, layer.bias, posterior.log_std, posterior.prior_log_std)
    prior = posterior.prior_mean
    assert certificate.hashes == {
        "data": digest(*data),
        "test": digest(*test),
        "prior": digest(prior),
        "posterior": own,
    }
    posterior.units = torch.ones_like(prior)
    alone = certify(posterior, data, draws=3)
    assert alone.hashes == {"data": digest(*data), "prior": digest(prior, torch.ones_like(prior)), "posterior": own}
    assert alone.versions["pactrain"]


def test_the_loss_is_named() -> None:
    assert certify(posterior_of(), classes(), draws=3).loss == "cross_entropy"
    assert certify(posterior_of(), classes(), loss=LOSSES["hinge"], draws=3).loss == "hinge"
    assert certify(posterior_of(), classes(), loss=custom, draws=3).loss == "custom"


def test_heuristics_come_last() -> None:
    terms = {"risk": 0.7, "kl_term": 0.2, "complexity": 0.05}
    certificate = certify(posterior_of(), classes(), draws=3, background=Background(objective=terms))
    assert certificate.statements[-1].bound == "training objective"
    assert len(certificate.statements) == 1 + len(certify(posterior_of(), classes(), draws=3).statements)

"""The statements about small posteriors against an oracle in float64 that shares no code with the library."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pactrain import Posterior, Prior, certify
from pactrain.bounds.prior_price import priced_prior
from pactrain.certification.certify import Background
from pactrain.certification.make_statements import about, counted_statements, held_out_statements, heuristics
from pactrain.distributions.posterior import Snapshot
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.constant_answer import ConstantAnswer
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import LOSSES
from tests.certification.small_posteriors import Data, Product, classes, subject_of
from tests.oracle.complaints import complaints
from tests.oracle.formulas import VALUES
from tests.oracle.networks import Rows, network_of, noise_for
from tests.oracle.statements import END, STAGE_1, Run, State


def amounts(n: int) -> Data:
    """Targets for regression."""
    g = torch.Generator().manual_seed(0)
    x = torch.randn(n, 2, generator=g)
    return x, (x.sum(1, keepdim=True) + 0.3 * torch.randn(n, 1, generator=g))


def trained(model: nn.Module, *, learn: bool = True, moved: float = 0.3) -> Posterior:
    """A posterior away from its prior."""
    posterior = Posterior(model, Prior(per="layer", std=0.2, learn=learn))
    with torch.no_grad():
        for p in posterior.means():
            p.add_(moved * torch.randn_like(p))
        posterior.log_std.sub_(0.4)
        posterior.prior_log_std.add_(torch.linspace(-0.0312, 0.2, len(posterior.prior_log_std)))
    return posterior


def flat(*tensors: Tensor) -> Any:
    return torch.cat([t.detach().double().reshape(-1) for t in tensors]).numpy().copy()


def state_of(posterior: Posterior) -> State:
    return State(flat(*posterior.means()), flat(posterior.log_std), flat(posterior.prior_log_std))


def rows_of(data: Data) -> Rows:
    x, y = data
    return Rows((x.double(),), y.double() if y.is_floating_point() else y)


def oracle_run(posterior: Posterior, data: Data, *, earlier: dict[str, State], test: Data | None, **more: Any) -> Run:
    """The run in the oracle's terms."""
    module = copy.deepcopy(posterior.model).double().eval()
    return Run(
        network=network_of(module, "layer"),
        rows=rows_of(data),
        test=None if test is None else rows_of(test),
        states={END: state_of(posterior), **earlier},
        prior_mean=flat(posterior.prior_mean),
        units=np.ones(posterior.num_weights),
        fixed=posterior.prior_fixed,
        unit_nats=posterior.unit_nats,
        judged=posterior.prior_source is not None,
        **more,
    )


CASES: dict[str, tuple[Callable[[], nn.Module], Data, bool, bool]] = {  # learned prior, more of everything
    "noise for each example": (lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)), classes(70), True, True),
    "a draw for each chunk": (Product, classes(75), False, False),
    "regression": (lambda: nn.Sequential(nn.Linear(2, 1)), amounts(2020), True, False),
    "a prior from elsewhere": (lambda: nn.Sequential(nn.Linear(2, 2)), classes(80), False, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_input_of_every_statement(name: str) -> None:
    build, data, learn, more = CASES[name]
    torch.manual_seed(0)
    posterior = trained(build(), learn=learn)
    posterior.prior_source = "there" if "elsewhere" in name else None
    earlier: dict[str, Snapshot] = {}
    states, test = {}, None
    if more:
        posterior.unit_nats, test = 1.25, classes(30, seed=1)
        now = posterior.snapshot()
        earlier[STAGE_1] = Snapshot(1.1 * now.means, now.log_std + 0.1, now.prior_log_std + 0.0123)
        posterior.restore(earlier[STAGE_1])
        states[STAGE_1] = state_of(posterior)
        posterior.restore(now)
    settings: dict[str, Any] = {"seed": 5, "delta": 0.07, "draws": 100}
    certificate = certify(posterior, data, test=test, background=Background(earlier=earlier), **settings)
    assert complaints(certificate.to_dict(), oracle_run(posterior, data, earlier=states, test=test, **settings)) == []


def test_the_drawn_network_is_the_one_whose_density_ratio_is_charged() -> None:
    data = classes(200)
    subject = subject_of(loss=LOSSES["cross_entropy"], batches=TensorBatches(data, 200), seed=3)
    with torch.no_grad():
        subject.posterior.log_std.fill_(0.5)
    weights = flat(subject.posterior.means()[0]) + math.exp(0.5) * noise_for(4, 3, "one network")
    answers = data[0].double() @ torch.from_numpy(weights).view(2, 2).T + subject.posterior.model.get_parameter("bias")
    drawn = about(subject, END)[0][-1]
    assert drawn.bound == "disintegrated"
    assert drawn.inputs["risk"] == pytest.approx(float((answers.argmax(1) != data[1]).double().mean()), abs=1e-9)


# -- labels ------------------------------------------------------------------------------------------------------------


def test_what_a_statement_has_to_beat() -> None:
    constant = ConstantAnswer(torch.tensor([0.0, 0.5]), torch.tensor([0.5, 20.0]))
    statements, _, _ = about(subject_of(loss=LOSSES["cross_entropy"], constant=constant), END)
    found = {(s.quantity, s.bound): s.constant_answer for s in statements}
    (entropy,) = (s for s in statements if s.bound == "bernstein")
    part = float(entropy.quantity.rpartition(" ")[2])
    smoothed = [-math.log((1 - part) * math.exp(-loss) + part / 2) for loss in (0.5, 20.0)]
    assert found == {
        ("0-1 error", "kl"): 0.25,
        (entropy.quantity, "bernstein"): pytest.approx(sum(smoothed) / 2),
        ("0-1 error", "disintegrated"): 0.25,
    }
    unknown, _, _ = about(subject_of(loss=LOSSES["cross_entropy"]), END)
    assert {s.constant_answer for s in unknown} == {None}
    assert {s.label for s in unknown if s.bound in ("kl", "bernstein", "disintegrated")} == {"certified"}


def test_a_loss_with_a_range_has_a_clipped_statement_and_no_error() -> None:
    def squashed(output: Tensor, target: Tensor) -> Tensor:
        return 3 * (output - target.to(output.dtype)).mean(1).square().clamp(max=1.0)

    loss = Loss("squashed_loss", squashed, "regression", high=3.0)
    x, y = classes(120)
    subject = subject_of(loss=loss, batches=TensorBatches((x, torch.stack([y, y], 1).float()), 120))
    found = {s.quantity: s for s in about(subject, END)[0]}
    assert [s.bound for s in found.values()] == ["kl", "kl", "kl", "unbounded (paper)"]
    clipped = found["clipped loss"]
    assert (clipped.inputs["scale"], clipped.inputs["choices"], clipped.inputs["bins"]) == (3.0, 1, 1000)
    assert found["squashed-loss loss"].bound == "unbounded (paper)"
    assert clipped.inputs["prior_nats"] == priced_prior(subject.posterior).nats
    assert clipped.inputs["delta_bound"] == pytest.approx(0.8 * 0.04 / 3)


def test_few_draws_bring_a_note() -> None:
    data = TensorBatches(classes(2000), 2000)
    subject = subject_of(loss=LOSSES["cross_entropy"], batches=data, posterior=Posterior(Product(), Prior(std=0.2)))
    (note,) = about(subject, END)[2]
    assert "over a tenth" in note


# -- held-out rows, and heuristics ---------------------------------------------------------------------------------------


def test_held_out_rows() -> None:
    subject = subject_of(loss=LOSSES["cross_entropy"], label="heuristic")
    x, y = classes(40, seed=2)
    with torch.no_grad():
        errors = int((subject.posterior.model(x).argmax(1) != y).sum())
        y[:] = subject.posterior.model(x).argmax(1)
        y[:3] = 1 - y[:3]
    assert 0 < errors < 40
    held_out = TensorBatches((x, y), 40)
    (s,) = held_out_statements(subject, held_out, [])
    assert (s.quantity, s.predictor, s.bound, s.label) == ("0-1 error", "mean network", "test set", "certified")
    assert s.inputs == {"errors": 3, "n": 40, "delta_bound": pytest.approx(0.01)}
    assert s.value == pytest.approx(VALUES["test set"](s.inputs))
    assert s.constant_answer == pytest.approx(min(float(y.double().mean()), 1 - float(y.double().mean())))
    (doubted,) = held_out_statements(subject, held_out, ["seen before"])
    assert doubted.label == "heuristic"
    assert held_out_statements(subject_of(), held_out, []) == []  # nothing is known of a callable's errors


def test_counted_rows_judge_the_network_at_the_priors_mean() -> None:
    subject = subject_of(loss=LOSSES["cross_entropy"])
    assert counted_statements(subject) == []
    subject.posterior.prior_source = "elsewhere"
    subject = replace(subject, rows=replace(subject.rows, held_out=None), label="estimated")
    x, y = subject.rows.counted.tensors  # type: ignore[attr-defined]
    with torch.no_grad():
        y[:] = subject.posterior.model(x).argmax(1)
        y[:5] = 1 - y[:5]
        subject.posterior.model.get_parameter("weight").neg_()
    (s,) = counted_statements(subject)
    assert (s.quantity, s.predictor, s.bound, s.label) == (
        "0-1 error",
        "prior's mean network",
        "counted rows",
        "estimated",
    )
    assert s.inputs == {"errors": 5, "n": 120, "delta_bound": 0.02}
    subject.posterior.return_to_prior()
    (again,) = counted_statements(subject)
    assert (again.predictor, again.inputs) == ("mean network", s.inputs)


def test_nodes_of_a_graph_prove_nothing() -> None:
    class Graph(tuple):  # type: ignore[type-arg]
        edge_index = torch.zeros(2, 0)

    subject = subject_of(loss=LOSSES["cross_entropy"])
    x, _ = classes(40, seed=2)
    with torch.no_grad():
        y = subject.posterior.model(x).argmax(1)
    for kind, label in ((Graph, "heuristic"), (tuple, "certified")):
        (s,) = held_out_statements(subject, LoaderBatches([kind((x, y))], torch.device("cpu")), [])
        assert s.label == label


def test_heuristics() -> None:
    terms = {"risk": 0.7, "kl_term": 0.2, "complexity": 0.05}
    constants = {
        "weights": 50, "mean_size": 1.3, "mean_variance": 0.2, "gamma_min": 0.5, "gamma_max": 20.0, "n": 900,
        "largest_kl": 400.0, "largest_k": 2.0, "delta": 0.05, "groups": 3,
    }  # fmt: skip
    assert heuristics({}) == []
    (plain,) = heuristics(terms)
    assert plain.inputs == terms
    assert heuristics(terms | constants)[0] == plain
    corrected = heuristics(terms | constants)[1]
    assert corrected.inputs == {"objective": pytest.approx(0.95), **constants}
    for s, bound in ((plain, "training objective"), (corrected, "training objective + η")):
        assert (s.quantity, s.bound, s.label, s.when) == ("training loss", bound, "heuristic", STAGE_1)
        assert s.value == pytest.approx(VALUES[bound](s.inputs))

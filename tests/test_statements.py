"""The statements about small posteriors against an oracle in float64 that shares no code with the library."""

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain import Posterior, Prior, certify
from pactrain.bounds.prior_price import priced_priors
from pactrain.certification.statement import Label
from pactrain.certification.statements import Scene, _mfold, about, held_out_statements, heuristics
from pactrain.distributions.posterior import Snapshot
from pactrain.problem.batches import LoaderBatches, TensorBatches
from pactrain.problem.constant_answer import ConstantAnswer
from pactrain.problem.losses import LOSSES, Loss
from pactrain.runtime.events import silent
from tests.oracle import complaints
from tests.oracle_formulas import VALUES
from tests.oracle_networks import Rows, network_of, noise_for
from tests.oracle_statements import END, STAGE_1, Run, State

Data = tuple[Tensor, Tensor]


class Product(nn.Module):
    """Two classes from a product of weights that are not those of linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Parameter(torch.randn(2, 2)), nn.Parameter(torch.randn(2, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.left @ self.right


def classes(n: int, seed: int = 0) -> Data:
    """Two classes that overlap, a third and two thirds."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 2, generator=g)
    return x, (x[:, 0] + torch.randn(n, generator=g) > 0.6).long()


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
        choices=posterior.prior_choices,
        unit_nats=posterior.unit_nats,
        **more,
    )


CASES: dict[str, tuple[Callable[[], nn.Module], Data, bool, bool]] = {  # learned prior, more of everything
    "noise for each example": (lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)), classes(70), True, True),
    "a draw for each chunk": (Product, classes(75), False, False),
    "regression": (lambda: nn.Sequential(nn.Linear(2, 1)), amounts(2020), True, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_input_of_every_statement(name: str) -> None:
    build, data, learn, more = CASES[name]
    torch.manual_seed(0)
    posterior = trained(build(), learn=learn)
    earlier: dict[str, Snapshot] = {}
    states, test = {}, None
    if more:
        posterior.prior_choices, posterior.unit_nats, test = 3, 1.25, classes(30, seed=1)
        now = posterior.snapshot()
        earlier[STAGE_1] = Snapshot(1.1 * now.means, now.log_std + 0.1, now.prior_log_std + 0.0123)
        posterior.restore(earlier[STAGE_1])
        states[STAGE_1] = state_of(posterior)
        posterior.restore(now)
    settings: dict[str, Any] = {"seed": 5, "delta": 0.07, "draws": 100}
    certificate = certify(posterior, data, test=test, earlier=earlier, **settings)
    assert complaints(certificate.to_dict(), oracle_run(posterior, data, earlier=states, test=test, **settings)) == []


def test_the_drawn_network_is_the_one_whose_density_ratio_is_charged() -> None:
    data = classes(200)
    scene = scene_of(loss=LOSSES["cross_entropy"], batches=TensorBatches(data, 200), seed=3)
    with torch.no_grad():
        scene.posterior.log_std.fill_(0.5)
    weights = flat(scene.posterior.means()[0]) + math.exp(0.5) * noise_for(4, 3, "one network")
    answers = data[0].double() @ torch.from_numpy(weights).view(2, 2).T + scene.posterior.model.get_parameter("bias")
    drawn = about(scene, END)[0][-1]
    assert drawn.bound == "disintegrated"
    assert drawn.inputs["risk"] == pytest.approx(float((answers.argmax(1) != data[1]).double().mean()), abs=1e-9)


# -- labels ------------------------------------------------------------------------------------------------------------


def cross_entropy(predict: Callable[..., Tensor], batch: Data) -> Tensor:
    """A callable, which has no constant answer and no range."""
    return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")


def scene_of(n: int = 120, *, shift: float = 0.0, label: Label = "certified", **changes: Any) -> Scene:
    """A network at its prior, or `shift` away from it in its only random weights: KL = shift²."""
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    model.bias.requires_grad_(False)
    posterior = Posterior(model, Prior(std=0.5, learn=False))
    with torch.no_grad():
        model.weight[0].add_(shift * 0.5)
    fixed = (posterior, TensorBatches(classes(n), n), cross_entropy, None, 10, 0, silent, label, 0.01, 1)
    return replace(Scene(*fixed), **changes)


@pytest.mark.parametrize(
    ("n", "kl", "label", "expected"),
    [
        (100, 0.0, "certified", "estimated"), (99, 0.0, "certified", "heuristic"), (100, 0.0, "estimated", "estimated"),
        (100, 0.0, "heuristic", "heuristic"), (100, 2.99, "certified", "estimated"), (100, 3.0, "certified", "heuristic"),
    ],
)  # fmt: skip
def test_the_unbounded_loss_is_estimated_where_the_draws_can_see_it(
    n: int, kl: float, label: Label, expected: str
) -> None:
    statements, measured, notes = about(scene_of(n, shift=math.sqrt(kl), label=label), "once")
    assert [s.bound for s in statements] == ["unbounded (cgf)", "unbounded (paper)"]
    for s in statements:
        assert (s.quantity, s.label, s.prior, s.when) == ("loss", expected, "fixed in advance", "once")
        assert s.inputs["kl"] == pytest.approx(kl, abs=1e-5)
        assert s.constant_answer is None
    assert (measured["n"], measured["draws"], notes) == (n, 10, [])


def test_what_a_statement_has_to_beat() -> None:
    constant = ConstantAnswer(torch.tensor([0.0, 0.5]), torch.tensor([0.5, 20.0]))
    statements, _, _ = about(scene_of(loss=LOSSES["cross_entropy"], constant=constant), END)
    found = {(s.quantity, s.bound): s.constant_answer for s in statements}
    clipped = (0.5 + math.log(1e4)) / 2
    assert found == {
        ("0-1 error", "kl"): 0.25, ("clipped loss", "kl"): pytest.approx(clipped), ("0-1 error", "disintegrated"): 0.25,
        ("cross-entropy loss", "unbounded (cgf)"): 10.25, ("cross-entropy loss", "unbounded (paper)"): 10.25,
    }  # fmt: skip
    unknown, _, _ = about(scene_of(loss=LOSSES["cross_entropy"]), END)
    assert {s.constant_answer for s in unknown} == {None}
    assert {s.label for s in unknown if s.bound in ("kl", "disintegrated")} == {"certified"}


def test_a_loss_with_a_range_has_a_clipped_statement_and_no_error() -> None:
    def squashed(output: Tensor, target: Tensor) -> Tensor:
        return 3 * (output - target.to(output.dtype)).mean(1).square().clamp(max=1.0)

    loss = Loss("squashed_loss", squashed, "regression", high=3.0)
    x, y = classes(120)
    scene = scene_of(loss=loss, batches=TensorBatches((x, torch.stack([y, y], 1).float()), 120))
    found = {s.bound: s for s in about(scene, END)[0]}
    assert list(found) == ["kl", "unbounded (cgf)", "unbounded (paper)"]
    assert found["kl"].quantity == "clipped loss"
    assert found["kl"].inputs["scale"] == 3.0
    assert found["unbounded (cgf)"].quantity == "squashed-loss loss"
    price = next(iter(priced_priors(scene.posterior).values()))[1]
    assert found["kl"].inputs["prior_nats"] == price


def test_few_draws_bring_a_note() -> None:
    data = TensorBatches(classes(2000), 2000)
    scene = scene_of(loss=LOSSES["cross_entropy"], batches=data, posterior=Posterior(Product(), Prior(std=0.2)))
    (note,) = about(scene, END)[2]
    assert "over a tenth" in note


# -- the m-fold moment -------------------------------------------------------------------------------------------------


def test_the_moment_is_that_of_all_examples_together() -> None:
    table = np.array([[0.01, 0.3, -2e-12], [0.02, 0.1, -1e-12]])
    expected = [
        (math.log(math.exp(50 * a) + math.exp(50 * b)) - math.log(2)) / 50 for a, b in table.T[:2].tolist()
    ]  # fmt: skip
    found = _mfold(table, 50).tolist()
    assert found[:2] == pytest.approx(expected, rel=1e-12)
    assert found[2] == 0.0  # a rounding error below zero is none


# -- held-out rows, and heuristics ---------------------------------------------------------------------------------------


def test_held_out_rows() -> None:
    scene = scene_of(loss=LOSSES["cross_entropy"], label="heuristic")
    x, y = classes(40, seed=2)
    with torch.no_grad():
        errors = int((scene.posterior.model(x).argmax(1) != y).sum())
        y[:] = scene.posterior.model(x).argmax(1)
        y[:3] = 1 - y[:3]
    assert 0 < errors < 40
    held_out = TensorBatches((x, y), 40)
    (s,) = held_out_statements(scene, held_out, [])
    assert (s.quantity, s.predictor, s.bound, s.label) == ("0-1 error", "mean network", "test set", "certified")
    assert s.inputs == {"errors": 3, "n": 40, "delta_bound": 0.01}
    assert s.value == pytest.approx(VALUES["test set"](s.inputs))
    assert s.constant_answer == pytest.approx(min(float(y.double().mean()), 1 - float(y.double().mean())))
    (doubted,) = held_out_statements(scene, held_out, ["seen before"])
    assert doubted.label == "heuristic"
    assert held_out_statements(scene_of(), held_out, []) == []  # nothing is known of a callable's errors


def test_nodes_of_a_graph_prove_nothing() -> None:
    class Graph(tuple):  # type: ignore[type-arg]
        edge_index = torch.zeros(2, 0)

    scene = scene_of(loss=LOSSES["cross_entropy"])
    x, _ = classes(40, seed=2)
    with torch.no_grad():
        y = scene.posterior.model(x).argmax(1)
    for kind, label in ((Graph, "heuristic"), (tuple, "certified")):
        (s,) = held_out_statements(scene, LoaderBatches([kind((x, y))], torch.device("cpu")), [])
        assert s.label == label


def test_heuristics() -> None:
    terms = {"risk": 0.7, "kl_term": 0.2, "complexity": 0.05}
    constants = {
        "weights": 50, "mean_size": 1.3, "mean_variance": 0.2, "gamma_min": 0.5, "gamma_max": 20.0, "n": 900,
        "largest_kl": 400.0, "largest_k": 2.0, "delta": 0.05, "groups": 3,
    }  # fmt: skip
    assert heuristics({}) == heuristics(None) == []
    (plain,) = heuristics(terms)
    assert plain.inputs == terms
    assert heuristics(terms | constants)[0] == plain
    corrected = heuristics(terms | constants)[1]
    assert corrected.inputs == {"objective": pytest.approx(0.95), **constants}
    for s, bound in ((plain, "training objective"), (corrected, "training objective + η")):
        assert (s.quantity, s.bound, s.label, s.when) == ("training loss", bound, "heuristic", STAGE_1)
        assert s.value == pytest.approx(VALUES[bound](s.inputs))

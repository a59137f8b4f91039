"""Left-out losses from one look at a trained network, against training again without each example."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.batches import TensorBatches, as_batches
from pactrain.problem.losses import AnyLoss, resolve
from pactrain.rules.gamma.example_kernel import Opaque
from pactrain.rules.gamma.layer_factors import Unlike
from pactrain.rules.gamma.trained_leave_one_out import LeftOut
from pactrain.rules.gamma.walk import leave_out
from tests.zoo import build, rows

CPU = torch.device("cpu")
GAMMA, STD = 3.0, 0.4


def refuse(*_: Any) -> None:
    raise Unlike


def minimise(model: nn.Module, x: Tensor, y: Tensor, loss: str) -> None:
    """To the least of  Σ losses + |Δ|²/(2 γ std²)."""
    start = [p.detach().clone() for p in model.parameters()]
    find = torch.optim.LBFGS(
        model.parameters(),
        lr=1.0,
        max_iter=500,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def objective() -> Tensor:
        find.zero_grad()
        moved = sum((p - s).square().sum() for p, s in zip(model.parameters(), start, strict=True))
        total = resolve(loss, (x, y))(model, (x, y)).sum() + moved / (2 * GAMMA * STD**2)
        total.backward()
        return total

    find.step(objective)


def trained(outputs: int, loss: str, n: int = 25) -> tuple[Posterior, nn.Module, Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(n, 4, generator=source, dtype=torch.float64)
    noise = torch.randn(n, generator=source, dtype=torch.float64)
    y = x.sum(1) + noise if outputs == 1 else (x[:, :outputs] + noise[:, None] * x[:, 1:2]).argmax(1)
    torch.manual_seed(0)
    start = nn.Linear(4, outputs).double()
    model = copy.deepcopy(start)
    posterior = Posterior(model, Prior(per="model", std=STD))
    minimise(model, x, y, loss)
    with torch.no_grad():
        posterior.log_std.fill_(-20.0)
        posterior.prior_log_std.fill_(torch.tensor(STD).log())
    return posterior, start, x, y


def asked(posterior: Posterior, data: Any, loss: str | AnyLoss, *, settle: bool = False) -> LeftOut:
    batches = as_batches(data, batch_size=None, device=CPU, dtype=torch.float64)
    chosen = resolve(loss, next(iter(batches.ordered())))
    n = sum(len(chosen(posterior.model, b)) for b in batches.ordered())
    return LeftOut(posterior, batches, chosen, n, seed=0, settle=settle)


def refitted(start: nn.Module, x: Tensor, y: Tensor, loss: str) -> tuple[float, float, float]:
    """The mean loss of examples that were left out, its slope as their outputs grow, from two losses of grown ones, and how many are wrong."""
    losses, wrong = [], 0
    for j in range(len(y)):
        model, rest = copy.deepcopy(start), torch.arange(len(y)) != j
        minimise(model, x[rest], y[rest], loss)
        one = x[j : j + 1], y[j : j + 1]
        grown = [lambda x, size=size, model=model: size * model(x) for size in (1.0, 1 + 1e-6, 1 - 1e-6)]
        losses.append([float(resolve(loss, (x, y))(predict, one).detach()) for predict in grown])
        wrong += int(model(one[0]).argmax(1) != one[1])
    mean, above, below = (sum(column) / len(losses) for column in zip(*losses, strict=True))
    return mean, (above - below) / 2e-6, wrong / len(losses)


def test_for_squares_it_is_exactly_refitting_without_the_example() -> None:
    posterior, start, x, y = trained(1, "mse")
    assert asked(posterior, (x, y), "mse").ask(GAMMA)[:2] == pytest.approx(refitted(start, x, y, "mse")[:2], rel=1e-4)


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
def test_for_squares_it_is_that_wherever_training_was_ended(part: float) -> None:
    posterior, start, x, y = trained(1, "mse")
    with torch.no_grad():
        for p, first in zip(posterior.model.parameters(), start.parameters(), strict=True):
            p.copy_(torch.lerp(first, p, part))
    before = copy.deepcopy(posterior.model.state_dict())
    settled = asked(posterior, (x, y), "mse", settle=True).ask(GAMMA)
    assert settled.loss == pytest.approx(refitted(start, x, y, "mse")[0], rel=1e-4)
    assert all(torch.equal(before[k], v) for k, v in posterior.model.state_dict().items())
    if part < 1:
        assert asked(posterior, (x, y), "mse").ask(GAMMA).loss != pytest.approx(settled.loss, rel=0.02)


@pytest.mark.parametrize("outputs", [1, 2])
def test_some_examples_stand_for_all_wherever_the_prior_is(outputs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = torch.Generator().manual_seed(0)
    x, target = (torch.randn(400, k, generator=source, dtype=torch.float64) for k in (4, outputs))
    y, weight = x @ torch.randn(4, outputs, generator=source, dtype=torch.float64) + target, x[:, 0].exp()

    def loss(predict: Any, batch: Any) -> Tensor:
        a, b, w = batch
        return torch.as_tensor(w * (predict(a) - b).square().sum(1))

    torch.manual_seed(0)
    posterior = Posterior(nn.Linear(4, outputs).double(), Prior(per="model", std=STD))
    with torch.no_grad():
        posterior.prior_mean += 0.3
        posterior.log_std.fill_(-20.0)
        posterior.prior_log_std.fill_(torch.tensor(STD).log())
    # ridge regression around the prior's mean, each example left out
    inputs = torch.cat([x, torch.ones(400, 1, dtype=x.dtype)], 1)
    matrix, bias = posterior.prior_mean.split([4 * outputs, outputs])
    residual = y - inputs @ torch.cat([matrix.view(outputs, 4), bias[:, None]], 1).T
    total = 0.0
    for j in range(400):
        rest = torch.arange(400) != j
        scaled = inputs[rest] * weight[rest, None]
        inner = scaled.T @ inputs[rest] + torch.eye(5, dtype=x.dtype) / (2 * GAMMA * STD**2)
        move = torch.linalg.solve(inner, scaled.T @ residual[rest])
        total += float(weight[j] * (residual[j] - inputs[j] @ move).square().sum()) / 400
    whole = asked(posterior, [(x, y, weight)], loss, settle=True)
    assert whole.examples.count == 256  # of a batch that is shared
    assert whole.ask(GAMMA).loss == pytest.approx(total, rel=0.1)
    monkeypatch.setattr("pactrain.rules.gamma.example_kernel.SHARED", 400)
    assert asked(posterior, [(x, y, weight)], loss, settle=True).ask(GAMMA).loss == pytest.approx(total, rel=1e-5)


def test_that_numbers_are_too_sure_does_not_depend_on_where_their_zero_is() -> None:
    posterior, _, x, y = trained(1, "mse")
    here = asked(posterior, (x, y), "mse", settle=True).ask(GAMMA)
    with torch.no_grad():
        list(posterior.model.parameters())[-1].add_(50.0)
        posterior.prior_mean[-1] += 50.0
    there = asked(posterior, (x, y + 50.0), "mse", settle=True).ask(GAMMA)
    assert there == pytest.approx(here, rel=1e-6)
    mean = posterior.model(x).detach().mean()
    assert there.wrong == pytest.approx(there.loss / float((mean - y - 50.0).square().mean()), rel=1e-6)


def test_whole_images_as_outputs_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, _, x, y = trained(1, "mse")
    monkeypatch.setattr("pactrain.rules.gamma.trained_leave_one_out.NUMBERS", 24)
    with pytest.raises(Opaque):
        asked(posterior, (x, y), "mse", settle=True)


def test_losses_without_curvature_cannot_be_settled() -> None:
    posterior, _, x, y = trained(1, "mse")
    with pytest.raises(Opaque):
        asked(posterior, (x, y), "l1", settle=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_for_classes_it_is_nearly_that(classes: int) -> None:
    posterior, start, x, y = trained(classes, "cross_entropy")
    measured = asked(posterior, (x, y), "cross_entropy").ask(GAMMA)
    again, _, wrong = refitted(start, x, y, "cross_entropy")
    fitted = float(F.cross_entropy(posterior.model(x), y).detach())
    assert abs(measured.loss - again) < 0.5 * (again - fitted)
    assert measured.wrong == pytest.approx(wrong, abs=1.5 / len(y))
    assert wrong > float((posterior.model(x).argmax(1) != y).double().mean())


def test_one_score_is_wrong_by_its_sign() -> None:
    posterior, _, x, y = trained(2, "cross_entropy")
    apart = nn.Linear(4, 1).double()
    with torch.no_grad():
        apart.weight.copy_(posterior.model.weight[1:] - posterior.model.weight[:1])  # type: ignore[index]
        apart.bias.copy_(posterior.model.bias[1:] - posterior.model.bias[:1])  # type: ignore[index]
    alone = Posterior(apart, Prior(per="model", std=STD))

    def loss(predict: Any, batch: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(predict(batch[0])[:, 0], batch[1].double(), reduction="none")

    expected = float(((apart(x)[:, 0] > 0).long() != y).double().mean())
    assert asked(alone, (x, y), loss).ask(1e-9).wrong == pytest.approx(expected)


def test_examples_that_share_a_forward_pass_and_come_in_any_order() -> None:
    posterior, _, x, y = trained(3, "cross_entropy")
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(3))

    def loss(predict: Any, batch: Any) -> Tensor:
        inputs, places, labels = batch
        return F.cross_entropy(predict(inputs)[places], labels, reduction="none")

    padded = torch.cat([x, torch.ones(5, 4, dtype=x.dtype)])  # rows of the output that no example looks at
    apart = asked(posterior, (x, y), "cross_entropy").ask(GAMMA).loss
    assert asked(posterior, [(padded, order, y[order])], loss).ask(GAMMA).loss == pytest.approx(apart, rel=1e-6)


@pytest.mark.parametrize("name", ["mlp", "tied", "frozen", "unused", "batchnorm"])
def test_together_is_one_by_one_and_nothing_is_changed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(name)
    posterior = Posterior(model)
    before = copy.deepcopy(model.state_dict())
    batches, loss = TensorBatches(rows(), 16), resolve(None, rows())
    together = LeftOut(posterior, batches, loss, len(batches), seed=0)
    assert together.examples.quick
    by_rows = together.ask(5.0).loss
    monkeypatch.setattr("pactrain.rules.gamma.example_kernel.row_factors", refuse)
    value = together.ask(5.0).loss
    assert by_rows == pytest.approx(value, rel=1e-4)
    monkeypatch.setattr("pactrain.rules.gamma.example_kernel.NUMBERS_AT_ONCE", 0)
    alone = LeftOut(posterior, batches, loss, len(batches), seed=0)
    assert not alone.examples.quick
    assert alone.ask(5.0).loss == pytest.approx(value, rel=1e-4)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


def test_more_memory_of_an_example_makes_its_absence_dearer() -> None:
    posterior, _, x, y = trained(3, "cross_entropy")
    found = asked(posterior, (x, y), "cross_entropy")
    fitted = float(F.cross_entropy(posterior.model(x), y).detach())
    values = [found.ask(gamma).loss for gamma in (1e-6, 1.0, 10.0)]
    assert values[0] == pytest.approx(fitted, rel=1e-3)
    assert values == sorted(values)


def test_a_loss_that_calls_the_network_twice_is_not_asked() -> None:
    def loss(predict: Any, batch: Any) -> Tensor:
        x, y = batch
        return F.cross_entropy(predict(x) + predict(-x), y, reduction="none")

    posterior = Posterior(build("mlp"))
    with pytest.warns(UserWarning, match=r"was not made \(the loss of a batch does not follow from one output"):
        assert leave_out(posterior, TensorBatches(rows(), 16), loss, len(rows()[1]), 0, numbers=False) is None

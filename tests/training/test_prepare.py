"""`prepare`: what a loop of one's own gets, and that it reaches what `fit` reaches."""

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain import Posterior, Prior
from pactrain.runtime.errors import PactrainError
from pactrain.training.closed_form_optimizer import PRIOR_STEPS, ClosedFormAdam
from pactrain.training.curvature import CurvatureStds
from pactrain.training.prepare import Prepared
from tests.zoo import build, rows, weights


def own_loop(prepared: Prepared, data: TensorDataset, epochs: int, *, pieces: int = 1) -> None:
    """The loop of the README."""
    loader = DataLoader(data, batch_size=prepared.batch_size, shuffle=True)
    for _ in range(epochs):
        for x, y in loader:
            prepared.optimizer.zero_grad()
            for part, target in zip(x.chunk(pieces), y.chunk(pieces), strict=True):
                (F.cross_entropy(prepared.posterior(part), target) * len(part) / len(x)).backward()
            prepared.optimizer.step()
            prepared.schedule.step()


def digits() -> tuple[TensorDataset, torch.Tensor, torch.Tensor]:
    x, y = load_digits(return_X_y=True)
    inputs, target = torch.tensor(x / 16).float(), torch.tensor(y)
    return TensorDataset(inputs[::2], target[::2]), inputs[1::2], target[1::2]


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_loop_of_ones_own_reaches_what_fit_reaches(pieces: int) -> None:
    data, x, y = digits()
    fitted, own = network(), network()
    pactrain.fit(fitted, data.tensors, budget="40 epochs")
    prepared = pactrain.prepare(own, data.tensors, epochs=40)
    assert prepared.epochs == 40
    torch.manual_seed(1)
    own_loop(prepared, data, prepared.epochs, pieces=pieces)
    reached = [float((model(x).argmax(1) == y).double().mean()) for model in (fitted, own)]
    assert reached[0] > 0.95
    assert reached[1] > reached[0] - 0.01
    assert prepared.schedule.get_last_lr()[0] < 1e-6


def test_steps_are_those_of_fit() -> None:
    posteriors = [Posterior(build("mlp"), Prior(std=0.1)) for _ in range(2)]
    settings: dict[str, Any] = {"kl_weight": 0.01, "memory": 0.9, "first": 1.0, "log_std_range": (-6.0, -1.0)}
    ours = CurvatureStds(posteriors[0], **settings)
    theirs = ClosedFormAdam(posteriors[1], lr=0.05, **settings)
    x, y = rows(40)
    for step in range(PRIOR_STEPS):
        ours.draw(step)
        F.cross_entropy(posteriors[0].model(x), y).backward()
        ours.flat.take_grads()
        grads, moved = ours.flat.grads.clone(), ours.flat.draw - ours.flat.means
        ours.learn(0.05, step)
        for p, at in zip(posteriors[1].means(), posteriors[1].parameter_slices, strict=True):
            p.grad = grads[at].view_as(p).clone()
        posteriors[1].log_std.grad = grads * moved  # what `backward()` leaves there
        theirs.step()
    ours.update_prior()
    ours.rest()
    for name in ("log_std", "prior_log_std"):
        assert torch.allclose(getattr(posteriors[0], name), getattr(posteriors[1], name), atol=1e-4)
    assert torch.allclose(weights(posteriors[0].model), weights(posteriors[1].model), atol=1e-4)


def test_the_gradient_in_a_log_std_is_gradient_times_noise() -> None:
    posterior = Posterior(build("mlp"), Prior(std=0.1))
    x, y = rows(40)
    torch.manual_seed(0)
    F.cross_entropy(posterior(x), y).backward()
    grads = torch.cat([p.grad.reshape(-1) for p in posterior.means() if p.grad is not None])
    torch.manual_seed(0)
    drawn = torch.cat([w.detach().reshape(-1) for w in posterior.draw().values()])
    assert posterior.log_std.grad is not None
    assert torch.allclose(posterior.log_std.grad, grads * (drawn - weights(posterior.model)), atol=1e-6)


def test_the_state_of_the_optimiser_is_saved_and_loaded() -> None:
    data = TensorDataset(*rows(64))
    first, second = (pactrain.prepare(build("mlp"), data.tensors) for _ in range(2))
    own_loop(first, data, 60)
    second.posterior.load_state_dict(first.posterior.state_dict())
    second.optimizer.load_state_dict(copy.deepcopy(first.optimizer.state_dict()))
    for prepared in (first, second):
        torch.manual_seed(3)
        prepared.optimizer.zero_grad()
        prepared.objective(data.tensors).backward()
        prepared.optimizer.step()
    assert torch.equal(weights(first.posterior.model), weights(second.posterior.model))
    assert torch.equal(first.posterior.log_std, second.posterior.log_std)
    assert torch.equal(first.posterior.prior_log_std, second.posterior.prior_log_std)
    assert first.posterior.log_std.detach().std() > 0


def test_what_was_prepared_can_be_certified() -> None:
    data = rows(200)
    prepared = pactrain.prepare(build("mlp"), data)
    own_loop(prepared, TensorDataset(*data), 20)
    certificate = pactrain.certify(prepared.posterior, data, loss=prepared.loss, draws=50)
    assert certificate.n == 200


def test_rules_without_closed_forms_are_refused() -> None:
    with pytest.raises(PactrainError, match="closed-form stds, such as preset='auto', not 'paper'"):
        pactrain.prepare(build("mlp"), rows(), preset="paper")

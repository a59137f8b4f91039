"""Where the prior's mean is: zero for weights that are noise, the initial weights for those that carry something.

A prior around the initial weights keeps the untrained network's random function: whatever the data does not speak about stays as it was
drawn.  Around zero that is forgotten, and a few directions that matter are cheaper than a small move of everything, so that the
divergence falls as well.  Pre-trained weights are another matter: they are worth keeping.  Which of the two a network has
shows in its weights alone, so the prior remains independent of the data.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import AnyLoss, names_classes
from pactrain.rules.presets import Rules, Strength
from pactrain.runtime import distributed

LARGEST = 1.3
"""A matrix of independent entries has no singular value much above deviation · (√rows + √columns); a trained one has, several times."""

TAILS = 10.0
"""Mean fourth power over the squared mean square: 1.8 for uniform entries, 3 for normal ones, the size of the matrix for an identity."""

ROUNDS = 20
"""Steps of the power method for the largest singular value."""


def belongs_at_zero(
    posterior: Posterior,
    rules: Rules,
    strength: Strength | None,
    loss: AnyLoss,
    batch: Any,
    *,
    n: int,
    start_loss: float,
    free: bool,
) -> bool:
    """Is the prior's mean to be zero?  Where the data decides, the posterior keeps that it does: the certificate charges for it.

    batch: any of the training data, from which it is seen whether classes are learned.
    free:  may the mean be elsewhere than at the weights that the user gave, or that a part of the data was spent on?
    """
    choosing = free and rules.centre == "noise at zero" and names_classes(loss, batch) and only_noise(posterior.model)
    posterior.prior_choices = 1 + choosing
    wanted = choosing and affords_zero(posterior.model, rules, strength, n=n, start_loss=start_loss)
    return bool(distributed.from_first(wanted)[0])


def affords_zero(model: nn.Module, rules: Rules, strength: Strength | None, *, n: int, start_loss: float) -> bool:
    """Would weights of the initial size cost little enough around zero, as far as the rules say?"""
    if rules.centre == "initial" or strength is None or not strength.classes:
        return False
    size = sum(float(p.detach().square().sum()) for p in model.parameters() if p.requires_grad and p.ndim > 1)
    return size / (2 * strength.gamma_variance * n) <= rules.centre_cost * start_loss


def only_noise(model: nn.Module) -> bool:
    """Is every weight matrix of the network noise, the frozen ones included?"""
    matrices = [p.detach() for p in model.parameters() if _is_matrix(p)]
    return bool(matrices) and all(map(is_noise, matrices))


def centre_at_zero(posterior: Posterior) -> None:
    """Put the prior's mean at zero for all weight matrices.  Biases, and the scales and shifts of normalisation, stay where they are.

    >>> posterior = Posterior(nn.Linear(3, 2))
    >>> centre_at_zero(posterior)
    >>> posterior.prior_mean[:6].norm().item()
    0.0
    """
    for parameter, at in zip(posterior.means(), posterior.parameter_slices, strict=True):
        if _is_matrix(parameter):
            posterior.prior_mean[at] = 0.0


@torch.no_grad()
def _is_matrix(parameter: Tensor) -> bool:
    """Has it rows and columns, and more than one value in them?  (The scales of normalisation may have several dimensions.)"""
    if not (parameter.is_floating_point() and parameter.ndim > 1 and parameter.numel() > 1):
        return False
    low, high = torch.aminmax(parameter)
    return bool(low < high)


@torch.no_grad()
def is_noise(weight: Tensor) -> bool:
    """Could these be independent draws, rows and columns alike, around zero?

    >>> is_noise(nn.Linear(30, 20).weight), is_noise(torch.eye(30)), is_noise(torch.ones(30, 20))
    (True, False, False)
    """
    matrix = weight.reshape(len(weight), -1)
    square = matrix.square()
    size = float(square.mean())
    if size == 0:
        return True
    if not math.isfinite(size) or float(square.square_().mean()) > TAILS * size * size:
        return False
    rows, columns = matrix.shape
    return _largest_singular_value(matrix) <= LARGEST * math.sqrt(size) * (math.sqrt(rows) + math.sqrt(columns))


def _largest_singular_value(matrix: Tensor) -> float:
    source = torch.Generator(matrix.device).manual_seed(0)
    vector = torch.randn(matrix.shape[1], generator=source, device=matrix.device, dtype=torch.float32).to(matrix.dtype)
    value = 0.0
    for _ in range(ROUNDS):
        image = matrix @ (vector / vector.norm())
        value, vector = float(image.norm()), matrix.T @ image
    return value

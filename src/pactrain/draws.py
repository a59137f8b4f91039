"""Predictions of the randomised predictor: their mean and their spread over draws of the weights."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.func import vmap

from pactrain.calls import call_with, try_with
from pactrain.errors import PactrainError
from pactrain.losses import scores_of
from pactrain.modes import evaluating
from pactrain.seeds import generator
from pactrain.together import together

NUMBERS_AT_ONCE = 2**20
"""Weights, or numbers fed to the network, that are held at once for several draws: more was not faster."""


class Drawable(Protocol):
    """A posterior, as far as drawing predictions needs one."""

    model: nn.Module
    log_std: nn.Parameter
    names: tuple[str, ...]

    @property
    def num_weights(self) -> int:
        """Number of random weights."""

    def draw(self, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """One draw of the random weights by name."""


class Prediction(NamedTuple):
    """Mean and standard deviation over draws, each in the shape of the network's output, in float64."""

    mean: Tensor
    std: Tensor


@torch.no_grad()
def predict_draws(
    posterior: Drawable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    draws: int,
    seed: int,
    probabilities: Callable[[Tensor], Tensor] | None,
) -> Prediction:
    """Average over `draws` networks; draw i depends on the seed and i only, not on how many are computed at once."""
    if draws < 2:
        raise PactrainError(f"draws={draws}: a spread needs at least two draws of the weights")
    mean, squares, count = torch.zeros(()), torch.zeros(()), 0
    with evaluating(posterior.model):
        for output in _outputs(posterior, args, kwargs, draws, seed):
            values = (output if probabilities is None else vmap(probabilities)(output)).double()
            new, total = len(values), count + len(values)
            step = values.mean(0) - mean  # averages of parts put together, without the cancellation of plain sums
            squares = squares + (values - values.mean(0)).square().sum(0) + step.square() * (count * new / total)
            mean, count = mean + step * (new / total), total
    return Prediction(mean, (squares / (count - 1)).sqrt())


def _outputs(
    posterior: Drawable, args: tuple[Any, ...], kwargs: dict[str, Any], draws: int, seed: int
) -> Iterator[Tensor]:
    """The network's outputs, some draws at a time, the draws in front."""
    fed = sum(t.numel() for t in (*args, *kwargs.values()) if isinstance(t, Tensor))
    size = max(1, NUMBERS_AT_ONCE // max(fed, posterior.num_weights))

    def attempt(weights: dict[str, Tensor]) -> Tensor:
        return scores_of(try_with(posterior.model, weights, args, kwargs))

    at_once = size > 1
    for start in range(0, draws, size):
        indices = range(start, min(draws, start + size))
        weights = [posterior.draw(generator(posterior.log_std.device, seed, "predict", i)) for i in indices]
        if at_once:
            stacked = {name: torch.stack([w[name] for w in weights]) for name in posterior.names}
            found = together(partial(vmap(attempt), stacked), "Predictions of several draws were")
            if found is not None:
                yield found
                continue
            at_once = False
        yield torch.stack([scores_of(call_with(posterior.model, w, args, kwargs)) for w in weights])

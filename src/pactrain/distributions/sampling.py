"""Calling a network with drawn weights, standard normal noise, and predictions averaged over draws."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from pactrain.problem.call_network import scores_of
from pactrain.problem.module_modes import evaluating
from pactrain.runtime.arguments import check_whole
from pactrain.runtime.gave_up import refusing
from pactrain.runtime.seeds import draw_normal, generator
from pactrain.runtime.vmap import Together


def call_with(
    model: nn.Module, weights: Mapping[str, Tensor], args: Any, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """The network's output at these weights, wherever a weight is used."""
    return functional_call(model, _places(model, weights), args, dict(kwargs or {}), tie_weights=False)


def try_with(
    model: nn.Module, weights: Mapping[str, Tensor], args: Any, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """The network's output at these weights, where it need not take the call: whatever it raises becomes `Refused`."""
    return refusing(functional_call)(model, _places(model, weights), args, dict(kwargs or {}), tie_weights=False)


def _places(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights by the names of all places where they are used.

    torch puts back by name, and a module that is known by two names (`self.head = self.body[2]`) would keep the second
    name's: each place is named once here, and tied weights by all of their places.
    """
    own = dict(model.named_parameters())
    chosen = {id(own[name]): weight for name, weight in weights.items()}
    return {
        f"{prefix}.{leaf}" if prefix else leaf: chosen[id(p)]
        for prefix, module in model.named_modules()  # each module once
        for leaf, p in module._parameters.items()
        if p is not None and id(p) in chosen
    }


STREAMS = 2
"""Streams of noise, each for one part of the weights; a fixed number, so that no result depends on the machine."""

LARGE = 1 << 19
"""Entries from which starting threads pays."""


def fill_normal(out: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Fill `out` with standard normal noise that follows from the generator (torch's own if None)."""
    if out.device.type != "cpu" or out.numel() < LARGE:
        return draw_normal(out, generator)
    seeds = torch.randint(0, 2**62, (STREAMS,), generator=generator).tolist()
    parts = out.view(-1).tensor_split(STREAMS)

    def fill(part: Tensor, seed: int) -> None:
        part.normal_(generator=torch.Generator().manual_seed(seed))

    if torch.get_num_threads() == 1:
        for part, seed in zip(parts, seeds, strict=True):
            fill(part, seed)
    else:
        jobs = [threads().submit(fill, part, seed) for part, seed in zip(parts, seeds, strict=True)]
        wait(jobs)
        for job in jobs:
            job.result()
    return out


@cache
def threads() -> ThreadPoolExecutor:
    """One thread per stream, shared by everything that draws noise."""
    return ThreadPoolExecutor(STREAMS, thread_name_prefix="pactrain")


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
    check_whole("draws", draws, 2)
    mean, squares, count = torch.zeros((), device="cpu"), torch.zeros((), device="cpu"), 0
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

    def at_once(networks: list[dict[str, Tensor]]) -> Tensor:
        stacked = {name: torch.stack([weights[name] for weights in networks]) for name in posterior.names}
        found: Tensor = vmap(lambda weights: scores_of(try_with(posterior.model, weights, args, kwargs)))(stacked)
        return found

    def one_by_one(networks: list[dict[str, Tensor]]) -> Tensor:
        return torch.stack([scores_of(call_with(posterior.model, weights, args, kwargs)) for weights in networks])

    either = Together("Predictions of several draws were", tried=size > 1)
    for start in range(0, draws, size):
        indices = range(start, min(draws, start + size))
        networks = [posterior.draw(generator(posterior.log_std.device, seed, "predict", i)) for i in indices]
        yield either(partial(at_once, networks), partial(one_by_one, networks))

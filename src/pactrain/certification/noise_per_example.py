"""A draw of the weights for each example of a batch, in one pass.

For independent Gaussian weights the output of a linear layer for one input x is Gaussian with mean W x + b and variance V x² + v,
independent over units: drawing it directly is the same as drawing the weights.  A convolution uses its weights at many places of an
example, so its weights themselves are drawn for each example.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.distributions.posterior import Posterior
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import hooked
from pactrain.runtime.seeds import draw_normal, generator

AT_ONCE, MOST_WEIGHTS = 64, 300_000
"""Examples whose convolutions are drawn at once; weights of all convolutions above which drawing them for each example takes too long."""

Noisy = tuple[nn.Linear | nn.Conv2d, Tensor, Tensor | None]
"""A layer with the stds of its weight and of its bias."""


def losses_of(model: nn.Module, chunk: Any, loss: Loss) -> tuple[Tensor, Tensor | None]:
    """Losses in float64, and 0-1 errors or squared errors where the task is known."""
    losses, scores = loss.with_score(model, chunk)
    return losses.double(), None if scores is None else scores.double()


def noisy_layers(posterior: Posterior) -> list[Noisy]:
    """Each layer with the stds of its weight and bias; empty if a random weight sits anywhere else."""
    model, names = posterior.model, set(posterior.names)
    uses = [name for name, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
    if len(uses) != len(names):
        return []  # tied weights
    layers: list[Noisy] = []
    for prefix, module in model.named_modules():
        own = [f"{prefix}.{leaf}" if prefix else leaf for leaf, _ in module.named_parameters(recurse=False)]
        random = [name for name in own if name in names]
        if not random:
            continue
        if not _takes_noise(module) or f"{prefix}.weight".lstrip(".") not in names:
            return []
        stds = [posterior.log_std_of(name).detach().exp() for name in random]
        layers.append((module, stds[0], stds[1] if len(stds) > 1 else None))
    return layers if convolved(layers) <= MOST_WEIGHTS else []


def convolved(layers: Sequence[Noisy]) -> int:
    """Weights of all convolutions."""
    return sum(layer.weight.numel() for layer, _, _ in layers if isinstance(layer, nn.Conv2d))


def _takes_noise(module: nn.Module) -> bool:
    if type(module) is nn.Conv2d:
        return module.groups == 1 and module.padding_mode == "zeros"
    return type(module) is nn.Linear


@contextmanager
def noise_for_each_example(layers: Sequence[Noisy], source: torch.Generator) -> Iterator[list[int]]:
    """Inside the block every example of a batch sees a network of its own.  Yields for how many inputs each layer was used."""
    uses = [0] * len(layers)

    def hook(index: int, weight: Tensor, bias: Tensor | None) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        def add_noise(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            x = inputs[0]
            if isinstance(layer, nn.Conv2d):
                if x.ndim != 4:
                    return output  # one image without its batch: not counted as a use, so that nobody relies on it
                uses[index] += len(x)
                return output + torch.cat([_convolved(layer, part, weight, bias, source) for part in x.split(AT_ONCE)])
            uses[index] += x[..., 0].numel()
            variance = F.linear(x.square(), weight.square(), None if bias is None else bias.square())
            return output + variance.sqrt() * draw_normal(torch.empty_like(output), source)

        return add_noise

    with hooked((layer, hook(i, w, b)) for i, (layer, w, b) in enumerate(layers)):
        yield uses


def _convolved(layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor | None, source: torch.Generator) -> Tensor:
    """What the noise of the weights, drawn for each example, adds to a convolution: the examples are groups of channels."""
    noise = draw_normal(torch.empty(len(x), *weight.shape, dtype=x.dtype, device=x.device), source) * weight
    side = x.reshape(1, -1, *x.shape[2:]), noise.flatten(0, 1)
    added = F.conv2d(*side, None, layer.stride, layer.padding, layer.dilation, groups=len(x))
    added = added.view(len(x), len(weight), *added.shape[2:])
    if bias is None:
        return added
    own = draw_normal(torch.empty(len(x), len(bias), dtype=x.dtype, device=x.device), source) * bias
    return added + own[:, :, None, None]


@torch.no_grad()
def noise_once(posterior: Posterior, batch: Any, loss: Loss) -> bool:
    """True if every random weight sits in a layer that is used exactly once, on one input per example, and nowhere else.

    Weights that are used twice within an example would need the same noise both times.
    """
    layers = noisy_layers(posterior)
    if not layers:
        return False
    source = generator(posterior.log_std.device, 0, "probe")
    with noise_for_each_example(layers, source) as uses:
        losses, _ = losses_of(posterior.model, batch, loss)
    rows = batch[0].shape[0] if isinstance(batch, (tuple, list)) and isinstance(batch[0], Tensor) else None
    once = rows == len(losses) and all(inputs == rows for inputs in uses)
    return once and _only_in_forward(posterior, [layer for layer, _, _ in layers], batch, loss)


def _only_in_forward(posterior: Posterior, layers: Sequence[nn.Linear | nn.Conv2d], batch: Any, loss: Loss) -> bool:
    """True if the losses are the same, to the last bit, with poison instead of the weights everywhere but in the layers' own calls."""
    kept = [(layer.weight.clone(), None if layer.bias is None else layer.bias.clone()) for layer in layers]
    clean, _ = losses_of(posterior.model, batch, loss)

    def antidote(weight: Tensor, bias: Tensor | None) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        def pure(layer: nn.Module, inputs: tuple[Any, ...], _: Tensor) -> Tensor:
            if isinstance(layer, nn.Conv2d):
                return F.conv2d(inputs[0], weight, bias, layer.stride, layer.padding, layer.dilation)
            return F.linear(inputs[0], weight, bias)

        return pure

    antidotes = [(layer, antidote(*own)) for layer, own in zip(layers, kept, strict=True)]
    try:
        with hooked(antidotes), posterior.shifted(None):
            for p in posterior.means():
                p.fill_(math.nan)
            poisoned, _ = losses_of(posterior.model, batch, loss)
    except (ArithmeticError, AssertionError, RuntimeError, ValueError):  # a network that refuses NaN has met the poison
        return False
    return torch.equal(clean, poisoned)

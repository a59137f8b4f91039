"""Measuring the risk of the randomised predictor with independent draws.

The Monte Carlo step of a certificate pays for the number N of independent values in [0, 1] it averages, so N should be
large for the time.  Two schemes, both exact:

- a network all of whose random weights sit in `nn.Linear` layers used once: noise is drawn for each example at each layer's
  output, which has the same distribution as drawing a whole network for each example.  N = passes · examples.
- any other network: one draw for each chunk of examples.  The mean over a chunk is a value in [0, 1]; the values are
  independent, and their average has the risk on the data as its mean.  Where chunks differ in size the largest counts:
  N = examples measured / largest chunk.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pactrain.certification.audit import of_a_graph
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import CLIP, AnyLoss, Loss, per_example
from pactrain.problem.module_modes import evaluating
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, Event
from pactrain.runtime.seeds import generator

CHUNK = 32
"""Examples measured with one draw of a network that is not made of linear layers: about where drawing costs as much as using."""

MOST_DRAWS, CHUNK_DRAWS, CHUNK_EXAMPLES = 300_000, 500, 20_000_000
"""Most draws that `fit` measures with; without noise for each example, most draws, and most draws times examples."""

SHARE_OF_TRAINING = 0.1
"""Part of the forward passes of training, three a step, that draws may take where each goes through a whole batch (a graph is one)."""


@dataclass(frozen=True)
class Risks:
    """Averages over independent draws, and how many independent values they rest on."""

    loss: float
    error: float | None
    clipped: float | None
    values: int
    n: int
    scheme: str


def clip_range(loss: AnyLoss) -> float | None:
    """The largest value of the loss after clipping, None if it has no natural clip."""
    if not isinstance(loss, Loss):
        return None
    if loss.name == "cross_entropy":
        return math.log(1 / CLIP)
    return loss.high if math.isfinite(loss.high) and loss.low == 0 else None


@torch.no_grad()
def measure_risks(
    posterior: Posterior, batches: Batches, loss: AnyLoss, *, values: int, seed: int, progress: Callback
) -> Risks:
    """Average loss, 0-1 error and clipped loss under at least `values` independent draws."""
    scheme, chunks = _scheme(posterior, batches, loss)
    layers = _linear_layers(posterior) if scheme == "examples" else []
    sums, done = torch.zeros(4, dtype=torch.float64), 0  # loss, error, clipped loss, examples
    largest, passes = 1.0, 0
    limit = clip_range(loss)
    while sums[3] / largest < values:
        mine = torch.zeros_like(sums)
        for chunk in chunks():
            if done % distributed.world() == distributed.rank():  # the draw follows from the number, whoever makes it
                losses, errors = _values(posterior, chunk, loss, layers, seed, done)
                mine += _sums(losses, errors, limit)
                largest = max(largest, len(losses)) if scheme == "chunks" else largest
            done += 1
        sums += distributed.add_up(mine.to(posterior.log_std.device)).cpu()
        largest = distributed.largest(largest)
        passes += 1
        progress(Event("certify", min(values, int(sums[3] / largest)), values))
    count = float(sums[3])
    loss_mean, error, clipped = (sums[:3] / count).tolist()
    return Risks(loss_mean, _known(error), _known(clipped), int(count / largest), int(count) // passes, scheme)


def _sums(losses: Tensor, errors: Tensor | None, limit: float | None) -> Tensor:
    """Of the loss, the error and the clipped loss, NaN where there is no such thing; and the number of examples."""
    error = float(errors.sum()) if errors is not None else math.nan
    clipped = float(losses.clamp(max=limit).sum()) / limit if limit is not None else math.nan
    return torch.tensor([float(losses.sum()), error, clipped, float(len(losses))], dtype=torch.float64)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else min(1.0, max(0.0, value))


def affordable_draws(posterior: Posterior, batches: Batches, loss: AnyLoss, n: int, *, epochs: int, steps: int) -> int:
    """As many draws as cost less than training did: with noise for each example a pass over the data gives n of
    them for the price of a forward pass, and more than a few hundred thousand hardly lower a bound."""
    with evaluating(posterior.model):
        scheme, _ = _scheme(posterior, batches, loss)
    if scheme == "examples":
        return min(MOST_DRAWS, n * max(1, epochs // 4))
    small = isinstance(batches, TensorBatches)  # else a draw goes through a whole batch, like a step
    most = CHUNK_DRAWS if small else min(CHUNK_DRAWS, int(SHARE_OF_TRAINING * 3 * steps))
    return max(20, min(most, CHUNK_EXAMPLES // n))


def _scheme(posterior: Posterior, batches: Batches, loss: AnyLoss) -> tuple[str, Callable[[], Iterator[Any]]]:
    first = next(iter(batches.ordered()))
    if not of_a_graph(first) and _linear_layers(posterior) and _noise_once(posterior, first, loss):
        return "examples", batches.ordered
    if isinstance(batches, TensorBatches):
        return "chunks", lambda: batches.chunks(CHUNK)
    return "chunks", batches.ordered


def first_measured(posterior: Posterior, batches: Batches, loss: AnyLoss) -> Any:
    """The first examples that `measure_risks` passes through the network at once."""
    return next(iter(_scheme(posterior, batches, loss)[1]()))


def _values(
    posterior: Posterior, chunk: Any, loss: AnyLoss, layers: Sequence["Noisy"], seed: int, index: int
) -> tuple[Tensor, Tensor | None]:
    source = generator(posterior.log_std.device, seed, "certify", index)
    if layers:
        with noise_for_each_example(layers, source):
            return _losses(posterior.model, chunk, loss)
    with posterior.sampled(source) as model:
        return _losses(model, chunk, loss)


def _losses(model: nn.Module, chunk: Any, loss: AnyLoss) -> tuple[Tensor, Tensor | None]:
    if isinstance(loss, Loss):
        losses, scores = loss.with_score(model, chunk)
        return losses.double(), scores.double() if loss.task == "classification" else None
    return per_example(loss, model, chunk).double(), None


# -- one draw for each example -----------------------------------------------------------------------------------------


Noisy = tuple[nn.Linear, Tensor, Tensor | None]
"""A linear layer with the variances of its weight and of its bias."""


def _linear_layers(posterior: Posterior) -> list[Noisy]:
    """Each linear layer with the variances of its weight and bias; empty if a random weight sits anywhere else."""
    model, names = posterior.model, set(posterior.names)
    uses = [name for name, p in model.named_parameters(remove_duplicate=False) if p.requires_grad]
    if len(uses) != len(names):
        return []  # tied weights
    layers = []
    for prefix, module in model.named_modules():
        own = [f"{prefix}.{leaf}" if prefix else leaf for leaf, _ in module.named_parameters(recurse=False)]
        random = [name for name in own if name in names]
        if not random:
            continue
        if type(module) is not nn.Linear or f"{prefix}.weight".lstrip(".") not in names:
            return []
        variance = [(2 * posterior.log_std_of(name).detach()).exp() for name in random]
        layers.append((module, variance[0], variance[1] if len(variance) > 1 else None))
    return layers


@contextmanager
def noise_for_each_example(layers: Sequence[Noisy], source: torch.Generator) -> Iterator[list[int]]:
    """Inside the block every example of a batch sees a network of its own.  Yields how often each layer was used.

    For independent Gaussian weights the output of a linear layer for one input x is Gaussian with mean W x + b and variance
    V x² + v, independent over units; drawing it directly is the same as drawing the weights.
    """
    uses = [0] * len(layers)

    def hook(index: int, weight: Tensor, bias: Tensor | None) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        def add_noise(_: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
            uses[index] += 1 if inputs[0].ndim == 2 else 2
            std = F.linear(inputs[0].square(), weight, bias).sqrt()
            return output + std * torch.empty_like(output).normal_(generator=source)

        return add_noise

    handles = [layer.register_forward_hook(hook(i, w, b)) for i, (layer, w, b) in enumerate(layers)]
    try:
        yield uses
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def _noise_once(posterior: Posterior, batch: Any, loss: AnyLoss) -> bool:
    """True if every linear layer is used exactly once, on one row per example, and its weights nowhere else.

    Weights that are used twice within an example would need the same noise both times.
    """
    layers = _linear_layers(posterior)
    source = generator(posterior.log_std.device, 0, "probe")
    with noise_for_each_example(layers, source) as uses:
        losses, _ = _losses(posterior.model, batch, loss)
    rows = batch[0].shape[0] if isinstance(batch, (tuple, list)) and isinstance(batch[0], Tensor) else None
    once = all(count == 1 for count in uses) and rows == len(losses)
    return once and _only_in_forward(posterior, [layer for layer, _, _ in layers], batch, loss)


def _only_in_forward(posterior: Posterior, layers: Sequence[nn.Linear], batch: Any, loss: AnyLoss) -> bool:
    """True if the losses are the same, to the last bit, with poison instead of the weights everywhere but in the layers' own calls."""
    kept = [(layer.weight.clone(), None if layer.bias is None else layer.bias.clone()) for layer in layers]
    clean, _ = _losses(posterior.model, batch, loss)

    def antidote(weight: Tensor, bias: Tensor | None) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        return lambda _module, inputs, _output: F.linear(inputs[0], weight, bias)

    handles = [layer.register_forward_hook(antidote(*own)) for layer, own in zip(layers, kept, strict=True)]
    try:
        with posterior.shifted(None):
            for p in posterior.means():
                p.fill_(math.nan)
            poisoned, _ = _losses(posterior.model, batch, loss)
    except (ArithmeticError, AssertionError, RuntimeError, ValueError):  # a network that refuses NaN has met the poison
        return False
    finally:
        for handle in handles:
            handle.remove()
    return torch.equal(clean, poisoned)

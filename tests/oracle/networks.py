"""Networks drawn from posterior and prior, run in float64 with the noise that the library's seeds give.  Nothing of pactrain is imported."""

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Examples: inputs and targets, float64; in a graph the inputs are those of all nodes, and `nodes` are the examples."""

    inputs: tuple[Tensor, ...]
    target: Tensor
    nodes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.target)

    def part(self, at: slice | Tensor) -> "Rows":
        """Some rows of a table."""
        assert self.nodes is None
        return Rows(tuple(t[at] for t in self.inputs), self.target[at])

    def chunks(self, size: int) -> list["Rows"]:
        """`size` rows at a time; a single last row goes with those before it.  A graph is one chunk."""
        if self.nodes is not None:
            return [self]
        edges = [*range(0, len(self), size), len(self)]
        if len(edges) > 2 and edges[-1] - edges[-2] == 1:
            del edges[-2]
        return [self.part(slice(a, b)) for a, b in itertools.pairwise(edges)]


@dataclass(frozen=True)
class Network:
    """A network in float64, and where its random parameters stand in the flat vectors: group by group."""

    module: nn.Module
    names: tuple[str, ...]
    group_of: NDArray[np.int64]  # of each weight
    groups: int

    def weights(self, flat: Array) -> dict[str, Tensor]:
        """Named parameters from one vector."""
        out, start = {}, 0
        for name in self.names:
            shape = self.module.get_parameter(name).shape
            out[name] = torch.from_numpy(flat[start : start + shape.numel()].copy()).view(shape)
            start += shape.numel()
        assert start == len(flat)
        return out

    @torch.no_grad()
    def answers(self, flat: Array, rows: Rows) -> Tensor:
        """The outputs for some rows at the given weights."""
        out: Tensor = functional_call(self.module, self.weights(flat), rows.inputs)
        return out if rows.nodes is None else out[rows.nodes]

    @property
    def noisy_alone(self) -> bool:
        """True if every random weight sits in a layer that can have noise of its own for each example."""
        owners = [self.module.get_submodule(name.rpartition(".")[0]) for name in self.names]
        return all(type(owner) in (nn.Linear, nn.Conv2d) for owner in owners)

    @property
    def inputs(self) -> Array:
        """Inputs of one unit of each group's largest tensor."""
        shapes = [self.module.get_parameter(name).shape for name in self.names]
        starts = np.cumsum([0, *(shape.numel() for shape in shapes)])
        largest: dict[int, torch.Size] = {}
        for start, shape in zip(starts, shapes, strict=False):
            group = int(self.group_of[start])
            if group not in largest or shape.numel() > largest[group].numel():
                largest[group] = shape
        return np.array([largest[g].numel() / largest[g][0] for g in range(self.groups)])


def network_of(module: nn.Module, per: str) -> Network:
    """The parameters that require a gradient, put together by module, by tensor, or all in one group."""
    sizes = {name: p.numel() for name, p in module.named_parameters() if p.requires_grad}
    owner = {name: {"layer": name.rpartition(".")[0] or name, "tensor": name, "model": ""}[per] for name in sizes}
    groups = list(dict.fromkeys(owner.values()))
    names = [name for group in groups for name in sizes if owner[name] == group]
    where = np.repeat([groups.index(owner[name]) for name in names], [sizes[name] for name in names])
    return Network(module, tuple(names), where.astype(np.int64), len(groups))


# -- noise -------------------------------------------------------------------------------------------------------------


def stream(seed: int, *path: str | int) -> torch.Generator:
    """The generator for one use."""
    text = "/".join(str(part) for part in (seed, *path))
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1
    return torch.Generator().manual_seed(number)


def noise_for(weights: int, seed: int, *path: str | int) -> Array:
    """Standard normal noise for a whole network: drawn in float32, as the library does."""
    assert weights < 1 << 19, "larger networks fill their noise from two streams"
    return torch.empty(weights).normal_(generator=stream(seed, *path)).double().numpy()


# -- losses ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Losses:
    """One loss per example, and one 0-1 error where classes are predicted, else one squared error."""

    loss: Array
    error: Array | None
    square: Array | None = None


def losses_of(answers: Tensor, target: Tensor, unit: float = 1.0) -> Losses:
    """Cross-entropy for classes, squared error for amounts, in units of `unit`."""
    if target.is_floating_point():
        square = ((answers.reshape(target.shape) - target) ** 2).reshape(len(target), -1).mean(1).numpy()
        return Losses(square / unit, None, square)
    loss = -F.log_softmax(answers, 1).gather(1, target[:, None])[:, 0]
    return Losses(loss.numpy(), (answers.argmax(1) != target).double().numpy())


# -- Monte Carlo -------------------------------------------------------------------------------------------------------

CHUNK, PASS = 32, 1024
"""Examples that share a drawn network; examples that go through the network at once where each has noise of its own."""


@dataclass(frozen=True)
class Measured:
    """Losses of all (example, draw) pairs, and which of them share a draw."""

    losses: Losses
    sizes: tuple[int, ...]  # of the chunks, one after the other; of one example each where each has a draw of its own
    scheme: str

    @property
    def values(self) -> float:
        """Examples measured, in units of the largest chunk."""
        return sum(self.sizes) / max(self.sizes)

    def histogram(self, values: Array, *, whole: bool) -> tuple[int, dict[int, int]]:
        """Sums over chunks in units of the largest: exact where values are 0 or 1, otherwise rounded up to thousandths."""
        largest = max(self.sizes)
        edges = np.cumsum([0, *self.sizes[:-1]])
        sums = np.add.reduceat(values, edges)
        bins = largest if whole else 1000
        places = np.round(sums) if whole else np.ceil(1000 * sums / largest)
        seen, counts = np.unique(places.astype(int), return_counts=True)
        return bins, dict(zip(seen.tolist(), counts.tolist(), strict=True))


def measure(
    network: Network, rows: Rows, mean: Array, log_std: Array, *, draws: int, seed: int, unit: float
) -> Measured:
    """Passes over the data until there are `draws` independent values; draw i has the stream ("certify", i)."""
    each = network.noisy_alone and rows.nodes is None
    chunks = rows.chunks(PASS if each else CHUNK)
    largest = 1 if each else max(len(chunk) for chunk in chunks)
    passes = max(1, math.ceil(draws * largest / len(rows)))
    parts = []
    for index, chunk in enumerate(itertools.chain.from_iterable(itertools.repeat(chunks, passes))):
        if each:
            answers = _with_noise_at_outputs(network, chunk, mean, log_std, stream(seed, "certify", index))
        else:
            answers = network.answers(mean + np.exp(log_std) * noise_for(len(mean), seed, "certify", index), chunk)
        parts.append(losses_of(answers, chunk.target, unit))
    error = None if parts[0].error is None else np.concatenate([p.error for p in parts if p.error is not None])
    square = None if parts[0].square is None else np.concatenate([p.square for p in parts if p.square is not None])
    both = Losses(np.concatenate([p.loss for p in parts]), error, square)
    sizes = (1,) * len(both.loss) if each else tuple(len(chunk) for _ in range(passes) for chunk in chunks)
    return Measured(both, sizes, "examples" if each else "chunks")


def _with_noise_at_outputs(
    network: Network, rows: Rows, mean: Array, log_std: Array, source: torch.Generator
) -> Tensor:
    """Every linear layer's output is N(W x + b, V x² + v), drawn in the order in which the layers are used; convolutions draw weights."""
    variance = network.weights(np.exp(2 * log_std))

    def hook(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
        def add(layer: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
            if isinstance(layer, nn.Conv2d):
                return out + _convolved(
                    layer, inputs[0], variance[f"{name}.weight"], variance.get(f"{name}.bias"), source
                )
            std = F.linear(inputs[0] ** 2, variance[f"{name}.weight"], variance.get(f"{name}.bias")).sqrt()
            return out + std * torch.empty(out.shape).normal_(generator=source).double()

        return add

    layers = [(name, m) for name, m in network.module.named_modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    handles = [layer.register_forward_hook(hook(name)) for name, layer in layers]
    try:
        return network.answers(mean, rows)
    finally:
        for handle in handles:
            handle.remove()


def _convolved(layer: nn.Conv2d, x: Tensor, weight: Tensor, bias: Tensor | None, source: torch.Generator) -> Tensor:
    """The noise of a convolution whose weights are drawn for each example, 64 of them at a time."""
    out = []
    for part in x.split(64):
        noise = torch.empty(len(part), *weight.shape).normal_(generator=source).double() * weight.sqrt()
        own = (
            None if bias is None else torch.empty(len(part), len(bias)).normal_(generator=source).double() * bias.sqrt()
        )
        for i in range(len(part)):
            last = None if own is None else own[i]
            out.append(F.conv2d(part[i : i + 1], noise[i], last, layer.stride, layer.padding, layer.dilation))
    return torch.cat(out)


# -- the prior ---------------------------------------------------------------------------------------------------------

PSI_DRAWS, PSI_ROWS = 20, 2000


def prior_losses(network: Network, rows: Rows, mean: Array, std: Array, *, seed: int, unit: float) -> Iterator[Array]:
    """Losses of 20 networks from the prior on at most 2,000 examples."""
    if rows.nodes is None and len(rows) > PSI_ROWS:
        rows = rows.part(torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:PSI_ROWS])
    for draw in range(PSI_DRAWS):
        flat = mean + std * noise_for(len(mean), seed, "psi", draw)
        yield losses_of(network.answers(flat, rows), rows.target, unit).loss

"""Measuring the risk of the randomised predictor with independent draws, and how many of them.

The Monte Carlo step of a certificate pays for the number N of independent values in [0, 1] it averages, so N should be
large for the time.  Two schemes, both exact:

- a network all of whose random weights sit in layers for which noise can be drawn at the output (`noise_per_example.py`): every
  example has a draw of its own.  N = passes · examples.
- any other network: one draw for each chunk of examples.  The sum over a chunk, divided by the size of the largest chunk, is a
  value in [0, 1]; the values are independent.  N = number of chunks measured.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pactrain.bounds.betting import Histogram
from pactrain.certification.data_checks import of_a_graph
from pactrain.certification.measures import Key, Measure, keys_of
from pactrain.certification.noise_per_example import (
    Noisy,
    convolved,
    losses_of,
    noise_for_each_example,
    noise_once,
    noisy_layers,
)
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, Event
from pactrain.runtime.seeds import generator

CHUNK = 32
"""Examples measured with one draw of a network without noise for each example: about where drawing costs as much as using."""

BINS = 1000
"""Parts of the range to which values between 0 and 1 are rounded up, so that a certificate can hold them all."""

LEAST_DRAWS, MOST_DRAWS, CHUNK_DRAWS, CHUNK_EXAMPLES = 20_000, 300_000, 500, 20_000_000
"""Least and most draws that `fit` measures with; without noise for each example, most draws, and most draws times examples."""

LEAST_PASSES = 50
"""Passes over the examples that are always cheap; with few examples they end before the least draws are reached."""

MOST_NOISE = 3_000_000_000
"""Numbers that are drawn at most for the weights of convolutions, which every example has of its own: a minute or so."""

CHEAP_NOISE = MOST_NOISE // 10
"""Such numbers that may be drawn however short training was: some seconds."""

NOISY_PASS = 10
"""Forward passes, of which an epoch of training counts as three, that a pass costs in which every example has convolutions of its own."""

SHARE_OF_TRAINING = 0.1
"""Part of the forward passes of training, three a step, that draws may take where each goes through a whole batch (a graph is one)."""


@dataclass(frozen=True)
class Risks:
    """Values measured under independent draws.

    loss:       mean loss.
    histograms: the values of each measure; of chunks, sums divided by the size of the largest.
    values:     examples measured, divided by the size of the largest chunk: the sum of a histogram's values is this times the mean.
    n:          examples of one pass.
    """

    loss: float
    histograms: Mapping[Key, Histogram]
    values: float
    n: int
    scheme: str


@torch.no_grad()
def measure_risks(
    posterior: Posterior,
    batches: Batches,
    loss: Loss,
    measures: Sequence[Measure],
    *,
    values: int,
    seed: int,
    progress: Callback,
) -> Risks:
    """Measure under at least `values` independent draws."""
    scheme, chunks = scheme_of(posterior, batches, loss)
    layers = noisy_layers(posterior) if scheme == "examples" else []
    table, index, passes, count, largest = Table(measures, scheme == "examples"), 0, 0, 0.0, 1.0
    while count / largest < values:
        for chunk in chunks():
            if index % distributed.world() == distributed.rank():  # the draw follows from the number, whoever makes it
                source = generator(posterior.log_std.device, seed, "certify", index)
                table.add(*values_at_draws(posterior, chunk, loss, layers, source))
            index += 1
        count = float(distributed.add_up(torch.tensor(float(table.count), device=posterior.log_std.device)))
        largest = distributed.largest(table.largest)
        passes += 1
        progress(Event("certify", min(values, int(count / largest)), values))
    mean, histograms = table.result(int(largest), posterior.log_std.device)
    return Risks(mean, histograms, count / largest, int(count) // passes, scheme)


class Table:
    """The sums over chunks of what is measured, or histograms where each example is a chunk of its own."""

    def __init__(self, measures: Sequence[Measure], alone: bool) -> None:
        self.measures, self.alone, self.count, self.largest, self.loss = measures, alone, 0, 1, 0.0
        self.keys = keys_of(measures)
        self.rows: list[Tensor] = []  # one per chunk, a column per key
        self.counts = torch.zeros(len(self.keys), BINS + 1, dtype=torch.float64, device="cpu")

    def add(self, losses: Tensor, scores: Tensor | None) -> None:
        """Enter the examples of one chunk."""
        self.count += len(losses)
        self.loss += float(losses.sum())
        if not self.measures:
            return
        values = torch.cat([measure(losses, scores) for measure in self.measures], 1).cpu()
        if self.alone:
            self.counts += self._counted(values, 1)
        else:
            self.largest = max(self.largest, len(losses))
            self.rows.append(values.sum(0))

    def _exact(self, largest: int) -> list[bool]:
        """For each key: True if sums over chunks need not be rounded, as they are whole numbers, and few."""
        return [measure.whole and largest <= BINS for measure in self.measures for _ in measure.places]

    def _counted(self, sums: Tensor, largest: int) -> Tensor:
        """How many of some sums fall into each bin, by key."""
        exact = torch.tensor(self._exact(largest), device="cpu")
        at = torch.where(exact, sums.round(), torch.ceil(BINS * sums / largest)).long()
        at += torch.arange(len(self.keys), device="cpu") * (BINS + 1)
        return torch.bincount(at.flatten(), minlength=self.counts.numel()).view_as(self.counts).double()

    def result(self, largest: int, device: torch.device) -> tuple[float, dict[Key, Histogram]]:
        """The mean loss and the histograms, of all processes together."""
        if self.rows:
            self.counts += self._counted(torch.stack(self.rows), largest)
        loss, count = distributed.add_up(torch.tensor([self.loss, self.count], device=device).double()).tolist()
        counts = distributed.add_up(self.counts.to(device)).cpu().long()
        found = {}
        for key, exact, row in zip(self.keys, self._exact(largest), counts, strict=True):
            seen = row.nonzero()[:, 0].tolist()
            found[key] = Histogram(largest if exact else BINS, dict(zip(seen, row[seen].tolist(), strict=True)))
        return loss / count, found


def affordable_draws(
    posterior: Posterior, batches: Batches, loss: Loss, n: int, *, epochs: int, steps: int, passes: float = math.inf
) -> int:
    """As many draws as cost less than training did: with noise for each example a pass over the data gives n of
    them for the price of a forward pass, and more than a few hundred thousand hardly lower a bound."""
    with evaluating(posterior.model):
        scheme, _ = scheme_of(posterior, batches, loss)
    if scheme == "examples":
        drawn = convolved(noisy_layers(posterior))
        most = MOST_DRAWS
        if drawn:
            affordable = max(n * max(1, 3 * epochs // NOISY_PASS), CHEAP_NOISE // drawn)
            most = min(MOST_DRAWS, MOST_NOISE // drawn, affordable)
        least = min(LEAST_DRAWS, LEAST_PASSES * n)
        return int(min(most, max(least, n * max(1, epochs // 4)), max(1, passes * n)))
    small = batches.table is not None  # else a draw goes through a whole batch, like a step
    most = CHUNK_DRAWS if small else min(CHUNK_DRAWS, int(SHARE_OF_TRAINING * 3 * steps))
    return int(max(20, min(most, CHUNK_EXAMPLES // n, passes * (-(-n // CHUNK) if small else steps / max(1, epochs)))))


def scheme_of(posterior: Posterior, batches: Batches, loss: Loss) -> tuple[str, Callable[[], Iterator[Any]]]:
    """How draws are made, "examples" or "chunks", and what gives the examples accordingly."""
    first = next(iter(batches.ordered()))
    if not of_a_graph(first) and noise_once(posterior, first, loss):
        return "examples", batches.ordered
    return "chunks", lambda: batches.chunks(CHUNK)


def first_measured(posterior: Posterior, batches: Batches, loss: Loss) -> Any:
    """The first examples that `measure_risks` passes through the network at once."""
    return next(iter(scheme_of(posterior, batches, loss)[1]()))


def values_at_draws(
    posterior: Posterior, chunk: Any, loss: Loss, layers: Sequence[Noisy], source: torch.Generator
) -> tuple[Tensor, Tensor | None]:
    """Losses and scores of a chunk: each example at a draw of its own where there are layers for that, otherwise all at one draw."""
    if layers:
        with noise_for_each_example(layers, source):
            return losses_of(posterior.model, chunk, loss)
    with posterior.sampled(source) as model:
        return losses_of(model, chunk, loss)

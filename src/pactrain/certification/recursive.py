"""The certificate of a training that went part by part: what each level proves, and the statement that follows from all of them.

The statement is about the randomised predictor at the end of training.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pactrain.bounds.betting import Histogram
from pactrain.bounds.prior_price import priced_prior
from pactrain.bounds.recursive import Level
from pactrain.certification.caveats import model_caveats
from pactrain.certification.certificate import Certificate
from pactrain.certification.in_parts import InParts
from pactrain.certification.make_statements import MONTE_CARLO_SHARE
from pactrain.certification.measures import ERROR, Key, Measure
from pactrain.certification.noise_per_example import convolved, noisy_layers
from pactrain.certification.risks import CHUNK_DRAWS, MOST_NOISE, Table, scheme_of, values_at_draws
from pactrain.certification.statement import RANDOMISED, RECURSIVE, Label, Statement, statement
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import evaluating
from pactrain.problem.read import PARTS
from pactrain.runtime.seeds import generator

DRAWS = 40_000
"""Draws with which a level is measured at least, where every example has one of its own; always in whole passes."""

Chunks = Callable[[], Iterator[Any]]


def _excess(before: Tensor, now: Tensor) -> Tensor:
    """F_1, F_2 and F_3 (`bounds/recursive.py`) from the errors of networks drawn from the prior, and of the posterior's."""
    return torch.stack([(now >= before).double(), now, now * (1 - before)], 1)


FIRST = Measure(ERROR, lambda _, now: now, whole=True)
LATER = Measure(ERROR, _excess, ((1.0, 0.0), (2.0, 0.0), (3.0, 0.0)), whole=True)


@torch.no_grad()
def measure_level(posterior: Posterior, batches: TensorBatches, loss: Loss, first: bool, seed: int) -> Level:
    """Measure one level: the divergence from its prior, and the errors, beside those of networks drawn from that prior.

    Args:
        posterior: With the posterior of the level before as its prior.
        batches: The examples that this prior has not seen.
        loss: The user's own loss.
        first: Whether it is the first level, whose prior no example has seen.
        seed: Of the run.

    Returns:
        What the bound needs.
    """
    log_std, nats = None, 0.0
    if first:
        prior = priced_prior(posterior)
        log_std, nats = prior.log_std, prior.nats
    kl = float(posterior.kl_by_group(log_std).sum())
    with evaluating(posterior.model):
        histograms, values = _measured(posterior, batches, loss, first, seed)
    found = list(histograms.values())
    return Level(len(batches), kl, nats, values, found[0].bins, tuple(h.text for h in found))


def _measured(
    posterior: Posterior, batches: TensorBatches, loss: Loss, first: bool, seed: int
) -> tuple[Mapping[Key, Histogram], float]:
    """Histograms of the errors, or of F_1, F_2 and F_3; and the examples measured, divided by the size of the largest chunk."""
    scheme, chunks = scheme_of(posterior, batches, loss)
    alone, passes = scheme == "examples", 0
    table, least = Table([FIRST if first else LATER], alone), _least_draws(posterior, alone)
    while table.count / table.largest < least:
        now = _errors(posterior, chunks, loss, alone, seed, "now", passes)
        before = now if first else _errors_of_prior(posterior, chunks, loss, alone, seed, passes)
        for pair in zip(before, now, strict=True):
            table.add(*pair)
        passes += 1
    return table.result(table.largest, posterior.log_std.device)[1], table.count / table.largest


def _least_draws(posterior: Posterior, alone: bool) -> int:
    """Draws that are enough."""
    if not alone:
        return CHUNK_DRAWS
    drawn = convolved(noisy_layers(posterior))
    return DRAWS if not drawn else min(DRAWS, MOST_NOISE // drawn)


def _errors_of_prior(
    posterior: Posterior, chunks: Chunks, loss: Loss, alone: bool, seed: int, passes: int
) -> list[Tensor]:
    now = posterior.snapshot()
    posterior.return_to_prior()
    found = _errors(posterior, chunks, loss, alone, seed, "before", passes)
    posterior.restore(now)
    return found


def _errors(
    posterior: Posterior, chunks: Chunks, loss: Loss, alone: bool, seed: int, who: str, passes: int
) -> list[Tensor]:
    """For every chunk, 1 for each example that is wrong in anything."""
    layers = noisy_layers(posterior) if alone else []
    found = []
    for index, chunk in enumerate(chunks()):
        source = generator(posterior.log_std.device, seed, "level", who, passes, index)
        _, errors = values_at_draws(posterior, chunk, loss, layers, source)
        assert errors is not None  # only classes are judged so
        found.append((errors > 0).double())
    return found


def recursive_certificate(trained: InParts, levels: Sequence[str]) -> Certificate:
    """State what the levels prove.

    Args:
        trained: The training.
        levels: In the words of the record.

    Returns:
        The certificate.
    """
    table = trained.batches.table
    assert table is not None
    inputs = {
        "levels": " / ".join(levels),
        "parts": PARTS,
        "n": len(table),
        "delta_draws": MONTE_CARLO_SHARE * trained.delta,
        "delta_bound": (1 - MONTE_CARLO_SHARE) * trained.delta,
    }

    def state(label: Label, trivial: float | None) -> list[Statement]:
        return [statement(ERROR, RANDOMISED, label, RECURSIVE, inputs, constant_answer=trivial)]

    return trained.certificate(RECURSIVE, len(table), model_caveats(trained.posterior.model), state)

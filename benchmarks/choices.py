"""What single choices are worth: time of the other way relative to the way that `fit` takes.

    python benchmarks/choices.py [--only draws] [--rounds 7] [--json FILE]

noise          standard normal numbers drawn by torch on one thread, and by numpy, against ours on two streams
layout         a training step of CNN9 with the usual layout of images, against channels last
draws          losses of ten networks of the prior one by one, against together (forced where `fit` would not do it)
gradients      gradients of single examples one by one, against products of what goes into layers and comes back
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import torch
from problems import small_cnn
from step import STD, Problem, cora_ml, labelled
from timing import interleaved, options, ratio, show, warn_if_busy
from torch import nn

from pactrain import Posterior
from pactrain.distributions.sampling import fill_normal
from pactrain.models.cnn import cnn
from pactrain.models.mlp import mlp
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import TensorBatches
from pactrain.problem.named_losses import LOSSES
from pactrain.rules.gamma import example_kernel
from pactrain.rules.gamma.linear_leave_one_out import linearise
from pactrain.scan.prior_losses import PriorLosses

Way = Callable[[], Any]
Choice = tuple[str, str, Way, Way]  # of what, which choice, our way, the other way
DRAWS = 10


class CannotBatch(Exception):
    """The network takes its draws one by one only."""


def images(rows: int, *shape: int, classes: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, *shape), torch.randint(0, classes, (rows,))


def noise() -> list[Choice]:
    out = torch.empty(4_000_000)
    chance = np.random.default_rng(0)
    return [
        ("4,000,000 numbers", "noise by torch alone", lambda: fill_normal(out), lambda: out.normal_()),
        (
            "4,000,000 numbers",
            "noise by numpy",
            lambda: fill_normal(out),
            lambda: chance.standard_normal(4_000_000, np.float32),
        ),
    ]


def layout() -> list[Choice]:
    def step(build: Callable[[], nn.Module], x: torch.Tensor, y: torch.Tensor, memory: torch.memory_format) -> Way:
        model = build()
        optimizer = torch.optim.Adam(model.parameters())
        batch = (x.to(memory_format=memory), y)

        def run() -> None:
            optimizer.zero_grad()
            labelled(model, batch).mean().backward()
            optimizer.step()

        return run

    found: list[tuple[str, Callable[[], nn.Module], tuple[torch.Tensor, torch.Tensor]]] = [
        ("cnn9", lambda: cnn(9), images(128, 3, 32, 32)),
        ("small cnn, grey", lambda: small_cnn(1, 28, 10), images(64, 1, 28, 28)),
    ]
    return [
        (name, "usual layout", step(build, *data, torch.channels_last), step(build, *data, torch.contiguous_format))
        for name, build, data in found
    ]


def problems() -> list[Problem]:
    """Networks with as many examples as a scan takes of them."""
    found = [
        Problem("linear 4-3, 120 rows", lambda: nn.Linear(4, 3), images(120, 4, classes=3), labelled, 1),
        Problem("digits mlp, 256 rows", lambda: mlp(64, 10), images(256, 64), labelled, 1),
        Problem("digits mlp, 1024 rows", lambda: mlp(64, 10), images(1024, 64), labelled, 1),
        Problem("small cnn, 64 rows", lambda: small_cnn(1, 28, 10), images(64, 1, 28, 28), labelled, 1),
    ]
    try:
        return [*found, cora_ml()]
    except Exception as error:  # the graph needs a data file and an extra
        print(f"gcn on cora_ml is left out: {error}")
        return found


def draws() -> list[Choice]:
    choices: list[Choice] = []
    for problem in problems():
        posterior = Posterior(problem.model().eval())
        at = [(posterior.fresh_noise(), torch.full_like(posterior.prior_log_std, STD).log()) for _ in range(DRAWS)]

        def way(at_once: int, problem: Problem = problem, posterior: Posterior = posterior, at: Any = at) -> Way:
            losses = PriorLosses(posterior, [problem.batch], as_loss(problem.loss, None))

            def run() -> None:
                losses.at_once = at_once
                list(losses.at(at))
                if losses.at_once != at_once:
                    raise CannotBatch("cannot be batched")

            return run

        choices.append((problem.name, "draws one by one", way(DRAWS), way(1)))
    return choices


def gradients() -> list[Choice]:
    choices: list[Choice] = []
    for problem in problems()[:3]:
        model = problem.model().eval()
        batches = TensorBatches(problem.batch, 64)

        def run(model: nn.Module = model, batches: TensorBatches = batches) -> None:
            linearise(Posterior(model), batches, LOSSES["cross_entropy"], 0)

        def one_by_one(run: Way = run) -> None:
            with mock.patch.object(example_kernel, "factors_of", side_effect=example_kernel.NotLinearLayers):
                run()

        choices.append((problem.name, "gradients one by one", run, one_by_one))
    return choices


def measured(choice: Choice, rounds: int) -> dict[str, Any] | None:
    """One row: the other way's time over ours; nothing where one of them does not work."""
    network, method, ours, other = choice
    try:
        seconds = interleaved({"ours": ours, "other": other}, rounds=rounds, steps=1, warm_up=1)
    except CannotBatch as error:
        print(f"{network}, {method}: {error}")
        return None
    r = ratio(seconds["other"], seconds["ours"])
    return {"network": network, "method": method, "ratio": r.value, "low": r.low, "high": r.high}


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=7)
    warn_if_busy()
    rows = []
    for choices in (noise, layout, draws, gradients):
        if not chosen.only or chosen.only in choices.__name__:
            rows += [row for choice in choices() if (row := measured(choice, chosen.rounds))]
    show(rows, chosen.json)


if __name__ == "__main__":
    main()

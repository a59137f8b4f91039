"""Ways of training that are compared: each takes a problem and a seed and gives predictions for its test rows.

auto         `pactrain.fit` with its defaults on all rows; the mean network.
auto again   the same with another seed for noise and order of rows (same split, same initial weights): the noise floor.
auto: …      a rule changed.
plain        torch's Adam at its defaults on all rows, as many steps as `auto` takes at one γ.
adam         the same on four fifths of the rows, with the weights that were best on the last fifth.
adamw        AdamW, learning rate, weight decay and number of steps chosen on that fifth, then trained again on all rows.
"""

import copy
import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from problems import Problem
from torch import Tensor, nn

import pactrain
from pactrain.problem.as_loss import as_loss
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import per_example
from pactrain.rules.presets import AUTO, rules_for

GRID = list(itertools.product((1e-3, 3e-3, 1e-2), (0.0, 1e-2, 1e-1)))
LOOK = 20  # steps between looks at the validation rows
DRAWS = 16  # of the posterior, whose predictions are averaged

CHANGED: dict[str, dict[str, Any]] = {
    "auto: no search over γ": {"held": "left out"},
    "auto: γ = 2000": {"held": "gamma_max"},
    "auto: no units": {"units": False},
    "auto: no strengthening": {"strengthen": False},
    "auto: start at the mean size of a weight": {"start": "mean_abs_std"},
    "auto: rate kept": {"decay": False},
}
"""Rules that can be switched off by a field."""

Prediction = dict[str, Any]
"""`score` (accuracy in percent or minus the rmse), for classification `nll`, `ece` and the mean `confidence`; and whatever else is to be kept.
`nll like training` and `ece like training` are expected values if as many of the test labels were wrong as of the training labels."""


def calibration_error(probabilities: Tensor, right: Tensor, bins: int = 15) -> float:
    """Mean distance between confidence and accuracy over bins of equal width; `right` has the chance that each answer is."""
    confidence = probabilities.amax(1)
    place = (confidence * bins).long().clamp(max=bins - 1)
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, confidence - right)
    return float(gap.abs().sum()) / len(right)


@torch.no_grad()
def scores(problem: Problem, outputs: Tensor, *, chances: bool = False) -> Prediction:
    """Of outputs for the test rows: scores of classes (or their probabilities), or values."""
    target = problem.target(None)
    if not problem.classes:
        error = (outputs.reshape(-1) - target.reshape(-1)).double().square().mean()
        return {"score": -problem.unit * float(error) ** 0.5}
    probabilities = (outputs if chances else outputs.softmax(1)).double()
    logs = probabilities.clamp(min=1e-12).log()
    nll, right = F.nll_loss(logs, target), (probabilities.argmax(1) == target).double()
    found = {"score": 100 * float(right.mean()), "nll": float(nll), "ece": calibration_error(probabilities, right)}
    wrong = problem.arrays.wrong if problem.arrays is not None else 0.0
    if wrong:  # drawn from all classes
        right = (1 - wrong) * right + wrong / probabilities.shape[1]
        found["nll like training"] = (1 - wrong) * float(nll) - wrong * float(logs.mean())
        found["ece like training"] = calibration_error(probabilities, right)
    return found | {"confidence": float(probabilities.amax(1).mean())}


@torch.no_grad()
def of_network(problem: Problem, model: nn.Module) -> Prediction:
    return scores(problem, problem.outputs(model.eval(), None))


def validation(problem: Problem, model: nn.Module, index: Tensor) -> tuple[float, float]:
    """Accuracy (0 for regression) and minus the mean loss on some of the training rows: larger is better."""
    with torch.no_grad():
        out, target = problem.outputs(model.eval(), index), problem.target(index)
    if not problem.classes:
        return 0.0, -float((out.reshape(-1) - target.reshape(-1)).square().mean())
    return float((out.argmax(1) == target).double().mean()), -float(F.cross_entropy(out, target))


# -- plain training -----------------------------------------------------------------------------------------------------


def batches(problem: Problem, index: Tensor, size: int, seed: int) -> Iterator[Any]:
    data = problem.data(index)
    return iter(data) if problem.batch_size is None else TensorBatches(data, min(size, len(index))).epoch(seed)


def steps_of(problem: Problem) -> tuple[int, int]:
    """Steps of `auto` at one γ, and its batch size."""
    size = AUTO.batch(problem.rows)
    an_epoch = 1 if problem.batch_size is None else max(1, round(problem.rows / size))
    return AUTO.stage1_epochs(an_epoch) * an_epoch, size


def held_out(problem: Problem, seed: int) -> tuple[Tensor, Tensor]:
    """Rows to train on, and a fifth to validate on."""
    order = torch.randperm(problem.rows, generator=torch.Generator().manual_seed(seed + 7919))
    return order[problem.rows // 5 :], order[: problem.rows // 5]


Optimizer = Callable[[nn.Module], Any]


def adam(lr: float = 1e-3, decay: float = 0.0) -> Optimizer:
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    return lambda model: kind(model.parameters(), lr=lr, weight_decay=decay)


def train(
    problem: Problem,
    index: Tensor,
    optimizer: Optimizer,
    *,
    seed: int,
    steps: int | None = None,
    watch: Tensor | None = None,
    after: Callable[[nn.Module, int], None] = lambda model, step: None,
    build: Callable[[], nn.Module] | None = None,
) -> tuple[nn.Module, int, tuple[float, float]]:
    """Train on some rows.  With `watch` the weights are the best seen on those rows; the step and what was seen there come too."""
    model, (usual, size) = (build or problem.model)(), steps_of(problem)
    steps = steps or usual
    opt, loss = optimizer(model), as_loss(problem.loss, next(batches(problem, index, size, 0)))
    torch.manual_seed(seed)
    best: tuple[tuple[float, float], int, Any] = ((-math.inf, -math.inf), 0, None)
    done = 0
    while done < steps:
        for batch in batches(problem, index, size, seed * 100_003 + done):
            model.train()

            def closure(batch: Any = batch) -> Tensor:
                opt.zero_grad()
                value = per_example(loss, model, batch).mean()
                value.backward()
                return value

            opt.step(closure)
            done += 1
            after(model, done)
            if watch is not None and (done % LOOK == 0 or done == steps):
                seen = validation(problem, model, watch)
                if seen > best[0]:
                    best = (seen, done, copy.deepcopy(model.state_dict()))
            if done >= steps:
                break
    if best[2] is not None:
        model.load_state_dict(best[2])
    return model, best[1], best[0]


def plain(problem: Problem, seed: int) -> Prediction:
    return of_network(problem, train(problem, torch.arange(problem.rows), adam(), seed=seed)[0])


def early_stopped(problem: Problem, seed: int) -> Prediction:
    rest, fifth = held_out(problem, seed)
    return of_network(problem, train(problem, rest, adam(), seed=seed, watch=fifth)[0])


def searched(problem: Problem, seed: int) -> Prediction:
    """AdamW with a grid."""
    rest, fifth = held_out(problem, seed)
    found = []
    for lr, decay in GRID:
        _, at, seen = train(problem, rest, adam(lr, decay), seed=seed, watch=fifth)
        found.append((seen, max(1, at), lr, decay))
    _, at, lr, decay = max(found)
    model, *_ = train(problem, torch.arange(problem.rows), adam(lr, decay), seed=seed, steps=at)
    return of_network(problem, model) | {"lr": lr, "weight_decay": decay, "steps": at}


# -- pactrain -----------------------------------------------------------------------------------------------------------


def auto(problem: Problem, seed: int, *, other: int = 0, changed: str | None = None) -> Prediction:
    """`fit`; `drawn` has the scores of the average over draws of the posterior."""
    rules = AUTO.replace(**CHANGED[changed]) if changed else rules_for("auto")
    model = problem.model()
    result = pactrain.fit(
        model, problem.data(torch.arange(problem.rows)), loss=problem.loss, preset=rules, seed=seed + other
    )
    total: Any = 0.0
    with torch.no_grad():
        for draw in range(DRAWS):
            with result.posterior.sampled(torch.Generator().manual_seed(draw)):
                out = problem.outputs(model.eval(), None)
            total = total + (out.softmax(1) if problem.classes else out) / DRAWS
    bounds = [
        s.value for s in result.certificate.statements if s.bound == "unbounded (cgf)" and s.when == "end of training"
    ]
    return of_network(problem, model) | {
        "drawn": scores(problem, total, chances=True),
        "gamma": result.metrics["held_gamma"],
        "left_out": result.metrics["left_out"],
        "steps": result.metrics["steps"],
        "bound": bounds[0] if bounds else None,
        "train": {k: v for k, v in result.metrics["train"].items() if k in ("loss", "rmse", "accuracy")},
        "notes": result.notes,
    }


METHODS: dict[str, Callable[[Problem, int], Prediction]] = {
    "auto": auto,
    "auto again": partial(auto, other=1000),
    **{name: partial(auto, changed=name) for name in CHANGED},
    "plain": plain,
    "adam": early_stopped,
    "adamw": searched,
}

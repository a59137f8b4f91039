"""PAC-Bayes training with its defaults against plain training whose settings were searched for, on any data of the command line."""

import hashlib
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from pactrain import fit
from pactrain.baselines.grid_search import best_trial, grid, hold_out, refit_length
from pactrain.baselines.plain_training import Settings, train
from pactrain.data.load import load
from pactrain.data.tables import Columns
from pactrain.data.task import Task
from pactrain.experiments.backends import BackendName
from pactrain.experiments.default_rules import with_rules
from pactrain.experiments.plan import Run
from pactrain.experiments.runner import carry_out
from pactrain.experiments.store import Row, Store
from pactrain.models.named import make_model
from pactrain.problem.dropout import can_drop
from pactrain.problem.losses import Loss
from pactrain.problem.named_losses import named_loss
from pactrain.problem.read import read_batches
from pactrain.problem.scores import Scores, evaluate
from pactrain.runtime.errors import DataError, PactrainError, TrainingError
from pactrain.runtime.events import Callback, silent

OURS = "PAC-Bayes"


def _grid(start: Settings, *, lr: Sequence[float], weight_decay: float) -> list[Settings]:
    """Rates, with and without weight decay, alone or with one kind of noise: 24 settings."""
    every = grid(start, lr=lr, weight_decay=(0.0, weight_decay), noise=(0.0, 1e-2), dropout=(0.0, 0.4))
    return [settings for settings in every if not (settings.noise and settings.dropout)]


GRIDS: dict[str, list[Settings]] = {
    "SGD": _grid(Settings("sgd", momentum=0.9), lr=(1e-2, 3e-2, 1e-1, 3e-1), weight_decay=1e-3),
    "Adam": _grid(Settings("adam"), lr=(1e-3, 3e-3, 1e-2, 3e-2), weight_decay=1e-3),
    "AdamW": _grid(Settings("adamw"), lr=(1e-3, 3e-3, 1e-2, 3e-2), weight_decay=1e-1),
}
"""The regularisers of the paper at values from the ranges it searched.  The number of steps is chosen with them.  As many
settings as let a small data set be compared in minutes on two cores."""


@dataclass(frozen=True)
class Problem:
    """Data and a network as the command line names them.  The seed decides the split and the initial weights."""

    data: str
    model: str = "mlp"
    target: str | None = None
    task: str = "auto"
    drop: tuple[str, ...] = ()
    test_fraction: float | None = None
    root: str | None = None

    def load(self, seed: int) -> Task:
        """The task; for sets with published splits the seed is the number of the split."""
        task = load(
            self.data,
            Columns(
                target=self.target,
                kind=None if self.task == "auto" else self.task,  # type: ignore[arg-type]
                drop=tuple(self.drop),
            ),
            test_fraction=self.test_fraction,
            seed=seed,
            split=seed if self.data.startswith("uci:") else 0,
            root=self.root,
        )
        if task.encoder.node_features:
            raise DataError(
                f"{self.data} is a graph; compare takes tables, and pactrain reproduce table-gnn citation graphs"
            )
        if task.x_test is None:
            raise DataError("a comparison needs test rows; give a --test-fraction above 0")
        return task

    def network(self, task: Task, seed: int) -> nn.Module:
        """A fresh network."""
        return make_model(self.model, task.inputs, task.outputs, seed)

    def loss(self, task: Task) -> Loss:
        """The default loss, in the target's units."""
        return named_loss(None, task.encoder.kind, unit=task.encoder.target_std)

    def digest(self, seed: int) -> str:
        """Fingerprint of the arrays, and of the user's own file that makes the network."""
        task, state = self.load(seed), hashlib.blake2b(digest_size=16)
        for part in (task.x_train, task.y_train, task.x_test, task.y_test):
            if part is not None:
                state.update(f"{part.shape}{part.dtype}".encode())
                state.update(part.tobytes())
        source = Path(self.model.rpartition(":")[0])
        if source.is_file():
            state.update(source.read_bytes())
        return state.hexdigest()


# -- what workers do ------------------------------------------------------------------------------------------------------


def pacbayes(*, problem: dict[str, Any], seed: int, budget: str | None = None) -> dict[str, Any]:
    """One training by `fit` with its defaults, on all training rows, and its test scores."""
    it = Problem(**problem)
    task = it.load(seed)
    model, loss = it.network(task, seed), it.loss(task)
    result = fit(model, (task.x_train, task.y_train), loss=loss, seed=seed, budget=budget)
    return {"test": _test_scores(model, task, loss), "steps": result.metrics["steps"]}


def trial(*, problem: dict[str, Any], settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """One training of the search, on all training rows but the validation fifth, and its best scores there."""
    it = Problem(**problem)
    task = it.load(seed)
    training, validation = hold_out((task.x_train, task.y_train), seed)
    try:
        found = train(
            it.network(task, seed), training, Settings(**settings), loss=it.loss(task), validation=validation, seed=seed
        )
    except TrainingError:  # settings at which the loss explodes are a finding, not a failure
        return {"validation": None, "best_step": 0}
    return {"validation": found.validation, "best_step": found.best_step}


def final(*, problem: dict[str, Any], settings: dict[str, Any], stop_at: int, seed: int) -> dict[str, Any]:
    """The training with the chosen settings, on all training rows, and its test scores."""
    it = Problem(**problem)
    task = it.load(seed)
    model, loss = it.network(task, seed), it.loss(task)
    found = train(model, (task.x_train, task.y_train), Settings(**settings), loss=loss, stop_at=stop_at, seed=seed)
    return {"test": _test_scores(model, task, loss), "steps": found.steps}


def _test_scores(model: nn.Module, task: Task, loss: Loss) -> Scores:
    from pactrain.rules.presets import AUTO
    from pactrain.runtime.devices import choose_device

    batches = read_batches(model, (task.x_test, task.y_test), AUTO.batch, choose_device("auto"), "test")
    return evaluate(model, batches.ordered(), loss)


# -- the comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """Values over the seeds: their mean, and half the width of its 95 % interval (Student's t); None for a single seed."""

    values: tuple[float, ...]
    mean: float
    half_width: float | None


def spread(values: Sequence[float]) -> Spread:
    """The mean of values with its interval.

    >>> spread([1.0, 2.0, 3.0]).mean, round(spread([1.0, 2.0, 3.0]).half_width, 3)
    (2.0, 2.484)
    """
    from scipy.stats import t

    half = None
    if len(values) > 1:
        half = float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return Spread(tuple(values), statistics.fmean(values), half)


@dataclass(frozen=True)
class Method:
    """One line of the comparison.  `chosen` has one entry per seed; seconds are those of one seed on one core."""

    name: str
    score: Spread
    difference: Spread | None  # PAC-Bayes minus this one, seed by seed
    chosen: tuple[dict[str, Any], ...]
    trainings: int
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """The result: what the score is called, and a line for each method."""

    score: str  # "accuracy", in which higher is better, or "rmse"
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def compare(
    problem: Problem,
    store: Store | str | Path,
    *,
    seeds: int = 3,
    grids: Mapping[str, Sequence[Settings]] = GRIDS,
    budget: str | None = None,
    backend: BackendName = "loky",
    workers: int | None = None,
    address: str | None = None,
    progress: Callback = silent,
) -> Comparison:
    """Carry out the comparison, or what the store does not have of it yet.

    Two plans: every training of every search, with PAC-Bayes beside them; then the trainings with the chosen settings.
    """
    if seeds < 1:
        raise PactrainError(f"seeds={seeds}: at least one is needed")
    kept = Store.at(store)
    work = _Work(problem, range(seeds))
    grids = {name: work.usable(candidates) for name, candidates in grids.items()}
    go: dict[str, Any] = {"backend": backend, "workers": workers, "address": address, "progress": progress}
    ours = [work.run(pacbayes, s, OURS, budget=budget) for s in work.seeds]
    trials = {(m, s): [work.trial(m, s, c) for c in grids[m]] for m in grids for s in work.seeds}
    rows = _by_identity(carry_out([*ours, *(t for ts in trials.values() for t in ts)], kept, **go))
    finals = {key: work.final(key, [rows[t.identity] for t in ts]) for key, ts in trials.items()}
    rows |= _by_identity(carry_out(list(finals.values()), kept, **go))
    return _comparison(work, ours, trials, finals, rows, kept)


class _Work:
    """Makes the runs of a comparison."""

    def __init__(self, problem: Problem, seeds: Sequence[int]) -> None:
        self.problem, self.seeds = problem, tuple(seeds)
        self.digests = {seed: problem.digest(seed) for seed in seeds}

    def usable(self, candidates: Sequence[Settings]) -> list[Settings]:
        """Without dropout where the network has no place for it."""
        network = self.problem.network(self.problem.load(self.seeds[0]), self.seeds[0])
        return [c for c in candidates if not c.dropout or can_drop(network)]

    def run(self, function: Any, seed: int, kind: str, **settings: Any) -> Run:
        name = f"{function.__module__}:{function.__name__}"
        data = with_rules(self.digests[seed]) if function is pacbayes else self.digests[seed]
        return Run(name, {"problem": asdict(self.problem), **settings}, seed, data, kind)

    def trial(self, method: str, seed: int, settings: Settings) -> Run:
        return self.run(trial, seed, f"{method} search", settings=asdict(settings))

    def final(self, key: tuple[str, int], trials: Sequence[Row]) -> Run:
        """With the settings that were best on the validation rows, the first of equals."""
        number = best_trial([row.metrics["validation"] if row.metrics else None for row in trials])
        best = None if number is None else trials[number]
        if best is None or best.metrics is None:
            why = next((f": {row.error.strip().splitlines()[-1]}" for row in trials if row.error), "")
            raise PactrainError(f"no training of the search for {key[0]}, seed {key[1]}, came to an end{why}")
        settings, stop_at = best.config["settings"]["settings"], refit_length(best.metrics["best_step"])
        return self.run(final, key[1], f"{key[0]} again", settings=settings, stop_at=stop_at)


def _by_identity(rows: Sequence[Row]) -> dict[str, Row]:
    return {row.identity: row for row in rows}


def _comparison(
    work: _Work,
    ours: Sequence[Run],
    trials: Mapping[tuple[str, int], Sequence[Run]],
    finals: Mapping[tuple[str, int], Run],
    rows: Mapping[str, Row],
    store: Store,
) -> Comparison:
    for run in (*ours, *finals.values()):
        if error := rows[run.identity].error:
            raise PactrainError(
                f"the training of {run.kind}, seed {run.seed}, failed: {error.strip().splitlines()[-1]} "
                f"(all of the message is in {store.path}; the next start tries again)"
            )
    tests = {run.identity: (rows[run.identity].metrics or {})["test"] for run in (*ours, *finals.values())}
    score = "accuracy" if "accuracy" in tests[ours[0].identity] else "rmse"
    reference = [tests[run.identity][score] for run in ours]
    seconds = statistics.fmean(rows[run.identity].seconds for run in ours)
    methods = [Method(OURS, spread(reference), None, (), 1, seconds)]
    for name in dict.fromkeys(name for name, _ in finals):
        chosen = [finals[name, seed] for seed in work.seeds]
        values = [tests[run.identity][score] for run in chosen]
        spent = [rows[r.identity].seconds for s in work.seeds for r in (*trials[name, s], finals[name, s])]
        methods.append(
            Method(
                name,
                spread(values),
                spread([a - b for a, b in zip(reference, values, strict=True)]),
                tuple(run.settings["settings"] | {"steps": run.settings["stop_at"]} for run in chosen),
                len(spent) // len(work.seeds),
                sum(spent) / len(work.seeds),
            )
        )
    return Comparison(score, work.seeds, tuple(methods))

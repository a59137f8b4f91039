"""Scores and metrics of a finished training."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from pactrain.certification.after_training import Certified
from pactrain.problem.answers import Answers, answers_of
from pactrain.problem.module_modes import evaluating
from pactrain.problem.read import Problem
from pactrain.problem.scores import calibration, evaluate, own_scores
from pactrain.runs.rivals import rivals
from pactrain.training.history import Record, is_fresh
from pactrain.training.trainer import Trainer


@dataclass(frozen=True)
class Judgement:
    """How good the mean network is.

    Attributes:
        metrics: Scores under "train" and "test"; under "task" what is learned, under "rivals" what a constant answer and a linear
            model have, under "confused" the pairs of classes that are confused most often.
        answers: Its answers for the held-out rows, or for the training rows if there are none; None where a row
            has no single class or amount.
    """

    metrics: dict[str, Any]
    answers: Answers | None


def judge(model: nn.Module, problem: Problem) -> Judgement:
    """Measure the mean network on each set of the data, and what it has to beat.

    Args:
        model: The network, in the units of the data.
        problem: The data as it came.
    """
    sets = {"train": problem.batches} | ({} if problem.test is None else {"test": problem.test})
    metrics: dict[str, Any] = {
        name: evaluate(model, batches.ordered(), problem.loss) | calibration(model, batches.ordered(), problem.loss)
        for name, batches in sets.items()
    }
    name, batches = list(sets.items())[-1]
    answers = answers_of(model, batches.ordered(), problem.loss)
    metrics |= {"task": _task(problem, answers), "rivals": rivals(problem), "confused": []}
    if answers is not None:
        metrics[name] |= answers.further_scores()
        metrics["confused"] = [list(pair) for pair in answers.most_confused()]
    for name, batches in sets.items():
        with evaluating(model):
            metrics[name] |= own_scores(model, batches.ordered(), problem.loss, problem.metrics)
    return Judgement(metrics, answers)


def _task(problem: Problem, answers: Answers | None) -> dict[str, Any]:
    """What is learned from what, as far as it is known."""
    table = problem.batches.table
    features = table.tensors[0][0].numel() if table is not None and len(table.tensors) == 2 else None
    return {"kind": problem.loss.task, "features": features, "classes": None if answers is None else answers.classes}


def metrics_of(certified: Certified, judgement: Judgement, seconds: float) -> dict[str, Any]:
    """The content of metrics.json."""
    trainer, start = certified.trained.trainer, certified.trained.start
    p, stages = trainer.progress, [record["stage"] for record in certified.trained.history]
    metrics: dict[str, Any] = dict(judgement.metrics)
    stage1 = p.stage1 or {}
    metrics["stage1"] = {k: stage1[k] for k in ("train", "test", "bound", "risk", "kl", "gamma") if k in stage1}
    metrics |= {
        "scan": _scan_cost(trainer),
        "held_gamma": trainer.held_gamma,
        "left_out": trainer.walker.walk.tried() if trainer.walker is not None else None,
        "rescue": rescue(certified.trained.history, trainer.held_gamma),
        "learning_rate": trainer.lr,
        "seconds": round(seconds, 3),
        "steps": p.step,
        "stage1_epochs": stages.count(1),
        "stage2_epochs": stages.count(2),
        "strengthened": start.strengthened,
        "certificate": certified.facts,
    }
    return metrics


def rescue(history: list[Record], gamma: float) -> dict[str, Any] | None:
    """When the search over γ noticed that the network was memorising, and what it scored then.

    Args:
        history: One record per epoch.
        gamma: The γ that training ended with.

    Returns:
        The last `epoch` at the larger γ, the scores then under `train` and `test`, and by what γ was divided in the end; None if
        γ was never lowered, or in vain.
    """
    if not history or gamma >= history[0]["held_gamma"]:
        return None
    first = history[0]["held_gamma"]
    before = [record for record in history if record["held_gamma"] >= first and is_fresh(record)]
    lowered = next((r["epoch"] for r in history if r["held_gamma"] < first), history[-1]["epoch"] + 1)
    last = [record for record in before if record["epoch"] < lowered][-1]
    return {"epoch": last["epoch"], "train": last["train"], "test": last["test"], "divided_by": first / gamma}


def _scan_cost(trainer: Trainer) -> dict[str, float]:
    """What the scan took, and the standard error that a subset of the examples brings to the bound of stage 1."""
    moment = trainer.plan.moment
    gamma = trainer.progress.stage1.get("gamma", trainer.held_gamma)
    log_std = float(trainer.posterior.prior_log_std.detach().max())
    error = moment.subset_error(log_std, gamma)
    return {"networks": moment.measured, "examples": moment.n_used, "of": moment.n, "error": error}

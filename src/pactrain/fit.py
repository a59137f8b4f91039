"""`fit`: one call from a network and data to a trained network and a certificate.

Its name is `pactrain.fit`, or `from pactrain import fit`.  Python binds that name to this module where code imports the module itself
(`import pactrain.fit`, `from pactrain.fit import …`) before it has used the function.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.certification.after_training import certify_training
from pactrain.certification.before_training import Described, doubts_before_training
from pactrain.certification.recursive import measure_level
from pactrain.distributions.prior import Prior
from pactrain.problem.losses import AnyLoss
from pactrain.report import page_of
from pactrain.rules.choose_units import in_units
from pactrain.runs.result import Result
from pactrain.runs.run import Run, read_calibration
from pactrain.runtime.interrupts import deferred
from pactrain.training.options import (
    Budget,
    Callback,
    ClassWeight,
    Computing,
    Metrics,
    OptimizerFactory,
    Options,
    Rules,
)
from pactrain.training.session import reading, session
from pactrain.training.start import make_start
from pactrain.training.train import train
from pactrain.training.unknown_options import refuse

__all__ = ["Result", "fit"]


def fit(
    model: nn.Module, data: Any, *more: Any,
    loss: str | AnyLoss | None = None, prior: str | Prior = "layer", bound: str = "auto", preset: str | Rules = "auto",
    delta: float = 0.05, test: Any = None, calibration: Any = None, device: str | torch.device = "auto", seed: int = 0,
    budget: str | float | Budget | None = None, prior_data: float = 0.0, optimizer: OptimizerFactory | None = None,
    callbacks: Sequence[Callback] = (), progress: bool | None = None, out: str | Path | None = None, resume: bool = False,
    class_weight: ClassWeight | None = None, sample_weight: Any = None, metrics: Metrics | None = None,
    precision: str | None = None, accumulate: int = 1, clip_norm: float | None = None, certificate: str = "standard", **unknown: Any,
) -> Result:  # fmt: skip
    """Train `model` in place by minimising a PAC-Bayes bound on `data`; nothing has to be tuned.

    Args:
        model: Any torch module; its weights at the call are the mean of the prior.
        data: `(X, y)`, a Dataset, a DataLoader, any re-iterable of batches, or a torch-geometric `Data`, whose train_mask (or all labelled nodes) is
            trained on. `pactrain.augmented((X, y))` flips and crops images; `Described` states why the certificate's assumptions may not hold.
        loss: A name, a loss of torch such as `nn.CrossEntropyLoss(weight=w)`, or a function `loss(output, target)` or `loss(predict, batch)` that returns
            one loss per example. By default: cross-entropy for classes, binary cross-entropy for one or several 0/1 targets, mse for amounts.
        prior: "layer", "tensor", "model" (what shares one standard deviation), or a `Prior`.
        bound: "auto" (what the preset says); "cgf" or "paper", the two forms of the bound for unbounded losses; "kl", "quad",
            "lambda", "classic", "catoni", "bbb" for losses in [0, 1] (cross-entropy is clipped); "subgaussian", "cgf_rodriguez".
        preset: "auto", "paper", "authors", or a `pactrain.Rules`.
        delta: Probability with which the statements of the certificate may fail, all together.
        test: Data that is only looked at for the history, the report and the test-set bound; for a graph, its test_mask.
        calibration: Data from which `result.predict(X, coverage=0.9)` makes intervals and sets; by default the test data.
        device: "cpu", "cuda", or "auto".
        seed: Decides everything random.
        budget: 60 or "60s", "5m": the most time that the call may take; scores and certificate are then measured on as many rows as there is time
            for, and say so. "100 epochs": the most passes over the data.
        prior_data: Part of the data that trains the prior, in this part of as many further epochs; only the rest is counted in the bound.
        optimizer: A function from parameter groups to a torch optimiser; by default ours.
        callbacks: Functions that hear of progress, each called with an `Event`.
        progress: True draws a bar, False none; by default there is one in a terminal and in a notebook.
        out, resume: A run folder to write, with checkpoints; resume=True goes on from the last one in it.
        class_weight, sample_weight: Weights in the loss: of classes (one per class, {class: weight}, or "balanced"), and of training rows.
        metrics: Scores of your own, {name: function of outputs and targets}, in the history and in `result.metrics`.
        precision: "bf16" trains under bfloat16 autocast; the certificate is measured in the network's own precision.
        accumulate: Pieces in which each batch goes through the network; less memory, the same steps.
        clip_norm: Largest norm of a step's gradient.
        certificate: "standard", from the posterior's divergence and its risk on the counted rows; "progressive", for classification: each block of
            the second half of the rows judges the network before it is trained on it; or "recursive": each part gives the prior for the next.
        *more, **unknown: Refused, with what replaces them.

    Returns:
        The trained network with its posterior, certificate and history.

    Raises:
        PactrainError: An argument, the data or the folder cannot be used; the message says what to do.

    Example:
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> fit(nn.Linear(3, 2), (X, (X[:, 0] > 0).long())).metrics["train"]["accuracy"] > 0.9
        True
    """
    refuse(more, unknown, known=fit.__kwdefaults__ or ())
    options = Options(
        prior=prior, bound=bound, preset=preset, delta=delta, device=device, seed=seed, budget=budget, prior_data=prior_data, optimizer=optimizer,
        callbacks=callbacks, progress=progress, out=out, resume=resume, class_weight=class_weight, sample_weight=sample_weight,
        metrics=metrics or {}, certificate=certificate, computing=Computing(precision=precision, accumulate=accumulate, clip_norm=clip_norm),
    )  # fmt: skip
    return _fit(model, Described.of(data), test, calibration=calibration, loss=loss, requested=options)


def _fit(
    model: nn.Module,
    described: Described,
    test: Any,
    *,
    calibration: Any,
    loss: str | AnyLoss | None,
    requested: Options,
) -> Result:
    """The steps of a run: problem → start → trained → certified → result."""
    with (
        session(model, requested) as options,
        reading(model, described.data, test, loss=loss, options=options) as problem,
    ):
        held_out = read_calibration(model, calibration, problem, options)
        doubts = doubts_before_training(model, problem, options)
        with (
            deferred() as pressed,
            in_units(model, problem, rules=options.rules, prior=options.prior_spec, seed=options.seed) as scaled,
        ):
            start = make_start(model, scaled, options.stopped_by(pressed))
            run = Run.open(start, described.config)
            trained = train(start, run.keeper, measure_level)
        certified = certify_training(trained, doubts, described)
        return run.finish(
            certified, page_of, calibration=held_out, preprocess=described.preprocess, labels=described.labels
        )

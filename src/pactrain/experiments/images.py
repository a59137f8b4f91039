"""One training on images: what a cell of a table or a curve of a figure is made of.

Seed s draws its own training images, its own initial weights and its own batches; the test images are the same for all.
"""

import functools
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from pactrain import Result, fit
from pactrain.baselines.grid_search import hold_out
from pactrain.baselines.plain_training import train
from pactrain.data.cifar import normalised, read_cifar10, read_cifar100
from pactrain.distributions.posterior import Posterior
from pactrain.experiments.image_settings import ImageTask, PacBayes, Plain
from pactrain.experiments.table_cells import Clock, validation_metrics
from pactrain.models.image import image_model
from pactrain.problem.augmentation import augmented
from pactrain.problem.batches import TensorBatches
from pactrain.problem.module_modes import evaluating
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.read_data import as_batches
from pactrain.problem.scores import Scores, evaluate
from pactrain.rules.presets import AUTO
from pactrain.rules.rules import Rules
from pactrain.runs.folder import is_complete
from pactrain.runs.reload import reload
from pactrain.runtime.devices import choose_device
from pactrain.runtime.errors import TrainingError
from pactrain.runtime.seeds import derive
from pactrain.training.history import HISTORY_EXAMPLES, rows_measured

Pair = tuple[Tensor, Tensor]

CLASSES = {"cifar10": 10, "cifar100": 100}
DRAWS = 20
"""Networks drawn to judge the randomised predictor and the ensemble."""


def pac_bayes(*, folder: str | None = None, **settings: Any) -> dict[str, Any]:
    """Train by `fit` with the settings of `PacBayes`, or go on with the training in a run folder; the metrics."""
    own = PacBayes(**settings)
    training, test = images_of(own.data, own.images, own.test_images, own.seed)
    model = _model(own, training)
    untrained = _accuracy(model, test) if own.looks == "curves" else None
    clock = Clock()
    result, spent = _fitted(own, model, training, test, folder), clock.spent()
    if result.interrupted:
        raise TrainingError("the training was stopped by hand; the next call starts it again or goes on with it")
    metrics: dict[str, Any] = spent | {key: result.metrics[key] for key in ("steps", "held_gamma", "learning_rate")}
    metrics |= {"test": _accuracy(model, test), "train": result.metrics["train"]["accuracy"]}
    if own.looks == "curves":
        metrics |= _figure_data(result) | {"untrained": untrained}
    return metrics | (_predictors(result.posterior, test, own.seed) if own.looks == "predictors" else {})


def _fitted(own: PacBayes, model: nn.Module, training: Pair, test: Pair, folder: str | None) -> Result:
    if folder is not None and is_complete(Path(folder)):  # killed before its result was stored
        return reload(Path(folder), model, None)
    rules, (epochs, _) = own.chosen_rules(), own.stages()
    prior_epochs = f"{math.ceil(epochs / own.prior_data)} epochs" if own.prior_data and epochs else None
    return fit(
        model,
        augmented(training, counts=own.counts) if own.augment else training,
        prior=own.prior,
        bound=own.bound,
        preset=rules,
        test=test if own.looks == "curves" else None,
        seed=own.seed,
        budget=own.budget or prior_epochs,
        prior_data=own.prior_data,
        optimizer=None if own.momentum is None else _sgd(rules, own.momentum),
        precision=own.precision,
        out=folder,
        resume=folder is not None,
    )


def _sgd(rules: Rules, momentum: float) -> Callable[[list[dict[str, Any]]], torch.optim.Optimizer]:
    lr = rules.lr or 1e-3
    return lambda groups: torch.optim.SGD(groups, lr=lr, momentum=momentum)


def plain(*, folder: str | None = None, **settings: Any) -> dict[str, Any]:
    """Train plainly with the settings of `Plain`, or go on with the training in a folder; the metrics."""
    own = Plain(**settings)
    everything, test = images_of(own.data, own.images, own.test_images, own.seed)
    training, validation = hold_out(everything, own.seed) if own.held_out else (everything, None)
    model = _model(own, everything)
    epoch_steps = max(1, round(len(training[0]) / (own.batch_size or AUTO.batch(len(training[0])))))
    curve = _Curve(model, everything, test, own.seed, epoch_steps) if own.looks == "curves" else None
    clock = Clock()
    trained = train(
        model,
        augmented(training) if own.augment else training,
        own.settings(),
        validation=validation,
        stop_at=own.stop_at,
        measure_every=epoch_steps,
        watch=curve,
        keep=None if folder is None else Path(folder),
        precision=own.precision,
        seed=own.seed,
    )
    metrics: dict[str, Any] = dict(clock.spent())
    metrics |= {"steps": trained.steps, "test": _accuracy(model, test), "train": trained.train["accuracy"]}
    return metrics | validation_metrics(trained) | ({"history": trained.history} if curve is not None else {})


def _model(own: ImageTask, training: Pair) -> nn.Module:
    return image_model(own.network, training[0][0].numel(), CLASSES[own.data], seed=own.seed)


# -- data --------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def images_of(data: str, images: int, test_images: int, seed: int) -> tuple[Pair, Pair]:
    """Training images drawn by the seed, and test images."""
    return _pick(_read(data, True), images, derive(seed, "images")), _pick(_read(data, False), test_images, 0)


@functools.cache
def digest_of(data: str) -> str:
    """A fingerprint of a set of images, whatever layout it came in."""
    state = hashlib.blake2b(digest_size=16)
    for train_part in (True, False):
        for array in _read(data, train_part):
            state.update(array.tobytes())
    return state.hexdigest()


def _read(data: str, train_part: bool) -> tuple[Any, Any]:
    return (read_cifar10 if data == "cifar10" else read_cifar100)(train=train_part)


def _pick(read: tuple[Any, Any], count: int, seed: int) -> Pair:
    x, y = read
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:count].numpy()
    return torch.from_numpy(normalised(x[order])), torch.from_numpy(y[order])


# -- what is measured --------------------------------------------------------------------------------------------------


def _batches(pair: Pair) -> TensorBatches:
    found = as_batches(pair, batch_size=None, device=choose_device("auto"))
    assert found.table is not None
    return found.table


def _scores(model: nn.Module, pair: Pair) -> Scores:
    return evaluate(model, _batches(pair).ordered(), LOSSES["cross_entropy"])


def _accuracy(model: nn.Module, pair: Pair) -> float:
    return _scores(model, pair)["accuracy"]


class _Curve:
    """Scores of plain training, epoch by epoch, on the images that `fit` takes for its own."""

    def __init__(self, model: nn.Module, training: Pair, test: Pair, seed: int, epoch_steps: int) -> None:
        self.model, self.epoch_steps = model, epoch_steps
        chosen = derive(seed, "history")
        self.parts = {
            "train": _batches(training).subset(rows_measured(len(training[0])), chosen),
            "test": _batches(test).subset(HISTORY_EXAMPLES, chosen),
        }

    def __call__(self, step: int) -> dict[str, Any]:
        """Measure the network after a step."""
        scores = {name: evaluate(self.model, view, LOSSES["cross_entropy"]) for name, view in self.parts.items()}
        return {"epoch": step // self.epoch_steps, "step": step, "stage": 1} | scores


def _figure_data(result: Result) -> dict[str, Any]:
    """What figures are drawn from: the history, which group is what kind of layer, and the scan."""
    keys = (
        "epoch",
        "step",
        "stage",
        "risk",
        "train",
        "test",
        "scores_epoch",
        "kl",
        "gamma",
        "bound",
        "complexity",
        "prior_std",
        "posterior_std",
    )
    return {
        "history": [{key: record[key] for key in keys} for record in result.history],
        "kinds": {group: _kind(result.model, group) for group in result.posterior.groups},
        "moment": result.moment.to_dict(),
        "rules": {k: result.config["rules"][k] for k in ("average", "mode", "at", "gamma_min", "gamma_max")},
    }


def _kind(model: nn.Module, group: str) -> str:
    try:
        layer = model.get_submodule(group)
    except AttributeError:
        return "other"
    kinds = {"convolution": nn.Conv2d, "norm": (_BatchNorm, nn.GroupNorm), "linear": nn.Linear}
    return next((name for name, kind in kinds.items() if isinstance(layer, kind)), "other")  # type: ignore[arg-type]


@torch.no_grad()
def _predictors(posterior: Posterior, test: Pair, seed: int) -> dict[str, float]:
    """Test accuracy of one drawn network, on average over draws, and of their averaged probabilities."""
    right, counted = torch.zeros(2, dtype=torch.float64), 0
    with evaluating(posterior.model):
        for x, y in _batches(test).ordered():
            total = torch.zeros(())
            for draw in range(DRAWS):
                source = torch.Generator(x.device).manual_seed(derive(seed, "predictors", draw))
                with posterior.sampled(source) as model:
                    probabilities = model(x).softmax(1)
                right[0] += float((probabilities.argmax(1) == y).sum()) / DRAWS
                total = total + probabilities
            right[1] += float((total.argmax(1) == y).sum())
            counted += len(y)
    one, ensemble = (right / counted).tolist()
    return {"randomised": one, "ensemble": ensemble}

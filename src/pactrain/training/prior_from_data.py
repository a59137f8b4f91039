"""A prior learned from rows that the bound does not count."""

import math

import numpy as np
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.problem.batches import Batches, BoundRows, PriorRows, TensorBatches
from pactrain.problem.dropout import can_drop, dropping
from pactrain.problem.losses import AnyLoss
from pactrain.problem.module_modes import estimate_batch_norm
from pactrain.problem.untrained import look_at_data, training_mode
from pactrain.rules.presets import AUTO, normalised_classes
from pactrain.runtime import distributed
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.events import Event, silent
from pactrain.runtime.seeds import derive, prior_seed
from pactrain.runtime.trained_models import TRAINED
from pactrain.training.options import Options
from pactrain.training.start import scan
from pactrain.training.trainer import Stopped, Trainer

DROPOUT = 0.2
"""What is dropped behind each activation while the prior is trained, as the field does; MNIST, seed 0, certified
with it 2.8 to 2.9 %, without 3.06 %."""


def split_rows(batches: Batches, part: float, seed: int) -> tuple[PriorRows, BoundRows]:
    """The rows for the prior, and those that the bound counts."""
    if not isinstance(batches, TensorBatches):
        raise DataError("prior_data needs an (X, y) pair or a TensorDataset, whose rows can be told apart")
    if not 0 < part < 1:
        raise PactrainError(f"prior_data={part} must lie between 0 and 1: the part of the data the prior is trained on")
    first, rest = batches.split(part, prior_seed(seed))
    if not len(first) or not len(rest):
        raise DataError(f"prior_data={part} of {len(batches)} rows leaves one of the two parts empty")
    return first, rest


def train_prior(model: nn.Module, rows: PriorRows, *, loss: AnyLoss, options: Options) -> float:
    """Train `model` by the `auto` rules on the prior's rows: it becomes the prior's mean.  Returns the prior's std."""
    delta, seed = options.delta, options.seed
    rows.batch_size = AUTO.batch(len(rows))
    posterior = Posterior(model, Prior())
    start, steps = look_at_data(model, rows, loss)
    moment = scan(posterior, rows, loss, AUTO, len(rows), steps, seed, silent)
    bound = AUTO.bound(len(rows), delta, moment, len(posterior.groups))
    std = AUTO.start_std(posterior, bound)
    posterior.reset_std(std)
    training_mode(model)
    sample = next(iter(rows.ordered()))
    normalised = len(rows) * normalised_classes(model, loss, sample)
    gamma = AUTO.held_gamma(AUTO.strength(model, rows, loss, seed), std, normalised=normalised)
    trainer = Trainer(
        posterior,
        rows,
        loss,
        bound,
        AUTO,
        moment=moment,
        lr=AUTO.rate(std, posterior, loss, sample),
        held_gamma=distributed.from_first(gamma)[0],
        seed=derive(seed, "prior"),
        steps_per_epoch=steps,
        start_loss=start["loss"],
        budget=options.budget.part(options.prior_data),
        test=None,
        stop=options.stop,
    )
    TRAINED.add(model)
    try:
        with dropping(model, _dropout(model)):
            for record in trainer.epochs():
                done = trainer.progress.epoch
                options.tell(Event("prior", done, max(done, trainer.pace.stage1_limit), record))
    except Stopped:
        raise KeyboardInterrupt from None  # there is nothing yet that could be kept
    distributed.same_weights(model)
    estimate_batch_norm(model, rows.ordered(), loss)
    return _quiet_std(model, rows, loss, steps, delta, seed, start["loss"])


def _dropout(model: nn.Module) -> float | None:
    """The rate for a network that has activations to drop and no Dropout layers of its own."""
    own = any(isinstance(m, _DropoutNd) for m in model.modules())
    return DROPOUT if can_drop(model) and not own else None


def _quiet_std(
    model: nn.Module, rows: PriorRows, loss: AnyLoss, steps: int, delta: float, seed: int, start_loss: float
) -> float:
    """The largest std of the scan at which noise adds no more loss, in units of the untrained network's, than the least
    that any bound on as many rows charges, ln(2√n/δ)/n: a wider prior would lose more by noise than moving could gain."""
    moment = scan(Posterior(model, Prior()), rows, loss, AUTO, len(rows), steps, seed, silent)
    noisy = moment.means.mean(axis=1)
    allowed = abs(start_loss) * math.log(2 * math.sqrt(len(rows)) / delta) / len(rows)
    return float(np.exp(moment.log_stds[np.flatnonzero(noisy <= noisy[0] + allowed).max(initial=0)]))

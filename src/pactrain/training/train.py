"""`train`: the whole training, with checkpoints from which it can be resumed."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes

from pactrain.bounds.moment import Moment
from pactrain.problem.dropout import dropout_rate, dropping
from pactrain.problem.module_modes import estimate_batch_norm
from pactrain.problem.read import Problem
from pactrain.runtime import distributed
from pactrain.runtime.devices import give_memory_back
from pactrain.runtime.errors import DataError, TrainingError
from pactrain.runtime.events import Event
from pactrain.runtime.trained_models import TRAINED
from pactrain.training.history import Record
from pactrain.training.objective_terms import objective_terms
from pactrain.training.plan import Plan
from pactrain.training.prior_scan import MomentStore
from pactrain.training.progressive import expected_epochs, meet_block, with_blocks
from pactrain.training.recursive import (
    MeasureLevel,
    back_to_first_prior,
    budget_of,
    end_level,
    epochs_of_parts,
    pays_of,
    rebase,
)
from pactrain.training.start import Start, place_prior, plan_of
from pactrain.training.trainer import Stopped, Trainer


@dataclass(frozen=True)
class Trained:
    """A training that has come to its end.

    Attributes:
        start: Where it started.
        trainer: The trainer as it ended.
        history: One record per epoch.
        interrupted: True if the user stopped it.
        objective: Terms of the training objective at the end of stage 1, and the constants of η.
        unit_doubts: At most one sentence: that the network treats data in other units differently.
        blocks: Number of examples and errors of each block that the network was judged by before it was trained on it (or, for a
            recursive certificate, each level in the words of the record); None where training does not go block by block.
    """

    start: Start
    trainer: Trainer
    history: list[Record]
    interrupted: bool
    objective: dict[str, float]
    unit_doubts: list[str]
    blocks: list[Any] | None


class Keeper(MomentStore, Protocol):
    """Where a run is kept while it goes on."""

    def blocks(self) -> int:
        """How many blocks had been met by the last checkpoint."""

    def restore(self, trainer: Trainer) -> list[Record]:
        """Put the trainer where the last checkpoint left it; the history up to there."""

    def keep(self, record: Record, trainer: Trainer) -> None:
        """Keep one epoch, and now and then a checkpoint."""

    def checkpoint(self) -> Path | None:
        """The folder of the last checkpoint, if there is one."""


class NotKept:
    """The keeper of a run without a folder."""

    def moment(self) -> Moment | None:
        """Never a scan."""
        return None

    def write_moment(self, moment: Moment) -> None:
        """Keep nothing."""

    def blocks(self) -> int:
        """Always 0."""
        return 0

    def restore(self, trainer: Trainer) -> list[Record]:
        """Begin at the beginning."""
        return []

    def keep(self, record: Record, trainer: Trainer) -> None:
        """Keep nothing."""

    def checkpoint(self) -> Path | None:
        """Never a checkpoint."""
        return None


def train(start: Start, keeper: Keeper, measure_level: MeasureLevel) -> Trained:
    """Place the prior, run the two stages, go on with block after block, and bring the network to the state that is measured.

    Args:
        start: Where training starts.
        keeper: Where the run is kept; a run that was kept there goes on.
        measure_level: Measures the levels of a recursive certificate.

    Returns:
        The training at its end, its network still in the units that it was trained in.

    Raises:
        DataError: Several processes are to share the user's own batches.
        TrainingError: A loss or a weight is no longer finite.
    """
    if distributed.world() > 1 and start.problem.batches.table is None:
        raise DataError("several processes can share an (X, y) pair or a TensorDataset, not batches of your own making")
    model, blocks = start.posterior.model, start.blocks
    moment, std = place_prior(start, keeper)
    prior_mean, recursive = start.posterior.prior_mean.clone(), start.options.certificate == "recursive"
    trainer = Trainer(start.posterior, start.problem, _plan(start, moment, std))
    if met := round(distributed.from_first(keeper.blocks())[0]):
        _add_blocks(trainer, start, moment, std, met)
    if keeper.checkpoint() is not None:
        TRAINED.add(model)  # the checkpoint's weights are trained, in units, even if reading the rest fails
    history = _restored(trainer, keeper)
    TRAINED.add(model)
    with dropping(model, dropout_rate(model) if blocks and not recursive else None):
        interrupted = _run(trainer, history, keeper, start)
        while not interrupted and (met := len(trainer.progress.blocks)) < blocks:
            if recursive:
                end_level(trainer, start, measure_level)
            else:
                meet_block(trainer, start)
            _add_blocks(trainer, start, moment, std, met + 1)
            interrupted = _run(trainer, history, keeper, start)
    end = start.grown(len(trainer.progress.blocks))
    _settle(trainer, end.problem)
    if recursive:
        end_level(trainer, start, measure_level)
        back_to_first_prior(start.posterior, prior_mean)
    objective = objective_terms(trainer, history)
    unit_doubts = end.scaled.units.doubts(model, end.problem, end.scaled.given)
    return Trained(
        end, trainer, history, interrupted, objective, unit_doubts, trainer.progress.blocks if blocks else None
    )


def _plan(start: Start, moment: Moment, std: float) -> Plan:
    """The plan for the first training."""
    plan = plan_of(start, moment, std)
    if start.options.certificate != "recursive":
        return plan
    return replace(plan, budget=budget_of(start, 1), pays=pays_of(start, 1))


def _add_blocks(trainer: Trainer, start: Start, moment: Moment, std: float, blocks: int) -> None:
    """Make a trainer ready for that many blocks; in a recursive certificate the posterior of each level is the prior of the next."""
    if start.options.certificate != "recursive":
        with_blocks(trainer, start, moment, std, blocks=blocks)
        return
    rebase(start.posterior)
    parts = blocks + 1
    with_blocks(trainer, start, moment, std, blocks=blocks, budget=budget_of(start, parts), pays=pays_of(start, parts))


def _restored(trainer: Trainer, keeper: Keeper) -> list[Record]:
    """The history up to the last checkpoint, with the trainer of every process where it was then."""
    history: list[Record] = keeper.restore(trainer)
    if distributed.world() == 1:
        return history
    tensors, values = trainer.state()
    values, history = distributed.document_from_first([values, history])
    if history:
        content = distributed.bytes_from_first(
            save_bytes({k: v.detach().cpu().contiguous() for k, v in tensors.items()})
        )
        if distributed.rank():
            trainer.load(load_bytes(content), values)
    return history


def _run(trainer: Trainer, history: list[Record], keeper: Keeper, start: Start) -> bool:
    """Run the stages; True if the user interrupted them."""
    expected = epochs_of_parts if start.options.certificate == "recursive" else expected_epochs
    try:
        for record in trainer.epochs():
            history.append(record)
            keeper.keep(record, trainer)
            start.notify(Event("train", trainer.progress.epoch, expected(trainer, start), record))
    except Stopped:
        return True
    except KeyboardInterrupt:
        if distributed.world() > 1:  # the others are elsewhere: what they hold is not what this process holds
            raise
        return True
    except TrainingError as error:
        if (kept := keeper.checkpoint()) is not None:
            raise TrainingError(f"{error}. The last good checkpoint is kept in {kept}") from None
        raise
    return False


def _settle(trainer: Trainer, problem: Problem) -> None:
    """Bring the network to the state that is measured, and give back the memory that training took."""
    model = trainer.posterior.model
    distributed.same_weights(model)  # buffers follow the rows that a process has seen
    trainer.curvature = trainer.optimizer = None  # as large as the network, and no longer needed
    give_memory_back()
    estimate_batch_norm(model, problem.batches.ordered(), problem.loss)

"""Training block by block: the network is judged by every block of examples before it is trained on it.

The first network is trained on part of the examples as any other.  Then, block by block, the errors of the network as it is are
counted, the block joins the examples, and training goes on from the same weights for fewer epochs.  All examples end up in the
network that is delivered, and the errors are those of networks that had not seen what they were judged by.
"""

import math
from dataclasses import replace

from pactrain.bounds.moment import Moment
from pactrain.problem.module_modes import estimate_batch_norm
from pactrain.problem.scores import evaluate
from pactrain.runtime import distributed
from pactrain.runtime.events import Event
from pactrain.training.budget import Budget
from pactrain.training.gamma_search import HeldGamma
from pactrain.training.options import Options
from pactrain.training.start import Start, bound_of
from pactrain.training.time_left import for_training
from pactrain.training.trainer import Trainer

EPOCHS = 0.15
"""Epochs of a training on one more block, in units of those of the rules: with eleven blocks, about as much as one training."""

RATE = 0.1
"""Rate at which it starts, relative to that of the first training.  At the full rate a block undoes more than it teaches (MNIST, 600-600-600, 20 epochs:
1.8 % errors after the first training, 2.3 % in the mean of those after it)."""


def meet_block(trainer: Trainer, start: Start) -> None:
    """Count the errors of the network as it is on the next block, which it has not seen.

    Args:
        trainer: At the end of its training on the blocks before; its progress takes the errors.
        start: Where the run started, with all its blocks.
    """
    met, problem = trainer.progress.blocks, start.problem
    model, block = trainer.posterior.model, problem.blocks[len(met)]
    distributed.same_weights(model)
    estimate_batch_norm(model, trainer.batches.ordered(), problem.loss)
    scores = evaluate(model, block.ordered(), problem.loss)
    n = int(scores["n"])
    errors = math.ceil(
        (1 - scores["accuracy"]) * n - 1e-6
    )  # a share of wrong pixels, say, counts up to the next whole error
    met.append((n, errors))
    start.notify(Event("block", len(met), len(problem.blocks), {"examples": n, "errors": errors}))


def with_blocks(
    trainer: Trainer,
    start: Start,
    moment: Moment,
    std: float,
    *,
    blocks: int,
    budget: Budget | None = None,
    pays: float | None = None,
) -> None:
    """Make a trainer ready for that many blocks, from its present state.

    Args:
        trainer: A trainer that has seen fewer.
        start: Where the run started, with all its blocks.
        moment: The scan of the prior.
        std: The std at which the prior was placed.
        blocks: How many blocks it is to be trained on.
        budget: What it may take; by default a part of a whole training.
        pays: Part of the divergence's first weight that is held; by default the weight follows the bound.
    """
    now = start.grown(blocks)
    plan = replace(
        trainer.plan,
        bound=bound_of(now, moment, std),
        untrained=now.untrained,
        gamma=HeldGamma(trainer.held_gamma),
        budget=budget or _budget(now, to_come=start.blocks - blocks + 1),
        pays=pays,
    )
    trainer.continue_with(now.problem, plan, rate=RATE if budget is None else 1.0)


def expected_epochs(trainer: Trainer, start: Start) -> int:
    """The epoch at which training is likely to end, with all blocks that are still to come."""
    p = trainer.progress
    end = trainer.expected_epochs() + (start.blocks - len(p.blocks)) * _epochs(start.options, trainer.steps_per_epoch)
    seconds = for_training(start.options, start.seconds_per_pass)
    return (
        end
        if seconds == math.inf
        else min(end, p.epoch + math.ceil(p.epoch * seconds / (p.seconds_before + p.seconds)))
    )


def _budget(now: Start, *, to_come: int) -> Budget:
    """What a training on one more block may take, with so many still to come."""
    return Budget(for_training(now.options, now.seconds_per_pass) / to_come, _epochs(now.options, now.untrained.steps))


def _epochs(options: Options, steps: int) -> int:
    """The most epochs of a training on one more block, with `steps` steps in each."""
    most, whole = options.limit.epochs, options.rules.stage1_epochs(steps)
    return max(1, round(EPOCHS * (whole if most is None else min(whole, most))))

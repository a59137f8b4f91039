"""The no-tuning rules as one record: what they decide, from which numbers.  `presets.py` has the records by name."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import nn

from pactrain.bounds.moment import Average, Moment
from pactrain.bounds.unbounded import At, Mode, Unbounded
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.random_weights import mean_abs
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import trains_batch_norm
from pactrain.rules import constants
from pactrain.rules.gamma.linear_leave_one_out import Strength, linearise
from pactrain.rules.knee import knee

FEWEST_SCANNED = 64
"""Examples of which the scan takes no fewer, however little time there is."""


@dataclass(frozen=True)
class Rules:
    """How a run is set up and how it proceeds.

    Attributes:
        name: Of the preset.
        start: Where prior and posterior have their first std.  "knee": the largest std at which the bound of the untrained
            network is within `knee` of its smallest value (`knee.py`).  "mean_abs_std", "mean_abs_variance": the mean size of a weight as the std (the authors' code) or
            the variance (the paper's text).
        knee: Relative distance from the smallest value that `start="knee"` allows.
        strengthen: Rescale the layers of networks through whose initial weights hardly anything passes (`initial_scale.py`).
        units: Train tables with columns or targets far from the size of one in units of their own (`units.py`).
        draws: Networks that the scan draws at each std.
        std_points: Stds that are scanned.
        gamma_points: Values of γ at which the moment is taken.
        scan_examples: Most examples that the scan measures.
        scan_share: Largest part of the training time that the scan may take.
        average: The exponential moment: "mfold", which the proof needs, or "mean", which the paper prints.
        mode: Form of the bound: "cgf" or "paper".
        at: Prior std at which a layerwise prior's moment is taken: the largest ("max") or the geometric mean ("mean").
        gamma_min: Smallest γ in the stated bound.
        gamma_max: Largest γ in the stated bound.
        nats: What stands for ln(1/δ).
        bbb_penalty: Weight of the divergence in the objective "bbb".
        stds: "curvature": closed-form stds, with γ held while training.  "gradient": Adam on log-stds with the greedy γ, as in
            the paper.
        held: The γ that is held.  "left out": by leave-one-out of the linear network.  "walk": that, and then a search.
            "gamma_max": the largest.
        class_gain: Gain at which classification starts: at 1 an example's own pull equals the prior's.
        class_share: Share of the fall in left-out loss that the first γ must have in classification.
        normalised_gamma_n: γ·n of the first γ in classification with BatchNorm.
        curvature_memory: Part of the running mean of the curvature that each step keeps.
        first_curvature: Start of that running mean, in units of the prior's own precision.
        means: "adam" or "natural" steps of the means.
        warmup_epochs: Epochs in which the log-stds of a group move as one number.
        warmup_weights: Fewest weights of a network for which `warmup_epochs` applies.
        min_prior_std: Smallest std of the prior (the paper's clipping of λ).
        step_in_stds: Learning rate of the means in prior stds.
        largest_change: Largest relative change of the output in a step, summed over the layers.
        normalised_change: That change in classification with BatchNorm, as the root of the sum of squares over the layers.
        lr: Learning rate of the means; None follows the rule.
        std_lr: Learning rate of the log-stds where they are trained by gradients.
        decay: Let the rates fall to zero.
        batch_size: Examples in a batch.
        large_batch_size: Examples in a batch of large data.
        large_n: Number of examples from which data is large.
        min_steps: Fewest steps of stage 1.
        full_batch_steps: Fewest steps where all data is one batch.
        min_epochs: Fewest epochs of stage 1.
        fixed_epochs: Epochs of stage 1; None follows the rule.
        enter_stage2: The paper's second stage, which minimises the loss alone, is entered if the risk is above this share of the
            untrained network's loss.
        stage2_gain: Relative fall of the best loss that keeps stage 2 going.
        stage2_patience: Epochs in which the loss has to fall by `stage2_gain`.
        stage2_share: Most epochs of stage 2, as a share of those of stage 1.

    Example:
        >>> from pactrain.rules.presets import AUTO
        >>> AUTO.replace(lr=1e-3).lr
        0.001
    """

    name: str
    start: Literal["knee", "mean_abs_std", "mean_abs_variance"]
    knee: float = constants.KNEE
    strengthen: bool = True
    units: bool = True
    draws: int = constants.DRAWS
    std_points: int = constants.STD_POINTS
    gamma_points: int = 40
    scan_examples: int = constants.SCAN_EXAMPLES
    scan_share: float = constants.SCAN_SHARE
    average: Average = "mfold"
    mode: Mode = "cgf"
    at: At = "max"
    gamma_min: float = 0.5
    gamma_max: float = constants.LARGEST_GAMMA
    nats: Literal["ln(1/delta)", "10+3k"] = "ln(1/delta)"
    bbb_penalty: float = 1.0
    stds: Literal["curvature", "gradient"] = "curvature"
    held: Literal["walk", "left out", "gamma_max"] = "walk"
    class_gain: float = constants.CLASS_GAIN
    class_share: float = constants.CLASS_SHARE
    normalised_gamma_n: float = 1 / constants.NORMALISED_KL_WEIGHT
    curvature_memory: float = constants.CURVATURE_MEMORY
    first_curvature: float = constants.FIRST_CURVATURE
    means: Literal["adam", "natural"] = "adam"
    warmup_epochs: int = 0
    warmup_weights: int = 1_000_000
    min_prior_std: float = 0.0
    step_in_stds: float = constants.STEP_IN_STDS
    largest_change: float = constants.LARGEST_CHANGE
    normalised_change: float = constants.NORMALISED_CHANGE
    lr: float | None = None
    std_lr: float = 3e-3
    decay: bool = True
    batch_size: int = constants.BATCH_SIZE
    large_batch_size: int = constants.LARGE_BATCH_SIZE
    large_n: int = constants.LARGE_N
    min_steps: int = constants.MIN_STEPS
    full_batch_steps: int = constants.FULL_BATCH_STEPS
    min_epochs: int = constants.MIN_EPOCHS
    fixed_epochs: int | None = None
    enter_stage2: float = 0.05
    stage2_gain: float = 0.01
    stage2_patience: int = 20
    stage2_share: float = 0.5

    def replace(self, **changes: Any) -> "Rules":
        """Copy the rules with some fields changed.

        Args:
            **changes: New values by the names of the fields.

        Returns:
            The changed copy.
        """
        return dataclasses.replace(self, **changes)

    # -- what the rules decide -------------------------------------------------------------------------------------

    def batch(self, n: int) -> int:
        """Choose the size of a batch.

        Args:
            n: Number of training examples.

        Returns:
            Examples in a batch.
        """
        return min(n, self.large_batch_size if n >= self.large_n else self.batch_size)

    def examples_to_scan(self, n: int, steps_per_epoch: int) -> int:
        """Choose how much the scan measures, such that it stays below its share of training.

        Args:
            n: Number of training examples.
            steps_per_epoch: Training steps in an epoch; a step counts as three forward passes.

        Returns:
            Number of examples.
        """
        passes = 3 * self.stage1_epochs(steps_per_epoch) * self.scan_share
        return min(n, self.scan_examples, max(FEWEST_SCANNED, int(passes * n / (self.draws * self.std_points))))

    def stage1_epochs(self, steps_per_epoch: int) -> int:
        """Choose the length of stage 1: enough steps for small data, enough passes for large.

        Args:
            steps_per_epoch: Training steps in an epoch.

        Returns:
            Number of epochs.
        """
        if self.fixed_epochs is not None:
            return self.fixed_epochs
        steps = self.full_batch_steps if steps_per_epoch == 1 else self.min_steps
        return max(self.min_epochs, math.ceil(steps / steps_per_epoch))

    def stage2_epochs(self, stage1_epochs: int) -> int:
        """Limit the length of stage 2.

        Args:
            stage1_epochs: Length of stage 1.

        Returns:
            The largest number of epochs.
        """
        return math.ceil(self.stage2_share * stage1_epochs)

    def confidence_nats(self, delta: float, groups: int) -> float:
        """What stands for ln(1/δ) in the objective.

        Args:
            delta: Probability with which the bound may fail.
            groups: Groups of the prior.

        Returns:
            A number of nats.
        """
        return 10.0 + 3.0 * groups if self.nats == "10+3k" else math.log(1 / delta)

    def bound(self, n: int, delta: float, moment: Moment, groups: int) -> Unbounded:
        """Make the bound for unbounded losses as these rules use it.

        Args:
            n: Number of examples that are counted.
            delta: Probability with which the bound may fail.
            moment: The scan of the prior.
            groups: Groups of the prior.

        Returns:
            The bound.
        """
        return Unbounded(
            n,
            delta,
            moment=moment,
            mode=self.mode,
            average=self.average,
            at=self.at,
            gamma_min=self.gamma_min,
            gamma_max=self.gamma_max,
            nats=self.confidence_nats(delta, groups),
        )

    def strength(self, posterior: Posterior, batches: Batches, loss: Loss, seed: int) -> Strength | None:
        """Find how far the data may move the weights, from the linearised network.

        Args:
            posterior: The posterior at its start.
            batches: The training data.
            loss: The loss that is trained.
            seed: Decides which examples are used.

        Returns:
            The strength; None where γ does not follow from it.
        """
        if self.stds != "curvature" or self.held == "gamma_max":
            return None
        classes = loss.names_classes(next(iter(batches.ordered())))
        if classes and trains_batch_norm(posterior.model):
            return None
        found = linearise(posterior, batches, loss, seed)
        if found is None:
            return None
        gain = found.least_gain(self.class_share, self.class_gain) if classes else found.best_gain()
        return Strength(found.gamma(gain, 1.0), classes, found.loss_at(gain))

    def held_gamma(self, strength: Strength | None, std: float, *, normalised: int = 0) -> float:
        """Choose the γ at which stage 1 is held while stds have closed forms.

        Args:
            strength: What `strength` found.
            std: The std at which the prior starts.
            normalised: Number of examples for a network with BatchNorm that learns classes, 0 for others.

        Returns:
            The value of γ.
        """
        if strength is None:
            follows_n = normalised and self.held != "gamma_max"
            return min(self.gamma_max, self.normalised_gamma_n / normalised) if follows_n else self.gamma_max
        gamma = strength.gamma_variance / (std * std)
        return min(self.gamma_max, gamma) if strength.classes else gamma

    def rate(self, std: float, posterior: Posterior, loss: Loss, batch: Any) -> float:
        """Choose the learning rate of the means.

        Args:
            std: The std at which the prior starts.
            posterior: The posterior at its start.
            loss: The loss that is trained.
            batch: One batch of the data.

        Returns:
            The rate at the beginning of training.
        """
        if self.lr is not None:
            return self.lr
        sizes = [float(p.detach().abs().mean()) for p in posterior.means() if p.ndim > 1]
        relative = [1 / size for size in sizes if size > 0]  # change of each matrix for a unit step in all weights
        if relative and normalised_classes(posterior.model, loss, batch):
            return self.normalised_change / math.hypot(*relative)
        return min(self.step_in_stds * std, self.largest_change / sum(relative) if relative else math.inf)

    def start_std(self, posterior: Posterior, bound: Unbounded) -> float:
        """Choose the std at which prior and posterior start.

        Args:
            posterior: The posterior at its start.
            bound: The bound for unbounded losses.

        Returns:
            The standard deviation.
        """
        if self.start == "knee":
            at = knee(bound.at_start().numpy(), self.knee)
            found = float(np.exp(bound.moment.log_stds[at]))
        else:
            scale = mean_abs(posterior.prior_mean)
            found = math.sqrt(scale) if self.start == "mean_abs_variance" else scale
        return max(found, self.min_prior_std)


def normalised_classes(model: nn.Module, loss: Loss, batch: Any) -> bool:
    """True if classes are learned by a network with BatchNorm."""
    return loss.names_classes(batch) and trains_batch_norm(model)

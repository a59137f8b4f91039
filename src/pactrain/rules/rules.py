"""The no-tuning rules as one record.  `presets.py` has the records by name; what they decide at the start is in `start_values.py`."""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

from pactrain.bounds.moment import Average, Moment
from pactrain.bounds.unbounded import At, Mode, Unbounded
from pactrain.rules import constants

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
        units: Train tables with columns or targets far from the size of one in units of their own (`choose_units.py`).
        draws: Networks that the scan draws at each std.
        std_points: Stds that are scanned.
        gamma_points: Values of γ at which the moment is taken.
        scan_examples: Most examples that the scan measures; None for no such limit.
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
        curvature_memory: Part of the running mean of the curvature that each step keeps.
        first_curvature: Start of that running mean, in units of the prior's own precision.
        means: "adam" or "natural" steps of the means.
        warmup_epochs: Epochs in which the log-stds of a group move as one number.
        warmup_weights: Fewest weights of a network for which `warmup_epochs` applies.
        min_prior_std: Smallest std of the prior (the paper's clipping of λ).
        lr: Learning rate of the means; None follows the rule.
        std_lr: Learning rate of the log-stds where they are trained by gradients.
        decay: Let the rates fall to zero.
        batch_size: Examples in a batch.
        large_batch_size: Examples in a batch of large data (`constants.LARGE_N`).
        min_steps: Fewest steps of stage 1.
        min_epochs: Fewest epochs of stage 1.
        fixed_epochs: Epochs of stage 1; None follows the rule.
        enter_stage2: The paper's second stage, which minimises the loss alone, is entered if the risk is above this share of the
            untrained network's loss.
        stage2_patience: Epochs in which the loss has to fall by a hundredth.
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
    scan_examples: int | None = None
    average: Average = "mfold"
    mode: Mode = "cgf"
    at: At = "max"
    gamma_min: float = 0.5
    gamma_max: float = constants.LARGEST_GAMMA
    nats: Literal["ln(1/delta)", "10+3k"] = "ln(1/delta)"
    bbb_penalty: float = 1.0
    stds: Literal["curvature", "gradient"] = "curvature"
    held: Literal["walk", "left out", "gamma_max"] = "walk"
    curvature_memory: float = constants.CURVATURE_MEMORY
    first_curvature: float = 1.0
    means: Literal["adam", "natural"] = "adam"
    warmup_epochs: int = 0
    warmup_weights: int = 1_000_000
    min_prior_std: float = 0.0
    lr: float | None = None
    std_lr: float = 3e-3
    decay: bool = True
    batch_size: int = constants.BATCH_SIZE
    large_batch_size: int = 2 * constants.BATCH_SIZE
    min_steps: int = constants.MIN_STEPS
    min_epochs: int = constants.MIN_EPOCHS
    fixed_epochs: int | None = None
    enter_stage2: float = 0.05
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
        return min(n, self.large_batch_size if n >= constants.LARGE_N else self.batch_size)

    def examples_to_scan(self, n: int, steps_per_epoch: int) -> int:
        """Choose how much the scan measures, such that it stays below its share of training.

        Args:
            n: Number of training examples.
            steps_per_epoch: Training steps in an epoch; a step counts as three forward passes.

        Returns:
            Number of examples.
        """
        passes = 3 * self.stage1_epochs(steps_per_epoch) * constants.SCAN_SHARE
        wanted = max(FEWEST_SCANNED, int(passes * n / (self.draws * self.std_points)))
        return min(n, wanted, self.scan_examples or n)

    def stage1_epochs(self, steps_per_epoch: int) -> int:
        """Choose the length of stage 1: enough steps for small data, enough passes for large.

        Args:
            steps_per_epoch: Training steps in an epoch.

        Returns:
            Number of epochs.
        """
        if self.fixed_epochs is not None:
            return self.fixed_epochs
        steps = constants.FULL_BATCH_STEPS if steps_per_epoch == 1 else self.min_steps
        return max(self.min_epochs, math.ceil(steps / steps_per_epoch))

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
        nats = 10.0 + 3.0 * groups if self.nats == "10+3k" else math.log(1 / delta)
        between = {"gamma_min": self.gamma_min, "gamma_max": self.gamma_max, "nats": nats}
        return Unbounded(n, delta, moment=moment, mode=self.mode, average=self.average, at=self.at, **between)

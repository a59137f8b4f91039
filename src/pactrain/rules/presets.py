"""The no-tuning rules as one record, `AUTO`, and the presets of the paper beside it.

The numbers of `AUTO` stand in `numbers.py`.  Any field may be changed: `fit(..., preset=AUTO.replace(gamma_max=500))`.
"""

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
from pactrain.rules import numbers
from pactrain.rules.gamma.linear_leave_one_out import linearise
from pactrain.runtime.errors import PactrainError

FEWEST_SCANNED = 64
"""Examples of which the scan takes no fewer, however little time there is."""


@dataclass(frozen=True)
class Strength:
    """How far the data may move the weights, as the linear network sees it.

    Attributes:
        gamma_variance: γ times the prior's variance.
        classes: True for classification.
        left_out: Loss of left-out examples there.
    """

    gamma_variance: float
    classes: bool
    left_out: float


@dataclass(frozen=True)
class Rules:
    """How a run is set up and how it proceeds.

    Attributes:
        name: Of the preset.
        start: Where prior and posterior have their first std.  "knee": the largest std at which the bound of the untrained network is within `knee` of its smallest
            value.  "mean_abs_std", "mean_abs_variance": the mean size of a weight as the std (the authors' code) or the variance (the paper's text).
        strengthen: Rescale the layers of networks through whose initial weights hardly anything passes (`initial_scale.py`).
        units: Train tables with columns or targets far from the size of one in units of their own (`units.py`).
        draws, std_points, gamma_points, scan_examples, scan_share: Size of the scan.
        average: The exponential moment: "mfold", which the proof needs, or "mean", which the paper prints.
        mode, at, nats: Form of the bound; at which prior std a layerwise prior's moment is taken; what stands for ln(1/δ).
        gamma_min, gamma_max: Range of γ in the stated bound.
        bbb_penalty: Weight of the divergence in the objective "bbb".
        stds: "curvature": closed-form stds, with γ held while training.  "gradient": Adam on log-stds with the greedy γ, as in the paper.
        held: The γ that is held.  "left out": by leave-one-out of the linear network.  "walk": that, and then a search.  "gamma_max": the largest.
        class_gain, class_share, normalised_gamma_n: Of the first γ in classification.
        curvature_memory, first_curvature: Of the closed-form stds.
        means: "adam" or "natural" steps of the means.
        warmup_epochs, warmup_weights: Epochs in which the log-stds of a group move as one number, for networks of at least so many weights.
        min_prior_std: Smallest std of the prior (the paper's clipping of λ).
        step_in_stds, largest_change, normalised_change, lr, std_lr, decay: Rates; `lr` overrides the rule.
        batch_size, large_batch_size, large_n, min_steps, full_batch_steps, min_epochs, fixed_epochs: Batches and epochs.
        enter_stage2, stage2_gain, stage2_patience, stage2_share: The paper's second stage, which minimises the loss alone: entered if the risk is above this share of
            the untrained network's loss; ended if the best loss has not fallen by `stage2_gain` in `stage2_patience` epochs, or after a share of stage 1.
    """

    name: str
    start: Literal["knee", "mean_abs_std", "mean_abs_variance"]
    knee: float = numbers.KNEE
    strengthen: bool = True
    units: bool = True
    draws: int = numbers.DRAWS
    std_points: int = numbers.STD_POINTS
    gamma_points: int = 40
    scan_examples: int = numbers.SCAN_EXAMPLES
    scan_share: float = numbers.SCAN_SHARE
    average: Average = "mfold"
    mode: Mode = "cgf"
    at: At = "max"
    gamma_min: float = 0.5
    gamma_max: float = numbers.LARGEST_GAMMA
    nats: Literal["ln(1/delta)", "10+3k"] = "ln(1/delta)"
    bbb_penalty: float = 1.0
    stds: Literal["curvature", "gradient"] = "curvature"
    held: Literal["walk", "left out", "gamma_max"] = "walk"
    class_gain: float = numbers.CLASS_GAIN
    class_share: float = numbers.CLASS_SHARE
    normalised_gamma_n: float = 1 / numbers.NORMALISED_KL_WEIGHT
    curvature_memory: float = numbers.CURVATURE_MEMORY
    first_curvature: float = numbers.FIRST_CURVATURE
    means: Literal["adam", "natural"] = "adam"
    warmup_epochs: int = 0
    warmup_weights: int = 1_000_000
    min_prior_std: float = 0.0
    step_in_stds: float = numbers.STEP_IN_STDS
    largest_change: float = numbers.LARGEST_CHANGE
    normalised_change: float = numbers.NORMALISED_CHANGE
    lr: float | None = None
    std_lr: float = 3e-3
    decay: bool = True
    batch_size: int = numbers.BATCH_SIZE
    large_batch_size: int = numbers.LARGE_BATCH_SIZE
    large_n: int = numbers.LARGE_N
    min_steps: int = numbers.MIN_STEPS
    full_batch_steps: int = numbers.FULL_BATCH_STEPS
    min_epochs: int = numbers.MIN_EPOCHS
    fixed_epochs: int | None = None
    enter_stage2: float = 0.05
    stage2_gain: float = 0.01
    stage2_patience: int = 20
    stage2_share: float = 0.5

    def replace(self, **changes: Any) -> "Rules":
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    # -- what the rules decide -------------------------------------------------------------------------------------

    def batch(self, n: int) -> int:
        """Examples in a batch."""
        return min(n, self.large_batch_size if n >= self.large_n else self.batch_size)

    def examples_to_scan(self, n: int, steps_per_epoch: int) -> int:
        """As many as keep the scan below its share of training, a step counting as three forward passes."""
        passes = 3 * self.stage1_epochs(steps_per_epoch) * self.scan_share
        return min(n, self.scan_examples, max(FEWEST_SCANNED, int(passes * n / (self.draws * self.std_points))))

    def stage1_epochs(self, steps_per_epoch: int) -> int:
        """Epochs of stage 1: enough steps for small data, enough passes for large."""
        if self.fixed_epochs is not None:
            return self.fixed_epochs
        steps = self.full_batch_steps if steps_per_epoch == 1 else self.min_steps
        return max(self.min_epochs, math.ceil(steps / steps_per_epoch))

    def stage2_epochs(self, stage1_epochs: int) -> int:
        """The most epochs stage 2 may take."""
        return math.ceil(self.stage2_share * stage1_epochs)

    def confidence_nats(self, delta: float, groups: int) -> float:
        """What stands for ln(1/δ) in the objective."""
        return 10.0 + 3.0 * groups if self.nats == "10+3k" else math.log(1 / delta)

    def bound(self, n: int, delta: float, moment: Moment, groups: int) -> Unbounded:
        """The bound for unbounded losses as these rules use it."""
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

    def strength(self, posterior: Posterior, batches: Batches, loss: Loss, seed: int) -> "Strength | None":
        """How far the data may move the weights, from the linear network; None where γ does not follow from it."""
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

    def held_gamma(self, strength: "Strength | None", std: float, *, normalised: int = 0) -> float:
        """The γ at which stage 1 is held while stds have closed forms; `normalised` is n for a network with BatchNorm that learns classes."""
        if strength is None:
            follows_n = normalised and self.held != "gamma_max"
            return min(self.gamma_max, self.normalised_gamma_n / normalised) if follows_n else self.gamma_max
        gamma = strength.gamma_variance / (std * std)
        return min(self.gamma_max, gamma) if strength.classes else gamma

    def rate(self, std: float, posterior: Posterior, loss: Loss, batch: Any) -> float:
        """The learning rate of the means, with a prior that starts at `std` around the initial weights."""
        if self.lr is not None:
            return self.lr
        sizes = [float(p.detach().abs().mean()) for p in posterior.means() if p.ndim > 1]
        relative = [1 / size for size in sizes if size > 0]  # change of each matrix for a unit step in all weights
        if relative and normalised_classes(posterior.model, loss, batch):
            return self.normalised_change / math.hypot(*relative)
        return min(self.step_in_stds * std, self.largest_change / sum(relative) if relative else math.inf)

    def start_std(self, posterior: Posterior, bound: Unbounded) -> float:
        """The std at which prior and posterior start."""
        if self.start == "knee":
            at_start = bound.at_start().numpy()
            good = np.flatnonzero(at_start <= at_start.min() + self.knee * abs(at_start.min()))
            found = float(np.exp(bound.moment.log_stds[good.max()]))
        else:
            scale = mean_abs(posterior.prior_mean)
            found = math.sqrt(scale) if self.start == "mean_abs_variance" else scale
        return max(found, self.min_prior_std)


AUTO = Rules(name="auto", start="knee", stage2_share=0.0)

PAPER = Rules(
    name="paper",
    start="mean_abs_variance",
    strengthen=False,
    units=False,
    average="mean",
    gamma_points=10,
    mode="paper",
    gamma_max=10.0,
    stds="gradient",
    lr=1e-3,
    std_lr=1e-3,
    decay=False,
    batch_size=128,
    warmup_epochs=50,
    fixed_epochs=500,
    enter_stage2=0.0,
    stage2_share=0.4,
)

AUTHORS = PAPER.replace(name="authors", start="mean_abs_std", std_points=8, at="mean", nats="10+3k")

CERTIFY = AUTO.replace(
    name="certify",
    held="gamma_max",
    knee=0.1,
    curvature_memory=0.999,
    first_curvature=0.01,
    means="natural",
    lr=0.1,
    large_batch_size=256,
    min_epochs=40,
)
"""What `auto` becomes when a bound for losses in [0, 1] is asked for: the user wants its value to be small, so every nat
counts.  The posterior starts at the prior (as much information from the data as AUTO assumes at first would cost a tenth
of a nat a weight) and at a wider one, as the prior was seen to grow from a narrow start for the whole run; the means take
natural steps, because Adam's wandering is charged; no second stage undoes what was gained.  The divergence's weight follows
the bound's own slopes.  These constants, and those of `kl_weight.py`, were picked on one data set, MNIST, with one seed."""


def normalised_classes(model: nn.Module, loss: Loss, batch: Any) -> bool:
    """Does a network with BatchNorm learn classes here?"""
    return loss.names_classes(batch) and trains_batch_norm(model)


PRESETS = {rules.name: rules for rules in (AUTO, PAPER, AUTHORS)}


def rules_for(preset: str | Rules) -> Rules:
    """The rules of a preset by name, or the rules given."""
    if isinstance(preset, Rules):
        return preset
    if preset not in PRESETS:
        raise PactrainError(f"preset {preset!r} is not known; use one of {', '.join(PRESETS)}, or a pactrain.Rules")
    return PRESETS[preset]

"""The no-tuning rules: every constant that steers training stands here once, with its reason.

`AUTO` is ours, `PAPER` is the paper's text, `AUTHORS` is what the paper's authors ran.  Any field may be changed:
`fit(..., preset=AUTO.replace(gamma_max=500))`.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch import nn

from pactrain.bounds.moment import Average, Moment
from pactrain.bounds.unbounded import At, Mode, Unbounded
from pactrain.distributions.posterior import Posterior, mean_abs
from pactrain.problem.batches import Batches
from pactrain.problem.losses import AnyLoss, names_classes
from pactrain.problem.module_modes import trains_batch_norm
from pactrain.problem.scores import chance
from pactrain.rules.gamma.linear_leave_one_out import Linearised, linearise
from pactrain.runtime.errors import PactrainError

FEWEST_SCANNED = 64
"""Examples of which the scan takes no fewer, however little time there is."""


@dataclass(frozen=True)
class Strength:
    """γ times the prior's variance, which the linearised network fixes; and whether it is about classes."""

    gamma_variance: float
    classes: bool
    left_out: float = math.inf  # loss of left-out examples there


@dataclass(frozen=True)
class Rules:
    """How a run is set up and how it proceeds."""

    name: str

    # Where the stds start.  The paper's text reads mean|w0| as a variance, which drowns small networks in noise
    # (10 % accuracy on digits); its authors' code reads it as a std.  The knee is better than either: the largest std
    # at which the bound of the untrained network is still within `knee` of its smallest value.  It costs nothing, the
    # scan has it, and it follows the scale of the features.
    start: Literal["knee", "mean_abs_std", "mean_abs_variance"]
    knee: float = 0.02

    # Where the prior's mean is.  "noise at zero": at zero for the weight matrices of networks that learn classes and are not pre-trained
    # (`centre.py`), which forgets the untrained network's random function and halves the bound of digits.  Only where weights of the initial
    # size would there cost less, in nats an example, than `centre_cost` of the untrained network's loss: the walk in γ may make them
    # thirty times as dear, and a network that cannot afford its weights shrinks (a CNN on 5,000 images of CIFAR-10, at a share of .3: 51 %
    # accuracy, 55 % around its initial weights) or collapses (CNN9 on 2,000, at 6: 10 % and 47 %).
    # For numbers γ comes from moves away from the initial weights, and the prior stays there (diabetes: rmse 55.1, and 57.2 around zero).
    centre: Literal["initial", "noise at zero"] = "noise at zero"
    centre_cost: float = 0.1
    centre_draws: int = 3  # of the second scan, around zero: the certificate measures ψ anew anyway

    # Networks through whose initial weights hardly anything passes are made stronger first (`faint.py`): otherwise neither the scan
    # nor the linearised network can tell anything, and training would have to leave the prior before it could learn.
    strengthen: bool = True

    # Tables with columns or targets far from the size of one are trained in units of their own, which the weights take over (`units.py`).
    units: bool = True

    # The scan.  Ten draws as in the paper.  `mfold` is the moment that the proof needs, `mean` the one the paper prints.  It
    # takes as many examples as keep it below `scan_share` of the cost of training.
    draws: int = 10
    std_points: int = 15
    gamma_points: int = 40
    scan_examples: int = 4096
    scan_share: float = 0.1
    average: Average = "mfold"

    # The bound.  γ1 is the paper's; γ2 is how far the γ of the stated bound may go, not the γ that is trained with.
    mode: Mode = "cgf"
    at: At = "max"
    gamma_min: float = 0.5
    gamma_max: float = 2000.0
    nats: Literal["ln(1/delta)", "10+3k"] = "ln(1/delta)"
    bbb_penalty: float = 1.0  # weight of the divergence in the objective "bbb"; other papers search it

    # Standard deviations: "curvature" sets them in closed form from a moving average of the curvature, with γ held while
    # training and chosen at the end; "gradient" is the paper's way, Adam on log-stds with the greedy γ.
    # The gradient of a log-std is mostly noise, which is why the paper needs 500 epochs.
    #
    # The γ that is held decides how far the data may move the weights, and no one value suits all data (rmse in units of the
    # target's deviation, diabetes: .67 at γ = 30, .87 at 3000; concrete: .52 at 30, .30 at 3000).  "left out" takes it from leave-one-out of the linearised
    # network (`linearised.py`).  For numbers: the least gain within a standard error of the best.  For classes the squared
    # residuals of that argument overstate what a closer fit is worth, as the class is right long before the loss is zero: so
    # `class_gain`, where an example's own pull equals the prior's, or `class_signal` of what ridge regression would want, the ratio of
    # signal to noise, where labels can be told so well that this is more (digits, iris, wine: 3 to 5); and more only if less than
    # `class_share` of the fall in loss would be had (networks whose initial kernel hardly tells examples apart, such as a GCN on
    # row-normalised features), up to `gamma_max`.
    # "walk" begins there and, for classes, goes down from it where the trained network is too sure of left-out examples (up where hardly
    # anything was fitted), to where their loss is clearly lower and no more are wrong (`gamma_walk.py`): with 30 % of the labels of digits at
    # random, 95 % against 79 %.  For numbers it is one step at most (Carseats: rmse 1.15 against 1.20).
    # Networks with BatchNorm that learn classes have γ n = `normalised_gamma_n`, so that the divergence has the same weight however many examples there
    # are: their output does not depend on the size of the weights in front of it, so that a distance from the initial weights says little, and deep ones have
    # gradients so large at first that a gain of 1 hardly lets them learn (VGG13 at width 1/8 on 2,000 images of CIFAR-10: γ = 4 and 37 % accuracy, 48 %
    # at 2000, 43 % with plain Adam); left out, they would do worse than chance.  What the weight does is to keep the noise up: a small CNN on 5,000
    # images has 62.6 % at γ = 10, 65.1 at 60 and 60.2 at 2000, on 20,000 74.4 at 12.5 and 71.3 at 60, a perceptron on 898 digits 97.3 at 60, 98.2 at 200 and 98.3 at 2000.
    stds: Literal["curvature", "gradient"] = "curvature"
    held: Literal["walk", "left out", "gamma_max"] = "walk"
    class_gain: float = 1.0
    class_signal: float = 1 / 3
    class_share: float = 0.8
    normalised_gamma_n: float = 250_000.0
    curvature_memory: float = 0.99
    first_curvature: float = 1.0
    means: Literal["adam", "natural"] = "adam"

    # For the first `warmup_epochs` of networks with at least `warmup_weights` weights (the paper warms up its large ones only)
    # the log-stds of a group move as one number, where they are trained by gradients.  No prior std falls below `min_prior_std`, the
    # paper's clipping of λ (it took 5e-3 for CNN13 and CNN15, .1 for graphs, and does not say whether a variance or a std).
    warmup_epochs: int = 0
    warmup_weights: int = 1_000_000
    min_prior_std: float = 0.0

    # Steps.  Adam moves a weight by about its rate, so the rate is given in stds of the prior at the start, which follow the
    # scale of the network and of its inputs.  It falls to zero within stage 1 because wandering means are charged in the KL.
    # Through a chain of layers the relative changes of all of them add up: no step may change the output by more than `largest_change`
    # of itself, to first order.  Few layers never get there; the limit is .0010 for CNN13 and .0007 for ResNet18.
    # BatchNorm keeps the layers apart: each is turned, none makes the others larger, so that changes of many layers add up like random
    # directions; and the std at which a deep network with it drowns at first says little about steps.  There a step changes the output by
    # `normalised_change` of itself (classes only; ResNet18 at width 1/8 on 3,000 images of CIFAR-10: .004, 51 % accuracy, and 49 at .002).
    step_in_stds: float = 0.2
    largest_change: float = 1.0
    normalised_change: float = 0.5
    lr: float | None = None
    std_lr: float = 3e-3
    decay: bool = True
    batch_size: int = 64
    large_batch_size: int = 128
    large_n: int = 10_000
    min_steps: int = 3000
    full_batch_steps: int = 500
    min_epochs: int = 30
    fixed_epochs: int | None = None

    # `auto` has no stage 2: with γ chosen by the data there is nothing left for it to do (diabetes: rmse 54.5, and 68.9 with it).
    # In the other presets stage 2 minimises the loss alone, at the noise that stage 1 learned.  It is entered when the risk under noise
    # is still above `enter_stage2` of the loss of the untrained network, for then the network has not been fitted;
    # once it has, more of it was seen to hurt (DBLP: 82.6 % to 78.7 %).  It ends when the best loss of an epoch has
    # not fallen by `stage2_gain` in `stage2_patience` epochs, or after `stage2_share` of the epochs of stage 1.
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

    def strength(self, model: nn.Module, batches: Batches, loss: AnyLoss, seed: int) -> "Strength | None":
        """How far the data may move the weights, from the linearised network; None where γ does not follow from it."""
        if self.stds != "curvature" or self.held == "gamma_max":
            return None
        classes = names_classes(loss, next(iter(batches.ordered())))
        if classes and trains_batch_norm(model):
            return None
        found = linearise(model, batches, loss, seed)
        if found is None:
            return None
        gain = self.gain_for_classes(found, chance(batches, loss)) if classes else found.best_gain()
        return Strength(found.gamma(gain, 1.0), classes, found.loss_at(gain))

    def gain_for_classes(self, found: Linearised, chance: float = math.inf) -> float:
        """The first guess, where an answer that does not look at the inputs has a loss of `chance`."""
        least = max(self.class_gain, self.class_signal * found.signal(self.class_gain, chance))
        return found.least_gain(self.class_share, least)

    def held_gamma(self, strength: "Strength | None", std: float, *, normalised: int = 0) -> float:
        """The γ at which stage 1 is held while stds have closed forms; `normalised` is n for a network with BatchNorm that learns classes."""
        if strength is None:
            follows_n = normalised and self.held != "gamma_max"
            return min(self.gamma_max, self.normalised_gamma_n / normalised) if follows_n else self.gamma_max
        gamma = strength.gamma_variance / (std * std)
        return min(self.gamma_max, gamma) if strength.classes else gamma

    def rate(self, std: float, posterior: Posterior, loss: AnyLoss, batch: Any) -> float:
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
    centre="initial",
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
    centre="initial",
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


def normalised_classes(model: nn.Module, loss: AnyLoss, batch: Any) -> bool:
    """Does a network with BatchNorm learn classes here?"""
    return names_classes(loss, batch) and trains_batch_norm(model)


PRESETS = {rules.name: rules for rules in (AUTO, PAPER, AUTHORS)}


def rules_for(preset: str | Rules) -> Rules:
    """The rules of a preset by name, or the rules given."""
    if isinstance(preset, Rules):
        return preset
    if preset not in PRESETS:
        raise PactrainError(f"preset {preset!r} is not known; use one of {', '.join(PRESETS)}, or a pactrain.Rules")
    return PRESETS[preset]

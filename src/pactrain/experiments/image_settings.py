"""The settings of one training on images, by `fit` or by plain training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pactrain.baselines.plain_training import Settings
from pactrain.bounds.by_name import BOUNDED
from pactrain.rules.presets import CERTIFY, rules_for
from pactrain.rules.rules import Rules

Looks = Literal["", "curves", "predictors"]


@dataclass(frozen=True, kw_only=True)
class ImageTask:
    """What is learned from which images.

    Attributes:
        seed: Draws the training images, the initial weights and the batches.
        network: The network, by name.
        data: "cifar10" or "cifar100".
        images: Number of training images.
        test_images: Number of test images.
        batch_size: Images per step; None for the usual number.
        augment: True to flip and crop.
        looks: "curves" keeps the history, "predictors" measures draws of the network too.
        precision: "bf16" trains under bfloat16 autocast.
    """

    seed: int
    network: str
    data: str
    images: int
    test_images: int
    batch_size: int | None = None
    augment: bool = False
    looks: Looks = ""
    precision: str | None = None


@dataclass(frozen=True, kw_only=True)
class PacBayes(ImageTask):
    """Training by `fit`: `epochs` of the bound and `stage2` of the loss alone.

    Attributes:
        epochs: Epochs of stage 1, None for as many as the rules say; with a `stage2_share` in `rules`, those of both stages.
        stage2: Epochs of stage 2.
        lr: Learning rate; None for the rules' own.
        preset, bound, prior: As in `fit`.
        prior_data: Part of the images on which the prior is trained first, for as many epochs.
        momentum: Takes torch's SGD with the rate of the rules instead of Adam.
        counts: The paper's heuristic of counting augmented copies.
        rules: What else to change in the preset.
        budget: The most that training may take, as in `fit`; the rules stay as they are.
    """

    epochs: int | None
    stage2: int = 0
    lr: float | None = None
    preset: str = "auto"
    bound: str = "auto"
    prior: str = "layer"
    prior_data: float = 0.0
    momentum: float | None = None
    counts: int = 1
    rules: Mapping[str, Any] | None = None
    budget: str | None = None

    def stages(self) -> tuple[int | None, int]:
        """Epochs of the two stages."""
        share = (self.rules or {}).get("stage2_share", 0.0)
        if not share or self.epochs is None:
            return self.epochs, self.stage2
        stage2 = round(self.epochs * share / (1 + share))
        return self.epochs - stage2, stage2

    def chosen_rules(self) -> Rules:
        """The preset with all changes."""
        start = CERTIFY if self.bound in BOUNDED and self.preset == "auto" else rules_for(self.preset)
        changes = dict(self.rules or {}) | ({} if self.lr is None else {"lr": self.lr})
        if self.batch_size is not None:
            changes |= {"batch_size": self.batch_size, "large_batch_size": self.batch_size}
        epochs, stage2 = self.stages()
        if epochs is not None:
            changes |= {"fixed_epochs": epochs, "stage2_share": stage2 / epochs}
        return start.replace(**changes)


@dataclass(frozen=True, kw_only=True)
class Plain(ImageTask):
    """Plain training.

    Attributes:
        epochs: The most epochs.
        optimizer, lr, momentum, weight_decay, noise, dropout, schedule: As in `baselines.plain_training.Settings`.
        held_out: True to let a fifth of the images judge it once per epoch.
        stop_at: Ends it after so many steps.
    """

    epochs: int
    optimizer: Literal["sgd", "adam", "adamw"]
    lr: float = 1e-3
    momentum: float = 0.0
    weight_decay: float = 0.0
    noise: float = 0.0
    dropout: float | None = None
    schedule: Literal["constant", "cosine"] = "constant"
    held_out: bool = False
    stop_at: int | None = None

    def settings(self) -> Settings:
        """What plain training takes of it."""
        names = ("optimizer", "lr", "momentum", "weight_decay", "noise", "dropout", "schedule", "batch_size", "epochs")
        return Settings(**{name: getattr(self, name) for name in names})

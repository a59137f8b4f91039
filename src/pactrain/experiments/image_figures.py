"""The paper's figures on images, each declared for two scales: the curves that are drawn, and the scan of K."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pactrain.experiments.image_scales import Scale, Settings, common, of_methods, two_stages
from pactrain.experiments.k_scan import Ks, Scan, put_together
from pactrain.experiments.table_cells import CarryOut
from pactrain.experiments.tables import Table, metrics_of
from pactrain.runtime.errors import PactrainError

Metrics = dict[str, Any]


@dataclass(frozen=True)
class Curves:
    """Trainings whose history is kept, by name, and which of them share a panel."""

    title: str
    curves: Mapping[str, Settings]
    panels: Mapping[str, tuple[str, ...]]
    common: Settings
    methods: Mapping[str, Settings]
    overrides: Settings = field(default_factory=dict)

    def changed(self, overrides: Settings) -> "Curves":
        """A copy with other settings for all curves."""
        return replace(self, overrides={**self.overrides, **overrides})

    def table(self) -> Table:
        """The trainings as a table of one column."""
        common = self.common | {"looks": "curves"}
        return Table(self.title, self.curves, {"": {}}, common, self.methods, overrides=self.overrides)


def figure_k(scale: Scale) -> Scan:
    """K against γ1 and the prior's std, beside the constants of the sub-Gaussian and the CGF bound, or the upper bound of the paper's lemma."""
    return Scan("cnn9", "cifar10", images=50_000 if scale == "paper" else 400, draws=10)


def figure_bounds_training(scale: Scale) -> Curves:
    """CNN9: stage 1 with our bound, the sub-Gaussian and the CGF bound."""
    stage1 = two_stages(scale, 20, stage2=0)
    names = {
        "ours": stage1,
        "sub-Gaussian": {"bound": "subgaussian", **stage1},
        "CGF": {"bound": "cgf_rodriguez", **stage1},
        "ours, defaults": {},
    }
    return Curves(
        "Test accuracy while bounds are minimised, CNN9",
        names,
        {"": tuple(names)},
        common(scale, images=3000, epochs=20, batch_size=250) | {"network": "cnn9"},
        of_methods(scale),
    )


def figure_gap(scale: Scale) -> Curves:
    """ResNet18: test against training accuracy while it is trained, by PAC-Bayes and by plain training."""
    sgd = {"method": "plain", "optimizer": "sgd", "momentum": 0.9, "weight_decay": 5e-4}
    adam = {"method": "plain", "optimizer": "adam", "schedule": "constant"}
    batch = 2048 if scale == "paper" else 128
    ours: dict[str, Settings] = {
        "PAC-Bayes, defaults": {},
        "PAC-Bayes, rate 3e-4": {"lr": 3e-4},
        "PAC-Bayes, rate 3e-3": {"lr": 3e-3},
        f"PAC-Bayes, batches of {batch}": {"batch_size": batch},
        "PAC-Bayes, authors": two_stages(scale, 16),
    }
    theirs: dict[str, Settings] = {
        "SGD 0.1": sgd | {"lr": 0.1},
        "SGD 0.01": sgd | {"lr": 0.01},
        "Adam 1e-3": adam | {"lr": 1e-3},
        "Adam 1e-4": adam | {"lr": 1e-4},
    }
    return Curves(
        "Test against training accuracy, ResNet18",
        ours | theirs,
        {
            "PAC-Bayes and ERM": ("PAC-Bayes, defaults", "PAC-Bayes, authors", *theirs),
            "PAC-Bayes": tuple(ours),
            "ERM": tuple(theirs),
        },
        common(scale, images=3000, epochs=16) | {"network": "resnet18"},
        of_methods(scale),
    )


def figure_details(scale: Scale) -> Curves:
    """ResNet18 and VGG13 as the paper's authors trained them: stds by layer and over training, K, scores."""
    names = ("resnet18", "vgg13")
    return Curves(
        "Training details",
        {name: {"network": name} for name in names},
        {name: (name,) for name in names},
        common(scale, images=3000, epochs=16) | two_stages(scale, 16),
        {},
    )


FIGURES: dict[str, Callable[[Scale], Curves | Scan]] = {
    "figure-k": figure_k,
    "figure-k-upper": figure_k,
    "figure-bounds-training": figure_bounds_training,
    "figure-gap": figure_gap,
    "figure-details": figure_details,
}


def carry_out_curves(figure: Curves, carry_out: CarryOut, *, seeds: int) -> dict[str, list[Metrics]]:
    """The metrics of every curve, one per seed."""
    return {name: found for (name, _), found in metrics_of(figure.table(), carry_out, seeds=seeds).items()}


def carry_out_scan(scan: Scan, carry_out: CarryOut) -> Ks:
    """Scan all stds and put them together."""
    rows = carry_out(scan.plan())
    errors = [row.error for row in rows if row.metrics is None]
    if errors:
        raise PactrainError(f"the scan of a std failed; the next call tries it again:\n{errors[0]}")
    return put_together([row.metrics for row in rows if row.metrics is not None])

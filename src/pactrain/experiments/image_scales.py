"""Settings that the paper's tables and figures on images share, for two scales.

paper: its sizes, all 50,000 images and full-width networks; plain training takes 200 epochs, a number the paper does not give.
cpu:   a part of CIFAR-10 and networks an eighth as wide, sizes that take well under 90 minutes on two cores with three seeds.
       The paper's method has fewer epochs there and a rate of 1e-3, as 1e-4 would not get anywhere in them.
"""

from collections.abc import Sequence
from typing import Any, Literal

Scale = Literal["cpu", "paper"]
Settings = dict[str, Any]

AUTHORS: Settings = {"preset": "authors"}
PLAIN_EPOCHS, STAGE1, STAGE2 = 200, 500, 200
OPTIMIZERS = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw"}

GRIDS: dict[Scale, dict[str, Settings]] = {
    "paper": {
        "SGD": {
            "momentum": (0.3, 0.6, 0.9),
            "lr": (1e-3, 1e-2, 1e-1, 2e-1),
            "weight_decay": (1e-4, 1e-3, 1e-2),
            "noise": (0.0, 5e-4, 1e-3, 1e-2),
        },
        "Adam": {"lr": (1e-3, 1e-2), "weight_decay": (1e-4, 1e-3, 1e-2), "noise": (0.0, 5e-4, 1e-3, 1e-2)},
        "AdamW": {"lr": (1e-3, 1e-2), "weight_decay": (1e-4, 1e-3, 1e-2), "noise": (0.0, 5e-4, 1e-3, 1e-2)},
    },
    "cpu": {
        "SGD": {"momentum": (0.9,), "lr": (3e-2, 1e-1), "weight_decay": (5e-4, 5e-3)},
        "Adam": {"lr": (1e-3, 5e-3), "weight_decay": (1e-4, 1e-3)},
        "AdamW": {"lr": (1e-3, 5e-3), "weight_decay": (1e-2, 1e-1)},
    },
}
"""paper: the ends of its ranges and points between, as it does not give its grids.  cpu: four settings an optimiser."""


def common(scale: Scale, *, images: int, epochs: int, batch_size: int = 128) -> Settings:
    """What all cells share; images and epochs are those of the cpu scale, batch_size that of the paper's."""
    if scale == "paper":
        return {"data": "cifar10", "images": 50_000, "test_images": 10_000, "batch_size": batch_size}
    sizes = {"images": images, "test_images": 5000, "epochs": epochs, "batch_size": 32}
    return {"data": "cifar10", "width": 0.125} | sizes


def of_methods(scale: Scale) -> dict[str, Settings]:
    """What all cells of a method share: at the paper's scale our defaults take as many epochs as they always do."""
    if scale == "paper":
        return {"pac_bayes": {"epochs": None}, "plain": {"epochs": PLAIN_EPOCHS, "schedule": "cosine"}}
    return {"plain": {"schedule": "cosine"}}


def two_stages(scale: Scale, epochs: int, *, stage1: int = STAGE1, stage2: int = STAGE2) -> Settings:
    """The authors' preset with stages of the paper's length, or as large parts of `epochs` at the cpu scale."""
    if scale == "paper":
        return AUTHORS | {"epochs": stage1, "stage2": stage2, "rules": {"lr": 1e-4, "std_lr": 1e-4}}
    return AUTHORS | {"epochs": max(1, round(epochs * stage1 / STAGE1)), "stage2": round(epochs * stage2 / STAGE1)}


def searched(scale: Scale) -> dict[str, Settings]:
    """Plain training with each optimiser, its settings searched for."""
    return {
        name: {"method": "plain", "optimizer": optimizer, "search": GRIDS[scale][name]}
        for name, optimizer in OPTIMIZERS.items()
    }


def with_rates_searched(scale: Scale) -> dict[str, Settings]:
    """Plain training as `searched` has it, but at the cpu scale with the first weight decay only, for tables of many cells."""
    rows = searched(scale)
    if scale == "cpu":
        for row in rows.values():
            row["search"] = row["search"] | {"weight_decay": row["search"]["weight_decay"][:1]}
    return rows


def networks(names: Sequence[str], scale: Scale) -> dict[str, Settings]:
    """A column for each network, at the paper's scale with both sets of images."""
    sets = ("cifar10", "cifar100") if scale == "paper" else ("cifar10",)
    return {f"{name} {data}": {"network": name, "data": data} for name in names for data in sets}


def kept_noise(scale: Scale) -> Settings:
    """Noise that stays where weights hardly move: the paper's largest γ, a start at the mean size of a weight, a prior that is not let
    below about half of that (for full-width networks 5e-3, at which the paper clips λ), a rate that is kept, as the paper's is, and
    its stage 2, in which the loss alone is minimised at the noise that there is then."""
    floor = 5e-3 if scale == "paper" else 1.3e-2  # the narrow networks have larger weights
    share = STAGE2 / STAGE1 if scale == "paper" else 1.0  # a fortieth of the paper's steps fits little in stage 1
    rules = {
        "gamma_max": 10.0,
        "start": "mean_abs_std",
        "min_prior_std": floor,
        "first_curvature": 0.01,
        "decay": False,
        "stage2_share": share,
    }
    return {"rules": rules}

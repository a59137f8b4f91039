"""The paper's tables on images, each declared for both scales of `image_scales`.

`layer` and `scalar` are `fit` with its defaults unless a row says otherwise; `authors` marks what the paper's authors ran, with
its two stages, which is also what the bounds of others for unbounded losses are trained with.
"""

from collections.abc import Callable

from pactrain.experiments import paper
from pactrain.experiments.image_scales import (
    STAGE1,
    STAGE2,
    Scale,
    Settings,
    common,
    kept_noise,
    networks,
    of_methods,
    searched,
    two_stages,
    with_rates_searched,
)
from pactrain.experiments.tables import Table


def table_bounds(scale: Scale) -> Table:
    """CNN9, CNN13 and CNN15 trained with our bound and with six others."""
    epochs = 20
    learnt = {"prior_data": 0.5}
    stages = two_stages(scale, epochs)
    return Table(
        "Test accuracy with different PAC-Bayes bounds",
        rows={name: {"network": name} for name in ("cnn9", "cnn13", "cnn15")},
        columns={
            "quad": {"bound": "quad", **learnt},
            "lambda": {"bound": "lambda", **learnt},
            "classic": {"bound": "classic", **learnt},
            "bbb": {"bound": "bbb", **learnt, "rules": {"bbb_penalty": 0.1}},
            "sub-Gaussian": {"bound": "subgaussian", **stages},
            "CGF": {"bound": "cgf_rodriguez", **stages},
            "layer": {},
            "layer, authors": {**stages},
            "quad, random prior": {"bound": "quad"},
            "lambda, random prior": {"bound": "lambda"},
            "classic, random prior": {"bound": "classic"},
            "bbb, random prior": {"bound": "bbb", "rules": {"bbb_penalty": 0.1}},
        },
        common=common(scale, images=3000, epochs=epochs, batch_size=250),
        methods=of_methods(scale),
        paper=paper.BOUNDS,
        notes=(
            "quad, lambda, classic and bbb: cross-entropy clipped to [0, 1]; a prior learnt on half of the images, which the "
            "bound does not count, or the random initial weights.  bbb weighs the divergence by 0.1.",
        ),
    )


def table_cnn(scale: Scale) -> Table:
    """Networks with BatchNorm: PAC-Bayes against SGD, Adam and AdamW searched over a grid."""
    names = ("vgg13", "vgg19", "resnet18", "resnet34", "densenet121") if scale == "paper" else ("vgg13", "resnet18")
    return Table(
        "Test accuracy, PAC-Bayes and searched plain training",
        rows=searched(scale) | {"scalar": {"prior": "model"}, "layer": {}},
        columns=networks(names, scale),
        common=common(scale, images=3000, epochs=16),
        methods=of_methods(scale),
        paper=paper.CNN,
    )


def table_batch_size(scale: Scale) -> Table:
    """PAC-Bayes against searched plain training, with batches sixteen times as large as in `table_cnn`."""
    sizes = (128, 2048) if scale == "paper" else (32, 512)
    sets = ("cifar10", "cifar100") if scale == "paper" else ("cifar10",)
    names = ("vgg13", "resnet18") if scale == "paper" else ("vgg13",)
    return Table(
        "Test accuracy with small and large batches",
        rows=with_rates_searched(scale) | {"scalar": {"prior": "model"}, "layer": {}},
        columns={
            f"{name} {data} {size}": {"network": name, "data": data, "batch_size": size}
            for name in names
            for data in sets
            for size in sizes
        },
        common=common(scale, images=3000, epochs=16),
        methods=of_methods(scale),
        paper=paper.BATCH_SIZE,
    )


LOW_RATE = 1e-4
"""Below it the paper trains for longer, 700 epochs instead of 500; at the cpu scale both methods do."""


def table_learning_rate(scale: Scale) -> Table:
    """PAC-Bayes and Adam at rates from 3e-5 to 1e-3."""
    rates = (3e-5, 5e-5, 1e-4, 2e-4, 3e-4, 5e-4, 1e-3) if scale == "paper" else (3e-5, 1e-4, 3e-4, 1e-3)
    adam = {"method": "plain", "optimizer": "adam", "weight_decay": 5e-4}
    rows: dict[str, Settings] = {}
    both = {"epochs": STAGE1 + STAGE2} if scale == "paper" else {}
    for name in ("resnet18", "vgg13"):
        rows |= {
            f"{name} layer": {"network": name, **kept_noise(scale), **both},
            f"{name} Adam": {"network": name, **adam},
        }
    epochs = 40
    longer = {"epochs": 2 * epochs} if scale == "cpu" else {}
    sizes = common(scale, images=2000, epochs=epochs)
    return Table(
        "Test accuracy at different learning rates",
        rows=rows,
        columns={f"{rate:g}": {"lr": rate} | (longer if rate < LOW_RATE else {}) for rate in rates},
        common=sizes if scale == "paper" else sizes | {"batch_size": 16},
        methods=of_methods(scale),
        paper=paper.LEARNING_RATE,
        spread=True,
        whole=None if scale == "paper" else epochs,
        notes=(
            "layer: γ up to 10, a prior kept wide, the rate kept and both stages, as in the paper; Adam's rate falls, as in the other tables.",
            "At the cpu scale batches of 16, and twice the epochs below 1e-4 for both methods, where the paper gives its own 1.4 times as many.",
        ),
    )


def table_warmup(scale: Scale) -> Table:
    """Epochs in which the stds of a layer move as one, in the authors' preset."""
    epochs = (10, 20, 50, 80, 100, 150) if scale == "paper" else (0, 1, 3, 6)
    sets = ("cifar10", "cifar100") if scale == "paper" else ("cifar10",)
    return Table(
        "Test accuracy of ResNet18 after different epochs of warm-up",
        rows={data: {"data": data} for data in sets},
        columns={f"{n}": {"rules": {"warmup_epochs": n, "warmup_weights": 1}} for n in epochs},
        common=common(scale, images=3000, epochs=16) | {"network": "resnet18"} | two_stages(scale, 16),
        paper=paper.WARMUP if scale == "paper" else {},
        spread=True,
    )


def table_batch_sizes_vgg(scale: Scale) -> Table:
    """VGG13 with batches of five sizes."""
    sizes = (128, 256, 1024, 2048, 2500) if scale == "paper" else (16, 32, 128, 256, 312)
    return Table(
        "Test accuracy of VGG13 with different batch sizes",
        rows={"layer": {}},
        columns={f"{size}": {"batch_size": size} for size in sizes},
        common=common(scale, images=3000, epochs=16) | {"network": "vgg13"},
        methods=of_methods(scale),
        paper=paper.BATCH_SIZES_VGG if scale == "paper" else {},
        spread=True,
    )


def table_momentum(scale: Scale) -> Table:
    """PAC-Bayes with SGD: its momentum and its rate."""
    rates = (1e-4, 3e-4, 1e-3) if scale == "paper" else (1e-2, 3e-2, 1e-1)
    columns = {f"momentum {m}": {"momentum": m, "lr": rates[-1]} for m in (0.3, 0.6, 0.9)}
    columns |= {f"rate {rate:g}": {"momentum": 0.9, "lr": rate} for rate in rates}
    return Table(
        "Test accuracy of ResNet18, PAC-Bayes with SGD",
        rows={"layer": {}},
        columns=columns,
        common=common(scale, images=3000, epochs=16) | {"network": "resnet18"},
        methods=of_methods(scale),
        paper=paper.MOMENTUM if scale == "paper" else {},
        spread=True,
    )


def table_gamma(scale: Scale) -> Table:
    """The range of γ in the authors' preset; our defaults do not train with it."""
    lowest = {f"γ1 {g:g}": {"rules": {"gamma_min": g, "gamma_max": 20.0}} for g in (0.1, 0.5, 1.0)}
    highest = {f"γ2 {g:g}": {"rules": {"gamma_min": 0.1, "gamma_max": g}} for g in (10.0, 15.0, 20.0)}
    return Table(
        "Test accuracy of ResNet18 with different ranges of γ",
        rows={"layer": {}},
        columns=lowest | highest,
        common=common(scale, images=3000, epochs=16) | {"network": "resnet18"} | two_stages(scale, 16),
        paper=paper.GAMMA,
        spread=True,
    )


def table_augmentation(scale: Scale) -> Table:
    """ResNet18 with flips and crops, and without."""
    counted = "layer, copies counted"
    return Table(
        "Test accuracy of ResNet18 with flips and crops",
        rows=with_rates_searched(scale) | {"layer": {}, counted: {"counts": 128}},
        columns={"as they are": {}, "flips and crops": {"augment": True}},
        common=common(scale, images=3000, epochs=16) | {"network": "resnet18"},
        methods=of_methods(scale),
        paper={(counted if row == "layer" else row, column): v for (row, column), v in paper.AUGMENTATION.items()},
        without=frozenset({(counted, "as they are")}),
        notes=(
            "layer: n counts the originals.  Copies counted: the paper's heuristic, every image counts 128 times while training.",
        ),
    )


def table_stages(scale: Scale) -> Table:
    """What each of the paper's two stages is worth, in the authors' preset."""
    names = {"vgg13 cifar10": ("vgg13", "cifar10"), "resnet18 cifar10": ("resnet18", "cifar10")}
    if scale == "paper":
        names["vgg13 cifar100"] = ("vgg13", "cifar100")
    epochs = 20
    whole = STAGE1 + STAGE2 if scale == "paper" else round(epochs * (STAGE1 + STAGE2) / STAGE1)
    ten = {} if scale == "paper" else {"epochs": epochs * 10 / STAGE1}  # rounded up to one when the cell is made
    adam = {"method": "plain", "optimizer": "adam", "lr": 1e-4 if scale == "paper" else 1e-3, "epochs": whole}
    return Table(
        "Test accuracy with and without the two stages",
        rows={
            "no stage 1": adam,
            "ten epochs of stage 1": two_stages(scale, epochs, stage1=10) | ten,
            "no stage 2": two_stages(scale, epochs, stage2=0),
            "both stages": two_stages(scale, epochs),
        },
        columns={key: {"network": network, "data": data} for key, (network, data) in names.items()},
        common=common(scale, images=3000, epochs=epochs),
        paper=paper.STAGES,
        whole=STAGE1 if scale == "paper" else epochs,
        notes=(
            "Without stage 1 neither noise nor decay is known: what is left is Adam.  Ten epochs are a fiftieth of stage 1, "
            "and at least one epoch.",
        ),
    )


def table_predictors(scale: Scale) -> Table:
    """The mean network against one network drawn from the posterior and an ensemble of draws."""
    return Table(
        "Test accuracy of the mean network, of a drawn one, and of the averaged probabilities of draws",
        rows={name: {"network": name} for name in ("cnn9", "vgg13", "vgg13:norm=group", "resnet18")},
        columns={
            "mean": {"score": "test"},
            "randomised": {"score": "randomised"},
            "ensemble": {"score": "ensemble"},
        },
        common=common(scale, images=3000, epochs=16) | {"looks": "predictors"},
        methods=of_methods(scale),
    )


TABLES: dict[str, Callable[[Scale], Table]] = {
    "table-bounds": table_bounds,
    "table-cnn": table_cnn,
    "table-batch-size": table_batch_size,
    "table-learning-rate": table_learning_rate,
    "table-warmup": table_warmup,
    "table-batch-sizes-vgg": table_batch_sizes_vgg,
    "table-momentum": table_momentum,
    "table-gamma": table_gamma,
    "table-augmentation": table_augmentation,
    "table-stages": table_stages,
    "table-predictors": table_predictors,
}

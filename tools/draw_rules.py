"""Draw the figures of docs/rules.md, one per rule: faint networks, the knee, leave-one-out over γ, the search over γ, training.

    python tools/draw_rules.py docs/gallery

Two small runs on the digits of scikit-learn, one of them with 30 % of its training labels drawn at random, and one network that is
linearised on scikit-learn's diabetes data; for faint networks an untrained CNN13 on random images.  Seed 0, about a minute on one core.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from torch import Tensor, nn

import pactrain
from pactrain.models import mlp
from pactrain.models.named import make_model
from pactrain.problem.named_losses import LOSSES
from pactrain.report.canvas import INK, MUTED, SERIES, Drawing, canvas, legend, logarithmic, save
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.presets import AUTO
from pactrain.rules.rules import Rules

Array = NDArray[np.float64]

RANDOM_LABELS = 0.3
ROWS = 221
"""Of the 442 patients, those that the linear network learns from."""


def digits(rules: Rules, random_labels: float = 0.0) -> pactrain.Result:
    """A run on half of the digits."""
    x, y = (torch.as_tensor(part) for part in load_digits(return_X_y=True))
    g = torch.Generator().manual_seed(0)
    order = torch.randperm(len(x), generator=g)
    x, y = (x / 16).float()[order], y[order].clone()
    half = len(x) // 2
    changed = torch.rand(half, generator=g) < random_labels
    y[:half][changed] = torch.randint(0, 10, (int(changed.sum()),), generator=g)
    model = mlp(64, 10, widths=[256, 256], seed=0)
    return pactrain.fit(model, (x[:half], y[:half]), test=(x[half:], y[half:]), preset=rules)


def faint() -> Drawing:
    """How much of a difference between inputs each layer of an untrained CNN13 passes on, before and after it is rescaled."""
    network = make_model("cnn13:width=0.125", 3 * 32 * 32, 10, seed=0)
    images = torch.randn(64, 3 * 32 * 32, generator=torch.Generator().manual_seed(0))
    before = signals(network, images)
    strengthen(network, (images, torch.zeros(64).long()), LOSSES["cross_entropy"], seed=0)
    after = signals(network, images)
    figure, axes = canvas()
    layers = range(1, len(before) + 1)
    axes.plot(layers, before, "-o", color=SERIES[1], markersize=4, label="torch's initial weights")
    axes.plot(layers, after, "-o", color=SERIES[0], markersize=4, label="rescaled")
    logarithmic(axes, before)
    axes.set(xlabel="layer", ylabel="difference between images")
    legend(axes, 2)
    alt = f"The last layer's outputs differ by {before[-1]:.1g} between images, and by {after[-1]:.1g} after rescaling."
    return Drawing("rule-faint", "Faint networks", alt, "", figure)


@torch.no_grad()
def signals(network: nn.Module, images: Tensor) -> list[float]:
    """The standard deviation of each layer's outputs over images."""
    found: list[float] = []
    layers = [layer for layer in network.modules() if isinstance(layer, (nn.Linear, nn.Conv2d))]
    hooks = [
        layer.register_forward_hook(lambda _, __, out: found.append(float(out.flatten(1).std(0).mean())))
        for layer in layers
    ]
    network(images)
    for hook in hooks:
        hook.remove()
    return found


def training(run: pactrain.Result) -> Drawing:
    """The rate of the means and the noise of each layer over a training at one γ, relative to the start."""
    epochs = [record["epoch"] for record in run.history]
    figure, axes = canvas()
    rate = [0.5 * (1 + np.cos(np.pi * epoch / epochs[-1])) for epoch in epochs]
    axes.plot(epochs, rate, color=MUTED, linestyle=(0, (4, 1.5)), label="rate")
    start = next(iter(run.history[0]["prior_std"].values()))
    for place, (name, colour) in enumerate(zip(run.history[0]["posterior_std"], SERIES, strict=False), 1):
        stds = [record["posterior_std"][name] / start for record in run.history]
        axes.plot(epochs, stds, color=colour, label=f"noise, layer {place}")
    axes.set(xlabel="epoch", ylabel="relative to the start", ylim=(0, 1.05), xlim=(0, epochs[-1]))
    legend(axes, 4)
    ends = ", ".join(f"{std / start:.2g}" for std in run.history[-1]["posterior_std"].values())
    return Drawing(
        "rule-training", "Training", f"The noise of the layers ends at {ends} of where it started.", "", figure
    )


def knee(run: pactrain.Result) -> Drawing:
    """The bound of the untrained network over the noise, and where training starts."""
    stds = np.exp(run.moment.log_stds)
    bounds = pactrain.bounds.Unbounded(n=run.moment.n, delta=0.05, moment=run.moment).at_start().numpy()
    limit = bounds.min() + AUTO.knee * abs(bounds.min())
    at = int(np.flatnonzero(bounds <= limit).max())
    figure, axes = canvas()
    axes.plot(stds, bounds, "-o", color=SERIES[0], markersize=3, label="bound of the untrained network")
    axes.axhline(limit, color=MUTED, linestyle=(0, (4, 1.5)), label=f"{AUTO.knee:.0%} above its smallest value")
    axes.plot(stds[at], bounds[at], "o", color=SERIES[1], markersize=9, label="start")
    logarithmic(axes, list(stds), axis="x")
    axes.set(xlabel="standard deviation of the noise", ylabel="bound", ylim=(0.9 * bounds.min(), 3 * limit))
    legend(axes, 2)
    return Drawing("rule-knee", "The knee", f"The start is at a standard deviation of {stds[at]:.3g}.", "", figure)


def gradients(network: nn.Module, x: Tensor) -> tuple[Array, Array]:
    """Outputs of a network and their gradients with respect to all weights, one row per example."""
    weights = dict(network.named_parameters())

    def output(values: dict[str, Tensor], row: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(network, values, (row[None],))[0, 0]
        return found

    jacobian = torch.func.vmap(torch.func.jacrev(output), in_dims=(None, 0))(weights, x)
    flat = torch.cat([part.reshape(len(x), -1) for part in jacobian.values()], 1)
    return network(x)[:, 0].detach().double().numpy(), flat.detach().double().numpy()


def left_out() -> Drawing:
    """The squared error of the linearised network over γ: on the rows it learned from, left out in turn, and on new rows."""
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = (x / x.std(0))[order], ((y - y.mean()) / y.std())[order]
    before, j = gradients(mlp(10, 1, widths=[64], seed=0), torch.as_tensor(x).float())
    s, kernel = (y - before)[:ROWS], j[:ROWS] @ j[:ROWS].T
    gains = np.logspace(-3, 4, 60)  # γ in units in which an example pulls as hard as the prior
    fitted, out, new = [], [], []
    for gain in gains:
        inverse = np.linalg.inv(kernel + kernel.diagonal().mean() / gain * np.eye(ROWS))
        weights = inverse @ s
        fitted.append(np.square(s - kernel @ weights))
        out.append(np.square(weights / inverse.diagonal()))
        new.append(np.square((y - before)[ROWS:] - j[ROWS:] @ (j[:ROWS].T @ weights)))
    means = np.array([part.mean() for part in out])
    best = int(means.argmin())
    errors = np.array([(part - out[best]).std() / ROWS**0.5 for part in out])
    chosen = int(np.flatnonzero(means <= means[best] + errors).min())
    figure, axes = canvas()
    for values, name, colour in ((fitted, "training rows", 0), (out, "left out in turn", 1), (new, "new rows", 2)):
        axes.plot(gains, [part.mean() for part in values], color=SERIES[colour], label=name)
    axes.plot(gains[chosen], means[chosen], "o", color=SERIES[1], markersize=9, label="chosen")
    logarithmic(axes, list(gains), axis="x")
    axes.set(
        xlabel="γ (relative: 1 where an example pulls as hard as the prior)",
        ylabel="squared error",
        ylim=(0, 1.5),
    )
    legend(axes, 4)
    alt = f"Left out, {means[chosen]:.2f} at the chosen γ; new rows there {new[chosen].mean():.2f}."
    return Drawing("rule-left-out", "Leave-one-out", alt, "", figure)


def search(run: pactrain.Result) -> Drawing:
    """Accuracy over training while the search lowers γ."""
    fresh = [record for record in run.history if record["scores_epoch"] == record["epoch"] and record["test"]]
    epochs = [record["epoch"] for record in fresh]
    figure, axes = canvas()
    for part, name, colour in (
        ("train", "training rows, 30 % of their labels random", 0),
        ("test", "held-out rows", 1),
    ):
        axes.plot(epochs, [100 * record[part]["accuracy"] for record in fresh], color=SERIES[colour], label=name)
    changes = [b for a, b in zip(run.history[:-1], run.history[1:], strict=True) if a["held_gamma"] != b["held_gamma"]]
    for record in changes:
        axes.axvline(record["epoch"], color=MUTED, linewidth=1, linestyle=(0, (4, 1.5)))
        axes.text(record["epoch"], 2, f" γ {record['held_gamma']:.3g}", color=INK, fontsize=9)
    axes.set(xlabel="epoch", ylabel="accuracy, %", ylim=(0, 102), xlim=(0, run.history[-1]["epoch"]))
    legend(axes, 2)
    return Drawing(
        "rule-search", "The search over γ", "Training accuracy falls and held-out accuracy rises.", "", figure
    )


def main() -> None:
    """Draw them into the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    run = digits(AUTO.replace(held="left out"))  # at one γ
    drawn = [faint(), knee(run), left_out(), search(digits(AUTO, RANDOM_LABELS)), training(run)]
    for path, drawing in zip(save(drawn, parser.parse_args().folder, "svg"), drawn, strict=True):
        print(f"{path}: {drawing.alt}")


if __name__ == "__main__":
    main()

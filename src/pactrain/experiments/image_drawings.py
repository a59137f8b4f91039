"""Drawing the paper's figures on images; `image_figures.py` declares what they show."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pactrain.bounds.moment import Moment
from pactrain.experiments.headline import Training, best_of_grid
from pactrain.experiments.image_figures import Curves
from pactrain.experiments.k_scan import GAMMA1, Ks
from pactrain.report.canvas import INK, MUTED, SERIES, SETTINGS, Format, logarithmic, rendered, stage_line
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Metrics = Mapping[str, Any]
FORMATS: tuple[Format, ...] = ("svg", "png", "pdf")
DASHED = (0, (4, 1.5))


def blank(width: float, height: float) -> "Figure":
    """An empty figure that finds room for its own labels."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def check_name(path: Path) -> Format:
    """The form that a file's name says."""
    form = next((f for f in FORMATS if path.suffix.lower() == f".{f}"), None)
    if form is None:
        raise PactrainError(f"{path} cannot be drawn into; use a name that ends in .svg, .png or .pdf")
    return form


def write_figure(figure: "Figure", path: Path) -> None:
    """Write it in the form that the file's name says."""
    form = check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, rendered(figure, form))


# -- K -----------------------------------------------------------------------------------------------------------------


def draw_k(ks: Ks) -> "Figure":
    """Left: the surface K(γ1, std) with the two planes.  Right: cuts through it at some γ1."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        figure = blank(10.5, 4.4)
        _surface(figure.add_subplot(1, 2, 1, projection="3d"), ks)
        axes = figure.add_subplot(1, 2, 2)
        for i, gamma in enumerate((ks.gammas[0], GAMMA1, ks.gammas[-1])):
            at = int(np.abs(np.log(ks.gammas / gamma)).argmin())
            axes.plot(ks.stds, ks.k[:, at], color=SERIES[i], label=f"ours, γ1 = {gamma:g}")
        for i, (name, value) in enumerate(ks.planes.items()):
            style = (i * 5, (5, 5))  # one in the gaps of the other, should they be the same
            axes.axhline(value, color=SERIES[3 + i], linestyle=style, label=f"{name}, all stds")
        axes.axvline(ks.knee, color=INK, linestyle=":", label="std chosen")
        logarithmic(axes, ks.stds.tolist(), axis="x")
        logarithmic(axes, [float(ks.k.min()), *ks.planes.values()])
        axes.set(xlabel="prior standard deviation", ylabel="K")
        axes.legend(fontsize=9)
    return figure


def _surface(axes: Any, ks: Ks) -> None:
    x, y = np.meshgrid(np.log10(ks.stds), np.log10(ks.gammas), indexing="ij")
    axes.plot_surface(x, y, np.log10(ks.k), color=SERIES[0], alpha=0.9)
    for i, (name, value) in enumerate(ks.planes.items()):
        axes.plot_surface(x, y, np.full_like(x, np.log10(value)), color=SERIES[3 + i], alpha=0.35, label=name)
    spot = np.log10([ks.knee, GAMMA1])
    ends = np.log10([ks.k.min(), max(ks.planes.values())])
    axes.plot([spot[0]] * 2, [spot[1]] * 2, ends, color=INK, linestyle=":")
    axes.set(xlabel="log10 prior std", ylabel="log10 γ1", zlabel="log10 K")
    axes.locator_params(nbins=5)
    axes.set_box_aspect(None, zoom=0.85)
    axes.view_init(elev=18, azim=-130)


def draw_k_upper(ks: Ks) -> "Figure":
    """K with the paper's γ1, and the lemma's upper bound of it."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        figure = blank(5.2, 3.8)
        axes = figure.add_subplot()
        at = int(np.abs(np.log(ks.gammas / GAMMA1)).argmin())
        axes.plot(ks.stds, ks.k[:, at], "o-", color=SERIES[0], markersize=4, label="K, estimated")
        axes.plot(ks.stds, ks.lemma, "s-", color=SERIES[1], markersize=4, label="upper bound of the lemma")
        axes.axvline(ks.knee, color=INK, linestyle=":", label="std chosen")
        logarithmic(axes, ks.stds.tolist(), axis="x")
        logarithmic(axes, [float(ks.k[:, at].min()), float(ks.lemma.max())])
        axes.set(xlabel="prior standard deviation", ylabel="K")
        axes.legend(fontsize=9)
    return figure


# -- curves ------------------------------------------------------------------------------------------------------------


def draw_bounds_training(figure: Curves, found: Mapping[str, Sequence[Metrics]]) -> "Figure":
    """Test accuracy over the epochs of stage 1, mean over seeds."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        drawn = blank(5.6, 3.8)
        axes = drawn.add_subplot()
        for i, (name, runs) in enumerate(found.items()):
            curves = np.array([[100 * r["test"]["accuracy"] for r in run["history"]] for run in runs])
            epochs = np.arange(1, curves.shape[1] + 1)
            axes.plot(epochs, curves.mean(0), color=SERIES[i], label=name)
            if len(curves) > 1:
                low, high = curves.min(0), curves.max(0)
                axes.fill_between(epochs, low, high, color=SERIES[i], alpha=0.2, linewidth=0)
        start = statistics.fmean(100 * run["untrained"] for runs in found.values() for run in runs)
        axes.axhline(start, color=MUTED, linestyle=DASHED, label="untrained")
        axes.set(xlabel="epoch of stage 1", ylabel="test accuracy, %", title=figure.title)
        axes.legend(fontsize=9)
    return drawn


def draw_gap(figure: Curves, found: Mapping[str, Sequence[Metrics]]) -> "Figure":
    """A panel for ours beside the best plain training, one for each kind."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        drawn = blank(4.0 * len(figure.panels), 4.0)
        for place, (title, names) in enumerate(figure.panels.items(), start=1):
            axes = drawn.add_subplot(1, len(figure.panels), place)
            shown = _best_plain(figure, found, names) if place == 1 else names
            for i, name in enumerate(shown):
                _points(axes, found[name], SERIES[i % len(SERIES)], name)
            low, high = axes.get_xlim()
            axes.axline((low, low), (high, high), color=MUTED, linestyle=DASHED, linewidth=1)
            axes.set(xlabel="training accuracy, %", ylabel="test accuracy, %" if place == 1 else "", title=title)
            axes.legend(fontsize=8)
    return drawn


def _best_plain(figure: Curves, found: Mapping[str, Sequence[Metrics]], names: Sequence[str]) -> list[str]:
    """Of plain trainings only the one with the best test accuracy at its end, as in the paper."""
    plain = [name for name in names if figure.curves[name].get("method") == "plain"]
    best = max(plain, key=lambda name: statistics.fmean(run["test"] for run in found[name]))
    return [name for name in names if name not in plain or name == best]


def _points(axes: "Axes", runs: Sequence[Metrics], colour: str, name: str) -> None:
    for k, run in enumerate(runs):
        pairs = [(100 * r["train"]["accuracy"], 100 * r["test"]["accuracy"]) for r in run["history"]]
        x, y = zip(*pairs, strict=True)
        axes.plot(x, y, "o-", color=colour, markersize=3, linewidth=0.8, alpha=0.7, label=name if k == 0 else None)
        axes.plot(x[-1:], y[-1:], "o", color=colour, markersize=8, markeredgecolor=INK)


def draw_details(figure: Curves, found: Mapping[str, Sequence[Metrics]]) -> "Figure":
    """A row for each network: stds of its two kinds of layers, over training, K, scores."""
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        drawn = blank(19, 3.6 * len(found))
        for row, (name, runs) in enumerate(found.items()):
            axes = [drawn.add_subplot(len(found), 5, 5 * row + i + 1) for i in range(5)]
            run = runs[0]
            last, kinds = run["history"][-1]["posterior_std"], run["kinds"]
            for panel, kind in zip(axes, ("norm", "convolution"), strict=False):
                values = [std for group, std in last.items() if kinds[group] == kind]
                panel.plot(range(1, len(values) + 1), values, "o-", color=SERIES[0])
                panel.set(xlabel=f"{kind} layer", ylabel="mean σ of the posterior", title=name)
            _over_training(axes[2], run)
            _moment(axes[3], run)
            for part, colour in (("train", SERIES[0]), ("test", SERIES[1])):
                axes[4].plot(
                    _epochs(run), [100 * r[part]["accuracy"] for r in run["history"]], color=colour, label=part
                )
            stage_line(axes[4], _stage1(run), len(run["history"]))
            axes[4].set(xlabel="epoch", ylabel="accuracy, %")
            axes[4].legend(fontsize=9)
    return drawn


def _epochs(run: Metrics) -> list[int]:
    return [r["epoch"] for r in run["history"]]


def _stage1(run: Metrics) -> int:
    return sum(r["stage"] == 1 for r in run["history"])


def _over_training(axes: "Axes", run: Metrics) -> None:
    for i, kind in enumerate(("norm", "convolution", "linear")):
        groups = [group for group, of in run["kinds"].items() if of == kind]
        means = [statistics.fmean(r["posterior_std"][g] for g in groups) for r in run["history"]] if groups else []
        axes.plot(_epochs(run)[: len(means)], means, color=SERIES[i], label=kind)
    stage_line(axes, _stage1(run), len(run["history"]))
    axes.set(xlabel="epoch", ylabel="mean σ of the posterior")
    axes.legend(fontsize=9)


def _moment(axes: "Axes", run: Metrics) -> None:
    moment, rules = Moment.from_dict(run["moment"]), run["rules"]
    k = moment.k(rules["average"], gamma_min=rules["gamma_min"], gamma_max=rules["gamma_max"])
    logs = np.log(list(run["history"][-1]["prior_std"].values()))
    end = float(logs.max() if rules["at"] == "max" else logs.mean())
    axes.plot(np.exp(moment.log_stds), k, "o-", color=SERIES[0], markersize=3)
    axes.plot(np.exp(end), np.interp(end, moment.log_stds, k), "*", color=SERIES[1], markersize=13, label="at the end")
    logarithmic(axes, np.exp(moment.log_stds).tolist(), axis="x")
    logarithmic(axes, k.tolist())
    axes.set(xlabel="prior standard deviation λ", ylabel="K̃(λ)")
    axes.legend(fontsize=9)


def draw_headline(trainings: Mapping[str, Sequence[Training]]) -> "Figure":
    """Test accuracy against steps, a line for each training; of AdamW's grid the best in colour."""
    from matplotlib import rc_context

    best = best_of_grid(trainings)
    with rc_context(SETTINGS):
        drawn = blank(6.4, 4.2)
        axes, colours = drawn.add_subplot(), iter(SERIES)
        for name, of in trainings.items():
            rest = name.startswith("adamw ") and name != best
            colour, label = (MUTED, None) if rest else (next(colours), name)
            for training in of:
                steps = [r["step"] for r in training.history]
                scores = [100 * r["test"]["accuracy"] for r in training.history]
                axes.plot(steps, scores, color=colour, label=label, linewidth=0.6 if rest else 1.7, alpha=0.8)
                label = None
        axes.set(xlabel="step", ylabel="test accuracy, %")
        axes.legend(fontsize=9)
    return drawn

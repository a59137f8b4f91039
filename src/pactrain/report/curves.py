"""Figures of how training went: the bound and its terms, scores, the generalisation gap."""

import math
from typing import TYPE_CHECKING

import numpy as np

from pactrain.report.canvas import (
    INK,
    MUTED,
    SERIES,
    SIZE,
    Drawing,
    canvas,
    legend,
    logarithmic,
    number,
    short,
    stage_line,
    thin,
)
from pactrain.report.read import Record, Run
from pactrain.report.words import measure, sentence
from pactrain.runs.sentences import noticed
from pactrain.runs.sentences import number as number_text
from pactrain.training.history import is_fresh

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERMS = {"risk": "risk", "kl_term": "divergence", "complexity": "complexity"}


def curve(run: Run, part: str, score: str) -> tuple[list[int], list[float]]:
    """Epochs at which the network was looked at, and a score on "train" or "test" at each, thinned."""
    records = thin([r for r in run.history if r.get(part) and is_fresh(r)])
    return [r["epoch"] for r in records], [measure(score, number(r[part].get(score))) for r in records]


def over_epochs(run: Run) -> tuple[list[Record], list[float]]:
    """Epochs at which the network was looked at, thinned, and where each stands; a single one is drawn as a line across its place."""
    records = thin([r for r in run.history if is_fresh(r)])
    if len(records) > 1:
        return records, [r["epoch"] for r in records]
    return records * 2, [records[0]["epoch"] - 0.5, records[0]["epoch"] + 0.5]


def axis_name(score: str) -> str:
    """The label of an axis that shows a score."""
    return {"accuracy": "accuracy, %"}.get(score, score)


def bound_figure(run: Run) -> Drawing:
    """The bound split into its terms."""
    figure, axes = canvas()
    records, epochs = over_epochs(run)
    terms = {k: [max(0.0, number(r[k])) for r in records] for k in TERMS if any(r[k] for r in records)}
    areas = axes.stackplot(epochs, *terms.values(), labels=[TERMS[k] for k in terms], colors=list(SERIES))
    for area in areas:
        area.set_alpha(0.75)
    total = np.array([number(r["bound"]) for r in records])
    axes.plot(epochs, total, color=INK, label="bound")
    cut = _crop(axes, total)
    stage_line(axes, run.stage1_epochs, len(run.history))
    axes.set(xlabel="epoch", ylabel=f"{'clipped ' if _bounded(run) else ''}loss", xlim=(epochs[0], epochs[-1]))
    legend(axes, 4)
    first, last = run.history[0], run.history[-1]
    parts = ", ".join(f"{TERMS[k]} {number_text(number(last[k]))}" for k in terms)
    return Drawing(
        "bound",
        "The bound and its terms",
        f"Stacked areas over {len(run.history)} epochs. The bound goes from {number_text(number(first['bound']))} to "
        f"{number_text(number(last['bound']))}; at the end it is made of {parts}.{_stages(run)}",
        "What training minimises: the risk of the noisy network, the price of moving away from the prior, and the price of "
        f"a loss that has no upper limit. It is a heuristic while training.{_stage2_note(run)}{cut}",
        figure,
    )


def score_figure(run: Run, score: str) -> Drawing:
    """A score on training and test data."""
    figure, axes = canvas()
    every: list[float] = []
    words, later = [], ""
    for part, name, style, colour in (
        ("train", "training", "-", SERIES[0]),
        ("test", "held-out", (0, (4, 1.5)), SERIES[1]),
    ):
        epochs, values = curve(run, part, score)
        if epochs:
            axes.plot(epochs, values, color=colour, linestyle=style, label=f"{name} rows")
            at = kept(run, epochs)
            if at < len(epochs) - 1:
                later = "What follows the dots was tried with another γ and was no better. "
            axes.plot(epochs[at], values[at], "o", color=colour, markersize=5, clip_on=False)
            words.append(f"on {name} rows from {number_text(values[0])} to {number_text(values[at])}")
            every += values
    if score != "accuracy":
        logarithmic(axes, every)
    stage_line(axes, run.stage1_epochs, len(run.history))
    told = story_line(axes, run)
    axes.set(xlabel="epoch", ylabel=axis_name(score), xlim=_ends_of(run))
    legend(axes)
    return Drawing(
        score,
        f"{score.upper() if score == 'rmse' else score.capitalize()} over training",
        f"Curves over {len(run.history)} epochs: {axis_name(score)} {' and '.join(words)}.{_stages(run)}{_story(run)}",
        f"{told}Dots mark the network that was kept. {later}Held-out rows are only looked at, never trained on.",
        figure,
    )


def kept(run: Run, epochs: list[int]) -> int:
    """Which of the drawn epochs is that of the final network: a search over γ goes back to the best it has found."""
    gamma = run.metrics.get("held_gamma")
    own = {r["epoch"] for r in run.history if r.get("held_gamma") == gamma}
    return max((i for i, epoch in enumerate(epochs) if epoch in own), default=len(epochs) - 1)


def story_line(axes: "Axes", run: Run) -> str:
    """Mark where the search over γ noticed that the network was memorising, in words above the curves; returns what the line means."""
    rescue = run.metrics.get("rescue")
    if not rescue:
        return ""
    low, high = axes.get_ylim()
    log = axes.get_yscale() == "log"
    axes.set_ylim(low, high * (high / low) ** 0.14 if log else high + 0.14 * (high - low))
    axes.axvline(rescue["epoch"], color=SERIES[3], linewidth=1.2)
    words, where = f"memorising: γ ÷ {rescue['divided_by']:.2g} ", (rescue["epoch"], 0.93)
    axes.annotate(words, where, xycoords=axes.get_xaxis_transform(), ha="right", color=SERIES[3], fontsize=9.5)
    return f"At the line γ, how much the rows move the weights, was divided by {rescue['divided_by']:.2g}. "


def _story(run: Run) -> str:
    sentences = noticed(run.metrics) if run.metrics else []
    return f" {sentence(sentences[0])}" if sentences else ""


def gap_figure(runs: list[Run], *, name: str = "gap") -> Drawing:
    """Test against training score, epoch by epoch, with the line on which they agree."""
    figure, axes = canvas((SIZE[0], 4.2))
    score, ends, every = runs[0].score, [], []
    for i, run in enumerate(runs):
        colour = SERIES[i % len(SERIES)]
        x, y = curve(run, "train", score)[1], curve(run, "test", score)[1]
        axes.plot(x, y, color=colour, alpha=0.5, linewidth=1)
        axes.plot(x, y, "o", color=colour, markersize=2.6, markeredgewidth=0)
        axes.plot(
            x[-1:],
            y[-1:],
            "o",
            color=colour,
            markersize=8,
            markeredgecolor=INK,
            clip_on=False,
            label=_ends(run, len(runs)),
        )
        ends.append(
            f"{'' if len(runs) == 1 else run.name + ' '}ends at {number_text(x[-1])} on training and {number_text(y[-1])} on test data"
        )
        every += [*x, *y]
    if score != "accuracy":
        logarithmic(axes, every)
        logarithmic(axes, every, axis="x")
    finite = [v for v in every if math.isfinite(v)] or [0.0, 1.0]
    axes.axline(
        (min(finite),) * 2, (max(finite) + 1e-9,) * 2, color=MUTED, linewidth=1, linestyle=(0, (4, 2)), label="y = x"
    )
    axes.set(xlabel=f"training {axis_name(score)}", ylabel=f"test {axis_name(score)}")
    legend(axes, 2)
    side = "below" if score == "accuracy" else "above"
    return Drawing(
        name,
        "The generalisation gap",
        f"Test against training {score}, a point per epoch: {'; '.join(ends)}. A dashed line marks where both are equal.",
        f"Each point is an epoch, the large one the last. On the dashed line the network is as good on new data as on its own; "
        f"how far a point lies {side} it is the gap.",
        figure,
    )


def _ends_of(run: Run) -> tuple[float, float]:
    epochs = over_epochs(run)[1]
    return epochs[0], epochs[-1]


def _bounded(run: Run) -> bool:
    return not any(r["complexity"] for r in run.history)


def _crop(axes: "Axes", total: np.ndarray) -> str:
    """Leave a first peak out of sight where it would flatten all the rest."""
    finite = total[np.isfinite(total)]
    if len(finite) < 10:
        axes.set_ylim(bottom=0)
        return ""
    later = float(finite[len(finite) // 20 :].max())
    if finite.max() <= 5 * later:
        axes.set_ylim(0, 1.05 * float(finite.max()))
        return ""
    axes.set_ylim(0, 1.3 * later)
    return f" The first epochs, up to {number_text(float(finite.max()))}, lie above the top."


def _stages(run: Run) -> str:
    two = run.stage1_epochs < len(run.history)
    return f" Stage 2 begins after epoch {run.stage1_epochs}." if two else ""


def _stage2_note(run: Run) -> str:
    two = run.stage1_epochs < len(run.history)
    return " Stage 2 minimises the risk alone and lets the bound go." if two else ""


def _ends(run: Run, runs: int) -> str:
    return "last epoch" if runs == 1 else short(run.name)

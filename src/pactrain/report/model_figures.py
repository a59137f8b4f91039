"""Figures of what the model does: how sure it is and should be, predicted against true values, which columns it uses."""

from pactrain.report.canvas import INK, MUTED, SERIES, SIZE, Drawing, canvas, large_numbers, legend, short
from pactrain.report.read import Run
from pactrain.runs.sentences import main_score, number, percent, score_text

SHOWN_COLUMNS = 20


def model_figures(run: Run) -> list[Drawing]:
    """All figures of the model that the run has the data for."""
    found = run.analysis
    drawings = [reliability_figure(run)] if found.get("reliability") else []
    if found.get("points"):
        drawings += [predicted_figure(run), residual_figure(run)]
    return drawings


def column_figures(run: Run) -> list[Drawing]:
    """The importance of the columns, if it was measured."""
    return [importance_figure(run)] if run.analysis.get("importance") else []


def reliability_figure(run: Run) -> Drawing:
    """Share of right answers against confidence."""
    bins = run.analysis["reliability"]
    figure, axes = canvas()
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 2)), label="as sure as it is right")
    rows = sum(b["n"] for b in bins)
    axes.plot([b["confidence"] for b in bins], [b["right"] for b in bins], color=SERIES[0], linewidth=1, alpha=0.6)
    sizes = [12 + 160 * (b["n"] / rows) ** 0.5 for b in bins]
    x, y = [b["confidence"] for b in bins], [b["right"] for b in bins]
    axes.scatter(x, y, s=sizes, color=SERIES[0], edgecolors=INK, linewidths=0.6, zorder=3, label="the network")
    low = min(0.5, *x, *y)
    axes.set(xlabel="how sure it is", ylabel="share that is right", xlim=(low - 0.03, 1.03), ylim=(low - 0.05, 1.05))
    legend(axes, 2)
    words = "; ".join(f"{b['n']} rows at {percent(b['confidence'])} sure, {percent(b['right'])} right" for b in bins)
    error = run.scores("test" if run.scores("test") else "train").get("ece")
    said = "" if error is None else f" On average the two differ by {percent(error)} (the calibration error)."
    return Drawing(
        "reliability",
        "Is it right as often as it is sure?",
        f"Reliability diagram of {rows} {run.analysis['rows']} rows: {words}.",
        f"Each dot stands for rows about which it is equally sure; large dots for many rows. Below the dashed line it is too sure of "
        f"itself.{said}",
        figure,
    )


def predicted_figure(run: Run) -> Drawing:
    """The answers against the true values."""
    points = run.analysis["points"]
    true, answer = points["true"], points["answer"]
    figure, axes = canvas((SIZE[0], 4.2), left=1.0)
    ends = min(*true, *answer), max(*true, *answer)
    axes.plot(ends, ends, color=MUTED, linewidth=1, linestyle=(0, (4, 2)), label="perfect")
    axes.plot(
        true,
        answer,
        "o",
        color=SERIES[0],
        markersize=4,
        markeredgewidth=0,
        alpha=0.6,
        label=f"{run.analysis['rows']} rows",
    )
    axes.set(xlabel=_target(run), ylabel="predicted")
    large_numbers(axes)
    legend(axes, 2)
    return Drawing(
        "predicted",
        "Predicted and true values",
        f"Scatter of {len(true)} {run.analysis['rows']} rows: true values from {number(min(true))} to {number(max(true))}, predictions "
        f"from {number(min(answer))} to {number(max(answer))}. {_error_words(run)}",
        f"On the dashed line a prediction is right. {_error_words(run)}",
        figure,
    )


def residual_figure(run: Run) -> Drawing:
    """The errors against the predictions."""
    points = run.analysis["points"]
    error = [a - t for a, t in zip(points["answer"], points["true"], strict=True)]
    figure, axes = canvas(left=1.0)
    axes.axhline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 2)))
    axes.plot(points["answer"], error, "o", color=SERIES[1], markersize=4, markeredgewidth=0, alpha=0.6)
    axes.set(xlabel="predicted", ylabel="predicted − true")
    large_numbers(axes)
    above = sum(e > 0 for e in error) / len(error)
    return Drawing(
        "residuals",
        "What is left over",
        f"Errors of {len(error)} {run.analysis['rows']} rows against the prediction, from {number(min(error))} to {number(max(error))}; "
        f"{percent(above)} are above zero.",
        "Errors should scatter around zero alike everywhere. A bend means that something systematic is missed; a funnel, that large "
        "values are harder.",
        figure,
    )


def importance_figure(run: Run) -> Drawing:
    """How much worse the network gets without a column."""
    found = run.analysis["importance"][:SHOWN_COLUMNS]
    score = main_score(run.metrics)
    unit = 100 if score == "accuracy" else 1
    figure, axes = canvas((SIZE[0], 0.9 + 0.26 * len(found)), left=1.7)
    rows = range(len(found))
    axes.barh(rows, [unit * c["loss"] for c in found], color=SERIES[0], height=0.62)
    axes.errorbar(
        [unit * c["loss"] for c in found],
        rows,
        xerr=[unit * c["spread"] for c in found],
        fmt="none",
        ecolor=INK,
        linewidth=1,
    )
    axes.axvline(0, color=MUTED, linewidth=1)
    large_numbers(axes)
    axes.set_yticks(rows, [short(c["column"]) for c in found])
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.invert_yaxis()
    axes.set(xlabel="accuracy lost, points" if score == "accuracy" else f"{score} added")
    more = len(run.analysis["importance"]) - len(found)
    words = "; ".join(f"{c['column']} {score_text(score, c['loss'])}" for c in found)
    return Drawing(
        "importance",
        "What the network looks at",
        f"Fall of the {score} when a column is shuffled, the most important first: {words}.",
        f"How much worse the network gets on {run.analysis['rows']} rows when the values of one column are shuffled among them. Columns "
        f"that say the same share their importance.{f' {more} columns more are not shown.' if more else ''}",
        figure,
    )


def _target(run: Run) -> str:
    name = run.config.get("preprocess", {}).get("target")
    return f"true {short(name)}" if name and name != "target" else "true value"


def _error_words(run: Run) -> str:
    found = run.scores("test") or run.scores("train")
    return f"On average it is off by {number(found['mae'])}." if "mae" in found else ""

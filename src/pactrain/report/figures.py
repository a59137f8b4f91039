"""All figures of a report: about one run, and about runs beside each other."""

from pactrain.report.canvas import SERIES, Drawing, canvas, legend, logarithmic, number, short
from pactrain.report.curves import axis_name, bound_figure, curve, gap_figure, over_epochs, score_figure
from pactrain.report.model_figures import column_figures, model_figures
from pactrain.report.noise_figures import moment_figure, noise_figure
from pactrain.report.read import Run
from pactrain.runs.sentences import number as number_text


def figures(run: Run) -> list[Drawing]:
    """All figures that the run has the data for."""
    return [*model_figures(run), *column_figures(run), *training_figures(run), *method_figures(run)]


def training_figures(run: Run) -> list[Drawing]:
    """How training went."""
    if not run.history:
        return []
    return [score_figure(run, name) for name in dict.fromkeys((run.score, "loss"))]


def method_figures(run: Run) -> list[Drawing]:
    """The bound, the noise and the moment."""
    drawings = [bound_figure(run), noise_figure(run)] if run.history else []
    drawings += [moment_figure(run)] if run.moment is not None else []
    return [*drawings, gap_figure([run])] if run.history and run.history[-1].get("test") else drawings


def comparisons(runs: list[Run]) -> list[Drawing]:
    """Overlaid curves of runs on the same data with the same loss."""
    alike: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.history:
            alike.setdefault((run.data, run.config["loss"]), []).append(run)
    groups = [group for group in alike.values() if len(group) > 1]
    return [drawing for i, group in enumerate(groups) for drawing in _compared(group, i)]


def _compared(runs: list[Run], index: int) -> list[Drawing]:
    score = runs[0].score
    drawings = [_scores(runs, score, index), _bounds(runs, index)]
    if score != "loss":
        drawings.append(_scores(runs, "loss", index))
    tested = [run for run in runs if run.history[-1].get("test")]
    return [*drawings, gap_figure(tested, name=f"compared-{index + 1}-gap")] if len(tested) > 1 else drawings


def _scores(runs: list[Run], score: str, index: int) -> Drawing:
    figure, axes = canvas()
    every, words = [], []
    for i, run in enumerate(runs):
        for part, style in (("train", (0, (1, 1))), ("test", "-")):
            epochs, values = curve(run, part, score)
            if epochs:
                name = short(run.name) if part == "test" or not curve(run, "test", score)[0] else None
                axes.plot(epochs, values, color=SERIES[i % len(SERIES)], linestyle=style, label=name)
                words.append(f"{run.name} ends at {number_text(values[-1])} on {part} data")
                every += values
    if score != "accuracy":
        logarithmic(axes, every)
    axes.set(xlabel="epoch", ylabel=axis_name(score))
    legend(axes)
    return Drawing(
        f"compared-{index + 1}-{score}",
        f"{score.upper() if score == 'rmse' else score.capitalize()} on {runs[0].data}",
        f"{axis_name(score).capitalize()} over epochs for {len(runs)} runs: {'; '.join(words)}.",
        "Solid: test data. Dotted: training data.",
        figure,
    )


def _bounds(runs: list[Run], index: int) -> Drawing:
    figure, axes = canvas()
    every, words = [], []
    for i, run in enumerate(runs):
        records, epochs = over_epochs(run)
        values = [number(r["bound"]) for r in records]
        axes.plot(epochs, values, color=SERIES[i % len(SERIES)], label=short(run.name))
        words.append(f"{run.name} from {number_text(values[0])} to {number_text(values[-1])}")
        every += values
    logarithmic(axes, every)
    axes.set(xlabel="epoch", ylabel="bound")
    legend(axes)
    return Drawing(
        f"compared-{index + 1}-bound",
        f"The bound on {runs[0].data}",
        f"The bound over epochs: {'; '.join(words)}.",
        "What each run minimised. Bounds of different kinds, on clipped and unclipped losses, are not on one scale.",
        figure,
    )

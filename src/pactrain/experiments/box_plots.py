"""Box plots of every setting of a search beside PAC-Bayes."""

import math
from collections.abc import Sequence
from pathlib import Path

from pactrain.experiments.table_cells import CellResult
from pactrain.runtime.errors import PactrainError


def draw_boxes(cells: Sequence[CellResult], path: Path) -> None:
    """One panel per graph (the first name), in it for each network (the second name) the settings' mean scores and PAC-Bayes' splits."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise PactrainError(f"{path} cannot be drawn into; use a name that ends in .svg, .png or .pdf")
    graphs = list(dict.fromkeys(c.names[0] for c in cells))
    figure = Figure(figsize=(4.2 * len(graphs), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for place, graph in enumerate(graphs, start=1):
        axes = figure.add_subplot(1, len(graphs), place)
        here = [c for c in cells if c.names[0] == graph]
        spots = range(len(here))
        every = [[v for v in c.every if not math.isnan(v)] for c in here]
        axes.boxplot(every, positions=[s - 0.18 for s in spots], widths=0.28, manage_ticks=False)
        axes.boxplot(
            [c.pac_bayes.scores for c in here],
            positions=[s + 0.18 for s in spots],
            widths=0.28,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": "#9ecae1"},
        )
        axes.set_xticks(list(spots), [c.names[-1] for c in here])
        axes.set_title(graph)
        axes.set_ylabel("test accuracy, %" if place == 1 else "")
    figure.suptitle("white: every setting of the search (mean over splits)\nblue: PAC-Bayes (its splits)", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)

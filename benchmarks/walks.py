"""Every γ around the first guess, for classification and regression alike: what leave-one-out says of each, and what the test rows say.

    python benchmarks/walks.py --seeds 1                     # quick judging rows; resumes what is not finished
    python benchmarks/walks.py --table

Training goes on as in the search over γ, but two steps up and three down whatever the estimates are.  `temperature` has the test scores with
all outputs multiplied by the factor, of a few, at which the left-out loss is smallest.
"""

import argparse
import json
import math
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from judge import STORE as JUDGED
from judge import gain, mean_and_error, read
from methods import scores
from problems import Problem
from rows import QUICK, ROWS

import pactrain
from pactrain.rules.gamma.trained_leave_one_out import LeaveOneOut, LeftOutEstimate
from pactrain.rules.gamma.walk import GammaWalk, leave_out
from pactrain.training.start import Start

STORE = Path(__file__).parent / "results/walks.jsonl"
UP, DOWN = 2, 3
FACTORS = (0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


def walked(problem: Problem, seed: int) -> list[dict[str, Any]]:
    """One entry per γ, in the order of training."""
    found: list[dict[str, Any]] = []
    ask, moves = LeaveOneOut.estimate, LeaveOneOut._moves
    moved: list[Any] = []

    def left_out(start: Start) -> LeaveOneOut | None:
        given = start.problem
        return leave_out(start.posterior, given.batches, given.trained_on, start.untrained.n, start.options.seed)

    def go_on(walk: GammaWalk, said: LeftOutEstimate, epoch: float) -> bool:
        walk.answers[walk.here], walk.since = said, epoch
        walk.most = walk.most if problem.classes else math.inf
        up = -UP < walk.here <= 0 and walk.gamma < walk.most
        following = walk.here - 1 if up else max(walk.here, 0) + 1
        goes = following <= DOWN
        walk.here = following if goes else walk.best
        return goes

    def kept(*args: Any) -> Any:
        moved[:] = [moves(*args)]
        return moved[0]

    def answer(self: LeaveOneOut, gamma: float, drawn: Any = None) -> LeftOutEstimate:
        said, model = ask(self, gamma, drawn), self.posterior.model
        entry: dict[str, Any] = {"gamma": gamma, "loss": said.loss, "slope": said.slope, "wrong": said.wrong}
        training = model.training
        with torch.no_grad():
            outputs = problem.outputs(model.eval(), None)
            entry["test"] = scores(problem, outputs)
            if problem.classes and self.examples.alone:
                with self.examples.still():
                    apart = [(self._output(batch), batch) for batch, _ in self.examples.shown]
                parts = list(zip(apart, moved[0].split([len(o) for o, _ in apart]), strict=True))
                least = min(
                    (sum(float(self._losses((o + m.to(o)) * f, b).sum()) for (o, b), m in parts), f) for f in FACTORS
                )
                entry["temperature"] = scores(problem, outputs * least[1]) | {"factor": least[1]}
        model.train(training)
        found.append(entry)
        return said

    with (
        mock.patch("pactrain.training.start._left_out", left_out),
        mock.patch.object(GammaWalk, "go_on", go_on),
        mock.patch.object(LeaveOneOut, "_moves", kept),
        mock.patch.object(LeaveOneOut, "estimate", answer),
    ):
        pactrain.fit(problem.model(), problem.data(torch.arange(problem.rows)), loss=problem.loss, seed=seed)
    return found


def table(results: list[dict[str, Any]]) -> str:
    """Left-out loss and test score at every γ, in Markdown; then what the temperature gains at the γ with the smallest left-out loss."""
    lines, gains = (
        ["| row | seed | γ: left-out loss, test score |", "|---|---|---|"],
        dict[str, dict[str, list[float]]](),
    )
    for r in results:
        cells = [f"{w['gamma']:.3g}: {w['loss']:.3g}, {abs(w['test']['score']):.4g}" for w in r["walk"]]
        lines.append(f"| {r['row']} | {r['seed']} | {'; '.join(cells)} |")
        best = min(r["walk"], key=lambda w: w["loss"])
        for measure in ("nll", "ece") if "temperature" in best else ():
            gain = best["test"][measure] - best["temperature"][measure]
            gains.setdefault(measure, {}).setdefault(r["row"], []).append(gain)
    for measure, by_row in gains.items():
        lines.append("\ntemperature, gain in {}: {:+.3f} ± {:.3f}".format(measure, *mean_and_error(by_row)))
    return "\n".join(lines)


def without_search(results: list[dict[str, Any]], method: str) -> str:
    """What the search earns: scores at the γ at which a run of `judge.py` ended less those at the first γ."""
    ended = {(r["row"], r["seed"]): r["gamma"] for r in read(JUDGED) if r["method"] == method}
    gains: dict[str, dict[str, list[float]]] = {"accuracy": {}, "nll": {}, "ece": {}}
    for r in results:
        gamma, first = ended.get((r["row"], r["seed"]), math.nan), r["walk"][0]["test"]
        chosen = [w["test"] for w in r["walk"] if math.isclose(w["gamma"], gamma, rel_tol=1e-3)]
        for measure, by_row in gains.items() if chosen and "nll" in first else ():
            by_row.setdefault(r["row"], []).append(gain(chosen[0], first)[measure])
    cells = ["{} {:+.3g} ± {:.2g}".format(m, *mean_and_error(by_row)) for m, by_row in gains.items()]
    return f"\nsearch over γ, gain on {len(gains['nll'])} rows: " + ", ".join(cells)


def main() -> None:
    """Run what is missing, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=";".join(QUICK), help="names separated by ';'")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.add_argument(
        "--ended", default="auto", help="the method of judge.py's store whose last γ is compared with the first"
    )
    options = parser.parse_args()
    done = {(r["row"], r["seed"]) for r in read(options.store)}
    for seed in range(0 if options.table else options.seeds):
        for row in options.rows.split(";"):
            if (row, seed) not in done:
                line = json.dumps({"row": row, "seed": seed, "walk": walked(ROWS[row](seed), seed)})
                with options.store.open("a") as file:
                    file.write(line + "\n")
    results = read(options.store)
    print(table(results))
    print(without_search(results, options.ended))


if __name__ == "__main__":
    main()

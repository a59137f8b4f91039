"""Run methods on rows, one thread each, and compare them seed by seed.

    python benchmarks/judge.py --rows judging --methods auto,"auto again" --seeds 3       # resumes what is not finished
    python benchmarks/judge.py --table --methods "auto again,auto: no units"               # paired with auto
    python benchmarks/judge.py --label before --source /path/to/another/checkout           # results of another version

Every result is a line of JSON.  A difference is paired: same split, same initial weights.  It is counted in points of accuracy, in percent of
the rmse, in nats and in points of calibration error, positive where the method is better.  The noise floor is the standard
error of the mean difference between `auto` and `auto again`, which differ in nothing but their seed.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Result = dict[str, Any]
STORE = Path(__file__).parent / "results/judge.jsonl"
MEASURES = {"accuracy": "points", "rmse": "percent", "nll": "nats", "ece": "points"}


def gain(ours: Result, base: Result) -> dict[str, float]:
    """How much better one result is than another of the same row and seed, by measure."""
    if "nll" not in ours:
        return {"rmse": 100 * math.log(base["score"] / ours["score"])}
    found = {"accuracy": ours["score"] - base["score"], "nll": base["nll"] - ours["nll"]}
    return found | {"ece": 100 * (base["ece"] - ours["ece"])}


def paired(results: Iterable[Result], method: str, base: str = "auto") -> dict[str, dict[str, list[float]]]:
    """Gains of a method over another: measure → row → one number per seed."""
    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    found: dict[str, dict[str, list[float]]] = {measure: {} for measure in MEASURES}
    for (row, seed, name), ours in kept.items():
        if name == method and (row, seed, base) in kept:
            for measure, value in gain(ours, kept[row, seed, base]).items():
                if math.isfinite(value):  # a method that diverged has no gain, only the last rank
                    found[measure].setdefault(row, []).append(value)
    return found


def mean_and_error(by_row: dict[str, list[float]]) -> tuple[float, float]:
    """Mean over rows of the mean over seeds, and its standard error from the spread over rows."""
    means = [statistics.mean(v) for v in by_row.values()]
    error = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else math.nan
    return (statistics.mean(means), error) if means else (math.nan, math.nan)


def comparison(results: list[Result], methods: list[str], base: str = "auto") -> str:
    """One line per method: the mean paired gain over `base`, its standard error and rows won and lost, in Markdown."""
    columns = list(MEASURES)
    lines = [
        "| method | " + " | ".join(f"{m} ({MEASURES[m]})" for m in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for method in methods:
        cells = []
        for by_row in paired(results, method, base).values():
            mean, error = mean_and_error(by_row)
            means = [statistics.mean(v) for v in by_row.values()]
            won, lost = sum(m > 0 for m in means), sum(m < 0 for m in means)
            cells.append(f"{mean:+.3g} ± {error:.2g} ({won}–{lost})" if means else "")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_row(results: list[Result], methods: list[str]) -> str:
    """Means over seeds of every method on every row, in Markdown: accuracy in percent or rmse, and nll."""
    rows = list(dict.fromkeys(r["row"] for r in results))
    lines = ["| row | seeds | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for row in rows:
        cells, seeds = [], 0
        for method in methods:
            mine = [r for r in results if (r["row"], r["method"]) == (row, method)]
            seeds = max(seeds, len(mine))
            text = f"{abs(statistics.mean(r['score'] for r in mine)):.4g}" if mine else ""
            if mine and "nll" in mine[0]:
                text += f" ({statistics.mean(r['nll'] for r in mine):.3f})"
            cells.append(text)
        lines.append(f"| {row} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def read(store: Path) -> list[Result]:
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def carry_out(
    plan: list[tuple[str, int, str]], methods: dict[str, Any], rows: dict[str, Any], store: Path, label: str
) -> None:
    """Run what is planned and not yet in the store, one after the other."""
    done = {(r["row"], r["seed"], r["method"]) for r in read(store)}
    started, count = time.perf_counter(), 0
    left = [job for job in plan if (job[0], job[1], label + job[2]) not in done]
    for row, seed, method in left:
        began = time.process_time()
        try:
            found = methods[method](rows[row](seed), seed)
        except Exception as error:  # one method that cannot do a row is a result too
            print(f"{row}, seed {seed}, {method}: {error!r}", flush=True)
            continue
        result = {"row": row, "seed": seed, "method": label + method, "seconds": time.process_time() - began, **found}
        store.parent.mkdir(parents=True, exist_ok=True)
        with store.open("a") as file:
            file.write(json.dumps(result) + "\n")
        count += 1
        minutes = (time.perf_counter() - started) / count * (len(left) - count) / 60
        print(
            f"{count}/{len(left)} {row}, seed {seed}, {label}{method}: {found['score']:.4g}; {minutes:.0f} min left",
            flush=True,
        )


def main(
    more: dict[str, Any] | None = None, default: str = "auto,auto again"
) -> tuple[argparse.Namespace, list[Result]]:
    """The command line; `more` methods than those of `methods.py` may be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="quick", help="quick, judging, design, or names separated by ';'")
    parser.add_argument("--methods", default=default, help="names separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--store", type=Path, default=STORE, help="one JSON line per result")
    parser.add_argument("--source", type=Path, help="a checkout whose src is used instead of the installed package")
    parser.add_argument("--label", default="", help="put before the names of the methods in the store")
    parser.add_argument("--base", default="auto", help="the method that the others are paired with")
    parser.add_argument("--table", action="store_true", help="run nothing, print the tables")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    if options.source:
        sys.path.insert(0, str(options.source / "src"))
    names = options.methods.split(",")
    if not options.table:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        from methods import METHODS
        from rows import DESIGN, JUDGING, QUICK, ROWS

        sets = {"quick": QUICK, "judging": JUDGING, "design": DESIGN}
        rows = list(sets.get(options.rows, {})) or options.rows.split(";")
        plan = [(row, seed, name) for seed in range(options.seeds) for row in rows for name in names]
        with contextlib.suppress(KeyboardInterrupt):
            carry_out(plan, METHODS | (more or {}), ROWS, options.store, options.label)
    results = read(options.store)
    print(by_row(results, [options.label + n for n in names]), "\n")
    print(comparison(results, [options.label + n for n in names], options.base))
    return options, results


if __name__ == "__main__":
    main()

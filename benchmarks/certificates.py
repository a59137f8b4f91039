"""The rows of the table in docs/certificates.md: train, verify twice, and keep the numbers.

    python benchmarks/certificates.py mnist-mlp-progressive --seeds 0,1,2 --folder runs/certificates
    python benchmarks/certificates.py --figure docs/gallery/certificates.svg --page docs/certificates.md

Every run is `pactrain train` with the options of its row; one that is in the folder already is finished, or taken as it is.  MNIST and CIFAR-10 are
looked for in $PACTRAIN_DATA.  A number enters benchmarks/results/certificates.json once both verifiers have accepted the certificate.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "certificates.json"
SECONDS = "processor-seconds"
"""File in a run folder."""
TABLE = "houses.csv"
"""A file with numbers, categories and gaps, which is written anew for each seed."""

ROWS = {
    "mnist-mlp-recursive": "--data mnist --model mlp:600-600-600 --certificate recursive --budget 16e",
    "mnist-mlp-progressive": "--data mnist --model mlp:600-600-600 --certificate progressive",
    "mnist-cnn-progressive": "--data mnist --model cnn5:width=0.5 --certificate progressive --budget 9e",
    "cifar10-cnn-recursive": "--data cifar10 --model cnn5:width=0.25 --certificate recursive --budget 2e",
    "cifar10-cnn-progressive": "--data cifar10 --model vgg4:width=0.375,norm=group --certificate progressive --budget 9e",
    "digits-cnn-progressive": "--data digits --model cnn5:width=0.5 --certificate progressive",
    "breast_cancer-mlp-progressive": "--data breast_cancer --test-fraction 0.25 --certificate progressive",
    "csv-mlp-progressive": f"--data {TABLE} --target sells --test-fraction 0.25 --certificate progressive",
    "csv-mlp-half": f"--data {TABLE} --target sells --test-fraction 0.25 --prior-data 0.5",
}
PUBLISHED = {
    "mnist-mlp-recursive": "18.6 % (Wu et al. 2024); one prior 31.6 %",
    "mnist-mlp-progressive": "prior on half 2.79 % with a wrong n; hold-out 2.39 %",
    "mnist-cnn-progressive": "prior on half 1.55 %; hold-out 1.51 %",
    "cifar10-cnn-recursive": "73.8 % (García-Pérez et al. 2025)",
    "cifar10-cnn-progressive": "prior on half 38.8 %, on 70 % 16.7 %, larger networks",
}
"""What others certify with the same data and kind of prior; where an audit found another number than was published, that one."""

BEGIN, END = "<!-- table: benchmarks/results/certificates.json -->\n", "<!-- /table -->"

COLOURS = {"recursive": "#2368c4", "progressive": "#c75f0a", "half": "#2f8f4e"}
BELOW = ("mnist-mlp-progressive", "csv-mlp-progressive", "breast_cancer-mlp-progressive")
"""Rows whose name stands below their points in the figure."""


def write_table(path: Path, seed: int) -> None:
    """1,600 houses; of a tenth of them, whether they sell is a matter of chance."""
    import numpy as np
    import pandas as pd

    chance, n = np.random.default_rng(seed), 1600
    size, year = chance.normal(120, 40, n).round(1), chance.integers(1900, 2025, n)
    colour = chance.choice(["red", "white", "blue", "green"], n)
    heating = chance.choice(["gas", "oil", "wood"], n)
    good = size / 40 + (year - 1960) / 30 + 2 * (colour == "white") - 1.5 * (heating == "oil") > 3
    sells = np.where(chance.random(n) < 0.1, chance.random(n) < 0.5, good)
    table = pd.DataFrame({"size": size, "year": year, "colour": colour, "heating": heating})
    table.loc[chance.random(n) < 0.05, "size"] = np.nan
    table.loc[chance.random(n) < 0.05, "heating"] = None
    table.assign(sells=np.where(sells, "yes", "no")).to_csv(path, index=False)


def train(row: str, seed: int, folder: Path) -> Path:
    """The run of a row, trained if it is not there."""
    run = folder / f"{row}-{seed}"
    if (run / "metrics.json").exists():
        return run
    words = [*ROWS[row].split(), "--seed", str(seed), "--out", str(run)]
    if TABLE in words:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{seed}-{TABLE}"
        write_table(file, seed)
        words[words.index(TABLE)] = str(file)
    more = ["--resume"] if (run / "config.json").exists() else []
    before = _processor_seconds()
    subprocess.run([sys.executable, "-m", "pactrain", "train", *words, *more], check=True)
    earlier = float((run / SECONDS).read_text()) if (run / SECONDS).exists() else 0.0
    (run / SECONDS).write_text(f"{earlier + _processor_seconds() - before:.0f}\n")
    return run


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def result_of(row: str, seed: int, run: Path) -> dict[str, Any]:
    """The numbers of a run, if both verifiers accept its certificate."""
    for verifier in (
        ["-m", "pactrain", "verify", str(run), "--trust"],  # it names the file with its rows
        [str(ROOT / "tools" / "verify.py"), str(run / "certificate.json")],
    ):
        subprocess.run([sys.executable, *verifier], check=True)
    metrics, record, config = (
        json.loads((run / f"{name}.json").read_text()) for name in ("metrics", "certificate", "config")
    )
    rows = round(metrics["train"]["n"] / (1 - config["prior_data"]))
    errors = [s for s in record["statements"] if s["quantity"] == "0-1 error" and s["bound"] != "test set"]
    statement = min(errors, key=lambda s: s["value"])  # they hold together
    return {
        "row": row, "seed": seed, "command": f"pactrain train {ROWS[row]} --seed {seed}", "label": statement["label"],
        "certified": round(statement["value"], 4), "test_error": round(1 - metrics["test"]["accuracy"], 4), "rows": rows,
        "counted": record["n"], "delta": record["delta"], "processor_minutes": round(float((run / SECONDS).read_text()) / 60, 1),
    }  # fmt: skip


def kept() -> list[dict[str, Any]]:
    """All numbers that there are, in the order of the rows."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def table(results: list[dict[str, Any]]) -> str:
    """The rows in Markdown, the seeds of each beside one another."""
    lines = [
        "| row | rows, counted | seeds | certified | test error | minutes | published |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        if not (some := [r for r in results if r["row"] == row]):
            continue
        certified, test = (", ".join(f"{100 * r[key]:.1f}" for r in some) for key in ("certified", "test_error"))
        seeds, minutes = (", ".join(str(r[key]) for r in some) for key in ("seed", "processor_minutes"))
        size = f"{some[0]['rows']:,}, {some[0]['counted']:,}"
        name = f"`{row}`: `{ROWS[row]}`"
        lines.append(
            f"| {name} | {size} | {seeds} | **{certified} %** | {test} % | {minutes} | {PUBLISHED.get(row, '')} |"
        )
    return "\n".join(lines) + "\n"


def figure(results: list[dict[str, Any]], path: Path) -> None:
    """Certified error against test error, a point per run."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from pactrain.report.canvas import canvas, legend, rendered
    from pactrain.runtime.files import write_atomic

    sheet, axes = canvas()
    for kind, colour in COLOURS.items():
        some = [r for r in results if r["row"].endswith(kind)]
        axes.loglog([r["test_error"] for r in some], [r["certified"] for r in some], "o", color=colour, label=kind)
    ends = [min(r["test_error"] for r in results) / 1.5, max(r["certified"] for r in results) * 1.3]
    axes.loglog(ends, ends, "--", color="#5d6778", label="equal")
    for row in (row for row in ROWS if not row.endswith("half")):  # the same data as the row before
        named = [r for r in results if r["row"] == row]
        if named:
            last, below = max(named, key=lambda r: r["test_error"]), row in BELOW
            axes.annotate(
                row.rpartition("-")[0], (last["test_error"], last["certified"]), xytext=(7, -11) if below else (-5, 5),
                textcoords="offset points", ha="left" if below else "right", fontsize=8,
            )  # fmt: skip
    axes.set_xlabel("test error of the delivered network")
    axes.set_ylabel("certified error")
    for line in (axes.xaxis, axes.yaxis):
        line.set_major_locator(FixedLocator([0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]))
        line.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
        line.set_minor_locator(NullLocator())
    legend(axes)
    write_atomic(path, rendered(sheet, "svg"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []])
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--folder", type=Path, default=Path("runs/certificates"))
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--page", type=Path, help="a page whose table is written anew")
    options = parser.parse_args()
    for row in options.rows:
        for seed in map(int, options.seeds.split(",")):
            new = result_of(row, seed, train(row, seed, options.folder))
            others = [r for r in kept() if (r["row"], r["seed"]) != (row, seed)]
            results = sorted([*others, new], key=lambda r: ([*ROWS].index(r["row"]), r["seed"]))
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if options.page:
        head, _, rest = options.page.read_text().partition(BEGIN)
        options.page.write_text(head + BEGIN + table(kept()) + END + rest.partition(END)[2])
    if options.figure:
        figure(kept(), options.figure)


if __name__ == "__main__":
    main()

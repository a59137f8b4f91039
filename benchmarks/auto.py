"""The rules behind `auto` against other presets and against plain training, on every data set at hand.

    make auto-bench                                         # resumes; everything that is finished is kept
    python benchmarks/auto.py --rows digits,iris --seeds 3 --methods auto,adam,adamw

plain   torch's Adam at its defaults on all rows, as many steps as `auto` takes.
adam    the same, early-stopped on a fifth of the training rows (and not trained on it).
adamw   AdamW, learning rate, weight decay and number of epochs chosen on that fifth, then trained again on everything.
auto, authors, paper    `pactrain.fit` with the preset on all rows; the last two take at most three times the steps of `auto`.
Times are processor times of one thread, relative to one plain Adam training of as many steps as `auto` takes.
"""

import argparse
import copy
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch
from rows import COLLECTION, KEEL, ROWS, UNSCALED, UNSEEN, Problem
from torch import Tensor, nn

import pactrain
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import per_example, resolve
from pactrain.rules.presets import AUTO, Rules, rules_for
from pactrain.runtime.errors import PactrainError

GRID = list(itertools.product((1e-3, 3e-3, 1e-2), (0.0, 1e-2, 1e-1)))
LOOK = 20  # steps between looks at the validation rows
METHODS = ("plain", "auto", "adam", "adamw", "authors", "paper")
ABLATIONS: dict[str, dict[str, Any]] = {
    "auto: no units": {"units": False},
    "auto: no walk": {"held": "left out"},
    "auto: gain 1 however clean": {"class_signal": 0.0},
    "auto: prior at the initial weights": {"centre": "initial"},
    "auto: γ = 2000 for all": {"held": "gamma_max"},
    "auto: best gain for classes too; no walk": {"class_gain": 1e5, "held": "left out"},
    "auto: start at the mean size of a weight": {"start": "mean_abs_std"},
    "auto: rate kept": {"decay": False},
    "auto: stage 2": {"stage2_share": 0.5},
}
BRIEF: dict[str, dict[str, Any]] = {f"auto: {n} epochs at one γ": {"fixed_epochs": n} for n in (10, 40)}
"""`auto` as it is but for its number of epochs; further segments of the walk in γ come on top."""

CHANGED = ABLATIONS | BRIEF


def batches(problem: Problem, index: Tensor, size: int, seed: int) -> Iterator[Any]:
    data = problem.data(index)
    if problem.batch_size is None:
        return iter(data)
    return TensorBatches(data, min(size, len(index))).epoch(seed)


def steps_of(problem: Problem) -> tuple[int, int]:
    """Steps of `auto`, and its batch size."""
    size = AUTO.batch(problem.rows)
    an_epoch = 1 if problem.batch_size is None else max(1, round(problem.rows / size))
    return AUTO.stage1_epochs(an_epoch) * an_epoch, size


def train(
    problem: Problem, index: Tensor, *, steps: int, size: int, seed: int, lr: float, decay: float, watch: Tensor | None
) -> tuple[nn.Module, int, tuple[float, float]]:
    """Train on some of the rows; with `watch`, end with the best weights seen on those rows, and tell the step."""
    model = problem.model()
    kind = torch.optim.AdamW if decay else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=lr, weight_decay=decay)
    loss = resolve(problem.loss, next(batches(problem, index, size, 0)))
    torch.manual_seed(seed)
    best: tuple[tuple[float, float], int, Any] = ((-math.inf, -math.inf), 0, None)
    done = 0
    while done < steps:
        for batch in batches(problem, index, size, seed * 100_003 + done):
            model.train()
            optimizer.zero_grad(set_to_none=True)
            per_example(loss, model, batch).mean().backward()
            optimizer.step()
            done += 1
            if watch is not None and (done % LOOK == 0 or done == steps):
                score, mean_loss = problem.validate(model, watch)
                seen = (score if problem.classes else 0.0, -mean_loss)
                if seen > best[0]:
                    best = (seen, done, copy.deepcopy(model.state_dict()))
            if done >= steps:
                break
    if watch is not None and best[2] is not None:
        model.load_state_dict(best[2])
    return model, best[1], best[0]


def held_out(problem: Problem, seed: int) -> tuple[Tensor, Tensor]:
    order = torch.randperm(problem.rows, generator=torch.Generator().manual_seed(seed + 7919))
    cut = problem.rows // 5
    return order[cut:], order[:cut]


def run(row: str, seed: int, method: str) -> dict[str, Any]:
    """One training, or one search, and its test score."""
    torch.set_num_threads(1)
    problem = ROWS[row](seed)
    everything = torch.arange(problem.rows)
    steps, size = steps_of(problem)
    shared = {"size": size, "seed": seed}
    extra: dict[str, Any] = {}
    started = time.process_time()  # of one thread: others at work on the machine hardly matter
    if method == "plain":
        model, *_ = train(problem, everything, steps=steps, lr=1e-3, decay=0.0, watch=None, **shared)
    elif method == "adam":
        rest, fifth = held_out(problem, seed)
        model, extra["best_step"], _ = train(problem, rest, steps=steps, lr=1e-3, decay=0.0, watch=fifth, **shared)
    elif method == "adamw":
        rest, fifth = held_out(problem, seed)
        found = []
        for lr, decay in GRID:
            _, at, seen = train(problem, rest, steps=steps, lr=lr, decay=decay, watch=fifth, **shared)
            found.append((seen, at, lr, decay))
        _, at, lr, decay = max(found)
        extra |= {"lr": lr, "weight_decay": decay, "steps": at}
        model, *_ = train(problem, everything, steps=max(1, at), lr=lr, decay=decay, watch=None, **shared)
    else:
        model = problem.model()
        result = pactrain.fit(
            model, problem.data(everything), loss=problem.loss, preset=preset_for(method, problem, steps), seed=seed
        )
        estimated = {s.when: s.value for s in result.certificate.statements if s.bound == "unbounded (cgf)"}
        extra |= {
            "held_gamma": result.metrics["held_gamma"],
            "steps": result.metrics["steps"],
            "epochs": [result.metrics["stage1_epochs"], result.metrics["stage2_epochs"]],
            "stage1_bound": estimated.get("end of stage 1"),
            "estimated_bound": estimated.get("end of training"),
        }
    seconds = time.process_time() - started
    return {"row": row, "seed": seed, "method": method, "score": problem.score(model), "seconds": seconds, **extra}


def preset_for(method: str, problem: Problem, steps: int) -> Rules:
    if method in CHANGED:
        return AUTO.replace(**CHANGED[method])
    rules = rules_for(method)
    if rules.fixed_epochs is None:
        return rules
    an_epoch = 1 if problem.batch_size is None else max(1, round(problem.rows / rules.batch(problem.rows)))
    return rules.replace(fixed_epochs=max(1, min(rules.fixed_epochs, 3 * steps // an_epoch)))


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95 % interval (Student's t)."""
    from scipy.stats import t

    if len(values) < 2:
        return values[0], math.nan
    half = float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), half


def table(results: list[dict[str, Any]], methods: list[str]) -> str:
    """Scores, paired differences of `auto` to AdamW and Adam, and times, in Markdown."""
    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    scored = methods
    lines = [
        "| row | seeds | "
        + " | ".join(scored)
        + " | auto − adamw | auto − adam, in deviations | time of auto | of adamw |"
    ]
    lines.append("|---" * (len(scored) + 6) + "|")
    units = []
    for row in ROWS:
        shown = [m for m in scored if any((r, method) == (row, m) for r, _, method in kept)]
        seeds = sorted(
            set.intersection(*({s for r, s, m in kept if (r, m) == (row, method)} for method in shown)) if shown else []
        )
        if not seeds or "auto" not in shown:
            continue
        cells = []
        for m in scored:
            values = [kept[row, s, m]["score"] for s in seeds if (row, s, m) in kept]
            places = 2 if not values or abs(values[0]) >= 0.2 else 4
            spread = f" ± {statistics.stdev(values):.{places}f}" if len(values) > 1 else ""
            cells.append(f"{abs(statistics.mean(values)):.{places}f}{spread}" if values else "")
        paired = [s for s in seeds if (row, s, "adamw") in kept and (row, s, "adam") in kept]
        ours = [kept[row, s, "auto"]["score"] for s in paired]
        difference = relative = times = ""
        slower = ""
        if paired:
            gaps = [a - kept[row, s, "adamw"]["score"] for a, s in zip(ours, paired, strict=True)]
            plain_gaps = [a - kept[row, s, "adam"]["score"] for a, s in zip(ours, paired, strict=True)]
            deviation = (
                max([statistics.stdev(v) for v in (ours, [kept[row, s, "adamw"]["score"] for s in paired])] + [1e-9])
                if len(paired) > 1
                else math.nan
            )
            mean, half = interval(gaps)
            difference = f"{mean:+.2f}"
            if len(paired) > 1:
                difference += f" ± {half:.2f} ({mean / deviation:+.1f})"
                relative = f"{statistics.mean(plain_gaps) / deviation:+.1f}"
                units.append(mean / deviation)
        timed = [s for s in seeds if (row, s, "plain") in kept]
        if timed:
            base = statistics.median(kept[row, s, "plain"]["seconds"] for s in timed)
            times = f"{statistics.median(kept[row, s, 'auto']['seconds'] for s in timed) / base:.1f}"
            other = [kept[row, s, "adamw"]["seconds"] for s in timed if (row, s, "adamw") in kept]
            slower = f"{statistics.median(other) / base:.1f}" if other else ""
        lines.append(
            f"| {row} | {len(seeds)} | " + " | ".join(cells) + f" | {difference} | {relative} | {times} | {slower} |"
        )
    if units:
        lines.append(f"\nMean of auto − adamw over {len(units)} rows, in deviations: {statistics.mean(units):+.2f}")
    return "\n".join(lines)


def ablation_table(results: list[dict[str, Any]]) -> str:
    """How much the score changes when one rule is left out: mean over the seeds that both have, in Markdown."""
    kept = {(r["row"], r["seed"], r["method"]): r["score"] for r in results}
    rows = [row for row in ROWS if any(r == row and m in ABLATIONS for r, _, m in kept)]
    lines = ["| without | " + " | ".join(rows) + " |", "|---" * (len(rows) + 1) + "|"]
    own = {row: [v for (r, _, m), v in kept.items() if (r, m) == (row, "auto")] for row in rows}
    full = [
        f"{statistics.mean(v):.2f} ± {statistics.stdev(v) if len(v) > 1 else 0:.2f}" if v else "" for v in own.values()
    ]
    lines.append("| nothing (`auto`; minus rmse for numbers) | " + " | ".join(full) + " |")
    for method in ABLATIONS:
        cells = []
        for row in rows:
            seeds = [s for r, s, m in kept if (r, m) == (row, method) and (row, s, "auto") in kept]
            changes = [kept[row, s, method] - kept[row, s, "auto"] for s in seeds]
            cells.append(f"{statistics.mean(changes):+.2f} ({len(changes)})" if changes else "")
        if any(cells):
            lines.append(f"| {method.removeprefix('auto: ')} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def epochs_table(results: list[dict[str, Any]]) -> str:
    """The bound that the certificate estimates, and after how many epochs: `authors` after each stage, `auto` cut short, and `auto`."""
    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    others = [*BRIEF, "auto"]
    lines = [
        "| row | seed | authors, stage 1 | authors | " + " | ".join(others) + " |",
        "|---" * (4 + len(others)) + "|",
    ]
    for row, seed in sorted({(r, s) for r, s, m in kept if m == "authors"}):
        theirs = kept[row, seed, "authors"]
        found = [(theirs.get("stage1_bound"), theirs["epochs"][:1]), (theirs["estimated_bound"], theirs["epochs"])]
        ours = [kept.get((row, seed, m), {"estimated_bound": None, "epochs": []}) for m in others]
        found += [(r["estimated_bound"], r["epochs"]) for r in ours]
        cells = [f"{bound:.3f} ({sum(epochs)})" if bound is not None else "" for bound, epochs in found]
        lines.append(f"| {row} | {seed} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def presets_table(results: list[dict[str, Any]]) -> str:
    """Scores of the three presets on the seeds that all of them have, and their times in plain trainings."""
    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    presets = ("auto", "authors", "paper")
    lines = ["| row | seeds | " + " | ".join((*presets, *(f"time of {p}" for p in presets))) + " |", "|---" * 8 + "|"]
    for row in ROWS:
        seeds = [s for r, s, m in kept if (r, m) == (row, "auto") and all((row, s, p) in kept for p in presets)]
        if not seeds:
            continue
        scores = [f"{abs(statistics.mean(kept[row, s, p]['score'] for s in seeds)):.2f}" for p in presets]
        plain = [kept[row, s, "plain"]["seconds"] for s in seeds if (row, s, "plain") in kept]
        took = [statistics.median(kept[row, s, p]["seconds"] for s in seeds) for p in presets]
        times = [f"{t / statistics.median(plain):.1f}" if plain else "" for t in took]
        lines.append(f"| {row} | {len(seeds)} | " + " | ".join((*scores, *times)) + " |")
    return "\n".join(lines)


def figure(results: list[dict[str, Any]], path: Path) -> None:
    """Paired differences of `auto` to AdamW chosen on a grid and to early-stopped Adam, in deviations, with their 95 % intervals."""
    from matplotlib.figure import Figure

    kept = {(r["row"], r["seed"], r["method"]): r["score"] for r in results}
    canvas = Figure(figsize=(7, 0.3 * len({r["row"] for r in results}) + 1.5), layout="constrained")
    axes = canvas.subplots()
    names: list[str] = []
    for row in ROWS:
        seeds = [
            s for r, s, m in kept if (r, m) == (row, "auto") and {(row, s, "adamw"), (row, s, "adam")} <= kept.keys()
        ]
        if len(seeds) < 2:
            continue
        ours = [kept[row, s, "auto"] for s in seeds]
        for method, colour, shift in (("adamw", "tab:blue", 0.12), ("adam", "tab:orange", -0.12)):
            theirs = [kept[row, s, method] for s in seeds]
            unit = max(statistics.stdev(ours), statistics.stdev([kept[row, s, "adamw"] for s in seeds]), 1e-9)
            mean, half = interval([(a - b) / unit for a, b in zip(ours, theirs, strict=True)])
            label = {"adamw": "AdamW, grid", "adam": "Adam, early stopping"}[method] if not names else None
            axes.errorbar(
                mean, len(names) + shift, xerr=half, fmt="o", color=colour, capsize=2, markersize=4, label=label
            )
        names.append(f"{row} ({len(seeds)})")
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set(xlim=(-4, 4), xlabel="auto less the other, in deviations over seeds (better to the right)")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    if names:
        axes.legend(frameon=False, fontsize="small")
    canvas.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help="names separated by commas")
    parser.add_argument("--methods", default=",".join(METHODS), help="of those above, or an ablation")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument(
        "--store", type=Path, default=Path("benchmarks/results/auto.jsonl"), help="one JSON line a result"
    )
    parser.add_argument("--table-only", action="store_true")
    parser.add_argument("--document", type=Path, help="a page to put the table into, between its two marks")
    parser.add_argument(
        "--show",
        choices=("results", "unseen", "keel", "collection", "unscaled", "presets", "ablations", "epochs"),
        default="results",
        help="the table of methods, the same on rows that no rule has seen, on those of KEEL, on tables of numbers that come with R, on inputs that were not scaled, of presets, of rules left out, "
        "or of bounds and epochs",
    )
    parser.add_argument("--figure", type=Path, help="draw the differences into this file (.svg, .png, .pdf)")
    options = parser.parse_args()
    rows, methods = options.rows.split(","), options.methods.split(",")
    unknown = [r for r in rows if r not in ROWS] + [m for m in methods if m not in (*METHODS, *CHANGED)]
    if unknown:
        parser.error(f"not known: {unknown}; rows are {list(ROWS)}, methods {[*METHODS, *CHANGED]}")
    options.store.parent.mkdir(parents=True, exist_ok=True)
    results = [json.loads(line) for line in options.store.read_text().splitlines()] if options.store.exists() else []
    done = {(r["row"], r["seed"], r["method"]) for r in results}
    plan = [(r, s, m) for r in rows for s in range(options.seeds) for m in methods if (r, s, m) not in done]
    if not options.table_only:
        results += _carry_out(plan, options)
    shown = [r for r in results if r["row"] in rows]
    tables = {
        "results": lambda: table([r for r in shown if r["row"] not in UNSEEN | UNSCALED | KEEL | COLLECTION], methods),
        "unscaled": lambda: table([r for r in shown if r["row"] in UNSCALED], methods),
        "unseen": lambda: table([r for r in shown if r["row"] in UNSEEN], methods),
        "keel": lambda: table([r for r in shown if r["row"] in KEEL], methods),
        "collection": lambda: table([r for r in shown if r["row"] in COLLECTION], methods),
        "presets": lambda: presets_table(shown),
        "ablations": lambda: ablation_table([r for r in shown if r["row"] not in UNSEEN | KEEL | COLLECTION]),
        "epochs": lambda: epochs_table(shown),
    }
    text = tables[options.show]()
    print(text)
    if options.figure:
        figure([r for r in shown if r["row"] not in UNSCALED], options.figure)
    if options.document:
        mark, end = f"<!-- {options.show}: made by benchmarks/auto.py -->", f"<!-- end of {options.show} -->"
        page = options.document.read_text()
        before, _, rest = page.partition(mark)
        _, _, after = rest.partition(end)
        if not rest or not after:
            parser.error(f"{options.document} has no lines {mark!r} and {end!r} to put the table between")
        options.document.write_text(f"{before}{mark}\n{text}\n{end}{after}")


def _carry_out(plan: list[tuple[str, int, str]], options: argparse.Namespace) -> list[dict[str, Any]]:
    results, started = [], time.perf_counter()
    with ProcessPoolExecutor(options.workers) as pool, options.store.open("a") as store:
        jobs = {pool.submit(run, *job): job for job in plan}
        for done, job in enumerate(as_completed(jobs), 1):
            try:
                result = job.result()
            except PactrainError as error:
                print(f"{jobs[job]}: {error}", flush=True)
                continue
            store.write(json.dumps(result) + "\n")
            store.flush()
            results.append(result)
            left = (time.perf_counter() - started) / done * (len(plan) - done) / 60
            print(
                f"{done}/{len(plan)} {jobs[job]} {result['score']:.2f} in {result['seconds']:.0f} s; {left:.0f} min left",
                flush=True,
            )
    return results


if __name__ == "__main__":
    main()

"""Run folders of commands: a new one, the newest unfinished one, the checked configuration of a completed one.  No torch: a folder that is none is refused at once."""

import re
from pathlib import Path
from typing import Any

from pactrain.runtime.arguments import SEEDS
from pactrain.runtime.errors import RunError
from pactrain.runtime.untrusted import Types, check_types, made_from, read_json

RUNS = Path("runs")
"""Where runs go that are given no folder."""

CONFIG: Types = {
    "preprocess": dict, "data": dict, "model": str, "loss": str, "prior": str, "rules": dict, "versions": dict,
    "seed": int, "threads": int, "delta": (int, float), "prior_data": (int, float), "certificate": str, "model_digest": str,
}  # fmt: skip
DATA: Types = {
    "name": str, "target": (str, type(None)), "task": str, "drop": list, "split": int,
    "test_fraction": (int, float, type(None)), "keep": list, "group": (str, type(None)), "time": (str, type(None)),
    "test": (str, type(None)),
}  # fmt: skip
RULES: Types = {"units": bool}


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a completed run made by the command line, its types checked."""
    if not run.is_dir():
        raise RunError(f"{run} is not a run folder; name a folder made by pactrain train")
    if not (run / "metrics.json").exists():
        raise RunError(f"the run in {run} is not complete; finish it with pactrain train --out {run} --resume …")
    file = run / "config.json"
    config = made_from(file, dict[str, Any], read_json(file))
    if "preprocess" not in config:
        raise RunError(
            f"{run} was written by pactrain.fit, not by the command line: it does not know how its data and network are "
            "made; load model.safetensors into your own network"
        )
    check_types(config, CONFIG, file)
    check_types(config["data"], DATA, file)
    check_types(config["rules"], RULES, file)
    if config["prior"] not in ("layer", "tensor", "model"):
        raise RunError(f"{file} is not as pactrain writes it: 'prior' cannot be {config['prior']!r:.40}")
    if not -SEEDS <= config["seed"] < SEEDS:
        raise RunError(f"{file} is not as pactrain writes it: 'seed' cannot be {config['seed']!r:.40}")
    return config


def _stem(data: str) -> str:
    name = Path(data).stem if Path(data).suffix else data
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name) or "run"


def next_folder(data: str) -> Path:
    """A folder below `RUNS` that does not exist yet: digits, digits-2, digits-3, …"""
    stem, count = _stem(data), 1
    while (path := RUNS / (stem if count == 1 else f"{stem}-{count}")).exists():
        count += 1
    return path


def newest_unfinished(data: str) -> Path:
    """The newest run for this data that has not been completed."""
    from pactrain.runs.folder import is_complete  # here: it needs torch

    stem = re.escape(_stem(data))
    found = [
        path
        for path in (RUNS.iterdir() if RUNS.is_dir() else ())
        if re.fullmatch(stem + r"(-\d+)?", path.name) and (path / "config.json").exists() and not is_complete(path)
    ]
    if not found:
        raise RunError(f"below {RUNS}/ there is no unfinished run for {data!r}; name the folder with --out")
    return max(found, key=lambda path: path.stat().st_mtime)

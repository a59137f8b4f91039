"""Show that two checkouts of pactrain behave alike, bit for bit: for use before and after code is moved.

    python tools/compare_checkouts.py BEFORE AFTER [--only PATTERN] [--jobs 2] [--keep DIR]

The same small programs run in both, by public names alone; weights, posteriors, certificates, histories, metrics, printed output,
messages, exit codes and run folders are compared, all but times, paths and pactrain's own version.  One line per case; the exit code is
1 if anything differs.  Run it with the Python of an environment that has pactrain's dependencies.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

TOOLS = Path(__file__).resolve().parent
MOST_SHOWN = 3
ENDED = ""
"""Stands in the queue for a runner that has come to its end."""


@dataclass(frozen=True)
class Side:
    """One of the two checkouts, and the scratch folder of its runs."""

    checkout: Path
    folder: Path

    def environment(self) -> dict[str, str]:
        """Environment variables of a run: equal on both sides, but for the paths."""
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "LC_ALL", "PACTRAIN_DATA", "TMPDIR")}
        return kept | {
            "PYTHONPATH": f"{self.checkout / 'src'}{os.pathsep}{TOOLS}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "140",
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "MPLBACKEND": "agg",
            "HF_HUB_OFFLINE": "1",
            "COMPARED_CHECKOUT": str(self.checkout),
        }

    def runner(self, *words: str) -> "subprocess.Popen[str]":
        """Start `compare_runner.py`, which prints the name of each case that is done."""
        command = [sys.executable, str(TOOLS / "compare_runner.py"), *words]
        return subprocess.Popen(
            command, env=self.environment(), cwd=self.folder, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def observed(self, name: str) -> dict[str, Any]:
        """What a case has left."""
        found: dict[str, Any] = json.loads((self.folder / "results" / f"{slug(name)}.json").read_text())
        return found


def slug(name: str) -> str:
    """The name of a case as that of a file."""
    return re.sub(r"\W+", "-", name)


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ, by path."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            if key not in before or key not in after:
                yield f"{path}.{key} only {'before' if key in before else 'after'}".lstrip(".")
            else:
                yield from differences(before[key], after[key], f"{path}.{key}".lstrip("."))
        if before.keys() == after.keys() and list(before) != list(after):
            yield f"{path}: its keys are in another order"
    elif isinstance(before, list) and isinstance(after, list):
        for i, (a, b) in enumerate(zip(before, after, strict=False)):
            yield from differences(a, b, f"{path}[{i}]")
        if len(before) != len(after):
            yield f"{path} has {len(before)} entries before, {len(after)} after"
    elif before != after or type(before) is not type(after):
        texts = repr(before), repr(after)
        start = max(0, len(os.path.commonprefix(texts)) - 40)  # noqa: RUF071, characters are meant: where long texts part
        yield "{}: {} before, {} after".format(path, *(_short(text, start) for text in texts))


def _short(text: str, start: int) -> str:
    return text if len(text) <= 100 else f"{'...' * bool(start)}{text[start : start + 90]}..."


def verdict(before: dict[str, Any], after: dict[str, Any]) -> tuple[bool, str]:
    """Whether a case is the same on both sides, and the line that says so."""
    broken = _broken(before)
    if broken:
        return False, f"BROKEN before: {broken}"
    unlike = ("seconds", "trace", "fails")
    mine, theirs = ({k: v for k, v in side.items() if k not in unlike} for side in (before, after))
    found = list(differences(mine, theirs))
    if not found:
        return True, f"same ({before['seconds']:.1f} s, {after['seconds']:.1f} s)"
    more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
    return False, f"DIFFERS: {'; '.join(found[:MOST_SHOWN])}{more}"


def _broken(found: dict[str, Any]) -> str:
    """Why a case says nothing: it ended as it was not meant to."""
    if "ended" in found:
        return str(found["ended"])
    if found["fails"] == ("error" in found):
        return ""
    return str(found.get("error", "it was meant to fail and did not"))


@contextmanager
def scratch(keep: Path | None) -> Iterator[Path]:
    """The folder for everything that is written: temporary, or an empty one of the user's."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="compared") as name:
            yield Path(name).resolve()
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise SystemExit(f"{keep} is not empty: name a folder that is")
    yield keep.resolve()


def finished(sides: tuple[Side, Side], pattern: str, jobs: int) -> Iterator[str]:
    """Names of cases, each when both sides have run it."""
    parts = max(1, jobs // 2)
    done: SimpleQueue[str] = SimpleQueue()

    def run(side: Side, part: int) -> int:
        process = side.runner(str(side.folder), pattern, str(part), str(parts))
        try:
            assert process.stdout is not None
            for line in process.stdout:
                done.put(line.strip())
            return process.wait()
        finally:
            done.put(ENDED)

    with ThreadPoolExecutor(jobs) as pool:
        work = [pool.submit(run, side, part) for part in range(parts) for side in sides]
        running, once = len(work), set[str]()
        while running:
            name = done.get()
            running -= name == ENDED
            if name in once:
                yield name
            elif name:
                once.add(name)
        if any(w.result() for w in work):
            raise SystemExit("a runner came to an early end: its message is above")


def main() -> int:
    """Compare, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, nargs="?", help="a checkout")
    parser.add_argument("after", type=Path, nargs="?", help="another one")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose names this regular expression finds")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="an empty folder for all that is written")
    parser.add_argument("--list", action="store_true", help="list the cases")
    args = parser.parse_args()
    with scratch(args.keep) as folder:
        if args.list:
            print(Side(TOOLS.parent, folder).runner("list", args.only, "0", "1").communicate()[0], end="")
            return 0
        if args.before is None or args.after is None:
            parser.error("name two checkouts")
        for checkout in (args.before, args.after):
            if not (checkout / "src" / "pactrain").is_dir():
                parser.error(f"{checkout} is no checkout of pactrain: it has no src/pactrain")
        # names of the same length: paths decide where printed lines break
        sides = (Side(args.before.resolve(), folder / "1"), Side(args.after.resolve(), folder / "2"))
        return compared(sides, args.only, max(1, args.jobs))


def compared(sides: tuple[Side, Side], pattern: str, jobs: int) -> int:
    """Print a line for each case and a summary; 1 if anything differs."""
    same, different = 0, []
    for name in finished(sides, pattern, jobs):
        alike, line = verdict(*(side.observed(name) for side in sides))
        print(f"{name}: {line}", flush=True)
        same += alike
        different += [] if alike else [name]
    if not same and not different:
        raise SystemExit(f"no case is named like {pattern!r}; --list lists them")
    print(f"{same + len(different)} cases, {same} same, {len(different)} different", *different, sep="\n  ")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())

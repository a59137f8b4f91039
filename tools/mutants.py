"""Mutation testing of the formulas: one thing in a module is changed, and the tests that own the module must fail.

    python tools/mutants.py                      every mutant; fails if a module is below 95 %
    python tools/mutants.py --sample 60          a fixed sample of them, and all that have a name of their own
    python tools/mutants.py bounds/kl.py _row    those whose name matches one of these patterns

A mutant is made in memory (no file is written) and run in a fork of a process that has imported torch once.  Mutants whose
change cannot be observed are listed, with the reason, in docs/evidence/mutants.md and do not count.
"""

import argparse
import gc
import importlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

from mutations import Mutant, mutants
from named_mutants import named_mutants

ROOT = Path(__file__).resolve().parents[1]
SOURCE, EVIDENCE, TARGET = ROOT / "src" / "pactrain", ROOT / "docs" / "evidence" / "mutants.md", 0.95

MODULES = (
    *(f"bounds/{path.name}" for path in sorted((SOURCE / "bounds").glob("*.py")) if path.name != "by_name.py"),
    "distributions/gaussian.py", "scan/estimate.py", "problem/constant_answer.py",
    "certification/statement.py", "certification/make_statements.py", "certification/certificate.py",
    "certification/certify.py", "certification/risks.py", "certification/prior_check.py", "certification/measures.py",
    "certification/feature_check.py",
    "certification/noise_per_example.py", "certification/recursive.py", "certification/subject.py",
    "certification/unbounded_loss.py", "certification/progressive.py", "certification/in_parts.py", "training/progressive.py",
)  # fmt: skip
ALSO = {  # tests that must notice a change beside those that have the module's name
    **{module: ["bounds/test_base.py", "bounds/test_bounds.py"] for module in MODULES if module.startswith("bounds/")},
    **{
        f"bounds/{name}.py": []
        for name in ("unbounded", "prior_price", "held_out", "eta", "betting", "bernstein", "progressive", "recursive")
    },
    "bounds/moment.py": ["scan/test_estimate.py"],
    "certification/certify.py": ["certification/test_make_statements.py"],
    "certification/subject.py": ["certification/test_make_statements.py", "certification/test_certify.py"],
    "certification/unbounded_loss.py": ["certification/test_make_statements.py"],
    "certification/measures.py": ["certification/test_risks_values.py"],
    "certification/in_parts.py": ["certification/test_progressive.py"],
    "training/progressive.py": ["oracle/test_in_parts.py"],
}
PARTS = {
    "scan/estimate.py": ("_row", "moment_at"),
    "training/progressive.py": ("meet_block",),
}  # of the others, everything is mutated


def owners(module: str) -> list[str]:
    """The tests that must notice a change in a module: its own, then others."""
    path = Path(module)
    own = [f"{path.parent}/test_{path.stem}{more}.py" for more in ("_values", "_record", "")]
    return [name for name in dict.fromkeys([*own, *ALSO.get(module, [])]) if (ROOT / "tests" / name).exists()]


OWNERS = {module: owners(module) for module in MODULES}


def started(mutant: Mutant | None, tests: list[str], limit: float, *, imported: str = os.devnull) -> int:
    """Start the tests against a mutant in a fork, which dies by SIGALRM after `limit` seconds; its process id."""
    if pid := os.fork():
        return pid
    signal.setitimer(signal.ITIMER_REAL, limit)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    status = 1
    try:
        status = outcome(mutant, tests)
        Path(imported).write_text("\n".join(sys.modules))
    finally:
        os._exit(status)


def outcome(mutant: Mutant | None, tests: list[str]) -> int:
    """Run the tests in this process with the mutant in place of its module; 0 if they all pass."""
    import hypothesis
    import pytest

    class Mutated(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType | None:
            return mutant.code if mutant else super().get_code(fullname)

        def find_spec(self, name: str, *_: Any) -> Any:
            return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    if mutant:
        name = "pactrain." + mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, Mutated(name, str(SOURCE / mutant.module)))
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]  # a failure is enough; it need not be the smallest
    hypothesis.settings.register_profile(
        "mutants", derandomize=True, database=None, deadline=None, phases=phases, max_examples=30
    )
    hypothesis.settings.load_profile("mutants")
    quick = ["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:unraisableexception"]
    return int(pytest.main([*quick, *(f"tests/{name}" for name in tests)]))


def preloaded(modules: set[str]) -> dict[str, float]:
    """Import all that the tests of some modules import except pactrain; the seconds that the tests of each take by then."""
    owners = {module: tests for module, tests in OWNERS.items() if module in modules}
    every = sorted({name for tests in owners.values() for name in tests})
    with tempfile.NamedTemporaryFile("r") as file:
        started(None, every, 600, imported=file.name)
        names = file.read().split() if os.wait()[1] == 0 else sys.exit(f"without a mutant these already fail: {every}")
    for name in names:
        if name.split(".")[0] not in ("pactrain", "tests", "__main__"):
            with suppress(Exception):
                importlib.import_module(name)
    gc.freeze()
    seconds = {}
    for module, tests in owners.items():
        unchanged = Mutant(module, "unchanged", 0, compile((SOURCE / module).read_text(), str(SOURCE / module), "exec"))
        began = time.monotonic()
        started(unchanged, tests, 600)
        if os.wait()[1]:
            sys.exit(f"{module}: its tests fail although nothing was changed")
        seconds[module] = time.monotonic() - began
    return seconds


def survivors(chosen: list[Mutant], jobs: int, seconds: dict[str, float]) -> set[str]:
    """Run every mutant, and print those that no test notices as they come."""
    running: dict[int, Mutant] = {}
    alive: set[str] = set()
    for i, mutant in enumerate([*chosen, *[None] * jobs]):
        if len(running) == jobs or (mutant is None and running):
            pid, status = os.wait()
            done = running.pop(pid)
            if status == 0:
                alive.add(done.name)
                print(f"survived, line {done.line}: `{done.name}`", flush=True)
        if mutant is not None:
            limit = 10 + 5 * seconds[mutant.module]
            running[started(mutant, OWNERS[mutant.module], limit)] = mutant
            if (i + 1) % 100 == 0:
                print(f"{i + 1} of {len(chosen)}", flush=True)
    return alive


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", help="regular expressions; all mutants if there is none")
    parser.add_argument("--sample", type=int, help="so many mutants, always the same")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    every = [mutant for module in OWNERS for mutant in mutants(SOURCE, module, PARTS.get(module, ()))]
    named = named_mutants(SOURCE, OWNERS)
    every += named
    listed = set(re.findall(r"^- `(.+)`", EVIDENCE.read_text(), re.M))
    if unknown := listed - {mutant.name for mutant in every}:
        sys.exit("listed as equivalent, but there is no such mutant:\n" + "\n".join(sorted(unknown)))
    chosen = [m for m in every if not options.patterns or any(re.search(p, m.name) for p in options.patterns)]
    if options.sample:
        others = [m for m in chosen if m.name not in listed and m not in named]
        chosen = random.Random(0).sample(others, min(options.sample, len(others))) + [m for m in chosen if m in named]
    seconds = preloaded({mutant.module for mutant in chosen})
    print("seconds without a mutant:", {module: round(value, 1) for module, value in seconds.items()})
    alive = survivors(chosen, options.jobs, seconds)
    if unnoticed := alive & {m.name for m in named}:
        print("must not survive:", *sorted(unnoticed), sep="\n")
    return report(chosen, alive, listed, sampled=bool(options.sample)) or int(bool(unnoticed))


def report(chosen: list[Mutant], alive: set[str], listed: set[str], *, sampled: bool) -> int:
    """Print the score of each module; 1 if too many mutants of one survive (of all, in a sample, which has few of each), or one
    that is listed as equivalent does not."""
    print("| module | mutants | equivalent | killed | survived | score |\n|---|---|---|---|---|---|")
    worst = 1.0
    for module in [*dict.fromkeys(m.module for m in chosen), "all"]:
        names = {m.name for m in chosen if module in (m.module, "all")}
        counted = names - listed
        score = 1 - len(counted & alive) / max(1, len(counted))
        row = [len(names), len(names & listed), len(counted - alive), len(counted & alive), f"{score:.1%}"]
        worst = min(worst, score) if module == "all" or not sampled else worst
        print(f"| {module} | " + " | ".join(map(str, row)) + " |")
    if noticed := {m.name for m in chosen} & listed - alive:
        print("listed as equivalent, but a test notices:", *sorted(noticed), sep="\n")
    return int(worst < TARGET or bool(noticed))


if __name__ == "__main__":
    sys.exit(main())

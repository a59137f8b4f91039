"""Runs cases in one checkout, each in a process of its own; started by `compare_checkouts.py` with PYTHONPATH set.

The libraries are loaded once and the process is forked for each case, which imports the parts of pactrain that it needs: so a case
costs its own time, and not that of loading torch.
"""

import importlib
import json
import os
import re
import runpy
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SECONDS = 180
"""The most that a case may take."""

LIBRARIES = (
    "torch", "pandas", "scipy.optimize", "scipy.special", "scipy.stats", "sklearn.datasets", "sklearn.preprocessing", "safetensors.torch", "matplotlib.pyplot",
    "tyro", "rich.progress", "rich.table", "joblib", "torch.utils.flop_counter", "torch._dynamo", "torch_geometric.data",
)  # fmt: skip


def forked(action: Callable[[], int], folder: Path, name: str) -> int:
    """Run `action` in a copy of this process, its output in files `name`.out and `name`.err; the exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 70
    try:
        for stream, suffix in ((1, "out"), (2, "err")):
            file = os.open(folder / f"{name}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(file, stream)
        signal.alarm(SECONDS)
        code = action()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def pactrain_main(words: list[str]) -> int:
    """`python -m pactrain WORDS`."""
    sys.argv = ["pactrain", *words]
    runpy.run_module("pactrain", run_name="__main__", alter_sys=True)
    return 0


def observed(function: Callable[[], Any]) -> dict[str, Any]:
    """What a case returned or raised, and the warnings it gave."""
    from compare_values import normal, plain

    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            found["value"] = plain(function())
        except Exception as error:
            found["error"] = normal(f"{type(error).__name__}: {error}")
            found["trace"] = traceback.format_exc()
    found["warnings"] = [f"{w.category.__name__}: {normal(str(w.message))}" for w in given]
    return found


def carry_out(name: str, folder: Path) -> None:
    """Run one case in its own working folder, and write what was observed beside it."""
    from compare_values import CASES

    function, fails = CASES[name]
    where, results = folder / "work" / slug(name), folder / "results"
    where.mkdir(parents=True)
    results.mkdir(exist_ok=True)
    file = results / f"{slug(name)}.json"

    def action() -> int:
        os.chdir(where)
        file.write_text(json.dumps(observed(function)))
        return 0

    started = time.monotonic()
    code = forked(action, results, slug(name))
    found = json.loads(file.read_text()) if code == 0 else {"ended": f"exit code {code}"}
    found |= {"fails": fails, "seconds": time.monotonic() - started}
    file.write_text(json.dumps(found))


def slug(name: str) -> str:
    """The name of a case as that of a file."""
    return re.sub(r"\W+", "-", name)


def load_cases() -> dict[str, Any]:
    """The table of cases."""
    for module in ("compare_cases", "compare_more_cases", "compare_commands", "compare_errors"):
        importlib.import_module(module)
    from compare_values import CASES

    return CASES


def main() -> None:
    """Arguments: the scratch folder (`list` for the names alone), the pattern, which part of the cases, of how many."""
    folder, pattern, part, parts = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    names = [n for n in load_cases() if re.search(pattern, n)][part::parts]
    if folder == "list":
        print("\n".join(names))
        return
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)
    import pactrain

    source = Path(os.environ["COMPARED_CHECKOUT"]) / "src"
    if not Path(pactrain.__file__ or "").is_relative_to(source):
        raise SystemExit(f"pactrain was imported from {pactrain.__file__}, not from {source}")
    for name in names:
        carry_out(name, Path(folder))
        print(name, flush=True)


if __name__ == "__main__":
    main()

"""Fuzzing: good files with changes at random must be read, or refused with one of our errors; anything else is a finding.

python -m tests.faults.fuzz [--inputs 10000] [--place table.csv] [--seed 0]        or: make fuzz

With atheris installed, changes are guided by the lines that they reach; without, they are drawn at random.  A finding is
kept in tests/faults/corpus, whose files are read again by the tests.
"""

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SECONDS = 10


def changed(content: bytes, chance: random.Random) -> bytes:
    """A file with one to five changes: bytes replaced, taken away, repeated, or moved."""
    out = bytearray(content)
    for _ in range(chance.randint(1, 5)):
        at, length = chance.randrange(len(out) + 1), chance.choice((1, 1, 2, 4, 16, 200))
        piece = bytes(out[at : at + length])
        new = chance.choice(
            (chance.randbytes(length), b"", piece * 2, b"\x00" * length, b"\xff" * length, b"9" * length)
        )
        out[at : at + len(piece)] = new
    return bytes(out)


class Target:
    """One kind of file, and what reads it."""

    def __init__(self, name: str, folder: Path) -> None:
        from tests.faults.places import PLACES
        from tests.faults.runs import make_runs

        self.place, self.path = PLACES[name], folder / "files" / name
        self.path.parent.mkdir()
        (folder / "runs").mkdir()
        self.place.write(self.path, make_runs(folder / "runs"))
        self.good = self.path.read_bytes()
        self.place.read(self.path)  # loads what is loaded late

    def read(self, content: bytes) -> None:
        """Read a changed file; raises what is not one of our errors, and TimeoutError if it takes too long."""
        from pactrain import PactrainError

        self.path.write_bytes(content)
        signal.alarm(SECONDS)
        try:
            self.place.read(self.path)
        except PactrainError:
            pass
        except BaseException:
            CORPUS.mkdir(exist_ok=True)
            (CORPUS / f"{self.place.name}-{hashlib.sha256(content).hexdigest()[:12]}").write_bytes(content)
            raise
        finally:
            signal.alarm(0)


def too_long(*_: Any) -> None:
    """Ends what takes too long."""
    raise TimeoutError


def fuzz(name: str, inputs: int, seed: int) -> None:
    """Read so many changed files of one kind."""
    signal.signal(signal.SIGALRM, too_long)
    warnings.simplefilter("ignore")
    chance = random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        if find_spec("atheris") is None:
            target = Target(name, Path(folder))
            for _ in range(inputs):
                target.read(changed(target.good, chance))
            return
        import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

        with atheris.instrument_imports(include=["pactrain.data", "pactrain.runtime", "pactrain.certification"]):
            target = Target(name, Path(folder))
        seeds = Path(folder) / "seeds"
        seeds.mkdir()
        (seeds / "good").write_bytes(target.good)
        for i in range(20):
            (seeds / f"{i}").write_bytes(changed(target.good, chance))
        longest = str(2 * len(target.good))
        words = ["fuzz", str(seeds), f"-runs={inputs}", f"-seed={seed + 1}", f"-max_len={longest}", "-verbosity=0"]
        atheris.Setup(words, target.read)
        atheris.Fuzz()


def main() -> None:
    """Fuzz one place, or each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--place")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.place:
        fuzz(options.place, options.inputs, options.seed)
        return
    from tests.faults.places import PLACES

    failed = []
    for name in PLACES:
        words = ["--inputs", str(options.inputs), "--place", name, "--seed", str(options.seed)]
        done = subprocess.run([sys.executable, "-m", "tests.faults.fuzz", *words], check=False)
        print(f"{name}: {'no finding' if done.returncode == 0 else 'FAILED'}", flush=True)
        failed += [name] if done.returncode else []
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()

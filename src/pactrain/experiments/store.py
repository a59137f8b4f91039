"""The results of many runs in one SQLite file.  Only the driver writes; a row is there whole or not at all."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pactrain.experiments.plan import Outcome, Run
from pactrain.runtime.errors import RunError
from pactrain.runtime.untrusted import made_from, parse_json, regular

SCHEMA = """CREATE TABLE IF NOT EXISTS runs (
    identity TEXT PRIMARY KEY, kind TEXT NOT NULL, config TEXT NOT NULL, seed INTEGER NOT NULL, metrics TEXT, error TEXT,
    seconds REAL NOT NULL, versions TEXT NOT NULL, finished TEXT NOT NULL,
    CHECK ((metrics IS NULL) <> (error IS NULL)))"""
COLUMNS = "identity, kind, config, seed, metrics, error, seconds, versions, finished"


@dataclass(frozen=True)
class Row:
    """A finished or failed run as it is stored; `error` is None for a finished one, `metrics` for a failed one."""

    identity: str
    kind: str
    config: dict[str, Any]
    seed: int
    metrics: dict[str, Any] | None
    error: str | None
    seconds: float
    versions: dict[str, str]
    finished: str


class Store:
    """A file of results, made when it does not exist.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "results.sqlite")
    >>> run = Run("math:sqrt")
    >>> store.write(run, Outcome({"value": 1.0}, None, seconds=0.1))
    >>> store.get(run).metrics
    {'value': 1.0}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with self._connection() as db:
            db.execute(SCHEMA)

    @classmethod
    def at(cls, place: "Store | str | Path") -> "Store":
        """The store in a file; a store as it is."""
        return place if isinstance(place, cls) else cls(place)  # type: ignore[arg-type]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """One transaction; raises RunError where the file cannot be used."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                regular(self.path, RunError)
            with closing(sqlite3.connect(self.path, timeout=60)) as db, db:
                yield db
        except (OSError, ValueError, sqlite3.Error) as error:
            raise RunError(
                f"{self.path} cannot be used as a store of results: {error}. What it holds is kept: make it usable and start "
                "again, or name another store"
            ) from error

    def write(self, run: Run, outcome: Outcome) -> None:
        """Keep an outcome.  It takes the place of an earlier failure, never that of a result."""
        row = (
            run.identity,
            run.group,
            json.dumps(run.config),
            run.seed,
            None if outcome.error is not None else json.dumps(outcome.metrics),
            outcome.error,
            outcome.seconds,
            json.dumps(outcome.versions),
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with self._connection() as db:
            db.execute("DELETE FROM runs WHERE identity = ? AND error IS NOT NULL", row[:1])
            db.execute(f"INSERT OR IGNORE INTO runs ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def rows(self) -> list[Row]:
        """All rows, in the order in which they were written."""
        with self._connection() as db:
            found = db.execute(f"SELECT {COLUMNS} FROM runs ORDER BY rowid").fetchall()
        return [made_from(self.path, _row, values) for values in found]

    def of(self, runs: Iterable[Run]) -> dict[str, Row]:
        """The rows there are for these runs, by identity."""
        wanted = {run.identity for run in runs}
        return {row.identity: row for row in self.rows() if row.identity in wanted}

    def get(self, run: Run) -> Row | None:
        """The row of a run, or None."""
        return self.of([run]).get(run.identity)


def _row(values: tuple[Any, ...]) -> Row:
    identity, kind, config, seed, metrics, error, seconds, versions, finished = values
    found = None if metrics is None else dict(parse_json(metrics, nan=True))
    return Row(
        identity,
        kind,
        dict(parse_json(config)),
        int(seed),
        found,
        error,
        float(seconds),
        dict(parse_json(versions)),
        finished,
    )

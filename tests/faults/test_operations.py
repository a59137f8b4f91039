"""Every file operation of a run fails in turn, or is its last: the run resumes to the same bits, or says what to do."""

import errno
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

import pactrain
from pactrain.experiments import Run, carry_out
from pactrain.runs import folder as runs
from tests.faults.operations import KILLED, WATCH, Fault, fsync, in_child
from tests.zoo import rows

FAULTS: dict[str, Fault] = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "killed": None}
SAMPLE = 35
"""One in so many operations is tried in the fast suite; the slow tests try them all."""


def table(out: Path, *, resume: bool, **options: Any) -> None:
    """A short run into a folder."""
    torch.manual_seed(0)
    pactrain.fit(torch.nn.Linear(6, 3), rows(), budget="3 epochs", out=out, resume=resume, **options)


def prior_data(out: Path, *, resume: bool) -> None:
    """A run whose prior is trained on a part of the rows."""
    table(out, resume=resume, prior_data=0.5, bound="kl")


def plan(out: Path, *, resume: bool) -> None:
    """Some runs whose results go to a store; a plan is always resumed."""
    wanted = [Run("tests.experiments.recipes:square", {"number": i}, seed=i) for i in range(3)]
    rows = carry_out(wanted, out / "store.sqlite", workers=1)
    assert [row.metrics for row in rows] == [{"square": i * i, "seed": i} for i in range(3)]


KINDS: dict[str, Callable[..., None]] = {"table": table, "prior_data": prior_data, "plan": plan}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after each epoch, and `fsync` that can fail."""
    monkeypatch.setattr(runs, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", fsync)


def result(out: Path) -> dict[str, bytes]:
    """What must not depend on whether a run was cut short."""
    names = ("model.safetensors", "posterior.safetensors", "certificate.json", "moment.json")
    found = {name: (out / name).read_bytes() for name in names if (out / name).exists()}
    if found:
        found["config.json"] = (out / "config.json").read_bytes()
        lines = (out / "history.jsonl").read_text().splitlines()
        records = [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]
        found["history.jsonl"] = json.dumps(records).encode()
    return found


def check(kind: str, fault: str, tmp_path: Path, *, step: int, first: int = 0) -> None:
    """Let operations number first, first + step, … fail, each in a run of its own, and resume it."""
    run, whole = KINDS[kind], tmp_path / "whole"

    def counted() -> str:
        with WATCH.on(whole) as seen:
            run(whole, resume=False)
        return json.dumps(seen)

    code, said = in_child(counted)
    assert code == 0, said
    operations, wanted = json.loads(said), result(whole)
    assert len(operations) > 3
    for at in range(first, len(operations), step):
        out = tmp_path / f"{at}"

        def spoiled(out: Path = out, at: int = at) -> None:
            with WATCH.on(out, at=at, fault=FAULTS[fault]):
                run(out, resume=False)

        code, said = in_child(spoiled)
        where = f"{operations[at]}, operation {at}: {said}"
        if FAULTS[fault] is None:
            assert code == KILLED, where
        elif code:
            assert said.startswith("RunError: "), where
            assert str(out) in said, where
            assert os.strerror(int(FAULTS[fault] or 0)) in said, where
        if code or kind == "plan":
            code, said = in_child(partial(run, out, resume=True))
        assert code == 0 or "is complete" in said, f"{where}; resumed: {said}"
        assert result(out) == wanted, where
        assert not list(out.rglob(".*.part")), where


@pytest.mark.parametrize("fault", FAULTS)
def test_some_operations_fail(fault: str, tmp_path: Path) -> None:
    check("table", fault, tmp_path, step=SAMPLE, first=10 * list(FAULTS).index(fault))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_operation_fails(kind: str, fault: str, tmp_path: Path) -> None:
    check(kind, fault, tmp_path, step=1)

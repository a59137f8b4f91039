"""The harness that judges the rules: it resumes, and writes its table into a page."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_harness_resumes_and_fills_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results: made by benchmarks/auto.py -->\nold\n<!-- end of results -->\nafter\n")
    store = tmp_path / "store.jsonl"
    command = [sys.executable, "benchmarks/auto.py", "--rows", "iris", "--seeds", "1", "--methods", "plain,auto"]
    command += ["--workers", "1", "--store", str(store), "--document", str(page)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    first = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "2/2" in first.stdout
    again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert "/2" not in again.stdout
    kept = [json.loads(line) for line in store.read_text().splitlines()]
    assert {r["method"] for r in kept} == {"plain", "auto"}
    assert all(r["score"] > 80 for r in kept)
    written = page.read_text()
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "| iris | 1 |" in written
    assert "old" not in written

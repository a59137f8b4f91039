"""Every habit that `docs/habits.md` lists names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_row_names_tests_that_exist() -> None:
    known = {
        name
        for file in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    rows = [line for line in (ROOT / "docs" / "habits.md").read_text().splitlines() if line.startswith("| ")]
    habits = [row for row in rows if not re.match(r"\| (you write|you have|way|problem) \|", row) and "**" not in row]
    assert len(habits) >= 40
    for row in habits:
        cell = row.rstrip(" |").rpartition(" | ")[2]
        names = re.findall(r"`([^`\[]+)[^`]*`", cell)
        assert names, f"no test in: {row}"
        for name in names:
            assert name in known or (ROOT / name).exists(), f"{name} does not exist: {row}"

"""Lines whose fields are counted without taking them apart are those of which csv itself finds the same."""

import csv
import random
from pathlib import Path

import pytest

from pactrain.data import files

PARTS = ("a", "1", ",", ",", ",", "\n", "\n", "\r\n", '"', '""', " ", '"x,y"', "\r")


def exact(path: Path, columns: int) -> bool:
    """What csv says."""
    with path.open(newline="", encoding="utf-8") as file:
        try:
            return all(len(row) == columns for row in csv.reader(file, skipinitialspace=True) if row)
        except csv.Error:
            return False


@pytest.mark.parametrize("piece", [3, 30, files.PIECE])
def test_counting_fields_agrees_with_csv(piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIECE", piece)
    chance, path, plain = random.Random(piece), tmp_path / "t.csv", 0
    for _ in range(600):
        path.write_bytes("".join(chance.choice(PARTS) for _ in range(chance.randint(1, 25))).encode())
        columns = chance.randint(1, 4)
        if files._is_plain(path, ",", columns):
            plain += 1
            assert exact(path, columns), path.read_bytes()
    assert plain > 10


def test_quoted_tables_are_plain(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a","b"\n"x, y",1\n\n"say ""no""",2\r\n')
    assert files._is_plain(path, ",", 2)
    assert not files._is_plain(path, ",", 3)
    path.write_text('a,b\n5" pipe, 3" pipe ,2\n')
    assert not files._is_plain(path, ",", 2)

"""Documents and arrays from anybody: read whole and right, or refused in one error that names the file."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pactrain.runtime.errors import DataError, PactrainError, RunError
from pactrain.runtime.untrusted import (
    arrays_of,
    check_types,
    forms_of,
    made_from,
    parse_json,
    read_arrays,
    read_json,
    regular,
)


def test_arrays_come_back_in_this_machines_byte_order(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x, names = np.arange(6.0).reshape(2, 3).astype(">f8"), np.array(["a", "ß"])
    np.savez(path, x=x, names=names)
    found = read_arrays(path)
    assert found["x"].dtype == np.dtype(np.float64)
    np.testing.assert_array_equal(found["x"], x)
    assert found["names"].tolist() == ["a", "ß"]
    assert list(read_arrays(path, ["names"])) == ["names"]
    assert {name: shape for name, (shape, _) in forms_of(path).items()} == {"x": (2, 3), "names": (2,)}
    with pytest.raises(DataError, match="lacks the array 'y'"):
        arrays_of(path, ["x", "y"])


def test_objects_untrue_sizes_and_other_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="only numbers and texts"):
        read_arrays(path)
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    for name, data, words in (
        ("x.npy", content.getvalue()[:-8], "not the size"),
        ("x.txt", b"hello", "which is no array"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, data)
        with pytest.raises(DataError, match=words):
            read_arrays(path)
    path.write_bytes(b"PK no archive")
    assert forms_of(path) == {}


def test_json_follows_the_standard(tmp_path: Path) -> None:
    assert parse_json('{"a": [1, 2.5, null]}') == {"a": [1, 2.5, None]}
    assert parse_json("NaN", nan=True) != parse_json("1")
    for text in ("NaN", "[Infinity]", '"\\ud800"', "{", ""):
        with pytest.raises(ValueError, match=r".*"):
            parse_json(text)
    path = tmp_path / "a.json"
    path.write_text("[" * 100_000)
    with pytest.raises(RunError, match="cannot be read as JSON"):
        read_json(path)


def test_only_files_are_opened(tmp_path: Path) -> None:
    for place, words in (
        (tmp_path, "a folder and not a file"),
        (tmp_path / "gone", "there is no file"),
        ("/dev/null", "a pipe or a device"),
    ):
        with pytest.raises(DataError, match=words):
            regular(place)
    with pytest.raises(DataError, match="cannot be read"):
        regular("a\0b")


def test_documents_of_another_form_are_named(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(RunError, match=r"config.json.*lacks 'seed'"):
        made_from(path, lambda values: values["seed"], {})
    with pytest.raises(RunError, match=r"config.json.*unexpected"):
        made_from(path, lambda values: values + 1, "text")
    check_types({"n": 3, "on": True}, {"n": (int, float), "on": bool}, path)
    wrong: list[object] = [{}, {"n": "3"}, {"n": True}, []]
    for values in wrong:
        with pytest.raises(PactrainError, match=r"config\.json"):
            check_types(values, {"n": (int, float)}, path)

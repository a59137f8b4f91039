"""Files are written whole or not at all, and what cannot be read is said."""

from pathlib import Path

import pytest

from pactrain.runtime.errors import RunError


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    from pactrain.runtime.files import load_state, write_atomic

    (tmp_path / "taken" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        write_atomic(tmp_path / "taken", "content")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "cut").write_bytes(b"x" * 900)
    for name, message in (
        ("cut", "as a safetensors file"),
        ("absent", "no file"),
        ("taken", "a folder and not a file"),
    ):
        with pytest.raises(RunError, match=message):
            load_state(tmp_path / name)

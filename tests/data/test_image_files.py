"""Images in files of the user's own: an NPZ of bytes, and a folder of IDX files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pactrain.cli.main import main
from pactrain.data.load import is_file_name, load
from pactrain.runtime.errors import DataError
from tests.data.image_files import RNG, write_idx


def arrays(shape: tuple[int, ...] = (28, 28), classes: int = 3) -> dict[str, np.ndarray[Any, Any]]:
    made: dict[str, np.ndarray[Any, Any]] = {}
    for part, n in (("train", 9), ("test", 6)):
        made[f"x_{part}"] = RNG.integers(0, 256, (n, *shape), dtype=np.uint8)
        made[f"y_{part}"] = np.arange(n, dtype=np.uint8) % classes
    return made


@pytest.mark.parametrize("compress", [False, True])
def test_a_folder_and_a_file_give_the_task_of_the_named_set(tmp_path: Path, compress: bool) -> None:
    a, b, c, d = write_idx(tmp_path / "mnist", compress=compress).values()
    np.savez(tmp_path / "images.npz", x_train=a, y_train=b, x_test=c, y_test=d)
    named = load("mnist", root=tmp_path)
    for name in (tmp_path / "mnist", tmp_path / "images.npz"):
        assert is_file_name(str(name))  # a run folder that names it has to be trusted first
        task = load(str(name))
        assert (task.x_train == named.x_train).all()
        assert np.array_equal(np.asarray(task.x_test), np.asarray(named.x_test))
        assert (task.y_train == named.y_train).all()
        assert [c.label for c in task.caveats] == ["certified"]  # that the test rows are a part of their own


@pytest.mark.parametrize("shape", [(12, 12, 3), (3, 12, 12)])
def test_colours_first_or_last(tmp_path: Path, shape: tuple[int, ...]) -> None:
    made = arrays(shape)
    np.savez(tmp_path / "images.npz", allow_pickle=False, **made)
    task = load(str(tmp_path / "images.npz"))
    first = made["x_train"] if shape[0] == 3 else made["x_train"].transpose(0, 3, 1, 2)
    np.testing.assert_allclose(task.x_train.reshape(9, 3, 12, 12), (first - 127.5) / 63.75, rtol=1e-6)
    assert task.encoder.classes == ("0", "1", "2")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_train": np.arange(8, dtype=np.int64)}, "each needs a class"),
        ({"y_test": np.full(6, -1)}, "each needs a class"),
        ({"y_test": np.full(6, 0.5)}, "each needs a class"),
        ({"x_test": np.zeros((6, 14, 14), np.uint8)}, r"images of \(1, 28, 28\) and test images of \(1, 14, 14\)"),
        ({"x_train": np.zeros((9, 28, 28, 2), np.uint8)}, r"shape \(9, 28, 28, 2\)"),
    ],
)
def test_images_that_do_not_fit_together(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "images.npz", **arrays() | change)
    with pytest.raises(DataError, match=message):
        load(str(tmp_path / "images.npz"))


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder and not a file; name a file in it"):
        load(str(tmp_path))


def test_a_convolutional_network_is_certified_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "letters"
    write_idx(folder, compress=True, n=400)
    run = tmp_path / "run"
    words = ["--model", "cnn5:width=0.05", "--certificate", "progressive", "--budget"]
    assert code("train", "--data", str(folder), "--out", str(run), *words, "1 epochs") == 0
    assert "Columns:" not in capsys.readouterr().out  # pixels are no columns of a table
    assert code("verify", str(run), "--data", str(folder)) == 0
    assert code("verify", str(run)) == 2  # no folder is read because a run names it


def code(*words: str) -> object:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code

"""The readers of GLUE."""

import json
import lzma
import os
from pathlib import Path

import pytest

from pactrain.data.glue import read_glue
from pactrain.runtime.errors import DataError


def test_glue_as_it_is_shipped_and_in_one_file(tmp_path: Path) -> None:
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "QNLI").mkdir()
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nit 's \"good\t1\nbad\t0\n")
    (tmp_path / "QNLI" / "train.tsv").write_text(
        "index\tquestion\tsentence\tlabel\n0\tWho ?\tShe did .\tentailment\n1\tWhy ?\tNo .\tnot_entailment\n"
    )
    assert read_glue("sst2", "dev", tmp_path) == (["it 's \"good", "bad"], [1, 0])
    assert read_glue("qnli", "train", tmp_path) == ([("Who ?", "She did ."), ("Why ?", "No .")], [1, 0])
    with lzma.open(tmp_path / "glue_sst2_qnli.json.xz", "wt") as file:
        json.dump({"sst2": {"train": [["fine", 1]]}, "qnli": {"train_part": [["Q", "S", 0]], "dev": []}}, file)
    assert read_glue("sst2", "train", tmp_path) == (["fine"], [1])
    (tmp_path / "QNLI" / "train.tsv").unlink()
    assert read_glue("qnli", "train", tmp_path) == ([("Q", "S")], [0])
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\nfine\t7\n")
    with pytest.raises(DataError, match="row 1 lacks"):
        read_glue("sst2", "dev", tmp_path)
    with pytest.raises(DataError, match="no GLUE set 'cola'"):
        read_glue("cola", "dev", tmp_path)


@pytest.mark.skipif(
    not (Path(os.environ.get("PACTRAIN_DATA", "")) / "glue_sst2_qnli.json.xz").is_file(),
    reason="PACTRAIN_DATA has no glue_sst2_qnli.json.xz",
)
def test_the_published_sets() -> None:
    assert [len(read_glue(*which)[0]) for which in (("sst2", "train"), ("sst2", "dev"), ("qnli", "dev"))] == [
        67_349,
        872,
        5_463,
    ]

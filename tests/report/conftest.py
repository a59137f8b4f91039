"""Run folders that all tests of the report read, and their pages."""

from pathlib import Path

import pytest
from torch import nn

import pactrain
from pactrain.certification.before_training import Described
from pactrain.report.page import page
from pactrain.report.read import read_run
from pactrain.rules.presets import AUTHORS
from tests.report.outline import HOSTILE, NAMES
from tests.zoo import build, rows


def hostile() -> nn.Module:
    """A network with a group that no page should trust."""
    model = nn.Sequential()
    model.add_module(HOSTILE.replace(".", ""), nn.Linear(6, 3))
    return model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of both kinds: classes in two stages, numbers, hostile names."""
    root = tmp_path_factory.mktemp("runs")
    two = AUTHORS.replace(enter_stage2=0.0, stage2_share=0.5)
    x, y = rows()
    config = {"data": {"name": "flowers"}, "model": "mlp"}
    pactrain.fit(
        build("mlp"),
        Described((x, y), config=config),
        test=rows(30, seed=2),
        preset=two,
        budget="9 epochs",
        out=root / "classes",
    )
    pactrain.fit(
        build("mlp"),
        Described((x, y), config=config),
        test=rows(30, seed=2),
        budget="12 epochs",
        out=root / "other",
        seed=1,
    )
    pactrain.fit(nn.Linear(6, 1), (x, x[:, :1].clone()), budget="5 epochs", out=root / "numbers")
    named = {"data": {"name": HOSTILE + ".csv"}, "model": HOSTILE}
    pactrain.fit(hostile(), Described((x, y), config=named), test=(x, y), budget="3 epochs", out=root / "hostile")
    return root


@pytest.fixture(scope="module")
def pages(folder: Path) -> dict[str, str]:
    """The page of each run as `fit` wrote it, and one of all runs."""
    found = {name: (folder / name / "report.html").read_text() for name in NAMES}
    return found | {"all": page([read_run(folder / name) for name in NAMES])}

"""Compiled kernels do what the plain operations do; where they cannot be compiled, that is told."""

import shutil

import pytest
import torch
from torch import nn

import pactrain
from pactrain import Posterior, Prior
from pactrain.training import update_kernels
from pactrain.training.curvature import WORTH_COMPILING, CurvatureStds
from pactrain.training.update_formulas import Moves
from tests.zoo import build, rows


@pytest.mark.skipif(shutil.which("g++") is None, reason="nothing is compiled without a C++ compiler")
@pytest.mark.parametrize("moves", ["adam", "natural"])
def test_compiled_kernels_do_what_the_plain_operations_do(moves: Moves, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.training.curvature.WORTH_A_KERNEL", 0)
    found = []
    for steps in (0, int(WORTH_COMPILING)):
        model = build("mlp")
        posterior = Posterior(model, Prior(per="layer", std=0.05))
        stds = CurvatureStds(posterior, kl_weight=0.01, memory=0.9, log_std_range=(-6, 1), moves=moves, steps=steps)
        assert (stds._kernels is not None) is (steps > 0)
        x, y = rows(40)
        for step in range(4):
            stds.draw(step)
            nn.functional.cross_entropy(model(x), y).backward()
            stds.learn(0.01, step)
        stds.rest()
        found.append((stds.flat.means.clone(), stds.curvature.clone()))
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-5)


def test_groups_of_few_weights_are_not_compiled_one_by_one() -> None:
    model = build("mlp")
    posterior = Posterior(model, Prior(per="tensor", std=0.05))
    steps = int(WORTH_COMPILING)
    assert CurvatureStds(posterior, kl_weight=1.0, memory=0.9, log_std_range=(-6, 1), steps=steps)._kernels is None


def test_steps_that_could_not_be_compiled_are_told_of_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", fails)
    monkeypatch.setattr("pactrain.training.curvature.WORTH_COMPILING", 1.0)
    update_kernels._compiled.cache_clear()
    try:
        for _ in range(2):
            notes = pactrain.fit(build("mlp"), rows(), prior="model", budget="2 epochs").notes
            assert any(
                "were not compiled (RuntimeError: no compiler); they are made of plain" in note for note in notes
            )
    finally:
        update_kernels._compiled.cache_clear()

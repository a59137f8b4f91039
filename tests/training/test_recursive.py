"""Training part by part: the prior of each level, what judges it, and how a run goes on after a crash."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import pactrain
from pactrain import PactrainError, Posterior
from pactrain.bounds.recursive import Level
from pactrain.certification import recursive
from pactrain.problem.batches import TensorBatches
from pactrain.problem.losses import Loss
from pactrain.runtime.errors import DataError
from pactrain.runtime.events import Event
from pactrain.training.closed_form_steps import first_weight
from pactrain.training.recursive import MeasureLevel, back_to_first_prior, end_level, rebase
from pactrain.training.start import Start
from pactrain.training.trainer import Trainer
from tests.interruptions import Crash, interrupt_at
from tests.zoo import build, rows

RUN: dict[str, Any] = {"certificate": "recursive", "budget": "3 epochs"}


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recursive, "DRAWS", 200)


def test_each_posterior_is_the_prior_of_the_next_and_is_judged_by_what_it_has_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = rows(320)
    ends: list[tuple[torch.Tensor, torch.Tensor]] = []
    judged: list[set[int]] = []
    place = {tuple(row.tolist()): i for i, row in enumerate(x)}
    measure_level = recursive.measure_level

    def watched(posterior: Posterior, batches: TensorBatches, loss: Loss, first: bool, seed: int) -> Level:
        prior_std = posterior.log_std.detach().clone()
        for group, at in enumerate(posterior.group_slices):
            prior_std[at] = posterior.prior_log_std.detach()[group]
        if posterior.units is not None:
            prior_std += posterior.units.log()
        if ends:
            assert torch.equal(posterior.prior_mean, ends[-1][0])
            torch.testing.assert_close(prior_std, ends[-1][1], rtol=0, atol=1e-5)
        assert first is not bool(ends)
        ends.append((posterior.flat_means().clone(), posterior.log_std.detach().clone()))
        judged.append({place[tuple(row.tolist())] for batch in batches.ordered() for row in batch[0]})
        return measure_level(posterior, batches, loss, first, seed)

    monkeypatch.setitem(pactrain.fit.__globals__, "measure_level", watched)
    network = build("mlp")
    initial = torch.cat([p.detach().reshape(-1) for p in Posterior(network).means()])
    events: list[Event] = []
    result = pactrain.fit(network, (x, y), callbacks=[events.append], **RUN)
    assert [len(found) for found in judged] == [320, 310, 300, 280, 240, 160]
    assert all(later < earlier for earlier, later in pairwise(judged))
    assert torch.equal(result.posterior.prior_mean, initial)  # described against the first prior again
    assert result.posterior.units is None
    met = [event for event in events if event.phase == "block"]
    assert [event.values["examples"] for event in met] == [320, 310, 300, 280, 240, 160]
    assert result.metrics["train"]["n"] == 320


def test_the_divergence_of_earlier_levels_weighs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[float] = []

    def watched(trainer: Trainer, start: Start, measure: MeasureLevel) -> None:
        if trainer.curvature is not None:  # the last level has handed it in
            parts.append(trainer.curvature.kl_weight / first_weight(trainer.bound, trainer.held_gamma))
        end_level(trainer, start, measure)

    monkeypatch.setattr("pactrain.training.train.end_level", watched)
    pactrain.fit(build("mlp"), rows(320), **RUN)
    assert parts == pytest.approx([0.5**5, 0.5**4, 0.5**3, 0.5**2, 0.5])


def test_rebasing_makes_the_divergence_zero_and_can_be_taken_back() -> None:
    posterior = Posterior(build("mlp"))
    with torch.no_grad():
        posterior.log_std.add_(torch.linspace(-1, 1, posterior.num_weights))
        for p in posterior.means():
            p.mul_(1.5)
    prior_mean, before = posterior.prior_mean.clone(), float(posterior.kl_by_group().sum())
    assert before > 1
    rebase(posterior)
    assert float(posterior.kl_by_group().sum()) == pytest.approx(0.0, abs=1e-6)
    back_to_first_prior(posterior, prior_mean)
    assert float(posterior.kl_by_group().sum()) == pytest.approx(before, rel=1e-6)


@pytest.mark.slow
def test_random_labels_are_not_certified() -> None:
    x, y = rows(400)
    labels = torch.randint(int(y.max()) + 1, y.shape, generator=torch.Generator().manual_seed(3))
    result = pactrain.fit(build("mlp"), (x, labels), certificate="recursive", budget="40 epochs")
    assert "Nothing is claimed" in str(result.certificate)


def test_resumed_run_is_bitwise_the_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    whole = pactrain.fit(build("mlp"), rows(320), out=tmp_path / "whole", **RUN)
    for epoch, resume in ((2, False), (len(whole.history) // 2, True), (len(whole.history), True)):
        options: dict[str, Any] = RUN | {"resume": resume, "callbacks": [interrupt_at(epoch, Crash)]}
        with pytest.raises(Crash):
            pactrain.fit(build("mlp"), rows(320), out=tmp_path / "cut", **options)
    pactrain.fit(build("mlp"), rows(320), out=tmp_path / "cut", resume=True, **RUN)
    for file in ("model.safetensors", "posterior.safetensors", "certificate.json", "moment.json"):
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes(), file


def test_an_interrupted_run_states_its_last_level() -> None:
    result = pactrain.fit(build("mlp"), rows(320), callbacks=[interrupt_at(12, KeyboardInterrupt)], **RUN)
    assert result.interrupted
    (s,) = result.certificate.statements
    assert 1 <= s.inputs["levels"].count(" / ") + 1 < 6
    assert s.inputs["parts"] == 6


def test_what_cannot_be_done_part_by_part() -> None:
    x, y = rows(70)
    with pytest.raises(PactrainError, match='goes with bound="kl"'):
        pactrain.fit(build("mlp"), (x, y), certificate="recursive", bound="quad")
    with pytest.raises(PactrainError, match="prior_data goes with the standard certificate"):
        pactrain.fit(build("mlp"), (x, y), certificate="recursive", prior_data=0.5)
    with pytest.raises(DataError, match="at least 64 rows, and there are 60"):
        pactrain.fit(build("mlp"), (x[:60], y[:60]), certificate="recursive")


def test_several_processes_are_refused() -> None:
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        with pytest.raises(PactrainError, match="without torchrun"):
            pactrain.fit(build("mlp"), rows(70), certificate="recursive")
    finally:
        dist.destroy_process_group()

"""Flips and crops: what they do to one image, that they repeat themselves, and that only training steps see them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.baselines import plain_training
from pactrain.certification.data_checks import digest_data
from pactrain.problem.augmentation import FlipCrop, augmented
from pactrain.problem.batches import TensorBatches
from pactrain.problem.read_data import as_batches
from pactrain.runtime.errors import DataError, PactrainError
from pactrain.runtime.events import Event
from tests.interruptions import epochs_of

CPU = torch.device("cpu")


def images(n: int = 40, side: int = 6) -> Tensor:
    return torch.rand(n, 2, side, side, generator=torch.Generator().manual_seed(0)) + 1  # so that 0 is the outside


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def possible(image: Tensor, padding: int, *, flip: bool) -> list[Tensor]:
    """Every outcome for one image, by slicing."""
    _, h, w = image.shape
    padded = torch.zeros(len(image), h + 2 * padding, w + 2 * padding)
    padded[:, padding : padding + h, padding : padding + w] = image
    crops = [padded[:, i : i + h, j : j + w] for i in range(2 * padding + 1) for j in range(2 * padding + 1)]
    return [*crops, *(c.flip(2) for c in crops)] if flip else crops


@pytest.mark.parametrize(("flip", "padding"), [(True, 2), (True, 0), (False, 2)])
def test_each_image_is_changed_in_one_of_the_possible_ways(flip: bool, padding: int) -> None:
    x = images()
    changed = FlipCrop(flip=flip, padding=padding)(x, generator())
    ways = []
    for image, found in zip(x, changed, strict=True):
        same = [i for i, way in enumerate(possible(image, padding, flip=flip)) if torch.equal(way, found)]
        assert same
        ways.append(same[0])
    assert len(set(ways)) > 1  # not the whole batch alike
    if padding:
        assert len(set(ways)) > 10


def test_changes_repeat_with_the_seed_and_keep_rows_and_layouts() -> None:
    x, change = images(), FlipCrop()
    assert torch.equal(change(x, generator()), change(x, generator()))
    assert not torch.equal(change(x, generator()), change(x, generator(2)))
    rows = FlipCrop(shape=(2, 6, 6))(x.flatten(1), generator())
    assert torch.equal(rows, change(x, generator()).flatten(1))
    assert change(x, generator()).is_contiguous()
    last = change(x.contiguous(memory_format=torch.channels_last), generator())
    assert last.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(last, change(x, generator()))
    with pytest.raises(DataError, match="no batch of images"):
        change(x.flatten(1), generator())


def test_only_training_batches_are_changed() -> None:
    x, y = images(), torch.arange(40) % 2
    batches = as_batches(augmented((x, y)), batch_size=10, device=CPU)
    assert isinstance(batches, TensorBatches)
    plain = TensorBatches((x, y), 10)
    assert torch.equal(next(batches.ordered())[0], x)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(batches.subset(7, 3), plain.subset(7, 3), strict=True))
    for (a, c), (b, d), (again, _) in zip(batches.epoch(5), plain.epoch(5), batches.epoch(5), strict=True):
        assert torch.equal(c, d)
        assert torch.equal(a, again)
        assert not torch.equal(a, b)
    first, rest = batches.split(0.5, 0)
    assert first.transform is rest.transform is batches.transform
    with pytest.raises(DataError, match=r"only an \(X, y\) pair"):
        as_batches(augmented([(x, y)]), batch_size=None, device=CPU)
    with pytest.raises(PactrainError, match="flip_crop, flip, crop"):
        augmented((x, y), "rotate")  # type: ignore[arg-type]
    with pytest.raises(PactrainError, match="at least once"):
        augmented((x, y), counts=0)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))


def task() -> tuple[Tensor, Tensor]:
    x = images(60)
    return x, (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()


def stop_after(epochs: int) -> Any:
    def callback(event: Event) -> None:
        if event.phase == "train" and event.done == epochs:
            raise KeyboardInterrupt

    return callback


def test_a_run_on_augmented_images_resumes_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.runs.folder.CHECKPOINT_SECONDS", 0.0)
    rules = pactrain.rules.presets.AUTO.replace(batch_size=20, fixed_epochs=4, draws=2, held="gamma_max")
    whole = pactrain.fit(network(), augmented(task()), preset=rules)
    pactrain.fit(network(), augmented(task()), preset=rules, out=tmp_path / "parts", callbacks=[stop_after(2)])
    events: list[Event] = []
    parts = pactrain.fit(
        network(), augmented(task()), preset=rules, out=tmp_path / "parts", resume=True, callbacks=[events.append]
    )
    assert epochs_of(events) == [3, 4]
    assert all(torch.equal(a, b) for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True))
    last = task()[0].contiguous(memory_format=torch.channels_last), task()[1]
    assert whole.certificate.hashes["data"] == digest_data(TensorBatches(last, 60))  # the originals
    assert whole.certificate.n == 60
    assert not any("heuristic:" in note for note in whole.certificate.notes)
    assert not whole.certificate.caveats
    assert "FlipCrop" in json.loads((tmp_path / "parts" / "config.json").read_text())["augment"]["transform"]


def test_the_papers_n_is_a_heuristic_of_the_objective_alone() -> None:
    rules = pactrain.rules.presets.PAPER.replace(batch_size=20, fixed_epochs=2, stage2_share=0.0, draws=2)
    often = pactrain.fit(network(), augmented(task(), counts=128), preset=rules)
    assert often.certificate.n == often.config["n"] == 60
    last = often.history[-1]
    assert last["kl_term"] == pytest.approx((np.log(1 / 0.05) + last["kl"]) / (last["gamma"] * 60 * 128))
    assert any("counted every example 128 times (heuristic" in note for note in often.certificate.notes)
    assert often.config["augment"]["counts (heuristic)"] == 128


def test_plain_training_takes_augmented_images_too() -> None:
    ends = []
    for data in (augmented(task()), augmented(task()), task()):
        model = network()
        plain_training.train(model, data, plain_training.Settings(steps=5))
        ends.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])

"""Training with Lightning's Trainer for real: progress, checkpoint, resume, a module of one's own."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.training.prepare import Prepared
from tests.zoo import rows

lightning = pytest.importorskip("lightning", reason="pip install 'pactrain[lightning]'")
from pactrain.integrations.lightning import LitPosterior  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning warns of workers, loggers and its own dependencies


def parts() -> tuple[Prepared, Any]:
    """What is trained, and a loader."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    prepared = pactrain.prepare(network, rows(300), epochs=21)
    return prepared, DataLoader(TensorDataset(*rows(300)), batch_size=50, shuffle=True)


def trainer(root: Path, epochs: int, **more: Any) -> Any:
    return lightning.Trainer(
        default_root_dir=root, max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, **more
    )


def test_training_a_checkpoint_and_going_on_from_it(tmp_path: Path) -> None:
    prepared, loader = parts()
    module, posterior = LitPosterior(prepared), prepared.posterior
    first = trainer(tmp_path, 20)
    first.fit(module, loader, loader)
    assert first.callback_metrics["val_accuracy"] > 0.85
    assert first.callback_metrics["risk"] > 0
    assert posterior.log_std.detach().std() > 0  # the noise was learned

    path = first.checkpoint_callback.best_model_path
    fresh, loader = parts()
    second = trainer(tmp_path, 21)
    second.fit(LitPosterior(fresh), loader, ckpt_path=path)
    assert second.current_epoch == 21
    assert second.global_step == first.global_step + 6
    moved = (fresh.posterior.log_std - posterior.log_std).detach().abs().median()
    assert 0 < moved < 0.1  # six steps further, not from the start
    plain = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))
    plain.load_state_dict(posterior.model.state_dict())
    assert torch.equal(plain(rows()[0]), module(rows()[0]))


class Own(lightning.LightningModule):  # type: ignore[misc, name-defined]
    """A module of the user's with the three changes."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared, _ = parts()
        self.posterior = self.prepared.posterior

    def training_step(self, batch: Any, _: int) -> Tensor:
        x, y = batch
        return F.cross_entropy(self.posterior(x), y)

    def configure_optimizers(self) -> Any:
        schedule = {"scheduler": self.prepared.schedule, "interval": "step"}
        return {"optimizer": self.prepared.optimizer, "lr_scheduler": schedule}


def test_a_module_of_ones_own_with_accumulation_and_clipping(tmp_path: Path) -> None:
    module = Own()
    trainer(tmp_path, 20, accumulate_grad_batches=2, gradient_clip_val=5.0).fit(module, parts()[1])
    x, y = rows(300)
    assert (module.posterior.model(x).argmax(1) == y).double().mean() > 0.85

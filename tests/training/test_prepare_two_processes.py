"""Two processes with accelerate, Fabric, Lightning and Hugging Face's Trainer: they share the batches and end with the same posterior."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import pactrain
from pactrain.training.prepare import Prepared
from tests.integrations.test_lightning import parts
from tests.zoo import rows

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def by_accelerate() -> Prepared:
    """Each step's gradient is gathered from two batches of each process."""
    from accelerate import Accelerator

    prepared, loader = parts()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    wrapped, optimizer, loader = accelerator.prepare(prepared.posterior, prepared.optimizer, loader)
    for _ in range(prepared.epochs):
        for x, y in loader:
            with accelerator.accumulate(wrapped):
                accelerator.backward(F.cross_entropy(wrapped(x), y))
                optimizer.step()
                optimizer.zero_grad()
    assert accelerator.num_processes == 2
    return prepared


def by_fabric() -> Prepared:
    """The processes meet before `prepare`, which reads a DataLoader."""
    from lightning.fabric import Fabric

    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    loader: Any = DataLoader(TensorDataset(*rows(300)), batch_size=50, shuffle=True)
    torch.manual_seed(fabric.global_rank)  # the first process's weights are those of all
    network = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    prepared = pactrain.prepare(network, loader, epochs=21)
    wrapped, optimizer = fabric.setup(prepared.posterior, prepared.optimizer)
    loader = fabric.setup_dataloaders(loader)
    for _ in range(prepared.epochs):
        for number, (x, y) in enumerate(loader):
            last = number % 2 == 1 or number == len(loader) - 1
            with fabric.no_backward_sync(wrapped, enabled=not last):
                fabric.backward(F.cross_entropy(wrapped(x), y) / 2)
            if last:
                optimizer.step()
                optimizer.zero_grad()
    with pytest.raises(pactrain.PactrainError, match="several processes can share"):
        pactrain.fit(network, list(loader), budget="1 epoch")
    return prepared


def by_lightning() -> Prepared:
    """Lightning's Trainer."""
    from lightning import Trainer

    from pactrain.integrations.lightning import LitPosterior

    prepared, loader = parts()
    trainer = Trainer(
        max_epochs=20, accelerator="cpu", devices=2, strategy="ddp", logger=False, enable_progress_bar=False,
        enable_checkpointing=False, accumulate_grad_batches=2,
    )  # fmt: skip
    trainer.fit(LitPosterior(prepared), loader)
    assert (trainer.world_size, trainer.global_step) == (2, 20 * 2)  # six batches an epoch, three for each process
    return prepared


class Scores(torch.nn.Module):
    """A network as Hugging Face's are called."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x: torch.Tensor, labels: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Scores, and the loss where the labels are there."""
        scores = self.layers(x)
        return {"logits": scores} if labels is None else {"loss": F.cross_entropy(scores, labels), "logits": scores}


def by_hugging_face() -> Prepared:
    """Hugging Face's Trainer."""
    import transformers

    from pactrain.integrations.transformers import PACBayesTrainer

    settings = transformers.TrainingArguments(
        "out", num_train_epochs=20, per_device_train_batch_size=25, gradient_accumulation_steps=2, use_cpu=True,
        ddp_backend="gloo", report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    torch.manual_seed(0)
    data: Any = [{"x": x, "labels": y} for x, y in zip(*rows(300), strict=True)]
    trainer = PACBayesTrainer(model=Scores(), args=settings, train_dataset=data)
    trainer.train()
    assert (trainer.args.world_size, trainer.state.global_step) == (2, 20 * 3)
    prepared = trainer.prepared
    assert prepared is not None
    return prepared


WAYS = {"accelerate": by_accelerate, "fabric": by_fabric, "lightning": by_lightning, "transformers": by_hugging_face}


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_share_the_batches_and_end_with_the_same_posterior(tmp_path: Path, way: str) -> None:
    pytest.importorskip(way if way != "fabric" else "lightning")
    roots = [str(Path(pactrain.__file__).parent.parent), str(Path(__file__).parents[2])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*start, __file__, way], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((tmp_path / f"rank{i}.json").read_text()) for i in range(2))
    assert first == second
    assert first["n"] == 300
    assert first["accuracy"] > 0.8


def main(way: str) -> None:
    """One of the two processes: trains, and writes what it ends with."""
    torch.set_num_threads(1)
    prepared = WAYS[way]()
    (x, y), posterior = rows(300), prepared.posterior
    scores = posterior.model(x)
    scores = scores["logits"] if isinstance(scores, dict) else scores
    found: dict[str, Any] = {"n": prepared.bound.n, "accuracy": float((scores.argmax(1) == y).double().mean())}
    found |= {"log_std": posterior.log_std.tolist(), "means": [p.tolist() for p in posterior.means()]}
    Path(f"rank{os.environ['RANK']}.json").write_text(json.dumps(found))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # otherwise its threads may outlive the interpreter, which aborts


if __name__ == "__main__":
    main(sys.argv[1])

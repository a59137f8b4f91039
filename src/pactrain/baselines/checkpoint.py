"""Checkpoints of plain training, from which it goes on as if it had never been stopped."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.runtime.files import load_state, pack_optimizer, save_state, unpack_optimizer

FILE = "plain.safetensors"

Record = dict[str, Any]


class Checkpoint:
    """What is kept between two epochs: the network, its optimiser, the noise, the history.

    Args:
        folder: Where the file is kept.
        model: The network.
        optimizer: Its optimiser.
        noise: Source of the noise in the weights.
        history: Records of the training; those of the checkpoint are put into it.
    """

    def __init__(
        self,
        folder: Path,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        noise: torch.Generator,
        history: list[Record],
    ) -> None:
        self.path = folder / FILE
        self.model, self.optimizer, self.noise, self.history = model, optimizer, noise, history

    def keep(self, steps: int, epochs: int) -> None:
        """Write the state after these numbers of steps and epochs.

        Args:
            steps: Steps that were taken.
            epochs: Epochs that are over.
        """
        tensors, packed = pack_optimizer(self.optimizer)
        tensors |= {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        tensors["noise"] = self.noise.get_state()
        values = {"steps": steps, "epochs": epochs, "history": self.history, "optimizer": packed}
        save_state(self.path, tensors, values)

    def restore(self) -> tuple[int, int]:
        """Go back to the state in the file, if there is one.

        Returns:
            Steps and epochs that it has behind it.

        Raises:
            RunError: The file is damaged.
        """
        if not self.path.exists():
            return 0, 0
        tensors, values = load_state(self.path)
        own = {name.removeprefix("model/"): tensor for name, tensor in tensors.items() if name.startswith("model/")}
        self.model.load_state_dict(own)
        unpack_optimizer(self.optimizer, tensors, values["optimizer"])
        self.noise.set_state(tensors["noise"])
        self.history[:] = values["history"]
        return values["steps"], values["epochs"]


def kept_history(folder: Path) -> list[Record]:
    """The history in a checkpoint.

    Args:
        folder: Where it is kept.

    Returns:
        The records; none without a checkpoint.

    Raises:
        RunError: The file is damaged.
    """
    path = folder / FILE
    return list(load_state(path)[1]["history"]) if path.exists() else []

"""Ways of computing reach what `fit` reaches in float32: bfloat16, accumulation, clipping, a compiled network, a loop of one's own with `pactrain.prepare`.

Digits, half of the rows for training, with a perceptron and a small CNN. All ways see the same rows from the same initial weights; Adam (1e-3, batches of 64)
has as many epochs. Prints a Markdown table of test accuracies in percent, mean ± standard deviation over the seeds.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain

Rows = tuple[Tensor, Tensor]
Way = Callable[[nn.Module, Rows, int, int | None], None]
"""Trains a network on rows with a seed for some epochs, or as long as the rules say."""


def digits() -> tuple[Rows, Rows]:
    """Every other row for training, the rest for the test."""
    x, y = load_digits(return_X_y=True)
    images, labels = torch.tensor(x / 16).float(), torch.tensor(y)
    return (images[::2], labels[::2]), (images[1::2], labels[1::2])


def perceptron() -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn() -> nn.Module:
    """Two convolutions."""
    convolutions = (
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
    )
    return nn.Sequential(nn.Unflatten(1, (1, 8, 8)), *convolutions, nn.Flatten(), nn.Linear(512, 10))


def by_fit(**options: Any) -> Way:
    """What a call of `fit` makes of it."""

    def train_it(model: nn.Module, train: Rows, seed: int, epochs: int | None) -> None:
        budget = None if epochs is None else f"{epochs} epochs"
        pactrain.fit(model, train, seed=seed, budget=budget, **options)

    return train_it


def by_fit_compiled(model: nn.Module, train: Rows, seed: int, epochs: int | None) -> None:
    """`fit` with a compiled network; traced, without a C compiler."""
    compiled: Any = torch.compile(model, backend="aot_eager")
    by_fit()(compiled, train, seed, epochs)


def by_own_loop(model: nn.Module, train: Rows, seed: int, epochs: int | None) -> None:
    """The loop of the README."""
    prepared = pactrain.prepare(model, train, seed=seed, epochs=epochs)
    loader = DataLoader(TensorDataset(*train), batch_size=prepared.batch_size, shuffle=True)
    for _ in range(prepared.epochs):
        for x, y in loader:
            loss = F.cross_entropy(prepared.posterior(x), y)
            prepared.optimizer.zero_grad()
            loss.backward()
            prepared.optimizer.step()
            prepared.schedule.step()


def by_adam(model: nn.Module, train: Rows, _: int, epochs: int | None) -> None:
    """The usual loop, for as many steps as the rules would take."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(*train), batch_size=64, shuffle=True)
    for _ in range(epochs or -(-3000 // len(loader))):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


WAYS: dict[str, Way] = {
    "`fit`": by_fit(),
    '`precision="bf16"`': by_fit(precision="bf16"),
    "`accumulate=4`": by_fit(accumulate=4),
    "`clip_norm=1.0`": by_fit(clip_norm=1.0),
    "`torch.compile`": by_fit_compiled,
    "own loop with `prepare`": by_own_loop,
    "plain Adam": by_adam,
}
NETWORKS: dict[str, Callable[[], nn.Module]] = {"perceptron": perceptron, "CNN": cnn}


def accuracy(network: str, way: str, seed: int, epochs: int | None) -> float:
    """Test accuracy of one training in percent."""
    train, (x, y) = digits()
    torch.manual_seed(seed)
    model = NETWORKS[network]()
    WAYS[way](model, train, seed, epochs)
    return 100 * float((model.eval()(x).argmax(1) == y).double().mean())


def main() -> None:
    """Run everything, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--epochs", type=int, help="by default as many as the rules say")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, dict[str, list[float]]] = {}
    print("| way | " + " | ".join(args.networks) + " |\n|---|" + "---|" * len(args.networks), flush=True)
    for way in WAYS:
        cells = []
        for network in args.networks:
            scores = [accuracy(network, way, seed, args.epochs) for seed in range(args.seeds)]
            found.setdefault(network, {})[way] = scores
            cells.append(f"{statistics.mean(scores):.1f} ± {statistics.stdev(scores) if len(scores) > 1 else 0:.1f}")
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What a training step of the networks for images costs on one core, and at what rate operations are done.

    python benchmarks/images.py [--only resnet] [--steps 5] [--json FILE]

Times are processor time, so that a busy machine matters less; a step counts as three forward passes.  The estimates of
`pactrain reproduce list` rest on the rate of the narrow networks (`CPU_RATE` in `experiments/costs.py`).
"""

import time
from typing import Any

import torch
from timing import options, show

from pactrain.experiments.costs import forward
from pactrain.models.image import image_model
from pactrain.problem.named_losses import LOSSES
from pactrain.runtime.network_names import IMAGE_MODELS
from pactrain.training.precision import Computing

BATCH, NARROW = 32, ":width=0.125"


def row(network: str, steps: int) -> dict[str, Any]:
    """Plain Adam on random images."""
    seconds, in_bf16 = (_seconds(network, steps, Computing(precision=name)) for name in ("fp32", "bf16"))
    operations = 3 * BATCH * forward(network, 10)
    return {
        "network": network,
        "weights": sum(p.numel() for p in image_model(network, 3072, 10).parameters()),
        "10⁶ operations an image": forward(network, 10) / 1e6,
        "ms a step": 1000 * seconds,
        "ms an image": 1000 * seconds / BATCH,
        "10⁹ operations a second": operations / seconds / 1e9,
        "ms an image in bf16": 1000 * in_bf16 / BATCH,
    }


def _seconds(network: str, steps: int, how: Computing) -> float:
    """Processor time of a step."""
    model = image_model(network, 3072, 10)
    x, y = torch.randn(BATCH, 3, 32, 32), torch.randint(0, 10, (BATCH,))
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        how.losses(LOSSES["cross_entropy"], model, (x, y)).mean().backward()
        optimizer.step()

    step()
    started = time.process_time()
    for _ in range(steps):
        step()
    return (time.process_time() - started) / steps


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, steps=5)
    torch.set_num_threads(1)
    names = [name + width for width in (NARROW, "") for name in IMAGE_MODELS]
    show([row(n, chosen.steps) for n in names if not chosen.only or chosen.only in n], chosen.json)


if __name__ == "__main__":
    main()

"""Initial weights through which hardly anything passes, made stronger before training.

Each of many layers without normalisation passes on about 40 % of the signal with torch's initial weights: the outputs of CNN13 differ by 10⁻⁵
between images.  Plain training recovers within some hundred steps.  With a prior centred at those weights the network would have to leave the prior
before it can learn anything, so every layer but the last is scaled to pass on signals of unit size.

The inputs are random and only have the shape of the data, so the prior stays independent of the data.
"""

from typing import Any

import torch
from torch import Tensor, nn

from pactrain.problem.losses import Loss
from pactrain.problem.module_modes import batch_norms, evaluating, hooked
from pactrain.rules.constants import FAINT
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.seeds import derive

INPUTS = 64
"""Random inputs that are sent through the network."""

RESCALED_REMARK = (
    "layers were scaled before training, measured on random inputs, as the initial weights passed on hardly anything"
)

Layer = nn.Linear | nn.modules.conv._ConvNd


def strengthen(model: nn.Module, batch: Any, loss: Loss, seed: int) -> bool:
    """Scale the layers of a faint network, in place; False, and nothing changed, for any other.

    batch: of it only the shape of the inputs is looked at; where the network takes more than one tensor, it is left alone.

    >>> from pactrain.problem.named_losses import LOSSES
    >>> deep = nn.Sequential(*(part for _ in range(9) for part in (nn.Linear(20, 20), nn.ReLU())), nn.Linear(20, 2))
    >>> batch = torch.zeros(1, 20), torch.zeros(1).long()
    >>> [strengthen(deep, batch, LOSSES["cross_entropy"], seed=0) for _ in range(2)]
    [True, False]
    """
    if not (loss.of_outputs and isinstance(batch, (tuple, list)) and len(batch) == 2):
        return False
    inputs = batch[0]
    if not (isinstance(inputs, Tensor) and inputs.is_floating_point() and inputs.ndim > 1):
        return False
    layers = [m for m in model.modules() if isinstance(m, Layer)]
    if len(layers) < 2 or batch_norms(model):
        return False
    weight = layers[0].weight
    source = torch.Generator().manual_seed(derive(seed, "faint"))
    noise = torch.randn(INPUTS, *inputs.shape[1:], generator=source).to(weight)
    met: list[Any] = []

    def notice(layer: nn.Module, args: Any, _: Tensor) -> None:
        met[:] = [layer, args[0]]

    with evaluating(model), torch.no_grad():
        try:
            with hooked((layer, notice) for layer in layers):
                refusing(model)(noise)
        except Refused as error:
            what = "Whether the initial weights pass on enough was not measured with random inputs"
            gave_up(what, error, instead="they are left as they are")
            return False
        if not met or float(met[1].flatten(1).std(0).mean()) >= FAINT:
            return False
        last, done = met[0], set[nn.Module]()

        def scale(layer: Any, args: Any, out: Tensor) -> Tensor | None:
            if layer is last or layer in done or not layer.weight.requires_grad:
                return None
            done.add(layer)
            bias: Tensor = layer.forward(torch.zeros_like(args[0]))
            signal = out - bias
            size = float(signal.square().mean().sqrt())
            if size == 0:
                return None
            layer.weight /= size
            return signal / size + bias

        with hooked((layer, scale) for layer in layers):
            model(noise)
    return True

"""Calling a network with other weights than its own."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from torch.func import functional_call

from pactrain.gave_up import refusing


def call_with(
    model: nn.Module, weights: Mapping[str, Tensor], args: Any, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """The network's output at these weights, wherever a weight is used."""
    return functional_call(model, _places(model, weights), args, dict(kwargs or {}), tie_weights=False)


def try_with(
    model: nn.Module, weights: Mapping[str, Tensor], args: Any, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """The network's output at these weights, where it need not take the call: whatever it raises becomes `Refused`."""
    return refusing(functional_call)(model, _places(model, weights), args, dict(kwargs or {}), tie_weights=False)


def _places(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights by the names of all places where they are used.

    torch puts back by name, and a module that is known by two names (`self.head = self.body[2]`) would keep the second
    name's: each place is named once here, and tied weights by all of their places.
    """
    own = dict(model.named_parameters())
    chosen = {id(own[name]): weight for name, weight in weights.items()}
    return {
        f"{prefix}.{leaf}" if prefix else leaf: chosen[id(p)]
        for prefix, module in model.named_modules()  # each module once
        for leaf, p in module._parameters.items()
        if p is not None and id(p) in chosen
    }

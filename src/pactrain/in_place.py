"""A draw in the place of a network's weights, and the weights back afterwards, bit for bit."""

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from pactrain.layout import Layout


class InPlace:
    """What the weights were before a draw was put in their place, and the draw's distance from them."""

    def __init__(self, layout: Layout, shift: Tensor | None) -> None:
        self._layout, self._params = layout, layout.params()
        self.means, self.shift = layout.read(), shift
        self._hooks: list[RemovableHandle] = []

    def put(self, log_std: nn.Parameter) -> None:
        """Add the shift to the weights; until `put_back`, gradients of the weights are also led to the log-stds."""
        if self.shift is None:
            return
        with torch.no_grad():
            for p, at in zip(self._params, self._layout.where, strict=True):
                p.add_(self.shift[at].view_as(p))
        if torch.is_grad_enabled():
            for p, at in zip(self._params, self._layout.where, strict=True):
                self._hooks.append(p.register_hook(lambda grad, at=at: self._lead_on(grad, at, log_std)))

    def _lead_on(self, grad: Tensor, at: slice, log_std: nn.Parameter) -> None:
        assert self.shift is not None
        if log_std.grad is None:
            log_std.grad = torch.zeros_like(log_std)
        log_std.grad[at].addcmul_(grad.reshape(-1).to(self.shift.dtype), self.shift[at])

    def put_back(self) -> None:
        """The weights are what they were; nothing is led on any more.  Done twice, it does no harm."""
        for hook in self._hooks:
            hook.remove()
        self._layout.write(self.means, self._params)

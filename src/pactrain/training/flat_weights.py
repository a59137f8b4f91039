"""All random weights of a network as one vector, so that a step is a few passes over memory and not a few per layer."""

import torch
from torch import Tensor

from pactrain.distributions.posterior import Posterior

GATHERED = 262_144
"""Weights up to which gradients are gathered after a backward pass instead of being added up where they belong: it saves clearing
and adding, and for so few weights the memory does not count."""


class FlatWeights:
    """The means, a draw of the weights and its gradients as flat vectors in the posterior's order.

    From `attach()` to `release()`, where all weights are plain contiguous tensors of one dtype, the network's parameters are
    views of `draw` or of `means`, whichever they show, and, in all but small networks, their gradients views of `grads`;
    otherwise values are copied to and fro.
    """

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self._params = posterior.means()
        self._where = posterior.parameter_slices
        self.aliased = False
        self._can_alias = len({p.dtype for p in self._params}) == 1 and all(
            type(p) is torch.nn.Parameter and p.is_contiguous() for p in self._params
        )
        self.means = torch.empty_like(posterior.log_std, requires_grad=False)
        self._mean_views = self._views(self.means)
        self.gathers = len(self.means) <= GATHERED
        self._make_room()
        self.adopt()

    def _make_room(self) -> None:
        """For a draw and its gradients."""
        self.draw, self.grads = torch.empty_like(self.means), torch.zeros_like(self.means)
        self._draw_views, self._grad_views = self._views(self.draw), self._views(self.grads)

    @property
    def adds_up(self) -> bool:
        """True if a backward pass adds to `grads` itself, so that they have to be cleared after use."""
        return self.aliased and not self.gathers

    def attach(self) -> None:
        """Let the network's parameters live in the flat vectors, if they can."""
        if len(self.grads) < len(self.means):
            self._make_room()
        self.aliased = self._can_alias
        self.rest()

    def _views(self, flat: Tensor) -> list[Tensor]:
        return [flat[at].view_as(p) for p, at in zip(self._params, self._where, strict=True)]

    def put(self) -> None:
        """Show the draw to the network."""
        self._show(self._draw_views)

    def rest(self) -> None:
        """Show the means to the network."""
        self._show(self._mean_views)

    @torch.no_grad()
    def _show(self, views: list[Tensor]) -> None:
        if not self.aliased:
            torch._foreach_copy_([p.detach() for p in self._params], views)
            for p in self._params:
                p.grad = None
            return
        for p, mine, grads in zip(self._params, views, self._grad_views, strict=True):
            if not _at_one_address(p, mine):
                p.data = mine
            if self.gathers:
                p.grad = None
            elif p.grad is not grads:  # someone has called zero_grad(): let gradients come here again
                p.grad = grads

    @torch.no_grad()
    def take_grads(self) -> None:
        """Bring the gradients that a backward pass left into `grads`."""
        if self.adds_up:
            return
        found = [p.grad if p.grad is None or not p.grad.is_sparse else p.grad.to_dense() for p in self._params]
        if self.aliased and all(g is not None and g.is_contiguous() for g in found):
            torch.cat([g.view(-1) for g in found if g is not None], out=self.grads)
            return
        for g, mine in zip(found, self._grad_views, strict=True):
            mine.zero_() if g is None else mine.copy_(g)

    @torch.no_grad()
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Let an optimiser move the means by `grads`."""
        self.rest()
        if not self.aliased or self.gathers:
            for p, mine in zip(self._params, self._grad_views, strict=True):
                p.grad = mine if self.aliased else mine.to(p.dtype, copy=True)
        optimizer.step()
        self.adopt()
        if self.adds_up:
            self.grads.zero_()

    @torch.no_grad()
    def adopt(self) -> None:
        """Take the network's present weights for the means."""
        for p, mine in zip(self._params, self._mean_views, strict=True):
            if not _at_one_address(p, mine):
                mine.copy_(p)

    @torch.no_grad()
    def release(self) -> None:
        """Give every parameter a storage of its own again, holding the mean."""
        self.rest()
        for p in self._params:
            p.grad = None
        if self.aliased:
            self.draw, self.grads = self.means.new_empty(0), self.means.new_empty(0)  # room for what follows
            self._draw_views, self._grad_views = [], []
            for p, mine in zip(self._params, self._mean_views, strict=True):
                p.data = mine.clone()
        self.aliased = False


def _at_one_address(a: Tensor, b: Tensor) -> bool:
    """True if two tensors are known to share their memory; on XLA all have the address 0, which tells nothing."""
    return a.data_ptr() == b.data_ptr() != 0

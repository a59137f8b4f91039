"""Which weights of a network are random, where each stands in a flat vector, and a draw put in their place and taken back."""

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from pactrain.distributions.prior import Prior
from pactrain.runtime.errors import PactrainError


class Layout:
    """The parameters that require a gradient, group by group.  Tied weights are one weight.

    >>> layout = Layout(nn.Linear(3, 2), Prior(per="tensor"))
    >>> layout.names, layout.where
    (('weight', 'bias'), (slice(0, 6, None), slice(6, 8, None)))
    """

    def __init__(self, model: nn.Module, prior: Prior) -> None:
        if not isinstance(model, nn.Module):
            raise PactrainError(f"model must be a torch module, and is {model!r:.60}")
        params = {name: p for name, p in model.named_parameters() if p.requires_grad}
        _check_parameters(params)
        owners = dict(zip(params, prior.group_names(list(params)), strict=True))
        self.groups: tuple[str, ...] = tuple(dict.fromkeys(owners.values()))
        self.names: tuple[str, ...] = tuple(name for g in self.groups for name in params if owners[name] == g)
        self._owners = [(model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in self.names]
        self.where = _slices([params[name].numel() for name in self.names])
        sizes = [sum(params[name].numel() for name in self.names if owners[name] == g) for g in self.groups]
        self.group_slices = _slices(sizes)
        self.group_of = tuple(self.groups.index(owners[name]) for name in self.names)

    def params(self) -> list[nn.Parameter]:
        """The parameters as they are now, in the order of the flat vector."""
        return [owner._parameters[leaf] for owner, leaf in self._owners]  # type: ignore[misc]

    @torch.no_grad()
    def read(self) -> Tensor:
        """Their values as one new vector, in the widest of their dtypes."""
        params = self.params()
        dtype = params[0].dtype
        for p in params[1:]:
            dtype = torch.promote_types(dtype, p.dtype)
        return torch.cat([p.detach().reshape(-1).to(dtype) for p in params])

    @torch.no_grad()
    def write(self, flat: Tensor, params: list[nn.Parameter]) -> None:
        """Give the parameters the values of such a vector."""
        for p, at in zip(params, self.where, strict=True):
            p.copy_(flat[at].view_as(p))


def _slices(sizes: list[int]) -> tuple[slice, ...]:
    out, start = [], 0
    for size in sizes:
        out.append(slice(start, start + size))
        start += size
    return tuple(out)


def _check_parameters(params: dict[str, nn.Parameter]) -> None:
    if not params:
        raise PactrainError("the model has no parameter that requires a gradient: there is nothing to train")
    for name, p in params.items():
        if isinstance(p, nn.UninitializedParameter):
            raise PactrainError(
                f"parameter {name!r} is lazy and has no shape yet; run the model once on a batch before training it"
            )
        if not p.is_floating_point():
            raise PactrainError(
                f"parameter {name!r} has dtype {p.dtype}; only real floating-point weights can be random"
            )
        if p.is_meta:
            raise PactrainError(
                f"parameter {name!r} is on the meta device, which holds no numbers; build it on a real one"
            )
        if not bool(torch.isfinite(p).all()):
            raise PactrainError(f"parameter {name!r} holds a value that is not finite; the prior mean must be finite")
    devices = {p.device for p in params.values()}
    if len(devices) > 1:
        raise PactrainError(
            f"the model's parameters are on several devices ({sorted(map(str, devices))}); put them on one"
        )


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
        """Put the weights back, and stop leading gradients on.  A second call changes nothing."""
        for hook in self._hooks:
            hook.remove()
        self._layout.write(self.means, self._params)

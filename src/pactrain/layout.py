"""Which weights of a network are random, their groups, and where each stands in a flat vector of all of them."""

import torch
from torch import Tensor, nn

from pactrain.errors import PactrainError
from pactrain.prior import Prior


class Layout:
    """The parameters that require a gradient, group by group.  Tied weights are one weight.

    >>> layout = Layout(nn.Linear(3, 2), Prior(per="tensor"))
    >>> layout.names, layout.where
    (('weight', 'bias'), (slice(0, 6, None), slice(6, 8, None)))
    """

    def __init__(self, model: nn.Module, prior: Prior) -> None:
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
        if not bool(torch.isfinite(p).all()):
            raise PactrainError(f"parameter {name!r} holds a value that is not finite; the prior mean must be finite")
    devices = {p.device for p in params.values()}
    if len(devices) > 1:
        raise PactrainError(
            f"the model's parameters are on several devices ({sorted(map(str, devices))}); put them on one"
        )

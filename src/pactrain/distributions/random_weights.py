"""The random weights of a network as flat vectors: their means, log-stds and prior, without the drawing."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.gaussian import pieces
from pactrain.distributions.prior import Prior
from pactrain.distributions.weight_layout import InPlace, Layout


@dataclass(frozen=True)
class Snapshot:
    """A posterior's means, log-stds and prior log-stds at one moment.

    Attributes:
        means: Flat, in the order of `Posterior.means()`.
        log_std: Flat, likewise.
        prior_log_std: One per group.
    """

    means: Tensor
    log_std: Tensor
    prior_log_std: Tensor


class RandomWeights(nn.Module):
    """What `Posterior` is made of: where each random weight stands, its mean, log-std and prior."""

    log_std: nn.Parameter
    prior_log_std: nn.Parameter
    prior_mean: Tensor
    units: Tensor | None
    _unit_nats: Tensor

    def __init__(self, model: nn.Module, prior: str | Prior | None = None) -> None:
        super().__init__()
        prior = Prior.of(prior or Prior())
        self._layout = Layout(model, prior)
        self.model = model
        self.groups, self.names = self._layout.groups, self._layout.names
        self._draw: InPlace | None = None
        self.prior_rows: Tensor | None = None
        self.probabilities: Callable[[Tensor], Tensor] | None = None
        flat = self._layout.read()
        std = prior.std if prior.std is not None else mean_abs(flat)
        self.register_buffer("prior_mean", flat.clone())
        self.register_buffer("units", None)
        self.log_std = nn.Parameter(torch.full_like(flat, math.log(std)))
        self.prior_fixed, self.prior_source = not prior.learn, prior.source
        self.register_buffer("_unit_nats", torch.zeros((), dtype=torch.float64, device=flat.device))
        self.prior_log_std = nn.Parameter(
            torch.full((len(self.groups),), math.log(std), device=flat.device).to(flat), prior.learn
        )

    # -- where each weight stands ----------------------------------------------------------------------------------

    @property
    def group_slices(self) -> tuple[slice, ...]:
        """Where each group stands in the flat vectors (`log_std`, `prior_mean`)."""
        return self._layout.group_slices

    @property
    def parameter_slices(self) -> tuple[slice, ...]:
        """Where each parameter of `means()` stands in the flat vectors."""
        return self._layout.where

    @property
    def group_of_parameters(self) -> tuple[int, ...]:
        """The number of the group that each parameter of `means()` belongs to."""
        return self._layout.group_of

    @property
    def num_weights(self) -> int:
        """Number of random weights d."""
        return self.log_std.numel()

    @property
    def num_bytes(self) -> int:
        """Bytes held beyond the model: log-stds, prior mean, prior log-stds, units."""
        held = (self.log_std, self.prior_mean, self.prior_log_std, self.units)
        return sum(t.numel() * t.element_size() for t in held if t is not None)

    def means(self) -> list[nn.Parameter]:
        """The model's parameters that are random.

        Returns:
            The parameters, in the order of the flat vectors.
        """
        return self._layout.params()

    @torch.no_grad()
    def flat_means(self) -> Tensor:
        """The means as one vector, also while the model holds a draw.

        Returns:
            A flat vector, not to be written to.
        """
        return self._draw.means if self._draw is not None else self._layout.read()

    @torch.no_grad()
    def mean_shift(self) -> Tensor:
        """How far the means have moved from the prior's.

        Returns:
            Mean minus prior mean, flat.
        """
        means = self.flat_means()
        return means.sub_(self.prior_mean) if self._draw is None else means - self.prior_mean

    def log_std_of(self, name: str) -> Tensor:
        """The log-stds of one parameter.

        Args:
            name: The parameter's name in the model.

        Returns:
            A view of `log_std` in the parameter's shape.
        """
        at = self.parameter_slices[self.names.index(name)]
        return self.log_std[at].view_as(self.model.get_parameter(name))

    @torch.no_grad()
    def mean_std(self) -> dict[str, float]:
        """Mean posterior standard deviation of each group.

        Returns:
            The stds by the name of the group.
        """
        sums = [
            sum(float(self.log_std[part].exp().sum(dtype=torch.float64)) for part in pieces(at))
            for at in self.group_slices
        ]
        sizes = [at.stop - at.start for at in self.group_slices]
        return {g: total / max(1, size) for g, total, size in zip(self.groups, sums, sizes, strict=True)}

    @torch.no_grad()
    def prior_std(self) -> dict[str, float]:
        """Prior standard deviation of each group.

        Returns:
            The stds by the name of the group, in the units of its weights.
        """
        return dict(zip(self.groups, self.prior_log_std.exp().tolist(), strict=True))

    # -- changing them ---------------------------------------------------------------------------------------------

    @torch.no_grad()
    def reset_std(self, std: float) -> None:
        """Set every posterior and prior standard deviation.

        Args:
            std: The new value, in the units of the weights.
        """
        self.log_std.fill_(math.log(std))
        if self.units is not None:
            self.log_std.add_(self.units.log())
        self.prior_log_std.fill_(math.log(std))

    @torch.no_grad()
    def return_to_prior(self) -> None:
        """Make the posterior what the prior is."""
        self._layout.write(self.prior_mean, self.means())
        for group, at in enumerate(self.group_slices):
            self.log_std[at] = self.prior_log_std[group]
        if self.units is not None:
            self.log_std.add_(self.units.log())

    @torch.no_grad()
    def snapshot(self) -> Snapshot:
        """Copy means, log-stds and prior log-stds.

        Returns:
            The copy, for `restore`.
        """
        return Snapshot(self._layout.read(), self.log_std.detach().clone(), self.prior_log_std.detach().clone())

    @torch.no_grad()
    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot.

        Args:
            snapshot: What `snapshot()` returned.
        """
        self._layout.write(snapshot.means, self.means())
        self.log_std.copy_(snapshot.log_std)
        self.prior_log_std.copy_(snapshot.prior_log_std)

    # -- what the data has chosen of the prior, which a certificate charges for ------------------------------------

    @property
    def unit_nats(self) -> float:
        """What it costs, in nats, that the data has chosen `units`; a certificate charges for it."""
        return float(self._unit_nats)

    @unit_nats.setter
    def unit_nats(self, nats: float) -> None:
        self._unit_nats.fill_(nats)

    @torch.no_grad()
    def change_units(self, scales: Mapping[str, Tensor]) -> None:
        """Describe the same distributions for weights that have been multiplied by `scales`.

        Args:
            scales: Factors of some parameters, by name, in their shapes.
        """
        if not scales:
            return
        if self.units is None:
            self.units = torch.ones_like(self.prior_mean)
        for name, scale in scales.items():
            at = self.parameter_slices[self.names.index(name)]
            by = scale.reshape(-1).to(self.prior_mean)
            self.units[at] *= by
            self.prior_mean[at] *= by
            self.log_std[at] += by.log()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.units = torch.ones_like(self.prior_mean) if f"{prefix}units" in state_dict else None
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """The sizes, for `repr`.

        Returns:
            Numbers of weights, groups and bytes.
        """
        return f"{self.num_weights:,} random weights in {len(self.groups)} groups, {self.num_bytes:,} bytes"


def mean_abs(weights: Tensor) -> float:
    """Mean absolute value of the initial weights: the paper's starting scale.  A tenth where all are zero."""
    value = float(weights.abs().mean())
    return value if value > 0 else 0.1

"""The posterior: a Gaussian over the weights of any `nn.Module`, without touching the module.

The model's own parameters are the means.  The posterior owns one log standard deviation a weight and the prior.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions.gaussian import (
    SMALL,
    Draw,
    GaussianKL,
    kl_by_group,
    kl_by_group_at_once,
    log_density_ratio,
    pieces,
)
from pactrain.distributions.prior import Prior
from pactrain.distributions.sampling import Prediction, call_with, fill_normal, predict_draws
from pactrain.distributions.weight_layout import InPlace, Layout
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.interrupts import uninterrupted
from pactrain.runtime.seeds import generator as seeded


@dataclass(frozen=True)
class Snapshot:
    """A posterior's means, log-stds and prior at one moment, flat."""

    means: Tensor
    log_std: Tensor
    prior_log_std: Tensor


class Posterior(nn.Module):
    """Q = N(weights of `model`, diag(std²)) against the prior P = N(initial weights, std of the group²).

    Every parameter that requires a gradient is random; frozen ones are constants.  Tied weights are one weight.
    Nothing in the model is converted or renamed: after training it *is* the deterministic predictor.

    >>> import torch
    >>> posterior = Posterior(torch.nn.Linear(3, 2))
    >>> posterior(torch.ones(1, 3)).shape            # at a fresh draw of the weights
    torch.Size([1, 2])
    >>> posterior.kl().item()                         # the posterior starts at the prior
    0.0
    """

    log_std: nn.Parameter
    prior_log_std: nn.Parameter
    prior_mean: Tensor
    units: Tensor | None
    _prior_choices: Tensor
    _unit_nats: Tensor

    def __init__(self, model: nn.Module, prior: Prior | None = None) -> None:
        super().__init__()
        prior = prior or Prior()
        self._layout = Layout(model, prior)
        self.model = model
        self.groups, self.names = self._layout.groups, self._layout.names
        self._draw: InPlace | None = None
        self.probabilities: Callable[[Tensor], Tensor] | None = None  # how outputs become probabilities; `fit` sets it
        flat = self._layout.read()
        std = prior.std if prior.std is not None else mean_abs(flat)
        self.register_buffer("prior_mean", flat.clone())
        self.register_buffer("units", None)  # of each weight, in which its prior's std is counted; None: all are one
        self.log_std = nn.Parameter(torch.full_like(flat, math.log(std)))
        self.prior_fixed, self.prior_source = not prior.learn, prior.source
        self.register_buffer("_prior_choices", torch.tensor(1))  # a tensor, so that a `state_dict` has it
        self.register_buffer("_unit_nats", torch.zeros((), dtype=torch.float64))
        self.prior_log_std = nn.Parameter(torch.full((len(self.groups),), math.log(std)).to(flat), prior.learn)

    @property
    def prior_choices(self) -> int:
        """Means of the prior that the data could choose from; a certificate charges for the choice."""
        return int(self._prior_choices)

    @prior_choices.setter
    def prior_choices(self, number: int) -> None:
        self._prior_choices.fill_(number)

    @property
    def unit_nats(self) -> float:
        """What it costs that the data has chosen units (`units.py`); a certificate charges for it."""
        return float(self._unit_nats)

    @unit_nats.setter
    def unit_nats(self, nats: float) -> None:
        self._unit_nats.fill_(nats)

    @torch.no_grad()
    def change_units(self, scales: Mapping[str, Tensor]) -> None:
        """Say the same of weights that have been multiplied by `scales`, which has those of some parameters by name."""
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

    # -- drawing ---------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, generator: torch.Generator | None = None, **kwargs: Any) -> Any:
        """The network's output at one fresh draw of the weights (inside `sampled()`: at the draw in place)."""
        if self._draw is not None:
            return self.model(*args, **kwargs)
        return call_with(self.model, self.draw(generator), args, kwargs)

    def draw(self, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """One draw of the random weights, differentiable in the means and the log-stds."""
        weights = Draw.apply(self.log_std, self._noise(generator), self.parameter_slices, *self.means())  # type: ignore[no-untyped-call]
        return dict(zip(self.names, weights, strict=True))

    def predict(self, *args: Any, draws: int = 100, seed: int = 0, **kwargs: Any) -> Prediction:
        """Mean and standard deviation of the network's output over `draws` draws of the weights, in eval mode.

        After `fit` with cross-entropy, of the class probabilities; set `probabilities` to None for the raw output.

        >>> import torch
        >>> mean, std = Posterior(torch.nn.Linear(3, 1)).predict(torch.ones(5, 3), draws=20)
        >>> mean.shape, bool((std > 0).all())
        (torch.Size([5, 1]), True)
        """
        if self._draw is not None:
            raise PactrainError("predict() draws weights of its own: call it outside the block of sampled()")
        return predict_draws(self, args, kwargs, draws=draws, seed=seed, probabilities=self.probabilities)

    @contextmanager
    def sampled(self, generator: torch.Generator | None = None) -> Iterator[nn.Module]:
        """Inside the block the model's weights are one draw; on leaving, by any way, they are the means, bit for bit.

        Call `backward()` inside the block: the gradients of means and log-stds are then those of `posterior(x)`.
        """
        shift = self._noise(generator).mul_(self.log_std.detach().exp())
        with self.shifted(shift):
            yield self.model

    @torch.no_grad()
    def drawn(self, seed: int = 0) -> nn.Module:
        """A copy of the model at one draw of the weights: the drawn network that a certificate with this seed covers."""
        with self.sampled(seeded(self.log_std.device, seed, "one network")) as model:
            return copy.deepcopy(model)

    @contextmanager
    def prior_draw(self, log_std: Tensor, noise: Tensor) -> Iterator[nn.Module]:
        """Inside the block the model's weights are prior mean + exp(log_std)·noise; `log_std` has one entry a group."""
        stds, noise = log_std.exp().to(self.prior_mean), self._in_prior_units(noise, times=True)
        with self.shifted(None):
            with torch.no_grad():
                for p, at, group in zip(self.means(), self.parameter_slices, self.group_of_parameters, strict=True):
                    p.copy_(torch.addcmul(self.prior_mean[at], noise[at], stds[group]).view_as(p))
            yield self.model

    @torch.no_grad()
    def prior_networks(self, places: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """The weights that `prior_draw` would put in place for each pair of noise and log-stds, the pairs in front."""
        noise = self._in_prior_units(torch.stack([z for z, _ in places]), times=True)
        stds = torch.stack([s for _, s in places]).exp().to(self.prior_mean)
        out = {}
        for name, p, at, group in zip(
            self.names, self.means(), self.parameter_slices, self.group_of_parameters, strict=True
        ):
            flat = torch.addcmul(self.prior_mean[at], noise[:, at], stds[:, group, None])
            out[name] = flat.view(len(places), *p.shape).to(p.dtype)
        return out

    @contextmanager
    def shifted(self, shift: Tensor | None) -> Iterator[None]:
        """Inside the block the weights are the means plus `shift`; without one, whatever the caller makes of them."""
        if self._draw is not None:
            raise PactrainError(
                "the weights already hold a draw: sampled() cannot be nested; leave the first block, "
                "or call the model directly inside it"
            )
        draw = InPlace(self._layout, shift)
        try:
            self._draw = draw
            draw.put(self.log_std)
            yield
        finally:
            uninterrupted(lambda: self._end(draw))

    def _end(self, draw: InPlace) -> None:
        draw.put_back()
        self._draw = None

    def _noise(self, generator: torch.Generator | None) -> Tensor:
        return fill_normal(torch.empty_like(self.log_std, requires_grad=False), generator)

    def fresh_noise(self, generator: torch.Generator | None = None) -> Tensor:
        """Standard normal noise, one entry a random weight."""
        return self._noise(generator)

    # -- the divergence --------------------------------------------------------------------------------------------

    def kl(self) -> Tensor:
        """KL(Q‖P) in nats, float64, differentiable in means, log-stds and prior log-stds."""
        means: list[Tensor] = list(self.means())
        if self.units is not None:
            means = [m / self.units[at].view_as(m) for m, at in zip(means, self.parameter_slices, strict=True)]
        total: Tensor = GaussianKL.apply(  # type: ignore[no-untyped-call]
            self._log_std_in_units(),
            self.prior_log_std,
            self._in_prior_units(self.mean_shift()),
            self._draw_shift,
            self.group_slices,
            *means,
        )
        return total

    def _draw_shift(self) -> Tensor | None:
        """How far the weights in place are from the means, None if they are the means."""
        if self._draw is None or self._draw.shift is None:
            return None
        return self._in_prior_units(self._draw.shift)

    def _in_prior_units(self, flat: Tensor, *, times: bool = False) -> Tensor:
        """Of each weight in units of its prior's; `times`: back from them."""
        if self.units is None:
            return flat
        return flat * self.units if times else flat / self.units

    def _log_std_in_units(self) -> Tensor:
        return self.log_std if self.units is None else self.log_std - self.units.log()

    @torch.no_grad()
    def kl_by_group(self, prior_log_std: Tensor | None = None) -> Tensor:
        """KL of each group in nats, float64, at the given prior log-stds (by default its own)."""
        prior = self.prior_log_std if prior_log_std is None else prior_log_std
        if self.num_weights <= SMALL:
            shift = self._in_prior_units(self._exact_shift())
            return kl_by_group_at_once(shift, self._log_std_in_units(), prior, self.group_slices)
        out = torch.zeros(len(self.groups), dtype=torch.float64, device=self.log_std.device)
        for p, at, group in zip(self.means(), self.parameter_slices, self.group_of_parameters, strict=True):
            mean = p.reshape(-1) if self._draw is None else self._draw.means[at]
            for part in pieces(slice(0, len(mean))):  # no vector of all weights is needed
                here = slice(at.start + part.start, at.start + part.stop)
                shift, log_std = mean[part].double() - self.prior_mean[here], self.log_std[here]
                if self.units is not None:
                    shift, log_std = shift / self.units[here], log_std - self.units[here].log()
                out[group] += kl_by_group(shift, log_std, prior[group : group + 1], [slice(0, len(shift))])[0]
        return out

    @torch.no_grad()
    def mean_shift(self) -> Tensor:
        """Mean minus prior mean, flat."""
        means = self._draw.means if self._draw is not None else self._layout.read()
        return means.sub_(self.prior_mean) if self._draw is None else means - self.prior_mean

    def _exact_shift(self) -> Tensor:
        """Mean minus prior mean, flat, in float64: a difference of weights in bfloat16 is hardly ever one itself."""
        means = self._draw.means if self._draw is not None else self._layout.read()
        return means.double().sub_(self.prior_mean)

    def log_ratio(self, noise: Tensor, prior_log_std: Tensor) -> float:
        """ln dQ/dP at the draw mean + std·noise, with the prior at the given log-stds."""
        with torch.no_grad():
            log_std, noise = self._log_std_in_units().detach().double(), noise.double()
            weights = log_std.exp().mul_(noise).add_(self._in_prior_units(self._exact_shift()))
            return float(log_density_ratio(weights, noise, log_std, prior_log_std, self.group_slices))

    # -- looking inside --------------------------------------------------------------------------------------------

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
        """The group that each parameter of `means()` belongs to."""
        return self._layout.group_of

    @property
    def num_weights(self) -> int:
        """Number of random weights d."""
        return self.log_std.numel()

    @property
    def num_bytes(self) -> int:
        """Bytes the posterior holds beyond the model: log-stds, prior mean, prior log-stds."""
        held = (self.log_std, self.prior_mean, self.prior_log_std, self.units)
        return sum(t.numel() * t.element_size() for t in held if t is not None)

    @torch.no_grad()
    def mean_std(self) -> dict[str, float]:
        """Mean posterior standard deviation of each group."""
        sums = [
            sum(float(self.log_std[part].exp().sum(dtype=torch.float64)) for part in pieces(at))
            for at in self.group_slices
        ]
        sizes = [at.stop - at.start for at in self.group_slices]
        return {g: total / max(1, size) for g, total, size in zip(self.groups, sums, sizes, strict=True)}

    @torch.no_grad()
    def prior_std(self) -> dict[str, float]:
        """Prior standard deviation of each group, in the units of its weights."""
        return dict(zip(self.groups, self.prior_log_std.exp().tolist(), strict=True))

    @torch.no_grad()
    def reset_std(self, std: float) -> None:
        """Set every posterior and prior standard deviation to `std`, in the units of the weights."""
        self.log_std.fill_(math.log(std))
        if self.units is not None:
            self.log_std.add_(self.units.log())
        self.prior_log_std.fill_(math.log(std))

    @torch.no_grad()
    def snapshot(self) -> Snapshot:
        """A copy of means, log-stds and prior."""
        return Snapshot(self._layout.read(), self.log_std.detach().clone(), self.prior_log_std.detach().clone())

    @torch.no_grad()
    def restore(self, snapshot: Snapshot) -> None:
        """Go back to a snapshot."""
        self._layout.write(snapshot.means, self.means())
        self.log_std.copy_(snapshot.log_std)
        self.prior_log_std.copy_(snapshot.prior_log_std)

    def log_std_of(self, name: str) -> Tensor:
        """The log-stds of one parameter, in its shape (a view)."""
        at = self.parameter_slices[self.names.index(name)]
        return self.log_std[at].view_as(self.model.get_parameter(name))

    def extra_repr(self) -> str:
        return f"{self.num_weights:,} random weights in {len(self.groups)} groups, {self.num_bytes:,} bytes"

    def means(self) -> list[nn.Parameter]:
        """The model's parameters that are random, in the order of the flat vectors."""
        return self._layout.params()


def mean_abs(weights: Tensor) -> float:
    """Mean absolute value of the initial weights: the paper's starting scale.  A tenth where all are zero."""
    value = float(weights.abs().mean())
    return value if value > 0 else 0.1

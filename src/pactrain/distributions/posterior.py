"""The posterior: a Gaussian over the weights of any `nn.Module`, without touching the module.

The model's own parameters are the means; the posterior owns the log-stds and the prior (`random_weights.py`).  Here weights are drawn;
`divergence.py` has what the posterior costs.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from pactrain.distributions import divergence
from pactrain.distributions.gaussian import Draw
from pactrain.distributions.random_weights import RandomWeights, Snapshot
from pactrain.distributions.sampling import Prediction, call_with, fill_normal, predict_draws
from pactrain.distributions.weight_layout import InPlace
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.interrupts import uninterrupted
from pactrain.runtime.notebook import table_html
from pactrain.runtime.seeds import generator as seeded

__all__ = ["Posterior", "Snapshot"]


class Posterior(RandomWeights):
    """Q = N(weights of `model`, diag(std²)) against the prior P = N(initial weights, std of the group²).

    Every parameter that requires a gradient is random; frozen ones are constants.  Tied weights are one weight.
    Nothing in the model is converted or renamed: after training it *is* the deterministic predictor.

    Vectors are flat: one entry per random weight, group by group, in the order of `means()`.

    Args:
        model: Any module with parameters that require a gradient, all on one device.
        prior: How prior stds are shared and where they start, a `Prior` or "layer", "tensor", "model"; by default one std per layer.

    Attributes:
        model: The module itself, whose parameters are the means.
        log_std: Natural logarithms of the posterior's stds, flat; a trainable parameter.  While `fit` trains with stds in
            closed form they are those of the last epoch's end.
        prior_log_std: Logarithms of the prior's stds, one per group; requires a gradient if the prior is learned.
        prior_mean: The weights at construction, flat.
        units: Of each weight, the unit in which its prior std is counted, flat; None if all are one.
        groups: Names of the prior's groups.
        names: Names of the random parameters, in the order of `means()`.
        prior_fixed: Whether the prior's stds were set in advance and are not learned.
        prior_source: Where the initial weights come from, in the user's words, or None.
        prior_rows: Fingerprints of the rows that the prior's mean was trained on, one per row; None if there were none.
        unit_nats: What it costs, in nats, that the data has chosen `units`; a certificate charges for it.
        probabilities: How `predict` turns outputs into probabilities, None for raw outputs; `fit` sets it.

    Raises:
        PactrainError: If no parameter requires a gradient, or one is lazy, not real floating point or not finite.

    Example:
        >>> import torch
        >>> posterior = Posterior(torch.nn.Linear(3, 2))
        >>> posterior(torch.ones(1, 3)).shape            # at a fresh draw of the weights
        torch.Size([1, 2])
        >>> posterior.kl().item()                         # the posterior starts at the prior
        0.0
    """

    def _repr_html_(self) -> str:
        prior, mean = self.prior_std(), self.mean_std()
        sizes = (at.stop - at.start for at in self.group_slices)
        rows = [[g, f"{n:,}", f"{prior[g]:.3g}", f"{mean[g]:.3g}"] for g, n in zip(self.groups, sizes, strict=True)]
        return table_html("Posterior", ["group", "weights", "prior std", "mean posterior std"], rows)

    # -- drawing ---------------------------------------------------------------------------------------------------

    def forward(self, *args: Any, generator: torch.Generator | None = None, **kwargs: Any) -> Any:
        """The network's output at one fresh draw of the weights; inside `sampled()`, at the draw in place.

        Args:
            *args: Passed to the model.
            generator: Source of the noise, torch's own if None.
            **kwargs: Passed to the model.

        Returns:
            What the model returns, differentiable in the means and the log-stds.
        """
        if self._draw is not None:
            return self.model(*args, **kwargs)
        return call_with(self.model, self.draw(generator), args, kwargs)

    def draw(self, generator: torch.Generator | None = None) -> dict[str, Tensor]:
        """One draw of the random weights, differentiable in the means and the log-stds.

        Args:
            generator: Source of the noise, torch's own if None.

        Returns:
            The weights by the names of their parameters.
        """
        weights = Draw.apply(self.log_std, self.fresh_noise(generator), self.parameter_slices, *self.means())  # type: ignore[no-untyped-call]
        return dict(zip(self.names, weights, strict=True))

    def predict(self, *args: Any, draws: int = 100, seed: int = 0, **kwargs: Any) -> Prediction:
        """Mean and standard deviation of the network's output over draws of the weights, in eval mode.

        After `fit` with cross-entropy, of the class probabilities; set `probabilities` to None for the raw output.

        Args:
            *args: Passed to the model.
            draws: Number of draws, at least two.
            seed: Draw i depends on the seed and i only.
            **kwargs: Passed to the model.

        Returns:
            The pair (mean, std), each in the shape of the output, in float64.

        Raises:
            PactrainError: With fewer than two draws, or inside `sampled()`.

        Example:
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

        Args:
            generator: Source of the noise, torch's own if None.

        Yields:
            The model.

        Raises:
            PactrainError: Inside another such block.
        """
        shift = self.fresh_noise(generator).mul_(self.log_std.detach().exp())
        with self.shifted(shift):
            yield self.model

    @torch.no_grad()
    def drawn(self, seed: int = 0) -> nn.Module:
        """A copy of the model at one draw of the weights.

        Args:
            seed: That of the certificate which covers the drawn network.

        Returns:
            A deep copy; the model itself keeps the means.
        """
        with self.sampled(seeded(self.log_std.device, seed, "one network")) as model:
            return copy.deepcopy(model)

    @contextmanager
    def prior_draw(self, log_std: Tensor, noise: Tensor) -> Iterator[nn.Module]:
        """Inside the block the model's weights are prior mean + exp(log_std)·noise.

        Args:
            log_std: Prior log-stds, one per group.
            noise: Flat, as from `fresh_noise`.

        Yields:
            The model.
        """
        stds, noise = log_std.exp().to(self.prior_mean), noise if self.units is None else noise * self.units
        with self.shifted(None):
            with torch.no_grad():
                for p, at, group in zip(self.means(), self.parameter_slices, self.group_of_parameters, strict=True):
                    p.copy_(torch.addcmul(self.prior_mean[at], noise[at], stds[group]).view_as(p))
            yield self.model

    @torch.no_grad()
    def prior_networks(self, places: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        """The weights that `prior_draw` would put in place for each of several pairs.

        Args:
            places: Pairs of flat noise and prior log-stds.

        Returns:
            The weights by the names of their parameters, with the pairs as first dimension.
        """
        noise = torch.stack([z for z, _ in places])
        noise = noise if self.units is None else noise * self.units
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
        """Inside the block the model's weights are the means plus `shift`; on leaving, they are the means again.

        Args:
            shift: Flat; None leaves it to the caller to change the weights.

        Yields:
            Nothing.

        Raises:
            PactrainError: Inside another such block, or one of `sampled()`.
        """
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

    def fresh_noise(self, generator: torch.Generator | None = None) -> Tensor:
        """Standard normal noise, one entry per random weight.

        Args:
            generator: Where it comes from, torch's own if None.

        Returns:
            A flat vector.
        """
        return fill_normal(torch.empty_like(self.log_std, requires_grad=False), generator)

    # -- the divergence --------------------------------------------------------------------------------------------

    def kl(self) -> Tensor:
        """The divergence from the prior.

        Returns:
            KL(Q‖P) in nats, float64, differentiable in means, log-stds and prior log-stds.
        """
        return divergence.kl(self)

    def kl_by_group(self, prior_log_std: Tensor | None = None) -> Tensor:
        """The divergence from the prior, group by group.

        Args:
            prior_log_std: Prior log-stds, one per group; by default the posterior's own.

        Returns:
            KL in nats, float64, one entry per group.
        """
        return divergence.kl_by_group(self, self.prior_log_std if prior_log_std is None else prior_log_std)

    def log_ratio(self, noise: Tensor, prior_log_std: Tensor) -> float:
        """Logarithm of the density ratio at one draw.

        Args:
            noise: Flat, as from `fresh_noise`.
            prior_log_std: Prior log-stds, one per group.

        Returns:
            ln dQ/dP at mean + std·noise, in nats.
        """
        return divergence.log_ratio(self, noise, prior_log_std)

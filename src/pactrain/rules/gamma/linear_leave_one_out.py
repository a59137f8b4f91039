"""How far the data should move the weights: leave-one-out of the linearised network.

Near its initial weights a network is linear in them, and training with the KL to a Gaussian prior is ridge regression in the
kernel of its gradients.  Write every loss as the square of a residual, loss_j = s_j², with the gradient ∇s_j = ∇loss_j / 2s_j
and K_ij = ⟨∇s_i, ∇s_j⟩.  Minimising  Σ_j loss_j + ρ |Δ|²,  ρ = 1/(2 γ std²),  leaves the residual of an example that has been left
out at

    s_j' = [(K + ρ)⁻¹ s]_j / [(K + ρ)⁻¹]_jj

for all examples from one decomposition of K.  The largest ρ whose mean of s_j'² is within a standard error of the smallest says
how noisy the data is as seen by this network, in units that do not depend on the scale of the loss, of the features or of the prior.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from pactrain.distributions.sampling import try_with
from pactrain.problem.batches import Batches, TensorBatches
from pactrain.problem.losses import AnyLoss, Loss, per_example, refusing_loss, scores_of
from pactrain.problem.module_modes import batch_norms, estimate_batch_norm, evaluating
from pactrain.rules.gamma.layer_factors import SharedGradients, Unlike, products, row_factors, tapped
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.gave_up import Refused, gave_up, refusing
from pactrain.runtime.seeds import derive
from pactrain.runtime.vmap import rows_of_each, together
from pactrain.scan.prior_losses import convolves

EXAMPLES, SHARED_EXAMPLES = 512, 256
"""Most examples whose gradients are taken; fewer where examples share a forward pass, which each gradient goes back through.
More would be better: the best gain grows with their number (energy: 13 with 256 examples, 75 with 512)."""

WEIGHTS = 65_536
"""Weights, picked at random, of which the gradients are kept: many more than examples, so that inner products stay exact to
about a hundredth.  Networks of linear layers need no gradients, and have the inner products of all weights (`factors.py`)."""

MANY_WEIGHTS, COLUMNS = 1 << 20, 16_384
"""Weights from which picking some of them avoids a list of all; weights whose inner products are taken at a time."""

NUMBERS_AT_ONCE = 1 << 20
"""Numbers in the gradients that are taken in one pass."""

GAINS = np.logspace(-2, 5, 57)
"""Values of K̄/ρ that are tried, K̄ being the mean of K's diagonal: how much of one residual its own example may explain."""

SMALLEST_LOSS = 1e-6
"""Part of the mean loss below which an example's loss counts as that: its residual is nearly zero, and so is its gradient."""

SMALLEST_SHIFTED = 1e-2
"""The same for losses that may be negative, whose gradient does not vanish at the smallest."""


@dataclass(frozen=True)
class Linearised:
    """The kernel's scale, and the loss of left-out examples at each gain."""

    scale: float  # K̄
    untrained: float
    left_out: tuple[float, ...]  # at each of GAINS
    errors: tuple[float, ...]  # standard error of its difference to the smallest of them

    def best_gain(self) -> float:
        """The least gain at which left-out examples are predicted as well as at any, by one standard error."""
        best = min(self.left_out)
        return next(float(g) for g, v, e in zip(GAINS, self.left_out, self.errors, strict=True) if v - e <= best)

    def least_gain(self, share: float, floor: float) -> float:
        """The least gain above `floor` at which the loss has fallen by `share` of what it falls by at best; no more than the best."""
        wanted = self.untrained - share * (self.untrained - min(self.left_out))
        good = [g for g, loss in zip(GAINS, self.left_out, strict=True) if g >= floor and loss <= wanted]
        return min(self.best_gain(), float(good[0])) if good else self.best_gain()

    def signal(self, gain: float, chance: float = math.inf) -> float:
        """What of the loss left-out examples lose at this gain over what they keep: an estimate of signal to noise, the gain that ridge
        regression would want.  No signal is what an answer without inputs would gain too, down to a loss of `chance`."""
        return min(self.untrained, chance) / max(self.loss_at(gain), 1e-300) - 1

    def loss_at(self, gain: float) -> float:
        """Of left-out examples."""
        return float(np.interp(gain, GAINS, self.left_out))

    def gamma(self, gain: float, std: float) -> float:
        """The γ that has this gain with a prior of the given std."""
        return gain / (2 * std * std * self.scale)


def linearise(model: nn.Module, batches: Batches, loss: AnyLoss, seed: int) -> Linearised | None:
    """Measure the linearised network on some of the examples; None if that cannot be done."""
    with independent_rows(model, batches, loss), evaluating(model):
        try:
            kernel, losses = _kernel(model, batches, refusing_loss(loss), seed)
        except (PactrainError, RuntimeError) as error:  # they take no single row, or no backward pass here
            _not_measured(error)
            return None
    usable = torch.isfinite(losses) & torch.isfinite(kernel.diagonal())
    if not bool(usable.all()):
        kernel, losses = kernel[usable][:, usable], losses[usable]
    if not len(losses) or not bool(kernel.diagonal().any()):
        _not_measured("no example has a finite loss with a gradient")
        return None
    negative = bool(losses.min() < 0)  # a likelihood's loss may be: then residuals are measured from the smallest
    losses = losses - losses.min().clamp(max=0.0)
    losses = losses.clamp(min=(SMALLEST_SHIFTED if negative else SMALLEST_LOSS) * float(losses.mean()) + 1e-300)
    residuals = losses.sqrt()
    kernel = kernel / (4 * residuals[:, None] * residuals[None, :])
    return _leave_out(kernel.cpu(), residuals.cpu())


def _not_measured(why: Exception | str) -> None:
    what = "How far the data should move the weights (γ) was not measured on the untrained network"
    gave_up(what, why, instead="the largest γ of the rules is used, which may fit noise")


def _leave_out(kernel: Tensor, residuals: Tensor) -> Linearised:
    values, vectors = torch.linalg.eigh(kernel)  # numpy would not keep to torch's number of threads
    values, scale = values.clamp(min=0.0), float(kernel.diagonal().mean())
    inverse = 1 / (values[:, None] + scale / torch.from_numpy(GAINS))  # one column a gain
    pulls = vectors @ (inverse * (vectors.T @ residuals)[:, None])
    squares = (pulls / (vectors.square() @ inverse)).square().T
    losses = squares.mean(1)
    errors = (squares - squares[losses.argmin()]).std(1, correction=0) / math.sqrt(len(residuals))
    return Linearised(scale, float(residuals.square().mean()), tuple(losses.tolist()), tuple(errors.tolist()))


def _products(gradients: Tensor, scale: float) -> Tensor:
    """The inner products of all rows: of blocks in their own precision, whose sum in float64 is exact to 3·10⁻⁷ of the diagonal,
    well below the smallest ρ.  numpy takes half the time of torch for a product with the own transpose."""
    total = torch.zeros(len(gradients), len(gradients), dtype=torch.float64, device=gradients.device)
    for block in gradients.split(COLUMNS, dim=1):
        if block.is_cpu and block.dtype in (torch.float32, torch.float64):
            array = block.numpy()
            total += torch.from_numpy(array @ array.T)
        else:
            total += block @ block.T
    return total.mul_(scale * scale)


def _kernel(model: nn.Module, batches: Batches, loss: AnyLoss, seed: int) -> tuple[Tensor, Tensor]:
    """Inner products of the gradients of single examples, and the losses."""
    params = [p for p in model.parameters() if p.requires_grad]
    source = torch.Generator().manual_seed(derive(seed, "linearise"))
    kept = picked_weights(sum(p.numel() for p in params), source)
    if isinstance(batches, TensorBatches):
        state = source.get_state()
        rows = torch.randperm(len(batches), generator=source)[:EXAMPLES].to(batches.tensors[0].device)
        batch = tuple(t[rows] for t in batches.tensors)
        try:
            factors, losses = row_factors(model, params, lambda: per_example(loss, refusing(model), batch))
            return products(factors), losses.double()
        except Unlike:  # other layers than linear ones; the gradients themselves take any
            source.set_state(state)
        except (Refused, RuntimeError) as error:
            source.set_state(state)
            what = f"The untrained network was not measured on {len(rows)} examples in one pass"
            gave_up(what, error, instead="each has a pass of its own, and only some of the weights are looked at")
    gradients, losses, scale = _gradients(model, params, batches, loss, kept, source)
    return _products(gradients, scale), losses


def _gradients(
    model: nn.Module,
    params: list[nn.Parameter],
    batches: Batches,
    loss: AnyLoss,
    kept: Tensor,
    source: torch.Generator,
) -> tuple[Tensor, Tensor, float]:
    """Gradients of single examples at the `kept` weights, one a row; the losses; what to scale the gradients by."""
    count = sum(p.numel() for p in params)
    edges = torch.tensor([0, *itertools.accumulate(p.numel() for p in params)])
    cuts = torch.searchsorted(kept, edges).tolist()
    places = [
        (kept[a:b] - start).to(params[0].device) for a, b, start in zip(cuts, cuts[1:], edges.tolist(), strict=False)
    ]
    gradients = params[0].new_empty(
        EXAMPLES, len(kept)
    )  # one piece of memory, which goes back to the machine as a whole
    losses: list[Tensor] = []
    for parts, values in _example_gradients(model, params, batches, loss, source):
        rows = gradients[len(losses) : len(losses) + len(values)].zero_()
        for g, at, a, b in zip(parts, places, cuts, cuts[1:], strict=False):
            if g is not None:
                rows[:, a:b] = g.reshape(len(values), -1).index_select(1, at)
        losses += values.detach().unbind()
    return gradients[: len(losses)], torch.stack(losses).double(), math.sqrt(count / len(kept))


def picked_weights(count: int, source: torch.Generator, most: int = WEIGHTS) -> Tensor:
    """Which of the weights are looked at, in order."""
    if count <= MANY_WEIGHTS:
        return torch.randperm(count, generator=source)[:most].sort().values
    chance = np.random.default_rng(int(torch.randint(2**31, (1,), generator=source)))
    return torch.from_numpy(np.sort(chance.choice(count, most, replace=False, shuffle=False)))


def _example_gradients(
    model: nn.Module, params: list[nn.Parameter], batches: Batches, loss: AnyLoss, source: torch.Generator
) -> Iterator[tuple[Sequence[Tensor | None], Tensor]]:
    """Gradients of the losses of some examples at a time, one list entry a parameter and one row per example; and the losses."""
    at_once = NUMBERS_AT_ONCE // max(1, sum(p.numel() for p in params))
    if isinstance(batches, TensorBatches) and isinstance(loss, Loss) and at_once > 1 and not convolves(model):
        state = source.get_state()
        found = _together(model, batches, loss, source, at_once)
        first = together(lambda: next(found), "Gradients of single examples were")
        if first is not None:
            yield first
            yield from found
            return
        source.set_state(state)
    if isinstance(batches, TensorBatches):
        for row in torch.randperm(len(batches), generator=source)[:EXAMPLES].tolist():
            value = per_example(loss, refusing(model), tuple(t[row : row + 1] for t in batches.tensors))
            yield torch.autograd.grad(value[0], params, allow_unused=True), value
        return
    yield from _shared_gradients(model, params, batches, loss, source)


def _together(
    model: nn.Module, batches: TensorBatches, loss: Loss, source: torch.Generator, at_once: int
) -> Iterator[tuple[Sequence[Tensor | None], Tensor]]:
    """Every example has weights of its own, so that one ordinary backward pass gives the gradients of each.  (`torch.func.grad`,
    and some losses under vmap, would import torch's compiler, which takes longer than all the rest.)"""
    weights = {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}
    for rows in torch.randperm(len(batches), generator=source)[:EXAMPLES].split(at_once):
        index = rows.to(batches.tensors[0].device)
        own = {name: w.expand(len(index), *w.shape).requires_grad_() for name, w in weights.items()}

        def predict(*inputs: Tensor, own: dict[str, Tensor] = own) -> Tensor:
            def one(weights: dict[str, Tensor], *example: Tensor) -> Tensor:
                return scores_of(try_with(model, weights, tuple(t[None] for t in example)))

            return rows_of_each(one, own, *inputs)

        values = per_example(loss, predict, tuple(t[index] for t in batches.tensors))
        yield torch.autograd.grad(values.sum(), list(own.values()), allow_unused=True), values


def _shared_gradients(
    model: nn.Module, params: list[nn.Parameter], batches: Batches, loss: AnyLoss, source: torch.Generator
) -> Iterator[tuple[Sequence[Tensor | None], Tensor]]:
    """The same for batches whose examples share a forward pass."""
    room = SHARED_EXAMPLES
    for batch in batches.subset(SHARED_EXAMPLES, int(torch.randint(2**31, (1,), generator=source))):
        with tapped(model, params) as taps:
            losses = per_example(loss, refusing(model), batch)
        gradients = SharedGradients(params, taps, losses)
        picked = torch.randperm(len(losses), generator=source)[:room].tolist()
        for j in picked:
            yield gradients.of(losses[j]), losses[j].reshape(1)
        room -= len(picked)
        if room <= 0:
            return


@contextmanager
def independent_rows(model: nn.Module, batches: Batches, loss: AnyLoss) -> Iterator[None]:
    """BatchNorm mixes the rows of a batch; statistics of the data, put back afterwards, keep them apart."""
    if not batch_norms(model):
        yield
        return
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    try:
        estimate_batch_norm(model, batches.ordered(), loss)
        yield
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])

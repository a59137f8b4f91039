"""Populations whose label probabilities are known, so that the true risk of a linear network is known without sampling.

A population is a finite list of inputs, each equally likely, with the probability that its label is 1.  A data set is drawn
from it independently, with replacement.  The difference D of the two scores of a linear network with independent Gaussian
weights is Gaussian for each input: the true error of the randomised predictor follows from Φ, its smoothed
cross-entropies from Gauss-Hermite quadrature over D.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy import stats
from torch import Tensor, nn

from pactrain import Posterior
from pactrain.certification.statement import DRAWN, MEAN, PRIOR, RANDOMISED
from pactrain.distributions.posterior import Snapshot
from pactrain.runtime.seeds import generator

SIZE = 2048
INPUTS = 20
"""As many inputs as make a linear network fit 40 random labels."""

Rows = tuple[Tensor, Tensor]
Truth = dict[tuple[str, str], float]
"""The true risk by quantity and predictor."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


@dataclass(frozen=True)
class World:
    """A population by the name of its labels, and the number of examples in a data set."""

    labels: str
    n: int

    def rows(self, seed: int, n: int | None = None) -> Rows:
        """A data set of its own for each seed."""
        x, positive = population(self.labels)
        g = torch.Generator().manual_seed(seed)
        at = torch.randint(SIZE, (self.n if n is None else n,), generator=g)
        return x[at], (torch.rand(len(at), generator=g) < positive[at]).long()

    def truth(self, posterior: Posterior, seed: int) -> Truth:
        """What the statements of a certificate made with this seed are about."""
        x, positive = population(self.labels)
        with drawn(posterior, seed) as network:
            one = error(network, x, positive)
        mean = error(posterior.model, x, positive)
        gibbs, entropies = randomised(posterior, x, positive)
        with posterior.prior_draw(posterior.prior_log_std, torch.zeros_like(posterior.prior_mean)) as network:
            prior = error(network, x, positive)
        return {
            ("0-1 error", RANDOMISED): gibbs,
            ("0-1 error", DRAWN): one,
            ("0-1 error", MEAN): mean,
            ("0-1 error", PRIOR): prior,
            **{(f"cross-entropy smoothed by {part:g}", RANDOMISED): value for part, value in entropies.items()},
        }

    def truth_at(self, snapshot: Snapshot, posterior: Posterior, seed: int) -> Truth:
        """The truth of an earlier moment of the same training."""
        now = posterior.snapshot()
        posterior.restore(snapshot)
        found = self.truth(posterior, seed)
        posterior.restore(now)
        return found


@cache
def population(labels: str) -> Rows:
    """Inputs from N(0, I), and the probability of label 1 at each."""
    x = torch.randn(SIZE, INPUTS, generator=torch.Generator().manual_seed(1))
    if labels == "random":
        return x, torch.full((SIZE,), 0.5)
    if labels == "1 % positive":
        return x, torch.full((SIZE,), 0.01)
    return x, torch.where(x[:, :4].sum(1) > 0, 0.95, 0.05)  # learnable


@contextmanager
def drawn(posterior: Posterior, seed: int) -> Iterator[nn.Module]:
    """The one network, drawn from the posterior, that a certificate made with this seed speaks of."""
    with posterior.sampled(generator(posterior.log_std.device, seed, "one network")) as network:
        yield network


@torch.no_grad()
def error(network: nn.Module, x: Tensor, positive: Tensor) -> float:
    """True error of a network with fixed weights."""
    says_one = network(x).argmax(1) == 1
    return float(torch.where(says_one, 1 - positive.double(), positive.double()).mean())


@torch.no_grad()
def randomised(posterior: Posterior, x: Tensor, positive: Tensor) -> tuple[float, dict[float, float]]:
    """True error and true smoothed cross-entropies of a linear network whose weights are drawn anew for each example."""
    scores = posterior.model(x).double().numpy()
    variance = [torch.exp(2 * posterior.log_std_of(name)).sum(0) for name in ("weight", "bias")]
    middle = scores[:, 1] - scores[:, 0]
    spread = np.sqrt((x.double().square() @ variance[0].double() + variance[1].double()).numpy())
    one = positive.double().numpy()
    says_one = stats.norm.cdf(middle / spread)
    wrong = one * (1 - says_one) + (1 - one) * says_one
    score = torch.from_numpy(middle[:, None] + spread[:, None] * _NODES)
    entropies = {}
    for part in (0.01, 0.05, 0.1, 0.2):
        chances = [(1 - part) * torch.sigmoid(sign * score) + part / 2 for sign in (1, -1)]
        losses = [-chance.log().numpy() @ _WEIGHTS / _WEIGHTS.sum() for chance in chances]
        entropies[part] = float((one * losses[0] + (1 - one) * losses[1]).mean())
    return float(wrong.mean()), entropies

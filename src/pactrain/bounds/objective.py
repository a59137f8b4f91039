"""What a bound needs of a posterior, and what it returns: an objective to differentiate, and its value in terms."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from torch import Tensor


class HasDivergence(Protocol):
    """A posterior, as far as a bound looks at it."""

    @property
    def prior_log_std(self) -> "Tensor":
        """Log of the prior's stds, one per group."""

    def kl(self) -> "Tensor":
        """KL(posterior ‖ prior) in nats."""


class Objective(NamedTuple):
    """A bound at one draw of the weights, split into its terms.

    Attributes:
        total: The value to differentiate.
        risk: Mean loss of the batch.
        complexity: What the bound charges beside the KL's term.
        kl: KL(posterior ‖ prior) in nats.
        gamma: The γ at which the bound is taken.

    Example:
        >>> import torch
        >>> from pactrain import Posterior, bounds
        >>> posterior = Posterior(torch.nn.Linear(3, 2))
        >>> objective = bounds.Classic(1000)(torch.full((8,), 0.25), posterior)
        >>> round(objective.risk.item(), 2), objective.kl.item()
        (0.25, 0.0)
    """

    total: "Tensor"
    risk: "Tensor"
    complexity: "Tensor"
    kl: "Tensor"
    gamma: float


class Terms(NamedTuple):
    """The value of a bound in float64, total = risk + kl_term + complexity.

    Attributes:
        total: The bound.
        gamma: The γ at which it is taken.
        kl_term: What the divergence and the confidence cost.
        complexity: What is charged beside them.

    Example:
        >>> Terms(total=0.5, gamma=2.0, kl_term=0.2, complexity=0.1).kl_term
        0.2
    """

    total: float
    gamma: float
    kl_term: float
    complexity: float

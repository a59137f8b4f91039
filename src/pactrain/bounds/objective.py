"""What every bound returns when it is used for training."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class Objective(NamedTuple):
    """A bound split into its terms; `total` is the one to differentiate."""

    total: "Tensor"
    risk: "Tensor"
    complexity: "Tensor"
    kl: "Tensor"
    gamma: float

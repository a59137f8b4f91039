"""The objective that a run is trained with: the rules as a bound changes them, and the bound itself."""

from pactrain.bounds.base import Bound
from pactrain.bounds.bbb import BBB
from pactrain.bounds.by_name import BOUNDED, NAMES
from pactrain.bounds.moment import Moment
from pactrain.bounds.moments import CGF, SubGaussian
from pactrain.problem.losses import Loss
from pactrain.rules.presets import CERTIFY
from pactrain.rules.rules import Rules
from pactrain.runtime.errors import PactrainError


def rules_with(rules: Rules, bound: str) -> Rules:
    """The rules as a bound changes them."""
    if bound not in NAMES:
        raise PactrainError(f"bound {bound!r} is not known; use one of {', '.join(NAMES)}")
    if bound in BOUNDED and rules.name == "auto":
        return CERTIFY
    return rules.replace(mode=bound) if bound in ("cgf", "paper") else rules


def training_loss(bound: str, loss: Loss) -> Loss:
    """The loss that is trained on: the user's own, or clipped to [0, 1] where the bound needs it."""
    return loss.clipped() if bound in BOUNDED else loss


def make_bound(
    bound: str, rules: Rules, *, n: int, delta: float, moment: Moment, groups: int, start_log_std: float
) -> Bound:
    """The objective by name."""
    if bound == "bbb":
        return BBB(n, delta, penalty=rules.bbb_penalty)
    if bound in BOUNDED:
        return BOUNDED[bound](n, delta)
    if bound == "subgaussian":
        return SubGaussian(n, delta, k=moment.k_two_sided(start_log_std))
    if bound == "cgf_rodriguez":
        at = int(abs(moment.log_stds - start_log_std).argmin())
        return CGF(n, delta, k=float(moment.k("mean")[at]), gamma_max=rules.gamma_max)
    return rules.bound(n, delta, moment, groups)

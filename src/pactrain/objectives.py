"""From the name of a bound to the objective that is trained with."""

from pactrain.auto import CERTIFY, Rules
from pactrain.bounds.base import Bound
from pactrain.bounds.bbb import BBB
from pactrain.bounds.catoni import Catoni
from pactrain.bounds.kl import KL
from pactrain.bounds.mcallester import Classic
from pactrain.bounds.moments import CGF, SubGaussian
from pactrain.bounds.quad import Quad
from pactrain.bounds.thiemann import Lambda
from pactrain.bounds.unbounded import Unbounded
from pactrain.errors import PactrainError
from pactrain.losses import AnyLoss, clipped
from pactrain.moment import Moment

BOUNDED: dict[str, type[Bound]] = {
    "kl": KL,
    "quad": Quad,
    "lambda": Lambda,
    "classic": Classic,
    "catoni": Catoni,
    "bbb": BBB,
}
CONSTANT_MOMENT = ("subgaussian", "cgf_rodriguez")
UNBOUNDED = ("auto", "unbounded", "cgf", "paper")
NAMES = (*UNBOUNDED, *BOUNDED, *CONSTANT_MOMENT)


def rules_with(rules: Rules, bound: str) -> Rules:
    """The rules as a bound changes them."""
    if bound not in NAMES:
        raise PactrainError(f"bound {bound!r} is not known; use one of {', '.join(NAMES)}")
    if bound in BOUNDED and rules.name == "auto":
        return CERTIFY
    return rules.replace(mode=bound) if bound in ("cgf", "paper") else rules


def training_loss(bound: str, loss: AnyLoss) -> AnyLoss:
    """The loss that is trained on: the user's own, or clipped to [0, 1] where the bound needs it."""
    return clipped(loss) if bound in BOUNDED else loss


def make_bound(
    bound: str, rules: Rules, *, n: int, delta: float, moment: Moment, groups: int, start_log_std: float
) -> Unbounded | Bound:
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

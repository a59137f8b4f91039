"""A small scan of a network of the zoo."""

from pactrain import Moment, Posterior, Prior, estimate_moment
from tests.zoo import ZOO, build

GAMMAS = [0.5, 2.0, 10.0]
LOG_STDS = [-4.0, -3.0, -2.0]


def scan(name: str = "mlp", **options: object) -> tuple[Posterior, Moment]:
    """A small scan of a network of the zoo."""
    posterior = Posterior(build(name), Prior(per="layer"))
    data, loss = ZOO[name][1](), ZOO[name][2]
    settings = {"gammas": GAMMAS, "log_stds": LOG_STDS, "draws": 4, **options}
    return posterior, estimate_moment(posterior, data, loss, **settings)  # type: ignore[arg-type]

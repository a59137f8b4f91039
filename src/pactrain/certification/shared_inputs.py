"""`Scene`: the posterior, data and settings that all statements of a certificate are computed from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pactrain.certification.measures import Measure, measures_for
from pactrain.certification.statement import Label
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer
from pactrain.problem.losses import Loss
from pactrain.runtime.events import Callback


@dataclass(frozen=True)
class Scene:
    """Posterior, data and settings of a certificate.

    classes: that the network tells apart; 0 where a row has several to tell, or none.
    label:   the best that caveats leave to statements about the counted rows.
    delta:   of the whole certificate; `budget` has the part of each event that may fail.
    moments: how many posteriors may be measured.
    counted: all examples, and `of` their number, where `batches` are some of them, chosen at random without replacement, to measure
             the risk on in one pass.  What holds for independent values of that mean then holds as well: the losses of different
             examples are negatively associated (Joag-Dev and Proschan 1983), and the bound on the mean is an average of products
             of functions that all decrease, or all increase.
    """

    posterior: Posterior
    batches: Batches
    loss: Loss
    constant: ConstantAnswer | None
    classes: int
    draws: int
    seed: int
    progress: Callback
    label: Label
    delta: float
    budget: Mapping[str, float]
    moments: int
    counted: Batches | None = None
    of: int | None = None

    @cached_property
    def measures(self) -> list[Measure]:
        """What is measured under noise."""
        return measures_for(self.loss, self.classes)

"""The scan of the prior before training, as the rules want it, and where it is kept."""

import math
from dataclasses import dataclass
from typing import Protocol

from pactrain.bounds.moment import LOG_STD_RANGE, Moment, log_grid
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.losses import Loss
from pactrain.problem.untrained import Untrained
from pactrain.rules.rules import FEWEST_SCANNED, Rules
from pactrain.runtime import distributed
from pactrain.runtime.events import Callback, silent
from pactrain.scan.estimate import estimate_moment


class MomentStore(Protocol):
    """Where the scan is kept, so that a resumed run need not repeat it."""

    def moment(self) -> Moment | None:
        """The scan, if it was completed."""

    def write_moment(self, moment: Moment) -> None:
        """Keep the scan."""


@dataclass(frozen=True)
class PriorScan:
    """What is scanned, and how.

    Attributes:
        posterior: Its prior is drawn from.
        batches: The examples on which drawn networks are measured.
        loss: The loss that is measured.
        rules: They give the grids, the number of draws and the share of training that the scan may take.
        untrained: Number of examples and of batches per epoch.
        seed: Decides the draws.
        notify: Hears of progress.
        most: Examples that may be scanned where time is short.
    """

    posterior: Posterior
    batches: Batches
    loss: Loss
    rules: Rules
    untrained: Untrained
    seed: int
    notify: Callback = silent
    most: float = math.inf

    def moment(self, store: MomentStore | None = None) -> Moment:
        """The moment table: the one in the store, or a new one, which is then kept there."""
        found = store.moment() if store is not None else None
        shared = found.to_dict() if found is not None and distributed.world() > 1 else None
        kept = distributed.document_from_first(shared)
        if found is not None or kept is not None:
            return found or Moment.from_dict(kept)
        moment = self._estimated()
        if store is not None:
            store.write_moment(moment)
            return store.moment() or moment  # what a resumed run would read, to the last bit
        return moment

    def _estimated(self) -> Moment:
        rules, n, (low, high) = self.rules, self.untrained.n, LOG_STD_RANGE
        log_stds = [low + (high - low) * i / (rules.std_points - 1) for i in range(rules.std_points)]
        wanted = rules.examples_to_scan(n, self.untrained.steps)
        return estimate_moment(
            self.posterior,
            self.batches,
            self.loss,
            gammas=log_grid(rules.gamma_min, rules.gamma_max, rules.gamma_points),
            log_stds=log_stds,
            draws=rules.draws,
            max_examples=int(min(wanted, max(FEWEST_SCANNED, self.most))),
            n=n,
            seed=self.seed,
            progress=self.notify,
        )

"""`Subject`: the posterior, data and settings that all statements of a certificate are computed from."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pactrain.certification.measures import Measure, measures_for
from pactrain.certification.statement import COUNTED, DRAWN, TEST, Label
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import ConstantAnswer
from pactrain.problem.losses import Loss
from pactrain.runtime.events import Callback


@dataclass(frozen=True)
class Rows:
    """The rows that a certificate is about, as the network takes them, copies left out.

    Attributes:
        counted: What the bound counts.
        measured: What the risk is measured on: all of them, or in one pass some that were chosen at random without replacement.
            What holds for independent values of that mean then holds as well: the losses of different examples are negatively
            associated (Joag-Dev and Proschan 1983), and the bound on the mean is an average of products of functions that all
            decrease, or all increase.
        held_out: Rows that training has not seen.
        notes: What is said of copies.
        of: How many rows are counted, where only some are measured.
    """

    counted: Batches
    measured: Batches
    held_out: Batches | None = None
    notes: tuple[str, ...] = ()
    of: int | None = None


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a certificate is about, and how it is measured.

    Attributes:
        posterior: What the certificate is about.
        rows: The data.
        loss: What is measured.
        constant: The best constant answer on the measured rows.
        classes: How many the network tells apart; 0 where a row has several to tell, or none.
        label: The best that caveats leave to statements about the counted rows.
        delta: Probability with which the certificate may fail.
        draws: Independent draws that are asked for.
        seed: Decides them.
        progress: Hears of what has been measured.
        earlier: How many posteriors of earlier moments are stated as well.
    """

    posterior: Posterior
    rows: Rows
    loss: Loss
    constant: ConstantAnswer | None
    classes: int
    label: Label
    delta: float
    draws: int
    seed: int
    progress: Callback
    earlier: int = 0

    @cached_property
    def measures(self) -> list[Measure]:
        """What is measured under noise."""
        return measures_for(self.loss, self.classes)

    @cached_property
    def budget(self) -> Mapping[str, float]:
        """δ of each event that may fail: half for the counted rows' judgement of the prior's mean network, where there is one."""
        posterior, events = self.posterior, [measure.event for measure in self.measures]
        told_apart = self.loss.task == "classification"
        events += [DRAWN] * told_apart + [TEST] * (told_apart and self.rows.held_out is not None)
        free = posterior.prior_fixed and posterior.unit_nats == 0
        if not self.classes or not free or posterior.prior_source is None:
            return {event: self.delta / len(events) for event in events}
        return {COUNTED: self.delta / 2} | {event: self.delta / 2 / len(events) for event in events}

    @cached_property
    def moments(self) -> int:
        """How many posteriors may be measured: a training may go back to the prior, which the counted rows judge, and measure that."""
        return 1 + self.earlier + (COUNTED in self.budget)

"""Certificates of trainings that went part by part: one statement, which takes the whole of δ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pactrain.certification.caveats import dropout_note
from pactrain.certification.certificate import Certificate
from pactrain.certification.certify import hashes_of
from pactrain.certification.data_checks import copied_rows, data_caveats
from pactrain.certification.prior_check import initial_caveats
from pactrain.certification.statement import Caveat, Label, Statement, best_label
from pactrain.distributions.posterior import Posterior
from pactrain.problem.batches import Batches
from pactrain.problem.constant_answer import best_constant
from pactrain.problem.losses import Loss
from pactrain.runtime.versions import versions


@dataclass(frozen=True, kw_only=True)
class InParts:
    """A training that went part by part, as far as its certificate needs to know it.

    Attributes:
        posterior: The distribution at its end, with the prior that no example has seen.
        batches: All examples, in their order.
        loss: The user's own loss.
        delta: Probability with which the statement may fail.
        seed: Of the run.
        caveats: Reasons why the assumptions cannot be taken for granted.
        remarks: Anything that should be printed with the numbers.
    """

    posterior: Posterior
    batches: Batches
    loss: Loss
    delta: float
    seed: int
    caveats: Sequence[Caveat]
    remarks: Sequence[str]

    def certificate(
        self, event: str, n: int, caveats: Sequence[Caveat], state: Callable[[Label, float | None], Sequence[Statement]]
    ) -> Certificate:
        """Put the certificate together.

        Args:
            event: What may fail.
            n: Number of counted examples.
            caveats: Those that such a network has in such a certificate.
            state: Makes the statement, if there is one, from its label and what the best constant answer has.
        """
        posterior, batches, constant = self.posterior, self.batches, best_constant(self.batches, self.loss)
        initial = initial_caveats(posterior, batches, self.loss, constant, seed=self.seed)
        reasons = list(dict.fromkeys([*self.caveats, *caveats, *data_caveats(batches), *_copies(batches), *initial]))
        return Certificate(
            statements=tuple(state(best_label(reasons), None if constant is None else constant.error)),
            delta=self.delta,
            n=n,
            loss=self.loss.name,
            seed=self.seed,
            prior_source=posterior.prior_source or "",
            caveats=tuple(reasons),
            notes=(*self.remarks, *dropout_note(posterior.model)),
            budget={event: self.delta},
            hashes=hashes_of(posterior, batches, None),
            versions=versions(),
        )


def _copies(batches: Batches) -> list[Caveat]:
    """A caveat if a part may hold copies of rows that the network was trained on before."""
    copies = copied_rows(batches.table) if batches.table is not None else []
    if not copies:
        return []
    return [Caveat(f"{len(copies):,} rows are copies of others, so blocks are not new to the network; remove them")]

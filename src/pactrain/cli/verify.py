"""`pactrain verify`: compute a certificate's numbers again.  No torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pactrain.cli.output import console, write_result


@dataclass
class Verify:
    """Compute every number of a certificate again from what is stored with it, and compare to the last digit."""

    certificate: tyro.conf.Positional[Path]
    """A certificate.json."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the outcome as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out; the exit code is 1 if a number does not follow."""
        from pactrain.certificate import Certificate

        screen = console(self.json_to)
        certificate = Certificate.read(self.certificate)
        rows = [(s, s.recompute()) for s in certificate.statements]
        for s, again in rows:
            verdict = "agrees" if again == s.value else f"DIFFERS: computed again it is {again!r}"
            screen.print(f"{s.quantity} {s.value!r} [{s.label}] {verdict}", markup=False)
        good = certificate.recheck()
        if not good and all(again == s.value for s, again in rows):
            screen.print("The record was changed after it was made (its digest does not fit).", markup=False)
        screen.print("Verified." if good else "This certificate is not valid.", markup=False)
        write_result(self.json_to, {"valid": good, "values": [{"stored": s.value, "computed": v} for s, v in rows]})
        return 0 if good else 1

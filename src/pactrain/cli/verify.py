"""`pactrain verify`: compute a certificate's numbers again.  No torch, unless the risk is to be measured again too."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pactrain.cli.output import console, write_result


@dataclass
class Verify:
    """Compute every number of a certificate again from what is stored with it, and compare to the last digit."""

    certificate: tyro.conf.Positional[Path]
    """A certificate.json, or the run folder that holds it."""
    run_folder: Annotated[Path | None, tyro.conf.arg(name="run")] = None
    """A run folder: measure the risk again from its stored weights and data, too."""
    data_root: Path | None = None
    """Folder with data files."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the outcome as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out; the exit code is 1 if a number does not follow."""
        from pactrain.certificate import Certificate

        screen = console(self.json_to)
        folder = self.certificate.is_dir()
        certificate = Certificate.read(self.certificate / "certificate.json" if folder else self.certificate)
        rows = [(s, s.recompute()) for s in certificate.statements]
        for s, again in rows:
            verdict = "agrees" if again == s.value else f"DIFFERS: computed again it is {again!r}"
            screen.print(f"{s.quantity}, {s.bound}, {s.when}: {s.value!r} [{s.label}] {verdict}", markup=False)
        good = certificate.recheck()
        if not good and all(again == s.value for s, again in rows):
            screen.print("The record was changed after it was made (its digest or budget does not fit).", markup=False)
        differences: list[str] = []
        if self.run_folder is not None:
            from pactrain.cli.workshop import remeasure

            differences = remeasure(self.run_folder, certificate, root=self.data_root)
        for line in differences:
            screen.print(line, markup=False)
        good = good and not differences
        screen.print("Verified." if good else "This certificate is not valid.", markup=False)
        values = [{"stored": s.value, "computed": v} for s, v in rows]
        write_result(self.json_to, {"valid": good, "values": values, "differences": differences})
        return 0 if good else 1

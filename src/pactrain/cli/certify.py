"""`pactrain certify`: say again, with more draws or another confidence, what can be said about a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pactrain.cli.output import console, table, write_result
from pactrain.runtime.progress import Bar


@dataclass
class Certify:
    """State all that can be said about the predictor of a run, from its training data."""

    run_folder: tyro.conf.Positional[Path]
    """A folder made by `pactrain train`."""
    delta: float = 0.05
    """Probability with which the statements may fail, all together."""
    draws: int = 2000
    """Independent draws with which the risk is measured; more give smaller numbers."""
    test: bool = False
    """Add the bound of the held-out test rows for the mean network."""
    seed: int = 0
    """Decides the draws."""
    explain: bool = False
    """Only say which certificate to ask for with these data and this network, and why."""
    model: str | None = None
    """FILE.py:FUNCTION of the run's network: it is imported only if you repeat it here, as the run may be somebody else's."""
    data: Path | None = None
    """The file with the run's training data: it is read only if you repeat it here, or say --trust."""
    trust: bool = False
    """Follow whatever the run folder names: code, data files, text encoders.  For runs of your own."""
    data_root: Path | None = None
    """Folder with data files."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the certificate as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        if self.explain:
            from pactrain.cli.explain import explanation

            lines = explanation(self.run_folder)
            screen.print("\n".join(lines), markup=False, highlight=False)
            write_result(self.json_to, {"explanation": lines})
            return 0
        from pactrain.cli.remake import recertify
        from pactrain.cli.trust import Outside

        with Bar(screen) as bar:
            certificate = recertify(
                self.run_folder,
                delta=self.delta,
                draws=self.draws,
                seed=self.seed,
                with_test=self.test,
                root=self.data_root,
                outside=Outside(self.model, self.data, self.trust),
                progress=bar,
            )
        rows = [
            [s.quantity, s.predictor, s.bound, s.prior, f"{s.value:.4f}", s.label + (", vacuous" if s.vacuous else "")]
            for s in certificate.statements
        ]
        screen.print(table("All statements", ["quantity", "predictor", "bound", "prior", "value", "label"], rows))
        screen.print(str(certificate), markup=False)
        write_result(self.json_to, certificate.to_dict())
        return 0

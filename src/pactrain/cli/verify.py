"""`pactrain verify`: check that a certificate is consistent, and that its run gives the same one again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from tyro.conf import arg

from pactrain.cli.groups import JsonOptions, RunDataOptions, RunOptions
from pactrain.cli.option_types import FilePlace
from pactrain.cli.output import console, write_result
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain.certification.certificate import Certificate
    from pactrain.certification.statement import Statement


@dataclass(kw_only=True)
class CheckedOptions:
    """What is checked."""

    heading: ClassVar = "certificate"
    certificate: FilePlace
    """A run folder, or a certificate.json."""
    run_folder: Annotated[Path | None, arg(name="run", metavar="RUN", help_behavior_hint="")] = None
    """The run folder that a certificate.json from elsewhere claims to be about."""


@dataclass
class Verify(CheckedOptions, RunDataOptions, RunOptions, JsonOptions):
    """Check a certificate.  A file: its arithmetic alone, without torch.  A run folder: everything is made again from the
    stored weights and the data, and every number, label, note and δ (the chance to be wrong) is compared."""

    def run(self) -> int:
        """Carry it out; the exit code is 1 if anything does not agree."""
        from pactrain.certification.certificate import Certificate

        screen = console(self.json_to)
        folder = self.certificate if self.certificate.is_dir() else self.run_folder
        file = self.certificate / "certificate.json" if self.certificate.is_dir() else self.certificate
        certificate = Certificate.read(file)
        rows = [(s, _computed(s)) for s in certificate.statements]
        for s, again in rows:
            verdict = "agrees" if again == s.value else f"DIFFERS: computed again it is {again!r}"
            verdict = "cannot be computed again" if again is None else verdict
            screen.print(f"{s.quantity}, {s.bound}, {s.when}: {s.value!r} [{s.label}] {verdict}", markup=False)
        problems = certificate.problems()
        differences = self._made_again(folder, certificate, screen) if folder is not None else []
        for line in [*problems, *differences]:
            screen.print(line, markup=False)
        good = not problems and not differences
        screen.print(_verdict(good, folder), markup=False)
        values = [{"stored": s.value, "computed": v} for s, v in rows]
        outcome = {"valid": good, "checked": "arithmetic" if folder is None else "everything", "values": values}
        write_result(self.json_to, outcome | {"problems": problems, "differences": differences})
        return 0 if good else 1

    def _made_again(self, folder: Path, certificate: "Certificate", screen: "Console") -> list[str]:
        """Differences from the certificate that the run gives now."""
        from pactrain.cli.remake import make_again, on_trust
        from pactrain.cli.trust import Outside

        outside = Outside(self.model, self.data, self.trust)
        with Bar(screen) as bar:
            remade = make_again(folder, root=self.data_root, outside=outside, progress=bar)
        for line in on_trust(folder):
            screen.print(f"Taken on trust: {line}.", markup=False)
        return remade.disagreements(certificate)


def _computed(s: "Statement") -> float | None:
    """The value that follows from a statement's inputs; None if they do not fit its formula, which `problems` explains."""
    try:
        return s.recompute()
    except PactrainError:
        return None


def _verdict(good: bool, folder: Path | None) -> str:
    if not good:
        return "This certificate is not valid."
    if folder is not None:
        return "Verified: made again from the run folder and its data, every number, label, note and δ agrees."
    return (
        "The arithmetic is consistent. Nothing else was checked: anybody can write a consistent record. "
        "pactrain verify RUN makes it again from the run folder and its data."
    )

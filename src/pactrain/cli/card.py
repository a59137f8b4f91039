"""`pactrain card`: the model card of a run."""

from dataclasses import dataclass

from pactrain.cli.option_types import File, JsonFile, RunPlace
from pactrain.cli.output import console, write_result


@dataclass
class Card:
    """Write a model card, README.md, with the metadata of the Hugging Face Hub: scores, the certificate, and how to check it."""

    run_folder: RunPlace
    """A folder made by `pactrain train`."""
    out: File = None
    """The file; by default README.md in the run folder."""
    json_to: JsonFile = None
    """Write where the card is as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.runs.card import CARD, card_of
        from pactrain.runtime.files import write_atomic

        file = self.out or self.run_folder / CARD
        write_atomic(file, card_of(self.run_folder))
        screen.print(f"Model card: {file}", markup=False)
        write_result(self.json_to, {"card": str(file)})
        return 0

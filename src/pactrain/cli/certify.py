"""`pactrain certify`: say again, with more draws or another confidence, what can be said about a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from pactrain.cli.output import Bars, console, write_result


@dataclass
class Certify:
    """State what can be proved about the randomised predictor of a run, from its training data."""

    run_folder: tyro.conf.Positional[Path]
    """A folder made by `pactrain train`."""
    delta: float = 0.05
    """Probability with which the statements may fail, all together."""
    draws: int = 200
    """Draws of the weights with which the risk is measured."""
    seed: int = 0
    """Decides the draws."""
    data_root: Path | None = None
    """Folder with data files."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the certificate as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.certify import certify
        from pactrain.cli.workshop import named_loss, read_config, rebuild, reload_task

        config = read_config(self.run_folder)
        task = reload_task(config, self.data_root)
        with Bars(screen) as bars:
            certificate = certify(
                rebuild(self.run_folder, config),
                (task.x_train, task.y_train),
                loss=named_loss(config["loss"], task),
                delta=self.delta,
                draws=self.draws,
                seed=self.seed,
                caveats=task.caveats,
                progress=bars,
            )
        screen.print(str(certificate), markup=False)
        write_result(self.json_to, certificate.to_dict())
        return 0

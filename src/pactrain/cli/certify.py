"""`pactrain certify`: a new certificate of a run, with more draws or another confidence."""

from dataclasses import dataclass
from typing import ClassVar

from pactrain.cli.groups import JsonOptions, RunDataOptions, RunOptions
from pactrain.cli.option_types import RunPlace
from pactrain.cli.output import console, say, table, write_result
from pactrain.cli.run_folders import read_config
from pactrain.runtime.progress import Bar
from pactrain.runtime.untrusted import made_from, read_json


@dataclass(kw_only=True)
class StatementOptions:
    """What is stated, and how surely."""

    heading: ClassVar = "certificate"
    run_folder: RunPlace
    """A folder made by `pactrain train`."""
    delta: float = 0.05
    """Probability with which the statements may fail, all together: 0.05 means 95 % confidence."""
    draws: int = 2000
    """Random networks, drawn around the trained one, with which the risk (the mean loss on new data) is measured; more give smaller numbers."""
    test: bool = False
    """Add what the held-out test rows prove about the delivered network (the mean of the random ones)."""
    seed: int = 0
    """Decides the draws."""
    explain: bool = False
    """Only say which certificate to ask for with these data and this network, and why."""


@dataclass
class Certify(StatementOptions, RunDataOptions, RunOptions, JsonOptions):
    """State all that can be proved about the network of a run from its training data."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        read_config(self.run_folder)
        if self.explain:
            from pactrain.cli.explain import explanation

            lines = explanation(self.run_folder)
            for line in lines:
                say(screen, line)
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
        rows = [[s.quantity, s.predictor, s.bound, s.prior, f"{s.value:.4f}", s.mark] for s in certificate.statements]
        screen.print(table("All statements", ["quantity", "predictor", "bound", "prior", "value", "label"], rows))
        screen.print(str(certificate), markup=False)
        metrics = self.run_folder / "metrics.json"
        if not self.test and metrics.exists() and made_from(metrics, lambda m: m.get("test"), read_json(metrics)):
            say(screen, "All of this is from the training rows; --test adds what the held-out rows prove.")
        write_result(self.json_to, certificate.to_dict())
        return 0

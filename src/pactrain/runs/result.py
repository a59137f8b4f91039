"""`Result`, which `fit` returns: the trained network, its posterior, its certificate and its history."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import nn

from pactrain.bounds.moment import Moment
from pactrain.certification.certificate import Certificate
from pactrain.distributions.posterior import Posterior, Snapshot
from pactrain.runs.conformal import Calibration
from pactrain.runs.hub import push
from pactrain.runs.prediction import DRAWS, Prediction, Predictor, Preprocess
from pactrain.runs.sentences import about, details, promise, score, summary
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.files import write_atomic, writing
from pactrain.runtime.notebook import Page, lines_html
from pactrain.training.history import Record


@dataclass(frozen=True, repr=False)
class Result:
    """The trained network, its posterior, what was proved, and how it went.

    Attributes:
        model: The network that was given, trained: the deterministic predictor.
        posterior: The Gaussian over its weights, which draws and predicts with spread.
        certificate: What was proved about the network, in statements that each name the predictor they cover.
        history: One record per epoch: scores, the bound and its terms, prior and posterior stds.
        metrics: Scores of the network on training and test data, the choices of the rules, and what the run took; the content
            of metrics.json.
        moment: The scan of the prior: ψ as a table over γ and the prior's std.
        config: Everything that determined the run; the content of config.json.
        notes: Sentences that the user should know beside the numbers, such as rules that could not be followed.
        interrupted: True if the user stopped the training.
        path: The run folder; None if there is none.
        earlier: Posteriors of earlier moments of training that the certificate speaks of, by their name.
        calibration: Scores of held-out rows, from which `predict` makes intervals and sets; None if there were no such rows.
        preprocess: How `predict` prepares raw rows; None if the network takes rows as they are.
        analysis: What the report shows of the rows and columns; the content of analysis.json.
        draw: Makes the page about a result.

    Example:
        >>> import pactrain, torch
        >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
        >>> result = pactrain.fit(torch.nn.Linear(3, 2), (X, (X[:, 0] > 0).long()), budget="3 epochs")
        >>> len(result.history), result.interrupted, result.path
        (3, False, None)
    """

    model: nn.Module
    posterior: Posterior
    certificate: Certificate
    history: list[Record]
    metrics: dict[str, Any]
    moment: Moment
    config: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    path: Path | None = None
    earlier: dict[str, Snapshot] = field(default_factory=dict)
    analysis: dict[str, Any] = field(default_factory=dict)
    draw: "Callable[[Result], str] | None" = None
    calibration: Calibration | None = None
    preprocess: Preprocess | None = None

    def __repr__(self) -> str:
        """The data, the score, what was proved, how it errs and where it is, in five lines."""
        more = details(self.config, self.metrics)[:1]
        where = f"{self.path}/report.html" if self.path else "result.report() makes a page about it"
        return "\n  ".join(
            [about(self.config, self.metrics), score(self.metrics), *promise(self.certificate)[:1], *more, where]
        )

    def _repr_html_(self) -> str:
        title, *lines = summary(self.config, self.metrics, self.certificate)
        return lines_html(title, [*lines, *self.notes])

    def report(self, out: str | Path | None = None) -> Page:
        """Write the page about this result; a notebook shows it in place, and `result.report().open()` opens the browser.

        Args:
            out: The file; by default report.html in the run folder, or a temporary file where there is none.

        Returns:
            The page, with its `path` and `html`.

        Raises:
            PactrainError: The page cannot be made of this result, or not written there.
        """
        if self.draw is None:
            raise PactrainError("this result was not made by fit or load, which know how to draw a report")
        folder = self.path or Path(tempfile.mkdtemp(prefix="pactrain-"))
        page = Page(Path(out) if out is not None else folder / "report.html", self.draw(self))
        with writing("report", page.path):
            write_atomic(page.path, page.html)
        return page

    def predict(self, X: Any, *, coverage: float | None = None, draws: int = DRAWS) -> Prediction:
        """Predict for new rows.

        Args:
            X: Inputs as the network takes them, of any type of number: an array, a tensor, a frame, a tuple of several inputs
                or a mapping of named ones.  After `pactrain train` on a table: a frame with its raw columns.
            coverage: Probability with which the truth is to lie in the interval (regression) or set (classification) that is
                returned beside the answer; see `Calibration`.
            draws: Networks drawn from the posterior to measure the spread.

        Returns:
            Answers of the trained network, probabilities, spread, and intervals or sets.

        Raises:
            PactrainError: The rows cannot be read, or `coverage` is asked for without held-out rows.

        Example:
            >>> import pactrain, torch
            >>> X = torch.randn(90, 3, generator=torch.Generator().manual_seed(0))
            >>> y = (X[:, 0] > 0).long()
            >>> result = pactrain.fit(torch.nn.Linear(3, 2), (X[:60], y[:60]), test=(X[60:], y[60:]), budget="9 epochs")
            >>> prediction = result.predict(X[:5].numpy(), coverage=0.9)
            >>> prediction.values.shape, prediction.probabilities.shape, prediction.sets.shape
            ((5,), (5, 2), (5, 2))
        """
        predictor = Predictor(self.posterior, self.config["answers"], self.preprocess, self.calibration)
        return predictor(X, coverage=coverage, draws=draws)

    def drawn(self) -> nn.Module:
        """Draw the one network that the certificate covers.

        Returns:
            A copy of the model at one draw of its weights, with the certificate's seed.
        """
        return self.posterior.drawn(self.certificate.seed)

    def push_to_hub(self, repo: str | Path, *, private: bool = False) -> str:
        """Push the run with a model card, whose certificate everybody can check, to the Hugging Face Hub.

        Args:
            repo: "owner/name" on the Hub, or a `Path` to a local folder that gets the same files.
            private: A repository that is made for it is private.

        Returns:
            Where the files are.

        Raises:
            PactrainError: The result has no run folder, or the Hub refuses.

        Example:
            >>> import pactrain, tempfile, torch
            >>> X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     data = X, (X[:, 0] > 0).long()
            ...     result = pactrain.fit(torch.nn.Linear(3, 2), data, budget="3 epochs", out=f"{folder}/run")
            ...     where = result.push_to_hub(Path(folder) / "to-look-at")
            ...     sorted(file.name for file in Path(where).iterdir())[:3]
            ['README.md', 'certificate.json', 'config.json']
        """
        if self.path is None:
            raise PactrainError('this result has no run folder to push; train with out="runs/mine"')
        return push(self.path, repo, private=private)

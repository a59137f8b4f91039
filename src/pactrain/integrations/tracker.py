"""What all trackers of experiments have in common: callbacks that pass the scalars of every epoch on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from pactrain.runs.result import Result
from pactrain.runtime.events import Event
from pactrain.training.history import is_fresh

TERMS = ("risk", "kl_term", "complexity", "kl", "gamma")


class Tracker(ABC):
    """A callback for `fit` that keeps a run with a tracker of experiments.

        with MLflow("digits") as tracker:
            tracker.record(pactrain.fit(model, data, callbacks=[tracker]))

    The tracker's own run is opened by the first epoch and closed at the end of the block, as failed if an error ends it.
    """

    def __call__(self, event: Event) -> None:
        """Pass one epoch on."""
        if event.phase == "train":
            self.log(scalars(event.values), event.done)

    def record(self, result: Result) -> None:
        """Keep what a run ends with: its configuration, the scores of the trained network, and the certificate.

        Args:
            result: What `fit` returned.
        """
        scores = {f"final/{part}": result.metrics.get(part) or {} for part in ("train", "test")}
        self.log(flat(scores), len(result.history))
        self.keep(result)

    @abstractmethod
    def log(self, values: Mapping[str, float], epoch: int) -> None:
        """Pass on some numbers of an epoch."""

    @abstractmethod
    def keep(self, result: Result) -> None:
        """Pass on configuration and certificate."""

    @abstractmethod
    def close(self, *, failed: bool) -> None:
        """Close the tracker's run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        """Close the run."""
        self.close(failed=kind is not None)


def scalars(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an epoch, in groups."""
    measured = ("train", "test", "prior_std", "posterior_std") if is_fresh(dict(record)) else ()
    terms = {"total": record["bound"]} | {k: record[k] for k in TERMS}
    return flat({part: record[part] or {} for part in measured} | {"bound": terms}) | {
        "stage": record["stage"],
        "seconds": record["seconds"],
    }


def flat(values: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Nested mappings as one: {"test": {"loss": 1}} becomes {"test/loss": 1}; of lists and None nothing is kept.

    >>> flat({"test": {"loss": 1.0, "recall": [0.5]}, "n": 3})
    {'test/loss': 1.0, 'n': 3}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}{key}/")
        elif value is not None and not isinstance(value, list):
            found[f"{name}{key}"] = value
    return found

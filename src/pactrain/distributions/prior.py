"""The prior: N(initial weights, one std per group)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal

from pactrain.runtime.errors import PactrainError

Grouping = Literal["model", "layer", "tensor"] | Mapping[str, Sequence[str]] | Callable[[str], str]


@dataclass(frozen=True)
class Prior:
    """How the prior's standard deviations are shared, and where they start.

    The prior is N(initial weights, std²) with one std for all weights of a group.

    Attributes:
        per: The groups: "model", one std for all weights (the paper's scalar prior); "layer", one for each module that
            owns weights; "tensor", one for each weight tensor (what the paper's authors call a layer); or your own: a
            mapping {group: [parameter names]}, or a function from parameter name to group.
        std: The starting standard deviation; None leaves it to the rules of `fit`, and in a `Posterior` of your own means the mean
            absolute initial weight.
        learn: Whether stds are learned with the posterior, in which case the certificate charges for the choice.  False
            keeps `std`, which must then have been chosen without the examples that the bound counts, and is free.
        source: Where the initial weights come from, in your words ("ImageNet, torchvision 0.20"), if they were trained on
            other data: an initial network that is better than chance on the counted examples is otherwise taken to have
            seen them, and nothing is certified.  Kept in the certificate.

    Raises:
        PactrainError: If `per` is an unknown name, `std` is not a positive finite number, or a std that is not learned
            is missing.

    Example:
        >>> Prior(per="model").group_names(["fc.weight", "fc.bias"])
        ['model', 'model']
        >>> Prior(per="layer").group_names(["fc.weight", "fc.bias", "scale"])
        ['fc', 'fc', 'scale']
    """

    per: Grouping = "layer"
    std: float | None = None
    learn: bool = True
    source: str | None = None

    def __post_init__(self) -> None:
        known = self.per in ("model", "layer", "tensor") if isinstance(self.per, str) else callable(self.per)
        if not known and not isinstance(self.per, Mapping):
            raise PactrainError(
                f"prior per={self.per!r} is not known; use 'model', 'layer', 'tensor', "
                "a mapping {group: [parameter names]} or a function from parameter name to group"
            )
        if self.std is not None and (not isinstance(self.std, Real) or not 0 < self.std < float("inf")):
            raise PactrainError(f"prior std={self.std!r} must be a positive finite number (a standard deviation)")
        if not self.learn and self.std is None:
            raise PactrainError("a prior that is not learned needs its std: Prior(std=0.05, learn=False)")

    @classmethod
    def of(cls, prior: "str | Prior") -> "Prior":
        """Read what a user passes as prior.

        Args:
            prior: What shares one std, by name, or a prior.

        Returns:
            The prior; a prior as it is.

        Raises:
            PactrainError: The name is not known.

        Example:
            >>> Prior.of("tensor").per
            'tensor'
        """
        return prior if isinstance(prior, cls) else cls(per=prior)  # type: ignore[arg-type]

    def fixed(self, std: float, source: str) -> "Prior":
        """A prior with the same groups and a std that is not learned.

        Args:
            std: The standard deviation of all groups.
            source: Where the weights at its centre come from.

        Returns:
            A copy that keeps this std.
        """
        return replace(self, std=std, learn=False, source=source)

    def group_names(self, parameters: Sequence[str]) -> list[str]:
        """The group of each parameter.

        Args:
            parameters: Names of the trainable parameters.

        Returns:
            Names of groups, in the order of the parameters.

        Raises:
            PactrainError: If a mapping does not name every parameter exactly once.
        """
        if self.per == "model":
            return ["model"] * len(parameters)
        if self.per == "tensor":
            return list(parameters)
        if self.per == "layer":
            return [name.rpartition(".")[0] or name for name in parameters]
        if callable(self.per):
            return [str(self.per(name)) for name in parameters]
        return _from_mapping(self.per, parameters)


def fresh_source(seed: int) -> str:
    """What is said of weights that pactrain itself has drawn."""
    return f"drawn at random by pactrain, seed {seed}"


def trained_source(rows: int, before: str | None) -> str:
    """What is said of weights that were trained on rows of the data that are not counted."""
    return f"trained on {rows:,} other rows of the data" + (f"; before that: {before}" if before else "")


def _from_mapping(groups: Mapping[str, Sequence[str]], parameters: Sequence[str]) -> list[str]:
    owner: dict[str, str] = {}
    for group, names in groups.items():
        for name in [names] if isinstance(names, str) else names:
            if name in owner:
                raise PactrainError(f"parameter {name!r} stands in two prior groups, {owner[name]!r} and {group!r}")
            owner[name] = group
    unknown = sorted(set(owner) - set(parameters))
    missing = [name for name in parameters if name not in owner]
    if unknown or missing:
        raise PactrainError(
            "prior groups must name every trainable parameter exactly once; "
            + (f"not in the model (or frozen): {unknown}; " if unknown else "")
            + (f"without a group: {missing}" if missing else "")
        )
    return [owner[name] for name in parameters]

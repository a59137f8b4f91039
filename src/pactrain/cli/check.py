"""Options of a training that are checked before torch is loaded, so that a typing error is answered at once."""

from pathlib import Path

from pactrain.bounds.by_name import NAMES as BOUNDS
from pactrain.data.catalogue import ENTRIES
from pactrain.runtime.arguments import check_seed, check_share
from pactrain.runtime.errors import DataError, PactrainError, did_you_mean
from pactrain.runtime.network_names import check_model
from pactrain.training.budget import parse_budget


def check_options(
    *,
    data: str,
    model: str | None,
    seed: int,
    budget: str | None,
    delta: float,
    prior_data: float,
    test_fraction: float | None,
    bound: str,
) -> None:
    """Refuse what cannot be meant.

    Args:
        data, model, seed, budget, delta, prior_data, test_fraction, bound: As in the command.

    Raises:
        PactrainError: An option names nothing, or is out of its range.
    """
    check_model(model)
    check_data(data)
    check_seed(seed)
    parse_budget(budget)
    check_share("delta", delta, "0.05 means 95 % confidence")
    if prior_data:
        check_share("prior_data", prior_data, "it is the part of the data that the prior is trained on")
    if test_fraction:
        check_share("test_fraction", test_fraction, "it is the part of the data that is held out")
    if bound not in BOUNDS:
        raise PactrainError(
            f"bound {bound!r} is not known{did_you_mean(bound, BOUNDS)}; use one of {', '.join(BOUNDS)}"
        )


def check_data(name: str) -> None:
    """Refuse a name that is neither a data set nor a file.

    Args:
        name: The value of --data.

    Raises:
        DataError: With what there is instead.
    """
    path = Path(name)
    if name in ENTRIES or name.startswith(("graph:", "uci:")) or path.exists():
        return
    if path.suffix:
        there = [file.name for file in path.parent.glob("*") if file.is_file()] if path.parent.is_dir() else []
        raise DataError(f"there is no file {name}{did_you_mean(path.name, there)}")
    known = [entry for entry in ENTRIES if not entry.startswith("graph:")]
    raise DataError(
        f"there is no data set {name!r}{did_you_mean(name, known)}; use one of {', '.join(known)}, graph:NAME, or a .csv, .parquet "
        "or .npz file"
    )

"""Reading a completed run from its folder as a `Result`."""

from collections.abc import Callable
from pathlib import Path

from torch import nn

from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.runs.conformal import Calibration
from pactrain.runs.folder import read_completed, read_history, read_moment
from pactrain.runs.prediction import Preprocess
from pactrain.runs.result import Result
from pactrain.runs.weight_files import POSTERIOR, load_earlier, load_posterior, weights_of
from pactrain.runtime.errors import RunError
from pactrain.runtime.trained_models import TRAINED
from pactrain.runtime.untrusted import made_from, read_json


def reload(
    folder: Path,
    model: nn.Module,
    preprocess: Preprocess | None,
    *,
    draw: Callable[[Result], str] | None = None,
) -> Result:
    """The result of a completed run.

    Args:
        folder: The run folder.
        model: A network of the same structure; its weights become those of the run.
        preprocess: How raw rows are prepared.
        draw: Makes the page about a result.

    Raises:
        RunError: The run is not complete, or belongs to another network.
    """
    config, metrics, certificate = read_completed(folder)
    _, values = weights_of(folder, POSTERIOR)
    prior = made_from(folder / POSTERIOR, lambda v: Prior(per=dict(v["groups"])), values)
    plain = getattr(model, "_orig_mod", model)  # a compiled network has the weights of this one, which a run names
    posterior, moment = load_posterior(folder, Posterior(plain, prior)), read_moment(folder)
    if moment is None:
        raise RunError(f"{folder} holds no moment.json: the run is not as pactrain writes it")
    notes, interrupted = made_from(
        folder / "metrics.json", lambda m: (list(m["notes"]), bool(m["interrupted"])), metrics
    )
    TRAINED.add(model)
    return Result(
        model,
        posterior,
        certificate,
        read_history(folder / "history.jsonl"),
        {key: value for key, value in metrics.items() if key not in ("notes", "interrupted", "weights")},
        moment,
        config,
        notes,
        interrupted,
        path=folder,
        earlier=load_earlier(folder),
        analysis=read_json(folder / "analysis.json") if (folder / "analysis.json").exists() else {},
        draw=draw,
        calibration=Calibration.load(folder),
        preprocess=preprocess,
    )

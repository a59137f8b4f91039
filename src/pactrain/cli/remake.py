"""Making a run's certificate again from its folder and its data, and comparing the two."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.bounds.recursive import Level
from pactrain.certification.after_training import certificate_of
from pactrain.certification.certificate import Certificate
from pactrain.cli.build import rebuild, reload_task
from pactrain.cli.run_folders import read_config
from pactrain.cli.trust import NOTHING, Outside
from pactrain.data.encoder import Encoder
from pactrain.data.task import Task
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.models.named import make_model
from pactrain.problem.named_losses import named_loss
from pactrain.problem.read import Problem, Reading, read_problem
from pactrain.problem.units import Units
from pactrain.rules.choose_units import find_units
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.presets import AUTO
from pactrain.runs.weight_files import load_earlier
from pactrain.runtime.errors import DataError, RunError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.untrusted import Types, check_types, made_from, read_json
from pactrain.runtime.versions import machine, versions

METRICS: Types = {"certificate": dict, "strengthened": (bool, int, float)}
FACTS: Types = {
    "draws": int,
    "caveats": list,
    "remarks": list,
    "test_doubts": list,
    "objective": dict,
    "blocks": (list, type(None)),
}
"""What has to be in metrics.json, and in what training noted there for the certificate."""

MOST_DRAWS = 10_000_000
"""Draws of a certificate that is made again: a file must not keep us busy forever."""

ELSEWHERE = 1e-4
"""Difference that the arithmetic of another machine, or of other versions, may make to a number."""


@dataclass(frozen=True)
class Rebuilt:
    """A completed run, with its network, its data and the facts that its certificate states."""

    config: dict[str, Any]
    metrics: dict[str, Any]
    posterior: Posterior
    problem: Problem
    task: Task
    blocks: list[tuple[int, int]]  # number of examples and errors of each block, as the run has noted them

    @property
    def trained_on(self) -> Problem:
        """The problem with all examples that the run was trained on."""
        return self.problem.grown(len(self.blocks))


def rebuilt(run: Path, *, root: Path | None, outside: Outside) -> Rebuilt:
    """Load a run and the rows that its bound counts: all, or those that its prior was not trained on."""
    config, metrics = read_config(run), _metrics(run)
    posterior, task = rebuild(run, config, outside), reload_task(run, config, root, outside)
    config |= {"model": outside.network(config, run)}
    loss = named_loss(config["loss"], task.encoder.kind, unit=task.encoder.target_std)
    reading = Reading(
        loss=loss,
        batch_size=AUTO.batch,
        device=torch.device("cpu"),
        prior_data=config["prior_data"],
        certificate=config["certificate"],
        seed=config["seed"],
    )
    problem = read_problem(posterior.model, task.train, task.test, reading)
    blocks = made_from(run / "metrics.json", _blocks, metrics["certificate"]["blocks"])
    _check_levels(run / "metrics.json", metrics["certificate"].get("levels"), problem)
    return Rebuilt(config, metrics, posterior, problem, task, blocks)


def _check_levels(file: Path, noted: list[str] | None, problem: Problem) -> None:
    """Refuse levels of a recursive certificate that do not count as many examples as those that the data gives."""
    levels = made_from(file, lambda texts: [Level.read(text).n for text in texts], noted or [])
    parts = [len(block) for block in problem.blocks]
    unseen = [len(problem.batches.table or ()) + sum(parts), *(sum(parts[i:]) for i in range(len(parts)))]
    if levels != unseen[: len(levels)]:
        raise RunError(f"the levels that {file} has noted count other examples than those that the run's data gives")


def _blocks(noted: list[list[int]] | None) -> list[tuple[int, int]]:
    return [(int(n), int(errors)) for n, errors in noted or ()]


def _metrics(run: Path) -> dict[str, Any]:
    """The metrics of a completed run, with the types that a certificate needs."""
    file = run / "metrics.json"
    metrics = made_from(file, dict[str, Any], read_json(file))
    if "certificate" not in metrics:
        raise RunError(f"{run} was written by an older version, which did not keep what its certificate rests on")
    check_types(metrics, METRICS, file)
    check_types(metrics["certificate"], FACTS, file)
    if not 0 < metrics["certificate"]["draws"] <= MOST_DRAWS:
        raise RunError(
            f"{file} asks for {metrics['certificate']['draws']:,} draws; training takes at most {MOST_DRAWS:,}"
        )
    return metrics


def recertify(
    run: Path,
    *,
    delta: float,
    draws: int,
    seed: int,
    with_test: bool,
    root: Path | None,
    outside: Outside,
    progress: Callback,
) -> Certificate:
    """Another certificate of a completed run: with other draws, or another confidence."""
    found = rebuilt(run, root=root, outside=outside)
    if with_test and found.task.test is None:
        raise DataError("the run held no test rows out, so there is no test set to judge the mean network by")
    if with_test and found.config["certificate"] != "standard":
        raise DataError(
            "a progressive or recursive certificate takes the whole of δ, so the test set can state nothing beside it"
        )
    facts = found.metrics["certificate"] | {"draws": draws, "objective": {}, "test": with_test}
    return _certified(run, found, facts, delta=delta, seed=seed, earlier={}, progress=progress)


def _certified(run: Path, found: Rebuilt, facts: dict[str, Any], **options: Any) -> Certificate:
    """The certificate of a run's posterior; facts that cannot be meant end in an error that names the file they are from."""

    def make(noted: dict[str, Any]) -> Certificate:
        return certificate_of(found.posterior, found.trained_on, noted, caveats=found.task.caveats, **options)

    return made_from(run / "metrics.json", make, facts)


@dataclass(frozen=True)
class Remade:
    """A certificate made again, how much its measured numbers may differ on this machine, and what is wrong with the run itself."""

    certificate: Certificate
    tolerance: float
    wrong: list[str]

    def disagreements(self, stored: Certificate) -> list[str]:
        """What differs between a stored certificate and this one."""
        return [*stored.differences(self.certificate, tolerance=self.tolerance), *self.wrong]


def make_again(run: Path, *, root: Path | None, outside: Outside = NOTHING, progress: Callback = silent) -> Remade:
    """The certificate that a run gives when everything is made again."""
    found = rebuilt(run, root=root, outside=outside)
    config, before = found.config, torch.get_num_threads()
    torch.set_num_threads(
        max(1, min(config["threads"], os.cpu_count() or 1))
    )  # sums are rounded by how they are shared out
    delta, seed, earlier = config["delta"], config["seed"], load_earlier(run)
    facts = found.metrics["certificate"]
    again = _certified(run, found, facts, delta=delta, seed=seed, earlier=earlier, progress=progress)
    model = _untrained(found)
    here = (versions(), machine(), torch.get_num_threads())
    torch.set_num_threads(before)
    same = here == (config["versions"], config.get("machine"), config["threads"])
    again = replace(again, versions=config["versions"], digest="")
    wrong = [*_other_price(found), *_other_units(found), *_other_prior(found, model, exactly=same)]
    wrong += _other_blocks(found)
    return Remade(again, 0.0 if same else ELSEWHERE, wrong)


def _other_price(found: Rebuilt) -> list[str]:
    """Says if the run folder calls a choice free that the data made."""
    if found.config["prior_data"] or found.blocks:
        return []  # chosen by rows that are not counted, or nothing is charged
    if found.posterior.prior_fixed:
        return ["the run calls its prior's stds fixed in advance, but they were learned"]
    return []


def _other_blocks(found: Rebuilt) -> list[str]:
    """Says if the run's blocks do not hold as many examples as those that its data gives."""
    sizes = [n for n, _ in found.blocks]
    if sizes == [len(block) for block in found.problem.blocks[: len(sizes)]]:
        return []
    return ["the blocks that the run was judged by are not those that its data gives"]


def _other_units(found: Rebuilt) -> list[str]:
    """Says if the units of the run's weights, or their price, are not those that its data gives."""
    config, posterior = found.config, found.posterior
    if config["prior_data"]:
        return []  # chosen by rows that are not counted
    model = _fresh(found)
    units = find_units(model, found.problem, config["seed"]) if config["rules"]["units"] else Units()
    fresh = Posterior(model, Prior(per=config["prior"]))
    fresh.change_units(units.scales(model))
    same = (fresh.units is None) == (posterior.units is None) and (
        fresh.units is None or posterior.units is None or torch.equal(fresh.units, posterior.units)
    )
    if same and posterior.unit_nats == units.nats:
        return []
    return ["the units of the run's weights, or the price of having chosen them, are not those that its data gives"]


def _other_prior(found: Rebuilt, model: nn.Module, *, exactly: bool) -> list[str]:
    """Says if the prior's mean is not what the run's own seed gives; `model` is the run's network before training."""
    config, loaded = found.config, found.posterior
    if config["prior_data"]:
        return []  # the mean was trained
    fresh = Posterior(model, Prior(per=config["prior"]))
    mean = loaded.prior_mean if loaded.units is None else loaded.prior_mean / loaded.units
    if torch.equal(fresh.prior_mean, mean) or (not exactly and torch.allclose(fresh.prior_mean, mean, rtol=1e-5)):
        return []
    return [f"the prior's mean is not what seed {config['seed']} gives: the initial weights of the run were others"]


def _untrained(found: Rebuilt) -> nn.Module:
    """The run's network as training found it."""
    model = _fresh(found)
    if found.metrics["strengthened"]:
        strengthen(model, found.problem.sample, found.problem.loss, found.config["seed"])
    return model


def _fresh(found: Rebuilt) -> nn.Module:
    """The run's network as its seed makes it."""
    config, encoder = found.config, Encoder.from_dict(found.config["preprocess"])
    return make_model(config["model"], encoder.inputs, len(encoder.classes) or 1, config["seed"])


def on_trust(run: Path) -> list[str]:
    """What cannot be made again, and is believed."""
    noted = "what the training noted in metrics.json as it ran (an interruption, buffers that it changed)"
    config = read_config(run)
    if config["certificate"] == "progressive":
        return [noted, "the errors of each block, as the networks on the way are not kept"]
    if config["certificate"] == "recursive":
        return [noted, "the divergence and the errors of each level, as the networks on the way are not kept"]
    if not config["prior_data"]:
        return [noted]
    return [noted, "that the prior's network was trained on its own part of the rows alone"]

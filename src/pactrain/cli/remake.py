"""A run's certificate, made again from its folder and its data."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pactrain.certification.certificate import Certificate
from pactrain.certification.facts import certificate_of
from pactrain.cli.workshop import read_config, rebuild, reload_task
from pactrain.data.encoder import Encoder
from pactrain.data.task import Task
from pactrain.distributions.posterior import Posterior
from pactrain.distributions.prior import Prior
from pactrain.models.named import make_model
from pactrain.problem.losses import named_loss, names_classes
from pactrain.problem.read import Problem, read_problem
from pactrain.rules.choose_units import find_units
from pactrain.rules.initial_scale import strengthen
from pactrain.rules.presets import AUTO
from pactrain.rules.prior_mean import centre_at_zero, only_noise
from pactrain.rules.units import Units
from pactrain.runs.folder import load_earlier, read_json
from pactrain.runtime.errors import DataError, RunError
from pactrain.runtime.events import Callback, silent
from pactrain.runtime.versions import machine, versions
from pactrain.training.prior_from_data import split_rows

ELSEWHERE = 1e-4
"""Difference that the arithmetic of another machine, or of other versions, may make to a number."""


@dataclass(frozen=True)
class Rebuilt:
    """A completed run, with its network, its data and what its certificate was told."""

    config: dict[str, Any]
    metrics: dict[str, Any]
    posterior: Posterior
    problem: Problem
    task: Task


def rebuilt(run: Path, *, root: Path | None) -> Rebuilt:
    """Load a run and the rows that its bound counts: all, or those that its prior was not trained on."""
    config = read_config(run)
    task, posterior = reload_task(config, root), rebuild(run, config)
    loss = named_loss(config["loss"], task.encoder.kind, unit=task.encoder.target_std)
    device = torch.device("cpu")
    problem = read_problem(
        posterior.model,
        task.train,
        test=task.test,
        loss=loss,
        trained_on=lambda own: own,
        batch_size=AUTO.batch,
        device=device,
    )
    if config["prior_data"]:
        _, rest = split_rows(problem.batches, config["prior_data"], config["seed"])
        problem = replace(problem, batches=rest)
    metrics = read_json(run / "metrics.json")
    if "certificate" not in metrics:
        raise RunError(f"{run} was written by an older version, which did not keep what its certificate rests on")
    return Rebuilt(config, metrics, posterior, problem, task)


def recertify(
    run: Path, *, delta: float, draws: int, seed: int, with_test: bool, root: Path | None, progress: Callback
) -> Certificate:
    """Another certificate of a completed run: with other draws, or another confidence."""
    found = rebuilt(run, root=root)
    if with_test and found.task.test is None:
        raise DataError("the run held no test rows out, so there is no test set to judge the mean network by")
    facts = found.metrics["certificate"] | {"draws": draws, "objective": {}, "test": with_test}
    return certificate_of(
        found.posterior,
        found.problem,
        facts,
        delta=delta,
        seed=seed,
        caveats=found.task.caveats,
        earlier={},
        progress=progress,
    )


@dataclass(frozen=True)
class Remade:
    """A certificate made again, how much its measured numbers may differ on this machine, and what is wrong with the run itself."""

    certificate: Certificate
    tolerance: float
    wrong: list[str]

    def disagreements(self, stored: Certificate) -> list[str]:
        """What differs between a stored certificate and this one."""
        return [*stored.differences(self.certificate, tolerance=self.tolerance), *self.wrong]


def make_again(run: Path, *, root: Path | None, progress: Callback = silent) -> Remade:
    """The certificate that a run gives when everything is made again."""
    found = rebuilt(run, root=root)
    config, before = found.config, torch.get_num_threads()
    torch.set_num_threads(min(config["threads"], os.cpu_count() or 1))  # sums are rounded by how they are shared out
    again = certificate_of(
        found.posterior,
        found.problem,
        found.metrics["certificate"],
        delta=config["delta"],
        seed=config["seed"],
        caveats=found.task.caveats,
        earlier=load_earlier(run),
        progress=progress,
    )
    model = _untrained(found)
    here = (versions(), machine(), torch.get_num_threads())
    torch.set_num_threads(before)
    same = here == (config["versions"], config.get("machine"), config["threads"])
    again = replace(again, versions=config["versions"], digest="")
    wrong = [*_other_price(found, model), *_other_units(found), *_other_prior(found, model, exactly=same)]
    return Remade(again, 0.0 if same else ELSEWHERE, wrong)


def disagreements(run: Path, stored: Certificate, *, root: Path | None, progress: Callback = silent) -> list[str]:
    """What differs between a certificate and the one that its run gives when everything is made again."""
    return make_again(run, root=root, progress=progress).disagreements(stored)


def _other_price(found: Rebuilt, model: nn.Module) -> list[str]:
    """Says if the run folder calls a choice free that the data made; `model` is the run's network before training."""
    posterior, problem = found.posterior, found.problem
    if found.config["prior_data"]:
        return []  # chosen by rows that are not counted
    wrong = []
    if posterior.prior_fixed:
        wrong.append("the run calls its prior's stds fixed in advance, but they were learned")
    choosing = found.config["rules"]["centre"] == "noise at zero" and names_classes(problem.loss, problem.sample)
    if posterior.prior_choices < 2 and (found.metrics["prior_mean"] == "zero" or (choosing and only_noise(model))):
        wrong.append("the run does not charge for the choice of the prior's mean")
    return wrong


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
    if found.metrics["prior_mean"] == "zero":
        centre_at_zero(fresh)
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
    if not read_config(run)["prior_data"]:
        return [noted]
    return [noted, "that the prior's network was trained on its own part of the rows alone"]

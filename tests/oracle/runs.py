"""Real runs with certificates, brought into the oracle's own terms.  Of the oracle only this file looks into the library."""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

import pactrain
import pactrain.training.train as training
from pactrain.certification.before_training import Described
from pactrain.certification.certificate import FORMAT
from tests.oracle.cases import Case
from tests.oracle.formulas import Array
from tests.oracle.networks import Rows, network_of, stream
from tests.oracle.objective import Objective
from tests.oracle.statements import END, STAGE_1, Run, State


@dataclass(frozen=True)
class Done:
    """A case that was carried out."""

    case: Case
    result: Any
    record: dict[str, Any]
    run: Run
    initial: Array  # weights


def carry_out(case: Case) -> Done:
    """Train, and keep what the posterior was at the end of stage 1."""
    module: Any = training
    trainer, kept, made = module.Trainer, dict[str, State](), list[Any]()

    def watched(*args: Any, **kwargs: Any) -> Any:
        made.append(trainer(*args, **kwargs))
        return made[-1]

    def look(event: Any) -> None:
        if event.phase == "train" and event.values["stage"] == 1:
            kept[STAGE_1] = state_of(made[-1].posterior)

    network = network_of(case.model, case.per)
    initial = _flat([case.model.get_parameter(name) for name in network.names])
    with patch.object(module, "Trainer", watched):
        data = Described(case.data, caveats=case.caveats)
        result = pactrain.fit(case.model, data, test=case.test, callbacks=[look], **case.more)
    if not any(record["stage"] == 2 for record in result.history):
        kept.clear()
    record = result.certificate.to_dict()
    return Done(case, result, record, run_of(case, result, kept), initial)


def state_of(posterior: Any) -> State:
    """A copy of what a posterior is now."""
    return State(_flat(posterior.means()), _flat([posterior.log_std]), _flat([posterior.prior_log_std]))


def _flat(tensors: list[Tensor]) -> Array:
    return torch.cat([t.detach().double().reshape(-1) for t in tensors]).numpy().copy()


def run_of(case: Case, result: Any, earlier: Mapping[str, State]) -> Run:
    """The run in the oracle's terms."""
    posterior, seed = result.posterior, case.more.get("seed", 0)
    module = copy.deepcopy(result.model).double().eval()
    rows = counted(rows_of(case.data, "train_mask"), case.more.get("prior_data", 0.0), seed)
    units = np.ones(posterior.num_weights) if posterior.units is None else _flat([posterior.units])
    delta = case.more.get("delta", 0.05)
    network = network_of(module, case.per)
    returned = "prior_data" in case.more and not posterior.mean_shift().any()
    return Run(
        network=network,
        rows=rows,
        test=None if case.test is None else rows_of(case.test, "test_mask"),
        states={END: state_of(posterior), **earlier},
        prior_mean=_flat([posterior.prior_mean]),
        units=units,
        seed=seed,
        delta=delta,
        draws=draws_for(rows, network.noisy_alone, epochs=len(result.history), steps=result.metrics["steps"]),
        fixed=case.fixed,
        unit_nats=case.unit_nats,
        loss_unit=case.loss_unit,
        judged="prior_data" in case.more,
        objective=None if returned else objective_of(case, result, len(rows), delta, network.groups),
    )


def again(done: Done) -> tuple[dict[str, Any], Run]:
    """The certificate of a trained posterior made anew, and the run without what only `fit` knows."""
    run = replace(done.run, states={END: done.run.states[END]}, objective=None, draws=50)
    case = done.case
    new = pactrain.certify(done.result.posterior, case.data, test=case.test, draws=50, seed=run.seed, delta=run.delta)
    return new.to_dict(), run


def rows_of(data: Any, mask: str) -> Rows:
    """A table, or the nodes of a graph that a mask names, in float64."""
    if hasattr(data, "edge_index"):
        nodes = getattr(data, mask).nonzero()[:, 0]
        return Rows((data.x.double(), data.edge_index), data.y[nodes], nodes)
    x, y = (torch.as_tensor(part) for part in data)
    return Rows((x.float().double(),), y.float().double() if y.is_floating_point() else y.long())


def counted(rows: Rows, prior_data: float, seed: int) -> Rows:
    """The rows that the prior was not trained on; of copies the first (from format 3 on)."""
    if rows.nodes is not None:
        return rows
    if FORMAT > 2:
        whole = np.column_stack([rows.inputs[0].flatten(1).numpy(), rows.target.reshape(len(rows), -1).numpy()])
        rows = rows.part(torch.from_numpy(np.sort(np.unique(whole, axis=0, return_index=True)[1])))
    if not prior_data:
        return rows
    order = torch.randperm(len(rows), generator=stream(seed, "prior data"))
    return rows.part(order[round(prior_data * len(rows)) :])


def draws_for(rows: Rows, alone: bool, *, epochs: int, steps: int) -> int:
    """How many draws `fit` asks for: with noise for each example a pass for every fourth epoch, but 20,000 draws or 50 passes at least; otherwise 500 at most
    and in graphs no more than a tenth of the forward passes of training, three a step."""
    if alone and rows.nodes is None:
        return min(300_000, max(min(20_000, 50 * len(rows)), len(rows) * max(1, epochs // 4)))
    most = 500 if rows.nodes is None else min(500, int(0.1 * 3 * steps))
    return max(20, min(most, 20_000_000 // len(rows)))


def objective_of(case: Case, result: Any, n: int, delta: float, groups: int) -> Objective:
    """The mean loss of an epoch of stage 1 as the history has it, with the scan and the rules."""
    rules, moment = case.rules, result.moment
    risk = result.metrics["stage1"]["risk"]  # of the best place of a walk in γ, which need not be the last
    assert any(record["stage"] == 1 and record["risk"] == risk for record in result.history)
    return Objective(
        risk=risk,
        n=n,
        delta=delta,
        bounded=case.more.get("bound", "auto") == "kl",
        mode=rules.mode,
        average=rules.average,
        at=rules.at,
        nats=10 + 3 * groups if rules.nats == "10+3k" else math.log(1 / delta),
        gamma_min=rules.gamma_min,
        gamma_max=rules.gamma_max,
        gammas=moment.gammas,
        log_stds=moment.log_stds,
        log_moments=moment.log_moments,
    )

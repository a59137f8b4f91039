"""Time of one training step relative to plain Adam at torch's defaults, on the same network and batch.

    python benchmarks/step.py [--only resnet] [--rounds 15] [--json FILE]

sgd, adam, adam fused    plain training with torch's optimisers
fit                      the step that `pactrain.fit` takes
loop                     our low-level loop: `Posterior`, `bounds.Unbounded`, torch's Adam
autograd                 the straightforward way: reparametrised weights and the KL by autograd, torch's Adam
ivon, bayesian-torch     the peers, by their own documentation (extra `bench`)

Methods take turns within a round and ratios are taken within it; the table has their medians and quartiles.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from timing import interleaved, options, ratio, show, warn_if_busy
from torch import Tensor, nn
from torch.func import functional_call

from pactrain import Posterior, estimate_moment
from pactrain.bounds.moment import Moment
from pactrain.models.cnn import cnn
from pactrain.models.mlp import mlp
from pactrain.models.resnet import resnet
from pactrain.problem import read
from pactrain.problem.as_loss import as_loss
from pactrain.problem.read_data import as_batches
from pactrain.problem.untrained import Untrained
from pactrain.rules.presets import AUTO
from pactrain.training.budget import Budget
from pactrain.training.gamma_search import HeldGamma
from pactrain.training.plan import Plan
from pactrain.training.trainer import Trainer

Step = Callable[[], Any]
STD = 0.01


@dataclass(frozen=True)
class Problem:
    """A network, one batch, and the number of examples that the bound is told of."""

    name: str
    model: Callable[[], nn.Module]
    batch: tuple[Tensor, ...]
    loss: Callable[[Any, Any], Tensor]
    steps: int
    n: int = 50_000


def labelled(predict: Any, batch: Any) -> Tensor:
    """Cross-entropy of each example."""
    return F.cross_entropy(predict(batch[0]), batch[1], reduction="none")


def nodes(predict: Any, batch: Any) -> Tensor:
    """Cross-entropy of each labelled node."""
    x, edges, index, labels = batch
    return F.cross_entropy(predict(x, edges)[index], labels, reduction="none")


def problems() -> list[Problem]:
    """The networks that are measured."""

    def images(batch: int, *shape: int) -> tuple[Tensor, Tensor]:
        return torch.randn(batch, *shape), torch.randint(0, 10, (batch,))

    found = [
        Problem("mlp 3072-1024-1024-10", lambda: mlp(3072, 10, widths=(1024, 1024)), images(128, 3072), labelled, 8),
        Problem("resnet18", lambda: resnet(18), images(64, 3, 32, 32), labelled, 1),
        Problem("cnn9", lambda: cnn(9), images(128, 3, 32, 32), labelled, 2),
        Problem("digits mlp", lambda: mlp(64, 10), images(64, 64), labelled, 100, n=898),
    ]
    try:
        return [*found, cora_ml()]
    except Exception as error:  # the graph needs a data file and an extra
        print(f"gcn on cora_ml is left out: {error}")
        return found


def cora_ml() -> Problem:
    """A GCN on the graph of Cora-ML."""
    from pactrain.data.graphs import load_graph, split_nodes
    from pactrain.models.graph import GCN

    data = load_graph("cora_ml")
    train, validation, _ = split_nodes(data.y, 0)
    index = torch.cat([train, validation])
    batch = (data.x, data.edge_index, index, data.y[index])
    return Problem("gcn cora_ml", lambda: GCN(data.x.shape[1], int(data.y.max()) + 1), batch, nodes, 10, n=len(index))


# -- the methods: each makes a function that takes one step ------------------------------------------------------------


def plain(problem: Problem, make: Callable[[Any], torch.optim.Optimizer]) -> Step:
    model = problem.model()
    optimizer = make(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        problem.loss(model, problem.batch).mean().backward()
        optimizer.step()

    return step


def scanned(problem: Problem, posterior: Posterior) -> Moment:
    return estimate_moment(posterior, [problem.batch], problem.loss, log_stds=[-6.0, -5.0, -4.0], draws=1, n=problem.n)


def fit_step(problem: Problem) -> Step:
    posterior = Posterior(problem.model())
    moment = scanned(problem, posterior)
    posterior.reset_std(STD)
    batches = as_batches([problem.batch], batch_size=None, device=torch.device("cpu"))
    steps = max(1, problem.n // len(problem.batch[-1]))
    plan = Plan(
        rules=AUTO,
        bound=AUTO.bound(problem.n, 0.05, moment, len(posterior.groups)),
        moment=moment,
        untrained=Untrained({"loss": 1.0, "n": problem.n}, steps),
        gamma=HeldGamma(100.0),
        lr=1e-3,
        budget=Budget(),
        seed=0,
    )
    loss = as_loss(problem.loss, None)
    trainer = Trainer(posterior, read.Problem(batches, None, problem.batch, loss, loss), plan)
    assert trainer.curvature is not None
    trainer.curvature.flat.attach()
    return lambda: trainer.step(problem.batch)


def loop(problem: Problem) -> Step:
    posterior = Posterior(problem.model())
    bound = AUTO.bound(problem.n, 0.05, scanned(problem, posterior), len(posterior.groups))
    posterior.reset_std(STD)
    optimizer = torch.optim.Adam(posterior.parameters())

    def step() -> None:
        optimizer.zero_grad()
        bound(problem.loss(posterior, problem.batch), posterior).total.backward()
        optimizer.step()

    return step


def autograd(problem: Problem) -> Step:
    """Reparametrised weights and the textbook KL, all by autograd."""
    model = problem.model()
    means = dict(model.named_parameters())
    start = {k: p.detach().clone() for k, p in means.items()}
    log_stds = {k: nn.Parameter(torch.full_like(p, math.log(STD))) for k, p in means.items()}
    prior = {k: nn.Parameter(torch.tensor(math.log(STD))) for k in means}
    optimizer = torch.optim.Adam([*means.values(), *log_stds.values(), *prior.values()])

    def step() -> None:
        optimizer.zero_grad()
        drawn = {k: p + log_stds[k].exp() * torch.randn_like(p) for k, p in means.items()}
        risk = problem.loss(lambda *args: functional_call(model, drawn, args), problem.batch).mean()
        divergence = sum(
            (
                ((2 * log_stds[k]).exp() + (p - start[k]) ** 2) / (2 * (2 * prior[k]).exp())
                - 0.5
                + prior[k]
                - log_stds[k]
            ).sum()
            for k, p in means.items()
        )
        (risk + divergence / (100.0 * problem.n)).backward()
        optimizer.step()

    return step


def ivon_step(problem: Problem) -> Step:
    import ivon

    model = problem.model()
    optimizer = ivon.IVON(model.parameters(), lr=0.01, ess=problem.n)

    def step() -> None:
        optimizer.zero_grad()
        with optimizer.sampled_params(train=True):
            problem.loss(model, problem.batch).mean().backward()
        optimizer.step()

    return step


def bayesian_torch_step(problem: Problem) -> Step:
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss

    model = problem.model()
    dnn_to_bnn(
        model,
        {
            "prior_mu": 0.0,
            "prior_sigma": 1.0,
            "posterior_mu_init": 0.0,
            "posterior_rho_init": -3.0,
            "type": "Reparameterization",
            "moped_enable": False,
            "moped_delta": 0.5,
        },
    )
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        risk = problem.loss(model, problem.batch).mean()
        (risk + get_kl_loss(model) / problem.n).backward()
        optimizer.step()

    return step


METHODS: dict[str, Callable[[Problem], Step]] = {
    "adam": lambda p: plain(p, torch.optim.Adam),
    "sgd": lambda p: plain(p, lambda w: torch.optim.SGD(w, lr=0.01)),
    "adam fused": lambda p: plain(p, lambda w: torch.optim.Adam(w, fused=True)),
    "fit": fit_step,
    "loop": loop,
    "autograd": autograd,
    "ivon": ivon_step,
    "bayesian-torch": bayesian_torch_step,
}


def prepared(problem: Problem) -> dict[str, Step]:
    """A step of every method that can train this network."""
    steps = {}
    for name, make in METHODS.items():
        torch.manual_seed(0)
        try:
            step = make(problem)
            step()
        except Exception as error:  # a peer may be absent or not take the network: it is left out, and said so
            print(f"{problem.name}: {name} is left out: {type(error).__name__}: {error}")
            continue
        steps[name] = step
    return steps


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__, rounds=15)
    warn_if_busy()
    rows = []
    for problem in problems():
        if chosen.only and chosen.only not in problem.name:
            continue
        seconds = interleaved(prepared(problem), rounds=chosen.rounds, steps=problem.steps)
        for method, mine in seconds.items():
            r = ratio(mine, seconds["adam"])
            rows.append(
                {"network": problem.name, "method": method, "ratio_to_adam": r.value, "low": r.low, "high": r.high}
            )
    show(rows, chosen.json)


if __name__ == "__main__":
    main()

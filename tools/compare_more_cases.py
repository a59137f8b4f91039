"""Cases for `compare_checkouts.py`: images, graphs, scikit-learn, the parts of the library alone, plain training."""

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from compare_cases import net, numbers, raw, rows, trained
from compare_values import case, cases, find, posterior_values
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import pactrain

# -- images ------------------------------------------------------------------------------------------------------------


def images(n: int = 60) -> tuple[Tensor, Tensor]:
    """Noise, with a bright corner for one of two classes."""
    x, y = torch.rand(n, 3, 8, 8, generator=torch.Generator().manual_seed(3)), torch.arange(n) % 2
    x[y == 1, :, :3, :3] += 1
    return x, y


def small_cnn(norm: bool = False) -> nn.Sequential:
    """One convolution."""
    torch.manual_seed(0)
    middle = [nn.BatchNorm2d(6)] if norm else []
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), *middle, nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, 2)
    )


def augmented(how: str) -> Any:
    """Training on flipped and moved images."""
    return trained(small_cnn(), find("augmented")(images(), how, counts=3 if how == "flip" else 1), test=images(20))


case("images, CNN")(lambda: trained(small_cnn(), images()))
case("images, BatchNorm")(lambda: trained(small_cnn(norm=True), images(), test=images(20)))
cases("images, augmented by", ("flip_crop", "flip"), augmented)


@case("networks of pactrain.models")
def _models() -> Any:
    torch.manual_seed(0)
    m = pactrain.models
    made = {
        "mlp": m.mlp(5, 3, widths=(7,), seed=2),
        "cnn": m.cnn(9, classes=4, width=0.0625),
        "vgg": m.vgg(13, classes=4, width=0.0625),
        "resnet": m.resnet(18, classes=4, width=0.0625),
        "densenet": m.densenet(classes=4, width=0.125),
    }
    grouped = m.to_group_norm(m.resnet(18, classes=4, width=0.125))
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    return {k: dict(v.state_dict()) for k, v in made.items()} | {"output": grouped.eval()(x), "text": str(grouped)}


# -- graphs ------------------------------------------------------------------------------------------------------------


def graph() -> Any:
    """Forty nodes in two classes, most edges within one."""
    from torch_geometric.data import Data

    g = np.random.default_rng(0)
    y = np.arange(40) % 2
    ends = np.nonzero(np.triu(g.random((40, 40)) < np.where(y[:, None] == y[None], 0.3, 0.05), 1))
    x = (g.random((40, 6)) < np.where(np.arange(6) % 2 == y[:, None], 0.6, 0.2)).astype(np.float32)
    edges = torch.from_numpy(np.concatenate([np.stack(ends), np.stack(ends[::-1])], axis=1))
    data = Data(x=torch.from_numpy(x), edge_index=edges, y=torch.from_numpy(y))
    data.train_mask, data.test_mask = torch.arange(40) < 24, torch.arange(40) >= 24
    return data


def graph_network(name: str) -> Any:
    """One of the graph networks on the small graph."""
    data = graph()
    return trained(find("graph_model")(name, 6, 2, dropout=0.1), data, test=data)


cases("graph network", ("gcn", "gat", "sage", "appnp"), graph_network, needs="torch_geometric")


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def estimated(estimator: Any, x: Any, y: Any) -> dict[str, Any]:
    """What an estimator has learnt, and what it predicts."""
    estimator.fit(x, y)
    found = {name: getattr(estimator, name)(x) for name in ("predict", "predict_proba") if hasattr(estimator, name)}
    return found | {
        "drawn": estimator.predict(x, draws=5),
        "score": estimator.score(x, y),
        "weights": dict(estimator.model_.state_dict()),
        "posterior": posterior_values(estimator.posterior_),
        "certificate": estimator.certificate_.to_dict(),
        "history": estimator.history_,
    }


def classifier(**options: Any) -> Any:
    """The classifier on raw columns."""
    x, y = raw().numpy(), np.array(["no", "yes"])[(raw()[:, 0] > 700).long()]
    return estimated(pactrain.sklearn.PACBayesClassifier(budget="5 epochs", **options), x, y)


def regressor(several: bool = False, **options: Any) -> Any:
    """The regressor on one target or two."""
    x, y = (t.numpy() for t in numbers())
    target = np.stack([y, 100 * y + 3], axis=1) if several else 50 * y + 7
    return estimated(pactrain.sklearn.PACBayesRegressor(budget="5 epochs", **options), x, target)


case("scikit-learn classifier")(classifier)
case("scikit-learn classifier, balanced")(lambda: classifier(class_weight="balanced", random_state=3))
case("scikit-learn classifier, prior data")(lambda: classifier(prior_data=0.5, bound="kl"))
case("scikit-learn classifier, not standardized")(lambda: classifier(standardize=False, preset="authors"))
case("scikit-learn regressor")(regressor)
case("scikit-learn regressor, two targets")(lambda: regressor(several=True))
case("scikit-learn regressor, huber")(lambda: regressor(loss="huber"))


@case("scikit-learn multilabel")
def _multilabel() -> Any:
    x, _ = numbers()
    y = np.stack([x[:, 0] > 0, x[:, 1] + x[:, 2] > 0.5], axis=1).astype(int)
    return estimated(pactrain.sklearn.PACBayesClassifier(budget="5 epochs"), x.numpy(), y)


# -- parts of the library ----------------------------------------------------------------------------------------------


@case("a loop of one's own")
def _loop() -> Any:
    torch.manual_seed(4)
    posterior = pactrain.Posterior(net(), prior=pactrain.Prior(per="tensor"))
    loader = DataLoader(TensorDataset(*rows()), batch_size=24)
    moment = pactrain.estimate_moment(posterior, loader, "cross_entropy")
    bound = pactrain.bounds.Unbounded(n=96, delta=0.05, moment=moment)
    optimizer = torch.optim.Adam(posterior.parameters(), lr=1e-2)
    objectives = []
    for x, y in [batch for _ in range(5) for batch in loader]:
        objective = bound(F.cross_entropy(posterior(x), y, reduction="none"), posterior)
        objectives.append({k: getattr(objective, k) for k in ("total", "risk", "complexity", "kl", "gamma")})
        optimizer.zero_grad()
        objective.total.backward()
        optimizer.step()
    told = pactrain.certify(posterior, rows(), loss="cross_entropy", draws=50, test=rows(40, seed=1), seed=2)
    return objectives, moment, posterior_values(posterior), told.to_dict(), str(told)


@case("weights drawn in place")
def _sampled() -> Any:
    posterior, (x, y) = pactrain.Posterior(net()), rows()
    optimizer = torch.optim.Adam(posterior.parameters(), lr=1e-2)
    for step in range(5):
        with posterior.sampled(torch.Generator().manual_seed(step)) as model:
            optimizer.zero_grad()
            (F.cross_entropy(model(x), y) + posterior.kl() / len(y)).backward()
        optimizer.step()
    found = [posterior.kl(), posterior.kl_by_group(), posterior.mean_std(), posterior.prior_std(), repr(posterior)]
    return found, posterior_values(posterior), tuple(posterior.predict(x, draws=9)), dict(posterior.state_dict())


@case("certificates again, and as JSON")
def _certify() -> Any:
    result = pactrain.fit(net(), rows(), budget="10 epochs", prior_data=0.5, bound="kl")
    again = pactrain.certify(result.posterior, rows(50, seed=1), delta=0.1, draws=300, caveats=["one of mine"])
    Path("c.json").write_text(json.dumps(again.to_dict()))
    read = pactrain.Certificate.read("c.json")
    return again.to_dict(), str(again), read == again, read.problems(), result.certificate.differences(again)


@case("formulas of the bounds")
def _formulas() -> Any:
    b = pactrain.bounds
    found: dict[str, Any] = {}
    for name in ("KL", "Quad", "Lambda", "Classic", "Catoni"):
        bound = getattr(b, name)(500, 0.05)
        found[name] = [(bound.value(r, kl), bound.slopes(r, kl)) for r in (0.01, 0.2, 0.7) for kl in (0.1, 9.0, 400.0)]
    found["kl_inverse"] = [b.kl_inverse(q, c) for q in (0.0, 0.1, 0.9) for c in (1e-6, 0.01, 2.0)]
    found["clopper_pearson"] = [b.clopper_pearson(k, 100, 0.05) for k in (0, 3, 99)]
    return found


@case("the moment of a prior")
def _moment() -> Any:
    moment = pactrain.estimate_moment(pactrain.Posterior(net(6, 1)), numbers(), "mse", draws=4, seed=3)
    views = [moment.k(average, gamma_min=0.5, gamma_max=100.0) for average in ("mfold", "mean")]
    return moment, views, moment.subset_error(math.log(0.1), 10.0)


@case("plain training with a grid search")
def _compare() -> Any:
    np.savez("t.npz", X=numbers()[0].numpy(), y=numbers()[1].numpy())
    compare = find("compare", fits=lambda v: "grids" in getattr(v, "__annotations__", {}))
    settings, grid = find("Settings", fits=lambda v: hasattr(v, "optimizer")), find("grid")
    problem = import_module(compare.__module__).Problem(str(Path("t.npz").resolve()), model="mlp:8", task="regression")
    grids = {
        name: grid(settings(name.lower(), steps=30), lr=(1e-3, 3e-2), weight_decay=(0.0, 0.01))
        for name in ("SGD", "AdamW")
    }
    found = compare(problem, Path("s.sqlite"), grids=grids, budget="5 epochs", workers=1, seeds=1)
    return found.to_dict()

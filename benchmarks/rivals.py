"""What people would use instead, on the same rows, splits, networks and inputs; a table and a figure of mean ranks.

    make rivals                                                            # quick judging rows; resumes what is not finished
    python benchmarks/rivals.py --rows judging --seeds 5 --methods auto,adamw,catboost --figure docs/gallery/rivals.svg

Networks are trained for as many steps as `auto` takes at one γ, on all rows unless a method needs a validation set (a fifth).  Everything else is
at its package's defaults, one thread.  The packages are the extra `rivals`.
"""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from judge import MEASURES, Result, main
from methods import Prediction, adam, held_out, of_network, scores, train
from problems import Problem
from torch import Tensor, nn

MEMBERS = 5  # of the ensemble


def _trained(problem: Problem, seed: int, optimizer: Callable[[nn.Module], Any], **more: Any) -> nn.Module:
    return train(problem, torch.arange(problem.rows), optimizer, seed=seed, **more)[0]


def schedule_free(problem: Problem, seed: int) -> Prediction:
    from schedulefree import AdamWScheduleFree

    made: list[Any] = []

    def optimizer(model: nn.Module) -> Any:
        made.append(AdamWScheduleFree(model.parameters()))
        made[0].train()
        return made[0]

    model = _trained(problem, seed, optimizer)
    made[0].eval()
    return of_network(problem, model)


def prodigy(problem: Problem, seed: int) -> Prediction:
    from prodigyopt import Prodigy

    return of_network(problem, _trained(problem, seed, lambda model: Prodigy(model.parameters())))


class SAM:
    """Sharpness-aware minimisation around Adam: the gradient is taken a distance ρ up the slope."""

    def __init__(self, model: nn.Module, rho: float = 0.05) -> None:
        self.params: list[Tensor] = list(model.parameters())
        self.rho = rho
        self.inner = torch.optim.Adam(self.params)
        self.zero_grad = self.inner.zero_grad

    def step(self, closure: Callable[[], Tensor]) -> None:
        closure()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in self.params]
        size = torch.stack([g.norm() for g in grads]).norm().clamp(min=1e-12)
        moves = [self.rho * g / size for g in grads]
        with torch.no_grad():
            torch._foreach_add_(self.params, moves)
        closure()
        with torch.no_grad():
            torch._foreach_sub_(self.params, moves)
        self.inner.step()


def sam(problem: Problem, seed: int) -> Prediction:
    return of_network(problem, _trained(problem, seed, SAM))


def swa(problem: Problem, seed: int) -> Prediction:
    """The mean of the weights over the last quarter of the steps."""
    from methods import steps_of

    last, averages = steps_of(problem)[0] * 3 // 4, list[Any]()

    def keep(model: nn.Module, step: int) -> None:
        if step >= last:
            averages[:] = averages or [torch.optim.swa_utils.AveragedModel(model)]
            averages[0].update_parameters(model)

    _trained(problem, seed, adam(), after=keep)
    return of_network(problem, averages[0].module)


def ivon(problem: Problem, seed: int) -> Prediction:
    """Variational online Newton; predictions of the mean network."""
    from ivon import IVON

    class Sampling:
        def __init__(self, model: nn.Module) -> None:
            self.inner = IVON(model.parameters(), lr=0.1, ess=problem.rows, weight_decay=1e-4)
            self.zero_grad = self.inner.zero_grad

        def step(self, closure: Callable[[], Tensor]) -> None:
            with self.inner.sampled_params(train=True):
                closure()
            self.inner.step()

    return of_network(problem, _trained(problem, seed, Sampling))


def laplace(problem: Problem, seed: int) -> Prediction:
    """Adam, and then a Laplace approximation of the last layer with the prior's precision by marginal likelihood."""
    from laplace import Laplace

    assert problem.arrays is not None, "needs rows"
    model, arrays = _trained(problem, seed, adam()).eval(), problem.arrays
    target = arrays.y if arrays.classes else arrays.y.reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(arrays.x, target), batch_size=256)
    kind = "classification" if arrays.classes else "regression"
    found = Laplace(model, kind, subset_of_weights="last_layer", hessian_structure="kron")
    found.fit(loader)
    found.optimize_prior_precision(method="marglik")
    parts = [found(part) for part in arrays.x_test.split(2000)]
    outputs = torch.cat([p if isinstance(p, Tensor) else p[0] for p in parts]).detach()
    return scores(problem, outputs, chances=True)


def ensemble(problem: Problem, seed: int) -> Prediction:
    """Networks from different initial weights, each early-stopped on the fifth; the average of their predictions."""
    rest, fifth = held_out(problem, seed)
    total: Any = 0.0
    for member in range(MEMBERS):

        def build(member: int = member) -> nn.Module:
            model = problem.model()
            torch.manual_seed(1000 * seed + member)
            for part in model.modules():
                if callable(reset := getattr(part, "reset_parameters", None)):
                    reset()
            return model

        model, *_ = train(problem, rest, adam(), seed=seed + member, watch=fifth, build=build)
        with torch.no_grad():
            out = problem.outputs(model.eval(), None)
        total = total + (out.softmax(1) if problem.classes else out) / MEMBERS
    return scores(problem, total, chances=True)


# -- methods for tables ---------------------------------------------------------------------------------------------------


def _table(make: Callable[[bool, int], Any]) -> Callable[[Problem, int], Prediction]:
    """An estimator of scikit-learn's kind, made for classification or regression."""

    def run(problem: Problem, seed: int) -> Prediction:
        arrays = problem.arrays
        assert arrays is not None, "needs rows"
        x, x_test = (v.flatten(1).numpy() for v in (arrays.x, arrays.x_test))
        found = make(arrays.classes, seed).fit(x, arrays.y.numpy().ravel())
        if not arrays.classes:
            return scores(problem, torch.as_tensor(np.asarray(found.predict(x_test)).ravel()))
        chances = torch.zeros(len(x_test), arrays.outputs, dtype=torch.float64)  # classes without a row stay at zero
        chances[:, torch.as_tensor(found.classes_).long()] = torch.as_tensor(
            np.asarray(found.predict_proba(x_test))
        ).double()
        return scores(problem, chances, chances=True)

    return run


def _realmlp(classes: bool, seed: int) -> Any:
    from pytabkit import RealMLP_TD_Classifier, RealMLP_TD_Regressor

    return (RealMLP_TD_Classifier if classes else RealMLP_TD_Regressor)(random_state=seed, device="cpu", n_threads=1)


def _catboost(classes: bool, seed: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if classes else CatBoostRegressor
    return kind(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False)


def _lightgbm(classes: bool, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    return (LGBMClassifier if classes else LGBMRegressor)(random_state=seed, n_jobs=1, verbose=-1)


def _forest(classes: bool, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    return (RandomForestClassifier if classes else RandomForestRegressor)(300, random_state=seed, n_jobs=1)


def _linear(classes: bool, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV

    return LogisticRegressionCV(max_iter=500, random_state=seed) if classes else RidgeCV(np.logspace(-3, 4, 15))


RIVALS: dict[str, Callable[[Problem, int], Prediction]] = {
    "schedule-free": schedule_free,
    "prodigy": prodigy,
    "sam": sam,
    "swa": swa,
    "ivon": ivon,
    "laplace": laplace,
    "ensemble of 5": ensemble,
    "realmlp-td": _table(_realmlp),
    "catboost": _table(_catboost),
    "lightgbm": _table(_lightgbm),
    "random forest": _table(_forest),
    "linear": _table(_linear),
}

# -- ranks ----------------------------------------------------------------------------------------------------------------


def ranks(results: list[Result], methods: list[str]) -> dict[str, np.ndarray]:
    """Measure → array of ranks, one row per problem and seed that all methods have, one column per method; 1 is the best."""
    from scipy.stats import rankdata

    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    found: dict[str, list[Any]] = {measure: [] for measure in MEASURES}
    for row, seed in sorted({(r, s) for r, s, _ in kept}):
        mine = [kept.get((row, seed, m)) for m in methods]
        if any(r is None for r in mine):
            continue
        for measure in MEASURES:
            key = measure if measure in ("nll", "ece") else "score"
            if (measure == "rmse") == ("nll" in mine[0]):  # type: ignore[operator]
                continue
            values = [r[key] * (1 if key != "score" else -1) for r in mine]  # type: ignore[index]
            found[measure].append(rankdata(np.nan_to_num(np.round(values, 9), nan=np.inf)))  # diverged: last
    return {measure: np.array(v) for measure, v in found.items() if v}


def rank_table(results: list[Result], methods: list[str]) -> str:
    """Mean ranks with 95 % bootstrap intervals over rows, and the median time in trainings of plain Adam, in Markdown."""
    found, seconds = ranks(results, methods), {m: [r["seconds"] for r in results if r["method"] == m] for m in methods}
    heads = [f"{m} ({len(v)})" for m, v in found.items()]
    lines = ["| method | " + " | ".join(heads) + " | seconds |", "|---" * (len(heads) + 2) + "|"]
    for i, method in enumerate(methods):
        cells = []
        for values in found.values():
            low, high = _interval(values[:, i])
            cells.append(f"{values[:, i].mean():.2f} [{low:.2f}, {high:.2f}]")
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {statistics.median(seconds[method]):.1f} |")
    return "\n".join(lines)


def calibration_table(results: list[Result], methods: list[str]) -> str:
    """Means of nll and ece over classification rows, with test labels as they are and as noisy as the training labels, in Markdown."""
    kept = {(r["row"], r["seed"], r["method"]): r for r in results}
    together = [[kept.get((row, seed, m), {}) for m in methods] for row, seed in sorted({(r, s) for r, s, _ in kept})]
    together = [mine for mine in together if all("nll" in r for r in mine)]
    like = [mine for mine in together if "% wrong" not in mine[0]["row"] or " 0 % wrong" in mine[0]["row"]]
    like += [mine for mine in together if all("ece like training" in r for r in mine)]
    lines = [
        f"| method | nll ({len(together)}) | ece | nll, labels like training ({len(like)}) | ece, labels like training |",
        "|---" * 5 + "|",
    ]
    for i, method in enumerate(methods):
        found = [[mine[i][key] for mine in together] for key in ("nll", "ece")]
        found += [[mine[i].get(f"{key} like training", mine[i][key]) for mine in like] for key in ("nll", "ece")]
        lines.append(f"| {method} | " + " | ".join(f"{statistics.mean(v):.3f}" for v in found) + " |")
    return "\n".join(lines)


def _interval(values: np.ndarray) -> tuple[float, float]:
    means = np.random.default_rng(0).choice(values, (2000, len(values))).mean(1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def figure(results: list[Result], methods: list[str], path: Path) -> None:
    """Mean ranks with their intervals, a panel per measure."""
    from matplotlib.figure import Figure

    found = ranks(results, methods)
    canvas = Figure(figsize=(3 * len(found), 0.3 * len(methods) + 1.2), layout="constrained")
    for axes, (measure, values) in zip(
        np.atleast_1d(canvas.subplots(1, len(found), sharey=True)), found.items(), strict=True
    ):
        for i in range(len(methods)):
            low, high = _interval(values[:, i])
            axes.plot([low, high], [i, i], color="tab:blue" if methods[i].endswith("auto") else "grey")
            axes.plot(values[:, i].mean(), i, "o", color="tab:blue" if methods[i].endswith("auto") else "grey")
        axes.set(xlabel=f"mean rank, {measure}")
        axes.set_yticks(range(len(methods)), methods)
        axes.invert_yaxis() if axes is canvas.axes[0] else None
    canvas.savefig(path)


if __name__ == "__main__":
    options, results = main(RIVALS, default="auto,plain,adam,adamw," + ",".join(RIVALS))
    names = [options.label + name for name in options.methods.split(",")]
    print()
    print(rank_table(results, names), "\n")
    print(calibration_table(results, names))
    if options.figure:
        figure(results, names, options.figure)

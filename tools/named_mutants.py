"""Mistakes that would make a certificate too good.  Each has a name, and none of them may survive, whatever the score."""

from collections.abc import Iterable
from pathlib import Path

from mutations import Mutant

NAMED = {  # what is wrong: the text that is replaced, which stands in one place of one module, and what replaces it
    "KL halved in the formula of the unbounded statement": (
        "(kl + prior_nats + confidence_nats) / (gamma * n)",
        "(kl / 2 + prior_nats + confidence_nats) / (gamma * n)",
    ),
    "KL halved where the unbounded statement takes it": ('"kl": kl,', '"kl": kl / 2,'),
    "log-ratio 0 in the drawn-network statement": ('"log_ratio": ratio,', '"log_ratio": 0.0,'),
    "log-ratio left out of the formula of the drawn network": ("(risk, log_ratio + prior_nats,", "(risk, prior_nats,"),
    "the paper's moment (mean over draws) instead of m-fold": (
        "psi = _mfold(table, n)",
        "psi = np.maximum(np.log(np.exp(table).mean(axis=0)), 0.0)",
    ),
    "ln 40 not charged": ("nats + math.log(len(GAMMA_GRID))", "nats"),
    "δ shares doubled": ("        delta / len(events),\n", "        2 * delta / len(events),\n"),
    "Monte Carlo step skipped": ("kl_bound(monte_carlo(mean, values, delta_draws),", "kl_bound(mean,"),
    "prior price halved on the grid": ("len(own) * math.log(len(grid))", "len(own) * math.log(len(grid)) / 2"),
    "prior price halved on the scale of Dziugaite and Roy": (
        "sum(price for _, _, price in best)",
        "sum(price for _, _, price in best) / 2",
    ),
    "prior price halved where all statements take it": ("(log_stds, price + choice)", "(log_stds, price / 2 + choice)"),
    "prior price halved in the kl statement": ("kl + prior_nats, n, delta_bound)", "kl + prior_nats / 2, n, delta_bound)"),
}  # fmt: skip


def named_mutants(source: Path, modules: Iterable[str]) -> list[Mutant]:
    """Each of them, in the module that has its text."""
    texts = {module: (source / module).read_text() for module in modules}
    out = []
    for name, (before, after) in NAMED.items():
        found = [module for module, text in texts.items() if before in text]
        if len(found) != 1 or texts[found[0]].count(before) != 1:
            raise SystemExit(f"{name}: the text {before!r} stands in {found}, not in one place")
        module = found[0]
        line = texts[module][: texts[module].index(before)].count("\n") + 1
        code = compile(texts[module].replace(before, after), str(source / module), "exec")
        out.append(Mutant(module, f"{module}: {name}", line, code))
    return out

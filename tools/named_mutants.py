"""Mistakes that would make a certificate too good.  Each has a name, and none of them may survive, whatever the score."""

from collections.abc import Iterable
from pathlib import Path

from mutations import Mutant

NAMED = {  # what is wrong: the text that is replaced, which stands in one place of one module, and what replaces it
    "KL halved in the formula of the unbounded statement": (
        "(kl + prior_nats + confidence_nats) / (gamma * n)",
        "(kl / 2 + prior_nats + confidence_nats) / (gamma * n)",
    ),
    "KL halved where the unbounded statement takes it": ('"kl": kl,\n            "prior_nats"', '"kl": kl / 2,\n            "prior_nats"'),
    "KL halved where statements about measured risks take it": ('"kl": kl,\n        "prior_nats"', '"kl": kl / 2,\n        "prior_nats"'),
    "log-ratio 0 in the drawn-network statement": ('"log_ratio": ratio,', '"log_ratio": 0.0,'),
    "log-ratio left out of the formula of the drawn network": ("(risk, log_ratio + prior_nats,", "(risk, prior_nats,"),
    "the paper's moment (mean over draws) instead of m-fold": (
        "psi = _mfold(table, n)",
        "psi = np.maximum(np.log(np.exp(table).mean(axis=0)), 0.0)",
    ),
    "ln 40 not charged": ("prior.nats + math.log(len(GAMMA_GRID))", "prior.nats"),
    "δ shares doubled": ("self.delta / len(events) for event in events}", "2 * self.delta / len(events) for event in events}"),
    "δ shares beside the counted rows doubled": ("self.delta / 2 / len(events)", "self.delta / len(events)"),
    "δ of the counted rows doubled": ("{COUNTED: self.delta / 2}", "{COUNTED: self.delta}"),
    "a second posterior measured for nothing": ("1 + self.earlier + (COUNTED in self.budget)", "1 + self.earlier"),
    "Monte Carlo step skipped": ("risk = mean if exactly else", "risk = mean if not exactly else"),
    "choices not paid for in the bound": ("n, delta_bound / choices, **more)", "n, delta_bound, **more)"),
    "choices not paid for in measuring": ("delta_draws / choices)", "delta_draws)"),
    "smaller chunks counted as whole ones": ("bound * found.number / values", "bound"),
    "values rounded down": ("torch.ceil(BINS * sums / largest)", "torch.floor(BINS * sums / largest)"),
    "one stake alone, and the best": ("/ len(logs)) - 200", ") - 200"),
    "κ left out of the unexpected Bernstein bound": ("(x + squares * x.square()) / (1 + squares)", "x / (1 + squares)"),
    "the price of measuring halved in the unexpected Bernstein bound": ("(kl - math.log(delta)) / (u * n)", "(kl - math.log(delta)) / (2 * u * n)"),
    "ξ without its first term": ("term = total = 1.0\n    for k in range(1, n + 1):", "term, total = 1.0, 0.0\n    for k in range(1, n + 1):"),
    "an error on the counted rows forgiven": ('round((1 - scores["accuracy"]) * n), "n": n', 'max(0, round((1 - scores["accuracy"]) * n) - 1), "n": n'),
    "the posterior judged in place of the prior's mean": ("torch.zeros_like(posterior.prior_mean)) as model", "posterior.mean_shift() / posterior.prior_log_std.exp()[0]) as model"),
    "the choice of a resolution is free": ("nats = math.log(RESOLUTIONS) + sum(", "nats = sum("),
    "prior price halved where all statements take it": ("nats + choice)", "nats / 2 + choice)"),
    "the first block counted": ("counted = blocks[1:]", "counted = blocks"),
    "an error of each block forgiven": ('(1 - scores["accuracy"]) * n - 1e-6', '(1 - scores["accuracy"]) * n - 1'),
    "rows of the first block counted": ("n = sum(rows for rows, _ in blocks[1:])", "n = sum(rows for rows, _ in blocks)"),
    "half of δ stated as the price of all blocks": ('"delta_bound": trained.delta}', '"delta_bound": 2 * trained.delta}'),
    "confidence not paid for by the blocks": ("(rate * errors + math.log(1 / delta)) / n", "(rate * errors) / n"),
    "three histograms pay for one": ("events = parts * len(level.counts)", "events = parts"),
    "price of the first prior left out of the levels": ("level.kl + level.nats,", "level.kl,"),
    "networks before forgotten": ("GAMMA * bound + excess", "excess"),
    "divergence of a level halved": ("kl = float(posterior.kl_by_group(log_std).sum())\n    with evaluating", "kl = 0.5 * float(posterior.kl_by_group(log_std).sum())\n    with evaluating"),
    "networks before drawn from the posterior": ("    posterior.return_to_prior()\n    found = _errors(", "    found = _errors("),
    "prior price halved in the statements": ("formula(risk, kl + prior_nats, n", "formula(risk, kl + prior_nats / 2, n"),
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

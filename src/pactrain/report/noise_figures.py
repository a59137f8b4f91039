"""Figures of the noise: standard deviations of prior and posterior, and the moment K̃(λ)."""

import math

import numpy as np

from pactrain.report.canvas import (
    INK,
    MUTED,
    SERIES,
    SIZE,
    Drawing,
    canvas,
    legend,
    logarithmic,
    number,
    short,
    stage_line,
)
from pactrain.report.curves import over_epochs
from pactrain.report.read import Record, Run
from pactrain.runs.sentences import number as number_text

MANY_GROUPS = 6
"""More groups than this are shown as they end, not as curves."""

MOST_GROUPS = 40


def noise_figure(run: Run) -> Drawing:
    """Standard deviations of prior and posterior for each group."""
    return _over_training(run) if len(run.config["groups"]) <= MANY_GROUPS else _at_the_end(run)


def _over_training(run: Run) -> Drawing:
    """Standard deviations of prior and posterior for each group over training."""
    figure, axes = canvas()
    records, epochs = over_epochs(run)
    every: list[float] = []
    for i, group in enumerate(run.config["groups"]):
        for key, style in (("prior_std", (0, (4, 1.5))), ("posterior_std", "-")):
            values = [number(r[key][group]) for r in records]
            name = short(group) if key == "posterior_std" else None
            axes.plot(epochs, values, color=SERIES[i % len(SERIES)], linestyle=style, label=name)
            every += values
    axes.plot([], [], color=MUTED, linestyle=(0, (4, 1.5)), label="priors")
    logarithmic(axes, every)
    stage_line(axes, run.stage1_epochs, len(run.history))
    axes.set(xlabel="epoch", ylabel="standard deviation σ", xlim=(epochs[0], epochs[-1]))
    legend(axes, 4)
    return Drawing(
        "stds",
        "The noise that was learned",
        f"Standard deviations over {len(run.history)} epochs, for each group of weights. At the end: {_std_words(run.history[-1])}.",
        "Mean σ of the posterior for each group of weights (solid) and σ of its prior (dashed). Where the posterior is as wide "
        "as the prior, the data has said little about these weights.",
        figure,
    )


def _at_the_end(run: Run) -> Drawing:
    """Standard deviations of prior and posterior at the end of training, for networks of many groups."""
    groups = list(run.config["groups"])[:MOST_GROUPS]
    figure, axes = canvas((SIZE[0], 0.9 + 0.19 * len(groups)), left=1.7)
    last, rows = run.history[-1], range(len(groups))
    prior, posterior = ([number(last[key][g]) for g in groups] for key in ("prior_std", "posterior_std"))
    axes.hlines(rows, prior, posterior, color=MUTED, linewidth=1)
    axes.plot(prior, rows, "D", color=SERIES[1], markersize=4, label="prior σ")
    axes.plot(posterior, rows, "o", color=SERIES[0], markersize=5, label="mean posterior σ")
    logarithmic(axes, [*prior, *posterior], axis="x")
    axes.set_yticks(rows, [short(g) for g in groups])
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="standard deviation σ")
    legend(axes)
    more = len(run.config["groups"]) - len(groups)
    return Drawing(
        "stds",
        "The noise that was learned",
        f"Standard deviations at the end, for each group of weights: {_std_words(last)}.",
        "For each group of weights at the end of training. Where the posterior is as wide as the prior, the data has said "
        f"little about these weights.{f' {more} more groups are not shown.' if more else ''}",
        figure,
    )


def moment_figure(run: Run) -> Drawing:
    """K̃ as a function of the prior's std, with the point where training ended."""
    assert run.moment is not None
    rules, last = run.config["rules"], run.history[-1] if run.history else None
    figure, axes = canvas()
    stds = np.exp(run.moment.log_stds)
    k = run.moment.k(rules["average"], gamma_min=rules["gamma_min"], gamma_max=rules["gamma_max"])
    axes.plot(stds, k, color=SERIES[0], label="K̃(λ)")
    every, alt = (
        k.tolist(),
        f"from {number_text(k[0])} at λ = {number_text(stds[0])} to {number_text(k[-1])} at λ = {number_text(stds[-1])}",
    )
    used = last is not None and number(last["complexity"]) > 0
    if last is not None and used and rules["mode"] == "cgf":
        at = int(np.abs(np.log(run.moment.gammas / last["gamma"])).argmin())
        line = run.moment.psi(rules["average"])[:, at] / run.moment.gammas[at] ** 2
        axes.plot(stds, line, color=SERIES[2], linestyle=(0, (4, 1.5)), label=f"at γ = {number_text(last['gamma'])}")
        every += line.tolist()
    if last is not None and run.log_std is not None:
        end = last["complexity"] / last["gamma"] if used else float(np.interp(run.log_std, run.moment.log_stds, k))
        axes.plot(
            math.exp(run.log_std), end, "o", color=SERIES[1], markersize=8, markeredgecolor=INK, label="end of training"
        )
        alt += f"; training ended at λ = {number_text(math.exp(run.log_std))} with {number_text(end)}"
        every.append(end)
    logarithmic(axes, stds.tolist(), axis="x")
    logarithmic(axes, [v for v in every if v > 0])
    axes.set(xlabel="prior standard deviation λ", ylabel="K̃")
    legend(axes)
    return Drawing(
        "moment",
        "K̃(λ), the price of a wide prior",
        f"K̃ against the prior's standard deviation λ: {alt}.",
        f"Scanned before training with {run.moment.log_moments.shape[1]} networks drawn at each λ: how strongly the loss varies "
        f"under the prior.{_moment_note(used, rules['mode'])}{_subset_note(run)}",
        figure,
    )


def _moment_note(used: bool, mode: str) -> str:
    if not used:
        return " The bound trained with does not use it."
    if mode == "cgf":
        return " K̃ is the worst over all γ; the bound pays only for the γ it uses (dashed), on which training ended."
    return " Complexity is γK̃ at the point where training ended."


def _subset_note(run: Run) -> str:
    moment, last = run.moment, run.history[-1] if run.history else None
    if moment is None or last is None or run.log_std is None or moment.n_used >= moment.n:
        return ""
    error = moment.subset_error(run.log_std, number(last["gamma"]))
    return (
        f" It was measured on {moment.n_used:,} of {moment.n:,} examples; where training ended this leaves the bound uncertain "
        f"by {number_text(error)} (a standard error)."
    )


def _std_words(record: Record) -> str:
    groups = list(record["prior_std"])[:MOST_GROUPS]
    return "; ".join(
        f"{g} prior {number_text(number(record['prior_std'][g]))}, posterior {number_text(number(record['posterior_std'][g]))}"
        for g in groups
    )

"""The scan against brute force, one row of it by plain loops."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pactrain import Moment, PactrainError, Posterior, Prior, estimate_moment
from pactrain.bounds.moment import Array
from pactrain.problem.as_loss import as_loss
from pactrain.runtime.errors import TrainingError
from pactrain.runtime.events import Event
from pactrain.runtime.seeds import generator
from pactrain.scan.estimate import FLAT, _row, moment_at
from tests.oracle import definitions
from tests.scan.small_scan import GAMMAS, LOG_STDS, scan
from tests.zoo import ZOO, build, rows


def test_psi_is_that_of_brute_force() -> None:
    posterior, moment = scan()
    x, y = rows()
    from pactrain.runtime.seeds import generator

    errors = np.zeros((3, 4, 3))
    for d in range(4):
        noise = posterior.fresh_noise(generator(torch.device("cpu"), 0, "scan", d))
        for i, log_std in enumerate(LOG_STDS):
            weights = posterior.prior_mean + math.exp(log_std) * noise
            pieces = dict(zip(posterior.names, weights.split([p.numel() for p in posterior.means()]), strict=True))
            shaped = {n: w.view_as(posterior.model.get_parameter(n)) for n, w in pieces.items()}
            out = torch.func.functional_call(posterior.model, shaped, (x,))
            losses = torch.nn.functional.cross_entropy(out, y, reduction="none").detach().double().numpy()
            for j, gamma in enumerate(GAMMAS):
                assert moment.log_moments[i, d, j] == pytest.approx(definitions.log_moment(losses, gamma), rel=1e-6)
                weights_of = np.exp(-gamma * losses)  # the error of a logarithm is that of the mean, relative to it
                errors[i, d, j] = weights_of.std() / weights_of.mean() / math.sqrt(48)
            assert moment.means[i, d] == pytest.approx(losses.mean(), rel=1e-6)
            assert moment.variances[i, d] == pytest.approx(losses.var(), rel=1e-6)
    np.testing.assert_allclose(moment.errors, errors.max(axis=1), rtol=1e-5)  # of the worst draw
    m = moment.log_moments
    n, s = moment.n, 4
    assert n == 48
    np.testing.assert_allclose(moment.psi("mean", monotone=False), np.log(np.exp(m).mean(axis=1)))
    np.testing.assert_allclose(moment.psi("max", monotone=False), m.max(axis=1))
    np.testing.assert_allclose(moment.psi("mfold", monotone=False), np.log(np.exp(n * m).mean(axis=1)) / n)
    assert (moment.psi("mfold") >= m.max(axis=1) - math.log(s) / n - 1e-12).all()


def test_views_k_and_lemma() -> None:
    _, moment = scan()
    psi = moment.psi("mean")
    np.testing.assert_allclose(moment.k("mean"), (psi / np.square(GAMMAS)).max(axis=1))
    np.testing.assert_allclose(moment.k("mean", gamma_min=2), (psi / np.square(GAMMAS))[:, 1:].max(axis=1))
    assert (moment.k("max") <= moment.k_lemma() * (1 + 1e-9)).all()
    with pytest.raises(PactrainError, match="no γ"):
        moment.k(gamma_min=50)
    with pytest.raises(PactrainError, match="not known"):
        moment.psi("median")  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, st.integers(2, 30), elements=st.floats(0, 50)))
def test_properties_of_one_row(losses: Array) -> None:
    gammas = np.array([0.01, 0.5, 3.0, 40.0])
    row = _row(losses, gammas)
    log_moment = row[:4]
    assert (log_moment >= -1e-9).all()  # Jensen
    assert (np.diff(log_moment / gammas) >= -1e-9).all()  # ψ is convex with ψ(0) = 0
    assert (log_moment <= gammas * (losses.mean() - losses.min()) + 1e-9).all()
    lemma = max(losses.mean() ** 2, losses.var())
    assert (log_moment <= gammas**2 * lemma + 1e-9).all()  # the paper's lemma, for non-negative losses


@pytest.mark.parametrize("name", ZOO)
def test_the_zoo_is_scanned_and_left_as_it_was(name: str) -> None:
    posterior = Posterior(build(name))
    before = {k: v.clone() for k, v in posterior.state_dict().items()}
    posterior.model.train()
    estimate_moment(posterior, ZOO[name][1](), ZOO[name][2], gammas=GAMMAS, log_stds=LOG_STDS, draws=2)
    assert all(torch.equal(v, before[k]) for k, v in posterior.state_dict().items())
    assert all(m.training for m in posterior.model.modules())


def test_common_noise_makes_the_table_smooth_and_monotone_and_reproducible() -> None:
    _, first = scan()
    _, again = scan()
    np.testing.assert_array_equal(first.log_moments, again.log_moments)
    _, other = scan(seed=1)
    assert (first.log_moments != other.log_moments).any()
    assert (np.diff(first.psi(), axis=0) >= 0).all()


def test_a_subset_is_used_for_large_data_and_its_error_is_reported() -> None:
    posterior = Posterior(build("mlp"))
    data = rows(4000)
    full = estimate_moment(posterior, data, gammas=GAMMAS, log_stds=LOG_STDS, draws=3)
    part = estimate_moment(posterior, data, gammas=GAMMAS, log_stds=LOG_STDS, draws=3, max_examples=400)
    assert (full.n, full.n_used, part.n, part.n_used) == (4000, 4000, 4000, 400)
    gap = np.abs(part.psi("max", monotone=False) - full.psi("max", monotone=False))
    assert (gap <= 6 * part.errors + 1e-12).all()
    assert (part.errors > full.errors).all()
    assert full.subset_error(-3.0, 2.0) == 0
    assert part.subset_error(-3.0, 2.0) == pytest.approx(part.errors[1, 1] / 2.0 * math.sqrt(0.9))


def test_where_the_table_is_flat_it_is_filled_in() -> None:
    posterior = Posterior(build("mlp"))
    options: dict[str, Any] = {"gammas": GAMMAS, "draws": 3, "log_stds": np.linspace(-9, 0, 19)}
    quick = estimate_moment(posterior, rows(), **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pactrain.scan.estimate.FLAT", -1.0)
        full = estimate_moment(posterior, rows(), **options)
    assert full.measured == 3 * 19
    assert quick.measured < 0.8 * full.measured
    allowed = 0.2 * FLAT * full.means.max(axis=1)[:, None, None]  # far less than the difference that is let pass
    assert (np.abs(quick.log_moments - full.log_moments) / np.array(GAMMAS) <= allowed).all()
    np.testing.assert_array_equal(quick.log_moments[-2:], full.log_moments[-2:])  # not flat there


def test_progress_and_json() -> None:
    events: list[Event] = []
    _, moment = scan(progress=events.append)
    assert [e.done for e in events] == list(range(1, 13))
    again = Moment.from_dict(json.loads(json.dumps(moment.to_dict())))
    np.testing.assert_array_equal(again.log_moments, moment.log_moments)
    assert again.n == moment.n


def test_stds_at_which_the_loss_overflows_are_left_out() -> None:
    class Exploding(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(6, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.exp(torch.exp(4 * (x @ self.weight)))

    posterior = Posterior(Exploding(), Prior(std=0.1))
    moment = estimate_moment(posterior, rows(), gammas=GAMMAS, log_stds=[-4.0, -2.0, 2.0], draws=2)
    assert len(moment.log_stds) < 3
    assert np.isfinite(moment.log_moments).all()
    with pytest.raises(TrainingError, match="not finite"):
        estimate_moment(posterior, rows(), gammas=GAMMAS, log_stds=[3.0, 4.0], draws=2)


def test_bad_grids_are_refused() -> None:
    wrong: tuple[dict[str, Any], ...] = ({"gammas": [2.0, 1.0]}, {"gammas": [0.0]}, {"log_stds": [1.0, 1.0]})
    for options in wrong:
        with pytest.raises(PactrainError, match="scan needs"):
            scan(**options)


def test_one_row() -> None:
    losses = np.array([0.1, 2.0, 0.7, 5.5, 0.3])
    gammas = np.array([0.5, 1.0, 4.0])
    row = _row(losses, gammas)
    assert row.shape == (2 * 3 + 2 + 2,)
    mean = sum(losses.tolist()) / 5
    for j, gamma in enumerate([0.5, 1.0, 4.0]):
        powers = [math.exp(gamma * (mean - x)) for x in losses.tolist()]
        average = sum(powers) / 5
        deviation = math.sqrt(sum((p - average) ** 2 for p in powers) / 5)
        assert row[j] == pytest.approx(math.log(average), rel=1e-12)
        assert row[3 + j] == pytest.approx(deviation / average / math.sqrt(5), rel=1e-12)
    assert row[6] == pytest.approx(mean)
    assert row[7] == pytest.approx(sum((x - mean) ** 2 for x in losses.tolist()) / 5)
    assert row[8] == pytest.approx(definitions.log_moment(losses, -1.0), rel=1e-12)
    assert row[9] == pytest.approx(definitions.log_moment(losses, -0.5), rel=1e-12)


def test_one_row_does_not_overflow() -> None:
    row = _row(np.array([0.0, 1000.0, 3000.0]), np.array([10.0, 40.0]))
    assert row[:2] == pytest.approx([10 * 4000 / 3 - math.log(3), 40 * 4000 / 3 - math.log(3)])
    assert np.isfinite(row).all()


def test_the_moment_at_one_vector_of_scales() -> None:
    posterior = Posterior(build("mlp"), Prior(per="layer", std=0.1)).double()
    gammas = np.array([0.5, 1.0, 4.0])
    x, y = rows()
    x = x.double()
    log_std = torch.linspace(-2.0, -1.0, len(posterior.prior_log_std), dtype=torch.float64)
    loss = as_loss(None, (x, y))
    found, errors = moment_at(posterior, [(x[:30], y[:30]), (x[30:], y[30:])], loss, log_std, gammas, draws=3, seed=5)
    assert found.shape == errors.shape == (3, 3)
    sizes = torch.tensor([at.stop - at.start for at in posterior.group_slices])
    std = log_std.exp().repeat_interleave(sizes)
    for d in range(3):
        noise = posterior.fresh_noise(generator(torch.device("cpu"), 5, "psi", d))
        pieces = (posterior.prior_mean + std * noise).split([p.numel() for p in posterior.means()])
        shaped = {n: w.view_as(posterior.model.get_parameter(n)) for n, w in zip(posterior.names, pieces, strict=True)}
        out = torch.func.functional_call(posterior.model, shaped, (x,))
        losses = torch.nn.functional.cross_entropy(out, y, reduction="none").detach().numpy()
        wanted = _row(losses, gammas)
        np.testing.assert_allclose(found[d], [definitions.log_moment(losses, g) for g in gammas.tolist()], rtol=1e-9)
        np.testing.assert_allclose(errors[d], wanted[3:6], rtol=1e-9)

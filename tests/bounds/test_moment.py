"""Known answers of a small hand-made table, by plain loops."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from pactrain import Moment, PactrainError
from pactrain.bounds.moment import COUNTS, LOG_STD_RANGE, NEGATIVE, Array, gammas_between, log_grid

GAMMAS = np.array([0.5, 1.0, 4.0])
N = 40


def table() -> Moment:
    """Two stds, three draws, three γ; ψ falls from the first std to the second at one γ."""
    log_moments = np.array(
        [
            [[0.12, 0.30, 1.00], [0.15, 0.10, 1.40], [0.11, 0.20, 0.90]],
            [[0.03, 0.95, 1.50], [0.01, 0.80, 2.50], [0.02, 0.60, 2.00]],
        ]
    )
    return Moment(
        log_stds=np.array([-3.0, -1.0]),
        gammas=GAMMAS,
        log_moments=log_moments,
        means=np.array([[0.5, 0.7, 0.6], [1.5, 0.4, 0.8]]),
        variances=np.array([[0.1, 0.2, 0.9], [0.3, 0.5, 0.4]]),
        errors=np.array([[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]]),
        negative=np.array([[[0.3, 0.6], [0.2, 0.1], [0.25, 0.2]], [[0.9, 0.2], [0.8, 0.1], [0.7, 0.3]]]),
        n=N,
        n_used=30,
        measured=5,
    )


def log_mean_exp(values: list[float]) -> float:
    """ln of the mean of the exponentials."""
    return math.log(sum(math.exp(v) for v in values) / len(values))


def by_loops(average: str) -> Array:
    """ψ[std, γ] from the definitions, not yet made monotone."""
    draws = table().log_moments.transpose(0, 2, 1).tolist()
    averages: dict[str, Callable[[list[float]], float]] = {
        "mean": log_mean_exp,
        "mfold": lambda values: log_mean_exp([N * v for v in values]) / N,
        "max": max,
    }
    return np.array([[averages[average](values) for values in per_std] for per_std in draws])


@pytest.mark.parametrize("average", ["mean", "mfold", "max"])
def test_psi(average: str) -> None:
    raw = by_loops(average)
    np.testing.assert_allclose(table().psi(average, monotone=False), raw, rtol=1e-12)  # type: ignore[arg-type]
    np.testing.assert_allclose(table().psi(average), [raw[0], np.maximum(raw[0], raw[1])], rtol=1e-12)  # type: ignore[arg-type]
    assert raw[1, 0] < raw[0, 0]


def test_the_default_is_the_moment_that_the_proof_needs() -> None:
    np.testing.assert_array_equal(table().psi(), table().psi("mfold"))
    assert (table().psi() > table().psi("mean")).all()


def test_psi_is_never_negative_and_never_overflows() -> None:
    values = table().to_dict()
    values["log_moments"] = (np.array(values["log_moments"]) * 1000 - 200).tolist()
    moment = Moment.from_dict(values)
    assert moment.psi("mean").min() == moment.psi("mfold").min() == 0.0
    assert np.isfinite(moment.psi("mfold")).all()


def test_k() -> None:
    ratio = np.maximum.accumulate(by_loops("mean")) / np.square([0.5, 1.0, 4.0])
    np.testing.assert_allclose(table().k(), ratio.max(axis=1))
    np.testing.assert_allclose(table().k(gamma_min=1.0), ratio[:, 1:].max(axis=1))
    np.testing.assert_allclose(table().k(gamma_min=2.0), ratio[:, 2])
    np.testing.assert_allclose(table().k(gamma_max=0.5), ratio[:, 0])
    of_max = np.maximum.accumulate(by_loops("max")) / np.square([0.5, 1.0, 4.0])
    np.testing.assert_allclose(table().k("max"), of_max.max(axis=1))
    np.testing.assert_allclose(table().k_lemma(), [0.9, 2.25])
    np.testing.assert_allclose(table().loss(), [0.6, 0.9])


def test_k_on_both_sides() -> None:
    psi = np.maximum.accumulate(by_loops("mean"))
    for log_std, at in ((-3.4, 0), (-2.1, 0), (-1.9, 1)):
        right = max(psi[at, 0] / 0.25, psi[at, 1])
        below = table().negative[at]
        left = max(log_mean_exp(below[:, 0].tolist()), log_mean_exp(below[:, 1].tolist()) / 0.25)
        half = table().variances[at].mean() / 2
        assert table().k_two_sided(log_std) == pytest.approx(max(left, right, half), rel=1e-12)
        for name, wanted in (("negative", max(right, half)), ("log_moments", max(left, half))):
            values = table().to_dict()
            values[name] = (np.array(values[name]) * 1e-9).tolist()
            assert Moment.from_dict(values).k_two_sided(log_std) == pytest.approx(wanted, rel=1e-6)
        values = table().to_dict()
        values["variances"] = [[30.0, 60.0, 90.0]] * 2
        assert Moment.from_dict(values).k_two_sided(log_std) == pytest.approx(30.0)
    assert NEGATIVE.tolist() == [-1.0, -0.5]


def test_no_gamma_up_to_one_leaves_the_other_two() -> None:
    values = table().to_dict()
    values["gammas"] = [2.0, 4.0, 9.0]
    values["variances"], values["negative"] = [[0.0] * 3] * 2, [[[-1.0, -1.0]] * 3] * 2
    assert Moment.from_dict(values).k_two_sided(-3.0) == 0.0


def test_the_error_of_a_subset() -> None:
    assert table().subset_error(-1.2, 1.9) == pytest.approx(0.05 / 1.0 * math.sqrt(0.25))
    assert table().subset_error(-1.2, 2.1) == pytest.approx(0.06 / 4.0 * math.sqrt(0.25))
    assert table().subset_error(-9.0, 0.1) == pytest.approx(0.01 / 0.5 * math.sqrt(0.25))
    values = table().to_dict() | {"n_used": N}
    assert Moment.from_dict(values).subset_error(-1.2, 1.0) == 0.0
    assert Moment.from_dict(values | {"n_used": N + 9}).subset_error(-1.2, 1.0) == 0.0


def test_a_record_and_back() -> None:
    moment = table()
    values = moment.to_dict()
    again = Moment.from_dict(values)
    for name in ("log_stds", "gammas", "log_moments", "means", "variances", "errors", "negative"):
        np.testing.assert_array_equal(getattr(again, name), getattr(moment, name))
        assert getattr(again, name).dtype == np.float64
    assert [getattr(again, name) for name in COUNTS] == [values[name] for name in COUNTS] == [N, 30, 5]
    del values["measured"]
    assert Moment.from_dict(values).measured == 6  # older files: all that the table holds


def test_a_record_of_one_example_is_taken_and_one_of_none_is_not() -> None:
    one = table().to_dict() | {"n": 1, "n_used": 1}
    assert Moment.from_dict(one).n == 1
    with pytest.raises(ValueError, match="0 examples of 1 were used"):
        Moment.from_dict(one | {"n_used": 0})


def test_grids() -> None:
    np.testing.assert_allclose(log_grid(0.5, 8.0, 5), [0.5, 1, 2, 4, 8])
    assert LOG_STD_RANGE == (-6.0, 1.0)


def test_gammas_between() -> None:
    gammas = np.array([0.5, 1.0, 4.0])
    assert gammas_between(gammas, 0.5, 4.0).tolist() == [True] * 3
    assert (
        gammas_between(gammas, 0.5 * (1 + 0.8e-12), 4.0 * (1 - 0.8e-12)).tolist() == [True] * 3
    )  # rounding is forgiven
    assert gammas_between(gammas, 0.5 * (1 + 1.4e-12), 4.0 * (1 - 1.4e-12)).tolist() == [False, True, False]
    assert gammas_between(gammas, 0.6, 3.9).tolist() == [False, True, False]
    ends = np.array([0.5 * (1 - 1e-12), 4.0 * (1 + 1e-12)])
    assert gammas_between(ends, 0.5, 4.0).tolist() == [True, True]
    for low, high in ((5.0, 9.0), (0.1, 0.4), (1.1, 3.9)):
        with pytest.raises(PactrainError, match="no γ"):
            gammas_between(gammas, low, high)

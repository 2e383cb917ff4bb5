"""Shares of a mixture."""

import numpy as np
import pytest
from scipy.optimize import minimize

from trueodds.calibrators.temperature import least_squares_weights, maximum_likelihood_weights


def gave(n, m, seed):
    """What m forecasts gave to n outcomes, and weights."""
    rng = np.random.default_rng(seed)
    return rng.random((n, m)) ** 2, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("seed", range(12))
def test_no_forecast_gains_where_the_likelihood_is_largest(seed):
    # The conditions of Karush, Kuhn and Tucker: Σ w a/(A v) is Σ w for each forecast in use, and less for the others.
    A, w = gave(60, 3, seed)
    A[:, seed % 3] *= 1.5
    v = maximum_likelihood_weights(A, w)
    gains = (w / (A @ v)) @ A / w.sum() - 1
    assert v.sum() == pytest.approx(1)
    assert (v >= 0).all()
    assert gains.max() <= 1e-8
    assert gains[v > 0] == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_squares_are_least_by_another_program_too(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 3))
    G, c = X.T @ X, X.T @ rng.normal(size=5)
    v = least_squares_weights(G, c)
    solution = minimize(
        lambda u: u @ G @ u - 2 * c @ u,
        np.full(3, 1 / 3),
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1},
        options={"ftol": 1e-14},
    ).x
    assert v.sum() == pytest.approx(1)
    assert v @ G @ v - 2 * c @ v <= solution @ G @ solution - 2 * c @ solution + 1e-10
    assert v == pytest.approx(
        solution, abs=1e-5
    )  # it compares values, which resolves the square root of their rounding


def test_by_hand():
    # The first gave .9, .9, .1, the second .5 throughout. With the share v of the first the likelihood is
    # 2 log(.5 + .4 v) + log(.5 − .4 v): .8/(.5 + .4 v) = .4/(.5 − .4 v), so 1.2 v = .5.
    assert maximum_likelihood_weights(np.array([[0.9, 0.5], [0.9, 0.5], [0.1, 0.5]]), np.ones(3)) == pytest.approx(
        [5 / 12, 7 / 12]
    )
    # |v − (.7, .5)|² on v₁ + v₂ = 1: .1 less of each.
    assert least_squares_weights(np.eye(2), np.array([0.7, 0.5])) == pytest.approx([0.6, 0.4])


def test_of_equal_forecasts_the_first_is_used():
    A, w = gave(30, 1, 0)
    assert maximum_likelihood_weights(np.repeat(A, 3, axis=1), w).tolist() == [1.0, 0.0, 0.0]
    assert least_squares_weights(np.ones((3, 3)), np.ones(3)).tolist() == [1.0, 0.0, 0.0]


def test_one_that_gave_an_outcome_nothing_needs_another_beside_it():
    A = np.array([[1.0, 0.5]] * 99 + [[0.0, 0.5]])
    # 99 log(1 − v/2) + log(v/2): v = 2/100
    assert maximum_likelihood_weights(A, np.ones(100)) == pytest.approx([0.98, 0.02])


def test_rows_without_weight_do_not_count():
    A, w = gave(30, 3, 3)
    w[::3] = 0
    assert maximum_likelihood_weights(A, w).tolist() == maximum_likelihood_weights(A[w > 0], w[w > 0]).tolist()

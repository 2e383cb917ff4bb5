"""Sums of a binary logistic model, and the coefficients that fit best."""

import numpy as np
import pytest
from scipy.optimize import minimize

from trueodds.calibrators._glm import logistic_regression
from trueodds.calibrators._glm.fit_data import InMemory
from trueodds.calibrators._glm.log_probabilities import log_ratio
from trueodds.calibrators._glm.logistic_regression import (
    LogisticRows,
    fit_finite_from_sums,
    fit_logistic,
    intercept_and_score,
    logistic_likelihood,
    separation_note,
    smoothed_targets,
)

FLAT = np.zeros(2)


def rows(n=60, m=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, m)), rng.random(n), rng.random(n), rng.normal(size=m) / 2, rng.normal(size=n)


def test_one_row_by_hand():
    # η = ln 3: q = 3/4. F = −ln(1/4) for y = 0; gradient w(q − y)x = 2·3/4·(1, 5); curvature 2·3/16·xxᵀ.
    one = logistic_likelihood(np.array([[1.0, 5.0]]), np.zeros(1), np.array([2.0]), np.array([np.log(3), 0.0]))
    assert one.value == pytest.approx(-2 * np.log(0.25))
    assert one.gradient == pytest.approx([1.5, 7.5])
    assert one.hessian == pytest.approx(0.375 * np.array([[1.0, 5.0], [5.0, 25.0]]))
    assert (one.n, one.weight) == (1, 2.0)


def test_the_derivatives_are_those_of_the_value():
    X, y, w, theta, offset = rows()
    at = logistic_likelihood(X, y, w, theta, offset)
    h = 1e-5  # central differences: error about h² = 1e-10 times third derivatives, and eps/h = 1e-11 of rounding
    for j in range(3):
        step = h * np.eye(3)[j]
        up, down = (
            logistic_likelihood(X, y, w, theta + step, offset),
            logistic_likelihood(X, y, w, theta - step, offset),
        )
        assert at.gradient[j] == pytest.approx((up.value - down.value) / (2 * h), abs=1e-7)
        assert at.hessian[j] == pytest.approx((up.gradient - down.gradient) / (2 * h), abs=1e-7)


def test_blocks_and_parts_add_up_to_the_whole(monkeypatch):
    X, y, w, theta, offset = rows()
    direct = logistic_likelihood(X, y, w, theta, offset)
    parts = [
        logistic_likelihood(X[r], y[r], w[r], theta, offset[r]) for r in (slice(0, 7), slice(7, 30), slice(30, None))
    ]
    monkeypatch.setattr(logistic_regression, "_ROWS_PER_BLOCK", 13)
    for other in (parts[0] + (parts[1] + parts[2]), logistic_likelihood(X, y, w, theta, offset)):
        assert other.value == pytest.approx(direct.value, rel=1e-13)
        assert other.gradient == pytest.approx(direct.gradient, abs=1e-12)
        assert other.hessian == pytest.approx(direct.hessian, abs=1e-12)


def test_a_slope_far_from_the_outcome_keeps_its_digits():
    # q − y = −1/(1 + e^40) for y = 1 at η = 40: the difference 1 − q would be 0.
    at = logistic_likelihood(np.ones((1, 1)), np.ones(1), np.ones(1), np.array([40.0]))
    assert at.gradient[0] == pytest.approx(-np.exp(-40), rel=1e-12)
    assert at.value == pytest.approx(np.exp(-40), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_an_independent_minimizer_finds_nothing_better(seed):
    X, y, w, _, _ = rows(seed=seed)
    X[:, 0] = 1.0
    solution = fit_logistic(X, y, w, np.zeros(3))
    assert solution.converged
    assert solution.rank == 3
    assert np.abs(logistic_likelihood(X, y, w, solution.theta).gradient).max() <= 1e-8 * w.sum()
    other = minimize(
        lambda t: logistic_likelihood(X, y, w, t).value,
        np.zeros(3),
        jac=lambda t: logistic_likelihood(X, y, w, t).gradient,
    )
    assert solution.value <= other.fun + 1e-10


def test_scores_far_from_zero_and_close_together_are_no_worse():
    # The same scores as x and as 50 + x/1000: the fitted probabilities are the same.
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    y, w = (rng.random(400) < 1 / (1 + np.exp(-x))).astype(float), np.ones(400)
    plain, moved = (
        fit_logistic(intercept_and_score(x), y, w, FLAT),
        fit_logistic(intercept_and_score(50 + x / 1000), y, w, FLAT),
    )
    assert moved.converged
    assert intercept_and_score(50 + x / 1000) @ moved.theta == pytest.approx(
        intercept_and_score(x) @ plain.theta, abs=1e-7
    )


def test_what_the_rows_do_not_tell_stays_as_it_was():
    # All scores 2, three of four came: log odds ln 3 = τ + 2γ, and γ stays 1.
    solution = fit_logistic(
        intercept_and_score(np.full(4, 2.0)), np.array([1.0, 1, 1, 0]), np.ones(4), np.array([0.0, 1.0])
    )
    assert solution.theta == pytest.approx([np.log(3) - 2, 1.0])
    assert (solution.rank, solution.converged) == (1, True)


def test_columns_of_zeros_tell_nothing():
    solution = fit_logistic(np.zeros((3, 1)), np.ones(3), np.ones(3), np.ones(1), intercept=False)
    assert (solution.theta.tolist(), solution.rank, solution.converged) == ([1.0], 0, True)
    assert solution.value == pytest.approx(3 * np.log(2))


def test_held_shares_by_hand():
    # Two came of three: (2 + 1)/(2 + 2) and 1/(1 + 2). A share of a half gets the mean of both.
    assert smoothed_targets(np.array([1.0, 1.0, 0.0]), np.ones(3)) == pytest.approx([0.75, 0.75, 1 / 3])
    assert smoothed_targets(np.array([0.5]), np.ones(1)) == pytest.approx([0.5 * 1.5 / 2.5 + 0.5 / 2.5])


def test_separated_rows_get_held_shares_and_say_so():
    X, y, w = intercept_and_score(np.array([-1.0, -1, 1, 1])), np.array([0.0, 0, 1, 1]), np.ones(4)
    assert not fit_logistic(X, y, w, FLAT).converged
    solution = fit_finite_from_sums(InMemory(LogisticRows(X, y, w)), FLAT)
    assert not solution.converged
    assert solution.theta == pytest.approx([0.0, np.log(3)], abs=1e-9)  # 3/4 at 1, 1/4 at −1
    assert solution.theta == pytest.approx(fit_logistic(X, y, w, FLAT, smooth=True).theta, abs=1e-12)
    assert separation_note(3).code == "TN515"
    assert "in 3 curves" in separation_note(3).text
    assert "curve" not in separation_note().text


@pytest.mark.slow
def test_a_million_separated_rows_still_have_a_tame_fit():
    # Two scores: 1/(N₀ + 2) at one, (N₁ + 1)/(N₁ + 2) at the other, exactly.
    X, y = intercept_and_score(np.repeat([-1.0, 1.0], 500_000)), np.repeat([0.0, 1.0], 500_000)
    solution = fit_logistic(X, y, np.ones(10**6), FLAT, smooth=True)
    assert solution.converged
    assert solution.theta == pytest.approx([0.0, np.log(500_001)], rel=1e-5, abs=1e-9)


def test_the_log_ratio_keeps_small_probabilities():
    P = np.array([[1.0, 1e-20], [0.25, 0.75], [0.0, 1.0]])
    assert log_ratio(P, 1e-30) == pytest.approx([np.log(1e-20), np.log(3), -np.log(1e-30)])

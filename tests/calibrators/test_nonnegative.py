"""Projected Newton steps: the lowest place without negative entries."""

from itertools import combinations

import numpy as np
import pytest

from trueodds.calibrators.prior_shift import GRADIENT_TOLERANCE, minimize_nonnegative


def least_squares(A, b, start=None, **settings):
    """The x ≥ 0 of least |Ax − b|²/2."""
    H, c = A.T @ A, A.T @ b
    start = np.ones(A.shape[1]) if start is None else start
    return minimize_nonnegative(lambda x: x @ H @ x / 2 - c @ x, lambda x: (H @ x - c, H), start, **settings)


def by_active_sets(A, b):
    """The least squares of every set of columns, and of these the least without a negative coefficient."""
    smallest = b @ b
    for size in range(1, A.shape[1] + 1):
        for columns in map(list, combinations(range(A.shape[1]), size)):
            x = np.linalg.lstsq(A[:, columns], b, rcond=None)[0]
            if (x >= 0).all():
                smallest = min(smallest, np.square(A[:, columns] @ x - b).sum())
    return smallest


@pytest.mark.parametrize("seed", range(40))
def test_squares_are_least_by_every_set_of_columns(seed):
    # Small whole numbers: columns that are equal or depend on each other are frequent.
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 6, 2)
    for _ in range(20):
        A, b = rng.integers(-1, 3, (rows, columns)).astype(float), rng.integers(-2, 4, rows).astype(float)
        solution = least_squares(A, b)
        assert solution.converged
        assert solution.x.min() >= 0
        assert np.square(A @ solution.x - b).sum() == pytest.approx(by_active_sets(A, b), abs=1e-9)


def test_the_start_does_not_matter_where_one_place_is_lowest():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(8, 5)), rng.normal(size=8)
    one = least_squares(A, b)
    for _ in range(10):
        other = least_squares(A, b, 10 ** rng.uniform(-6, 3, 5))
        assert other.x == pytest.approx(one.x, abs=1e-9)
    assert (one.x == 0).any()
    assert (one.x > 0).any()


def test_a_direction_without_curvature_is_left_alone_unless_the_function_falls_along_it():
    # (x₀ + x₁ − 1)²/2: started at the same place, both grow alike. With x₀/10 added, x₀ goes to 0 and x₁ to 1.
    H, start = np.ones((2, 2)), np.full(2, 0.1)
    flat = minimize_nonnegative(lambda x: (x.sum() - 1) ** 2 / 2, lambda x: (H @ x - 1, H), start)
    assert flat.x == pytest.approx([0.5, 0.5], abs=1e-9)
    tilt = np.array([0.1, 0.0])
    tilted = minimize_nonnegative(lambda x: (x.sum() - 1) ** 2 / 2 + tilt @ x, lambda x: (H @ x - 1 + tilt, H), start)
    assert tilted.converged
    assert tilted.x == pytest.approx([0.0, 1.0], abs=1e-9)


def test_steps_over_the_edge_of_the_domain_are_halved():
    # x − log(x − 2) + ..., only finite above 2: lowest at 3.
    def value(x):
        return float(x[0] - np.log(x[0] - 2)) if x[0] > 2 else np.inf

    def derivatives(x):
        return 1 - 1 / (x - 2), np.array([[1 / (x[0] - 2) ** 2]])

    solution = minimize_nonnegative(value, derivatives, np.array([50.0]))
    assert solution.converged
    assert solution.x == pytest.approx([3.0], abs=1e-9)


def test_it_stops_after_as_many_evaluations_as_it_may_take_and_says_so():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(8, 5)), rng.normal(size=8)
    assert not least_squares(A, b, max_evaluations=2).converged
    solution = least_squares(A, b)
    gradient = A.T @ (A @ solution.x - b)
    assert gradient.min() >= -GRADIENT_TOLERANCE
    assert np.abs(solution.x * gradient).max() <= GRADIENT_TOLERANCE

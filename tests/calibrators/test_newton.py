"""Newton's method, and descent where there are too many parameters for it."""

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions, one_hot
from trueodds.calibrators._glm.newton import GRADIENT_TOLERANCE, Ridge, minimize_lbfgs, minimize_newton
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class, softmax_linear


def quadratic(H, c):
    """The sums of (θ − c)ᵀH(θ − c)/2."""
    return lambda t: Likelihood(float((t - c) @ H @ (t - c)) / 2, H @ (t - c), H, 1.0, 1)


def test_a_full_penalty_with_its_center():
    # (θ − c)ᵀH(θ − c)/2 + (θ − m)ᵀA(θ − m): (H + 2A)θ = Hc + 2Am.
    H, A = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[1.0, -0.5], [-0.5, 1.0]])
    c, m = np.array([1.0, -2.0]), np.array([0.5, 4.0])
    solution = minimize_newton(quadratic(H, c), np.zeros(2), Ridge(A, m))
    assert solution.converged
    assert solution.theta == pytest.approx(np.linalg.solve(H + 2 * A, H @ c + 2 * A @ m), abs=1e-12)
    diagonal, full = (minimize_newton(quadratic(H, c), np.zeros(2), Ridge(B, m)) for B in (np.ones(2), np.eye(2)))
    assert diagonal.theta == pytest.approx(full.theta, abs=1e-14)


def test_directions_without_curvature_are_left_where_they_started():
    H = np.outer([1.0, 1.0], [1.0, 1.0])
    solution = minimize_newton(quadratic(H, np.array([3.0, 1.0])), np.array([1.0, 0.0]))
    assert solution.converged
    assert solution.theta == pytest.approx([2.5, 1.5], abs=1e-9)  # the sum is 4, the difference that of the start


def test_parameters_of_very_different_curvature_are_no_flat_directions():
    H = np.diag([1e8, 1.0, 1e-8])
    solution = minimize_newton(lambda t: quadratic(H, np.array([1.0, 2.0, 3.0]))(t), np.zeros(3))
    assert solution.converged
    assert solution.theta == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)


def test_a_rare_class_is_no_class_that_never_occurred():
    # A bias for two classes: log(w₁/w₀), however small w₁ is.
    X, Y = np.array([[[0.0], [1.0]]] * 2), one_hot([0, 1])
    rare = minimize_newton(lambda t: softmax_linear(X, Y, np.array([1e5, 1.0]), t), np.zeros(1))
    assert rare.converged
    assert rare.theta[0] == pytest.approx(-np.log(1e5), rel=1e-4)
    never = minimize_newton(lambda t: softmax_linear(X[:1], Y[:1], np.array([1e5]), t), np.zeros(1))
    assert not never.converged
    assert np.isfinite(never.theta[0])


def test_what_is_left_to_gain_at_infinity_is_as_stated():
    X, Y, w = np.array([[[0.0], [1.0]]] * 4), one_hot([1, 1, 1, 1]), np.ones(4)
    for nothing in (1e-2, 1e-4, 1e-6):
        solution = minimize_newton(lambda t: softmax_linear(X, Y, w, t), np.zeros(1), min_gain=nothing)
        assert not solution.converged
        # The least value is 0. The step promised less than `nothing`, and the next ones are e times shorter each.
        assert nothing / 100 < solution.likelihood.value < nothing


def many():
    """Rows, and a penalty on the parameters of a matrix."""
    P, y = draw_predictions(400, 4, 1.6, 0)
    L, Y, w = np.asfortranarray(np.log(P)), one_hot(y, 4), np.ones(400)
    return (lambda theta, curved: softmax_by_class(L, Y, w, theta, with_hessian=curved)), Ridge(
        np.full(20, 1e-3), np.eye(4, 5).ravel()
    )


def test_descent_ends_where_newton_does():
    sums, ridge = many()
    one = minimize_newton(lambda t: sums(t, True), ridge.center, ridge)
    for curvature in (np.ones(20), np.tile([100.0, 100.0, 100.0, 100.0, 1.0], 4)):
        other = minimize_lbfgs(lambda t: sums(t, False), ridge.center, ridge, curvature)
        assert other.converged
        assert other.max_gradient <= GRADIENT_TOLERANCE
        assert other.theta == pytest.approx(one.theta, abs=1e-7)


def test_descent_counts_every_look_at_the_rows():
    sums, ridge = many()
    looks = []
    solution = minimize_lbfgs(lambda t: looks.append(1) or sums(t, False), ridge.center, ridge, np.ones(20))
    assert solution.n_passes == len(looks)

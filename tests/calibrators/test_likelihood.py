"""Sums of a softmax likelihood."""

import numpy as np
import pytest

from trueodds.tallies import softmax_likelihood
from trueodds.tallies.softmax_likelihood import softmax_linear


def model(n=50, k=3, m=4, seed=0):
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(n, k, m)), rng.normal(size=(n, k))
    return X, rng.dirichlet(np.ones(k), n), rng.random(n), rng.normal(size=m) / 2, offset


def test_one_row_by_hand():
    # eta = (ln 3, 0): q = (3/4, 1/4). F = -ln(3/4); x = (1, 0): gradient = 3/4 - 1; Hessian = 3/4 · 1/4.
    one = softmax_linear(np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.0]]), np.ones(1), np.array([np.log(3)]))
    assert one.value == pytest.approx(-np.log(0.75))
    assert one.gradient == pytest.approx([-0.25])
    assert one.hessian == pytest.approx(np.array([[0.1875]]))


@pytest.mark.parametrize("m", [1, 4])
def test_the_derivatives_are_those_of_the_value(m):
    X, Y, w, theta, offset = model(m=m)
    at = softmax_linear(X, Y, w, theta, offset)
    h = 1e-5  # central differences: error about h² = 1e-10 times third derivatives, and eps/h = 1e-11 of rounding
    for j in range(m):
        step = h * np.eye(m)[j]
        up, down = softmax_linear(X, Y, w, theta + step, offset), softmax_linear(X, Y, w, theta - step, offset)
        assert at.gradient[j] == pytest.approx((up.value - down.value) / (2 * h), abs=1e-7)
        assert at.hessian[j] == pytest.approx((up.gradient - down.gradient) / (2 * h), abs=1e-7)


def test_one_parameter_agrees_with_the_general_path():
    X, Y, w, theta, offset = model(m=1)
    plain = softmax_linear(X, Y, w, theta, offset)
    # A second column of zeros takes the general path and adds nothing.
    wide = softmax_linear(np.concatenate([X, 0 * X], axis=2), Y, w, np.append(theta, 0.7), offset)
    assert plain.value == pytest.approx(wide.value, rel=1e-13)
    assert plain.gradient[0] == pytest.approx(wide.gradient[0], rel=1e-12)
    assert plain.hessian[0, 0] == pytest.approx(wide.hessian[0, 0], rel=1e-12)


def test_parts_add_up_to_the_whole(monkeypatch):
    X, Y, w, theta, offset = model()
    direct = softmax_linear(X, Y, w, theta, offset)
    parts = [softmax_linear(X[r], Y[r], w[r], theta, offset[r]) for r in (slice(0, 7), slice(7, 30), slice(30, None))]
    total = parts[0] + (parts[1] + parts[2])
    monkeypatch.setattr(softmax_likelihood, "_PROBABILITIES_PER_BLOCK", 40)  # several blocks inside one call
    for other in (total, softmax_linear(X, Y, w, theta, offset)):
        assert (other.n, other.weight) == (direct.n, pytest.approx(direct.weight))
        assert other.value == pytest.approx(direct.value, rel=1e-13)
        assert other.gradient == pytest.approx(direct.gradient, abs=1e-12)
        assert other.hessian == pytest.approx(direct.hessian, abs=1e-12)

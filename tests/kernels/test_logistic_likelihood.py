"""Loops of a softmax with parameters by class, against plain ones."""

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import logistic_likelihood
from trueodds.kernels.linear_algebra import add_scaled, add_scaled_rows, cross_product, dot, pair_products
from trueodds.kernels.logistic_likelihood import N_SUMS, likelihood_sums, spline_likelihood


def model(n=40, k=4, d=2, *, shared=False, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, d) if shared else (n, k, d))
    Y, w, theta, offset = (
        rng.dirichlet(np.ones(k), n),
        rng.random(n),
        rng.normal(size=(k, d + 1)),
        rng.normal(size=(n, k)),
    )
    return F, Y, w, theta, offset


def plainly(F, Y, w, theta, offset):
    """Row by row, as the formula has it: value, gradient, and the Hessian as one matrix."""
    n, k = Y.shape
    value, gradient, hessian = 0.0, np.zeros(theta.shape), np.zeros((*theta.shape, *theta.shape))
    for i in range(n):
        f = [np.append(F[i] if F.ndim == 2 else F[i, c], 1.0) for c in range(k)]
        eta = np.array([theta[c] @ f[c] for c in range(k)]) + offset[i]
        q = np.exp(eta) / np.exp(eta).sum()
        value -= w[i] * Y[i] @ np.log(q)
        for c in range(k):
            gradient[c] += w[i] * (q[c] - Y[i, c]) * f[c]
            for b in range(k):
                hessian[c, :, b, :] += w[i] * (q[c] * (b == c) - q[c] * q[b]) * np.outer(f[c], f[b])
    return value, gradient, hessian


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("n", "k", "d"), [(1, 2, 1), (40, 4, 2), (70, 3, 5), (33, 6, 1)])
def test_a_plain_loop_finds_the_same(shared, n, k, d, monkeypatch):
    monkeypatch.setattr(logistic_likelihood, "_MIN_ROWS_PER_TILE", 16)
    monkeypatch.setattr(logistic_likelihood, "_VALUES_PER_TILE", 16)  # several tiles, the last one shorter
    F, Y, w, theta, offset = model(n, k, d, shared=shared)
    value, gradient, own, across = likelihood_sums(F, Y, w, theta, offset, True)
    want = plainly(F, Y, w, theta, offset)
    assert value[0] == pytest.approx(want[0], rel=1e-12)
    assert gradient == pytest.approx(want[1], abs=1e-12)
    if shared:
        (first, second), (row, column) = np.triu_indices(k, 1), np.triu_indices(d + 1)
        blocks = want[2].transpose(0, 2, 1, 3)[first, second]
        assert -across == pytest.approx(blocks[:, row, column], abs=1e-12)
        return
    assert own == pytest.approx(np.array([want[2][c, :, c, :] for c in range(k)]), abs=1e-12)
    mask = np.kron(~np.eye(k, dtype=bool), np.ones((d + 1, d + 1), dtype=bool))
    actual, full = np.triu(-across)[mask], np.triu(want[2].reshape(len(across), -1))[mask]
    assert actual == pytest.approx(full, abs=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_without_the_hessian_the_rest_is_the_same(shared):
    inputs = model(shared=shared)
    value, gradient, own, across = likelihood_sums(*inputs, False)
    want = likelihood_sums(*inputs, True)
    assert value[0] == pytest.approx(want[0][0], rel=1e-14)
    assert gradient == pytest.approx(want[1], rel=1e-13)
    assert own.size == across.size == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_input_is_irrelevant(layout):
    F, Y, w, theta, offset = model(shared=True)
    want = likelihood_sums(F, Y, w, theta, offset, True)
    results = likelihood_sums(layout(F), layout(Y), layout(w), layout(theta), layout(offset), True)
    assert all((a == b).all() for a, b in zip(results, want, strict=True))


def test_no_sum_depends_on_the_number_of_threads(monkeypatch):
    F, Y, w, theta, _ = model(9000, 5, 1)
    results = []
    for threads in ("1", "4"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(likelihood_sums(F, Y, w, theta, None, True))
    assert all((a == b).all() for a, b in zip(*results, strict=True))


def test_what_is_left_of_a_certain_row_keeps_its_digits():
    # η = (40, 0): q of the other class is e⁻⁴⁰/(1 + e⁻⁴⁰) = 4.2e-18, below what 1 − q can hold.
    F, theta = np.array([[[40.0], [0.0]]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    value, gradient, own, _ = likelihood_sums(F, np.array([[1.0, 0.0]]), np.ones(1), theta, None, True)
    left = np.exp(-40.0)
    assert value[0] == pytest.approx(left, rel=1e-12)
    assert gradient[:, 1] == pytest.approx([-left, left], rel=1e-12)
    assert own[0, 0, 0] == pytest.approx(1600 * left, rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (4, 8), (5, 3), (7, 9), (3, 2)])
def test_products_are_those_of_matrices(a, b):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(a, 37)), rng.normal(size=(b, 37))
    out = np.ones((a, b))
    cross_product(X, Y, False, out)
    assert out == pytest.approx(1 + X @ Y.T, rel=1e-12)
    square = np.zeros((a, a))
    cross_product(X, X, True, square)
    assert np.triu(square) == pytest.approx(np.triu(X @ X.T), rel=1e-12)
    weights, line = rng.normal(size=a), np.ones(30)
    add_scaled_rows(weights, X, 7, line)
    assert line == pytest.approx(1 + weights @ X[:, 7:], rel=1e-12)
    add_scaled(line, 2.0, np.ones(30))
    assert line == pytest.approx(3 + weights @ X[:, 7:], rel=1e-12)
    assert dot(X[0], Y[0]) == pytest.approx(X[0] @ Y[0], rel=1e-12)


@pytest.mark.parametrize("above", [0, 1])
def test_pairs_are_all_products_of_rows(above):
    X = np.random.default_rng(1).normal(size=(4, 6))
    first, second = np.triu_indices(4, above)
    out = np.empty((len(first), 6))
    pair_products(X, above, out)
    assert (out == X[first] * X[second]).all()


def pieces(x, knots):
    """The interval of one score, and what the values and second derivatives on both sides count for in the curve."""
    j = min(max(int(np.searchsorted(knots, x)) - 1, 0), len(knots) - 2)
    h = knots[j + 1] - knots[j]
    b = (x - knots[j]) / h
    a = 1 - b
    c, d = ((max(v, 0.0) ** 3 - v) * h * h / 6 for v in (a, b))
    return j, np.array([a, b, c, d])


def by_loop(x, events, nonevents, knots, f, curvature):
    out = np.zeros((len(knots) - 1, N_SUMS))
    for s, m, n in zip(x, events, nonevents, strict=True):
        j, part = pieces(s, knots)
        eta = part @ [f[j], f[j + 1], curvature[j], curvature[j + 1]]
        q = 1 / (1 + np.exp(-eta))
        out[j, 0] += m * np.log1p(np.exp(-eta)) + n * np.log1p(np.exp(eta))
        out[j, 1:5] += (n * q - m * (1 - q)) * part
        out[j, 5:] += ((m + n) * q * (1 - q) * np.outer(part, part))[np.tril_indices(4)]
    return out


@pytest.mark.parametrize("n", [1, 40, 40_000])
def test_the_sums_are_those_of_a_loop(n):
    rng = np.random.default_rng(n)
    knots = np.array([-2.0, -0.5, 0.1, 3.0])
    x = np.sort(rng.normal(size=n) * 2)  # some beyond the knots
    f, curvature = rng.normal(size=4), np.array([0.0, 0.4, -1.0, 0.0])
    rows = x, rng.random(n), rng.random(n)
    assert spline_likelihood(*rows, knots, f, curvature) == pytest.approx(
        by_loop(*rows, knots, f, curvature), rel=1e-10, abs=1e-12
    )


def test_where_outcomes_are_certain_the_slope_keeps_its_digits():
    # One score that came, η = 40: the slope is −1 / (1 + e⁴⁰), which 1 − q would round to 0.
    sums = spline_likelihood(
        np.zeros(1), np.ones(1), np.zeros(1), np.array([0.0, 1.0]), np.array([40.0, 41.0]), np.zeros(2)
    )
    assert sums[0, 1] == pytest.approx(-1 / (1 + np.exp(40)), rel=1e-12)

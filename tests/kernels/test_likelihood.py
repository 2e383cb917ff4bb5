"""Are the sums of softmax and logistic likelihoods those of plain loops, and their derivatives derivatives?"""

import math

import numpy as np
import pytest

from tests.kernels.layouts import LAYOUTS
from trueodds.kernels import likelihood
from trueodds.kernels.likelihood import (
    N_SPLINE_SUMS,
    exp2,
    likelihood_by_class,
    linear_log_loss,
    log2,
    spline_likelihood,
    temper_probabilities,
    tempered_log_loss,
)

MIN_PROB = 1e-6


def data(n, k, seed=0):
    """Probabilities with zeros, ones and ties among them, shares, class numbers, weights with zeros among them."""
    rng = np.random.default_rng([seed, n, k])
    P = rng.dirichlet(np.full(k, 0.4), n)
    P[: n // 4] = np.eye(k)[rng.integers(0, k, n // 4)]
    P[n // 4 : n // 3] = 1 / k
    return P, rng.dirichlet(np.ones(k), n), rng.integers(0, k, n), rng.integers(0, 3, n) / 2


def looped(x, shares, w, theta, offset=None):
    """−log-likelihood and derivatives of one softmax after the other, from central moments."""
    sums = [0.0] * 7
    for i in range(len(x)):
        eta = [theta * score + (0.0 if offset is None else offset[i][c]) for c, score in enumerate(x[i])]
        top = max(eta)
        q = [math.exp(value - top) for value in eta]
        total = math.fsum(q)
        q = [value / total for value in q]
        mean = math.fsum(a * b for a, b in zip(q, x[i], strict=True))
        m = [math.fsum(a * (b - mean) ** j for a, b in zip(q, x[i], strict=True)) for j in range(7)]
        observed = math.fsum(a * b for a, b in zip(shares[i], x[i], strict=True))
        exponent = math.fsum(a * b for a, b in zip(shares[i], eta, strict=True))
        terms = (
            math.log(total) + top - exponent,
            mean - observed,
            m[2],
            m[3],
            m[4] - 3 * m[2] ** 2,
            m[5] - 10 * m[3] * m[2],
            m[6] - 15 * m[4] * m[2] - 10 * m[3] ** 2 + 30 * m[2] ** 3,
        )
        sums = [a + w[i] * b for a, b in zip(sums, terms, strict=True)]
    return sums


def relative_logs(P):
    logs = np.log(np.maximum(P.astype(np.float64), MIN_PROB))
    return (logs - logs.max(axis=1, keepdims=True)).tolist()


def assert_close(actual, expected, x):
    # The j-th sum consists of terms as large as the j-th power of a log; rounding leaves 1e-13 of them.
    size = max((abs(value) for row in x for value in row), default=0.0) + 1
    for j, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert one == pytest.approx(other, rel=1e-11, abs=1e-13 * len(x) * size**j)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 2), (1, 5), (40, 2), (30, 3), (12, 9), (3, 130)])
def test_tempered_sums_are_those_of_a_loop(n, k, dtype, layout):
    P, Y, y, w = data(n, k)
    P = P.astype(dtype)
    x = relative_logs(P)
    for beta in (0.3, 1.0, 4.0):
        for outcomes, shares in ((Y, Y), (y, np.eye(k)[y])):
            sums = tempered_log_loss(layout(P), layout(outcomes), layout(w), beta, MIN_PROB)
            assert_close(sums, looped(x, shares.tolist(), w.tolist(), beta), x)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 2), (40, 2), (12, 9), (3, 130)])
def test_linear_sums_are_those_of_a_loop(n, k, dtype, layout):
    _, Y, y, w = data(n, k)
    rng = np.random.default_rng(1)
    X, offset = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(n, k)).astype(dtype)
    x = X.astype(float).tolist()
    for theta in (-1.5, 0.0, 2.0):
        for outcomes, shares in ((Y, Y), (y, np.eye(k)[y])):
            assert_close(
                linear_log_loss(layout(X), layout(outcomes), w, theta), looped(x, shares.tolist(), w.tolist(), theta), x
            )
        expected = looped(x, Y.tolist(), w.tolist(), theta, offset.astype(float).tolist())
        assert_close(linear_log_loss(layout(X), Y, w, theta, layout(offset)), expected, x)


def test_outcomes_that_are_nothing_leave_the_model_alone():
    # Shares of zeros: the sums of log Σexp.
    P, Y, _, w = data(20, 3)
    x = relative_logs(P)
    assert_close(tempered_log_loss(P, 0 * Y, w, 1.0, MIN_PROB), looped(x, (0 * Y).tolist(), w.tolist(), 1.0), x)


@pytest.mark.parametrize("n", [2047, 2048, 2049, 4097])
def test_tiles_are_put_together(n):
    P, _, y, w = data(n, 2)
    direct = tempered_log_loss(P, y, w, 0.7, MIN_PROB)
    parts = [tempered_log_loss(P[a:b], y[a:b], w[a:b], 0.7, MIN_PROB) for a, b in ((0, 1000), (1000, 2048), (2048, n))]
    assert direct == pytest.approx(sum(parts), rel=1e-12)


def test_blocks_are_put_together_whoever_works_on_them(monkeypatch):
    P, _, y, w = data(501, 3)
    direct, rows = tempered_log_loss(P, y, w, 0.7, MIN_PROB), temper_probabilities(P, 0.7)
    monkeypatch.setattr(likelihood, "VALUES_PER_BLOCK", 30)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(tempered_log_loss(P, y, w, 0.7, MIN_PROB))
        assert (temper_probabilities(P, 0.7) == rows).all()
    assert results[0] == pytest.approx(direct, rel=1e-12)
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("every", [2, 7, 64])
def test_a_sample_is_every_so_manieth_row(every):
    P, Y, y, w = data(100, 3)
    for outcomes in (Y, y):
        expected = tempered_log_loss(P[::every], outcomes[::every], w[::every], 0.7, MIN_PROB)
        assert tempered_log_loss(P, outcomes, w, 0.7, MIN_PROB, every) == pytest.approx(expected, rel=1e-13)


def test_each_derivative_is_that_of_the_one_before():
    P, Y, _, w = data(30, 4)
    h = 1e-5  # central differences: about h² = 1e-10 of the third derivative on, and eps/h = 1e-11 of rounding
    up, at, down = (tempered_log_loss(P, Y, w, 0.8 + step, 1e-3) for step in (h, 0.0, -h))
    for j in range(1, 7):
        assert at[j] == pytest.approx((up[j - 1] - down[j - 1]) / (2 * h), rel=1e-6, abs=1e-6 * abs(at).max())


def test_the_row_of_the_largest_is_left_without_slope_to_the_bit():
    # All right: what came has the log 0, and no rounding makes the slope positive.
    P = np.array([[0.7, 0.3], [0.4, 0.6]])
    slope = [tempered_log_loss(P, np.array([0, 1]), np.ones(2), beta, MIN_PROB)[1] for beta in (1.0, 100.0, 1000.0)]
    assert all(value < 0 for value in slope)
    assert (
        tempered_log_loss(np.full((3, 7), 1 / 7), np.array([0, 3, 6]), np.ones(3), 5.0, MIN_PROB)[1:].tolist()
        == [0.0] * 6
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 2), (40, 2), (12, 9), (3, 130)])
def test_powered_rows_are_those_of_a_loop(n, k, dtype, layout):
    P = data(n, k)[0].astype(dtype)
    for beta in (1e-3, 0.5, 1.0, 30.0):
        probs = temper_probabilities(layout(P), beta)
        assert probs.shape == (n, k)
        assert probs.dtype == np.float64
        for row, original in zip(probs.tolist(), P.astype(float).tolist(), strict=True):
            top = max(original)
            raw = [(prob / top) ** beta if prob > 0 else 0.0 for prob in original]
            assert row == pytest.approx([value / math.fsum(raw) for value in raw], rel=1e-12, abs=1e-300)


def test_equal_rows_are_equal_wherever_they_stand():
    P = np.tile(np.random.default_rng(0).dirichlet(np.ones(7)), (1001, 1))
    assert (temper_probabilities(P, 0.37) == temper_probabilities(P[:1], 0.37)).all()


def test_numbers_that_are_hardly_there_keep_their_order():
    assert temper_probabilities(np.array([[1.0, 1e-310, 0.0]]), 0.5)[0, 1:].tolist() == pytest.approx(
        [1e-155, 0.0], rel=2
    )


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
    monkeypatch.setattr(likelihood, "_MIN_ROWS_PER_TILE", 16)
    monkeypatch.setattr(likelihood, "_VALUES_PER_TILE", 16)  # several tiles, the last one shorter
    F, Y, w, theta, offset = model(n, k, d, shared=shared)
    value, gradient, hessian = likelihood_by_class(F, Y, w, theta, offset, True)
    want = plainly(F, Y, w, theta, offset)
    assert value == pytest.approx(want[0], rel=1e-12)
    assert gradient == pytest.approx(want[1].ravel(), abs=1e-12)
    assert hessian == pytest.approx(want[2].reshape(len(gradient), -1), abs=1e-12)


@pytest.mark.parametrize("shared", [False, True])
def test_without_the_hessian_the_rest_is_the_same(shared):
    inputs = model(shared=shared)
    value, gradient, hessian = likelihood_by_class(*inputs, False)
    want = likelihood_by_class(*inputs, True)
    assert value == pytest.approx(want[0], rel=1e-14)
    assert gradient == pytest.approx(want[1], rel=1e-13)
    assert hessian.shape == (0, 0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_input_is_irrelevant(layout):
    F, Y, w, theta, offset = model(shared=True)
    want = likelihood_by_class(F, Y, w, theta, offset, True)
    results = likelihood_by_class(layout(F), layout(Y), layout(w), layout(theta), layout(offset), True)
    assert all(np.array_equal(a, b) for a, b in zip(results, want, strict=True))


def test_no_sum_depends_on_the_number_of_threads(monkeypatch):
    F, Y, w, theta, _ = model(9000, 5, 1)
    results = []
    for threads in ("1", "4"):
        monkeypatch.setenv("TRUEODDS_THREADS", threads)
        results.append(likelihood_by_class(F, Y, w, theta, None, True))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_what_is_left_of_a_certain_row_keeps_its_digits():
    # η = (40, 0): q of the other class is e⁻⁴⁰/(1 + e⁻⁴⁰) = 4.2e-18, below what 1 − q can hold.
    F, theta = np.array([[[40.0], [0.0]]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    value, gradient, hessian = likelihood_by_class(F, np.array([[1.0, 0.0]]), np.ones(1), theta, None, True)
    left = np.exp(-40.0)
    assert value == pytest.approx(left, rel=1e-12)
    assert gradient[1::2] == pytest.approx([-left, left], rel=1e-12)
    assert hessian[0, 0] == pytest.approx(1600 * left, rel=1e-12)


def pieces(x, knots):
    """The interval of one score, and what the values and second derivatives on both sides count for in the curve."""
    j = min(max(int(np.searchsorted(knots, x)) - 1, 0), len(knots) - 2)
    h = knots[j + 1] - knots[j]
    b = (x - knots[j]) / h
    a = 1 - b
    c, d = ((max(v, 0.0) ** 3 - v) * h * h / 6 for v in (a, b))
    return j, np.array([a, b, c, d])


def by_loop(x, events, nonevents, knots, f, curvature):
    out = np.zeros((len(knots) - 1, N_SPLINE_SUMS))
    for s, m, n in zip(x, events, nonevents, strict=True):
        j, part = pieces(s, knots)
        eta = part @ [f[j], f[j + 1], curvature[j], curvature[j + 1]]
        q = 1 / (1 + np.exp(-eta))
        out[j, 0] += m * np.log1p(np.exp(-eta)) + n * np.log1p(np.exp(eta))
        out[j, 1:5] += (n * q - m * (1 - q)) * part
        out[j, 5:] += ((m + n) * q * (1 - q) * np.outer(part, part))[np.tril_indices(4)]
    return out


@pytest.mark.slow
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


def positive_numbers():
    """Of every size, close to 1, at the cut of the mantissa, and whole powers of two."""
    rng = np.random.default_rng(0)
    near = 1 + 1e-6 * rng.normal(size=200)
    cut = np.sqrt([0.5, 2.0, 8.0]) * (1 + 1e-15 * np.arange(-4, 5)[:, None])
    sizes = 10.0 ** rng.uniform(-300, 300, 1000)
    return np.concatenate([sizes, near, cut.ravel(), 2.0 ** np.arange(-1022, 1024, 31.0)]).tolist()


def test_logs_are_those_of_the_library():
    for x in positive_numbers():
        assert log2(x) == pytest.approx(math.log2(x), rel=1e-15)
    assert [log2(x) for x in (0.25, 0.5, 1.0, 2.0)] == [-2.0, -1.0, 0.0, 1.0]


def test_powers_are_those_of_the_library():
    rng = np.random.default_rng(1)
    for y in (-np.concatenate([rng.uniform(0, 1000, 1000), rng.random(500), np.arange(0, 1021, 0.5)])).tolist():
        # Half a rounding unit from the library, some from the polynomial and its product with the power of two.
        assert exp2(y) == pytest.approx(2.0**y, rel=1e-15, abs=0)
    assert [exp2(y) for y in (0.0, -1.0, -2.0, -1020.0)] == [1.0, 0.5, 0.25, 2.0**-1020]


def test_a_power_that_is_no_normal_number_is_zero():
    assert [exp2(y) for y in (-1021.5, -1e300, -np.inf)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 31, 33, 65])
def test_equal_rows_have_equal_powers_wherever_they_stand(n):
    # Equal scores are told by their bits, so the end of a loop may not round otherwise than its middle.
    P = np.tile(np.random.default_rng(0).dirichlet(np.ones(7)), (n, 1))
    assert (temper_probabilities(P, 0.37) == temper_probabilities(P[:1], 0.37)).all()

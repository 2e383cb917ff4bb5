"""Sum the negative log-likelihood of softmax and logistic regression with its derivatives.

- A softmax with one parameter, such as an inverse temperature: class probabilities are proportional to p^β (tempered)
  or to exp(θx) (linear). The logarithm of their normalizing constant is a cumulant generating function: its derivatives
  in the parameter are the cumulants of log p or x under these probabilities. With six derivatives, few passes over the
  rows find the optimum.
- A softmax with parameters by class.
- Logistic regression on a natural cubic spline in the score, which is linear beyond the outer knots. On the interval
  between two knots, it is linear in four numbers: its values and its second derivatives at both knots. So the sums of
  each interval have four parameters.

Logarithms and powers of base 2 are polynomials, which compilers vectorize. NumPy's own are as fast only on processors
with AVX-512; on others they take three times as long, and with them the fit of a temperature.

BLAS is not used, because its own threads would compete with those of `map_blocks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import (
    as_plain_array,
    compile_fused,
    compile_kernel,
    map_blocks,
    sum_blocks,
)

N_DERIVATIVES = 7  # the value and six derivatives
VALUES_PER_BLOCK = 2**18  # number of values per thread task
_LOG_OF_2 = math.log(2)
_SMALLEST_NORMAL = 2.0**-1022  # smallest number of which `log2` computes the logarithm
_LOG_OF_ZERO = -1e300  # base-2 logarithm of an exact zero; its power is 0
_LOGS_PER_TILE = 2**15  # number of logarithms computed at a time, so that they stay in the cache


def tempered_log_loss(P: Array, Y: Array, w: Array, beta: float, min_prob: float, row_step: int = 1) -> Array:
    """Return the negative log-likelihood of rows proportional to max(p, min_prob)^β, and six derivatives in β, (7,).

    Only every `row_step`-th row is used, starting with the first. Logarithms are recomputed in every pass, which takes
    about as long as reading them from memory.
    """
    P, Y, w = P[::row_step], _as_outcomes(Y[::row_step]), _as_float64(w[::row_step])

    def add_rows(rows: slice, out: Array) -> None:
        logs, powers = _logs_and_powers(P[rows], min_prob, beta)
        _add_derivatives(logs, logs, beta * _LOG_OF_2, powers, Y[rows], w[rows], out)

    return _sum_tiles(add_rows, *P.shape) * _LOG_OF_2 ** np.arange(N_DERIVATIVES)  # logs have base 2


def linear_log_loss(X: Array, Y: Array, w: Array, theta: float, offset: Array | None = None) -> Array:
    """Return the negative log-likelihood of rows proportional to exp(o + θx), and six derivatives in θ, (7,)."""
    Y, w = _as_outcomes(Y), _as_float64(w)

    def add_rows(rows: slice, out: Array) -> None:
        x = _as_float64(X[rows])
        eta = theta * x if offset is None else offset[rows] + theta * x
        eta -= eta.max(axis=1, keepdims=True)
        _add_derivatives(x, eta, 1.0, np.exp(eta), Y[rows], w[rows], out)

    return _sum_tiles(add_rows, *X.shape)


def temper_probabilities(P: Array, beta: float) -> Array:
    """Return rows proportional to p^β, normalized to sum 1, (n, K) float64; exact zeros stay zero."""
    out = np.empty(P.shape)

    def temper_rows(start: int, stop: int) -> None:
        for rows in _tiles(start, stop, P.shape[1]):
            _, powers = _logs_and_powers(P[rows], 0.0, beta)
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=out[rows])

    map_blocks(temper_rows, len(P), max(1, VALUES_PER_BLOCK // P.shape[1]))
    return out


def _logs_and_powers(P: Array, min_prob: float, beta: float) -> tuple[Array, Array]:
    """Return log₂(max(p, min_prob)) minus its maximum in the row, and 2 to the power of β times that.

    An exact zero has the power 0.
    """
    logs, powers = np.empty((2, *P.shape))
    _fill_logs(as_plain_array(P).reshape(-1), min_prob, logs.reshape(-1))
    _subtract_and_exponentiate(logs.reshape(-1), logs.max(axis=1), beta, powers.reshape(-1))
    return logs, powers


# Loops along flat arrays, with unsigned indices where they do not start at 0, are vectorized.


@compile_fused
def _fill_logs(p, min_prob, out):  # type: ignore[no-untyped-def]
    for i in range(p.shape[0]):
        clipped = max(np.float64(p[i]), min_prob)
        out[i] = log2(max(clipped, _SMALLEST_NORMAL)) if clipped > 0.0 else _LOG_OF_ZERO


@compile_fused
def _subtract_and_exponentiate(logs, row_max, beta, powers):  # type: ignore[no-untyped-def]
    k = logs.shape[0] // row_max.shape[0]
    for row in range(row_max.shape[0]):
        for i in range(np.uint64(row * k), np.uint64((row + 1) * k)):
            logs[i] -= row_max[row]
    for i in range(logs.shape[0]):
        powers[i] = exp2(beta * logs[i])


def _as_outcomes(Y: Array) -> Array:
    return as_plain_array(Y[:, None].astype(np.int64, copy=False)) if Y.ndim == 1 else _as_float64(Y)


def _as_float64(x: Array) -> Array:
    return as_plain_array(x.astype(np.float64, copy=False))


def _tiles(start: int, stop: int, k: int) -> Iterator[slice]:
    rows_per_tile = max(1, _LOGS_PER_TILE // k)
    for first in range(start, stop, rows_per_tile):
        yield slice(first, min(first + rows_per_tile, stop))


def _sum_tiles(add_rows: Callable[[slice, Array], None], n: int, k: int) -> Array:
    """Return the sums over n rows, (7,), from blocks of rows that are added in a fixed order."""

    def sum_block(start: int, stop: int) -> Array:
        out = np.zeros(N_DERIVATIVES)
        for rows in _tiles(start, stop, k):
            add_rows(rows, out)
        return out

    return np.sum([np.zeros(N_DERIVATIVES), *map_blocks(sum_block, n, max(1, VALUES_PER_BLOCK // k))], axis=0)


@compile_fused
def _add_derivatives(x, eta, eta_scale, e, Y, w, out):  # type: ignore[no-untyped-def]
    """Add the negative log-likelihood of m rows and its six derivatives to `out` (7,).

    e (m, K) are the class probabilities of each row up to a factor, exp(eta_scale · η), and x the values whose
    cumulants are the derivatives. Y are (m, K) shares or (m, 1) class numbers.
    """
    k = x.shape[1]
    for i in range(x.shape[0]):
        total = weighted_sum = 0.0
        for c in range(k):
            total += e[i, c]
            weighted_sum += e[i, c] * x[i, c]
        mean = weighted_sum / total
        second = third = fourth = fifth = sixth = 0.0  # central moments
        for c in range(k):
            deviation = x[i, c] - mean
            square = deviation * deviation
            cube = square * deviation
            weighted_square = e[i, c] * square
            second += weighted_square
            third += e[i, c] * cube
            fourth += weighted_square * square
            fifth += weighted_square * cube
            sixth += e[i, c] * cube * cube
        second, third, fourth, fifth, sixth = (
            second / total,
            third / total,
            fourth / total,
            fifth / total,
            sixth / total,
        )
        observed_x = observed_eta = 0.0
        if Y.shape[1] < k:
            observed_x, observed_eta = x[i, np.int64(Y[i, 0])], eta[i, np.int64(Y[i, 0])]
        else:
            for c in range(k):
                observed_x += Y[i, c] * x[i, c]
                observed_eta += Y[i, c] * eta[i, c]
        out[0] += w[i] * (np.log(total) - eta_scale * observed_eta)
        out[1] += w[i] * (mean - observed_x)
        out[2] += w[i] * second
        out[3] += w[i] * third
        out[4] += w[i] * (fourth - 3.0 * second * second)
        out[5] += w[i] * (fifth - 10.0 * third * second)
        out[6] += w[i] * (sixth - 15.0 * fourth * second - 10.0 * third * third + 30.0 * second * second * second)


# In the kernels below, η is the linear predictor, q = softmax(η) are the fitted probabilities and Y the outcome shares.
# Tiles of m rows are stored class by class, (K, m): inner loops run along the rows and are vectorized for any K.

_VALUES_PER_TILE = 2**16  # number of values per tile of rows, so that its arrays stay in the core's own cache
_MIN_ROWS_PER_TILE = 512  # minimum number of rows per tile, so that dot products of its columns are long sums
_PROBABILITIES_PER_TASK = 2**15  # minimum number of probabilities per thread task


def likelihood_by_class(
    F: Array, Y: Array, w: Array, theta: Array, offset: Array | None, with_hessian: bool
) -> tuple[float, Array, Array]:
    """Return the negative log-likelihood, its gradient (K·d,), and its Hessian (K·d, K·d).

    F (n, K, d − 1) are features by class, or (n, d − 1) shared by the classes; Y (n, K) outcome shares, w (n,) weights,
    and theta (K, d) coefficients, with the intercept last. The linear predictor includes the offset (n, K). Without
    `with_hessian` the Hessian is (0, 0).
    """
    (n, k), d, is_shared = Y.shape, theta.shape[1], F.ndim == 2
    if not with_hessian:
        shapes = [(0, d, d), (0, 0)]
    elif is_shared:  # Σ q_k q_l f_a f_b is symmetric in the classes and in the features
        shapes = [(0, d, d), (k * (k - 1) // 2, d * (d + 1) // 2)]
    else:
        shapes = [(k, d, d), (k * d, k * d)]
    ends = np.cumsum([1, k * d, *(math.prod(shape) for shape in shapes)])
    n_products = shapes[1][0] + shapes[1][1] * is_shared
    rows_per_tile = max(_MIN_ROWS_PER_TILE, _VALUES_PER_TILE // (4 * k + d + n_products))
    theta, w = as_plain_array(theta), _as_float64(w)

    def add_rows(start: int, stop: int, out: Array) -> None:
        value, gradient, within, between = np.split(out, ends[:-1])
        sums = gradient.reshape(k, d), within.reshape(shapes[0]), between.reshape(shapes[1])
        for first in range(start, stop, rows_per_tile):
            rows = slice(first, min(first + rows_per_tile, stop))
            m = rows.stop - first
            features, eta = np.ones((1 if is_shared else k, d, m)), np.zeros((k, m))
            features[:, :-1] = np.moveaxis(F[rows], 0, -1)
            if offset is not None:
                eta += offset[rows].T
            _predict(features, theta, eta)
            value += _add_tile(
                features, _as_float64(Y[rows].T), w[rows], eta, is_shared, *sums, np.empty((n_products, m))
            )

    sums = sum_blocks(add_rows, n, (int(ends[-1]),), block=max(1, _PROBABILITIES_PER_TASK // k))
    value, gradient, within, between = np.split(sums, ends[:-1])
    if not with_hessian:
        return float(value[0]), gradient, between.reshape(0, 0)
    assemble = _hessian_of_shared_features if is_shared else _hessian_of_separate_features
    return float(value[0]), gradient, assemble(within.reshape(shapes[0]), between.reshape(shapes[1]), k, d)


def _hessian_of_separate_features(within: Array, between: Array, k: int, d: int) -> Array:
    """Hessian from the blocks of each class and Σ w q_k q_l f_k f_lᵀ, of which the upper triangle is complete."""
    upper = np.triu(between)
    H = -(upper + upper.T).reshape(k, d, k, d)
    H[np.arange(k), :, np.arange(k), :] = within
    return H.reshape(k * d, k * d)


def _hessian_of_shared_features(_: Array, between: Array, k: int, d: int) -> Array:
    """Hessian from the upper triangles of Σ w q_k q_l f fᵀ of each pair of classes.

    The block of a class on the diagonal is the sum over its pairs with the other classes.
    """
    (first, second), (row, column) = np.triu_indices(k, 1), np.triu_indices(d)
    H = np.zeros((k, k, d, d))
    blocks = np.empty((len(first), d, d))
    blocks[:, row, column] = blocks[:, column, row] = between
    H[first, second] = H[second, first] = -blocks
    H[np.arange(k), np.arange(k)] = -H.sum(axis=1)
    return H.transpose(0, 2, 1, 3).reshape(k * d, k * d)


def _add_tile(
    features: Array,
    Y: Array,
    w: Array,
    eta: Array,
    is_shared: bool,
    gradient: Array,
    within: Array,
    between: Array,
    products: Array,
) -> float:
    """Add m rows to the gradient and the terms of the Hessian, and return their negative log-likelihood.

    The features are (K, d, m), or (1, d, m) if the classes share them; `products` (…, m) is a buffer.
    """
    (k, m), with_hessian = eta.shape, len(products) > 0
    row_max, observed_eta, sum_of_others = np.empty((3, m))
    top_class, (r, root_weighted_q, variance) = np.empty(m, dtype=np.int64), np.empty((3, k, m))
    _subtract_row_max(eta, Y, row_max, top_class, observed_eta)
    np.exp(eta, out=eta)
    _fill_residuals(eta, Y, w, top_class, sum_of_others, r, root_weighted_q, variance)
    if is_shared:
        _cross_product(r, features[0], False, gradient)
        if with_hessian:
            pairs, feature_pairs = products[: len(between)], products[len(between) :]
            _pair_products(root_weighted_q, 1, pairs)
            _pair_products(features[0], 0, feature_pairs)
            _cross_product(pairs, feature_pairs, False, between)
    else:
        for c in range(k):
            _cross_product(r[c : c + 1], features[c], False, gradient[c : c + 1])
        if with_hessian:
            np.multiply(root_weighted_q[:, None], features, out=products.reshape(features.shape))
            for c in range(k):
                _cross_product(variance[c] * features[c], features[c], False, within[c])
            _cross_product(products, products, True, between)
    return float(w @ (np.log1p(sum_of_others) - observed_eta))


@compile_kernel
def _predict(features, theta, eta):  # type: ignore[no-untyped-def]
    """Add the linear predictor θ_k·f_k to `eta` (K, m)."""
    for k in range(eta.shape[0]):
        f = features[k if features.shape[0] > 1 else 0]
        for j in range(f.shape[0]):
            for i in range(eta.shape[1]):
                eta[k, i] += theta[k, j] * f[j, i]


@compile_kernel
def _subtract_row_max(eta, Y, row_max, top_class, observed_eta):  # type: ignore[no-untyped-def]
    """Subtract the maximum of each row from η (K, m) in place.

    `row_max` receives the maximum of each row, `top_class` its class, and `observed_eta` the mean of the new η over the
    outcome shares Y (K, m).
    """
    for i in range(eta.shape[1]):
        row_max[i], top_class[i], observed_eta[i] = eta[0, i], 0, 0.0
    for k in range(1, eta.shape[0]):
        for i in range(eta.shape[1]):
            is_larger = eta[k, i] > row_max[i]
            row_max[i] = eta[k, i] if is_larger else row_max[i]
            top_class[i] = k if is_larger else top_class[i]
    for k in range(eta.shape[0]):
        for i in range(eta.shape[1]):
            eta[k, i] -= row_max[i]
            observed_eta[i] += Y[k, i] * eta[k, i]


@compile_kernel
def _fill_residuals(e, Y, w, top_class, sum_of_others, r, root_weighted_q, variance):  # type: ignore[no-untyped-def]
    """Compute r = w(q − y), √w q, w q(1 − q), and Σe without the largest e, from e = exp(η − max η).

    Differences of nearly equal numbers are avoided, so the residual of a nearly certain row keeps its digits, and with
    it the direction in which separated outcomes drive the parameters.
    """
    sum_of_others[:] = 0.0
    for k in range(e.shape[0]):
        for i in range(e.shape[1]):
            sum_of_others[i] += 0.0 if top_class[i] == k else e[k, i]
    for k in range(e.shape[0]):
        for i in range(e.shape[1]):
            e_k, inverse_total = e[k, i], 1.0 / (1.0 + sum_of_others[i])
            others_than_k = sum_of_others[i] if top_class[i] == k else 1.0 + sum_of_others[i] - e_k
            r[k, i] = w[i] * (e_k * (1.0 - Y[k, i]) - Y[k, i] * others_than_k) * inverse_total
            variance[k, i] = w[i] * e_k * inverse_total * (others_than_k * inverse_total)
            root_weighted_q[k, i] = np.sqrt(w[i]) * e_k * inverse_total


@compile_fused
def _cross_product(X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    """Add X Yᵀ to `out` (a, b), for X (a, m) and Y (b, m); if `symmetric`, at least on and above the diagonal.

    Each value is read once for two rows of X and four of Y; at the end, the last row is repeated.
    """
    for a in range(0, X.shape[0], 2):
        next_a = min(a + 1, X.shape[0] - 1)
        for b in range(a if symmetric else 0, Y.shape[0], 4):
            b1, b2, b3 = min(b + 1, Y.shape[0] - 1), min(b + 2, Y.shape[0] - 1), min(b + 3, Y.shape[0] - 1)
            s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = 0.0
            for i in range(X.shape[1]):
                x, z, y0, y1, y2, y3 = X[a, i], X[next_a, i], Y[b, i], Y[b1, i], Y[b2, i], Y[b3, i]
                s0, s1, s2, s3 = s0 + x * y0, s1 + x * y1, s2 + x * y2, s3 + x * y3
                t0, t1, t2, t3 = t0 + z * y0, t1 + z * y1, t2 + z * y2, t3 + z * y3
            for j, (s, t) in enumerate(((s0, t0), (s1, t1), (s2, t2), (s3, t3))):
                if b + j < Y.shape[0]:
                    out[a, b + j] += s
                    if next_a > a:
                        out[next_a, b + j] += t


@compile_kernel
def _pair_products(x, min_lag, out):  # type: ignore[no-untyped-def]
    """Write the elementwise products x_a x_b of the rows of x (k, m) to `out` (pairs, m), with b ≥ a + min_lag."""
    pair = 0
    for a in range(x.shape[0]):
        for b in range(a + min_lag, x.shape[0]):
            for i in range(x.shape[1]):
                out[pair, i] = x[a, i] * x[b, i]
            pair += 1


N_SPLINE_SUMS = 15  # sums per interval: the value, its gradient (4) and the lower triangle of its Hessian (10)
_SCORES_PER_TASK = 2**14  # minimum number of scores per thread task


def spline_likelihood(
    x: Array, events: Array, non_events: Array, knots: Array, knot_values: Array, curvature: Array
) -> Array:
    """Return the negative log-likelihood of sorted scores, with derivatives, by interval between knots, (m − 1, 15).

    `events` and `non_events` are weights at each score; `knot_values` and `curvature` (m,) the spline's values and
    second derivatives at the knots. Columns: the value, the gradient in the values at both knots and the second
    derivatives at both, and the lower triangle of the Hessian, row by row.
    """
    spline = knots, knot_values, curvature
    if len(x) <= _SCORES_PER_TASK:  # few rows are faster without threads
        return _spline_sums(x, events, non_events, *spline)

    def add_rows(start: int, stop: int, out: Array) -> None:
        for first in range(start, stop, _SCORES_PER_TASK):
            rows = slice(first, min(first + _SCORES_PER_TASK, stop))
            out += _spline_sums(x[rows], events[rows], non_events[rows], *spline)

    return sum_blocks(add_rows, len(x), (len(knots) - 1, N_SPLINE_SUMS), block=_SCORES_PER_TASK)


def _spline_sums(
    x: Array, events: Array, non_events: Array, knots: Array, knot_values: Array, curvature: Array
) -> Array:
    interval = np.clip(np.searchsorted(knots, x) - 1, 0, len(knots) - 2)
    width = np.diff(knots)[interval]
    upper_share = (x - knots[interval]) / width
    shares = np.stack([1 - upper_share, upper_share])
    # Outside the knots the spline is linear, without the cubic terms.
    basis = np.concatenate([shares, (np.maximum(shares, 0.0) ** 3 - shares) * (width * width / 6)])
    parameters = knot_values[interval], knot_values[interval + 1], curvature[interval], curvature[interval + 1]
    eta = (basis * np.stack(parameters)).sum(axis=0)
    exp_minus_abs_eta = np.exp(-np.abs(eta))
    larger_probability = 1 / (1 + exp_minus_abs_eta)
    smaller_probability = exp_minus_abs_eta * larger_probability
    is_positive, weight = eta >= 0, events + non_events
    value = weight * np.log1p(exp_minus_abs_eta) + np.where(is_positive, non_events * eta, -events * eta)
    # No difference of nearly equal numbers, so that the gradient keeps its digits for nearly certain outcomes.
    event_probability, non_event_probability = np.where(
        is_positive, (larger_probability, smaller_probability), (smaller_probability, larger_probability)
    )
    slope = non_events * event_probability - events * non_event_probability
    row, column = np.tril_indices(4)
    hessian = weight * larger_probability * smaller_probability * basis[row] * basis[column]
    terms = np.concatenate([value[None], slope * basis, hessian])
    return np.stack([np.bincount(interval, term, len(knots) - 1) for term in terms], axis=1)


_MIN_EXPONENT = -1021.0  # exponents of 2 below this are treated as −∞
# The bits of √½ as an integer: mantissas are reduced to [√½, √2), so that their logarithms are centered at 0.
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_MAX_SQUARED_RATIO = (3 - math.sqrt(8)) ** 2  # s² for mantissas of √½ and √2


def _interpolate_polynomial(
    function: Callable[[float], float], low: float, high: float, degree: int
) -> tuple[float, ...]:
    """Return the coefficients of the polynomial through the Chebyshev nodes, which is nearly the best approximation."""
    angle = (np.arange(degree + 1) + 0.5) * math.pi / (degree + 1)
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    return tuple(
        np.linalg.solve(nodes[:, None] ** np.arange(degree + 1), [function(node) for node in nodes.tolist()]).tolist()
    )


def _odd_log_ratio(squared_ratio: float) -> float:
    """Return log₂((1 + s)/(1 − s))/s, given s²."""
    ratio = math.sqrt(squared_ratio)
    return 2 / math.log(2) * math.atanh(ratio) / ratio


_LOG2_COEF = _interpolate_polynomial(_odd_log_ratio, 0, _MAX_SQUARED_RATIO, 7)
# The degree is even, so that 0 is a node up to rounding.
_EXP2_COEF = _interpolate_polynomial(lambda f: math.expm1(f * math.log(2)) / f, -0.5, 0.5, 10)


@compile_fused
def log2(x):  # type: ignore[no-untyped-def]
    """Return log₂ x of a positive normal number, with relative error 1e-15."""
    bits = np.float64(x).view(np.int64)
    power = np.int32((bits - _SQRT_HALF_BITS) >> 52)
    mantissa = np.int64(bits - (np.int64(power) << 52)).view(np.float64)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    squared_ratio = ratio * ratio
    high_terms = _LOG2_COEF[4] + squared_ratio * (
        _LOG2_COEF[5] + squared_ratio * (_LOG2_COEF[6] + squared_ratio * _LOG2_COEF[7])
    )
    return np.float64(power) + ratio * (
        _LOG2_COEF[0]
        + squared_ratio
        * (
            _LOG2_COEF[1]
            + squared_ratio * (_LOG2_COEF[2] + squared_ratio * (_LOG2_COEF[3] + squared_ratio * high_terms))
        )
    )


@compile_fused
def exp2(y):  # type: ignore[no-untyped-def]
    """Return 2^y for y ≤ 0, with relative error 1e-15; 0 for y ≤ −1021."""
    clipped = y if y > _MIN_EXPONENT else _MIN_EXPONENT
    power = np.int32(clipped - 0.5)
    fraction = clipped - np.float64(power)
    polynomial = _EXP2_COEF[7] + fraction * (_EXP2_COEF[8] + fraction * (_EXP2_COEF[9] + fraction * _EXP2_COEF[10]))
    polynomial = _EXP2_COEF[3] + fraction * (
        _EXP2_COEF[4] + fraction * (_EXP2_COEF[5] + fraction * (_EXP2_COEF[6] + fraction * polynomial))
    )
    polynomial = fraction * (
        _EXP2_COEF[0] + fraction * (_EXP2_COEF[1] + fraction * (_EXP2_COEF[2] + fraction * polynomial))
    )
    scale = np.int64((np.int64(power) + 1023) << 52).view(np.float64)
    return (1.0 + polynomial) * (scale if y > _MIN_EXPONENT else 0.0)

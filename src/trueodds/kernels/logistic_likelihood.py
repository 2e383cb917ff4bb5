"""Sum the negative log-likelihood of logistic regression, multinomial or on a spline, with its gradient and Hessian.

A natural cubic spline in the score is linear beyond the outer knots. On the interval between two knots, it is linear in
four numbers: its values and its second derivatives at both knots. So the sums of each interval have four parameters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_inline, compile_kernel, compile_reordering, sum_blocks
from trueodds.kernels.linear_algebra import add_scaled, add_scaled_rows, cross_product, dot, pair_products

_VALUES_PER_TILE = 2**16  # number of values per tile of rows, so that its arrays stay in the core's own cache
_MIN_ROWS_PER_TILE = 512  # minimum number of rows per tile, so that dot products of its columns are long sums
_PROBABILITIES_PER_TASK = 2**14  # minimum number of probabilities per thread task

# In all kernels, η is the linear predictor, q = softmax(η) are the fitted probabilities and y the outcome shares. Tiles
# of m rows are stored class by class, (K, m): inner loops run along the rows and are vectorized for any K.


@compile_kernel
def _subtract_row_max(eta, Y, start, row_max, top_class, observed_eta):  # type: ignore[no-untyped-def]
    """Subtract the maximum of each row from η (K, m) in place.

    `row_max` receives the maximum of each row, `top_class` its class, and `observed_eta` the mean of the new η over the
    outcome shares Y (K, n) of the rows from `start` on.
    """
    for i in range(eta.shape[1]):
        row_max[i], top_class[i], observed_eta[i] = eta[0, i], 0, 0.0
    for k in range(1, eta.shape[0]):
        for i in range(eta.shape[1]):
            is_larger = eta[k, i] > row_max[i]
            row_max[i] = eta[k, i] if is_larger else row_max[i]
            top_class[i] = k if is_larger else top_class[i]
    for k in range(eta.shape[0]):
        y = Y[k, start : start + eta.shape[1]]
        for i in range(eta.shape[1]):
            eta[k, i] -= row_max[i]
            observed_eta[i] += y[i] * eta[k, i]


@compile_kernel
def _fill_residuals(e, Y, w, start, top_class, sum_of_others, r, root_weighted_q, variance):  # type: ignore[no-untyped-def]
    """Compute r = w(q − y), √w q, w q(1 − q), and Σe without the largest e, from e = exp(η − max η).

    Differences of nearly equal numbers are avoided, so the residual of a nearly certain row keeps its digits, and with
    it the direction in which separated outcomes drive the parameters.
    """
    sum_of_others[:] = 0.0
    for k in range(e.shape[0]):
        for i in range(e.shape[1]):
            sum_of_others[i] += 0.0 if top_class[i] == k else e[k, i]
    weight = w[start : start + e.shape[1]]
    for k in range(e.shape[0]):
        y_k = Y[k, start : start + e.shape[1]]
        for i in range(e.shape[1]):
            e_k, inverse_total = e[k, i], 1.0 / (1.0 + sum_of_others[i])
            others_than_k = sum_of_others[i] if top_class[i] == k else 1.0 + sum_of_others[i] - e_k
            r[k, i] = weight[i] * (e_k * (1.0 - y_k[i]) - y_k[i] * others_than_k) * inverse_total
            variance[k, i] = weight[i] * e_k * inverse_total * (others_than_k * inverse_total)
            root_weighted_q[k, i] = np.sqrt(weight[i]) * e_k * inverse_total


@compile_reordering
def _sum_values(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@compile_inline
def _copy_values(x, out):  # type: ignore[no-untyped-def]
    """Copy x (n,) to `out`. For `out[:] = x`, numba compiles the text of an error message, which takes 4 s."""
    for i in range(x.shape[0]):
        out[i] = x[i]


@compile_kernel
def _predict_separate(F, theta, offset, start, eta):  # type: ignore[no-untyped-def]
    """Write the linear predictor o_k + a_k·F_k + b_k to `eta` (K, m), for m rows from `start` on.

    The features F (K, d, n) are separate for each class. theta (K, d + 1) has the coefficients a_k and the intercept
    b_k. The offset o is (K, n), or (0, n) for none.
    """
    stop = start + eta.shape[1]
    for k in range(F.shape[0]):
        eta[k] = theta[k, F.shape[1]]
        if offset.shape[0] > 0:
            add_scaled(eta[k], 1.0, offset[k, start:stop])
        for feature in range(F.shape[1]):
            add_scaled(eta[k], theta[k, feature], F[k, feature, start:stop])


@compile_kernel
def _predict_shared(F, theta, offset, start, eta):  # type: ignore[no-untyped-def]
    """Write the linear predictor o_k + a_k·F + b_k to `eta` (K, m), for features F (d, n) shared by the classes."""
    stop = start + eta.shape[1]
    for k in range(eta.shape[0]):
        eta[k] = theta[k, F.shape[0]]
        if offset.shape[0] > 0:
            add_scaled(eta[k], 1.0, offset[k, start:stop])
        add_scaled_rows(theta[k], F, start, eta[k])


@compile_kernel
def _add_separate_derivatives(F, start, r, root_weighted_q, variance, buffer, gradient, within_class, between_classes):  # type: ignore[no-untyped-def]
    """Add a tile of rows to the gradient and the terms of the Hessian, with f = (F, 1) by class.

    `gradient` (K, d + 1) receives Σ r_k f_k, `within_class` (K, d + 1, d + 1) Σ v_k f_k f_kᵀ with v the `variance`, and
    the upper triangle of `between_classes` (K(d + 1), K(d + 1)) Σ q_k q_l f_k f_lᵀ. If `between_classes` is (0, 0),
    only the gradient is computed.
    """
    d, stop, scaled = F.shape[1], start + r.shape[1], buffer[-1]
    for k in range(F.shape[0]):
        gradient[k, d] += _sum_values(r[k])
        for i_feature in range(d):
            gradient[k, i_feature] += dot(r[k], F[k, i_feature, start:stop])
        if between_classes.shape[0] == 0:
            continue
        within_class[k, d, d] += _sum_values(variance[k])
        for i_feature in range(d):
            feature, product = F[k, i_feature, start:stop], buffer[k * (d + 1) + i_feature]
            for i in range(scaled.shape[0]):
                scaled[i] = variance[k, i] * feature[i]
                product[i] = root_weighted_q[k, i] * feature[i]
            within_class[k, i_feature, d] += _sum_values(scaled)
            within_class[k, d, i_feature] = within_class[k, i_feature, d]
            for j_feature in range(i_feature + 1):
                within_class[k, i_feature, j_feature] += dot(scaled, F[k, j_feature, start:stop])
                within_class[k, j_feature, i_feature] = within_class[k, i_feature, j_feature]
        _copy_values(root_weighted_q[k], buffer[k * (d + 1) + d])
    if between_classes.shape[0] > 0:
        cross_product(buffer[:-1], buffer[:-1], True, between_classes)


@compile_kernel
def _add_shared_derivatives(F, start, r, root_weighted_q, buffer, gradient, between_classes):  # type: ignore[no-untyped-def]
    """Add a tile of rows to the gradient and the terms of the Hessian, for features F (d, n) shared by the classes.

    `gradient` (K, d + 1) receives Σ r_k f, and `between_classes` Σ q_k q_l f_a f_b of each k < l and a ≤ b, unless it
    is (0, 0).
    """
    d, n_class_pairs = F.shape[0], between_classes.shape[0]
    features, feature_products = buffer[: d + 1], buffer[d + 1 + n_class_pairs :]
    for feature in range(d):
        _copy_values(F[feature, start : start + r.shape[1]], features[feature])
    features[d] = 1.0
    cross_product(r, features, False, gradient)
    if n_class_pairs > 0:
        pair_products(root_weighted_q, 1, buffer[d + 1 : d + 1 + n_class_pairs])
        pair_products(features, 0, feature_products)
        cross_product(buffer[d + 1 : d + 1 + n_class_pairs], feature_products, False, between_classes)


class _Rows(NamedTuple):
    """The rows of the data, with the rows as the last axis of every array."""

    F: Array  # (K, d, n) features by class, or (d, n) shared by the classes
    Y: Array  # (K, n) outcome shares
    w: Array  # (n,)
    offset: Array  # (K, n), or (0, n) for none


class _SumLayout(NamedTuple):
    """Shapes of the sums of `likelihood_sums`, which are parts of one array, and number of values per row of a tile."""

    k: int  # number of classes
    d: int  # number of features, with the constant
    within_class: tuple[int, int, int]  # shape of the terms within a class of the Hessian
    between_classes: tuple[int, int]  # shape of the terms between classes
    n_products: int  # values per row of the buffer for products of features and residuals

    @property
    def size(self) -> int:
        return 1 + self.k * self.d + math.prod(self.within_class) + math.prod(self.between_classes)

    @property
    def rows_per_tile(self) -> int:
        return max(_MIN_ROWS_PER_TILE, _VALUES_PER_TILE // (self.n_products + 4 * self.k))

    @property
    def values_per_row(self) -> int:
        return self.n_products + 4 * self.k + 3

    def split_sums(self, out: Array) -> tuple[Array, ...]:
        first = 1 + self.k * self.d
        second = first + math.prod(self.within_class)
        return (
            out[:1],
            out[1:first].reshape(self.k, self.d),
            out[first:second].reshape(self.within_class),
            out[second:].reshape(self.between_classes),
        )


def _choose_layout(k: int, d: int, *, shared: bool, with_hessian: bool) -> _SumLayout:
    """Return the layout for K classes and d features, with the constant.

    If the features are `shared` by the classes, Σ q_k q_l f_a f_b is symmetric in the classes and in the features, so
    that fewer sums are needed, and the terms within a class follow from them.
    """
    if shared:
        n_class_pairs, n_feature_pairs = (k * (k - 1) // 2, d * (d + 1) // 2) if with_hessian else (0, 0)
        return _SumLayout(k, d, (0, d, d), (n_class_pairs, n_feature_pairs), d + n_class_pairs + n_feature_pairs)
    n_hessian_classes = k if with_hessian else 0
    n_parameters = n_hessian_classes * d
    return _SumLayout(k, d, (n_hessian_classes, d, d), (n_parameters, n_parameters), n_parameters + 1)


def likelihood_sums(
    F: Array, Y: Array, w: Array, theta: Array, offset: Array | None, with_hessian: bool
) -> tuple[Array, ...]:
    """Return the negative log-likelihood, its gradient, and the terms of its Hessian, summed over the rows.

    F (n, K, d) are features by class, or (n, d) shared by the classes; Y (n, K) outcome shares, w (n,) weights, and
    theta (K, d + 1) coefficients, with the intercept last. The linear predictor includes the offset (n, K). Arrays with
    contiguous columns are not copied. The value is (1,), the gradient (K, d + 1). `within_class` (K, d + 1, d + 1) is Σ
    w q_k(1 − q_k) f_k f_kᵀ with f = (F, 1) if the features are by class, else empty; `between_classes` Σ w q_k q_l f_k
    f_lᵀ, on and above the diagonal of (K(d + 1), K(d + 1)). If the features are shared, it is Σ w q_k q_l f_a f_b for
    each pair of classes k < l (rows) and of features a ≤ b (columns). Both are empty without `with_hessian`.
    """
    n, k = Y.shape
    rows = _Rows(
        _rows_last(F),
        _rows_last(Y),
        as_plain_array(w.astype(np.float64, copy=False)),
        as_plain_array(np.zeros((0, n))) if offset is None else _rows_last(offset),
    )
    theta = as_plain_array(theta)
    layout = _choose_layout(k, F.shape[-1] + 1, shared=F.ndim == 2, with_hessian=with_hessian)

    def add_rows(start: int, stop: int, out: Array) -> None:
        step = layout.rows_per_tile
        n_buffered = min(step, stop - start)
        values, top_class = np.empty(layout.values_per_row * n_buffered), np.empty(n_buffered, dtype=np.int64)
        for first in range(start, stop, step):
            m = min(step, stop - first)
            tile = values[: layout.values_per_row * m].reshape(-1, m)  # so that each part is contiguous
            _add_tile(rows, theta, first, layout, tile, top_class[:m], layout.split_sums(out))

    return layout.split_sums(sum_blocks(add_rows, n, (layout.size,), block=max(1, _PROBABILITIES_PER_TASK // k)))


def _add_tile(
    rows: _Rows, theta: Array, start: int, layout: _SumLayout, tile: Array, top_class: Array, sums: tuple[Array, ...]
) -> None:
    """Add the rows from `start` on to `sums`; `tile` (values per row, m) and `top_class` (m,) are buffers."""
    k, m, shared = layout.k, tile.shape[1], rows.F.ndim == 2
    row_max, observed_eta, sum_of_others = tile[:3]
    eta, r, root_weighted_q, variance = tile[3 : 3 + 4 * k].reshape(4, k, m)
    buffer = tile[-layout.n_products :]
    value, gradient, within_class, between_classes = sums
    predict = _predict_shared if shared else _predict_separate
    predict(rows.F, theta, rows.offset, start, eta)
    _subtract_row_max(eta, rows.Y, start, row_max, top_class, observed_eta)
    np.exp(eta, out=eta)
    _fill_residuals(eta, rows.Y, rows.w, start, top_class, sum_of_others, r, root_weighted_q, variance)
    value += rows.w[start : start + m] @ (np.log1p(sum_of_others) - observed_eta)
    if shared:
        _add_shared_derivatives(rows.F, start, r, root_weighted_q, buffer, gradient, between_classes)
    else:
        _add_separate_derivatives(
            rows.F, start, r, root_weighted_q, variance, buffer, gradient, within_class, between_classes
        )


def _rows_last(x: Array) -> Array:
    """Return x as a C-contiguous float64 array with the rows as the last axis."""
    return as_plain_array(x.astype(np.float64, copy=False).transpose(*range(1, x.ndim), 0))


N_SUMS = 15  # sums per interval: the value, its gradient (4) and the lower triangle of its Hessian (10)
_SCORES_PER_TASK = 2**14  # minimum number of scores per thread task


@compile_kernel
def _spline_likelihood(x, events, non_events, knots, knot_values, curvature, out):  # type: ignore[no-untyped-def]
    """Add the sums of `spline_likelihood` of sorted scores x (n,) to `out` (m − 1, 15)."""
    interval, basis = -1, np.empty(4)
    low = high = width = 0.0
    for i in range(x.shape[0]):
        if interval < 0 or (x[i] > high and interval < knots.shape[0] - 2):
            interval = max(interval, 0)
            while x[i] > knots[interval + 1] and interval < knots.shape[0] - 2:
                interval += 1
            low, high = knots[interval], knots[interval + 1]
            width = high - low
        upper_share = (x[i] - low) / width
        lower_share = 1.0 - upper_share
        basis[0], basis[1] = lower_share, upper_share
        # Outside the knots the spline is linear, without the cubic terms.
        basis[2] = (max(lower_share, 0.0) ** 3 - lower_share) * width * width / 6.0
        basis[3] = (max(upper_share, 0.0) ** 3 - upper_share) * width * width / 6.0
        eta = (
            basis[0] * knot_values[interval]
            + basis[1] * knot_values[interval + 1]
            + basis[2] * curvature[interval]
            + basis[3] * curvature[interval + 1]
        )
        exp_minus_abs_eta = np.exp(-abs(eta))
        larger_probability = 1.0 / (1.0 + exp_minus_abs_eta)
        smaller_probability = exp_minus_abs_eta * larger_probability
        event_probability, non_event_probability = (
            (larger_probability, smaller_probability) if eta >= 0.0 else (smaller_probability, larger_probability)
        )
        weight = events[i] + non_events[i]
        # No difference of nearly equal numbers, so that the gradient keeps its digits for nearly certain outcomes.
        slope = non_events[i] * event_probability - events[i] * non_event_probability
        hessian_factor = weight * larger_probability * smaller_probability
        out[interval, 0] += weight * np.log1p(exp_minus_abs_eta) + (
            non_events[i] * eta if eta >= 0.0 else -events[i] * eta
        )
        index = 5
        for row in range(4):
            out[interval, 1 + row] += slope * basis[row]
            for column in range(row + 1):
                out[interval, index] += hessian_factor * basis[row] * basis[column]
                index += 1


def spline_likelihood(
    x: Array, events: Array, non_events: Array, knots: Array, knot_values: Array, curvature: Array
) -> Array:
    """Return the negative log-likelihood of sorted scores, with derivatives, by interval between knots, (m − 1, 15).

    `events` and `non_events` are weights at each score; `knot_values` and `curvature` (m,) the spline's values and
    second derivatives at the knots. Columns: the value, the gradient in the values at both knots and the second
    derivatives at both, and the lower triangle of the Hessian, row by row.
    """
    rows = [as_plain_array(array) for array in (x, events, non_events)]
    spline = [as_plain_array(array) for array in (knots, knot_values, curvature)]

    def add_rows(start: int, stop: int, out: Array) -> None:
        _spline_likelihood(*(array[start:stop] for array in rows), *spline, out)

    shape = (len(knots) - 1, N_SUMS)
    if len(x) > _SCORES_PER_TASK:
        return sum_blocks(add_rows, len(x), shape, block=_SCORES_PER_TASK)
    out = np.zeros(shape)
    add_rows(0, len(x), out)  # few rows are faster without threads
    return out

"""Sum the log-likelihood of multinomial logistic regression over the rows, with its gradient and Hessian."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, sum_blocks
from trueodds.kernels.linear_algebra import add_scaled, cross_product, dot, pair_products, weighted_sum

_VALUES_PER_TILE = 2**16  # number of values per tile of rows, so that its arrays stay in the core's own cache
_MIN_ROWS_PER_TILE = 512  # minimum number of rows per tile, so that dot products of its columns are long sums
_PROBABILITIES_PER_TASK = 2**14  # minimum number of probabilities per thread task

# Tiles are stored class by class, (K, rows): inner loops run along the rows and are vectorized for any K.


@compile_kernel
def _subtract_row_max(eta, Y, start, row_max, top_class, observed_eta):  # type: ignore[no-untyped-def]
    """Subtract the maximum of each row from η (K, m) in place.

    `row_max` receives the maximum of each row, `top_class` its class, and `observed_eta` the mean of the new η over the
    outcome shares Y (K, n) of the rows from `start` on.
    """
    row_max[:], top_class[:], observed_eta[:] = eta[0], 0, 0.0
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
def _compute_residuals(e, Y, w, start, top_class, sum_of_others, r, root_weighted_q, variance):  # type: ignore[no-untyped-def]
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


@compile_kernel
def _predict_separate(F, theta, offset, start, eta):  # type: ignore[no-untyped-def]
    """Write the linear predictor o_k + a_k·F_k + b_k to `eta` (K, m), for m rows of F (K, d, n) from `start` on.

    theta (K, d + 1) has a_k and b_k. The offset o is (K, n), or (0, n) for none.
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
        weighted_sum(theta[k], F, start, eta[k])


@compile_kernel
def _add_separate_derivatives(F, start, r, root_weighted_q, variance, buffer, gradient, within_class, between_classes):  # type: ignore[no-untyped-def]
    """Add a tile of rows to the gradient and the terms of the Hessian, with f = (F, 1) by class.

    `gradient` (K, d + 1) receives Σ r_k f_k, `within_class` (K, d + 1, d + 1) Σ v_k f_k f_kᵀ, and the upper triangle of
    `between_classes` (K(d + 1), K(d + 1)) Σ q_k q_l f_k f_lᵀ. If `between_classes` is (0, 0), only the gradient is
    computed.
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
        buffer[k * (d + 1) + d] = root_weighted_q[k]
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
        features[feature] = F[feature, start : start + r.shape[1]]
    features[d] = 1.0
    cross_product(r, features, False, gradient)
    if n_class_pairs > 0:
        pair_products(root_weighted_q, 1, buffer[d + 1 : d + 1 + n_class_pairs])
        pair_products(features, 0, feature_products)
        cross_product(buffer[d + 1 : d + 1 + n_class_pairs], feature_products, False, between_classes)


def likelihood_sums(
    F: Array, Y: Array, w: Array, theta: Array, offset: Array | None, curved: bool
) -> tuple[Array, ...]:
    """Return the negative log-likelihood (1,), its gradient (K, d + 1), and the terms of its Hessian if `curved`.

    F (n, K, d) by class: Σ w q_k(1 − q_k) f_k f_kᵀ (K, d + 1, d + 1) and Σ w q_k q_l f_k f_lᵀ, on and above the
    diagonal of (K(d + 1), K(d + 1)). F (n, d) shared by the classes: only Σ w q_k q_l f_a f_b of each k < l and a ≤ b.
    Here f = (F, 1). Y (n, K) shares, w (n,), theta (K, d + 1), offset (n, K). Arrays with contiguous columns are not
    copied.
    """
    f, y, mass, n, k, d = (
        _rows_last(F),
        _rows_last(Y),
        as_plain_array(w.astype(np.float64, copy=False)),
        *Y.shape,
        F.shape[-1] + 1,
    )
    o, theta, shared = (
        as_plain_array(np.zeros((0, n))) if offset is None else _rows_last(offset),
        as_plain_array(theta),
        F.ndim == 2,
    )
    kinds, both = (k * (k - 1) // 2, d * (d + 1) // 2) if curved else (0, 0)
    if shared:
        own, across, deep = (0, d, d), (kinds, both), d + kinds + both
    else:
        own, across, deep = (k * curved, d, d), (k * d * curved, k * d * curved), k * d * curved + 1
    first, second = 1 + k * d, 1 + k * d + own[0] * d * d
    size = second + across[0] * across[1]
    tile = max(_MIN_ROWS_PER_TILE, _VALUES_PER_TILE // (deep + 4 * k))

    def into(out: Array) -> tuple[Array, ...]:
        return out[:1], out[1:first].reshape(k, d), out[first:second].reshape(own), out[second:].reshape(across)

    def add(start: int, stop: int, out: Array) -> None:
        value, gradient, blocks, rest = into(out)
        rows = min(tile, stop - start)
        numbers, where = np.empty((deep + 4 * k + 3) * rows), np.empty(rows, dtype=np.int64)
        for i in range(start, stop, tile):
            m = min(tile, stop - i)
            every = numbers[: (deep + 4 * k + 3) * m].reshape(-1, m)  # so that each part is contiguous
            (top, observed, others), (eta, r, q, v), room = (
                every[:3],
                every[3 : 3 + 4 * k].reshape(4, k, m),
                every[-deep:],
            )
            (_predict_shared if shared else _predict_separate)(f, theta, o, i, eta)
            _subtract_row_max(eta, y, i, top, where[:m], observed)
            np.exp(eta, out=eta)
            _compute_residuals(eta, y, mass, i, where[:m], others, r, q, v)
            value += mass[i : i + m] @ (np.log1p(others) - observed)
            if shared:
                _add_shared_derivatives(f, i, r, q, room, gradient, rest)
            else:
                _add_separate_derivatives(f, i, r, q, v, room, gradient, blocks, rest)

    return into(sum_blocks(add, n, (size,), block=max(1, _PROBABILITIES_PER_TASK // k)))


def _rows_last(x: Array) -> Array:
    """Return x as a C-contiguous float64 array with the rows as the last axis."""
    return as_plain_array(x.astype(np.float64, copy=False).transpose(*range(1, x.ndim), 0))

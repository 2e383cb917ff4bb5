"""Sum the log-likelihood of multinomial logistic regression over the rows, with its gradient and Hessian."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, compile_reordering, sum_blocks

_ROOM = 2**16  # number of values per tile of rows, so that its arrays stay in the core's own cache
_ROWS = 512  # minimum number of rows per tile, so that dot products of its columns are long sums
_BLOCK = 2**14  # minimum number of probabilities per thread task

# Tiles are stored class by class, (K, rows): inner loops run along the rows and are vectorized for any K.


@compile_kernel
def _relative(eta, Y, start, top, where, observed):  # type: ignore[no-untyped-def]
    """Subtract the maximum of each row from η (K, m) in place.

    `top` receives the maximum of each row, `where` its class, and `observed` the mean of the new η over the outcome
    shares Y (K, n) of the rows from `start` on.
    """
    top[:], where[:], observed[:] = eta[0], 0, 0.0
    for k in range(1, eta.shape[0]):
        for i in range(eta.shape[1]):
            more = eta[k, i] > top[i]
            top[i] = eta[k, i] if more else top[i]
            where[i] = k if more else where[i]
    for k in range(eta.shape[0]):
        y = Y[k, start : start + eta.shape[1]]
        for i in range(eta.shape[1]):
            eta[k, i] -= top[i]
            observed[i] += y[i] * eta[k, i]


@compile_kernel
def _outcomes(e, Y, w, start, where, others, r, q, v):  # type: ignore[no-untyped-def]
    """Compute r = w(q − y), √w q and v = w q(1 − q) from e = exp(η − max η), and Σe minus the largest into `others`.

    Differences of nearly equal numbers are avoided, so the residual of a nearly certain row keeps its digits, and with
    it the direction in which separated outcomes drive the parameters.
    """
    others[:] = 0.0
    for k in range(e.shape[0]):
        for i in range(e.shape[1]):
            others[i] += 0.0 if where[i] == k else e[k, i]
    mass = w[start : start + e.shape[1]]
    for k in range(e.shape[0]):
        y = Y[k, start : start + e.shape[1]]
        for i in range(e.shape[1]):
            x, part = e[k, i], 1.0 / (1.0 + others[i])
            rest = others[i] if where[i] == k else 1.0 + others[i] - x
            r[k, i] = mass[i] * (x * (1.0 - y[i]) - y[i] * rest) * part
            v[k, i] = mass[i] * x * part * (rest * part)
            q[k, i] = np.sqrt(mass[i]) * x * part


@compile_reordering
def _total(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i]
    return total


@compile_kernel
def _separate_scores(F, theta, offset, start, eta):  # type: ignore[no-untyped-def]
    """Write the linear predictor o_k + a_k·F_k + b_k to `eta` (K, m), for m rows of F (K, d, n) from `start` on.

    theta (K, d + 1) has a_k and b_k. The offset o is (K, n), or (0, n) for none.
    """
    stop = start + eta.shape[1]
    for k in range(F.shape[0]):
        eta[k] = theta[k, F.shape[1]]
        if offset.shape[0] > 0:
            add_scaled(eta[k], 1.0, offset[k, start:stop])
        for a in range(F.shape[1]):
            add_scaled(eta[k], theta[k, a], F[k, a, start:stop])


@compile_kernel
def _shared_scores(F, theta, offset, start, eta):  # type: ignore[no-untyped-def]
    """Write the linear predictor o_k + a_k·F + b_k to `eta` (K, m), for features F (d, n) shared by the classes."""
    stop = start + eta.shape[1]
    for k in range(eta.shape[0]):
        eta[k] = theta[k, F.shape[0]]
        if offset.shape[0] > 0:
            add_scaled(eta[k], 1.0, offset[k, start:stop])
        weighted_sum(theta[k], F, start, eta[k])


@compile_kernel
def _separate_sums(F, start, r, q, v, room, gradient, own, across):  # type: ignore[no-untyped-def]
    """Add a tile of rows to the gradient and the terms of the Hessian, with f = (F, 1) by class.

    `gradient` (K, d + 1) receives Σ r_k f_k, `own` (K, d + 1, d + 1) Σ v_k f_k f_kᵀ, and the upper triangle of `across`
    (K(d + 1), K(d + 1)) Σ q_k q_l f_k f_lᵀ. If `across` is (0, 0), only the gradient is computed.
    """
    d, stop, f = F.shape[1], start + r.shape[1], room[-1]
    for k in range(F.shape[0]):
        gradient[k, d] += _total(r[k])
        for a in range(d):
            gradient[k, a] += dot(r[k], F[k, a, start:stop])
        if across.shape[0] == 0:
            continue
        own[k, d, d] += _total(v[k])
        for a in range(d):
            x, y = F[k, a, start:stop], room[k * (d + 1) + a]
            for i in range(f.shape[0]):
                f[i] = v[k, i] * x[i]
                y[i] = q[k, i] * x[i]
            own[k, a, d] += _total(f)
            own[k, d, a] = own[k, a, d]
            for b in range(a + 1):
                own[k, a, b] += dot(f, F[k, b, start:stop])
                own[k, b, a] = own[k, a, b]
        room[k * (d + 1) + d] = q[k]
    if across.shape[0] > 0:
        cross_product(room[:-1], room[:-1], True, across)


@compile_kernel
def _shared_sums(F, start, r, q, room, gradient, across):  # type: ignore[no-untyped-def]
    """Add a tile of rows to the gradient and the terms of the Hessian, for features F (d, n) shared by the classes.

    `gradient` (K, d + 1) receives Σ r_k f, and `across` Σ q_k q_l f_a f_b of each k < l and a ≤ b, unless it is (0, 0).
    """
    d, kinds = F.shape[0], across.shape[0]
    f, both = room[: d + 1], room[d + 1 + kinds :]
    for a in range(d):
        f[a] = F[a, start : start + r.shape[1]]
    f[d] = 1.0
    cross_product(r, f, False, gradient)
    if kinds > 0:
        pair_products(q, 1, room[d + 1 : d + 1 + kinds])
        pair_products(f, 0, both)
        cross_product(room[d + 1 : d + 1 + kinds], both, False, across)


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
    tile = max(_ROWS, _ROOM // (deep + 4 * k))

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
            (_shared_scores if shared else _separate_scores)(f, theta, o, i, eta)
            _relative(eta, y, i, top, where[:m], observed)
            np.exp(eta, out=eta)
            _outcomes(eta, y, mass, i, where[:m], others, r, q, v)
            value += mass[i : i + m] @ (np.log1p(others) - observed)
            if shared:
                _shared_sums(f, i, r, q, room, gradient, rest)
            else:
                _separate_sums(f, i, r, q, v, room, gradient, blocks, rest)

    return into(sum_blocks(add, n, (size,), block=max(1, _BLOCK // k)))


def _rows_last(x: Array) -> Array:
    """Return x as a C-contiguous float64 array with the rows as the last axis."""
    return as_plain_array(x.astype(np.float64, copy=False).transpose(*range(1, x.ndim), 0))


# BLAS is not used here: its own threads would compete with those of `in_blocks`.


@compile_kernel
def pair_products(x, above, out):  # type: ignore[no-untyped-def]
    """Write the products x_a x_b of the rows of x (k, n), with b at least `above` after a, to the rows of `out`."""
    at = 0
    for a in range(x.shape[0]):
        for b in range(a + above, x.shape[0]):
            for i in range(x.shape[1]):
                out[at, i] = x[a, i] * x[b, i]
            at += 1


def _compile_fused(function):  # type: ignore[no-untyped-def]
    """Compile a function and allow the compiler to reorder sums and to use fused multiply-add instructions."""
    return compile_kernel(function, fastmath={"reassoc", "nsz", "contract"})


@_compile_fused
def dot(x, y):  # type: ignore[no-untyped-def]
    """Return the dot product of x (n,) and y (n,)."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@_compile_fused
def _dots(a, b, c, d, x, y, z, u, out, p, q):  # type: ignore[no-untyped-def]
    """Add the 16 dot products of the rows a..d with the rows x..u to `out` from (p, q); each value is used 4 times."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
    for i in range(a.shape[0]):
        f0, f1, f2, f3 = x[i], y[i], z[i], u[i]
        a0 += a[i] * f0
        a1 += a[i] * f1
        a2 += a[i] * f2
        a3 += a[i] * f3
        b0 += b[i] * f0
        b1 += b[i] * f1
        b2 += b[i] * f2
        b3 += b[i] * f3
        c0 += c[i] * f0
        c1 += c[i] * f1
        c2 += c[i] * f2
        c3 += c[i] * f3
        d0 += d[i] * f0
        d1 += d[i] * f1
        d2 += d[i] * f2
        d3 += d[i] * f3
    rows = ((a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3))
    for i in range(4):
        for j in range(4):
            out[p + i, q + j] += rows[i][j]


@compile_kernel
def cross_product(X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    """Add X Yᵀ to `out` (a, b), for X (a, n) and Y (b, n); if `symmetric`, only on and above the diagonal."""
    a, b = X.shape[0] - X.shape[0] % 4, Y.shape[0] - Y.shape[0] % 4
    for p in range(0, a, 4):
        for q in range(p if symmetric else 0, b, 4):
            _dots(X[p], X[p + 1], X[p + 2], X[p + 3], Y[q], Y[q + 1], Y[q + 2], Y[q + 3], out, p, q)
    for p in range(X.shape[0]):
        first = b if p < a else 0
        for q in range(max(first, p) if symmetric else first, Y.shape[0]):
            out[p, q] += dot(X[p], Y[q])


@_compile_fused
def _add_combination(out, a, b, c, d, x, y, z, u):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] += a * x[i] + b * y[i] + c * z[i] + d * u[i]


@_compile_fused
def add_scaled(out, a, x):  # type: ignore[no-untyped-def]
    """Add a · x to `out` (n,), for a scalar a and x (n,)."""
    for i in range(out.shape[0]):
        out[i] += a * x[i]


@compile_kernel
def weighted_sum(a, X, start, out):  # type: ignore[no-untyped-def]
    """Add Σ_k a_k X_k to `out` (m,), for m columns of X (k, n) from `start` on; a has at least k values."""
    stop, n_unrolled = start + out.shape[0], X.shape[0] - X.shape[0] % 4
    for k in range(0, n_unrolled, 4):
        x, y, z, u = X[k, start:stop], X[k + 1, start:stop], X[k + 2, start:stop], X[k + 3, start:stop]
        _add_combination(out, a[k], a[k + 1], a[k + 2], a[k + 3], x, y, z, u)
    for k in range(n_unrolled, X.shape[0]):
        add_scaled(out, a[k], X[k, start:stop])

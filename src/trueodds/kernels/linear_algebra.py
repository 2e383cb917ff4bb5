"""Dot products, X Yᵀ and linear combinations of the rows of matrices, in vectorized loops for use in other kernels.

BLAS is not used, because its own threads would compete with those of `map_blocks`.
"""

from __future__ import annotations

from trueodds.kernels import compile_fused, compile_inline, compile_kernel


@compile_inline
def pair_products(x, min_lag, out):  # type: ignore[no-untyped-def]
    """Write the elementwise products x_a x_b of the rows of x (k, n) to `out` (pairs, n), with b ≥ a + min_lag."""
    pair = 0
    for a in range(x.shape[0]):
        for b in range(a + min_lag, x.shape[0]):
            for i in range(x.shape[1]):
                out[pair, i] = x[a, i] * x[b, i]
            pair += 1


@compile_fused
def dot(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@compile_fused
def _add_16_dots(row_a, row_b, row_c, row_d, row_x, row_y, row_z, row_u, out, first_row, first_column):  # type: ignore[no-untyped-def]
    """Add the dot products of the rows a–d and x–u to 4 × 4 values of `out`; each value is loaded once."""
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
    for i in range(row_a.shape[0]):
        f0, f1, f2, f3 = row_x[i], row_y[i], row_z[i], row_u[i]
        a0 += row_a[i] * f0
        a1 += row_a[i] * f1
        a2 += row_a[i] * f2
        a3 += row_a[i] * f3
        b0 += row_b[i] * f0
        b1 += row_b[i] * f1
        b2 += row_b[i] * f2
        b3 += row_b[i] * f3
        c0 += row_c[i] * f0
        c1 += row_c[i] * f1
        c2 += row_c[i] * f2
        c3 += row_c[i] * f3
        d0 += row_d[i] * f0
        d1 += row_d[i] * f1
        d2 += row_d[i] * f2
        d3 += row_d[i] * f3
    rows = ((a0, a1, a2, a3), (b0, b1, b2, b3), (c0, c1, c2, c3), (d0, d1, d2, d3))
    for i in range(4):
        for j in range(4):
            out[first_row + i, first_column + j] += rows[i][j]


@compile_kernel
def cross_product(X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    """Add X Yᵀ to `out` (a, b), for X (a, n) and Y (b, n); if `symmetric`, only on and above the diagonal."""
    n_unrolled_rows, n_unrolled_columns = X.shape[0] - X.shape[0] % 4, Y.shape[0] - Y.shape[0] % 4
    for row in range(0, n_unrolled_rows, 4):
        for column in range(row if symmetric else 0, n_unrolled_columns, 4):
            _add_16_dots(
                X[row],
                X[row + 1],
                X[row + 2],
                X[row + 3],
                Y[column],
                Y[column + 1],
                Y[column + 2],
                Y[column + 3],
                out,
                row,
                column,
            )
    for row in range(X.shape[0]):
        first = n_unrolled_columns if row < n_unrolled_rows else 0
        for column in range(max(first, row) if symmetric else first, Y.shape[0]):
            out[row, column] += dot(X[row], Y[column])


@compile_fused
def _add_combination(out, a0, a1, a2, a3, x0, x1, x2, x3):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] += a0 * x0[i] + a1 * x1[i] + a2 * x2[i] + a3 * x3[i]


@compile_fused
def add_scaled(out, a, x):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] += a * x[i]


@compile_inline
def add_scaled_rows(a, X, start, out):  # type: ignore[no-untyped-def]
    """Add Σ_k a_k X_k to `out` (m,), for m columns of X (k, n) from `start` on; a has at least k values."""
    stop, n_unrolled = start + out.shape[0], X.shape[0] - X.shape[0] % 4
    for k in range(0, n_unrolled, 4):
        x0, x1, x2, x3 = X[k, start:stop], X[k + 1, start:stop], X[k + 2, start:stop], X[k + 3, start:stop]
        _add_combination(out, a[k], a[k + 1], a[k + 2], a[k + 3], x0, x1, x2, x3)
    for k in range(n_unrolled, X.shape[0]):
        add_scaled(out, a[k], X[k, start:stop])

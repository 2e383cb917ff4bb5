"""What are the sums of products of all pairs of rows, such as a Hessian needs, where matrices are long and narrow?"""

from __future__ import annotations

from trueodds.kernels import compiled

# Ours rather than the library's matrix product, whose own threads wait for each other when several of ours call it.


@compiled
def pairs(x, above, out):  # type: ignore[no-untyped-def]
    """Products x_a x_b of the rows of x (k, n), b at least `above` behind a, below each other in out."""
    at = 0
    for a in range(x.shape[0]):
        for b in range(a + above, x.shape[0]):
            for i in range(x.shape[1]):
                out[at, i] = x[a, i] * x[b, i]
            at += 1


def _fused(function):  # type: ignore[no-untyped-def]
    """With leave to add up in another order and to multiply and add at once."""
    return compiled(function, fastmath={"reassoc", "nsz", "contract"})


@_fused
def dot(x, y):  # type: ignore[no-untyped-def]
    """Σ x y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@_fused
def _dots(a, b, c, d, x, y, z, u, out, p, q):  # type: ignore[no-untyped-def]
    """The sixteen dot products of four rows with four rows: each number that is read serves four of them."""
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


@compiled
def cross(X, Y, symmetric, out):  # type: ignore[no-untyped-def]
    """X Yᵀ, added to out (a, b), of X (a, n) and Y (b, n); a `symmetric` one only on and above the diagonal."""
    a, b = X.shape[0] - X.shape[0] % 4, Y.shape[0] - Y.shape[0] % 4
    for p in range(0, a, 4):
        for q in range(p if symmetric else 0, b, 4):
            _dots(X[p], X[p + 1], X[p + 2], X[p + 3], Y[q], Y[q + 1], Y[q + 2], Y[q + 3], out, p, q)
    for p in range(X.shape[0]):
        first = b if p < a else 0
        for q in range(max(first, p) if symmetric else first, Y.shape[0]):
            out[p, q] += dot(X[p], Y[q])


@_fused
def _plus(out, a, b, c, d, x, y, z, u):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] += a * x[i] + b * y[i] + c * z[i] + d * u[i]


@_fused
def plus(out, a, x):  # type: ignore[no-untyped-def]
    """out += a x."""
    for i in range(out.shape[0]):
        out[i] += a * x[i]


@compiled
def combined(a, X, start, out):  # type: ignore[no-untyped-def]
    """Σ a_k X_k, added to out (m,), of a (k or more,) and the columns of X (k, n) from `start` on."""
    stop, n_unrolled = start + out.shape[0], X.shape[0] - X.shape[0] % 4
    for k in range(0, n_unrolled, 4):
        x, y, z, u = X[k, start:stop], X[k + 1, start:stop], X[k + 2, start:stop], X[k + 3, start:stop]
        _plus(out, a[k], a[k + 1], a[k + 2], a[k + 3], x, y, z, u)
    for k in range(n_unrolled, X.shape[0]):
        plus(out, a[k], X[k, start:stop])

"""Rows of probabilities where kernels may stumble: exact zeros and ones, ties, edges of cells, long shots."""

import numpy as np


def rows(n, k, dtype=np.float64, seed=0):
    """P (n, k) and labels (n,)."""
    rng = np.random.default_rng([seed, n, k])
    P = rng.dirichlet(np.full(k, 0.4), n)
    decimal = rng.random((n, 1)) < 0.3
    P = np.where(decimal, np.round(P * 20) / 20, P).astype(dtype)
    if n > 4:
        P[0], P[0, k // 2] = 0, 1
        P[1] = 1 / k
        P[2, 0] = np.nextafter(dtype(1), dtype(2))
        P[3, 0], P[3, -1] = dtype(1e-9), 1 - dtype(1e-6)
        P[4, 0] = -0.0
    return P, rng.integers(0, k, n)


def inside(P):
    """What the compiled loops are handed, where no wrapper stands before them: one layout and one mutability."""
    P = np.ascontiguousarray(P).view()
    P.flags.writeable = False
    return P

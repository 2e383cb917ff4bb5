"""How do calibrated outcomes vary together between the bins of classes, whichever bins each class has?"""

from __future__ import annotations

import numpy as np

from trueodds.kernels import compiled

_ROWS = 1000  # rows turned into columns at a time; columns a power of two apart would share cache sets


@compiled
def covariance(P, w, bins, out):  # type: ignore[no-untyped-def]
    """Σ w²(δ_kl p_k − p_k p_l) of each pair of classes k ≤ l and their bins, into out (K(K + 1)/2, size, size).

    P (n, K), w (n,), or (0,) for rows of weight 1, bins (n, K). Pair of classes by pair, so that the sums in use fit
    the nearest cache. A tally's classes share their bins, which is quicker (see together.py).
    """
    k, weighted = P.shape[1], w.shape[0] > 0
    x, scaled = np.empty((k, _ROWS)), np.empty((k, _ROWS))
    for start in range(0, P.shape[0], _ROWS):
        m = min(_ROWS, P.shape[0] - start)
        for i in range(m):
            square = w[start + i] * w[start + i] if weighted else 1.0
            for c in range(k):
                x[c, i] = P[start + i, c]
                scaled[c, i] = x[c, i] * square
        pair = 0
        for c in range(k):
            for d in range(c, k):
                sums, own = out[pair], 1.0 if d == c else 0.0
                for i in range(m):
                    sums[bins[start + i, c], bins[start + i, d]] += scaled[c, i] * (own - x[d, i])
                pair += 1

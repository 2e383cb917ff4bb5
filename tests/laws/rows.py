"""The rows on which the laws of tests and diagrams are judged: decimal scores, so that ties and edges occur."""

import numpy as np

from trueodds import Predictions


def three_classes(seed=0, n=90):
    """Labels, probabilities in twentieths, and weights 0 to 2."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(20, [0.5, 0.3, 0.2], n)
    counts = np.where(rng.random((n, 1)) < 0.5, counts, rng.permuted(counts, axis=1))
    P = counts / 20
    y = np.array([rng.choice(3, p=p) for p in P])
    return y, P, rng.integers(0, 3, n).astype(float)


def two_shapes(seed=0, n=60):
    """The same binary predictions as one column and as two."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 21, n) / 20
    y = (rng.random(n) < p).astype(int)
    return Predictions(y, p), Predictions(y, np.stack([1 - p, p], axis=1))

"""How much better is one set of probabilities than another, row by row, on one scale that no zero can break?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.tallies import scores


def mixing(n_fit: int) -> float:
    """The share of the uniform that is mixed in before scoring: 1/(n + 1), as n rows rule out nothing rarer."""
    return 1 / (n_fit + 1)


def mixed(Q: Array, share: Any) -> Array:
    """Rows over their sum, as logs need them, with a share of the uniform mixed in: one number, or one per row (n, 1)."""
    return np.asarray((1 - share) * (Q / Q.sum(axis=1, keepdims=True)) + share / Q.shape[1])


def log_capped(P: Array, share: Any) -> Array:
    """The logarithms of the rows over their sum, none below that of the least probability that mixing leaves.

    So rows that nothing was mixed into lose no more than rows that were, and all else is as it was said.

    >>> log_capped(np.array([[0.0, 1.0]]), 0.5).round(4).tolist()
    [[-1.3863, 0.0]]
    """
    return np.asarray(np.log(np.maximum(P / P.sum(axis=1, keepdims=True), share / P.shape[1])))


def losses(Q: Array, Y: Array) -> tuple[Array, Array]:
    """Log loss and Brier score of each row; two classes are scored as the binary problem they are."""
    q, y = (Q[:, 1], Y[:, 1]) if Q.shape[1] == 2 else (Q, Y)
    return scores.log_loss(Q, Y), scores.brier(q, y)


def mean_and_error(d: Array, w: Array, cluster: Array | None = None) -> tuple[float, float]:
    """The weighted mean of a difference per row, and its standard error; infinite for a single unit.

    Rows of one cluster are summed first, since they are not independent of each other.

    >>> mean, se = mean_and_error(np.array([0.0, 2.0]), np.ones(2))
    >>> mean, round(se, 6)
    (1.0, 1.0)
    """
    total = float(w.sum())
    mean = float(w @ d / total)
    deviations: Array = w * (d - mean)
    if cluster is not None:
        deviations = np.bincount(np.unique(cluster, return_inverse=True)[1].reshape(-1), deviations)
    g = len(deviations)
    return mean, float(np.sqrt(g / (g - 1) * (deviations @ deviations)) / total) if g > 1 else np.inf


def accuracy(Q: Array, Y: Array, w: Array) -> float:
    """The weighted share of rows whose most probable class came; the first of several."""
    return float(w @ Y[np.arange(len(Y)), Q.argmax(axis=1)] / w.sum())


def flips(P: Array, Q: Array) -> int:
    """How many rows get another label."""
    return int((P.argmax(axis=1) != Q.argmax(axis=1)).sum())

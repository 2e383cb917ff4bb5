"""What is left of probabilities beside one class or event, with all the digits that the others have."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.data import validation

NEAR = 1e-3  # a difference from 1 below this has lost more than three digits
_BLOCK = 2**16  # probabilities per block, so that temporaries stay in cache


def two_columns(p: Array, logits: Array | None = None) -> Array:
    """The probabilities of both classes (n, 2) from those of the second (n,), and from its log odds where these are known.

    Where a probability is above 1 by rounding that of the first class is 0.

    >>> two_columns(np.array([0.75])).tolist(), two_columns(np.array([1.0]), np.array([40.0])).round(20).tolist()
    ([[0.25, 0.75]], [[4.25e-18, 1.0]])
    """
    return np.stack([np.maximum(1 - p, 0) if logits is None else validation.softmax(-logits), p], axis=1)


def complement(P: Array, others: Array, p: Array, total: Array | float = 1.0) -> Array:
    """The sum (n,) float64 of the masked columns of rows (n, K) whose other columns add up to p, and all to `total`.

    It is total − p, but added up column by column where that would lose digits. A mask (1, K) serves all rows.
    """
    rest: Array = total - p.astype(np.float64)
    near = rest < NEAR
    if near.any():
        rest[near] = np.where(_rows(others, near), P[near], 0.0).sum(axis=1, dtype=np.float64)
    return rest


def log_complement(z: Array, others: Array, log_p: Array, total: Array | float = 0.0) -> Array:
    """The logarithm of the same sum, from logits (n, K) whose log Σ exp is `total`, and the log-probability of the rest."""
    with np.errstate(divide="ignore"):
        rest: Array = np.log1p(-np.exp(np.minimum(log_p, 0.0)))
    near = rest < np.log(NEAR)
    if near.any():
        rest[near] = masked_log_sum(z[near], _rows(others, near)) - (
            total[near] if isinstance(total, np.ndarray) else total
        )
    return rest


def log_sum(z: Array) -> Array:
    """log Σ_k exp(z_k) of each row of (n, K), (n,) float64; −inf where all are −inf."""
    out = np.empty(len(z))
    rows = max(1, _BLOCK // z.shape[1])
    for start in range(0, len(z), rows):
        part = z[start : start + rows].astype(np.float64)
        top = part.max(axis=1)
        top[np.isneginf(top)] = 0.0
        part -= top[:, None]
        with np.errstate(divide="ignore"):
            out[start : start + rows] = np.log(np.exp(part, out=part).sum(axis=1)) + top
    return out


def masked_log_sum(z: Array, mask: Array) -> Array:
    """log Σ exp of the masked logits of each row, (n,)."""
    return log_sum(z[:, mask[0]]) if len(mask) == 1 else log_sum(np.where(mask, z, -np.inf))


def _rows(mask: Array, rows: Array) -> Array:
    """A mask for some rows; one row of it may serve all."""
    return mask if len(mask) == 1 else mask[rows]

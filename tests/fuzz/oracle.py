"""The number that a call should have given, each in a few lines of NumPy that share nothing with the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.fuzz.rows import Rows
from trueodds.core.typing import Array

Binary = tuple[Array, Array, Array]  # p, y and w of one view


def expected(estimator: Any, rows: Rows, lens: Any, settings: Mapping[str, Any]) -> float | None:
    """The value of a plain estimator through a binary lens; None for what is not calculated here."""
    own = {name: value for name, value in settings.items() if name not in ("rng", "interval", "level", "resamples")}
    if isinstance(estimator, str) and estimator in ("brier", "log_loss") and not own and lens in (None, "canonical"):
        return score(estimator, rows)
    k, q, closed = own.pop("bins", 15), own.pop("order", None), own.pop("closed", "right")
    equal = own.pop("partition", "uniform" if estimator != "debiased_l2" else None) == "uniform"
    views = binary(rows, lens)
    if views is None or own or not equal or not isinstance(estimator, str) or not isinstance(k, (int, np.integer)):
        return None
    if estimator == "debiased_l2" and len(views) == 1:
        return debiased(*views[0], int(k), closed)
    power = {"ece": 1, "rmsce": 2, "mce": np.inf}.get(estimator)
    if power is None:
        return None
    return float(np.mean([binned(*bins(*view, int(k), closed), float(q or power)) for view in views]))


def debiased(p: Array, y: Array, w: Array, k: int, closed: str) -> float | None:
    """The root of the mean product of residuals over pairs of rows in one of k uniform bins."""
    p, y, w = (x[w > 0] for x in (p, y, w))
    bin_rows = [np.flatnonzero(places(p, k, closed) == b) for b in range(k)]
    if any(len(i) > 1 and w[i].sum() ** 2 - w[i] @ w[i] < 1e-4 * w[i].sum() ** 2 for i in bin_rows):
        return None  # one row outweighs the others, and the difference has no digits left
    residual = w * (y - p)
    pairs = [
        w[i].sum() * (residual[i].sum() ** 2 - residual[i] @ residual[i]) / (w[i].sum() ** 2 - w[i] @ w[i])
        for i in bin_rows
        if len(i) > 1
    ]
    return float(np.sqrt(max(0.0, sum(pairs) / w.sum()))) if pairs else float("nan")


def score(name: str, rows: Rows) -> float:
    """The mean Brier score (of one class where there are two) or log loss."""
    w = rows.w / rows.w.max()
    if name == "brier":
        loss = (rows.P**2).sum(axis=1) - 2 * (rows.P * rows.Y).sum(axis=1) + 1  # of votes, the mean over the votes
        return float(w @ loss / w.sum() / (2 if rows.P.shape[1] == 2 else 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(rows.Y > 0, -rows.Y * np.log(rows.P), 0.0).sum(axis=1)
    return float((w[w > 0] @ loss[w > 0]) / w.sum())


def binary(rows: Rows, lens: Any) -> list[Binary] | None:
    """The binary views of a lens that is named; None of another."""
    P, Y, w = rows.P, rows.Y, rows.w / rows.w.max()
    k, row = P.shape[1], np.arange(len(rows.P))
    if lens is None or lens == "confidence":
        if lens is None and k == 2:
            return [(P[:, 1], Y[:, 1], w)]
        top = P.argmax(axis=1)
        return [(P[row, top], Y[row, top], w)]
    if isinstance(lens, str) and lens in ("classwise", "class:0", "class:1"):
        return [(P[:, c], Y[:, c], w) for c in (range(k) if lens == "classwise" else [int(lens[6:])])]
    return [(P[:, 1], Y[:, 1], w)] if isinstance(lens, str) and lens == "positive" and k == 2 else None


def places(p: Array, k: int, closed: str) -> Array:
    """The bin of each score among k equal ones, by comparison with their edges."""
    edges = np.arange(k + 1) / k
    index = np.searchsorted(edges, p, "left" if closed == "right" else "right") - 1
    return np.clip(index, 0, k - 1)


def bins(p: Array, y: Array, w: Array, k: int, closed: str) -> tuple[Array, Array]:
    """The share and the gap of each bin with weight."""
    b = places(p, k, closed)
    mass, gap = np.bincount(b, w, k), np.bincount(b, w * (p - y), k)
    return mass[mass > 0] / w.sum(), np.abs(gap[mass > 0] / mass[mass > 0])


def binned(share: Array, gap: Array, q: float) -> float:
    """(Σ share gap^q)^(1/q), without underflow."""
    top = gap.max()
    return float(top) if np.isinf(q) or top == 0 else float(top * (share @ (gap / top) ** q) ** (1 / q))

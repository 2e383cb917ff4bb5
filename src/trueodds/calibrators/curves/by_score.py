"""What does each class look like by rising score? Sorted once per class, class by class on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from trueodds.calibrators.likelihood.logs import Probabilities, log_pair, probabilities
from trueodds.core.typing import Array
from trueodds.kernels import in_blocks, keyed, sort

T = TypeVar("T")

_VALUES = 2**18  # of a block of rows: what is made of it stays near, and few blocks wait for the interpreter


def map_classes(
    P: Array, Y: Array, w: Array, of_keys: Callable[[Array], T], of_rows: Callable[[Array, Array, Array], T]
) -> tuple[T, ...]:
    """What is made of the second of two classes, or of every class, from the rows that have weight.

    `of_keys(keys)` of sorted keys (see `core.kernels.sort`) where every row weighs 1 and came or did not;
    else `of_rows(x, y, w)`. Y is (n, K) shares, or class numbers (n,).
    """
    if not w.all():
        live = w > 0
        P, Y, w = P[live], Y[live], w[live]
    classes = range(1, 2) if P.shape[1] == 2 else range(P.shape[1])
    results = keyed.map_sorted_keys(P, Y, of_keys, classes) if (w == 1).all() else None
    if results is None:

        def work(start: int, stop: int) -> list[T]:
            some = classes[start:stop]
            return [of_rows(P[:, c], (Y == c).astype(np.float64) if Y.ndim == 1 else Y[:, c], w) for c in some]

        results = [one for some in in_blocks(work, len(classes), 1) for one in some]
    return tuple(results)


def fit_curves_from_counts(P: Array, Y: Array, w: Array, made: Callable[[Array, Array, Array], T]) -> tuple[T, ...]:
    """What `made(s, mass, came)` makes of them, from the rising distinct scores s, and Σw and Σwy at each."""

    def of_rows(x: Array, y: Array, w: Array) -> T:
        return made(*sort.sums(x, y, w, sort.order(x)))

    return map_classes(P, Y, w, lambda keys: made(*sort.counts(keys)), of_rows)


def in_row_blocks(apply: Callable[[Any], Array], P: Probabilities) -> Array:
    """`apply` of the rows, some at a time on threads; (n, K) float64."""
    out = np.empty(P.shape)

    def work(start: int, stop: int) -> None:
        out[start:stop] = apply(P[start:stop])

    in_blocks(work, len(P), max(1, _VALUES // P.shape[1]))
    return out


def one_against_the_rest(curves: Sequence[Callable[[Array], Array]], P: Probabilities) -> Array:
    """Each class's own curve (of the second of two), made to sum to 1; a row whose every curve is 0 becomes uniform.

    A curve that takes logarithms gets those of both sides, so that neither loses digits.
    """
    if len(curves) == 1:
        return _both(curves[0], P, 1)
    raw = np.stack([_one(curve, P, c) for c, curve in enumerate(curves)])  # by class, so that sums run along the rows
    total = raw.sum(axis=0)
    if not total.all():
        raw[:, total == 0], total[total == 0] = 1.0, len(raw)
    raw /= total
    return raw.T


def _both(curve: Any, P: Probabilities, c: int) -> Array:
    """What a curve makes of the other classes together and of class c, (n, 2)."""
    if getattr(curve, "takes_logs", False):
        return np.asarray(curve.of_logs(log_pair(P, c)))
    q = curve(probabilities(P)[:, c])
    return np.stack([1 - q, q], axis=1)


def _one(curve: Any, P: Probabilities, c: int) -> Array:
    """What a curve makes of class c, (n,)."""
    return (
        _both(curve, P, c)[:, 1] if getattr(curve, "takes_logs", False) else np.asarray(curve(probabilities(P)[:, c]))
    )


def by_log_odds(x: Array, y: Array, w: Array) -> tuple[Array, Array, Array]:
    """The rising distinct log odds x of rows that have weight, and Σw and Σwy at each, as `ByScore.sums` has them."""
    order = np.argsort(x, kind="stable")
    order = order[w[order] > 0]
    x, w, wy = x[order], w[order], w[order] * y[order]
    first = np.flatnonzero(np.diff(x, prepend=-np.inf) > 0) if len(x) else np.zeros(0, dtype=np.intp)
    return x[first], np.add.reduceat(w, first), np.add.reduceat(wy, first)

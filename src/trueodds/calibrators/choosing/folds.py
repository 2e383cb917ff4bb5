"""Which rows fit, and which judge? Splits that keep the classes in proportion and no cluster in two parts."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array


def fold_of(Y: Array, folds: int, cluster: Array | None, rng: np.random.Generator) -> Array:
    """The fold of each row, 0..folds−1; sizes and class counts differ by as little as units allow.

    >>> rng = np.random.default_rng(0)
    >>> np.bincount(fold_of(np.eye(2)[[0, 1] * 5], 5, None, rng)).tolist()
    [2, 2, 2, 2, 2]
    """
    return _place(Y, cluster, rng) % folds


def held_out(Y: Array, share: float, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Which rows are set aside, as a mask: a `share` of the units, the same in every class.

    >>> int(held_out(np.eye(2)[[0, 1] * 50], 0.3, None, np.random.default_rng(0)).sum())
    30
    """
    place = _place(Y, cluster, rng)
    out = np.floor((place + 1) * share + 1e-9) > np.floor(place * share + 1e-9)
    # Both parts have a unit at least, however few there are.
    if not out.any():
        return place == place.max()
    return place != 0 if out.all() else out


def units(n: int, cluster: Array | None) -> int:
    """How many independent units n rows are."""
    return n if cluster is None else len(np.unique(cluster))


def _place(Y: Array, cluster: Array | None, rng: np.random.Generator) -> Array:
    """The place of each row's unit when units are laid out class by class, in random order within each.

    Dealing along that line is stratified. Copies of one row in a bootstrap are a cluster: pass the original row ids.
    """
    label = Y.argmax(axis=1)
    if cluster is None:
        unit, stratum = np.arange(len(Y)), label
    else:
        unit = np.unique(cluster, return_inverse=True)[1].reshape(-1)
        stratum = _majority(unit, label, Y.shape[1])
    order = np.lexsort((rng.permutation(len(stratum)), stratum))
    place = np.empty(len(stratum), dtype=np.int64)
    place[order] = np.arange(len(stratum))
    return place[unit]


def _majority(unit: Array, label: Array, k: int) -> Array:
    """The most frequent label of each unit, the lowest of several."""
    pair, count = np.unique(unit * k + label, return_counts=True)
    order = np.lexsort((pair % k, -count, pair // k))
    first = np.unique(pair[order] // k, return_index=True)[1]
    return pair[order][first] % k

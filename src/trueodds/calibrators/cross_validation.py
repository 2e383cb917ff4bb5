"""Stratified folds that keep clusters whole, and losses of held-out rows with their standard errors."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.tallies import proper_score_sums


def stratified_folds(Y: Array, folds: int, cluster: Array | None, rng: np.random.Generator) -> Array:
    """The fold of each row, 0 to folds − 1; sizes and class counts differ as little as the units allow.

    >>> rng = np.random.default_rng(0)
    >>> np.bincount(stratified_folds(np.eye(2)[[0, 1] * 5], 5, None, rng)).tolist()
    [2, 2, 2, 2, 2]
    """
    return _stratified_positions(Y, cluster, rng) % folds


def stratified_holdout(Y: Array, share: float, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Mask of the rows that are held out: a `share` of the units, equal in every class.

    >>> int(stratified_holdout(np.eye(2)[[0, 1] * 50], 0.3, None, np.random.default_rng(0)).sum())
    30
    """
    positions = _stratified_positions(Y, cluster, rng)
    held_out = np.floor((positions + 1) * share + 1e-9) > np.floor(positions * share + 1e-9)
    # Both parts have at least one unit.
    if not held_out.any():
        return positions == positions.max()
    return positions != 0 if held_out.all() else held_out


def count_units(n: int, cluster: Array | None) -> int:
    """Number of independent units (rows or clusters)."""
    return n if cluster is None else len(np.unique(cluster))


def _stratified_positions(Y: Array, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Position of each row's unit when units are ordered by class, in random order within each class.

    Assigning folds in this order is stratified. Copies of one row in a bootstrap are a cluster: pass the original row
    ids.
    """
    label = Y.argmax(axis=1)
    if cluster is None:
        unit_of_row, stratum = np.arange(len(Y)), label
    else:
        unit_of_row = np.unique(cluster, return_inverse=True)[1].reshape(-1)
        stratum = _majority_label(unit_of_row, label, Y.shape[1])
    order = np.lexsort((rng.permutation(len(stratum)), stratum))
    position_of_unit = np.empty(len(stratum), dtype=np.int64)
    position_of_unit[order] = np.arange(len(stratum))
    return position_of_unit[unit_of_row]


def _majority_label(unit_of_row: Array, label: Array, k: int) -> Array:
    """The most frequent label of each unit; the lowest of several."""
    pair, count = np.unique(unit_of_row * k + label, return_counts=True)
    order = np.lexsort((pair % k, -count, pair // k))
    first_of_unit = np.unique(pair[order] // k, return_index=True)[1]
    return pair[order][first_of_unit] % k


def row_losses(Q: Array, Y: Array) -> tuple[Array, Array]:
    """Log loss and Brier score of each row; two classes are scored as a binary problem."""
    q, y = (Q[:, 1], Y[:, 1]) if Q.shape[1] == 2 else (Q, Y)
    return proper_score_sums.log_loss(Q, Y), proper_score_sums.brier(q, y)


def mean_and_standard_error(differences: Array, w: Array, cluster: Array | None = None) -> tuple[float, float]:
    """Weighted mean of a difference per row, and its standard error; infinite for a single unit.

    Rows of one cluster are summed first, because they are not independent.

    >>> mean, se = mean_and_standard_error(np.array([0.0, 2.0]), np.ones(2))
    >>> mean, round(se, 6)
    (1.0, 1.0)
    """
    total_weight = float(w.sum())
    mean = float(w @ differences / total_weight)
    deviations: Array = w * (differences - mean)
    if cluster is not None:
        deviations = np.bincount(np.unique(cluster, return_inverse=True)[1].reshape(-1), deviations)
    n_units = len(deviations)
    return mean, float(
        np.sqrt(n_units / (n_units - 1) * (deviations @ deviations)) / total_weight
    ) if n_units > 1 else np.inf


def accuracy(Q: Array, Y: Array, w: Array) -> float:
    """Weighted share of rows whose predicted class is correct; of tied classes the first is predicted."""
    return float(w @ Y[np.arange(len(Y)), Q.argmax(axis=1)] / w.sum())


def count_label_flips(P: Array, Q: Array) -> int:
    """Number of rows whose predicted class changes."""
    return int((P.argmax(axis=1) != Q.argmax(axis=1)).sum())

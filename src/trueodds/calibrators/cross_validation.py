"""Stratified folds that keep clusters whole, and losses of held-out rows with their standard errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels.bootstrap import argsort_bins
from trueodds.tallies import proper_score_sums


def stratified_folds(Y: Array, folds: int, cluster: Array | None, rng: np.random.Generator) -> Array:
    """The fold of each row (n,), 0 to folds − 1, with sizes and class counts as equal as possible.

    The class of a row is that of its largest entry in Y (n, K). `cluster` (n,) labels rows that share a fold.

    >>> rng = np.random.default_rng(0)
    >>> np.bincount(stratified_folds(np.eye(2)[[0, 1] * 5], 5, None, rng)).tolist()
    [2, 2, 2, 2, 2]
    """
    return _stratified_positions(Y, cluster, rng) % folds


def stratified_holdout(Y: Array, share: float, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Mask (n,) of the rows that are held out: a `share` of the units, equal in every class.

    The class of a row is that of its largest entry in Y (n, K). `cluster` (n,) labels rows that stay together.

    >>> int(stratified_holdout(np.eye(2)[[0, 1] * 50], 0.3, None, np.random.default_rng(0)).sum())
    30
    """
    positions = _stratified_positions(Y, cluster, rng)
    # Every 1/share-th position; the tolerance keeps rounding errors of the products from moving one.
    held_out = np.floor((positions + 1) * share + 1e-9) > np.floor(positions * share + 1e-9)
    # Both parts have at least one unit.
    if not held_out.any():
        return positions == positions.max()
    return positions != 0 if held_out.all() else held_out


def count_units(n: int, cluster: Array | None) -> int:
    """Number of independent units: the clusters if there are any, else the n rows."""
    return n if cluster is None else len(np.unique(cluster))


def _stratified_positions(Y: Array, cluster: Array | None, rng: np.random.Generator) -> Array:
    """Position of each row's unit when units are ordered by class, in random order within each class.

    Folds that are assigned in this order in turn are stratified. If rows were resampled by a bootstrap, pass the
    original row numbers as `cluster`, so that copies of a row stay together.
    """
    label = Y.argmax(axis=1)
    if cluster is None:
        unit_of_row, stratum = np.arange(len(Y)), label
    else:
        unit_of_row = np.unique(cluster, return_inverse=True)[1].reshape(-1)
        stratum = _majority_label(unit_of_row, label, Y.shape[1])
    shuffled_units = np.empty(len(stratum), dtype=np.int64)
    shuffled_units[rng.permutation(len(stratum))] = np.arange(len(stratum))
    order = shuffled_units[argsort_bins(stratum[shuffled_units], Y.shape[1])]
    position_of_unit = np.empty(len(stratum), dtype=np.int64)
    position_of_unit[order] = np.arange(len(stratum))
    return position_of_unit[unit_of_row]


def _majority_label(unit_of_row: Array, label: Array, k: int) -> Array:
    """The most frequent label of each unit, (units,); the lowest of several."""
    # A pair of unit and label is one number: unit · k + label.
    pairs, counts = np.unique(unit_of_row * k + label, return_counts=True)
    order = np.lexsort((pairs % k, -counts, pairs // k))
    first_of_unit = np.unique(pairs[order] // k, return_index=True)[1]
    return pairs[order][first_of_unit] % k


class RowLosses(NamedTuple):
    """Losses of each row."""

    log_loss: Array  # (n,) nats
    brier: Array  # (n,)


def row_losses(Q: Array, Y: Array) -> RowLosses:
    """Losses of predictions Q (n, K) with outcome shares Y (n, K); two classes are scored as a binary problem."""
    q, y = (Q[:, 1], Y[:, 1]) if Q.shape[1] == 2 else (Q, Y)
    return RowLosses(proper_score_sums.log_loss(Q, Y), proper_score_sums.brier(q, y))


class MeanEstimate(NamedTuple):
    """A weighted mean and its standard error."""

    mean: float
    se: float  # infinite for a single unit


def mean_and_standard_error(differences: Array, w: Array, cluster: Array | None = None) -> MeanEstimate:
    """Weighted mean of a difference per row (n,), and its standard error.

    Rows of one cluster are summed first, because they are not independent.

    >>> mean, se = mean_and_standard_error(np.array([0.0, 2.0]), np.ones(2))
    >>> mean, round(se, 6)
    (1.0, 1.0)
    """
    total_weight = float(w.sum())
    mean = float(weighted_sum(w, differences)) / total_weight
    deviations: Array = w * (differences - mean)
    if cluster is not None:
        deviations = np.bincount(np.unique(cluster, return_inverse=True)[1].reshape(-1), deviations)
    n_units = len(deviations)
    if n_units < 2:
        return MeanEstimate(mean, np.inf)
    return MeanEstimate(
        mean, float(np.sqrt(n_units / (n_units - 1) * weighted_sum(deviations, deviations)) / total_weight)
    )


def accuracy(Q: Array, Y: Array, w: Array) -> float:
    """Weighted share of rows whose predicted class is correct; of tied classes the first is predicted."""
    return float(weighted_sum(w, Y[np.arange(len(Y)), Q.argmax(axis=1)]) / w.sum())


def count_label_flips(P: Array, Q: Array) -> int:
    return int((P.argmax(axis=1) != Q.argmax(axis=1)).sum())

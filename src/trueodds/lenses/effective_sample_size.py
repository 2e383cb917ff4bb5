"""Effective sample size of weighted and of clustered rows (design effect), and the effective number of clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.weights import are_counts, weight_of_one_row
from trueodds.lenses.view import View

# Weight of the prior value of the intracluster correlation, 1, in outcomes of the rarer kind. Without outcomes of both
# kinds the rows do not show how correlated they are: the estimate is the prior, and each cluster counts as one row.
N_PSEUDO_OUTCOMES = 1.0
MIN_CLUSTER_SHARE = 0.5  # smallest effective number of clusters, as a share of `equal_clusters`
MIN_EQUAL_CLUSTERS = 10.0  # number of clusters of equal weight below which intervals have a note


def effective_n(view: View) -> float:
    """Return the effective sample size of independent rows, (Σw)²/Σw²; 0 if the total weight is 0."""
    if view.is_unweighted:
        return view.total
    return view.total**2 / float(view.sums("ww").sum()) if view.total > 0 else 0.0


def has_integer_weights(view: View) -> bool:
    """Return whether all weights are counts, so that a weight of two is equivalent to two rows."""
    return view.is_unweighted or are_counts(view.w)


def unit_weight(view: View) -> float | None:
    """Return the weight of one row if all weights are multiples of it, else None."""
    return 1.0 if has_integer_weights(view) else weight_of_one_row(view.w[view.n > 0] / view.n[view.n > 0])


def n_represented(view: View) -> float:
    """Return the sum of the weights if they are counts, else the number of rows with positive weight."""
    return view.total if has_integer_weights(view) else view.n_rows


@dataclass(frozen=True, slots=True)
class EffectiveSampleSize:
    """Effective numbers of rows and clusters of clustered rows."""

    effective_rows: float  # number of independent rows whose mean has the same variance
    effective_clusters: float  # number of equal clusters from which this variance is estimated equally well

    def critical_value(self, level: float) -> float:
        r"""Number of bootstrap standard deviations from a normal estimate to the ends of its interval.

        With G effective clusters, at least two, this is the quantile of Student's t with G − 1 degrees of freedom times
        :math:`\sqrt{G / (G - 1)}`, because the bootstrap divides the variance by G instead of G − 1.

        >>> round(EffectiveSampleSize(100.0, 25.0).critical_value(0.95), 4)
        2.1065
        """
        clusters = max(self.effective_clusters, 2.0)
        return float(stdtrit(clusters - 1, (1 + level) / 2)) * math.sqrt(clusters / (clusters - 1))


def critical_value(clusters: EffectiveSampleSize | None, level: float) -> float:
    """Number of bootstrap standard deviations to the ends of an interval: normal for independent rows (None)."""
    return float(ndtri((1 + level) / 2)) if clusters is None else clusters.critical_value(level)


def effective_sample_size(views: Sequence[View], cluster: Array) -> EffectiveSampleSize:
    r"""Effective numbers of rows and clusters, each the smallest among the views.

    `cluster` (n,) is the number of the cluster of each row. With the intracluster correlation ρ of the residuals, row
    weights w and cluster totals W, the design effect is

    .. math:: d = \frac{\sum_c v_c}{\sum_i w_i^2}, \quad
        v_c = \sum_{i \in c} w_i^2 + \rho \Big(W_c^2 - \sum_{i \in c} w_i^2\Big)

    and the effective number of rows is :math:`(\sum w)^2 / \sum v_c`. The effective number of clusters G is
    :math:`(\sum v_c)^2 / \sum v_c^2`, by Satterthwaite's approximation, in which the variance has G − 1 degrees of
    freedom. It is at least half of :math:`(\sum W_c)^2 / \sum W_c^2`, because a single dominating cluster would make
    the interval vacuous.

    ρ is estimated from pairs of rows of a cluster, after a straight line in the predictions is subtracted from the
    residuals, and is at least 0. The estimate is shrunk toward 1: it is averaged with ρ = 1, where the number of
    outcomes of the rarer kind is the weight of the estimate and 1 that of ρ = 1.

    >>> y = np.array([0.0, 1.0] * 20)
    >>> rows = effective_sample_size([View(p=np.full(40, 0.5), y=y)], np.arange(40))
    >>> round(rows.effective_rows), round(rows.effective_clusters)
    (40, 40)

    References
    ----------
    .. [1] Kish (1965). Survey Sampling. The design effect.
    .. [2] Korn & Graubard (1998). Intervals of proportions from the effective number of rows.
    .. [3] Satterthwaite (1946). Degrees of freedom of a sum of variances.
    """
    sizes = [_effective_sample_size_of_view(view, cluster) for view in views if view.total > 0]
    if not sizes:
        return EffectiveSampleSize(0.0, 0.0)
    return EffectiveSampleSize(
        min(size.effective_rows for size in sizes), min(size.effective_clusters for size in sizes)
    )


def _effective_sample_size_of_view(view: View, cluster: Array) -> EffectiveSampleSize:
    squared_weights = view.w.astype(np.float64) ** 2
    totals, squares = np.bincount(cluster, view.w), np.bincount(cluster, squared_weights)
    pair_weights = totals**2 - squares  # Σ w_i w_j over the pairs of rows of each cluster
    correlation = _intracluster_correlation(view, cluster, float(pair_weights.sum()))
    variances = squares + correlation * np.maximum(pair_weights, 0.0)
    total_variance = float(variances.sum())
    effective_clusters = max(
        total_variance**2 / float(variances @ variances), equal_clusters(view.w, cluster) * MIN_CLUSTER_SHARE
    )
    return EffectiveSampleSize(float(view.total**2 / total_variance), effective_clusters)


def equal_clusters(w: Array, cluster: Array) -> float:
    """Number of clusters of equal weight with the same sum of squared weights: (Σ W)² / Σ W² of the cluster weights W.

    >>> equal_clusters(np.ones(4), np.array([0, 0, 0, 1]))
    1.6
    """
    totals = np.bincount(cluster, w)
    return float(totals.sum() ** 2 / (totals @ totals))


def _intracluster_correlation(view: View, cluster: Array, pair_weight: float) -> float:
    """Estimated intracluster correlation of residuals, 0 to 1; `pair_weight` is Σ w_i w_j over pairs i ≠ j."""
    if pair_weight <= 1e-12 * view.total**2:  # one row per cluster
        return 0.0
    w, n = view.w.astype(np.float64), len(view.w)
    p, y = view.p.reshape(n, -1).astype(np.float64), view.y.reshape(n, -1)
    residuals = (y - p) - _fitted_lines(p, y - p, w)
    cluster_sums = np.stack([np.bincount(cluster, w * column) for column in residuals.T])
    square_sum = float((w[:, None] ** 2 * residuals**2).sum())
    variance = square_sum / float(weighted_sum(w, w))
    n_clusters = int((np.bincount(cluster, w) > 0).sum())
    # The fitted mean takes one degree of freedom from the sums of the clusters.
    freedom_correction = n_clusters / (n_clusters - 1) if n_clusters > 1 else 1.0
    covariance = (freedom_correction * float((cluster_sums**2).sum()) - square_sum) / pair_weight
    correlation = min(max(covariance / variance, 0.0), 1.0) if variance > 0 else 1.0
    rates = weighted_sum(w, y) / view.total
    rarer_share = 1 - float(rates.max()) if view.joint else min(float(rates[0]), 1 - float(rates[0]))
    n_rarer = max(rarer_share, 0.0) * effective_n(view)
    return (n_rarer * correlation + N_PSEUDO_OUTCOMES) / (n_rarer + N_PSEUDO_OUTCOMES)


def _fitted_lines(p: Array, residuals: Array, w: Array) -> Array:
    """Weighted least-squares line of each column of residuals (n, m) in the same column of predictions, (n, m)."""
    total = w.sum()
    centered = p - weighted_sum(w, p) / total
    means = weighted_sum(w, residuals) / total
    variances, covariances = weighted_sum(w, centered**2), weighted_sum(w, centered * residuals)
    slopes = np.divide(covariances, variances, out=np.zeros_like(covariances), where=variances > 1e-12 * total)
    return np.asarray(means + slopes * centered)


def cluster_count_note(w: Array, cluster: Array) -> Note | None:
    """Note on intervals from few clusters, or from a few dominating ones; None if there are enough."""
    n_clusters, n_equal = int((np.bincount(cluster, w) > 0).sum()), equal_clusters(w, cluster)
    if not 1 < n_clusters or n_equal >= MIN_EQUAL_CLUSTERS:
        return None
    text = (
        f"The rows are in {n_clusters:,} clusters, whose variance is as uncertain as with {n_equal:.2g} equal ones."
        " Intervals of so few clusters are wide, and their coverage is approximate."
    )
    return Note("TN271", text)

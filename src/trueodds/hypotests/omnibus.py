"""The omnibus test: level, slope and local miscalibration combined into one p-value per lens by a harmonic mean.

The component statistics are those of omnibus_components.py. Here they are turned into p-values by distributions fitted
to their own draws, combined by the harmonic mean, and the combined p-value is compared with those of the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import chdtrc, log_ndtr, ndtri

from trueodds.core.pvalues import TIE_TOLERANCE, holm, pvalue
from trueodds.core.settings import Resamples
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.estimators.debiased import mean_square
from trueodds.hypotests.multiple_testing import PValues, smallest_pvalue
from trueodds.hypotests.omnibus_components import (
    BINARY_COMPONENTS,
    BinaryCells,
    Component,
    VectorLeaves,
    vector_components,
)
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.kernels import map_columns, map_items
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand

MIN_TAIL = 1e-300  # smallest χ² tail probability that is used; its logarithm is −690.8
LOG_MIN_TAIL = -690.0  # smaller tails are ordered by χ²: half of it is subtracted from this value
UPPER_DIVISOR, MIN_UPPER_ENTRIES = 10, 5  # the upper tail is the largest tenth of the entries, at least five of them
MAX_SQUARED = 1e150  # larger statistics, of outcomes that are almost impossible, overflow when they are squared
LENS_WEIGHTS = {"classwise": 0.15, "canonical": 0.45}  # weights of lenses in a family
OTHER_LENS_WEIGHT = 0.4  # weight of any other lens
MAX_NODES, MAX_VECTOR_NODES = 16, 64  # maximum number of nodes for the effect: of a score, and of vectors
# Weights for several views: of the views one by one, and of the sums of their squared levels and of their slopes.
VIEWS_WEIGHT, SUMS_WEIGHT = 0.4, 0.3


def log_pvalues(pool: Array, component: Component, entries: slice = slice(None)) -> Array:
    """Log p-values of the `entries` of a pool (1 + B,), which contains the observed value and the draws of a component.

    The distribution is fitted to the pool: χ² with its mean (and variance, for centered squares), the maximum of
    several normal values with its median, or normal with its root mean square. It only needs to be approximately
    correct, because the combined p-value is compared with those of the same draws. The result does not depend on the
    scale of the pool.
    """
    largest = np.abs(pool).max()
    if MAX_SQUARED < largest < np.inf:
        pool = pool / largest
    if component.is_centered:
        scale = pool.std()
        zscores = (pool - pool.mean()) / scale if scale > 0 else np.zeros_like(pool)
        x = np.maximum(component.df + np.sqrt(2.0 * component.df) * zscores, 0.0)
    elif component.df:
        mean = pool.mean()
        x = pool * (component.df / mean) if mean > 0 else np.zeros_like(pool)
    elif component.n_maximum > 1:
        median, expected = np.median(pool), -ndtri(0.5 * (1 - 0.5 ** (1 / component.n_maximum)))
        z = pool * (expected / median) if median > 0 else np.zeros_like(pool)
        return np.minimum(np.log(2.0 * component.n_maximum) + log_ndtr(-z[entries]), 0.0)
    else:
        scale = np.sqrt((pool * pool).mean())
        z = np.abs(pool) / scale if scale > 0 else np.zeros_like(pool)
        return np.minimum(np.log(2.0) + log_ndtr(-z[entries]), 0.0)
    smallest, x = x.min(), x[entries]
    tail = chdtrc(component.df, x)
    return np.where(tail > MIN_TAIL, np.log(np.maximum(tail, MIN_TAIL)), LOG_MIN_TAIL - 0.5 * (x - smallest))


def surprisal(pool: Array) -> Array:
    """Negative log p-value of each entry of pools (…, 1 + B) among the entries of its pool, with a smooth upper tail.

    The p-value is the share of entries that are at least as large. The upper tenth is modeled as exponential with its
    median, so that the result for the largest entry depends on its magnitude and not on its rank only. The observed
    entry and the draws are treated in the same way.

    >>> surprisal(np.arange(100.0))[[0, 50, 99]].round(2)
    array([-0.  ,  0.69,  3.69])
    """
    size = pool.shape[-1]
    n_upper = max(MIN_UPPER_ENTRIES, size // UPPER_DIVISOR)
    if size <= n_upper:
        return pool
    sorted_pool = np.sort(pool, axis=-1)
    result = np.empty_like(pool)
    for index in np.ndindex(pool.shape[:-1]):
        values, sorted_values = pool[index], sorted_pool[index]
        rank = size - np.searchsorted(sorted_values, values - TIE_TOLERANCE * np.abs(values), "left")
        result[index] = -np.log(np.maximum(rank, 1) / size)
        threshold = sorted_values[size - n_upper]
        scale = np.median(sorted_values[size - n_upper :] - threshold) / np.log(2)
        if scale > 0:
            result[index] = np.where(
                values > threshold, np.log(size / n_upper) + (values - threshold) / scale, result[index]
            )
    return np.where(np.isnan(pool), np.nan, result)


def negative_log_harmonic_mean(log_p: Array, weights: Array) -> Array:
    """Negative log of the weighted harmonic mean of p-values, (…); larger is more extreme.

    `log_p` (claims, …) are the logarithms of the p-values, of which NaN are skipped, and `weights` (claims,) the weight
    of each claim.
    """
    defined = ~np.isnan(log_p)
    weights_column = np.reshape(weights, (-1, *[1] * (log_p.ndim - 1)))  # broadcasts against log_p
    defined_weights = np.where(defined, weights_column, 0.0)
    total_weight = defined_weights.sum(axis=0)
    evidence = np.where(defined, -log_p, 0.0)
    largest = evidence.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = largest + np.log((defined_weights * np.exp(evidence - largest)).sum(axis=0) / total_weight)
    return np.where(total_weight > 0, value, np.nan)


def debiased_rms_error(view: View, node: Array) -> float:
    """Debiased root-mean-square calibration error of the nodes, with the sign of its square, which can be negative.

    `node` (n,) is the node of each row. For vectors the squares are summed over the classes.

    >>> view = View(p=[0.5, 0.5, 0.5, 0.5], y=[1, 1, 1, 0])
    >>> debiased_rms_error(view, np.zeros(4, dtype=int))  # ((1.5 − .5)² − 4 · .25) / (4² − 4) = 0
    0.0
    """
    size = int(node.max()) + 1

    def sum_by_node(x: Array) -> Array:
        """Sum of x (n,) over the rows of each node."""
        return np.bincount(node, x, size)

    p, y = view.p.reshape(len(view), -1), view.outcomes.reshape(len(view), -1)
    w, ww = view.w, view.w**2 if view.is_rows else view.sums("ww")
    node_w, node_ww = sum_by_node(w), sum_by_node(ww)

    def class_square(c: int) -> float:
        """Debiased mean square of one class."""
        residual = np.subtract(y[:, c], p[:, c], dtype=np.float64)
        if view.is_rows:
            squares = ww * residual**2
        elif view.joint:  # y² = y for each label, and the predictions of a cell are nearly equal
            squares = ww * (y[:, c] * (1 - 2 * p[:, c]) + p[:, c] ** 2)
        else:
            squares = view.sums("wwr")
        return float(mean_square(node_w, sum_by_node(w * residual), sum_by_node(squares), node_ww))

    square = sum(map_columns(class_square, p.shape[1], len(p)))
    return float(np.sign(square) * np.sqrt(abs(square)))


@dataclass(frozen=True, kw_only=True)
class Omnibus(ViewTest):
    r"""Omnibus test of calibration: level, slope and local errors combined into one p-value.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"redraw"}, default="redraw"
        Null distribution: labels drawn from the predicted probabilities.
    redraw : {"labels", "both"}, default="labels"
        "labels" keeps the predictions, "both" also resamples the rows.
    resamples : int, optional
        Number of null draws. Default: 999, and with ``redraw="labels"`` up to 4,999 (or 10⁸ labels) if p lies between
        .005 and .15, so that a decision at a usual level hardly depends on the seed.

    Raises
    ------
    InputError
        TO203 for other settings.

    Notes
    -----
    All statistics are functions of the residual sums :math:`R_b = \sum_{i \in b} w_i (y_i - p_i)` in up to 256 fine
    cells b of equal mass. For one score they are

    - level: :math:`\sum_b R_b`, which detects probabilities that are too high or too low overall;
    - slope: :math:`\sum_b x_b R_b` with the logits x, which detects predictions that are too extreme or not extreme
      enough;
    - level and slope: the score statistic of Cox's regression, χ² with two degrees of freedom;
    - squares in m = 2, 4, …, 64 nodes of equal mass:
      :math:`\sum_g (R_g^2 - \sum_{i \in g} w_i^2 (y_i - p_i)^2) / V_g` with the variance :math:`V_g` of a node, which
      detect oscillating and local errors. Without their diagonal terms the squares do not count the noise of single
      outcomes.

    For vectors of K outcomes the cells are leaves of a tree that splits the rows at means. The statistics are the
    temperature direction :math:`\sum_i w_i \langle \log p_i, y_i - p_i \rangle`, the level and the slope of every class
    (the largest one, and the sum of their squares), and squares in 4, 8, 16, 64 and 256 nodes of the tree.

    .. math:: T = \Big(\sum_j \frac{\omega_j}{p_j} \Big) \Big/ \sum_j \omega_j, \qquad
              p = \frac{1 + \#\{b : T^*_b \ge T\}}{1 + B}

    where :math:`p_j` is the p-value of statistic j by a distribution fitted to its draws. The inverse harmonic mean T
    is compared with its values in the same draws, so the level is exact at any n, whatever the fitted distributions.
    Level and slope have .6 of the weights ω and the squares .4 (vectors: .55 and .45). Several views (classes) are
    combined in the same way with the sums of their squared levels and slopes. A family of lenses has weights .4
    (headline), .15 (class-wise) and .45 (canonical).

    With `cluster` or `votes` the signs of residuals are flipped (approximate). With clusters the larger p-value counts
    of this null and of labels redrawn with the estimated within-cluster correlation.

    Statistic: log T ≥ 0. Effect: the debiased root-mean-square error between 16 nodes (64 for vectors) with the sign of
    its square, in probability units. Parts: each statistic with its own p-value and Holm's; for several views, each
    view. Smallest p-value: 1/(1 + B). The choice of statistics and the weights are this project's own, see
    docs/tests.md.

    Shapes: binary views (n,) and joint views (n, m).
    Cost: O(n) per draw.

    References
    ----------
    .. [1] Good (1958). Harmonic mean of p-values.
    .. [2] Wilson (2019). Harmonic mean of p-values.
    .. [3] Lee, Huang, Hassani & Dobriban (2023). Squares without diagonal terms.
    .. [4] Cox (1958). Score statistic.

    Examples
    --------
    >>> import trueodds as to
    >>> to.test([0, 1] * 50, [0.5] * 100, "omnibus", resamples=99).pvalue
    1.0
    """

    name: ClassVar[str] = "omnibus"
    defaults_to_lens_family: ClassVar[bool] = True
    accepts_joint_views: ClassVar[bool] = True
    null_distributions: ClassVar[tuple[str, ...]] = ("redraw",)
    joint_null: ClassVar[str] = "; the combined p-value of all statistics is compared with those of the same draws"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "importance weights: the variance grows with their squares",
        "row order": "the statistic uses distributions fitted to the draws, which depend on the row order",
        "class order": "the draws depend on the class order",
    }
    null: str = "redraw"
    resamples: Resamples | None = None

    def evaluate(self, view: View) -> ViewResult:
        """The effect; the statistic and the p-value require the draws and are added by `add_draw_results`."""
        cells = self._cells(view)
        node = cells.nodes.node_of_cell(cells.index, MAX_VECTOR_NODES if view.joint else MAX_NODES)
        return ViewResult(statistic=float("nan"), pvalue=float("nan"), effect=debiased_rms_error(view, node))

    def error_estimator(self) -> Estimator:
        return ESTIMATORS.make("ece", {})

    def cell_statistic(self, view: View) -> CellFunction:
        """Component statistics on the fine cells or leaves."""
        cells = self._cells(view)
        return CellFunction(view, cells.index, cells.size, cells.statistics)

    def _cells(self, view: View) -> VectorLeaves | BinaryCells:
        """The cells of a score, or the leaves of vectors, cached for the view."""

        def compute() -> VectorLeaves | BinaryCells:
            cells = (VectorLeaves if view.joint else BinaryCells)(view)
            view.release()  # the columns and sorted scores of all views together take a multiple of the data
            return cells

        return view.cached(self.name, compute)

    def add_draw_results(self, result: ViewResult, view: View, values: Array, draws: Sequence[Array]) -> ViewResult:
        """Add log T and the p-value of each component; of two null distributions the one with less evidence counts."""
        components = _components(view)
        evidence = min(
            float(_evidence(components, _pool_draws(values, null_draws), slice(1))[0]) for null_draws in draws
        )
        pvalues = []
        for j, (component, x) in enumerate(zip(components, values, strict=True)):
            observed = float(_absolute(component, x))
            pvalues.append(max(pvalue(observed, _absolute(component, null_draws[:, j])) for null_draws in draws))
        parts = {
            component.name: {"statistic": float(x), "pvalue": p, "holm": adjusted_pvalue}
            for component, x, p, adjusted_pvalue in zip(components, values, pvalues, holm(pvalues), strict=True)
            if not np.isnan(x)
        }
        return replace(result, statistic=evidence, parts=parts)

    def summarize_draws(self, estimand: Estimand, draws: Array) -> LensEvidence:
        """Return the evidence against calibration in the observed rows and in each draw (views, draws, components)."""
        pools = [_pool_draws(values, view_draws) for values, view_draws in zip(estimand.values, draws, strict=True)]
        components = _components(estimand.views[0])
        view_evidence = np.stack(map_items(lambda pool: _evidence(components, pool), pools))
        return LensEvidence(
            view_pvalues=np.array([_first_pvalue(evidence) for evidence in view_evidence]),
            evidence=_combine_views(view_evidence, pools),
        )

    def pvalues(
        self,
        estimands: Sequence[Estimand],
        summaries: Sequence[LensEvidence],
        *,
        joint_views: bool,
        joint_lenses: bool,
    ) -> PValues:
        """p-values of the lenses and of the family, which combines the lenses if their draws are joint."""
        view_pvalues = [summary.view_pvalues for summary in summaries]
        evidence = [summary.evidence for summary in summaries]
        lens_pvalues = [
            _first_pvalue(lens_evidence)
            if joint_views or len(pvalues_of_lens) == 1
            else smallest_pvalue(holm(list(pvalues_of_lens)))
            for lens_evidence, pvalues_of_lens in zip(evidence, view_pvalues, strict=True)
        ]
        joint = joint_views and (joint_lenses or len(estimands) == 1)
        if len(estimands) == 1:
            return PValues(
                view_pvalues=view_pvalues,
                lens_pvalues=lens_pvalues,
                family_pvalue=lens_pvalues[0],
                min_pvalue=_min_pvalue(evidence[0]),
                n_claims=1 if joint else len(view_pvalues[0]),
            )
        if not joint:
            # The p-value of a lens is already corrected for its views.
            fewest_views = 1 if joint_views else min(map(len, view_pvalues))
            return PValues(
                view_pvalues=view_pvalues,
                lens_pvalues=lens_pvalues,
                family_pvalue=smallest_pvalue(holm(lens_pvalues)),
                min_pvalue=min(map(_min_pvalue, evidence)),
                n_claims=len(estimands) * fewest_views,
            )
        weights = np.array([LENS_WEIGHTS.get(estimand.lens.name, OTHER_LENS_WEIGHT) for estimand in estimands])
        family_evidence = negative_log_harmonic_mean(-surprisal(np.stack(evidence)), weights)
        return PValues(view_pvalues, lens_pvalues, _first_pvalue(family_evidence), _min_pvalue(family_evidence))


@dataclass(frozen=True)
class LensEvidence:
    """Evidence against calibration through one lens, in the observed rows and in each draw."""

    view_pvalues: Array  # (views,)
    evidence: Array  # (1 + B,) log T of the lens, the observed value first


def _components(view: View) -> tuple[Component, ...]:
    """Component statistics of this kind of view."""
    return vector_components(view.p.shape[1]) if view.joint else BINARY_COMPONENTS


def _pool_draws(values: Array, draws: Array) -> Array:
    """Observed statistics and draws in one array, (1 + B, components)."""
    return np.concatenate([values[None], draws])


def _evidence(components: Sequence[Component], pool: Array, entries: slice = slice(None)) -> Array:
    """Evidence log T of the `entries` of a pool (1 + B, components)."""
    log_p = np.stack([log_pvalues(pool[:, j], component, entries) for j, component in enumerate(components)])
    return negative_log_harmonic_mean(log_p, np.array([component.weight for component in components]))


def _combine_views(evidence: Array, pools: Sequence[Array]) -> Array:
    """Evidence log T of a lens, (1 + B,), from that of its views (views, 1 + B), and their levels and slopes.

    `pools` has one array (1 + B, components) per view, whose first two components are the level and the slope.
    """
    if len(evidence) == 1:
        return evidence[0]
    views_evidence = negative_log_harmonic_mean(-surprisal(evidence), np.ones(len(evidence)))
    squared_levels, squared_slopes = (np.nansum([pool[:, j] ** 2 for pool in pools], axis=0) for j in (0, 1))
    log_p = -surprisal(np.stack([views_evidence, squared_levels, squared_slopes]))
    return negative_log_harmonic_mean(log_p, np.array([VIEWS_WEIGHT, SUMS_WEIGHT, SUMS_WEIGHT]))


def _min_pvalue(entries: Array) -> float:
    """Smallest possible p-value: the share of entries tied with the largest one, which is large for few rows."""
    largest = np.nanmax(entries, initial=0.0)
    return float((entries >= largest - TIE_TOLERANCE * abs(largest)).mean())


def _first_pvalue(entries: Array) -> float:
    """p-value of the first of the entries (1 + B,), which is the observed value, among all of them."""
    return pvalue(float(entries[0]), entries[1:])


def _absolute(component: Component, x: Array) -> Array:
    """The statistic such that larger values are more extreme: the absolute value of a normal one."""
    return np.abs(x) if not component.df and not component.is_centered else x

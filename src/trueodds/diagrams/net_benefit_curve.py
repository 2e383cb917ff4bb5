"""Net benefit of one model at many thresholds, with limits from resampled rows, clusters, or counts of a tally."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.estimators.net_benefit import MIN_OUTCOMES, net_benefit, treat_all_net_benefit
from trueodds.kernels.bootstrap_sums import CellSums
from trueodds.lenses.effective_sample_size import effective_sample_size
from trueodds.lenses.view import View
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS
from trueodds.resampling.intervals.method import interval_of_mean
from trueodds.resampling.intervals.percentile import jackknife_mean, percentile_interval
from trueodds.resampling.shared_resamples import SharedResamples


class Limits(NamedTuple):
    """Confidence limits at each threshold, (t,) each."""

    low: Array
    high: Array


class NetBenefitCurve:
    """Net benefit of a binary view at increasing thresholds (t,).

    A row is treated at all thresholds that its prediction reaches. Rows treated at equally many thresholds are summed.

    Attributes
    ----------
    n_treating : ndarray (n,)
        The number of thresholds at which each row is treated, 0 to t.
    w, wy : ndarray (t + 1,)
        The sums Σw and Σwy of the rows that are treated at 0, 1, … t thresholds.
    """

    def __init__(self, view: View, thresholds: Array) -> None:
        self.view, self.thresholds = view, thresholds
        self.n_treating = np.searchsorted(thresholds, view.p.astype(np.float64, copy=False), "right")
        size = len(thresholds) + 1
        self.w = np.bincount(self.n_treating, view.w, size)
        self.wy = np.bincount(self.n_treating, view.w * view.y, size)

    @property
    def event_rate(self) -> float:
        """The event rate, which is the net benefit of a perfect model."""
        return float(self.wy.sum() / self.w.sum())

    @property
    def values(self) -> Array:
        """Net benefit at each threshold."""
        return _net_benefit_of_sums(self.w, self.wy, self.thresholds)

    @property
    def treat_all(self) -> Array:
        """Net benefit of treating everyone at each threshold."""
        return treat_all_net_benefit(self.event_rate, self.thresholds)

    def has_enough_outcomes(self, *, treated: bool) -> Array:
        """Whether enough events and nonevents for an interval are treated, or are not treated, at each threshold."""
        rows_per_weight = self.view.n_rows / self.w.sum()
        counts = []
        for sums in (self.wy, self.w - self.wy):
            n_treated = _sum_treated(sums) * rows_per_weight
            counts.append(n_treated if treated else sums.sum() * rows_per_weight - n_treated)
        return np.minimum(*counts) >= MIN_OUTCOMES * (1 - 1e-9)

    def limits(
        self, cluster: Array | None, level: float, resamples: int, rng: np.random.Generator
    ) -> tuple[Limits, Limits]:
        """Limits of the net benefit, and of its difference to treating everyone.

        They are limits from resampled rows or clusters, as those of `net_benefit`. For a tally, and for more than
        200,000 independent rows, they are percentiles of resampled counts. The limits of the net benefit are NaN at
        thresholds at which fewer than 5 events or 5 nonevents are treated, and those of the difference where fewer are
        not treated.
        """
        if self.view.is_rows and (cluster is not None or len(self.view) <= MAX_RESAMPLED_ROWS):
            intervals = self._intervals_of_means(cluster, level, resamples, rng)
        else:
            w, wy = self._resample_counts(resamples, rng)
            intervals = [
                [percentile_interval(draws_at_threshold, level) for draws_at_threshold in draws.T]
                for draws in self._benefits_of_draws(w, wy)
            ]
        limits = []
        for intervals_of_quantity, treated in zip(intervals, (True, False), strict=True):
            bounds = np.array([(interval.low, interval.high) for interval in intervals_of_quantity])
            bounds[~self.has_enough_outcomes(treated=treated)] = np.nan
            limits.append(Limits(*bounds.T))
        return limits[0], limits[1]

    def _benefits_of_draws(self, w: Array, wy: Array) -> tuple[Array, Array]:
        """Net benefit and its difference to treating everyone, (resamples, t) each, from resampled Σw and Σwy."""
        event_rates = (wy.sum(axis=1) / w.sum(axis=1))[:, None]
        draws = _net_benefit_of_sums(w, wy, self.thresholds)
        return draws, draws - treat_all_net_benefit(event_rates, self.thresholds)

    def _intervals_of_means(
        self, cluster: Array | None, level: float, resamples: int, rng: np.random.Generator
    ) -> list[list[Interval]]:
        """Intervals at each threshold, of the net benefit and of its difference to treating everyone."""
        draws, difference_draws = self._benefits_of_draws(*self._resample_units(cluster, resamples, rng))
        clusters = None if cluster is None else effective_sample_size([self.view], cluster)
        unit = np.arange(len(self.view)) if cluster is None else cluster
        y = self.view.y.astype(np.float64, copy=False)
        values, differences = self.values, self.values - self.treat_all
        intervals: list[Interval] = []
        difference_intervals: list[Interval] = []
        for j, threshold in enumerate(self.thresholds):
            treated = self.n_treating > j
            benefit_of_rows = net_benefit(treated * y, treated * (1 - y), threshold)
            jackknife = jackknife_mean(benefit_of_rows, self.view.w, unit)
            intervals.append(interval_of_mean(values[j], draws[:, j], jackknife, level, clusters))
            difference_of_rows = benefit_of_rows - treat_all_net_benefit(y, threshold)
            jackknife = jackknife_mean(difference_of_rows, self.view.w, unit)
            difference_intervals.append(
                interval_of_mean(differences[j], difference_draws[:, j], jackknife, level, clusters)
            )
        return [intervals, difference_intervals]

    def _resample_units(self, cluster: Array | None, resamples: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Σw and Σwy of resampled rows or clusters by number of thresholds, (resamples, t + 1) each."""
        w, wy = self.view.w[:, None], (self.view.w * self.view.y)[:, None]
        cell_sums = CellSums(self.n_treating[:, None], w, np.zeros_like(w), wy, len(self.w), cluster)

        def sum_block(multiplicities: Array) -> tuple[Array, Array]:
            """The sums of these resamples; one whose rows all have weight 0 is left out."""
            w_draws, _, wy_draws = cell_sums.sum_cells(multiplicities)
            has_weight = w_draws.sum(axis=1) > 0
            return w_draws[has_weight], wy_draws[has_weight]

        blocks = SharedResamples(len(w), cluster, resamples, rng).map_blocks(sum_block, cell_sums.n_cells)
        w_blocks, wy_blocks = zip(*blocks, strict=True)
        return np.concatenate(w_blocks), np.concatenate(wy_blocks)

    def _resample_counts(self, resamples: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """As `_resample_units`, from multinomial counts of events and nonevents with the effective sample size."""
        size = len(self.w)
        share = np.clip(np.concatenate([self.wy, self.w - self.wy]), 0.0, None)
        n = max(1, round(self.view.effective_n))
        counts = rng.multinomial(n, share / share.sum(), size=resamples).astype(np.float64)
        return counts[:, :size] + counts[:, size:], counts[:, :size]


def _net_benefit_of_sums(w: Array, wy: Array, thresholds: Array) -> Array:
    """Net benefit at each threshold, (…, t), from Σw and Σwy by number of thresholds, (…, t + 1)."""
    total = w.sum(axis=-1, keepdims=True)
    treated, true_positives = _sum_treated(w) / total, _sum_treated(wy) / total
    return net_benefit(true_positives, treated - true_positives, thresholds)


def _sum_treated(sums: Array) -> Array:
    """Sum over the rows treated at each threshold, (…, t), from sums by number of thresholds, (…, t + 1).

    The rows treated at threshold j are those that are treated at more than j thresholds.

    >>> _sum_treated(np.array([1.0, 10.0, 100.0])).tolist()
    [110.0, 100.0]
    """
    return np.asarray(np.cumsum(sums[..., ::-1], axis=-1)[..., -2::-1])

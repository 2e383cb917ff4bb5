"""One model of a comparison: its error, resamples and interval, from rows shared with other models or from a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, Mean, ProperScore
from trueodds.lenses.base import Lens
from trueodds.lenses.clustered_rows import ClusteredRows, clustered_rows, critical_value
from trueodds.resampling import tally_estimates
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS, bootstrap
from trueodds.resampling.cell_bootstrap import BootstrapResult, bootstrap_cells
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.estimate import build_estimate, collect_notes
from trueodds.resampling.intervals import folded_normal, squared_error
from trueodds.resampling.intervals.difference import IntervalEnds
from trueodds.resampling.intervals.method import (
    PLAIN_BOOTSTRAP_METHODS,
    RESAMPLING_METHODS,
    IntervalSpec,
    estimate_interval,
    is_root_mean_square,
    loses_view_covariance,
    n_independent_units,
    resolve_method,
)
from trueodds.resampling.intervals.normal import normal_interval
from trueodds.resampling.intervals.percentile import jackknife
from trueodds.resampling.intervals.squared_error import squared_error_draws
from trueodds.resampling.noise_floor import DEFAULT_REDRAWS, noise_floor_draws
from trueodds.resampling.tally_estimates import reason_without_cell_interval
from trueodds.tallies.tally import Tally

CORRELATION_RESAMPLES = 200  # row resamples that estimate the correlation of two models if cells are resampled


class ComparedModel:
    """One model of a comparison: its estimand, resamples and interval.

    Models with the same `key` are evaluated on the same resamples of rows.
    """

    def __init__(
        self,
        name: str,
        preds: Predictions,
        estimand: Estimand,
        interval_spec: IntervalSpec,
        key: Sequence[int],
        null_key: Sequence[int],
    ):
        self.name, self.preds, self.estimand, self.interval_spec = name, preds, estimand, interval_spec
        self.reported_estimand = estimand.reported_estimand  # a debiased form reports the interval of its plug-in
        self.key, self._null_key = tuple(key), null_key
        self.clustered = preds.cluster is not None
        self.method = resolve_method(self.reported_estimand, interval_spec, clustered=self.clustered, cells=False)

    @cached_property
    def value(self) -> float:
        """The estimated error."""
        return float(self.estimand.combine_views(self.estimand.values))

    @cached_property
    def reported_value(self) -> float:
        """The estimated error for which the interval is reported."""
        return float(self.reported_estimand.combine_views(self.reported_estimand.values))

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of the estimate."""
        return self.estimand.n_rows

    @cached_property
    def n_units(self) -> int:
        """Number of independent rows or clusters."""
        return n_independent_units(self.preds)

    @cached_property
    def clusters(self) -> ClusteredRows | None:
        """Effective numbers of rows and clusters; None if the rows are independent."""
        return None if self.preds.cluster is None else clustered_rows(self.reported_estimand.views, self.preds.cluster)

    @property
    def is_squared(self) -> bool:
        """Whether the error is a root mean square of one score, which has an unbiased square."""
        return self.method in ("sun", "debiased") and is_root_mean_square(self.reported_estimand)

    @property
    def is_mean(self) -> bool:
        """Whether the error is a mean over rows with a known standard error."""
        return isinstance(self.estimand.estimator, Mean) and self.estimand.aggregate != "max"

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        """Bootstrap results; None if there are none."""
        if self.method is None or loses_view_covariance(self.preds, self.reported_estimand, self.interval_spec):
            return None
        rng, resample = np.random.default_rng(self.key), self.interval_spec.resample
        if (
            self.method in PLAIN_BOOTSTRAP_METHODS
            and resample == "auto"
            and self.preds.n > MAX_RESAMPLED_ROWS
            and self.reported_estimand.cell_statistics is not None
        ):
            resample = "rows"  # these methods resample the difference, which cells of one model cannot provide
        return bootstrap(self.preds, [self.reported_estimand], self.interval_spec.resamples, rng, resample)[0]

    @cached_property
    def draws(self) -> Array | None:
        """Value of each resample."""
        return None if self.resampled is None else self.reported_estimand.combine_views(self.resampled.values)

    @cached_property
    def row_draws(self) -> Array | None:
        """Row resamples that two models can share; fewer of them if the other resamples are of cells."""
        if self.resampled is None or self.resampled.resampled_units != "cells":
            return self.draws
        rng = np.random.default_rng(self.key)
        return self.reported_estimand.combine_views(
            bootstrap(self.preds, [self.reported_estimand], CORRELATION_RESAMPLES, rng, "rows")[0].values
        )

    @cached_property
    def jackknife_values(self) -> Array:
        """Error with each row or cluster left out."""
        return self.reported_estimand.combine_views(jackknife(self.preds, self.reported_estimand))

    @cached_property
    def variance(self) -> float:
        """Jackknife variance of the error; s²/n for a mean."""
        return jackknife_variance(self.jackknife_values)

    @cached_property
    def debiased_squares(self) -> tuple[float, float, Array]:
        """Unbiased square, plug-in square, and the unbiased square of each resample."""
        assert self.reported_estimand.cell_statistics is not None
        view, cell_statistic = self.reported_estimand.views[0], self.reported_estimand.cell_statistics[0]
        t, _ = squared_error.debiased_squared_error(pooled_view(view, cell_statistic))
        rng = np.random.default_rng(self.key)
        drawn = squared_error_draws(
            self.preds, view, cell_statistic.index, cell_statistic.size, self.interval_spec.resamples, rng
        )
        return t, self.reported_value**2, drawn

    @cached_property
    def plug_in(self) -> float:
        """Plug-in value on which the resamples of a debiased error are centered."""
        return float(
            self.estimand.combine_views(
                np.array([self.estimand.estimator.plug_in_value(view) for view in self.estimand.views])
            )
        )

    @cached_property
    def null_draws(self) -> list[Array | None]:
        """Null draws for the estimate, and for the error whose interval is reported."""
        estimands = (
            [self.estimand] if self.reported_estimand is self.estimand else [self.estimand, self.reported_estimand]
        )
        return list(noise_floor_draws(self.preds, estimands, np.random.default_rng([*self.key, *self._null_key])))

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Interval of this model at a level, or the reason why there is none."""
        if (
            self.method == "debiased"
            and self.is_squared
            and np.isfinite(self.reported_value)
            and n_independent_units(self.preds) > 1
        ):
            t, v, drawn = self.debiased_squares
            return squared_error.root_interval(squared_error.debiased_interval(t, v, drawn, level)), ""
        drawn_by = self.resampled if self.method in RESAMPLING_METHODS else None
        interval_spec = replace(self.interval_spec, level=level)
        return estimate_interval(
            self.preds,
            self.reported_estimand,
            self.method,
            interval_spec,
            drawn_by,
            self.null_draws[-1],
            np.random.default_rng(self.key),
        )

    def interval_ends(self, level: float) -> IntervalEnds | None:
        """Interval limits and standard deviation for the interval of a difference."""
        own_interval, _ = self.interval(level)
        if own_interval is None or self.draws is None:
            return None
        sd = float(self.draws.std(ddof=1))
        if self.clusters is not None:  # MOVER multiplies the standard deviation by the normal quantile
            sd *= self.clusters.critical_value(level) / critical_value(None, level)
        return IntervalEnds(self.reported_value, own_interval.low, own_interval.high, sd)

    @cached_property
    def gap_error(self) -> folded_normal.GapError:
        """Bias bounds and standard deviation for the difference of weighted means of absolute gaps."""
        null = self.null_draws[-1]
        assert null is not None
        assert self.draws is not None
        preds = self.preds if hasattr(self, "preds") else None
        sd, clusters = float(self.draws.std(ddof=1)), self.clusters
        n = self.reported_estimand.views[0].effective_n if clusters is None else clusters.effective_rows
        shift = float(self.draws.mean()) - self.reported_value
        bias = folded_normal.bias_bounds(
            folded_normal.cell_gaps(self.reported_estimand, preds),
            float(self.reported_estimand.combine_views(null).mean()),
            shift,
        )
        return folded_normal.GapError(
            self.reported_value,
            sd,
            bias,
            folded_normal.wilson_shift(sd, n, folded_normal.max_influence(self.reported_estimand)),
            clusters,
        )

    @cached_property
    def estimate(self) -> Estimate:
        """Complete estimate of this model."""
        if self.interval_spec.interval is None:
            return build_estimate(
                self.estimand,
                None,
                "",
                None,
                self.interval_spec,
                None,
                notes=self._collect_notes(),
                clustered=self.clustered,
            )
        interval, reason = self.interval(self.interval_spec.level)
        resample = (
            self.resampled.resampled_units if self.method in RESAMPLING_METHODS and self.resampled is not None else None
        )
        return build_estimate(
            self.estimand,
            interval,
            reason,
            self.null_draws[0],
            self.interval_spec,
            resample,
            notes=self._collect_notes(),
            clustered=self.clustered,
        )

    def _collect_notes(self) -> list[Note]:
        """Notes of the data, the lens and the estimator."""
        return collect_notes(self.preds, self.estimand)


def jackknife_variance(jackknife_values: Array) -> float:
    """Jackknife variance from the delete-one values."""
    n = len(jackknife_values)
    return float((n - 1) / n * ((jackknife_values - jackknife_values.mean()) ** 2).sum())


class ComparedTallyScore(ComparedModel):
    """A proper score, whose mean and standard error are stored in the tally."""

    is_squared = False
    is_mean = True
    draws = None
    resampled = None

    def __init__(
        self, name: str, tally: Tally, score: ProperScore, lens: Lens, interval_spec: IntervalSpec, key: Sequence[int]
    ):
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.estimate = tally_estimates.estimate_score_from_tally(tally, score, lens, interval_spec)
        self.method = None if self.estimate.interval is None else "normal"
        self.value = self.reported_value = self.estimate.value
        self.n_rows = self.n_units = tally.n
        self._standard_error = tally.score(score.name)["standard_error"]
        # s²/n with the unbiased s², as the jackknife gives it for rows: the tally's own divides by n
        self.variance = self._standard_error**2 * tally.n / max(tally.n - 1, 1)

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Normal interval of a mean, or the reason why there is none."""
        if self.method is None:
            return None, "the value is infinite or undefined"
        return normal_interval(self.value, self._standard_error, level), ""


class ComparedTally(ComparedModel):
    """Any other error on the cells of a tally, which are resampled instead of rows."""

    is_squared = False
    is_mean = False
    row_draws = None
    clustered = False
    clusters = None

    def __init__(
        self, name: str, tally: Tally, estimator: Estimator, lens: Lens, aggregate: str, interval_spec: IntervalSpec,
        key: Sequence[int],
    ):  # fmt: skip
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.tally, self.estimand = tally, tally_estimates.tally_estimand(tally, estimator, lens, aggregate)
        self.reported_estimand = self.estimand.reported_estimand
        self.n_rows = self.n_units = tally.n
        self.no_interval_reason = reason_without_cell_interval(self.reported_estimand)
        chosen = resolve_method(self.reported_estimand, interval_spec, clustered=False, cells=True)
        self.method = None if self.no_interval_reason else chosen

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        """Bootstrap results from resampled cells."""
        if self.method is None:
            return None
        return bootstrap_cells(self.reported_estimand, self.interval_spec.resamples, np.random.default_rng(self.key))

    @cached_property
    def null_draws(self) -> list[Array | None]:
        """Null draws for the estimate, and for the error whose interval is reported."""
        rng = np.random.default_rng([*self.key, 2**20])
        estimands = (
            [self.estimand] if self.reported_estimand is self.estimand else [self.estimand, self.reported_estimand]
        )
        if isinstance(self.estimand.estimator, ProperScore):
            return [None]
        return [
            tally_estimates.tally_null_draws(self.tally, estimand, DEFAULT_REDRAWS, rng)[0] for estimand in estimands
        ]

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Interval of this model at a level, or the reason why there is none."""
        if self.no_interval_reason:
            return None, self.no_interval_reason
        interval_spec, rng = replace(self.interval_spec, level=level), np.random.default_rng(self.key)
        drawn_by = self.resampled if self.method in RESAMPLING_METHODS else None
        return estimate_interval(
            None, self.reported_estimand, self.method, interval_spec, drawn_by, self.null_draws[-1], rng
        )

    @cached_property
    def estimate(self) -> Estimate:
        """Complete estimate of this model."""
        notes: list[Note] = tally_estimates.tally_notes(self.tally, self.estimand)
        if self.interval_spec.interval is None:
            return build_estimate(self.estimand, None, "", None, self.interval_spec, None, notes=notes)
        interval, reason = self.interval(self.interval_spec.level)
        resample = (
            self.resampled.resampled_units if self.method in RESAMPLING_METHODS and self.resampled is not None else None
        )
        return build_estimate(
            self.estimand, interval, reason, self.null_draws[0], self.interval_spec, resample, notes=notes
        )


def compared_tally(
    name: str,
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    key: Sequence[int],
) -> ComparedModel:
    """One model of a comparison from its tally; raises TO403, TO405 or TO406 if the cells are insufficient."""
    if isinstance(estimator, ProperScore) and tally_estimates.has_score_sums(tally, lens):
        return ComparedTallyScore(name, tally, estimator, lens, interval_spec, key)
    return ComparedTally(name, tally, estimator, lens, aggregate, interval_spec, key)

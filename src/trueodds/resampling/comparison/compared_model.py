"""One model of a comparison, from rows or from a tally: its error, its resamples and the interval of its error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Coefficient, Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator, Mean, ProperScore, WaldEstimator
from trueodds.lenses.base import Lens
from trueodds.lenses.effective_sample_size import (
    EffectiveSampleSize,
    critical_value,
    effective_n,
    effective_sample_size,
)
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS, BootstrapResult, bootstrap, bootstrap_cells
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.estimate import (
    build_estimate,
    collect_notes,
    estimate_score_from_tally,
)
from trueodds.resampling.intervals import folded_normal, squared_error
from trueodds.resampling.intervals.closed_form import wilson_shift
from trueodds.resampling.intervals.difference import ErrorWithInterval
from trueodds.resampling.intervals.method import (
    PLAIN_BOOTSTRAP_METHODS,
    RESAMPLING_METHODS,
    IntervalSpec,
    estimate_interval,
    explain_value_without_interval,
    has_constant_outcomes,
    n_independent_units,
    needs_requested_row_resamples,
    resolve_method,
)
from trueodds.resampling.intervals.percentile import jackknife
from trueodds.resampling.intervals.squared_error import squared_error_draws
from trueodds.resampling.null_distribution import DEFAULT_REDRAWS, noise_floor_draws
from trueodds.resampling.tally_estimand import (
    has_score_sums,
    reason_without_cell_interval,
    tally_estimand,
    tally_noise_floor_draws,
    tally_notes,
)
from trueodds.tallies.tally import Tally

CORRELATION_RESAMPLES = 200  # row resamples that estimate the correlation of two models if rows are not resampled


class ComparedModel:
    """One model of a comparison on its rows: its estimand, resamples and interval.

    Models with the same `key`, the seed of the resamples and null draws, have the same rows and the same resamples.
    The `companions` are models of other estimators on these rows with this key: rows are drawn once for all of them.
    """

    def __init__(
        self,
        name: str,
        preds: Predictions,
        estimand: Estimand,
        interval_spec: IntervalSpec,
        key: Sequence[int],
        companions: Sequence[ComparedModel] = (),
    ):
        self.name, self.preds, self.estimand, self.interval_spec = name, preds, estimand, interval_spec
        self.companions = companions
        self.reported_estimand = estimand.reported_estimand
        self.key = tuple(key)
        self.clustered = preds.cluster is not None
        self.method = resolve_method(self.reported_estimand, interval_spec, clustered=self.clustered, cells=False)

    @cached_property
    def value(self) -> float:
        return float(self.estimand.combine_views(self.estimand.values))

    @cached_property
    def reported_value(self) -> float:
        """The estimated error for which the interval is reported."""
        return float(self.reported_estimand.combine_views(self.reported_estimand.values))

    @cached_property
    def n_rows(self) -> int:
        return self.estimand.n_rows

    @cached_property
    def n_units(self) -> int:
        return n_independent_units(self.preds)

    @cached_property
    def clusters(self) -> EffectiveSampleSize | None:
        """Effective numbers of rows and clusters; None if the rows are independent."""
        return (
            None
            if self.preds.cluster is None
            else effective_sample_size(self.reported_estimand.views, self.preds.cluster)
        )

    @property
    def is_squared(self) -> bool:
        """Whether the error is a root mean square of one score, which has an unbiased square."""
        return self.method in ("sun", "debiased") and self.reported_estimand.is_root_mean_square

    @property
    def is_mean(self) -> bool:
        """Whether the error is a mean over rows with a known standard error."""
        return isinstance(self.estimand.estimator, Mean) and self.estimand.aggregate != "max"

    @cached_property
    def has_constant_outcomes(self) -> bool:
        """Whether the interval needs the variance of the outcomes, and these do not vary."""
        return has_constant_outcomes(self.reported_estimand, self.method)

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        unit = self._resampled_unit
        if unit is None:
            return None
        models = [self, *(companion for companion in self.companions if companion._resampled_unit == unit)]
        results = bootstrap(
            self.preds,
            [model.reported_estimand for model in models],
            self.interval_spec.resamples,
            np.random.default_rng(self.key),
            unit,
        )
        for model, result in zip(models, results, strict=True):
            vars(model)["resampled"] = result  # the value of this property
        return results[0]

    @property
    def _resampled_unit(self) -> str | None:
        """The argument `resample` of `bootstrap`; None if the interval needs no resamples, or there are none."""
        if self.method in (None, "wald") or needs_requested_row_resamples(
            self.preds, self.reported_estimand, self.interval_spec
        ):
            return None
        if (
            self.method in PLAIN_BOOTSTRAP_METHODS
            and self.interval_spec.resample == "auto"
            and self.preds.n > MAX_RESAMPLED_ROWS
            and self.reported_estimand.cell_statistics is not None
        ):
            return "rows"  # these methods resample the difference, which cells of one model cannot provide
        return self.interval_spec.resample

    @cached_property
    def draws(self) -> Array | None:
        return None if self.resampled is None else self.reported_estimand.combine_views(self.resampled.values)

    @cached_property
    def row_draws(self) -> Array | None:
        """Value in resamples of rows, which two models can share, for their correlation.

        They are `draws`, unless these are resamples of cells, which are drawn for each model on its own, or of random
        groups, because the other model can be resampled by cells.
        """
        if self.resampled is None or self.resampled.resampled_units not in ("cells", "random groups"):
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
    def coefficient(self) -> Coefficient:
        """The value with its standard error in closed form, of a `WaldEstimator`."""
        (view,), estimator = self.estimand.views, self.estimand.estimator
        assert isinstance(estimator, WaldEstimator)
        return estimator.coefficient(view, self.cluster)

    @cached_property
    def influence(self) -> Array:
        """Influence (units,) of each row or cluster on the value of a `WaldEstimator`."""
        (view,), estimator = self.estimand.views, self.estimand.estimator
        assert isinstance(estimator, WaldEstimator)
        influence = estimator.influence(view)
        return influence if self.cluster is None else np.bincount(self.cluster, influence)

    @property
    def cluster(self) -> Array | None:
        """Cluster of each row, (n,); None if the rows are independent."""
        return self.preds.cluster

    @cached_property
    def variance(self) -> float:
        """Jackknife variance of the error; s²/n for a mean."""
        return jackknife_variance(self.jackknife_values)

    @cached_property
    def debiased_squares(self) -> tuple[float, float, Array]:
        """Unbiased square, plug-in square, and the unbiased square of each resample."""
        assert self.reported_estimand.cell_statistics is not None
        view, cell_statistic = self.reported_estimand.views[0], self.reported_estimand.cell_statistics[0]
        debiased_square, _ = squared_error.debiased_squared_error(pooled_view(view, cell_statistic))
        rng = np.random.default_rng(self.key)
        square_draws = squared_error_draws(
            view, cell_statistic.index, cell_statistic.size, self.interval_spec.resamples, rng
        )
        return debiased_square, self.reported_value**2, square_draws

    @cached_property
    def plug_in(self) -> float:
        """Plug-in value on which the resamples of a debiased error are centered."""
        values = np.array([self.estimand.estimator.plug_in_value(view) for view in self.estimand.views])
        return float(self.estimand.combine_views(values))

    @cached_property
    def null_draws(self) -> list[Array | None]:
        """Null draws of the estimand first, and of the one whose interval is reported last; they can be the same."""
        rng = np.random.default_rng([*self.key, 2**20])
        return list(noise_floor_draws(self.preds, self.estimand.drawn_estimands, rng))

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Interval of this model at a level, or the reason why there is none."""
        if (
            self.method == "debiased"
            and self.is_squared
            and np.isfinite(self.reported_value)
            and n_independent_units(self.preds) > 1
        ):  # the resampled squares are kept, because the difference of two models uses them too
            debiased_square, plug_in_square, square_draws = self.debiased_squares
            squares = squared_error.debiased_interval(debiased_square, plug_in_square, square_draws, level)
            return squared_error.root_interval(squares), ""
        return estimate_interval(
            self.preds,
            self.reported_estimand,
            self.method,
            replace(self.interval_spec, level=level),
            self.resampled if self.method in RESAMPLING_METHODS else None,
            self.null_draws[-1],
            np.random.default_rng(self.key),
        )

    def error_with_interval(self, level: float) -> ErrorWithInterval | None:
        """The error with its interval and standard deviation, for the interval of a difference."""
        own_interval, _ = self.interval(level)
        if own_interval is None or self.draws is None:
            return None
        sd = float(self.draws.std(ddof=1))
        if self.clusters is not None:  # MOVER multiplies the standard deviation by the normal quantile
            sd *= self.clusters.critical_value(level) / critical_value(None, level)
        return ErrorWithInterval(self.reported_value, own_interval.low, own_interval.high, sd)

    @cached_property
    def gap_error(self) -> folded_normal.GapError:
        """Bias bounds and standard deviation for the difference of weighted means of absolute gaps."""
        estimand, null_draws = self.reported_estimand, self.null_draws[-1]
        assert null_draws is not None
        assert self.draws is not None
        sd, clusters = float(self.draws.std(ddof=1)), self.clusters
        n = effective_n(estimand.views[0]) if clusters is None else clusters.effective_rows
        null_mean = float(estimand.combine_views(null_draws).mean())
        resampled_bias = float(self.draws.mean()) - self.reported_value
        return folded_normal.GapError(
            value=self.reported_value,
            sd=sd,
            bias=folded_normal.bias_bounds(folded_normal.cell_gaps(estimand, self.preds), null_mean, resampled_bias),
            wilson_shift=wilson_shift(sd, n, folded_normal.max_influence(estimand)),
            clusters=clusters,
        )

    @cached_property
    def estimate(self) -> Estimate:
        return self._build_estimate(collect_notes(self.preds, self.estimand))

    def _build_estimate(self, notes: list[Note]) -> Estimate:
        interval, reason, null_draws, resampled_units = None, "", None, None
        if self.interval_spec.interval is not None:
            interval, reason = self.interval(self.interval_spec.level)
            null_draws = self.null_draws[0]
            if self.method in RESAMPLING_METHODS and self.resampled is not None:
                resampled_units = self.resampled.resampled_units
        return build_estimate(
            self.estimand,
            interval,
            reason,
            null_draws,
            self.interval_spec,
            resampled_units,
            notes=notes,
            clustered=self.clustered,
        )


def jackknife_variance(jackknife_values: Array) -> float:
    """Jackknife variance from the values (units,) with each row or cluster left out."""
    n = len(jackknife_values)
    return float((n - 1) / n * ((jackknife_values - jackknife_values.mean()) ** 2).sum())


class ComparedTallyScore(ComparedModel):
    """One model of a comparison by a proper score, whose mean and standard error are stored in the tally."""

    preds: Any = None
    is_squared = False
    is_mean = True
    draws = None
    resampled = None
    has_constant_outcomes = False

    def __init__(
        self, name: str, tally: Tally, score: ProperScore, lens: Lens, interval_spec: IntervalSpec, key: Sequence[int]
    ):
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.estimate = estimate_score_from_tally(tally, score, lens, interval_spec)
        self.method = None if self.estimate.interval is None else "normal"
        self.value = self.reported_value = self.estimate.value
        self.n_rows = self.n_units = tally.n
        self._score = score
        self._standard_error = tally.score(score.name)["standard_error"]
        # The jackknife variance is s²/n with the unbiased s²; that of the tally divides by n instead of n − 1.
        self.variance = self._standard_error**2 * tally.n / max(tally.n - 1, 1)

    def interval(self, level: float) -> tuple[Interval | None, str]:
        if self.method is None:
            return None, explain_value_without_interval(self.value, self._score)
        return Interval.from_standard_error(self.value, self._standard_error, level), ""


class ComparedTally(ComparedModel):
    """One model of a comparison by any other error, on the cells of a tally, which are resampled instead of rows."""

    preds: Any = None
    is_squared = False
    is_mean = False
    row_draws = None
    clustered = False
    clusters = None
    cluster = None

    def __init__(
        self, name: str, tally: Tally, estimator: Estimator, lens: Lens, aggregate: str, interval_spec: IntervalSpec,
        key: Sequence[int],
    ):  # fmt: skip
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.tally, self.estimand = tally, tally_estimand(tally, estimator, lens, aggregate)
        self.reported_estimand = self.estimand.reported_estimand
        self.n_rows = self.n_units = tally.n
        self.no_interval_reason = reason_without_cell_interval(self.reported_estimand)
        method = resolve_method(self.reported_estimand, interval_spec, clustered=False, cells=True)
        self.method = None if self.no_interval_reason else method

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        if self.method in (None, "wald"):
            return None
        return bootstrap_cells(self.reported_estimand, self.interval_spec.resamples, np.random.default_rng(self.key))

    @cached_property
    def null_draws(self) -> list[Array | None]:
        rng = np.random.default_rng([*self.key, 2**20])
        return tally_noise_floor_draws(self.tally, self.estimand.drawn_estimands, DEFAULT_REDRAWS, rng)

    def interval(self, level: float) -> tuple[Interval | None, str]:
        if self.no_interval_reason:
            return None, self.no_interval_reason
        return super().interval(level)

    @cached_property
    def estimate(self) -> Estimate:
        """Complete estimate of this model."""
        return self._build_estimate(tally_notes(self.tally, self.estimand))


def compared_tally(
    name: str,
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    key: Sequence[int],
) -> ComparedModel:
    """Create a model of a comparison from its tally; raises TO403, TO405 or TO406 if the cells are insufficient."""
    if isinstance(estimator, ProperScore) and has_score_sums(tally, lens):
        return ComparedTallyScore(name, tally, estimator, lens, interval_spec, key)
    return ComparedTally(name, tally, estimator, lens, aggregate, interval_spec, key)

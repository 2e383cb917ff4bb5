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
from trueodds.resampling import measure
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS, bootstrap
from trueodds.resampling.cell_bootstrap import BootstrapResult, bootstrap_cells
from trueodds.resampling.estimand import Estimand, pooled_view
from trueodds.resampling.estimate import build_estimate, notes_of
from trueodds.resampling.intervals import folded_normal, squared_error
from trueodds.resampling.intervals.difference import IntervalEnds
from trueodds.resampling.intervals.method import (
    PLAIN_BOOTSTRAP_METHODS,
    RESAMPLING_METHODS,
    IntervalSpec,
    estimate_interval,
    is_root_mean_square,
    n_independent_units,
    resolve_method,
    too_many_views,
)
from trueodds.resampling.intervals.normal import normal_interval
from trueodds.resampling.intervals.percentile import jackknife
from trueodds.resampling.intervals.squared_error import squared_error_draws
from trueodds.resampling.measure import why_no_cell_interval
from trueodds.resampling.noise_floor import DEFAULT_REDRAWS, noise_floor_draws
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
        own: Sequence[int],
    ):
        self.name, self.preds, self.estimand, self.interval_spec = name, preds, estimand, interval_spec
        self.reported = estimand.reported  # a debiased form reports the interval of its plug-in
        self.key, self._own = tuple(key), own
        self.clustered = preds.cluster is not None
        self.method = resolve_method(self.reported, interval_spec, clustered=self.clustered, cells=False)

    @cached_property
    def value(self) -> float:
        """The estimated error."""
        return float(self.estimand.combined(self.estimand.values))

    @cached_property
    def reported_value(self) -> float:
        """The estimated error for which the interval is reported."""
        return float(self.reported.combined(self.reported.values))

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of the estimate."""
        return self.estimand.n_rows

    @cached_property
    def units(self) -> int:
        """Number of independent rows or clusters."""
        return n_independent_units(self.preds)

    @property
    def is_squared(self) -> bool:
        """Whether the error is a root mean square of one score, which has an unbiased square."""
        return self.method in ("sun", "debiased") and is_root_mean_square(self.reported)

    @property
    def is_mean(self) -> bool:
        """Whether the error is a mean over rows with a known standard error."""
        return isinstance(self.estimand.estimator, Mean) and self.estimand.aggregate != "max"

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        """Bootstrap results; None if there are none."""
        if self.method is None or too_many_views(self.preds, self.reported, self.interval_spec):
            return None
        rng, how = np.random.default_rng(self.key), self.interval_spec.resample
        if (
            self.method in PLAIN_BOOTSTRAP_METHODS
            and how == "auto"
            and self.preds.n > MAX_RESAMPLED_ROWS
            and self.reported.cell_statistics is not None
        ):
            how = "rows"  # these methods resample the difference, which cells of one model cannot provide
        return bootstrap(self.preds, [self.reported], self.interval_spec.resamples, rng, how)[0]

    @cached_property
    def draws(self) -> Array | None:
        """Value of each resample."""
        return None if self.resampled is None else self.reported.combined(self.resampled.values)

    @cached_property
    def by_rows(self) -> Array | None:
        """Row resamples that two models can share; fewer of them if the other resamples are of cells."""
        if self.resampled is None or self.resampled.how != "cells":
            return self.draws
        rng = np.random.default_rng(self.key)
        return self.reported.combined(
            bootstrap(self.preds, [self.reported], CORRELATION_RESAMPLES, rng, "rows")[0].values
        )

    @cached_property
    def left_out(self) -> Array:
        """Error with each row or cluster left out."""
        return self.reported.combined(jackknife(self.preds, self.reported))

    @cached_property
    def variance(self) -> float:
        """Jackknife variance of the error; s²/n for a mean."""
        return jackknife_variance(self.left_out)

    @cached_property
    def squares(self) -> tuple[float, float, Array]:
        """Unbiased square, plug-in square, and the unbiased square of each resample."""
        assert self.reported.cell_statistics is not None
        view, one = self.reported.views[0], self.reported.cell_statistics[0]
        t, _ = squared_error.debiased_squared_error(pooled_view(view, one))
        rng = np.random.default_rng(self.key)
        drawn = squared_error_draws(self.preds, view, one.index, one.size, self.interval_spec.resamples, rng)
        return t, self.reported_value**2, drawn

    @cached_property
    def plug_in(self) -> float:
        """Plug-in value on which the resamples of a debiased error are centered."""
        return float(
            self.estimand.combined(
                np.array([self.estimand.estimator.plug_in_value(view) for view in self.estimand.views])
            )
        )

    @cached_property
    def nulls(self) -> list[Array | None]:
        """Null draws for the estimate, and for the error whose interval is reported."""
        several = [self.estimand] if self.reported is self.estimand else [self.estimand, self.reported]
        return list(noise_floor_draws(self.preds, several, np.random.default_rng([*self.key, *self._own])))

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Interval of this model at a level, or the reason why there is none."""
        if (
            self.method == "debiased"
            and self.is_squared
            and np.isfinite(self.reported_value)
            and n_independent_units(self.preds) > 1
        ):
            t, v, drawn = self.squares
            return squared_error.root_interval(squared_error.debiased_interval(t, v, drawn, level)), ""
        drawn_by = self.resampled if self.method in RESAMPLING_METHODS else None
        interval_spec = replace(self.interval_spec, level=level)
        return estimate_interval(
            self.preds,
            self.reported,
            self.method,
            interval_spec,
            drawn_by,
            self.nulls[-1],
            np.random.default_rng(self.key),
        )

    def ends(self, level: float) -> IntervalEnds | None:
        """Interval limits and standard deviation for the interval of a difference."""
        own, _ = self.interval(level)
        if own is None or self.draws is None:
            return None
        return IntervalEnds(self.reported_value, own.low, own.high, float(self.draws.std(ddof=1)))

    @cached_property
    def folded(self) -> folded_normal.GapError:
        """Bias bounds and standard deviation for the difference of weighted means of absolute gaps."""
        null = self.nulls[-1]
        assert null is not None
        assert self.draws is not None
        preds = self.preds if hasattr(self, "preds") else None
        sd, n = float(self.draws.std(ddof=1)), self.units if self.clustered else self.reported.views[0].effective_n
        shift = float(self.draws.mean()) - self.reported_value
        bias = folded_normal.bias_bounds(
            folded_normal.gaps_of(self.reported, preds), float(self.reported.combined(null).mean()), shift
        )
        return folded_normal.GapError(
            self.reported_value,
            sd,
            bias,
            folded_normal.wilson_shift(sd, n, folded_normal.influence_bound(self.reported)),
        )

    @cached_property
    def estimate(self) -> Estimate:
        """Complete estimate of this model."""
        if self.interval_spec.interval is None:
            return build_estimate(
                self.estimand, None, "", None, self.interval_spec, None, notes=self._notes(), clustered=self.clustered
            )
        interval, why = self.interval(self.interval_spec.level)
        how = self.resampled.how if self.method in RESAMPLING_METHODS and self.resampled is not None else None
        return build_estimate(
            self.estimand,
            interval,
            why,
            self.nulls[0],
            self.interval_spec,
            how,
            notes=self._notes(),
            clustered=self.clustered,
        )

    def _notes(self) -> list[Note]:
        return notes_of(self.preds, self.estimand)


def jackknife_variance(left_out: Array) -> float:
    """Jackknife variance from the delete-one values."""
    n = len(left_out)
    return float((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())


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
        self.estimate = measure.estimate_score_from_tally(tally, score, lens, interval_spec)
        self.method = None if self.estimate.interval is None else "normal"
        self.value = self.reported_value = self.estimate.value
        self.n_rows = self.units = tally.n
        self._error = tally.score(score.name)["standard_error"]
        # s²/n with the unbiased s², as the jackknife gives it for rows: the tally's own divides by n
        self.variance = self._error**2 * tally.n / max(tally.n - 1, 1)

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Normal interval of a mean, or the reason why there is none."""
        if self.method is None:
            return None, "the value is infinite or undefined"
        return normal_interval(self.value, self._error, level), ""


class ComparedTally(ComparedModel):
    """Any other error on the cells of a tally, which are resampled instead of rows."""

    is_squared = False
    is_mean = False
    by_rows = None
    clustered = False

    def __init__(
        self, name: str, tally: Tally, estimator: Estimator, lens: Lens, aggregate: str, interval_spec: IntervalSpec,
        key: Sequence[int],
    ):  # fmt: skip
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.tally, self.estimand = tally, measure.tally_estimand(tally, estimator, lens, aggregate)
        self.reported = self.estimand.reported
        self.n_rows = self.units = tally.n
        self.lack = why_no_cell_interval(self.reported)
        chosen = resolve_method(self.reported, interval_spec, clustered=False, cells=True)
        self.method = None if self.lack else chosen

    @cached_property
    def resampled(self) -> BootstrapResult | None:
        """Bootstrap results from resampled cells."""
        if self.method is None:
            return None
        return bootstrap_cells(self.reported, self.interval_spec.resamples, np.random.default_rng(self.key))

    @cached_property
    def nulls(self) -> list[Array | None]:
        """Null draws for the estimate, and for the error whose interval is reported."""
        rng = np.random.default_rng([*self.key, 2**20])
        several = [self.estimand] if self.reported is self.estimand else [self.estimand, self.reported]
        if isinstance(self.estimand.estimator, ProperScore):
            return [None]
        return [measure.tally_null_draws(self.tally, estimand, DEFAULT_REDRAWS, rng)[0] for estimand in several]

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """Interval of this model at a level, or the reason why there is none."""
        if self.lack:
            return None, self.lack
        interval_spec, rng = replace(self.interval_spec, level=level), np.random.default_rng(self.key)
        drawn_by = self.resampled if self.method in RESAMPLING_METHODS else None
        return estimate_interval(None, self.reported, self.method, interval_spec, drawn_by, self.nulls[-1], rng)

    @cached_property
    def estimate(self) -> Estimate:
        """Complete estimate of this model."""
        notes: list[Note] = measure.tally_notes(self.tally, self.estimand)
        if self.interval_spec.interval is None:
            return build_estimate(self.estimand, None, "", None, self.interval_spec, None, notes=notes)
        interval, why = self.interval(self.interval_spec.level)
        how = self.resampled.how if self.method in RESAMPLING_METHODS and self.resampled is not None else None
        return build_estimate(self.estimand, interval, why, self.nulls[0], self.interval_spec, how, notes=notes)


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
    if isinstance(estimator, ProperScore) and measure.has_score_sums(tally, lens):
        return ComparedTallyScore(name, tally, estimator, lens, interval_spec, key)
    return ComparedTally(name, tally, estimator, lens, aggregate, interval_spec, key)

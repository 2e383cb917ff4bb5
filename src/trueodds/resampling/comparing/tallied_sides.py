"""One model's part in a comparison where its rows were counted into a tally: an independent sample, never paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Interval
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, ProperScore
from trueodds.lenses.lens import Lens
from trueodds.resampling import intervals, tallied
from trueodds.resampling.cells import Resampled, from_cells
from trueodds.resampling.comparing.sides import Side
from trueodds.resampling.estimate import DRAWN, answer, cells_lack, interval_of, method_for
from trueodds.resampling.floors import REDRAWS
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.tallies.tally import Tally


class ScoredSide(Side):
    """A proper score, whose mean and standard error a tally carries."""

    is_squared = False
    is_mean = True
    draws = None
    resampled = None

    def __init__(
        self, name: str, tally: Tally, score: ProperScore, lens: Lens, interval_spec: IntervalSpec, key: Sequence[int]
    ):
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.estimate = tallied.score_estimate(tally, score, lens, interval_spec)
        self.method = None if self.estimate.interval is None else "normal"
        self.value = self.reported_value = self.estimate.value
        self.n_rows = self.units = tally.n
        self._error = tally.score(score.name)["standard_error"]
        # s²/n with the unbiased s², as the jackknife gives it for rows: the tally's own divides by n
        self.variance = self._error**2 * tally.n / max(tally.n - 1, 1)

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """The normal interval of a mean, or why there is none."""
        if self.method is None:
            return None, "the value is infinite or undefined"
        return intervals.normal(self.value, self._error, level), ""


class TalliedSide(Side):
    """Any other error, on the cells of a tally, which are resampled instead of rows."""

    is_squared = False
    is_mean = False
    by_rows = None
    clustered = False

    def __init__(
        self, name: str, tally: Tally, estimator: Estimator, lens: Lens, aggregate: str, interval_spec: IntervalSpec,
        key: Sequence[int],
    ):  # fmt: skip
        self.name, self.interval_spec, self.key = name, interval_spec, tuple(key)
        self.tally, self.estimand = tally, tallied.estimand_of(tally, estimator, lens, aggregate)
        self.reported = self.estimand.reported
        self.n_rows = self.units = tally.n
        self.lack = cells_lack(self.reported)
        chosen = method_for(self.reported, interval_spec, clustered=False, cells=True)
        self.method = None if self.lack else chosen

    @cached_property
    def resampled(self) -> Resampled | None:
        """The error on resamples of cells."""
        if self.method is None:
            return None
        return from_cells(self.reported, self.interval_spec.resamples, np.random.default_rng(self.key))

    @cached_property
    def nulls(self) -> list[Array | None]:
        """The draws of calibrated models for the estimate, and for the error whose interval is shown."""
        rng = np.random.default_rng([*self.key, 2**20])
        several = [self.estimand] if self.reported is self.estimand else [self.estimand, self.reported]
        if isinstance(self.estimand.estimator, ProperScore):
            return [None]
        return [tallied.null_draws(self.tally, estimand, REDRAWS, rng)[0] for estimand in several]

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """The model's own interval at a level, or why there is none."""
        if self.lack:
            return None, self.lack
        interval_spec, rng = replace(self.interval_spec, level=level), np.random.default_rng(self.key)
        drawn_by = self.resampled if self.method in DRAWN else None
        return interval_of(None, self.reported, self.method, interval_spec, drawn_by, self.nulls[-1], rng)

    @cached_property
    def estimate(self) -> Estimate:
        """The model's own answer in full."""
        notes: list[Note] = tallied.notes_of(self.tally, self.estimand)
        if self.interval_spec.interval is None:
            return answer(self.estimand, None, "", None, self.interval_spec, None, notes=notes)
        interval, why = self.interval(self.interval_spec.level)
        how = self.resampled.how if self.method in DRAWN and self.resampled is not None else None
        return answer(self.estimand, interval, why, self.nulls[0], self.interval_spec, how, notes=notes)


def side_of_tally(
    name: str,
    tally: Tally,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    interval_spec: IntervalSpec,
    key: Sequence[int],
) -> Side:
    """The part of one model; refused (TO403, TO405, TO406) where the estimator needs more than the tally's cells."""
    if isinstance(estimator, ProperScore) and tallied.tally_scores(tally, lens):
        return ScoredSide(name, tally, estimator, lens, interval_spec, key)
    return TalliedSide(name, tally, estimator, lens, aggregate, interval_spec, key)

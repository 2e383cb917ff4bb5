"""One model's part in a comparison: its estimate, and how it varies on rows that it may share with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate, Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean
from trueodds.resampling import folded, intervals
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS, bootstrap
from trueodds.resampling.cells import Resampled, pooled_of
from trueodds.resampling.comparing.margins import Ends
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import (
    DRAWN,
    RAW,
    answer,
    interval_of,
    is_root_mean_square,
    method_for,
    notes_of,
    too_many_views,
    units_of,
)
from trueodds.resampling.floors import floors
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.resampling.jackknife import jackknife, squared_error_draws

FOR_CORRELATION = 200  # resamples of rows that tell how two models vary together where cells tell the rest


class Side:
    """One model: what is asked of it, and the draws that tell how sure the answer is.

    Models with the same `key` are drawn on the same resamples of rows.
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
        self.reported = estimand.reported  # a debiased form is judged by its plug-in
        self.key, self._own = tuple(key), own
        self.clustered = preds.cluster is not None
        self.method = method_for(self.reported, interval_spec, clustered=self.clustered, cells=False)

    @cached_property
    def value(self) -> float:
        """The error."""
        return float(self.estimand.combined(self.estimand.values))

    @cached_property
    def reported_value(self) -> float:
        """The error whose interval is shown."""
        return float(self.reported.combined(self.reported.values))

    @cached_property
    def n_rows(self) -> int:
        """How many rows the error is of."""
        return self.estimand.n_rows

    @cached_property
    def units(self) -> int:
        """How many rows or clusters are independent of each other."""
        return units_of(self.preds)

    @property
    def is_squared(self) -> bool:
        """Whether it is a root mean square of one score, which has an unbiased square."""
        return self.method in ("sun", "debiased") and is_root_mean_square(self.reported)

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean over rows, whose standard error is known."""
        return isinstance(self.estimand.estimator, Mean) and self.estimand.aggregate != "max"

    @cached_property
    def resampled(self) -> Resampled | None:
        """The error on resamples, None where it cannot be had."""
        if self.method is None or too_many_views(self.preds, self.reported, self.interval_spec):
            return None
        rng, how = np.random.default_rng(self.key), self.interval_spec.resample
        if (
            self.method in RAW
            and how == "auto"
            and self.preds.n > MAX_RESAMPLED_ROWS
            and self.reported.linear is not None
        ):
            how = "rows"  # these intervals are of the difference itself, which cells of one model do not tell
        return bootstrap(self.preds, [self.reported], self.interval_spec.resamples, rng, how)[0]

    @cached_property
    def draws(self) -> Array | None:
        """The one number of each resample."""
        return None if self.resampled is None else self.reported.combined(self.resampled.values)

    @cached_property
    def by_rows(self) -> Array | None:
        """Resamples of rows that two models can share, fewer of them where the others are of cells."""
        if self.resampled is None or self.resampled.how != "cells":
            return self.draws
        rng = np.random.default_rng(self.key)
        return self.reported.combined(bootstrap(self.preds, [self.reported], FOR_CORRELATION, rng, "rows")[0].values)

    @cached_property
    def left_out(self) -> Array:
        """The error with each row or cluster left out."""
        return self.reported.combined(jackknife(self.preds, self.reported))

    @cached_property
    def variance(self) -> float:
        """Of the error; of a mean that is s²/n."""
        return jackknife_variance(self.left_out)

    @cached_property
    def squares(self) -> tuple[float, float, Array]:
        """The unbiased square, the plug-in square, and the unbiased square of each resample."""
        assert self.reported.linear is not None
        view, one = self.reported.views[0], self.reported.linear[0]
        t, _ = intervals.squared_error(pooled_of(view, one))
        rng = np.random.default_rng(self.key)
        drawn = squared_error_draws(self.preds, view, one.index, one.size, self.interval_spec.resamples, rng)
        return t, self.reported_value**2, drawn

    @cached_property
    def plug_in(self) -> float:
        """What the resamples of a debiased error scatter around."""
        return float(
            self.estimand.combined(np.array([self.estimand.estimator.plug_in(view) for view in self.estimand.views]))
        )

    @cached_property
    def nulls(self) -> list[Array | None]:
        """The draws of calibrated models for the estimate, and for the error whose interval is shown."""
        several = [self.estimand] if self.reported is self.estimand else [self.estimand, self.reported]
        return list(floors(self.preds, several, np.random.default_rng([*self.key, *self._own])))

    def interval(self, level: float) -> tuple[Interval | None, str]:
        """The model's own interval at a level, or why there is none."""
        if (
            self.method == "debiased"
            and self.is_squared
            and np.isfinite(self.reported_value)
            and units_of(self.preds) > 1
        ):
            t, v, drawn = self.squares
            return intervals.root(intervals.debiased(t, v, drawn, level)), ""
        drawn_by = self.resampled if self.method in DRAWN else None
        interval_spec = replace(self.interval_spec, level=level)
        return interval_of(
            self.preds,
            self.reported,
            self.method,
            interval_spec,
            drawn_by,
            self.nulls[-1],
            np.random.default_rng(self.key),
        )

    def ends(self, level: float) -> Ends | None:
        """What the difference of two such errors is made of."""
        own, _ = self.interval(level)
        if own is None or self.draws is None:
            return None
        return Ends(self.reported_value, own.low, own.high, float(self.draws.std(ddof=1)))

    @cached_property
    def folded(self) -> folded.Side:
        """What a difference of weighted means of absolute gaps is made of."""
        null = self.nulls[-1]
        assert null is not None
        assert self.draws is not None
        preds = self.preds if hasattr(self, "preds") else None
        sd, n = float(self.draws.std(ddof=1)), self.units if self.clustered else self.reported.views[0].effective_n
        shift = float(self.draws.mean()) - self.reported_value
        bias = folded.bias_of(folded.gaps_of(self.reported, preds), float(self.reported.combined(null).mean()), shift)
        return folded.Side(self.reported_value, sd, bias, folded.extra_of(sd, n, folded.influence_bound(self.reported)))

    @cached_property
    def estimate(self) -> Estimate:
        """The model's own answer in full."""
        if self.interval_spec.interval is None:
            return answer(
                self.estimand, None, "", None, self.interval_spec, None, notes=self._notes(), clustered=self.clustered
            )
        interval, why = self.interval(self.interval_spec.level)
        how = self.resampled.how if self.method in DRAWN and self.resampled is not None else None
        return answer(
            self.estimand, interval, why, self.nulls[0], self.interval_spec, how, notes=self._notes(), clustered=self.clustered
        )  # fmt: skip

    def _notes(self) -> list[Note]:
        return notes_of(self.preds, self.estimand)


def jackknife_variance(left_out: Array) -> float:
    """The jackknife's variance."""
    n = len(left_out)
    return float((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())

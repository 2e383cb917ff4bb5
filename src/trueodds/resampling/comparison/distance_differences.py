"""Differences of two models' distances from a target value, for measures such as the O:E ratio, whose target is 1."""

from __future__ import annotations

from functools import cached_property

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference
from trueodds.resampling.intervals.difference import ErrorWithInterval


class ReflectedModel(ComparedModel):
    """A model whose values are reflected about a target t, 2t − value, so that their distance from t is the same.

    The sum of two deviations from t is then the difference between a model and a reflected model.
    """

    is_squared = False

    def __init__(self, model: ComparedModel, target: float):
        self.model, self.target = model, target
        self.name, self.key, self.interval_spec, self.method = model.name, model.key, model.interval_spec, model.method
        if hasattr(model, "preds"):  # a tally has none
            self.preds = model.preds
        self.n_rows, self.n_units, self.resampled = model.n_rows, model.n_units, model.resampled
        self.has_constant_outcomes = model.has_constant_outcomes
        self.value = 2 * target - model.value
        self.reported_value = 2 * target - model.reported_value

    @property
    def is_mean(self) -> bool:
        return self.model.is_mean

    @cached_property
    def draws(self) -> Array | None:
        return None if self.model.draws is None else 2 * self.target - self.model.draws

    @cached_property
    def row_draws(self) -> Array | None:
        return None if self.model.row_draws is None else 2 * self.target - self.model.row_draws

    @cached_property
    def jackknife_values(self) -> Array:
        return 2 * self.target - self.model.jackknife_values

    def interval(self, level: float) -> tuple[Interval | None, str]:
        interval, reason = self.model.interval(level)
        if interval is None:
            return None, reason
        low, high = 2 * self.target - interval.high, 2 * self.target - interval.low
        return Interval(low, high, level, interval.method), reason

    def error_with_interval(self, level: float) -> ErrorWithInterval | None:
        error = self.model.error_with_interval(level)
        if error is None:
            return None
        return ErrorWithInterval(
            2 * self.target - error.value, 2 * self.target - error.high, 2 * self.target - error.low, error.sd
        )


class DistanceDifference(ErrorDifference):
    r"""The distance of one model's value from a target t minus that of another.

    With the difference :math:`D = a - b` and the sum :math:`S = (a - t) + (b - t)` of two values,

    .. math:: |a - t| - |b - t| = \max(\min(D, S), \min(-D, -S)).

    Both distances are equal exactly if D = 0 or S = 0. The larger of the p-values of these two hypotheses is therefore
    a p-value of equal distances (intersection–union test). The interval is the image of the intervals of D and of S,
    and contains 0 exactly if one of them does. Although two intervals are combined, each of level 1 − α, it
    covers the difference with probability 1 − α: values in it are consistent with D or with S. Source: Berger (1982)
    for the test.
    """

    def __init__(self, a: ComparedModel, b: ComparedModel, target: float) -> None:
        super().__init__(a, b)
        self.target = target
        self.value_difference = ErrorDifference(a, b)
        self.value = self._round_to_zero(abs(a.value - target) - abs(b.value - target))

    @cached_property
    def sum_of_deviations(self) -> ErrorDifference:
        """The sum S, as the difference between one model and the reflection of the other."""
        return ErrorDifference(self.a, ReflectedModel(self.b, self.target))

    @property
    def contrasts(self) -> tuple[ErrorDifference, ...]:
        return self.value_difference, self.sum_of_deviations

    def interval(self, level: float) -> Interval | None:
        difference, total = (contrast.interval(level) for contrast in self.contrasts)
        if difference is None or total is None:
            return None
        low, high = distance_limits((difference.low, difference.high), (total.low, total.high))
        return Interval(low, high, level, difference.method)

    @cached_property
    def pvalue(self) -> float | None:
        difference_pvalue, sum_pvalue = (contrast.pvalue for contrast in self.contrasts)
        if difference_pvalue is None or sum_pvalue is None:
            return None
        return max(difference_pvalue, sum_pvalue)

    @cached_property
    def decisive_units(self) -> float:
        return min(contrast.decisive_units for contrast in self.contrasts)


def distance_limits(difference: tuple[float, float], total: tuple[float, float]) -> tuple[float, float]:
    """Smallest and largest |A| − |B| of numbers whose difference A − B and sum A + B lie in these intervals.

    >>> distance_limits((0.1, 0.2), (0.5, 0.6)), distance_limits((0.1, 0.2), (-0.6, -0.5))
    ((0.1, 0.2), (-0.2, -0.1))
    """
    low, high = difference
    # |A| − |B| = max(min(D, S), min(−D, −S)) is largest at an end of both intervals. The smallest |A| − |B| is minus
    # the largest |B| − |A|, which has the difference −D and the same sum.
    largest = max(min(high, total[1]), min(-low, -total[0]))
    largest_negated = max(min(-low, total[1]), min(high, -total[0]))
    return -largest_negated + 0.0, largest + 0.0  # adding 0 turns −0 into 0


def error_difference(a: ComparedModel, b: ComparedModel, estimator: Estimator) -> ErrorDifference:
    """Return the difference of the errors of two models, which are distances if the estimator has a target."""
    if estimator.has_target:
        return DistanceDifference(a, b, estimator.best_value)
    return ErrorDifference(a, b)

"""The difference of two models' errors, or of their distances from a target, and simultaneous (max-T) intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri, stdtr

from trueodds.core.arithmetic import divide_by_largest
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Coefficient, Interval
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.lenses.ranked import has_wrong_prediction
from trueodds.resampling.comparison.compared_model import ComparedModel, jackknife_variance
from trueodds.resampling.estimate import extend_interval
from trueodds.resampling.intervals import folded_normal
from trueodds.resampling.intervals.difference import (
    ErrorWithInterval,
    debiased_difference_interval,
    mover_interval,
    root_difference_interval,
)
from trueodds.resampling.intervals.method import INTERVAL_METHODS, PLAIN_BOOTSTRAP_METHODS

MAX_BISECTIONS = 40  # bisection steps when an interval is inverted to a p-value, which is then exact to 1e-12
# Cochran (1977, section 2.15): the normal approximation of a mean requires n > 25 G², with the skewness G of the rows.
MIN_DECISIVE_UNITS = 25
ROUNDING_ERROR = 1e-13  # relative difference of two errors that can be due to the rounding of their sums
START_LEVELS = (1e-9, 1e-4, 0.01, 0.1, 0.5, 0.8)  # candidate start levels of the bisection


class ErrorDifference:
    """The error of one model minus that of another."""

    def __init__(self, a: ComparedModel, b: ComparedModel) -> None:
        self.a, self.b = a, b
        self.paired = a.key == b.key
        self.value = self._round_to_zero(a.value - b.value)

    def _round_to_zero(self, difference: float) -> float:
        """Return the difference, or 0 if it can be due to rounding."""
        return 0.0 if self._is_rounding_error(difference) else difference

    def _is_rounding_error(self, difference: float) -> bool:
        """Whether a difference of the two errors is so small that it can be due to the rounding of their sums."""
        largest_error = max(abs(self.a.value), abs(self.b.value))
        return math.isfinite(largest_error) and abs(difference) <= ROUNDING_ERROR * largest_error

    @property
    def contrasts(self) -> tuple[ErrorDifference, ...]:
        """The differences on which interval and p-value are based: this one."""
        return (self,)

    @cached_property
    def method(self) -> str | None:
        """Interval method; None if there is no interval."""
        methods = {self.a.method, self.b.method}
        if None in methods or not np.isfinite(self.value):
            return None
        if methods == {"normal"}:
            return "welch"
        if methods == {"wald"}:
            return "wald"
        if len(methods) == 1 and self.a.method in PLAIN_BOOTSTRAP_METHODS:
            if self.paired and self.a.interval_spec.resample == "cells" and not self.is_difference_of_means:
                raise InputError(
                    "TO205",
                    "Resampling the cells of each model does not estimate the correlation of two models.",
                    f"⟨interval={self.a.method!r}⟩ with ⟨resample='cells'⟩",
                    "Omit resample, or use ⟨interval='auto'⟩.",
                )
            return self.a.method
        if self.a.is_squared and self.b.is_squared:
            return "roots"
        if len(methods) == 1 and methods <= {"debiased", "folded-normal"}:
            return self.a.method
        return "mover"

    @cached_property
    def draws(self) -> Array | None:
        """Difference of each resample; paired models use the same resampled rows."""
        if self.method == "roots":
            return self.a.debiased_squares[2] - self.b.debiased_squares[2]
        if self.a.draws is None or self.b.draws is None:
            return None
        with np.errstate(invalid="ignore"):  # the difference of two infinite errors is NaN
            return self.a.draws - self.b.draws

    @cached_property
    def reason_without_interval(self) -> str:
        """The reason why one of the two models has no interval; empty if both have one."""
        for model in (self.a, self.b):
            _, reason = model.interval(model.interval_spec.level)
            if reason:
                return reason
        return ""

    def interval(self, level: float) -> Interval | None:
        if self.method is None or min(self.a.n_units, self.b.n_units) < 2:
            return None
        if self.method == "welch":
            error, degrees = self.standard_error
            if not error > 0:
                return None
            # It excludes 0 exactly if the two-sided p-value of Welch's t-test is below 1 − level. Source: Welch (1947).
            return replace(Interval.from_standard_error(self.value, error, level, degrees), method="welch")
        if self.method == "wald":
            return self._wald_interval(level)
        if self.draws is None:
            return None
        if "exact" not in (self.a.method, self.b.method):  # exact intervals do not depend on the draws
            if self.paired and self.value == 0 and self._is_rounding_error(float(np.abs(self.draws).max())):
                return Interval(0.0, 0.0, level, self.method)  # the predictions are equal, up to rounding
            if np.ptp(self.draws) == 0:  # the outcomes do not vary
                return None
        if not self.paired and any(model.has_constant_outcomes for model in (self.a, self.b)):
            return None  # the variance of one of the errors is unknown; in paired differences the outcomes can cancel
        interval = self._evaluate_interval(level)
        if interval is None:
            return None
        if self.uses_standard_error and self._t_test_pvalue > 1 - level:  # interval and p-value must agree
            interval = extend_interval(interval, 0.0)
        if self.method not in PLAIN_BOOTSTRAP_METHODS and np.isfinite(self.value):
            interval = extend_interval(interval, self.value)
        return interval if interval.low <= interval.high else None  # false for NaN limits

    def _evaluate_interval(self, level: float) -> Interval | None:
        """Interval by the chosen method, before it is extended to agree with the value and the p-value."""
        assert self.draws is not None
        method = INTERVAL_METHODS.get(self.method or "")
        if method is not None and method.from_draws is not None:
            value = self.a.reported_value - self.b.reported_value
            return method.from_draws(value, self.draws, self._jackknife_values, level)
        if self.method == "debiased":
            return debiased_difference_interval(self.value, self.a.plug_in - self.b.plug_in, self.draws, level)
        if self.method == "folded-normal":
            return folded_normal.folded_normal_difference(self.a.gap_error, self.b.gap_error, self.correlation, level)
        (interval_a, _), (interval_b, _) = self.a.interval(level), self.b.interval(level)
        if interval_a is None or interval_b is None:
            return None
        if self.method == "roots":
            debiased_a, plug_in_a, _ = self.a.debiased_squares
            debiased_b, plug_in_b, _ = self.b.debiased_squares
            squares = debiased_difference_interval(debiased_a - debiased_b, plug_in_a - plug_in_b, self.draws, level)
            return root_difference_interval(squares, interval_a, interval_b)
        error_a, error_b = self.a.error_with_interval(level), self.b.error_with_interval(level)
        assert error_a is not None
        assert error_b is not None
        return mover_interval(error_a, error_b, self.correlation, level)

    def _wald_interval(self, level: float) -> Interval | None:
        """Interval from both standard errors and the correlation of the influence of the same rows or clusters."""
        a, b = self.a.coefficient, self.b.coefficient
        correlation = self.correlation_of_influence if self.paired else 0.0
        variance = a.se**2 + b.se**2 - 2 * correlation * a.se * b.se
        if self.value == 0 and self._is_rounding_error(math.sqrt(max(variance, 0.0))):
            return Interval(0.0, 0.0, level, self.method or "")  # the predictions are equal, up to rounding
        return Coefficient(self.value, math.sqrt(max(variance, 0.0)), self._effective_units).interval_at(level)

    @cached_property
    def correlation_of_influence(self) -> float:
        """Correlation of the influence of the rows or clusters on both values; 1 if it is equal for all of them."""
        a, b = self.a.influence, self.b.influence
        product = math.sqrt(float(a @ a) * float(b @ b))
        return min(max(float(a @ b) / product, -1.0), 1.0) if product > 0 else 0.0

    @property
    def _effective_units(self) -> float | None:
        """Effective number of clusters of a difference with known standard errors; None for independent rows.

        Of different rows the degrees of freedom are Welch's. Independent rows have infinitely many.
        """
        a, b = self.a.coefficient, self.b.coefficient
        if a.effective_units is None and b.effective_units is None:
            return None
        units = [math.inf if side.effective_units is None else side.effective_units for side in (a, b)]
        if self.paired:
            return min(units)
        denominator = sum(side.se**4 / (n - 1) for side, n in zip((a, b), units, strict=True))
        return (a.se**2 + b.se**2) ** 2 / denominator + 1 if denominator > 0 else None

    def _jackknife_values(self) -> Array:
        values_a, values_b = self.a.jackknife_values, self.b.jackknife_values
        if self.paired:
            return values_a - values_b
        # Leaving out a row of one model changes the difference by its influence on this model only.
        return np.concatenate([values_a, values_b.mean() - values_b + values_a.mean()])

    @cached_property
    def correlation(self) -> float:
        """Correlation of the two errors over the resamples; 0 for different rows."""
        draws_a, draws_b = self.a.row_draws, self.b.row_draws
        if not self.paired or draws_a is None or draws_b is None or not (np.ptp(draws_a) > 0 and np.ptp(draws_b) > 0):
            return 0.0
        return float(np.corrcoef(draws_a, draws_b)[0, 1])

    @property
    def is_difference_of_means(self) -> bool:
        return self.a.is_mean and self.b.is_mean

    @property
    def uses_standard_error(self) -> bool:
        """Whether a t test contributes to interval and p-value, as for means over rows."""
        return self.method in ("bca", "welch") and self.is_difference_of_means

    @cached_property
    def standard_error(self) -> tuple[float, float]:
        """Standard error of a difference of means, and its degrees of freedom (Welch's for different rows)."""
        if self.paired:
            return jackknife_variance(self.a.jackknife_values - self.b.jackknife_values) ** 0.5, self.a.n_units - 1.0
        variance_a, variance_b, n_a, n_b = self.a.variance, self.b.variance, self.a.n_units, self.b.n_units
        denominator = variance_a**2 / (n_a - 1) + variance_b**2 / (n_b - 1)
        degrees = (variance_a + variance_b) ** 2 / denominator if denominator > 0 else float(n_a + n_b - 2)
        return (variance_a + variance_b) ** 0.5, degrees

    @cached_property
    def pvalue(self) -> float | None:
        """p-value of the hypothesis that the true errors are equal: 1 − the largest level whose interval excludes 0.

        A difference of means is significant only if both its t test and its interval of resamples say so.
        """
        if self.interval(self.a.interval_spec.level) is None:
            return None
        if not self.uses_standard_error:
            return max(pvalue_by_inversion(self.interval), self.min_pvalue or 0.0)
        if np.isnan(self._t_test_pvalue):
            return None
        return max(self._t_test_pvalue, 0.0 if self.method == "welch" else pvalue_by_inversion(self.interval))

    @cached_property
    def _t_test_pvalue(self) -> float:
        """p-value of a difference of means; NaN if they differ and the variance is 0."""
        error, degrees = self.standard_error
        if error == 0:
            return 1.0 if self.value == 0 else float("nan")
        return float(2 * stdtr(degrees, -abs(self.value) / error))

    @cached_property
    def decisive_units(self) -> float:
        r"""Effective number of rows or clusters on which a difference of means depends, if chance favors its sign.

        The skewness of the mean of k rare values is about :math:`1/\sqrt k`, so the number is :math:`1/G^2` for the
        skewness G of the difference. If G has the sign of the difference, rare values support it and the t test is
        conservative; the number is infinite. If they contradict it, the sample may by chance contain too few of them.
        The number is 0 if neither model made an error, so that none of the values of errors are known.
        """
        if not self.is_difference_of_means or self.a.preds is None or self.b.preds is None:  # None of a tally
            return np.inf
        if not any(has_wrong_prediction(side.preds) for side in (self.a, self.b)):
            return 0.0
        variance, third_moment = self._jackknife_moments
        if variance == 0 or third_moment * self.value >= 0:
            return np.inf
        return float(variance**3 / third_moment**2)

    @cached_property
    def _jackknife_moments(self) -> tuple[float, float]:
        """Variance and third central moment of the difference, from the influence of each row or cluster.

        The influence is proportional to the mean of the delete-one values minus the value without the row, which is
        positive for a row of large error. The factor cancels in the skewness.
        """
        values_a, values_b = self.a.jackknife_values, self.b.jackknife_values
        samples = [values_a - values_b] if self.paired else [values_a, -values_b]
        deviations = np.concatenate([sample.mean() - sample for sample in samples])
        return float((deviations**2).sum()), float((deviations**3).sum())

    @property
    def is_doubtful(self) -> bool:
        """Whether too few rows or clusters support a difference of means, so that it must not be called significant."""
        return self.decisive_units < MIN_DECISIVE_UNITS

    @property
    def doubt_note(self) -> Note:
        """Note on a difference that must not be called significant."""
        units = "rows" if self.a.preds.cluster is None else "clusters"
        text = (
            f"depends on an effective number of about {self.decisive_units:.0f} {units}; p-value and interval need at"
            f" least {MIN_DECISIVE_UNITS}, because rows of large error may be missing by chance"
        )
        if self.decisive_units == 0:
            text = "depends on rows in which neither model made an error, so their losses from errors are unknown"
        names = f"{self.a.name} − {self.b.name}"
        return Note("TN273", f"The difference {names} {text}. Neither model is called better.")

    @cached_property
    def min_pvalue(self) -> float | None:
        """Smallest possible p-value for this number of resamples; None if a t test can give smaller ones."""
        if self.method is None or self.uses_standard_error or self.draws is None:
            return None
        return 1 / (1 + len(self.draws))


def pvalue_by_inversion(interval: Callable[[float], Interval | None]) -> float:
    """1 − the largest level at which the interval excludes 0; 1 if there is none.

    The search starts at the lowest level at which an interval exists, because very short intervals may not exist.

    >>> round(pvalue_by_inversion(lambda level: Interval(1 - 2 * level, 9.0, level, "")), 4)
    0.5
    """

    def excludes_zero(level: float) -> bool:
        ends = interval(level)
        return ends is not None and not ends.low <= 0 <= ends.high

    low, high = next((level for level in START_LEVELS if interval(level) is not None), 1.0), 1 - 1e-9
    if not excludes_zero(low):
        return 1.0
    if excludes_zero(high):
        return 0.0
    for _ in range(MAX_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excludes_zero(middle) else (low, middle)
    return 1 - low


class SimultaneousDifferences:
    """Simultaneous levels and p-values of several differences by max-T, or by Bonferroni's correction.

    All pairs share their resamples, so the distribution of the largest standardized deviation is known. If a pair is
    resampled by cells, which do not retain the correlation of models, Bonferroni's correction is used. It is also an
    upper bound of max-T. Source: Hothorn, Bretz & Westfall (2008).
    """

    def __init__(self, pairs: Sequence[ErrorDifference], n_hypotheses: int | None = None) -> None:
        self.n_hypotheses = max(1, len(pairs) if n_hypotheses is None else n_hypotheses)
        drawn_pairs = [pair for pair in pairs if pair.method is not None and pair.draws is not None]
        resamples_cells = any(
            model.resampled is not None and model.resampled.resampled_units == "cells"
            for pair in drawn_pairs
            for model in (pair.a, pair.b)
        )
        # The max-T statistic of each resample; None for Bonferroni's correction.
        self.max_t_draws: Array | None = None
        if not resamples_cells and len(drawn_pairs) == len(pairs):
            self.max_t_draws = _max_t_statistics([pair.draws for pair in drawn_pairs])

    def level(self, level: float) -> float:
        """Level of each single interval for simultaneous coverage."""
        bonferroni = 1 - (1 - level) / self.n_hypotheses
        if self.max_t_draws is None:
            return bonferroni
        # So many draws may exceed the statistic of a pair whose adjusted p-value is at most 1 − level. The bound is the
        # next draw, so that an interval excludes 0 exactly if the adjusted p-value is that small.
        n_above = int(np.floor((1 - level) * (1 + len(self.max_t_draws)) + 1e-9)) - 1
        if not 0 <= n_above < len(self.max_t_draws):
            return bonferroni
        bound = float(np.sort(self.max_t_draws)[-1 - n_above])
        return float(min(bonferroni, max(level, 2 * ndtr(bound) - 1)))

    def adjusted_pvalue(self, p: float, *, swapped: bool = False) -> float:
        """Adjusted p-value of one difference; Bonferroni's if it is not based on these resamples."""
        bonferroni = min(1.0, p * self.n_hypotheses)
        if self.max_t_draws is None or swapped:
            return bonferroni
        share = float((1 + (self.max_t_draws >= -ndtri(p / 2)).sum()) / (1 + len(self.max_t_draws)))
        return min(bonferroni, max(share, p))


def _max_t_statistics(draws: Sequence[Array | None]) -> Array | None:
    """Largest standardized deviation of each resample over all differences, (draws,).

    None if none of them varies, or one of them is infinite in a resample.
    """
    if any(values is not None and np.isinf(values).any() for values in draws):
        return None
    varying = [divide_by_largest(values) for values in draws if values is not None and np.ptp(values) > 0]
    if not varying or len({len(values) for values in varying}) > 1:
        return None
    return np.asarray(np.max([np.abs(values - values.mean()) / values.std(ddof=1) for values in varying], axis=0))


class ReflectedModel(ComparedModel):
    """A model with each value v replaced by 2t − v, at the same distance from the target t.

    The sum of two deviations from t is then the difference between a model and a reflected model.
    """

    is_squared = False

    def __init__(self, model: ComparedModel, target: float):
        self.model, self.target = model, target
        self.name, self.key, self.interval_spec, self.method = model.name, model.key, model.interval_spec, model.method
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

    @cached_property
    def coefficient(self) -> Coefficient:
        return replace(self.model.coefficient, value=self.value)

    @cached_property
    def influence(self) -> Array:
        return -self.model.influence

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

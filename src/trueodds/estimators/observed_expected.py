"""Observed against expected events: their difference (calibration-in-the-large) and their ratio (O:E)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import variance_of_sum
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.results import Coefficient
from trueodds.core.typing import Array
from trueodds.estimators.base import MIN_GROUP_EXPECTED, CellStatistic, Estimator, require_one_score
from trueodds.lenses.view import View

_SHARE_TOLERANCE = 1e-9  # mean of y(1 − y) up to which the outcomes are labels, not shares of votes
MIN_PLAUSIBLE_RATIO = 0.1  # smallest O:E ratio, or E:O ratio, without a note


@dataclass(frozen=True)
class _StatisticOfTotals(Estimator):
    """Base class of comparisons of the observed with the expected number of events, which depend on totals only.

    Raises
    ------
    InputError
        TO205 if the view has a vector per row.
    """

    interval: ClassVar[str | None] = "bca"
    is_unbiased: ClassVar[bool] = True
    is_averageable: ClassVar[bool] = False  # values above and below the best value would cancel

    def statistic_from_totals(self, w: Array, wp: Array, wy: Array) -> Array:
        """Return the statistic (…) from the total weight, Σwp and Σwy, (…) each."""
        raise NotImplementedError

    def value(self, view: View) -> float:
        observed, expected = self._rates(view)
        return float(self.statistic_from_totals(np.array(1.0), np.array(expected), np.array(observed)))

    def cell_statistic(self, view: View) -> Totals:
        """The statistic as a function of sums, with all rows in one cell."""
        return Totals(self, view)

    def null_standard_error(self, view: View) -> float | None:
        """Standard deviation of the value of a calibrated model; None for shares of votes, or if no event is expected.

        The variance of the weighted event count of independent rows is Σw²p(1 − p).
        """
        expected = self._rates(view)[1]
        share_sum = float((view.w * view.y - view.sums("wyy")).sum())  # Σwy(1 − y), which is 0 for labels
        if expected <= 0 or share_sum > _SHARE_TOLERANCE * view.total:
            return None
        std = math.sqrt(max(float(view.sums("wwv").sum()), 0.0)) / view.total
        return abs(
            float(self.statistic_from_totals(np.array(1.0), np.array(expected), np.array(expected + std)))
            - self.best_value
        )

    def _event_count_error(self, view: View, cluster: Array | None) -> float:
        """Standard error of Σwy: at least that of independent rows of a calibrated model; NaN with one cluster."""
        variance = float(view.sums("wwv").sum())
        if cluster is not None:
            variance = float(np.maximum(variance, variance_of_sum(view.w * (view.y - view.p), cluster)))
        return math.sqrt(variance)

    def parts(self, view: View) -> dict[str, float]:
        """Observed event rate and mean predicted probability."""
        observed, expected = self._rates(view)
        return {"observed": observed, "expected": expected}

    def _rates(self, view: View) -> tuple[float, float]:
        """Observed event rate and mean predicted probability; raises InputError for probability vectors."""
        require_one_score(view, self.name)
        p = view.p.astype(np.float64, copy=False)
        return float((view.w * view.y).sum() / view.total), float((view.w * p).sum() / view.total)


@dataclass(frozen=True)
class CalibrationInTheLarge(_StatisticOfTotals):
    r"""Mean observed outcome minus mean predicted probability (calibration-in-the-large, mean calibration).

    Above 0 the model underpredicts on average, below 0 it overpredicts. The logistic version, a shift of the log odds,
    is the part `in_the_large` of the test `cox`.

    See Also
    --------
    o_e : The ratio of the same two rates (O:E ratio).

    Notes
    -----
    .. math:: \frac{\sum_i w_i (y_i - p_i)}{\sum_i w_i}

    `parts` holds the two rates, `observed` and `expected`. The difference depends on totals only, and errors that
    cancel leave it at 0, so use it together with a calibration curve or `ici`. Its absolute value is the ECE with a
    single bin. Shapes: a binary view (n,). Several views are not averaged, because the differences of all classes sum
    to 0.

    Units: probability, in [−1, 1]; 0 is best.

    Bias: none, so the noise floor is 0. The interval is BCa over resampled rows. From a tally it is the percentile
    interval over resampled cells, without the correction for skewness.

    Cost: O(n). Tallies merge exactly.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Van Calster et al. (2016).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0], [0.5, 0.7], "calibration_in_the_large", interval=None).value, 4)
    -0.1
    """

    name: ClassVar[str] = "calibration_in_the_large"
    lower_bound: ClassVar[float] = -1.0
    upper_bound: ClassVar[float] = 1.0
    group_scale: ClassVar[str | None] = "identity"

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        """The difference with the standard error of a calibrated model, or of clusters if it is larger."""
        return Coefficient(self.value(view), self._event_count_error(view, cluster) / view.total)

    def statistic_from_totals(self, w: Array, wp: Array, wy: Array) -> Array:
        """Mean observed outcome minus mean predicted probability."""
        return (wy - wp) / w

    def as_loss(self, values: Any) -> Any:
        """Absolute difference, because both signs are errors."""
        return np.abs(values)

    def expected_if_calibrated(self, view: View) -> float:
        """The expected difference of a calibrated model, which is 0."""
        return 0.0


@dataclass(frozen=True)
class ObservedExpected(_StatisticOfTotals):
    r"""Ratio of observed to expected events (O:E ratio, standardized event ratio).

    A ratio above 1 means that the model underpredicts on average. A ratio below 1 means that it overpredicts.

    See Also
    --------
    calibration_in_the_large : The difference of the same two rates.
    ici : Mean distance from a smooth calibration curve (ICI).

    Notes
    -----
    .. math:: \frac{\sum_i w_i y_i}{\sum_i w_i p_i}

    `parts` holds the rates `observed` and `expected`. The ratio depends on totals only, and errors that cancel leave it
    at 1, so use it together with a calibration curve or `ici`. Shapes: a binary view (n,).

    Units: a ratio, in [0, ∞]; 1 is best. A ratio of 0.8 means a fifth fewer events than expected. If nothing was
    expected, the ratio is infinite, or undefined if no event was observed either, and a note says so.

    Bias: none for a calibrated model given its predictions, so the noise floor is 1. The interval is BCa over resampled
    rows. From a tally it is the percentile interval over resampled cells, without the correction for skewness: for 120
    rows it is [0.849, 1.447] where BCa gives [0.858, 1.457].

    Cost: O(n). Tallies merge exactly.

    References
    ----------
    .. [1] Van Calster et al. (2016).
    .. [2] Debray et al. (2017).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0], [0.5, 0.7], "o_e", interval=None).value, 4)
    0.8333
    """

    name: ClassVar[str] = "o_e"
    lower_bound: ClassVar[float] = 0.0
    best_value: ClassVar[float] = 1.0

    group_scale: ClassVar[str | None] = "log"

    def group_effect(self, view: View, cluster: Array | None, overall: float) -> Coefficient:
        """log (O + ½)/E, and √(Σp(1 − p) / (E μ)) as its standard error, with the μ = E · overall events of all groups.

        NaN if μ is less than two, where the logarithm is biased.
        """
        observed, expected = (rate * view.total for rate in self._rates(view))
        one_event, typical = view.total / view.n_rows, expected * overall
        if not typical >= MIN_GROUP_EXPECTED * one_event:
            return Coefficient(math.nan, math.nan)
        error = self._event_count_error(view, cluster) / math.sqrt(expected * typical)
        return Coefficient(math.log((observed + one_event / 2) / expected), error)

    def statistic_from_totals(self, w: Array, wp: Array, wy: Array) -> Array:
        """Observed over expected events."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return wy / wp

    def expected_if_calibrated(self, view: View) -> float | None:
        """The expected ratio of a calibrated model, which is 1."""
        return 1.0 if self._rates(view)[1] > 0 else None

    def notes(self, view: View) -> list[Note]:
        observed, expected = self._rates(view)
        if expected > 0:
            if observed == 0 or MIN_PLAUSIBLE_RATIO <= observed / expected <= 1 / MIN_PLAUSIBLE_RATIO:
                return []
            text = (
                f"The O:E ratio is {format_number(observed / expected)}. Check that the predictions are probabilities"
                " (0.12 for 12 %) of the event that was observed."
            )
            return [Note("TN154", text)]
        if observed > 0:
            return [Note("TN125", "Events were observed but none was expected: the O:E ratio is infinite.")]
        return [Note("TN125", "No event was expected and none was observed: the O:E ratio is undefined.")]


class Totals(CellStatistic):
    """Cell statistic of totals: all rows of a view are in one cell."""

    def __init__(self, estimator: _StatisticOfTotals, view: View) -> None:
        self.estimator, self.view = estimator, view
        self.index = np.zeros(len(view.p), dtype=np.int64)
        self.size = 1

    def value(self) -> float:
        return self.estimator.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self.estimator.statistic_from_totals(w[..., 0], wp[..., 0], wy[..., 0])

"""Instance-level calibration error (ICE) and its macro average over correct and wrong answers (MacroCE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from trueodds.binning.sorted_scores import group_starts, sort_by_score
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, Estimator, require_one_score
from trueodds.kernels.sorting import find_scores
from trueodds.lenses.view import View, count_views


class OutcomeSums(NamedTuple):
    """Weights and weighted distances |y − p| of the rows with and without the event: numbers, or arrays (draws,)."""

    events: Any  # Σwy
    event_distance: Any  # Σwy(1−p)
    non_events: Any  # Σw(1−y)
    non_event_distance: Any  # Σw(1−y)p


MAX_SCORE_GROUPS = 4096  # maximum number of groups of scores in draws
MIN_SCORE_GROUPS = 256  # minimum of this maximum, however many rows there are
MAX_ROW_GROUPS = 2**24  # maximum number of rows times groups, to which the cost of a jackknife is proportional
PROBABILITY_TOLERANCE = 1e-8  # Σwp or Σw(1−p) of a group, relative to Σw, up to which it counts as 0
MASS_TOLERANCE = 1e-12  # weight of the rows with (or without) the event, relative to the total, that counts as 0


@dataclass(frozen=True)
class InstanceError(Estimator):
    r"""Instance-level calibration error (ICE): mean absolute distance between probability and outcome.

    Raises
    ------
    InputError : as in `require_one_score`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, |y_i - p_i|

    `parts` holds `ice_pos` and `ice_neg`, the mean distance of rows with and without the event. Vote shares count as
    votes: 0.7 is a row of weight 0.7 with the event and one of 0.3 without. Shapes: a binary view (n,). The default
    lens is confidence.

    Units: probability, in [0, 1]; 0 is best and means that every answer was certain and correct. A calibrated model
    with any uncertainty does not score 0. It scores mean 2p(1-p), which `noise_floor` reports. The absolute distance is
    not a proper score: extreme probabilities score better than honest ones, so compare models by a proper score
    instead.

    Bias: none, because it is a plain mean.

    Cost: O(n) time, and O(n log n) for draws. Tallies merge exactly from four sums.

    References
    ----------
    .. [1] Si, Zhao, Min & Boyd-Graber (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 1, 0], [0.9, 0.8, 0.6], "ice", lens="positive", interval=None).value, 4)
    0.3
    """

    name: ClassVar[str] = "ice"
    lower_bound: ClassVar[float] = 0.0
    lens: ClassVar[str | None] = "confidence"
    interval: ClassVar[str | None] = "bca"
    vanishes_if_calibrated: ClassVar[bool] = False

    def error_from_sums(self, sums: OutcomeSums, empty_side_values: tuple[float, float]) -> Array:
        """Return the error from the four sums, which may be those of draws, (draws,) each.

        The two sides are the rows with and without the event. `empty_side_values` are the mean distances that are used
        for a side without rows, which this error does not need.
        """
        events, event_distance, non_events, non_event_distance = sums
        return divide_or_fill(event_distance + non_event_distance, events + non_events, np.nan)

    def empty_side_values(self, calibrated_means: tuple[float, float]) -> tuple[float, float]:
        """Return the mean distances used for a side (rows with, and without, the event) that has no rows.

        `calibrated_means` are the mean distances of both sides if the predictions are calibrated.
        """
        return calibrated_means

    def value(self, view: View) -> float:
        return float(self.error_from_sums(distance_sums(view, self.name), self.empty_side_values((np.nan, np.nan))))

    def cell_statistic(self, view: View) -> CellStatistic:
        return ScoreGroupSums(self, view)

    def parts(self, view: View) -> dict[str, float]:
        """Return the mean distance of the rows with and without the event; NaN if there are none."""
        event_distance, non_event_distance = mean_distance_by_outcome(distance_sums(view, self.name), (np.nan, np.nan))
        return {"ice_pos": float(event_distance), "ice_neg": float(non_event_distance)}

    def notes(self, view: View) -> list[Note]:
        events, _, non_events, _ = distance_sums(view, self.name)
        if events > 0 and non_events > 0:
            return []
        frequency, side = ("every row", "ice_neg") if events > 0 else ("no row", "ice_pos")
        return [Note("TN130", f"The event occurred in {frequency}: {self._empty_side_text(side)}.")]

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        one_sided = [view.name for view in views if InstanceError().notes(view)]
        if not one_sided:
            return []
        view_names = ", ".join(one_sided[:3]) + (", …" if len(one_sided) > 3 else "")
        text = f"In {len(one_sided)} of {count_views(views)} ({view_names}) the event occurred always or never: "
        return [Note("TN130", f"{text}{self._empty_side_text('that side')}.")]

    def _empty_side_text(self, side: str) -> str:
        """Clause of the note on a side without rows."""
        return f"{side} has no mean"


@dataclass(frozen=True)
class MacroError(InstanceError):
    r"""Macro-average calibration error (MacroCE): distance to the outcome, averaged over correct and wrong answers.

    Correct and wrong answers have the same total weight. An accurate model that is always confident looks good on
    average because its errors are rare. Here they determine half of the value.

    Parameters
    ----------
    empty : {"nan", "zero"}, default="nan"
        Value if no row is correct or no row is wrong: NaN with a note, or the value with a perfect empty side, as in
        the authors' code.

    Raises
    ------
    InputError
        TO203 if `empty` is unknown. TO205 if the view has a vector per row.

    Notes
    -----
    .. math:: \tfrac12 \Big( \frac{\sum_i w_i y_i (1 - p_i)}{\sum_i w_i y_i}
        + \frac{\sum_i w_i (1 - y_i) p_i}{\sum_i w_i (1 - y_i)} \Big)

    `parts` holds `ice`, `ice_pos` and `ice_neg`. Shapes: a binary view (n,). The default lens is confidence.

    Units: probability, in [0, 1]; 0 is best and means confidence 1 for every correct answer and 0 for every wrong one.
    The value depends on discrimination as much as on calibration. A calibrated model does not score 0, and
    `noise_floor` reports its score.

    Bias: none if both sides have rows. In draws and resamples an empty side takes the mean that it would have if the
    predictions were calibrated.

    Cost: O(n) time, and O(n log n) for draws. Tallies merge exactly from four sums.

    References
    ----------
    .. [1] Si, Zhao, Min & Boyd-Graber (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 1, 0], [0.9, 0.8, 0.6], "macroce", lens="positive", interval=None).value, 4)
    0.375
    """

    name: ClassVar[str] = "macroce"
    empty: Literal["nan", "zero"] = "nan"

    def error_from_sums(self, sums: OutcomeSums, empty_side_values: tuple[float, float]) -> Array:
        """Return the mean of the mean distances of the rows with and without the event."""
        event_distance, non_event_distance = mean_distance_by_outcome(sums, empty_side_values)
        return (event_distance + non_event_distance) / 2

    def empty_side_values(self, calibrated_means: tuple[float, float]) -> tuple[float, float]:
        """Return the means under calibration, or 0 with `empty="zero"`."""
        return (0.0, 0.0) if self.empty == "zero" else calibrated_means

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"empty": self.empty}

    def parts(self, view: View) -> dict[str, float]:
        """Return the mean distance of all rows, and of the rows with and without the event."""
        return {"ice": InstanceError().value(view), **super().parts(view)}

    def notes(self, view: View) -> list[Note]:
        note_list = super().notes(view)
        p = view.p[view.w > 0]
        if self.empty == "nan" and ((p == 0).all() or (p == 1).all()):
            text = (
                f"Every probability is {float(p[0]):g}, so a calibrated model would have one side only, and there is no"
                " noise floor."
            )
            note_list.append(Note("TN130", text))
        return note_list

    def _empty_side_text(self, side: str) -> str:
        if self.empty == "zero":
            return f"{side} is absent and counts as 0"
        return f"{side} has no mean, and MacroCE no value"


def distance_sums(view: View, name: str) -> OutcomeSums:
    """Return Σwy, Σwy(1−p), Σw(1−y) and Σw(1−y)p of a view of rows or of cells. `name` is that of the estimator."""
    require_one_score(view, name)
    w, y, p = view.w, view.y, view.p.astype(np.float64, copy=False)
    events, non_events = w * y, w * (1 - y)
    if view.is_rows:  # no difference of sums, which would lose digits of p near 0 or 1
        event_distance, non_event_distance = events * (1 - p), non_events * p
    else:
        weighted_p_of_events = view.sums("wpy")
        event_distance, non_event_distance = events - weighted_p_of_events, w * p - weighted_p_of_events
    return OutcomeSums(
        float(events.sum()), float(event_distance.sum()), float(non_events.sum()), float(non_event_distance.sum())
    )


def mean_distance_by_outcome(sums: OutcomeSums, empty_side_values: tuple[float, float]) -> tuple[Array, Array]:
    """Return the mean distance of the rows with and without the event, or `empty_side_values` if there are none."""
    events, event_distance, non_events, non_event_distance = sums
    value_without_events, value_without_non_events = empty_side_values
    return (
        divide_or_fill(event_distance, events, value_without_events),
        divide_or_fill(non_event_distance, non_events, value_without_non_events),
    )


def divide_or_fill(numerator: Any, denominator: Any, fill_value: Any) -> Array:
    """Return the quotient of two arrays, and `fill_value` where the denominator is 0."""
    has_denominator = np.asarray(denominator) > 0
    return np.where(has_denominator, numerator / np.where(has_denominator, denominator, 1.0), fill_value)


class ScoreGroupSums(CellStatistic):
    """Cell statistic whose cells are groups of neighboring scores.

    Tied scores share a group. Up to 4,096 distinct scores are distinguished, fewer for many rows. In a draw, the rows
    of a group with the event have the mean score that such rows have if labels are drawn from the predictions, and so
    do the rows without the event. The mean of null draws is therefore exact for groups of any width.
    """

    def __init__(self, error: InstanceError, view: View) -> None:
        require_one_score(view, error.name)
        self.error, self.view = error, view
        max_groups = min(max(MAX_ROW_GROUPS // len(view), MIN_SCORE_GROUPS), MAX_SCORE_GROUPS)
        s, mass, _ = sort_by_score(view).sums_by_score()
        starts = group_starts(mass, max_groups)
        self.index, self.size = find_scores(view.p, s[starts]), len(starts)
        w, wp, wpp = (np.bincount(self.index, x, self.size) for x in (view.w, view.w * view.p, view.sums("wpp")))
        mean = divide_or_fill(wp, w, 0.0)
        self.mean_prob_if_event = divide_or_fill(wpp, _zero_within_rounding(wp, w, PROBABILITY_TOLERANCE), mean)
        self.mean_prob_if_no_event = divide_or_fill(
            wp - wpp, _zero_within_rounding(w - wp, w, PROBABILITY_TOLERANCE), mean
        )
        event_distance, non_event_distance = mean_distance_by_outcome(self._sums(w, wp), (np.nan, np.nan))
        self.empty_side_values = error.empty_side_values((float(event_distance), float(non_event_distance)))

    def _sums(self, w: Array, wy: Array) -> OutcomeSums:
        """The four sums (…,) from Σw and Σwy of the groups, (…, groups)."""
        non_event_weights = w - wy
        events, non_events = wy.sum(axis=-1), non_event_weights.sum(axis=-1)
        event_distance, non_event_distance = (
            (wy * (1 - self.mean_prob_if_event)).sum(axis=-1),
            (non_event_weights * self.mean_prob_if_no_event).sum(axis=-1),
        )
        return OutcomeSums(
            _zero_within_rounding(events, events + non_events, MASS_TOLERANCE),
            event_distance,
            _zero_within_rounding(non_events, events + non_events, MASS_TOLERANCE),
            non_event_distance,
        )

    def value(self) -> float:
        return self.error.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return self.error.error_from_sums(self._sums(w, wy), self.empty_side_values)


def _zero_within_rounding(mass: Array, total: Array, tolerance: float) -> Array:
    """The mass, or 0 if it is within rounding error of 0 relative to the total."""
    return np.where(mass > tolerance * total, mass, 0.0)

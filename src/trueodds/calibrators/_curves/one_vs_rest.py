"""One-vs-rest calibration: fit a curve for each class against the rest, and divide each row by its sum.

The scale of the scores of a curve is that of probabilities or of log odds. Log odds keep the order of scores whose
probabilities round to 0 or 1. A curve of log odds does not depend on their unit either: ten times as large scores give
a curve with ten times as large knots, and the same probabilities.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows, apply_in_blocks, rows_with_weight
from trueodds.calibrators._glm.log_probabilities import (
    LogProbabilities,
    Probabilities,
    one_vs_rest_logs,
    to_probabilities,
)
from trueodds.calibrators._glm.logistic_regression import curve_notes
from trueodds.calibrators.base import CalibrationMap, SummedSpec, to_accepted_input
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Numbers, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS
from trueodds.data.weights import are_counts
from trueodds.kernels import map_blocks, sorting
from trueodds.lenses.view import View

T = TypeVar("T")


class ClassCurve(Protocol):
    """A map from the score of one class to its recalibrated probability, elementwise.

    The score is its predicted probability, or its log odds if the attribute `scale` is "logit". If `takes_logs` is
    True, `apply_to_logs` maps the logarithms of both probabilities of a row to both recalibrated ones, (n, 2).
    """

    def __call__(self, x: Array) -> Array: ...


class OneVsRest(CalibrationMap):
    """A curve for each class, whose values are divided by the sum of the row; for two classes one curve q, and 1 − q.

    A row in which every curve is 0 becomes uniform.
    """

    one_vs_rest, takes_logs = True, True
    curves: tuple[Any, ...]  # of ClassCurve; one for two classes, else one per class; each map states their type

    def apply(self, P: Probabilities) -> Array:
        return apply_in_blocks(partial(apply_one_vs_rest, self.curves), P)

    def named_parameters(self) -> dict[str, Any]:
        """The parameters of the curve, or of every class in an array (K,), if the curve declares `symbols`."""
        symbols: Mapping[str, str] = getattr(type(self.curves[0]), "symbols", {})
        values = {symbol: [attrgetter(path)(curve) for curve in self.curves] for symbol, path in symbols.items()}
        return {symbol: value[0] if len(value) == 1 else np.array(value) for symbol, value in values.items()}

    def check_saved(self, k: int) -> None:
        check_curve_count(self.curves, len(fitted_classes(k)))


def fitted_classes(k: int) -> range:
    """The classes that have a curve: the second of two, or all."""
    return range(1, 2) if k == 2 else range(k)


def check_curve_count(curves: Sequence[Any], expected: int) -> None:
    """Raise TO505 for another number of saved curves than expected."""
    if len(curves) != expected:
        raise invalid_value_error("curves", f"a list of {format_count(expected, 'object')}", len(curves))


def describe_sizes(sizes: Sequence[int], noun: str, curve_noun: str = "curves") -> str:
    """The total of the sizes of all curves as text, such as `12 knots in 3 curves`."""
    return format_count(sum(sizes), noun) + (f" in {len(sizes):,} {curve_noun}" if len(sizes) > 1 else "")


class IterativeOneVsRest(OneVsRest):
    """One-vs-rest curves that were fitted iteratively and may have no finite optimum."""

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        return max(curve.n_passes for curve in self.curves)

    @property
    def converged(self) -> bool:  # type: ignore[override]
        return all(curve.converged for curve in self.curves)


class OneVsRestSpec(SummedSpec):
    """A calibrator that fits the curve of each class from sums over the rows of the class against the rest."""

    @abstractmethod
    def fit_curve(self, data: SummableRows) -> Any:
        """Fit the curve of one class from sums over `OneVsRestRows`."""

    def fit_from_sums(self, data: SummableRows) -> Any:
        """Fit the curves in passes that all classes share."""
        map_type: Any = self.map_type
        fits = [partial(self._fit_class, c=c) for c in fitted_classes(data.summary.k)]
        return map_type(tuple(data.fit_jointly(fits)))

    def _fit_class(self, data: SummableRows, c: int) -> Any:
        return self.fit_curve(data.map_rows(partial(_one_vs_rest_rows, c=c)))

    def notes_from_sums(self, calibration_map: Any, data: SummableRows) -> list[Note]:
        return data.summary.replaced_counts.notes() + curve_notes(calibration_map.curves)


def fit_curves(
    fit_curve: Callable[[Array, Array, Array], Any], P: Probabilities, Y: Array, w: Array
) -> tuple[Any, ...]:
    """Fit `fit_curve(x, y, w)` for the second of two classes, or for every class, on the rows with positive weight.

    It gets the scores x (n,) of its class on the `score_scale` of P, its outcome shares y (n,) and the weights w (n,).
    """
    P, Y, w = rows_with_weight(P, Y, w)
    return tuple(fit_curve(class_scores(P, c, score_scale(P)), Y[:, c], w) for c in fitted_classes(P.shape[1]))


def fit_curves_of_logs(
    fit_curve: Callable[[Array, Array, Array], Any], P: Probabilities, Y: Array, w: Array, min_prob: float
) -> tuple[Any, ...]:
    """Fit `fit_curve(logs, y, w)` as `fit_curves` does, on logarithms limited below at log(`min_prob`).

    `logs` (n, 2) are those of the sum of the other classes and of the class itself.
    """
    P, Y, w = rows_with_weight(P, Y, w)
    return tuple(fit_curve(one_vs_rest_logs(P, c, min_prob), Y[:, c], w) for c in fitted_classes(P.shape[1]))


class OneVsRestRows(NamedTuple):
    """Rows of one class against the sum of the others."""

    logs: Array  # (n, 2) logarithms, limited below, of the sum of the other classes and of the class itself
    x: Array  # (n,) predicted probabilities of the class
    y: Array  # (n,) outcome shares of the class
    w: Array  # (n,) weights


def _one_vs_rest_rows(data: FitData, c: int) -> OneVsRestRows:
    return OneVsRestRows(
        one_vs_rest_logs(data.P, c, data.min_prob), to_probabilities(data.P)[:, c], data.Y[:, c], data.w
    )


def effective_rows(w: Array) -> tuple[float, Array]:
    """The number of rows that weights w > 0 (n,) represent, and weights with that sum.

    Counts sum to the number of rows. Other weights are scaled to sum to n.

    >>> effective_rows(np.array([0.5, 0.25])), effective_rows(np.array([2.0, 1.0]))
    ((2.0, array([1.33333333, 0.66666667])), (3.0, array([2., 1.])))
    """
    total = float(w.sum())
    if are_counts(w):
        return total, w
    return float(len(w)), w * (len(w) / total)


def zero_probability_notes(Q: Array, Y: Array | None = None, n_rows: int | None = None) -> list[Note]:
    """Note on recalibrated probabilities of exactly 0: if that class is observed, the log loss is infinite.

    With Y, outcome shares (n, K) or labels (n,), it states in how many rows that is the case. Q (n, K) may leave out
    rows without a zero if the number of all rows, `n_rows`, is given.
    """
    is_zero, n_observed = Q == 0, 0
    if Y is not None:
        is_observed = is_zero[np.arange(len(Y)), Y] if Y.ndim == 1 else (is_zero & (Y > 0)).any(axis=1)
        n_observed = int(is_observed.sum())
    rows_text = f"of the {n_rows or len(Q):,} rows it was fitted on"
    return _zero_probability_note_list(int(is_zero.any(axis=1).sum()), rows_text, n_observed)


def zero_probability_notes_of_cells(curves: Sequence[ClassCurve], views: Sequence[View]) -> list[Note]:
    """The note of `zero_probability_notes` for curves of cells, where the scores of the other classes are unknown."""
    predicted = [curve(view.p) for curve, view in zip(curves, views, strict=True)]
    # A single view is that of the second of two classes, where q = 1 is a probability of 0 for the first.
    is_zero = [(q == 0) | (q == 1) if len(views) == 1 else q == 0 for q in predicted]
    n_rows = max(int(view.n[zero_cells].sum()) for view, zero_cells in zip(views, is_zero, strict=True))
    or_more = "" if len(views) == 1 else " or more"
    return _zero_probability_note_list(
        n_rows, f"{or_more} of the {int(views[0].n.sum()):,} rows it was fitted on".strip()
    )


def _zero_probability_note_list(n_rows: int, rows_text: str, n_observed: int = 0) -> list[Note]:
    """Note TN505 with the number of rows that get probability 0, or no note if there are none.

    In `n_observed` of them the observed class gets it.
    """
    if n_rows == 0:
        return []
    text = (
        f"The map gives probability 0 to some class in {n_rows:,} {rows_text}; if that class is observed, the log loss"
    )
    observed = f", as it is in {n_observed:,} of these rows" if n_observed else ""
    return [Note("TN505", f"{text} is infinite{observed}.")]


def fit_by_class(
    P: Probabilities, Y: Array, w: Array, fit_keys: Callable[[Array], T], fit_rows: Callable[[Array, Array, Array], T]
) -> tuple[T, ...]:
    """Fit a curve to the second of two classes, or one to every class, on the rows with positive weight.

    If every row has weight 1 and a single outcome, `fit_keys(keys)` gets integer keys that hold score and outcome of
    each row, sorted by score (see `kernels.sorting`), which is faster. Otherwise, and for log-probabilities,
    `fit_rows(x, y, w)` is called with the scores x on the `score_scale` of P. Y is (n, K) shares, or class numbers
    (n,). Returns one result per fitted class.
    """
    P, Y, w = rows_with_weight(P, Y, w)
    classes = fitted_classes(P.shape[1])
    if not isinstance(P, LogProbabilities) and (w == 1).all():
        results = sorting.map_sorted_keys(P, Y, fit_keys, classes)
        if results is not None:
            return tuple(results)

    def fit_block(start: int, stop: int) -> list[T]:
        return [
            fit_rows(class_scores(P, c, score_scale(P)), (Y == c).astype(np.float64) if Y.ndim == 1 else Y[:, c], w)
            for c in classes[start:stop]
        ]

    return tuple(result for block in map_blocks(fit_block, len(classes), 1) for result in block)


def fit_curves_from_counts(
    P: Probabilities, Y: Array, w: Array, fit_curve: Callable[[Array, Array, Array], T]
) -> tuple[T, ...]:
    """Fit curves `fit_curve(s, mass, events)` from the increasing distinct scores s, and Σw and Σwy at each."""

    def fit_rows(x: Array, y: Array, w: Array) -> T:
        return fit_curve(*sorting.sum_by_score(x, y, w, sorting.argsort_scores(x)))

    return fit_by_class(P, Y, w, lambda keys: fit_curve(*sorting.count_by_score(keys)), fit_rows)


def apply_one_vs_rest(curves: Sequence[Callable[[Array], Array]], P: Probabilities) -> Array:
    """Apply a single curve to the second of two classes, or a curve to each class, and divide rows by their sums.

    A row in which every curve is 0 becomes uniform. A curve that takes logarithms gets those of the class and of the
    sum of the others, so that neither loses digits. Returns (n, K).
    """
    if len(curves) == 1:
        return _apply_to_pair(curves[0], P, 1)
    # One row per class, (K, n), so that sums run along contiguous memory.
    by_class = np.stack([_apply_to_class(curve, P, c) for c, curve in enumerate(curves)])
    row_sums = by_class.sum(axis=0)
    if not row_sums.all():
        is_zero_row = row_sums == 0
        by_class[:, is_zero_row] = 1.0
        row_sums[is_zero_row] = len(by_class)
    by_class /= row_sums
    return by_class.T


def _apply_to_pair(curve: Any, P: Probabilities, c: int) -> Array:
    """Apply a curve to class c against the sum of the others, (n, 2)."""
    if getattr(curve, "takes_logs", False):
        return np.asarray(curve.apply_to_logs(one_vs_rest_logs(P, c)))
    q = _apply_to_scores(curve, P, c)
    return np.stack([1 - q, q], axis=1)


def _apply_to_class(curve: Any, P: Probabilities, c: int) -> Array:
    """Apply a curve to class c, (n,)."""
    if getattr(curve, "takes_logs", False):
        return _apply_to_pair(curve, P, c)[:, 1]
    return _apply_to_scores(curve, P, c)


def _apply_to_scores(curve: Any, P: Probabilities, c: int) -> Array:
    """Apply a curve to the scores of class c on its scale, (n,)."""
    return np.asarray(curve(class_scores(P, c, getattr(curve, "scale", PROBABILITY))))


def sums_by_log_odds(x: Array, y: Array, w: Array) -> tuple[Array, Array, Array]:
    """The increasing distinct log odds (m,) of the rows with positive weight, and Σw and Σwy at each.

    x (n,) are log odds, y (n,) outcome shares and w (n,) weights.
    """
    order = np.argsort(x, kind="stable")
    order = order[w[order] > 0]
    x, w, wy = x[order], w[order], w[order] * y[order]
    starts = np.flatnonzero(np.diff(x, prepend=-np.inf) > 0) if len(x) else np.zeros(0, dtype=np.intp)
    return x[starts], np.add.reduceat(w, starts), np.add.reduceat(wy, starts)


PROBABILITY, LOGIT = "probability", "logit"  # Saved
SCORE_RANGE = {PROBABILITY: (0.0, 1.0), LOGIT: (-MAX_LOG_ODDS, MAX_LOG_ODDS)}  # first and last edge of bins
KNOT_RANGE = SCORE_RANGE | {PROBABILITY: (0.0, 2.0)}  # of saved knots; float16 may slightly exceed 1
Scale = Annotated[str, OneOf((PROBABILITY, LOGIT)), OMIT_DEFAULT]
LogOdds = Annotated[float, Range(*SCORE_RANGE[LOGIT])]
KnotScores = Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], increasing="strictly")]  # `check_knots` knows the scale


def score_scale(P: Probabilities) -> str:
    """The scale of a curve that is fitted to these rows: log odds where log-probabilities are known."""
    return LOGIT if isinstance(P, LogProbabilities) else PROBABILITY


def class_scores(P: Probabilities, c: int, scale: str) -> Array:
    """The scores (n,) of class c against the others, on this scale."""
    if scale == PROBABILITY:
        return to_probabilities(P)[:, c]
    if isinstance(P, LogProbabilities):
        return P.log_odds(c)
    log_rest, log_p = one_vs_rest_logs(P, c).T
    return np.clip(log_p - log_rest, -MAX_LOG_ODDS, MAX_LOG_ODDS)


def check_knots(key: str, x: Array, scale: str) -> None:
    """Raise TO505 if saved knots x (m,) are beyond the scale."""
    low, high = KNOT_RANGE[scale]
    if len(x) and not low <= x[0] <= x[-1] <= high:
        raise invalid_value_error(key, f"numbers from {low:g} to {high:g}", float(x[0] if x[0] < low else x[-1]))


def is_outside_flat_segments(y: Array) -> Array:
    """Mask (m,) of the knots of a piecewise linear curve with values y (m,), without those inside a flat segment."""
    is_end = y[1:] != y[:-1]
    return np.append(True, is_end) | np.append(is_end, True)


MAX_DECREASE = 1e-3  # total decrease of the probability with a higher score, up to which a map counts as nondecreasing
_N_POINTS = 1001  # evaluations at equally spaced log odds, and at as many quantiles of the rows


def total_decrease(calibration_map: CalibrationMap, P: Probabilities) -> float:
    """Return the sum of all decreases of the probability of the second class between the scores of P (n, 2).

    >>> from trueodds.calibrators.temperature import TemperatureSpec
    >>> P = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1]] * 20)
    >>> total_decrease(TemperatureSpec().fit(P, np.eye(2)[[1, 0, 0] * 20], np.ones(60)), P)
    0.0
    """
    scores = class_scores(P, 1, LOGIT)
    scores = np.sort(scores[np.isfinite(scores)])
    if not len(scores):
        return 0.0
    steps = np.arange(_N_POINTS) / (_N_POINTS - 1)
    quantiles = scores[np.round(steps * (len(scores) - 1)).astype(np.int64)]
    points = np.unique(np.concatenate([scores[0] + (scores[-1] - scores[0]) * steps, quantiles]))
    Q = calibration_map.apply(to_accepted_input(calibration_map, LogProbabilities.from_logits(points)))
    return float(np.maximum(-np.diff(Q[:, 1]), 0.0).sum())


def decrease_note(decrease: float, curve: str = "map", details: str = "") -> Note:
    """Return the note on a map or curve that decreases by so much in total; `details` end the first sentence."""
    return Note(
        "TN529",
        f"The {curve} decreases in places, by {decrease:.2g} in total, where a higher score gets a lower"
        f" probability{details}. llo, beta and centered_isotonic keep the order of scores.",
    )

"""Isotonic calibration: a curve for each class (isotonic, centered, nearly isotonic), or one for all classes (IRM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import xlogy

from trueodds.binning.sorted_scores import SortedScores
from trueodds.calibrators._curves.one_vs_rest import (
    PROBABILITY,
    KnotScores,
    OneVsRest,
    Scale,
    check_knots,
    describe_sizes,
    effective_rows,
    fit_by_class,
    fit_curves,
    fit_curves_from_counts,
    is_outside_flat_segments,
    score_scale,
    zero_probability_notes,
    zero_probability_notes_of_cells,
)
from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks, rows_with_weight
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    replacement_notes,
    to_logs,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, TalliedSpec
from trueodds.calibrators.saved_parameters import Key, Numbers, Saved, delegated
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, boundary_notes
from trueodds.core.errors import Note
from trueodds.core.formatting import format_count
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS
from trueodds.kernels import isotonic, sorting
from trueodds.kernels.isotonic import NearIsotonicPath, average_levels, near_isotonic_path
from trueodds.kernels.sorting import Knots, are_all_or_none_below
from trueodds.lenses.view import View

_INTERPOLATIONS = ("linear", "step")


class MonotoneCurve(Saved):
    """A non-decreasing curve of the score through knots, constant beyond the first and the last."""

    x: KnotScores  # (m,)
    y: Annotated[Array, Numbers(0, 1, increasing="weakly")]  # (m,)
    between: Annotated[str, OneOf(_INTERPOLATIONS)] = "linear"  # the values between the knots
    scale: Scale = PROBABILITY  # of the knots; "logit" for a fit on logits

    def __call__(self, x: Array) -> Array:
        if self.between == "linear":
            return self._knots.interpolate(x, self.y)
        return self._knots.evaluate_steps(x, np.append(self.y[0], self.y), right=True)

    @cached_property
    def _knots(self) -> Knots:
        return Knots(self.x)

    @property
    def zero_up_to(self) -> float:
        """The largest probability at which a curve of probabilities is exactly 0; −1 if there is none."""
        assert self.scale == PROBABILITY
        if self.y[0] > 0:
            return -1.0
        first_positive = int(np.searchsorted(self.y, 0.0, "right"))
        if first_positive == len(self.y):
            return np.inf
        if self.between == "linear":
            return float(self.x[first_positive - 1])
        return float(np.nextafter(self.x[first_positive], 0))

    def check_saved(self, k: int) -> None:
        check_knots("x", self.x, self.scale)


class IsotonicMap(OneVsRest):
    """A non-decreasing curve for the second of two classes, or for every class."""

    curves: tuple[MonotoneCurve, ...]

    def rows_without_zero(self, P: Probabilities) -> Array:
        """Mask (n,) of the rows of P (n, K) in which no class gets probability 0."""
        if len(self.curves) == 1 or isinstance(P, LogProbabilities):
            return np.asarray((self.apply(P) > 0).all(axis=1))
        # A row in which every curve is 0 becomes uniform, so it has no zero either.
        return are_all_or_none_below(P, np.array([curve.zero_up_to for curve in self.curves]))

    def describe(self) -> str:
        return describe_sizes([len(curve.x) for curve in self.curves], "knot")


class IsotonicSpec(TalliedSpec):
    r"""Isotonic regression: the non-decreasing curve with the smallest squared error.

    The same curve maximizes the likelihood. Two classes have one curve, for the second class. With more classes each
    has a curve against the rest, and the rows are normalized. Probabilities may become exactly 0 or 1, and predicted
    classes may change.

    Parameters
    ----------
    between : {"linear", "step"}, default="linear"
        Values between the knots: a straight line, or the value of the left knot.

    Notes
    -----
    .. math:: \min_f \sum_i w_i\,(y_i - f(p_i))^2, \quad f \text{ non-decreasing}

    Tied scores are pooled first, so the result does not depend on the order of the rows. Where logits are known
    (`Predictions.from_logits`), the knots are log odds: the result depends neither on the unit of the scores nor on the
    rounding of probabilities near 1. About 1,000 rows are needed to avoid overfitting.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Zadrozny & Elkan (2002).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = IsotonicSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> m.apply(np.array([[0.75, 0.25], [0.65, 0.35]]))[:, 1].round(2).tolist()
    [0.5, 0.75]
    """

    name, map_type = "isotonic", IsotonicMap
    accepts_raw_arrays = True
    takes_logs = True
    between: Annotated[str, OneOf(_INTERPOLATIONS)] = "linear"

    def fit(self, P: Probabilities, Y: Array, w: Array) -> IsotonicMap:
        blocks = fit_by_class(P, Y, w, isotonic.fit_sorted_keys, isotonic.fit_rows)
        return IsotonicMap(tuple(_curve_from_blocks(block, self.between, score_scale(P)) for block in blocks))

    def fit_from_views(self, views: Sequence[View]) -> IsotonicMap:
        """Fit the curves to cells, each at its mean score."""
        return IsotonicMap(tuple(fit_monotone(view.p, view.y, view.w, self.between) for view in views))

    def notes_from_views(self, calibration_map: IsotonicMap, views: Sequence[View]) -> list[Note]:
        return zero_probability_notes_of_cells(calibration_map.curves, views)

    def notes(self, calibration_map: IsotonicMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return isotonic_notes(calibration_map, P)


def isotonic_notes(calibration_map: CalibrationMap, P: Probabilities) -> list[Note]:
    """Note on the rows of P (n, K) that isotonic curves give an exact zero."""
    assert isinstance(calibration_map, IsotonicMap)
    return zero_probability_notes(calibration_map.rows_without_zero(P)[:, None])


def fit_monotone(x: Array, y: Array, w: Array, between: str = "linear") -> MonotoneCurve:
    """Non-decreasing least squares curve through scores x (n,) ≥ 0, outcomes y in [0, 1] and weights w ≥ 0.

    Tied scores are pooled first. At least one weight must be positive. Cost: O(n log n).

    >>> curve = fit_monotone(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 1.0])
    """
    keys = sorting.encode_and_sort(x, y) if (w == 1).all() else None
    return _curve_from_blocks(isotonic.fit_rows(x, y, w) if keys is None else isotonic.fit_sorted_keys(keys), between)


def _curve_from_blocks(blocks: isotonic.PooledBlocks, between: str, scale: str = PROBABILITY) -> MonotoneCurve:
    """The curve whose knots are the two ends of every block of pooled scores."""
    # Rounded means of weighted rows may slightly exceed 1 or fall below the previous one.
    levels = np.minimum(np.maximum.accumulate(blocks.events / blocks.mass), 1.0)
    x, y = np.stack([blocks.low, blocks.high], axis=1).ravel(), np.repeat(levels, 2)
    is_new = np.append(True, x[1:] != x[:-1])  # a block of a single score has one knot
    x, y = x[is_new], y[is_new]
    is_knot = is_outside_flat_segments(y)
    return MonotoneCurve(x[is_knot], y[is_knot], between, scale)


class CenteredIsotonicMap(IsotonicMap):
    """A curve for the second of two classes, or for every class, without flat segments between its outermost centers.

    Only where it is exactly 0 or 1 it may be flat between them.
    """


class CenteredIsotonicSpec(CalibratorSpec):
    r"""Centered isotonic regression: isotonic regression whose flat segments shrink to their centers.

    The centers are joined by straight lines, so the curve increases strictly between the first and the last one, and
    different scores stay different where isotonic regression makes them equal. It is more accurate than `isotonic` if
    the true curve increases strictly. Two classes have one curve, for the second class. With more classes each has a
    curve against the rest, and rows are divided by their sums. Probabilities may become exactly 0 or 1, and predicted
    classes may change.

    Notes
    -----
    .. math:: \Big(\bar p_b, \bar y_b\Big), \quad
        \bar p_b = \frac{\sum_{i \in b} w_i p_i}{\sum_{i \in b} w_i}, \quad
        \bar y_b = \frac{\sum_{i \in b} w_i y_i}{\sum_{i \in b} w_i}

    for the blocks b that isotonic regression pools; neighboring blocks of equal rate are joined. Segments at exactly 0
    or 1 stay flat, and so does the curve beyond the outermost centers. Some hundred rows are needed to avoid
    overfitting.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Oron & Flournoy (2017).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> curve = CenteredIsotonicSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4)).curves[0]
    >>> curve.x.round(2).tolist(), curve.y.tolist()
    ([0.1, 0.25, 0.4], [0.0, 0.5, 1.0])
    """

    name, map_type = "centered_isotonic", CenteredIsotonicMap
    accepts_raw_arrays = True
    takes_logs = True

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CenteredIsotonicMap:
        fit_curve = partial(fit_centered_isotonic, scale=score_scale(P))
        return CenteredIsotonicMap(fit_curves_from_counts(P, Y, w, fit_curve))

    def notes(self, calibration_map: CenteredIsotonicMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return isotonic_notes(calibration_map, P)


def fit_centered_isotonic(s: Array, mass: Array, events: Array, scale: str = PROBABILITY) -> MonotoneCurve:
    """Fit the curve through the centers of the isotonic blocks of increasing scores s (m,).

    `mass` (m,) is Σw and `events` (m,) is Σwy at each score. A block whose event rate is 0 or 1 stays flat: its knots
    are its first and its last score instead of its center.
    """
    # Rounded means of weighted rows may slightly exceed 1 or fall below the previous one.
    levels = np.minimum(np.maximum.accumulate(isotonic.isotonic_means(mass, events)), 1.0)
    starts = np.flatnonzero(np.append(True, levels[1:] != levels[:-1]))
    ends = np.append(starts[1:], len(s)) - 1
    finite_mass = np.where(np.abs(s) < MAX_LOG_ODDS, mass, 0.0)  # the log odds of an exact zero have no mean
    center_mass = np.add.reduceat(finite_mass, starts)
    centers = np.divide(
        np.add.reduceat(finite_mass * s, starts), center_mass, out=s[starts].astype(np.float64), where=center_mass > 0
    )
    centers = np.clip(centers, s[starts], s[ends])  # its rounding must not reach the next block
    levels = levels[starts]
    is_extreme = (levels == 0) | (levels == 1)
    x = np.stack([np.where(is_extreme, s[starts], centers), np.where(is_extreme, s[ends], centers)], axis=1).ravel()
    y = np.repeat(levels, 2)
    is_new = np.append(True, x[1:] != x[:-1])
    return MonotoneCurve(x[is_new], y[is_new], scale=scale)


Tilt = Annotated[float, Range(1e-15, 1)]
_ROUNDING_MARGIN = 1 + 1e-15  # factor by which the predicted class stays above the next, against rounding
_NEARLY_ZERO_PROB = 1e-6  # a class below this is nearly ruled out


class IrmMap(CalibrationMap):
    """Rows proportional to g(p) + tilt · p, with one non-decreasing curve g for all classes."""

    curve: MonotoneCurve  # g, the same for every class
    tilt: Tilt  # factor of p

    def apply(self, P: Array) -> Array:
        return apply_in_blocks(self._apply_to_rows, P)

    def _apply_to_rows(self, P: Array) -> Array:
        q: Array = self.curve(P.reshape(-1)).reshape(P.shape)
        q = q + self.tilt * P
        q /= q.sum(axis=1, keepdims=True)
        # Where rounding lets another class overtake the predicted class, the predicted class is raised above it.
        predicted_class = P.argmax(axis=1)
        overtaken_rows = np.flatnonzero(q.argmax(axis=1) != predicted_class)
        q[overtaken_rows, predicted_class[overtaken_rows]] = q[overtaken_rows].max(axis=1) * _ROUNDING_MARGIN
        return q

    def describe(self) -> str:
        return f"{format_count(len(self.curve.x), 'knot')} for all classes"


class IrmSpec(CalibratorSpec):
    r"""IRM: one isotonic regression for the probabilities of all classes, plus a small share of the probabilities.

    All n·K pairs of a class probability and its outcome fit one curve, so K times fewer rows are needed than with one
    curve per class. An error of a single class cannot be corrected. The order within each row is kept, and with it
    every predicted class.

    Parameters
    ----------
    tilt : float, default=1e-9
        Factor ε of the probabilities, in [1e-15, 1]. It keeps the order within each row where the curve is flat.
        Classes that the curve rules out keep about ε p, which a note counts.

    Notes
    -----
    .. math:: \min_g \sum_{i,k} w_i\,(y_{ik} - g(p_{ik}))^2, \qquad
        q_{ik} = \frac{g(p_{ik}) + \varepsilon\,p_{ik}}{\sum_l [g(p_{il}) + \varepsilon\,p_{il}]}

    g does not decrease. Equal scores are pooled. Between the knots the curve is linear.

    Cost: O(nK log nK).

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020), IRM.

    Examples
    --------
    >>> P = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    >>> m = IrmSpec().fit(P, np.eye(3)[[0, 1, 2]], np.ones(3))
    >>> m.apply(P[:1]).round(3).tolist()  # event rate 2/3 at 0.6 and 1/3 at 0.3
    [[0.667, 0.333, 0.0]]
    """

    name, map_type = "irm", IrmMap
    keeps_argmax = True
    tilt: Tilt = 1e-9

    def fit(self, P: Array, Y: Array, w: Array) -> IrmMap:
        P, Y, w = rows_with_weight(P, Y, w)
        curve = fit_monotone(P.reshape(-1), Y.reshape(-1), np.repeat(w, P.shape[1]))
        return IrmMap(curve, float(self.tilt))

    def notes(self, calibration_map: IrmMap, P: Array, Y: Array, w: Array) -> list[Note]:
        blocks = (calibration_map.apply(p) for p, _, _ in iterate_blocks(P, Y, w))
        n_rows = sum(int((q < _NEARLY_ZERO_PROB).any(axis=1).sum()) for q in blocks)
        if n_rows == 0:
            return []
        text = (
            f"The map gives some class less than {_NEARLY_ZERO_PROB:g} in {n_rows:,} of the {len(P):,} rows it was"
            f" fitted on; if that class is observed, the log loss is above {-np.log(_NEARLY_ZERO_PROB):.0f} nats."
        )
        return [Note("TN513", text)]


class IrovaTsMap(CalibrationMap):
    """A non-decreasing curve per class, applied to tempered rows."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"T": "temperature_map.temperature"}
    temperature_map: Annotated[TemperatureMap, Key("temperature")]  # applied first
    curves: Annotated[IsotonicMap, Key("isotonic")]  # of the tempered probabilities

    n_passes = delegated("temperature_map", "n_passes")
    converged = delegated("temperature_map", "converged")

    def apply(self, P: Probabilities) -> Array:
        return apply_in_blocks(lambda p: self.curves.apply(tempered_scores(self.temperature_map, p)), P)

    def describe(self) -> str:
        return f"{self.temperature_map.describe()}, then {self.curves.describe()}"


class IrovaTsSpec(CalibratorSpec):
    r"""IROvA-TS: temperature scaling, then an isotonic regression for each class against the rest.

    The temperature corrects what all classes have in common, so that the curves start from better scores. Rows are
    divided by their sums. Two classes have one curve, for the second class, and the temperature hardly changes it.
    Probabilities may become exactly 0 or 1, and predicted classes may change.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit of T takes log(max(p, `min_prob`)). Where log-probabilities
        are known (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: q_{ik} \propto g_k\!\Big(\frac{p_{ik}^\beta}{\sum_l p_{il}^\beta}\Big), \quad g_k \text{ non-decreasing}

    Equal scores are pooled.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020), IROvA-TS. Unlike in their code, rows are divided by their sums.

    Examples
    --------
    >>> P, y = np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]), np.array([1, 0, 0])
    >>> IrovaTsSpec().fit(P, np.eye(2)[y], np.ones(3)).apply(P)[:, 1].round(3).tolist()
    [1.0, 0.0, 0.0]
    """

    name, map_type = "irova_ts", IrovaTsMap
    takes_logs = True
    candidate = False
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> IrovaTsMap:
        temperature_map = TemperatureSpec(self.min_prob).fit(P, Y, w)
        return IrovaTsMap(temperature_map, IsotonicSpec().fit(tempered_scores(temperature_map, P), Y, w))

    def notes(self, calibration_map: IrovaTsMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        tempered = tempered_scores(calibration_map.temperature_map, P)
        return [
            *replacement_notes(P, Y, self.min_prob),
            *boundary_notes(calibration_map.temperature_map.beta),
            *IsotonicSpec().notes(calibration_map.curves, tempered, Y, w),
        ]


def tempered_scores(temperature_map: TemperatureMap, P: Probabilities) -> Array:
    """Tempered rows (n, K), divided by sums in increasing order, so that permuted rows get identical scores.

    `TemperatureMap.apply` sums in the order of the columns. Its rounding errors would split ties, which isotonic
    regression pools.
    """

    def temper_block(p: Probabilities) -> Array:
        # In one memory layout, because the order in which NumPy adds depends on it.
        p = p if isinstance(p, LogProbabilities) else np.ascontiguousarray(p, dtype=np.float64)
        logs = np.ascontiguousarray(to_logs(p))
        logs = logs - logs.max(axis=1, keepdims=True)
        powers = np.exp(temperature_map.beta * logs)
        return powers / np.sort(powers, axis=1).sum(axis=1, keepdims=True)

    return apply_in_blocks(temper_block, P)


_SUM_ROUNDING = 1e-12  # relative rounding error of a sum of weights
_MAX_BIC_DIFFERENCE = 88.0  # difference in BIC from which a model has weight e^−44: 10⁵ of them do not change a digit


class PiecewiseLinearCurve(Saved):
    """A piecewise linear curve through knots, constant beyond the first and the last; it may decrease."""

    x: KnotScores  # (m,)
    y: Annotated[Array, Numbers(0, 1)]  # (m,)
    scale: Scale = PROBABILITY  # of the knots; "logit" for a fit on logits

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.x, self.y)

    def check_saved(self, k: int) -> None:
        check_knots("x", self.x, self.scale)


class EnirMap(OneVsRest):
    """A nearly monotone curve for the second of two classes, or for every class."""

    curves: tuple[PiecewiseLinearCurve, ...]

    def describe(self) -> str:
        return describe_sizes([len(curve.x) for curve in self.curves], "knot")


class EnirSpec(CalibratorSpec):
    r"""ENIR: the average of all near-isotonic regressions, weighted by BIC.

    Unlike that of `isotonic`, the curve may decrease where many rows support it; a single decrease among few distinct
    scores is smoothed away. Two classes have one curve, for the second class. With more classes each has a curve
    against the rest, and rows are divided by their sums. Probabilities may become exactly 0 or 1, and predicted classes
    may change.

    Notes
    -----
    .. math:: \min_f \tfrac12 \sum_i w_i (y_i - f_i)^2 + \lambda \sum_i (f_i - f_{i+1})_+, \quad
        \omega_\lambda \propto e^{-\mathrm{BIC}_\lambda/2}, \quad
        \mathrm{BIC}_\lambda = -2 \ell_\lambda + d_\lambda \log n

    over the sorted scores, with equal scores pooled first. d is the number of levels of the curve and ℓ its
    log-likelihood. As λ grows, decreases disappear until isotonic regression is left. Every λ at which levels merge
    gives a model, except λ = 0, which repeats the outcomes. The curve is linear between the scores. Weights that are
    not counts are scaled to sum to the number of rows. The authors' package adds log 2π to log n, which favors fewer
    levels.

    Cost: O(K n log n), memory O(n).

    References
    ----------
    .. [1] Naeini & Cooper (2016).
    .. [2] Tibshirani, Hoefling & Tibshirani (2011), for the path of λ.

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = EnirSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> m.apply(np.array([[0.75, 0.25], [0.65, 0.35]]))[:, 1].round(2).tolist()
    [0.5, 0.75]
    """

    name, map_type = "enir", EnirMap
    candidate = False
    takes_logs = True

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EnirMap:
        return EnirMap(fit_curves(partial(_average_path, scale=score_scale(P)), P, Y, w))

    def notes(self, calibration_map: EnirMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return zero_probability_notes(calibration_map.apply(P))


def _average_path(x: Array, y: Array, w: Array, scale: str) -> PiecewiseLinearCurve:
    n, w = effective_rows(w)
    knots, mass, events = SortedScores(x, y, w).sums_by_score()
    path = near_isotonic_path(mass, events)
    levels = average_levels(path, bic_weights(path, np.log(n)))
    is_knot = is_outside_flat_segments(levels)
    return PiecewiseLinearCurve(knots[is_knot], levels[is_knot], scale)


def bic_weights(path: NearIsotonicPath, cost_per_level: float) -> Array:
    """Weights exp(−BIC/2) of the models of the path, divided by their sum, if each level costs `cost_per_level`.

    Most models have a negligible weight, and their likelihoods are not computed. Along the path both the likelihood and
    the number of levels decrease, so the BIC of a model between two others is at least that of a model with the larger
    likelihood of the first and the fewer levels of the last. Where even this bound is too large, the models between
    the two get weight 0; otherwise the interval is bisected.
    """
    last, n_levels = len(path.lambdas) - 1, path.n_blocks
    bic = np.full(last + 1, np.inf)
    first = min(1, last)  # model 0, with λ = 0, repeats the outcomes; it is used only if it is the only one
    log_likelihoods = {model: model_log_likelihood(path, model) for model in (first, last)}
    intervals = [(first, last)]  # of models; the BIC of both ends is known
    bic[[first, last]] = [n_levels[model] * cost_per_level - 2 * log_likelihoods[model] for model in (first, last)]
    while intervals:
        lower, upper = intervals.pop()
        if upper - lower < 2:
            continue
        min_bic_between = n_levels[upper - 1] * cost_per_level - 2 * log_likelihoods[lower]
        if min_bic_between > bic.min() + _MAX_BIC_DIFFERENCE:
            continue
        middle = (lower + upper) // 2
        log_likelihoods[middle] = model_log_likelihood(path, middle)
        bic[middle] = n_levels[middle] * cost_per_level - 2 * log_likelihoods[middle]
        intervals += [(lower, middle), (middle, upper)]  # the second, of simpler models, which are better, is next
    bic_difference = bic - bic.min()
    weights = np.where(
        bic_difference > _MAX_BIC_DIFFERENCE, 0.0, np.exp(-np.minimum(bic_difference, _MAX_BIC_DIFFERENCE) / 2)
    )
    return np.asarray(weights / weights.sum())


def model_log_likelihood(path: NearIsotonicPath, model: int) -> float:
    """Log-likelihood of one model; −∞ if it gives an observed outcome probability 0."""
    blocks, levels = path.levels(model)
    mass, events = path.mass[blocks], path.events[blocks]
    return float(
        xlogy(_zero_rounding_errors(events, mass), levels).sum()
        + xlogy(_zero_rounding_errors(mass - events, mass), 1 - levels).sum()
    )


def _zero_rounding_errors(values: Array, mass: Array) -> Array:
    """The values (m,), parts of the weights `mass` (m,), with 0 instead of the rounding error of a sum."""
    return np.where(values > _SUM_ROUNDING * mass, values, 0.0)

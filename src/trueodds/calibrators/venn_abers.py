"""Venn-Abers prediction, for more than two classes by one-vs-rest or by pairwise coupling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import Annotated, Any, TypeVar

import numpy as np

from trueodds.binning.sorted_scores import SortedScores
from trueodds.calibrators._curves.one_vs_rest import (
    LOGIT,
    PROBABILITY,
    SCORE_RANGE,
    Scale,
    apply_one_vs_rest,
    check_curve_count,
    check_knots,
    class_scores,
    describe_sizes,
    effective_rows,
    fit_curves_from_counts,
    score_scale,
)
from trueodds.calibrators._glm.fit_data import apply_in_blocks, rows_with_weight
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, Probabilities, to_logs, to_probabilities
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.saved_parameters import Numbers, Saved, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import MAX_LOG_ODDS
from trueodds.kernels import map_blocks
from trueodds.kernels.isotonic import added_row_means
from trueodds.kernels.sorting import Knots

Curve = TypeVar("Curve")

_ONE_VS_REST, _ONE_VS_ONE = "one-vs-rest", "one-vs-one"
_SCORE_RESOLUTION = 2.0**40  # resolution of `pair_score`: scores that differ by less are equal


class VennAbersMap(CalibrationMap):
    """Lower and upper curves for the second of two classes, for every class, or for every pair of classes."""

    takes_logs = True
    multiclass: Annotated[str, OneOf((_ONE_VS_REST, _ONE_VS_ONE))]
    curves: tuple[VennAbersCurve, ...]  # one for two classes, else one per class or per pair of classes

    def apply(self, P: Probabilities) -> Array:
        apply_curves = couple_pairs if self.multiclass == _ONE_VS_ONE and P.shape[1] > 2 else apply_one_vs_rest
        return apply_in_blocks(partial(apply_curves, self.curves), P)

    def interval(self, P: Probabilities) -> tuple[Array, Array] | None:
        """p₀ and p₁ of every class against the rest, before rows are divided by their sums."""
        if P.shape[1] == 2:
            low, high = self.curves[0].probability_interval(class_scores(P, 1, self.curves[0].scale))
            return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)
        if self.multiclass == _ONE_VS_ONE:
            return None
        ends = [curve.probability_interval(class_scores(P, c, curve.scale)) for c, curve in enumerate(self.curves)]
        return np.stack([low for low, _ in ends], axis=1), np.stack([high for _, high in ends], axis=1)

    def describe(self) -> str:
        curve_noun = "pairs" if self.multiclass == _ONE_VS_ONE else "curves"
        return describe_sizes([curve.size for curve in self.curves], "step", curve_noun)

    def check_saved(self, k: int) -> None:
        n_pairs = k * (k - 1) // 2
        check_curve_count(self.curves, n_pairs if self.multiclass == _ONE_VS_ONE or k == 2 else k)


class VennAbersSpec(CalibratorSpec):
    r"""Venn-Abers prediction: isotonic regression with the new row added, once as a non-event and once as an event.

    For independent rows one of the two probabilities, that of the actual outcome, is perfectly calibrated, whatever the
    scores. Their distance shows how much the rows determine at a score. The two are merged into one probability, which
    is never exactly 0 or 1, unlike with `isotonic`. `interval` of the map returns both. Predicted classes may change.

    Parameters
    ----------
    multiclass : {"one-vs-rest", "one-vs-one"}, default="one-vs-rest"
        With more than two classes, one curve per class against the rest, fitted to all rows, or one per pair of
        classes. The guarantee of `"one-vs-rest"` holds for every class before rows are divided by their sums, and so
        the interval is that of the class. The guarantee of `"one-vs-one"` holds only given that the class is one of the
        two, which is unknown when predicting, so there is no interval; with many rows it follows distortions that
        differ between the classes more closely.

    Notes
    -----
    .. math:: p_0(s) = f_{+(s, 0)}(s), \quad p_1(s) = f_{+(s, 1)}(s), \quad p = \frac{p_1}{1 - p_0 + p_1}

    where :math:`f_{+(s, y)}` is the isotonic fit with an added row (s, y) of weight 1. The merged probability p is
    minimax for the log loss. Pairs of classes are fitted on :math:`p_j / (p_i + p_j)` (1/2 if both are 0) and coupled
    by :math:`q_i \propto 1/(\sum_j 1/r_{ji} - K + 2)`. Weights that are not counts are scaled to sum to the number of
    rows.

    Cost: O(K n log n) to fit, O(K log n) a row; K²/2 curves for pairs.

    References
    ----------
    .. [1] Vovk & Petej (2014).
    .. [2] Vovk, Petej & Fedorova (2015).
    .. [3] Price et al. (1995), for pairs.
    .. [4] Manokhin (2017), for pairs.

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = VennAbersSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> low, high = m.interval(np.array([[0.75, 0.25]]))
    >>> low.round(3).tolist(), high.round(3).tolist(), m.apply(np.array([[0.75, 0.25]])).round(3).tolist()
    ([[0.333, 0.333]], [[0.667, 0.667]], [[0.5, 0.5]])
    """

    name, map_type = "venn_abers", VennAbersMap
    accepts_raw_arrays = True
    takes_logs = True
    multiclass: Annotated[str, OneOf((_ONE_VS_REST, _ONE_VS_ONE))] = _ONE_VS_REST

    def fit(self, P: Probabilities, Y: Array, w: Array) -> VennAbersMap:
        fit_curve = partial(fit_venn_abers_curve, scale=score_scale(P))
        P, Y, w = rows_with_weight(P, Y, w)
        w = effective_rows(w)[1]
        if self.multiclass == _ONE_VS_ONE and P.shape[1] > 2:
            shares = np.eye(P.shape[1])[Y] if Y.ndim == 1 else Y
            return VennAbersMap(self.multiclass, fit_pair_curves(P, shares, w, fit_curve))
        return VennAbersMap(self.multiclass, fit_curves_from_counts(P, Y, w, fit_curve))

    def notes(self, calibration_map: VennAbersMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        if self.multiclass != _ONE_VS_ONE or P.shape[1] == 2:
            return []
        fit_notes, n_tied_zeros = [], int((np.isneginf(to_logs(P)).sum(axis=1) > 1).sum())
        if n_tied_zeros:
            text = (
                f"{n_tied_zeros:,} of {len(P):,} rows predict 0 for several classes: pairs of these are treated as"
                " equally probable."
            )
            fit_notes.append(Note("TN521", text))
        if n_empty := sum(curve.size == 0 for curve in calibration_map.curves):
            text = (
                f"{n_empty:,} of {len(calibration_map.curves):,} pairs of classes have no calibration row: each of the"
                " two gets 1/2 there."
            )
            fit_notes.append(Note("TN522", text))
        return fit_notes


class VennAbersCurve(Saved):
    """Two step functions of the score: the event rate if the new row is a non-event (p₀) or an event (p₁ ≥ p₀)."""

    low_x: Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], ("a-1",), "strictly")]  # from each on p₀ takes the next value
    low_y: Annotated[Array, Numbers(0, 1, ("a",), "weakly")]
    high_x: Annotated[Array, Numbers(*SCORE_RANGE[LOGIT], ("b-1",), "strictly")]  # beyond each p₁ takes the next value
    high_y: Annotated[Array, Numbers(0, 1, ("b",), "weakly")]
    scale: Scale = PROBABILITY  # of the steps; "logit" for a fit on logits

    def __call__(self, x: Array) -> Array:
        """The merged rate p₁ / (1 − p₀ + p₁) at each x (n,), which is minimax for the log loss."""
        low, high = self.probability_interval(x)
        return np.asarray(high / (1 - low + high))

    def probability_interval(self, x: Array) -> tuple[Array, Array]:
        low, high = self._knots
        return low.evaluate_steps(x, self.low_y, right=True), high.evaluate_steps(x, self.high_y, right=False)

    @cached_property
    def _knots(self) -> tuple[Knots, Knots]:
        return Knots(self.low_x), Knots(self.high_x)

    @property
    def size(self) -> int:
        """The number of steps; 0 if there was no row."""
        return len(self.low_x) + len(self.high_x)

    def check_saved(self, k: int) -> None:
        """Check that the steps are on the scale, and that p₀ is never above p₁."""
        check_knots("low_x", self.low_x, self.scale)
        check_knots("high_x", self.high_x, self.scale)
        # p₁ never increases before p₀, so it is enough to check where p₀ increases.
        low, high = self.probability_interval(np.append(SCORE_RANGE[self.scale][0], self.low_x))
        if (low > high).any() or self.low_y[0] > self.high_y[0]:
            raise invalid_value_error("low_y", "at most high_y at every score", self.low_y.tolist())


def fit_venn_abers_curve(s: Array, mass: Array, events: Array, scale: str = PROBABILITY) -> VennAbersCurve:
    """Fit p₀ and p₁ to increasing scores s (m,) with Σw, `mass`, and Σwy, `events`; without rows they are 0 and 1."""
    low, high = added_row_means(mass, events)
    low, high = np.append(0.0, low), np.append(high, 1.0)
    low_changes, high_changes = low[1:] != low[:-1], high[1:] != high[:-1]
    return VennAbersCurve(
        s[low_changes],
        np.append(0.0, low[1:][low_changes]),
        s[high_changes],
        np.append(high[:1], high[1:][high_changes]),
        scale,
    )


def pair_score(a: Array, b: Array) -> Array:
    """A score (n,) from 0 to 1 that increases with b/(a + b) and is 1/2 if a = b; swapping a and b gives 1 minus it.

    It is computed from the ratio of the smaller number to the larger one. Rounding the ratio gives equal scores to rows
    whose ratios differ by rounding errors only.

    >>> pair_score(np.array([0.3, 0.45, 0.0]), np.array([0.1, 0.15, 0.0])).round(4).tolist()
    [0.1667, 0.1667, 0.5]
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    larger = np.maximum(a, b)
    ratio = np.divide(np.minimum(a, b), larger, out=np.ones_like(larger), where=larger > 0)
    rounded_half = np.rint(ratio * _SCORE_RESOLUTION) / (2 * _SCORE_RESOLUTION)
    return np.where(b < a, rounded_half, 1 - rounded_half)


def fit_pair_curves(
    P: Probabilities, Y: Array, w: Array, fit_curve: Callable[[Array, Array, Array], Curve]
) -> tuple[Curve, ...]:
    """Fit a curve `fit_curve(s, mass, events)` for every pair of classes, from the rows with weight in either.

    The scores s are those of `_pair_scores`, which favor the second class of the pair. P and Y are (n, K), w (n,) > 0.
    """

    def fit_block(start: int, stop: int) -> list[Curve]:
        return [fit_curve(*_pair_sums(P, Y, w, *pair)) for pair in pairs[start:stop]]

    pairs = list(combinations(range(P.shape[1]), 2))
    return tuple(curve for block in map_blocks(fit_block, len(pairs), 1) for curve in block)


def _pair_sums(P: Probabilities, Y: Array, w: Array, i: int, j: int) -> tuple[Array, Array, Array]:
    """Increasing scores of the pair (i, j) with Σw and Σwy at each, from the rows with weight in either class."""
    share = Y[:, i] + Y[:, j]
    has_weight = share > 0
    share = share[has_weight]
    x, y = _pair_scores(P[has_weight], i, j, score_scale(P)), Y[has_weight, j] / share
    return SortedScores(x, y, w[has_weight] * share).sums_by_score()


def _pair_scores(P: Probabilities, i: int, j: int, scale: str) -> Array:
    """The `pair_score` (n,) of the classes i and j, or on the scale of log odds the difference of their logarithms.

    Two exact zeros are equally probable.
    """
    if scale == PROBABILITY:
        p = to_probabilities(P)
        return pair_score(p[:, i], p[:, j])
    logs = P.logits if isinstance(P, LogProbabilities) and P.logits is not None else to_logs(P)
    return np.clip(np.nan_to_num(logs[:, j] - logs[:, i], nan=0.0), -MAX_LOG_ODDS, MAX_LOG_ODDS)


def couple_pairs(curves: Sequence[Any], P: Probabilities) -> Array:
    r"""Couple the pairwise probabilities :math:`r_{ij}` of class j among i and j to rows (n, K).

    .. math:: q_i \propto \Big(\sum_{j \ne i} \frac{1}{r_{ji}} - (K - 2)\Big)^{-1}

    This is exact for consistent pairs, :math:`r_{ij} = q_j / (q_i + q_j)`. Source: Price et al. (1995).
    """
    n, k = P.shape
    scale = getattr(curves[0], "scale", PROBABILITY)
    inverse_q = np.full((k, n), 2.0 - k)
    with np.errstate(divide="ignore"):  # a pair that excludes a class gives it 0
        for (i, j), curve in zip(combinations(range(k), 2), curves, strict=True):
            r = curve(_pair_scores(P, i, j, scale))
            inverse_q[j] += 1 / r
            inverse_q[i] += 1 / (1 - r)
    q = 1 / inverse_q
    q /= q.sum(axis=0)
    return q.T

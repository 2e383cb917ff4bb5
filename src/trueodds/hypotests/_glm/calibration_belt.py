"""The GiViTI calibration belt: confidence bounds of the logistic calibration curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.typing import Array
from trueodds.hypotests._glm.forward_selection import CalibrationCurve
from trueodds.hypotests.giviti import GiViTI
from trueodds.lenses.view import View

MAX_LOG_ODDS = 40.0  # log odds beyond which a probability rounds to 0 or 1
MIN_RELATIVE_EIGENVALUE = 1e-12  # smallest eigenvalue of the Hessian, relative to the largest one
MAX_LOG_ODDS_STEP = 100.0  # maximum change of log odds in one step
_ELEMENTS_PER_BLOCK = 2**22  # array elements in memory at once


@dataclass(frozen=True, slots=True)
class BeltSegment:
    """Range of probabilities in which the belt lies on one side of the diagonal."""

    level: float
    side: str  # "above": the model underpredicts; "below": it overpredicts
    start: float
    stop: float


@dataclass(frozen=True, eq=False, slots=True)
class Belt:
    """The belt at a grid of probabilities, with the corresponding test."""

    table: Mapping[str, Array]  # p, curve, and for each level low and high, such as low_0.8 and high_0.8
    levels: tuple[float, ...]
    segments: tuple[BeltSegment, ...]
    degree: int
    statistic: float
    pvalue: float
    n: int
    notes: tuple[Note, ...] = ()


def fit_belt(
    view: View,
    levels: Sequence[float] = (0.8, 0.95),
    points: int | Sequence[float] | Array = 101,
    *,
    fitted: bool = False,
    max_degree: int = 4,
    min_prob: float = 0.0,
) -> Belt:
    r"""Confidence bounds for the calibration curve of the selected degree, at each of several probabilities.

    .. math:: \Big[\min_b, \max_b\Big]\ \mathrm{expit}\sum_j b_j (\mathrm{logit}\,p)^j \quad\text{where}\quad
        2[\ell(\hat b) - \ell(b)] \le F_M^{-1}(\text{level})

    with the null distribution F_M of the GiViTI statistic given its degree. The complete curve lies in the belt with
    probability `level`. If the belt excludes the diagonal anywhere, the test rejects at 1 − level; the test can also
    reject if it does not.

    `points` are probabilities, or their number, evenly spaced between the smallest and the largest prediction. If no
    finite maximum likelihood estimate exists, the belt extends to 0 or 1. With weights the threshold of each bound is
    scaled by the sandwich variance. Cost: a few Newton steps of O(n) for each point, level and side. Raises TO203 for
    levels or points outside (0, 1), and the errors of `GiViTI`. Source: Nattino, Finazzi & Bertolini (2014).

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 200)
    >>> result = fit_belt(View(p=p, y=rng.random(200) < p**2), points=[0.2, 0.5, 0.8])
    >>> result.degree, result.table["high_0.95"].round(2).tolist(), result.segments[-1].side
    (1, [0.12, 0.35, 0.79], 'below')
    """
    levels = tuple(_validate_levels("level", np.atleast_1d(levels)).tolist())
    test = GiViTI(fitted=fitted, max_degree=max_degree, min_prob=min_prob)
    curve, result = test.curve(view), test.evaluate(view)
    if curve.null_distribution is None:
        raise InputError(
            "TO205",
            "With fitted=True the belt requires predictions with at least three distinct values.",
            f"degree {curve.degree}",
            "Use fitted=False if the model was not fitted on these rows.",
        )
    p = _belt_points(points, curve)
    x = np.log(p) - np.log1p(-p)
    at = np.vander(x, curve.degree + 1, increasing=True) @ curve.powers.raw[: curve.degree + 1, : curve.degree + 1]
    table = {"p": p, "curve": expit(x + at @ curve.fit.beta[0])}
    segments: list[BeltSegment] = []
    for level in levels:
        drop = curve.null_distribution.quantile(level) / 2
        low, high = (expit(x + side * _maximize_in_region(curve, side * at, drop, side * x)) for side in (-1.0, 1.0))
        table |= {f"low_{level:g}": low, f"high_{level:g}": high}
        segments += [*_positive_segments(level, "above", p, low - p), *_positive_segments(level, "below", p, p - high)]
    return Belt(
        table, levels, tuple(segments), curve.degree, result.statistic, result.pvalue, view.n_rows, result.notes
    )


def _maximize_in_region(curve: CalibrationCurve, at: Array, drop: float, offset: Array) -> Array:
    """Maximize a·β over the region where the log-likelihood is within `drop` of its maximum, for each row a.

    Each step maximizes over the region of the second-order approximation of the log-likelihood, which is Newton's
    method on the Lagrangian. A step that leaves the region by far is halved.
    """
    rows = max(1, _ELEMENTS_PER_BLOCK // len(curve.logits.w))
    parts = [slice(start, start + rows) for start in range(0, len(at), rows)]
    return np.concatenate([_maximize_on_boundary(curve, at[part], drop, offset[part]) for part in parts])


def _maximize_on_boundary(curve: CalibrationCurve, at: Array, drop: float, offset: Array) -> Array:
    beta = np.repeat(curve.bounded_maximum(drop / 2)[None], len(at), axis=0)
    value, slope, hessian = curve.likelihood(beta)
    max_gain, allowed = float(curve.fit.gain[0]), np.full(len(at), drop)
    if not np.array_equal(curve.logits.w, curve.logits.ww):
        allowed *= curve.sandwich_ratio(at)
    reached, going = np.full(len(at), -np.inf), np.arange(len(at))
    for _ in range(200):
        values, turns = np.linalg.eigh(hessian)
        values = np.maximum(values, MIN_RELATIVE_EIGENVALUE * values[:, -1:] + 1e-200)
        back, out = (np.einsum("dij,dj,dkj,dk->di", turns, 1 / values, turns, side) for side in (slope, at[going]))
        top = value + 0.5 * (slope * back).sum(1)
        room = np.maximum(top - (max_gain - allowed[going]), 0.0)
        step = back + out * np.sqrt(2 * room / (out * at[going]).sum(1))[:, None]
        step *= np.minimum(1.0, MAX_LOG_ODDS_STEP / np.maximum(np.abs((step * at[going]).sum(1)), 1e-200))[:, None]
        for _half in range(60):
            new, new_slope, new_hessian = curve.likelihood(beta + step)
            wild = ~(max_gain - new <= 4 * allowed[going])
            if not wild.any():
                break
            step[wild] /= 2
        moved = (step * at[going]).sum(1)
        beta, value, slope, hessian = beta + step, new, new_slope, new_hessian
        eta = (beta * at[going]).sum(1)
        endless = eta + offset[going] > MAX_LOG_ODDS
        short = max_gain - value - allowed[going]
        within = short <= 1e-8 * allowed[going]
        reached[going[within]] = np.maximum(reached[going], eta)[within]
        settled = (np.abs(moved) <= 1e-11 * (1 + np.abs(eta))) & (np.abs(short) <= 1e-8 * allowed[going])
        reached[going[endless]] = np.inf
        done = settled | endless
        beta, value, slope, hessian, going = beta[~done], value[~done], slope[~done], hessian[~done], going[~done]
        if not len(going):
            break
    return reached


def _positive_segments(level: float, side: str, p: Array, gap: Array) -> list[BeltSegment]:
    """Intervals where `gap` is positive, with zeros by linear interpolation."""
    positive = gap > 0
    turns = np.flatnonzero(np.diff(positive.astype(int)))
    crossings = p[turns] + (p[turns + 1] - p[turns]) * gap[turns] / (gap[turns] - gap[turns + 1])
    ends = np.concatenate([p[:1] if positive[0] else [], crossings, p[-1:] if positive[-1] else []])
    return [BeltSegment(level, side, float(a), float(b)) for a, b in ends.reshape(-1, 2)]


def _belt_points(points: Any, curve: CalibrationCurve) -> Array:
    if isinstance(points, (int, np.integer)) and not isinstance(points, bool) and points >= 2:
        predicted = curve.logits.p[curve.logits.w > 0]
        return np.linspace(predicted.min(), predicted.max(), int(points))
    return np.sort(_validate_levels("point", np.atleast_1d(points)))


def _validate_levels(what: str, values: Any) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array > 0) & (array < 1)).all():
        raise InputError(
            "TO203", f"Every {what} must lie strictly between 0 and 1.", describe(values), "For example 0.95."
        )
    return array

"""The GiViTI calibration belt: simultaneous confidence bounds of the polynomial logistic calibration curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.typing import Array
from trueodds.estimators._glm.logits import Logits
from trueodds.hypotests._glm.forward_selection import CalibrationCurve
from trueodds.hypotests.giviti import GiViTI
from trueodds.lenses.view import View

MAX_LOG_ODDS = 40.0  # log odds beyond which a probability rounds to 0 or 1
MIN_RELATIVE_EIGENVALUE = 1e-12  # smallest eigenvalue of the Hessian, relative to the largest one
MAX_LOG_ODDS_STEP = 100.0  # maximum change of log odds in one step
MAX_DROP_FACTOR = 4  # a step is halved if the log-likelihood drops by more than this multiple of the allowed drop
MAX_ITER, MAX_HALVINGS = 200, 60  # maximum number of Newton steps, and of halvings of one step
BOUNDARY_TOLERANCE = 1e-8  # tolerance of the log-likelihood on the boundary, relative to its drop from the maximum
STEP_TOLERANCE = 1e-11  # relative change of the log odds below which the iteration has converged
_ELEMENTS_PER_BLOCK = 2**22  # maximum number of array elements in memory at once: 32 MB


@dataclass(frozen=True, slots=True)
class BeltSegment:
    """Range of probabilities in which the belt lies on one side of the diagonal."""

    level: float  # confidence level of the belt
    side: str  # "above": the model underpredicts; "below": it overpredicts
    start: float  # lower end of the range
    stop: float  # upper end of the range


@dataclass(frozen=True, eq=False, slots=True)
class Belt:
    """The belt at a grid of probabilities, with the corresponding test."""

    table: Mapping[str, Array]  # p, curve, and for each level low and high, such as low_0.8 and high_0.8
    levels: tuple[float, ...]  # confidence levels
    segments: tuple[BeltSegment, ...]  # ranges where the belt excludes the diagonal, for each level
    degree: int  # selected degree of the curve
    statistic: float  # D of the GiViTI test
    pvalue: float  # its p-value
    n: int  # number of rows
    notes: tuple[Note, ...] = ()


def fit_belt(
    view: View,
    levels: Sequence[float] = (0.8, 0.95),
    points: int | Sequence[float] | Array = 101,
    *,
    fitted: bool = False,
    max_degree: int = 4,
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
    levels = tuple(_as_open_unit_values("level", np.atleast_1d(levels)).tolist())
    test = GiViTI(fitted=fitted, max_degree=max_degree)
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
    m = curve.degree + 1
    directions = np.vander(x, m, increasing=True) @ curve.powers.monomial_coefficients[:m, :m]
    table = {"p": p, "curve": expit(x + directions @ curve.fit.beta[0])}
    segments: list[BeltSegment] = []
    for level in levels:
        drop = curve.null_distribution.quantile(level) / 2
        low, high = (
            expit(x + sign * _maximize_in_region(curve, sign * directions, drop, sign * x)) for sign in (-1.0, 1.0)
        )
        table |= {f"low_{level:g}": low, f"high_{level:g}": high}
        segments += [*_positive_segments(level, "above", p, low - p), *_positive_segments(level, "below", p, p - high)]
    return Belt(
        table=table,
        levels=levels,
        segments=tuple(segments),
        degree=curve.degree,
        statistic=result.statistic,
        pvalue=result.pvalue,
        n=view.n_rows,
        notes=result.notes,
    )


def _maximize_in_region(curve: CalibrationCurve, directions: Array, drop: float, offset: Array) -> Array:
    """Return the maximum of a·β over the region where the log-likelihood is within `drop` of its maximum, (k,).

    `directions` (k, m) has one a per row, and `offset` (k,) the log odds to which a·β is added. The maximum is infinite
    if the sum exceeds MAX_LOG_ODDS. Each step maximizes over the region of the second-order approximation of the
    log-likelihood, which is Newton's method on the Lagrangian. A step that leads far out of the region is halved.
    """
    block_size = max(1, _ELEMENTS_PER_BLOCK // len(curve.logits.w))
    blocks = [slice(start, start + block_size) for start in range(0, len(directions), block_size)]
    return np.concatenate([_maximize_on_boundary(curve, directions[block], drop, offset[block]) for block in blocks])


def _maximize_on_boundary(curve: CalibrationCurve, directions: Array, drop: float, offset: Array) -> Array:
    """Compute `_maximize_in_region` for directions (k, m) whose iterations fit into memory at once."""
    beta = np.repeat(curve.bounded_maximum(drop / 2)[None], len(directions), axis=0)
    value, gradient, hessian = curve.likelihood(beta)
    max_gain, allowed_drop = float(curve.fit.gain[0]), np.full(len(directions), drop)
    if not np.array_equal(curve.logits.w, curve.logits.ww):  # the rows have weights
        allowed_drop *= curve.sandwich_ratio(directions)
    maxima, active = np.full(len(directions), -np.inf), np.arange(len(directions))
    for _ in range(MAX_ITER):
        a, allowed = directions[active], allowed_drop[active]
        step = _newton_step_to_boundary(a, value, gradient, hessian, max_gain - allowed)
        step, value, gradient, hessian = _halve_long_steps(curve, beta, step, max_gain, MAX_DROP_FACTOR * allowed)
        change = (step * a).sum(1)
        beta = beta + step
        eta = (beta * a).sum(1)
        excess_drop = max_gain - value - allowed
        is_inside = excess_drop <= BOUNDARY_TOLERANCE * allowed
        maxima[active[is_inside]] = np.maximum(maxima[active], eta)[is_inside]
        is_infinite = eta + offset[active] > MAX_LOG_ODDS
        maxima[active[is_infinite]] = np.inf
        has_converged = (np.abs(change) <= STEP_TOLERANCE * (1 + np.abs(eta))) & (
            np.abs(excess_drop) <= BOUNDARY_TOLERANCE * allowed
        )
        continues = ~(has_converged | is_infinite)
        beta, value, gradient, hessian = beta[continues], value[continues], gradient[continues], hessian[continues]
        active = active[continues]
        if not len(active):
            break
    return maxima


def _newton_step_to_boundary(a: Array, value: Array, gradient: Array, hessian: Array, min_value: Array) -> Array:
    """Return the step (k, m) to the maximum of a·β where the second-order approximation is at least `min_value` (k,).

    `value` (k,), `gradient` (k, m) and the negative `hessian` (k, m, m) define the approximation. The change of a·β is
    at most MAX_LOG_ODDS_STEP. Divisors of 0 are replaced by 1e-200.
    """
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    eigenvalues = np.maximum(eigenvalues, MIN_RELATIVE_EIGENVALUE * eigenvalues[:, -1:] + 1e-200)
    to_maximum, to_boundary = (
        np.einsum("dij,dj,dkj,dk->di", eigenvectors, 1 / eigenvalues, eigenvectors, x) for x in (gradient, a)
    )
    maximum = value + 0.5 * (gradient * to_maximum).sum(1)
    max_drop = np.maximum(maximum - min_value, 0.0)
    step = to_maximum + to_boundary * np.sqrt(2 * max_drop / (to_boundary * a).sum(1))[:, None]
    return np.asarray(
        step * np.minimum(1.0, MAX_LOG_ODDS_STEP / np.maximum(np.abs((step * a).sum(1)), 1e-200))[:, None]
    )


def _halve_long_steps(
    curve: CalibrationCurve, beta: Array, step: Array, max_gain: float, max_drop: Array
) -> tuple[Array, Array, Array, Array]:
    """Halve steps (k, m) from `beta` (k, m) until the log-likelihood is at most `max_drop` (k,) below its maximum.

    Returns the steps, and the log-likelihood with its gradient and negative Hessian after them.
    """
    for _ in range(MAX_HALVINGS):
        value, gradient, hessian = curve.likelihood(beta + step)
        is_too_long = ~(max_gain - value <= max_drop)
        if not is_too_long.any():
            break
        step[is_too_long] /= 2
    return step, value, gradient, hessian


def _positive_segments(level: float, side: str, p: Array, gap: Array) -> list[BeltSegment]:
    """Return the intervals of p (k,) where `gap` (k,) is positive, whose ends are found by linear interpolation."""
    positive = gap > 0
    sign_changes = np.flatnonzero(np.diff(positive.astype(int)))
    crossings = p[sign_changes] + (p[sign_changes + 1] - p[sign_changes]) * gap[sign_changes] / (
        gap[sign_changes] - gap[sign_changes + 1]
    )
    ends = np.concatenate([p[:1] if positive[0] else [], crossings, p[-1:] if positive[-1] else []])
    return [BeltSegment(level, side, float(start), float(stop)) for start, stop in ends.reshape(-1, 2)]


def _belt_points(points: Any, curve: CalibrationCurve) -> Array:
    """Return the sorted probabilities at which the belt is evaluated, from their number or from themselves."""
    if isinstance(points, (int, np.integer)) and not isinstance(points, bool) and points >= 2:
        predicted = curve.logits.p[curve.logits.w > 0]
        return np.linspace(predicted.min(), predicted.max(), int(points))
    return np.sort(_as_open_unit_values("point", np.atleast_1d(points)))


def _as_open_unit_values(noun: str, values: Any) -> Array:
    """Return the values as an array; raise InputError unless they lie strictly between 0 and 1. `noun` names them."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not ((array > 0) & (array < 1)).all():
        raise InputError(
            "TO203", f"Every {noun} must lie strictly between 0 and 1.", describe(values), "For example 0.95."
        )
    return array


# Of the view on which a diagram fits the curve and its belt; more rows hardly change them, as its docstring says.
MAX_CELLS = 1024  # largest number of cells, and of distinct scores each of which is a cell
_N_INTERVALS = MAX_CELLS // 4  # intervals of the log odds, each with two nodes for events and two for non-events
_LINEAR_WIDTH = 2.0  # absolute log odds beyond which intervals widen, because the likelihood is flat there


def condense_view(view: View, logits: Logits) -> View:
    r"""Return a view of at most 1,024 cells on which curves of the log odds x fit as on the rows.

    The log-likelihood is a sum of smooth functions of x, :math:`-\sum wy \log(1 + e^{-\eta(x)})` over events and
    :math:`-\sum w(1 - y) \log(1 + e^{\eta(x)})` over non-events. Up to 1,024 distinct scores each one is a cell.
    Beyond, [min x, max x] is cut into intervals of length h, and in each interval either sum is replaced by its Gauss
    quadrature: two nodes that preserve the weight and the first three moments of x, with an error of h⁴/4320 times the
    fourth derivative. Cost: O(n), and a sort if the first rows share few scores.

    >>> view = View(p=[0.2, 0.2, 0.7], y=[0, 1, 1])
    >>> condensed_view = condense_view(view, Logits.from_view(view, 0.0, "calibration_belt"))
    >>> condensed_view.p.tolist(), condensed_view.y.tolist(), condensed_view.w.tolist()
    ([0.2, 0.7], [0.5, 1.0], [2.0, 1.0])
    """
    mask = logits.w > 0
    p, x, w, ww, y, n = (column[mask] for column in (logits.p, logits.x, logits.w, logits.ww, view.y, view.n))
    if len(np.unique(p[: 4 * MAX_CELLS])) <= MAX_CELLS:  # avoids sorting all rows if already the first have too many
        scores, cell = np.unique(p, return_inverse=True)
        if len(scores) <= MAX_CELLS:
            cell_w, cell_ww, cell_wy, cell_n = (np.bincount(cell, column) for column in (w, ww, w * y, n))
            return _view_of_cells(scores, cell_wy / cell_w, cell_w, cell_ww, cell_n)
    scaled_x = np.arcsinh(x / _LINEAR_WIDTH)
    low, high = scaled_x.min(), scaled_x.max()
    interval = np.minimum((_N_INTERVALS * (scaled_x - low) / (high - low)).astype(np.intp), _N_INTERVALS - 1)
    interval_w, interval_ww, interval_n = (np.bincount(interval, column, _N_INTERVALS) for column in (w, ww, n))
    occupied = interval_w > 0
    mean_x = np.divide(
        np.bincount(interval, w * x, _N_INTERVALS), interval_w, out=np.zeros(_N_INTERVALS), where=occupied
    )
    offset = x - mean_x[interval]
    nonevent_intervals, nonevent_offsets, nonevent_w = _quadrature_nodes(interval, offset, w * (1 - y))
    event_intervals, event_offsets, event_w = _quadrature_nodes(interval, offset, w * y)
    node_interval = np.concatenate([nonevent_intervals, event_intervals])
    node_x = np.concatenate([mean_x[nonevent_intervals] + nonevent_offsets, mean_x[event_intervals] + event_offsets])
    node_w = np.concatenate([nonevent_w, event_w])
    node_y = np.concatenate([np.zeros(len(nonevent_w)), np.ones(len(event_w))])
    # expit rounds to 1 for the largest log odds.
    node_p = np.clip(expit(node_x), np.nextafter(0, 1), np.nextafter(1, 0))
    node_ww, node_n = (
        node_w * (total / np.where(occupied, interval_w, 1.0))[node_interval] for total in (interval_ww, interval_n)
    )
    return _view_of_cells(node_p, node_y, node_w, node_ww, node_n)


def _quadrature_nodes(interval: Array, offset: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the two nodes that preserve Σw, Σwz, Σwz² and Σwz³ of each interval.

    The arguments, each (n,), are the interval of each row, its offset z of the log odds, and its weight w. The results,
    each (nodes,), are the interval, offset and weight of each node.
    """
    total_weight = np.bincount(interval, weight, _N_INTERVALS)
    occupied = np.flatnonzero(total_weight > 0)

    def interval_means(values: Array) -> Array:
        means: Array = np.bincount(interval, weight * values, _N_INTERVALS)[occupied] / total_weight[occupied]
        return means

    mean = interval_means(offset)
    centered = offset - np.bincount(occupied, mean, _N_INTERVALS)[interval]
    std = np.sqrt(interval_means(centered**2))
    skewness = np.divide(interval_means(centered**3), std**3, out=np.zeros(len(occupied)), where=std > 1e-9)
    root = np.sqrt(1 + skewness**2 / 4)
    upper_fraction = (1 - skewness / 2 / root) / 2  # of the weight, at the upper node
    intervals = np.concatenate([occupied, occupied])
    offsets = np.concatenate([mean + std * (skewness / 2 + root), mean + std * (skewness / 2 - root)])
    weights = np.concatenate([total_weight[occupied] * upper_fraction, total_weight[occupied] * (1 - upper_fraction)])
    mask = weights > 0
    return intervals[mask], offsets[mask], weights[mask]


def _view_of_cells(p: Array, y: Array, w: Array, ww: Array, n: Array) -> View:
    """Return the view of cells with score p, event rate y, Σw, Σw² and n rows, each (cells,)."""
    v = p * (1 - p)
    sums = {
        "ww": ww,
        "wpp": w * p * p,
        "wpy": w * p * y,
        "wyy": w * y * y,
        "wwv": ww * v,
        "wwr": ww * (y - p) ** 2,
    }
    return View(p, y, w, n=n, sums=sums)

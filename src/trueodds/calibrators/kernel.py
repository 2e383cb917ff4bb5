"""Kernel calibration: a Nadaraya-Watson regression of the outcome on the score."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from trueodds.binning.sorted_scores import SortedScores, weighted_quantiles, weighted_std
from trueodds.calibrators._curves.one_vs_rest import (
    LOGIT,
    PROBABILITY,
    LogOdds,
    OneVsRest,
    effective_rows,
    fit_curves,
    fit_curves_of_logs,
    sums_by_log_odds,
    zero_probability_notes,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    binary_logs,
    replacement_notes,
    to_probabilities,
)
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.saved_parameters import Numbers, Saved, invalid_value_error
from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Range, check
from trueodds.core.typing import Array
from trueodds.kernels.isotonic import isotonic_means
from trueodds.kernels.smoothing import gaussian_sums

BANDWIDTH_RULES = ("silverman", "normal")
MIN_BANDWIDTH = {PROBABILITY: 0.002, LOGIT: 0.02}  # by scale; resolved by the finest grid of a map
MAX_BANDWIDTH = {PROBABILITY: 1.0, LOGIT: 1e9}  # by scale; log odds may be margins of any unit
_KERNEL_RADIUS = 9  # bandwidths beyond which the kernel counts as 0
_MAX_DISTINCT_SCORES = 4096  # distinct scores up to which none are pooled
_CELLS_PER_BANDWIDTH = 32  # beyond _MAX_DISTINCT_SCORES, scores are pooled at the mean of each cell


def kernel_regression(
    points: Array, s: Array, w: Array, wy: Array, h: float, mirrored: bool = True
) -> tuple[Array, Array, Array]:
    """Nadaraya-Watson regression of the outcome on the score at some points (n,), with a Gaussian kernel.

    The scores s (m,) are increasing, with Σw and Σwy at each. The bandwidth h is the standard deviation of the kernel.
    If `mirrored`, scores are reflected at 0 and 1; scores and points then lie in [0, 1]. Returns the curve, its
    derivative, and the density of the scores up to a factor, (n,) each.
    """
    if mirrored:
        s, w, wy = _reflect_scores(s, w, wy, h)
    mass, events, slope_of_mass, slope_of_events, log_scale = gaussian_sums(points, s, w, wy, h).T
    values = events / mass
    return values, (slope_of_events - values * slope_of_mass) / mass, mass * np.exp(log_scale)


def _reflect_scores(s: Array, w: Array, wy: Array, h: float) -> tuple[Array, Array, Array]:
    """The scores s (m,) in [0, 1] with their reflections at 0 and 1 that the kernel reaches, and Σw and Σwy at each.

    The scores are increasing, before and after.
    """
    radius = _KERNEL_RADIUS * h
    n_reflections = math.ceil((radius + 1) / 2)
    images = [sign * s + 2 * j for j in range(-n_reflections, n_reflections + 1) for sign in (1, -1)]
    # The nearest images lie in [−1, 2].
    masks = [(-1 - radius <= image) & (image <= 2 + radius) for image in images]
    s = np.concatenate([image[mask] for image, mask in zip(images, masks, strict=True)])
    w, wy = (np.concatenate([values[mask] for mask in masks]) for values in (w, wy))
    order = np.argsort(s, kind="stable")
    return s[order], w[order], wy[order]


def bin_scores(s: Array, w: Array, wy: Array, h: float) -> tuple[Array, Array, Array]:
    """Pool the increasing scores s (m,), with Σw and Σwy at each, in cells of h/32 at their means if there are many."""
    if len(s) <= _MAX_DISTINCT_SCORES:
        return s, w, wy
    starts = np.flatnonzero(np.diff(np.floor((s - s[0]) * (_CELLS_PER_BANDWIDTH / h)), prepend=-1.0))
    ws, w, wy = (np.add.reduceat(v, starts) for v in (w * s, w, wy))
    return ws / w, w, wy


def select_bandwidth(s: Array, w: Array, bandwidth: float | str, scale: str, excluded_score: float = math.inf) -> float:
    """The number `bandwidth` itself, or the bandwidth by a rule for the increasing scores s (m,) with weights w (m,).

    Source of the rules: Silverman (1986), section 3.4: (4/3)^(1/5) sd n^(−1/5) is optimal for a normal density, and
    0.9 min(sd, IQR/1.34) n^(−1/5) is for other densities too; 1.34 is the interquartile range of the standard normal.

    Scores at ±`excluded_score`, the log odds that `min_prob` gave to exact 0 and 1, do not enter the rule.
    """
    if not isinstance(bandwidth, str):
        return float(bandwidth)
    # Log odds of known logits may lie beyond ±excluded_score.
    is_included = (np.abs(s) < excluded_score * (1 - 1e-9)) | (np.abs(s) > excluded_score * (1 + 1e-9))
    if is_included.any():
        s, w = s[is_included], w[is_included]
    w = w * max(1.0, 2 / float(w.sum()))  # a standard deviation needs the weight of more than one row
    n = float(w.sum())
    sd = float(weighted_std(s, w)) * math.sqrt(n / (n - 1))
    if bandwidth == "silverman":
        lower, upper = weighted_quantiles(s, w, (0.25, 0.75))
        h = 0.9 * min(sd, float(upper - lower) / 1.34) * n**-0.2
    else:
        h = (4 / 3) ** 0.2 * sd * n**-0.2
    return min(max(h, MIN_BANDWIDTH[scale]), MAX_BANDWIDTH[scale])


_STEPS_PER_BANDWIDTH = 32  # steps of the grid: interpolation is then accurate to 1e-8
_MIN_GRID_STEPS, _MAX_GRID_STEPS = 64, 2048  # steps of the grid
_MIN_RELATIVE_DENSITY = 1e-100  # of a grid point, relative to the largest density: weights must be positive
_UNLIMITED_RISE = 0.02  # of the probability in one step, up to which no slope is limited


class KernelCurve(Saved):
    """A smooth curve given by values and slopes on an even grid, constant beyond it."""

    symbols: ClassVar[Mapping[str, str]] = {"h": "bandwidth"}
    scale: Annotated[str, OneOf((PROBABILITY, LOGIT))]  # of the grid
    low: LogOdds  # first point of the grid
    high: LogOdds  # last point of the grid
    values: Annotated[Array, Numbers(0, 1, ("m+1",))]
    slopes: Annotated[Array, Numbers(-1e9, 1e9, ("m+1",))]  # per unit of the scale
    bandwidth: Annotated[float, Range(1e-9, MAX_BANDWIDTH[LOGIT])]  # standard deviation of the kernel, on the scale

    def __call__(self, x: Array) -> Array:
        """The values at the probabilities x (n,), by cubic interpolation."""
        return self.apply_to_logs(binary_logs(x))[:, 1] if self.takes_logs else self._evaluate_scaled(x)

    @property
    def takes_logs(self) -> bool:
        return self.scale == LOGIT

    def apply_to_logs(self, logs: Array) -> Array:
        q = self._evaluate_scaled(logs[:, 1] - logs[:, 0])
        return np.stack([1 - q, q], axis=1)

    def _evaluate_scaled(self, x: Array) -> Array:
        """The values at x on the scale of the grid."""
        steps = len(self.values) - 1
        u = (np.clip(x, self.low, self.high, dtype=np.float64) - self.low) / (self.high - self.low) * steps
        j = np.minimum(u.astype(np.int64), steps - 1)
        u -= j
        width = (self.high - self.low) / steps
        # The line between the two points plus a cubic that vanishes at both and corrects the slopes there.
        left, right = self.values[j], self.values[j + 1]
        left_excess = width * self.slopes[j] - (right - left)
        right_excess = (right - left) - width * self.slopes[j + 1]
        return np.clip(left + u * (right - left) + u * (1 - u) * (left_excess * (1 - u) + right_excess * u), 0.0, 1.0)

    def check_saved(self, k: int) -> None:
        if self.low >= self.high:
            raise invalid_value_error("high", f"above low, {self.low:g}", self.high)


class KernelMap(OneVsRest):
    """A smoothed curve for the second of two classes, or for every class."""

    curves: tuple[KernelCurve, ...]

    def describe(self) -> str:
        bandwidths = sorted(curve.bandwidth for curve in self.curves)
        return f"h = {bandwidths[0]:.3g}" + (
            f" to {bandwidths[-1]:.3g} in {len(bandwidths)} curves" if len(bandwidths) > 1 else ""
        )


class KernelSpec(CalibratorSpec):
    r"""Kernel calibration: a Nadaraya-Watson regression of the outcome on the score, used as a calibration map.

    Two classes have one curve, for the second class. With more classes each has a curve against the rest, and rows are
    normalized to sum to 1. Beyond the scores of the fit the curve is constant. Predicted classes may change.

    Parameters
    ----------
    bandwidth : float or {"silverman", "normal"}, default="silverman"
        Standard deviation h of the Gaussian kernel, or a rule computed from the scores. `"silverman"` is
        0.9 min(sd, IQR/1.34) n^(−1/5), `"normal"` is (4/3)^(1/5) sd n^(−1/5), both at least 0.02 (0.002 for
        probabilities). n is the number of rows, or the sum of weights that are counts. Scores at the smallest
        probability `min_prob` are left out of the rule.
    scale : {"logit", "probability"}, default="logit"
        Scale of the scores: log odds, or the probabilities themselves, reflected at 0 and 1 as in the paper. The latter
        flattens the curve where scores concentrate near 0 or 1, as those of neural networks do, and is harmful there.
    monotone : bool, default=True
        Whether a curve that decreases is replaced by its isotonic regression, weighted by the density of the scores.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm, for `scale="logit"`. Where log-probabilities are known
        (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: r(s) = \frac{\sum_i w_i y_i K_h(s, p_i)}{\sum_i w_i K_h(s, p_i)}

    This is the kernel estimate of the reliability curve. Biased towards the mean of the outcomes within about h.

    The map stores values and slopes on a grid of 32 points per bandwidth, at most 2,049. Between the points it is
    accurate to 1e-8 while h is at least 1/64 of the range of the scores, to 1e-5 at 1/500, and worse only in gaps of
    many h. Beyond 4,096 distinct scores, those within h/32 are replaced by their mean, which moves the curve by
    some 1e-4.

    Cost: O(K n log n) time and, per class, the grid points times the scores within 9 h, a few ms; at most 32 kB a
    class.

    References
    ----------
    .. [1] Posocco & Bonnefoy (2021). The reliability curve; they leave its use as a map to the future.
    .. [2] Silverman (1986).

    Examples
    --------
    >>> p, y = np.array([0.3, 0.7]), np.array([0, 1])
    >>> m = KernelSpec(0.1, scale="probability").fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(2))
    >>> m.apply(np.array([[0.7, 0.3], [0.5, 0.5]]))[:, 1].round(2).tolist()
    [0.0, 0.5]
    """

    name, map_type = "kernel", KernelMap
    takes_logs = True
    candidate = False
    bandwidth: float | Annotated[str, OneOf(BANDWIDTH_RULES)] = "silverman"
    scale: Annotated[str, OneOf((PROBABILITY, LOGIT))] = LOGIT
    monotone: bool = True
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.bandwidth, str):
            limits = Range(MIN_BANDWIDTH[self.scale], MAX_BANDWIDTH[self.scale])
            check("bandwidth", self.bandwidth, Annotated[float, limits], "silverman")

    def fit(self, P: Probabilities, Y: Array, w: Array) -> KernelMap:
        if self.scale == PROBABILITY:
            return KernelMap(fit_curves(partial(_fit_curve, spec=self), to_probabilities(P), Y, w))
        return KernelMap(fit_curves_of_logs(partial(_fit_curve, spec=self), P, Y, w, self.min_prob))

    def notes(self, calibration_map: KernelMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob) if self.scale == LOGIT else []
        min_bandwidth = MIN_BANDWIDTH[self.scale]
        n_narrow = (
            sum(curve.bandwidth == min_bandwidth for curve in calibration_map.curves)
            if isinstance(self.bandwidth, str)
            else 0
        )
        if n_narrow:
            which = f" of {n_narrow:,} classes" if len(calibration_map.curves) > 1 else ""
            text = (
                f"The scores{which} are so close together that the bandwidth is the smallest one, {min_bandwidth:g}:"
                " where scores are few, the curve follows single rows."
            )
            fit_notes.append(Note("TN530", text))
        return fit_notes + zero_probability_notes(calibration_map.apply(P))


def _fit_curve(x: Array, y: Array, w: Array, spec: KernelSpec) -> KernelCurve:
    """Fit the curve of one class to its outcome shares y (n,) and weights w (n,).

    x are probabilities (n,), or on the logit scale log(1 − p) and log p (n, 2).
    """
    mirrored = spec.scale == PROBABILITY
    if mirrored:
        s, mass, events = SortedScores(np.minimum(x, 1), y, effective_rows(w)[1]).sums_by_score()
    else:
        s, mass, events = sums_by_log_odds(x[:, 1] - x[:, 0], y, effective_rows(w)[1])
    h = select_bandwidth(s, mass, spec.bandwidth, spec.scale, math.inf if mirrored else -math.log(spec.min_prob))
    low, high = (0.0, 1.0) if mirrored else (float(s[0]), float(s[-1]))
    if not low < high:
        low, high = low - h, high + h
    steps = 2 ** math.ceil(math.log2(_STEPS_PER_BANDWIDTH * (high - low) / h) - 1e-9)
    steps = min(max(steps, _MIN_GRID_STEPS), _MAX_GRID_STEPS)
    grid = low + (high - low) * (np.arange(steps + 1) / steps)
    values, slopes, density = kernel_regression(grid, *bin_scores(s, mass, events, h), h, mirrored)
    step = (high - low) / steps
    if spec.monotone:
        values, slopes = _make_monotone(values, slopes, density, step)
    else:
        slopes = _limit_slopes(values, slopes, step)
    return KernelCurve(spec.scale, low, high, np.clip(values, 0.0, 1.0), slopes, h)


def _make_monotone(values: Array, slopes: Array, density: Array, step: float) -> tuple[Array, Array]:
    """Non-decreasing values on the grid and slopes between which the cubic increases, both (m,).

    The values are the isotonic regression weighted by the density of the scores at each grid point.
    """
    # The weights make grid points with hardly any rows follow the others.
    weights = np.maximum(density / density.max(), _MIN_RELATIVE_DENSITY)
    values = isotonic_means(weights, weights * values)
    rise = np.diff(values) / step
    # A cubic between two points increases if neither slope is more than three times that of the line between them.
    rise_after, rise_before = np.append(rise, rise[-1]), np.append(rise[0], rise)
    return values, np.clip(slopes, 0.0, 3 * np.minimum(rise_after, rise_before))


def _limit_slopes(values: Array, slopes: Array, step: float) -> Array:
    """The slopes (m,), limited where the curve jumps between two grid points, in a gap of many bandwidths.

    Otherwise the cubic would overshoot there.
    """
    rise = np.abs(np.diff(values)) / step
    rise_after, rise_before = np.append(rise, 0.0), np.append(0.0, rise)
    max_slope = np.maximum(2 * np.maximum(rise_after, rise_before), _UNLIMITED_RISE / step)
    return np.clip(slopes, -max_slope, max_slope)

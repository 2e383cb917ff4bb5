"""Nadaraya-Watson regression with a Gaussian kernel, and rules for its bandwidth."""

from __future__ import annotations

import math

import numpy as np

from trueodds.binning.sorted_scores import weighted_quantiles, weighted_std
from trueodds.core.typing import Array
from trueodds.kernels.kernel_functions import gaussian_sums

BANDWIDTH_RULES = ("silverman", "normal")
MIN_BANDWIDTH = {"probability": 0.002, "logit": 0.02}  # by scale; resolved by the finest grid of a map
MAX_BANDWIDTH = {"probability": 1.0, "logit": 1e9}  # by scale; log odds may be margins of any unit
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
    # Log odds of known logits may be larger.
    is_finite = (np.abs(s) < excluded_score * (1 - 1e-9)) | (np.abs(s) > excluded_score * (1 + 1e-9))
    if is_finite.any():
        s, w = s[is_finite], w[is_finite]
    w = w * max(1.0, 2 / float(w.sum()))  # a standard deviation needs the weight of more than one row
    n = float(w.sum())
    sd = float(weighted_std(s, w)) * math.sqrt(n / (n - 1))
    if bandwidth == "silverman":
        lower, upper = weighted_quantiles(s, w, (0.25, 0.75))
        h = 0.9 * min(sd, float(upper - lower) / 1.34) * n**-0.2
    else:
        h = (4 / 3) ** 0.2 * sd * n**-0.2
    return min(max(h, MIN_BANDWIDTH[scale]), MAX_BANDWIDTH[scale])

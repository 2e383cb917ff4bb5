"""Differences between groups: mean over groups, standard deviation between them, and an interval for a new group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaincc, stdtrit

from trueodds.core.formatting import format_intervals, format_number, format_percent_in_text
from trueodds.core.json_files import JsonObject
from trueodds.core.results import Interval
from trueodds.core.typing import Array

MIN_GROUPS = 3  # for an interval
MIN_GROUPS_WITHOUT_NOTE = 5
_DRAWS = 2000  # of the mean and the variance between groups
_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class BetweenGroups(JsonObject):
    """How much the values of the groups of one column differ, and where that of a new group is expected.

    Attributes
    ----------
    column : str
        The group column, or the columns of a crossing.
    scale : {"log", "identity"}
        Whether mean and intervals are computed from logarithms and shown as ratios.
    n_groups : int
        Number of groups with a value and a standard error.
    omitted : tuple of str
        Labels of the other groups, which do not have enough events, or no finite value.
    mean : float or None
        The mean over groups.
    mean_interval : Interval or None
        Its confidence interval.
    sd : float or None
        Standard deviation between groups, on the scale.
    prediction : Interval or None
        Interval that contains the true value of a new group with the probability `level`.
    """

    json_keys: ClassVar[tuple[str, ...]] = (
        "column", "scale", "n_groups", "omitted", "mean", "mean_interval", "sd", "prediction",
    )  # fmt: skip

    column: str
    scale: str
    n_groups: int
    omitted: tuple[str, ...]
    mean: float | None = None
    mean_interval: Interval | None = None
    sd: float | None = None
    prediction: Interval | None = None

    def describe(self) -> str:
        """Describe the differences in one line."""
        if self.mean is None or self.sd is None or self.prediction is None:
            return f"between groups of {self.column}: not estimated, which requires at least {MIN_GROUPS} groups"
        mean_interval, prediction = format_intervals([self.mean_interval, self.prediction])
        unit = " of logarithms" if self.scale == "log" else ""
        level = format_percent_in_text(self.prediction.level)
        return (
            f"between {self.n_groups:,} groups of {self.column}: mean {format_number(self.mean)} {mean_interval},"
            f" standard deviation{unit} {format_number(self.sd)}; {level} interval for a new group {prediction}"
        )


def summarize_between_groups(
    column: str,
    scale: str,
    effects: Sequence[tuple[str, float, float]],
    level: float,
    rng: np.random.Generator,
    method: str = "Nagashima",
) -> BetweenGroups:
    r"""Summarize values of groups (label, value, standard error) on their scale by a random-effects model.

    The value of a group is :math:`y_i \sim N(\theta_i, v_i)` with :math:`\theta_i \sim N(\mu, \tau^2)`. τ² is the
    estimate of DerSimonian and Laird [1]_, and the interval of μ that of Hartung, Knapp, Sidik and Jonkman with k − 1
    degrees of freedom, whose variance is at least that of the model. The prediction interval has the quantiles of
    draws

    .. math:: \hat\mu(\tau_b^2) + \tau_b z_b - t_{k-1,b} \sqrt{q(\tau_b^2)}

    where τ_b² are drawn from the confidence distribution of τ² [2]_, that is, from the probability that Q is at least
    as large as observed, by a gamma distribution with the mean and variance of Q. It always contains the interval of
    the mean, which the quantiles do not if few groups are more alike than their standard errors allow. With the
    `method` ``"HTS"`` it is the interval of Higgins, Thompson and Spiegelhalter [3]_, with k − 2 degrees of freedom.
    That one covers a new group too rarely if the groups differ little: 85 instead of 95 % with ten groups.

    Groups without a finite value are omitted. With fewer than three others there is no result.

    References
    ----------
    .. [1] DerSimonian & Laird (1986).
    .. [2] Nagashima, Noma & Furukawa (2019). Prediction intervals from a confidence distribution.
    .. [3] Higgins, Thompson & Spiegelhalter (2009); Riley et al. (2011).
    """
    usable = [(label, y, se) for label, y, se in effects if math.isfinite(y) and math.isfinite(se) and se > 0]
    labels = {label for label, _, _ in usable}
    omitted = tuple(label for label, _, _ in effects if label not in labels)
    k = len(usable)
    if k < MIN_GROUPS:
        return BetweenGroups(column, scale, k, omitted)
    y, v = np.array([y for _, y, _ in usable]), np.array([se for _, _, se in usable]) ** 2
    tau2 = between_variance(y, v)
    mean, se, total = _pooled(y, v, np.array([tau2]))
    half = float(stdtrit(k - 1, (1 + level) / 2)) * max(float(se[0]), 1 / math.sqrt(float(total[0])))
    center = float(mean[0])
    if method == "HTS":
        low, high = _hts_limits(y, v, level)
    else:
        low, high = _confidence_distribution_limits(y, v, level, rng)
        low, high = min(low, center - half), max(high, center + half)
    transform = math.exp if scale == "log" else float
    return BetweenGroups(
        column,
        scale,
        k,
        omitted,
        transform(center),
        Interval(transform(center - half), transform(center + half), level, "HKSJ"),
        math.sqrt(tau2),
        Interval(transform(low), transform(high), level, method),
    )


def between_variance(y: Array, v: Array) -> float:
    """Estimate the variance between groups by DerSimonian and Laird, from values y (k,) with variances v (k,).

    >>> between_variance(np.array([0.0, 2.0]), np.array([1.0, 1.0]))  # Q = 2, and (2 − 1) / (2 − 1)
    1.0
    """
    w = 1 / v
    q = _heterogeneity(y, w)
    return max(0.0, (q - (len(y) - 1)) / float(w.sum() - (w**2).sum() / w.sum()))


def _heterogeneity(y: Array, w: Array) -> float:
    return float((w * (y - w @ y / w.sum()) ** 2).sum())


def _pooled(y: Array, v: Array, tau2: Array) -> tuple[Array, Array, Array]:
    """Mean (b,), its HKSJ standard error (b,), and the total weight (b,), for variances between groups tau2 (b,)."""
    w = 1 / (v + tau2[:, None])
    total = w.sum(axis=1)
    mean = w @ y / total
    q = (w * (y - mean[:, None]) ** 2).sum(axis=1) / ((len(y) - 1) * total)
    return mean, np.sqrt(q), total


def _confidence_distribution_limits(y: Array, v: Array, level: float, rng: np.random.Generator) -> tuple[float, float]:
    """Prediction limits with τ² drawn from its confidence distribution."""
    tau2 = _draw_between_variance(y, v, (np.arange(_DRAWS) + 0.5) / _DRAWS)
    mean, se, _ = _pooled(y, v, tau2)
    draws = mean + np.sqrt(tau2) * rng.standard_normal(_DRAWS) - rng.standard_t(len(y) - 1, _DRAWS) * se
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _draw_between_variance(y: Array, v: Array, u: Array) -> Array:
    """The variance between groups (b,) at which Q is at least as large as observed with the probabilities u (b,)."""
    w, k = 1 / v, len(y)
    s1, s2, s3 = (float((w**j).sum()) for j in (1, 2, 3))
    slope, q = s1 - s2 / s1, _heterogeneity(y, w)

    def probability(tau2: Array) -> Array:
        mean = (k - 1) + slope * tau2
        variance = 2 * (k - 1) + 4 * slope * tau2 + 2 * (s2 - 2 * s3 / s1 + (s2 / s1) ** 2) * tau2**2
        return np.asarray(gammaincc(mean**2 / variance, q * mean / variance))

    high = np.full(len(u), 1 / w.max())
    while (probability(high) < u).any():
        high = np.where(probability(high) < u, 4 * high, high)
    low = np.zeros(len(u))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_below = probability(middle) < u
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.where(probability(np.zeros(len(u))) >= u, 0.0, high)


def _hts_limits(y: Array, v: Array, level: float) -> tuple[float, float]:
    """Prediction limits from Student's t with k − 2 degrees of freedom and the estimated variance between groups."""
    tau2 = between_variance(y, v)
    mean, _se, total = _pooled(y, v, np.array([tau2]))
    half = float(stdtrit(len(y) - 2, (1 + level) / 2)) * math.sqrt(tau2 + 1 / float(total[0]))
    return float(mean[0]) - half, float(mean[0]) + half

"""Belief and plausibility of each class, from the likelihood contours of a slope or of a shift and a slope.

The relative likelihood L(θ)/L(θ̂) of the calibration parameters is treated as a possibility distribution (Xu, Davoine,
Zha & Denœux 2016). Its cut at the level γ is the set {θ: L(θ) ≥ γ L(θ̂)}. With γ and Z uniform on [0, 1], the focal set
is the random set of classes that contain Z in their interval of cumulative probabilities for some θ of the cut. The
belief of a class is the probability that the focal set contains no other class. Its plausibility is the probability
that the focal set contains the class. Both are integrals over γ, computed by Gauss-Legendre quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit

from trueodds.calibrators._credal.likelihood_contour import LikelihoodSurface, unit_vectors
from trueodds.calibrators._glm.log_probabilities import softmax
from trueodds.calibrators.saved_parameters import Key, Numbers, Saved, invalid_value_error
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood

# Instead of its level γ, a cut is described by its radius t with γ = exp(−t²/2). Since the ends of the cuts are smooth
# in t, few nodes suffice.
MAX_CUT_RADIUS = 6.0  # largest radius t: γ = 1.5e-8
# Gauss-Legendre nodes of the radius t, and their weights with the density t exp(−t²/2) of t; the weights sum to 1.
CUT_RADII, CUT_WEIGHTS = np.polynomial.legendre.leggauss(16)
CUT_RADII = (CUT_RADII + 1) * MAX_CUT_RADIUS / 2
CUT_WEIGHTS = CUT_WEIGHTS * CUT_RADII * np.exp(-(CUT_RADII**2) / 2)
CUT_WEIGHTS /= CUT_WEIGHTS.sum()

_N_ANGLES = 64  # directions at which the support function of a cut is stored
_MAX_LOG_ODDS = 1e12  # replaces infinite log odds, so that 0 times them is 0
_MAX_EVALUATIONS = 200  # of the likelihood, on one side of its maximum
_EVALUATION_SPACING = 0.75  # of t, between the points where the likelihood is evaluated
_PROBABILITIES_PER_BLOCK = 1 << 15  # so that temporaries stay in cache
MAX_ABS_VALUE = 1e100  # largest absolute value of a saved number
_CutEnds = Annotated[Array, Numbers(-MAX_ABS_VALUE, MAX_ABS_VALUE, (len(CUT_RADII),))]


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Belief, plausibility and pignistic probability of each class."""

    belief: Array  # (n, K) lower probability
    plausibility: Array  # (n, K) upper probability
    pignistic: Array  # (n, K) probability where the mass of a focal set is split evenly among its classes


@dataclass(frozen=True, eq=False)
class SlopeBeliefs(Saved):
    r"""Beliefs of the model softmax(θ s) of K classes, with one parameter θ, from the cuts of its likelihood.

    The focal set is :math:`\{j : F_{j-1}(\theta) \le Z < F_j(\theta) \text{ for a } \theta \text{ of the cut}\}`, where
    F are the cumulative probabilities of softmax(θ s). It contains only neighboring classes, so the smallest and the
    largest F over the cut determine it.
    """

    theta: Annotated[float, Range(-MAX_ABS_VALUE, MAX_ABS_VALUE)]  # maximum likelihood estimate θ̂
    low: _CutEnds  # (t,) lower end of the cut of each of the CUT_RADII, decreasing
    high: _CutEnds  # (t,) upper end of the cut of each of the CUT_RADII, increasing

    @classmethod
    def from_likelihood(
        cls, theta: float, likelihood_at_theta: Callable[[float], Likelihood]
    ) -> tuple[SlopeBeliefs, int]:
        """The cuts around the maximum likelihood θ, and the number of passes to find them."""
        low, n_passes_low = _trace_cut_ends(theta, likelihood_at_theta, -1.0)
        high, n_passes_high = _trace_cut_ends(theta, likelihood_at_theta, 1.0)
        return cls(theta, low, high), n_passes_low + n_passes_high

    @classmethod
    def from_single_theta(cls, theta: float) -> SlopeBeliefs:
        """Cuts that contain a single θ, for rows that do not determine it."""
        ends = np.full(len(CUT_RADII), theta)
        return cls(theta, ends, ends.copy())

    def plug_in_probabilities(self, S: Array) -> Array:
        """Probabilities softmax(θ̂ s) at maximum likelihood, (n, K)."""
        return _scaled_softmax(self.theta, S)

    def beliefs(self, S: Array) -> Beliefs:
        """Belief, plausibility and pignistic probability of the scores S (n, K)."""
        belief, plausibility, pignistic = (np.empty(S.shape) for _ in range(3))
        block_size = max(1, _PROBABILITIES_PER_BLOCK // S.shape[1])
        for start in range(0, len(S), block_size):
            block = slice(start, start + block_size)
            belief[block], plausibility[block], pignistic[block] = self._block_beliefs(S[block])
        return Beliefs(belief, plausibility, pignistic)

    def _block_beliefs(self, S: Array) -> tuple[Array, Array, Array]:
        """Belief, plausibility and pignistic probability (n, K) of one block of scores."""
        belief, plausibility, pignistic = (np.zeros(S.shape) for _ in range(3))
        lower = upper = _cumulative_probabilities(self.theta, S)
        for low, high, weight in zip(self.low, self.high, CUT_WEIGHTS, strict=True):
            # An extremum of F inside the cut is approximated by its value at the ends of the smaller cuts.
            at_low, at_high = _cumulative_probabilities(low, S), _cumulative_probabilities(high, S)
            lower = np.minimum(lower, np.minimum(at_low, at_high))
            upper = np.maximum(upper, np.maximum(at_low, at_high))
            belief += weight * np.maximum(lower[:, 1:] - upper[:, :-1], 0.0)
            plausibility += weight * (upper[:, 1:] - lower[:, :-1])
            pignistic += weight * _split_overlaps(lower[:, :-1], upper[:, 1:])
        return belief, plausibility, pignistic

    def check_saved(self, k: int) -> None:
        """Check that the ends are below and above θ̂."""
        if (self.low > self.theta).any() or (self.high < self.theta).any():
            raise invalid_value_error("low and high", f"below and above theta, {self.theta:g}", self.low.tolist())


def _scaled_softmax(theta: float, S: Array) -> Array:
    """softmax(θ s) of each row of S (n, K); uniform for θ = 0, even where scores are infinite."""
    return softmax(theta * S if theta != 0 else np.zeros(S.shape))


def _cumulative_probabilities(theta: float, S: Array) -> Array:
    """Cumulative probabilities 0, F₁, …, F_K = 1 of softmax(θ s), (n, K + 1)."""
    F = np.zeros((len(S), S.shape[1] + 1))
    np.minimum(np.cumsum(_scaled_softmax(theta, S), axis=1), 1.0, out=F[:, 1:])
    F[:, -1] = 1.0
    return F


def _split_overlaps(start: Array, end: Array) -> Array:
    """Lengths of the intervals [start, end] of each row, (n, K), where overlaps are split evenly among the intervals.

    Interval j contains the random numbers Z with class j in the focal set. The intervals cover [0, 1], so the shares of
    a row sum to 1. All end points are sorted, and each gap between two of them is divided by the number of intervals
    that contain it.
    """
    k = start.shape[1]
    endpoints = np.concatenate([start, end], axis=1)
    order = endpoints.argsort(axis=1, kind="stable")
    sorted_endpoints = np.take_along_axis(endpoints, order, axis=1)
    n_open = np.where(order < k, 1, -1).cumsum(axis=1)[:, :-1]
    shares = np.diff(sorted_endpoints, axis=1) / np.maximum(n_open, 1)
    cumulative_shares = np.zeros(endpoints.shape)
    np.put_along_axis(cumulative_shares, order[:, 1:], shares.cumsum(axis=1), axis=1)
    return cumulative_shares[:, k:] - cumulative_shares[:, :k]


def _trace_cut_ends(
    theta: float, likelihood_at_theta: Callable[[float], Likelihood], direction: float
) -> tuple[Array, int]:
    """The end of each cut below θ̂ (`direction` −1) or above it (1), (t,), and the number of passes to find them.

    With F minus the log-likelihood, the end of the cut of radius t satisfies F(θ) = F(θ̂) + t²/2. F is evaluated at
    points about `_EVALUATION_SPACING` of t apart, and the ends are interpolated between them, with dθ/dt = t / F′.
    """
    likelihood = likelihood_at_theta(theta)
    min_loss, current = likelihood.value, theta
    # At each evaluated θ: t, θ and dθ/dt.
    t, thetas, slopes = [0.0], [theta], [direction / float(np.sqrt(likelihood.hessian[0, 0]))]
    for _ in range(_MAX_EVALUATIONS):
        loss_increase = ((t[-1] + _EVALUATION_SPACING) ** 2 - t[-1] ** 2) / 2
        # The root of g s + h s²/2 = loss increase, without a difference of nearly equal numbers.
        g, h = abs(float(likelihood.gradient[0])), float(likelihood.hessian[0, 0])
        current += direction * 2 * loss_increase / (g + float(np.sqrt(g * g + 2 * h * loss_increase)))
        likelihood = likelihood_at_theta(current)
        t.append(float(np.sqrt(2 * max(likelihood.value - min_loss, 0.0))))
        thetas.append(current)
        slopes.append(t[-1] / float(likelihood.gradient[0]))
        if t[-1] >= MAX_CUT_RADIUS:
            break
    ends = cubic_hermite(CUT_RADII, np.array(t), np.array(thetas), np.array(slopes))[0]
    return np.maximum(ends, theta) if direction > 0 else np.minimum(ends, theta), len(t) - 1


@dataclass(frozen=True, eq=False)
class ShiftSlopeBeliefs(Saved):
    r"""Beliefs of the model σ(τ + γx) of two classes, from the range of the log odds over each cut of the likelihood.

    A cut is convex, so the range of τ + γx over it is given by its support function (the largest inner product with a
    direction) in the directions ±(1, x). The support function is stored with its derivative on a circle of directions.
    Belief is the mean over the cuts of the smallest probability, :math:`\hat q - \int_0^{\hat q} pl_x`, and
    plausibility that of the largest one.
    """

    theta: Annotated[Array, Numbers(-MAX_ABS_VALUE, MAX_ABS_VALUE, (2,))]  # τ and γ at maximum likelihood
    # Linear map to (τ, γ) from the coordinates β in which cuts are nearly round.
    beta_to_theta: Annotated[Array, Numbers(-MAX_ABS_VALUE, MAX_ABS_VALUE, (2, 2)), Key("turn")]
    # (t, a) support function of each cut at a = _N_ANGLES angles 2πi/a, divided by the radius t
    support: Annotated[Array, Numbers(0, MAX_ABS_VALUE, (len(CUT_RADII), _N_ANGLES))]
    # (t, a) derivative of the support function by the angle
    slope: Annotated[Array, Numbers(-MAX_ABS_VALUE, MAX_ABS_VALUE, (len(CUT_RADII), _N_ANGLES))]

    @classmethod
    def from_surface(cls, surface: LikelihoodSurface) -> ShiftSlopeBeliefs:
        """The cuts of a likelihood surface.

        Points of the boundary of each cut are computed at equally spaced angles. The outward normal at a point is a
        direction in which the support function is the inner product of the two; from these directions it is
        interpolated to the equally spaced ones.
        """
        angles = 2 * np.pi * np.arange(_N_ANGLES) / _N_ANGLES
        support, slope = np.empty((2, len(CUT_RADII), _N_ANGLES))
        radii: Array | float = 1.0
        for i, t in enumerate(CUT_RADII):
            radii = surface.radii(angles, t**2 / 2, radii)
            points = radii[:, None] * unit_vectors(angles)
            normals = surface.gradients(t * points)
            normal_angles = np.arctan2(normals[:, 1], normals[:, 0])
            directions = unit_vectors(normal_angles)
            heights = (points * directions).sum(axis=1)
            height_slopes = points[:, 1] * directions[:, 0] - points[:, 0] * directions[:, 1]
            normal_angles = np.maximum.accumulate(np.unwrap(normal_angles))
            periodic_copies = [
                np.concatenate([normal_angles + shift for shift in (-2 * np.pi, 0, 2 * np.pi)]),
                *(np.tile(values, 3) for values in (heights, height_slopes)),
            ]
            support[i], slope[i] = cubic_hermite(angles, *periodic_copies)
        return cls(surface.theta, surface.beta_to_theta, support, slope)

    def plug_in_probabilities(self, x: Array) -> Array:
        """Probabilities σ(τ̂ + γ̂x) at maximum likelihood, (n, 2)."""
        q = self._fitted_log_odds(_clip_log_odds(x))
        return np.stack([expit(-q), expit(q)], axis=1)

    def _fitted_log_odds(self, x: Array) -> Array:
        """Log odds τ̂ + γ̂x at maximum likelihood, (n,)."""
        return self.theta[0] + self.theta[1] * x

    def beliefs(self, x: Array) -> Beliefs:
        """Belief, plausibility and pignistic probability at the scores x (n,)."""
        x = _clip_log_odds(x)
        directions = np.stack([np.ones(len(x)), x], axis=1) @ self.beta_to_theta
        length, angle = np.hypot(directions[:, 0], directions[:, 1]), np.arctan2(directions[:, 1], directions[:, 0])
        fitted_log_odds = self._fitted_log_odds(x)
        # Mean probabilities of both classes, at the smallest and the largest log odds of each cut.
        at_smallest, at_largest = np.zeros((len(x), 2)), np.zeros((len(x), 2))
        for t, weight, heights, height_slopes in zip(CUT_RADII, CUT_WEIGHTS, self.support, self.slope, strict=True):
            largest = fitted_log_odds + t * length * periodic_cubic_hermite(angle, heights, height_slopes)
            smallest = fitted_log_odds - t * length * periodic_cubic_hermite(angle + np.pi, heights, height_slopes)
            at_smallest += weight * np.stack([expit(-smallest), expit(smallest)], axis=1)
            at_largest += weight * np.stack([expit(-largest), expit(largest)], axis=1)
        # The first class has the smallest probability at the largest log odds.
        belief = np.stack([at_largest[:, 0], at_smallest[:, 1]], axis=1)
        plausibility = np.stack([at_smallest[:, 0], at_largest[:, 1]], axis=1)
        return Beliefs(belief, plausibility, (belief + plausibility) / 2)


def _clip_log_odds(x: Array) -> Array:
    """Log odds (n,) with infinite ones replaced by large finite ones."""
    return np.clip(x, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def cubic_hermite(x: Array, nodes: Array, values: Array, slopes: Array) -> tuple[Array, Array]:
    """Cubic Hermite interpolation at x (n,) through increasing nodes (m,), and its derivative, both (n,).

    Unlike SciPy's `CubicHermiteSpline`, it accepts equal nodes. x must lie between the first and the last node.
    """
    segment = np.clip(np.searchsorted(nodes, x, "right") - 1, 0, len(nodes) - 2)
    gap = np.maximum(nodes[segment + 1] - nodes[segment], 1e-300)
    return _evaluate_cubic(
        (x - nodes[segment]) / gap, gap, values[segment], values[segment + 1], slopes[segment], slopes[segment + 1]
    )


def periodic_cubic_hermite(angle: Array, values: Array, slopes: Array) -> Array:
    """Periodic cubic Hermite interpolation at the angles (n,) through values and slopes (a,) at the angles 2πi/a."""
    gap = 2 * np.pi / len(values)
    position = (angle / gap) % len(values)
    segment = position.astype(np.intp) % len(values)
    next_node = (segment + 1) % len(values)
    return _evaluate_cubic(
        position - np.floor(position), gap, values[segment], values[next_node], slopes[segment], slopes[next_node]
    )[0]


def _evaluate_cubic(u: Array, gap: Array | float, y0: Array, y1: Array, d0: Array, d1: Array) -> tuple[Array, Array]:
    """Value and derivative at the fraction u of gaps with end values y0, y1 and end slopes d0, d1."""
    difference, d0, d1 = y1 - y0, d0 * gap, d1 * gap
    a, b = 3 * difference - 2 * d0 - d1, d0 + d1 - 2 * difference
    return y0 + u * (d0 + u * (a + u * b)), (d0 + u * (2 * a + 3 * u * b)) / gap

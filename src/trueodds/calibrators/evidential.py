"""Evidential calibration: belief and plausibility of each class from the likelihood of the parameters.

The relative likelihood L(θ)/L(θ̂) of the calibration parameters is treated as a possibility distribution (Xu, Davoine,
Zha & Denœux 2016). Its cut at the level γ is the set {θ: L(θ) ≥ γ L(θ̂)}. With γ and Z uniform on [0, 1], the focal set
is the random set of classes that contain Z in their interval of cumulative probabilities for some θ of the cut. The
belief of a class is the probability that the focal set contains no other class. Its plausibility is the probability
that the focal set contains the class. Both are integrals over γ, computed by Gauss-Legendre quadrature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floored_logs,
    log_ratio,
    logs_for_slopes,
    probability_pair,
    replacement_notes,
    softmax,
    to_logs,
    to_probabilities,
)
from trueodds.calibrators._glm.logistic_regression import (
    LikelihoodSurface,
    fit_logistic,
    group_by_score,
    intercept_and_score,
    nonincreasing_curve_notes,
    smoothed_targets,
    unit_vectors,
)
from trueodds.calibrators._glm.newton import minimize_newton
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Key, Numbers, PassCount, Saved, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear

# Instead of its level γ, a cut is described by its radius t with γ = exp(−t²/2). Since the ends of the cuts are smooth
# in t, few nodes suffice.
MAX_CUT_RADIUS = 6.0  # largest radius t: γ = 1.5e-8
# Gauss-Legendre nodes of the radius t, and their weights with the density t exp(−t²/2) of t; the weights sum to 1.
# Saved: maps hold numbers at these nodes, so other nodes need another format of the file.
CUT_RADII, CUT_WEIGHTS = np.polynomial.legendre.leggauss(16)
CUT_RADII = (CUT_RADII + 1) * MAX_CUT_RADIUS / 2
CUT_WEIGHTS = CUT_WEIGHTS * CUT_RADII * np.exp(-(CUT_RADII**2) / 2)
CUT_WEIGHTS /= CUT_WEIGHTS.sum()

_N_ANGLES = 64  # Saved: directions at which the support function of a cut is stored
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
        return probability_pair(self._fitted_log_odds(_clip_log_odds(x)))

    def _fitted_log_odds(self, x: Array) -> Array:
        """Log odds τ̂ + γ̂x at maximum likelihood, (n,)."""
        return self.theta[0] + self.theta[1] * x

    def beliefs(self, x: Array) -> Beliefs:
        x = _clip_log_odds(x)
        directions = np.stack([np.ones(len(x)), x], axis=1) @ self.beta_to_theta
        length, angle = np.hypot(directions[:, 0], directions[:, 1]), np.arctan2(directions[:, 1], directions[:, 0])
        fitted_log_odds = self._fitted_log_odds(x)
        # Mean probabilities of both classes, at the smallest and the largest log odds of each cut.
        at_smallest, at_largest = np.zeros((len(x), 2)), np.zeros((len(x), 2))
        for t, weight, heights, height_slopes in zip(CUT_RADII, CUT_WEIGHTS, self.support, self.slope, strict=True):
            largest = fitted_log_odds + t * length * periodic_cubic_hermite(angle, heights, height_slopes)
            smallest = fitted_log_odds - t * length * periodic_cubic_hermite(angle + np.pi, heights, height_slopes)
            at_smallest += weight * probability_pair(smallest)
            at_largest += weight * probability_pair(largest)
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


_SCORE_KINDS = ("log p", "probabilities")
_OUTPUT_KINDS = ("pignistic", "plausibility", "point")


class EvidentialMap(CalibrationMap):
    """The likelihood contour of the parameters, and the kind of probabilities made of it."""

    takes_logs = True
    on: Annotated[str, OneOf(_SCORE_KINDS)]
    output: Annotated[str, OneOf(_OUTPUT_KINDS)]
    n_passes: PassCount
    # Smallest probability of the fit on log p; used if the slope is negative.
    min_prob: Annotated[MinProb, OMIT_DEFAULT] = MIN_PROB
    # Of one parameter, or of shift and slope for two classes.
    contour: SlopeBeliefs | ShiftSlopeBeliefs = field(kw_only=True)

    def __post_init__(self) -> None:
        if not self.slope < 0:  # then `min_prob` is not used, nor saved
            object.__setattr__(self, "min_prob", MIN_PROB)

    def named_parameters(self) -> dict[str, Any]:
        """The maximum likelihood estimates: θ of softmax(θs), or slope a and shift b of σ(ax + b)."""
        if isinstance(self.contour, SlopeBeliefs):
            return {"theta": self.slope}
        return {"a": self.slope, "b": float(self.contour.theta[0])}

    @property
    def slope(self) -> float:
        return float(self.contour.theta if isinstance(self.contour, SlopeBeliefs) else self.contour.theta[1])

    def apply(self, P: Probabilities) -> Array:
        """Pignistic probabilities, normalized plausibilities, or the probabilities of the point estimate."""
        scores = self._to_scores(P)
        if self.output == "point":
            return self.contour.plug_in_probabilities(scores)
        beliefs = self.contour.beliefs(scores)
        q = beliefs.pignistic if self.output == "pignistic" else beliefs.plausibility
        return q / q.sum(axis=1, keepdims=True)

    def interval(self, P: Probabilities) -> tuple[Array, Array]:
        beliefs = self.beliefs(P)
        return beliefs.belief, beliefs.plausibility

    def beliefs(self, P: Probabilities) -> Beliefs:
        """Belief, plausibility and pignistic probability of each row, (n, K) each."""
        return self.contour.beliefs(self._to_scores(P))

    def _to_scores(self, P: Probabilities) -> Array:
        """The scores (n, K) of a contour of one parameter, or (n,) of one with shift and slope."""
        if self.on == "probabilities":
            p = to_probabilities(P).astype(np.float64, copy=False)
            return p[:, 1] if isinstance(self.contour, ShiftSlopeBeliefs) else p
        logs = logs_for_slopes(to_logs(P), self.slope, self.min_prob)
        return logs[:, 1] - logs[:, 0] if isinstance(self.contour, ShiftSlopeBeliefs) else logs

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The mixture of the point estimate; the other outputs have none."""
        if self.output != "point" or self.on != "log p":
            return None
        shift = 0.0 if isinstance(self.contour, SlopeBeliefs) else float(self.contour.theta[0])
        bias = np.zeros(k)
        bias[1] = shift
        return (SoftmaxTerm(1.0, np.full(k, self.slope), bias, self.min_prob),)

    def describe(self) -> str:
        """The parameter, such as `θ = 0.45`, or slope and intercept."""
        if isinstance(self.contour, SlopeBeliefs):
            return f"θ = {format_number(self.contour.theta)}"
        tau, gamma = self.contour.theta.tolist()
        return f"slope {format_number(gamma)}, intercept {format_number(tau)}"

    def check_saved(self, k: int) -> None:
        if k != 2 and isinstance(self.contour, ShiftSlopeBeliefs):
            raise invalid_value_error("contour", f"of one parameter for {k} classes", "a shift and a slope")


class EvidentialSpec(CalibratorSpec):
    r"""Evidential calibration: belief and plausibility of each class from the likelihood of the parameters.

    All parameter values that fit nearly as well as the best one contribute. The interval from belief to plausibility
    shows how precisely the rows determine the recalibrated probability, and shrinks as rows are added. The method does
    not aim at more accurate probabilities. For several classes it is a reconstruction (see Notes).

    Parameters
    ----------
    on : {"log p", "probabilities"}, default="log p"
        Scores s: log-probabilities, which make a temperature that nearly includes the identity, or probabilities,
        which cannot leave them unchanged.
    output : {"pignistic", "plausibility", "point"}, default="pignistic"
        Probabilities that the map returns: mass of sets of classes split evenly, which lies between belief and
        plausibility; plausibilities divided by their sum; or the probabilities of the maximum likelihood estimate.
    parameters : {1, 2}, optional
        1 is a temperature. 2 is a shift and a slope of the log odds (or of p) for two classes, the contour of Platt's
        sigmoid. By default 2 for two classes, else 1.

    Notes
    -----
    .. math:: q = \mathrm{softmax}(\theta s), \qquad pl(\theta) = L(\theta) / L(\hat\theta), \qquad
        A(\gamma, Z) = \{j : F_{j-1}(\theta) \le Z < F_j(\theta)
        \text{ for a } \theta \text{ with } pl(\theta) \ge \gamma\}

    L is the likelihood of smoothed targets, (n_y + 1)/(n_y + K) for the observed class y and 1/(n_y + K) for the
    others. γ and Z are uniform, F are cumulative probabilities, and A is the random set of classes that remain
    possible. Belief is P(A = {j}), plausibility P(j ∈ A).

    The text of the multiclass paper was not available: the form with one parameter is a reading of its abstract and
    of the binary paper, and may differ from the authors'. Through F, beliefs depend on the order of the classes, by .03
    with 60 rows. With two parameters the contour of more than 2,048 distinct scores is that of as many groups of
    neighbors.

    Cost: O(nK) for each of some 25 passes; to apply, O(nK log K) times 32.

    References
    ----------
    .. [1] Xu, Davoine & Denœux (2015).
    .. [2] Xu, Davoine, Zha & Denœux (2016).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> fitted = EvidentialSpec(parameters=1).fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4))
    >>> [end[0, 1].round(2).tolist() for end in fitted.interval(P)]
    [0.39, 0.89]
    """

    name, map_type = "evidential", EvidentialMap
    takes_logs = True
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "sets of classes are made from cumulative probabilities, so neighboring classes share mass"
    }
    on: Annotated[str, OneOf(_SCORE_KINDS)] = "log p"
    output: Annotated[str, OneOf(_OUTPUT_KINDS)] = "pignistic"
    parameters: Literal[1, 2] | None = None
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> EvidentialMap:
        k = P.shape[1]
        if self.parameters == 2 and k > 2:
            raise InputError("TO203", "parameters=2 needs two classes.", f"{k} classes", "Leave parameters out.")
        contour, n_passes = (
            self._fit_slope(P, Y, w) if k > 2 or self.parameters == 1 else self._fit_shift_and_slope(P, Y[:, 1], w)
        )
        return EvidentialMap(self.on, self.output, n_passes, self.min_prob, contour=contour)

    def _fit_slope(self, P: Probabilities, Y: Array, w: Array) -> tuple[SlopeBeliefs, int]:
        """The contour of one parameter θ, and the number of passes."""
        S = floored_logs(P, self.min_prob) if self.on == "log p" else to_probabilities(P).astype(np.float64)
        S -= S.max(axis=1, keepdims=True)
        shares, features = Y @ _class_smoothed_targets(weighted_sum(w, Y)), S[:, :, None]

        def likelihood_at_theta(theta: float) -> Likelihood:
            return softmax_linear(features, shares, w, np.array([theta]))

        # Every row is uniform, so that the likelihood is constant. (The largest score of each row is 0.)
        if not (w * S.min(axis=1)).any():
            return SlopeBeliefs.from_single_theta(1.0), 0
        optimum = minimize_newton(lambda theta: likelihood_at_theta(float(theta[0])), np.zeros(1))
        contour, n_passes = SlopeBeliefs.from_likelihood(float(optimum.theta[0]), likelihood_at_theta)
        return contour, n_passes + optimum.n_passes

    def _fit_shift_and_slope(self, P: Probabilities, y: Array, w: Array) -> tuple[ShiftSlopeBeliefs, int]:
        """The contour of shift and slope for two classes, and the number of passes; y (n,) are shares."""
        x = log_ratio(P, self.min_prob) if self.on == "log p" else to_probabilities(P)[:, 1].astype(np.float64)
        optimum = fit_logistic(intercept_and_score(x), y, w, np.zeros(2), smooth=True)
        score_groups = group_by_score(x, smoothed_targets(y, w), w).pool_neighbors()
        surface = LikelihoodSurface.around_minimum(score_groups, optimum.theta)
        return ShiftSlopeBeliefs.from_surface(surface), optimum.n_passes

    def notes(self, calibration_map: EvidentialMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob) if self.on == "log p" else []
        contour = calibration_map.contour
        if isinstance(contour, SlopeBeliefs):
            is_undetermined = contour.low[-1] == contour.theta
            is_nonincreasing = contour.theta <= 0 or is_undetermined
        else:
            is_nonincreasing = contour.theta[1] <= 0
        return [*fit_notes, *nonincreasing_curve_notes(int(is_nonincreasing))]


def _class_smoothed_targets(n_events: Array) -> Array:
    """The smoothed target shares (K, K) for each observed class, given its number of events."""
    k = len(n_events)
    return (1 + np.diag(n_events)) / (n_events + k)[:, None]

"""Natural cubic splines, and their penalized likelihood fit with a roughness penalty chosen by a modified AIC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trueodds.binning.sorted_scores import group_starts, weighted_quantiles
from trueodds.calibrators._glm.newton import Minimum, Ridge, minimize_newton
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.typing import Array
from trueodds.kernels.isotonic import isotonic_means
from trueodds.kernels.likelihood import spline_likelihood
from trueodds.tallies.softmax_likelihood import Likelihood

SLOPE_TOLERANCE = 1e-10  # slopes that count as 0: over all finite log odds of a float they amount to 1e-7
# Penalties per row of which one is selected, in squared log odds: from almost a line to a wave between two knots.
PENALTY_GRID = 10.0 ** np.arange(3.0, -6.5, -0.5)
MAX_SCORE_GROUPS = 1024  # of neighboring scores, used to choose the penalty; the fit uses every score
# Weight of a degree of freedom, 1.4 in docstrings: 1 is AIC, which overfits some hundred rows.
DEGREES_OF_FREEDOM_FACTOR = 1.4
CRITERION_TOLERANCE = 1e-9  # relative tolerance of the criterion
MIN_SCORE_DIFFERENCE = 1e-6  # differences of log odds within the rounding of float32
MIN_KNOT_GAP = 0.1  # smallest distance of two knots, relative to equally spaced ones


@dataclass(frozen=True, eq=False)
class NaturalSpline:
    """The natural cubic spline through points: piecewise cubic between the knots, linear beyond them.

    >>> NaturalSpline(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0]))(np.array([-1.0, 0.5, 1.0])).tolist()
    [-1.5, 0.6875, 1.0]
    """

    knots: Array  # (m,) strictly increasing, m ≥ 2
    values: Array  # (m,)

    def __call__(self, x: Array) -> Array:
        """The values at x (n,), extrapolated linearly, to infinite x too."""
        low, high = self.knots[0], self.knots[-1]
        j, u, width = self._locate_segments(np.clip(x, low, high))
        out = self.values[j] + u * (self.values[j + 1] - self.values[j])
        v = 1 - u
        out += (
            width * width / 6 * (self.second_derivatives[j] * (v**3 - v) + self.second_derivatives[j + 1] * (u**3 - u))
        )
        first, last = self.slope(self.knots[[0, -1]]).tolist()
        # A flat end stays flat, whatever the rounding.
        if abs(first) > SLOPE_TOLERANCE:
            out += first * np.minimum(x - low, 0.0)
        if abs(last) > SLOPE_TOLERANCE:
            out += last * np.maximum(x - high, 0.0)
        return out

    def slope(self, x: Array) -> Array:
        """The first derivative at x (n,); beyond the knots that of the lines."""
        j, u, width = self._locate_segments(np.clip(x, self.knots[0], self.knots[-1]))
        secant = (self.values[j + 1] - self.values[j]) / width
        return secant + width / 6 * (
            self.second_derivatives[j + 1] * (3 * u**2 - 1) - self.second_derivatives[j] * (3 * (1 - u) ** 2 - 1)
        )

    @cached_property
    def second_derivatives(self) -> Array:
        """The second derivatives at the knots, (m,)."""
        return second_derivative_matrix(self.knots) @ self.values

    def coefficients(self) -> Array:
        """Of 1, t, t² and t³ on the m + 1 intervals, (4, m + 1); t is the distance from the knot to the left."""
        f, curvature, h = self.values, self.second_derivatives, np.diff(self.knots)
        first, last = (slope if abs(slope) > SLOPE_TOLERANCE else 0.0 for slope in self.slope(self.knots[[0, -1]]))
        between = [
            f[:-1],
            np.diff(f) / h - h / 6 * (2 * curvature[:-1] + curvature[1:]),
            curvature[:-1] / 2,
            np.diff(curvature) / (6 * h),
        ]
        ends = np.array([[f[0], first, 0.0, 0.0], [f[-1], last, 0.0, 0.0]]).T
        return np.column_stack([ends[:, 0], np.stack(between), ends[:, 1]])

    def _locate_segments(self, x: Array) -> tuple[Array, Array, Array]:
        """The segment of each x, the relative position within it (0 to 1), and its width, all (n,)."""
        j = np.clip(np.searchsorted(self.knots, x, "right") - 1, 0, len(self.knots) - 2)
        width = np.diff(self.knots)[j]
        return j, (x - self.knots[j]) / width, width


def second_derivative_matrix(knots: Array) -> Array:
    """Matrix (m, m) from values at the knots to second derivatives there, which are 0 at both ends."""
    Q, R = banded_matrices(knots)
    out = np.zeros((len(knots), len(knots)))
    out[1:-1] = np.linalg.solve(R, Q.T)
    return out


def banded_matrices(knots: Array) -> tuple[Array, Array]:
    r"""Q (m, m − 2) and R (m − 2, m − 2), which relate values f and inner second derivatives γ.

    .. math:: Q^\top f = R\gamma, \quad \int f''^2 = \gamma^\top R\gamma = f^\top Q R^{-1} Q^\top f

    Source: Green & Silverman (1994), section 2.1.
    """
    h, m = np.diff(knots), len(knots)
    i = np.arange(m - 2)
    Q, R = np.zeros((m, m - 2)), np.zeros((m - 2, m - 2))
    Q[i, i], Q[i + 1, i], Q[i + 2, i] = 1 / h[:-1], -1 / h[:-1] - 1 / h[1:], 1 / h[1:]
    R[i, i] = (h[:-1] + h[1:]) / 3
    R[i[1:], i[:-1]] = R[i[:-1], i[1:]] = h[1:-1] / 6
    return Q, R


class OutcomeCounts(NamedTuple):
    """Weights of events and non-events at each log odds."""

    x: Array  # (m,) non-decreasing
    events: Array  # (m,) Σwy
    nonevents: Array  # (m,) Σw(1 − y)

    @property
    def mass(self) -> Array:
        """Total weight Σw at each log odds, (m,)."""
        return self.events + self.nonevents

    def pool_scores(self, max_groups: int) -> OutcomeCounts:
        """Pool neighboring scores at their mean if there are more than `max_groups`.

        All are pooled if no two differ by `MIN_SCORE_DIFFERENCE`.
        """
        is_single_score = self.x[-1] - self.x[0] < MIN_SCORE_DIFFERENCE
        if len(self.x) <= (1 if is_single_score else max_groups):
            return self
        w = self.mass
        starts = np.zeros(1, dtype=np.int64) if is_single_score else group_starts(w, max_groups)
        events, nonevents, wx = (np.add.reduceat(v, starts) for v in (self.events, self.nonevents, w * self.x))
        return OutcomeCounts(wx / (events + nonevents), events, nonevents)

    @property
    def separated(self) -> bool:
        """Whether events and non-events are separated by the score, so that no finite line is optimal."""
        event_scores, nonevent_scores = self.x[self.events > 0], self.x[self.nonevents > 0]
        if not len(event_scores) or not len(nonevent_scores):
            return True
        return len(self.x) > 1 and bool(
            event_scores[0] >= nonevent_scores[-1] or event_scores[-1] <= nonevent_scores[0]
        )


@dataclass(frozen=True, slots=True, eq=False)
class SplineFit:
    """The curve of minimum penalized loss."""

    curve: NaturalSpline
    degrees_of_freedom: float  # effective degrees of freedom; those of a line are 2
    n_passes: int
    converged: bool
    penalty: float  # λ, infinite for a line


class SplineBasis:
    """Basis of the natural splines at m knots: a constant, a slope, and m − 2 directions of equal roughness.

    A spline has the parameters θ (m,), its coefficients in this basis; its roughness is the sum of the squares of the
    last m − 2. A line has only the first two.
    """

    def __init__(self, knots: Array, center: float) -> None:
        m = len(knots)
        Q, R = banded_matrices(knots)
        second_derivatives = np.zeros((m, m))
        # γ'Rγ is the roughness: with γ = L⁻ᵀψ for R = LL' it is ψ'ψ. Lines are first and have exactly none.
        second_derivatives[1:-1, 2:] = np.linalg.inv(np.linalg.cholesky(R)).T
        values = np.empty((m, m))
        values[:, 0], values[:, 1] = 1.0, knots - center
        values[:, 2:] = np.linalg.pinv(Q.T) @ R @ second_derivatives[1:-1, 2:]
        self.knots = knots
        self.center = center  # log odds at which the slope direction is 0
        self.values = values  # (m, m) values at the knots; one column per basis function
        self.second_derivatives = second_derivatives  # (m, m) likewise
        # (m − 1, 4, m): for each segment the values at both ends, then the second derivatives there.
        self.segment_ends = np.stack([values[:-1], values[1:], second_derivatives[:-1], second_derivatives[1:]], axis=1)

    def likelihood(self, data: OutcomeCounts, theta: Array) -> Likelihood:
        """The likelihood of the parameters θ (d,), of which the last ones may be left out if they are 0."""
        d = len(theta)
        # The columns of `sums`, of which each segment has a row: the value, the gradient by `segment_ends` (4), and the
        # lower triangle of the Hessian (10).
        values, second_derivatives = self.values[:, :d] @ theta, self.second_derivatives[:, :d] @ theta
        sums = spline_likelihood(data.x, data.events, data.nonevents, self.knots, values, second_derivatives)
        segment_ends = self.segment_ends[:, :, :d]
        moments = sums[:, 5 + _SYMMETRIC_INDEX].reshape(-1, 4, 4)
        end_rows = segment_ends.reshape(-1, d)
        hessian = end_rows.T @ (moments @ segment_ends).reshape(-1, d)
        return Likelihood(
            float(sums[:, 0].sum()),
            sums[:, 1:5].reshape(-1) @ end_rows,
            (hessian + hessian.T) / 2,
            float(data.mass.sum()),
            len(data.x),
        )

    def minimize(self, data: OutcomeCounts, penalty: float, start: Array) -> Minimum:
        """Minimize loss + penalty · roughness; an infinite penalty gives a line."""
        if math.isinf(penalty):
            return minimize_newton(lambda theta: self.likelihood(data, theta), start[:2])
        strength = np.full(len(self.knots), penalty / data.mass.sum())
        strength[:2] = 0.0
        initial = np.zeros(len(self.knots))
        initial[: len(start)] = start
        return minimize_newton(
            lambda theta: self.likelihood(data, theta), initial, Ridge(strength, np.zeros(len(initial)))
        )

    def curve(self, theta: Array) -> NaturalSpline:
        """The curve with these parameters; a line has two knots."""
        knot_index = [0, -1] if len(theta) == 2 else slice(None)
        return NaturalSpline(self.knots[knot_index], (self.values[:, : len(theta)] @ theta)[knot_index])


# Position of entry (a, b) of a symmetric 4 × 4 matrix, row by row, in its stored lower triangle.
_SYMMETRIC_INDEX = np.array(
    [a * (a + 1) // 2 + b if a >= b else b * (b + 1) // 2 + a for a in range(4) for b in range(4)]
)


def fit_shift(data: OutcomeCounts) -> SplineFit:
    """Fit a single score with events and non-events: a line of slope 1 through the log odds of the event rate."""
    ends = data.x[0] + np.array([0.0, 1.0])
    line = NaturalSpline(ends, ends + math.log(data.events[0] / data.nonevents[0]) - data.x[0])
    return SplineFit(line, 1.0, 0, True, math.inf)


def fit_spline(data: OutcomeCounts, knots: Array, penalty: float | None = None) -> SplineFit:
    r"""The natural spline f at these knots that minimizes :math:`F(f) + \lambda\int f''^2`, F minus the log-likelihood.

    If the penalty λ is None, it is chosen from `PENALTY_GRID` and ∞ (a line) to minimize
    :math:`F + 1.4\,\mathrm{edf}`; of equally good penalties the largest is taken. The effective degrees of freedom are
    :math:`\mathrm{edf} = \mathrm{tr}\,(H + 2\lambda K)^{-1} H` with the Hessian H of F at the optimal line: at a curve
    of extreme probabilities, H would be so small that the curve would seem to have no degrees of freedom.
    """
    basis = SplineBasis(knots, float(weighted_sum(data.mass, data.x) / data.mass.sum()))
    groups = data.pool_scores(MAX_SCORE_GROUPS)
    line = basis.minimize(groups, math.inf, np.array([basis.center, 1.0]))  # from the identity
    directions = _curvature_directions(basis, groups, line.theta)
    start, n_passes = line.theta, line.n_passes + 1
    if penalty is None:
        penalty, start, n_selection_passes = _select_penalty(basis, groups, line, directions)
        n_passes += n_selection_passes
    optimum = basis.minimize(data, penalty, start)
    return SplineFit(
        basis.curve(optimum.theta),
        directions.degrees_of_freedom(penalty),
        n_passes + optimum.n_passes,
        optimum.converged,
        penalty,
    )


class CurvatureDirections(NamedTuple):
    """Curvature and gradient, at the optimal line, along the directions orthogonal to lines."""

    curvature: Array  # (m − 2,) the curvature of F along each of them
    gradient: Array  # (m − 2,) the gradient of F along each of them

    def degrees_of_freedom(self, penalty: float) -> float:
        """Degrees of freedom: 2 for the line, plus those of the other directions after shrinkage."""
        return 2.0 + float((self.curvature / (self.curvature + 2 * penalty)).sum())

    def max_likelihood_gain(self, penalty: float) -> float:
        """About twice the possible decrease of F from the line, by a quadratic approximation."""
        return float((self.gradient**2 / (self.curvature + 2 * penalty)).sum())


def _curvature_directions(basis: SplineBasis, data: OutcomeCounts, line: Array) -> CurvatureDirections:
    """Curvature and gradient of F along its principal directions at the optimal line with parameters `line` (2,).

    Along each direction, the line is adjusted so that F stays minimal.
    """
    if len(np.unique(data.x)) < 3:
        return CurvatureDirections(np.empty(0), np.empty(0))
    likelihood = basis.likelihood(data, np.concatenate([line, np.zeros(len(basis.knots) - 2)]))
    H = likelihood.hessian
    line_adjustment = np.linalg.pinv(H[:2, :2], hermitian=True) @ H[:2, 2:]  # (2, m − 2)
    curvature, eigenvectors = np.linalg.eigh(H[2:, 2:] - H[2:, :2] @ line_adjustment)
    return CurvatureDirections(
        np.maximum(curvature, 0.0),
        eigenvectors.T @ (likelihood.gradient[2:] - likelihood.gradient[:2] @ line_adjustment),
    )


def _select_penalty(
    basis: SplineBasis, data: OutcomeCounts, line: Minimum, directions: CurvatureDirections
) -> tuple[float, Array, int]:
    """The penalty with the smallest criterion, θ of its curve, and the number of passes.

    Penalties for which a quadratic approximation shows that the line is better are skipped.
    """
    theta, n_passes, chosen_penalty, chosen_theta = line.theta, 0, math.inf, line.theta
    line_cost = DEGREES_OF_FREEDOM_FACTOR * directions.degrees_of_freedom(math.inf)
    line_criterion = min_criterion = line.likelihood.value + line_cost
    for penalty in PENALTY_GRID * data.mass.sum() if len(directions.curvature) else ():
        cost = DEGREES_OF_FREEDOM_FACTOR * directions.degrees_of_freedom(penalty)
        if line.likelihood.value + cost - directions.max_likelihood_gain(penalty) > line_criterion:
            continue
        optimum = basis.minimize(data, penalty, theta)
        theta, n_passes = optimum.theta, n_passes + optimum.n_passes
        criterion = optimum.likelihood.value + cost
        if criterion < min_criterion - CRITERION_TOLERANCE * (1 + abs(min_criterion)):
            min_criterion, chosen_penalty, chosen_theta = criterion, penalty, theta
    return chosen_penalty, chosen_theta, n_passes


def place_knots(data: OutcomeCounts, n_knots: int) -> Array:
    """Knots at equally spaced quantiles from the first to the last score, moved apart where they are too close.

    An isotonic regression of the quantiles minus their smallest distances keeps the knots that far apart. With it,
    mirrored scores have mirrored knots, and small changes of the scores move the knots little.
    """
    x, w = data.x, data.mass
    w = w * max(1.0, n_knots / w.sum())
    inner = np.array(weighted_quantiles(x, w, tuple(np.arange(1, n_knots - 1) / (n_knots - 1))))
    min_gap = MIN_KNOT_GAP * (x[-1] - x[0]) / (n_knots - 1)
    offsets = min_gap * np.arange(1, n_knots - 1)
    increasing = isotonic_means(np.ones(len(inner)), inner - offsets)
    spaced = np.clip(increasing, x[0], x[-1] - min_gap * (n_knots - 1)) + offsets
    return np.concatenate([x[:1], spaced, x[-1:]])

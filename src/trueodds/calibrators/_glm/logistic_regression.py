"""Binary logistic regression: likelihood, maximum likelihood fits, likelihood contours, and notes on separation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.special import expit

from trueodds.binning.sorted_scores import group_starts
from trueodds.calibrators._glm.fit_data import InMemory, SummableRows
from trueodds.calibrators._glm.newton import MAX_FINAL_GRADIENT, minimize_newton
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood

MAX_COEFFICIENT = 1e100  # larger than any coefficient of a fit
Coefficient = Annotated[float, Range(-MAX_COEFFICIENT, MAX_COEFFICIENT)]
_ROWS_PER_BLOCK = 1 << 13  # rows per block: temporaries stay in cache, and linear algebra stays in one thread
_CONSTANT_COLUMN_TOLERANCE = 1e-9  # a column that varies by less, relative to its size, is constant
_COLLINEARITY_TOLERANCE = 1e-8  # share of the variance below which columns are collinear


class LogisticRows(NamedTuple):
    """Rows of a binary logistic model."""

    X: Array  # (n, m) features, best column by column in memory; the first are ones if there is an intercept
    y: Array  # (n,) outcome shares
    w: Array  # (n,) weights
    offset: Array | None = None  # (n,) added to the log odds


def logistic_likelihood(X: Array, y: Array, w: Array, theta: Array, offset: Array | None = None) -> Likelihood:
    r"""Sums of the likelihood of the model :math:`\mathrm{logit}\,q_i = \eta_i = o_i + X_i\theta`, with derivatives.

    .. math:: F = \sum_i w_i\,[\log(1 + e^{\eta_i}) - y_i\eta_i], \quad
        \nabla F = \sum_i w_i (q_i - y_i) X_i, \quad \nabla^2 F = \sum_i w_i q_i (1 - q_i) X_i^\top X_i

    Convex in θ. X is (n, m), best column by column in memory, y (n,) shares, w (n,), θ (m,), o (n,). No difference of
    nearly equal numbers is taken, so a gradient of 1e-12 per row is as accurate as one of 0.1. Cost: O(nm²) time, O(m²)
    memory beyond a block.

    >>> one = logistic_likelihood(np.ones((4, 1)), np.array([1.0, 1, 1, 0]), np.ones(4), np.log([3.0]))
    >>> one.gradient.round(12).tolist(), one.hessian.round(12).tolist()
    ([0.0], [[0.75]])
    """
    m = X.shape[1]
    total = Likelihood(0.0, np.zeros(m), np.zeros((m, m)), 0.0, 0)
    for start in range(0, len(X), _ROWS_PER_BLOCK):
        block = slice(start, start + _ROWS_PER_BLOCK)
        total = total + _block_likelihood(
            X[block], y[block], w[block], theta, None if offset is None else offset[block]
        )
    return total


def _block_likelihood(X: Array, y: Array, w: Array, theta: Array, offset: Array | None) -> Likelihood:
    columns = X.T
    eta = np.zeros(len(X)) if offset is None else offset.copy()
    for j, column in enumerate(columns):
        eta += theta[j] * column
    is_positive = eta >= 0
    abs_eta = np.abs(eta)
    exp_minus_abs_eta = np.exp(-abs_eta)
    larger_prob = 1 / (1 + exp_minus_abs_eta)  # of the two outcomes: of the event where η ≥ 0
    smaller_prob = exp_minus_abs_eta * larger_prob
    # The share of the less probable outcome: with it the gradient w(q − y) needs no difference of nearly equal numbers.
    opposite_share = np.where(is_positive, 1 - y, y)
    value = float(weighted_sum(w, np.log1p(exp_minus_abs_eta) + abs_eta * opposite_share))
    residuals = (
        w * np.where(is_positive, 1.0, -1.0) * (opposite_share * larger_prob - (1 - opposite_share) * smaller_prob)
    )
    weighted_columns = [(w * larger_prob * smaller_prob) * column for column in columns]
    gradient = np.array([residuals @ column for column in columns])
    hessian = np.array([[weighted @ column for column in columns] for weighted in weighted_columns])
    return Likelihood(value, gradient, hessian.reshape(len(theta), len(theta)), float(w.sum()), len(w))


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """The maximum likelihood coefficients."""

    theta: Array  # (m,)
    value: float  # minus the log-likelihood at θ
    n_passes: int  # over the rows
    converged: bool  # whether they are finite
    rank: int  # number of directions that the rows determine
    means: Array | None = None  # (m,) of the columns, 0 of the first


def fit_logistic(
    X: Array, y: Array, w: Array, default_theta: Array, *, smooth: bool = False, intercept: bool = True
) -> LogisticFit:
    """Maximum likelihood θ (m,) for columns X (n, m), the first of ones, outcome shares y (n,) and weights w (n,).

    Directions that the rows do not identify stay as in `default_theta` (m,). With `smooth` the targets are the
    `smoothed_targets`, for which θ is always finite. Without `intercept`, no column is of ones. Newton's method runs on
    decorrelated columns, so that nearly equal scores or nearly collinear columns cause no loss of accuracy.
    """
    return fit_logistic_from_sums(InMemory(LogisticRows(X, y, w)), default_theta, smooth=smooth, intercept=intercept)


def fit_logistic_from_sums(
    data: SummableRows, default_theta: Array, *, smooth: bool = False, intercept: bool = True
) -> LogisticFit:
    """Fit as `fit_logistic` does, from sums over `LogisticRows`."""
    moments: ColumnMoments = data.sum(partial(ColumnMoments.from_rows, intercept=intercept))
    return _maximize_likelihood(data, moments, default_theta, smooth=smooth, intercept=intercept)


def fit_finite_from_sums(data: SummableRows, default_theta: Array, *, intercept: bool = True) -> LogisticFit:
    """Maximum likelihood θ, or where it is not finite, that of the smoothed targets with `converged` False."""
    moments: ColumnMoments = data.sum(partial(ColumnMoments.from_rows, intercept=intercept))
    maximize = partial(_maximize_likelihood, data, moments, default_theta, intercept=intercept)
    optimum = maximize(smooth=False)
    return optimum if optimum.converged else replace(maximize(smooth=True), converged=False)


def _maximize_likelihood(
    data: SummableRows, moments: ColumnMoments, default_theta: Array, *, smooth: bool, intercept: bool
) -> LogisticFit:
    """Maximize the likelihood for decorrelated columns, with the log odds of the mean target as starting intercept."""
    n_events, n_nonevents = moments.n_events, moments.n_nonevents
    if smooth:
        data = data.map_rows(partial(_smooth_targets, n_events=n_events, n_nonevents=n_nonevents))
        smoothed_events = n_events * ((n_events + 1) / (n_events + 2)) + n_nonevents / (n_nonevents + 2)
        n_events, n_nonevents = smoothed_events, n_events + n_nonevents - smoothed_events
    transformation = moments.decorrelation
    start = -transformation.inverse @ default_theta
    if intercept:
        start = start + transformation.inverse[:, 0] * np.log((n_events + 1) / (n_nonevents + 1))
    decorrelated = data.map_rows(partial(transformation.transform, default_theta=default_theta))
    if not len(start):  # no direction is identifiable
        likelihood = decorrelated.sum(partial(_likelihood_of_rows, theta=start))
        return LogisticFit(default_theta, likelihood.value, n_passes=1, converged=True, rank=0, means=moments.means)
    optimum = minimize_newton(
        lambda theta: decorrelated.sum(partial(_likelihood_of_rows, theta=theta)), start,
        sums_at_points=lambda points: decorrelated.sums(partial(_likelihood_of_rows, theta=theta) for theta in points),
    )  # fmt: skip
    theta = default_theta + transformation.to_original @ optimum.theta
    converged = optimum.max_gradient <= MAX_FINAL_GRADIENT if smooth else optimum.converged
    return LogisticFit(theta, optimum.likelihood.value, optimum.n_passes, converged, len(start), moments.means)


def _likelihood_of_rows(rows: LogisticRows, theta: Array) -> Likelihood:
    return logistic_likelihood(rows.X, rows.y, rows.w, theta, rows.offset)


def _smooth_targets(rows: LogisticRows, n_events: float, n_nonevents: float) -> LogisticRows:
    return rows._replace(y=_smooth_shares(rows.y, n_events, n_nonevents))


def smoothed_targets(y: Array, w: Array) -> Array:
    r"""Platt's smoothed targets, which keep every fit finite by one added outcome of either kind.

    .. math:: t = y\,\frac{N_1 + 1}{N_1 + 2} + (1 - y)\,\frac{1}{N_0 + 2}

    >>> smoothed_targets(np.array([1.0, 0.0, 0.0]), np.ones(3)).round(4).tolist()
    [0.6667, 0.25, 0.25]
    """
    return _smooth_shares(y, float(weighted_sum(w, y)), float(weighted_sum(w, 1 - y)))


def _smooth_shares(y: Array, n_events: float, n_nonevents: float) -> Array:
    """Smoothed targets (n,) of outcome shares y, given the total weights of events and non-events."""
    return y * ((n_events + 1) / (n_events + 2)) + (1 - y) / (n_nonevents + 2)


def intercept_and_score(x: Array) -> Array:
    """The columns (1, x) of a logistic model of one score, (n, 2)."""
    return np.stack([np.ones(len(x)), x]).T


def separation_note(n_curves: int = 1) -> Note:
    which = "" if n_curves == 1 else f" in {n_curves:,} curves"
    return Note(
        "TN515",
        f"The scores separate events from non-events{which}, or all outcomes are the same: no finite coefficients are"
        " optimal, so Platt's smoothed targets were used, which add one outcome of either kind.",
    )


def curve_notes(curves: Sequence[Any]) -> list[Note]:
    """Notes on curves without a finite optimum (`converged` is False), and on those that are `nonincreasing`."""
    n_separated = sum(not curve.converged for curve in curves)
    return [
        *([separation_note(n_separated)] if n_separated else []),
        *nonincreasing_curve_notes(sum(curve.nonincreasing for curve in curves), len(curves)),
    ]


def nonincreasing_curve_notes(n_nonincreasing: int, n_curves: int = 1) -> list[Note]:
    if not n_nonincreasing:
        return []
    which = (
        "the curve does not increase"
        if n_curves == 1
        else f"{n_nonincreasing:,} of {n_curves:,} curves do not increase"
    )
    return [
        Note(
            "TN517",
            f"Event rates do not increase with the predicted probability: {which} with the score. The predictions are"
            " no more informative than chance, or their ranking is reversed; are the classes in the right order?",
        )
    ]


class Decorrelation(NamedTuple):
    """Transformation of the columns of `LogisticRows` to r uncorrelated ones of variance 1, and back."""

    shift: Array  # (m,) added to each column
    varies: Array  # (m,) bool: whether the column varies
    from_shifted: Array  # (m, r) by which the shifted columns are multiplied
    to_original: Array  # (m, r) from the coefficients of the new columns to those of the old ones
    inverse: Array  # (r, m) for which inverse @ to_original = 1

    def transform(self, rows: LogisticRows, default_theta: Array) -> LogisticRows:
        """The rows with transformed columns, and as offset the log odds that `default_theta` (m,) predicts."""
        shifted_columns = (rows.X.T + self.shift[:, None]) * self.varies[:, None]
        columns = np.zeros((self.from_shifted.shape[1], len(rows.X)))
        for i in range(len(columns)):
            for j, shifted_column in enumerate(shifted_columns):
                columns[i] += self.from_shifted[j, i] * shifted_column
        return LogisticRows(columns.T, rows.y, rows.w, rows.X @ default_theta)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMoments:
    """Weights, means and sums of squares of the columns of logistic rows; those of batches add up.

    >>> X, y, w = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 9.0]]), np.array([1.0, 0.0, 1.0]), np.ones(3)
    >>> first = ColumnMoments.from_rows(LogisticRows(X[:1], y[:1], w[:1]))
    >>> second = ColumnMoments.from_rows(LogisticRows(X[1:], y[1:], w[1:]))
    >>> (first + second).products.tolist(), ColumnMoments.from_rows(LogisticRows(X, y, w)).products.tolist()
    ([[3.0, 0.0], [0.0, 26.0]], [[3.0, 0.0], [0.0, 26.0]])
    """

    total_weight: float  # Σ w
    n_events: float  # Σ w y
    n_nonevents: float  # Σ w (1 − y)
    means: Array  # (m,) 0 where a column is not shifted: of the intercept, or where there is none
    squares: Array  # (m,) Σ w x², as they are
    products: Array  # (m, m) Σ w zz', about the means

    @classmethod
    def from_rows(cls, rows: LogisticRows, intercept: bool = True) -> ColumnMoments:
        X, y, w, _ = rows
        total, means, columns = float(w.sum()), np.zeros(X.shape[1]), np.ascontiguousarray(X.T, dtype=np.float64)
        if intercept and total > 0:
            means[1:] = [weighted_sum(w, column) / total for column in columns[1:]]
        squares = np.array([weighted_sum(w, column**2) for column in columns])
        centered = columns - means[:, None]
        products = np.array([[weighted_sum(w * a, b) for b in centered] for a in centered])
        return cls(total, float(weighted_sum(w, y)), float(weighted_sum(w, 1 - y)), means, squares, products)

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        total, difference = self.total_weight + other.total_weight, other.means - self.means
        other_share = other.total_weight / total if total > 0 else 0.0
        return ColumnMoments(
            total,
            self.n_events + other.n_events,
            self.n_nonevents + other.n_nonevents,
            self.means + difference * other_share,
            self.squares + other.squares,
            self.products + other.products + self.total_weight * other_share * np.outer(difference, difference),
        )

    @property
    def decorrelation(self) -> Decorrelation:
        m, total = len(self.means), self.total_weight
        std, root_mean_square = np.sqrt(self.products.diagonal() / total), np.sqrt(self.squares / total)
        varies = std > _CONSTANT_COLUMN_TOLERANCE * root_mean_square
        std = np.where(varies, std, 1.0)
        correlation = self.products * np.outer(varies, varies) / total / np.outer(std, std)
        eigenvalues, eigenvectors = np.linalg.eigh(correlation)
        identifiable = eigenvalues > _COLLINEARITY_TOLERANCE * max(float(eigenvalues[-1]), _COLLINEARITY_TOLERANCE)
        eigenvalues, eigenvectors = np.sqrt(eigenvalues[identifiable]), eigenvectors[:, identifiable]
        center = np.eye(m)
        center[0, 1:] = -self.means[1:]
        from_standardized = eigenvectors / std[:, None] / eigenvalues
        inverse = (eigenvectors * std[:, None] * eigenvalues).T @ np.linalg.inv(center)
        return Decorrelation(-self.means, varies, from_standardized, center @ from_standardized, inverse)


MAX_SCORE_GROUPS = 1 << 11  # largest number of groups of neighboring scores, which limits the cost of a contour
_INCREASE_TOLERANCE = 1e-10  # relative, of an increase of the loss; sums over 1e6 rows have no more digits
_EQUAL_SCORES_TOLERANCE = 1e-18  # relative variance below which scores are equal
_MAX_NEWTON_STEPS = 200  # toward a point of the contour


@dataclass(frozen=True, slots=True, eq=False)
class ScoreCells:
    """Rows pooled by their score, which is the predicted log odds or probability."""

    x: Array  # (m,) scores, increasing
    w: Array  # (m,) Σw > 0 at each score
    wy: Array  # (m,) Σwy at each score

    def pool_neighbors(self) -> ScoreCells:
        """Pool the scores into at most `MAX_SCORE_GROUPS` groups of neighbors of about equal weight, at their means."""
        if len(self.x) <= MAX_SCORE_GROUPS:
            return self
        starts = group_starts(self.w, MAX_SCORE_GROUPS)
        w, wx, wy = (np.add.reduceat(values, starts) for values in (self.w, self.w * self.x, self.wy))
        return ScoreCells(wx / w, w, wy)


def group_by_score(x: Array, y: Array, w: Array) -> ScoreCells:
    """Pool rows x, y, w (n,) with positive weight by increasing distinct score, so that their order does not matter.

    >>> group_by_score(np.array([2.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.0]), np.ones(3)).w.tolist()
    [1.0, 2.0]
    """
    has_weight = w > 0
    scores, score_index = np.unique(x[has_weight], return_inverse=True)
    return ScoreCells(scores, np.bincount(score_index, w[has_weight]), np.bincount(score_index, (w * y)[has_weight]))


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodSurface:
    r"""The loss F, minus the log-likelihood of log odds :math:`\tau + \gamma x`, around its minimum θ.

    The coordinates β are scaled by the curvature, so that F rises by about :math:`|\beta|^2 / 2` and its contours are
    nearly circles: :math:`(\tau, \gamma) = \theta + T\beta`. If all scores are equal the slope is fixed.
    """

    theta: Array  # (2,) τ and γ at the minimum
    beta_to_theta: Array  # (2, 2) T, the linear map from β to changes of (τ, γ)
    eta: Array  # (m,) log odds at the minimum
    eta_by_beta: Array  # (2, m) derivatives of the log odds by β
    rows: ScoreCells  # the rows, pooled by score
    slope_fixed: bool  # whether the rows do not determine the slope; F then has curvature 1 along it

    @classmethod
    def around_minimum(cls, rows: ScoreCells, theta: Array) -> LikelihoodSurface:
        """The surface around the minimum θ (2,) of the negative log-likelihood of these rows."""
        total_weight = float(rows.w.sum())
        mean = float(rows.w @ rows.x) / total_weight
        eta = theta[0] + theta[1] * rows.x
        curvature = rows.w * expit(eta) * expit(-eta)
        # β₁ changes the log odds at the curvature-weighted mean score, β₂ the slope around it: these are uncorrelated.
        center = float(curvature @ rows.x / curvature.sum()) if len(rows.x) > 1 else mean
        centered = rows.x - center
        shift_curvature, slope_curvature = float(curvature.sum()), float(curvature @ centered**2)
        slope_fixed = not slope_curvature > _EQUAL_SCORES_TOLERANCE * float(curvature @ rows.x**2)
        a, b = 1 / np.sqrt(shift_curvature), 0.0 if slope_fixed else 1 / np.sqrt(slope_curvature)
        return cls(
            theta,
            np.array([[a, -center * b], [0.0, b]]),
            eta,
            np.stack([np.full(len(centered), a), centered * b]),
            rows,
            slope_fixed,
        )

    def to_tau_gamma(self, beta: Array) -> Array:
        return self.theta + beta @ self.beta_to_theta.T

    def radii(self, angles: Array, loss_increase: float, start: Array | float = 1.0) -> Array:
        """Distance |β| in the direction of each angle at which F has risen by `loss_increase`, (a,).

        It is in units of √(2 loss_increase), which it would be if F were quadratic. `start` is a guess in these units.
        F is convex, so Newton's method from outside the contour is monotone.
        """
        directions = unit_vectors(angles)
        steps = directions @ self.eta_by_beta  # (a, m) derivatives of the log odds along each direction
        fixed_slope_curvature = directions[:, 1] ** 2 * float(self.slope_fixed)
        unit = np.sqrt(2 * loss_increase)
        r = np.full(len(angles), unit) * start
        softplus_at_minimum, q = _softplus_and_derivative(self.eta)
        expected = self.rows.w * q  # at a minimum observed and fitted sums are equal
        for _ in range(_MAX_NEWTON_STEPS):
            softplus, q = _softplus_and_derivative(self.eta + r[:, None] * steps)
            increases = (
                (softplus - softplus_at_minimum) @ self.rows.w
                - r * (steps @ expected)
                + fixed_slope_curvature * r**2 / 2
            )
            slopes = (steps * (self.rows.w * q - expected)).sum(axis=1) + fixed_slope_curvature * r
            if (np.abs(increases - loss_increase) <= _INCREASE_TOLERANCE * (loss_increase + 1)).all():
                break
            # From inside, a step leads outside; a step from outside does not go beyond r/16.
            r = np.maximum(r - (increases - loss_increase) / np.maximum(slopes, 1e-300), r / 16)
        return r / unit

    def gradients(self, beta: Array) -> Array:
        gradient = (self.rows.w * (expit(self.eta + beta @ self.eta_by_beta) - expit(self.eta))) @ self.eta_by_beta.T
        gradient[:, 1] += float(self.slope_fixed) * beta[:, 1]
        return gradient


def _softplus_and_derivative(eta: Array) -> tuple[Array, Array]:
    """log(1 + exp η) and its derivative, the probability 1/(1 + exp(−η)), from a single exponential."""
    e = np.exp(-np.abs(eta))
    return np.log1p(e) + np.maximum(eta, 0), np.where(eta >= 0, 1, e) / (1 + e)


def unit_vectors(angles: Array) -> Array:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)

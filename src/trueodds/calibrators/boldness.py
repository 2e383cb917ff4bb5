"""Boldness-recalibration: the most spread-out probabilities that are still probably calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from trueodds.calibrators._glm.likelihood_contour import (
    LikelihoodSurface,
    ScoreCells,
    group_by_score,
    unit_vectors,
)
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, Probabilities, log_ratio, replacement_notes
from trueodds.calibrators._glm.logistic_regression import (
    curve_notes,
    fit_logistic,
    intercept_and_score,
    logistic_likelihood,
    smoothed_targets,
)
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.llo import IDENTITY_PARAMETERS, LloMap
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import Probability
from trueodds.core.typing import Array

_LOG_LIKELIHOOD_ROUNDING = 1e-12  # rounding error in nats
_N_ANGLES = 64  # of points on the contour in each of three increasingly fine searches
_TIE_TOLERANCE = 1e-9  # relative difference up to which two standard deviations are tied
_MAX_NEWTON_STEPS = 20
_MAX_RELATIVE_MOVE = 0.1  # largest move from the start, relative to 1 + |θ|; beyond it Newton's method has diverged
_STEP_TOLERANCE = 1e-10  # relative to 1 + |θ|: a smaller step ends the search


class BoldnessMap(LloMap):
    """The boldest shift and slope that keep the required posterior probability of calibration."""


class BoldnessSpec(CalibratorSpec):
    r"""Boldness-recalibration: the largest spread of the probabilities that is still probably calibrated.

    For two classes. It trades likelihood for spread on purpose: for the most accurate probabilities use `llo`.

    Parameters
    ----------
    posterior : float, default=0.95
        Posterior probability t of calibration that the recalibrated probabilities must keep. It can be reached only
        with enough rows, 19 for 0.95; with fewer rows the fit is refused (TO514).
    prior : float, default=0.5
        Prior probability π of calibration.

    Notes
    -----
    .. math:: \max_{\tau, \gamma}\ \mathrm{sd}(q), \quad \mathrm{logit}\,q = \tau + \gamma\,\mathrm{logit}\,p, \qquad
        P(\text{calibrated} \mid y, q) \ge t

    The posterior probability is approximated by BIC. Such maps form a group, so the maximum likelihood of the
    recalibrated predictions equals that of the original ones, and the constraint is a convex set, :math:`\ell(\tau,
    \gamma) \ge \ell_{\max} - [\log n - \mathrm{logit}\,t + \mathrm{logit}\,\pi]`. It takes one fit and a search along
    the contour instead of a fit per candidate. Weights are numbers of rows and n is their sum; sd divides by n − 1. If
    the scores separate the outcomes, the targets are smoothed by one added outcome of either kind, and `converged` is
    False. Of two equally bold maps the one with the larger slope is taken.

    Cost: O(n log n), some 15 passes.

    References
    ----------
    .. [1] Guthrie & Franck (2024).

    Examples
    --------
    >>> P = np.array([[0.3, 0.7], [0.7, 0.3]] * 40)
    >>> BoldnessSpec().fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1] * 10], np.ones(80)).describe()
    'δ = 1, γ = 1.8345'
    """

    name, map_type = "boldness", BoldnessMap
    takes_logs = True
    two_classes = True
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "of two equally bold maps that mirror each other, one is taken"
    }
    posterior: Probability = 0.95
    prior: Probability = 0.5
    min_prob: MinProb = MIN_PROB

    def max_log_likelihood_loss(self, n: float) -> float:
        """Allowed loss of log-likelihood for n rows; raises TO514 if the posterior probability cannot be reached."""
        max_loss = float(np.log(n) - logit(self.posterior) + logit(self.prior))
        if max_loss < -_LOG_LIKELIHOOD_ROUNDING:
            max_posterior = float(expit(np.log(n) + logit(self.prior)))
            raise InputError(
                "TO514",
                f"With {n:g} rows the posterior probability of calibration is at most {format_number(max_posterior)}.",
                f"posterior={self.posterior:g}",
                "Choose a smaller posterior, or use more rows.",
            )
        # 19 rows for .95 allow a loss of exactly 0: the square root of a rounding error would show in the slope.
        return max_loss if max_loss > _LOG_LIKELIHOOD_ROUNDING else 0.0

    def fit(self, P: Probabilities, Y: Array, w: Array) -> BoldnessMap:
        """Fit shift and slope by maximum likelihood, then find the boldest ones on the contour of the allowed loss."""
        max_loss = self.max_log_likelihood_loss(float(w.sum()))
        x, y = log_ratio(P, self.min_prob), Y[:, 1]
        optimum = fit_logistic(intercept_and_score(x), y, w, IDENTITY_PARAMETERS)
        converged = optimum.converged
        if not converged:
            optimum = fit_logistic(intercept_and_score(x), y, w, IDENTITY_PARAMETERS, smooth=True)
            y = smoothed_targets(y, w)
        theta = optimum.theta
        if optimum.rank == 2 and max_loss > 0:
            theta = _boldest_on_contour(group_by_score(x, y, w), theta, max_loss)
        return BoldnessMap(float(theta[0]), float(theta[1]), optimum.n_passes, converged, self.min_prob)

    def notes(self, calibration_map: BoldnessMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob) + curve_notes([calibration_map])
        rows = group_by_score(log_ratio(P, self.min_prob), Y[:, 1], w)
        optimum = fit_logistic(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, IDENTITY_PARAMETERS)
        spreads = [
            format_number(_std_of_probabilities(rows, theta))
            for theta in (np.array([calibration_map.tau, calibration_map.gamma]), IDENTITY_PARAMETERS, optimum.theta)
        ]
        text = (
            "The standard deviation of the probabilities is {} after and {} before recalibration, and {} at maximum"
            " likelihood".format(*spreads)
        )
        if calibration_map.converged:
            text += (
                "; the posterior probability of calibration is"
                f" {format_number(self._posterior_probability(rows, calibration_map, optimum.value))}"
            )
        return [*fit_notes, Note("TN518", text + ".")]

    def _posterior_probability(self, rows: ScoreCells, calibration_map: BoldnessMap, min_loss: float) -> float:
        """Posterior probability of calibration of the recalibrated rows, given the loss at maximum likelihood."""
        loss = logistic_likelihood(
            intercept_and_score(rows.x),
            rows.wy / rows.w,
            rows.w,
            np.array([calibration_map.tau, calibration_map.gamma]),
        ).value
        return float(expit(np.log(rows.w.sum()) + logit(self.prior) - (loss - min_loss)))


def _std_of_probabilities(rows: ScoreCells, theta: Array) -> float:
    """Standard deviation of the recalibrated probabilities, with divisor n − 1."""
    q, n = expit(theta[0] + theta[1] * rows.x), float(rows.w.sum())
    centered = q - weighted_sum(rows.w, q) / n
    return float(np.sqrt(weighted_sum(rows.w, centered**2) / (n - 1))) if n > 1 else 0.0


def _boldest_on_contour(rows: ScoreCells, theta: Array, loss_increase: float) -> Array:
    """The τ and γ (2,) of largest standard deviation on a contour of the loss, `loss_increase` above its minimum.

    `theta` (2,) is the minimum. The contour is searched on three increasingly fine grids of angles, with scores pooled
    in groups, and the result is refined by Newton's method.
    """
    groups = rows.pool_neighbors()
    surface = LikelihoodSurface.around_minimum(groups, theta)
    center_angle, half_width = 0.0, np.pi
    for _ in range(3):
        angles = center_angle + half_width * np.linspace(-1, 1, _N_ANGLES + 1)
        radii = np.sqrt(2 * loss_increase) * surface.radii(angles, loss_increase)
        points = surface.to_tau_gamma(radii[:, None] * unit_vectors(angles))
        stds = np.array([_std_of_probabilities(groups, point) for point in points])
        is_boldest = stds >= stds.max() * (1 - _TIE_TOLERANCE)
        boldest = int(np.argmax(np.where(is_boldest, points[:, 1], -np.inf)))
        center_angle, half_width = float(angles[boldest]), 2 * half_width / _N_ANGLES
    min_loss = logistic_likelihood(intercept_and_score(rows.x), rows.wy / rows.w, rows.w, theta).value
    return _refine_by_newton(rows, points[boldest], min_loss + loss_increase)


def _refine_by_newton(rows: ScoreCells, theta: Array, target_loss: float) -> Array:
    r"""The point near θ (2,) where the variance V of the probabilities is largest on the contour F = `target_loss`.

    F is the loss. At this point the gradients of F and V are parallel. Newton's method solves :math:`F = c` and
    :math:`V_\tau F_\gamma = V_\gamma F_\tau`; one step is one pass. θ itself is returned if the method diverges.
    """
    X, y = intercept_and_score(rows.x), rows.wy / rows.w
    start, scale = theta, np.abs(theta) + 1
    for _ in range(_MAX_NEWTON_STEPS):
        likelihood = logistic_likelihood(X, y, rows.w, theta)
        # Derivatives of F (gradient ft, fg; Hessian H) and of V (gradient vt, vg; Hessian B) by τ and γ.
        (ft, fg), H = likelihood.gradient, likelihood.hessian
        (vt, vg), B = _variance_derivatives(rows, theta)
        residuals = np.array([likelihood.value - target_loss, vt * fg - vg * ft])
        parallelism_gradient = [
            B[0, 0] * fg + vt * H[0, 1] - B[0, 1] * ft - vg * H[0, 0],
            B[0, 1] * fg + vt * H[1, 1] - B[1, 1] * ft - vg * H[0, 1],
        ]
        try:
            step = np.linalg.solve(np.array([[ft, fg], parallelism_gradient]), residuals)
        except np.linalg.LinAlgError:
            return start
        theta = theta - step
        if not (np.abs(theta - start) < _MAX_RELATIVE_MOVE * scale).all():
            return start  # diverged to another point where the two gradients are parallel
        if (np.abs(step) <= _STEP_TOLERANCE * scale).all():
            break
    return theta


def _variance_derivatives(rows: ScoreCells, theta: Array) -> tuple[Array, Array]:
    """Gradient (2,) and Hessian (2, 2) by (τ, γ) of n times the variance of the recalibrated probabilities."""
    X, n = intercept_and_score(rows.x), float(rows.w.sum())
    q = expit(X @ theta)
    derivative = q * expit(-(X @ theta))
    centered = q - weighted_sum(rows.w, q) / n
    mean = weighted_sum(rows.w * derivative, X) / n
    gradient = 2 * (rows.w * centered * derivative) @ X
    curvature = rows.w * (derivative * derivative + centered * derivative * (1 - 2 * q))
    return gradient, 2 * ((X * curvature[:, None]).T @ X - n * np.outer(mean, mean))

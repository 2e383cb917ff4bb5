"""Likelihood of linear log odds (LLO) recalibration, and the BIC posterior probability of calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, logit

from trueodds.binning.sorted_scores import group_starts
from trueodds.calibrators._glm.log_probabilities import LogProbabilities, log_ratio, probability_pair, resolve_min_prob
from trueodds.calibrators._glm.logistic_regression import (
    LikelihoodSurface,
    ScoreCells,
    fit_logistic,
    group_by_score,
    intercept_and_score,
    logistic_likelihood,
    unit_vectors,
)
from trueodds.calibrators.llo import IDENTITY_PARAMETERS, BoldnessMap, BoldnessSpec
from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_percent
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View

_LOG_LIKELIHOOD_TOLERANCE = 1e-5  # tolerance in nats of the log-likelihood of the boldest map
_MAX_NEWTON_STEPS = 8  # Newton steps to the boldest map
_MAX_LOG_ODDS_IN_BLOCK = 1 << 20  # log odds in memory at a time: 8 MB
MAX_GROUPS = 1 << 10  # maximum number of groups of neighboring scores
_N_CONTOUR_VERTICES = 180  # vertices of a contour


def select_weighted_rows(view: View) -> tuple[LogProbabilities, Array, Array]:
    """Log-probabilities (n, m), outcomes (n, m) and positive weights of rows; two columns for a binary view.

    Weights are numbers of rows: counts are unchanged, other weights are scaled to a mean of 1.
    """
    has_weight = view.w > 0
    return (
        LogProbabilities(view.log_P[has_weight]),
        view.Y[has_weight],
        view.w[has_weight] * (n_represented(view) / view.total),
    )


def format_posterior(p: float) -> str:
    """A posterior probability as a percentage, with bounds near 0 and 1.

    >>> [format_posterior(p).replace("\u00a0", " ") for p in (1e-9, 0.5, 0.99996)]
    ['under 0.01 %', '50.0 %', 'over 99.99 %']
    """
    if p < 1e-4:
        return "under 0.01\u00a0%"
    return "over 99.99\u00a0%" if p > 0.9999 else format_percent(p)


@dataclass(frozen=True, eq=False)
class LloLikelihood:
    r"""The likelihood of a binary view if log odds x are recalibrated to :math:`\tau + \gamma x`, and the posterior.

    By the BIC approximation, forecasts recalibrated with shift τ and slope γ are calibrated with the posterior
    probability

    .. math:: P = \mathrm{logit}^{-1}[\tfrac t2 \log n + \mathrm{logit}\,\pi - (F(\tau, \gamma) - F_{\min})]

    where F is the negative log-likelihood, :math:`F_{\min}` its minimum, n the number of rows, t the number of
    identifiable parameters, and π the prior probability. The minimum is that of the original forecasts for every τ and
    γ, because recalibrating twice is recalibrating once with another shift and slope. Source: Guthrie & Franck (2024).

    >>> plane = LloLikelihood.from_view(View([0.7, 0.3] * 2, [1, 1, 0, 0]))  # uninformative scores: γ = 0
    >>> plane.theta.round(9).tolist(), plane.posterior(plane.log_likelihood_drop(plane.theta)).round(9).tolist()
    ([0.0, 0.0], 0.8)
    """

    score_cells: ScoreCells
    theta: Array  # (2,) the most likely τ and γ
    min_loss: float  # negative log-likelihood F at theta
    rank: int  # number of identifiable parameters
    converged: bool  # whether finite τ and γ maximize the likelihood
    prior: float  # prior probability of calibration

    @classmethod
    def from_view(cls, view: View, min_prob: float = 1e-12, prior: float = 0.5) -> LloLikelihood:
        P, Y, w = select_weighted_rows(view)
        score_cells = group_by_score(log_ratio(P, resolve_min_prob(view, min_prob)), Y[:, 1], w)
        fit = fit_logistic(
            intercept_and_score(score_cells.x), score_cells.wy / score_cells.w, score_cells.w, IDENTITY_PARAMETERS
        )
        return cls(score_cells, fit.theta, fit.value, fit.rank, fit.converged, prior)

    @property
    def n(self) -> float:
        return float(self.score_cells.w.sum())

    @property
    def has_finite_maximum(self) -> bool:
        """Whether a finite shift and slope maximize the likelihood and both are identifiable."""
        return self.converged and self.rank == 2

    @cached_property
    def groups(self) -> ScoreCells:
        """At most 1,024 groups of neighboring scores with the same best fit as all rows."""
        groups = _group_scores(self.score_cells)
        if groups is self.score_cells or not self.converged:
            return groups
        # Fitted values replace outcomes, so the score equations and the best fit are unchanged. On the 95 % contour of
        # 1e5 scores, the log-likelihood is accurate to 6e-5 nats; with the outcomes of groups the error was 0.02.
        return ScoreCells(groups.x, groups.w, groups.w * expit(self.theta[0] + self.theta[1] * groups.x))

    def log_likelihood_drop(self, theta: Array) -> Array:
        """Return the decrease of the log-likelihood in nats from the best fit to `theta` = (τ, γ), on all rows."""
        likelihood = logistic_likelihood(
            intercept_and_score(self.score_cells.x), self.score_cells.wy / self.score_cells.w, self.score_cells.w, theta
        )
        return np.asarray(max(likelihood.value - self.min_loss, 0.0))

    def log_likelihood_drops(self, tau: Array, gamma: Array) -> Array:
        """Return the decreases from the best fit for all τ (a,) and γ (b,), (b, a), on at most 1,024 score groups."""
        groups, losses = self.groups, np.empty((len(gamma), len(tau)))
        n_slopes = max(1, _MAX_LOG_ODDS_IN_BLOCK // (len(tau) * len(groups.x)))
        for start in range(0, len(gamma), n_slopes):
            block = slice(start, start + n_slopes)
            eta = tau[:, None] + gamma[block, None, None] * groups.x
            losses[block] = _softplus(eta) @ groups.w
        # F = Σw log(1 + exp η) − Σwy η. The second sum is linear in τ and γ and needs no loop over rows.
        losses -= tau * groups.wy.sum() + gamma[:, None] * (groups.x @ groups.wy)
        min_group_loss = float(
            _softplus(self.theta[0] + self.theta[1] * groups.x) @ groups.w
            - self.theta @ intercept_and_score(groups.x).T @ groups.wy
        )
        return np.asarray(np.maximum(losses - min_group_loss, 0.0))

    def posterior(self, drop: Array) -> Array:
        """The posterior probability of calibration for a decrease `drop` of the log-likelihood."""
        return np.asarray(expit(self.rank / 2 * np.log(self.n) + logit(self.prior) - drop))

    def boldest_map(self, posterior: float, min_prob: float) -> BoldnessMap:
        """The boldest map of that posterior (`BoldnessSpec`), of at most 1,024 groups of neighboring scores."""
        groups = self.groups
        event_rate = groups.wy / groups.w
        spec = BoldnessSpec(posterior, self.prior, min_prob)
        boldest = spec.fit(probability_pair(groups.x), np.stack([1 - event_rate, event_rate], axis=1), groups.w)
        if groups is self.score_cells or not self.has_finite_maximum:
            return boldest
        # The map above is that of the groups. Newton steps move it along the line from the best fit until the decrease
        # of the log-likelihood on all rows is the one that gives the required posterior.
        direction = np.array([boldest.tau, boldest.gamma]) - self.theta
        max_drop, step = spec.max_log_likelihood_loss(self.n), 1.0
        for _ in range(_MAX_NEWTON_STEPS):
            likelihood = logistic_likelihood(
                intercept_and_score(self.score_cells.x),
                self.score_cells.wy / self.score_cells.w,
                self.score_cells.w,
                self.theta + step * direction,
            )
            if (
                abs(likelihood.value - self.min_loss - max_drop) <= _LOG_LIKELIHOOD_TOLERANCE
                or not likelihood.gradient @ direction > 0
            ):
                break
            step -= (likelihood.value - self.min_loss - max_drop) / float(likelihood.gradient @ direction)
        tau, gamma = self.theta + step * direction
        return replace(boldest, tau=float(tau), gamma=float(gamma))

    def posterior_contour(self, posterior: float) -> Array | None:
        """The contour of τ and γ, (m, 2), with that posterior; None if no map attains it."""
        max_drop = float(np.log(self.n) + logit(self.prior) - logit(posterior))
        if max_drop <= 0:
            return None
        surface = LikelihoodSurface.around_minimum(self.groups, self.theta)
        angles = np.linspace(0, 2 * np.pi, _N_CONTOUR_VERTICES + 1)
        return surface.to_tau_gamma(
            np.sqrt(2 * max_drop) * surface.radii(angles, max_drop)[:, None] * unit_vectors(angles)
        )


def _group_scores(score_cells: ScoreCells) -> ScoreCells:
    """At most 1,024 groups of neighboring scores, by equal weight and by equal range of scores.

    For rare events the few most influential scores are far apart: by weight alone they would form a single group.
    """
    if len(score_cells.x) <= MAX_GROUPS:
        return score_cells
    steps = np.diff(score_cells.x, prepend=score_cells.x[0])
    first = group_starts(score_cells.w / score_cells.w.sum() + steps / steps.sum(), MAX_GROUPS)
    w, wx, wy = (
        np.add.reduceat(values, first) for values in (score_cells.w, score_cells.w * score_cells.x, score_cells.wy)
    )
    return ScoreCells(wx / w, w, wy)


def _softplus(eta: Array) -> Array:
    """log(1 + exp η)."""
    return np.asarray(np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0))

"""The MCLLO likelihood of shifts and slopes of log odds, and its likelihood-ratio, Wald and score tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.calibrators._glm.baseline_logits import baseline_index
from trueodds.calibrators._glm.log_probabilities import MIN_PROB_OF_LOGITS, LogProbabilities, floored_logs, softmax
from trueodds.calibrators._glm.newton import Minimum, minimize_newton
from trueodds.calibrators._glm.parameter_covariance import (
    IndependentUnits,
    ParameterCovariance,
    ScoreVectors,
    jackknife_covariance,
    sandwich_covariance,
)
from trueodds.calibrators._glm.wald import critical_value, upper_tail, wald_statistic, whitening_matrix
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.holm import holm
from trueodds.lenses.view import View
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class

SUPREMUM_TOLERANCE = 1e-9  # tolerance in nats of a supremum that is not attained


@dataclass(frozen=True, eq=False)
class MclloModel:
    """Log odds of a view against the baseline; the parameters are (γ, τ) of each other class, d = 2(K − 1)."""

    P: Array  # (n, K) tested probabilities: clipped and normalized
    x: Array  # (n, K) log odds against the baseline; 0 for rows without weight
    Y: Array  # (n, K)
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    n: Array  # (n,) rows in each cell
    baseline: int
    n_clipped: int  # number of rows clipped at min_prob
    n_impossible: int  # number of rows with an observed outcome of predicted probability 0
    units: IndependentUnits | None = (
        None  # independent units for the variance of the scores; None for the model variance
    )

    @classmethod
    def from_view(
        cls, view: View, baseline: int | str | None, min_prob: float, name: str, units: IndependentUnits | None = None
    ) -> MclloModel:
        """Log odds of a view; infinite log odds require `min_prob`. For two classes the baseline is the first."""
        mask, Y = view.w > 0, view.Y
        k = Y.shape[1]
        base = baseline_index(baseline, k if view.joint else max(view.classes, 2))
        base = base if view.joint else 0
        logs = np.where(mask[:, None], view.log_P, -np.log(k))
        zero = np.isneginf(logs)
        certain = zero.any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"{name} uses log odds, which are infinite for a probability of 0.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with a probability of 0",
                "Pass min_prob=, for example 1e-6, or use the tests skce or consistency.",
            )
        missed = (zero & (Y > 0)).any(axis=1)
        moved = (logs < np.log(min_prob)).any(axis=1) if min_prob else certain
        logs = floored_logs(LogProbabilities(logs), max(min_prob, MIN_PROB_OF_LOGITS))
        x = logs - logs[:, [base]]
        return cls(
            softmax(logs), x, Y, view.w, view.sums("ww"), view.n, base,
            int(view.n[moved].sum()), int(view.n[missed].sum()), units,
        )  # fmt: skip

    @property
    def free_classes(self) -> list[int]:
        """The classes that have parameters."""
        return [j for j in range(self.P.shape[1]) if j != self.baseline]

    @cached_property
    def has_unit_weights(self) -> bool:
        """Whether every row weighs 1."""
        return bool((self.w == self.ww).all())

    @cached_property
    def identity(self) -> Array:
        """γ = 1, τ = 0."""
        return np.tile([1.0, 0.0], len(self.free_classes))

    @cached_property
    def _free_positions(self) -> Array:
        """Positions of the parameters among those of all classes."""
        return np.flatnonzero(np.repeat(np.arange(self.P.shape[1]) != self.baseline, 2))

    @cached_property
    def _column_major_data(self) -> tuple[Array, Array]:
        """Features and outcomes in column-major order."""
        return np.asfortranarray(self.x)[:, :, None], np.asfortranarray(self.Y)

    def likelihood_sums(self, theta: Array, *, squared: bool = False) -> Likelihood:
        """Negative log-likelihood with its derivatives; `squared` weights every row by Σw²."""
        full_theta = np.zeros(2 * self.P.shape[1])
        full_theta[self._free_positions] = theta
        at = softmax_by_class(*self._column_major_data, self.ww if squared else self.w, full_theta)
        hessian = at.hessian[self._free_positions[:, None], self._free_positions]
        return Likelihood(at.value, at.gradient[self._free_positions], hessian, at.weight, at.n)

    @cached_property
    def identity_likelihood(self) -> Likelihood:
        """At the identity."""
        return self.likelihood_sums(self.identity)

    @property
    def rank(self) -> int:
        """Degrees of freedom: the rank of the null variance of the scores."""
        return int(self.model_whitening.shape[1])

    @cached_property
    def n_identified(self) -> int:
        """Number of identified parameters, including those with little information under the null."""
        if self.rank == len(self.identity):
            return self.rank
        return max(
            self.rank, int(whitening_matrix(self.likelihood_sums(np.zeros(len(self.identity))).hessian).shape[1])
        )

    @cached_property
    def has_enough_units(self) -> bool:
        """Whether there are enough units to estimate the variance in each of these directions."""
        return self.units is None or (self.score_whitening.shape[1] == self.rank and self.units.n_units > self.rank)

    @cached_property
    def mle(self) -> Minimum:
        """Maximum likelihood estimates, or the last iterate if none exist."""
        return minimize_newton(
            self.likelihood_sums, self.identity, min_gain=SUPREMUM_TOLERANCE, fallback=np.zeros(len(self.identity))
        )

    @cached_property
    def score_whitening(self) -> Array:
        """Whitening matrix (d, rank) of the scores; directions without variance are dropped."""
        if self.units is None:
            return self.model_whitening
        S = self.units.sums(self.x[:, self.free_classes], (self.w[:, None] * (self.Y - self.P))[:, self.free_classes])
        return whitening_matrix(self.units.bias_correction * S.T @ S)

    @cached_property
    def model_whitening(self) -> Array:
        """Whitening matrix of the scores under the model variance."""
        return whitening_matrix(
            self.identity_likelihood.hessian
            if self.has_unit_weights
            else self.likelihood_sums(self.identity, squared=True).hessian
        )

    @cached_property
    def fitted_probs(self) -> Array:
        """Fitted probabilities of each row, (n, K)."""
        eta = np.zeros_like(self.x)
        eta[:, self.free_classes] = self.x[:, self.free_classes] * self.mle.theta[::2] + self.mle.theta[1::2]
        return softmax(eta)

    def scores(self, wy: Array) -> Array:
        """Σw(y − p)x and Σw(y − p) by class, for each of many outcomes (draws, n, K), (draws, d)."""
        both = np.stack([np.einsum("dnk,nk->dk", wy, self.x), wy.sum(axis=1)], axis=2)
        wp = self.w[:, None] * self.P
        both -= np.stack([(wp * self.x).sum(axis=0), wp.sum(axis=0)], axis=1)
        return both[:, self.free_classes].reshape(len(wy), -1)

    def score_statistics(self, wy: Array) -> Array:
        """Score statistic of each of many outcomes, standardized by the variance of the scores, (draws,)."""
        return np.asarray(((self.scores(wy) @ self.score_whitening) ** 2).sum(axis=1))

    @cached_property
    def effective_n(self) -> float:
        """Effective sample size behind the asymptotic distribution, under the model."""
        return effective_sample_size(self)

    @property
    def covariance(self) -> Array | None:
        """Covariance of the maximum likelihood estimates; None if they or their variance do not exist."""
        return None if self.estimate_covariance is None else self.estimate_covariance.covariance

    @cached_property
    def estimate_covariance(self) -> ParameterCovariance | None:
        """Covariance of the estimates with its effective number of units; a sandwich for weights or units."""
        if not self.mle.converged or self.rank < len(self.identity) or not self.has_enough_units:
            return None
        hessian = self.mle.likelihood.hessian
        bread = np.linalg.pinv(hessian, hermitian=True)
        if self.units is None:
            return (
                ParameterCovariance(bread)
                if self.has_unit_weights
                else sandwich_covariance(bread, self.likelihood_sums(self.mle.theta, squared=True).hessian)
            )
        x, q, Y = (columns[:, self.free_classes] for columns in (self.x, self.fitted_probs, self.Y))
        sandwich = jackknife_covariance(bread, hessian, ScoreVectors(x, q, Y, self.w), self.units)
        return sandwich if whitening_matrix(sandwich.covariance).shape[1] == self.rank else None


_ELEMENTS_PER_BLOCK = 2**18  # array elements in memory at once


def effective_sample_size(odds: MclloModel) -> float:
    """Effective sample size: d² divided by the sum of the squared norms of the whitened scores of single rows.

    It is n for n equally informative rows, and about the number of rare outcomes if these dominate the information. The
    squared norms are expectations under the model.
    """
    k, rank = odds.P.shape[1], odds.rank
    slopes, shifts = np.zeros((2, k, rank))
    slopes[odds.free_classes], shifts[odds.free_classes] = odds.model_whitening[::2], odds.model_whitening[1::2]
    squared_weight, total = np.divide(odds.ww, odds.n, out=np.zeros(len(odds.n)), where=odds.n > 0), 0.0
    rows = max(1, _ELEMENTS_PER_BLOCK // (k * max(rank, 1)))
    for start in range(0, len(odds.P), rows):
        part = slice(start, start + rows)
        P = odds.P[part]
        pulls = odds.x[part, :, None] * slopes + shifts
        pulls -= np.einsum("nk,nkr->nr", P, pulls)[:, None]
        sizes = squared_weight[part, None] * (pulls**2).sum(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow gives an effective sample size of 0
            total += float((odds.n[part, None] * P * sizes**2).sum())
    return rank**2 / total if total > 0 else 0.0


FORMS = ("likelihood-ratio", "wald", "score")
NAN = float("nan")


def likelihood_gain(odds: MclloModel) -> float:
    """Twice the gain in log-likelihood, without adjustment."""
    return max(2 * (odds.identity_likelihood.value - odds.mle.likelihood.value), 0.0)


def mcllo_statistics(odds: MclloModel, form: str | None = None) -> dict[str, float]:
    """The three statistics, or only that of `form`.

    With weights the likelihood ratio is multiplied by the score statistic standardized by the variance of the scores,
    divided by the one standardized by their information, which restores the χ² distribution. Source: Pace, Salvan &
    Sartori (2011). If the variance is estimated from units, the same ratio of Wald statistics is used, because the
    variance at the maximum likelihood estimate is not inflated by miscalibration.
    """
    by_form: dict[str, float] = {}
    slope = odds.identity_likelihood.gradient
    by_meat = float(((slope @ odds.score_whitening) ** 2).sum()) if odds.has_enough_units else NAN
    if form in (None, "score"):
        by_form["score"] = by_meat
    if form in (None, "likelihood-ratio"):
        by_bread = (
            by_meat
            if odds.has_unit_weights and odds.units is None
            else wald_statistic(slope, odds.identity_likelihood.hessian)
        )
        if odds.units is not None and odds.covariance is not None:
            deviation = odds.mle.theta - odds.identity
            by_meat, by_bread = (
                wald_statistic(deviation, odds.covariance),
                float(deviation @ odds.mle.likelihood.hessian @ deviation),
            )
        by_form["likelihood-ratio"] = likelihood_gain(odds) * (by_meat / by_bread if by_bread > 0 else 1.0)
    if form in (None, "wald"):
        by_form["wald"] = (
            NAN if odds.covariance is None else wald_statistic(odds.mle.theta - odds.identity, odds.covariance)
        )
    return {name: by_form[name] for name in FORMS if name in by_form}


def count_units(odds: MclloModel, form: str) -> float | None:
    """Effective number of units for the null distribution of a form; None with the model variance.

    The score uses the variance at the null, where all G units count equally.
    """
    if odds.units is None:
        return None
    return (
        float(odds.units.n_units)
        if form == "score" or odds.estimate_covariance is None
        else odds.estimate_covariance.effective_units
    )


def tail_probability(odds: MclloModel, df: int, statistic: float, form: str = "wald") -> float:
    """Upper tail probability: of χ², or of Hotelling's T² if the variance is estimated from units."""
    return upper_tail(statistic, df, count_units(odds, form))


def parameter_tests(odds: MclloModel) -> dict[str, dict[str, float]]:
    """Wald tests of subsets of the parameters."""
    m = len(odds.free_classes)
    deviation, gammas, taus = odds.mle.theta - odds.identity, np.eye(2 * m)[::2], np.eye(2 * m)[1::2]
    contrasts = {"shift": taus, "scale": gammas} | ({"equal-scales": np.diff(gammas, axis=0)} if m > 1 else {})
    return {name: _wald_statistic(odds, which, deviation) for name, which in contrasts.items()}


def class_parameters(odds: MclloModel, *, joint: bool) -> dict[str, dict[str, float]]:
    """Shift and slope of each class; for a binary view of its event."""
    m, by_class = len(odds.free_classes), []
    deviation = odds.mle.theta - odds.identity
    wide = critical_value(count_units(odds, "wald"))
    for i in range(m):
        parameters: dict[str, float] = {}
        for name, at in (("tau", 2 * i + 1), ("gamma", 2 * i)):
            value, se = NAN, NAN
            if odds.covariance is not None:
                value, se = float(odds.mle.theta[at]), float(np.sqrt(odds.covariance[at, at]))
            parameters |= {
                name: value,
                f"{name}_se": se,
                f"{name}_low": value - wide * se,
                f"{name}_high": value + wide * se,
            }
        for end in ("", "_low", "_high"):
            parameters[f"delta{end}"] = float(np.exp(np.minimum(parameters[f"tau{end}"], 700.0)))
        by_class.append(parameters | _wald_statistic(odds, np.eye(2 * m)[2 * i : 2 * i + 2], deviation))
    for one, p in zip(by_class, holm([one["pvalue"] for one in by_class]), strict=True):
        one["holm"] = p
    names = [f"class:{j}" for j in odds.free_classes] if joint else ["event"]
    return dict(zip(names, by_class, strict=True))


def _wald_statistic(odds: MclloModel, which: Array, deviation: Array) -> dict[str, float]:
    df = len(which)
    if odds.covariance is None:
        return {"statistic": NAN, "df": float(df), "pvalue": NAN}
    statistic = wald_statistic(which @ deviation, which @ odds.covariance @ which.T)
    return {"statistic": statistic, "df": float(df), "pvalue": tail_probability(odds, df, statistic)}

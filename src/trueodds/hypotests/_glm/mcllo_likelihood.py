"""The likelihood of the multicategory linear log odds (MCLLO) model, and its likelihood-ratio, Wald and score tests.

The model has a shift τ and a slope γ of the log odds of each class against a baseline class. A calibrated model has τ =
0 and γ = 1, the "identity" map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB_OF_LOGITS, LogProbabilities, floored_logs, softmax
from trueodds.calibrators._glm.newton import Minimum, minimize_newton
from trueodds.calibrators._glm.parameter_covariance import (
    IndependentUnits,
    ParameterCovariance,
    ScoreVectors,
    critical_value,
    jackknife_covariance,
    sandwich_covariance,
    upper_tail,
    wald_statistic,
    whitening_matrix,
)
from trueodds.calibrators._glm.parameter_uncertainty import MAX_EXPONENT
from trueodds.calibrators.mcllo import baseline_index
from trueodds.core.errors import InputError
from trueodds.core.pvalues import holm
from trueodds.core.typing import Array
from trueodds.lenses.view import View
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_by_class

SUPREMUM_TOLERANCE = 1e-9  # tolerance in nats of a supremum of the log-likelihood that is not attained


@dataclass(frozen=True, eq=False)
class MclloModel:
    """The model of one view: its log odds against the baseline, its fit, and the variances of scores and estimates.

    The parameters θ are (γ, τ) of each class but the baseline, d = 2(K − 1) in all. The variance of the scores is that
    of the model, or estimated from independent `units` (rows or clusters). "Whitening" matrices W of a variance V
    satisfy W'VW = I, so the squared norm of W's is the standardized statistic of scores s.
    """

    P: Array  # (n, K) tested probabilities: clipped and normalized
    x: Array  # (n, K) log odds against the baseline; 0 for rows without weight
    Y: Array  # (n, K) observed outcomes, or shares of votes
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    n: Array  # (n,) rows in each cell
    baseline: int  # index of the baseline class
    n_clipped: int  # number of rows clipped at min_prob
    n_impossible: int  # number of rows with an observed outcome of predicted probability 0
    units: IndependentUnits | None = None  # units whose sums give the variance of the scores; None: model variance

    @classmethod
    def from_view(
        cls, view: View, baseline: int | str | None, min_prob: float, name: str, units: IndependentUnits | None = None
    ) -> MclloModel:
        """Create the model of a view; infinite log odds require `min_prob`. `name` is the test, for the error.

        The baseline of a binary view is always the complement of the event.
        """
        mask, Y = view.w > 0, view.Y
        k = Y.shape[1]
        # For a binary view too, a baseline that the problem does not have is an error.
        class_index = baseline_index(baseline, k if view.joint else max(view.classes, 2))
        base = class_index if view.joint else 0
        logs = np.where(mask[:, None], view.log_P, -np.log(k))
        is_zero = np.isneginf(logs)
        certain = is_zero.any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"{name} uses log odds, which are infinite for a probability of 0.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with a probability of 0",
                "Pass ⟨min_prob=⟩, for example 1e-6, or use the tests skce or consistency.",
            )
        impossible = (is_zero & (Y > 0)).any(axis=1)
        clipped = (logs < np.log(min_prob)).any(axis=1) if min_prob else certain
        logs = floored_logs(LogProbabilities(logs), max(min_prob, MIN_PROB_OF_LOGITS))
        x = logs - logs[:, [base]]
        return cls(
            P=softmax(logs),
            x=x,
            Y=Y,
            w=view.w,
            ww=view.sums("ww"),
            n=view.n,
            baseline=base,
            n_clipped=int(view.n[clipped].sum()),
            n_impossible=int(view.n[impossible].sum()),
            units=units,
        )

    @property
    def free_classes(self) -> list[int]:
        """The classes that have parameters."""
        return [j for j in range(self.P.shape[1]) if j != self.baseline]

    @cached_property
    def has_unit_weights(self) -> bool:
        """Whether every row has weight 1."""
        return bool((self.w == self.ww).all())

    @cached_property
    def identity(self) -> Array:
        """The parameters γ = 1 and τ = 0 of a calibrated model, (d,)."""
        return np.tile([1.0, 0.0], len(self.free_classes))

    @cached_property
    def _free_positions(self) -> Array:
        """Positions of the parameters among those of all classes."""
        return np.flatnonzero(np.repeat(np.arange(self.P.shape[1]) != self.baseline, 2))

    @cached_property
    def _column_major_data(self) -> tuple[Array, Array]:
        """The log odds (n, K, 1) and the outcomes (n, K) in column-major order, in which their columns are summed."""
        return np.asfortranarray(self.x)[:, :, None], np.asfortranarray(self.Y)

    def likelihood_sums(self, theta: Array, *, squared: bool = False) -> Likelihood:
        """Negative log-likelihood and its derivatives at θ (d,); `squared` weights every row by Σw²."""
        full_theta = np.zeros(2 * self.P.shape[1])
        full_theta[self._free_positions] = theta
        sums = softmax_by_class(*self._column_major_data, self.ww if squared else self.w, full_theta)
        hessian = sums.hessian[self._free_positions[:, None], self._free_positions]
        return Likelihood(sums.value, sums.gradient[self._free_positions], hessian, sums.weight, sums.n)

    @cached_property
    def identity_likelihood(self) -> Likelihood:
        """Negative log-likelihood with its derivatives at the identity."""
        return self.likelihood_sums(self.identity)

    @property
    def rank(self) -> int:
        """Degrees of freedom of the Wald and score tests: the rank of the null variance of the scores."""
        return int(self.model_whitening.shape[1])

    @cached_property
    def n_identified(self) -> int:
        """Number of identified parameters, including those with little information under the null.

        It is the rank of the information at the null or at θ = 0, where all classes are equally probable, whichever is
        larger.
        """
        if self.rank == len(self.identity):
            return self.rank
        hessian_at_zero = self.likelihood_sums(np.zeros(len(self.identity))).hessian
        return max(self.rank, int(whitening_matrix(hessian_at_zero).shape[1]))

    @cached_property
    def has_enough_units(self) -> bool:
        """Whether there are enough units to estimate the variance of the scores in all `rank` directions."""
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
        unit_scores = self.units.sums(
            self.x[:, self.free_classes], (self.w[:, None] * (self.Y - self.P))[:, self.free_classes]
        )
        return whitening_matrix(self.units.bias_correction * unit_scores.T @ unit_scores)

    @cached_property
    def model_whitening(self) -> Array:
        """Whitening matrix (d, rank) of the scores under the model variance."""
        return whitening_matrix(
            self.identity_likelihood.hessian
            if self.has_unit_weights
            else self.likelihood_sums(self.identity, squared=True).hessian
        )

    @cached_property
    def fitted_probs(self) -> Array:
        """Probabilities of each row at the maximum likelihood estimates, (n, K)."""
        eta = np.zeros_like(self.x)
        eta[:, self.free_classes] = self.x[:, self.free_classes] * self.mle.theta[::2] + self.mle.theta[1::2]
        return softmax(eta)

    def scores(self, wy: Array) -> Array:
        """Scores Σw(y − p)x and Σw(y − p) by class, (draws, d), of many weighted outcomes wy (draws, n, K)."""
        class_scores = np.stack([np.einsum("dnk,nk->dk", wy, self.x), wy.sum(axis=1)], axis=2)
        wp = self.w[:, None] * self.P
        class_scores -= np.stack([(wp * self.x).sum(axis=0), wp.sum(axis=0)], axis=1)
        return class_scores[:, self.free_classes].reshape(len(wy), -1)

    def score_statistics(self, wy: Array) -> Array:
        """Score statistic, standardized by the variance of the scores, (draws,), of many outcomes wy (draws, n, K)."""
        return np.asarray(((self.scores(wy) @ self.score_whitening) ** 2).sum(axis=1))

    @cached_property
    def effective_n(self) -> float:
        """Effective sample size behind the asymptotic distribution, under the model."""
        return effective_sample_size(self)

    @property
    def covariance(self) -> Array | None:
        """Covariance of the maximum likelihood estimates, (d, d); None if they or their variance do not exist."""
        return None if self.estimate_covariance is None else self.estimate_covariance.covariance

    @cached_property
    def estimate_covariance(self) -> ParameterCovariance | None:
        """Covariance of the estimates with its effective number of units; a sandwich for weights or units."""
        if not self.mle.converged or self.rank < len(self.identity) or not self.has_enough_units:
            return None
        hessian = self.mle.likelihood.hessian
        bread = np.linalg.pinv(hessian, hermitian=True)  # the outer matrix of a sandwich estimator
        if self.units is None and self.has_unit_weights:
            return ParameterCovariance(bread)
        if self.units is None:
            return sandwich_covariance(bread, self.likelihood_sums(self.mle.theta, squared=True).hessian)
        x, q, Y = (columns[:, self.free_classes] for columns in (self.x, self.fitted_probs, self.Y))
        sandwich = jackknife_covariance(bread, hessian, ScoreVectors(x, q, Y, self.w), self.units)
        return sandwich if whitening_matrix(sandwich.covariance).shape[1] == self.rank else None


_ELEMENTS_PER_BLOCK = 2**18  # maximum number of array elements in memory at once: 2 MB


def effective_sample_size(model: MclloModel) -> float:
    """Effective sample size: d² divided by the sum of the squared norms of the whitened scores of single rows.

    It is n for n equally informative rows, and about the number of rare outcomes if these dominate the information. The
    squared norms are expectations under the model.
    """
    k, rank = model.P.shape[1], model.rank
    slopes, shifts = np.zeros((2, k, rank))  # rows of the whitening matrix by class; 0 for the baseline
    slopes[model.free_classes], shifts[model.free_classes] = model.model_whitening[::2], model.model_whitening[1::2]
    squared_weight = np.divide(model.ww, model.n, out=np.zeros(len(model.n)), where=model.n > 0)
    sum_of_fourth_powers = 0.0
    block_size = max(1, _ELEMENTS_PER_BLOCK // (k * max(rank, 1)))
    for start in range(0, len(model.P), block_size):
        block = slice(start, start + block_size)
        P = model.P[block]
        whitened_scores = model.x[block, :, None] * slopes + shifts
        whitened_scores -= np.einsum("nk,nkr->nr", P, whitened_scores)[:, None]
        squared_norms = squared_weight[block, None] * (whitened_scores**2).sum(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow gives an effective sample size of 0
            sum_of_fourth_powers += float((model.n[block, None] * P * squared_norms**2).sum())
    return rank**2 / sum_of_fourth_powers if sum_of_fourth_powers > 0 else 0.0


FORMS = ("likelihood-ratio", "wald", "score")  # forms of the test statistic
NAN = float("nan")


def likelihood_ratio_statistic(model: MclloModel) -> float:
    """Twice the gain in log-likelihood over the identity, without adjustment."""
    return max(2 * (model.identity_likelihood.value - model.mle.likelihood.value), 0.0)


def mcllo_statistics(model: MclloModel, form: str | None = None) -> dict[str, float]:
    """Return the test statistics of all three forms, or only that of `form`, by form.

    With weights the likelihood ratio is multiplied by the score statistic standardized by the variance of the scores,
    divided by the one standardized by their information, which restores the χ² distribution. Source: Pace, Salvan &
    Sartori (2011). If the variance is estimated from units, the same ratio of Wald statistics is used, because the
    variance at the maximum likelihood estimate is not inflated by miscalibration.
    """
    statistics: dict[str, float] = {}
    if form in (None, "likelihood-ratio"):
        statistics["likelihood-ratio"] = _adjusted_likelihood_ratio(model)
    if form in (None, "wald"):
        statistics["wald"] = (
            NAN if model.covariance is None else wald_statistic(model.mle.theta - model.identity, model.covariance)
        )
    if form in (None, "score"):
        statistics["score"] = _score_statistic(model)
    return statistics


def _score_statistic(model: MclloModel) -> float:
    """Score statistic, standardized by the variance of the scores; NaN with too few units."""
    gradient = model.identity_likelihood.gradient
    return float(((gradient @ model.score_whitening) ** 2).sum()) if model.has_enough_units else NAN


def _adjusted_likelihood_ratio(model: MclloModel) -> float:
    """Likelihood ratio statistic with the adjustment of `mcllo_statistics`.

    It is multiplied by a quadratic statistic that is standardized by the variance, and divided by the same statistic
    standardized by the information.
    """
    if model.units is not None and model.covariance is not None:
        deviation = model.mle.theta - model.identity
        by_variance = wald_statistic(deviation, model.covariance)
        by_information = float(deviation @ model.mle.likelihood.hessian @ deviation)
    else:
        by_variance = by_information = _score_statistic(model)
        if not model.has_unit_weights or model.units is not None:
            by_information = wald_statistic(model.identity_likelihood.gradient, model.identity_likelihood.hessian)
    return likelihood_ratio_statistic(model) * (by_variance / by_information if by_information > 0 else 1.0)


def effective_unit_count(model: MclloModel, form: str) -> float | None:
    """Effective number of units for the null distribution of a form; None with the model variance.

    The score uses the variance at the null, where all G units count equally.
    """
    if model.units is None:
        return None
    if form == "score" or model.estimate_covariance is None:
        return float(model.units.n_units)
    return model.estimate_covariance.effective_units


def tail_probability(model: MclloModel, df: int, statistic: float, form: str = "wald") -> float:
    """p-value of a statistic: the upper tail of χ², or of Hotelling's T² if the variance is estimated from units."""
    return upper_tail(statistic, df, effective_unit_count(model, form))


def parameter_tests(model: MclloModel) -> dict[str, dict[str, float]]:
    """Wald tests of subsets of the parameters: all shifts 0, all slopes 1, and all slopes equal."""
    m = len(model.free_classes)
    deviation, gammas, taus = model.mle.theta - model.identity, np.eye(2 * m)[::2], np.eye(2 * m)[1::2]
    contrasts = {"shift": taus, "scale": gammas} | ({"equal-scales": np.diff(gammas, axis=0)} if m > 1 else {})
    return {name: _wald_test(model, contrast, deviation) for name, contrast in contrasts.items()}


def class_parameters(model: MclloModel, *, is_joint_view: bool) -> dict[str, dict[str, float]]:
    """Estimates, standard errors, 95 % limits and Wald test of the shift and slope of each class, or of the event."""
    m, by_class = len(model.free_classes), []
    deviation = model.mle.theta - model.identity
    quantile = critical_value(effective_unit_count(model, "wald"))
    for i in range(m):
        parameters: dict[str, float] = {}
        for name, index in (("tau", 2 * i + 1), ("gamma", 2 * i)):
            value, se = NAN, NAN
            if model.covariance is not None:
                value, se = float(model.mle.theta[index]), float(np.sqrt(model.covariance[index, index]))
            parameters |= {
                name: value,
                f"{name}_se": se,
                f"{name}_low": value - quantile * se,
                f"{name}_high": value + quantile * se,
            }
        for suffix in ("", "_low", "_high"):
            parameters[f"delta{suffix}"] = float(np.exp(np.minimum(parameters[f"tau{suffix}"], MAX_EXPONENT)))
        by_class.append(parameters | _wald_test(model, np.eye(2 * m)[2 * i : 2 * i + 2], deviation))
    adjusted_pvalues = holm([parameters["pvalue"] for parameters in by_class])
    for parameters, adjusted_pvalue in zip(by_class, adjusted_pvalues, strict=True):
        parameters["holm"] = adjusted_pvalue
    class_names = [f"class:{j}" for j in model.free_classes] if is_joint_view else ["event"]
    return dict(zip(class_names, by_class, strict=True))


def _wald_test(model: MclloModel, contrast: Array, deviation: Array) -> dict[str, float]:
    """Wald test that `contrast` (df, d) times the deviation (d,) from the identity is 0."""
    df = len(contrast)
    if model.covariance is None:
        return {"statistic": NAN, "df": float(df), "pvalue": NAN}
    statistic = wald_statistic(contrast @ deviation, contrast @ model.covariance @ contrast.T)
    return {"statistic": statistic, "df": float(df), "pvalue": tail_probability(model, df, statistic)}

"""Standard errors, likelihood ratio and posterior probability of the fitted shifts and slopes of LLO and MCLLO.

In their model, log q_k/q_b = τ_k + γ_k log p_k/p_b for every class k but the baseline b, with τ = log δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit

from trueodds.calibrators._glm.fit_data import FitData, FitDataSummary
from trueodds.calibrators._glm.parameter_covariance import (
    RANK_TOLERANCE,
    IndependentUnits,
    ParameterCovariance,
    ScoreVectors,
    critical_value,
    jackknife_covariance,
    sandwich_covariance,
    upper_tail,
)
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Key, Numbers, Saved, invalid_value_error
from trueodds.core.settings import OneOf, Range
from trueodds.core.typing import Array

# Saved: how standard errors were computed.
STD_ERROR_METHODS = (
    "curvature",  # from the inverse Hessian
    "weights",  # by the sandwich estimator, for unequal weights
    "votes",  # by the jackknife over rows, for outcome shares from votes
    "clusters",  # by the jackknife over clusters
)
# Saved: or why there are none.
NO_STD_ERROR_REASONS = (
    "infinite",  # no finite parameters are optimal
    "absent",  # some classes were never observed
    "untold",  # the data do not identify all parameters, as with too few distinct predictions
    "many",  # too many classes to compute the Hessian
    "few",  # too few rows or clusters
    "far",  # the rows are streamed, so that there is no jackknife
)

PARAMETERS_PER_CLASS = 2  # τ and γ: the covariance needs more units than this

# Smallest distance of a correlation from 1: closer to it, rounding error would decide Wald's test.
_MIN_CORRELATION_MARGIN = 1e-10
_MAX_VARIANCE = 1e60  # largest variance that can be saved; products of two stay finite


class ParameterUncertainty(Saved):
    """Uncertainty of τ = log δ and γ of each class but the baseline, from the rows of the fit."""

    std_error_method: Annotated[str, OneOf(STD_ERROR_METHODS + NO_STD_ERROR_REASONS), Key("errors")]
    # Of (τ, γ) of each class; covariances between classes are not kept.
    covariance: Annotated[Array | None, Numbers(-_MAX_VARIANCE, _MAX_VARIANCE, ("k-1", 2, 2))] = None
    # Likelihood ratio statistic against δ = γ = 1, where χ² is its null distribution.
    likelihood_ratio: Annotated[float | None, Range(0, 1e300), Key("ratio")] = None
    rank: Annotated[int, Range(0)] = 0  # its degrees of freedom: the number of identifiable directions
    n: Annotated[float, Range(0, 1e18)] = 0.0  # independent rows
    penalized: bool = False  # whether the fit had a penalty
    # Effective number of rows or clusters, for the jackknife.
    effective_units: Annotated[
        float | None, Range(PARAMETERS_PER_CLASS, 1e18, closed="right"), Key("units"), OMIT_DEFAULT
    ] = None
    # Whether the log odds take both signs, else τ is extrapolated; None if unknown.
    both_signs: Annotated[Array | None, Numbers(0, 1, ("k-1",), kind=bool), Key("even"), OMIT_DEFAULT] = None

    @property
    def pvalue(self) -> float:
        """P-value of the likelihood ratio; NaN if there is none."""
        return math.nan if self.likelihood_ratio is None else upper_tail(self.likelihood_ratio, self.rank)

    @property
    def posterior(self) -> float:
        """Posterior probability of calibration by BIC with prior 1/2; NaN if there is no likelihood ratio."""
        if self.likelihood_ratio is None or not self.rank:
            return math.nan
        return float(expit((self.rank * math.log(self.n) - self.likelihood_ratio) / 2))

    @property
    def interval_factor(self) -> float:
        """Number of standard errors to the ends of a 95 % interval."""
        return critical_value(self.effective_units)

    def wald_pvalue(self, statistic: float) -> float:
        return upper_tail(statistic, PARAMETERS_PER_CLASS, self.effective_units)

    def check_saved(self, k: int) -> None:
        """Check that there are covariances where standard errors are known, and a ratio only where one is possible."""
        errors, V = self.std_error_method, self.covariance
        if (V is not None) != (errors in STD_ERROR_METHODS):
            raise invalid_value_error("covariance", "present exactly if the standard errors are known", V)
        if V is not None and not ((V[:, 0, 1] == V[:, 1, 0]).all() and are_proper_covariances(V)):
            expected = "symmetric, of variances above 0 and a correlation between −1 and 1"
            raise invalid_value_error("covariance", expected, V.tolist())
        if self.rank > PARAMETERS_PER_CLASS * (k - 1):
            raise invalid_value_error("rank", f"at most {PARAMETERS_PER_CLASS * (k - 1)}", self.rank)
        has_chi2_ratio = errors in ("curvature", "untold") and self.rank and self.n >= 1 and not self.penalized
        if self.likelihood_ratio is not None and not has_chi2_ratio:
            raise invalid_value_error("ratio", "null where χ² is not its null distribution", self.likelihood_ratio)
        if self.effective_units is not None and errors not in ("votes", "clusters"):
            raise invalid_value_error("units", "left out unless rows or clusters were left out", self.effective_units)
        if self.both_signs is not None and V is None:
            raise invalid_value_error("even", "left out where there is no covariance", self.both_signs.tolist())


def are_proper_covariances(V: Array) -> bool:
    """Whether V (m, 2, 2) are valid covariances of two parameters; roots avoid overflow and underflow of products."""
    variances, covariances = V.diagonal(axis1=1, axis2=2), V[:, 0, 1]
    if not ((variances > 1 / _MAX_VARIANCE) & (variances < _MAX_VARIANCE)).all():
        return False
    return bool(
        (np.abs(covariances) / np.sqrt(variances[:, 0]) / np.sqrt(variances[:, 1]) < 1 - _MIN_CORRELATION_MARGIN).all()
    )


@dataclass(frozen=True, slots=True, eq=False)
class FitEvidence:
    """What the uncertainty of finite fitted parameters is computed from: Hessians, score vectors, likelihood ratio.

    The parameters are (γ, τ′) of each class, where the log odds x are centered at `means`, so that τ = τ′ − γ mean.
    Centering makes the two nearly uncorrelated. Weights are importance weights: equal weights have no effect, and with
    unequal ones the likelihood ratio does not have a χ² distribution.
    """

    summary: FitData | FitDataSummary
    hessian: Array  # (d, d) of minus the log-likelihood, without the penalty
    means: Array  # (m,) of the log odds of each class but the baseline
    both_signs: Array  # (m,) whether the log odds take both signs
    penalty: float  # λ of the penalty λθ²
    scores: Callable[[], ScoreVectors] | None  # None if the rows are streamed
    squared_weight_hessian: Callable[[], Array]  # the Hessian with squared weights
    likelihood_ratio: Callable[[], float]  # 2 (log-likelihood of the fit minus that of the identity)
    rank: int | None = None  # number of identifiable directions, if known

    def uncertainty(self) -> ParameterUncertainty:
        """Compute the standard errors of the parameters, or the reason why there are none."""
        H, d = self.hessian, len(self.hessian)
        root_diagonal = np.sqrt(H.diagonal())
        scale = np.divide(1.0, root_diagonal, out=np.zeros(d), where=root_diagonal > 0)
        eigenvalues = np.linalg.eigvalsh(H * np.outer(scale, scale))
        numerical_rank = int((eigenvalues > RANK_TOLERANCE * max(float(eigenvalues[-1]), 1e-300)).sum())
        rank = min(d if self.rank is None else self.rank, numerical_rank)
        std_error_method, penalized = self.summary.std_error_method, self.penalty > 0
        # Equal weights of any size are treated as 1.
        likelihood_ratio = (
            self.likelihood_ratio() / self.summary.row_weight
            if rank and std_error_method == "curvature" and not penalized
            else None
        )

        def make_uncertainty(method: str, V: Array | None = None, units: float | None = None) -> ParameterUncertainty:
            return ParameterUncertainty(
                std_error_method=method,
                covariance=V,
                likelihood_ratio=likelihood_ratio,
                rank=rank,
                n=float(self.summary.n),
                penalized=penalized,
                effective_units=units,
                both_signs=None if V is None else self.both_signs,
            )

        if rank < d and not penalized:
            return make_uncertainty("untold")
        if std_error_method in ("votes", "clusters") and self.scores is None:
            return make_uncertainty("far")
        parameter_covariance = self._parameter_covariance(std_error_method)
        if parameter_covariance is None or (
            parameter_covariance.effective_units is not None
            and not parameter_covariance.effective_units > PARAMETERS_PER_CLASS
        ):
            return make_uncertainty("few")
        V = self._class_covariances(parameter_covariance.covariance)
        # Scores that are all 0 (shares fitted exactly, or slopes that only the penalty determines) have no variance.
        return (
            make_uncertainty(std_error_method, V, parameter_covariance.effective_units)
            if are_proper_covariances(V)
            else ParameterUncertainty("untold", rank=rank, penalized=penalized)
        )

    def _parameter_covariance(self, std_error_method: str) -> ParameterCovariance | None:
        """The covariance of all parameters; None if there are no more units than parameters."""
        assert std_error_method in STD_ERROR_METHODS
        d = len(self.hessian)
        hessian = self.hessian + 2 * self.penalty * np.eye(d)
        scale = 1 / np.sqrt(hessian.diagonal())
        bread = np.linalg.inv(hessian * np.outer(scale, scale)) * np.outer(scale, scale)
        if std_error_method == "curvature":
            return ParameterCovariance(bread * self.summary.row_weight)
        if std_error_method == "weights":
            return sandwich_covariance(bread, self.squared_weight_hessian()) if self.summary.n > d else None
        assert isinstance(self.summary, FitData)
        assert self.scores is not None
        w, cluster = self.summary.w, self.summary.cluster
        units = IndependentUnits.from_rows(w) if cluster is None else IndependentUnits.from_clusters(w, cluster)
        return jackknife_covariance(bread, hessian, self.scores(), units) if units.n_units > d else None

    def _class_covariances(self, V: Array) -> Array:
        """The covariances (m, 2, 2) of (τ, γ) of each class, from V (2m, 2m) of (γ, τ′) of all classes in turn."""
        m = len(self.means)
        pairs = V.reshape(m, 2, m, 2)[np.arange(m), :, np.arange(m)]
        transformation = np.zeros((m, 2, 2))  # (γ, τ′) → (τ, γ)
        transformation[:, 0, 0], transformation[:, 0, 1], transformation[:, 1, 0] = -self.means, 1.0, 1.0
        pairs = transformation @ pairs @ transformation.transpose(0, 2, 1)
        return np.asarray((pairs + pairs.transpose(0, 2, 1)) / 2)

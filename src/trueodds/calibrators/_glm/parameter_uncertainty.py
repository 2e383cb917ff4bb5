"""Standard errors, likelihood ratio and posterior probability of the fitted shifts and slopes of LLO and MCLLO.

In their model, log q_k/q_b = τ_k + γ_k log p_k/p_b for every class k but the baseline b, with τ = log δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.fit_data import FitData, FitDataSummary
from trueodds.calibrators._glm.parameter_covariance import (
    IndependentUnits,
    ParameterCovariance,
    ScoreVectors,
    jackknife_covariance,
    sandwich_covariance,
)
from trueodds.calibrators._glm.wald import RANK_TOLERANCE, critical_value, upper_tail
from trueodds.calibrators.saved_parameters import read_flag
from trueodds.core.errors import InputError
from trueodds.core.typing import Array

# How standard errors were computed. Saved files contain these words.
STD_ERROR_METHODS = (
    "curvature",  # from the inverse Hessian
    "weights",  # by the sandwich estimator, for unequal weights
    "votes",  # by the jackknife over rows, for outcome shares from votes
    "clusters",  # by the jackknife over clusters
)
# Or why there are none. Saved files contain these words too.
NO_STD_ERROR_REASONS = (
    "infinite",  # no finite parameters are optimal
    "absent",  # some classes were never observed
    "untold",  # the data do not identify all parameters, as with too few distinct predictions
    "many",  # too many classes to compute the Hessian
    "few",  # too few rows or clusters
    "far",  # the rows are streamed, so that there is no jackknife
)

PARAMETERS_PER_CLASS = 2  # parameters per class, τ and γ: the covariance needs more units than this

# Smallest distance of a correlation from 1: closer to it, rounding error would decide Wald's test.
_MIN_CORRELATION_MARGIN = 1e-10
_MAX_VARIANCE = 1e60  # largest variance that can be saved; products of two stay finite
_SAVED_KEYS = ("errors", "covariance", "ratio", "rank", "n", "penalized")
_OPTIONAL_SAVED_KEYS = ("units", "even")  # missing in older files


@dataclass(frozen=True, slots=True, eq=False)
class ParameterUncertainty:
    """Uncertainty of τ = log δ and γ of each class but the baseline, from the rows of the fit."""

    std_error_method: str  # one of STD_ERROR_METHODS, or of NO_STD_ERROR_REASONS
    covariance: Array | None = None  # (K − 1, 2, 2) of (τ, γ) of each class; covariances between classes are not kept
    # Likelihood ratio statistic against δ = γ = 1, where χ² is its null distribution.
    likelihood_ratio: float | None = None
    rank: int = 0  # its degrees of freedom: the number of identifiable directions
    n: float = 0.0  # independent rows
    penalized: bool = False  # whether the fit had a penalty
    effective_units: float | None = None  # effective number of rows or clusters, for the jackknife
    both_signs: Array | None = (
        None  # (K − 1,) whether the log odds take both signs, else τ is extrapolated; None if unknown
    )

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
        """P-value of a class's Wald statistic."""
        return upper_tail(statistic, PARAMETERS_PER_CLASS, self.effective_units)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values; those of `_OPTIONAL_SAVED_KEYS` that are None are left out."""
        fields = {
            "errors": self.std_error_method,
            "covariance": None if self.covariance is None else self.covariance.tolist(),
            "ratio": self.likelihood_ratio,
            "rank": self.rank,
            "n": self.n,
            "penalized": self.penalized,
        }
        optional_fields = {
            "units": self.effective_units,
            "even": None if self.both_signs is None else self.both_signs.tolist(),
        }
        return fields | {key: value for key, value in optional_fields.items() if value is not None}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> ParameterUncertainty:
        """Read K − 1 covariances if standard errors are known, and a likelihood ratio only if one is possible."""
        saved_parameters.check_keys(
            parameters, _SAVED_KEYS + tuple(key for key in _OPTIONAL_SAVED_KEYS if key in parameters), "certainty"
        )
        errors, V, ratio = parameters["errors"], parameters["covariance"], parameters["ratio"]
        rank = saved_parameters.read_count(parameters, "rank")
        if not isinstance(errors, str) or errors not in STD_ERROR_METHODS + NO_STD_ERROR_REASONS:
            raise _mismatch_error("errors", f"one of {', '.join(STD_ERROR_METHODS + NO_STD_ERROR_REASONS)}", errors)
        if (V is not None) != (errors in STD_ERROR_METHODS):
            raise _mismatch_error("covariance", "present exactly if the standard errors are known", V)
        if rank > 2 * (k - 1):
            raise _mismatch_error("rank", f"at most {2 * (k - 1)}", rank)
        penalized, n = read_flag(parameters, "penalized"), saved_parameters.read_number(parameters, "n", 0, 1e18)
        if ratio is not None:
            ratio = saved_parameters.read_number(parameters, "ratio", 0, 1e300)
            if penalized or errors not in ("curvature", "untold") or not rank or n < 1:
                raise _mismatch_error("ratio", "null where χ² is not its null distribution", ratio)
        units, even = parameters.get("units"), parameters.get("even")
        if units is not None:
            units = saved_parameters.read_number(parameters, "units", PARAMETERS_PER_CLASS, 1e18)
            if errors not in ("votes", "clusters") or units == PARAMETERS_PER_CLASS:
                raise _mismatch_error(
                    "units", f"more than {PARAMETERS_PER_CLASS}, and only with errors from rows or clusters", units
                )
        if even is not None and (V is None or not _is_flag_list(even, k - 1)):
            raise _mismatch_error("even", f"{k - 1} times true or false beside the covariance", even)
        covariance = None if V is None else _read_covariances(V, k)
        return cls(
            std_error_method=errors,
            covariance=covariance,
            likelihood_ratio=ratio,
            rank=rank,
            n=n,
            penalized=penalized,
            effective_units=units,
            both_signs=None if even is None else np.array(even),
        )


def uncertainty_to_dict(uncertainty: ParameterUncertainty | None) -> dict[str, Any]:
    """The entry that a map adds to its saved parameters; empty if it has no uncertainty, as in older files."""
    return {} if uncertainty is None else {"certainty": uncertainty.to_dict()}


def read_uncertainty(parameters: Mapping[str, Any], keys: tuple[str, ...], k: int) -> ParameterUncertainty | None:
    """Read the uncertainty among saved parameters that also have these keys."""
    extra = ("certainty",) if "certainty" in parameters else ()
    saved_parameters.check_keys(parameters, keys + extra, "parameters")
    return ParameterUncertainty.from_dict(saved_parameters.read_table(parameters, "certainty"), k) if extra else None


def _read_covariances(V: Any, k: int) -> Array:
    """Read K − 1 symmetric matrices with two positive variances."""
    if (
        not isinstance(V, list)
        or len(V) != k - 1
        or not all(isinstance(matrix, list) and len(matrix) == 2 for matrix in V)
    ):
        raise _mismatch_error("covariance", f"{k - 1} times 2 rows of 2 numbers", V)
    rows = [
        [
            saved_parameters.read_vector({"covariance": row}, "covariance", -_MAX_VARIANCE, _MAX_VARIANCE, size=2)
            for row in matrix
        ]
        for matrix in V
    ]
    covariance: Array = np.array(rows)
    if (covariance[:, 0, 1] != covariance[:, 1, 0]).any() or not are_proper_covariances(covariance):
        raise _mismatch_error("covariance", "of variances above 0 and a correlation between −1 and 1", V)
    return covariance


def are_proper_covariances(V: Array) -> bool:
    """Whether V (m, 2, 2) are valid covariances of two parameters; roots avoid overflow and underflow of products."""
    variances, covariances = V.diagonal(axis1=1, axis2=2), V[:, 0, 1]
    if not ((variances > 1 / _MAX_VARIANCE) & (variances < _MAX_VARIANCE)).all():
        return False
    return bool(
        (np.abs(covariances) / np.sqrt(variances[:, 0]) / np.sqrt(variances[:, 1]) < 1 - _MIN_CORRELATION_MARGIN).all()
    )


def _is_flag_list(values: Any, size: int) -> bool:
    """Whether the values are a list of `size` booleans."""
    return isinstance(values, list) and len(values) == size and all(isinstance(value, bool) for value in values)


def _mismatch_error(key: str, expected: str, got: Any) -> InputError:
    """Error TO505 for a saved value that does not fit the others."""
    text = f"In a saved calibrator {key} must be {expected}."
    return InputError("TO505", text, repr(got)[:60], "Fit it again and save it with .save(path).")


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
            """The result with this method, or reason why there are no standard errors."""
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

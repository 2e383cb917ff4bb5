"""Standard errors and tests of the fitted shifts and slopes of LLO and MCLLO, and their text table with sentences.

In their model, log q_k/q_b = τ_k + γ_k log p_k/p_b for every class k but the baseline b, with τ = log δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from scipy.special import expit

from trueodds.calibrators._glm.fit_data import FitData, FitDataSummary
from trueodds.calibrators._glm.log_linear import MAX_NEWTON_PARAMETERS
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
from trueodds.core.formatting import format_number
from trueodds.core.printable import to_printable
from trueodds.core.pvalues import holm
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


MAX_SHOWN_CLASSES = 20  # rows of the table; of more classes, those with the smallest p-values are shown
_MAX_NAME_LENGTH = 24  # characters of a name
MAX_EXPONENT = 700.0  # limit of exponents, because exp overflows beyond 709.78

_COLUMN_HEADERS = ("δ", "95 %", "s.e. log δ", "γ", "95 %", "s.e. γ", "Wald p (δ = γ = 1)", "Holm's p")


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """δ = exp τ and γ of each class but the baseline, with 95 % intervals, tests and their meaning.

    Intervals of δ are exponentiated intervals of τ and so not symmetric. The Wald test of a class tests τ = 0 and γ = 1
    jointly, with a χ² distribution with 2 degrees of freedom; Holm's p adjusts for all classes. With jackknife standard
    errors the reference distributions are Student's t and Hotelling's T², as in the tests `cox` and `mcllo`.
    """

    classes: tuple[Any, ...]  # names of the K classes
    baseline: int  # number of the baseline class
    tau: Array  # (K − 1,) shifts of the log odds
    gamma: Array  # (K − 1,) slopes of the log odds
    uncertainty: ParameterUncertainty | None  # of the parameters; None if it is unknown
    method: str = "mcllo"  # name of the calibrator, for hints

    def lines(self) -> list[str]:
        """The table, a sentence for each of its rows, and how the numbers were computed."""
        parameter_classes = [j for j in range(len(self.classes)) if j != self.baseline]
        shown = list(range(len(parameter_classes)))
        if len(shown) > MAX_SHOWN_CLASSES:
            shown = sorted(np.argsort(np.nan_to_num(self.pvalues, nan=2.0), kind="stable")[:MAX_SHOWN_CLASSES].tolist())
        baseline_text = f"against {self._class_label(self.baseline)}"
        # Of two classes there is one hypothesis, so nothing to adjust for.
        n_columns = len(_COLUMN_HEADERS) - (len(parameter_classes) == 1)
        names = [self._class_label(parameter_classes[i]) for i in shown]
        cells = [
            (baseline_text, *_COLUMN_HEADERS[:n_columns]),
            *((name, *self._class_cells(i)[:n_columns]) for name, i in zip(names, shown, strict=True)),
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        text_lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in cells
        ]
        if len(shown) < len(parameter_classes):
            larger = "" if self.std_errors is None else " with larger p-values"
            n_others = len(parameter_classes) - MAX_SHOWN_CLASSES
            text_lines.append(f"… and {n_others:,} more {'class' if n_others == 1 else 'classes'}{larger}.")
        if self.std_errors is not None:
            text_lines += [
                f"{name} {baseline_text}: {self._class_sentence(i, name)}" for name, i in zip(names, shown, strict=True)
            ]
        if len(parameter_classes) == 1 and self.std_errors is not None:
            text_lines.append(self._intercept_sentence(names[0]))
        return text_lines + describe_uncertainty(self.uncertainty, self.method)

    def _intercept_sentence(self, name: str) -> str:
        """The intercept and the slope of the log odds of two classes, which clinical reports give."""
        assert self.std_errors is not None
        tau, std_error = float(self.tau[0]), float(self.std_errors[0, 0])
        critical_value = math.nan if self.uncertainty is None else self.uncertainty.interval_factor
        interval = _format_interval(confidence_limits(self.tau, self.std_errors[:, 0], critical_value)[0])
        return (
            f"Log odds of {name} after recalibration: log δ + γ × log odds before it, with calibration intercept"
            f" log δ = {format_parameter(tau)} {interval}, s.e. {format_parameter(std_error)}, and calibration slope γ."
        )

    @property
    def std_errors(self) -> Array | None:
        """Standard errors of τ and γ, (K − 1, 2)."""
        V = None if self.uncertainty is None else self.uncertainty.covariance
        return None if V is None else np.sqrt(V.diagonal(axis1=1, axis2=2))

    @property
    def pvalues(self) -> Array:
        """P-values of Wald's test that a class needs no change, (K − 1,)."""
        if self.uncertainty is None or self.uncertainty.covariance is None:
            return np.full(len(self.tau), np.nan)
        V, std_errors = self.uncertainty.covariance, self.std_errors
        assert std_errors is not None
        # In standard errors, so that no pivot vanishes, however different they are.
        z_tau, z_gamma = self.tau / std_errors[:, 0], (self.gamma - 1) / std_errors[:, 1]
        correlation = V[:, 0, 1] / std_errors[:, 0] / std_errors[:, 1]
        statistic = (z_tau**2 - 2 * correlation * z_tau * z_gamma + z_gamma**2) / (
            (1 - correlation) * (1 + correlation)
        )
        return np.array([self.uncertainty.wald_pvalue(float(value)) for value in statistic])

    def intervals(self) -> tuple[Array, Array]:
        """Intervals of δ and γ, each (K − 1, 2)."""
        std_errors = np.full((len(self.tau), 2), np.nan) if self.std_errors is None else self.std_errors
        critical_value = math.nan if self.uncertainty is None else self.uncertainty.interval_factor
        delta = np.exp(np.minimum(confidence_limits(self.tau, std_errors[:, 0], critical_value), MAX_EXPONENT))
        return delta, confidence_limits(self.gamma, std_errors[:, 1], critical_value)

    def _class_label(self, j: int) -> str:
        """The printable, shortened name of class j; of two classes with its role."""
        class_name = self.classes[j]
        name = to_printable(class_name) if isinstance(class_name, str) else f"class {class_name}"
        name = name if len(name) <= _MAX_NAME_LENGTH else name[: _MAX_NAME_LENGTH - 1] + "…"
        return name if len(self.classes) > 2 else f"{name} ({('other', 'event')[j]})"

    def _class_cells(self, i: int) -> list[str]:
        """The table cells of class i of those but the baseline, one for each of the `_COLUMN_HEADERS`."""
        delta = math.exp(min(self.tau[i], MAX_EXPONENT))
        if self.std_errors is None:
            return [format_parameter(delta), "–", "–", format_parameter(self.gamma[i]), *["–"] * 4]
        delta_interval, gamma_interval = (_format_interval(ends[i]) for ends in self.intervals())
        p, adjusted = (format_pvalue(values[i]) for values in (self.pvalues, holm(self.pvalues.tolist())))
        se_tau, se_gamma = map(format_parameter, self.std_errors[i])
        return [
            format_parameter(delta),
            delta_interval,
            se_tau,
            format_parameter(self.gamma[i]),
            gamma_interval,
            se_gamma,
            p,
            adjusted,
        ]

    def _class_sentence(self, i: int, name: str) -> str:
        """The meaning of a row in plain words."""
        delta, gamma = math.exp(min(self.tau[i], MAX_EXPONENT)), float(self.gamma[i])
        delta_interval, gamma_interval = (ends[i] for ends in self.intervals())
        shift = (
            f"where the model predicts both as equally likely, {name} is observed"
            f" {format_estimate(delta, delta_interval, '×')} as often as {self._class_label(self.baseline)}"
        )
        if delta_interval[0] <= 1 <= delta_interval[1]:
            shift += ", which is consistent with chance"
        both_signs = None if self.uncertainty is None else self.uncertainty.both_signs
        if both_signs is not None and not both_signs[i]:
            shift += " (an extrapolation: it never predicts them as equally likely)"
        text = f"{shift}; {describe_slope(gamma, gamma_interval)}, γ = {format_estimate(gamma, gamma_interval)}"
        intervals_include_identity = (
            delta_interval[0] <= 1 <= delta_interval[1] and gamma_interval[0] <= 1 <= gamma_interval[1]
        )
        if intervals_include_identity and (p := float(holm(self.pvalues.tolist())[i])) <= 0.05:
            text += f"; jointly the two are significant, p = {format_pvalue(p)}"
        return text + "."


def _format_interval(limits: Array) -> str:
    return f"[{format_parameter(limits[0])}, {format_parameter(limits[1])}]"


MIN_UNITS_PER_PARAMETER = 10  # effective units per parameter of a class below which their number is reported

_NO_STD_ERROR_TEXTS = {  # by each of the NO_STD_ERROR_REASONS
    "infinite": "no finite δ and γ are optimal, so a slight penalty decided them.",
    "absent": "some classes were never observed.",
    "untold": "the predictions take too few values to separate every shift from its slope.",
    "many": f"beyond {MAX_NEWTON_PARAMETERS // 2 + 1} classes the fit does not compute the Hessian.",
    "few": (
        "there are no more independent rows, or clusters, than parameters, or a few of them dominate. Use more of them."
    ),
    "far": (
        "with votes or clusters they need the jackknife, which sums over a source do not allow. Fit rows in memory for"
        " them."
    ),
}
_REASONS_REMOVED_BY_PENALTY = ("infinite", "absent", "untold")
_ROBUST_STD_ERROR_TEXTS = {  # by the STD_ERROR_METHODS other than "curvature"
    "weights": (
        "With weights, standard errors are sandwich estimates and no likelihood ratio is shown: weights are not counts"
        " of rows."
    ),
    "votes": (
        "With votes, standard errors are jackknife estimates over rows and no likelihood ratio is shown: the number of"
        " voters is unknown."
    ),
    "clusters": (
        "With clusters, standard errors are jackknife estimates over clusters and no likelihood ratio is shown: rows of"
        " a cluster are not independent."
    ),
}


def describe_slope(gamma: float, interval: Array) -> str:
    """Whether the odds are too extreme or not extreme enough, as far as the interval shows."""
    low, high = interval
    if high <= 0:
        return "the ranking of the model is reversed: what it predicts as likelier is observed less often"
    if low > 1:
        return "the model is underconfident (its odds are not extreme enough)"
    if high < 1 and low > 0:
        return "the model is overconfident (its odds are too extreme)"
    if high < 1:
        alternative = "separates the two no better than chance" if gamma > 0 else "its ranking is reversed"
        return f"the model is overconfident, and perhaps {alternative}"
    if low <= 0:
        return "these rows exclude neither a calibrated slope (γ = 1) nor an uninformative model (γ = 0)"
    return "its slope is consistent with a calibrated model"


def format_estimate(value: float, interval: Array, unit: str = "") -> str:
    """Format an estimate and its interval, with more decimals if a limit would otherwise be shown as 1.

    For instance `0.68 [0.63, 0.74]`.
    """
    numbers = (value, *interval)
    decimals = next(
        (d for d in range(2, 6) if not any(round(x, d) == 1 and abs(x - 1) > 1e-9 for x in interval)),
        6,
    )
    shown = [f"{x:.{decimals}f}" if 0.1 <= abs(x) < 1000 else f"{x:.2g}" for x in numbers]
    return f"{shown[0]}{unit} [{shown[1]}, {shown[2]}]"


def format_parameter(x: float) -> str:
    """Format a parameter with three decimals, or with three digits if it is tiny or huge."""
    return f"{x:.3f}" if 0.01 <= abs(x) < 1000 else f"{x:#.3g}"


def format_pvalue(p: float) -> str:
    """Format a p-value, never as 0."""
    return format_number(p) if not p < 1e-300 else "<1e-300"


def format_probability(p: float) -> str:
    """Format a probability, never as exactly 0 or 1."""
    if p > 0.9999:
        return ">0.9999"
    return "<0.0001" if p < 0.0001 else format_number(p)


def describe_uncertainty(uncertainty: ParameterUncertainty | None, method: str) -> list[str]:
    """How the standard errors were computed, and the test against the identity."""
    if uncertainty is None:
        return ["This map was saved without standard errors. Fit it again to get them."]
    if uncertainty.std_error_method not in STD_ERROR_METHODS:
        reason_text = _NO_STD_ERROR_TEXTS[uncertainty.std_error_method]
        sentences = [f"No standard errors: {reason_text}{_remedy_text(uncertainty, method)}"]
    else:
        adjustment = "; Holm's p adjusts for all classes" if _count_classes(uncertainty) > 1 else ""
        sentences = [f"Each interval is for one parameter, from the rows of the fit{adjustment}."]
    if uncertainty.std_error_method in _ROBUST_STD_ERROR_TEXTS:
        sentences.append(_ROBUST_STD_ERROR_TEXTS[uncertainty.std_error_method])
    if (
        uncertainty.effective_units is not None
        and uncertainty.effective_units < MIN_UNITS_PER_PARAMETER * PARAMETERS_PER_CLASS * _count_classes(uncertainty)
    ):
        unit_noun = "clusters" if uncertainty.std_error_method == "clusters" else "rows"
        sentences.append(
            f"The effective number of {unit_noun} is only {uncertainty.effective_units:.3g}: intervals and tests use t"
            " and F distributions and are wide."
        )
    if uncertainty.penalized and uncertainty.std_error_method in STD_ERROR_METHODS:
        sandwich_text = "" if uncertainty.std_error_method == "curvature" else ", in the sandwich too"
        sentences.append(
            f"With a penalty, standard errors use the penalized Hessian{sandwich_text}, and parameters are shrunk"
            " towards the identity; no likelihood ratio is shown, because χ² is not its null distribution."
        )
    if uncertainty.likelihood_ratio is not None:
        sentences.append(
            "Test of calibration (every δ = γ = 1) on the rows of the fit: likelihood ratio"
            f" {format_number(uncertainty.likelihood_ratio)}, χ² with {uncertainty.rank:,} degrees of freedom, p ="
            f" {format_pvalue(uncertainty.pvalue)}; posterior probability of calibration"
            f" {format_probability(uncertainty.posterior)} by BIC, with prior probability 1/2. Test the map on other"
            " rows."
        )
    return sentences


def _count_classes(uncertainty: ParameterUncertainty) -> int:
    return 0 if uncertainty.covariance is None else len(uncertainty.covariance)


def _remedy_text(uncertainty: ParameterUncertainty, method: str) -> str:
    """A hint on how to obtain standard errors, if a penalty or other rows give them."""
    if uncertainty.std_error_method not in _REASONS_REMOVED_BY_PENALTY:
        return ""
    if uncertainty.penalized:
        return " Use rows with other predictions."
    map_text = "" if method == "mcllo" else ", the same map with a penalty,"
    return f' to.fit(preds, "mcllo", penalty=0.5){map_text} has finite parameters and standard errors.'


def confidence_limits(estimates: Array, std_errors: Array, critical_value: float) -> Array:
    """Confidence limits (K − 1, 2) from estimates and standard errors, both (K − 1,)."""
    return np.asarray(estimates[:, None] + np.array([-critical_value, critical_value]) * std_errors[:, None])

"""Multicategory linear in log odds (MCLLO): a shift and a slope of each class's log odds against a baseline class.

In the model, log q_k/q_b = τ_k + γ_k log p_k/p_b for every class k but the baseline b.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, SummableRows
from trueodds.calibrators._glm.log_linear import (
    MAX_NEWTON_PARAMETERS,
    MAX_PARAMETER,
    LogLinearRows,
    format_range,
    log_linear_likelihood,
    negative_slope_notes,
    not_converged_notes,
    prepare_rows,
    small_sample_notes,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floored_logs,
    logs_for_slopes,
    min_prob_for_slopes,
    raise_to_min_prob,
    softmax,
    to_logs,
)
from trueodds.calibrators._glm.newton import Minimum, Ridge, minimize_lbfgs, minimize_newton, minimize_with_fallback
from trueodds.calibrators._glm.parameter_covariance import ScoreVectors
from trueodds.calibrators._glm.parameter_uncertainty import (
    MAX_EXPONENT,
    FitEvidence,
    ParameterTable,
    ParameterUncertainty,
)
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm, SummedSpec
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, Key, Numbers, PassCount, invalid_value_error
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import Integer, NonNegative, Range
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_sum_exp
from trueodds.tallies.softmax_likelihood import Likelihood

# Factor by which unequal slopes and a tiny baseline may move the odds of two other classes without a note.
_MAX_ODDS_CHANGE = 1000.0


class MclloMap(CalibrationMap):
    """Log odds of each class against the baseline, mapped to τ + γ times these.

    With γ > 0 an exact zero stays zero, and γ = 0 makes it 1. With γ < 0 `min_prob` limits p as in the fit. A baseline
    of exactly zero has no odds: it is not needed if all slopes are equal, else `min_prob` replaces it, and limits it if
    any slope is negative.
    """

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"delta": "delta", "gamma": "gamma"}
    tau: Annotated[Array, Numbers(-MAX_PARAMETER, MAX_PARAMETER, ("k-1",))]  # log δ of the other classes in their order
    gamma: Annotated[Array, Numbers(-MAX_PARAMETER, MAX_PARAMETER, ("k-1",))]  # slopes of the log odds
    baseline: Annotated[int, Range(0)]  # number of the baseline class
    min_prob: MinProb  # smallest probability of the fit
    n_passes: PassCount = 0
    converged: bool = True  # whether every class was observed and the optimum is finite
    # Of τ and γ, from the rows of the fit.
    uncertainty: Annotated[ParameterUncertainty | None, Key("certainty"), OMIT_DEFAULT] = None

    @property
    def delta(self) -> Array:
        """exp τ (K − 1,): the factor of the odds where class and baseline are predicted as equally likely."""
        return np.asarray(np.exp(np.minimum(self.tau, MAX_EXPONENT)))

    def apply(self, P: Probabilities) -> Array:
        """Recalibrate in logarithms, so that small probabilities keep their digits; the result is (n, K).

        If all slopes are equal, the logarithm of the baseline cancels and is not needed.
        """
        logs = to_logs(P)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes, baseline_logs = self._insert_baseline(self.gamma, self.gamma[0]), np.zeros((1, 1))
            if (slopes != slopes[0]).any():
                slopes[self.baseline] = 0.0
                column = logs[:, [self.baseline]]
                baseline_logs = np.where(np.isneginf(column), np.log(self.min_prob), column)
                if min_prob_for_slopes(slopes, self.min_prob).any():
                    baseline_logs = raise_to_min_prob(column, self.min_prob)
            logs = logs_for_slopes(logs, slopes, self.min_prob)
            return softmax(
                np.where(slopes == 0, 0.0, slopes * (logs - baseline_logs)) + self._insert_baseline(self.tau, 0.0)
            )

    def _insert_baseline(self, parameters: Array, baseline_value: float) -> Array:
        """The parameters of the other classes with the baseline's inserted, (K,)."""
        return np.insert(parameters, self.baseline, baseline_value)

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        """γ on the diagonal and −γ in the baseline's column, with the limits of `apply`."""
        bias = self._insert_baseline(self.tau, 0.0)
        if (self.gamma == self.gamma[0]).all():
            return (SoftmaxTerm(1.0, np.full(k, self.gamma[0]), bias, self.min_prob),)
        slopes = self._insert_baseline(self.gamma, 0.0)
        W = np.diag(slopes)
        W[:, self.baseline] -= slopes
        min_prob = min_prob_for_slopes(slopes, self.min_prob)
        zeros_only = not min_prob.any()
        min_prob[self.baseline] = self.min_prob
        return (SoftmaxTerm(1.0, W, bias, min_prob, zeros_only),)

    def describe(self) -> str:
        """The ranges of the parameters, such as `δ 0.916 to 1.28, γ 0.453 to 0.596, against class 3`."""
        return f"δ {format_range(self.delta)}, γ {format_range(self.gamma)}, against class {self.baseline}"

    def named_intervals(self) -> dict[str, Array]:
        """Those of δ and γ, as `table` shows them, each (K − 1, 2)."""
        if self.uncertainty is None or self.uncertainty.covariance is None:
            return {}
        delta, gamma = self._parameter_table(tuple(range(len(self.tau) + 1))).intervals()
        return {"delta": delta, "gamma": gamma}

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """A row and a sentence for each class but the baseline, and the test against the identity."""
        return self._parameter_table(classes).lines()

    def _parameter_table(self, classes: tuple[Any, ...]) -> ParameterTable:
        return ParameterTable(classes, self.baseline, self.tau, self.gamma, self.uncertainty)

    def check_saved(self, k: int) -> None:
        if self.baseline >= k:
            raise invalid_value_error("baseline", f"below {k}, the number of classes", self.baseline)


class MclloSpec(SummedSpec):
    r"""Multicategory linear in log odds (MCLLO): a shift and a slope of each class's log odds against a baseline class.

    Fitted by maximum likelihood, optionally with a ridge penalty. δ_j > 1 means that class j is underpredicted
    relative to the baseline c. γ_j < 1 means overconfident, γ_j < 0 a reversed ranking. δ = γ = 1 is the identity. For
    two classes it is `llo`; with equal slopes it is `bias_corrected_temperature`. Predicted classes may change.

    Parameters
    ----------
    baseline : int or str, optional
        Baseline class: its number (negative ones count from the last), or `class:` and its name, as in `class:cat`. By
        default the last class; of two classes the first, which is not the event. The baseline matters unless all
        slopes are equal.
    penalty : float, default=0.0
        Ridge penalty λ in nats over all rows. 0.5 is a normal prior with standard deviation 1, of shifts around 0 and
        of slopes around 1.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. Outcomes with predicted probability
        0 are counted in a note (TN541), because `min_prob` then decides the fit.

    Notes
    -----
    .. math:: \log\frac{q_j}{q_c} = \tau_j + \gamma_j \log\frac{p_j}{p_c}, \qquad
        \min_{\tau, \gamma} -\sum_i w_i \sum_k y_{ik} \log q_{ik} + \lambda \sum_{j \ne c} [\tau_j^2 + (\gamma_j - 1)^2]

    with δ = exp τ. The loss is convex in τ and γ, though not in δ.

    Where the baseline has a tiny probability, unequal slopes move the row to the class with the largest slope, whatever
    the model predicted for the others (note TN542). Choose a class that is rarely tiny.

    Without a penalty, as published, a fit needs many rows. Of twelve fits to 396 rows with seven classes three had no
    finite optimum (six with sharper probabilities). They reduced the log loss on other rows from .502 to .428 nats per
    row, with the penalty to .423 (a forest's votes, docs/studies/obesity.md). Without a penalty a class that is never
    observed keeps its odds against the baseline (note TN540), and where outcomes are separated a slight penalty
    decides; in both cases `converged` is False.

    `summary()` of the fit prints the parameters with 95 % intervals (those of δ are the exponentiated ends of τ's),
    Wald tests, the likelihood ratio against the identity, and each in words, all from the rows of the fit. Unequal
    weights have sandwich standard errors with the variance of the model; votes and clusters have jackknife standard
    errors, over rows or clusters. In these cases and with a penalty there is no likelihood ratio. Weights are never
    counts of rows here: for those use `weight_kind="frequency"`.

    Cost: O(nK²) per pass, about 6 passes.

    References
    ----------
    .. [1] Vennos, Xing & Franck (2026). arXiv 2602.18573.

    Examples
    --------
    >>> P = np.array([[0.6, 0.3, 0.1]] * 4 + [[0.1, 0.3, 0.6]] * 4)
    >>> Y = np.eye(3)[[0, 0, 1, 2, 0, 1, 2, 2]]
    >>> m = MclloSpec().fit(P, Y, np.ones(8))
    >>> m.apply(P[:1]).round(6).tolist()
    [[0.5, 0.25, 0.25]]
    """

    name, map_type = "mcllo", MclloMap
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "the baseline is part of the model, and the default is the last class, of two the first"
    }
    baseline: Integer | str | None = None
    penalty: NonNegative = 0.0
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        check_baseline(self.baseline)

    def with_class_numbers(self, classes: Sequence[Any]) -> MclloSpec:
        """Return the settings with the baseline as a class number instead of a name."""
        return replace(self, baseline=resolve_class_name(self.baseline, classes))

    def fit_from_sums(self, data: SummableRows) -> MclloMap:
        k = data.summary.k
        baseline = baseline_index(self.baseline, k)
        # Without a penalty the shift of an unobserved class is −∞, so the other classes are fitted alone.
        fitted_classes = np.ones(k, dtype=bool) if self.penalty else data.summary.class_totals > 0
        all_observed = bool(fitted_classes.all())
        is_estimated = fitted_classes[np.delete(np.arange(k), baseline)]
        tau, gamma = np.zeros(k - 1), np.ones(k - 1)
        log_odds = data.map_rows(prepare_rows).map_rows(
            partial(
                _log_odds_against_baseline, baseline=baseline, fitted_classes=None if all_observed else fitted_classes
            )
        )
        optimal_fit = fit_baseline_logits(log_odds, np.flatnonzero(fitted_classes) != baseline, self.penalty)
        tau[is_estimated], gamma[is_estimated] = optimal_fit.shifts, optimal_fit.slopes
        uncertainty = optimal_fit.uncertainty() if all_observed else ParameterUncertainty("absent")
        converged = optimal_fit.optimum.converged and all_observed
        return MclloMap(tau, gamma, baseline, self.min_prob, optimal_fit.optimum.n_passes, converged, uncertainty)

    def notes_from_sums(self, calibration_map: MclloMap, data: SummableRows) -> list[Note]:
        summary = data.summary
        absent = [] if self.penalty else np.flatnonzero(summary.class_totals == 0).tolist()
        return [
            *summary.replaced_counts.notes(),
            *zero_outcome_notes(summary.replaced_counts.n_zero_events),
            *absent_class_notes(absent, calibration_map.baseline),
            *([] if absent else not_converged_notes(self, calibration_map)),
            *negative_slope_notes(self, calibration_map.gamma),
            *small_baseline_notes(calibration_map.gamma, calibration_map.baseline, data),
            *small_sample_notes(self, summary.n, 2 * (summary.k - 1)),
        ]


def _log_odds_against_baseline(rows: LogLinearRows, baseline: int, fitted_classes: Array | None) -> LogLinearRows:
    """The rows with log odds against the baseline instead of logarithms, for the fitted classes.

    `fitted_classes` is a mask (K,), or None for all classes.
    """
    x = rows.x - rows.x[:, [baseline]]
    if fitted_classes is None:
        return LogLinearRows(x, rows.Y, rows.w)
    return LogLinearRows(x[:, fitted_classes], rows.Y[:, fitted_classes], rows.w)


def zero_outcome_notes(n_outcomes: int) -> list[Note]:
    if not n_outcomes:
        return []
    text = (
        f"{n_outcomes:,} observed outcomes had predicted probability 0, which is impossible under calibration."
        " Their influence on this map depends on ⟨min_prob⟩; fit with another value to see how much."
    )
    return [Note("TN541", text)]


def absent_class_notes(absent: list[int], baseline: int) -> list[Note]:
    """Note on the classes `absent` (numbers), which were never observed, and the odds that they keep."""
    if not absent:
        return []
    which = f"Class {absent[0]}" if len(absent) == 1 else f"{len(absent):,} classes"
    verb = "was" if len(absent) == 1 else "were"
    consequence = (
        "the mean shift against it, the baseline, stays 0"
        if baseline in absent
        else "the odds against the baseline stay as predicted"
    )
    text = (
        f"{which} {verb} never observed, so no finite shift is optimal; {consequence}, and the observed classes are"
        " fitted among themselves. Set a penalty for an estimate."
    )
    return [Note("TN540", text)]


def small_baseline_notes(gamma: Array, baseline: int, data: SummableRows) -> list[Note]:
    """Note on rows where the baseline is tiny and unequal slopes decide, from sums over rows `FitData`."""
    slope_range = float(np.ptp(gamma))
    if slope_range == 0:
        return []
    n_rows = data.sum(partial(_count_small_baseline, baseline=baseline, slope_range=slope_range))
    if not n_rows:
        return []
    safer_baseline = baseline
    if data.rows is not None:
        low_quantiles = np.quantile(floored_logs(data.rows.P, data.rows.min_prob), 0.05, axis=0)
        safer_baseline = int(np.argmax(low_quantiles))
    text = (
        f"In {n_rows:,} of {data.summary.n:,} rows class {baseline}, the baseline, is so small that slopes which differ"
        f" by {slope_range:.3g} move the odds of two other classes by a factor of more than {_MAX_ODDS_CHANGE:,.0f}"
    )
    remedy = ""
    if safer_baseline != baseline:
        remedy = f"; class {safer_baseline} is rarely so small: baseline={safer_baseline}"
    return [Note("TN542", f"{text}{remedy}.")]


def _count_small_baseline(data: FitData, baseline: int, slope_range: float) -> int:
    """Number of rows where the baseline is so small that unequal slopes decide the other odds."""
    logs = to_logs(data.P)
    log_deficit = log_sum_exp(logs) - logs[:, baseline]
    return int((slope_range * np.minimum(log_deficit, -np.log(data.min_prob)) > np.log(_MAX_ODDS_CHANGE)).sum())


_EQUALITY_TOLERANCE = 1e-12  # tolerance within which log odds are equal
_CLASS_NAME_PREFIX = "class:"  # as in lens="class:cat"
_MAX_LISTED_CLASSES = 20  # in an error message


@dataclass(frozen=True, slots=True, eq=False)
class LogOddsRange:
    """Weighted sums and ranges of the log odds x of each class against the baseline; those of batches add up."""

    total: Array  # (K,) Σwx
    low: Array  # (K,) smallest x
    high: Array  # (K,) largest x

    @classmethod
    def from_rows(cls, rows: LogLinearRows) -> LogOddsRange:
        return cls(
            weighted_sum(rows.w, rows.x), rows.x.min(axis=0, initial=np.inf), rows.x.max(axis=0, initial=-np.inf)
        )

    def __add__(self, other: LogOddsRange) -> LogOddsRange:
        return LogOddsRange(
            self.total + other.total, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        )


@dataclass(frozen=True, slots=True, eq=False)
class BaselineLogitFit:
    """Maximum likelihood fit of the baseline-category logit model, with the centered log odds it was fitted to."""

    data: SummableRows  # of `LogLinearRows` with x (n, K) minus the means
    has_parameters: Array  # (K,) bool: True for every class but the baseline
    means: Array  # (K − 1,) by which the log odds were centered
    both_signs: Array  # (K − 1,) bool: whether the log odds take both signs
    penalty: float  # λ in nats over all rows
    optimum: Minimum  # (γ, τ′) of each class but the baseline, where τ = τ′ − γ mean
    identity_loss: float  # minus the log-likelihood of γ = 1, τ = 0

    @property
    def slopes(self) -> Array:
        """γ of each class but the baseline."""
        return self.optimum.theta[::2]

    @property
    def shifts(self) -> Array:
        """τ of each class but the baseline."""
        return self.optimum.theta[1::2] - self.slopes * self.means

    def uncertainty(self) -> ParameterUncertainty:
        """Compute the uncertainty of the parameters.

        Cost: O(nK + K³), little compared with the fit; with unequal weights (the sandwich estimator) O(nK²).
        """
        if not self.optimum.converged:
            return ParameterUncertainty("infinite")
        if not self.optimum.likelihood.hessian.size:
            return ParameterUncertainty("many")
        return FitEvidence(
            summary=self.data.summary,
            hessian=self.optimum.likelihood.hessian,
            means=self.means,
            both_signs=self.both_signs,
            penalty=self.penalty,
            scores=None if self.data.rows is None else self._score_vectors,
            squared_weight_hessian=self._squared_weight_hessian,
            likelihood_ratio=self._likelihood_ratio,
        ).uncertainty()

    def _likelihood_ratio(self) -> float:
        return max(2 * (self.identity_loss - self.optimum.likelihood.value), 0.0)

    def _squared_weight_hessian(self) -> Array:
        """Hessian at the optimum with squared weights, (d, d), for the sandwich estimator."""
        tying = _tying_matrix(self.has_parameters)
        hessian: Array = self.data.sum(partial(_squared_weight_hessian_of_rows, theta=self.optimum.theta, tying=tying))
        return hessian

    def _score_vectors(self) -> ScoreVectors:
        rows, mask = self.data.rows, self.has_parameters
        eta = np.zeros_like(rows.x)
        eta[:, mask] = rows.x[:, mask] * self.slopes + self.optimum.theta[1::2]
        return ScoreVectors(rows.x[:, mask], softmax(eta)[:, mask], rows.Y[:, mask], rows.w)


def fit_baseline_logits(data: SummableRows, has_parameters: Array, penalty: float) -> BaselineLogitFit:
    """Fit slope and shift of every class but the baseline.

    `data` are sums over `LogLinearRows` with log odds (n, K) against the baseline. `has_parameters` (K,) is False for
    the baseline only. `penalty` is λ, in nats over all rows, of the ridge λ|θ − (1, 0)|².
    """
    k, total_weight = len(has_parameters), data.summary.total_weight
    log_odds_range: LogOddsRange = data.sum(LogOddsRange.from_rows)
    # Centered without a penalty: log odds that are all equal then leave the slope unchanged.
    means = np.zeros(k) if penalty else log_odds_range.total / total_weight
    is_constant = np.maximum(log_odds_range.high - means, means - log_odds_range.low) <= _EQUALITY_TOLERANCE * (
        1 + np.abs(means)
    )
    low = np.where(is_constant, means, log_odds_range.low)[has_parameters]
    high = np.where(is_constant, means, log_odds_range.high)[has_parameters]
    centered = data.map_rows(partial(_center_log_odds, means=means, is_constant=is_constant))
    identity = np.column_stack([np.ones(k), means])[has_parameters].reshape(-1)  # (γ, τ′) of each class
    tying = _tying_matrix(has_parameters)
    losses: list[float] = []  # of all evaluations, in their order

    def likelihood_of_rows(theta: Array, *, with_hessian: bool = True) -> Callable[[LogLinearRows], Likelihood]:
        return partial(
            log_linear_likelihood, theta=theta, shared_features=False, tying=tying, with_hessian=with_hessian
        )

    def sums(theta: Array, *, with_hessian: bool = True) -> Likelihood:
        """Evaluate the likelihood of θ in one pass, and record its value."""
        likelihood: Likelihood = centered.sum(likelihood_of_rows(theta, with_hessian=with_hessian))
        losses.append(likelihood.value)
        return likelihood

    def minimize(ridge: float, min_gain: float) -> Minimum:
        """Minimize the loss with this ridge added to the penalty, in nats over all rows, from the identity."""
        strengths = np.full(len(identity), (penalty + ridge) / total_weight)
        if len(identity) <= MAX_NEWTON_PARAMETERS:
            return minimize_newton(
                sums, identity, Ridge(strengths, identity), min_gain=min_gain, fallback=np.zeros(len(identity)),
                sums_at_points=lambda points: centered.sums(map(likelihood_of_rows, points)),
            )  # fmt: skip
        curvature = centered.sum(partial(_hessian_diagonal, means=means)) @ tying / total_weight
        return minimize_lbfgs(partial(sums, with_hessian=False), identity, Ridge(strengths, identity), curvature)

    return BaselineLogitFit(
        data=centered,
        has_parameters=has_parameters,
        means=means[has_parameters],
        both_signs=(low <= 0) & (high >= 0),
        penalty=penalty,
        optimum=minimize_with_fallback(minimize),
        identity_loss=losses[0],  # both searches start at the identity
    )


def _tying_matrix(has_parameters: Array) -> Array:
    """Matrix (2K, d) from slope and shift of the classes with parameters to those of all classes, else 0."""
    return np.eye(2 * len(has_parameters))[:, np.repeat(has_parameters, 2)]


def _center_log_odds(rows: LogLinearRows, means: Array, is_constant: Array) -> LogLinearRows:
    """The rows with log odds minus their means (K,), exactly 0 for a class whose log odds are all equal."""
    x = rows.x - means
    x[:, is_constant] = 0.0
    return LogLinearRows(np.asfortranarray(x), np.asfortranarray(rows.Y), rows.w)


def _squared_weight_hessian_of_rows(rows: LogLinearRows, theta: Array, tying: Array) -> Array:
    return log_linear_likelihood(replace(rows, w=rows.w**2), theta, shared_features=False, tying=tying).hessian


def _hessian_diagonal(rows: LogLinearRows, means: Array) -> Array:
    """Diagonal of the Hessian at the identity, (2K,) with slope and shift of each class in turn."""
    q = softmax(rows.x + means)
    variance = q * (1 - q)
    return np.asarray(weighted_sum(rows.w, np.stack([variance * rows.x**2, variance], axis=2).reshape(len(q), -1)))


def check_baseline(baseline: Any) -> None:
    """Raise TO203 for a value that cannot name a class."""
    if baseline is None or (isinstance(baseline, str) and baseline.startswith(_CLASS_NAME_PREFIX)):
        return
    if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
        raise InputError(
            "TO203", "baseline must be the number of a class, or 'class:' and its name.", describe(baseline),
            "For instance -1, or 'class:cat'.",
        )  # fmt: skip


def resolve_class_name(baseline: Any, classes: Sequence[Any]) -> Any:
    """The class number for a name such as `class:cat`; numbers stay unchanged.

    >>> resolve_class_name("class:dog", ["cat", "dog"]), resolve_class_name(-1, ["cat", "dog"])
    (1, -1)
    """
    if not isinstance(baseline, str):
        return baseline
    class_names = [str(name) for name in classes]
    if (name := baseline.removeprefix(_CLASS_NAME_PREFIX)) in class_names:
        return class_names.index(name)
    known = ", ".join(f"{j} is {label}" for j, label in enumerate(class_names[:_MAX_LISTED_CLASSES]))
    more = f" and {len(class_names) - _MAX_LISTED_CLASSES:,} more" if len(class_names) > _MAX_LISTED_CLASSES else ""
    raise InputError("TO203", f"baseline must name a class: {known}{more}.", describe(baseline), "Pass one of these.")


def baseline_index(baseline: Any, k: int) -> int:
    """The baseline's number from 0 to k − 1; by default the last class, of two classes the first.

    >>> baseline_index(None, 2), baseline_index(None, 5), baseline_index(-2, 5)
    (0, 4, 3)
    """
    if baseline is None:
        return 0 if k == 2 else k - 1
    if isinstance(baseline, str):
        raise InputError(
            "TO203",
            "Class names are not known here.",
            describe(baseline),
            f"Pass the number of the class: 0 to {k - 1}.",
        )
    if not -k <= baseline < k:
        got = f"{baseline} of {k} classes"
        raise InputError(
            "TO203", "baseline must be the number of a class.", got, f"Pass a number from {-k} to {k - 1}."
        )
    return int(baseline) % k

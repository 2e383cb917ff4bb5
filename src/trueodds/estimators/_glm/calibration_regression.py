"""Cox's calibration regression: intercept and slope with standard errors, and the statistics that test them.

The "parts" are the tested hypotheses: intercept 0 and slope 1 ("joint"), intercept 0 given slope 1 ("in-the-large"),
and slope 1 for any intercept ("slope").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

from trueodds.calibrators._glm.parameter_covariance import (
    IndependentUnits,
    ParameterCovariance,
    ScoreVectors,
    ShiftScores,
    jackknife_covariance,
    upper_tail,
    wald_statistic,
)
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.results import Coefficient
from trueodds.core.typing import Array
from trueodds.estimators._glm.logistic import (
    LogitRegressionFit,
    fit_logit_regression,
    logistic_statistics,
    weight_scale,
)
from trueodds.estimators._glm.logits import LogitPolynomials, Logits
from trueodds.lenses.view import View, has_vote_shares

TESTED_PARTS = ("joint", "in-the-large", "slope")
_PARAMETER_NUMBERS = {"in_the_large": 0, "intercept": 0, "slope": 1}  # of each coefficient in its fit

# Minimum effective number of fair coin tosses, and the largest rejection rate in percent below it. Of 3,000 calibrated
# data sets each from nine designs (logit-normal, beta, rare, sharp, with outliers; n = 10 to 2000), 7 % or fewer were
# rejected at 5 % above this minimum (in the large 7.5 %).
MIN_EFFECTIVE_N_AND_ERROR_PERCENT = {"likelihood-ratio": (8, 25), "score": (4, 14), "in-the-large": (20, 16)}


@dataclass(frozen=True, eq=False)
class CalibrationRegression:
    """Logistic regression of the outcomes of one view on its predicted log odds."""

    view: View
    logits: Logits  # predicted log odds of each row
    powers: LogitPolynomials  # intercept and slope as orthonormal columns
    wy: Array  # (1, n) weighted outcomes

    @classmethod
    def from_view(cls, view: View, min_prob: float, name: str = "cox") -> CalibrationRegression:
        """Create the regression of a view; `name` is the method that uses it, for errors."""
        logits = Logits.from_view(view, min_prob, name)
        return cls(view, logits, LogitPolynomials.from_logits(logits, 1), (view.w * view.y)[None])

    @cached_property
    def shift_fit(self) -> LogitRegressionFit:
        """The fit with slope 1."""
        return self._fit(1)

    @cached_property
    def regression_fit(self) -> LogitRegressionFit:
        """The fit of intercept and slope; equal to `shift_fit` if there is no slope."""
        return self._fit(2)

    def _fit(self, m: int) -> LogitRegressionFit:
        """Fit the first m parameters."""
        return fit_logit_regression(self.powers.columns[:, :m], self.logits.x, self.logits.w, self.wy)

    def _fit_of(self, name: str) -> LogitRegressionFit:
        """The fit that estimates a coefficient."""
        return self.shift_fit if name == "in_the_large" else self.regression_fit

    def weighted_mean(self, values: Array) -> float:
        """Weighted mean of values (n,) over the rows."""
        return float(weighted_sum(self.logits.w, values) / self.logits.w.sum())

    @property
    def fitted_probs(self) -> Array:
        """Fitted probability of each row."""
        return self.regression_fit.probabilities(self.powers.columns, self.logits.x)

    @property
    def intercept_only_probs(self) -> Array:
        """Fitted probability of each row with slope 1."""
        return self.shift_fit.probabilities(self.powers.columns, self.logits.x)

    def statistic(self, part: str, form: str, wy: Array) -> Array:
        """Statistic (draws,) of one part for each of many weighted outcomes `wy` (draws, n).

        `form` is "likelihood-ratio" or "score".
        """
        if part == "slope":
            return self._slope_statistic(form, wy)
        return logistic_statistics(self.logits, self.powers, wy, int(part == "joint"), form)

    def _slope_statistic(self, form: str, wy: Array) -> Array:
        """Statistics (draws,) of the slope for any intercept: the score at the best shift, or the gain over it."""
        logits, columns = self.logits, self.powers.columns
        if self.powers.degree == 0:
            return np.full(len(wy), np.nan)
        shift_fits = fit_logit_regression(columns[:, :1], logits.x, logits.w, wy)
        shifted_probs = expit(logits.x + shift_fits.beta[:, :1] * columns[:, 0])
        variance = shifted_probs * (1 - shifted_probs)
        row_information, x = variance * logits.w, columns[:, 1]
        x = x - ((row_information @ x) / np.maximum(row_information.sum(1), 1e-300))[:, None]  # centered for each draw
        score = ((wy - logits.w * shifted_probs) * x).sum(1)
        information, score_variance = (row_information * x**2).sum(1), (variance * logits.ww * x**2).sum(1)
        # The columns are in units of 1/√w; a smaller variance is rounding error.
        identified = score_variance > 1e-12 * weight_scale(logits.w)
        if form == "score":
            return np.divide(score**2, score_variance, out=np.zeros(len(wy)), where=identified)
        gain = fit_logit_regression(columns, logits.x, logits.w, wy).gain - shift_fits.gain
        return 2 * gain * np.divide(information, score_variance, out=np.ones(len(wy)), where=identified)

    def parts(self, form: str) -> dict[str, dict[str, float]]:
        """Statistic, degrees of freedom, χ² p-value and estimates of each part."""
        by_part: dict[str, dict[str, float]] = {}
        for part, df in zip(TESTED_PARTS, (1 + self.powers.degree, 1, self.powers.degree), strict=True):
            statistic = float(self.statistic(part, form, self.wy)[0])
            pvalue = upper_tail(max(statistic, 0.0), df)
            by_part[part] = {"statistic": statistic, "df": float(df), "pvalue": pvalue}
        return _with_coefficients(by_part, self.coefficients())

    def wald_parts(self, cluster: Array) -> dict[str, dict[str, float]]:
        """Wald statistic, degrees of freedom, effective number of clusters, p-value and estimates of each part.

        `cluster` (n,) is the cluster of each row. The statistics have the distribution of Hotelling's T².
        """
        by_part: dict[str, dict[str, float]] = {}
        for part, df in zip(TESTED_PARTS, (1 + self.powers.degree, 1, self.powers.degree), strict=True):
            fit = self.shift_fit if part == "in-the-large" else self.regression_fit
            values, estimated = self._estimates(fit, cluster)
            deviation, covariance = (values - [0.0, 1.0])[:df], estimated.covariance[:df, :df]
            if part == "slope":
                deviation, covariance = values[1:] - 1.0, estimated.covariance[1:, 1:]
            statistic = wald_statistic(deviation, covariance) if df and np.isfinite(covariance).all() else float("nan")
            units = float("nan") if estimated.effective_units is None else estimated.effective_units
            pvalue = upper_tail(statistic, df, units)
            by_part[part] = {"statistic": statistic, "df": float(df), "units": units, "pvalue": pvalue}
        return _with_coefficients(by_part, self.coefficients(cluster))

    def coefficients(self, cluster: Array | None = None) -> dict[str, Coefficient]:
        """Calibration-in-the-large, intercept and slope with standard errors, by the jackknife with `cluster` (n,)."""
        coefficients = {}
        for names, fit in ((("in_the_large",), self.shift_fit), (("intercept", "slope"), self.regression_fit)):
            values, estimated = self._estimates(fit, cluster)
            std_errors = np.sqrt(estimated.covariance.diagonal())
            for i, name in enumerate(names):
                coefficients[name] = Coefficient(float(values[i]), float(std_errors[i]), estimated.effective_units)
        return coefficients

    def coefficients_of_votes(self, cluster: Array | None = None) -> dict[str, Coefficient]:
        """As `coefficients`, but the standard errors of shares of votes are from the jackknife over rows."""
        return self.coefficients(self._units(cluster))

    def coefficient(self, name: str, cluster: Array | None = None) -> Coefficient:
        """One of `coefficients_of_votes`."""
        values, estimated = self._estimates(self._fit_of(name), self._units(cluster))
        index = _PARAMETER_NUMBERS[name]
        se = float(np.sqrt(estimated.covariance[index, index]))
        return Coefficient(float(values[index]), se, estimated.effective_units)

    def _units(self, cluster: Array | None) -> Array | None:
        """The unit of each row for the jackknife: its cluster, or the row itself if it has shares of votes."""
        return np.arange(len(self.view)) if cluster is None and has_vote_shares(self.view) else cluster

    def value(self, name: str) -> float:
        """The estimate of a coefficient; NaN if no finite one exists."""
        return float(self._coefficients_of_fit(self._fit_of(name))[_PARAMETER_NUMBERS[name]])

    def draws(self, name: str, w: Array, wy: Array) -> Array:
        """Estimates (draws,) of a coefficient from weights w (n,) or (draws, n) and weighted outcomes wy (draws, n)."""
        fits = fit_logit_regression(self.powers.columns[:, : 1 if name == "in_the_large" else 2], self.logits.x, w, wy)
        m, index = fits.beta.shape[1], _PARAMETER_NUMBERS[name]
        if index >= m:
            return np.full(len(wy), np.nan)
        estimates = float(index == 1) + fits.beta @ self.powers.monomial_coefficients[index, :m]
        return np.where(fits.has_maximum, estimates, np.nan)

    def influence(self, name: str) -> Array:
        """Influence (n,) of each row on a coefficient: what its residual adds to the estimate, to first order."""
        fit, index = self._fit_of(name), _PARAMETER_NUMBERS[name]
        m = fit.beta.shape[1]
        columns = self.powers.columns[:, :m]
        q = fit.probabilities(columns, self.logits.x)
        information = columns.T @ ((q * (1 - q) * self.logits.w)[:, None] * columns)
        direction = self.powers.monomial_coefficients[index, :m] @ np.linalg.inv(information)
        return np.asarray((self.wy[0] - self.logits.w * q) * (columns @ direction))

    def _coefficients_of_fit(self, fit: LogitRegressionFit) -> Array:
        """Intercept and slope of a fit, (2,), NaN where no finite estimate exists; with m = 1 there is no slope."""
        values = np.full(2, np.nan)
        if fit.has_maximum[0]:
            values[: fit.beta.shape[1]] = self.powers.coefficients(fit.beta[0])
        return values

    def _estimates(self, fit: LogitRegressionFit, cluster: Array | None = None) -> tuple[Array, ParameterCovariance]:
        """Intercept and slope of a fit, (2,), with their covariance; NaN where no finite estimate or variance exists.

        A fit with slope 1 has m = 1 parameter, the intercept, and NaN as the slope. With `cluster` (n,) the covariance
        is the jackknife's, and else the sandwich estimate. Its score variance is that of the model if the slope is
        free. If the slope is fixed at 1, which is wrong for most miscalibrated models, it is that of the residuals.
        """
        m, values, covariance = fit.beta.shape[1], self._coefficients_of_fit(fit), np.full((2, 2), np.nan)
        units = None if cluster is None else IndependentUnits.from_clusters(self.logits.w, cluster)
        n_units = None if units is None else float("nan")
        if not fit.has_maximum[0]:
            return values, ParameterCovariance(covariance, n_units)
        columns, logits = self.powers.columns[:, :m], self.logits
        q = fit.probabilities(columns, logits.x)
        information = columns.T @ ((q * (1 - q) * logits.w)[:, None] * columns)
        if units is None:
            squares = self._squared_residuals(q) if m == 1 else q * (1 - q) * logits.ww
            score_variance = columns.T @ (squares[:, None] * columns)
            transform = self.powers.monomial_coefficients[:m, :m] @ np.linalg.inv(information)
            covariance[:m, :m] = transform @ score_variance @ transform.T
        elif units.n_units > m:
            estimated = self._jackknife(q, units, m)
            if estimated.effective_units is not None and estimated.effective_units > m:
                covariance[:m, :m], n_units = estimated.covariance, estimated.effective_units
        return values, ParameterCovariance(covariance, n_units)

    def _squared_residuals(self, q: Array) -> Array:
        """Σw²(y − q)² of each row or cell for fitted probabilities q (n,), from the sums around the predictions."""
        y, p = self.view.y, self.view.p.astype(np.float64)
        return np.maximum(self.view.sums("wwr") + self.logits.ww * ((y - q) ** 2 - (y - p) ** 2), 0.0)

    def _jackknife(self, q: Array, units: IndependentUnits, m: int) -> ParameterCovariance:
        """Covariance (m, m) of intercept and slope by the jackknife, with fitted probabilities q (n,)."""
        w, variance = self.logits.w, self.logits.w * q * (1 - q)
        y = np.divide(self.wy[0], w, out=np.zeros(len(w)), where=w > 0)
        if m == 1:
            curvature = variance.sum()[None, None]
            return jackknife_covariance(1 / curvature, curvature, ShiftScores(q, y, w), units)
        mean = float(
            weighted_sum(variance, self.logits.x) / variance.sum()
        )  # a centered slope is uncorrelated with the intercept
        x = self.logits.x - mean
        hessian = np.diag([weighted_sum(variance, x**2), variance.sum()])
        scores = ScoreVectors(x[:, None], q[:, None], y[:, None], w)
        estimated = jackknife_covariance(np.diag(1 / hessian.diagonal()), hessian, scores, units)
        transform = np.array([[-mean, 1.0], [1.0, 0.0]])  # from the slope and the shift at the mean log odds
        return replace(estimated, covariance=transform @ estimated.covariance @ transform.T)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on parameters that cannot be estimated."""
        if self.powers.degree == 0:
            text = "All predictions are equal, so the slope cannot be estimated: only the intercept is tested."
            return (*self.shift_fit.notes, Note("TN218", text))
        return self.regression_fit.notes

    def asymptotic_warnings(self, part: str, form: str) -> tuple[str, ...]:
        """Reasons why χ² is inaccurate for these rows."""
        tosses = {
            "joint": self.powers.n_coin_tosses,
            "in-the-large": self.powers.n_coin_tosses[:1],
            "slope": self.powers.n_coin_tosses[1:],
        }[part]
        min_tosses, max_error_percent = MIN_EFFECTIVE_N_AND_ERROR_PERCENT[part if part == "in-the-large" else form]
        reasons = []
        if len(tosses) and tosses.min() < min_tosses:
            reasons.append(
                f"The tested parameters have the information of {tosses.min():.2g} fair coin tosses; with fewer than"
                f" {min_tosses}, up to {max_error_percent} % of calibrated models were rejected at 5 %."
            )
        fit = self.shift_fit if part == "in-the-large" else self.regression_fit
        if form == "likelihood-ratio" and not fit.has_maximum[0]:
            reasons.append(
                "No finite maximum likelihood estimate exists, and the limit of the likelihood ratio is not χ²."
            )
        return tuple(reasons)


def _with_coefficients(
    parts: dict[str, dict[str, float]], coefficients: dict[str, Coefficient]
) -> dict[str, dict[str, float]]:
    """Add the estimates with their standard errors to the parts that test them."""
    names_by_part = {"joint": ("intercept", "slope"), "in-the-large": ("in_the_large",), "slope": ("slope",)}
    for part, names in names_by_part.items():
        for name in names:
            parts[part] |= {name: coefficients[name].value, f"{name}_se": coefficients[name].se}
    return parts

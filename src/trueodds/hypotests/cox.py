"""Cox's calibration regression test: intercept and slope of the outcomes on the predicted log odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import chdtrc, expit, ndtri

from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.hypotests._glm.logistic import (
    LogisticForm,
    LogitRegressionFit,
    fit_logistic,
    logistic_statistics,
    weight_scale,
)
from trueodds.hypotests._glm.logits import LogitPolynomials, Logits, MinProb
from trueodds.hypotests.nested_cells import has_vote_shares
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.view import View

TESTED_PARTS = ("joint", "in-the-large", "slope")

# Minimum effective number of fair coin tosses, and the largest rejection rate in percent below it. Of 3,000 calibrated
# data sets each from nine designs (logit-normal, beta, rare, sharp, with outliers; n = 10 to 2000), 7 % or fewer were
# rejected at 5 % above this minimum (in the large 7.5 %).
MIN_EFFECTIVE_N_AND_ERROR_PERCENT = {"likelihood-ratio": (8, 25), "score": (4, 14), "in-the-large": (20, 16)}


@dataclass(frozen=True)
class Cox(ViewTest):
    r"""Cox's calibration regression: intercept and slope of the outcomes on the predicted log odds.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: χ², or labels drawn from the predicted probabilities.
    redraw : {"labels", "both"}, default="labels"
        With ``null="redraw"``: "labels" keeps the predictions, "both" also resamples the rows.
    resamples : int, default=999
        Number of null draws with ``null="redraw"``.
    part : {"joint", "in-the-large", "slope"}, default="joint"
        Tested hypothesis: a = 0 and b = 1 ("joint"), a = 0 given b = 1 ("in-the-large"), or b = 1 for any a ("slope").
    form : {"likelihood-ratio", "score"}, optional
        Default: the likelihood ratio with the asymptotic null, and the score statistic, which needs no fit per draw,
        with redrawn labels. The score form is unaffected by separation.
    min_prob : float, default=0.0
        Lower limit of the probabilities; 1 − min_prob is the upper limit. A note counts the clipped rows. 0 clips
        nothing.

    Raises
    ------
    InputError
        TO203 for unknown settings. TO205 for a probability of 0 or 1 without `min_prob`, and for a lens with a
        probability vector per row. Use the test `mcllo` for those.

    Notes
    -----
    The model is

    .. math:: \mathrm{logit}\,P(y = 1) = a + b\,\mathrm{logit}\,p

    A slope b < 1 means that the predictions are too extreme, b > 1 that they are not extreme enough. The parts report
    all three tests. Two intercepts are often confused: `intercept` is estimated with a free slope, `in_the_large`
    (calibration-in-the-large on the logit scale) with slope 1. The likelihood ratios of in-the-large and slope add up
    to the joint one.

    Statistic: χ² ≥ 0 with 2, 1 and 1 degrees of freedom. Effect, in probability units: the mean of |c(p) − p| with the
    fitted calibration curve c; for "slope" of |c(p) − c₀(p)| where c₀ has slope 1; for "in-the-large" the mean of y −
    p, which is positive if the model underpredicts. If all predictions are equal, there is no slope (note TN218) and
    one degree of freedom. If the predictions separate the outcomes, no finite maximum likelihood estimate exists (note
    TN217) and the likelihood ratio is its limit.

    Shapes: binary views. With weights the likelihood ratio is adjusted by the sandwich variance, and the score is
    divided by the variance of weighted scores. From a tally p is the mean of its cell. Cost: O(n) per Newton step,
    about 5 steps; with redraws in the score form O(n) per draw, plus some Newton steps per draw for "slope" and for the
    likelihood ratio.

    References
    ----------
    .. [1] Cox (1958).
    .. [2] Miller, Hui & Tierney (1991).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 0, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.1, 0.2, 0.3], "cox")
    >>> round(verdict.statistic, 3), round(verdict.parts["joint"]["slope"], 3)
    (1.591, 0.337)
    """

    name: ClassVar[str] = "cox"
    asymptotic_null: ClassVar[str] = (
        "the statistic is χ²; its degrees of freedom are the number of tested parameters (intercept, slope)"
    )
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "importance weights: the variance grows with their squares",
        "one statistic": "redraws use the score statistic, which needs no fit per draw",
    }

    part: Annotated[str, OneOf(TESTED_PARTS)] = "joint"
    form: LogisticForm | None = None
    min_prob: MinProb = 0.0

    @property
    def _form_used(self) -> str:
        """The requested or the default form of the statistic."""
        return self.form or ("score" if self.null == "redraw" else "likelihood-ratio")

    def evaluate(self, view: View) -> ViewResult:
        """Statistics of all three parts, and the regression estimates."""
        regression = _CalibrationRegression.from_view(view, self.min_prob)
        results_by_part = regression.parts(self._form_used)
        tested = results_by_part[self.part]
        effect_by_part = {
            "joint": regression.weighted_mean(np.abs(regression.fitted_probs - regression.logits.p)),
            "in-the-large": regression.weighted_mean(view.y - view.p),
            "slope": regression.weighted_mean(np.abs(regression.fitted_probs - regression.intercept_only_probs)),
        }
        settings: dict[str, Any] = {"part": self.part, "form": self._form_used, "min_prob": self.min_prob}
        notes = (*regression.logits.notes(view, self.min_prob), *regression.notes)
        return ViewResult(
            statistic=tested["statistic"],
            pvalue=tested["pvalue"],
            effect=effect_by_part[self.part],
            parts=results_by_part,
            settings_used=settings,
            notes=notes,
            doubts=regression.doubts(self.part, self._form_used),
            summary=_summarize_estimates(results_by_part),
        )

    def coefficients(self, view: View, cluster: Array | None = None) -> dict[str, tuple[float, float]]:
        """Calibration-in-the-large, intercept and slope with standard errors; NaN if no finite estimate exists.

        Standard errors use the variance under the fitted probabilities, with squared weights. For shares of votes, and
        for rows in clusters (`cluster`, (n,)), they use the sandwich of the residuals.
        """
        regression = _CalibrationRegression.from_view(view, self.min_prob)
        if cluster is None and has_vote_shares(view):
            cluster = np.arange(len(view))
        (intercept, slope), (intercept_se, slope_se) = regression.estimates(regression.regression_fit, cluster)
        (in_the_large, _), (in_the_large_se, _) = regression.estimates(regression.shift_fit, cluster)
        return {
            "in_the_large": (in_the_large, in_the_large_se),
            "intercept": (intercept, intercept_se),
            "slope": (slope, slope_se),
        }

    def degrees_of_freedom(self, view: View) -> int | None:
        """One each for the tested intercept and slope; None for the score form."""
        if self._form_used != "likelihood-ratio":
            return None
        slope = int(len(np.unique(view.p)) > 1)
        return {"joint": 1 + slope, "in-the-large": 1, "slope": slope}[self.part] or None

    def cell_statistic(self, view: View) -> CellFunction:
        """The statistic of the tested part as a function of the outcomes of all rows."""
        regression = _CalibrationRegression.from_view(view, self.min_prob)

        def statistic(_w: Array, _wp: Array, wy: Array) -> Array:
            return regression.statistic(self.part, self._form_used, wy)

        return CellFunction.from_rows(view, statistic)


def _summarize_estimates(parts: dict[str, dict[str, float]]) -> str:
    """Calibration-in-the-large, intercept and slope with 95 % intervals, in words."""
    z = float(ndtri(0.975))
    texts = []
    for part, name in (("in-the-large", "in_the_large"), ("joint", "intercept"), ("joint", "slope")):
        value, std_error = parts[part][name], parts[part][f"{name}_se"]
        if np.isfinite(value) and np.isfinite(std_error):
            interval = f"{format_number(value - z * std_error)}, {format_number(value + z * std_error)}"
            texts.append(f"{name.replace('_', ' ')} {format_number(value)} [{interval}]")
    return f"{', '.join(texts)} 95%" if texts else ""


@dataclass(frozen=True, eq=False)
class _CalibrationRegression:
    """Logistic regression of the outcomes of one view on its predicted log odds."""

    logits: Logits  # predicted log odds of each row
    powers: LogitPolynomials  # intercept and slope as orthonormal columns
    wy: Array  # (1, n) weighted outcomes
    shift_fit: LogitRegressionFit  # slope 1
    regression_fit: LogitRegressionFit  # intercept and slope; equal to `shift_fit` if there is no slope

    @classmethod
    def from_view(cls, view: View, min_prob: float) -> _CalibrationRegression:
        """Fit both regressions to a view."""
        logits = Logits.from_view(view, min_prob, "cox")
        powers, wy = LogitPolynomials.from_logits(logits, 1), (view.w * view.y)[None]
        shift_fit, regression_fit = (fit_logistic(powers.columns[:, :m], logits.x, logits.w, wy) for m in (1, 2))
        return cls(logits, powers, wy, shift_fit, regression_fit)

    def weighted_mean(self, values: Array) -> float:
        """Weighted mean of values (n,) over the rows."""
        return float(self.logits.w @ values / self.logits.w.sum())

    @property
    def fitted_probs(self) -> Array:
        """Fitted probability of each row."""
        return self.regression_fit.probabilities(self.powers.columns, self.logits.x)

    @property
    def intercept_only_probs(self) -> Array:
        """Fitted probability of each row with slope 1."""
        return self.shift_fit.probabilities(self.powers.columns, self.logits.x)

    def statistic(self, part: str, form: str, wy: Array) -> Array:
        """Statistic of one part for each of many outcomes (draws, n)."""
        if part == "slope":
            return self._slope_statistic(form, wy)
        return logistic_statistics(self.logits, self.powers, wy, int(part == "joint"), form)

    def _slope_statistic(self, form: str, wy: Array) -> Array:
        """Score of the slope given the best shift, or the likelihood gain of the slope over that shift."""
        logits, columns = self.logits, self.powers.columns
        if self.powers.degree == 0:
            return np.full(len(wy), np.nan)
        shift_fits = fit_logistic(columns[:, :1], logits.x, logits.w, wy)
        shifted_probs = expit(logits.x + shift_fits.beta[:, :1] * columns[:, 0])
        variance = shifted_probs * (1 - shifted_probs)
        information, x = variance * logits.w, columns[:, 1]
        x = x - ((information @ x) / np.maximum(information.sum(1), 1e-300))[:, None]
        score = ((wy - logits.w * shifted_probs) * x).sum(1)
        information, score_variance = (information * x**2).sum(1), (variance * logits.ww * x**2).sum(1)
        # The columns are in units of 1/√w; a smaller variance is rounding error.
        identified = score_variance > 1e-12 * weight_scale(logits.w)
        if form == "score":
            return np.divide(score**2, score_variance, out=np.zeros(len(wy)), where=identified)
        gain = fit_logistic(columns, logits.x, logits.w, wy).gain - shift_fits.gain
        return 2 * gain * np.divide(information, score_variance, out=np.ones(len(wy)), where=identified)

    def parts(self, form: str) -> dict[str, dict[str, float]]:
        """Statistic, degrees of freedom, p-value and estimates of each part."""
        by_part: dict[str, dict[str, float]] = {}
        for part, df in zip(TESTED_PARTS, (1 + self.powers.degree, 1, self.powers.degree), strict=True):
            statistic = float(self.statistic(part, form, self.wy)[0])
            pvalue = float(chdtrc(df, max(statistic, 0.0))) if df else float("nan")
            by_part[part] = {"statistic": statistic, "df": float(df), "pvalue": pvalue}
        (intercept, slope), (intercept_se, slope_se) = self.estimates(self.regression_fit)
        (in_the_large, _), (in_the_large_se, _) = self.estimates(self.shift_fit)
        by_part["joint"] |= {"intercept": intercept, "intercept_se": intercept_se, "slope": slope, "slope_se": slope_se}
        by_part["in-the-large"] |= {"in_the_large": in_the_large, "in_the_large_se": in_the_large_se}
        by_part["slope"] |= {"slope": slope, "slope_se": slope_se}
        return by_part

    def estimates(self, fit: LogitRegressionFit, cluster: Array | None = None) -> tuple[list[float], list[float]]:
        """Coefficients with standard errors; NaN if no finite estimate exists, or with too few clusters.

        With `cluster` (n,) they are from the sandwich of the cluster sums, times G/(G − m) for G clusters and m
        coefficients.
        """
        m = fit.beta.shape[1]
        if not fit.finite[0]:
            return [float("nan")] * 2, [float("nan")] * 2
        columns, logits = self.powers.columns[:, :m], self.logits
        q = fit.probabilities(columns, logits.x)
        information, score_variance = (
            columns.T @ ((q * (1 - q) * weight)[:, None] * columns) for weight in (logits.w, logits.ww)
        )
        if cluster is not None:
            scores = (self.wy[0] - logits.w * q)[:, None] * columns
            sums = np.stack([np.bincount(cluster, column) for column in scores.T], axis=1)
            n_clusters = len(np.unique(cluster))
            score_variance = sums.T @ sums * (n_clusters / (n_clusters - m) if n_clusters > m else np.nan)
        transform = self.powers.monomial_coefficients[:m, :m] @ np.linalg.inv(information)
        missing = [float("nan")] * (2 - m)
        b, variance = self.powers.coefficients(fit.beta[0]), np.diag(transform @ score_variance @ transform.T)
        return [*b.tolist(), *missing], [*np.sqrt(variance).tolist(), *missing]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on parameters that cannot be estimated."""
        if self.powers.degree == 0:
            text = "All predictions are equal, so the slope cannot be estimated: only the intercept is tested."
            return (*self.shift_fit.notes, Note("TN218", text))
        return self.regression_fit.notes

    def doubts(self, part: str, form: str) -> tuple[str, ...]:
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
        if (
            form == "likelihood-ratio"
            and not (self.shift_fit if part == "in-the-large" else self.regression_fit).finite[0]
        ):
            reasons.append(
                "No finite maximum likelihood estimate exists, and the limit of the likelihood ratio is not χ²."
            )
        return tuple(reasons)

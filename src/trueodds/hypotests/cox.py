"""Cox's calibration regression test: intercept and slope of the outcomes on the predicted log odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.results import COX_COEFFICIENTS, Coefficient
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array
from trueodds.estimators._glm.calibration_regression import TESTED_PARTS, CalibrationRegression
from trueodds.estimators._glm.logistic import LogisticForm
from trueodds.estimators._glm.logits import MinProb
from trueodds.hypotests.base import clustered_redraw_note
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.view import View

_TESTED_PART_TEXTS = {"joint": "", "in-the-large": "calibration-in-the-large 0 given slope 1: "}


@dataclass(frozen=True, kw_only=True)
class Cox(ViewTest):
    r"""Cox's calibration regression: intercept and slope of the outcomes on the predicted log odds.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: χ², or labels drawn from the predicted probabilities.
    part : {"joint", "in-the-large", "slope"}, default="joint"
        Tested hypothesis: a = 0 and b = 1 ("joint"), a = 0 given b = 1 ("in-the-large"), or b = 1 for any a ("slope").
    form : {"likelihood-ratio", "score"}, optional
        Default: the likelihood ratio with the asymptotic null, and the score statistic, which needs no fit per draw,
        with redrawn labels. The score form is unaffected by separation. With clusters and the asymptotic null, the
        statistic is that of Wald.
    min_prob : float, default=0.0
        Lower limit of the probabilities; 1 − min_prob is the upper limit. A note counts the clipped rows. 0 clips
        nothing.

    Raises
    ------
    InputError
        TO203 for unknown settings. TO205 for a probability of 0 or 1 without `min_prob`, for clusters with a `form`
        and the asymptotic null, and for a lens with a probability vector per row. Use the test `mcllo` for those.

    Notes
    -----
    The model is

    .. math:: \mathrm{logit}\,P(y = 1) = a + b\,\mathrm{logit}\,p

    A slope b < 1 means that the predictions are too extreme, b > 1 that they are not extreme enough. The parts report
    all three tests. Two intercepts are often confused: `intercept` is estimated with a free slope, `in_the_large`
    (calibration-in-the-large on the logit scale) with slope 1. The likelihood ratios of in-the-large and slope add up
    to the joint one.

    Calibration-in-the-large has a sandwich standard error [3]_, because the slope of a miscalibrated model is rarely 1.
    Intercept and slope have the standard errors of the fitted model. Tests of independent rows use neither.

    With clusters the coefficients have jackknife standard errors over clusters, their intervals are Student's t, and
    the tests are Wald tests with Hotelling's T² for the effective number of clusters (`units`), as the calibrator `llo`
    reports them. With the asymptotic null this also decides the test: its p-value is that of its part, and below 0.05
    for one coefficient exactly if the 95 % interval excludes the null value. With ``null="redraw"`` the p-value of the
    test is from the redrawn labels instead, with the statistic of independent rows. It can differ from the Wald tests,
    which the parts keep (note TN270).

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
    .. [3] White (1982). Maximum likelihood estimation of misspecified models.

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 0, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.1, 0.2, 0.3], "cox")
    >>> round(verdict.statistic, 3), round(verdict.parts["joint"]["slope"], 3)
    (1.591, 0.337)
    """

    name: ClassVar[str] = "cox"
    clustered_null: ClassVar[str] = "the statistic is Hotelling's T² of the effective number of clusters"
    estimates_by_cluster: ClassVar[bool] = True
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
        return self.form or ("score" if self.null == "redraw" else "likelihood-ratio")

    @property
    def tested_part_text(self) -> str:  # type: ignore[override]
        """The null hypothesis of the tested part; empty for the joint one."""
        if self.part != "slope":
            return _TESTED_PART_TEXTS[self.part]
        suffix = " (drawn with intercept 0)" if self.null == "redraw" else ""
        return f"slope 1 for any intercept{suffix}: "

    def evaluate(self, view: View) -> ViewResult:
        """Statistics of all three parts, and the regression estimates."""
        regression = CalibrationRegression.from_view(view, self.min_prob)
        return self._result(view, regression, regression.parts(self._form_used), self._form_used)

    def evaluate_with_clusters(self, view: View, cluster: Array) -> ViewResult:
        """The result of `evaluate`, with estimates and Wald tests of the parts by the jackknife over clusters.

        With redrawn labels the statistic of the test is that of independent rows, and only the parts use the jackknife.
        """
        regression = CalibrationRegression.from_view(view, self.min_prob)
        parts = regression.wald_parts(cluster)
        if self.null == "redraw":
            result = self._result(view, regression, regression.parts(self._form_used), self._form_used)
            return replace(
                result, parts=parts, summary=_summarize_estimates(parts), notes=(*result.notes, clustered_redraw_note())
            )
        if self.form is not None:
            raise InputError(
                "TO205",
                f"The {self.form} form assumes independent rows, and these rows are clustered.",
                f"⟨cluster=⟩ with form={self.form!r}",
                "Omit form for the Wald test of clusters, or use ⟨null='redraw'⟩.",
            )
        result = replace(self._result(view, regression, parts, "wald"), asymptotic_warnings=())
        if np.isfinite(result.pvalue):
            return result
        text = (
            "There are too few clusters, or too unequal ones, for the variance of the coefficients, or no finite"
            " estimate exists, so the test is undefined."
        )
        return replace(result, notes=(*result.notes, Note("TN237", text)))

    def _result(
        self, view: View, regression: CalibrationRegression, results_by_part: dict[str, dict[str, float]], form: str
    ) -> ViewResult:
        """The result of the test from the results of all parts; `form` is the reported form of the statistic."""
        tested = results_by_part[self.part]
        effect_by_part = {
            "joint": regression.weighted_mean(np.abs(regression.fitted_probs - regression.logits.p)),
            "in-the-large": regression.weighted_mean(view.y - view.p),
            "slope": regression.weighted_mean(np.abs(regression.fitted_probs - regression.intercept_only_probs)),
        }
        settings: dict[str, Any] = {"part": self.part, "form": form, "min_prob": self.min_prob}
        notes = (*regression.logits.notes(view, self.min_prob), *regression.notes)
        return ViewResult(
            statistic=tested["statistic"],
            pvalue=tested["pvalue"],
            effect=effect_by_part[self.part],
            parts=results_by_part,
            settings_used=settings,
            notes=notes,
            asymptotic_warnings=regression.asymptotic_warnings(self.part, self._form_used),
            summary=_summarize_estimates(results_by_part),
        )

    def coefficients(self, view: View, cluster: Array | None = None) -> dict[str, Coefficient]:
        """Calibration-in-the-large, intercept and slope with standard errors; NaN if no finite estimate exists.

        Standard errors of intercept and slope use the variance under the fitted probabilities, with squared weights;
        that of calibration-in-the-large uses the squared residuals. For shares of votes, and for rows in clusters
        (`cluster`, (n,)), they are from the jackknife over rows and clusters.
        """
        return CalibrationRegression.from_view(view, self.min_prob).coefficients_of_votes(cluster)

    def degrees_of_freedom(self, view: View) -> int | None:
        """One each for the tested intercept and slope; None for the score form and if there is no slope to test."""
        if self._form_used != "likelihood-ratio":
            return None
        n_slopes = int(len(np.unique(view.p)) > 1)
        return {"joint": 1 + n_slopes, "in-the-large": 1, "slope": n_slopes}[self.part] or None

    def cell_statistic(self, view: View) -> CellFunction:
        regression = CalibrationRegression.from_view(view, self.min_prob)

        def statistic(_w: Array, _wp: Array, wy: Array) -> Array:
            """Statistic of each draw, (draws,)."""
            return regression.statistic(self.part, self._form_used, wy)

        return CellFunction.from_rows(view, statistic)


def _summarize_estimates(parts: dict[str, dict[str, float]]) -> str:
    """Calibration-in-the-large, intercept and slope with 95 % intervals, in words."""
    texts = []
    for name, part in COX_COEFFICIENTS.items():
        coefficient = Coefficient(parts[part][name], parts[part][f"{name}_se"], parts[part].get("units"))
        if (interval := coefficient.interval) is not None:
            ends = f"{format_number(interval.low)}, {format_number(interval.high)}"
            texts.append(f"{name.replace('_', ' ')} {format_number(coefficient.value)} [{ends}]")
    return f"{', '.join(texts)} 95%" if texts else ""

"""The GiViTI calibration test: polynomial logistic regression on the log odds with forward selection of the degree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import Integer, Range, check
from trueodds.core.typing import Array
from trueodds.estimators._glm.logistic import LogisticForm, fit_logit_regression
from trueodds.estimators._glm.logits import LogitPolynomials, Logits, MinProb
from trueodds.hypotests._glm.forward_selection import (
    CalibrationCurve,
    SelectionNullDistribution,
    forward_null_distribution,
    select_degree,
)
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.view import View

MAX_DEGREE = 10  # largest allowed degree

# Minimum effective number of outcomes of probability 1/2 (see `LogitPolynomials`), and the largest rejection rate in
# percent below it. Of 2,000 calibrated data sets each from eight designs (logit-normal, beta, rare, sharp; n = 40 to
# 3000), 7 % or fewer were rejected at 5 % above this minimum, and 2.3 % at 1 %.
MIN_EFFECTIVE_N_AND_ERROR_PERCENT = {"likelihood-ratio": (2, 23), "score": (8, 9)}


@dataclass(frozen=True, kw_only=True)
class GiViTI(ViewTest):
    r"""GiViTI test: polynomial logistic regression on the predicted log odds with forward selection of the degree.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"asymptotic", "redraw"}, default="asymptotic"
        Null distribution: the distribution of D given the selected degree, or labels drawn from the predicted
        probabilities.
    fitted : bool, default=False
        Whether the probabilities come from a logistic model that was fitted on these rows.
    max_degree : int, default=4
        Highest degree of the polynomial, 4 in the papers.
    form : {"likelihood-ratio", "score"}, optional
        Default: the likelihood ratio with the asymptotic null, and the score statistic, which needs no fit per draw,
        with redrawn labels.
    min_prob : float, default=0.0
        Lower limit of the probabilities; 1 − min_prob is the upper limit. A note counts the clipped rows. 0 clips
        nothing.

    Raises
    ------
    InputError
        TO203 for unknown settings. TO205 for a probability of 0 or 1 without `min_prob`, and for a lens with a
        probability vector per row.

    Notes
    -----
    .. math:: \mathrm{logit}\,P(y = 1) = \sum_{j=0}^{M} b_j\,(\mathrm{logit}\,p)^j, \quad
        D = 2\,[\ell(\hat b) - \ell(0, 1, 0, \dots)]

    The degree M starts at 1 and increases as long as one more power gains at least 3.84, the 95 % quantile of χ² with
    one degree of freedom. Given the selected M, D is χ² with 2 degrees of freedom plus M − 1 independent χ²₁ variables,
    each conditioned to exceed 3.84. With M = 1 this is Cox's test. If the model was `fitted` on these rows, intercept
    and slope are correct by construction: M starts at 2, and D is χ²₁ plus M − 2 such terms. The diagram
    `calibration_belt` shows the curve with its confidence region.

    Statistic: D ≥ 0. Its null distribution depends on M, so compare p-values, not statistics. Effect: the mean of |c(p)
    − p| over the fitted curve c, in probability units. Parts: M and b. If the predictions have too few distinct values
    for a power, it is left out (note TN218). If no finite maximum likelihood estimate exists, D is its limit (note
    TN217). The asymptotic distribution fails if predictions are few, rare or close to 0 or 1: two powers more than
    Cox's test need more data. With redraws each draw selects its own M, and draws are compared by their p-values given
    M.

    Shapes: binary views. With weights the likelihood ratio is adjusted by the sandwich variance. From a tally p is the
    mean of its cell. Cost: O(n) per Newton step, about 5 steps per degree; with redraws in the score form O(n) per
    draw.

    References
    ----------
    .. [1] Nattino, Finazzi & Bertolini (2014).
    .. [2] Nattino, Finazzi & Bertolini (2016).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([1, 0, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.1, 0.2, 0.3], "giviti")
    >>> round(verdict.statistic, 3), verdict.parts["curve"]["degree"]
    (1.591, 1.0)
    """

    name: ClassVar[str] = "giviti"
    asymptotic_null: ClassVar[str] = (
        "D, given the selected degree, is a sum of χ² and of χ² conditioned to exceed the selection threshold"
    )
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "importance weights: the variance grows with their squares",
        "one statistic": "redraws use the score statistic, which needs no fit per draw",
    }

    fitted: bool = False
    max_degree: Integer = 4
    form: LogisticForm | None = None
    min_prob: MinProb = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check("max_degree", self.max_degree, Annotated[int, Range(self.start_degree, MAX_DEGREE)], 4)

    @property
    def start_degree(self) -> int:
        """Degree at which the forward selection begins."""
        return 2 if self.fitted else 1

    @property
    def _form_used(self) -> str:
        return self.form or ("score" if self.null == "redraw" else "likelihood-ratio")

    def curve(self, view: View) -> CalibrationCurve:
        """The calibration curve of one view, with the degree that forward selection chooses."""
        logits = Logits.from_view(view, self.min_prob, self.name)
        powers, wy = LogitPolynomials.from_logits(logits, self.max_degree), (view.w * view.y)[None]
        start = min(self.start_degree, powers.degree)
        (degree,), (statistic,) = select_degree(logits, powers, wy, start, self._form_used)
        fit = fit_logit_regression(powers.columns[:, : degree + 1], logits.x, logits.w, wy)
        return CalibrationCurve(
            logits=logits,
            powers=powers,
            fit=fit,
            degree=int(degree),
            wy=wy[0],
            statistic=float(statistic),
            null_distribution=self.null_distribution(start, int(degree)),
        )

    def null_distribution(self, start: int, degree: int) -> SelectionNullDistribution | None:
        """Null distribution of D for a selection from degree `start` to `degree`; None without degrees of freedom."""
        base_df = start + 1 - (2 if self.fitted else 0)
        return forward_null_distribution(base_df, degree - start) if base_df > 0 else None

    def evaluate(self, view: View) -> ViewResult:
        """D, its p-value given the degree, and the curve."""
        curve = self.curve(view)
        statistic, pvalue = float("nan"), float("nan")
        if curve.null_distribution is not None:
            statistic, pvalue = curve.statistic, float(curve.null_distribution.upper_tail(curve.statistic))
        logits = curve.logits
        effect = float(weighted_sum(logits.w, np.abs(curve.probabilities - logits.p)) / logits.w.sum())
        settings: dict[str, Any] = {
            "fitted": self.fitted, "max_degree": self.max_degree, "form": self._form_used, "min_prob": self.min_prob
        }  # fmt: skip
        return ViewResult(
            statistic=statistic,
            pvalue=pvalue,
            effect=effect,
            parts=curve.parts,
            settings_used=settings,
            notes=self._notes(view, curve),
            asymptotic_warnings=self._asymptotic_warnings(curve),
        )

    def cell_statistic(self, view: View) -> CellFunction:
        """−log p-value of each draw, given the degree that it selects, as a function of the outcomes of all rows."""
        logits = Logits.from_view(view, self.min_prob, self.name)
        powers = LogitPolynomials.from_logits(logits, self.max_degree)
        start = min(self.start_degree, powers.degree)

        def negative_log_pvalues(_w: Array, _wp: Array, wy: Array) -> Array:
            """−log p of each draw, (draws,); NaN without degrees of freedom."""
            degrees, statistics = select_degree(logits, powers, wy, start, self._form_used)
            result = np.full(len(wy), np.nan)
            for degree in np.unique(degrees):
                null_distribution = self.null_distribution(start, int(degree))
                mask = degrees == degree
                if null_distribution is not None:
                    result[mask] = null_distribution.negative_log_pvalue(statistics[mask])
            return result

        return CellFunction.from_rows(view, negative_log_pvalues)

    def _notes(self, view: View, curve: CalibrationCurve) -> tuple[Note, ...]:
        notes = [*curve.logits.notes(view, self.min_prob), *curve.fit.notes]
        if curve.powers.degree < self.max_degree:
            text = (
                f"The predictions have too few distinct values for degree {self.max_degree}; the highest degree tried"
                f" was {curve.powers.degree}."
            )
            notes.append(Note("TN218", text))
        return tuple(notes)

    def _asymptotic_warnings(self, curve: CalibrationCurve) -> tuple[str, ...]:
        # Coefficients 0 to start_degree + 1 decide the first step of the selection.
        tosses = curve.powers.n_coin_tosses[: self.start_degree + 2].min()
        min_tosses, max_error_percent = MIN_EFFECTIVE_N_AND_ERROR_PERCENT[self._form_used]
        reasons = []
        if tosses < min_tosses:
            reasons.append(
                f"The first coefficients have the information of {tosses:.2g} fair coin tosses; with fewer than"
                f" {min_tosses}, up to {max_error_percent} % of calibrated models were rejected at 5 %."
            )
        if self._form_used == "likelihood-ratio" and not curve.fit.has_maximum[0]:
            reasons.append("No finite maximum likelihood estimate exists, and the limit of D is not χ².")
        return tuple(reasons)

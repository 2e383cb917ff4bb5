"""The Hosmer-Lemeshow test: observed against expected outcome counts in groups of similar predicted risk.

The groups and their χ² statistics are those of `GroupResiduals` in risk_groups.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Integer, OneOf, check
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.risk_groups import GroupResiduals
from trueodds.hypotests.spiegelhalter import impossible_outcomes
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.lenses.view import View

FORMS = ("auto", "pearson", "exact")
MIN_EXPECTED_COUNT = 5.0  # expected outcomes below which the chi-square distribution is inaccurate


@dataclass(frozen=True)
class HosmerLemeshow(ViewTest):
    r"""Hosmer-Lemeshow test of observed against expected outcome counts in groups of predicted risk.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"auto", "asymptotic", "redraw"}, default="auto"
        Null distribution. "asymptotic" is the χ² distribution, "redraw" draws labels from the predicted probabilities.
        "auto" is "redraw", or "asymptotic" if ``fitted=True``.
    redraw, resamples : as in `ViewTest`
    bins : int, default=10
        Number of groups. Equal scores stay together, so there may be fewer groups (note TN216).
    form : {"auto", "pearson", "exact"}, default="auto"
        Form of the statistic. "auto" is "pearson" for one score and "exact" for vectors.
    baseline : int, default=0
        For vectors: the outcome whose probability orders the rows. The groups depend on it.
    fitted : bool, default=False
        Whether the probabilities come from a logistic model fitted on these rows, which costs 2 (K − 1) degrees of
        freedom. For any other model this setting would reject 10 to 18 % at 5 %.

    Raises
    ------
    InputError
        TO203 for unknown settings. TO205 for a baseline that the view does not have, and for ``fitted=True`` with the
        exact form, with redraws, or with fewer than three groups.

    Notes
    -----
    Rows are cut at the quantiles of their score, which is :math:`1 - p_{\text{baseline}}` for vectors. With the
    observed counts :math:`O_g = \sum w_i y_i`, the expected counts :math:`E_g = \sum w_i p_i` and n_g rows,

    .. math:: X^2 = \sum_g \frac{(O_g - E_g)^2}{E_g (1 - E_g / n_g)} \;(\text{pearson}), \qquad
              X^2 = \sum_g (O_g - E_g)^\top V_g^{-} (O_g - E_g) \;(\text{exact})

    where :math:`V_g = \sum w_i^2 (\operatorname{diag} p_i - p_i p_i^\top)` is the covariance of O_g, which is
    :math:`\sum w_i^2 p_i (1 - p_i)` for one score. X² is chi-square with one degree of freedom per group, and with K −
    1 per group for vectors of K outcomes (exact form: the rank of V_g). The Pearson form for vectors is Fagerland,
    Hosmer and Bofin's :math:`\sum_g \sum_k (O_{gk} - E_{gk})^2 / E_{gk}`. It treats the predictions of a group as equal
    and is therefore conservative: measured size 1 to 2 % at 5 %.

    Statistic: X² ≥ 0, larger is worse. It has no direction and only compares group totals. A group without variance
    adds 0 if its outcomes equal the predictions; otherwise X² is infinite and p is 0 (note TN215). Effect: the root
    mean squared gap between the event rates and the mean predictions of the groups, minus its expected value under the
    null, in probability units within [0, 1]; for vectors the Euclidean gap over √2. Parts: the table of groups, for
    vectors of all outcomes but the baseline. The chi-square distribution is inaccurate if a group expects fewer than 5
    outcomes of a kind (size 6 to 15 % at 5 %, up to 17 % on 30 sharp predictions, see docs/level.md).

    Shapes: binary and joint views. Weights are importance weights, with Σw² in the variances. From a tally groups are
    cut between cells. The exact form for vectors is this project's own. Cost: O(n log n), for vectors in the exact form
    O(nK² + gK³); with redraws O(n) per draw.

    References
    ----------
    .. [1] Hosmer & Lemeshow (1980).
    .. [2] Fagerland, Hosmer & Bofin (2008).

    Examples
    --------
    >>> import trueodds as to
    >>> verdict = to.test([0, 1, 1, 1], [0.2, 0.2, 0.5, 0.5], "hosmer_lemeshow", bins=2)
    >>> round(verdict.statistic, 3)  # (1 − .4)² / .32 + (2 − 1)² / .5
    3.125
    """

    name: ClassVar[str] = "hosmer_lemeshow"
    accepts_joint_views: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "X² is chi-square with the degrees of freedom of its groups"
    exemptions: ClassVar[dict[str, str]] = {"weight two": "importance weights: the variance grows with their squares"}
    null: str = "auto"
    bins: BinCount = 10
    form: Annotated[str, OneOf(FORMS)] = "auto"
    baseline: Integer = 0
    fitted: bool = False

    def __post_init__(self) -> None:
        allowed_nulls = Annotated[str, OneOf(("auto", *self.null_distributions))]
        # Redraws are exact for few and sharp predictions, but unavailable for a fitted model.
        if check("null", self.null, allowed_nulls, "auto") == "auto":
            object.__setattr__(self, "null", "asymptotic" if check("fitted", self.fitted, bool, False) else "redraw")
        super().__post_init__()
        if self.fitted and (self.null == "redraw" or self.form == "exact"):
            raise InputError(
                "TO205",
                "For a model fitted on these rows only the chi-square distribution of the Pearson form is known.",
                f"fitted=True with null={self.null!r}, form={self.form!r}",
                "Omit null and form, or fitted.",
            )

    @property
    def recommended_alternative(self) -> str:
        """The recommended alternative: redraws, on rows that were not used for fitting."""
        return (
            "null='redraw' on rows that were not used for fitting" if self.fitted else super().recommended_alternative
        )

    def evaluate(self, view: View) -> ViewResult:
        """X², its chi-square p-value, the excess gap, and the table of groups."""
        groups, form = self._risk_groups(view), self._form_used(view)
        binned = view.pool(groups.index, groups.size)
        mass = binned.w[:, None] if view.joint else binned.w
        wp, wy = (mass * binned.p)[None], (mass * binned.y)[None]
        x = float(groups.statistic(binned.w[None], wp, wy)[0])  # X²
        residuals = groups.residuals(wp, wy)[0]
        n_outcomes = groups.predicted.shape[1]
        df = groups.df
        if self.fitted:
            df -= 2 * (n_outcomes - 1)
        if self.fitted and df < 1:
            raise InputError(
                "TO205",
                "With so few groups a model fitted on these rows leaves no degrees of freedom.",
                f"{groups.size} groups",
                "Increase bins.",
            )
        baseline = self._baseline_index(view) if view.joint else None
        settings: dict[str, Any] = {
            "bins": self.bins,
            "form": form,
            "groups": groups.size,
            "df": df,
            "fitted": self.fitted,
        }
        if view.joint:
            settings["baseline"] = baseline
        return ViewResult(
            statistic=x,
            pvalue=_chi_square_pvalue(df, x),
            effect=groups.excess_gap(residuals),
            parts=groups.group_table(residuals, baseline),
            settings_used=settings,
            notes=self._notes(view, groups, x),
            asymptotic_warnings=self._asymptotic_warnings(view, groups, form),
        )

    def cell_statistic(self, view: View) -> CellFunction:
        """X² of the groups as a function of redrawn outcomes."""
        groups = self._risk_groups(view)
        return CellFunction(view, groups.index, groups.size, groups.statistic)

    def _risk_groups(self, view: View) -> GroupResiduals:
        """The risk groups of the view, cached."""
        exact, baseline = self._form_used(view) == "exact", self._baseline_index(view)
        return view.cached(
            (self.name, self.bins, exact, baseline),
            lambda: GroupResiduals.from_view(view, self.bins, exact=exact, baseline=baseline),
        )

    def _form_used(self, view: View) -> str:
        """The requested form; "auto" is "exact" for vectors of a model not fitted on these rows, and else "pearson"."""
        if self.form != "auto":
            return self.form
        return "exact" if view.joint and not self.fitted else "pearson"

    def _baseline_index(self, view: View) -> int:
        """Index of the outcome by which vectors are sorted; 0 for a binary view."""
        if not view.joint:
            return 0
        m = view.p.shape[1]
        if not -m <= self.baseline < m:
            raise InputError(
                "TO205",
                f"The lens {view.name} has {m} outcomes, numbered from 0.",
                f"baseline={self.baseline}",
                f"Use 0 to {m - 1}, or -1 for the last.",
            )
        return int(self.baseline) % m

    def _notes(self, view: View, groups: GroupResiduals, x: float) -> tuple[Note, ...]:
        """Notes on impossible outcomes and on fewer groups than requested."""
        notes = []
        if impossible_outcomes(view).any():
            suffix = ", and X² is infinite" if np.isinf(x) else ""
            text = (
                f"Outcomes with predicted probability 0 were observed, which is impossible under calibration{suffix}."
            )
            notes.append(Note("TN215", text))
        if groups.size < self.bins:
            text = f"Ties or few rows reduce the {self.bins} requested groups to {groups.size}."
            notes.append(Note("TN216", text))
        return tuple(notes)

    def _asymptotic_warnings(self, view: View, groups: GroupResiduals, form: str) -> tuple[str, ...]:
        """Reasons why χ² is inaccurate for these rows."""
        warnings = []
        if (groups.expected() < MIN_EXPECTED_COUNT).any():
            warnings.append(
                "Some groups have fewer than 5 expected events or non-events, so the chi-square distribution is"
                " inaccurate."
            )
        if view.joint and form == "pearson" and not self.fitted:
            warnings.append("The Pearson form treats the vectors of a group as equal and rejects too rarely.")
        return tuple(warnings)


def _chi_square_pvalue(df: int, x: float) -> float:
    """P[X² ≥ x]; 1 without degrees of freedom, because X² is 0 then."""
    if np.isinf(x):
        return 0.0
    return float(chdtrc(df, x)) if df > 0 else 1.0

"""The Hosmer-Lemeshow test: observed against expected outcome counts in groups of similar predicted risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Integer, OneOf
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.risk_groups import GroupResiduals
from trueodds.hypotests.spiegelhalter import impossible_outcomes
from trueodds.hypotests.view_statistic import Cells, ViewResult
from trueodds.lenses.view import View

FORMS = ("auto", "pearson", "exact")
MIN_EXPECTED = 5.0  # expected outcomes below which the chi-square law is rough


@dataclass(frozen=True)
class HosmerLemeshow(ViewTest):
    r"""Hosmer and Lemeshow's test: observed against expected outcomes in groups of rising risk.

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    Rows are cut at the quantiles of their score, of :math:`1 - p_{\text{baseline}}` for vectors. With the observed
    outcomes :math:`O_g = \sum w_i y_i`, the expected :math:`E_g = \sum w_i p_i`, and n_g rows,

    .. math:: X^2 = \sum_g \frac{(O_g - E_g)^2}{E_g (1 - E_g / n_g)} \;(\text{pearson}), \qquad
              X^2 = \sum_g (O_g - E_g)^\top V_g^{-} (O_g - E_g) \;(\text{exact})

    where :math:`V_g = \sum w_i^2 (\operatorname{diag} p_i - p_i p_i^\top)` is the covariance of O_g, for one score
    :math:`\sum w_i^2 p_i (1 - p_i)`. X² is chi-square with one degree of freedom per group, for vectors of K
    outcomes K − 1 (exactly: the rank of V_g). `pearson` on vectors is Fagerland, Hosmer and Bofin's
    :math:`\sum_g \sum_k (O_{gk} - E_{gk})^2 / E_{gk}`, which takes the predictions of a group as equal and so rejects
    too rarely: measured 1 to 2 % at 5 %.

    Shapes: binary and joint views. Statistic: X² ≥ 0, larger is worse; it sees no direction, and only what differs
    between group totals. A group without chance adds 0 where its outcomes come as said, else X² is infinite and p is 0
    (note TN215). Effect: the root mean squared gap between the rates and the mean predictions of the groups, less what
    chance makes of it, in probability units within [0, 1]; for vectors the Euclidean gap over √2. `parts` is the table
    of groups, for vectors of all outcomes but the baseline.
    Labels are redrawn by default: the chi-square law (`null="asymptotic"`) is rough where a group expects fewer than 5
    outcomes of a kind (size 6 to 15 % at 5 %, up to 17 % on 30 sharp predictions: docs/level.md).
    Weights are importance weights, with Σw² in the variances. Cost: O(n log n), for vectors in the exact form
    O(nK² + gK³); with redraws O(n) per draw. From a tally groups are cut between cells.
    Raises TO203 for unknown settings, TO205 for a baseline that the view lacks, and for `fitted=True` with the exact
    form, with redraws, or with fewer than three groups.
    Source: Hosmer & Lemeshow (1980); Fagerland, Hosmer & Bofin (2008). The exact form of vectors is this project's own.

    Parameters
    ----------
    bins : int
        How many groups; equal scores stay together, so that there may be fewer (note TN216).
    form : {"auto", "pearson", "exact"}
        `auto` is `pearson` for one score and `exact` for vectors.
    baseline : int
        Of vectors: the outcome whose probability orders the rows. Another one makes other groups.
    fitted : bool
        Whether the probabilities come from a logistic model fitted on these very rows, which costs 2 (K − 1) degrees of
        freedom. With the predictions of any other model that would reject 10 to 18 % at 5 %.

    >>> view = View(p=[0.2, 0.2, 0.5, 0.5], y=[0, 1, 1, 1])
    >>> round(HosmerLemeshow(bins=2).on(view).statistic, 3)  # (1 − .4)² / .32 + (2 − 1)² / .5
    3.125
    """

    name: ClassVar[str] = "hosmer_lemeshow"
    vectors: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "X² is chi-square with the degrees of freedom of its groups"
    exempt: ClassVar[dict[str, str]] = {"weight two": "weights are importance weights: chance grows with their squares"}
    null: str = "auto"
    bins: BinCount = 10
    form: Annotated[str, OneOf(FORMS)] = "auto"
    baseline: Integer = 0
    fitted: bool = False

    def __post_init__(self) -> None:
        if self.null == "auto":  # redraws keep the level on few and on sharp predictions; a fitted model has none
            object.__setattr__(self, "null", "asymptotic" if self.fitted else "redraw")
        super().__post_init__()
        if self.fitted and (self.null == "redraw" or self.form == "exact"):
            raise InputError(
                "TO205",
                "The law of a model fitted on these rows is known for Pearson's form by its chi-square alone.",
                f"fitted=True with null={self.null!r}, form={self.form!r}",
                "Leave null and form out, or fitted.",
            )

    @property
    def instead(self) -> str:
        """Redraws, on rows that the model was not fitted on."""
        return "null='redraw' on rows that no fit has seen" if self.fitted else super().instead

    def on(self, view: View) -> ViewResult:
        """X², its chi-square p, the gap beyond chance, and the table of groups."""
        groups, form = self._groups(view), self._form(view)
        binned = view.pool(groups.index, groups.size)
        mass = binned.w[:, None] if view.joint else binned.w
        wp, wy = (mass * binned.p)[None], (mass * binned.y)[None]
        x = float(groups.statistic(binned.w[None], wp, wy)[0])
        d = groups.residuals(wp, wy)[0]
        outcomes = groups.predicted.shape[1]
        df = groups.df - 2 * (outcomes - 1) * self.fitted
        if self.fitted and df < 1:
            raise InputError(
                "TO205",
                "A model fitted on these rows leaves nothing to test with so few groups.",
                f"{groups.size} groups",
                "Ask for more bins.",
            )
        settings: dict[str, Any] = {
            "bins": self.bins,
            "form": form,
            "groups": groups.size,
            "df": df,
            "fitted": self.fitted,
        }
        if view.joint:
            settings["baseline"] = self._baseline(view)
        return ViewResult(
            x,
            _tail(df, x),
            groups.excess(d),
            groups.table(d, self._baseline(view) if view.joint else None),
            settings,
            self._notes(view, groups, x),
            self._doubts(view, groups, form),
        )

    def cells(self, view: View) -> Cells:
        """X² of the same groups."""
        groups = self._groups(view)
        return Cells(view, groups.index, groups.size, groups.statistic)

    def _groups(self, view: View) -> GroupResiduals:
        exact, baseline = self._form(view) == "exact", self._baseline(view)
        make = GroupResiduals.of
        return view.once(
            (self.name, self.bins, exact, baseline), lambda: make(view, self.bins, exact=exact, baseline=baseline)
        )

    def _form(self, view: View) -> str:
        if self.form != "auto":
            return self.form
        return "exact" if view.joint and not self.fitted else "pearson"

    def _baseline(self, view: View) -> int:
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
        notes = []
        if impossible_outcomes(view).any():
            suffix = ", and X² is infinite" if np.isinf(x) else ""
            notes.append(Note("TN215", f"Outcomes came that had probability 0: no calibrated model lets them{suffix}."))
        if groups.size < self.bins:
            text = f"Equal scores, or few rows, leave {groups.size} groups where {self.bins} were asked for."
            notes.append(Note("TN216", text))
        return tuple(notes)

    def _doubts(self, view: View, groups: GroupResiduals, form: str) -> tuple[str, ...]:
        doubts = []
        if (groups.expected() < MIN_EXPECTED).any():
            doubts.append("Some groups expect fewer than 5 outcomes of a kind, where the chi-square law is rough.")
        if view.joint and form == "pearson" and not self.fitted:
            doubts.append("Pearson's form takes the vectors of a group as equal, and so rejects too rarely.")
        return tuple(doubts)


def _is_integer(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _tail(df: int, x: float) -> float:
    """P[X² ≥ x]; without degrees of freedom X² is 0 for sure."""
    if np.isinf(x):
        return 0.0
    return float(chdtrc(df, x)) if df > 0 else 1.0

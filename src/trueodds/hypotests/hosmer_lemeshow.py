"""The Hosmer-Lemeshow test: observed against expected outcome counts in groups of similar predicted risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.binning.sorted_scores import SortedScores
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Integer, OneOf, check
from trueodds.core.typing import Array
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.spiegelhalter import impossible_outcomes
from trueodds.hypotests.view_statistic import CellFunction, ViewResult
from trueodds.kernels.bins import Bins, sums_by_cell
from trueodds.lenses.view import View, has_rounded_ranks, rank_scores

FORMS = ("auto", "pearson", "exact")
MIN_EXPECTED_COUNT = 5.0  # expected outcomes below which the chi-square distribution is inaccurate


@dataclass(frozen=True, kw_only=True)
class HosmerLemeshow(ViewTest):
    r"""Hosmer-Lemeshow test of observed against expected outcome counts in groups of predicted risk.

    Null hypothesis: labels are drawn from the predicted probabilities, independently given the predictions.

    Parameters
    ----------
    null : {"auto", "asymptotic", "redraw"}, default="auto"
        Null distribution. "asymptotic" is the χ² distribution, "redraw" draws labels from the predicted probabilities.
        "auto" is "redraw", or "asymptotic" if ``fitted=True``.
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
        return (
            "⟨null='redraw'⟩ on rows that were not used for fitting" if self.fitted else super().recommended_alternative
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
        groups = self._risk_groups(view)
        return CellFunction(view, groups.index, groups.size, groups.statistic)

    def _risk_groups(self, view: View) -> GroupResiduals:
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


TIE_TOLERANCE = 1e-12  # relative difference up to which weights count as equal


def quantile_groups(s: Array, w: Array, n: Array, n_groups: int) -> tuple[Array, int]:
    """Return the group of each row, (rows,), and the number of nonempty groups, cut at score quantiles, right-closed.

    The cuts are the quantiles i/n_groups of the scores s (rows,) with linear interpolation (type 7 of Hyndman & Fan);
    equal cuts are merged. The weights are w (rows,), and an entry may be a cell of n (rows,) rows. If all rows have the
    same weight, rows are counted. Otherwise a cut is midway between the score where the cumulative weight reaches its
    share and the next score. The group of a row without weight is arbitrary.

    >>> quantile_groups(np.array([0.1, 0.2, 0.2, 0.9]), np.ones(4), np.ones(4), 2)
    (array([0, 0, 0, 1]), 2)
    """
    mask = w > 0
    scores, weights, n_rows = np.asarray(s, dtype=np.float64)[mask], w[mask], n[mask]
    weight_per_row = weights.sum() / n_rows.sum()
    counts_rows = bool((np.abs(weights - weight_per_row * n_rows) <= TIE_TOLERANCE * weights).all())
    sorted_scores = SortedScores(scores, np.zeros(len(scores)), n_rows if counts_rows else weights)
    i = np.arange(1, n_groups)
    if counts_rows:
        # Integer arithmetic: a quantile that equals a score must be exact, because that score lies in the lower group.
        position = i * (round(n_rows.sum()) - 1)
        lower, fraction = position // n_groups, position % n_groups / n_groups
        lower_score, upper_score = sorted_scores.scores_at_weight(lower + 1.0)
    else:
        fraction = np.full(len(i), 0.5)
        lower_score, upper_score = sorted_scores.scores_at_weight(i * weights.sum() / n_groups)
    thresholds = lower_score + fraction * (upper_score - lower_score)
    edges = np.unique(np.concatenate(([scores.min()], thresholds, [scores.max()])))
    if len(edges) == 1:
        return np.zeros(len(s), dtype=np.int64), 1
    group = np.asarray(Bins(edges).index(np.asarray(s, dtype=np.float64)), dtype=np.int64)
    occupied = np.unique(group[mask])  # with fewer rows than cuts, some groups are empty
    return np.minimum(np.searchsorted(occupied, group), len(occupied) - 1), len(occupied)


# Eigenvalues of the normalized Laplacian (at most 2) up to this belong to directions without variance.
MAX_ZERO_EIGENVALUE = 1e-10
RESIDUAL_TOLERANCE = 1e-12  # tolerance of a sum of residuals, relative to the weight of the group


@dataclass(frozen=True)
class GroupResiduals:
    """Risk groups, the expected counts of their m outcomes, and the quadratic form of the residuals.

    A binary view has m = 2 outcomes, the event last. The statistic is X² = Σ_g d_gᵀ F_g d_g with the residuals d = Σw(y
    − p) of the outcomes of a group and its symmetric matrix F, which `form` contains. If an outcome has variance 0 in
    its group, a residual larger than its `tolerance` makes the statistic infinite.
    """

    index: Array  # (rows,) group of each row
    n: Array  # (groups,) number of rows
    w: Array  # (groups,) Σw
    effective_n: Array  # (groups,) effective sample size
    predicted: Array  # (groups, m) mean prediction
    variance: Array  # (groups,) the sum over outcomes of the null variance of Σw(y − p)
    form: Array  # (groups, m, m) matrix of the quadratic form
    tolerance: Array  # (groups, m) largest |d| due to rounding, infinite if the outcome has a positive variance
    df: int  # degrees of freedom: the sum of the ranks of the forms

    @classmethod
    def from_view(cls, view: View, bins: int, *, exact: bool, baseline: int) -> GroupResiduals:
        """Create the groups of a view, cut by the score, or for vectors by 1 − the probability of the baseline outcome.

        `bins` is the requested number of groups. `exact` chooses the exact form of the statistic, otherwise Pearson's.
        """
        if view.joint:
            score = 1 - view.partition_values[:, baseline].astype(np.float64)
        else:
            score = rank_scores(view) if has_rounded_ranks(view) else view.partition_values
        index, size = quantile_groups(score, view.w, view.n, bins)
        w, ww, n = (np.bincount(index, x, size) for x in (view.w, view.sums("ww"), view.n))
        p = view.P
        predicted = sums_by_cell(index, p, size, view.w) / w[:, None]
        if view.joint:
            variance = sums_by_cell(index, np.maximum(p * (1 - p), 0.0), size, view.sums("ww")).sum(axis=1)
        else:
            variance = 2 * np.bincount(index, np.maximum(view.sums("wwv"), 0.0), size)
        if exact:
            forms = [_exact_form(_cross_products(view, p, np.flatnonzero(index == g))) for g in range(size)]
        else:
            forms = [_pearson_form(mean, squared) for mean, squared in zip(predicted, ww, strict=True)]
        form, has_variance, ranks = (np.array(x) for x in zip(*forms, strict=True))
        rounding = sums_by_cell(index, np.abs(p - np.rint(p)), size, view.w) + RESIDUAL_TOLERANCE * w[:, None]
        if not view.joint:  # both outcomes have the same absolute residual
            rounding = np.broadcast_to(rounding.max(axis=1, keepdims=True), rounding.shape)
        tolerance = np.where(has_variance, np.inf, rounding)
        return cls(index, n, w, w**2 / ww, predicted, variance, form, tolerance, int(ranks.sum()))

    @property
    def size(self) -> int:
        return len(self.w)

    def statistic(self, _w: Array, wp: Array, wy: Array) -> Array:
        """Return X², the quadratic form summed over groups, (…), from Σwp and Σwy (…, groups) or (…, groups, m)."""
        residuals = self.residuals(wp, wy)
        quadratic_form = np.zeros(residuals.shape[:-2])
        with np.errstate(over="ignore"):  # X² of variances near 0 may be infinite
            for g, form in enumerate(self.form):
                quadratic_form += ((residuals[..., g, :] @ form) * residuals[..., g, :]).sum(axis=-1)
        return np.where((np.abs(residuals) > self.tolerance).any(axis=(-2, -1)), np.inf, quadratic_form)

    def residuals(self, wp: Array, wy: Array) -> Array:
        """Return Σw(y − p) of each outcome, (…, groups, m), from Σwp and Σwy (…, groups) or (…, groups, m)."""
        d = wy - wp
        has_outcome_axis = d.ndim > 2 and d.shape[-1] == self.predicted.shape[1]
        return d if has_outcome_axis else np.stack([-d, d], axis=-1)

    def excess_gap(self, residuals: Array) -> float:
        """Return the root mean squared gap of the groups minus its null expectation; 0 if that is negative.

        The gap of vectors is their Euclidean distance over √2, which for two outcomes equals the difference of one of
        them.
        """
        squared = ((residuals**2).sum(axis=1) - self.variance) / (2 * self.w**2)
        return float(np.sqrt(max(0.0, float(weighted_sum(self.w, squared) / self.w.sum()))))

    def expected(self) -> Array:
        """Return the expected counts, by effective sample size, of the outcomes with positive variance."""
        return np.asarray((self.effective_n[:, None] * self.predicted)[np.isinf(self.tolerance)])

    def group_table(self, residuals: Array, baseline: int | None) -> Mapping[str, Mapping[str, float]]:
        """Return rows, mean prediction, expected and observed count of each group, for the event or all but baseline.

        `residuals` (groups, m) are the observed ones; `baseline` is None for a binary view.
        """
        if baseline is None:
            predicted, residual = self.predicted[:, 1], residuals[:, 1]
        else:
            predicted, residual = 1 - self.predicted[:, baseline], -residuals[:, baseline]
        return {
            f"group {g + 1}": {
                "n": float(self.n[g]),
                "predicted": float(predicted[g]),
                "expected": float(self.w[g] * predicted[g]),
                "observed": float(self.w[g] * predicted[g] + residual[g]),
            }
            for g in range(self.size)
        }


def _cross_products(view: View, p: Array, rows: Array) -> Array:
    """Σw² p_k p_l for k ≠ l, (m, m): the negative null covariances. Row sums equal the variances."""
    if not view.joint:
        return np.maximum(view.sums("wwv")[rows].sum(), 0.0) * np.array([[0.0, 1.0], [1.0, 0.0]])
    weighted = np.sqrt(view.sums("ww")[rows])[:, None] * p[rows]
    products: Array = weighted.T @ weighted
    np.fill_diagonal(products, 0.0)
    return products


def _exact_form(cross_products: Array) -> tuple[Array, Array, int]:
    """Return a generalized inverse (m, m) of the null covariance, which outcomes have variance (m,), and the rank.

    The null covariance has the variances on its diagonal and minus the `cross_products` (m, m) elsewhere. It is the
    Laplacian of a graph whose nodes are the outcomes and whose edges join outcomes that are possible in the same row.
    Its rank is the number of outcomes minus the number of connected components of the graph. It is scaled to unit
    variances before its eigenvalues are compared with 0, so that rare outcomes count as much as frequent ones.
    """
    variance = cross_products.sum(axis=1)
    has_variance = variance > 0
    scale = np.where(has_variance, 1 / np.sqrt(np.where(has_variance, variance, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(np.diag(has_variance.astype(np.float64)) - scale[:, None] * cross_products * scale)
    mask = values > MAX_ZERO_EIGENVALUE
    root = scale[:, None] * vectors[:, mask] / np.sqrt(values[mask])
    return root @ root.T, has_variance, int(mask.sum())


def _pearson_form(predicted: Array, sum_of_squared_weights: float) -> tuple[Array, Array, int]:
    """Return the matrix of Pearson's form, which outcomes have variance, and the rank, as `_exact_form`.

    The form is Σ_k d_k² / (Σw² p_k), which is exact if all rows of a group have the predictions `predicted` (m,).
    """
    variance = sum_of_squared_weights * predicted
    has_variance = variance >= np.finfo(float).tiny  # the reciprocal of a smaller one would be infinite
    form = np.diag(np.where(has_variance, 1 / np.where(has_variance, variance, 1.0), 0.0))
    return form, has_variance, max(int(has_variance.sum()) - 1, 0)

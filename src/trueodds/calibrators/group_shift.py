"""Shifts of the log odds by group: an overall shift, and terms of groups and crossings, shrunken by their variance."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, log_ratio, probability_pair
from trueodds.calibrators._groups.group_repair import (
    BinaryRows,
    FitAndPredict,
    Grouping,
    GroupRepair,
    confirm_repair,
    refuse_identifiers,
)
from trueodds.calibrators._groups.rows_with_columns import (
    Levels,
    RowsWithColumns,
    find_levels,
    find_saved_levels,
    select_columns,
    split_columns,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.saved_parameters import Numbers, Saved, Texts, invalid_value_error
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.rng import as_generator
from trueodds.core.settings import CHECKED_BY_CLASS, Level, Range, Seed
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

_MAX_SHIFT = 1e3  # of the log odds, in a saved map
_MAX_LISTED = 5  # groups of a factor in the table of a summary


class GroupFactor(Saved):
    """The terms of one column, or of a crossing of columns."""

    columns: Annotated[tuple[str, ...], Texts()]
    tau: Annotated[float, Range(0, _MAX_SHIFT)]  # standard deviation of the shifts
    labels: Annotated[tuple[tuple[str, ...], ...], Texts(nested=True)]  # of each group, one text per column
    shifts: Annotated[Array, Numbers(-_MAX_SHIFT, _MAX_SHIFT)]  # of the log odds, one per group

    def positions_of_rows(self, columns: Mapping[str, Array]) -> Array:
        """The position of the group of each row, (n,); −1 for a group that is not known."""
        return find_saved_levels(self.labels, [columns[name] for name in self.columns])

    def shifts_of_rows(self, columns: Mapping[str, Array]) -> Array:
        """The shift of each row, (n,); 0 for a group that is not known."""
        return np.append(self.shifts, 0.0)[self.positions_of_rows(columns)]

    def check_saved(self, k: int) -> None:
        if len(self.labels) != len(self.shifts):
            raise invalid_value_error("labels", f"{len(self.shifts)} lists, one per shift", len(self.labels))
        if len(set(self.labels)) < len(self.labels) or any(len(label) != len(self.columns) for label in self.labels):
            raise invalid_value_error("labels", "different lists of one text per column", list(self.labels[:3]))


class GroupShiftMap(CalibrationMap):
    """The map logit p + m + the shifts of a row's groups; a group that is not known has the shift 0."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {"m": "overall"}
    overall: Annotated[float, Range(-_MAX_SHIFT, _MAX_SHIFT)]
    factors: tuple[GroupFactor, ...]
    converged: bool = True  # whether the overall shift is finite without a prior

    @property
    def required_columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(name for factor in self.factors for name in factor.columns))

    def apply(self, P: Any) -> Array:
        """Both probabilities computed separately, so that small ones keep their digits."""
        P, columns = split_columns(P)
        columns = select_columns(columns, self.required_columns)
        eta = log_ratio(P, 0.0) + self.overall
        for factor in self.factors:
            eta += factor.shifts_of_rows(columns)
        return probability_pair(eta)

    def count_unknown(self, columns: Mapping[str, Array]) -> int:
        is_unknown = [factor.positions_of_rows(columns) < 0 for factor in self.factors]
        return int(np.any(is_unknown, axis=0).sum()) if is_unknown else 0

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """A shift of the second class; None with terms of groups, which need columns."""
        return None if self.factors else (SoftmaxTerm(1.0, np.ones(k), np.array([0.0, self.overall])),)

    def describe(self) -> str:
        """The overall shift and the standard deviation of each factor, such as `log odds +0.1, sex τ = 0.3`."""
        taus = [f"{' × '.join(factor.columns)} τ = {format_number(factor.tau)}" for factor in self.factors]
        return ", ".join([f"log odds {self.overall:+.3g}", *taus])

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """For each factor the groups with the largest shifts."""
        lines = []
        for factor in self.factors:
            largest = np.argsort(-np.abs(factor.shifts), kind="stable")[:_MAX_LISTED]
            listed = ", ".join(f"{' × '.join(factor.labels[g])} {factor.shifts[g]:+.3g}" for g in largest)
            more = f" and {len(factor.labels) - _MAX_LISTED:,} more" if len(factor.labels) > _MAX_LISTED else ""
            lines.append(f"{' × '.join(factor.columns)}: {listed}{more}")
        return lines

    def check_saved(self, k: int) -> None:
        if k != 2:
            raise invalid_value_error("classes", "two names", k)


class GroupRepairSpec(CalibratorSpec):
    """Base class of calibrators that repair groups, which are confirmed against an overall shift.

    Parameters
    ----------
    columns : str or sequence of str, optional
        Names of the group columns to use. By default all of them.
    crossings : bool or int, default=False
        How many group columns are combined: 2 (or True) adds a term for the groups of every two columns.
    confirm : bool, default=True
        Whether the terms of groups are used only if they are confirmed. Otherwise the overall shift alone is used. The
        `report` of the fitted calibrator has the test, and errors by group before and after.
    alpha : float, default=0.05
        Significance level of the confirmation.
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only. The fitted map has no such limit.
    rng : int or numpy.random.Generator, default=0
        Seed of the folds and redraws of the confirmation.
    """

    two_classes = True
    candidate = False
    takes_logs = True
    example_columns = "site"
    columns: Annotated[str | Sequence[str] | None, CHECKED_BY_CLASS] = None
    crossings: bool | Annotated[int, Range(0)] = False
    confirm: bool = True
    alpha: Level = 0.05
    min_prob: MinProb = MIN_PROB
    rng: Seed | np.random.Generator = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "columns", check_column_names("columns", self.columns))

    def fit(self, P: Any, Y: Array, w: Array) -> CalibrationMap:
        return self.fit_with_report(P, Y, w)[0]

    @abstractmethod
    def fit_with_report(
        self, P: Any, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[CalibrationMap, GroupRepair | None]:
        """Fit the map, and confirm its repair unless the model was trained on these rows."""


class GroupShiftSpec(GroupRepairSpec):
    r"""Shift of the log odds by group: an overall shift, and shrunken terms of every group column and crossing.

    For two classes, and predictions with `group=`. It corrects groups whose probabilities are too high or too low on
    average. The terms are kept only if held-out rows confirm that they improve on the overall shift alone. The ranking
    of people in different groups changes; within a group it stays.

    See Also
    --------
    shift : The overall shift alone.
    multicalibrated : Corrects features too, by small trees.

    Notes
    -----
    .. math:: \operatorname{logit} q = \operatorname{logit} p + m + \sum_f d_f[\text{group}], \qquad
        d_f \sim N(0, \tau_f^2)

    The overall shift m is not shrunken: predicted and observed events then agree in sum. The variance of each factor is
    estimated by the moments of DerSimonian and Laird [1]_, applied to the scores :math:`U_g = \sum (y - q)` and their
    variances :math:`I_g` at :math:`d_g = 0`, so that groups without events count. The shift of a group is the root of
    :math:`\sum_g (y - \sigma(\text{offset} + d)) = d / \tau^2`, where the offset has all other terms; the terms of a
    crossing are thus shrunken toward the sum of the terms of its columns. New groups have the shift 0, which leaves the
    overall shift and the terms that are known. Weights are importance weights; with clusters, variances are those of
    the sums of clusters.

    The confirmation compares cross-fitted log odds with those of the overall shift alone, on at most 100,000 rows: a
    score test with doubled variance, a mean log loss that is not larger, and no group whose log loss is larger beyond
    chance. This does not promise that no group is harmed: note TN548 has the largest change that would not have been
    noticed.

    Cost: O(n) per factor and step of Newton's method, and five more fits for the confirmation.

    References
    ----------
    .. [1] DerSimonian & Laird (1986).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> site, p = np.repeat(["a", "b"], 1000), rng.uniform(0.2, 0.8, 2000)
    >>> y = rng.random(2000) < p + np.where(site == "a", 0.1, -0.1)
    >>> rows = RowsWithColumns(np.stack([1 - p, p], axis=1), {"site": site})
    >>> fitted = GroupShiftSpec().fit(rows, np.eye(2)[y.astype(int)], np.ones(2000))
    >>> fitted.factors[0].labels, fitted.factors[0].shifts.round(1).tolist()
    ((('a',), ('b',)), [0.5, -0.5])
    """

    name, map_type = "group_shift", GroupShiftMap

    def with_columns(self, P: Any, preds: Predictions) -> RowsWithColumns:
        return RowsWithColumns(P, group_columns(preds.group, self.columns))

    def fit_with_report(
        self, P: Any, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[GroupShiftMap, GroupRepair | None]:
        """Fit the map, and confirm its terms of groups unless the model was trained on these rows."""
        P, columns = split_columns(P)
        groupings = find_groupings(group_columns(columns, self.columns), self.crossings)
        refuse_identifiers(groupings)
        rows = BinaryRows(log_ratio(P, self.min_prob), Y[:, 1], w, cluster)
        fitted = fit_shifts(rows, [grouping.levels for grouping in groupings])
        report = None
        if self.confirm and groupings:
            report = confirm_repair(
                rows, groupings, shift_predictor(rows, groupings), alpha=self.alpha, rng=as_generator(self.rng)
            )
            if trained_on_rows or not report.confirmed:
                groupings = ()
        return make_shift_map(fitted, groupings), report

    def notes(self, calibration_map: GroupShiftMap, P: Any, Y: Array, w: Array) -> list[Note]:
        """That the overall shift has no finite optimum."""
        if calibration_map.converged:
            return []
        text = (
            "All outcomes are the same, so no finite shift is optimal: a normal prior with standard deviation 1 keeps"
        )
        return [Note("TN532", f"{text} it finite.")]


def check_column_names(setting: str, names: Any) -> tuple[str, ...] | None:
    """One name or several as a tuple; raises TO203 for anything else, or for a name that is given twice."""
    if names is None:
        return None
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        fix = f"For instance ⟨{setting}=['sex']⟩."
        raise InputError("TO203", f"⟨{setting}⟩ must be a list of names of columns.", describe(names), fix)
    if len(set(names)) < len(names):
        raise InputError("TO203", f"⟨{setting}⟩ names a column twice.", describe(names), "Name each once.")
    return tuple(names)


def group_columns(columns: Mapping[str, Array], names: Sequence[str] | None) -> dict[str, Array]:
    """The columns of groups with these names, by default all; raises TO409 without any, TO516 if one is missing."""
    if names is None and not columns:
        fix = "Pass Predictions(y, p, group={'sex': sex})."
        raise InputError("TO409", "The predictions have no group column.", "no group", fix)
    return select_columns(columns, tuple(columns) if names is None else names)


def find_groupings(columns: Mapping[str, Array], crossings: bool | int) -> tuple[Grouping, ...]:
    """The groups of every column, then those of every combination of up to `crossings` columns."""
    order = 2 if crossings is True else max(1, int(crossings))
    if order > max(1, len(columns)):
        raise InputError(
            "TO203",
            "crossings must be False, True, or the maximum number of group columns to cross.",
            f"{crossings!r} with {len(columns)} group columns",
            "Use 2 to cross every two columns.",
        )
    return tuple(
        Grouping(names, find_levels([columns[name] for name in names]))
        for size in range(1, order + 1)
        for names in combinations(columns, size)
    )


def shift_predictor(rows: BinaryRows, groupings: Sequence[Grouping]) -> FitAndPredict:
    """A function that fits shifts to some rows, and returns the log odds of others without and with terms of groups."""

    def fit_and_predict(train: Array, test: Array) -> tuple[Array, Array]:
        factors = [grouping.levels for grouping in groupings]
        fitted = fit_shifts(rows.select(train), [levels.select(train) for levels in factors])
        log_odds = rows.log_odds[test]
        return log_odds + fitted.overall, log_odds + fitted.total_shifts([levels.select(test) for levels in factors])

    return fit_and_predict


def make_shift_map(fitted: ShiftFit, groupings: Sequence[Grouping]) -> GroupShiftMap:
    """The map of fitted shifts: with the terms of all groupings, in the order of the fit, or with none of them."""
    factors = (
        GroupFactor(columns, tau, levels.labels, shifts)
        for (columns, levels), tau, shifts in zip(groupings, fitted.taus, fitted.shifts, strict=False)
    )
    return GroupShiftMap(fitted.overall, tuple(factors), fitted.converged)


_N_CYCLES = 6  # over several factors, each of which has the others as offset
_MAX_STEPS = 100  # of Newton's method
_MAX_STEP = 2.0  # of the log odds, within which the quadratic approximation holds well enough to converge
_STEP_TOLERANCE = 1e-10


class ShiftFit(NamedTuple):
    """The overall shift, and the terms of the factors in the order in which they were given."""

    overall: float
    taus: tuple[float, ...]  # for each factor the standard deviation of its shifts
    shifts: tuple[Array, ...]  # for each factor the shifts of its levels
    converged: bool  # whether the overall shift has a finite optimum

    def total_shifts(self, factors: Sequence[Levels]) -> Array | float:
        """Sum of the terms of each row, (n,)."""
        total: Array | float = self.overall
        for factor, shift in zip(factors, self.shifts, strict=True):
            total = total + shift[factor.level_of_row]
        return total


def fit_shifts(rows: BinaryRows, factors: Sequence[Levels]) -> ShiftFit:
    r"""Fit logit q = logit p + m + Σ d, with a term d for the level of each factor, shrunken toward 0 by its variance.

    The overall shift m is the root of Σ w (y − q) without other terms. The terms of a factor have the other terms as
    offset: a crossing is shrunken toward the sum of the terms above it.
    """
    overall, converged = _fit_overall_shift(rows)
    log_odds = rows.log_odds + overall
    shifts = [np.zeros(len(factor.labels)) for factor in factors]
    taus = [0.0] * len(factors)
    for _ in range(_N_CYCLES if len(factors) > 1 else 1):
        for f, factor in enumerate(factors):
            level = factor.level_of_row
            log_odds = log_odds - shifts[f][level] if shifts[f].any() else log_odds
            variance = _level_variance(rows, log_odds, level, len(factor.labels))
            taus[f] = float(np.sqrt(variance))
            if variance > 0:
                shifts[f] = _posterior_modes(rows, log_odds, level, len(factor.labels), 1 / variance)
                log_odds = log_odds + shifts[f][level]
            else:
                shifts[f] = np.zeros(len(factor.labels))
    return ShiftFit(overall, tuple(taus), tuple(shifts), converged)


def _fit_overall_shift(rows: BinaryRows) -> tuple[float, bool]:
    """The shift with which predicted and observed events agree in sum, and whether it is finite.

    If all outcomes are the same, a normal prior with standard deviation 1 keeps it finite.
    """
    has_weight = rows.w > 0
    is_finite = bool(((rows.y > 0) & has_weight).any() and ((rows.y < 1) & has_weight).any())
    one_level = np.zeros(len(rows.y), dtype=np.int64)
    return float(_posterior_modes(rows, rows.log_odds, one_level, 1, 0.0 if is_finite else 1.0)[0]), is_finite


def _level_variance(rows: BinaryRows, log_odds: Array, level: Array, n_levels: int) -> float:
    """Variance of the shifts of the levels, by moments of the scores at the shift 0."""
    q = expit(log_odds)
    residual, information = rows.w * (rows.y - q), rows.w * q * (1 - q)
    score_variance = None
    if rows.cluster is not None:
        pairs, pair_of_row = np.unique(rows.cluster * n_levels + level, return_inverse=True)
        pair_scores = np.bincount(pair_of_row.reshape(-1), residual)
        score_variance = np.bincount(pairs % n_levels, pair_scores**2, n_levels)
    elif (rows.w != 1).any():
        score_variance = np.bincount(level, rows.w * information, n_levels)
    return moment_variance(
        np.bincount(level, residual, n_levels), np.bincount(level, information, n_levels), score_variance
    )


def moment_variance(score: Array, information: Array, score_variance: Array | None = None) -> float:
    r"""The variance τ² of shifts, by the moments of DerSimonian and Laird, applied to scores instead of fitted shifts.

    .. math:: \tau^2 = \max\Big(0, \frac{\sum_g U_g^2 / I_g - \sum_g (V_g / I_g) (1 - 1/G)}
        {\sum_g I_g - \sum_g I_g^2 / \sum_g I_g}\Big)

    `score` (G,) are U, `information` (G,) I, and `score_variance` (G,) V, which is I by default. Levels without events
    have a score, though no finite shift fits them.

    >>> moment_variance(np.array([6.0, -6.0]), np.array([4.0, 4.0]))
    4.25
    """
    has_information = information > 0
    U, info = score[has_information], information[has_information]
    n_levels = len(info)
    if n_levels < 2:
        return 0.0
    V = info if score_variance is None else score_variance[has_information]
    expected = float((V / info).sum()) * (1 - 1 / n_levels)
    return max(0.0, (float((U**2 / info).sum()) - expected) / float(info.sum() - (info**2).sum() / info.sum()))


def _posterior_modes(rows: BinaryRows, log_odds: Array, level: Array, n_levels: int, precision: float) -> Array:
    """For each level the root d of Σ w (y − σ(log_odds + d)) = `precision` · d, (levels,), all by Newton's method."""
    shift = np.zeros(n_levels)
    for _ in range(_MAX_STEPS):
        q = expit(log_odds + shift[level])
        residual = rows.y - q
        residual *= rows.w
        q *= (1 - q) * rows.w
        gradient = np.bincount(level, residual, n_levels) - precision * shift
        curvature = np.bincount(level, q, n_levels) + precision
        step = np.divide(gradient, curvature, out=np.zeros(n_levels), where=curvature > 0)
        shift += np.clip(step, -_MAX_STEP, _MAX_STEP)
        if np.abs(step).max() <= _STEP_TOLERANCE:
            break
    return shift

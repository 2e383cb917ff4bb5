"""Confirm a repair for groups: its gain over the overall shift, no harm to a group, and errors by group on a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_expit, ndtr

from trueodds.calibrators._glm.log_probabilities import LogProbabilities, probability_pair
from trueodds.calibrators._groups.rows_with_columns import Levels
from trueodds.calibrators.cross_validation import (
    MIN_ROWS,
    POWER,
    Confirmation,
    confirm_gain,
    count_units,
    stratified_folds,
    stratified_holdout,
)
from trueodds.calibrators.uniform_mixture import uniform_share
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_percent, format_pvalue_clause, format_range
from trueodds.core.table import to_data_frame
from trueodds.core.typing import Array

MAX_ROWS = 100_000  # rows on which a repair is confirmed; more would hardly change the result
_FOLDS = 5
_SHARE_SHOWN = 0.4  # of the rows, whose errors are shown by a fit to the others; docstrings state it as 40 %
_MAX_REDRAWS, _MIN_REDRAWS, _MAX_DRAWN = 999, 199, 20_000_000  # redraws of the labels, and labels drawn in all
_MIN_SHARE_LARGE = 0.01  # share of the rows from which a group is called large; docstrings state it as 1 %

# Fits a repair to some rows, and returns the log odds of others with the overall shift alone, and repaired.
FitAndPredict = Callable[[Array, Array], tuple[Array, Array]]


class BinaryRows(NamedTuple):
    """Rows of two classes."""

    log_odds: Array  # (n,)
    y: Array  # (n,) outcomes, or shares of them
    w: Array  # (n,) weights
    cluster: Array | None  # (n,) of rows that are not independent

    def select(self, rows: Array) -> BinaryRows:
        """Some of the rows, by a mask or their numbers."""
        return BinaryRows(*(None if array is None else array[rows] for array in self))  # type: ignore[arg-type]


class Grouping(NamedTuple):
    """The groups of one column or crossing."""

    columns: tuple[str, ...]
    levels: Levels

    def label(self, g: int) -> str:
        return ", ".join(f"{name}={text}" for name, text in zip(self.columns, self.levels.labels[g], strict=True))


@dataclass(frozen=True, slots=True)
class GroupError:
    """Observed minus predicted in a group, before and after the repair, in rows that it was not fitted to."""

    group: str
    n: int  # rows shown
    before: float  # mean outcome minus mean original probability
    after: float  # the same with the repaired probability
    se: float  # standard error of `after` if the repaired probabilities are calibrated


@dataclass(frozen=True, slots=True)
class UndetectedHarm:
    """The largest change of the mean probability of a group that was tested with a power below 80 %."""

    group: str
    n: int  # rows
    change: float  # in probability


@dataclass(frozen=True, slots=True)
class GroupRepair:
    """Report on a repair for groups: the test of its gain over the overall shift, harm, and errors by group.

    `confirmation` tests the terms of groups against the overall shift alone, by five folds. `harm_pvalue` is that of
    the group with the most evidence of a larger log loss. `errors` are those of one split: fitted to 60 % of the rows,
    shown on the other 40 %. Cross-fitted errors by group are not shown, because over all folds they cancel.
    """

    confirmation: Confirmation | None  # None if there are too few rows
    harm_pvalue: float
    harmed: str | None  # the group with the smallest z-score of the change
    undetected: UndetectedHarm | None  # None if any harm would have been detected
    errors: tuple[GroupError, ...]
    alpha: float
    n: int  # rows on which it was confirmed
    n_fit: int  # rows of the fit

    @property
    def confirmed(self) -> bool:
        """Whether the terms of groups gain over the overall shift, without evidence of harm to a group."""
        return self.confirmation is not None and self.confirmation.confirmed and self.harm_pvalue > self.alpha

    @property
    def outcome_text(self) -> str:
        return "confirmed over the overall shift" if self.confirmed else "repair of groups not confirmed"

    @property
    def worst_large(self) -> GroupError | None:
        """The group with the largest error before, of those with at least 1 % of the shown rows; None without any."""
        n_shown = max((error.n for error in self.errors), default=0)
        large = [error for error in self.errors if error.n >= _MIN_SHARE_LARGE * n_shown]
        return max(large, key=lambda error: abs(error.before), default=None)

    @property
    def notes(self) -> tuple[Note, ...]:
        if self.confirmation is None:
            return (Note("TN546", f"Too few rows ({self.n:,}) to confirm a repair, which is left out."),)
        gain = self.confirmation
        gain_text = (
            f"the overall shift alone, the repair gains {format_number(gain.gain)} nats per row on"
            f" held-out rows ({format_percent(1 - 2 * gain.alpha)} interval {format_range(gain.low, gain.high)};"
            f" {format_pvalue_clause(gain.pvalue)})"
        )
        harm_text = format_pvalue_clause(self.harm_pvalue)
        if self.confirmed:
            text = f"Confirmed. Over {gain_text}, and no group is harmed beyond chance ({harm_text})."
        elif gain.confirmed:
            text = f"Not confirmed: over {gain_text}, but {self.harmed} is harmed ({harm_text}). It is left out."
        else:
            text = f"Not confirmed: over {gain_text}. It is left out."
        if self.n < self.n_fit:
            text += f" This was tested on {self.n:,} of the {self.n_fit:,} rows."
        notes = [Note("TN546", text)]
        if self.confirmed and (worst := self.worst_large) is not None:
            text = (
                f"In rows that were held out once, the worst large group, {worst.group}, has an error of"
                f" {_points(worst.before)} before and {_points(worst.after)} after the repair (n={worst.n:,}, standard"
                f" error {_points(worst.se)}). ⟨report.frame()⟩ lists all groups."
            )
            notes.append(Note("TN547", text))
        if self.confirmed and self.undetected is not None:
            text = (
                f"A group can lose unnoticed: if the change of the mean probability of {self.undetected.group}"
                f" (n={self.undetected.n:,}) by {_points(self.undetected.change)} were wrong, this would have been"
                " noticed with a probability of less than 80 %. It is the largest change of which this is true."
            )
            notes.append(Note("TN548", text))
        return tuple(notes)

    def frame(self) -> Any:
        """The errors by group, as a data frame of pandas or Polars, or a dict of columns."""
        names = ("group", "n", "before", "after", "se")
        return to_data_frame({name: [getattr(error, name) for error in self.errors] for name in names})

    def without_held_out(self) -> GroupRepair:
        """This report, which has no probabilities of single rows."""
        return self


def _points(error: float) -> str:
    return f"{100 * error:+.1f} points" if error < 0 else f"{100 * error:.1f} points"


def confirm_repair(
    rows: BinaryRows,
    groupings: Sequence[Grouping],
    fit_and_predict: FitAndPredict,
    *,
    alpha: float,
    rng: np.random.Generator,
) -> GroupRepair:
    r"""Confirm a repair by three conditions, all on held-out rows of five folds.

    With b the log odds after the overall shift, d the change by the repair beyond it, and both cross-fitted:

    1. the score test of `confirm_gain` for d, whose variance is doubled because folds test each other's fits;
    2. a mean log loss that is not larger than that of b;
    3. no group whose log loss is larger beyond chance. At :math:`\mu = \sigma(b + d/2)` the expected gain is 0 up to
       the second order, so
       :math:`z_g = \sum_g w (y - \mu) d / \sqrt{2 \sum_g w^2 \mu (1 - \mu) d^2}` is compared with the smallest
       :math:`z_g` of labels that are drawn with the probabilities μ, there without the factor 2.

    A test against the original probabilities instead of b would confirm the groups in nearly all data that have only an
    overall error. In clusters, all sums are those of clusters, whose signs are flipped instead of labels drawn.
    """
    n_fit = len(rows.y)
    probs = probability_pair(rows.log_odds)
    if count_units(n_fit, rows.cluster) < MIN_ROWS:
        return GroupRepair(None, **_HarmTest()._asdict(), errors=(), alpha=alpha, n=n_fit, n_fit=n_fit)
    compared = np.arange(n_fit)
    if n_fit > MAX_ROWS:
        compared = np.flatnonzero(stratified_holdout(probs, MAX_ROWS / n_fit, rows.cluster, rng))
    sample = rows.select(compared)
    fold_of_row = stratified_folds(probs[compared], _FOLDS, sample.cluster, rng)
    base, repaired = np.empty((2, len(compared)))
    for fold in range(_FOLDS):
        held_out = fold_of_row == fold
        base[held_out], repaired[held_out] = fit_and_predict(compared[~held_out], compared[held_out])
    share = np.full((len(compared), 1), uniform_share(len(compared)))
    Y = np.stack([1 - sample.y, sample.y], axis=1)
    before = LogProbabilities(np.stack([log_expit(-base), log_expit(base)], axis=1))
    logs = np.stack([log_expit(-repaired), log_expit(repaired)], axis=1)
    confirmation = confirm_gain(before, logs, Y, sample.w, share, alpha=alpha, cluster=sample.cluster)
    selected = [Grouping(columns, levels.select(compared)) for columns, levels in groupings]
    harm = _check_harm(sample, base, repaired - base, selected, alpha, rng)
    errors: tuple[GroupError, ...] = ()
    if confirmation.confirmed:
        shown = stratified_holdout(probs[compared], _SHARE_SHOWN, sample.cluster, rng)
        _, after = fit_and_predict(compared[~shown], compared[shown])
        errors = _errors_by_group(sample.select(shown), after, selected, shown)
    return GroupRepair(
        confirmation=confirmation, **harm._asdict(), errors=errors, alpha=alpha, n=len(compared), n_fit=n_fit
    )


class _HarmTest(NamedTuple):
    """The test that no group is harmed; the fields are those of `GroupRepair`."""

    harm_pvalue: float = 1.0
    harmed: str | None = None
    undetected: UndetectedHarm | None = None


def _check_harm(
    rows: BinaryRows, base: Array, change: Array, groupings: Sequence[Grouping], alpha: float, rng: np.random.Generator
) -> _HarmTest:
    """Test whether a group is harmed by the `change` (n,) of the log odds, from `base`."""
    mu = expit(base + change / 2)
    scale = rows.w * change
    sizes = [len(grouping.levels.labels) for grouping in groupings]
    if not groupings or not change.any():
        return _HarmTest()
    # All groups of all groupings have one number, as if each row was in the data once for each grouping.
    group = np.concatenate(
        [g.levels.level_of_row + start for g, start in zip(groupings, np.cumsum([0, *sizes[:-1]]), strict=True)]
    )
    n_groups, n_groupings = sum(sizes), len(groupings)

    def sum_by_group(values: Array) -> Array:
        return np.bincount(group, np.tile(values, n_groupings), n_groups)

    residual = (rows.y - mu) * scale
    if rows.cluster is None:
        variance = sum_by_group(mu * (1 - mu) * scale**2)
    else:
        pairs, pair_of_row = np.unique(np.tile(rows.cluster, n_groupings) * n_groups + group, return_inverse=True)
        pair_sums = np.bincount(pair_of_row.reshape(-1), np.tile(residual, n_groupings))
        variance = np.bincount(pairs % n_groups, pair_sums**2, n_groups)
    has_variance = variance > 0
    if not has_variance.any():
        return _HarmTest()
    std_error = np.sqrt(variance, out=np.full(n_groups, np.inf), where=has_variance)
    z = sum_by_group(residual) / (np.sqrt(2) * std_error)
    n_redraws = int(np.clip(_MAX_DRAWN // len(rows.y), _MIN_REDRAWS, _MAX_REDRAWS))
    smallest = np.empty(n_redraws)
    for draw in range(n_redraws):
        if rows.cluster is None:
            scores = sum_by_group(((rng.random(len(mu)) < mu) - mu) * scale)
        else:
            signs = rng.choice([-1.0, 1.0], int(rows.cluster.max()) + 1)
            scores = np.bincount(pairs % n_groups, pair_sums * signs[pairs // n_groups], n_groups)
        smallest[draw] = (scores / std_error).min()
    pvalue = float((1 + (smallest <= z.min() + 1e-12).sum()) / (1 + n_redraws))
    labels = [(grouping, i) for grouping, size in zip(groupings, sizes, strict=True) for i in range(size)]
    grouping, level = labels[int(z.argmin())]
    # If the rows are calibrated without the change, the mean of z is −excess, and harm is detected below −critical.
    critical = -float(np.quantile(smallest, alpha))
    excess = sum_by_group((mu - expit(base)) * scale) / (np.sqrt(2) * std_error)
    counts = sum_by_group(np.ones(len(mu)))
    weights = np.maximum(sum_by_group(rows.w), np.finfo(np.float64).tiny)
    mean_change = sum_by_group(rows.w * (expit(base + change) - expit(base))) / weights
    undetected = np.where(has_variance & (ndtr(excess - critical) < POWER), np.abs(mean_change), 0.0)
    g = int(undetected.argmax())
    harm = UndetectedHarm(labels[g][0].label(labels[g][1]), int(counts[g]), float(undetected[g]))
    return _HarmTest(pvalue, grouping.label(level), harm if undetected[g] > 0 else None)


def _errors_by_group(
    rows: BinaryRows, log_odds: Array, groupings: Sequence[Grouping], shown: Array
) -> tuple[GroupError, ...]:
    """Errors of all groups in the `shown` rows, with the repaired `log_odds` (n,) of these."""
    q, p = expit(log_odds), expit(rows.log_odds)
    errors = []
    for grouping in groupings:
        level, n_levels = grouping.levels.level_of_row[shown], len(grouping.levels.labels)
        counts, weights = np.bincount(level, minlength=n_levels), np.bincount(level, rows.w, n_levels)
        before, after = (np.bincount(level, rows.w * (rows.y - x), n_levels) for x in (p, q))
        variances = np.bincount(level, rows.w**2 * q * (1 - q), n_levels)
        errors += [
            GroupError(
                grouping.label(g), int(counts[g]), float(before[g] / weights[g]), float(after[g] / weights[g]),
                float(np.sqrt(variances[g]) / weights[g]),
            )
            for g in np.flatnonzero(weights > 0).tolist()
        ]  # fmt: skip
    return tuple(errors)


def refuse_identifiers(groupings: Sequence[Grouping]) -> None:
    """Raise TO517 if every row of a column is a group of its own, as in a column of identifiers."""
    for grouping in groupings:
        n_levels, n = len(grouping.levels.labels), len(grouping.levels.level_of_row)
        if n_levels == n > 1:
            raise InputError(
                "TO517",
                "Every row is a group of its own, so nothing can be learned for new rows.",
                f"{n:,} values of {' × '.join(grouping.columns)} in {n:,} rows",
                "Pass ⟨columns=[…]⟩ with the columns of groups.",
            )

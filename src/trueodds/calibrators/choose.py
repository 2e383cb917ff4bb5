"""Choose among calibrators by cross-fitted log loss and the one-standard-error rule."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._curves.one_vs_rest import MAX_DECREASE, total_decrease
from trueodds.calibrators._glm.log_probabilities import Probabilities, exact_zeros, normalized_logs, to_probabilities
from trueodds.calibrators.base import CalibratorSpec, fit_and_apply, to_accepted_input
from trueodds.calibrators.cross_validation import (
    MeanEstimate,
    accuracy,
    count_label_flips,
    count_units,
    mean_and_standard_error,
    row_losses,
    stratified_folds,
)
from trueodds.calibrators.uniform_mixture import IdentitySpec, mix_with_uniform, uniform_share
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError
from trueodds.core.json_files import strict_json
from trueodds.core.settings import Folds, check
from trueodds.core.typing import Array
from trueodds.tallies.proper_score_sums import log_loss_from_logs

# Nats per row by which equivalent maps may differ, such as `ensemble_temperature` and `temperature`.
LOSS_TOLERANCE = 1e-9
MAX_STD_ERRORS_BEHIND = 2.0  # a candidate that is more standard errors than this worse than the best is dropped


class CrossFittingRows(NamedTuple):
    """The rows on which candidates are compared, with their folds."""

    P: Probabilities  # (n, K)
    Y: Array  # (n, K) outcome shares
    w: Array  # (n,) weights above 0
    fold_of_row: Array  # (n,) 0..folds − 1
    cluster: Array | None = None  # (n,) labels of clusters, which no fold splits

    @property
    def n_folds(self) -> int:
        return int(self.fold_of_row.max()) + 1

    def uniform_shares(self) -> Array:
        """Share of the uniform distribution that is mixed into the held-out predictions of each row, (n, 1)."""
        n, fold_sizes = len(self.w), np.bincount(self.fold_of_row).tolist()
        share_of_fold = np.array([uniform_share(n - size) for size in fold_sizes])
        return np.asarray(share_of_fold[self.fold_of_row][:, None])

    def held_out_logs(self, spec: CalibratorSpec, train: Array, held_out: Array) -> Array:
        """Log-probabilities (m, K) of the rows `held_out` by a fit to the rows `train`; both are masks (n,).

        They are mixed with the uniform distribution; those of the identity only if any original probability is 0.
        """
        share = uniform_share(int(train.sum()))
        if spec.name == "identity" and not exact_zeros(self.P).any():
            return normalized_logs(self.P[held_out])
        Q = fit_and_apply(spec, self.P[train], self.Y[train], self.w[train], self.P[held_out])
        return np.asarray(np.log(mix_with_uniform(Q, share)))

    def cross_fitted_logs(self, spec: CalibratorSpec) -> Array:
        logs = np.empty(self.Y.shape)
        for f in range(self.n_folds):
            in_fold = self.fold_of_row == f
            logs[in_fold] = self.held_out_logs(spec, ~in_fold, in_fold)
        return logs

    def compare_losses(self, losses: Array, rows_compared: Array | slice = slice(None)) -> list[MeanEstimate]:
        """Mean excess of each candidate's loss over that of the best candidate, with its standard error.

        `losses` (candidates, rows) holds one loss per row of `rows_compared`, which is a mask or all rows.
        """
        w, cluster = self.w[rows_compared], None if self.cluster is None else self.cluster[rows_compared]
        means = losses @ w / w.sum()
        index_of_smallest = int(np.argmax(means <= means.min() + LOSS_TOLERANCE))
        return [mean_and_standard_error(loss - losses[index_of_smallest], w, cluster) for loss in losses]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One row of the table of candidates; losses, changed classes and accuracy come from held-out rows."""

    method: str
    parameters: str | None  # description of the fit on all rows; None if the candidate was dropped early
    log_loss: float  # mean, in nats, after mixing with the uniform distribution
    # The numbers up to `accuracy_change` are None if the candidate was dropped early.
    brier: float | None = None
    difference: float | None = None  # mean log loss minus that of the best candidate
    se: float | None = None  # of that difference, paired by row or cluster
    chosen: bool = False
    label_flips: int | None = None
    accuracy_change: float | None = None
    dropped: bool = False  # early, so that the log loss is that of fits to fewer rows
    # Whether the map fitted to all rows gives no higher score a lower probability; None if dropped, and for K > 2.
    keeps_order: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: strict_json(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class CandidateChoice:
    """The table of candidates and the chosen one."""

    candidates: tuple[Candidate, ...]  # from the simplest to the most complex
    spec: CalibratorSpec  # the chosen one
    folds: int  # number of folds
    max_uniform_share: float  # largest share of the uniform distribution in any fold
    assignments: int = 1  # number of assignments of the rows to folds, over which losses are averaged

    def with_score_order(self, *, keeps_order: bool) -> CandidateChoice:
        """Return this table with whether the map of the chosen candidate, fitted to all rows, keeps the order."""
        table = (replace(one, keeps_order=keeps_order) if one.chosen else one for one in self.candidates)
        return replace(self, candidates=tuple(table))

    def with_chosen(self, spec: CalibratorSpec) -> CandidateChoice:
        """Return this table with another candidate as the chosen one."""
        table = (replace(candidate, chosen=candidate.method == spec.name) for candidate in self.candidates)
        return replace(self, candidates=tuple(table), spec=spec)


def assign_folds(
    P: Probabilities, Y: Array, w: Array, folds: int, cluster: Array | None, rng: np.random.Generator
) -> CrossFittingRows:
    """Assign the rows to at most `folds` folds, and to no more than there are rows or clusters.

    Folds are stratified by the most probable class, not by the label: with equal shares of each label, all folds would
    share the chance deviation of the labels, and a map that fits it would seem to generalize.
    """
    folds = check("folds", folds, Folds, 5)
    available = count_units(len(P), cluster)
    if available < 2:
        raise InputError(
            "TO507",
            "Cross-fitting needs at least two rows (or clusters).",
            str(available),
            "Get more rows, or fit a calibrator by name.",
        )
    fold = stratified_folds(to_probabilities(P), min(int(folds), available), cluster, rng)
    return CrossFittingRows(P, Y, w, fold, cluster)


def cross_fit(assignments: Sequence[CrossFittingRows], spec: CalibratorSpec) -> Array:
    """Cross-fitted log-probabilities for each assignment of the rows to folds, (assignments, n, K)."""
    return np.stack([rows.cross_fitted_logs(spec) for rows in assignments])


def sort_by_complexity(candidates: Sequence[CalibratorSpec]) -> list[CalibratorSpec]:
    """The candidates from the simplest to the most complex, always with the identity, which need not be named.

    The table CALIBRATORS lists the calibrators in this order, with `auto` as the last one. Calibrators that it does not
    list come just before `auto`, in the order of `candidates`.
    """
    specs = list(candidates)
    if not any(spec.name == "identity" for spec in specs):
        specs.append(IdentitySpec())
    names = CALIBRATORS.names()
    ranks = {name: rank for rank, name in enumerate(names)} | {names[-1]: len(names)}
    return sorted(specs, key=lambda spec: ranks.get(spec.name, len(names) - 1))


def choose_by_log_loss(
    assignments: Sequence[CrossFittingRows],
    specs: Sequence[CalibratorSpec],
    cross_fitted_logs: Sequence[Array | None],
    nested_choices: Sequence[NestedChoice] = (),
) -> CandidateChoice:
    """Choose the simplest candidate whose cross-fitted log loss is close to the best one's, and make the table of all.

    Held-out predictions are mixed with the uniform distribution, so that the loss of an exact zero is large but finite.
    `one_standard_error_rule` says what is close. The identity must be a candidate; `confirm_gain` tests whether a gain
    is significant. Cost: a fit of each candidate to all rows, after those of `cross_fit`.

    `assignments` are the same rows with other folds, over which losses are averaged; the log-probabilities of a
    candidate have the shape (assignments, n, K). None marks a candidate that all `nested_choices` dropped early, of
    which there is one per assignment. `specs` are in the order of complexity.
    """
    rows = assignments[0]
    cross_fitted = {i: logs for i, logs in enumerate(cross_fitted_logs) if logs is not None}
    mean_logs = {i: logs.mean(axis=0) for i, logs in cross_fitted.items()}
    losses = {i: log_loss_from_logs(logs, rows.Y) for i, logs in mean_logs.items()}
    excess_losses = rows.compare_losses(np.stack(list(losses.values())))
    excess_loss_of = dict(zip(cross_fitted, excess_losses, strict=True))
    indices = list(cross_fitted)
    chosen_index = indices[one_standard_error_rule([specs[i] for i in indices], excess_losses)]
    predicted = to_probabilities(rows.P)
    table = []
    for i, spec in enumerate(specs):
        if i not in cross_fitted:
            loss = np.mean([nested_choice.losses[i] for nested_choice in nested_choices], axis=0)
            # These fits are without two folds, so a difference to the others would also be one of the rows.
            mean_loss = float(weighted_sum(rows.w, loss) / rows.w.sum())
            table.append(Candidate(spec.name, None, mean_loss, dropped=True))
            continue
        briers = [row_losses(np.exp(logs), rows.Y).brier for logs in cross_fitted[i]]
        fitted_map = spec.fit(to_accepted_input(spec, rows.P), rows.Y, rows.w)
        table.append(
            Candidate(
                method=spec.name,
                parameters=fitted_map.describe(),
                log_loss=float(weighted_sum(rows.w, losses[i]) / rows.w.sum()),
                brier=float(weighted_sum(rows.w, np.mean(briers, axis=0)) / rows.w.sum()),
                difference=excess_loss_of[i].mean,
                se=excess_loss_of[i].se,
                chosen=i == chosen_index,
                label_flips=count_label_flips(predicted, mean_logs[i]),
                accuracy_change=accuracy(mean_logs[i], rows.Y, rows.w) - accuracy(predicted, rows.Y, rows.w),
                keeps_order=total_decrease(fitted_map, rows.P) <= MAX_DECREASE if predicted.shape[1] == 2 else None,
            )
        )
    max_uniform_share = max(float(rows.uniform_shares().max()) for rows in assignments)
    return CandidateChoice(tuple(table), specs[chosen_index], rows.n_folds, max_uniform_share, len(assignments))


def one_standard_error_rule(specs: Sequence[CalibratorSpec], excess_losses: Sequence[MeanEstimate]) -> int:
    """Index of the simplest candidate within one standard error of the best one, with at least half of its gain.

    `specs` are in the order of complexity, each with its mean excess loss over the best one. The identity is chosen
    only if it is best; the confirmation guards against unnecessary changes.
    """
    identity = next(i for i, spec in enumerate(specs) if spec.name == "identity")
    gain = excess_losses[identity].mean
    if gain <= LOSS_TOLERANCE:
        return identity
    eligible_indices = (
        i for i, excess in enumerate(excess_losses) if excess.mean <= min(excess.se, gain / 2) + LOSS_TOLERANCE
    )
    return next(i for i in eligible_indices if i != identity)


class NestedChoice(NamedTuple):
    """Result of the nested choice, which leaves out one fold at a time."""

    chosen_by_fold: tuple[int, ...]  # for each fold, the index of the candidate chosen on the other folds
    dropped: frozenset[int]  # candidates that were never chosen and mostly dropped
    losses: Array  # (candidates, n) mean log loss over the fits without two folds


def choose_leaving_one_fold_out(rows: CrossFittingRows, specs: Sequence[CalibratorSpec]) -> NestedChoice:
    """Choose a candidate without each fold, as in nested cross-validation, by fits that leave out two folds.

    A fit without the folds j and k is evaluated on j for the choice without k, and on k for the choice without j. The
    pairs of folds are processed in turns, in each of which all folds occur equally often. After every turn except the
    last, candidates are dropped that are more than `MAX_STD_ERRORS_BEHIND` standard errors worse than the best, or more
    complex than the current choice and no better.
    """
    folds = rows.n_folds
    selection = _NestedSelection(rows, specs)
    n_turns = folds // 2
    for turn in range(1, n_turns + 1):
        for j, k in _fold_pairs(folds, turn):
            selection.evaluate_without_folds(j, k)
        for f in range(folds):
            selection.choose_without_fold(f, drop=turn < n_turns)
    return selection.result()


def _fold_pairs(folds: int, distance: int) -> list[tuple[int, int]]:
    """The pairs of folds that are this far apart on a circle, in each of which the first number is smaller.

    >>> _fold_pairs(5, 2)
    [(0, 2), (0, 3), (1, 3), (1, 4), (2, 4)]
    """
    pairs = [(f, (f + distance) % folds) for f in range(folds)]
    return sorted({(min(pair), max(pair)) for pair in pairs})


class _NestedSelection:
    """State of a nested choice: the losses so far, and the candidates that remain for the choice without each fold."""

    def __init__(self, rows: CrossFittingRows, specs: Sequence[CalibratorSpec]) -> None:
        folds, n = rows.n_folds, len(rows.w)
        self.rows, self.specs = rows, specs
        self.losses = np.full((folds, len(specs), n), np.nan)  # log loss by left-out fold, candidate and row
        self.remains = np.ones((folds, len(specs)), dtype=bool)  # whether the candidate was not dropped
        self.is_evaluated = np.zeros((folds, n), dtype=bool)  # whether the row has losses
        self.chosen = np.zeros(folds, dtype=np.int64)  # index of the candidate chosen without the fold

    def evaluate_without_folds(self, j: int, k: int) -> None:
        """Evaluate fits without the folds j and k on the rows of both."""
        in_j, in_k = self.rows.fold_of_row == j, self.rows.fold_of_row == k
        in_both = in_j | in_k
        for i in np.flatnonzero(self.remains[j] | self.remains[k]).tolist():
            logs = self.rows.held_out_logs(self.specs[i], ~in_both, in_both)
            loss = log_loss_from_logs(logs, self.rows.Y[in_both])
            self.losses[k, i, in_j] = loss[in_j[in_both]]
            self.losses[j, i, in_k] = loss[in_k[in_both]]
        self.is_evaluated[k, in_j] = self.is_evaluated[j, in_k] = True

    def choose_without_fold(self, f: int, *, drop: bool) -> None:
        """Choose a candidate without fold f, by the losses so far on the others, and drop candidates on request."""
        remaining = np.flatnonzero(self.remains[f]).tolist()
        losses = self.losses[f][np.ix_(remaining, self.is_evaluated[f])]
        excess_losses = self.rows.compare_losses(losses, self.is_evaluated[f])
        remaining_specs = [self.specs[i] for i in remaining]
        current = one_standard_error_rule(remaining_specs, excess_losses)
        self.chosen[f] = remaining[current]
        if drop:
            for index in _indices_to_drop(remaining_specs, excess_losses, current):
                self.remains[f, remaining[index]] = False

    def result(self) -> NestedChoice:
        folds, chosen = len(self.chosen), self.chosen.tolist()
        mostly_dropped = {i for i in range(len(self.specs)) if 2 * self.remains[:, i].sum() < folds}
        dropped = mostly_dropped - set(chosen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a candidate may have no fit for some rows
            return NestedChoice(tuple(chosen), frozenset(dropped), np.nanmean(self.losses, axis=0))


def _indices_to_drop(specs: Sequence[CalibratorSpec], excess_losses: Sequence[MeanEstimate], current: int) -> list[int]:
    """Indices of the candidates that are far behind the best, or more complex than the current one and no better."""
    dropped = []
    for i, excess in enumerate(excess_losses):
        is_no_better = i > current and excess.mean >= excess_losses[current].mean
        exceeds_limit = excess.mean > MAX_STD_ERRORS_BEHIND * excess.se
        if specs[i].name != "identity" and i != current and (is_no_better or exceeds_limit):
            dropped.append(i)
    return dropped

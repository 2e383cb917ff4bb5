"""Tests of calibration within each subgroup, with p-values adjusted over all subgroups, which may overlap.

All subgroups are tested on the same null draws of the labels, so the adjustment accounts for their dependence. Of
the same draws the multicalibration error is the largest cumulative error of any subgroup.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_pvalue_relation
from trueodds.core.json_files import JsonObject
from trueodds.core.printable import to_printable
from trueodds.core.pvalues import pvalue
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.estimators.cumulative import CumulativeRange
from trueodds.hypotests.base import independence_notes
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, JointDraws
from trueodds.hypotests.null_draws import MAX_LABELS, draw_null_statistics, prepare_votes
from trueodds.hypotests.per_view import DEFAULT_RESAMPLES, MAX_RESAMPLES, required_resamples
from trueodds.lenses.base import Lens
from trueodds.lenses.subgroups import Subgroup, rows_of_groups
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand, select_rows
from trueodds.resampling.null_distribution import (
    null_description,
)


@dataclass(frozen=True)
class GroupPValues:
    """p-values and minimum detectable errors of all subgroups."""

    pvalues: list[float]  # unadjusted
    adjusted: list[float]  # step-down adjusted over all subgroups
    min_detectable: list[float | None]  # smallest error that would be significant; None if there is none
    min_pvalue: float  # smallest possible p-value
    multicalibration: MulticalibrationError | None  # None if the lens has several views, or vectors
    null: str  # description of the null distribution; empty if the subgroups were drawn independently
    notes: list[Note]  # notes on votes and on independence
    noise_floors: Sequence[float] = ()  # mean error of each subgroup over the same draws

    @property
    def has_joint_draws(self) -> bool:
        """Whether the draws of all subgroups are joint, so that minimum detectable errors are known."""
        return bool(self.null)


@dataclass(frozen=True)
class GroupEstimands:
    """Estimands of the subgroups: the error of each, and the cumulative errors for multicalibration."""

    labels: list[str]  # label of each subgroup
    estimands: list[Estimand]  # error of each subgroup
    cumulative: list[Estimand]  # empty if the lens has several views, or vectors

    @classmethod
    def from_groups(
        cls, preds: Predictions, groups: Sequence[Subgroup], estimator: Estimator, lens: Lens, aggregate: str
    ) -> GroupEstimands:
        """Create the estimands, each with the rows of its subgroup only."""
        rows_by_group = rows_of_groups(preds, groups)
        estimands = [Estimand.from_predictions(estimator, lens, preds, aggregate, rows) for rows in rows_by_group]
        return cls(
            [group.label for group in groups],
            estimands,
            cumulative_error_estimands(preds, lens, rows_by_group) if groups else [],
        )

    @property
    def all_estimands(self) -> list[Estimand]:
        """All estimands that share their draws."""
        return [*self.estimands, *self.cumulative]


def required_group_draws(resamples: int | None, n: int, n_groups: int, n_untested: int, alpha: float) -> int:
    """Return `resamples`, or if it is None the number of joint null draws of n rows for so many subgroups.

    A subgroup that is more extreme than all its B draws has a joint p-value of at most (n_groups + n_untested)/(1 + B),
    because every other subgroup has at most one draw that no value exceeds. With enough draws it is rejected however
    the draws of the others are distributed. The number is limited by `MAX_RESAMPLES` and, beyond the usual number, by
    the labels to be drawn.
    """
    affordable = min(MAX_RESAMPLES, max(DEFAULT_RESAMPLES, MAX_LABELS // max(1, n)))
    sufficient = min(affordable, math.ceil((n_groups + n_untested) / alpha) - 1)
    return resamples or max(required_resamples(None, 1 + n_untested, alpha), sufficient)


def joint_group_pvalues(
    preds: Predictions,
    groups: Sequence[Subgroup],
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    resamples: int,
    alpha: float,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
    n_untested: int = 0,
    min_alpha: float | None = None,
) -> GroupPValues:
    """Test the error of each subgroup on `resamples` redraws; a row has the same drawn label in all its subgroups.

    The p-values are adjusted for `n_untested` further subgroups. `aggregate` is how the views of the lens are reduced
    to one error, and `alpha` the level for the minimum detectable errors. With clusters, or several votes per row, the
    larger p-value of two null distributions counts, as in the test `consistency`. A subgroup with so few clusters that
    no p-value could be significant has none; `min_alpha` is the level for this, by default `alpha`.
    """
    labeled, notes = prepare_votes(preds)
    estimands = GroupEstimands.from_groups(labeled, groups, estimator, lens, aggregate)
    if labeled.kind == "multilabel" and len(estimands.estimands[0].views) > 1:
        raise InputError(
            "TO408",
            "Multilabel outcomes are drawn independently per label, so their aggregate error has no null distribution"
            " by group.",
            f"{labeled.k} labels through {lens}",
            "Use one label: ⟨lens='class:NAME'⟩.",
        )
    draws_by_null = draw_null_statistics(
        labeled, estimands.all_estimands, "labels", resamples, rng, progress, correlated=estimands.estimands
    )
    return group_pvalues_from_draws(labeled, estimands, draws_by_null, alpha, notes, n_untested, min_alpha)


def group_pvalues_from_draws(
    labeled: Predictions,
    group_estimands: GroupEstimands,
    draws_by_null: Sequence[Sequence[Array]],
    alpha: float,
    notes: Sequence[Note] = (),
    n_untested: int = 0,
    min_alpha: float | None = None,
) -> GroupPValues:
    """p-values of the subgroups from null draws; the larger one of several null distributions.

    `draws_by_null` has, for each null distribution, the draws (views, B) of `group_estimands.all_estimands`. The
    p-values are adjusted for `n_untested` further subgroups, which then could have the multicalibration error, so that
    it is unknown. A subgroup has no p-value if none that is possible is significant at `min_alpha`, by default `alpha`.
    """
    estimands, notes = group_estimands.estimands, list(notes)
    joint_draws = [_joint_draws(estimands, draws, n_untested) for draws in draws_by_null]
    smallest_pvalues = np.array([_smallest_attainable_pvalue(labeled, estimand) for estimand in estimands])
    min_pvalue = max(1 / (1 + draws_by_null[0][0].shape[1]), smallest_pvalues.min())
    level = (alpha if min_alpha is None else min_alpha) + LEVEL_TOLERANCE
    is_testable = smallest_pvalues * (1 + n_untested) <= level
    # The signs of a single cluster flip together, which changes no error: the mean of its draws is its own error.
    has_draws = smallest_pvalues < 1.0
    multicalibration = None
    if n_untested:
        text = "The multicalibration error is the maximum over all groups. It was not computed, because some groups"
        notes.append(Note("TN282", f"{text} were not examined."))
    elif group_estimands.cumulative:  # their draws follow those of the errors
        cumulative_draws = [draws[len(estimands) :] for draws in draws_by_null]
        multicalibration = multicalibration_error(group_estimands.cumulative, cumulative_draws, group_estimands.labels)
        if np.isinf(multicalibration.sigma):
            text = (
                f"All probabilities of {multicalibration.worst} are 0 or 1, so one contradicting outcome makes p = 0."
            )
            notes.append(Note("TN223", text))
    varies = dict(zip(group_estimands.labels, has_draws, strict=True))
    if multicalibration is not None and not varies.get(multicalibration.worst, True):
        text = f"The multicalibration error was not computed, because it is largest for {multicalibration.worst}, whose"
        notes.append(Note("TN282", f"{text} rows belong to one cluster."))
        multicalibration = None
    return GroupPValues(
        pvalues=_nan_unless(is_testable, np.max([claim_draws.unadjusted for claim_draws in joint_draws], axis=0)),
        adjusted=_nan_unless(is_testable, np.max([claim_draws.adjusted for claim_draws in joint_draws], axis=0)),
        min_detectable=_min_detectable_errors(labeled, estimands, joint_draws, alpha),
        min_pvalue=min(1.0, min_pvalue * (1 + n_untested)),
        multicalibration=multicalibration,
        null=null_description(labeled),
        notes=[*notes, *independence_notes(labeled)],
        noise_floors=_nan_unless(
            has_draws,
            np.array(
                [
                    float(estimand.combine_views(draws).mean())
                    for estimand, draws in zip(estimands, draws_by_null[0], strict=False)
                ]
            ),
        ),
    )


def _nan_unless(is_defined: Array, values: Array) -> list[float]:
    """The values as a list, with NaN where one is not defined."""
    return [float(value) for value in np.where(is_defined, values, np.nan)]


def _joint_draws(estimands: Sequence[Estimand], draws: Sequence[Array], n_untested: int) -> JointDraws:
    """The losses of all subgroups with their null draws; `draws` begins with one array (views, B) per estimand."""
    as_loss = estimands[0].estimator.as_loss
    losses = [float(estimand.combine_views(as_loss(estimand.values))) for estimand in estimands]
    loss_draws = [
        estimand.combine_views(as_loss(estimand_draws))
        for estimand, estimand_draws in zip(estimands, draws, strict=False)
    ]
    return JointDraws(np.array(losses), np.array(loss_draws), n_untested)


def _min_detectable_errors(
    labeled: Predictions, estimands: Sequence[Estimand], joint_draws: Sequence[JointDraws], alpha: float
) -> list[float | None]:
    """Smallest error of each subgroup that would be significant under all null distributions; None if impossible."""
    # Sign-flipped residuals need not be possible outcomes, so attainable errors come from redrawn labels only. With
    # clusters the first null distribution has flipped signs, and the second one redrawn labels.
    draws_of_labels = joint_draws[1:] if labeled.cluster is not None else joint_draws
    attained = [
        max(joint_draws[0].observed[i], *(claim_draws.largest_draw(i) for claim_draws in draws_of_labels))
        for i in range(len(estimands))
    ]

    @cache
    def upper_bound(i: int) -> float:
        """Largest attainable error of subgroup i."""
        return max(attained[i], largest_attainable_error(estimands[i], labeled))

    def is_attainable(i: int, error: float | None) -> bool:
        """Whether outcomes exist for which subgroup i has this error, and it can be significant."""
        return (
            error is not None
            and _smallest_attainable_pvalue(labeled, estimands[i]) <= alpha
            and (error <= attained[i] or error <= upper_bound(i))
        )

    thresholds_by_null = [claim_draws.min_detectable(alpha, upper_bound) for claim_draws in joint_draws]
    min_detectable: list[float | None] = []
    for i, thresholds in enumerate(zip(*thresholds_by_null, strict=True)):
        if all(is_attainable(i, threshold) for threshold in thresholds):
            min_detectable.append(max(threshold for threshold in thresholds if threshold is not None))
        else:
            min_detectable.append(None)
    return min_detectable


def _smallest_attainable_pvalue(labeled: Predictions, estimand: Estimand) -> float:
    """Smallest possible p-value: with sign flips, 2^(1 − G) for G clusters in the subgroup."""
    if labeled.cluster is None:
        return 0.0
    cluster = labeled.cluster if estimand.rows is None else labeled.cluster[estimand.rows]
    n_clusters = len(np.unique(cluster[estimand.views[0].w > 0]))
    return 2.0 ** (1 - n_clusters)


MAX_CONSTANT_OUTCOMES = 10  # maximum number of classes that are tried as the outcome of all rows


def largest_attainable_error(estimand: Estimand, preds: Predictions) -> float:
    """Largest loss among some outcomes that deviate far from the predictions; −∞ if undefined.

    These are the least likely outcome of every row, the most likely one, and equal outcomes for all rows, because the
    error of a bin is largest if all its rows have the same outcome.
    """
    errors = [
        float(estimand.combine_views(estimand.estimator.as_loss(estimand.estimator.values(views))))
        for views in _trial_views(estimand, preds)
    ]
    return max((error for error in errors if not np.isnan(error)), default=-np.inf)


def _trial_views(estimand: Estimand, preds: Predictions) -> Iterator[tuple[View, ...]]:
    """The views of the estimand with each of the candidate outcomes."""
    if len(estimand.views) == 1:
        (view,) = estimand.views
        for y in _candidate_outcomes(view.p):
            yield (View(view.p, y, view.w, n=view.n, name=view.name, classes=view.classes, exact=view.exact),)
    else:  # the outcomes of several views depend on the same label
        rows = select_rows(preds, estimand.rows)
        for y in _candidate_outcomes(rows.P):
            yield estimand.lens.views(rows.with_labels(y.argmax(axis=1)))


def _candidate_outcomes(p: Array) -> Iterator[Array]:
    """Candidate outcomes in the shape of the probabilities: (n,) of 0 and 1, or (n, m) one-hot."""
    if p.ndim == 1:
        yield from (np.zeros(len(p)), np.ones(len(p)), (p < 0.5).astype(np.float64), (p >= 0.5).astype(np.float64))
        return
    classes = np.arange(p.shape[1])
    for label in (p.argmin(axis=1), p.argmax(axis=1), *(np.full(len(p), c) for c in classes[:MAX_CONSTANT_OUTCOMES])):
        yield (label[:, None] == classes).astype(np.float64)


ALL_ROWS = "all rows"


@dataclass(frozen=True, slots=True)
class MulticalibrationError(JsonObject):
    r"""Multicalibration error: the largest standardized cumulative residual of any subgroup.

    .. math:: \mathrm{MCE} = \sigma_0 \max_g \frac{\mathrm{ECCE}_g}{\sigma_g}, \quad
        \sigma_g = \frac{\sqrt{\sum_{i \in g} w_i^2 p_i (1 - p_i)}}{\sum_{i \in g} w_i}

    with ECCE-R of the rows of each group (see `ecce_r`), and all rows as group 0. Since σ decreases with the square
    root of the number of rows, ECCE/σ weights every group by its signal-to-noise ratio: by ECCE-R times the square root
    of the group's share, divided by the standard deviation of one outcome. Units: `value` in probability, ≥ 0,
    comparable with the ECCE-R of all rows, which is a lower bound; `sigma` in standard errors. 0 is best. Bias: upward,
    increasing with the number of groups; `noise_floor` is its mean for a calibrated model.

    Source: Guy et al. (2025), arXiv:2506.11251, as implemented and documented by the authors in MCGrad (the text of the
    paper was not available): ECCE-R, σ, the maximum including all rows as a group, and the factor σ₀. Without ties
    `value` and `sigma` agree with MCGrad 0.1.5 to its seven digits. This project's own: the p-value, which is that of
    the maximum over all groups in joint redraws of labels (MCGrad's is that of the worst group, unadjusted); equal
    scores form one step, so ties do not depend on row order; one vote is drawn per row. With clusters σ still assumes
    independent rows, while the p-value accounts for the clusters.
    """

    json_keys: ClassVar[tuple[str, ...]] = ("value", "sigma", "pvalue", "worst", "noise_floor", "groups")

    value: float  # in probability
    sigma: float  # in standard errors
    pvalue: float  # of the maximum over all groups
    # Label of the group with the largest standardized cumulative error. It can be another group than the one with the
    # strongest evidence of another error, which a result by group calls `worst`.
    worst: str
    noise_floor: float  # mean value of a calibrated model, in probability
    groups: Mapping[str, float]  # ECCE/σ of each, in standard errors
    min_pvalue: float = 0.0  # the smallest p-value that the number of redraws allows

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        p = format_pvalue_relation(self.pvalue, self.min_pvalue, cutoff=0)
        return to_printable(
            f"multicalibration error {format_number(self.value)} · p {p} · noise floor "
            f"{format_number(self.noise_floor)} · largest for {self.worst}, {self.sigma:.3g} standard errors"
        )


def cumulative_error_estimands(preds: Predictions, lens: Lens, rows_by_group: Sequence[Array]) -> list[Estimand]:
    """ECCE-R of all rows, and of the rows of each group, as estimands.

    The list is empty if the lens has several views, or vectors.
    """
    overall = Estimand.from_predictions(CumulativeRange(), lens, preds)
    if len(overall.views) > 1 or overall.views[0].joint:
        return []
    return [
        overall,
        *(Estimand.from_predictions(CumulativeRange(), lens, preds, rows=rows) for rows in rows_by_group),
    ]


def multicalibration_error(
    estimands: Sequence[Estimand], draws_by_null: Sequence[Sequence[Array]], labels: Sequence[str]
) -> MulticalibrationError:
    """Return the multicalibration error from the estimands of `cumulative_error_estimands` and their null draws.

    `draws_by_null` has, for each null distribution, the draws (1, B) of every estimand; the larger p-value of several
    null distributions is reported, and the noise floor of the first. `labels` are those of the groups.
    """
    std_errors = np.array([null_standard_deviation(estimand.views[0]) for estimand in estimands])
    observed = _standardize_errors(np.array([estimand.values[0] for estimand in estimands]), std_errors)
    maxima_by_null = []  # largest standardized error of each draw, (B,)
    for draws in draws_by_null:
        group_draws = np.array([view_draws[0] for view_draws in draws])
        maxima_by_null.append(_standardize_errors(group_draws, std_errors[:, None]).max(axis=0))
    worst = int(np.argmax(observed))
    error_by_group = dict(zip([ALL_ROWS, *labels], map(float, observed), strict=True))
    return MulticalibrationError(
        value=_to_probability(float(observed[worst]), float(std_errors[0])),
        sigma=float(observed[worst]),
        pvalue=max(pvalue(float(observed[worst]), null_maxima) for null_maxima in maxima_by_null),
        worst=list(error_by_group)[worst],
        noise_floor=_to_probability(float(maxima_by_null[0].mean()), float(std_errors[0])),
        groups=error_by_group,
        min_pvalue=1 / (1 + min(len(null_maxima) for null_maxima in maxima_by_null)),
    )


def null_standard_deviation(view: View) -> float:
    """Null standard deviation σ of the mean residual of a view.

    >>> round(null_standard_deviation(View(p=[0.2, 0.8], y=[1, 0])), 4)
    0.2828
    """
    return math.sqrt(max(float(view.sums("wwv").sum()), 0.0)) / view.total


def _standardize_errors(errors: Array, std_errors: Array) -> Array:
    """Divide errors by their null standard errors (groups,) or (groups, 1); a positive error over 0 is infinite."""
    has_variance = np.broadcast_to(std_errors > 0, errors.shape)
    without_variance = np.where(errors > 1e-12, np.inf, 0.0)  # smaller errors are rounding errors
    standardized = np.divide(errors, std_errors, out=np.zeros_like(errors), where=has_variance)
    return np.where(has_variance, standardized, without_variance)


def _to_probability(sigma: float, std_error: float) -> float:
    """Convert an error of `sigma` standard errors to probability; infinity is kept."""
    return sigma if math.isinf(sigma) else sigma * std_error

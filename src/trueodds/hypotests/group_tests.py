"""Tests of calibration within each subgroup, adjusted jointly on one set of null draws for overlapping groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests.base import independence_notes
from trueodds.hypotests.multicalibration import (
    MulticalibrationError,
    cumulative_error_estimands,
    multicalibration_error,
)
from trueodds.hypotests.multiple_testing import JointDraws
from trueodds.hypotests.votes import prepare_votes
from trueodds.lenses.base import Lens
from trueodds.lenses.subgroups import Subgroup
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, null_description, null_draws


@dataclass(frozen=True)
class GroupPValues:
    """p-values and minimum detectable errors of all subgroups."""

    pvalues: list[float]  # unadjusted
    joint: list[float]  # step-down adjusted over all subgroups
    min_detectable: list[float | None]
    min_pvalue: float  # smallest possible p-value
    multicalibration: MulticalibrationError | None
    null: str  # empty if the subgroups were drawn independently
    notes: list[Note]
    noise_floors: Sequence[float] = ()  # mean error of each subgroup over the same draws

    @property
    def has_joint_draws(self) -> bool:
        """Whether the draws of all subgroups are joint, so that minimum detectable errors are known."""
        return bool(self.null)


@dataclass(frozen=True)
class GroupEstimands:
    """Estimands of the subgroups: the error of each, and the cumulative errors for multicalibration."""

    labels: list[str]
    estimands: list[Estimand]
    cumulative: list[Estimand]  # empty if the lens has several views, or vectors

    @classmethod
    def from_groups(
        cls, preds: Predictions, groups: Sequence[Subgroup], estimator: Estimator, lens: Lens, aggregate: str
    ) -> GroupEstimands:
        """Create the estimands for these rows."""
        estimands = [
            Estimand.from_predictions(estimator, group.restrict_lens(lens), preds, aggregate) for group in groups
        ]
        return cls(
            [group.label for group in groups],
            estimands,
            cumulative_error_estimands(preds, lens, groups) if groups else [],
        )

    @property
    def all_estimands(self) -> list[Estimand]:
        """All estimands that share their draws."""
        return [*self.estimands, *self.cumulative]


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
) -> GroupPValues:
    """Test the error of each subgroup on joint redraws; shared rows have the same labels in all subgroups.

    With votes the signs of the residuals of whole rows are flipped. With clusters the larger p-value of two null
    distributions counts, as in `consistency`.
    """
    hard, notes = prepare_votes(preds)
    claims = GroupEstimands.from_groups(hard, groups, estimator, lens, aggregate)
    if hard.kind == "multilabel" and len(claims.estimands[0].views) > 1:
        raise InputError(
            "TO408",
            "Multilabel outcomes are drawn independently per label, so their aggregate error has no null distribution"
            " by group.",
            f"{hard.k} labels through {lens}",
            "Use one label: lens='class:NAME'.",
        )
    nulls = [null_draws(hard, claims.all_estimands, resamples, rng, progress=progress)]
    if hard.cluster is not None and hard.kind != "multilabel":
        nulls.append(
            null_draws(
                hard, claims.all_estimands, resamples, rng, cluster_share=cluster_correlation(hard, claims.estimands)
            )
        )
    return group_pvalues_from_draws(hard, claims, nulls, alpha, notes)


def group_pvalues_from_draws(
    hard: Predictions,
    claims: GroupEstimands,
    nulls: Sequence[Sequence[Array]],
    alpha: float,
    notes: Sequence[Note] = (),
) -> GroupPValues:
    """p-values of the subgroups from the draws of all estimands; the larger one of several null distributions."""
    estimands, cumulative, notes = claims.estimands, claims.cumulative, list(notes)
    as_loss = estimands[0].estimator.as_loss
    observed = np.array([float(estimand.combine_views(as_loss(estimand.values))) for estimand in estimands])
    joint_draws = [
        JointDraws(
            observed,
            np.array(
                [estimand.combine_views(as_loss(drawn)) for estimand, drawn in zip(estimands, null, strict=False)]
            ),
        )
        for null in nulls
    ]
    min_pvalue = 1 / (1 + nulls[0][0].shape[1])
    if hard.cluster is not None:
        min_pvalue = max(min_pvalue, 2.0 ** -float(hard.cluster.max()))
    # Sign-flipped residuals need not be possible outcomes, so attainable errors come from redrawn labels only.
    by_labels = joint_draws[1:] if hard.cluster is not None else joint_draws
    shown = [max(observed[i], *(joint.largest_draw(i) for joint in by_labels)) for i in range(len(estimands))]

    @cache
    def upper_bound(i: int) -> float:
        return max(shown[i], largest_attainable_error(estimands[i], hard))

    def can_be(i: int, error: float | None) -> bool:
        return (
            error is not None
            and _smallest_attainable_pvalue(hard, estimands[i]) <= alpha
            and (error <= shown[i] or error <= upper_bound(i))
        )

    min_detectable = [joint.min_detectable(alpha, upper_bound) for joint in joint_draws]
    error = None
    if cumulative:
        error = multicalibration_error(cumulative, [null[len(estimands) :] for null in nulls], claims.labels)
        if np.isinf(error.sigma):
            text = f"All probabilities of {error.worst} are 0 or 1, so one contradicting outcome makes p = 0."
            notes.append(Note("TN223", text))
    return GroupPValues(
        np.max([joint.alone for joint in joint_draws], axis=0).tolist(),
        np.max([joint.adjusted for joint in joint_draws], axis=0).tolist(),
        [
            max(x for x in some if x is not None) if all(can_be(i, x) for x in some) else None
            for i, some in enumerate(zip(*min_detectable, strict=True))
        ],
        min_pvalue,
        error,
        null_description(hard),
        [*notes, *independence_notes(hard)],
        [float(estimand.combine_views(drawn).mean()) for estimand, drawn in zip(estimands, nulls[0], strict=False)],
    )


def _smallest_attainable_pvalue(hard: Predictions, estimand: Estimand) -> float:
    """Smallest possible p-value: with sign flips, 2^(1 − G) for G clusters in the subgroup."""
    return 0.0 if hard.cluster is None else 2.0 ** (1 - len(np.unique(hard.cluster[estimand.views[0].w > 0])))


MAX_CONSTANT_OUTCOMES = 10  # number of classes tried as the outcome of every row


def largest_attainable_error(estimand: Estimand, preds: Predictions) -> float:
    """Largest loss among the outcomes that deviate most from the predictions; −∞ if undefined.

    Tried are the least likely outcome of every row, the most likely one, and equal outcomes for all rows, because the
    error of a bin is largest if all its rows have the same outcome.
    """
    errors = [
        float(estimand.combine_views(estimand.estimator.as_loss(estimand.estimator.values(views))))
        for views in _trial_views(estimand, preds)
    ]
    return max((value for value in errors if value == value), default=-np.inf)


def _trial_views(estimand: Estimand, preds: Predictions) -> Iterator[tuple[View, ...]]:
    if len(estimand.views) == 1:
        (view,) = estimand.views
        for y in _candidate_outcomes(view.p):
            yield (View(view.p, y, view.w, n=view.n, name=view.name, classes=view.classes, exact=view.exact),)
    else:  # several views read the same label
        for y in _candidate_outcomes(preds.P):
            yield estimand.lens.views(preds.with_labels(y.argmax(axis=1)))


def _candidate_outcomes(p: Array) -> Iterator[Array]:
    """Candidate outcomes in the shape of the probabilities: (n,) of 0 and 1, or (n, m) one-hot."""
    if p.ndim == 1:
        yield from (np.zeros(len(p)), np.ones(len(p)), (p < 0.5).astype(np.float64), (p >= 0.5).astype(np.float64))
        return
    every = np.arange(p.shape[1])
    for label in (p.argmin(axis=1), p.argmax(axis=1), *(np.full(len(p), c) for c in every[:MAX_CONSTANT_OUTCOMES])):
        yield (label[:, None] == every).astype(np.float64)

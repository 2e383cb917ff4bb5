"""Gaps between disjoint subgroups: differences of their errors, with simultaneous confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from trueodds.core.results import Interval
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.effective_sample_size import critical_value
from trueodds.lenses.subgroups import Subgroup, rows_of_groups
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import extend_interval
from trueodds.resampling.intervals.method import PLAIN_BOOTSTRAP_METHODS, IntervalSpec

MAX_COMPARED_GROUPS = 50  # subgroups of a column, or combination of columns, up to which all are compared with another


@dataclass(frozen=True)
class GroupErrors:
    """How the error of a subgroup is estimated."""

    estimator: Estimator
    lens: Lens
    aggregate: str  # how the values of several views are combined
    interval_spec: IntervalSpec
    seed: int  # of the resamples and null draws
    companions: tuple[Estimator, ...] = ()  # further estimators, which share the resamples of a subgroup

    def error_of_group(self, preds: Predictions, group: Subgroup, number: int, rows: Array) -> ComparedModel:
        """Return the error of a subgroup from its `rows` only; its `number` distinguishes the resamples."""
        group_preds = preds[rows]

        def model(estimator: Estimator, companions: Sequence[ComparedModel] = ()) -> ComparedModel:
            estimand = Estimand.from_predictions(estimator, self.lens, group_preds, self.aggregate)
            key = [self.seed, number]
            return ComparedModel(group.label, group_preds, estimand, self.interval_spec, key, companions)

        return model(self.estimator, [model(estimator) for estimator in self.companions])

    def error_with_shared_clusters(self, preds: Predictions, group: Subgroup) -> ComparedModel:
        """Return the error of a subgroup that shares clusters with others; all share resamples and null draws."""
        estimand = Estimand.from_predictions(self.estimator, group.restrict_lens(self.lens), preds, self.aggregate)
        return ComparedModel(group.label, preds, estimand, self.interval_spec, [self.seed, 2**30])


@dataclass(frozen=True)
class GroupDifference:
    """The error of one subgroup minus that of another."""

    first: int  # indices of the subgroups; equal for a subgroup and the rest
    second: int
    value: float
    interval: Interval | None


def pairwise_gaps(
    settings: GroupErrors,
    preds: Predictions,
    groups: Sequence[Subgroup],
    group_errors: Sequence[ComparedModel],
    n_groups: int,
) -> list[GroupDifference]:
    """Return the gaps of all pairs of subgroups of a partition, with simultaneous intervals.

    `group_errors` has the error of each subgroup from its own rows. If the subgroups are a selection of `n_groups`, the
    intervals hold simultaneously for the pairs of all of them.
    """
    compared = list(group_errors)
    if splits_clusters(preds, groups):
        compared = [settings.error_with_shared_clusters(preds, group) for group in groups]
    index_pairs = list(combinations(range(len(groups)), 2))
    differences = [ErrorDifference(compared[i], compared[j]) for i, j in index_pairs]
    return _estimate_differences(
        settings, index_pairs, differences, math.comb(n_groups, 2) if n_groups > len(groups) else None
    )


def gaps_to_rest(
    settings: GroupErrors,
    preds: Predictions,
    groups: Sequence[Subgroup],
    group_errors: Sequence[ComparedModel],
    n_groups: int,
) -> list[GroupDifference]:
    """Return the gaps between each subgroup and all other rows, as `pairwise_gaps`; subgroups of all rows have none."""
    differences: list[ErrorDifference] = []
    index_pairs: list[tuple[int, int]] = []
    for i, (group, group_error) in enumerate(zip(groups, group_errors, strict=True)):
        other_rows = Subgroup(group.values, is_complement=True)
        weight = preds.w[:, None] if preds.known is None else preds.w[:, None] * preds.known
        if not (weight[other_rows.row_mask(preds)] > 0).any(axis=0).all():
            continue
        if splits_clusters(preds, [group, other_rows]):
            error = settings.error_with_shared_clusters(preds, group)
            other_error = settings.error_with_shared_clusters(preds, other_rows)
        else:
            error, other_error = (
                group_error,
                settings.error_of_group(preds, other_rows, 2**21 + i, other_rows.row_mask(preds)),
            )
        differences.append(ErrorDifference(error, other_error))
        index_pairs.append((i, i))
    return _estimate_differences(settings, index_pairs, differences, n_groups if n_groups > len(groups) else None)


def select_compared_groups(severity: Sequence[tuple[float, ...]], n_rows: Sequence[int]) -> list[int]:
    """Return which of the subgroups of a partition are compared, by their numbers: at most MAX_COMPARED_GROUPS.

    Of more, they are half of this number with the strongest evidence of miscalibration, that is, the smallest
    `severity`, and of the others those with the most rows, whose errors are known best.

    >>> select_compared_groups([(0.5,), (0.1,)], [10, 20])
    [0, 1]
    """
    numbers = sorted(range(len(severity)), key=lambda i: severity[i])
    if len(numbers) > MAX_COMPARED_GROUPS:
        half = MAX_COMPARED_GROUPS // 2
        numbers = numbers[:half] + sorted(numbers[half:], key=lambda i: -n_rows[i])[: MAX_COMPARED_GROUPS - half]
    return sorted(numbers)


def _estimate_differences(
    settings: GroupErrors,
    index_pairs: Sequence[tuple[int, int]],
    differences: Sequence[ErrorDifference],
    n_hypotheses: int | None,
) -> list[GroupDifference]:
    """Return the values of differences of pairs of subgroups, with simultaneous intervals unless they are omitted.

    `n_hypotheses` is the number of differences from which the data have selected these, for Bonferroni's correction.
    """
    intervals: list[Interval | None] = [None] * len(differences)
    if settings.interval_spec.interval is not None:
        # A resample may contain no row of a subgroup; the error is then NaN and the gap has no interval.
        with np.errstate(divide="ignore", invalid="ignore"):
            if n_hypotheses is None:
                level = SimultaneousDifferences(differences).level(settings.interval_spec.level)
                intervals = [difference.interval(level) for difference in differences]
            else:
                level = 1 - (1 - settings.interval_spec.level) / n_hypotheses
                intervals = [_interval_beyond_resamples(difference, level) for difference in differences]
    return [
        GroupDifference(i, j, difference.value, interval)
        for (i, j), difference, interval in zip(index_pairs, differences, intervals, strict=True)
    ]


def _interval_beyond_resamples(difference: ErrorDifference, level: float) -> Interval | None:
    """Return an interval at a level that may be too high for percentiles of so many resamples.

    Percentiles end at the most extreme resample. The interval then includes the normal interval.
    """
    interval = difference.interval(level)
    if interval is None or difference.draws is None or difference.method not in PLAIN_BOOTSTRAP_METHODS:
        return interval
    quantile = max(critical_value(side.clusters, level) for side in (difference.a, difference.b))
    margin = quantile * float(difference.draws.std(ddof=1))
    return extend_interval(extend_interval(interval, difference.value - margin), difference.value + margin)


def splits_clusters(preds: Predictions, groups: Sequence[Subgroup]) -> bool:
    """Whether rows of one cluster belong to several of these subgroups."""
    if preds.cluster is None:
        return False
    clusters = [np.unique(preds.cluster[rows]) for rows in rows_of_groups(preds, groups)]
    return bool(clusters) and len(np.unique(np.concatenate(clusters))) < sum(map(len, clusters))


def find_widest_gap(differences: Sequence[GroupDifference], level: float) -> tuple[int, int, float, Interval] | None:
    """The two subgroups with the most significant gap, the larger error first, and an interval of the largest true gap.

    All intervals are simultaneous, so the largest true gap is at least the largest distance of an interval from 0, and
    at most the largest absolute limit, for any pair of subgroups. Selecting the pair therefore costs no coverage. If no
    gap is significant, the pair with the largest difference is returned. Pairs without an interval are ignored.
    """
    bounded = [(difference, difference.interval) for difference in differences if difference.interval is not None]
    if not bounded:
        return None
    distances_from_zero = [max(0.0, interval.low, -interval.high) for _, interval in bounded]
    largest_limit = max(max(abs(interval.low), abs(interval.high)) for _, interval in bounded)
    widest_index = max(range(len(bounded)), key=lambda i: (distances_from_zero[i], abs(bounded[i][0].value)))
    widest, _ = bounded[widest_index]
    first, second = (widest.first, widest.second) if widest.value >= 0 else (widest.second, widest.first)
    interval_of_gap = Interval(max(distances_from_zero), largest_limit, level, "simultaneous")
    return first, second, abs(widest.value), interval_of_gap

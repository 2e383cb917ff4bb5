"""Differences of errors between disjoint subgroups, with simultaneous confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from trueodds.core.results import Interval
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.subgroups import Subgroup
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.intervals.method import IntervalSpec


@dataclass(frozen=True)
class GroupErrors:
    """Settings for the errors of the subgroups."""

    estimator: Estimator
    lens: Lens
    aggregate: str
    interval_spec: IntervalSpec
    seed: int

    def error_of_group(self, preds: Predictions, group: Subgroup, number: int) -> ComparedModel:
        """The error of a subgroup, from its rows only."""
        rows = preds[group.row_mask(preds)]
        estimand = Estimand.from_predictions(self.estimator, self.lens, rows, self.aggregate)
        return ComparedModel(group.label, rows, estimand, self.interval_spec, [self.seed, number], [2**20 + number])

    def error_with_shared_clusters(self, preds: Predictions, group: Subgroup, number: int) -> ComparedModel:
        """The error of a subgroup that shares clusters with others; all use the same resamples of whole clusters."""
        estimand = Estimand.from_predictions(self.estimator, group.restrict_lens(self.lens), preds, self.aggregate)
        return ComparedModel(group.label, preds, estimand, self.interval_spec, [self.seed, 2**30], [2**20 + number])


@dataclass(frozen=True)
class GroupDifference:
    """The error of one subgroup minus that of another."""

    first: int  # indices of the subgroups; equal for a subgroup and the rest
    second: int
    value: float
    interval: Interval | None


def pairwise_gaps(
    settings: GroupErrors, preds: Predictions, groups: Sequence[Subgroup], sides: Sequence[ComparedModel]
) -> list[GroupDifference]:
    """Gaps of all pairs of subgroups of a partition, with simultaneous intervals."""
    compared = list(sides)
    if splits_clusters(preds, groups):
        compared = [settings.error_with_shared_clusters(preds, group, number) for number, group in enumerate(groups)]
    index_pairs = list(combinations(range(len(groups)), 2))
    return _estimate_differences(
        settings, index_pairs, [ErrorDifference(compared[i], compared[j]) for i, j in index_pairs]
    )


def gaps_to_rest(
    settings: GroupErrors, preds: Predictions, groups: Sequence[Subgroup], sides: Sequence[ComparedModel]
) -> list[GroupDifference]:
    """Gaps between each subgroup and all other rows."""
    pairs: list[ErrorDifference] = []
    index_pairs: list[tuple[int, int]] = []
    for i, (group, side) in enumerate(zip(groups, sides, strict=True)):
        rest = Subgroup(group.values, is_complement=True)
        if not (preds.w[rest.row_mask(preds)] > 0).any():
            continue
        if splits_clusters(preds, [group, rest]):
            pairs.append(
                ErrorDifference(
                    settings.error_with_shared_clusters(preds, group, i),
                    settings.error_with_shared_clusters(preds, rest, 2**10 + i),
                )
            )
        else:
            pairs.append(ErrorDifference(side, settings.error_of_group(preds, rest, 2**21 + i)))
        index_pairs.append((i, i))
    return _estimate_differences(settings, index_pairs, pairs)


def _estimate_differences(
    settings: GroupErrors, index_pairs: Sequence[tuple[int, int]], pairs: Sequence[ErrorDifference]
) -> list[GroupDifference]:
    """Differences of pairs of subgroups, with simultaneous intervals unless intervals are omitted."""
    if settings.interval_spec.interval is None:
        return [GroupDifference(i, j, pair.value, None) for (i, j), pair in zip(index_pairs, pairs, strict=True)]
    # A resample may contain no row of a subgroup; the error is then NaN and the gap has no interval.
    with np.errstate(divide="ignore", invalid="ignore"):
        level = SimultaneousDifferences(pairs).level(settings.interval_spec.level)
        intervals = [pair.interval(level) for pair in pairs]
    return [
        GroupDifference(i, j, pair.value, interval)
        for (i, j), pair, interval in zip(index_pairs, pairs, intervals, strict=True)
    ]


def splits_clusters(preds: Predictions, groups: Sequence[Subgroup]) -> bool:
    """Whether rows of one cluster belong to several of these subgroups."""
    if preds.cluster is None:
        return False
    clusters = [np.unique(preds.cluster[group.row_mask(preds)]) for group in groups]
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
    separations = [max(0.0, ends.low, -ends.high) for _, ends in bounded]
    high = max(max(abs(ends.low), abs(ends.high)) for _, ends in bounded)
    largest, _ = bounded[max(range(len(bounded)), key=lambda i: (separations[i], abs(bounded[i][0].value)))]
    first, second = (largest.first, largest.second) if largest.value >= 0 else (largest.second, largest.first)
    return first, second, abs(largest.value), Interval(max(separations), high, level, "simultaneous")

"""The subgroups of an audit: their errors, joint or Holm-adjusted p-values, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.group_results import Gap, Group
from trueodds.core.json_files import strict_json
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.group_status import assess_groups, crossing_order, group_partitions
from trueodds.hypotests.group_tests import GroupPValues
from trueodds.hypotests.multicalibration import MulticalibrationError
from trueodds.kernels.holm import holm
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.lenses.subgroups import Subgroup, SubgroupPartition
from trueodds.resampling.comparison import group_gaps
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

# How the p-values of subgroups are adjusted: from joint null draws, or without them.
STEP_DOWN_MIN_P, HOLM = "step-down min-p", "Holm"
ERRORS_DO_NOT_DIFFER = "errors do not differ significantly between groups"


@dataclass(frozen=True)
class GroupSpec:
    """The subgroups of an audit, their equivalence margin, and the seed of their intervals."""

    partitions: Sequence[SubgroupPartition] = ()  # one per group column and per crossing
    min_effect: float = 0.05  # equivalence margin of the error
    seed: int | None = None  # seed of the intervals, as in `by_group`; if None it is drawn from the generator

    @classmethod
    def from_rows(
        cls, data: Any, rows: Predictions | Tally, crossings: Any, min_effect: Any, rng: int | np.random.Generator
    ) -> GroupSpec:
        """Return the subgroups of these rows; a tally has only the group columns that it was made with.

        `data` are the rows as passed by the caller, `crossings` is the number of group columns that are combined.
        """
        seed = int(rng) if isinstance(rng, (int, np.integer)) else None
        if not isinstance(rows, Tally):
            # `rows` lack those of weight 0, whose subgroups are listed nevertheless.
            all_rows = data if isinstance(data, Predictions) else rows
            return cls(group_partitions(all_rows, crossings, min_effect), float(min_effect), seed)
        if crossing_order(len(rows.groups), crossings, min_effect) > 1:
            raise InputError(
                "TO323",
                "Crossings of group columns require the rows, because a tally keeps each group column separately.",
                f"crossings={crossings!r} with a tally",
                "Use mode='exact', or tally with a group column that combines both.",
            )
        return cls((), float(min_effect), seed)

    @property
    def groups(self) -> list[Subgroup]:
        """All subgroups, column by column."""
        return [group for partition in self.partitions for group in partition.groups]


@dataclass(frozen=True)
class AuditGroups:
    """The results of all subgroups: errors, p-values, differences and the multicalibration error."""

    groups: tuple[Group, ...] = ()  # the subgroups, column by column
    accuracies: tuple[float | None, ...] = ()  # accuracy of each subgroup
    min_pvalue: float = 0.0  # the smallest possible joint p-value
    correction: str = STEP_DOWN_MIN_P  # how the joint p-values are adjusted
    min_effect: float = 0.05  # equivalence margin of the error
    level: float = 0.95  # confidence level of the intervals
    alpha: float = 0.05  # significance level of the joint p-values
    widest_gaps: tuple[Gap, ...] = ()  # the largest difference of two subgroups of each column
    multicalibration: MulticalibrationError | None = None  # None without joint null draws
    notes: tuple[Note, ...] = field(default=())  # on the subgroups and their tests

    def to_entries(self) -> list[dict[str, Any]]:
        """Return the subgroups as JSON objects."""
        return [
            _group_entry(group.to_dict(), strict_json(accuracy))
            for group, accuracy in zip(self.groups, self.accuracies, strict=True)
        ]

    def to_summary(self) -> dict[str, Any] | None:
        """Return the joint results of all subgroups as a JSON object; None without subgroups."""
        if not self.groups:
            return None
        error = None if self.multicalibration is None else dict(self.multicalibration.to_dict())
        if error is not None:
            error.pop("groups")  # the value of each subgroup is only in the result of `by_group`
        joint_pvalues = [group.joint for group in self.groups if not np.isnan(group.joint)]
        return {
            "pvalue": strict_json(min(joint_pvalues, default=float("nan"))),
            "min_pvalue": self.min_pvalue,
            "correction": self.correction,
            "min_effect": self.min_effect,
            "level": self.level,
            "alpha": self.alpha,
            "widest": [gap.to_dict() for gap in self.widest_gaps],
            "multicalibration": error,
        }


def _group_entry(group: dict[str, Any], accuracy: float | None) -> dict[str, Any]:
    """Return a subgroup, a JSON object, with its accuracy inserted after its number of rows."""
    return {name: group[name] for name in ("column", "value", "label", "n")} | {"accuracy": accuracy} | group


def measure_groups(
    preds: Predictions,
    group_spec: GroupSpec,
    group_tests: GroupPValues,
    level: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Callable[[float], None],
) -> AuditGroups:
    """Return the results of the subgroups of rows in memory: error, status and accuracy of each, and their differences.

    `group_tests` has their joint p-values, `level` is the confidence level of the intervals, and `alpha` the
    significance level of the joint p-values.
    """
    seed = int(rng.integers(2**31)) if group_spec.seed is None else group_spec.seed
    group_errors = group_gaps.GroupErrors(
        ESTIMATORS.make("ece", {}), default_lens(preds), "mean", IntervalSpec(level=level), seed
    )
    group_results = assess_groups(
        group_errors, preds, group_spec.partitions, group_tests, group_spec.min_effect, alpha, progress=progress
    )
    accuracies = tuple(
        None if preds.kind == "multilabel" else accuracy(error.preds) for error in group_results.group_errors
    )
    return AuditGroups(
        groups=group_results.groups,
        accuracies=accuracies,
        min_pvalue=group_tests.min_pvalue,
        correction=STEP_DOWN_MIN_P if group_tests.has_joint_draws else HOLM,
        min_effect=group_spec.min_effect,
        level=group_errors.interval_spec.level,
        alpha=alpha,
        widest_gaps=group_results.widest_gaps,
        multicalibration=group_tests.multicalibration,
        notes=(*group_tests.notes, *group_results.notes),
    )


def adjust_by_holm(pvalues: Sequence[float], min_pvalue: float) -> GroupPValues:
    """Adjust p-values of subgroups that have no joint null draws, by Holm's method.

    `min_pvalue` is the smallest possible unadjusted p-value. The smallest detectable errors are unknown.
    """
    n_groups = len(pvalues)
    note = Note(
        "TN165",
        "Independent labels have no joint null distribution, so the joint p-values of the groups are Holm-adjusted and "
        "their smallest detectable errors are unknown.",
    )
    return GroupPValues(
        list(pvalues), holm(list(pvalues)), [None] * n_groups, min(1.0, min_pvalue * n_groups), None, "", [note]
    )


def worst_group(groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the miscalibrated subgroup with the smallest joint p-value; None if no subgroup is miscalibrated.

    `groups` are JSON objects. Of several with this p-value, it is the one with the smallest unadjusted p-value, then
    the one with the largest error.
    """
    return min(
        miscalibrated_groups(groups),
        key=lambda group: (group["joint"], group["pvalue"], -(group["error"] or 0.0)),
        default=None,
    )


def miscalibrated_groups(groups: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the miscalibrated subgroups. `groups` are JSON objects."""
    return [group for group in groups if group["status"] == "miscalibrated"]


def established_worst_group(
    groups: Sequence[Mapping[str, Any]], widest_gaps: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the miscalibrated subgroup that may be called the worst; None if the data do not establish one.

    That is the only miscalibrated subgroup, or else the one with the strongest evidence among those whose error is
    significantly larger than that of another subgroup of their column. `groups` and the widest gaps of the columns are
    JSON objects.
    """
    miscalibrated = miscalibrated_groups(groups)
    if len(miscalibrated) <= 1:
        return worst_group(miscalibrated)
    larger = {gap["first" if gap["difference"] > 0 else "second"] for gap in widest_gaps if gap["settled"]}
    return worst_group([group for group in miscalibrated if group["label"] in larger])


def count_miscalibrated_groups(groups: Sequence[Mapping[str, Any]], widest_gaps: Sequence[Mapping[str, Any]]) -> str:
    """Return how many subgroups are miscalibrated, and whether their errors are known to differ; empty if none is.

    >>> count_miscalibrated_groups([{"status": "miscalibrated"}] * 5, [{"settled": False}])
    'all 5 groups are miscalibrated, and their errors do not differ significantly'
    """
    n_miscalibrated = len(miscalibrated_groups(groups))
    if not n_miscalibrated:
        return ""
    if n_miscalibrated == len(groups) > 1:
        text = f"{'both' if n_miscalibrated == 2 else f'all {n_miscalibrated:,}'} groups are miscalibrated"
    else:
        text = f"{n_miscalibrated:,} of {len(groups):,} groups {'is' if n_miscalibrated == 1 else 'are'} miscalibrated"
    # Without joint null draws there are no gaps, and it is unknown whether the errors differ.
    if not widest_gaps or any(gap["settled"] for gap in widest_gaps):
        return text
    return f"{text}, and their errors do not differ significantly"

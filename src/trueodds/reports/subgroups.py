"""The subgroups of an audit: their errors, joint or Holm-adjusted p-values, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.json_files import strict_json
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.group_results import Gap, Group, UnexaminedGroup, evidence_order
from trueodds.hypotests.group_status import (
    assess_groups,
    check_max_groups,
    count_untested,
    crossing_order,
    group_partitions,
)
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
    max_groups: int | None = None  # how many subgroups of a column are examined; None for all

    @classmethod
    def from_rows(
        cls,
        all_rows: Predictions | Tally,
        rows: Predictions | Tally,
        crossings: Any,
        min_effect: Any,
        rng: int | np.random.Generator,
        max_groups: Any = None,
    ) -> GroupSpec:
        """Return the subgroups of these rows; a tally has only the group columns that it was made with.

        `all_rows` may also have rows of weight 0, whose subgroups are listed nevertheless. `crossings` is the number of
        group columns that are combined.
        """
        seed, max_groups = int(rng) if isinstance(rng, (int, np.integer)) else None, check_max_groups(max_groups)
        if not isinstance(rows, Tally) and not isinstance(all_rows, Tally):
            partitions = group_partitions(all_rows, crossings, min_effect, max_groups, weighted_rows=rows)
            return cls(partitions, float(min_effect), seed, max_groups)
        assert isinstance(rows, Tally)
        if crossing_order(len(rows.groups), crossings, min_effect) > 1:
            raise InputError(
                "TO323",
                "Crossings of group columns require the rows, because a tally keeps each group column separately.",
                f"crossings={crossings!r} with a tally",
                "Use mode='exact', or tally with a group column that combines both.",
            )
        return cls((), float(min_effect), seed, max_groups)

    @property
    def groups(self) -> list[Subgroup]:
        """All subgroups, column by column."""
        return [group for partition in self.partitions for group in partition.groups]

    @property
    def n_untested(self) -> int:
        """Number of subgroups with weight that are not examined, for which the joint p-values are adjusted too."""
        return count_untested(self.partitions)


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
    unexamined: tuple[UnexaminedGroup, ...] = ()  # subgroups that exist and were not examined

    def to_entries(self) -> list[dict[str, Any]]:
        """Return the subgroups as JSON objects."""
        return [
            _group_entry(group.to_dict(), strict_json(accuracy))
            for group, accuracy in zip(self.groups, self.accuracies, strict=True)
        ]

    def to_summary(self) -> dict[str, Any] | None:
        """Return the joint results of all subgroups as a JSON object; None without subgroups."""
        if not self.groups and not self.unexamined:
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
            "worst": None if (worst := worst_group(self.to_entries())) is None else worst["label"],
            "unexamined": [group.to_dict() for group in self.unexamined],
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
        unexamined=group_results.unexamined,
    )


def adjust_by_holm(pvalues: Sequence[float], min_pvalue: float, n_untested: int = 0) -> GroupPValues:
    """Adjust p-values of subgroups that have no joint null draws, by Holm's method.

    `min_pvalue` is the smallest possible unadjusted p-value. `n_untested` further subgroups count with p-values of 1,
    which is valid however the tested ones were selected. The smallest detectable errors are unknown.
    """
    n_groups, adjusted = len(pvalues), holm([*pvalues, *[1.0] * n_untested])[: len(pvalues)]
    note = Note(
        "TN165",
        "Independent labels have no joint null distribution, so the joint p-values of the groups are Holm-adjusted and "
        "their smallest detectable errors are unknown.",
    )
    return GroupPValues(
        list(pvalues), adjusted, [None] * n_groups, min(1.0, min_pvalue * (n_groups + n_untested)), None, "", [note]
    )


def worst_group(groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the subgroup with the strongest evidence of miscalibration (`evidence_order`); None without subgroups.

    `groups` are JSON objects. If any subgroup is miscalibrated, this one is.
    """
    return min(groups, key=lambda group: evidence_order(group["joint"], group["pvalue"], group["error"]), default=None)


def miscalibrated_groups(groups: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the miscalibrated subgroups. `groups` are JSON objects."""
    return [group for group in groups if group["status"] == "miscalibrated"]


def established_worst_group(
    groups: Sequence[Mapping[str, Any]], widest_gaps: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the worst subgroup if it is miscalibrated and may be named without the others; None otherwise.

    It may if it is the only miscalibrated one, or if its error is significantly larger than that of another subgroup of
    its column. `groups` and the widest gaps of the columns are JSON objects.
    """
    miscalibrated = miscalibrated_groups(groups)
    worst = worst_group(miscalibrated)
    larger = {gap["first" if gap["difference"] > 0 else "second"] for gap in widest_gaps if gap["settled"]}
    return worst if worst is not None and (len(miscalibrated) == 1 or worst["label"] in larger) else None


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

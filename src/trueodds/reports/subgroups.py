"""The subgroups of an audit: their errors, joint or Holm-adjusted p-values, and the gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.json_files import strict_json
from trueodds.core.pvalues import holm
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.group_results import Gap, Group, UnexaminedGroup
from trueodds.hypotests.group_status import (
    assess_groups,
    check_max_groups,
    count_untested,
    crossing_order,
    group_partitions,
)
from trueodds.hypotests.group_tests import GroupPValues, MulticalibrationError
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.ranked import accuracy
from trueodds.lenses.subgroups import Subgroup, SubgroupPartition
from trueodds.reports.audit_sections import (
    HOLM,
    STEP_DOWN_MIN_P,
    AmongGroups,
    AuditGap,
    AuditGroup,
    AuditMulticalibration,
    StandardMeasure,
)
from trueodds.reports.standard_measures import standard_measure
from trueodds.resampling.comparison import group_gaps
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

# Standard measures of each subgroup of two classes, by the estimator that `by_group` estimates them with.
GROUP_MEASURES = {"observed_to_expected": "o_e", "calibration_slope": "calibration_slope"}


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
        if not isinstance(rows, Tally):
            partitions = group_partitions(
                cast(Predictions, all_rows), crossings, min_effect, max_groups, weighted_rows=rows
            )
            return cls(partitions, float(min_effect), seed, max_groups)
        if crossing_order(len(rows.groups), crossings, min_effect) > 1:
            raise InputError(
                "TO323",
                "Crossings of group columns require the rows, because a tally keeps each group column separately.",
                f"crossings={crossings!r} with a tally",
                "Use ⟨mode='exact'⟩, or tally with a group column that combines both.",
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
    standard_measures: tuple[tuple[StandardMeasure, ...], ...] = ()  # of each subgroup; empty unless two classes
    min_pvalue: float = 0.0  # the smallest possible joint p-value
    correction: str = STEP_DOWN_MIN_P  # how the joint p-values are adjusted
    min_effect: float = 0.05  # equivalence margin of the error
    level: float = 0.95  # confidence level of the intervals
    alpha: float = 0.05  # significance level of the joint p-values
    widest_gaps: tuple[Gap, ...] = ()  # the largest difference of two subgroups of each column
    multicalibration: MulticalibrationError | None = None  # None without joint null draws
    notes: tuple[Note, ...] = field(default=())  # on the subgroups and their tests
    unexamined: tuple[UnexaminedGroup, ...] = ()  # subgroups that exist and were not examined

    def to_entries(self) -> tuple[AuditGroup, ...]:
        """Return the subgroups as a section of the audit."""
        measures = self.standard_measures or ((),) * len(self.groups)
        entries = (
            AuditGroup.from_dict({**group.to_dict(), "accuracy": strict_json(accuracy)})
            for group, accuracy in zip(self.groups, self.accuracies, strict=True)
        )
        return tuple(
            replace(entry, standard_measures=own_measures)
            for entry, own_measures in zip(entries, measures, strict=True)
        )

    def to_summary(self) -> AmongGroups | None:
        """Return the joint results of all subgroups as a section of the audit; None without subgroups."""
        if not self.groups and not self.unexamined:
            return None
        joint_pvalues = [group.joint for group in self.groups if not np.isnan(group.joint)]
        worst = min(self.to_entries(), key=lambda group: group.evidence, default=None)
        error = self.multicalibration
        return AmongGroups(
            pvalue=strict_json(min(joint_pvalues, default=float("nan"))),
            min_pvalue=self.min_pvalue,
            correction=self.correction,
            min_effect=self.min_effect,
            level=self.level,
            alpha=self.alpha,
            worst=None if worst is None else worst.label,
            unexamined=self.unexamined,
            widest=tuple(AuditGap.from_dict(gap.to_dict()) for gap in self.widest_gaps),
            # The value of each subgroup is only in the result of `by_group`.
            multicalibration=None if error is None else AuditMulticalibration.from_dict(error.to_dict()),
        )


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
    measures = GROUP_MEASURES if preds.kind == "classes" and preds.k == 2 else {}
    group_errors = group_gaps.GroupErrors(
        ESTIMATORS.make("ece", {}),
        default_lens(preds),
        "mean",
        IntervalSpec(level=level),
        seed,
        tuple(ESTIMATORS.make(estimator, {}) for estimator in measures.values()),
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
        standard_measures=tuple(
            tuple(
                standard_measure(name, model.value, model.interval(level)[0], model.estimand.estimator.best_value)
                for name, model in zip(measures, error.companions, strict=True)
            )
            for error in group_results.group_errors
        ),
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

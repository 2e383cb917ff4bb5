"""Status of each subgroup (miscalibrated, within the smallest relevant effect, undecided) and gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent
from trueodds.core.group_results import Gap, Group
from trueodds.core.results import Estimate
from trueodds.core.settings import NonNegative, Range, check
from trueodds.data.predictions import Predictions
from trueodds.hypotests.group_tests import GroupPValues
from trueodds.lenses.subgroups import SubgroupPartition, subgroup_partitions
from trueodds.resampling.comparison import group_gaps as gaps
from trueodds.resampling.comparison.compared_model import ComparedModel

MAX_NAMED_GROUPS = 5  # maximum number of subgroups named in a note


def group_partitions(preds: Predictions, crossings: Any, min_effect: Any) -> list[SubgroupPartition]:
    """Subgroups of every column and of crossed columns; raises InputError for invalid settings."""
    return subgroup_partitions(preds, crossing_order(len(preds.group), crossings, min_effect))


def crossing_order(columns: int, crossings: Any, min_effect: Any) -> int:
    """Maximum number of group columns to cross."""
    crossings = check("crossings", crossings, bool | Annotated[int, Range(0)], False)
    check("min_effect", min_effect, NonNegative, 0.05)
    order = 2 if crossings is True else max(1, int(crossings))
    if order > max(1, columns):
        raise InputError(
            "TO203",
            "crossings must be False, True, or the maximum number of group columns to cross.",
            f"{crossings!r} with {columns} group columns",
            "Use 2 to cross every two columns.",
        )
    return order


@dataclass(frozen=True)
class GroupAssessment:
    """Results of all subgroups, and the gaps between them."""

    groups: tuple[Group, ...]
    sides: tuple[ComparedModel, ...]
    gaps: tuple[Gap, ...]
    widest: tuple[Gap, ...]
    notes: tuple[Note, ...]


def assess_groups(
    question: gaps.GroupErrors,
    preds: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_pvalues: GroupPValues,
    min_effect: float,
    alpha: float,
    against: str = "pairs",
    progress: Callable[[float], None] | None = None,
) -> GroupAssessment:
    """Error, p-values and status of every subgroup of the partitions, and the gaps of each partition."""
    groups = [group for partition in partitions for group in partition.groups]
    sides, group_results = [], []
    for number, (group, p, joint, min_detectable) in enumerate(
        zip(groups, group_pvalues.pvalues, group_pvalues.joint, group_pvalues.min_detectable, strict=True)
    ):
        side = question.error_of_group(preds, group, number)
        status = _group_status(side, joint, min_effect, alpha)
        estimate = _with_noise_floor(side, group_pvalues.noise_floors[number] if group_pvalues.noise_floors else None)
        group_results.append(
            Group(
                group.column,
                group.value,
                group.label,
                estimate,
                p,
                joint,
                min_detectable,
                status,
                *_mean_prediction_and_event_rate(side),
            )
        )
        sides.append(side)
        if progress is not None:
            progress((number + 1) / len(groups))
    differences, widest = _group_gaps(question, preds, partitions, sides, against)
    return GroupAssessment(
        tuple(group_results),
        tuple(sides),
        differences,
        widest,
        (*_notes_on_untested(partitions), *group_notes(group_results, alpha, joint=group_pvalues.has_joint_draws)),
    )


def classify_status(
    joint: float, low: float | None, high: float | None, min_effect: float, alpha: float, best_value: float = 0.0
) -> str:
    """`miscalibrated`, `within` or `undecided`; without an interval the status is never `within`.

    >>> classify_status(0.01, 0.0, 0.02, 0.05, 0.05), classify_status(0.5, 0.0, 0.02, 0.05, 0.05)
    ('miscalibrated', 'within')
    >>> classify_status(0.5, None, None, 0.05, 0.05)
    'undecided'
    """
    if joint <= alpha + 1e-12:
        return "miscalibrated"
    if low is not None and high is not None and max(abs(low - best_value), abs(high - best_value)) < min_effect:
        return "within"
    return "undecided"


def _with_noise_floor(side: ComparedModel, noise_floor: float | None) -> Estimate:
    """Replace the noise floor by that of the joint draws, if both are means over redrawn labels."""
    estimate, estimator = side.estimate, side.estimand.estimator
    drawn = estimator.null_draws_of == "labels" and all(
        estimator.expected_if_calibrated(view) is None for view in side.estimand.views
    )
    if noise_floor is None or estimate.noise_floor is None or not drawn or side.preds.votes is not None:
        return estimate
    return replace(estimate, noise_floor=noise_floor)


def _mean_prediction_and_event_rate(side: ComparedModel) -> tuple[float | None, float | None]:
    """Mean predicted probability and event rate; None if the lens has several views, or vectors."""
    view, *more = side.estimand.views
    if more or view.joint:
        return None, None
    return float(view.w @ view.p / view.total), float(view.w @ view.y / view.total)


def _group_status(side: ComparedModel, joint: float, min_effect: float, alpha: float) -> str:
    ends = side.estimate.interval
    low, high = (None, None) if ends is None else (ends.low, ends.high)
    return classify_status(joint, low, high, min_effect, alpha, side.estimand.estimator.best_value)


def _group_gaps(
    question: gaps.GroupErrors,
    rows: Predictions,
    partitions: Sequence[SubgroupPartition],
    sides: Sequence[ComparedModel],
    against: str,
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The requested gaps, and the widest gap of each column."""
    every, widest, start = [], [], 0
    for partition in partitions:
        partition_sides, names = (
            sides[start : start + len(partition.groups)],
            [group.label for group in partition.groups],
        )
        start += len(partition_sides)
        two = gaps.pairwise_gaps(question, rows, partition.groups, partition_sides)
        shown = two if against == "pairs" else gaps.gaps_to_rest(question, rows, partition.groups, partition_sides)
        every += [
            Gap(
                partition.column,
                names[gap.first],
                names[gap.second] if against == "pairs" else "rest",
                gap.value,
                gap.interval,
            )
            for gap in shown
        ]
        if (widest_gap := gaps.find_widest_gap(two, question.interval_spec.level)) is not None:
            widest.append(
                Gap(partition.column, names[widest_gap[0]], names[widest_gap[1]], widest_gap[2], widest_gap[3])
            )
    return tuple(every), tuple(widest)


def _notes_on_untested(partitions: Sequence[SubgroupPartition]) -> list[Note]:
    """Notes on groups that were not tested, and on empty combinations."""
    notes = []
    for partition in partitions:
        for left, why in (
            (partition.unevaluated_groups, "not among the 50 largest"),
            (partition.zero_weight_groups, "without weight"),
        ):
            if left:
                text = (
                    f"Groups of {partition.column} not tested, {why}: {len(left):,}"
                    f" ({_name_groups([one.label for one in left])})."
                )
                notes.append(Note("TN151", text))
        if partition.n_empty:
            notes.append(Note("TN152", f"Combinations of {partition.column} without rows: {partition.n_empty:,}."))
    return notes


def group_notes(groups: Sequence[Group], alpha: float, *, joint: bool = True) -> list[Note]:
    """Notes on subgroups without an interval, because they have one row, and on undecided ones.

    `joint` says that all subgroups were tested on joint draws; otherwise the minimum detectable error is unknown.
    """
    notes = []
    single = [group.label for group in groups if group.n == 1]
    if single:
        text = f"No interval for groups of one row: {_name_groups(single)}."
        notes.append(Note("TN150", text))
    open_ = [group for group in groups if group.status == "undecided"]
    if open_:
        blind = [group.label for group in open_ if group.min_detectable is None]
        more = f" No possible error of {_name_groups(blind)} would have been significant." if blind and joint else ""
        how = (
            ' "detectable from" (`min_detectable`) is the smallest error that would have been significant.'
            if joint
            else ""
        )
        text = (
            f"Undecided at {format_percent(1 - alpha)}: {len(open_)} of {len(groups)} groups. A group that is not"
            f" rejected is not necessarily calibrated.{how}{more}"
        )
        notes.append(Note("TN153", text))
    return notes


def _name_groups(labels: Sequence[str]) -> str:
    more = [f"{len(labels) - MAX_NAMED_GROUPS} more"] if len(labels) > MAX_NAMED_GROUPS else []
    return "; ".join([*labels[:MAX_NAMED_GROUPS], *more])

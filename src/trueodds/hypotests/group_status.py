"""The status of each subgroup (miscalibrated, within the smallest relevant effect, or undecided), and their gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent_in_text
from trueodds.core.group_results import Gap, Group
from trueodds.core.results import Estimate
from trueodds.core.settings import NonNegative, Range, check
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests.equivalence import EventRate, is_in_probability_units, is_lens_on_classes
from trueodds.hypotests.group_tests import GroupPValues
from trueodds.lenses.subgroups import SubgroupPartition, rows_of_groups, subgroup_partitions
from trueodds.resampling.comparison import group_gaps
from trueodds.resampling.comparison.compared_model import ComparedModel

MAX_NAMED_GROUPS = 5  # maximum number of subgroups named in a note
LEVEL_TOLERANCE = 1e-12  # tolerance of a p-value that equals the level


def group_partitions(preds: Predictions, crossings: Any, min_effect: Any) -> list[SubgroupPartition]:
    """Return the subgroups of every column and of crossed columns; raise InputError for invalid settings."""
    return subgroup_partitions(preds, crossing_order(len(preds.group), crossings, min_effect))


def crossing_order(n_columns: int, crossings: Any, min_effect: Any) -> int:
    """Return the maximum number of group columns to cross; raise InputError for invalid settings of the user."""
    crossings = check("crossings", crossings, bool | Annotated[int, Range(0)], False)
    check("min_effect", min_effect, NonNegative, 0.05)
    order = 2 if crossings is True else max(1, int(crossings))
    if order > max(1, n_columns):
        raise InputError(
            "TO203",
            "crossings must be False, True, or the maximum number of group columns to cross.",
            f"{crossings!r} with {n_columns} group columns",
            "Use 2 to cross every two columns.",
        )
    return order


@dataclass(frozen=True)
class GroupAssessment:
    """Results of all subgroups, and the gaps between them."""

    groups: tuple[Group, ...]  # result of each subgroup
    group_errors: tuple[ComparedModel, ...]  # error of each subgroup with its rows and views
    gaps: tuple[Gap, ...]  # requested gaps: between pairs of subgroups, or to the rest
    widest_gaps: tuple[Gap, ...]  # widest gap of each column
    notes: tuple[Note, ...]


def assess_groups(
    error_settings: group_gaps.GroupErrors,
    preds: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_pvalues: GroupPValues,
    min_effect: float,
    alpha: float,
    against: str = "pairs",
    progress: Callable[[float], None] | None = None,
) -> GroupAssessment:
    """Error, p-values and status of every subgroup of the partitions, and the gaps of each partition.

    `group_pvalues` are those of the subgroups in the order of the partitions. `against` is "pairs" for the gaps between
    pairs of subgroups, or "rest" for those to all other rows. `progress` receives the finished share of the subgroups.
    """
    groups = [group for partition in partitions for group in partition.groups]
    group_errors, group_results = [], []
    for number, (group, rows) in enumerate(zip(groups, rows_of_groups(preds, groups), strict=True)):
        group_error = error_settings.error_of_group(preds, group, number, rows)
        adjusted_pvalue = group_pvalues.adjusted[number]
        noise_floor = group_pvalues.noise_floors[number] if group_pvalues.noise_floors else None
        mean_prob, event_rate = _mean_prediction_and_event_rate(group_error)
        group_results.append(
            Group(
                column=group.column,
                value=group.value,
                label=group.label,
                estimate=_with_noise_floor(group_error, noise_floor),
                pvalue=group_pvalues.pvalues[number],
                joint=adjusted_pvalue,
                min_detectable=group_pvalues.min_detectable[number],
                status=_group_status(group_error, adjusted_pvalue, min_effect, alpha),
                mean_prob=mean_prob,
                event_rate=event_rate,
            )
        )
        group_errors.append(group_error)
        if progress is not None:
            progress((number + 1) / len(groups))
    gaps, widest_gaps = _gaps_of_partitions(error_settings, preds, partitions, group_errors, against)
    notes = (
        *_notes_on_untested(partitions),
        *group_notes(group_results, alpha, joint=group_pvalues.has_joint_draws),
        *margin_notes(group_results, error_settings.estimator, str(error_settings.lens), min_effect),
    )
    return GroupAssessment(tuple(group_results), tuple(group_errors), gaps, widest_gaps, notes)


def classify_status(
    adjusted_pvalue: float,
    low: float | None,
    high: float | None,
    min_effect: float,
    alpha: float,
    best_value: float = 0.0,
) -> str:
    """Return the status of a subgroup: `miscalibrated`, `within` or `undecided`.

    It is `miscalibrated` if the adjusted p-value is at most `alpha`, and else `within` if the interval from `low` to
    `high` lies closer than `min_effect` to the best value of the error. Without an interval it is never `within`.

    >>> classify_status(0.01, 0.0, 0.02, 0.05, 0.05), classify_status(0.5, 0.0, 0.02, 0.05, 0.05)
    ('miscalibrated', 'within')
    >>> classify_status(0.5, None, None, 0.05, 0.05)
    'undecided'
    """
    if adjusted_pvalue <= alpha + LEVEL_TOLERANCE:
        return "miscalibrated"
    if low is not None and high is not None and max(abs(low - best_value), abs(high - best_value)) < min_effect:
        return "within"
    return "undecided"


def _with_noise_floor(group_error: ComparedModel, noise_floor: float | None) -> Estimate:
    """Return the estimate with the noise floor of the joint draws, if both are means over redrawn labels."""
    estimate, estimator = group_error.estimate, group_error.estimand.estimator
    is_mean_of_draws = estimator.null_draws_of == "labels" and all(
        estimator.expected_if_calibrated(view) is None for view in group_error.estimand.views
    )
    if (
        noise_floor is None
        or estimate.noise_floor is None
        or not is_mean_of_draws
        or group_error.preds.votes is not None
    ):
        return estimate
    return replace(estimate, noise_floor=noise_floor)


def _mean_prediction_and_event_rate(group_error: ComparedModel) -> tuple[float | None, float | None]:
    """Mean predicted probability and event rate; None if the lens has several views, or vectors."""
    view, *other_views = group_error.estimand.views
    if other_views or view.joint:
        return None, None
    return float(view.w @ view.p / view.total), float(view.w @ view.y / view.total)


def _group_status(group_error: ComparedModel, adjusted_pvalue: float, min_effect: float, alpha: float) -> str:
    """Status of one subgroup from its adjusted p-value and the interval of its error."""
    interval = group_error.estimate.interval
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return classify_status(adjusted_pvalue, low, high, min_effect, alpha, group_error.estimand.estimator.best_value)


def _gaps_of_partitions(
    error_settings: group_gaps.GroupErrors,
    preds: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_errors: Sequence[ComparedModel],
    against: str,
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return the requested gaps of all partitions, and the widest gap of each.

    `group_errors` are those of the subgroups in the order of the partitions; `against` is that of `assess_groups`.
    """
    gaps, widest_gaps, start = [], [], 0
    for partition in partitions:
        groups, labels = partition.groups, [group.label for group in partition.groups]
        partition_errors = group_errors[start : start + len(groups)]
        start += len(groups)
        pairwise = group_gaps.pairwise_gaps(error_settings, preds, groups, partition_errors)
        if against == "pairs":
            gaps += [
                Gap(partition.column, labels[gap.first], labels[gap.second], gap.value, gap.interval)
                for gap in pairwise
            ]
        else:
            gaps += [
                Gap(partition.column, labels[gap.first], "rest", gap.value, gap.interval)
                for gap in group_gaps.gaps_to_rest(error_settings, preds, groups, partition_errors)
            ]
        widest_gap = group_gaps.find_widest_gap(pairwise, error_settings.interval_spec.level)
        if widest_gap is not None:
            first, second, difference, interval = widest_gap
            widest_gaps.append(Gap(partition.column, labels[first], labels[second], difference, interval))
    return tuple(gaps), tuple(widest_gaps)


def _notes_on_untested(partitions: Sequence[SubgroupPartition]) -> list[Note]:
    """Notes on groups that were not tested, and on empty combinations."""
    notes = []
    for partition in partitions:
        for untested, reason in (
            (partition.unexamined_groups, "not among the 50 largest"),
            (partition.zero_weight_groups, "without weight"),
        ):
            if untested:
                text = (
                    f"Groups of {partition.column} not tested, {reason}: {len(untested):,}"
                    f" ({_name_groups([group.label for group in untested])})."
                )
                notes.append(Note("TN151", text))
        if partition.n_empty:
            notes.append(Note("TN152", f"Combinations of {partition.column} without rows: {partition.n_empty:,}."))
    return notes


def group_notes(groups: Sequence[Group], alpha: float, *, joint: bool = True) -> list[Note]:
    """Return notes on subgroups without an interval, because they have one row, and on undecided ones.

    `joint` says that all subgroups were tested on joint draws; otherwise the minimum detectable error is unknown.
    """
    notes = []
    single_row_groups = [group.label for group in groups if group.n == 1]
    if single_row_groups:
        text = f"No interval for groups of one row: {_name_groups(single_row_groups)}."
        notes.append(Note("TN150", text))
    undecided = [group for group in groups if group.status == "undecided"]
    if undecided:
        undetectable = [group.label for group in undecided if group.min_detectable is None]
        undetectable_text = (
            f" No possible error of {_name_groups(undetectable)} would have been significant."
            if undetectable and joint
            else ""
        )
        detectable_text = (
            ' "smallest detectable" (`min_detectable`) is the smallest error that would have been significant.'
            if joint
            else ""
        )
        text = (
            f"{len(undecided)} of {len(groups)} groups are undecided at the {format_percent_in_text(alpha)} level. A"
            f" group that is not rejected is not necessarily calibrated.{detectable_text}{undetectable_text}"
        )
        notes.append(Note("TN153", text))
    return notes


def margin_notes(groups: Sequence[Group], estimator: Estimator, lens_name: str, min_effect: float) -> list[Note]:
    """Return the note TN240 on subgroups that are within a margin of at least half of their event rate."""
    if not (is_lens_on_classes(lens_name) and is_in_probability_units(estimator)):
        return []
    rare_groups = [
        group.label
        for group in groups
        if group.status == "within"
        and group.event_rate is not None
        and EventRate.from_rate(group.event_rate).hides_factor_of_two(min_effect)
    ]
    if not rare_groups:
        return []
    text = (
        f"The equivalence margin of {min_effect:g} is at least half of the rate of the rarer outcome in groups that are"
        f" within it: {_name_groups(rare_groups)}. Predictions that are wrong by a factor of two can lie within it."
        " Pass a smaller min_effect, or also examine the ratio o_e."
    )
    return [Note("TN240", text)]


def _name_groups(labels: Sequence[str]) -> str:
    """Return the first MAX_NAMED_GROUPS labels, and the number of the others, as text."""
    others = [f"{len(labels) - MAX_NAMED_GROUPS} more"] if len(labels) > MAX_NAMED_GROUPS else []
    return "; ".join([*labels[:MAX_NAMED_GROUPS], *others])

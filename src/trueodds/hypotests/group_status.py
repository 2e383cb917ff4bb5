"""The status of each subgroup (miscalibrated, within the smallest relevant effect, or undecided), and their gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np

from trueodds.core.arithmetic import variance_of_sum, weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number, format_percent_in_text
from trueodds.core.results import Estimate, Interval
from trueodds.core.rng import as_generator
from trueodds.core.settings import NonNegative, Range, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator
from trueodds.hypotests.equivalence import EventRate, is_lens_on_classes
from trueodds.hypotests.group_results import (
    BEYOND_MAX_GROUPS,
    NO_WEIGHT,
    ByGroup,
    Gap,
    Group,
    UnexaminedGroup,
    evidence_order,
)
from trueodds.hypotests.group_tests import GroupPValues, joint_group_pvalues, required_group_draws
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, sufficient_draws
from trueodds.lenses.base import Lens
from trueodds.lenses.lens_by_name import default_lens
from trueodds.lenses.subgroups import (
    SubgroupPartition,
    group_zscores,
    largest_zscores,
    rows_of_groups,
    subgroup_partitions,
)
from trueodds.lenses.view import View
from trueodds.resampling.between_groups import (
    MIN_GROUPS,
    MIN_GROUPS_WITHOUT_NOTE,
    BetweenGroups,
    summarize_between_groups,
)
from trueodds.resampling.comparison import group_gaps
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.estimate import estimate_error
from trueodds.tallies.tally import Tally, require_rows

MAX_NAMED_GROUPS = 5  # maximum number of subgroups named in a note


def group_partitions(
    preds: Predictions,
    crossings: Any,
    min_effect: Any,
    max_groups: Any = None,
    lens: Lens | None = None,
    weighted_rows: Predictions | None = None,
) -> list[SubgroupPartition]:
    """Return the subgroups of every column and of crossed columns; raise InputError for invalid settings.

    The arguments are those of `subgroup_partitions`, and settings of the user.
    """
    order = crossing_order(len(preds.group), crossings, min_effect)
    return subgroup_partitions(preds, order, check_max_groups(max_groups), lens, weighted_rows)


def check_max_groups(max_groups: Any) -> int | None:
    """Return the maximum number of subgroups of a column that are examined, or None; raise InputError if invalid."""
    limit: int | None = check("max_groups", max_groups, Annotated[int, Range(1)] | None)
    return limit


def unexamined_groups(partitions: Sequence[SubgroupPartition]) -> tuple[UnexaminedGroup, ...]:
    """Return the subgroups that exist and are not examined, with the reasons."""
    return tuple(
        UnexaminedGroup(group.column, group.value, group.label, reason)
        for partition in partitions
        for groups, reason in (
            (partition.unexamined_groups, BEYOND_MAX_GROUPS),
            (partition.zero_weight_groups, NO_WEIGHT),
        )
        for group in groups
    )


def tally_subgroups(
    tally: Tally, max_groups: int | None
) -> tuple[list[tuple[str, str, Tally]], tuple[UnexaminedGroup, ...]]:
    """Return the subgroups of a tally that are examined, as (column, value, tally), and the others with the reasons.

    As of rows, those without weight are not examined, nor those beyond the limit `max_groups` for each column.
    """
    examined: list[tuple[str, str, Tally]] = []
    unexamined: list[UnexaminedGroup] = []
    for column, tallies in tally.groups.items():
        weighted = {value: part for value, part in tallies.items() if part.weight > 0}
        zscores = np.array([group_zscores(part.views(default_lens(part)))[0] for part in weighted.values()])
        allowed = dict(zip(weighted, largest_zscores(zscores, max_groups), strict=True))
        for value, part in tallies.items():
            if allowed.get(value, False):
                examined.append((column, value, part))
                continue
            reason = BEYOND_MAX_GROUPS if value in weighted else NO_WEIGHT
            unexamined.append(UnexaminedGroup(column, str(value), f"{column}={value}", reason))
    return examined, tuple(unexamined)


def count_untested(partitions: Sequence[SubgroupPartition]) -> int:
    """Return the number of subgroups with weight that are not examined; the joint p-values are adjusted for them."""
    return sum(len(partition.unexamined_groups) for partition in partitions)


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


def check_has_groups(data: Predictions | Tally) -> Predictions:
    """Return the rows; raise TO403 for a tally, and TO409 for predictions without a group column."""
    preds: Predictions = require_rows(data, "The joint test of subgroups needs the rows.")
    if not preds.group:
        fix = "Pass Predictions(y, p, group={'sex': sex})."
        raise InputError("TO409", "The predictions have no group column.", repr(preds), fix)
    return preds


def analyze_groups(
    error_settings: group_gaps.GroupErrors,
    all_rows: Predictions,
    rows: Predictions,
    *,
    crossings: bool | int,
    max_groups: int | None,
    min_effect: float,
    resamples: int | None,
    rng: np.random.Generator,
    progress: Callable[[float, str], None],
    against: str | None = None,
    call_settings: Mapping[str, Any] = MappingProxyType({}),
    data_notes: Sequence[Note] = (),
    between: str | None = None,
) -> ByGroup:
    """Errors, joint p-values and status of all subgroups, as `trueodds.by_group` returns them.

    `rows` are those of `all_rows` with a weight above 0. Without `against` no gaps are computed, which takes most of
    the time for many subgroups. `between` is the method of the prediction interval for a new group, if one is wanted.
    `call_settings` and `data_notes` are added to those of the result.
    """
    estimator, lens, level = error_settings.estimator, error_settings.lens, error_settings.interval_spec.level
    partitions = group_partitions(all_rows, crossings, min_effect, max_groups, lens, rows)
    n_untested = count_untested(partitions)
    groups = [group for partition in partitions for group in partition.groups]
    n_null_draws = required_group_draws(resamples, rows.n, len(groups), n_untested, 1 - level)
    progress(0.0, "simulating labels")
    group_pvalues = joint_group_pvalues(
        rows, groups, estimator, lens, error_settings.aggregate, n_null_draws, 1 - level, rng,
        lambda share: progress(0.4 * share, "simulating labels"), n_untested,
    )  # fmt: skip
    assessment = assess_groups(
        error_settings, rows, partitions, group_pvalues, min_effect, 1 - level, against,
        lambda share: progress(0.4 + 0.4 * share, "measuring groups"),
    )  # fmt: skip
    between_groups: tuple[BetweenGroups, ...] = ()
    if between is not None:
        between_groups = tuple(_between_groups(rows, partitions, assessment.group_errors, error_settings, between))
    progress(0.85, "measuring all rows")
    # A generator of its own, so that the estimate is that of `measure` with the same seed.
    own_rng = as_generator(error_settings.seed)
    overall = estimate_error(rows, estimator, lens, error_settings.aggregate, error_settings.interval_spec, own_rng)
    progress(1.0, "done")
    settings_used = dict(overall.settings) | {
        "intervals": "each by itself",
        "columns": list(dict.fromkeys(group.column for group in groups)), "min_effect": min_effect, "against": against,
        "max_groups": max_groups, "redraws": n_null_draws, "min_pvalue": group_pvalues.min_pvalue,
        "correction": "step-down min-p",
        **estimator.best_value_setting,
    }  # fmt: skip
    notes = [*data_notes, *overall.notes, *group_pvalues.notes, *assessment.notes]
    notes += _notes_on_few_groups(between_groups)
    return ByGroup(
        estimator.name,
        str(lens),
        assessment.groups,
        overall,
        assessment.gaps,
        assessment.widest_gaps,
        group_pvalues.multicalibration,
        level,
        group_pvalues.null,
        settings_used | dict(call_settings),
        tuple(dict.fromkeys(notes)),
        assessment.unexamined,
        between_groups,
    )


def check_between(between: bool, method: str, estimator: Estimator, max_groups: Any) -> str | None:
    """Return the method of the interval for a new group, or None; raise InputError if the groups have none."""
    between = check("between", between, bool, False)
    method = check("method", method, Literal["Nagashima", "HTS"], "Nagashima")
    if not between:
        if method == "HTS":
            problem, fix = "This method is that of the interval for a new group.", "Add ⟨between=True⟩."
            raise InputError("TO205", problem, "⟨method='HTS'⟩ alone", fix)
        return None
    if estimator.group_scale is None:
        names = [name for name in ESTIMATORS.names() if ESTIMATORS.load(name).group_scale is not None]
        problem = "The differences between groups need an estimator with a standard error in closed form."
        raise InputError("TO205", problem, f"⟨between=True⟩ with {estimator.name}", f"Use one of {', '.join(names)}.")
    if max_groups is not None:
        problem, fix = "The differences between groups need all groups.", "Leave one of the two out."
        raise InputError("TO205", problem, f"⟨between=True⟩ and ⟨max_groups={max_groups}⟩", fix)
    return method


def _between_groups(
    rows: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_errors: Sequence[ComparedModel],
    error_settings: group_gaps.GroupErrors,
    method: str,
) -> Iterator[BetweenGroups]:
    """Summarize the groups of each partition; `group_errors` are those of all groups in the order of the partitions."""
    errors, estimator = iter(group_errors), error_settings.estimator
    (all_groups,) = error_settings.lens.views(rows)
    overall = estimator.value(all_groups)
    for partition in partitions:
        effects = []
        for group in partition.groups:
            error = next(errors)
            (view,) = error.estimand.views
            effect = estimator.group_effect(view, error.preds.cluster, overall)
            effects.append((group.label, effect.value, effect.se))
        scale, level = str(estimator.group_scale), error_settings.interval_spec.level
        rng = as_generator(error_settings.seed)
        yield summarize_between_groups(partition.column, scale, effects, level, rng, method)


def _notes_on_few_groups(between_groups: Sequence[BetweenGroups]) -> list[Note]:
    """Return notes on columns with few groups, and on groups that were left out."""
    notes = []
    for summary in between_groups:
        if summary.omitted:
            names = _name_groups(summary.omitted)
            text = f"Groups of {summary.column} without enough events are left out of the differences between groups"
            notes.append(Note("TN293", f"{text}: {names}."))
        if MIN_GROUPS <= summary.n_groups < MIN_GROUPS_WITHOUT_NOTE:
            text = f"The interval for a new group rests on the normal distribution of {summary.n_groups} groups"
            notes.append(Note("TN294", f"{text} of {summary.column}, which so few groups cannot show."))
    return notes


@dataclass(frozen=True)
class GroupAssessment:
    """Results of all subgroups, and the gaps between them."""

    groups: tuple[Group, ...]  # result of each subgroup
    group_errors: tuple[ComparedModel, ...]  # error of each subgroup with its rows and views
    gaps: tuple[Gap, ...]  # requested gaps: between pairs of subgroups, or to the rest
    widest_gaps: tuple[Gap, ...]  # widest gap of each column
    notes: tuple[Note, ...]
    unexamined: tuple[UnexaminedGroup, ...] = ()  # subgroups that exist and were not examined


def assess_groups(
    error_settings: group_gaps.GroupErrors,
    preds: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_pvalues: GroupPValues,
    min_effect: float,
    alpha: float,
    against: str | None = "pairs",
    progress: Callable[[float], None] | None = None,
) -> GroupAssessment:
    """Error, p-values and status of every subgroup of the partitions, and the gaps of each partition.

    `group_pvalues` are those of the subgroups in the order of the partitions. `against` is "pairs" for the gaps between
    pairs of subgroups, "rest" for those to all other rows, or None for no gaps. `progress` receives the finished share
    of the subgroups.
    """
    groups = [group for partition in partitions for group in partition.groups]
    unexamined, group_errors, group_results = unexamined_groups(partitions), [], []
    for number, (group, rows) in enumerate(zip(groups, rows_of_groups(preds, groups), strict=True)):
        group_error = error_settings.error_of_group(preds, group, number, rows)
        adjusted_pvalue = group_pvalues.adjusted[number]
        noise_floor = group_pvalues.noise_floors[number] if group_pvalues.noise_floors else None
        view = _only_view(group_error)
        mean_prob, event_rate = (None, None) if view is None else mean_prediction_and_event_rate(view)
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
                direction=_direction_of_group(group_error, view, error_settings.interval_spec.level),
            )
        )
        group_errors.append(group_error)
        if progress is not None:
            progress((number + 1) / len(groups))
    best_value = error_settings.estimator.best_value
    severity = [
        evidence_order(group.joint, group.pvalue, abs(group.estimate.value - best_value)) for group in group_results
    ]
    gaps: tuple[Gap, ...] = ()
    widest_gaps: tuple[Gap, ...] = ()
    if against is not None:
        gaps, widest_gaps = _gaps_of_partitions(error_settings, preds, partitions, group_errors, severity, against)
    notes = (
        *notes_on_unexamined([(partition.column, len(partition.groups)) for partition in partitions], unexamined),
        *(Note("TN152", _describe_empty(partition)) for partition in partitions if partition.n_empty),
        *_notes_on_draws(len(groups), count_untested(partitions), group_pvalues.min_pvalue, alpha),
        *(_notes_on_gaps(partitions, against) if against else []),
        *group_notes(group_results, alpha, joint=group_pvalues.has_joint_draws),
        *margin_notes(group_results, error_settings.estimator, str(error_settings.lens), min_effect),
    )
    return GroupAssessment(tuple(group_results), tuple(group_errors), gaps, widest_gaps, notes, unexamined)


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


def _only_view(group_error: ComparedModel) -> View | None:
    """Return the view of the lens; None if it has several, or vectors of probabilities."""
    view, *other_views = group_error.estimand.views
    return None if other_views or view.joint else view


def mean_prediction_and_event_rate(view: View) -> tuple[float, float]:
    return float(weighted_sum(view.w, view.p) / view.total), float(weighted_sum(view.w, view.y) / view.total)


def prediction_direction(view: View, cluster: Array | None, level: float) -> str | None:
    """Return whether predictions are too low ("under") or too high ("over") on average; None if neither is significant.

    The mean gap is significant if its confidence interval excludes 0. The variance is that of the residuals, and of
    independent rows at least the one that the predictions imply. `cluster` (n,) labels rows that are not independent.

    >>> prediction_direction(View(p=[0.2] * 100, y=[1] * 30 + [0] * 70), None, 0.95)  # 20 ± 7.8 events expected
    'under'
    >>> prediction_direction(View(p=[0.2] * 100, y=[1] * 25 + [0] * 75), None, 0.95)
    """
    residual = view.w * (view.y - view.p)
    gap = float(residual.sum() / view.total)
    if cluster is None:
        variance = max(view.sums("wwr").sum(), view.sums("wwv").sum())
        interval = Interval.from_standard_error(gap, math.sqrt(variance) / view.total, level)
    else:
        n = len(np.unique(cluster))
        if n < 2:
            return None
        se = math.sqrt(variance_of_sum(residual, cluster)) / view.total
        interval = Interval.from_standard_error(gap, se, level, n - 1)
    return "under" if interval.low > 0 else "over" if interval.high < 0 else None


def _direction_of_group(group_error: ComparedModel, view: View | None, level: float) -> str | None:
    """Direction of the number that is shown: of the slope if its interval excludes 1, and else of the mean gap."""
    estimator, interval = group_error.estimand.estimator, group_error.estimate.interval
    if estimator.directions is None:
        return None if view is None else prediction_direction(view, group_error.preds.cluster, level)
    if interval is None or interval.low <= estimator.best_value <= interval.high:
        return None
    below, above = estimator.directions
    return below if interval.high < estimator.best_value else above


def _group_status(group_error: ComparedModel, adjusted_pvalue: float, min_effect: float, alpha: float) -> str:
    """Status of one subgroup from its adjusted p-value and the interval of its error."""
    interval, estimator = group_error.estimate.interval, group_error.estimand.estimator
    # A small score or risk does not show that the group is calibrated.
    if interval is None or not estimator.vanishes_if_calibrated:
        return classify_status(adjusted_pvalue, None, None, min_effect, alpha)
    return classify_status(adjusted_pvalue, interval.low, interval.high, min_effect, alpha, estimator.best_value)


def _gaps_of_partitions(
    error_settings: group_gaps.GroupErrors,
    preds: Predictions,
    partitions: Sequence[SubgroupPartition],
    group_errors: Sequence[ComparedModel],
    severity: Sequence[tuple[float, ...]],
    against: str,
) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """Return the requested gaps of all partitions, and the widest gap of each.

    `group_errors` and `severity` are those of the subgroups in the order of the partitions; `against` is that of
    `assess_groups`.
    """
    gaps, widest_gaps, start = [], [], 0
    for partition in partitions:
        numbers = range(start, start + len(partition.groups))
        start += len(partition.groups)
        compared = group_gaps.select_compared_groups(
            [severity[i] for i in numbers], [group_errors[i].n_rows for i in numbers]
        )
        groups = [partition.groups[i] for i in compared]
        labels, partition_errors = [group.label for group in groups], [group_errors[numbers[i]] for i in compared]
        # Unexamined subgroups could have been selected too.
        n_groups = len(partition.groups) + len(partition.unexamined_groups)
        pairwise = group_gaps.pairwise_gaps(error_settings, preds, groups, partition_errors, n_groups)
        if against == "pairs":
            gaps += [
                Gap(partition.column, labels[gap.first], labels[gap.second], gap.value, gap.interval)
                for gap in pairwise
            ]
        else:
            gaps += [
                Gap(partition.column, labels[gap.first], "rest", gap.value, gap.interval)
                for gap in group_gaps.gaps_to_rest(error_settings, preds, groups, partition_errors, n_groups)
            ]
        widest_gap = group_gaps.find_widest_gap(pairwise, error_settings.interval_spec.level)
        if widest_gap is not None:
            first, second, difference, interval = widest_gap
            widest_gaps.append(Gap(partition.column, labels[first], labels[second], difference, interval))
    return tuple(gaps), tuple(widest_gaps)


def notes_on_unexamined(
    n_examined_by_column: Sequence[tuple[str, int]], unexamined: Sequence[UnexaminedGroup]
) -> list[Note]:
    """Return the notes TN151 on the subgroups of each column, of which some were examined, that were not."""
    notes = []
    for column, n_examined in n_examined_by_column:
        n_groups = n_examined + sum(group.column == column for group in unexamined)
        for reason, text in (
            (BEYOND_MAX_GROUPS, "because of max_groups. The joint p-values are adjusted for all groups"),
            (NO_WEIGHT, "because no row has weight and known labels"),
        ):
            labels = [group.label for group in unexamined if group.column == column and group.reason == reason]
            if labels:
                names = _name_groups(labels)
                notes.append(
                    Note("TN151", f"{len(labels):,} of {n_groups:,} groups of {column} not examined, {text}: {names}.")
                )
    return notes


def _describe_empty(partition: SubgroupPartition) -> str:
    """Return the text of the note on combinations of values that no row has."""
    return f"Combinations of {partition.column} without rows: {partition.n_empty:,}."


def _notes_on_draws(n_groups: int, n_untested: int, min_pvalue: float, alpha: float) -> list[Note]:
    """Return a note if so many subgroups were not examined that no joint p-value could be significant."""
    if not n_untested or min_pvalue <= alpha + LEVEL_TOLERANCE:
        return []
    required = sufficient_draws(alpha, 1 + n_untested)
    text = (
        f"With {n_untested:,} of {n_groups + n_untested:,} groups not examined, the smallest possible joint p-value is"
        f" {format_number(min_pvalue)}, so no group can be called miscalibrated. Examine all groups, or pass"
        f" ⟨resamples={required}⟩ or more."
    )
    return [Note("TN281", text)]


def _notes_on_gaps(partitions: Sequence[SubgroupPartition], against: str) -> list[Note]:
    """Return a note for each column with too many subgroups for the gaps of all."""
    maximum = group_gaps.MAX_COMPARED_GROUPS
    half, others = maximum // 2, "each other" if against == "pairs" else "the remaining rows"
    return [
        Note(
            "TN280",
            f"{partition.column} has {len(partition.groups):,} groups. {maximum} of them are compared with"
            f" {others}: the {half} with the strongest evidence of miscalibration,"
            f" and the {maximum - half} others with the most rows. The intervals hold simultaneously for all groups.",
        )
        for partition in partitions
        if len(partition.groups) > maximum
    ]


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
    if not (is_lens_on_classes(lens_name) and estimator.is_in_probability_units):
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

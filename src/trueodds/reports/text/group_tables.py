"""Tables of the subgroups of an audit: their errors and statuses, and the differences between them."""

from __future__ import annotations

from trueodds.core.formatting import (
    format_digits,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue_relation,
)
from trueodds.core.table import Column, Table
from trueodds.hypotests.group_results import count_examined_groups, format_status
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AmongGroups
from trueodds.reports.text.formatting import interval_heading
from trueodds.reports.text.result_tables import ErrorMark, error_bars, smallest_pvalue, standard_measure_label

# Why a subgroup may be miscalibrated although its interval starts at 0.
_INTERVAL_FROM_ZERO_TEXT = (
    " The interval of a miscalibrated group may start at 0, because the test uses the null distribution of a calibrated"
    " model, while the interval does not assume calibration and is wider."
)


def group_table(audit: AuditResult) -> Table:
    """Return the table of the means, the error with its interval, the p-values and the status of each subgroup."""
    groups, among_groups = audit.groups, audit.among_groups
    # Of several classes and of confidences, the observed event is a correct answer, whose rate is the accuracy.
    has_event_rates = audit.data.is_binary or audit.data.kind == "multilabel"
    if has_event_rates:
        predicted_label, outcome_label = "predicted", "observed"
    else:
        predicted_label, outcome_label = "confidence", "vote share" if audit.data.votes else "accuracy"
    accuracy = Column("accuracy", [group.accuracy for group in groups], "percent", is_detail=True)
    min_pvalue = None if among_groups is None else among_groups.min_pvalue
    columns = (
        Column("group", [group.label for group in groups], "text"),
        Column("n", [group.n for group in groups], "count"),
        *([accuracy] if has_event_rates else []),
        Column(predicted_label, [group.mean_prob for group in groups], "percent"),
        Column(outcome_label, [group.event_rate for group in groups], "percent"),
        Column("error", [group.error for group in groups]),
        Column(
            interval_heading(None if among_groups is None else among_groups.level),
            [group.interval for group in groups],
            "interval",
        ),
        Column("noise floor", [group.noise_floor for group in groups]),
        Column("p", [group.pvalue for group in groups], "pvalue", is_detail=True, min_pvalue=smallest_pvalue(audit)),
        Column("joint p", [group.joint for group in groups], "pvalue", min_pvalue=min_pvalue),
        Column("smallest detectable", [group.min_detectable for group in groups]),
        Column("status", [format_status(group.status, group.direction) for group in groups], "text"),
        error_bars([ErrorMark(group.error, group.interval, group.noise_floor) for group in groups]),
    )
    return Table("Errors by group", columns, _explain_group_table(audit)).without_empty_columns()


def _explain_group_table(audit: AuditResult) -> str:
    """Return the introduction of the table of subgroups: what the columns and the statuses mean."""
    among_groups = audit.among_groups or AmongGroups()
    family_alpha = audit.verdict.alpha
    alpha = among_groups.alpha or family_alpha
    share = "" if alpha == family_alpha else " (alpha allocated to the groups)"
    examined = count_examined_groups(len(audit.groups), len(among_groups.unexamined))
    text = f"{examined}; the notes name the others. " if examined else ""
    text += (
        f"Expected calibration error of each group. Joint p is adjusted for all groups ({among_groups.correction})."
        f" Miscalibrated: joint p at most {format_number(alpha)}{share}. Within: not rejected, and the interval ends"
        f" below the equivalence margin {format_number(among_groups.min_effect)}. Undecided: neither."
    )
    if audit.data.weighted:
        text += " Means and errors are weighted."
    if any(group.min_detectable is not None for group in audit.groups):
        text += " Smallest detectable: the smallest error that would have been significant."
    if any(group.direction for group in audit.miscalibrated_groups):
        text += " Under: predictions are significantly too low on average; over: too high."
    if audit.miscalibrated_groups:
        text += _INTERVAL_FROM_ZERO_TEXT
    return text


def group_measure_table(audit: AuditResult) -> Table:
    """Return the table of the O:E ratio and the calibration slope of each subgroup; no rows unless two classes."""
    groups = [group for group in audit.groups if group.standard_measures]
    names = [measure.name for measure in groups[0].standard_measures] if groups else []
    level = None if audit.among_groups is None else audit.among_groups.level
    columns = [
        Column("group", [group.label for group in groups], "text"),
        Column("n", [group.n for group in groups], "count"),
    ]
    for i, name in enumerate(names):
        measures = [group.standard_measures[i] for group in groups]
        columns.append(Column(standard_measure_label(name), [measure.value for measure in measures]))
        columns.append(Column(interval_heading(level), [measure.interval for measure in measures], "interval"))
    intro = (
        "O:E ratio: observed over expected number of events; above 1 predictions are too low. Calibration slope: below"
        " 1 predictions are too extreme, above 1 too moderate. The intervals are not adjusted for the number of groups."
    )
    return Table("O:E ratio and calibration slope by group", tuple(columns), intro)


def group_gap_table(audit: AuditResult) -> Table:
    """Return the table of the largest difference between subgroups of each column, and the multicalibration error."""
    among_groups = audit.among_groups or AmongGroups()
    rows = []
    for gap in among_groups.widest:
        text = f"{format_number(gap.difference)} ({gap.first} minus {gap.second})"
        if not gap.settled:
            text += ", not significant"
        if gap.interval is not None:
            (interval,) = format_intervals([gap.interval])
            text += f"; {format_percent_in_text(gap.interval.level)} interval of the largest true gap {interval}"
        rows.append((f"widest gap of {gap.column}", text))
    if (error := among_groups.multicalibration) is not None:
        p = format_pvalue_relation(error.pvalue, smallest_pvalue(audit))
        text = f"{format_number(error.value)}, p {p}; noise floor {format_number(error.noise_floor)}"
        worst = f"largest for {error.worst}, {format_digits(error.sigma)} standard errors"
        rows.append(("multicalibration error", f"{text}; {worst}"))
    intro = (
        "Gap: difference of two expected calibration errors; the intervals of a column hold simultaneously."
        " Multicalibration error: the largest cumulative difference between predicted and observed in any group,"
        " relative to its standard error."
    )
    return Table.from_entries("Differences between groups", rows, intro)

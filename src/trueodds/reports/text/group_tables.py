"""Tables of the subgroups of an audit: their errors and statuses, and the differences between them."""

from __future__ import annotations

from trueodds.core.formatting import (
    format_column,
    format_digits,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue,
    format_pvalue_relation,
    format_share,
)
from trueodds.hypotests.group_results import count_examined_groups, format_status
from trueodds.reports.text.formatting import interval_heading, is_binary
from trueodds.reports.text.result_tables import interval_mark, smallest_pvalue
from trueodds.reports.text.text_table import LABEL_AND_TEXT, AuditDict, TableColumn, TextTable

# Why a subgroup may be miscalibrated although its interval starts at 0.
_INTERVAL_FROM_ZERO_TEXT = (
    " The interval of a miscalibrated group may start at 0, because the test uses the null distribution of a calibrated"
    " model, while the interval does not assume calibration and is wider."
)


def group_table(audit: AuditDict) -> TextTable:
    """Return the table of the means, the error with its interval, the p-values and the status of each subgroup."""
    subgroups = audit.get("groups") or []
    among_groups = audit.get("among_groups") or {}
    min_pvalue = among_groups.get("min_pvalue")
    # Of several classes and of confidences, the observed event is a correct answer, whose rate is the accuracy.
    has_event_rates = is_binary(audit["data"]) or audit["data"]["kind"] == "multilabel"
    if has_event_rates:
        predicted_label, outcome_label = "predicted", "observed"
    else:
        predicted_label, outcome_label = "confidence", "vote share" if audit["data"].get("votes") else "accuracy"
    accuracy_columns = [TableColumn("accuracy", detail=True)] if has_event_rates else []
    accuracies = [[format_share(group.get("accuracy")) for group in subgroups]] if has_event_rates else []
    columns = (
        TableColumn("group", numeric=False),
        TableColumn("n"),
        *accuracy_columns,
        TableColumn(predicted_label),
        TableColumn(outcome_label),
        TableColumn("error"),
        TableColumn(interval_heading(among_groups if "level" in among_groups else None)),
        TableColumn("noise floor"),
        TableColumn("p", detail=True),
        TableColumn("joint p"),
        TableColumn("smallest detectable"),
        TableColumn("status", numeric=False),
    )
    rows = zip(
        (group["label"] for group in subgroups),
        (f"{group['n']:,}" for group in subgroups),
        *accuracies,
        (format_share(group.get("mean_prob")) for group in subgroups),
        (format_share(group.get("event_rate")) for group in subgroups),
        format_column([group.get("error") for group in subgroups]),
        format_intervals([group.get("interval") for group in subgroups]),
        format_column([group.get("noise_floor") for group in subgroups]),
        (format_pvalue(group.get("pvalue"), smallest_pvalue(audit)) for group in subgroups),
        (format_pvalue(group.get("joint"), min_pvalue) for group in subgroups),
        format_column([group.get("min_detectable") for group in subgroups]),
        (format_status(group["status"], group.get("direction")) for group in subgroups),
        strict=True,
    )
    marks = tuple(
        interval_mark(group.get("error"), group.get("interval"), group.get("noise_floor")) for group in subgroups
    )
    return TextTable(
        "Errors by group", columns, tuple(rows), _explain_group_table(audit), marks=marks
    ).without_empty_columns()


def _explain_group_table(audit: AuditDict) -> str:
    """Return the introduction of the table of subgroups: what the columns and the statuses mean."""
    among_groups = audit.get("among_groups") or {"min_effect": None, "correction": ""}
    family_alpha = audit["verdict"]["alpha"]
    alpha = among_groups.get("alpha") or family_alpha
    share = "" if alpha == family_alpha else " (the part of alpha that remains for groups)"
    subgroups, unexamined = audit.get("groups") or (), among_groups.get("unexamined") or ()
    examined = count_examined_groups(len(subgroups), len(unexamined))
    text = f"{examined}; the notes name the others. " if examined else ""
    text += (
        f"Expected calibration error of each group. Joint p is adjusted for all groups ({among_groups['correction']})."
        f" Miscalibrated: joint p at most {format_number(alpha)}{share}. Within: not rejected, and the interval ends"
        f" below the equivalence margin {format_number(among_groups['min_effect'])}. Undecided: neither."
    )
    if audit["data"].get("weighted"):
        text += " Means and errors are weighted."
    if any(group.get("min_detectable") is not None for group in subgroups):
        text += " Smallest detectable: the smallest error that would have been significant."
    miscalibrated = [group for group in subgroups if group["status"] == "miscalibrated"]
    if any(group.get("direction") for group in miscalibrated):
        text += " Under: predictions are significantly too low on average; over: too high."
    if miscalibrated:
        text += _INTERVAL_FROM_ZERO_TEXT
    return text


def group_gap_table(audit: AuditDict) -> TextTable:
    """Return the table of the largest difference between subgroups of each column, and the multicalibration error."""
    among_groups = audit.get("among_groups") or {}
    rows = []
    for gap in among_groups.get("widest") or ():
        text = f"{format_number(gap['difference'])} ({gap['first']} minus {gap['second']})"
        if not gap["settled"]:
            text += ", not significant"
        if gap["interval"]:
            (interval,) = format_intervals([gap["interval"]])
            text += f"; {format_percent_in_text(gap['interval']['level'])} interval of the largest true gap {interval}"
        rows.append((f"widest gap of {gap['column']}", text))
    if error := among_groups.get("multicalibration"):
        p = format_pvalue_relation(error["pvalue"], smallest_pvalue(audit))
        text = f"{format_number(error['value'])}, p {p}; noise floor {format_number(error['noise_floor'])}"
        worst = f"largest for {error['worst']}, {format_digits(error['sigma'])} standard errors"
        rows.append(("multicalibration error", f"{text}; {worst}"))
    intro = (
        "Gap: difference of two expected calibration errors; the intervals of a column hold simultaneously."
        " Multicalibration error: the largest cumulative difference between predicted and observed in any group,"
        " relative to its standard error."
    )
    return TextTable("Differences between groups", LABEL_AND_TEXT, tuple(rows), intro)

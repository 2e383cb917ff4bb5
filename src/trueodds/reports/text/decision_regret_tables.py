"""Summary line and tables on the decision regret of an audit: the cost per row that recalibration would save."""

from __future__ import annotations

from trueodds.core.formatting import (
    format_column,
    format_intervals,
    format_number,
    format_pvalue,
    format_pvalue_clause,
    format_share,
)
from trueodds.reports.text.formatting import describe_event, interval_heading, is_binary
from trueodds.reports.text.summary import SummaryLine
from trueodds.reports.text.text_table import LABEL_AND_TEXT, AuditDict, TableColumn, TextTable


def regret_lines(audit: AuditDict) -> list[SummaryLine]:
    """Return the line of the summary on the decision regret in a list, which is empty if no costs were given."""
    decisions = audit.get("decisions")
    if not decisions:
        return []
    regret, p = decisions["regret"], decisions["test"]["pvalue"]
    mean_costs, calibrator = regret["parts"], regret["settings"]["calibrator"].replace("_", " ")
    remark = (
        f"mean cost {format_number(mean_costs['stated'])} with these predictions, "
        f"{format_number(mean_costs['recalibrated'])} after {calibrator} recalibration"
    )
    if p is not None:
        remark += f"; {format_pvalue_clause(p, None)}"
    if regret["value"] <= 0:
        return [SummaryLine("Decision regret", "none", remark)]
    value = f"{format_number(regret['value'])} per row"
    if p is None or p > audit["verdict"]["alpha"]:
        return [SummaryLine("Decision regret", f"{value}, not significant", remark)]
    return [SummaryLine("Decision regret", value, remark, "bad")]


def regret_table(audit: AuditDict) -> TextTable:
    """Return the decision regret in full, and the thresholds at which the optimal action changes."""
    decisions = audit.get("decisions")
    if not decisions:
        return TextTable("Decision regret", LABEL_AND_TEXT, ())
    regret, parts = decisions["regret"], decisions["regret"]["parts"]
    (interval,) = format_intervals([regret["interval"]])
    rows = [
        ("mean cost with these predictions", format_number(parts["stated"])),
        ("mean cost after recalibration", format_number(parts["recalibrated"])),
        ("calibrator", regret["settings"]["calibrator"]),
        ("regret per row", format_number(regret["value"])),
        (interval_heading(regret["interval"]), interval),
        ("p (one-sided)", format_pvalue(decisions["test"]["pvalue"], None)),
        ("rows whose action changes", format_share(parts["changed"])),
        *_threshold_rows(audit),
    ]
    intro = (
        "Mean cost per row that cross-fitted recalibration saves, in the units of the costs. It is a lower bound on the"
        " full decision regret."
    )
    return TextTable("Decision regret", LABEL_AND_TEXT, tuple(rows), intro)


def _threshold_rows(audit: AuditDict) -> list[tuple[str, str]]:
    """Return each change of the optimal action, with its threshold and the recalibrated event rate there.

    The names in the parts of the estimate are ``"threshold:a → b"`` and ``"rate there:a → b"`` for the actions a and b.
    """
    data, parts = audit["data"], audit["decisions"]["regret"]["parts"]
    if data["kind"] == "confidence":
        outcome = "accuracy"
    else:
        outcome = f"event rate of {describe_event(data)}" if is_binary(data) else "event rate"
    rows = []
    for name in parts:
        if name.startswith("threshold:"):
            change = name.removeprefix("threshold:")
            threshold, rate = format_share(parts[name]), format_share(parts[f"rate there:{change}"])
            rows.append((change, f"at a predicted probability of {threshold}, where the {outcome} is {rate}"))
    return rows


def action_table(audit: AuditDict) -> TextTable:
    """Return the share of rows for which each action is optimal under the predictions, and the regret of these rows."""
    parts = (audit.get("decisions") or {"regret": {"parts": {}}})["regret"]["parts"]
    actions = [name.removeprefix("action:") for name in parts if name.startswith("action:")]
    columns = (TableColumn("action", numeric=False), TableColumn("rows"), TableColumn("regret per row"))
    rows = zip(
        actions,
        (format_share(parts[f"called for:{action}"]) for action in actions),
        format_column([parts[f"action:{action}"] for action in actions]),
        strict=True,
    )
    intro = "By the optimal action under these predictions. The regrets add up to that of all rows."
    return TextTable("Regret by action", columns, tuple(rows), intro)

"""Summary line and tables on the decision regret of an audit: the cost per row that recalibration would save."""

from __future__ import annotations

from collections.abc import Mapping

from trueodds.core.formatting import (
    format_intervals,
    format_number,
    format_pvalue,
    format_pvalue_clause,
    format_share,
)
from trueodds.core.table import Column, Table
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData
from trueodds.reports.text.formatting import describe_event, interval_heading
from trueodds.reports.text.summary import SummaryLine


def regret_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the line of the summary on the decision regret in a list, which is empty if no costs were given."""
    if audit.decisions is None:
        return []
    regret, p = audit.decisions.regret, audit.decisions.test.pvalue
    calibrator = regret.settings["calibrator"].replace("_", " ")
    remark = (
        f"mean cost {format_number(regret.parts['stated'])} with these predictions, "
        f"{format_number(regret.parts['recalibrated'])} after {calibrator} recalibration"
    )
    if p is not None:
        remark += f"; {format_pvalue_clause(p, None)}"
    if regret.value is not None and regret.value <= 0:
        return [SummaryLine("Decision regret", "none", remark)]
    value = f"{format_number(regret.value)} per row"
    if p is None or p > audit.verdict.alpha:
        return [SummaryLine("Decision regret", f"{value}, not significant", remark)]
    return [SummaryLine("Decision regret", value, remark, "bad")]


def regret_table(audit: AuditResult) -> Table:
    """Return the decision regret in full, and the thresholds at which the optimal action changes."""
    if audit.decisions is None:
        return Table.from_entries("Decision regret", ())
    regret, parts = audit.decisions.regret, audit.decisions.regret.parts
    (interval,) = format_intervals([regret.interval])
    rows = [
        ("mean cost with these predictions", format_number(parts["stated"])),
        ("mean cost after recalibration", format_number(parts["recalibrated"])),
        ("calibrator", regret.settings["calibrator"]),
        ("regret per row", format_number(regret.value)),
        (interval_heading(None if regret.interval is None else regret.interval.level), interval),
        ("p (one-sided)", format_pvalue(audit.decisions.test.pvalue, None)),
        ("rows whose action changes", format_share(parts["changed"])),
        *_threshold_rows(audit.data, parts),
    ]
    intro = (
        "Mean cost per row that cross-fitted recalibration saves, in the units of the costs. It is a lower bound on the"
        " full decision regret."
    )
    return Table.from_entries("Decision regret", rows, intro)


def _threshold_rows(data: AuditData, parts: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return each change of the optimal action, with its threshold and the recalibrated event rate there.

    The names in the parts of the estimate are ``"threshold:a → b"`` and ``"rate there:a → b"`` for the actions a and b.
    """
    if data.kind == "confidence":
        outcome = "accuracy"
    else:
        outcome = f"event rate of {describe_event(data)}" if data.is_binary else "event rate"
    rows = []
    for name in parts:
        if name.startswith("threshold:"):
            change = name.removeprefix("threshold:")
            threshold, rate = format_share(parts[name]), format_share(parts[f"rate there:{change}"])
            rows.append((change, f"at a predicted probability of {threshold}, where the {outcome} is {rate}"))
    return rows


def action_table(audit: AuditResult) -> Table:
    """Return the share of rows for which each action is optimal under the predictions, and the regret of these rows."""
    parts = {} if audit.decisions is None else audit.decisions.regret.parts
    actions = [name.removeprefix("action:") for name in parts if name.startswith("action:")]
    columns = (
        Column("action", actions, "text"),
        Column("rows", [parts[f"called for:{action}"] for action in actions], "percent"),
        Column("regret per row", [parts[f"action:{action}"] for action in actions]),
    )
    intro = "By the optimal action under these predictions. The regrets add up to that of all rows."
    return Table("Regret by action", columns, intro)

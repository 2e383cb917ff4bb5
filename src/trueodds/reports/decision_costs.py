"""Decision regret at the user's costs: how much recalibration would save, its test, and the tables of the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.data.predictions import Predictions
from trueodds.reports.text.formatting import (
    describe_event,
    format_column,
    format_intervals,
    format_pvalue,
    format_pvalue_clause,
    format_share,
    interval_heading,
    is_binary,
)
from trueodds.reports.text.summary import SummaryLine
from trueodds.reports.text.tables import LABEL_AND_TEXT, AuditDict, TableColumn, TextTable
from trueodds.tallies.tally import Tally


def decision_regret(
    rows: Predictions | Tally, cost: Any, actions: Any, level: float, rng: int | np.random.Generator
) -> dict[str, Any] | None:
    """Estimate and test the decision regret, as the section `decisions` of an audit; None without costs.

    `cost` has a row per action and a column per true class, and `actions` names its rows.
    """
    if cost is None:
        if actions is not None:
            raise InputError("TO203", "`actions` names the rows of `cost`.", "actions without cost", "Pass cost=.")
        return None
    if isinstance(rows, Tally):
        raise InputError(
            "TO403", "The decision regret requires the rows.", "a tally", "Use mode='exact', or omit cost."
        )
    if rows.cluster is not None:
        raise InputError(
            "TO205",
            "The decision regret is estimated by cross-fitting, which requires independent rows.",
            "cost= with clusters",
            "Omit cost, or audit one row per cluster.",
        )
    settings = {"cost": cost, "actions": actions, "rng": rng}
    regret = measure(rows, "decision_regret", level=level, **settings)
    return {"regret": regret.to_dict(), "test": test(rows, "decision_regret", **settings).to_dict()}


def regret_lines(audit: AuditDict) -> list[SummaryLine]:
    """Return the line of the summary on the decision regret; empty without costs."""
    decisions = audit.get("decisions")
    if not decisions:
        return []
    value, parts, p = decisions["regret"]["value"], decisions["regret"]["parts"], decisions["test"]["pvalue"]
    calibrator = decisions["regret"]["settings"]["calibrator"]
    mean_costs = (
        f"mean cost {format_number(parts['stated'])} with these predictions, "
        f"{format_number(parts['recalibrated'])} after {calibrator.replace('_', ' ')} recalibration"
    )
    remark = mean_costs if p is None else f"{mean_costs}; {format_pvalue_clause(p, None)}"
    if value <= 0:
        return [SummaryLine("Decision regret", "none", remark)]
    if p is None or p > audit["verdict"]["alpha"]:
        return [SummaryLine("Decision regret", f"{format_number(value)} per row, not significant", remark)]
    return [SummaryLine("Decision regret", f"{format_number(value)} per row", remark, "bad")]


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
    ]
    data = audit["data"]
    outcome_text = (
        "accuracy"
        if data["kind"] == "confidence"
        else f"event rate of {describe_event(data)}"
        if is_binary(data)
        else "event rate"
    )
    for name, threshold in parts.items():
        if name.startswith("threshold:"):
            switch = name.removeprefix("threshold:")
            rate = format_share(parts[f"rate there:{switch}"])
            rows.append(
                (switch, f"at a predicted probability of {format_share(threshold)}, where the {outcome_text} is {rate}")
            )
    intro = (
        "Mean cost per row that cross-fitted recalibration saves, in the units of the costs. It is a lower bound on the"
        " full decision regret."
    )
    return TextTable("Decision regret", LABEL_AND_TEXT, tuple(rows), intro)


def action_table(audit: AuditDict) -> TextTable:
    """Return the regret of the rows for which each action is optimal under the predictions."""
    parts = (audit.get("decisions") or {"regret": {"parts": {}}})["regret"]["parts"]
    names = [name.removeprefix("action:") for name in parts if name.startswith("action:")]
    columns = (TableColumn("action", numeric=False), TableColumn("rows"), TableColumn("regret per row"))
    rows = zip(
        names,
        (format_share(parts[f"called for:{name}"]) for name in names),
        format_column([parts[f"action:{name}"] for name in names]),
        strict=True,
    )
    intro = "By the optimal action under these predictions. The regrets add up to that of all rows."
    return TextTable("Regret by action", columns, tuple(rows), intro)

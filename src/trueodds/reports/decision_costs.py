"""Expected cost of acting on the probabilities: the decision regret at the user's costs, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.test import test
from trueodds.core.errors import InputError
from trueodds.core.formatting import format_number
from trueodds.data.predictions import Predictions
from trueodds.reports.text.formatting import (
    NAMES,
    Column,
    Table,
    align_digits,
    chance,
    entity,
    interval_texts,
    is_binary,
    pvalue,
    share,
)
from trueodds.reports.text.summary import Fact
from trueodds.tallies.tally import Tally

Audit = Mapping[str, Any]


def decision_regret(
    rows: Predictions | Tally, cost: Any, actions: Any, level: float, rng: int | np.random.Generator
) -> dict[str, Any] | None:
    """The regret with its interval and its test; None without costs."""
    if cost is None:
        if actions is not None:
            raise InputError("TO203", "actions name the rows of cost.", "actions without cost", "Pass cost=.")
        return None
    if isinstance(rows, Tally):
        raise InputError("TO403", "What acting costs needs the rows.", "a tally", "Use mode='exact', or no cost.")
    if rows.cluster is not None:
        raise InputError(
            "TO205",
            "What acting costs is judged by fits on other rows, and of rows that hang together others teach the fit.",
            "cost= with clusters",
            "Leave cost out, or audit one row per cluster.",
        )
    settings = {"cost": cost, "actions": actions, "rng": rng}
    regret = measure(rows, "decision_regret", level=level, **settings)
    return {"regret": regret.to_dict(), "test": test(rows, "decision_regret", **settings).to_dict()}


def regret_fact(audit: Audit) -> list[Fact]:
    """What acting on it costs, for the short answer."""
    decisions = audit.get("decisions")
    if not decisions:
        return []
    value, parts, p = decisions["regret"]["value"], decisions["regret"]["parts"], decisions["test"]["pvalue"]
    how = decisions["regret"]["settings"]["calibrator"]
    both = f"{format_number(parts['stated'])} per row as stated, {format_number(parts['recalibrated'])} by {how} recalibration"
    remark = both if p is None else f"{both}; {chance(p, None)}"
    if value <= 0:
        return [Fact("Acting on it costs", "no loss that is shown", remark)]
    if p is None or p > audit["verdict"]["alpha"]:
        return [Fact("Acting on it costs", f"{format_number(value)} too much, or chance", remark)]
    return [Fact("Acting on it costs", f"{format_number(value)} too much", remark, "bad")]


def regret_table(audit: Audit) -> Table:
    """The regret in full, and where the costs change the action."""
    columns = (Column("", NAMES), Column("", NAMES))
    decisions = audit.get("decisions")
    if not decisions:
        return Table("What acting on it costs", columns, ())
    regret, parts = decisions["regret"], decisions["regret"]["parts"]
    (interval,) = interval_texts([regret["interval"]])
    rows = [
        ("cost per row, as stated", format_number(parts["stated"])),
        ("cost per row, recalibrated", format_number(parts["recalibrated"])),
        ("recalibrated by", regret["settings"]["calibrator"]),
        ("regret per row", format_number(regret["value"])),
        ("its interval", interval),
        ("p, one-sided", pvalue(decisions["test"]["pvalue"], None)),
        ("actions that change", share(parts["changed"])),
    ]
    data = audit["data"]
    outcome_text = (
        "it is right" if data["kind"] == "confidence" else f"{entity(data)} comes" if is_binary(data) else "it comes"
    )
    for name, where in parts.items():
        if name.startswith("threshold:"):
            switch = name.removeprefix("threshold:")
            rate = share(parts[f"rate there:{switch}"])
            rows.append((switch, f"from a stated {share(where)} on, where {outcome_text} {rate} of the time"))
    intro = "In the costs' own units. A lower bound on the full regret: what this recalibration, fitted on other rows, saves."
    return Table("What acting on it costs", columns, tuple(rows), intro)


def action_table(audit: Audit) -> Table:
    """The regret of the rows that each action was called for."""
    parts = (audit.get("decisions") or {"regret": {"parts": {}}})["regret"]["parts"]
    names = [name.removeprefix("action:") for name in parts if name.startswith("action:")]
    columns = (Column("action", NAMES), Column("called for"), Column("regret per row"))
    rows = zip(
        names,
        (share(parts[f"called for:{name}"]) for name in names),
        align_digits([parts[f"action:{name}"] for name in names]),
        strict=True,
    )
    intro = "By the action that the stated probabilities call for; the regrets add up to that of all rows."
    return Table("Action by action", columns, tuple(rows), intro)

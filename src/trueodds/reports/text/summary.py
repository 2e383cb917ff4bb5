"""Summarize an audit in a few labeled lines: predicted and observed, error, p-value and recalibration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.core.formatting import format_number, format_percent
from trueodds.reports.subgroups import HOLM, worst_group
from trueodds.reports.text.annotators import distance_from_people
from trueodds.reports.text.formatting import (
    boundless,
    chance,
    claim,
    count,
    entity,
    hundredths,
    is_binary,
    points,
    sample_size,
    share,
)
from trueodds.reports.text.recalibration import (
    INSUFFICIENT_ROWS,
    fix_name,
    flat,
    gain_bound_text,
    log_loss_text,
    method_name,
    side_effects,
)

_COVERAGE = re.compile(r"[(,;]? ?coverage ([\d.]+) ?%")


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the short answer."""

    label: str
    value: str
    remark: str = ""
    tone: str = "plain"  # plain, good, bad


def default_measure(audit: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that the short answer names: ECE through the default lens, which the audit lists first."""
    return next((measure for measure in audit["measures"] if measure["estimator"] == "ece"), None)


def summary_facts(audit: Mapping[str, Any]) -> list[Fact]:
    """What a manager needs, in order."""
    data = audit["data"]
    facts = []
    if is_binary(data):
        facts.append(Fact("It predicts", share(data["mean_prediction"]), f"on average for {entity(data)}"))
        what = f"{'votes for ' if data.get('votes') else ''}{entity(data)}"
        facts.append(Fact("It came", share(data["event_rate"]), f"the share of {what} in {count(data['n'], 'row')}"))
    elif data.get("mean_confidence") is not None:
        facts.append(Fact("It says", share(data["mean_confidence"]), "its average stated confidence"))
    if data.get("accuracy") is not None and not is_binary(data):
        facts.append(_right(audit))
    facts += _answered(audit)
    if (error := default_measure(audit)) is not None:
        facts.append(_error(error, data))
    facts.append(_chance(audit))
    facts.append(_fix(audit.get("recalibration"), data))
    facts += _impossible(data) + _worst_group(audit) + _people(audit)
    return facts


def _right(audit: Mapping[str, Any]) -> Fact:
    """How often its answer came; where there are votes, how many of them it got."""
    data = audit["data"]
    if not data.get("votes"):
        return Fact("It is right", share(data["accuracy"]), f"of {count(data['n'], 'row')}")
    remark = f"of {count(data['n'], 'row')}, on average"
    if people := audit.get("people"):
        remark = (
            f"on average; it names the majority in {share(people['majority']['named'])} of {count(data['n'], 'row')}"
        )
    return Fact("Votes for its answer", share(data["accuracy"]), remark)


def _answered(audit: Mapping[str, Any]) -> list[Fact]:
    """How many questions got an answer, as the note on those without one tells."""
    for note in audit.get("notes") or ():
        match = _COVERAGE.search(note["text"]) if note["code"] == "TN146" else None
        if match is not None:
            silent = note["text"][: match.start()].strip()
            return [
                Fact(
                    "It answers", share(float(match[1]) / 100), f"{silent}; all else is of the answers that were given"
                )
            ]
    return []


def _chance(audit: Mapping[str, Any]) -> Fact:
    """The family's answer; where the overall error could be chance and something else is not, both."""
    verdict, label = audit["verdict"], "Is that chance?"
    rejected, alpha = verdict.get("rejected"), verdict["alpha"]
    p = chance(verdict.get("pvalue"), verdict.get("min_pvalue"))
    remark = f"{p}, jointly over all claims; alpha {format_number(alpha)}"
    if not rejected:
        return Fact(
            label, "not tested" if rejected is None else "it could be", remark, "plain" if rejected is None else "good"
        )
    if (verdict.get("pvalue") or 0.0) > alpha:
        return Fact(label, "no", f"what came was called impossible; the error alone could be ({remark})", "bad")
    error = default_measure(audit)
    overall = next((test for test in audit["tests"] if error and test["lens"] == error["lens"]), None)
    if overall is None or overall.get("pvalue") is None or overall["pvalue"] <= alpha:
        return Fact(label, "no", remark, "bad")
    where = "in groups" if worst_group(audit.get("groups") or ()) else "in other claims"
    value = f"overall it could be ({chance(overall['pvalue'], overall.get('min_pvalue'))}), {where} no"
    return Fact(label, value, remark, "bad")


def _error(error: Mapping[str, Any], data: Mapping[str, Any]) -> Fact:
    what = claim(error["lens"], data) if error["lens"] == "positive" else "its confidence"
    remarks = [f"average error of {what}"] if error["lens"] in ("positive", "confidence") else []
    if interval := error.get("interval"):
        level = f"{format_percent(interval['level'])[:-1]} % interval"
        low, high = hundredths(interval["low"]), points(interval["high"])
        empty = boundless(interval["low"], interval["high"])
        remarks.append(f"{level} unknown with {sample_size(data)}" if empty else f"{level} {low} to {high}")
    if error.get("noise_floor") is not None:
        remarks.append(f"a calibrated model would show {points(error['noise_floor'])} by noise alone")
    return Fact("It is off by", points(error["value"]), "; ".join(remarks))


def _fix(fix: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Fact:
    label = "What fixes it"
    if fix is None:
        return Fact(label, "not looked for", "see the notes")
    if not fix.get("candidates"):
        return Fact(label, "not looked for", " ".join(note["text"] for note in fix.get("notes") or ()))
    rows = (fix.get("rows") or {}).get("confirm")
    where = f"on {count(rows, 'row')}, each held out" if rows is not None else "on held-out rows"
    pvalue_text = f", {chance(fix['pvalue'])}" if fix.get("pvalue") is not None else ""
    if fix.get("confirmed"):
        before, after = log_loss_text(fix, "before"), log_loss_text(fix, "after")
        percentage = fix.get("gain_percent")
        less = "; ".join(
            part for part in ("" if percentage is None else f"−{percentage:.1f} %", gain_bound_text(fix)) if part
        )
        less = f" ({less})" if less else ""
        shown = gain_bound_text(fix) or percentage is None
        what = "confirmed" if shown else "the error is confirmed, the saving not yet,"
        remark = f"log loss {before} to {after}{less}, {what} {where}{pvalue_text}"
        effects = side_effects(fix, data)
        remark = f"{remark}; {effects}" if effects else remark
        if constant := flat(fix, data):
            what = (
                "confidences hardly tell right from wrong"
                if data["kind"] == "confidence"
                else "probabilities tell hardly anything"
            )
            return Fact(label, "mostly flattening", f"its {what}: {constant}; {fix_name(fix)}: {remark}")
        return Fact(label, fix_name(fix), remark, "good")
    if fix.get("outcome") == INSUFFICIENT_ROWS:
        gain = f"gain {format_number(fix.get('gain'))} nats per row{pvalue_text}; if that is real, about {count(fix['required_rows'], 'row')} would confirm it"
        return Fact(label, "not confirmed: too few rows", f"{method_name(fix['chosen'])}: {gain}")
    would = f"; one of {format_number(fix.get('detectable_gain'))} nats per row would have been confirmed four times in five"
    return Fact(label, "no gain to be had", f"fits to some of the rows do not do better on the others{would}")


def _impossible(data: Mapping[str, Any]) -> list[Fact]:
    hits = data.get("true_class_zeros") or 0
    if not hits:
        return []
    return [Fact("Called impossible", count(hits, "outcome"), "came although its stated probability was 0", "bad")]


def _worst_group(audit: Mapping[str, Any]) -> list[Fact]:
    groups, among_groups, data = audit.get("groups") or [], audit.get("among_groups") or {}, audit["data"]
    if not groups:
        return []
    tested, label = count(len(groups), "group"), "Miscalibrated groups"
    worst = worst_group(groups)
    n_miscalibrated, open_ = (
        sum(group["status"] == name for group in groups) for name in ("miscalibrated", "undecided")
    )
    if worst is None and (among_groups.get("min_pvalue") or 0.0) > audit["verdict"]["alpha"]:
        draws = data.get("clusters") is None or among_groups.get("correction") == HOLM
        return [
            Fact(
                label,
                "cannot be told",
                f"{'too few redraws' if draws else sample_size(data)} for {tested}: see the notes",
            )
        ]
    left = f"{open_:,} undecided" if open_ else "none undecided"
    if worst is None:
        within = f"the others within {points(among_groups['min_effect'])}"
        return [Fact(label, f"none of {len(groups)}", f"{left}, {within}" if open_ < len(groups) else left)]
    remark = f"worst: {worst['label']}, off by {points(worst['error'])}; {left}"
    return [Fact(label, f"{n_miscalibrated} of {tested}", remark, "bad")]


def _people(audit: Mapping[str, Any]) -> list[Fact]:
    """How far it is from people's votes, where there are votes."""
    distance = distance_from_people(audit)
    return [Fact("Apart from people", *distance)] if distance else []

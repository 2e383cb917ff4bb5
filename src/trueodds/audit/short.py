"""What a manager needs to know of an audit, in a few lines: what was said, what came, is that chance, what fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.audit.for_whom import worst_off
from trueodds.audit.people_tables import apart
from trueodds.audit.words import chance, claim, clean, count, hundredths, is_binary, points, share
from trueodds.core.results import figure, percent


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the short answer."""

    label: str
    value: str
    remark: str = ""
    tone: str = "plain"  # plain, good, bad


def default_measure(audit: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that the short answer names: ECE through the default lens, which the audit lists first."""
    return next((each for each in audit["measures"] if each["estimator"] == "ece"), None)


def short(audit: Mapping[str, Any]) -> list[Fact]:
    """What a manager needs, in order."""
    data, verdict = audit["data"], audit["verdict"]
    facts = []
    if is_binary(data):
        name = clean(data["classes"][1])
        facts.append(Fact("It predicts", share(data["mean_prediction"]), f"on average for {name}"))
        facts.append(Fact("It came", share(data["event_rate"]), f"{name}, in {count(data['n'], 'row')}"))
    elif data.get("mean_confidence") is not None:
        facts.append(Fact("It says", share(data["mean_confidence"]), "its average stated confidence"))
    if data.get("accuracy") is not None and not is_binary(data):
        facts.append(Fact("It is right", share(data["accuracy"]), f"of {count(data['n'], 'row')}"))
    if (error := default_measure(audit)) is not None:
        facts.append(_error(error, data))
    told = f"{chance(verdict.get('pvalue'), verdict.get('floor'))}, jointly over all claims; alpha {figure(verdict['alpha'])}"
    rejected = verdict.get("rejected")
    answer = "not tested" if rejected is None else "no" if rejected else "it could be"
    tone = {True: "bad", False: "good"}.get(rejected, "plain")
    facts.append(Fact("Is that chance?", answer, told, tone))
    facts.append(_fix(audit.get("recalibration"), data))
    facts += _impossible(data) + _worst_group(audit) + _people(audit)
    return facts


def _error(error: Mapping[str, Any], data: Mapping[str, Any]) -> Fact:
    what = claim(error["lens"], data) if error["lens"] == "positive" else "its confidence"
    remarks = [f"average error of {what}"] if error["lens"] in ("positive", "confidence") else []
    if interval := error.get("interval"):
        low, high = hundredths(interval["low"]), points(interval["high"])
        remarks.append(f"{percent(interval['level'])[:-1]} % interval {low} to {high}")
    if error.get("noise_floor") is not None:
        remarks.append(f"a calibrated model would show {points(error['noise_floor'])} by noise alone")
    return Fact("It is off by", points(error["value"]), "; ".join(remarks))


def _fix(fix: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Fact:
    label = "What fixes it"
    if fix is None:
        return Fact(label, "not looked for", "see the notes")
    rows = (fix.get("rows") or {}).get("confirm")
    where = f"on {count(rows, 'held-out row')}" if rows is not None else "on held-out rows"
    if fix.get("confirmed"):
        before, after = figure(fix.get("log_loss_before")), figure(fix.get("log_loss_after"))
        gain = fix.get("gain_percent")
        less = f" (−{gain:.1f} %)" if gain is not None else ""
        sure = f", {chance(fix['pvalue'])}" if fix.get("pvalue") is not None else ""
        remark = f"log loss {before} to {after}{less}, confirmed {where}{sure}"
        said = side_effects(fix, data)
        return Fact(label, _named(fix), f"{remark}; {said}" if said else remark, "good")
    seen = fix.get("detectable_gain")
    would = f"; a gain of {figure(seen)} would have been found four times in five" if seen is not None else ""
    if fix.get("chosen") in (None, "identity"):
        return Fact(label, "no fix is justified", f"no candidate did clearly better than leaving it alone{would}")
    sure = f" ({chance(fix['pvalue'])})" if fix.get("pvalue") is not None else ""
    return Fact(label, "no fix is justified", f"{fix['chosen']} was not confirmed {where}{sure}{would}")


def _named(fix: Mapping[str, Any]) -> str:
    summary = clean(fix.get("summary") or "")
    return f"{fix['chosen']}, {summary}" if summary and summary != fix["chosen"] else str(fix["chosen"])


def side_effects(fix: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """What the fix does to the answers themselves, on the held-out rows; nothing where there are no answers.

    >>> side_effects({"label_flips": 2, "accuracy_before": 0.5, "accuracy_after": 0.5}, {"kind": "classes"})
    'on the held-out rows 2 answers change and accuracy stays 50.0 %'
    """
    if data["kind"] == "confidence" or fix.get("label_flips") is None:
        return ""
    flips = fix["label_flips"]
    said = f"on the held-out rows {count(flips, 'answer')} {'changes' if flips == 1 else 'change'}"
    before, after = fix.get("accuracy_before"), fix.get("accuracy_after")
    if is_binary(data):
        return f"{said} sides of 50 %"
    if before is None or after is None:
        return said
    same = share(before) == share(after)
    return f"{said} and accuracy {f'stays {share(before)}' if same else f'goes from {share(before)} to {share(after)}'}"


def _impossible(data: Mapping[str, Any]) -> list[Fact]:
    hits = data.get("true_class_zeros") or 0
    if not hits:
        return []
    return [Fact("Called impossible", count(hits, "outcome"), "came although its stated probability was 0", "bad")]


def _worst_group(audit: Mapping[str, Any]) -> list[Fact]:
    groups, together = audit.get("groups") or [], audit.get("among_groups") or {}
    if not groups:
        return []
    tested, label = count(len(groups), "group"), "Groups that are off"
    worst = worst_off(groups)
    off, open_ = (sum(each["standing"] == name for each in groups) for name in ("off", "undecided"))
    if worst is None and (together.get("floor") or 0.0) > audit["verdict"]["alpha"]:
        return [Fact(label, "cannot be told", f"too few clusters or redraws for {tested}: see the notes")]
    left = f"{open_:,} undecided" if open_ else "none undecided"
    if worst is None:
        within = f"the others within {points(together['least'])}"
        return [Fact(label, f"none of {len(groups)}", f"{left}, {within}" if open_ < len(groups) else left)]
    remark = f"worst: {clean(worst['label'])}, off by {points(worst['error'])}; {left}"
    return [Fact(label, f"{off} of {tested}", remark, "bad")]


def _people(audit: Mapping[str, Any]) -> list[Fact]:
    """How far it is from people's votes, where there are votes."""
    told = apart(audit)
    return [Fact("Apart from people", *told)] if told else []

"""How a finding is said to someone who is no statistician; the terminal and the page use the same words."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trueodds.core.results import figure, percent

CLAIMS = {
    "confidence": "the class it picks",
    "positive": "the second of the two classes",
    "classwise": "each class for itself",
    "canonical": "all probabilities together",
    "family": "all claims at once",
}
_TURNS_TEXT = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the short answer."""

    label: str
    value: str
    remark: str = ""
    tone: str = "plain"  # plain, good, bad


def clean(text: Any) -> str:
    """A name from the data, without characters that would steer a terminal or turn the text around.

    >>> clean("a\\x1b[31mb")
    'a�[31mb'
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if c in _TURNS_TEXT or unicodedata.category(c) in ("Cc", "Cs") else c
        for c in str(text)
    )


def share(x: float | None) -> str:
    """A probability as people say it.

    >>> share(0.9611), share(0.0004), share(None)
    ('96.1 %', '0.04 %', '–')
    """
    if x is None:
        return "–"
    return f"{100 * x:.1f} %" if x == 0 or abs(x) >= 0.001 else f"{100 * x:.2g} %"


def points(x: float | None) -> str:
    """A difference of probabilities, signed.

    >>> points(0.0022), points(-0.0011), points(0.0)
    ('+0.2 points', '−0.1 points', '±0 points')
    """
    if x is None:
        return "–"
    if x == 0:
        return "±0 points"
    size = f"{abs(100 * x):.1f}" if abs(x) >= 0.0005 else f"{abs(100 * x):.1g}"
    return f"{'+' if x > 0 else '−'}{size} points"


def chance(pvalue: float | None, floor: float | None) -> str:
    """A p-value; at its floor it could be smaller still.

    >>> chance(0.001, 0.001), chance(0.42, 0.001), chance(None, None)
    ('p ≤ 0.001', 'p = 0.42', 'p –')
    """
    if pvalue is None:
        return "p –"
    return f"p {'≤' if floor is not None and pvalue <= floor else '='} {figure(pvalue)}"


def count(n: int | None, one: str, many: str | None = None) -> str:
    """A number of things.

    >>> count(1, "row"), count(12345, "row"), count(2, "class", "classes")
    ('1 row', '12,345 rows', '2 classes')
    """
    return "–" if n is None else f"{n:,} {one if n == 1 else many or one + 's'}"


def digits(x: float | None) -> str:
    """A figure with all its decimals, so that a column of them stands in line.

    >>> digits(0.062), digits(0.0631), digits(0), digits(None)
    ('0.0620', '0.0631', '0', '–')
    """
    if x is None or x == 0 or not 0.001 <= abs(x) < 10:
        return figure(x)
    return f"{x:.4f}"


def size(data: Mapping[str, Any]) -> str:
    """How many rows and classes."""
    nouns = {"multilabel": ("label", "labels"), "confidence": ("outcome", "outcomes")}
    return f"{count(data['n'], 'row')} · {count(data['k'], *nouns.get(data['kind'], ('class', 'classes')))}"


def span(interval: Mapping[str, Any] | None) -> str:
    """An interval's ends as figures."""
    return "–" if not interval else f"[{digits(interval['low'])}, {digits(interval['high'])}]"


def default_measure(audit: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that the short answer names: ECE through the default lens, which the audit lists first."""
    return next((each for each in audit["measures"] if each["estimator"] == "ece"), None)


def short(audit: Mapping[str, Any]) -> list[Fact]:
    """What a manager needs, in order."""
    data, verdict = audit["data"], audit["verdict"]
    facts = []
    if data.get("event_rate") is not None:
        facts.append(Fact("It predicts", share(data["mean_prediction"]), f"on average for {clean(data['classes'][1])}"))
        facts.append(Fact("It came", share(data["event_rate"]), f"in {count(data['n'], 'row')}"))
    elif data.get("mean_confidence") is not None:
        facts.append(Fact("It says", share(data["mean_confidence"]), "its average stated confidence"))
    if data.get("accuracy") is not None and data.get("event_rate") is None:
        facts.append(Fact("It is right", share(data["accuracy"]), f"of {count(data['n'], 'row')}"))
    if (error := default_measure(audit)) is not None:
        facts.append(_error(error))
    told = f"{chance(verdict.get('pvalue'), verdict.get('floor'))} over all claims, alpha {figure(verdict['alpha'])}"
    rejected = verdict.get("rejected")
    answer = "not tested" if rejected is None else "no" if rejected else "it could be"
    tone = {True: "bad", False: "good"}.get(rejected, "plain")
    facts.append(Fact("Is that chance?", answer, told, tone))
    facts.append(_fix(audit.get("recalibration")))
    facts += _impossible(data) + _worst_group(audit)
    return facts


def _error(error: Mapping[str, Any]) -> Fact:
    remarks = []
    if interval := error.get("interval"):
        remarks.append(
            f"{percent(interval['level'])[:-1]} % interval {share(interval['low'])} to {share(interval['high'])}"
        )
    if error.get("noise_floor") is not None:
        remarks.append(f"a calibrated model would show {share(error['noise_floor'])} by noise alone")
    return Fact("It is off by", share(error["value"]), "; ".join(remarks))


def _fix(fix: Mapping[str, Any] | None) -> Fact:
    label = "What fixes it"
    if fix is None:
        return Fact(label, "not looked for", "see the notes")
    rows = (fix.get("rows") or {}).get("confirm")
    where = f"on {count(rows, 'held-out row')}" if rows is not None else "on held-out rows"
    if fix.get("confirmed"):
        before, after = figure(fix.get("log_loss_before")), figure(fix.get("log_loss_after"))
        gain = fix.get("gain_percent")
        less = f" (−{gain:.1f} %)" if gain is not None else ""
        sure = f", p = {figure(fix['pvalue'])}" if fix.get("pvalue") is not None else ""
        remark = f"log loss {before} to {after}{less}, confirmed {where}{sure}; {side_effects(fix)}"
        return Fact(label, _named(fix), remark, "good")
    seen = fix.get("detectable_gain")
    would = f": a gain of {figure(seen)} in log loss would have been seen" if seen is not None else ""
    if fix.get("chosen") in (None, "identity"):
        return Fact(label, "no fix is justified", f"no candidate did clearly better than leaving it alone{would}")
    sure = f" (p = {figure(fix['pvalue'])})" if fix.get("pvalue") is not None else ""
    return Fact(label, "no fix is justified", f"{_named(fix)} was not confirmed {where}{sure}{would}")


def _named(fix: Mapping[str, Any]) -> str:
    summary = clean(fix.get("summary") or "")
    return f"{fix['chosen']}, {summary}" if summary and summary != fix["chosen"] else str(fix["chosen"])


def side_effects(fix: Mapping[str, Any]) -> str:
    """What the fix does to the answers themselves."""
    flips = fix.get("label_flips")
    said = "changes of answers not counted" if flips is None else f"{count(flips, 'answer')} {_change(flips)}"
    before, after = fix.get("accuracy_before"), fix.get("accuracy_after")
    if before is None or after is None:
        return said
    same = f"accuracy stays {share(before)}"
    return f"{said}, {same if before == after else f'accuracy {share(before)} to {share(after)}'}"


def _change(flips: int) -> str:
    return "changes" if flips == 1 else "change"


def _impossible(data: Mapping[str, Any]) -> list[Fact]:
    hits = data.get("true_class_zeros") or 0
    if not hits:
        return []
    return [Fact("Called impossible", count(hits, "outcome"), "came although its stated probability was 0", "bad")]


def _worst_group(audit: Mapping[str, Any]) -> list[Fact]:
    alpha = audit["verdict"]["alpha"]
    groups = audit.get("groups") or []
    off = [group for group in groups if group.get("holm") is not None and group["holm"] <= alpha]
    if not groups:
        return []
    tested = count(len(groups), "group")
    if not off and max(group.get("floor") or 0.0 for group in groups) > alpha:
        return [Fact("Groups that are off", "cannot be told", f"too few redraws for {tested}: see the notes")]
    if not off:
        return [Fact("Groups that are off", f"none of {len(groups)}", "as far as these rows can tell")]
    worst = max(off, key=lambda group: group["ece"] or 0.0)
    name = f"{clean(worst['column'])} = {clean(worst['value'])}"
    remark = f"worst: {name}, off by {share(worst['ece'])}"
    return [Fact("Groups that are off", f"{len(off)} of {tested}", remark, "bad")]

"""Summarize an audit in a few labeled lines: predicted and observed, error, p-value and recalibration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.reports.subgroups import HOLM, worst_group
from trueodds.reports.text.annotators import distance_from_people
from trueodds.reports.text.formatting import (
    boundless,
    chance,
    count,
    describe_event,
    describe_lens,
    error_range,
    error_text,
    format_share,
    is_binary,
    level_text,
    rows_text,
    sample_size,
)
from trueodds.reports.text.recalibration import (
    IMPLAUSIBLE,
    INSUFFICIENT_ROWS,
    PROCEDURE,
    fix_name,
    flat,
    gain_bound_text,
    log_loss_text,
    method_name,
    percentage,
    side_effects,
)

_COVERAGE = re.compile(r"[(,;]? ?coverage ([\d.]+) ?%")


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the summary."""

    label: str
    value: str
    remark: str = ""
    tone: str = "plain"  # plain, good, bad
    is_reason: bool = False  # whether the remark is the reason for the value, which follows a colon


def default_measure(audit: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The ECE through the default lens, which the audit lists first and the summary states."""
    return next((measure for measure in audit["measures"] if measure["estimator"] == "ece"), None)


def summary_facts(audit: Mapping[str, Any]) -> list[Fact]:
    """The facts of the summary, in order."""
    data = audit["data"]
    weighted = "weighted, " if data.get("weighted") else ""
    facts = []
    if is_binary(data):
        remark = f"{weighted}probability of {describe_event(data)}"
        facts.append(Fact("Mean predicted", format_share(data["mean_prediction"]), remark))
        facts.append(_event_rate(data))
    elif data.get("mean_confidence") is not None:
        answers = data["kind"] == "confidence"
        what = "stated confidence in the answer" if answers else "probability of the predicted class"
        facts.append(Fact("Mean confidence", format_share(data["mean_confidence"]), f"{weighted}{what}"))
    if data.get("accuracy") is not None and not is_binary(data):
        facts.append(_accuracy(audit))
    facts += _coverage(audit)
    if (error := default_measure(audit)) is not None:
        facts.append(_error(error, data))
    facts.append(_test(audit))
    facts.append(_fix(audit.get("recalibration"), data))
    facts += _describe_contradicted(data) + _worst_group(audit) + _describe_annotators(audit)
    return facts


def _event_rate(data: Mapping[str, Any]) -> Fact:
    """The observed event rate, with calibration-in-the-large as its difference from the mean prediction."""
    label, what = ("Observed vote share", "votes for ") if data.get("votes") else ("Observed event rate", "")
    difference = f"{100 * (data['event_rate'] - data['mean_prediction']):+.1f}".replace("-", "−")
    rows = f"{what}{describe_event(data)} in {count(data['n'], 'row')}{', weighted' if data.get('weighted') else ''}"
    remark = f"{rows}; calibration-in-the-large {difference} percentage points"
    return Fact(label, format_share(data["event_rate"]), remark)


def _accuracy(audit: Mapping[str, Any]) -> Fact:
    """The accuracy; with votes, the mean vote share of the predicted class."""
    data = audit["data"]
    if not data.get("votes"):
        return Fact("Accuracy", format_share(data["accuracy"]), rows_text(data))
    mean = "weighted mean" if data.get("weighted") else "mean"
    remark = f"predicted class, {mean} of {count(data['n'], 'row')}"
    if people := audit.get("people"):
        remark += f"; it is the majority class in {format_share(people['majority']['named'])}"
    return Fact("Vote share", format_share(data["accuracy"]), remark)


def _coverage(audit: Mapping[str, Any]) -> list[Fact]:
    """The share of questions with an answer, from the note on those without one."""
    for note in audit.get("notes") or ():
        match = _COVERAGE.search(note["text"]) if note["code"] == "TN146" else None
        if match is not None:
            silent = note["text"][: match.start()].strip()
            return [
                Fact(
                    "Coverage",
                    format_share(float(match[1]) / 100),
                    f"{silent}; the rest of the report covers the answers given",
                )
            ]
    return []


def _test(audit: Mapping[str, Any]) -> Fact:
    """The family-wise test, and the test of all rows if only other tests of the family reject."""
    verdict, label = audit["verdict"], "Calibration"
    rejected, alpha = verdict.get("rejected"), verdict["alpha"]
    p = chance(verdict.get("pvalue"), verdict.get("min_pvalue"))
    remark = f"family-wise {p}; alpha {format_number(alpha)}"
    if rejected is None:
        smallest = format_number(verdict.get("min_pvalue"))
        remark = f"no family-wise p below {smallest} is possible; alpha {format_number(alpha)}"
        return Fact(label, "not tested", remark)
    if not rejected:
        return Fact(label, "not rejected", remark, "plain" if verdict.get("state") == "too few rows" else "good")
    if (verdict.get("pvalue") or 0.0) > alpha:
        return Fact(label, "rejected", f"by outcomes of predicted probability 0; not by the test, {remark}", "bad")
    error = default_measure(audit)
    overall = next((test for test in audit["tests"] if error and test["lens"] == error["lens"]), None)
    if overall is None or overall.get("pvalue") is None or overall["pvalue"] <= alpha:
        return Fact(label, "rejected", remark, "bad")
    where = "in subgroups" if worst_group(audit.get("groups") or ()) else "by other tests"
    alone = (
        f"the test through the {overall['lens']} lens alone has {chance(overall['pvalue'], overall.get('min_pvalue'))}"
    )
    return Fact(label, f"rejected {where}", f"{remark}; {alone}", "bad")


def _error(error: Mapping[str, Any], data: Mapping[str, Any]) -> Fact:
    what = describe_lens(error["lens"], data) if error["lens"] == "positive" else "the confidence"
    remarks = [f"ECE of {what}"] if error["lens"] in ("positive", "confidence") else []
    if interval := error.get("interval"):
        name = f"{level_text(interval['level'])} confidence interval"
        low, high = interval["low"], interval["high"]
        uninformative = f"uninformative with {sample_size(data)}"
        remarks.append(f"{name} {uninformative if boundless(low, high) else error_range(low, high)}")
    if error.get("noise_floor") is not None:
        remarks.append(f"noise floor {error_text(error['noise_floor'])}, the expected value if calibrated")
    return Fact("Expected calibration error", error_text(error["value"]), "; ".join(remarks))


def _fix(fix: Mapping[str, Any] | None, data: Mapping[str, Any]) -> Fact:
    label = "Recalibration"
    if fix is None:
        return Fact(label, "not attempted", "see the notes")
    if not fix.get("candidates"):
        return Fact(label, "not attempted", _reason(fix.get("notes") or ()), is_reason=True)
    rows = (fix.get("rows") or {}).get("confirm")
    where = f"by cross-fitting on {count(rows, 'row')}" if rows is not None else "on held-out rows"
    pvalue_text = f", {chance(fix['pvalue'])}" if fix.get("pvalue") is not None else ""
    if fix.get("confirmed"):
        before, after = log_loss_text(fix, "before"), log_loss_text(fix, "after")
        percent, bound = fix.get("gain_percent"), gain_bound_text(fix)
        change = "" if percent is None else f" (−{percentage(percent)}{'' if bound else ', uncertain'})"
        gain = f", gain {bound}" if bound else ""
        what = "miscalibration confirmed" if percent is not None and not bound else "confirmed"
        of = " of choice and fit together" if fix.get("gain_of") == PROCEDURE else ""
        remark = f"log loss{of} {before} to {after}{change}{gain}; {what} {where}{pvalue_text}"
        effects = side_effects(fix, data)
        remark = f"{remark}; {effects}" if effects else remark
        if constant := flat(fix, data):
            return Fact(label, "hardly better than a constant", f"{fix_name(fix)}: {remark}; {constant}")
        return Fact(label, fix_name(fix), remark, "good")
    if fix.get("outcome") == INSUFFICIENT_ROWS:
        gain = f"log loss gain {format_number(fix.get('gain'))} nats per row{pvalue_text}"
        required = f"about {count(fix['required_rows'], 'row')} would be needed to confirm it with 80 % power"
        return Fact(label, "not confirmed, too few rows", f"{method_name(fix['chosen'])}: {gain}; {required}")
    detectable = f"a gain of {format_number(fix.get('detectable_gain'))} nats per row was detectable with 80 % power"
    return Fact(label, "none confirmed", f"no significant gain in cross-validated log loss; {detectable}")


def _reason(notes: Sequence[Mapping[str, Any]]) -> str:
    """Why no recalibration was attempted: the first sentence of the note as a clause."""
    for note in notes:
        clause = IMPLAUSIBLE.get(note["code"], note["text"]).partition(". ")[0].rstrip(".")
        return clause[:1].lower() + clause[1:]
    return "see the notes"


def _describe_contradicted(data: Mapping[str, Any]) -> list[Fact]:
    hits = data.get("true_class_zeros") or 0
    if not hits:
        return []
    text = count(hits, "observed outcome")
    return [Fact("Predicted probability 0", text, "evidence against calibration by itself", "bad")]


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
                "not tested",
                f"too few {'resamples' if draws else 'clusters'} for {tested}; see the notes",
            )
        ]
    left = f"{open_:,} undecided" if open_ else "none undecided"
    if worst is None:
        within = f"the others within the equivalence margin {format_number(among_groups['min_effect'])}"
        return [Fact(label, f"none of {len(groups)}", f"{left}, {within}" if open_ < len(groups) else left)]
    remark = f"worst: {worst['label']}, ECE {error_text(worst['error'])}; {left}"
    return [Fact(label, f"{n_miscalibrated} of {tested}", remark, "bad")]


def _describe_annotators(audit: Mapping[str, Any]) -> list[Fact]:
    """The distance between the predictions and the votes of annotators, if there are votes."""
    distance = distance_from_people(audit)
    return [Fact("Distance from annotators", *distance)] if distance else []

"""Describe the recalibration of an audit: its candidates, the gain in log loss and the side effects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    Column,
    Table,
    align_digits,
    count,
    count_text,
    is_binary,
    pvalue,
    share,
    value_text,
    yes_no,
)

CONSTANT_RATIO = (
    0.995  # of the log loss of one constant answer: what is not below it tells hardly more than the constant
)

INSUFFICIENT_ROWS = "too few rows"  # the outcome of a fix that more rows may confirm

_NAMES = {
    "ensemble_temperature": "a mixture of temperatures",
    "bias_corrected_temperature": "a temperature with biases",
    "llo": "a shift and a slope in log odds",
    "mcllo": "a shift and a slope in log odds",
    "beta": "a beta curve",
    "structured": "a linear map of the logits",
    "matrix": "a linear map of the logits",
    "dirichlet": "a linear map of the logits",
    "vector": "a slope and a bias for each class",
    "spline": "a smooth curve",
    "irm": "a monotone curve",
    "centred_isotonic": "a monotone curve",
    "isotonic": "a monotone step curve",
    "venn_abers": "a pair of step curves",
    "histogram": "one value for each bin",
}


def method_name(method: str) -> str:
    """A method in words, its own name behind them.

    >>> method_name("irm"), called("temperature")
    ('a monotone curve (irm)', 'temperature')
    """
    words = _NAMES.get(method)
    return method.replace("_", " ") if words is None else f"{words} ({method})"


def fix_name(fix: Mapping[str, Any]) -> str:
    """The chosen fix in words, with its parameters."""
    summary = fix.get("summary") or ""
    name = method_name(fix["chosen"])
    return f"{name}, {summary}" if summary and summary != fix["chosen"] else name


def log_loss_text(fix: Mapping[str, Any], when: str) -> str:
    """The log loss `before` or `after` the fix, as the table of scores has it.

    >>> log_loss_text({"candidates": [0], "log_loss_before": None}, "before"), log_loss({"log_loss_after": 0.5}, "after")
    ('infinite', '0.5')
    """
    loss = fix.get(f"log_loss_{when}")
    return "infinite" if loss is None and fix.get("candidates") else format_number(loss)


def gain_bound_text(fix: Mapping[str, Any]) -> str:
    """The lower end of the gain in words; nothing where it is none.

    >>> gain_bound_text({"gain_low": 0.05, "gain_low_percent": 12.34}), gain_lower_bound({"gain_low": -0.1})
    ('at least 12.3 %', '')
    """
    low, percent = fix.get("gain_low"), fix.get("gain_low_percent")
    if low is None or low <= 0:
        return ""
    return f"at least {format_number(low)} nats per row" if percent is None else f"at least {percent:.3g} %"


def flat(fix: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """What one constant answer would do as well; nothing where the fix tells more than it.

    Of confidences alone the constant is the share of right answers on the held-out rows, else equal probabilities.

    >>> flat({"log_loss_after": 0.6823, "accuracy_before": 0.576}, {"kind": "confidence", "k": 2})
    'saying 57.6 % every time would have log loss 0.6816'
    >>> flat({"log_loss_after": 0.5, "accuracy_before": 0.576}, {"kind": "confidence", "k": 2})
    ''
    """
    after, right = fix.get("log_loss_after"), fix.get("accuracy_before")
    if data["kind"] != "confidence":
        constant, constant_text = math.log(data["k"]), "equal probabilities every time"
    elif right is not None:
        constant, constant_text = _entropy(right), f"saying {share(right)} every time"
    else:
        return ""
    if after is None or after < CONSTANT_RATIO * constant:
        return ""
    return f"{constant_text} would have log loss {format_number(round(constant, 4))}"


def _entropy(q: float) -> float:
    return -sum(x * math.log(x) for x in (q, 1 - q) if x > 0)


def side_effects(fix: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """What the fix does to the answers themselves, on the held-out rows; nothing where there are no answers.

    >>> side_effects({"label_flips": 2, "accuracy_before": 0.5, "accuracy_after": 0.5}, {"kind": "classes"})
    'on the held-out rows 2 answers change and accuracy stays 50.0 %'
    """
    if data["kind"] == "confidence" or fix.get("label_flips") is None:
        return ""
    flips = fix["label_flips"]
    text = f"on the held-out rows {count(flips, 'answer')} {'changes' if flips == 1 else 'change'}"
    before, after = fix.get("accuracy_before"), fix.get("accuracy_after")
    if is_binary(data):
        return f"{text} sides of 50 %"
    if before is None or after is None:
        return text
    what = "the share of votes for the answer" if data.get("votes") else "accuracy"
    same = share(before) == share(after)
    return f"{text} and {what} {f'stays {share(before)}' if same else f'goes from {share(before)} to {share(after)}'}"


AuditDict = Mapping[str, Any]


def accuracy_label(facts: AuditDict) -> str:
    return "votes for its answer" if facts.get("votes") else "accuracy"


def candidate_table(audit: AuditDict) -> Table:
    """What was tried as a fix, each scored on rows it was not fitted to."""
    entries = (audit.get("recalibration") or {"candidates": ()})["candidates"]
    answers = audit["data"]["kind"] != "confidence"  # else a row has no answer that could change
    columns = (
        Column("method", NAMES),
        Column("its parameters", NAMES, DETAIL),
        Column("log loss"),
        Column("brier"),
        Column("difference"),
        Column("standard error", detail=DETAIL),
        Column("answers changed"),
        Column("accuracy change"),
        Column("", NAMES),
    )
    rows = zip(
        (candidate["method"] for candidate in entries),
        ("–" if candidate.get("parameters") is None else value_text(candidate["parameters"]) for candidate in entries),
        *(
            align_digits([candidate.get(name) for candidate in entries])
            for name in ("log_loss", "brier", "difference", "se")
        ),
        (count_text(candidate.get("label_flips") if answers else None) for candidate in entries),
        (_signed(candidate.get("accuracy_change") if answers else None) for candidate in entries),
        ("chosen" if candidate.get("chosen") else "" for candidate in entries),
        strict=True,
    )
    intro = "Scores are on rows each candidate was not fitted to; the difference in log loss is to the best of them. A method without a Brier score was far behind on the first folds and not fitted to the others."
    return Table("What was tried", columns, tuple(rows), intro).filled()


def _signed(x: float | None) -> str:
    """A change, with its sign; what is none to four decimals is 0."""
    if x is None:
        return "–"
    return "0" if abs(x) < 5e-5 else f"{x:+.4f}"


def fix_table(audit: AuditDict) -> Table:
    """The chosen fix on rows that neither fitted nor chose it."""
    report = audit.get("recalibration") or {}
    rows = report.get("rows") or {}
    gain = report.get("gain_percent")
    entries = [
        ("chosen", report.get("chosen") or "–"),
        (
            "its parameters",
            (report.get("summary") if report.get("applied") == report.get("chosen") else None) or "–",
        ),
        ("confirmed", yes_no(report.get("confirmed"))),
        ("outcome", report.get("outcome") or "–"),
        ("applied", report.get("applied") or "–"),
        ("log loss before", log_loss_text(report, "before")),
        ("log loss after", log_loss_text(report, "after")),
        ("gain", format_number(report.get("gain")) + (f" ({gain:.1f} %)" if gain is not None else "")),
        ("standard error of the gain", format_number(report.get("gain_se"))),
        ("the gain is at least", format_number(report.get("gain_low"))),
        ("and at most", format_number(report.get("gain_high"))),
        ("p of the gain", pvalue(report.get("pvalue"))),
        ("rows that would confirm such a gain four times in five", count_text(report.get("required_rows"))),
        ("gain that would be confirmed four times in five", format_number(report.get("detectable_gain"))),
        *_answers(report, audit["data"]),
        *((f"rows to {name}", count_text(n)) for name, n in rows.items()),
        ("uniform mixed in", format_number(report.get("mixing"))),
        ("smallest probability a logarithm saw", format_number(report.get("min_prob"))),
    ]
    filled = tuple(row for row in entries if row[1] != "–")
    return Table("The fix", (Column("", NAMES), Column("", NAMES)), filled if report else ())


def _answers(report: AuditDict, facts: AuditDict) -> list[tuple[str, str]]:
    """What the fix does to the answers; a confidence alone has none."""
    if facts["kind"] == "confidence":
        return [("accuracy, answers changed", "not applicable: a confidence alone names no answer")]
    right = accuracy_label(facts)
    return [
        (f"{right} before, on the held-out rows", share(report.get("accuracy_before"))),
        (f"{right} after, on the held-out rows", share(report.get("accuracy_after"))),
        ("answers changed, on the held-out rows", count_text(report.get("label_flips"))),
    ]

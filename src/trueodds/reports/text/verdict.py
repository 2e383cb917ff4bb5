"""State the verdict of an audit in a few plain sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.formatting import format_number, format_percent
from trueodds.core.printable import printable
from trueodds.core.results import Interval, Verdict
from trueodds.reports.facts import Facts
from trueodds.reports.standard_measures import Measure, measures_by_name
from trueodds.reports.subgroups import worst_group
from trueodds.reports.text.formatting import boundless, chance, count, points, sample_size
from trueodds.reports.text.recalibration import INSUFFICIENT_ROWS, flat, gain_bound_text, method_name

MIN_GAP_SHARE = 1 / 3  # of the error: a gap that is less of it leaves most of what is wrong unsaid
CLEAR, CERTAIN = 2.0, 3.0  # standard errors of the gap: from where its direction is said, beside or without the test


_IMPLAUSIBLE = {  # what speaks against the predictions as they were handed in, so that no fix is looked for
    "TN142": "The classes look to be in another order than the labels.",
    "TN149": "These look like predicted labels, not probabilities.",
}


def verdict_state(facts: Facts, family: Verdict, alpha: float, data: Mapping[str, Any]) -> str:
    """`overconfident`, `underconfident`, `too high`, `too low`, `miscalibrated`, `no evidence`, or `not tested`.

    An outcome that came though it was called impossible is evidence without any test.
    """
    impossible = data["true_class_zeros"] > 0
    if not impossible and family.pvalue > alpha:
        return "not tested" if family.min_pvalue is not None and family.min_pvalue > alpha else "no evidence"
    word, _ = direction(facts, family, alpha, data)
    return word


def direction(facts: Facts, family: Verdict, alpha: float, data: Mapping[str, Any]) -> tuple[str, Measure | None]:
    """The direction of the error, and the slope where it is that which tells it; `miscalibrated` if there is none.

    The mean gap tells a direction only where it is at least a third of the error, since errors that cancel on average
    have none; the slope of the log odds tells whether probabilities are too extreme or too timid. Either must be
    beyond doubt by itself, or clear beside a headline claim that is rejected. Of two classes the clearer one is said;
    of several the gap of the confidence, where it tells a direction, says the same in plainer words.
    """
    enough = CLEAR if facts.headline.pvalue <= alpha else CERTAIN
    candidates: list[tuple[float, str, Measure | None]] = []
    if family.pvalue > alpha:
        return "miscalibrated", None
    gap, z = facts.gap or 0.0, abs(facts.gap_z or 0.0)
    error = facts.errors[0]
    cancels = abs(gap) < MIN_GAP_SHARE * (error.value if error.debiased is None else error.debiased)
    if not cancels and z >= enough:
        words = ("too high", "too low") if _is_binary(data) else ("overconfident", "underconfident")
        candidates.append((z, words[0] if gap > 0 else words[1], None))
    slope = measures_by_name(facts.standard).get("calibration_slope")
    z = 0.0 if slope is None else slope.distance
    if slope is not None and slope.value is not None and z >= enough and (_is_binary(data) or not candidates):
        candidates.append((z, "overconfident" if slope.value < 1 else "underconfident", slope))
    if not candidates:
        return "miscalibrated", None
    _, word, measure = max(candidates, key=lambda candidate: candidate[0])
    return word, measure


def _is_binary(data: Mapping[str, Any]) -> bool:
    return data["event_rate"] is not None


def verdict_sentence(
    facts: Facts,
    family: Verdict,
    state: str,
    alpha: float,
    data: Mapping[str, Any],
    fix: Mapping[str, Any] | None,
) -> str:
    """Up to four short sentences: what it says and what came, whether that is chance, what fixes it."""
    parts = (
        _calibration_sentence(facts, family, state, alpha, data),
        _worst_group(facts, state, alpha, data),
        _impossible(data),
        _chance(facts, family, state, alpha, data),
        _fix(fix, data),
    )
    return printable(" ".join(part for part in parts if part))


def _calibration_sentence(facts: Facts, family: Verdict, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    word = {
        "no evidence": "No evidence against these probabilities",
        "not tested": "Not tested",
        "too high": "Predicts too high",
        "too low": "Predicts too low",
    }.get(state, state.capitalize())
    error, confidence, right = facts.errors[0].value, data["mean_confidence"], data["accuracy"]
    if confidence is None or right is None:
        return f"{word}: off by {points(error)} on average over the labels."
    if _is_binary(data):
        a, b = _distinct_percents(data["mean_prediction"], data["event_rate"])
        outcome_text = f"{b} of the votes came" if data["votes"] else f"{b} came"
    else:
        a, b = _distinct_percents(confidence, right)
        # A share of votes is no share of rows that were right: people disagree.
        outcome_text = f"{b} of the votes agree" if data["votes"] else f"is right {b}"
    _, slope = direction(facts, family, alpha, data)
    if slope is not None and slope.interval is not None and state in ("overconfident", "underconfident"):
        what = "too extreme" if state == "overconfident" else "too timid"
        low, high, level = slope.interval.low, slope.interval.high, format_percent(slope.interval.level)
        detail = f"calibration slope {slope.value:.2f}, {level} interval {low:.2f} to {high:.2f}; 1 is right"
        return f"{word}: its probabilities are {what} ({detail}); on average it says {a}, {outcome_text}."
    if state != "miscalibrated" or family.pvalue > alpha:
        return f"{word}: says {a}, {outcome_text}."
    return f"{word}: on average it says {a} and {outcome_text}, but is {_where(facts, alpha)}."


def _where(facts: Facts, alpha: float) -> str:
    """Which claim broke, where the average looks right."""
    if _is_local(facts, alpha):
        return f"off by {points(facts.errors[0].value)} from place to place"
    if worst := worst_group(facts.groups.lines()):
        return f"off by {points(worst['error'])} where {worst['column']} is {worst['value']}"
    for test in facts.tests:
        classes = [name for name, part in test.parts.items() if name.startswith("class:") and part["holm"] <= alpha]
        if classes:
            more = f" and {len(classes) - 1} more" * (len(classes) > 1)
            return f"not right for {classes[0].replace(':', ' ', 1)}{more}"
    return "not right in every claim"


def _worst_group(facts: Facts, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    """The subgroup with the strongest evidence, where the words before do not name it."""
    worst = worst_group(facts.groups.lines())
    named = state == "miscalibrated" and not _is_local(facts, alpha) and data["mean_confidence"] is not None
    if worst is None or named:
        return ""
    where = f"Worst where {worst['column']} is {worst['value']}"
    if worst["mean_prob"] is None or worst["event_rate"] is None:
        return f"{where}: off by {points(worst['error'])}."
    predicted, observed = _distinct_percents(worst["mean_prob"], worst["event_rate"])
    return f"{where}: says {predicted}, {f'{observed} came' if _is_binary(data) else f'is right {observed}'}."


def _is_local(facts: Facts, alpha: float) -> bool:
    """Whether the headline's error is beyond chance, and larger than what chance adds to it."""
    error = facts.errors[0]
    return facts.headline.pvalue <= alpha and (error.debiased is None or error.debiased > 0)


def _impossible(data: Mapping[str, Any]) -> str:
    hits = data["true_class_zeros"]
    if not hits:
        return ""
    return f"{hits:,} {'outcome' if hits == 1 else 'outcomes'} came that it called impossible."


def _chance(facts: Facts, family: Verdict, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    p = chance(family.pvalue, family.min_pvalue)
    if state == "not tested":
        scarce = facts.headline.min_pvalue is not None and facts.headline.min_pvalue > 2 / (1 + facts.resamples)
        if scarce:
            return f"Too few rows to say anything: with {sample_size(data)} no test can give less than p = {format_number(family.min_pvalue)}."
        draws = count(facts.resamples, "redraw")
        return f"With {draws} for so many claims no test can say more than p ≤ {format_number(family.min_pvalue)}."
    if family.pvalue <= alpha:
        return f"Not chance ({p})."
    if state != "no evidence":
        return f"The rest could be chance ({p})."
    return f"Chance could explain what is seen ({p}){_error_bound(facts.errors[0].interval, data)}."


def _error_bound(ends: Interval | None, data: Mapping[str, Any]) -> str:
    if ends is None:
        return ""
    if boundless(ends.low, ends.high):
        return f"; how large the average error is cannot be told from {sample_size(data)}"
    return f"; the average error is at most {points(ends.high)} ({format_percent(ends.level)} interval)"


def _fix(fix: Mapping[str, Any] | None, data: Mapping[str, Any]) -> str:
    if fix is None:
        return ""
    if not fix["candidates"]:
        return " ".join(_IMPLAUSIBLE[note["code"]] for note in fix["notes"] if note["code"] in _IMPLAUSIBLE)
    if fix["confirmed"]:
        gain = f"{_gain(fix)}."
        if flat(fix, data):
            what = (
                "confidences hardly tell right from wrong"
                if data["kind"] == "confidence"
                else "probabilities tell hardly anything"
            )
            return f"Its {what}: flattening them ({fix['chosen']}) {gain}"
        return f"{_name(fix['chosen'], fix['summary'])} {gain}"
    if fix.get("outcome") == INSUFFICIENT_ROWS:
        return f"A fix ({fix['chosen'].replace('_', ' ')}) is not confirmed: too few rows (if its gain is real, about {fix['required_rows']:,} would confirm it)."
    return "No gain to be had from a fix."


def _gain(fix: Mapping[str, Any]) -> str:
    """What the fix does on held-out rows; from an infinite log loss there is no percentage.

    That the error is there may be confirmed before it is sure that the fix makes the log loss smaller.
    """
    lower_bound, percentage = gain_bound_text(fix), fix["gain_percent"]
    if not lower_bound and percentage is not None:
        return f"corrects the error; how much log loss it saves on held-out rows ({percentage:.3g} %) is not yet sure"
    cut = "improves log loss" if percentage is None else f"cuts log loss by {percentage:.3g} %"
    return f"{cut} ({lower_bound}), confirmed on held-out rows" if lower_bound else f"{cut}, confirmed on held-out rows"


def _name(method: str, summary: str) -> str:
    if method == "temperature" and summary.startswith("T = "):
        name = summary.removeprefix("T = ")
        return f"Temperature {name.rstrip('0').rstrip('.') if '.' in name else name}"
    name = method_name(method)
    return name[:1].upper() + name[1:]


def _distinct_percents(predicted: float, right: float) -> tuple[str, str]:
    """Both in percent, with two significant digits and as many as tell them apart, at most two behind the point."""
    smallest = min((x for x in (predicted, right) if x > 0), default=1.0)
    for digits in range(2 if smallest < 0.01 else 1 if smallest < 0.1 else 0, 3):
        a, b = f"{100 * predicted:.{digits}f} %", f"{100 * right:.{digits}f} %"
        if a != b:
            break
    return a, b

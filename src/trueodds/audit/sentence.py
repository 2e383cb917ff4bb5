"""The sentence that a manager understands first: is it to be believed, is that chance, what fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.audit.facts import Facts
from trueodds.core.results import Verdict, figure

CLEAR, SURE = 2.0, 3.0  # standard errors of the gap: from where its direction is said, beside or without the test


def state_of(facts: Facts, family: Verdict, alpha: float, impossible: int) -> str:
    """`overconfident`, `underconfident`, `miscalibrated`, or `no evidence`.

    A direction is said only where the headline claim itself is rejected and the gap is clear, or the gap alone is
    beyond doubt. An outcome that came though it was called impossible is evidence without any test.
    """
    if family.pvalue > alpha and not impossible:
        return "no evidence"
    gap, z = facts.gap or 0.0, abs(facts.gap_z or 0.0)
    if family.pvalue <= alpha and (z >= SURE or (z >= CLEAR and facts.headline.pvalue <= alpha)):
        return "overconfident" if gap > 0 else "underconfident"
    return "miscalibrated"


def sentence(
    facts: Facts,
    family: Verdict,
    state: str,
    alpha: float,
    data: Mapping[str, Any],
    fix: Mapping[str, Any] | None,
) -> str:
    """Up to four short sentences: what it says and what came, whether that is chance, what fixes it."""
    parts = (_believed(facts, state, alpha, data), _impossible(data), _chance(facts, family, state, alpha), _fix(fix))
    return " ".join(part for part in parts if part)


def _believed(facts: Facts, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    error, said, right = facts.errors[0].value, data["mean_confidence"], data["accuracy"]
    if said is None or right is None:
        told = f"off by {share(error)} on average over the labels"
        return (
            f"No evidence against these probabilities: {told}." if state == "no evidence" else f"Miscalibrated: {told}."
        )
    a, b = _apart(said, right)
    if state == "no evidence":
        return f"No evidence against these probabilities: says {a}, is right {b}."
    if state == "miscalibrated":
        return f"Miscalibrated: says {a}, is right {b}{_where(facts, alpha)}."
    return f"{state.capitalize()}: says {a}, is right {b}."


def _where(facts: Facts, alpha: float) -> str:
    """Which claim broke, where the average looks right."""
    if facts.headline.pvalue <= alpha:
        return f", but off by {share(facts.errors[0].value)} from place to place"
    off = [group for group in facts.groups if group["holm"] <= alpha]
    if off:
        worst = max(off, key=lambda group: group["ece"])
        return f" on average, but off by {share(worst['ece'])} where {worst['column']} is {worst['value']}"
    for test in facts.tests:
        classes = [name for name, part in test.parts.items() if name.startswith("class:") and part["holm"] <= alpha]
        if classes:
            return f" on average, but not for {classes[0].replace(':', ' ', 1)}" + (
                f" and {len(classes) - 1} more" * (len(classes) > 1)
            )
    return " on average, but not in every claim"


def _impossible(data: Mapping[str, Any]) -> str:
    hits = data["true_class_zeros"]
    if not hits:
        return ""
    return f"{hits:,} {'outcome' if hits == 1 else 'outcomes'} came that it called impossible."


def _chance(facts: Facts, family: Verdict, state: str, alpha: float) -> str:
    at_floor = family.floor is not None and family.pvalue <= family.floor * (1 + 1e-9)
    p = f"p ≤ {figure(family.floor)}" if at_floor else f"p = {figure(family.pvalue)}"
    if family.pvalue <= alpha:
        return f"Not chance ({p})."
    if state != "no evidence":
        return f"The rest could be chance ({p})."
    error = facts.errors[0]
    reach = f"; an error above {share(error.interval.high)} is excluded" if error.interval else ""
    return f"Chance explains what is seen ({p}){reach}."


def _fix(fix: Mapping[str, Any] | None) -> str:
    if fix is None or not fix["candidates"]:
        return ""
    if fix["confirmed"]:
        name = _name(fix["chosen"], fix["summary"])
        if fix["gain_percent"] is None:
            return f"{name} improves log loss, confirmed on held-out rows."
        return f"{name} cuts log loss by {fix['gain_percent']:.3g} %, confirmed on held-out rows."
    return "No fix is justified."


def _name(method: str, summary: str) -> str:
    if method == "temperature" and summary.startswith("T = "):
        return f"Temperature {summary.removeprefix('T = ').rstrip('0').rstrip('.')}"
    names = {"isotonic": "Isotonic recalibration", "histogram": "Histogram binning"}
    return names.get(method, method.replace("_", " ").capitalize())


def share(x: float) -> str:
    """A probability in percent, as precisely as a reader needs it.

    >>> share(0.951), share(0.0398), share(0.0004)
    ('95 %', '4 %', '0.04 %')
    """
    percents = 100 * x
    if percents >= 10:
        return f"{percents:.0f} %"
    return f"{percents:.1g} %" if percents < 1 else f"{percents:.2g} %".replace(".0 ", " ")


def _apart(said: float, right: float) -> tuple[str, str]:
    """Both in percent, with as many digits as it takes to tell them apart, at most two behind the point."""
    for digits in (0, 1, 2):
        a, b = f"{100 * said:.{digits}f} %", f"{100 * right:.{digits}f} %"
        if a != b:
            break
    return a, b

"""The sentence that a manager understands first: is it to be believed, is that chance, what fixes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.audit.facts import Facts
from trueodds.core.results import Verdict, figure

CLEAR = 2.0  # standard errors from which the direction of the gap is said


def state_of(facts: Facts, family: Verdict, alpha: float) -> str:
    """`overconfident`, `underconfident`, `miscalibrated`, or `no evidence`."""
    if family.pvalue > alpha:
        return "no evidence"
    if facts.gap is None or facts.gap_z is None or abs(facts.gap_z) < CLEAR:
        return "miscalibrated"
    return "overconfident" if facts.gap > 0 else "underconfident"


def sentence(
    facts: Facts,
    family: Verdict,
    state: str,
    said: float | None,
    right: float | None,
    fix: Mapping[str, Any] | None,
) -> str:
    """Up to three short sentences: what it says and what came, whether that is chance, what fixes it."""
    return " ".join(
        part for part in (_believed(facts, state, said, right), _chance(facts, family, state), _fix(fix)) if part
    )


def _believed(facts: Facts, state: str, said: float | None, right: float | None) -> str:
    error = facts.errors[0].value
    if said is None or right is None:
        if state == "no evidence":
            return f"No evidence against these probabilities: off by {share(error)} on average."
        return f"Miscalibrated: off by {share(error)} on average over the labels."
    a, b = _apart(said, right)
    if state == "no evidence":
        return f"No evidence against these probabilities: says {a}, is right {b}."
    if state == "miscalibrated":
        return f"Miscalibrated: right on average (says {a}, is right {b}), but off by {share(error)} where it matters."
    return f"{state.capitalize()}: says {a}, is right {b}."


def _chance(facts: Facts, family: Verdict, state: str) -> str:
    at_floor = family.floor is not None and family.pvalue <= family.floor * (1 + 1e-9)
    p = f"p ≤ {figure(family.floor)}" if at_floor else f"p = {figure(family.pvalue)}"
    if state != "no evidence":
        return f"Not chance ({p})."
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

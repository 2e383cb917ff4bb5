"""How far off, where, and is that chance: the findings of an audit as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trueodds.audit.table import DETAIL, NAMES, Column, Mark, Table
from trueodds.audit.words import CLAIMS, clean, digits, share, span
from trueodds.core.results import figure, percent

Audit = Mapping[str, Any]
_PROPER = ("brier", "log_loss", "spherical", "rps")


def scores(audit: Audit) -> Table:
    """How good the probabilities are altogether."""
    columns = (
        Column("score", NAMES),
        Column("lens", NAMES),
        Column("value"),
        Column(_level(audit) + " interval"),
        Column("if calibrated"),
        Column("n"),
    )
    rows = [
        (
            each["estimator"].replace("_", " "),
            clean(each["lens"]),
            "infinite" if each["value"] is None and each["estimator"] == "log_loss" else digits(each["value"]),
            span(each["interval"]),
            digits(each["noise_floor"]),
            f"{each['n']:,}",
        )
        for each in audit["measures"]
        if each["estimator"] in _PROPER
    ]
    intro = "Lower is better; calibration and sharpness both count."
    return Table("Scores", columns, tuple(rows), intro).filled()


def errors(audit: Audit) -> Table:
    """How far off, claim by claim."""
    measured = [each for each in audit["measures"] if each["estimator"] not in _PROPER]
    columns = (
        Column("what is claimed", NAMES, DETAIL),
        Column("lens", NAMES),
        Column("measure", NAMES),
        Column("error"),
        Column(_level(audit) + " interval"),
        Column("noise floor"),
        Column("debiased", detail=DETAIL),
        Column("p"),
        Column("Holm p"),
        Column("n"),
    )
    rows = []
    for each in measured:
        tested = _tested(audit, each["lens"])
        rows.append(
            (
                CLAIMS.get(each["lens"], clean(each["lens"])),
                clean(each["lens"]),
                each["estimator"].replace("_", " "),
                digits(each["value"]),
                span(each["interval"]),
                digits(each["noise_floor"]),
                digits(each.get("debiased")),
                figure(tested.get("pvalue")),
                figure(tested.get("holm")),
                f"{each['n']:,}",
            )
        )
    marks = tuple(_mark(each["value"], each["interval"], each["noise_floor"]) for each in measured)
    intro = "The noise floor is what a calibrated model would show on as many rows."
    return Table("How far off", columns, tuple(rows), intro, marks=marks).filled()


def _mark(value: float | None, interval: Mapping[str, Any] | None, floor: float | None) -> Mark:
    ends = interval or {}
    return Mark(value, ends.get("low"), ends.get("high"), floor)


def _tested(audit: Audit, lens: str) -> Mapping[str, Any]:
    """What the tests say about one lens: its own test, with Holm's p from the family."""
    own: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == lens), {})
    family: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == "family"), {"parts": {}})
    part = family["parts"].get(lens, {})
    return {"pvalue": own.get("pvalue", part.get("pvalue")), "holm": part.get("holm")}


def _level(audit: Audit) -> str:
    levels = {each["interval"]["level"] for each in audit["measures"] if each["interval"]}
    return percent(levels.pop()) if len(levels) == 1 else ""


def classes(audit: Audit) -> Table:
    """The error of every class against the rest, worst first."""
    measured = _with_parts(each for each in audit["measures"] if each["estimator"] == "ece")
    tested = _with_parts(each for each in audit["tests"] if each["lens"] == "classwise")
    names = dict.fromkeys([*measured["parts"], *tested["parts"]])
    found = []
    for name in names:
        part = tested["parts"].get(name, {})
        found.append((name, measured["parts"].get(name, part.get("statistic")), part))
    found.sort(key=lambda each: -(each[1] if each[1] is not None else -1.0))
    columns = (Column("class", NAMES), Column("error"), Column("noise floor"), Column("p"), Column("Holm p"))
    rows = [
        (
            clean(class_of(name)),
            digits(value),
            digits(part.get("noise_floor")),
            figure(part.get("pvalue")),
            figure(part.get("holm")),
        )
        for name, value, part in found
    ]
    return Table(
        "Class by class",
        columns,
        tuple(rows),
        "Each class against all others, worst first. Holm's p allows for looking at many classes.",
        tuple(clean(class_of(name)) for name, _, _ in found),
        tuple(Mark(value, floor=part.get("noise_floor")) for _, value, part in found),
    ).filled()


def _with_parts(found: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((each for each in found if each["parts"]), {"parts": {}})


def class_of(view: str) -> str:
    """The class that a view is about."""
    return str(view).removeprefix("class:")


def groups(audit: Audit) -> Table:
    """Each subgroup for itself."""
    found = audit.get("groups") or []
    columns = (
        Column("group", NAMES),
        Column("n"),
        Column("is right"),
        Column("error"),
        Column("interval"),
        Column("noise floor"),
        Column("p"),
        Column("Holm p"),
    )
    rows = [
        (
            f"{clean(each['column'])} = {clean(each['value'])}",
            f"{each['n']:,}",
            share(each.get("accuracy")),
            digits(each.get("ece")),
            span(each.get("interval")),
            digits(each.get("noise_floor")),
            figure(each.get("pvalue")),
            figure(each.get("holm")),
        )
        for each in found
    ]
    marks = tuple(_mark(each.get("ece"), each.get("interval"), each.get("noise_floor")) for each in found)
    return Table(
        "Group by group", columns, tuple(rows), "The same question for each part of the rows.", marks=marks
    ).filled()


def verdicts(audit: Audit) -> Table:
    """Could it be chance? Every test that was made."""
    columns = (
        Column("test", NAMES),
        Column("lens", NAMES),
        Column("statistic"),
        Column("expected"),
        Column("effect"),
        Column("p"),
        Column("Holm p"),
        Column("family p"),
        Column("floor"),
        Column("n"),
    )
    rows = []
    for test in audit["tests"]:
        lens = clean(test["lens"])
        rows.append(
            (
                clean(test["test"]),
                lens,
                digits(test.get("statistic")),
                "–",
                digits(test.get("effect")),
                figure(test.get("pvalue")),
                "–",
                figure(test.get("family_pvalue")),
                figure(test.get("floor")),
                f"{test['n']:,}",
            )
        )
        if lens == "family":
            rows += [
                (
                    "– of these",
                    clean(claim),
                    digits(part.get("statistic")),
                    digits(part.get("noise_floor")),
                    "–",
                    figure(part.get("pvalue")),
                    figure(part.get("holm")),
                    "–",
                    "–",
                    "–",
                )
                for claim, part in test["parts"].items()
            ]
    nulls = dict.fromkeys(clean(test["null"]) for test in audit["tests"] if test.get("null"))
    intro = " ".join(f"If the model were calibrated: {null}." for null in nulls)
    return Table("Is it chance?", columns, tuple(rows), intro).filled()

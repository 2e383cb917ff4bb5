"""The model beside the people who judged its rows, as tables and as one line of the short answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.audit.table import DETAIL, NAMES, Column, Table
from trueodds.audit.words import aligned, count, digits, points, pvalue, share, spans
from trueodds.core.results import figure, percent

Audit = Mapping[str, Any]
_ASKED = {
    ("distce", False): "probability to be moved",
    ("human_distance", False): "squared distance",
    ("entce", False): "doubt, row by row",
    ("entce", True): "doubt, on average",
    ("rankcs", False): "rows in people's order",
}
_SPLIT = {"order": "of it: wrong order", "size": "of it: wrong size", "vote_noise": "vote noise taken off"}


def measures(audit: Audit) -> Table:
    """How far the model is from people's votes, each number beside what a model that is right would show."""
    found = audit.get("people")
    columns = (
        Column("what is compared", NAMES),
        Column("measure", NAMES),
        Column("value"),
        Column(_level(found)),
        Column("vote noise floor"),
        Column("n", detail=DETAIL),
    )
    if not found:
        return Table("The model and the people", columns, ())
    lines: list[tuple[str, str, float | None, Any, float | None, str]] = []
    for each in found["measures"]:
        name, signed = each["estimator"], bool(each["settings"].get("signed"))
        said = name.replace("_", " ") + (", signed" if signed else "")
        told = each["value"], each["interval"], each["noise_floor"], f"{each['n']:,}"
        lines.append((_ASKED.get((name, signed), ""), said, *told))
        if name == "human_distance":
            lines += [(_SPLIT[part], said, each["parts"].get(part), None, None, told[-1]) for part in _SPLIT]
    rows = zip(
        (line[0] for line in lines),
        (line[1] for line in lines),
        aligned([line[2] for line in lines]),
        spans([line[3] for line in lines]),
        aligned([line[4] for line in lines]),
        (line[5] for line in lines),
        strict=True,
    )
    intro = f"{sentence(found)} Lower is better; of rows in people's order, 1 is best. Doubt is entropy, in nats: on average, below its floor means too sure."
    return Table("The model and the people", columns, tuple(rows), intro).filled()


def sentence(found: Audit) -> str:
    """Up to three sentences for someone who reads nothing else."""
    moved = found["measures"][0]
    said = [f"{_asked(found['votes'])}On average {points(moved['value'])} of probability would have to move, row by row, to agree with their votes"]  # fmt: skip
    if moved["noise_floor"] is not None:
        said[0] += (
            f"; were the model right about people it would be {points(moved['noise_floor'])}, as only so many were asked"
        )
    return ". ".join([*said, *_sure(found["measures"])]) + "."


def _asked(votes: Mapping[str, Any] | None) -> str:
    if votes is None:
        return "How many people judged each row is unknown. "
    if votes["least"] == votes["most"]:
        return f"Each row was judged by {count(votes['most'], 'person', 'people')}. "
    return f"Each row was judged by {votes['least']:,} to {votes['most']:,} people (median {figure(votes['median'])}). "


def _sure(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whether the model is surer than people, where interval and floor leave no doubt."""
    signed = next((each for each in measured if each["settings"].get("signed")), None)
    if signed is None or not signed["interval"] or signed["noise_floor"] is None:
        return []
    low, high, floor = signed["interval"]["low"], signed["interval"]["high"], signed["noise_floor"]
    if high < floor:
        return ["On average it is surer than people are among themselves"]
    if low > floor:
        return ["On average it is less sure than people are among themselves"]
    return ["On average it is neither clearly surer nor clearly less sure than people are among themselves"]


def targets(audit: Audit) -> Table:
    """Calibration against the majority of each row beside calibration against all its votes."""
    found = audit.get("people")
    columns = (
        Column("held against", NAMES),
        Column("measure", NAMES),
        Column("value"),
        Column(_level(found)),
        Column("if calibrated"),
        Column("n", detail=DETAIL),
    )
    title = "Against the majority, and against all votes"
    if not found:
        return Table(title, columns, ())
    told = [
        (said, found[name][measure])
        for measure in ("ece", "log_loss")
        for name, said in (("majority", "the majority"), ("distribution", "all votes, as shares"))
    ]
    values = aligned([each["value"] for _, each in told])
    rows = zip(
        (said for said, _ in told),
        (f"{each['estimator'].replace('_', ' ')}, {each['lens']}" for _, each in told),
        ("infinite" if each["value"] is None else value for (_, each), value in zip(told, values, strict=True)),
        spans([each["interval"] for _, each in told]),
        aligned([each["noise_floor"] for _, each in told]),
        (f"{each['n']:,}" for _, each in told),
        strict=True,
    )
    return Table(title, columns, tuple(rows), _majority(found["majority"])).filled()


def _majority(found: Mapping[str, Any]) -> str:
    said = [f"The model names the class of most votes in {share(found['named'])} of the rows"]
    if found["tied"]:
        said.append(f"In {count(found['tied'], 'row')} several classes have most votes, and the first of them counts")
    more = "A majority counts people who disagree as if they had agreed"
    if (perfect := found["ece_if_right"]) is not None:
        more += f": were the model right about people, its error would be {points(perfect)} against their majority, and against all their votes mere noise"
    last = "If calibrated: the noise floor of an error, and of log loss what the probabilities expect of themselves"
    return ". ".join([*said, more, last]) + "."


def furthest(audit: Audit) -> Table:
    """The rows where model and people differ most."""
    found = (audit.get("people") or {"rows": {"listed": ()}})["rows"]
    columns = (
        Column("row"),
        Column("the model says", NAMES),
        Column("people say", NAMES),
        Column("votes"),
        Column("distance"),
        Column("by vote noise"),
        Column("p"),
    )
    title, listed = "Where model and people differ most", found["listed"]
    if not listed:
        return Table(title, columns, ())
    floor = None if found["draws"] is None else 1 / (1 + found["draws"])
    beside = aligned([each[name] for name in ("distance", "reach") for each in listed])  # with the same decimals
    distances, reaches = beside[: len(listed)], beside[len(listed) :]
    rows = zip(
        (str(each["row"]) for each in listed),
        (f"{each['model']} {share(each['said'])}" for each in listed),
        (f"{each['people']} {share(each['voted'])}" for each in listed),
        ("–" if each["votes"] is None else f"{each['votes']:,}" for each in listed),
        distances,
        reaches,
        (pvalue(each["pvalue"], floor) for each in listed),
        strict=True,
    )
    return Table(title, columns, tuple(rows), _judged(found)).filled()


def _judged(found: Mapping[str, Any]) -> str:
    said = "Rows count from 0. Distance: squared, 0 where both agree, 2 where each is sure of another class"
    if found["limit"] is None:
        return f"{said}. How many voted is unknown, so the noise of the votes is in it, and no row has a p."
    beyond = "No row is" if not found["beyond"] else count(found["beyond"], "row is", "rows are")
    return (
        f"{said}; the noise of the votes is taken off. By vote noise: what this row would pass 1 time in 20, were its votes "
        f"drawn from what the model says. p: how often any of the {count(found['n'], 'row')} would then be as far off. "
        f"{beyond} beyond {digits(found['limit'])}: by noise alone even the farthest row gets there with probability {figure(found['alpha'])} at most."
    )


def _level(found: Mapping[str, Any] | None) -> str:
    levels = {each["interval"]["level"] for each in (found or {"measures": ()})["measures"] if each["interval"]}
    return percent(levels.pop()) + " interval" if len(levels) == 1 else "interval"


def apart(audit: Audit) -> tuple[str, str] | None:
    """How far model and people are apart, and what that is to be compared with, for the short answer."""
    found = audit.get("people")
    if not found:
        return None
    moved = found["measures"][0]
    said = ["on average, row by row"]
    if moved["noise_floor"] is not None:
        said.append(f"were it right about people it would be {points(moved['noise_floor'])}, by vote noise alone")
    said += [each.replace("On average it", "it") for each in _sure(found["measures"])]
    return points(moved["value"]), "; ".join(said)

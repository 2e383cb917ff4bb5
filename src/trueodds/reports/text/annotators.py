"""Tables and a summary line that compare the predictions with the votes of human annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.formatting import format_number, format_percent
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    Column,
    Table,
    align_digits,
    count,
    digits,
    interval_texts,
    points,
    pvalue,
    share,
)

Audit = Mapping[str, Any]
_LABELS = {
    ("distce", False): "probability to be moved",
    ("human_distance", False): "squared distance",
    ("entce", False): "doubt, row by row",
    ("entce", True): "doubt, on average",
    ("rankcs", False): "rows in people's order",
}
_SPLIT = {"order": "of it: wrong order", "size": "of it: wrong size", "vote_noise": "vote noise taken off"}


def vote_measure_table(audit: Audit) -> Table:
    """How far the model is from people's votes, each number beside what a model that is right would show."""
    people = audit.get("people")
    columns = (
        Column("what is compared", NAMES),
        Column("measure", NAMES),
        Column("value"),
        Column(_level(people)),
        Column("vote noise floor"),
        Column("n", detail=DETAIL),
    )
    if not people:
        return Table("The model and the people", columns, ())
    lines: list[tuple[str, str, float | None, Any, float | None, str]] = []
    for measure in people["measures"]:
        name, signed = measure["estimator"], bool(measure["settings"].get("signed"))
        label = name.replace("_", " ") + (", signed" if signed else "")
        cells = measure["value"], measure["interval"], measure["noise_floor"], f"{measure['n']:,}"
        lines.append((_LABELS.get((name, signed), ""), label, *cells))
        if name == "human_distance":
            lines += [(_SPLIT[part], label, measure["parts"].get(part), None, None, cells[-1]) for part in _SPLIT]
    rows = zip(
        (line[0] for line in lines),
        (line[1] for line in lines),
        align_digits([line[2] for line in lines]),
        interval_texts([line[3] for line in lines]),
        align_digits([line[4] for line in lines]),
        (line[5] for line in lines),
        strict=True,
    )
    intro = f"{votes_sentence(people)} Lower is better; of rows in people's order, 1 is best. Doubt is entropy, in nats: on average, below its floor means too sure."
    return Table("The model and the people", columns, tuple(rows), intro).filled()


def votes_sentence(people: Audit) -> str:
    """Up to three sentences for someone who reads nothing else."""
    moved = people["measures"][0]
    sentences = [f"{_describe_votes(people['votes'])}On average {points(moved['value'])} of probability would have to move, row by row, to agree with their votes"]  # fmt: skip
    if moved["noise_floor"] is not None:
        sentences[0] += (
            f"; were the model right about people it would be {points(moved['noise_floor'])}, as only so many were asked"
        )
    return ". ".join([*sentences, *_compare_certainty(people["measures"])]) + "."


def _describe_votes(votes: Mapping[str, Any] | None) -> str:
    if votes is None:
        return "How many people judged each row is unknown. "
    if votes["min"] == votes["max"]:
        return f"Each row was judged by {count(votes['max'], 'person', 'people')}. "
    return f"Each row was judged by {votes['min']:,} to {votes['max']:,} people (median {format_number(votes['median'])}). "


def _compare_certainty(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whether the model is surer than people, where interval and floor leave no doubt."""
    signed = next((measure for measure in measured if measure["settings"].get("signed")), None)
    if signed is None or not signed["interval"] or signed["noise_floor"] is None:
        return []
    low, high, noise_floor = signed["interval"]["low"], signed["interval"]["high"], signed["noise_floor"]
    if high < noise_floor:
        return ["On average it is surer than people are among themselves"]
    if low > noise_floor:
        return ["On average it is less sure than people are among themselves"]
    return ["On average it is neither clearly surer nor clearly less sure than people are among themselves"]


def vote_target_table(audit: Audit) -> Table:
    """Calibration against the majority of each row beside calibration against all its votes."""
    people = audit.get("people")
    columns = (
        Column("held against", NAMES),
        Column("measure", NAMES),
        Column("value"),
        Column(_level(people)),
        Column("if calibrated"),
        Column("n", detail=DETAIL),
    )
    title = "Against the majority, and against all votes"
    if not people:
        return Table(title, columns, ())
    entries = [
        (label, people[name][measure])
        for measure in ("ece", "log_loss")
        for name, label in (("majority", "the majority"), ("distribution", "all votes, as shares"))
    ]
    values = align_digits([estimate["value"] for _, estimate in entries])
    rows = zip(
        (label for label, _ in entries),
        (f"{estimate['estimator'].replace('_', ' ')}, {estimate['lens']}" for _, estimate in entries),
        (
            "infinite" if estimate["value"] is None else value
            for (_, estimate), value in zip(entries, values, strict=True)
        ),
        interval_texts([estimate["interval"] for _, estimate in entries]),
        align_digits([estimate["noise_floor"] for _, estimate in entries]),
        (f"{estimate['n']:,}" for _, estimate in entries),
        strict=True,
    )
    return Table(title, columns, tuple(rows), _majority(people["majority"])).filled()


def _majority(majority: Mapping[str, Any]) -> str:
    sentences = [f"The model names the class of most votes in {share(majority['named'])} of the rows"]
    if majority["tied"]:
        sentences.append(
            f"In {count(majority['tied'], 'row')} several classes have most votes, and the first of them counts"
        )
    more = "A majority counts people who disagree as if they had agreed"
    if (perfect := majority["ece_if_right"]) is not None:
        more += f": were the model right about people, its error would be {points(perfect)} against their majority, and against all their votes mere noise"
    last = "If calibrated: the noise floor of an error, and of log loss what the probabilities expect of themselves"
    return ". ".join([*sentences, more, last]) + "."


def furthest_table(audit: Audit) -> Table:
    """The rows where model and people differ most."""
    summary = (audit.get("people") or {"rows": {"listed": ()}})["rows"]
    columns = (
        Column("row"),
        Column("the model says", NAMES),
        Column("people say", NAMES),
        Column("votes"),
        Column("distance"),
        Column("by vote noise"),
        Column("p"),
    )
    title, listed = "Where model and people differ most", summary["listed"]
    if not listed:
        return Table(title, columns, ())
    min_pvalue = None if summary["draws"] is None else 1 / (1 + summary["draws"])
    beside = align_digits(
        [row[name] for name in ("distance", "critical_value") for row in listed]
    )  # with the same decimals
    distances, reaches = beside[: len(listed)], beside[len(listed) :]
    rows = zip(
        (str(row["row"]) for row in listed),
        (f"{row['model']} {share(row['predicted'])}" for row in listed),
        (f"{row['people']} {share(row['voted'])}" for row in listed),
        ("–" if row["votes"] is None else f"{row['votes']:,}" for row in listed),
        distances,
        reaches,
        (pvalue(row["pvalue"], min_pvalue) for row in listed),
        strict=True,
    )
    return Table(title, columns, tuple(rows), _describe_distances(summary)).filled()


def _describe_distances(summary: Mapping[str, Any]) -> str:
    text = "Rows count from 0. Distance: squared, 0 where both agree, 2 where each is sure of another class"
    if summary["limit"] is None:
        return f"{text}. How many voted is unknown, so the noise of the votes is in it, and no row has a p."
    beyond = "No row is" if not summary["beyond"] else count(summary["beyond"], "row is", "rows are")
    return (
        f"{text}; the noise of the votes is taken off. By vote noise: what this row would pass 1 time in 20, were its votes "
        f"drawn from what the model says. p: how often any of the {count(summary['n'], 'row')} would then be as far off. "
        f"{beyond} beyond {digits(summary['limit'])}: by noise alone even the farthest row gets there with probability {format_number(summary['alpha'])} at most."
    )


def _level(people: Mapping[str, Any] | None) -> str:
    levels = {
        measure["interval"]["level"] for measure in (people or {"measures": ()})["measures"] if measure["interval"]
    }
    return format_percent(levels.pop()) + " interval" if len(levels) == 1 else "interval"


def distance_from_people(audit: Audit) -> tuple[str, str] | None:
    """How far model and people are apart, and what that is to be compared with, for the short answer."""
    people = audit.get("people")
    if not people:
        return None
    moved = people["measures"][0]
    remarks = ["on average, row by row"]
    if moved["noise_floor"] is not None:
        remarks.append(f"were it right about people it would be {points(moved['noise_floor'])}, by vote noise alone")
    remarks += [text.replace("On average it", "it") for text in _compare_certainty(people["measures"])]
    return points(moved["value"]), "; ".join(remarks)

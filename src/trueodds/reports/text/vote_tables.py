"""Tables and sentences of an audit that compare the predictions with the votes of human annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import (
    format_column,
    format_count,
    format_decimals,
    format_error,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue,
    format_share,
)
from trueodds.reports.text.text_table import AuditDict, TableColumn, TextTable

_MEASURE_TABLE_TITLE = "Comparison with annotators"
_MEASURE_LABELS = {  # by the name of the estimator and whether it is signed
    ("distce", False): "total variation distance",
    ("human_distance", False): "squared distance",
    ("entce", False): "absolute entropy difference",
    ("entce", True): "signed entropy difference",
    ("rankcs", False): "rows ranked as by the votes",
}
# The parts of the squared distance, shown below it.
_PART_LABELS = {"order": "… due to class order", "size": "… due to size", "vote_noise": "vote noise subtracted"}


class _MeasureLine(NamedTuple):
    """A row of the table of distances, before its numbers are formatted with those of the other rows."""

    quantity: str
    measure: str
    value: float | None
    interval: Mapping[str, Any] | None
    noise_floor: float | None
    n: str


def vote_measure_table(audit: AuditDict) -> TextTable:
    """Return the table of the distances between predictions and votes, each beside its vote noise floor."""
    people = audit.get("people")
    columns = (
        TableColumn("quantity", numeric=False),
        TableColumn("measure", numeric=False),
        TableColumn("value"),
        TableColumn(_interval_column_heading(people)),
        TableColumn("vote noise floor"),
        TableColumn("n", detail=True),
    )
    if not people:
        return TextTable(_MEASURE_TABLE_TITLE, columns, ())
    lines: list[_MeasureLine] = []
    for measure in people["measures"]:
        name, signed = measure["estimator"], bool(measure["settings"].get("signed"))
        quantity = _MEASURE_LABELS.get((name, signed), "")
        label = name.replace("_", " ") + (", signed" if signed else "")
        n = f"{measure['n']:,}"
        lines.append(_MeasureLine(quantity, label, measure["value"], measure["interval"], measure["noise_floor"], n))
        if name == "human_distance":
            lines += [
                _MeasureLine(part_label, label, measure["parts"].get(part), None, None, n)
                for part, part_label in _PART_LABELS.items()
            ]
    rows = zip(
        (line.quantity for line in lines),
        (line.measure for line in lines),
        format_column([line.value for line in lines]),
        format_intervals([line.interval for line in lines]),
        format_column([line.noise_floor for line in lines]),
        (line.n for line in lines),
        strict=True,
    )
    intro = (
        f"{describe_comparison(people)} Lower is better, except for the rows ranked as by the votes, where 1 is best."
        " Vote noise floor: the expected value if votes were drawn from the predicted probabilities. Entropy is in"
        " nats; a signed difference below its floor means overconfidence."
    )
    return TextTable(_MEASURE_TABLE_TITLE, columns, tuple(rows), intro).without_empty_columns()


def describe_comparison(people: AuditDict) -> str:
    """Return up to three sentences: the number of votes, the distance from them, and the confidence of the model.

    `people` is the section of the audit on the annotators.
    """
    distance = people["measures"][0]
    opening = (
        f"{_describe_votes(people['votes'])}The mean total variation distance between predictions and vote shares is"
        f" {format_error(distance['value'])}"
    )
    if distance["noise_floor"] is not None:
        opening += f", of which vote noise alone would produce {format_error(distance['noise_floor'])}"
    return ". ".join([opening, *_compare_confidence(people["measures"])]) + "."


def _describe_votes(votes: Mapping[str, Any] | None) -> str:
    """Return a sentence on the number of votes per row, followed by a space."""
    if votes is None:
        return "The number of annotators per row is unknown. "
    if votes["min"] == votes["max"]:
        return f"Each row has the votes of {format_count(votes['max'], 'annotator')}. "
    return (
        f"Each row has the votes of {votes['min']:,} to {votes['max']:,} annotators (median"
        f" {format_number(votes['median'])}). "
    )


def _compare_confidence(measures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence on whether the model is more or less confident than the annotators, in a list.

    It follows from the interval of the signed entropy difference and its noise floor; without these the list is empty.
    """
    signed = next((measure for measure in measures if measure["settings"].get("signed")), None)
    if signed is None or not signed["interval"] or signed["noise_floor"] is None:
        return []
    low, high, noise_floor = signed["interval"]["low"], signed["interval"]["high"], signed["noise_floor"]
    if high < noise_floor:
        return ["On average the model is more confident than the annotators"]
    if low > noise_floor:
        return ["On average the model is less confident than the annotators"]
    return ["The model is neither significantly more nor significantly less confident than the annotators"]


def vote_target_table(audit: AuditDict) -> TextTable:
    """Return the table of calibration against the majority vote of each row, and against the vote shares."""
    people = audit.get("people")
    columns = (
        TableColumn("outcome", numeric=False),
        TableColumn("measure", numeric=False),
        TableColumn("value"),
        TableColumn(_interval_column_heading(people)),
        TableColumn("expected if calibrated"),
        TableColumn("n", detail=True),
    )
    title = "Majority vote and vote shares as outcomes"
    if not people:
        return TextTable(title, columns, ())
    entries = [
        (label, people[name][measure])
        for measure in ("ece", "log_loss")
        for name, label in (("majority", "majority vote"), ("distribution", "vote shares"))
    ]
    values = format_column([estimate["value"] for _, estimate in entries])
    rows = zip(
        (label for label, _ in entries),
        (f"{estimate['estimator'].replace('_', ' ')}, {estimate['lens']}" for _, estimate in entries),
        (
            "infinite" if estimate["value"] is None else value
            for (_, estimate), value in zip(entries, values, strict=True)
        ),
        format_intervals([estimate["interval"] for _, estimate in entries]),
        format_column([estimate["noise_floor"] for _, estimate in entries]),
        (f"{estimate['n']:,}" for _, estimate in entries),
        strict=True,
    )
    return TextTable(title, columns, tuple(rows), _describe_majority(people["majority"])).without_empty_columns()


def _describe_majority(majority: Mapping[str, Any]) -> str:
    """Return the introduction of the table of outcomes: how often the majority is predicted, and what errors mean."""
    sentences = [f"The model predicts the majority class in {format_share(majority['named'])} of the rows"]
    if majority["tied"]:
        tied = format_count(majority["tied"], "row")
        sentences.append(f"In {tied} several classes have the most votes, and the first of them counts")
    sentences.append("The majority vote ignores disagreement among annotators")
    if (ece_if_calibrated := majority["ece_if_right"]) is not None:
        sentences[-1] += (
            ": a model that predicts the vote distribution exactly would have an expected calibration error of "
            f"{format_error(ece_if_calibrated)} against the majority"
        )
    sentences.append(
        "Expected if calibrated: the expected value if the votes of each row are drawn from the predicted probabilities"
    )
    return ". ".join(sentences) + "."


def furthest_row_table(audit: AuditDict) -> TextTable:
    """Return the table of the rows with the largest distances between prediction and votes."""
    summary = (audit.get("people") or {"rows": {"listed": ()}})["rows"]
    columns = (
        TableColumn("row"),
        TableColumn("prediction", numeric=False),
        TableColumn("majority", numeric=False),
        TableColumn("votes"),
        TableColumn("distance"),
        TableColumn("pointwise limit"),
        TableColumn("p"),
    )
    title, listed = "Rows with the largest distances", summary["listed"]
    if not listed:
        return TextTable(title, columns, ())
    min_pvalue = None if summary["draws"] is None else 1 / (1 + summary["draws"])
    # Both columns are formatted together, so that they have the same decimals.
    numbers = format_column([*(row["distance"] for row in listed), *(row["critical_value"] for row in listed)])
    distances, critical_values = numbers[: len(listed)], numbers[len(listed) :]
    rows = zip(
        (str(row["row"]) for row in listed),
        (f"{row['model']} {format_share(row['predicted'])}" for row in listed),
        (f"{row['people']} {format_share(row['voted'])}" for row in listed),
        ("–" if row["votes"] is None else f"{row['votes']:,}" for row in listed),
        distances,
        critical_values,
        (format_pvalue(row["pvalue"], min_pvalue) for row in listed),
        strict=True,
    )
    return TextTable(title, columns, tuple(rows), _describe_distances(summary)).without_empty_columns()


def _describe_distances(summary: Mapping[str, Any]) -> str:
    """Return the introduction of the table of the furthest rows: definitions, and how many rows exceed the limit."""
    text = (
        "Rows are numbered from 0. Distance: squared distance between predicted probabilities and vote shares, 0 if"
        " they agree, 2 if they give probability 1 to different classes"
    )
    if summary["limit"] is None:
        return f"{text}. The number of votes is unknown, so vote noise is not subtracted and there are no p-values."
    rows_beyond = (
        "No row exceeds" if not summary["beyond"] else format_count(summary["beyond"], "row exceeds", "rows exceed")
    )
    return (
        f"{text}; vote noise is subtracted. Pointwise limit: exceeded with probability at most 5 % if the votes of this"
        f" row are drawn from the predicted probabilities. p: adjusted for all {format_count(summary['n'], 'row')}."
        f" {rows_beyond} {format_decimals(summary['limit'])}, which vote noise alone exceeds in any row with"
        f" probability {format_number(summary['alpha'])} at most."
    )


def _interval_column_heading(people: Mapping[str, Any] | None) -> str:
    """Return the heading of a column of intervals, with their level if they share one."""
    levels = {
        measure["interval"]["level"] for measure in (people or {"measures": ()})["measures"] if measure["interval"]
    }
    return f"{format_percent_in_text(levels.pop())} interval" if len(levels) == 1 else "interval"


def summarize_distance(audit: AuditDict) -> tuple[str, str] | None:
    """Return the value and the remark of the summary line on the distance from the votes; None without votes."""
    people = audit.get("people")
    if not people:
        return None
    distance = people["measures"][0]
    remarks = ["mean total variation distance"]
    if distance["noise_floor"] is not None:
        remarks.append(f"vote noise floor {format_error(distance['noise_floor'])}")
    remarks += [
        text.replace("On average the model", "the model").replace("The model", "the model")
        for text in _compare_confidence(people["measures"])
    ]
    return format_error(distance["value"]), "; ".join(remarks)

"""Tables and a summary line that compare the predictions with the votes of human annotators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    TableColumn,
    TextTable,
    align_digits,
    count,
    digits,
    error_text,
    format_share,
    interval_texts,
    level_text,
    pvalue,
)

Audit = Mapping[str, Any]
_TITLE = "Comparison with annotators"
_LABELS = {
    ("distce", False): "total variation distance",
    ("human_distance", False): "squared distance",
    ("entce", False): "absolute entropy difference",
    ("entce", True): "signed entropy difference",
    ("rankcs", False): "rows ranked as by the votes",
}
_SPLIT = {"order": "… due to class order", "size": "… due to size", "vote_noise": "vote noise subtracted"}


def vote_measure_table(audit: Audit) -> TextTable:
    """The distances between predictions and votes, each beside its vote noise floor."""
    people = audit.get("people")
    columns = (
        TableColumn("quantity", NAMES),
        TableColumn("measure", NAMES),
        TableColumn("value"),
        TableColumn(_interval_label(people)),
        TableColumn("vote noise floor"),
        TableColumn("n", detail=DETAIL),
    )
    if not people:
        return TextTable(_TITLE, columns, ())
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
    intro = (
        f"{votes_sentence(people)} Lower is better, except for the rows ranked as by the votes, where 1 is best. Vote"
        " noise floor: the expected value if votes were drawn from the predicted probabilities. Entropy is in nats; a"
        " signed difference below its floor means overconfidence."
    )
    return TextTable(_TITLE, columns, tuple(rows), intro).without_empty_columns()


def votes_sentence(people: Audit) -> str:
    """The comparison in up to three sentences."""
    moved = people["measures"][0]
    distance = f"The mean total variation distance between predictions and vote shares is {error_text(moved['value'])}"
    sentences = [_describe_votes(people["votes"]) + distance]
    if moved["noise_floor"] is not None:
        sentences[0] += f", of which vote noise alone would produce {error_text(moved['noise_floor'])}"
    return ". ".join([*sentences, *_compare_certainty(people["measures"])]) + "."


def _describe_votes(votes: Mapping[str, Any] | None) -> str:
    if votes is None:
        return "The number of annotators per row is unknown. "
    if votes["min"] == votes["max"]:
        return f"Each row has the votes of {count(votes['max'], 'annotator')}. "
    return (
        f"Each row has the votes of {votes['min']:,} to {votes['max']:,} annotators (median"
        f" {format_number(votes['median'])}). "
    )


def _compare_certainty(measured: Sequence[Mapping[str, Any]]) -> list[str]:
    """Whether the model is more or less confident than the annotators, by the interval and the noise floor."""
    signed = next((measure for measure in measured if measure["settings"].get("signed")), None)
    if signed is None or not signed["interval"] or signed["noise_floor"] is None:
        return []
    low, high, noise_floor = signed["interval"]["low"], signed["interval"]["high"], signed["noise_floor"]
    if high < noise_floor:
        return ["On average the model is more confident than the annotators"]
    if low > noise_floor:
        return ["On average the model is less confident than the annotators"]
    return ["The model is neither significantly more nor significantly less confident than the annotators"]


def vote_target_table(audit: Audit) -> TextTable:
    """Calibration against the majority vote of each row beside calibration against the vote shares."""
    people = audit.get("people")
    columns = (
        TableColumn("outcome", NAMES),
        TableColumn("measure", NAMES),
        TableColumn("value"),
        TableColumn(_interval_label(people)),
        TableColumn("expected if calibrated"),
        TableColumn("n", detail=DETAIL),
    )
    title = "Majority vote and vote shares as outcomes"
    if not people:
        return TextTable(title, columns, ())
    entries = [
        (label, people[name][measure])
        for measure in ("ece", "log_loss")
        for name, label in (("majority", "majority vote"), ("distribution", "vote shares"))
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
    return TextTable(title, columns, tuple(rows), _majority(people["majority"])).without_empty_columns()


def _majority(majority: Mapping[str, Any]) -> str:
    sentences = [f"The model predicts the majority class in {format_share(majority['named'])} of the rows"]
    if majority["tied"]:
        tied = count(majority["tied"], "row")
        sentences.append(f"In {tied} several classes have the most votes, and the first of them counts")
    sentences.append("The majority vote ignores disagreement among annotators")
    if (perfect := majority["ece_if_right"]) is not None:
        sentences[-1] += (
            ": a model that predicts the vote distribution exactly would have an expected calibration error of "
            f"{error_text(perfect)} against the majority"
        )
    sentences.append(
        "Expected if calibrated: the expected value if the votes of each row are drawn from the predicted probabilities"
    )
    return ". ".join(sentences) + "."


def furthest_table(audit: Audit) -> TextTable:
    """The rows with the largest distances between prediction and votes."""
    summary = (audit.get("people") or {"rows": {"listed": ()}})["rows"]
    columns = (
        TableColumn("row"),
        TableColumn("prediction", NAMES),
        TableColumn("majority", NAMES),
        TableColumn("votes"),
        TableColumn("distance"),
        TableColumn("pointwise limit"),
        TableColumn("p"),
    )
    title, listed = "Rows with the largest distances", summary["listed"]
    if not listed:
        return TextTable(title, columns, ())
    min_pvalue = None if summary["draws"] is None else 1 / (1 + summary["draws"])
    beside = align_digits(
        [row[name] for name in ("distance", "critical_value") for row in listed]
    )  # with the same decimals
    distances, reaches = beside[: len(listed)], beside[len(listed) :]
    rows = zip(
        (str(row["row"]) for row in listed),
        (f"{row['model']} {format_share(row['predicted'])}" for row in listed),
        (f"{row['people']} {format_share(row['voted'])}" for row in listed),
        ("–" if row["votes"] is None else f"{row['votes']:,}" for row in listed),
        distances,
        reaches,
        (pvalue(row["pvalue"], min_pvalue) for row in listed),
        strict=True,
    )
    return TextTable(title, columns, tuple(rows), _describe_distances(summary)).without_empty_columns()


def _describe_distances(summary: Mapping[str, Any]) -> str:
    text = (
        "Rows are numbered from 0. Distance: squared distance between predicted probabilities and vote shares, 0 if"
        " they agree, 2 if they give probability 1 to different classes"
    )
    if summary["limit"] is None:
        return f"{text}. The number of votes is unknown, so vote noise is not subtracted and there are no p-values."
    beyond = "No row exceeds" if not summary["beyond"] else count(summary["beyond"], "row exceeds", "rows exceed")
    return (
        f"{text}; vote noise is subtracted. Pointwise limit: exceeded with probability at most 5 % if the votes of this"
        f" row are drawn from the predicted probabilities. p: adjusted for all {count(summary['n'], 'row')}. {beyond}"
        f" {digits(summary['limit'])}, which vote noise alone exceeds in any row with probability"
        f" {format_number(summary['alpha'])} at most."
    )


def _interval_label(people: Mapping[str, Any] | None) -> str:
    levels = {
        measure["interval"]["level"] for measure in (people or {"measures": ()})["measures"] if measure["interval"]
    }
    return f"{level_text(levels.pop())} interval" if len(levels) == 1 else "interval"


def distance_from_people(audit: Audit) -> tuple[str, str] | None:
    """The distance between predictions and votes with its noise floor, for the summary."""
    people = audit.get("people")
    if not people:
        return None
    moved = people["measures"][0]
    remarks = ["mean total variation distance"]
    if moved["noise_floor"] is not None:
        remarks.append(f"vote noise floor {error_text(moved['noise_floor'])}")
    remarks += [
        text.replace("On average the model", "the model").replace("The model", "the model")
        for text in _compare_certainty(people["measures"])
    ]
    return error_text(moved["value"]), "; ".join(remarks)

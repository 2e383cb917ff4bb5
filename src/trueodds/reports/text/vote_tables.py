"""Tables and sentences of an audit that compare the predictions with the votes of human annotators."""

from __future__ import annotations

from collections.abc import Sequence

from trueodds.core.formatting import (
    format_column,
    format_count,
    format_decimals,
    format_error,
    format_number,
    format_share,
)
from trueodds.core.table import Column, Table
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditMeasure, AuditPeople, FurthestRows, MajorityOutcomes, VoteCounts
from trueodds.reports.text.formatting import shared_interval_heading

_EQUAL_CONFIDENCE = "is neither significantly more nor significantly less confident than the annotators"
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


def vote_measure_table(audit: AuditResult) -> Table:
    """Return the table of the distances between predictions and votes, each beside its vote noise floor."""
    if (people := audit.people) is None:
        return Table(_MEASURE_TABLE_TITLE, ())
    # The quantity of each row, the measure, and the part of its value that the row shows; None for all of it.
    lines: list[tuple[str, AuditMeasure, str | None]] = []
    for measure in people.measures:
        quantity = _MEASURE_LABELS.get((measure.estimator, bool(measure.settings.get("signed"))), "")
        lines.append((quantity, measure, None))
        if measure.estimator == "human_distance":
            lines += [(label, measure, part) for part, label in _PART_LABELS.items()]
    wholes = [measure if part is None else None for _, measure, part in lines]  # parts have no interval
    columns = (
        Column("quantity", [quantity for quantity, _, _ in lines], "text"),
        Column(
            "measure",
            [
                measure.estimator.replace("_", " ") + (", signed" if measure.settings.get("signed") else "")
                for _, measure, _ in lines
            ],
            "text",
        ),
        Column("value", [measure.value if part is None else measure.parts.get(part) for _, measure, part in lines]),
        Column(
            shared_interval_heading(people.measures),
            [None if measure is None else measure.interval for measure in wholes],
            "interval",
        ),
        Column("vote noise floor", [None if measure is None else measure.noise_floor for measure in wholes]),
        Column("n", [measure.n for _, measure, _ in lines], "count", is_detail=True),
    )
    intro = (
        f"{describe_comparison(people)} Lower is better, except for the rows ranked as by the votes, where 1 is best."
        " Vote noise floor: the expected value if votes were drawn from the predicted probabilities. Entropy is in"
        " nats; a signed difference below its floor means overconfidence."
    )
    return Table(_MEASURE_TABLE_TITLE, columns, intro).without_empty_columns()


def describe_comparison(people: AuditPeople) -> str:
    """Return up to three sentences: the number of votes, the distance from them, and the confidence of the model.

    `people` is the section of the audit on the annotators.
    """
    distance = people.measures[0]
    opening = (
        f"{_describe_votes(people.votes)}The mean total variation distance between predictions and vote shares is"
        f" {format_error(distance.value)}"
    )
    if distance.noise_floor is not None:
        opening += f", of which vote noise alone would produce {format_error(distance.noise_floor)}"
    if relation := _compare_confidence(people.measures):
        opening += f". {'The' if relation == _EQUAL_CONFIDENCE else 'On average the'} model {relation}"
    return f"{opening}."


def _describe_votes(votes: VoteCounts | None) -> str:
    """Return a sentence on the number of votes per row, followed by a space."""
    if votes is None:
        return "The number of annotators per row is unknown. "
    if votes.min == votes.max:
        return f"Each row has the votes of {format_count(votes.max, 'annotator')}. "
    return (
        f"Each row has the votes of {votes.min:,} to {votes.max:,} annotators (median {format_number(votes.median)}). "
    )


def _compare_confidence(measures: Sequence[AuditMeasure]) -> str:
    """Return whether the model is more or less confident than the annotators, as words that follow "the model".

    It follows from the interval of the signed entropy difference and its noise floor; without these the text is empty.
    """
    signed = next((measure for measure in measures if measure.settings.get("signed")), None)
    if signed is None or signed.interval is None or signed.noise_floor is None:
        return ""
    low, high = signed.interval.limits
    if high < signed.noise_floor:
        return "is more confident than the annotators"
    if low > signed.noise_floor:
        return "is less confident than the annotators"
    return _EQUAL_CONFIDENCE


def vote_target_table(audit: AuditResult) -> Table:
    """Return the table of calibration against the majority vote of each row, and against the vote shares."""
    title = "Majority vote and vote shares as outcomes"
    if (people := audit.people) is None:
        return Table(title, ())
    majority, shares = people.majority, people.distribution
    estimates = [majority.ece, shares.ece, majority.log_loss, shares.log_loss]
    columns = (
        Column("outcome", ["majority vote", "vote shares"] * 2, "text"),
        Column("measure", [f"{entry.estimator.replace('_', ' ')}, {entry.lens}" for entry in estimates], "text"),
        Column("value", ["infinite" if entry.value is None else entry.value for entry in estimates]),
        Column(shared_interval_heading(people.measures), [entry.interval for entry in estimates], "interval"),
        Column("expected if calibrated", [entry.noise_floor for entry in estimates]),
        Column("n", [entry.n for entry in estimates], "count", is_detail=True),
    )
    return Table(title, columns, _describe_majority(majority)).without_empty_columns()


def _describe_majority(majority: MajorityOutcomes) -> str:
    """Return the introduction of the table of outcomes: how often the majority is predicted, and what errors mean."""
    sentences = [f"The model predicts the majority class in {format_share(majority.named)} of the rows"]
    if majority.tied:
        tied = format_count(majority.tied, "row")
        sentences.append(f"In {tied} several classes have the most votes, and the first of them counts")
    sentences.append("The majority vote ignores disagreement among annotators")
    if (ece_if_calibrated := majority.ece_if_right) is not None:
        sentences[-1] += (
            ": a model that predicts the vote distribution exactly would have an expected calibration error of "
            f"{format_error(ece_if_calibrated)} against the majority"
        )
    sentences.append(
        "Expected if calibrated: the expected value if the votes of each row are drawn from the predicted probabilities"
    )
    return ". ".join(sentences) + "."


def furthest_row_table(audit: AuditResult) -> Table:
    """Return the table of the rows with the largest distances between prediction and votes."""
    title = "Rows with the largest distances"
    if audit.people is None or not audit.people.rows.listed:
        return Table(title, ())
    summary = audit.people.rows
    listed = summary.listed
    # Both columns are formatted together, so that they have the same decimals.
    numbers = format_column([*(row.distance for row in listed), *(row.critical_value for row in listed)])
    columns = (
        Column("row", [str(row.row) for row in listed]),
        Column("prediction", [f"{row.model} {format_share(row.predicted)}" for row in listed], "text"),
        Column("majority", [f"{row.people} {format_share(row.voted)}" for row in listed], "text"),
        Column("votes", [row.votes for row in listed], "count"),
        Column("distance", numbers[: len(listed)]),
        Column("pointwise limit", numbers[len(listed) :]),
        Column(
            "p",
            [row.pvalue for row in listed],
            "pvalue",
            min_pvalue=None if summary.draws is None else 1 / (1 + summary.draws),
        ),
    )
    return Table(title, columns, _describe_distances(summary)).without_empty_columns()


def _describe_distances(summary: FurthestRows) -> str:
    """Return the introduction of the table of the furthest rows: definitions, and how many rows exceed the limit."""
    text = (
        "Rows are numbered from 0. Distance: squared distance between predicted probabilities and vote shares, 0 if"
        " they agree, 2 if they give probability 1 to different classes"
    )
    if summary.limit is None:
        return f"{text}. The number of votes is unknown, so vote noise is not subtracted and there are no p-values."
    rows_beyond = "No row exceeds" if not summary.beyond else format_count(summary.beyond, "row exceeds", "rows exceed")
    return (
        f"{text}; vote noise is subtracted. Pointwise limit: exceeded with probability at most 5 % if the votes of this"
        f" row are drawn from the predicted probabilities. p: adjusted for all {format_count(summary.n, 'row')}."
        f" {rows_beyond} {format_decimals(summary.limit)}, which vote noise alone exceeds in any row with"
        f" probability {format_number(summary.alpha)} at most."
    )


def summarize_distance(audit: AuditResult) -> tuple[str, str] | None:
    """Return the value and the remark of the summary line on the distance from the votes; None without votes."""
    if (people := audit.people) is None:
        return None
    distance = people.measures[0]
    remarks = ["mean total variation distance"]
    if distance.noise_floor is not None:
        remarks.append(f"vote noise floor {format_error(distance.noise_floor)}")
    if relation := _compare_confidence(people.measures):
        remarks.append(f"the model {relation}")
    return format_error(distance.value), "; ".join(remarks)

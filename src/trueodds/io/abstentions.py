"""Find the records of answers that abstain or have no usable confidence, and count them in notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueodds.core.errors import Note
from trueodds.core.formatting import format_coverage
from trueodds.io.records import Record


@dataclass(frozen=True, slots=True)
class Abstentions:
    """Which rows abstain, and which have an answer without a confidence; no row does both."""

    abstains: list[bool]  # by row
    lacks_confidence: list[bool]  # by row

    @property
    def is_answered(self) -> list[bool]:
        return [not (abstains or lacks) for abstains, lacks in zip(self.abstains, self.lacks_confidence, strict=True)]


def find_abstentions(rows: list[Record], fields: Sequence[str], confidence_field: str) -> Abstentions:
    """Return which rows abstain, because one of the `fields` says yes, and which have an answer without a confidence.

    The field of the confidence itself may be one of the `fields`. If it is the only one, a row in which it is empty
    abstains. Otherwise the other fields say which rows abstain, and a row in which only the confidence is empty has an
    answer without a confidence.

    >>> rows = [Record("a", i, None, {"skip": skip, "c": c}) for i, (skip, c) in enumerate([(1, None), (0, None)])]
    >>> find_abstentions(rows, ["skip", "c"], "c")
    Abstentions(abstains=[True, False], lacks_confidence=[False, True])
    """
    flags = [field for field in fields if field != confidence_field]
    is_empty = [confidence_field in fields and not row.has_field(confidence_field) for row in rows]
    if not flags:
        return Abstentions(is_empty, [False] * len(rows))
    abstains = [any(row.is_true(field) for field in flags) for row in rows]
    lacks_confidence = [empty and not abstained for empty, abstained in zip(is_empty, abstains, strict=True)]
    return Abstentions(abstains, lacks_confidence)


def ignored_confidence_notes(rows: list[Record], abstains: list[bool], confidence_field: str) -> list[Note]:
    ignored_rows = [row for row, skips in zip(rows, abstains, strict=True) if skips and row.has_field(confidence_field)]
    if not ignored_rows:
        return []
    subject = "1 row that abstains has" if len(ignored_rows) == 1 else f"{len(ignored_rows):,} rows that abstain have"
    text = f"{subject} a value of {confidence_field!r}, which was ignored; the first is {ignored_rows[0].location}."
    return [Note("TN169", text)]


def coverage_notes(n_queries: int, n_abstained: int, n_without: int, questions: int | None, reason: str) -> list[Note]:
    """Return the notes on queries without an answer, and on answers without a confidence.

    `questions` is the number of different questions, None if every query is another one. `reason` is the predicate of
    the second note, such as "answers have no confidence".
    """
    coverage = f"(coverage {format_coverage(n_queries - n_abstained - n_without, n_queries)})"
    notes = []
    if n_abstained:
        shown_coverage = "" if n_without else f" {coverage}"
        if questions is None:
            text = (
                f"{n_abstained:,} of {n_queries:,} questions have no answer{shown_coverage}; all results are for those"
                " that have one."
            )
        else:
            text = (
                f"{n_abstained:,} of {n_queries:,} answers to {questions:,} questions are missing{shown_coverage}; all"
                " results are for the others."
            )
        notes.append(Note("TN146", text))
    if n_without:
        text = f"{n_without:,} of {n_queries:,} {reason}; all results are for the others {coverage}."
        notes.append(Note("TN183", text))
    return notes


def describe_missing_confidence(rows: list[Record], lacks_confidence: list[bool], correct: str | None) -> str:
    """Describe answers without a confidence for `coverage_notes`, with their accuracy if it is known."""
    lacking = [row for row, lacks in zip(rows, lacks_confidence, strict=True) if lacks]
    if correct is None or not lacking or not all(row.has_field(correct) for row in lacking):
        return "answers have no confidence"
    n_correct = sum(row.is_true(correct) for row in lacking)
    return f"answers have no confidence ({format_coverage(n_correct, len(lacking))} of them are correct)"

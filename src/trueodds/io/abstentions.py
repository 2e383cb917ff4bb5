"""Which records of answers abstain or have no usable confidence, and the notes that count them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trueodds.core.errors import Note
from trueodds.core.formatting import format_coverage
from trueodds.io.records import Record


@dataclass(frozen=True, slots=True)
class Abstentions:
    """Which rows abstain, and which have an answer without a confidence."""

    abstains: list[bool]
    lacks_confidence: list[bool]

    @property
    def is_answered(self) -> list[bool]:
        """Whether each row has an answer with a confidence."""
        return [not (a or b) for a, b in zip(self.abstains, self.lacks_confidence, strict=True)]


def find_abstentions(rows: list[Record], fields: Sequence[str], confidence_field: str) -> Abstentions:
    """Return which rows abstain: one of the fields says yes.

    An empty field of the confidence is an abstention if it is the only one of `fields`. Besides others, which then say
    what is an abstention, it is an answer without a confidence.

    >>> rows = [Record("a", i, None, {"skip": skip, "c": c}) for i, (skip, c) in enumerate([(1, None), (0, None)])]
    >>> find_abstentions(rows, ["skip", "c"], "c")
    Abstentions(abstains=[True, False], lacks_confidence=[False, True])
    """
    flags = [field for field in fields if field != confidence_field]
    is_empty = [confidence_field in fields and not row.has_field(confidence_field) for row in rows]
    if not flags:
        return Abstentions(is_empty, [False] * len(rows))
    abstains = [any(row.is_true(field) for field in flags) for row in rows]
    return Abstentions(abstains, [empty and not skips for empty, skips in zip(is_empty, abstains, strict=True)])


def ignored_confidence_notes(rows: list[Record], abstains: list[bool], confidence_field: str) -> list[Note]:
    """Return the note on rows that abstain but have a confidence."""
    ignored_rows = [row for row, skips in zip(rows, abstains, strict=True) if skips and row.has_field(confidence_field)]
    if not ignored_rows:
        return []
    subject = "1 row that abstains has" if len(ignored_rows) == 1 else f"{len(ignored_rows):,} rows that abstain have"
    text = f"{subject} a value of {confidence_field!r}, which was ignored; the first is {ignored_rows[0].location}."
    return [Note("TN169", text)]


def coverage_notes(n_queries: int, n_abstained: int, n_without: int, questions: int | None, reason: str) -> list[Note]:
    """Return the notes on queries without an answer, and on answers without a confidence.

    `questions` is None if every query is a question of its own, and `reason` says which answers have no confidence.
    """
    coverage = f"(coverage {format_coverage(n_queries - n_abstained - n_without, n_queries)})"
    notes = []
    if n_abstained:
        shown = "" if n_without else f" {coverage}"
        if questions is None:
            text = (
                f"{n_abstained:,} of {n_queries:,} questions have no answer{shown}; all results are for those that"
                " have one."
            )
        else:
            text = (
                f"{n_abstained:,} of {n_queries:,} answers to {questions:,} questions are missing{shown}; all"
                " results are for the others."
            )
        notes.append(Note("TN146", text))
    if n_without:
        text = f"{n_without:,} of {n_queries:,} {reason}; all results are for the others {coverage}."
        notes.append(Note("TN183", text))
    return notes


def describe_missing_confidence(rows: list[Record], lacks_confidence: list[bool], correct: str | None) -> str:
    """Return how answers without a confidence are described, with their accuracy if each says whether it is correct."""
    lacking = [row for row, lacks in zip(rows, lacks_confidence, strict=True) if lacks]
    if correct is None or not lacking or not all(row.has_field(correct) for row in lacking):
        return "answers have no confidence"
    n_correct = sum(row.is_true(correct) for row in lacking)
    return f"answers have no confidence ({format_coverage(n_correct, len(lacking))} of them are correct)"

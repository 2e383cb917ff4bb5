"""Identify the question of each record of answers, and find the records that abstain or have no usable confidence.

Questions are clusters of dependent rows, and give the ids that pair two models.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import Note, argument
from trueodds.core.formatting import format_coverage
from trueodds.core.typing import Array
from trueodds.io import files
from trueodds.io.records import Record

FILE_FIELD = "file"  # names the file of a record, if the records have no such field


def add_file_names(rows: list[Record], data: Any) -> list[Record]:
    """Return the records with the name of their file as the field `file`, unless they have such a field.

    The name has no suffix; it is the path below the folder that all files share. Records in memory are unchanged.
    """
    if files.as_paths(data) is None:
        return rows
    paths = {row.source: os.path.abspath(row.source) for row in rows}
    folder = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    names = {source: os.path.splitext(os.path.relpath(path, folder))[0] for source, path in paths.items()}
    return [
        Record(row.source, row.row, row.line, {FILE_FIELD: names[row.source], **row.fields})
        if FILE_FIELD not in row.fields
        else row
        for row in rows
    ]


def question_name(record: Record, fields: Sequence[str]) -> str:
    """Return the question of a record as text; several fields identify it together.

    >>> question_name(Record("a", 0, None, {"task": "law", "doc_id": 3}), ["task", "doc_id"])
    'law, 3'
    """
    if len(fields) == 1:
        return record.name_value(fields[0])
    names = [record.name_value(field) for field in fields]
    return json.dumps(names) if any(", " in name for name in names) else ", ".join(names)


def question_names(rows: list[Record], is_answered: Sequence[bool], fields: Sequence[str]) -> list[str | None]:
    """Return the question of each row; None for a row without an answer that names no question."""
    return [
        question_name(row, fields) if answered or all(row.has_field(field) for field in fields) else None
        for row, answered in zip(rows, is_answered, strict=True)
    ]


def count_questions(names: Sequence[str | None], n_queries: int) -> int | None:
    """Return the number of questions if there are fewer than answers."""
    n_questions = len(set(names) - {None})
    return n_questions if 0 < n_questions < n_queries else None


def question_ids(rows: list[Record], names: Sequence[str], fields: Sequence[str]) -> Array:
    """Return the question of each row, as integers if possible, else as text, its name."""
    if len(fields) == 1:
        values = np.array([row.value(fields[0]) for row in rows])
        if values.dtype.kind in "iu":
            return values
    return np.array(names)


def question_clusters(ids: Array | None) -> Array | None:
    """Return the question of each row as clusters if a question has several rows; numbers are sorted numerically."""
    if ids is None or len(np.unique(ids)) == len(ids):
        return None
    all_integers = all(
        str(value).isascii() and str(value).isdigit() and len(str(value)) < 19 and str(int(value)) == str(value)
        for value in ids.tolist()
    )
    return np.array([int(value) for value in ids.tolist()]) if all_integers else ids


def answer_ids(names: Sequence[str | None], is_answered: Sequence[bool]) -> Array:
    """Return an id of each answer: its question, followed by its number if a question has several rows.

    `names` has the question of each row. Rows without an answer are counted too, so that the third answer to a question
    has the same id in two models of which one refused the second.

    >>> answer_ids(["x", "y", "x", "x"], [True, True, False, True]).tolist()
    ['x #1', 'y #1', 'x #3']
    """
    counts: Counter[str | None] = Counter()
    numbers = []
    for name in names:
        counts[name] += 1
        numbers.append(counts[name])
    is_repeated = any(count > 1 for name, count in counts.items() if name is not None)
    return np.array([
        f"{name} #{number}" if is_repeated else name
        for name, number, answered in zip(names, numbers, is_answered, strict=True) if answered
    ])  # fmt: skip


def shared_question_notes(rows: list[Record], names: Sequence[str | None], fields: Sequence[str]) -> list[Note]:
    """Return the note on questions that have the same id in several files, which may be different questions."""
    if FILE_FIELD in fields or not names or all(row.source == rows[0].source for row in rows):
        return []
    first_source: dict[str, str] = {}
    shared: dict[str, str] = {}  # another file of the question, by its name
    for row, name in zip(rows, names, strict=True):
        if name is not None and first_source.setdefault(name, row.source) != row.source:
            shared.setdefault(name, row.source)
    if not shared:
        return []
    name, source = next(iter(shared.items()))
    example = f"{name} in {os.path.basename(first_source[name])} and {os.path.basename(source)}"
    remedy = f"If each file has questions of its own, use {argument('question', [FILE_FIELD, *fields])}."
    text = (
        f"{len(shared):,} of {len(first_source):,} question ids occur in several files, for instance {example}; they"
        f" were read as the same questions. {remedy}"
    )
    return [Note("TN181", text)]


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

"""How many of several sampled answers agree, and is the most frequent one right?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.io.questions import key_of
from trueodds.io.records import Record


@dataclass(slots=True)
class _Sampled:
    """One question's samples in their order, and for each the record that tells whether it was right."""

    record: Record
    texts: list[str]
    right: list[bool] | None
    truth: str | None


def agreed(
    rows: list[Record], samples: str, answer: str, correct: str | None, question: str | None
) -> tuple[list[Record], Array, Array]:
    """A record of each question, the share of its most frequent answer, and whether that is right.

    >>> rows = [Record("a", 0, None, {"s": ["4", "5", "4 "], "y": 4})]
    >>> [x.tolist() for x in agreed(rows, "s", "y", None, None)[1:]]
    [[0.6666666666666666], [True]]
    """
    listed = isinstance(rows[0].value(samples), list)
    if listed:
        sampled = [_of_list(record, samples, answer, correct) for record in rows]
    else:
        sampled = _of_rows(rows, samples, answer, correct, question)
    share, right = np.empty(len(sampled)), np.empty(len(sampled), dtype=bool)
    for i, entry in enumerate(sampled):
        if len(entry.texts) < 2:
            raise InputError(
                "TO315",
                "A question must have at least two samples; one always agrees with itself.",
                f"{len(entry.texts)} in {entry.record.place}",
                "Sample more, or remove such questions.",
            )
        # A Counter keeps the order of first sight, and max the first of equals.
        majority_text, times = max(Counter(entry.texts).items(), key=lambda pair: pair[1])
        share[i] = times / len(entry.texts)
        right[i] = (
            entry.right[entry.texts.index(majority_text)] if entry.right is not None else majority_text == entry.truth
        )
    return [entry.record for entry in sampled], share, right


def _of_list(record: Record, samples: str, answer: str, correct: str | None) -> _Sampled:
    values = record.listed(samples)
    if len(values) == 1 and isinstance(values[0], list):  # one request, whose repeats are a list of their own
        values = values[0]
    texts = [_text(record, samples, value) for value in values]
    if correct is None:
        return _Sampled(record, texts, None, _text(record, answer, record.value(answer)))
    grades = record.listed(correct)
    if len(grades) != len(texts):
        got = f"{len(grades)} of {correct!r} for {len(texts)} of {samples!r} in {record.place}"
        raise InputError("TO310", "Every sample has one judgment.", got, "Write both lists in one order.")
    return _Sampled(record, texts, [record.yes(correct, grade) for grade in grades], None)


def _of_rows(
    rows: list[Record], samples: str, answer: str, correct: str | None, question: str | None
) -> list[_Sampled]:
    if question is None:
        received = f"one {type(rows[0].value(samples)).__name__} in {rows[0].place}"
        fix = "Name the field that tells questions apart with question=, or one that lists the samples."
        raise InputError("TO205", "One sample per record needs to know which belong together.", received, fix)
    sampled: dict[str, _Sampled] = {}
    for record in rows:
        text = _text(record, samples, record.value(samples))
        truth = None if correct is not None else _text(record, answer, record.value(answer))
        one = sampled.setdefault(key_of(record, question), _Sampled(record, [], None if correct is None else [], truth))
        if truth != one.truth:
            got = f"{truth!r} in {record.place}, after {one.truth!r} in row {one.record.row}"
            raise InputError(
                "TO318", "A question has one right answer.", got, "Choose the field that tells questions apart."
            )
        one.texts.append(text)
        if one.right is not None and correct is not None:
            one.right.append(record.yes(correct))
    return list(sampled.values())


def _text(record: Record, field: str, value: Any) -> str:
    if value is None:
        raise record.missing(field)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (list, dict)):
        raise record.wrong(field, value, "Choose a field of texts or numbers.")
    return record.text(field, value).strip()

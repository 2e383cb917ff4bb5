"""Confidence of a language model's answers by self-consistency: the agreement of several samples per question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.io.questions import question_name
from trueodds.io.records import Record


@dataclass(slots=True)
class _QuestionSamples:
    """The sampled answers of one question, in their order."""

    record: Record  # the first record of the question
    texts: list[str]  # the sampled answers
    is_correct: list[bool] | None  # whether each is correct; None if they are compared with `correct_text`
    correct_text: str | None  # the correct answer, if it is known


@dataclass(frozen=True, slots=True)
class SampleAgreement:
    """The agreement of the samples of each question."""

    records: list[Record]  # the first record of each question
    confidence: Array  # (n,) share of the most frequent answer
    is_correct: Array  # (n,) bool, whether that answer is correct
    sizes: Array  # (n,) number of samples with an answer
    n_mixed_grades: int  # number of questions in which copies of the most frequent answer have different grades

    def grade_notes(self) -> list[Note]:
        """Return the note on questions in which copies of the most frequent answer have different grades."""
        if not self.n_mixed_grades:
            return []
        text = (
            f"In {self.n_mixed_grades:,} of {len(self.sizes):,} questions copies of the most frequent answer are graded"
            " differently. The answer counts as correct if most of its grades say so."
        )
        return [Note("TN184", text)]

    def size_notes(self, n_abstained: int, n_samples: int) -> list[Note]:
        """Return the note on questions with fewer samples than others; `n_abstained` of all `n_samples` abstain."""
        highest = int(self.sizes.max())
        fewer = self.sizes[self.sizes < highest]
        if not len(fewer):
            return []
        sizes = f"{fewer.min()}" if fewer.min() == fewer.max() else f"{fewer.min()} to {fewer.max()}"
        text = f"{len(fewer):,} of {len(self.sizes):,} questions have fewer than {highest} samples ({sizes})"
        if n_abstained:
            text += f"; {n_abstained:,} of {n_samples:,} samples abstain, and the agreement is among the others"
        return [Note("TN182", f"{text}. Agreement among fewer samples is a coarser confidence.")]


def has_sample_lists(records: list[Record], samples_field: str) -> bool:
    """Return whether a record lists all samples of a question, and is not one of them."""
    return isinstance(records[0].value(samples_field, is_confidence=True), list)


def single_samples(names: Sequence[str | None], answered_names: Sequence[str]) -> set[str]:
    """Return the questions of which a single sample is an answer, although several were drawn.

    >>> single_samples(["a", "a", "b"], ["a", "b"])
    {'a'}
    """
    drawn = Counter(names)
    return {name for name, count in Counter(answered_names).items() if count == 1 and drawn[name] > 1}


def sample_agreement(
    records: list[Record],
    samples_field: str,
    correct_answer_field: str,
    grade_field: str | None,
    question_fields: Sequence[str],
) -> SampleAgreement:
    """Return the share of each question's most frequent answer, and whether that answer is correct.

    Without a `grade_field`, samples are compared with the `correct_answer_field`.

    >>> records = [Record("a", 0, None, {"s": ["4", "5", "4 "], "y": 4})]
    >>> agreement = sample_agreement(records, "s", "y", None, ())
    >>> agreement.confidence.tolist(), agreement.is_correct.tolist()
    ([0.6666666666666666], [True])
    """
    if has_sample_lists(records, samples_field):
        questions = [_samples_of_record(record, samples_field, correct_answer_field, grade_field) for record in records]
    else:
        questions = _samples_by_question(records, samples_field, correct_answer_field, grade_field, question_fields)
    confidence, is_correct = np.empty(len(questions)), np.empty(len(questions), dtype=bool)
    n_mixed_grades = 0
    for i, question in enumerate(questions):
        if len(question.texts) < 2:
            raise InputError(
                "TO315",
                "A question must have at least two samples; a single one always agrees with itself.",
                f"{len(question.texts)} in {question.record.location}",
                "Draw more samples, or remove such questions.",
            )
        # A Counter keeps the order of first occurrence, and max returns the first maximum.
        majority_text, count = max(Counter(question.texts).items(), key=lambda text_and_count: text_and_count[1])
        confidence[i] = count / len(question.texts)
        if question.is_correct is not None:
            grades = [
                grade for text, grade in zip(question.texts, question.is_correct, strict=True) if text == majority_text
            ]
            is_correct[i] = 2 * sum(grades) > len(grades)
            n_mixed_grades += len(set(grades)) > 1
        else:
            is_correct[i] = majority_text == question.correct_text
    sizes = np.array([len(question.texts) for question in questions])
    return SampleAgreement([question.record for question in questions], confidence, is_correct, sizes, n_mixed_grades)


def _samples_of_record(
    record: Record, samples_field: str, correct_answer_field: str, grade_field: str | None
) -> _QuestionSamples:
    values = record.list_value(samples_field, is_confidence=True)
    if len(values) == 1 and isinstance(values[0], list):  # one request whose repeats are a nested list
        values = values[0]
    texts = [_answer_text(record, samples_field, value) for value in values]
    if grade_field is None:
        return _QuestionSamples(
            record, texts, None, _answer_text(record, correct_answer_field, record.value(correct_answer_field))
        )
    grades = record.list_value(grade_field)
    if len(grades) != len(texts):
        got = f"{len(grades)} of {grade_field!r} for {len(texts)} of {samples_field!r} in {record.location}"
        raise InputError(
            "TO310",
            "Every sample must have one value of correctness.",
            got,
            "Write both lists with the same length and order.",
        )
    return _QuestionSamples(record, texts, [record.is_true(grade_field, grade) for grade in grades], None)


def _samples_by_question(
    records: list[Record],
    samples_field: str,
    correct_answer_field: str,
    grade_field: str | None,
    question_fields: Sequence[str],
) -> list[_QuestionSamples]:
    if not question_fields:
        received = f"one {type(records[0].value(samples_field)).__name__} in {records[0].location}"
        fix = "Pass the field that identifies the question as ⟨question=⟩, or a field that lists the samples."
        raise InputError(
            "TO205", "With one sample per record, the question of each sample must be known.", received, fix
        )
    samples_by_question: dict[str, _QuestionSamples] = {}
    for record in records:
        text = _answer_text(record, samples_field, record.value(samples_field, is_confidence=True))
        correct_text = None
        if grade_field is None:
            correct_text = _answer_text(record, correct_answer_field, record.value(correct_answer_field))
        question_samples = samples_by_question.setdefault(
            question_name(record, question_fields),
            _QuestionSamples(record, [], None if grade_field is None else [], correct_text),
        )
        if correct_text != question_samples.correct_text:
            got = (
                f"{correct_text!r} in {record.location}, after {question_samples.correct_text!r} in row"
                f" {question_samples.record.row}"
            )
            raise InputError(
                "TO318",
                "A question must have a single correct answer.",
                got,
                "Choose the field that identifies the question.",
            )
        question_samples.texts.append(text)
        if question_samples.is_correct is not None and grade_field is not None:
            question_samples.is_correct.append(record.is_true(grade_field))
    return list(samples_by_question.values())


def _answer_text(record: Record, field: str, value: Any) -> str:
    """Return an answer as text without surrounding blanks."""
    if value is None:
        raise record.missing_field_error(field)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (list, dict)):
        raise record.wrong_type_error(field, value, "Choose a field of texts or numbers.")
    return record.to_text(field, value).strip()

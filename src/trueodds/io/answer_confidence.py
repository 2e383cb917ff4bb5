"""Confidence of a language model's answers: softmax of the options' log-probabilities, or agreement of samples."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.io.conversion import QUOTED_CHARACTERS, is_readable
from trueodds.io.records import Record, field_as_name

MAX_LOG_PROB_ROUNDING = 1e-3  # how far above 0 a sum of low-precision log-probabilities may be by rounding


def read_option_log_probs(
    rows: list[Record], options_field: str, correct_answer_field: str, choices_field: str | None
) -> tuple[list[list[float]], list[int]]:
    """Return the log-probabilities of each question's options, and the index of the correct one.

    `options_field` lists the log-probabilities, `correct_answer_field` has the number or name of the correct option,
    and `choices_field` lists the names of the options, if they have names.

    >>> read_option_log_probs([Record("a", 0, None, {"z": [["-0.1", "True"], [-3, False]], "y": "0"})], "z", "y", None)
    ([[-0.1, -3.0]], [0])
    """
    log_probs_by_question = [_option_log_probs(row, options_field) for row in rows]
    return log_probs_by_question, [
        _correct_index(row, correct_answer_field, choices_field, len(log_probs))
        for row, log_probs in zip(rows, log_probs_by_question, strict=True)
    ]


def top_option_confidence(log_probs_by_question: list[list[float]], labels: list[int]) -> tuple[Array, Array]:
    """Return the softmax probability of each question's top option (the first if tied), and whether it is correct."""
    confidence, is_correct = np.empty(len(log_probs_by_question)), np.empty(len(log_probs_by_question), dtype=bool)
    for i, log_probs in enumerate(log_probs_by_question):
        values = np.array(log_probs)
        confidence[i] = 1 / np.exp(values - values.max()).sum()
        is_correct[i] = int(values.argmax()) == labels[i]
    return confidence, is_correct


def option_number_notes(
    rows: list[Record],
    correct_answer_field: str,
    choices_field: str | None,
    log_probs_by_question: list[list[float]],
    labels: list[int],
) -> list[Note]:
    """Return notes on correct answers that were read as the number of an option, counted from 0."""
    values = [_single_value(row.value(correct_answer_field)) for row in rows]
    are_names = [isinstance(value, str) and choices_field is not None for value in values]
    notes: list[Note] = []
    if texts := [
        value for value, is_name in zip(values, are_names, strict=True) if isinstance(value, str) and not is_name
    ]:
        text = (
            f"The correct answer is a text such as {texts[0].strip()!r}; it was read as the number of an option,"
            " counted from 0."
        )
        notes.append(Note("TN170", text))
    # With correct options in random order, 0 would be missing in fewer than one of a thousand files.
    prob_of_no_zero = math.prod(1 - 1 / len(log_probs) for log_probs in log_probs_by_question)
    if not any(are_names) and 0 not in labels and prob_of_no_zero < 0.001:
        text = (
            f"None of {len(rows):,} questions has option 0 as the correct one. Options are counted from 0: does"
            f" {correct_answer_field!r} count from 1?"
        )
        notes.append(Note("TN180", text))
    return notes


def shared_option_names(rows: list[Record], choices_field: str) -> tuple[str, ...] | None:
    """Return the names of the options if they are the same and distinct for every question, else None."""
    first_names = _option_names(rows[0], choices_field)
    all_same = len(set(first_names)) == len(first_names) and all(
        _option_names(row, choices_field) == first_names for row in rows
    )
    return tuple(first_names) if all_same else None


def _option_names(record: Record, choices_field: str) -> list[str]:
    return [record.to_name(choices_field, choice).strip() for choice in record.list_value(choices_field)]


def _single_value(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _option_log_probs(record: Record, field: str) -> list[float]:
    """Return the log-probabilities of the options in a record, of which there must be two or more."""
    if isinstance(value := record.value(field), Mapping):
        fix = (
            "Write the log-probabilities as a list, list(x.values()), and the names of the options as another one,"
            " list(x); pass the field of the names as choices=."
        )
        raise record.wrong_type_error(field, value, fix)
    options = record.list_value(field)
    are_texts = bool(options) and all(
        isinstance(option, str) and not is_readable(option.strip(), "number") for option in options
    )
    if are_texts or len(options) < 2:
        raise InputError(
            "TO315",
            "A question must have at least two options." if len(options) < 2 else "Options must be log-probabilities.",
            (
                f"{options[0][:QUOTED_CHARACTERS]!r} in the field {field!r} in {record.location}"
                if are_texts
                else f"{len(options)} in the field {field!r} in {record.location}"
            ),
            (
                "This looks like generated text: pass its field as samples=."
                if are_texts
                else "Name the field that lists all options, or remove such questions."
            ),
        )
    return [_parse_log_prob(record, field, option) for option in options]


def _parse_log_prob(record: Record, field: str, option: Any) -> float:
    """Return a log-probability: a number, or the first item of a (nested) list, as in pairs with the greedy flag."""
    value = option
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if value is None:
        raise record.missing_field_error(field)
    log_prob = record.to_number(field, value)
    if not math.isfinite(log_prob) or log_prob > MAX_LOG_PROB_ROUNDING:
        fix = (
            "Take the logarithm of probabilities."
            if 0 < log_prob <= 1
            else "Read logits with trueodds.read(…, logits=)."
        )
        fix = fix if math.isfinite(log_prob) else "Give a finite number for every option."
        raise InputError(
            "TO316",
            "A log-probability must be a finite number of at most 0.",
            f"{log_prob} for {field!r} in {record.location}",
            fix,
        )
    return log_prob


def _correct_index(record: Record, field: str, choices_field: str | None, k: int) -> int:
    """Return the number of the correct option of a question with k options."""
    value = _single_value(record.value(field))
    names = None
    if choices_field is not None:
        names = _option_names(record, choices_field)
        if len(names) != k:
            got = f"{len(names)} names and {k} log-probabilities in {record.location}"
            raise InputError(
                "TO318", "Every option must have one name.", got, "Name the field that lists these options."
            )
    index: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        index = value
    elif isinstance(value, str) and names is not None:
        index = names.index(value.strip()) if names.count(value.strip()) == 1 else None
    elif isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value.strip()):
        index = int(value)
    if index is None or not 0 <= index < k:
        choices_hint = "Name the field that lists the options with choices=."
        if index is not None:
            is_name = isinstance(value, str)
            fix = f"Numbers count from 0.{f' If this is the name of an option: {choices_hint}' if is_name else ''}"
        else:
            fix = choices_hint if names is None else "It must name exactly one option."
        text = record.to_text(field, value)[:QUOTED_CHARACTERS]
        got = text if isinstance(value, int) else repr(text)
        raise InputError(
            "TO318", f"The answer must be one of the {k} options, 0 to {k - 1}, or its name.",
            f"{got} for {field!r} in {record.location}", fix,
        )  # fmt: skip
    return index


@dataclass(slots=True)
class _QuestionSamples:
    """The sampled answers of one question in order, with whether each is correct, or with the correct answer."""

    record: Record  # the first record of the question
    texts: list[str]  # the sampled answers
    is_correct: list[bool] | None
    correct_text: str | None


def sample_agreement(
    rows: list[Record],
    samples_field: str,
    correct_answer_field: str,
    grade_field: str | None,
    question_field: str | None,
) -> tuple[list[Record], Array, Array]:
    """Return a record of each question, the share of its most frequent answer, and whether that answer is correct.

    `samples_field` has one sampled answer or lists all of a question. `grade_field` says whether each is correct;
    without it samples are compared with the `correct_answer_field`. `question_field` identifies the question.

    >>> rows = [Record("a", 0, None, {"s": ["4", "5", "4 "], "y": 4})]
    >>> [x.tolist() for x in sample_agreement(rows, "s", "y", None, None)[1:]]
    [[0.6666666666666666], [True]]
    """
    has_lists = isinstance(rows[0].value(samples_field), list)
    if has_lists:
        samples_by_question = [
            _samples_of_record(record, samples_field, correct_answer_field, grade_field) for record in rows
        ]
    else:
        samples_by_question = _samples_by_question(
            rows, samples_field, correct_answer_field, grade_field, question_field
        )
    agreement, is_correct = np.empty(len(samples_by_question)), np.empty(len(samples_by_question), dtype=bool)
    for i, question_samples in enumerate(samples_by_question):
        if len(question_samples.texts) < 2:
            raise InputError(
                "TO315",
                "A question must have at least two samples; a single one always agrees with itself.",
                f"{len(question_samples.texts)} in {question_samples.record.location}",
                "Draw more samples, or remove such questions.",
            )
        # A Counter keeps the order of first occurrence, and max returns the first maximum.
        majority_text, count = max(Counter(question_samples.texts).items(), key=lambda pair: pair[1])
        agreement[i] = count / len(question_samples.texts)
        is_correct[i] = (
            question_samples.is_correct[question_samples.texts.index(majority_text)]
            if question_samples.is_correct is not None
            else majority_text == question_samples.correct_text
        )
    return [entry.record for entry in samples_by_question], agreement, is_correct


def _samples_of_record(
    record: Record, samples_field: str, correct_answer_field: str, grade_field: str | None
) -> _QuestionSamples:
    """Return the samples of a question whose record lists them all."""
    values = record.list_value(samples_field)
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
    rows: list[Record],
    samples_field: str,
    correct_answer_field: str,
    grade_field: str | None,
    question_field: str | None,
) -> list[_QuestionSamples]:
    """Return the samples of each question, from records of one sample each."""
    if question_field is None:
        received = f"one {type(rows[0].value(samples_field)).__name__} in {rows[0].location}"
        fix = "Pass the field that identifies the question as question=, or a field that lists the samples."
        raise InputError(
            "TO205", "With one sample per record, the question of each sample must be known.", received, fix
        )
    samples_by_question: dict[str, _QuestionSamples] = {}
    for record in rows:
        text = _answer_text(record, samples_field, record.value(samples_field))
        truth = (
            None
            if grade_field is not None
            else _answer_text(record, correct_answer_field, record.value(correct_answer_field))
        )
        question_samples = samples_by_question.setdefault(
            field_as_name(record, question_field),
            _QuestionSamples(record, [], None if grade_field is None else [], truth),
        )
        if truth != question_samples.correct_text:
            got = (
                f"{truth!r} in {record.location}, after {question_samples.correct_text!r} in row"
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

"""Confidence of a language model: the softmax of log-probabilities of options, or the agreement of samples."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.conversion import QUOTED_CHARACTERS, is_readable
from trueodds.io.questions import question_name
from trueodds.io.records import Record

MAX_LOG_PROB_ROUNDING = 1e-3  # how far above 0 a sum of low-precision log-probabilities may be by rounding


def predictions_from_options(
    rows: list[Record],
    options_field: str,
    correct_answer_field: str,
    choices_field: str | None,
    extras: Mapping[str, Any],
) -> tuple[Predictions, list[Note]]:
    """Return the predictions of records with the log-probabilities of their options, and the notes on these.

    If all questions have the same number of options, the predictions are vectors of probabilities; otherwise only the
    confidence in the most likely option is kept. For the fields see `read_option_log_probs`; `extras` are the subgroups
    and clusters of the rows, as arguments of `Predictions`.
    """
    log_probs_by_question, labels = read_option_log_probs(rows, options_field, correct_answer_field, choices_field)
    notes = option_number_notes(rows, correct_answer_field, choices_field, log_probs_by_question, labels)
    option_counts = {len(log_probs) for log_probs in log_probs_by_question}
    if len(option_counts) == 1:
        names = None if choices_field is None else shared_option_names(rows, choices_field)
        y = labels if names is None else np.array(names)[labels]
        return Predictions.from_logits(y, np.array(log_probs_by_question), classes=names, **extras), notes
    text = (
        f"Questions have {min(option_counts)} to {max(option_counts)} options, so only the confidence in the most"
        " likely one and its correctness are kept."
    )
    preds = Predictions.from_confidence(*top_option_confidence(log_probs_by_question, labels), **extras)
    return preds, [*notes, Note("TN145", text)]


def read_option_log_probs(
    rows: list[Record], options_field: str, correct_answer_field: str, choices_field: str | None
) -> tuple[list[list[float]], list[int]]:
    """Return the log-probabilities of each question's options, and the index of the correct one.

    >>> read_option_log_probs([Record("a", 0, None, {"z": [["-0.1", "True"], [-3, False]], "y": "0"})], "z", "y", None)
    ([[-0.1, -3.0]], [0])
    """
    log_probs_by_question = [option_log_probs(row, options_field) for row in rows]
    labels = [
        _correct_index(row, correct_answer_field, choices_field, len(log_probs))
        for row, log_probs in zip(rows, log_probs_by_question, strict=True)
    ]
    return log_probs_by_question, labels


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
    """Return notes on correct answers that were read as the number of an option, counted from 0.

    TN170: the numbers are texts, which may be names. TN180: no correct answer is option 0, as if they counted from 1.
    """
    values = [_single_value(row.value(correct_answer_field)) for row in rows]
    texts = [value for value in values if isinstance(value, str)]
    notes: list[Note] = []
    if texts and choices_field is None:
        text = (
            f"The correct answer is a text such as {texts[0].strip()!r}; it was read as the number of an option,"
            " counted from 0."
        )
        notes.append(Note("TN170", text))
    has_names = bool(texts) and choices_field is not None
    # With correct options in random order, 0 would be missing in fewer than one of a thousand files.
    prob_of_no_zero = math.prod(1 - 1 / len(log_probs) for log_probs in log_probs_by_question)
    if not has_names and 0 not in labels and prob_of_no_zero < 0.001:
        text = (
            f"None of {len(rows):,} questions has option 0 as the correct one. Options are counted from 0: does"
            f" {correct_answer_field!r} count from 1?"
        )
        notes.append(Note("TN180", text))
    return notes


def shared_option_names(rows: list[Record], choices_field: str) -> tuple[str, ...] | None:
    first_names = _option_names(rows[0], choices_field)
    all_same = len(set(first_names)) == len(first_names) and all(
        _option_names(row, choices_field) == first_names for row in rows
    )
    return tuple(first_names) if all_same else None


def _option_names(record: Record, choices_field: str) -> list[str]:
    return [record.to_name(choices_field, choice).strip() for choice in record.list_value(choices_field)]


def _single_value(value: Any) -> Any:
    """Return the item of a list of one item, and any other value as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def option_log_probs(record: Record, field: str) -> list[float]:
    """Return the log-probabilities of the options in a record, of which there must be two or more."""
    if isinstance(value := record.value(field, is_confidence=True), Mapping):
        fix = (
            "Write the log-probabilities as a list, list(x.values()), and the names of the options as another one,"
            " list(x); pass the field of the names as ⟨choices=⟩."
        )
        raise record.wrong_type_error(field, value, fix)
    options = record.list_value(field, is_confidence=True)
    are_texts = bool(options) and all(
        isinstance(option, str) and not is_readable(option.strip(), "number") for option in options
    )
    if are_texts or len(options) < 2:
        is_too_short = len(options) < 2
        problem = "A question must have at least two options." if is_too_short else "Options must be log-probabilities."
        shown, fix = f"{len(options)}", "Name the field that lists all options, or remove such questions."
        if are_texts:
            shown = f"{options[0][:QUOTED_CHARACTERS]!r}"
            fix = "This looks like generated text: pass its field as ⟨samples=⟩."
        raise InputError("TO315", problem, f"{shown} in the field {field!r} in {record.location}", fix)
    return [_parse_log_prob(record, field, option) for option in options]


def _parse_log_prob(record: Record, field: str, option: Any) -> float:
    """Return the log-probability of an option: a number, or the first item of a (nested) list.

    lm-evaluation-harness writes pairs of the log-probability and whether greedy decoding would choose the option.
    """
    value = option
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    if value is None:
        raise record.missing_field_error(field)
    log_prob = record.to_number(field, value)
    if math.isfinite(log_prob) and log_prob <= MAX_LOG_PROB_ROUNDING:
        return log_prob
    if not math.isfinite(log_prob):
        fix = "Give a finite number for every option."
    elif log_prob <= 1:
        fix = "Take the logarithm of probabilities."
    else:
        fix = "⟨Read logits with trueodds.read(…, logits=)⟩."
    raise InputError(
        "TO316",
        "A log-probability must be a finite number of at most 0.",
        f"{log_prob} for {field!r} in {record.location}",
        fix,
    )


def _correct_index(record: Record, field: str, choices_field: str | None, k: int) -> int:
    """Return the number, from 0, of the correct option of a question with k options.

    A whole number is this number; a text is the name of an option if there are names, else a number too.
    """
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
    if index is not None and 0 <= index < k:
        return index
    choices_hint = "Name the field that lists the options with ⟨choices=⟩."
    if index is not None:
        fix = "Numbers count from 0."
        fix += f" If this is the name of an option: {choices_hint}" if isinstance(value, str) else ""
    else:
        fix = choices_hint if names is None else "It must name exactly one option."
    text = record.to_text(field, value)[:QUOTED_CHARACTERS]
    shown = text if isinstance(value, int) else repr(text)
    raise InputError(
        "TO318",
        f"The answer must be one of the {k} options, 0 to {k - 1}, or its name.",
        f"{shown} for {field!r} in {record.location}",
        fix,
    )


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

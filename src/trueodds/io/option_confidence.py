"""Predictions from multiple-choice answers of a language model: the softmax of the log-probabilities of the options."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.conversion import QUOTED_CHARACTERS, is_readable
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

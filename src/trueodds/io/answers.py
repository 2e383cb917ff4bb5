"""Read a language model's answers with confidence, correctness and abstentions as Predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_coverage
from trueodds.core.results import Result
from trueodds.core.signatures import checks_arguments
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.answer_confidence import (
    option_number_notes,
    read_option_log_probs,
    sample_agreement,
    shared_option_names,
    top_option_confidence,
)
from trueodds.io.records import Record, count_questions, field_as_name, iterate_records, question_clusters, question_ids
from trueodds.lenses.selective_risk import SelectiveRisk, selective_risk


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Result):
    """Answers of a language model as predictions, with the number of questions and abstentions.

    Attributes
    ----------
    predictions : Predictions
        The answers, with the notes.
    n_queries : int
        Number of rows, or of questions if several samples make one answer.
    abstained : int
        Number of rows or questions without an answer.
    notes : tuple of Note
        Facts about the answers.
    questions : int or None
        Number of different questions, if a question was asked several times.
    ids : array (n,) or None
        The question of each answer.
    """

    predictions: Predictions
    n_queries: int  # rows, or questions where several samples make one answer
    abstained: int
    notes: tuple[Note, ...]
    questions: int | None = None  # where a question was asked several times, how many there are
    ids: Array | None = None  # (n,) the question of each answer, as the records have it

    @property
    def coverage(self) -> float:
        """The share of the questions that were answered."""
        return (self.n_queries - self.abstained) / self.n_queries

    def selective_risk(
        self,
        *,
        at: Sequence[float] = (),
        resamples: int = 2000,
        level: float = 0.95,
        rng: int | np.random.Generator = 0,
    ) -> SelectiveRisk:
        """Compute the error rate of the answers with at least each confidence, as a function of coverage.

        Parameters
        ----------
        at : sequence of float, default=()
            Coverages at which the risk is reported.
        resamples : int, default=2000
            Number of bootstrap resamples.
        level : float, default=0.95
            Confidence level.
        rng : int or numpy.random.Generator, default=0
            Seed or random generator.

        Returns
        -------
        SelectiveRisk
            The curve. Abstentions count in the coverage.
        """
        return selective_risk(
            self.predictions, n_queries=self.n_queries, at=at, resamples=resamples, level=level, rng=rng
        )

    def describe(self) -> str:
        """Describe the number of answers, abstentions and the coverage in one line.

        Returns
        -------
        str
            The line.
        """
        question_text = "" if self.questions is None else f" of {self.questions:,} questions"
        return (
            f"{self.predictions!r} · {self.n_queries:,} queries{question_text}, {self.abstained:,} abstained, coverage"
            f" {format_coverage(self.n_queries - self.abstained, self.n_queries)}"
        )


@checks_arguments
def read_answers(
    data: Any,
    *,
    options: str | None = None,
    answer: str = "label",
    choices: str | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    percent: bool = False,
    samples: str | None = None,
    question: str | None = None,
    abstained: str | None = None,
    group: str | Sequence[str] | None = None,
) -> Answers:
    """Read the answers of a language model from the records of an evaluation.

    Exactly one of `options`, `confidence` and `samples` names the field from which the confidence is computed. A field
    inside another one is named with a dot, as in ``doc.answer``.

    Parameters
    ----------
    data : path, pattern, list of paths, or list of dicts
        Files of type .jsonl or .ndjson with one record per line; .json with a list of records or a mapping from
        question to record (the key becomes the field `id`); or a table with one record per row. All records are held in
        memory.
    options : str, optional
        Field with a list of log-probabilities, one per option (alone, or first in a pair as lm-evaluation-harness
        writes them). It is the default, as ``options="logprobs"``.
    answer : str, default="label"
        Field of the correct answer: the number of an option from 0, its name if `choices` lists names, or a text.
    choices : str, optional
        Field that lists the names of the options. See Notes.
    confidence : str, optional
        Field of the stated confidence, used with `correct`; between 0 and 1, or between 0 and 100 with
        ``percent=True``.
    correct : str, optional
        Field that says whether the answer was correct: true or false, 1 or 0, yes or no. With `confidence` the default
        is ``"correct"``.
    percent : bool, default=False
        Whether a confidence of 70 means 70 %. Then 0.9 means 0.9 %; note TN148 reports such values beside larger ones.
    samples : str, optional
        Field of several answers to one question: a list in its record, or one answer per record with `question`.
    question : str, optional
        Field that identifies the question. Several rows of one question form a cluster because they are not
        independent.
    abstained : str, optional
        Field that says yes if no answer was given, or the field of the confidence itself (that of `options` or
        `samples`), which is then empty if no answer was given. These rows are counted and otherwise ignored. If they
        have a confidence nevertheless, note TN169 reports it.
    group : str or sequence of str, optional
        Fields of subgroups, such as the subject.

    Returns
    -------
    Answers
        The predictions, the number of questions asked and abstained, the coverage and notes.

    Raises
    ------
    InputError
        TO302, TO303, TO311 for files; TO304, TO307, TO308 for fields; TO116 for a value that is not yes or no; TO315
        for a question with one option or one sample; TO316 for an invalid log-probability; TO317 for a confidence
        outside its scale; TO318 for an answer that is not an option; TO319 if every row abstains; each with its row.
        TO205 for settings that exclude each other.

    See Also
    --------
    read : Read predictions from files, a data frame or arrays.

    Notes
    -----
    The confidence of `options` is the softmax over the options of the question. If all questions have the same number
    of options, the predictions are vectors of probabilities. Otherwise only the confidence in the most likely option
    (the first if several are equal) and its correctness are kept, and note TN145 reports it.

    The confidence of `samples` is the share of the most frequent answer, the first if several are equally frequent.
    Answers are equal if their texts are equal, ignoring surrounding blanks. The answer is correct if it equals `answer`
    or, with `correct`, if the first sample that gave it was correct.

    Only with `choices` is a text looked up among the names of the options. A whole number is always a position. Without
    `choices` so is a text such as "1", counted from 0 (notes TN170, TN180). If the names are the same for every
    question, they become the names of the classes.

    Examples
    --------
    >>> from trueodds import read_answers
    >>> answer_set = read_answers([{"confidence": 85, "correct": "yes"}, {"confidence": 60, "correct": "no"}],
    ...                 confidence="confidence", percent=True)
    >>> answer_set.predictions.p.tolist(), answer_set.predictions.y.tolist()
    ([0.85, 0.6], [1, 0])
    """
    _check_compatible_settings(options, confidence, samples, correct, choices, percent)
    notes: list[Note] = []
    groups = [group] if isinstance(group, str) else list(group or ())
    rows = list(iterate_records(data))
    if not rows:
        raise InputError("TO312", "There are no records.", "0 rows", "Write one JSON object per question.")
    source = rows[0].source
    confidence_field = samples or confidence or options or "logprobs"
    is_abstention = [_abstains(row, abstained, confidence_field) for row in rows]
    if abstained == confidence_field and all(is_abstention):
        rows[0].value(confidence_field)  # refused: no row has that field, or all leave it empty
    answered_rows = [row for row, abstains in zip(rows, is_abstention, strict=True) if not abstains]
    n_queries, n_abstained = len(rows), len(rows) - len(answered_rows)
    notes += _abstention_notes(rows, is_abstention, confidence_field)
    if answered_rows and samples is not None:
        question_records, agreement, is_correct = sample_agreement(answered_rows, samples, answer, correct, question)
        if len(question_records) < len(answered_rows):  # one record per sample: questions are what was asked
            assert question is not None
            answered = {field_as_name(row, question) for row in answered_rows}
            n_queries = len({field_as_name(row, question) for row in rows})
            n_abstained = n_queries - len(answered)
        answered_rows = question_records
    if not answered_rows:
        fix = "Calibration needs at least one answer."
        raise InputError("TO319", "Every row abstains.", f"{len(rows):,} rows of {source}", fix)
    ids = question_ids(answered_rows, question)
    extras: dict[str, Any] = {
        "group": {name: np.array([field_as_name(row, name) for row in answered_rows]) for name in groups} or None,
        "cluster": question_clusters(ids),
    }
    if samples is not None:
        preds = Predictions.from_confidence(agreement, is_correct, **extras)
    elif confidence is not None:
        preds, confidence_notes = _predict_from_confidence(
            answered_rows, confidence, correct or "correct", percent, extras
        )
        notes += confidence_notes
    else:
        preds, option_notes = _predict_from_options(answered_rows, options or "logprobs", answer, choices, extras)
        notes += option_notes
    questions = count_questions(rows, n_queries, question)
    if n_abstained:
        notes.append(_coverage_note(n_queries, n_abstained, questions))
    return Answers(
        preds.with_notes(*notes) if notes else preds,
        n_queries,
        n_abstained,
        tuple(notes),
        questions,
        ids,
    )


def _predict_from_confidence(
    rows: list[Record], confidence: str, correct: str, percent: bool, extras: Mapping[str, Any]
) -> tuple[Predictions, list[Note]]:
    """Return the predictions of records with a stated confidence, and notes on percentages that look like fractions.

    `extras` are the subgroups and clusters of the rows.
    """
    stated = np.array([_read_stated_confidence(row, confidence, percent) for row in rows])
    notes = []
    if percent and stated.max() <= 0.01:
        text = (
            f"No confidence is above 1 %; the largest is {stated.max():.2%}: are they fractions instead of percentages?"
        )
        notes.append(Note("TN147", text))
    elif percent:
        notes += _mixed_scale_notes(rows, confidence, stated)
    return Predictions.from_confidence(stated, [row.is_true(correct) for row in rows], **extras), notes


def _mixed_scale_notes(rows: list[Record], confidence: str, stated: Array) -> list[Note]:
    """Return the note on percentages of at most 1 beside larger ones, which may be fractions.

    A text with a percent sign, such as 0.5%, is none.
    """
    doubtful = [
        row for row, share in zip(rows, stated, strict=True)
        if 0 < share <= 0.01 and not str(row.value(confidence)).strip().endswith("%")
    ]  # fmt: skip
    if not doubtful:
        return []
    value = str(doubtful[0].value(confidence)).strip()
    count = "1 confidence is" if len(doubtful) == 1 else f"{len(doubtful):,} confidences are"
    text = (
        f"{count} above 0 and at most 1, beside values up to {100 * stated.max():.4g}; the first is {value} in"
        f" {doubtful[0].location}, which was read as {value} %. Does the field mix fractions and percentages?"
    )
    return [Note("TN148", text)]


def _predict_from_options(
    rows: list[Record], options: str, answer: str, choices: str | None, extras: Mapping[str, Any]
) -> tuple[Predictions, list[Note]]:
    """Return the predictions of records with the log-probabilities of their options, and the notes on these.

    Vectors of probabilities if all questions have the same number of options, otherwise the confidence in the most
    likely one. `extras` are the subgroups and clusters of the rows.
    """
    log_probs_by_question, labels = read_option_log_probs(rows, options, answer, choices)
    notes = option_number_notes(rows, answer, choices, log_probs_by_question, labels)
    option_counts = {len(score) for score in log_probs_by_question}
    if len(option_counts) == 1:
        names = None if choices is None else shared_option_names(rows, choices)
        y = labels if names is None else np.array(names)[labels]
        return Predictions.from_logits(y, np.array(log_probs_by_question), classes=names, **extras), notes
    text = (
        f"Questions have {min(option_counts)} to {max(option_counts)} options, so only the confidence in the most"
        " likely one and its correctness are kept."
    )
    preds = Predictions.from_confidence(*top_option_confidence(log_probs_by_question, labels), **extras)
    return preds, [*notes, Note("TN145", text)]


def _coverage_note(n_queries: int, n_abstained: int, questions: int | None) -> Note:
    """Return the note on queries without an answer; `questions` is None if every query is a question of its own."""
    coverage = f"(coverage {format_coverage(n_queries - n_abstained, n_queries)})"
    if questions is None:
        text = (
            f"{n_abstained:,} of {n_queries:,} questions have no answer {coverage}; all results are for those that"
            " have one."
        )
    else:
        text = (
            f"{n_abstained:,} of {n_queries:,} answers to {questions:,} questions are missing {coverage}; all"
            " results are for the others."
        )
    return Note("TN146", text)


def _check_compatible_settings(
    options: str | None,
    confidence: str | None,
    samples: str | None,
    correct: str | None,
    choices: str | None,
    percent: bool,
) -> None:
    """Raise an error for settings that exclude each other."""
    named = {"options": options, "confidence": confidence, "samples": samples}
    kinds = [name for name, field in named.items() if field is not None] or ["options"]
    if len(kinds) > 1:
        raise InputError(
            "TO205", "Exactly one field must hold the confidence.", " and ".join(kinds), "Read them separately."
        )
    compatible_kinds = {"percent": (percent, ("confidence",)), "correct": (correct, ("confidence", "samples")),
             "choices": (choices, ("options",))}  # fmt: skip
    for name, (value, kind) in compatible_kinds.items():
        if value and kinds[0] not in kind:
            raise InputError(
                "TO205", f"{name} goes with {' or '.join(kind)}.", f"{name} with {kinds[0]}", "Leave it out."
            )


def _abstains(record: Record, abstained: str | None, confidence_field: str) -> bool:
    """Return whether no answer was given: `abstained` says yes, or it is the field of the confidence and is empty."""
    if abstained is None:
        return False
    return not record.has_field(confidence_field) if abstained == confidence_field else record.is_true(abstained)


def _abstention_notes(rows: list[Record], is_abstention: list[bool], confidence_field: str) -> list[Note]:
    """Return the note on rows that abstain but have a confidence."""
    ignored_rows = [
        row for row, abstains in zip(rows, is_abstention, strict=True) if abstains and row.has_field(confidence_field)
    ]
    if not ignored_rows:
        return []
    subject = "1 row that abstains has" if len(ignored_rows) == 1 else f"{len(ignored_rows):,} rows that abstain have"
    text = f"{subject} a value of {confidence_field!r}, which was ignored; the first is {ignored_rows[0].location}."
    return [Note("TN169", text)]


def _read_stated_confidence(record: Record, field: str, percent: bool) -> float:
    """Return the stated confidence of a record as a fraction."""
    value = record.value(field)
    if isinstance(value, str) and value.strip().endswith("%"):
        if not percent:
            raise record.wrong_type_error(field, value, "Pass percent=True, which reads both 70 and 70%.")
        value = value.strip().removesuffix("%")
    confidence, upper_bound = record.to_number(field, value), 100 if percent else 1
    if not 0 <= confidence <= upper_bound:
        fix = (
            "Correct the row; values are never clipped."
            if percent or not 1 < confidence <= 100
            else "Pass percent=True if 70 means 70 %."
        )
        raise InputError(
            "TO317",
            f"A confidence lies outside 0 to {upper_bound}.",
            f"{value} for {field!r} in {record.location}",
            fix,
        )
    return confidence / upper_bound

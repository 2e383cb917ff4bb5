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
from trueodds.io.abstentions import (
    coverage_notes,
    describe_missing_confidence,
    find_abstentions,
    ignored_confidence_notes,
)
from trueodds.io.option_confidence import (
    option_number_notes,
    read_option_log_probs,
    shared_option_names,
    top_option_confidence,
)
from trueodds.io.questions import (
    FILE_FIELD,
    add_file_names,
    answer_ids,
    count_questions,
    question_clusters,
    question_ids,
    question_name,
    question_names,
    shared_question_notes,
)
from trueodds.io.records import Record, field_as_name, iterate_records
from trueodds.io.sample_agreement import has_sample_lists, sample_agreement, single_samples
from trueodds.io.stated_confidence import read_stated_confidences
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
        The question of each answer. `predictions.row_id` also has its number if a question has several rows.
    without_confidence : int
        Number of rows or questions with an answer but without a usable confidence: `abstained` names the empty field of
        the confidence besides another field, or a single sample is left. They are not among the predictions.
    """

    predictions: Predictions
    n_queries: int  # rows, or questions where several samples make one answer
    abstained: int
    notes: tuple[Note, ...]
    questions: int | None = None  # where a question was asked several times, how many there are
    ids: Array | None = None  # (n,) the question of each answer, as the records have it
    without_confidence: int = 0  # rows or questions with an answer that has no usable confidence

    @property
    def coverage(self) -> float:
        """The share of the questions that have an answer with a confidence."""
        return self.n_evaluated / self.n_queries

    @property
    def n_evaluated(self) -> int:
        """Number of rows, or of questions, with an answer that has a confidence."""
        return self.n_queries - self.abstained - self.without_confidence

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
            The curve. Abstentions, and answers without a confidence, count in the coverage as not answered.
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
        without_text = f", {self.without_confidence:,} without confidence" if self.without_confidence else ""
        question_text = "" if self.questions is None else f" of {self.questions:,} questions"
        return (
            f"{self.predictions!r} · {self.n_queries:,} queries{question_text}, {self.abstained:,}"
            f" abstained{without_text}, coverage {format_coverage(self.n_evaluated, self.n_queries)}"
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
    question: str | Sequence[str] | None = None,
    abstained: str | Sequence[str] | None = None,
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
        Whether a confidence of 70 means 70 %. Then 0.9 means 0.9 %; note TN148 reports such values beside larger ones,
        and they are an error beside texts with a percent sign.
    samples : str, optional
        Field of several answers to one question: a list in its record, or one answer per record with `question`.
    question : str or sequence of str, optional
        Field that identifies the question, or several that identify it together. Several rows of one question form a
        cluster because they are not independent, and `compare` pairs the answers of two models by it. The field
        ``"file"`` is the name of the file, if the records have no such field.
    abstained : str or sequence of str, optional
        Field that says yes if no answer was given, or the field of the confidence itself (that of `options` or
        `samples`), which is then empty (null, NaN or an empty text) if no answer was given. These rows are counted and
        otherwise ignored. If they have a confidence nevertheless, note TN169 reports it. With both kinds of fields,
        rows with an empty confidence that do not say yes are counted as answers without a confidence (note TN183).
    group : str or sequence of str, optional
        Fields of subgroups, such as the subject, or ``"file"``.

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
    It refers to the samples that are an answer: with one record per sample, those that abstain are left out, and note
    TN182 reports how many samples the questions have. Answers are equal if their texts are equal, ignoring surrounding
    blanks. The answer is correct if it equals `answer` or, with `correct`, if the first sample that gave it was
    correct.

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
    groups = [group] if isinstance(group, str) else list(group or ())
    question_fields = (question,) if isinstance(question, str) else tuple(question or ())
    abstained_fields = (abstained,) if isinstance(abstained, str) else tuple(abstained or ())
    rows = list(iterate_records(data))
    if not rows:
        raise InputError("TO312", "There are no records.", "0 rows", "Write one JSON object per question.")
    source = rows[0].source
    if FILE_FIELD in (*groups, *question_fields):
        rows = add_file_names(rows, data)
    confidence_field = samples or confidence or options or "logprobs"
    correct = correct or ("correct" if confidence is not None else None)
    abstentions = find_abstentions(rows, abstained_fields, confidence_field)
    if abstained_fields == (confidence_field,) and all(abstentions.abstains):
        rows[0].value(confidence_field)  # refused: no row has that field, or all leave it empty
    is_answered = abstentions.is_answered
    answered_rows = [row for row, answered in zip(rows, is_answered, strict=True) if answered]
    names = question_names(rows, is_answered, question_fields) if question_fields else []
    answered_names = [name for name, answered in zip(names, is_answered, strict=False) if answered and name is not None]
    n_queries, n_abstained, n_without = len(rows), sum(abstentions.abstains), sum(abstentions.lacks_confidence)
    notes = ignored_confidence_notes(rows, abstentions.abstains, confidence_field)
    reason = describe_missing_confidence(rows, abstentions.lacks_confidence, correct)
    has_one_sample_per_row = (
        bool(answered_rows) and samples is not None and not has_sample_lists(answered_rows, samples)
    )
    if has_one_sample_per_row and question_fields:  # questions are what was asked
        n_queries = len(set(names) - {None})
        n_abstained = n_queries - len(set(answered_names))
        single = single_samples(names, answered_names)
        n_without, reason = (
            len(single),
            "questions have a single sample left, which always agrees with itself",
        )
        answered_rows = [row for row, name in zip(answered_rows, answered_names, strict=True) if name not in single]
    if not answered_rows:
        problem = "No answer has a confidence." if n_without else "Every row abstains."
        raise InputError("TO319", problem, f"{len(rows):,} rows of {source}", "Calibration needs at least one answer.")
    if samples is not None:
        agreement = sample_agreement(answered_rows, samples, answer, correct, question_fields)
        answered_rows = agreement.records
        notes += agreement.size_notes(sum(abstentions.abstains) if has_one_sample_per_row else 0, len(rows))
        answered_names = [question_name(row, question_fields) for row in answered_rows] if question_fields else []
    ids = question_ids(answered_rows, answered_names, question_fields) if question_fields else None
    extras: dict[str, Any] = {
        "group": {name: np.array([field_as_name(row, name) for row in answered_rows]) for name in groups} or None,
        "cluster": question_clusters(ids),
    }
    if samples is not None:
        preds = Predictions.from_confidence(agreement.confidence, agreement.is_correct, **extras)
    elif confidence is not None:
        stated, confidence_notes = read_stated_confidences(answered_rows, confidence, percent)
        assert correct is not None
        preds = Predictions.from_confidence(stated, [row.is_true(correct) for row in answered_rows], **extras)
        notes += confidence_notes
    else:
        preds, option_notes = _predict_from_options(answered_rows, options or "logprobs", answer, choices, extras)
        notes += option_notes
    notes += shared_question_notes(rows, names, question_fields)
    questions = count_questions(names, n_queries)
    notes += coverage_notes(n_queries, n_abstained, n_without, questions, reason)
    if ids is not None:
        preds = preds.with_row_id(ids if has_one_sample_per_row else answer_ids(names, is_answered))
    return Answers(
        preds.with_notes(*notes) if notes else preds, n_queries, n_abstained, tuple(notes), questions, ids, n_without
    )


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

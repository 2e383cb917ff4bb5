"""Read a language model's answers with confidence, correctness and abstentions as Predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_coverage
from trueodds.core.results import Result
from trueodds.core.signatures import checks_arguments
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.answer_confidence import (
    has_sample_lists,
    predictions_from_options,
    sample_agreement,
    single_samples,
)
from trueodds.io.csv_format import CsvSettings
from trueodds.io.questions import (
    FILE_FIELD,
    add_file_names,
    answer_ids,
    count_questions,
    coverage_notes,
    describe_missing_confidence,
    find_abstentions,
    ignored_confidence_notes,
    question_clusters,
    question_ids,
    question_name,
    question_names,
    shared_question_notes,
)
from trueodds.io.records import read_records
from trueodds.io.stated_confidence import read_stated_confidences
from trueodds.lenses.selective_risk import SelectiveRisk, selective_risk

if TYPE_CHECKING:
    from trueodds.lenses.risk_threshold import RiskThreshold


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Result):
    """Answers of a language model as predictions, with the number of questions and abstentions.

    Attributes
    ----------
    predictions : Predictions
        The answers, with the notes.
    n_queries : int
        Number of rows; of questions if each answer is the most frequent one of several samples.
    abstained : int
        Number of these rows or questions without an answer.
    notes : tuple of Note
        Facts about the answers.
    questions : int or None
        Number of different questions, if at least one was asked several times.
    ids : array (n,) or None
        The question of each answer. If a question has several rows, `predictions.row_id` also numbers its answers.
    without_confidence : int
        Number of rows or questions with an answer but without a usable confidence, which are not among the predictions:
        the field of the confidence is empty, or only one sample is left.
    """

    predictions: Predictions
    n_queries: int
    abstained: int
    notes: tuple[Note, ...]
    questions: int | None = None
    ids: Array | None = None
    without_confidence: int = 0

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
            The curve. Abstentions, and answers without a confidence, count in the coverage as not answered. A coverage
            of `at` can lie inside a tie; `operating_point` gives a threshold with its own coverage and risk.
        """
        return selective_risk(
            self.predictions, n_queries=self.n_queries, at=at, resamples=resamples, level=level, rng=rng
        )

    def threshold(self, *, max_risk: float = 0.05, level: float = 0.95) -> RiskThreshold:
        r"""Find the confidence from which on answers are wrong in at most a given share, with a confidence statement.

        The rule is to answer if the confidence is at least the threshold λ. Of the thresholds whose risk
        :math:`P(\mathrm{wrong} \mid \mathrm{confidence} \ge \lambda)` was shown to be at most `max_risk`, the
        result is the one with the largest coverage.

        Parameters
        ----------
        max_risk : float, default=0.05
            The largest acceptable risk, between 0 and 1.
        level : float, default=0.95
            Confidence level, between 0.5 and 1: in at most a share 1 − `level` of data sets, the risk of the threshold
            is larger than `max_risk`.

        Returns
        -------
        RiskThreshold
            The threshold, or None in its place if no threshold meets the target, with its coverage of all questions and
            its observed risk.

        Raises
        ------
        InputError
            TO203 for a setting out of range.

        Notes
        -----
        The statement holds although the threshold is chosen on the same rows: up to 200 thresholds are tested with
        exact binomial p-values, which are adjusted for the choice [1]_ by the fallback procedure [2]_. It holds for
        new questions of the same kind, not for another kind. Several rows of one question count as their effective
        number of independent rows, for which the statement is approximate.

        References
        ----------
        .. [1] Angelopoulos, Bates, Candès, Jordan & Lei (2021). Learn then test.
        .. [2] Wiens & Dmitrienko (2005). The fallback procedure for evaluating a single family of hypotheses.

        Examples
        --------
        >>> from trueodds import read_answers
        >>> rows = [{"c": 0.9, "correct": i % 100 > 0} for i in range(200)]
        >>> rows += [{"c": 0.6, "correct": i % 2 > 0} for i in range(200)]
        >>> print(read_answers(rows, confidence="c").threshold(max_risk=0.05))
        confidence ≥ 0.9 answers 50%, observed risk 0.01 · risk ≤ 0.05 with 95% confidence
        """
        from trueodds.lenses.risk_threshold import find_threshold

        return find_threshold(self.predictions, max_risk=max_risk, level=level, n_queries=self.n_queries)

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
    separator: str | None = None,
    decimal: str | None = None,
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
    separator : str, optional
        Character between the columns of a .csv or .txt file, as in `read`.
    decimal : {".", ","}, optional
        Decimal mark of the numbers in such a file, as in `read`.

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
    blanks. The answer is correct if it equals `answer` or, with `correct`, if more than half of the samples that gave
    it were correct (note TN184).

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
    group_fields, question_fields, abstained_fields = _as_tuple(group), _as_tuple(question), _as_tuple(abstained)
    confidence_field = samples or confidence or options or "logprobs"
    correct = correct or ("correct" if confidence is not None else None)
    rows = read_records(data, CsvSettings(separator, decimal))
    if FILE_FIELD in (*group_fields, *question_fields):
        rows = add_file_names(rows, data)

    # Which rows have an answer with a confidence, and the questions of all rows and of these.
    abstentions = find_abstentions(rows, abstained_fields, confidence_field)
    if abstained_fields == (confidence_field,) and all(abstentions.abstains):
        rows[0].value(confidence_field)  # raises an error: no row has that field, or it is empty in all of them
    is_answered = abstentions.is_answered
    answered_rows = [row for row, answered in zip(rows, is_answered, strict=True) if answered]
    names = question_names(rows, is_answered, question_fields) if question_fields else []
    answered_names = [name for name, answered in zip(names, is_answered, strict=False) if answered and name is not None]
    notes = ignored_confidence_notes(rows, abstentions.abstains, confidence_field)

    # The counts: of rows, or of questions if each row is one of several samples.
    n_queries, n_abstained, n_without = len(rows), sum(abstentions.abstains), sum(abstentions.lacks_confidence)
    reason_without = describe_missing_confidence(rows, abstentions.lacks_confidence, correct)
    has_sample_rows = bool(answered_rows) and samples is not None and not has_sample_lists(answered_rows, samples)
    if has_sample_rows and question_fields:
        single_sample_questions = single_samples(names, answered_names)
        n_queries = len(set(names) - {None})
        n_abstained = n_queries - len(set(answered_names))
        n_without = len(single_sample_questions)
        reason_without = "questions have a single sample left, which always agrees with itself"
        answered_rows = [
            row for row, name in zip(answered_rows, answered_names, strict=True) if name not in single_sample_questions
        ]
    if not answered_rows:
        problem, got = "No answer has a confidence." if n_without else "Every row abstains.", f"{len(rows):,} rows of"
        raise InputError("TO319", problem, f"{got} {rows[0].source}", "Calibration needs at least one answer.")

    # Several samples make one answer, of which `agreement.records` has the first record.
    agreement = None
    if samples is not None:
        agreement = sample_agreement(answered_rows, samples, answer, correct, question_fields)
        answered_rows = agreement.records
        notes += agreement.grade_notes()
        notes += agreement.size_notes(sum(abstentions.abstains) if has_sample_rows else 0, len(rows))
        answered_names = [question_name(row, question_fields) for row in answered_rows] if question_fields else []

    # The predictions.
    ids = question_ids(answered_rows, answered_names, question_fields) if question_fields else None
    extras: dict[str, Any] = {
        "group": {field: np.array([row.name_value(field) for row in answered_rows]) for field in group_fields} or None,
        "cluster": question_clusters(ids),
    }
    if agreement is not None:
        preds = Predictions.from_confidence(agreement.confidence, agreement.is_correct, **extras)
    elif confidence is not None:
        stated, confidence_notes = read_stated_confidences(answered_rows, confidence, percent)
        assert correct is not None
        preds = Predictions.from_confidence(stated, [row.is_true(correct) for row in answered_rows], **extras)
        notes += confidence_notes
    else:
        preds, option_notes = predictions_from_options(answered_rows, confidence_field, answer, choices, extras)
        notes += option_notes
    notes += shared_question_notes(rows, names, question_fields)
    questions = count_questions(names, n_queries)
    notes += coverage_notes(n_queries, n_abstained, n_without, questions, reason_without)
    if ids is not None:
        preds = preds.with_row_id(ids if has_sample_rows else answer_ids(names, is_answered))
    preds = preds.with_notes(*notes) if notes else preds
    return Answers(preds, n_queries, n_abstained, tuple(notes), questions, ids, n_without)


def _as_tuple(fields: str | Sequence[str] | None) -> tuple[str, ...]:
    return (fields,) if isinstance(fields, str) else tuple(fields or ())


def _check_compatible_settings(
    options: str | None,
    confidence: str | None,
    samples: str | None,
    correct: str | None,
    choices: str | None,
    percent: bool,
) -> None:
    confidence_settings = {"options": options, "confidence": confidence, "samples": samples}
    used_settings = [name for name, field in confidence_settings.items() if field is not None] or ["options"]
    if len(used_settings) > 1:
        raise InputError(
            "TO205", "Exactly one field must hold the confidence.", " and ".join(used_settings), "Read them separately."
        )
    # Other settings: their values, and the settings of the confidence with which they can be combined.
    partners_of_setting = {
        "percent": (percent, ("confidence",)),
        "correct": (correct, ("confidence", "samples")),
        "choices": (choices, ("options",)),
    }
    for name, (value, partners) in partners_of_setting.items():
        if value and used_settings[0] not in partners:
            problem, got = f"{name} goes with {' or '.join(partners)}.", f"{name} with {used_settings[0]}"
            raise InputError("TO205", problem, got, "Omit it.")

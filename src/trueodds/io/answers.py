"""Read a language model's answers with confidence, correctness and abstentions as Predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_percent
from trueodds.core.results import Result
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.io.answer_confidence import (
    option_number_notes,
    option_scores,
    sample_agreement,
    shared_option_names,
    top_option_confidence,
)
from trueodds.io.records import Record, count_questions, field_key, question_clusters, question_ids, records
from trueodds.lenses.selective_risk import SelectiveRisk, selective_risk


@dataclass(frozen=True, slots=True, repr=False)
class Answers(Result):
    """The answers that were given, as Predictions that carry the notes, and how many were asked for in vain."""

    predictions: Predictions
    n_queries: int  # rows, or questions where several samples make one answer
    abstained: int
    notes: tuple[Note, ...]
    questions: int | None = None  # where a question was asked several times, how many there are
    ids: Array | None = None  # (n,) the question of each answer, as the records have it

    @property
    def coverage(self) -> float:
        """The share of what was asked that was answered."""
        return (self.n_queries - self.abstained) / self.n_queries

    def selective_risk(
        self,
        *,
        at: Sequence[float] = (),
        resamples: int = 2000,
        level: float = 0.95,
        rng: int | np.random.Generator = 0,
    ) -> SelectiveRisk:
        """How often answers of at least each confidence are wrong; what was not answered counts in the coverage."""
        return selective_risk(
            self.predictions, n_queries=self.n_queries, at=at, resamples=resamples, level=level, rng=rng
        )

    def describe(self) -> str:
        """What was asked and answered, in one line."""
        of = "" if self.questions is None else f" of {self.questions:,} questions"
        return f"{self.predictions!r} · {self.n_queries:,} asked{of}, {self.abstained:,} abstained, coverage {format_percent(round(self.coverage, 4))}"


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
    """The answers of a language model, from the records that an evaluation wrote.

    One of three fields says how sure it was. A field inside another is named with a dot, as in `doc.answer`.

    `options`: a list of log-probabilities, one per option (alone, or first in a pair as lm-evaluation-harness writes
    them). Their softmax is over the options of that question. Questions with equally many options give whole vectors
    (`from_logits`); where their numbers differ only the confidence in the likeliest option (the first of equal ones)
    and whether it was right can be told, which note TN145 says.

    `confidence`: a number that the model stated, with `correct`. In 0..1, or in 0..100 where `percent=True` says so.

    `samples`: several answers to one question, as a list in its record, or one per record with `question` to tell
    which belong together. The confidence is the share of the most frequent one, the first of equally frequent ones;
    answers are equal if their text is, but for blanks around it. It is right if it equals `answer`, or, with
    `correct`, if the (first) sample that gave it was.

    Parameters
    ----------
    data : path, pattern, list of paths, or list of dicts
        Files of .jsonl or .ndjson, one record per line; .json, a list of records or one under the name of each
        question, which is then their field `id`; or a table, a record per row. All is held in memory.
    options, confidence, samples : str
        The field; without any of them `options="logprobs"`.
    answer : str
        The field of the right answer: the number of an option from 0, its name where `choices` lists names, or a text.
    choices : str, optional
        The field that lists the options' names. Only there is a text looked up; a whole number is a position always,
        and without `choices` so is a text such as "1", counted from 0 (notes TN170, TN180). Where it lists the same
        names for every question, they are the names of the classes.
    correct : str, optional
        The field that says whether it was right: true or false, 1 or 0, yes or no. `correct` where there is `confidence`.
    percent : bool
        Whether a confidence of 70 means 70 %.
    question : str, optional
        The field that tells questions apart. Where a question has several rows they become a cluster, since they are
        not independent; where none has, nothing changes.
    abstained : str, optional
        The field that says yes where no answer was given; or the field of the confidence itself (of `options` or
        `samples`), which then holds nothing where no answer was given. Those rows are counted, and nothing else of them
        is read; where they say all the same how sure they are, note TN169 tells it.
    group : str or sequence of str, optional
        Fields of subgroups, such as the subject.

    Raises
    ------
    InputError
        TO302, TO303, TO311 for files, TO304, TO307, TO308 for fields, TO116 for yes or no, TO315 for a question with
        one option or one sample, TO316 for what is no log-probability, TO317 for a confidence outside its scale, TO318
        for an answer that is no option, TO319 where nothing was answered; each with its row. TO205 for settings.

    Examples
    --------
    >>> answer_set = read_answers([{"confidence": 85, "correct": "yes"}, {"confidence": 60, "correct": "no"}],
    ...                 confidence="confidence", percent=True)
    >>> answer_set.predictions.p.tolist(), answer_set.predictions.y.tolist()
    ([0.85, 0.6], [1, 0])
    """
    _check_complete(options, confidence, samples, correct, choices, percent)
    notes: list[Note] = []
    groups = [group] if isinstance(group, str) else list(group or ())
    rows = list(records(data))
    if not rows:
        raise InputError("TO312", "There are no records.", "0 rows", "Write one JSON object per question.")
    source = rows[0].source
    field = samples or confidence or options or "logprobs"
    silent = [_abstains(row, abstained, field) for row in rows]
    if abstained == field and all(silent):
        rows[0].value(field)  # refused: no row has that field, or all leave it empty
    answered_rows = [row for row, nothing in zip(rows, silent, strict=True) if not nothing]
    n_queries, left = len(rows), len(rows) - len(answered_rows)
    notes += _abstention_notes(rows, silent, field)
    if answered_rows and samples is not None:
        first, share, right = sample_agreement(answered_rows, samples, answer, correct, question)
        if len(first) < len(answered_rows):  # one record per sample: questions are what was asked
            assert question is not None
            answered = {field_key(row, question) for row in answered_rows}
            n_queries = len({field_key(row, question) for row in rows})
            left = n_queries - len(answered)
        answered_rows = first
    if not answered_rows:
        fix = "Nothing can be said of confidence where nothing was answered."
        raise InputError("TO319", "Every row abstains.", f"{len(rows):,} rows of {source}", fix)
    ids = question_ids(answered_rows, question)
    extras: dict[str, Any] = {
        "group": {name: np.array([field_key(row, name) for row in answered_rows]) for name in groups} or None,
        "cluster": question_clusters(ids),
    }
    if samples is not None:
        preds = Predictions.from_confidence(share, right, **extras)
    elif confidence is not None:
        stated = np.array([_stated(row, confidence, percent) for row in answered_rows])
        if percent and stated.max() <= 0.01:
            text = f"No confidence is above 1 %, the greatest being {stated.max():.2%}: were they shares, and no percentages?"
            notes.append(Note("TN147", text))
        preds = Predictions.from_confidence(stated, [row.yes(correct or "correct") for row in answered_rows], **extras)
    else:
        scores, labels = option_scores(answered_rows, options or "logprobs", answer, choices)
        notes += option_number_notes(answered_rows, answer, choices, scores, labels)
        widths = {len(score) for score in scores}
        if len(widths) == 1:
            names = None if choices is None else shared_option_names(answered_rows, choices)
            y = labels if names is None else np.array(names)[labels]
            preds = Predictions.from_logits(y, np.array(scores), classes=names, **extras)
        else:
            preds = Predictions.from_confidence(*top_option_confidence(scores, labels), **extras)
            text = f"Questions have {min(widths)} to {max(widths)} options, so only the confidence in the likeliest one is kept, and whether it was right."
            notes.append(Note("TN145", text))
    questions = count_questions(rows, n_queries, question)
    if left:
        covered = f"(coverage {format_percent(round(1 - left / n_queries, 4))})"
        if questions is None:
            text = f"{left:,} of {n_queries:,} questions got no answer {covered}; what is measured holds for those that did."
        else:
            text = f"{left:,} of {n_queries:,} answers, asked for by {questions:,} questions, were not given {covered}; what is measured holds for those that were."
        notes.append(Note("TN146", text))
    return Answers(
        preds.noted(*notes) if notes else preds,
        n_queries,
        left,
        tuple(notes),
        questions,
        ids,
    )


def _check_complete(
    options: str | None,
    confidence: str | None,
    samples: str | None,
    correct: str | None,
    choices: str | None,
    percent: bool,
) -> None:
    """Refuse settings that have no meaning together."""
    named = {"options": options, "confidence": confidence, "samples": samples}
    kinds = [name for name, field in named.items() if field is not None] or ["options"]
    if len(kinds) > 1:
        raise InputError("TO205", "One field says how sure it was.", " and ".join(kinds), "Read them one by one.")
    needs = {"percent": (percent, ("confidence",)), "correct": (correct, ("confidence", "samples")),
             "choices": (choices, ("options",))}  # fmt: skip
    for name, (value, kind) in needs.items():
        if value and kinds[0] not in kind:
            raise InputError(
                "TO205", f"{name} goes with {' or '.join(kind)}.", f"{name} with {kinds[0]}", "Leave it out."
            )


def _abstains(record: Record, abstained: str | None, field: str) -> bool:
    """Whether no answer was given: the field says yes, or it is that of the confidence and holds nothing."""
    if abstained is None:
        return False
    return not record.holds(field) if abstained == field else record.yes(abstained)


def _abstention_notes(rows: list[Record], silent: list[bool], field: str) -> list[Note]:
    """Rows that abstain and say how sure they are all the same."""
    ignored_rows = [row for row, nothing in zip(rows, silent, strict=True) if nothing and row.holds(field)]
    if not ignored_rows:
        return []
    who = "1 row that abstains holds" if len(ignored_rows) == 1 else f"{len(ignored_rows):,} rows that abstain hold"
    text = f"{who} {field!r} all the same, which was not read; the first is {ignored_rows[0].place}."
    return [Note("TN169", text)]


def _stated(record: Record, field: str, percent: bool) -> float:
    value = record.value(field)
    if isinstance(value, str) and value.strip().endswith("%"):
        if not percent:
            raise record.wrong(field, value, "Say percent=True, which reads 70 and 70% alike.")
        value = value.strip().removesuffix("%")
    confidence, upper_bound = record.number(field, value), 100 if percent else 1
    if not 0 <= confidence <= upper_bound:
        fix = (
            "Nothing is clipped: mend the row."
            if percent or not 1 < confidence <= 100
            else "Say percent=True if 70 means 70 %."
        )
        raise InputError(
            "TO317", f"A confidence lies outside 0 to {upper_bound}.", f"{value} for {field!r} in {record.place}", fix
        )
    return confidence / upper_bound

"""Suggestions for columns that do not exist: what the caller may have meant, as the remedy of an error."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trueodds.core.errors import argument
from trueodds.core.printable import escape_marks, visible_part
from trueodds.core.suggestions import did_you_mean, list_names
from trueodds.io.csv_format import SEPARATORS

# What names of columns of scores begin with, before a number; other numbered columns are features.
_NUMBERED_SCORE_PATTERN = re.compile(r"(?i)(p|q|z|probs?|proba|probability|preds?|scores?|logits?|class|softmax)\W*")
# Usual names of the column of the outcome, which a remedy proposes.
_OUTCOME_NAMES = ("y", "y_true", "target", "outcome", "event", "class", "truth", "observed")


def suggest_outcome_columns(columns: tuple[str, ...], probs: str | Sequence[str]) -> str | None:
    """Suggest other columns of the outcome if there is no label: votes, or confidence and correctness.

    If the columns of the probabilities, requested as `probs`, do not exist either, suggest those of both.
    """
    votes = {name[2:] for name in columns if name.startswith("v_")}
    if votes and votes <= {name[2:] for name in columns if name.startswith("p_")}:
        return "For votes pass ⟨votes='v_*'⟩; for a label of another name pass ⟨label=⟩."
    if "confidence" in columns and (predicted := suggest_predicted_column(columns)):
        return f"For a confidence in the predicted class pass ⟨confidence='confidence'⟩, {predicted}."
    if "confidence" in columns and "correct" in columns:
        return (
            "For a confidence in the answer pass ⟨confidence='confidence'⟩ and ⟨correct='correct'⟩; for a label of"
            " another name pass ⟨label=⟩."
        )
    if probs == "p_*" and not any(name.startswith("p_") for name in columns) and not did_you_mean("label", columns):
        return _suggest_label_and_probs(columns)
    return None


def suggest_predicted_column(columns: Sequence[str]) -> str | None:
    """Return the arguments for the columns of the true and the predicted class; None if the names do not tell both.

    >>> suggest_predicted_column(("true_label", "predicted_label", "confidence"))
    "⟨label='true_label'⟩, ⟨predicted='predicted_label'⟩"
    """
    predicted = [name for name in columns if name.lower().startswith("pred") or name.lower() == "y_pred"]
    labels = [name for name in columns if name.lower() in ("label", "true_label", "true_class", *_OUTCOME_NAMES)]
    if len(predicted) != 1 or len(labels) != 1:
        return None
    return f"{argument('label', labels[0])}, {argument('predicted', predicted[0])}"


def _suggest_label_and_probs(columns: tuple[str, ...]) -> str | None:
    """Suggest the columns of the label and of the probabilities of a table where neither has its usual name.

    >>> _suggest_label_and_probs(("prob_cat", "prob_dog", "animal"))
    "If prob_cat, prob_dog are the probabilities, pass ⟨label='animal'⟩ and ⟨probs='prob_*'⟩."
    >>> _suggest_label_and_probs(("score", "y"))
    "If y is the outcome and score the probability of the event, pass ⟨label='y'⟩ and ⟨probs='score'⟩."
    """
    if prefix := _shared_prefix(columns):
        names, listed = _names_with_prefix(prefix, columns)
        other_columns = [name for name in columns if name not in names]
        is_single = len(other_columns) == 1
        label = argument("label", other_columns[0]) if is_single else "the column of the outcome as ⟨label=⟩"
        return f"If {listed} are the probabilities, pass {label} and {argument('probs', f'{prefix}*')}."
    outcomes = [name for name in columns if name.lower() in _OUTCOME_NAMES]
    if len(columns) == 2 and len(outcomes) == 1:
        score = next(name for name in columns if name not in outcomes)
        return (
            f"If {outcomes[0]} is the outcome and {escape_marks(score)} the probability of the event, pass"
            f" {argument('label', outcomes[0])} and {argument('probs', score)}."
        )
    if len(columns) < 2:
        return None
    remedy = "Name the column of the outcome with ⟨label=⟩ and the columns of the probabilities with ⟨probs=⟩."
    return f"{list_columns(columns)} {remedy}"


def _shared_prefix(columns: tuple[str, ...]) -> str | None:
    """Return the first prefix that several columns share, ignoring columns of outcomes (`v_`, `y_`).

    It ends with the last underscore of a name, or before the number at its end; the latter must not begin any other
    column.

    >>> _shared_prefix(("label", "p1", "p2")), _shared_prefix(("prob_a", "prob_b"))
    ('p', 'prob_')
    >>> _shared_prefix(("p1", "p2", "price"))
    >>> _shared_prefix(("x1", "x2", "score"))
    """
    prefixes = [re.sub(r"(?<=_)[^_]*$|\d+$", "", name) for name in columns if name[:2] not in ("v_", "y_")]
    prefixes = [prefix for prefix in prefixes if prefix.endswith("_") or _NUMBERED_SCORE_PATTERN.fullmatch(prefix)]
    for prefix in dict.fromkeys(prefixes):
        count = prefixes.count(prefix)
        names = [name for name in columns if name.startswith(prefix)]
        if prefix and count > 1 and prefix not in columns and (prefix.endswith("_") or len(names) == count):
            return prefix
    return None


def _names_with_prefix(prefix: str, columns: tuple[str, ...]) -> tuple[list[str], str]:
    names = [name for name in columns if name.startswith(prefix)]
    return names, f"{', '.join(map(escape_marks, names[:3]))}{', …' if len(names) > 3 else ''}"


def suggest_numbered_columns(keyword: str, columns: tuple[str, ...]) -> str | None:
    """Suggest columns that share a prefix, if no column matches the pattern of `keyword`, "probs" or "logits"."""
    if keyword == "probs" and "logits" in columns:
        return "If logits holds the logits, pass ⟨logits='logits'⟩."
    prefix = _shared_prefix(columns)
    if keyword not in ("probs", "logits") or prefix is None:
        return None
    logits_hint = "" if keyword == "logits" else f"; if they are logits, pass {argument('logits', f'{prefix}*')}"
    return (
        f"If {_names_with_prefix(prefix, columns)[1]} are meant, pass {argument(keyword, f'{prefix}*')}{logits_hint}."
    )


def list_columns(columns: Sequence[str]) -> str:
    """Return the columns of a table as a sentence, in their order.

    >>> list_columns(["score", "target"]), list_columns(["score"])
    ('The columns are score, target.', 'The only column is score.')
    """
    if len(columns) == 1:
        return f"The only column is {escape_marks(columns[0])}."
    return list_names([escape_marks(column) for column in columns]).replace("Known:", "The columns are")


def suggest_similar_columns(name: str, columns: tuple[str, ...]) -> str:
    """Return the hint for an unknown column: similar columns, or all of them."""
    alike = [column for column in columns if visible_part(column) == visible_part(name)]
    return _suggest_alike(alike) or did_you_mean(name, map(escape_marks, columns)) or list_columns(columns)


def _suggest_alike(columns: Sequence[str]) -> str:
    """Return the remedy for columns whose names differ from a requested one only by what cannot be seen."""
    if not columns:
        return ""
    return f"{columns[0]!a} differs only by blanks or invisible characters: remove them from the name."


def suggest_alike_matches(pattern: re.Pattern[str], columns: Sequence[str]) -> str:
    """Return the remedy for columns that match a pattern but for what cannot be seen; empty if there are none."""
    return _suggest_alike([column for column in columns if pattern.fullmatch(visible_part(column))])


def suggest_separator(columns: Sequence[str]) -> str | None:
    """Return the remedy for columns of a text file that another separator splits, or None.

    >>> suggest_separator(["label;p_0;p_1"]), suggest_separator(["label", "p_0"])
    ("The columns look separated by ';': pass ⟨separator=';'⟩.", None)
    """
    marks = (*SEPARATORS, " ") if len(columns) == 1 else SEPARATORS  # names of several columns may have blanks
    in_all = [mark for mark in marks if all(mark in column for column in columns)]
    if not in_all:
        return None
    mark = max(in_all, key=lambda mark: (mark != " ", sum(column.count(mark) for column in columns)))
    return f"The columns look separated by {mark!r}: pass {argument('separator', mark)}."

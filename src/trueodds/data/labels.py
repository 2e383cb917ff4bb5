"""Check the outcomes of rows, and convert them to numbers: labels, votes, and binary outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import MAX_LISTED_ITEMS, MAX_VALUE_LENGTH, InputError, Note, describe
from trueodds.core.printable import to_printable, visible_part
from trueodds.core.settings import MAX_EXACT_INTEGER, check
from trueodds.core.typing import Array
from trueodds.data.arrays import (
    as_float_array,
    check_one_dimensional,
    refuse_first_invalid,
)
from trueodds.data.class_names import (
    class_numbers,
    labels_are_positions,
    looks_like_a_number,
    to_number,
    to_plain_name,
)
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE
from trueodds.data.remedies import count_phrase, predictions_call

UNKNOWN_LABEL_TEXT = "A label is not one of the classes."
UNKNOWN_LABEL = -1  # stands for a label that is not known, in the outcomes of independent labels
# Texts that say whether an answer was correct, or any other statement is true.
_TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0", "correct", "right", "pass", "passed")
_FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0", "incorrect", "wrong", "fail", "failed")
REGRESSION_REMEDY = "pass events such as y <= q (documentation, 'Quantiles, intervals and distributions as events')."
TRUTH_REMEDY = "Write true or false, 1 or 0, yes or no."


def check_labels(y: Array, k: int, names: tuple[Any, ...], *, has_names: bool, is_single: bool = False) -> Array:
    """Convert labels (n,) to the positions (n,) of their classes, 0..K−1: the one rule which label means which class.

    If the names of all classes have numbers (`class_numbers`), labels are these numbers; a text may also be a name.
    Other classes have text labels, which are their names, or integers, which are their positions; but if a name looks
    like a number, labels are always names. Unless the caller named the classes (`has_names`), `names` are their
    numbers, and labels cannot be names. `is_single` says that the probability of the second class alone was given.
    """
    if y.ndim != 1:
        raise InputError(
            "TO101", "y_true must be (n,) labels or (n, K) votes.", f"shape {y.shape}", "Pass one label per row."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        refuse_first_invalid(
            y,
            ~np.isfinite(y),
            "TO103",
            "Every label must be a number.",
            "Fill or remove those rows; rows are never dropped silently.",
        )
    if y.dtype.kind in "US" or (has_names and not labels_are_positions(names)):
        return _labels_to_numbers(y, names, has_names, suggest_classes(y, k, is_single=is_single))
    if y.dtype.kind == "f":
        if (is_fraction := y != np.rint(y)).any():
            fix = _fraction_remedy(y, k, is_single=is_single)
            refuse_first_invalid(y, is_fraction, "TO106", "Labels must be whole numbers.", fix)
    elif y.dtype.kind not in "biu":
        raise InputError(
            "TO106", "Labels must be integers or names.", f"dtype {y.dtype}", "Convert them to integers or to text."
        )
    if y.min() < 0 or y.max() >= k:
        fix = f"If they start at 1, subtract 1; if they are other codes, pass {predictions_call('classes=[…]')}."
        n_labels = len(np.unique(y))
        if y.min() == -1 and y.max() < k < n_labels:  # every class and -1
            fix = "-1 may mean that a label is unknown: remove those rows; rows are never dropped silently."
        elif n_labels == k:
            fix = suggest_classes(y, k, is_single=is_single)  # "Pass …"
            if y.min() == 1:
                fix = f"If they start at 1, subtract 1, or p{fix[1:]}"
        elif is_single and n_labels > k:
            fix = (
                "If these are classes, select the probabilities of all, or pass the confidence in the predicted class"
                " and whether it is correct: ⟨Predictions.from_confidence(p, correct)⟩; if they are the outcomes of a"
                f" regression, {REGRESSION_REMEDY}"
            )
        refuse_first_invalid(y, (y < 0) | (y >= k), "TO105", f"Labels must lie in 0..{k - 1}.", fix)
    return y.astype(np.int64, copy=False)


def mark_unknown(y: Array | None, labeled: Array | None) -> Array | None:
    """Return labels (n,) with `UNKNOWN_LABEL` in the rows that are not labeled, as a mask (n,) or None says."""
    return y if labeled is None or y is None else np.where(labeled, y, UNKNOWN_LABEL)


def _fraction_remedy(y: Array, k: int, *, is_single: bool) -> str:
    """Return the remedy for labels (n,) that are fractions: soft labels, codes of k classes, or a regression's."""
    if y.min() >= 0 and y.max() <= 1:
        fix = "For votes or soft labels pass ⟨y_true as (n, K) shares⟩"
        return f"{fix}; for the outcomes of a regression, {REGRESSION_REMEDY}"
    if len(np.unique(y)) <= k:
        return suggest_classes(y, k, is_single=is_single)
    return f"These look like the outcomes of a regression: {REGRESSION_REMEDY}"


def suggest_classes(y: Array, k: int, *, is_single: bool, column: str | None = None) -> str:
    """Return the remedy for labels that are names or codes: the classes to pass, in the order of the columns.

    >>> suggest_classes(np.array(["yes", "no"]), 2, is_single=True, column="p_yes")
    "Pass ⟨Predictions(y_true, y_prob, classes=['no', 'yes'])⟩ if p_yes is the probability of the second class."
    >>> suggest_classes(np.array([2, 1, 3]), 3, is_single=False)
    'Pass ⟨Predictions(y_true, y_prob, classes=[1, 2, 3])⟩, with the names in the order of the columns.'
    >>> suggest_classes(np.array(["yes", "no", "NA"]), 2, is_single=True)
    'Remove rows whose label is unknown, or select the probabilities of all classes.'
    """
    is_text = y.dtype.kind in "US" or y.dtype.kind == "O"
    labels: list[Any] = sorted({str(label) if is_text else to_number(to_plain_name(label)) for label in np.unique(y)})
    if len(labels) > k:
        return "Remove rows whose label is unknown, or select the probabilities of all classes."
    if column is not None:  # the class that the name of a single column ends with is the second
        labels.sort(key=lambda label: column == str(label) or column.endswith(f"_{label}"))
    classes_argument = f"classes={labels}" if len(labels) == k and len(repr(labels)) <= MAX_VALUE_LENGTH else ""
    remedy = f"Pass {predictions_call(classes_argument or 'classes=[…]')}"
    if is_single:
        return f"{remedy} if {column or 'y_prob'} is the probability of the second class."
    return f"{remedy}, with the names in the order of the columns."


def _labels_to_numbers(y: Array, names: tuple[Any, ...], has_names: bool, remedy: str) -> Array:
    """Return the positions (n,) of labels (n,) that are class names or the numbers in them."""
    if not has_names:
        refuse_odd_label(y, np.ones(len(y), dtype=bool))
        problem = "Labels are names, but the classes have no names."
        labels, counts = np.unique(y, return_counts=True)
        got = f"{describe(str(y[0]))} in row 0"
        if len(labels) > len(names):  # a label that is missing, for example, is the rarest one
            rarest = labels[int(np.argmin(counts))]
            row = int(np.argmax(y == rarest))
            got = f"{len(labels):,} labels for {len(names)} classes, such as {describe(str(rarest))} in row {row}"
            label_numbers = [to_number(label) for label in labels.tolist()]
            if None not in label_numbers and any(isinstance(number, float) for number in label_numbers):
                remedy = f"If these are the outcomes of a regression, {REGRESSION_REMEDY}"
        raise InputError("TO106", problem, got, remedy)
    position_of_name = {str(name): i for i, name in enumerate(names)}
    numbers = class_numbers(names)
    position_of_number = {number: i for i, number in enumerate(numbers or ())}
    unique, inverse = np.unique(y, return_inverse=True)
    positions = np.empty(len(unique), dtype=np.int64)
    for i, label in enumerate(unique.tolist()):
        label = to_plain_name(label)
        number = to_number(label)
        position = position_of_number.get(number) if number is not None else None
        if isinstance(label, str) or numbers is None:  # a name, such as 01 or grade1, exactly as it is written
            position = position_of_name.get(str(label if isinstance(label, str) else number), position)
        if position is None:
            row = int(np.argmax(inverse == i))
            refuse_odd_label(y, ~np.isin(y, [str(name) for name in names]))
            fix = f"The classes are {list(names)}{_unknown_label_remedy(y, names, numbers)}"
            if alike := [str(name) for name in names if visible_part(str(name)) == visible_part(str(label))]:
                fix = f"It differs from the class {alike[0]!r} only by blanks or invisible characters: remove them."
            raise InputError(
                "TO105",
                UNKNOWN_LABEL_TEXT,
                f"{describe(label)} in row {row}{count_phrase(int((inverse == i).sum()))}",
                fix,
            )
        positions[i] = position
    return positions[inverse.reshape(-1)]


def _unknown_label_remedy(y: Array, names: tuple[Any, ...], numbers: tuple[int | float, ...] | None) -> str:
    """Return the end of the remedy for a label that is no class: what labels are, and how to pass positions."""
    k = len(names)
    if numbers is None:
        return "; labels must match them exactly; remove rows whose label is unknown."
    text = "; labels must be their numbers." if any(isinstance(name, str) for name in names) else "."
    if y.dtype.kind in "US" or y.min() < 0 or y.max() >= k:
        return text
    listed = str(list(range(k))) if k <= MAX_LISTED_ITEMS else "[0, 1, …]"
    return f"{text} If labels are positions counted from 0, pass {predictions_call(f'classes={listed}')}."


def refuse_odd_label(y: Array, is_unknown: Array) -> None:
    """Raise TO105 for the first label (n,) that is no number if most others are; only `is_unknown` (n,) may be odd.

    A single text, such as NA for a missing value, makes all labels of a text file texts.
    """
    if y.dtype.kind not in "US":
        return
    labels, inverse = np.unique(y, return_inverse=True)
    is_number = np.array([looks_like_a_number(label) for label in labels.tolist()])[inverse.reshape(-1)]
    is_odd = is_unknown & ~is_number
    if not is_odd.any() or 2 * int(is_number.sum()) <= len(y):
        return
    row, n_odd = int(np.argmax(is_odd)), int(is_odd.sum())
    got = f"{describe(str(y[row]))} in row {row}{count_phrase(n_odd)}; the other {len(y) - n_odd:,} labels are numbers"
    problem = "A label is missing, or is no number as the others."
    raise InputError("TO105", problem, got, "Correct or remove those rows; rows are never dropped silently.")


def check_votes(y: Array, k: int) -> tuple[Array, Array | None]:
    """Return the share of each class per row (n, K), and the number of votes (n,) if counts were given; raise TO111."""
    if y.shape[1] == 1:
        raise InputError(
            "TO101", "y_true has a single column.", f"shape {y.shape}", "Pass y_true[:, 0] as one label per row."
        )
    if y.shape[1] != k:
        raise InputError(
            "TO111",
            "Votes must have one column per class.",
            f"{y.shape[1]} columns for {k} classes",
            "Pass ⟨y_true as (n, K) counts or shares⟩.",
        )
    votes = as_float_array(y, "votes").astype(np.float64)
    is_invalid = ~np.isfinite(votes) | (votes < 0)
    if is_invalid.any():
        refuse_first_invalid(votes, is_invalid, "TO111", "Votes must be counts or shares ≥ 0.", "Correct those rows.")
    with np.errstate(over="ignore"):
        n_votes = votes.sum(axis=1)
    if (n_votes > MAX_EXACT_INTEGER).any():
        row = int(np.argmax(n_votes))
        got = f"{votes[row].max():g} in row {row}"
        raise InputError("TO111", "A row has too many votes to be counted.", got, "Correct it.")
    if (n_votes <= 0).any():
        raise InputError(
            "TO111",
            "Every row must have a vote.",
            f"none in row {int(np.argmin(n_votes))} ({int((n_votes <= 0).sum()):,} such rows)",
            "Remove rows without votes.",
        )
    is_count = (votes == np.rint(votes)).all(axis=1)
    is_share = np.abs(n_votes - 1) <= DEFAULT_SUM_TOLERANCE
    if not is_count.all() and not is_share.all():
        raise _mixed_votes_error(votes, n_votes, is_count, is_share)
    return votes / n_votes[:, None], n_votes if is_count.all() else None


def _mixed_votes_error(votes: Array, n_votes: Array, is_count: Array, is_share: Array) -> InputError:
    """Return the error of votes (n, K) that are neither counts in all rows nor shares in all rows."""
    is_neither = ~is_count & ~is_share
    if is_neither.any():
        row = int(np.argmax(is_neither))
        if n_votes[row] % 1:
            got = f"{n_votes[row]:.6g} in row {row}"
        else:
            column = int(np.argmax(votes[row] != np.rint(votes[row])))
            got = f"{votes[row, column]:g} in row {row}, class {column}"
    else:
        got = f"shares in row {int(np.argmax(~is_count))}, and counts in others"
    return InputError(
        "TO111",
        "Votes must be whole counts in all rows, or shares that sum to 1 in all rows.",
        got,
        "Pass the counts.",
    )


def check_correctness(correct: Array, name: str = "correct") -> Array:
    """Convert the correctness of answers (n,), which may be boolean or a text such as yes, to integers 0 and 1."""
    check_one_dimensional(correct, name)
    if correct.dtype.kind not in "US":
        return check_binary(correct, name)
    texts, inverse = np.unique(correct, return_inverse=True)
    values = [truth_value(text) for text in texts.tolist()]
    is_unknown = np.array([value is None for value in values])[inverse.reshape(-1)]
    if is_unknown.any():
        row = int(np.argmax(is_unknown))
        count = count_phrase(int((correct == correct[row]).sum()))
        problem = f"{name} must say whether each answer was correct."
        raise InputError("TO116", problem, f"{describe(str(correct[row]))} in row {row}{count}", TRUTH_REMEDY)
    return np.array(values, dtype=np.int64)[inverse.reshape(-1)]


def truth_value(text: Any) -> bool | None:
    """Return the meaning of a text such as yes or incorrect, in whatever case; None if it is unknown.

    >>> truth_value("CORRECT"), truth_value("n"), truth_value("I")
    (True, False, None)
    """
    word = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).strip().lower()
    return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else None


def check_multilabel(y: Array, missing: float | None, names: tuple[Any, ...]) -> tuple[Array, list[Note]]:
    """Return outcomes of independent labels (n, L) as 0, 1 and `UNKNOWN_LABEL`, and a note on the unknown ones.

    NaN is an unknown label, and so is the value `missing`. `names` are those of the labels. Raises InputError TO116 for
    other values than 0 and 1, and TO358 for a label that no row has.
    """
    is_unknown = np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, dtype=bool)
    missing = check("missing", missing, float | None)
    if missing in (0, 1):
        fix = "Pass the value that stands for an unknown label, such as ⟨missing=-1⟩."
        raise InputError("TO203", "missing must be another value than 0 and 1.", f"⟨missing={missing:g}⟩", fix)
    if missing is not None and y.dtype.kind in "iuf":
        is_unknown |= y == missing
    if not is_unknown.any():
        return check_binary(y, is_multilabel=True), []
    checked = check_binary(np.where(is_unknown, 0, y), is_multilabel=True)
    checked[is_unknown] = UNKNOWN_LABEL
    counts = is_unknown.sum(axis=0)
    if (counts == len(y)).any():
        label = int(np.argmax(counts == len(y)))
        raise InputError(
            "TO358",
            "A label is unknown in every row.",
            f"{describe(names[label])}, in {len(y):,} rows",
            "Omit its columns.",
        )
    partly_unknown = np.flatnonzero(counts)
    listed = ", ".join(f"{to_printable(str(names[c]))} in {counts[c]:,}" for c in partly_unknown[:MAX_LISTED_ITEMS])
    more = f", and {len(partly_unknown) - MAX_LISTED_ITEMS:,} more" if len(partly_unknown) > MAX_LISTED_ITEMS else ""
    text = f"Some labels are unknown ({len(y):,} rows): {listed}{more}. These rows count for their other labels only."
    return checked, [Note("TN303", text)]


def check_binary(y: Array, name: str = "Y", *, is_multilabel: bool = False) -> Array:
    """Convert values of 0 and 1 to integers; raise TO116 for others, such as −1 for an unknown label."""
    if y.dtype.kind not in "biuf":
        raise InputError("TO116", f"{name} must contain only 0 and 1.", f"dtype {y.dtype}", "Convert it to 0 and 1.")
    is_invalid = ~((y == 0) | (y == 1))
    if is_invalid.any():
        first = y[np.unravel_index(int(np.argmax(is_invalid)), y.shape)]
        fix = "Convert the values to 0 and 1."
        if is_multilabel and first == -1:
            fix = (
                "If -1 means that a label is unknown, pass ⟨missing=-1⟩: the row then counts for its other labels only."
            )
        refuse_first_invalid(y, is_invalid, "TO116", f"{name} must contain only 0 and 1.", fix)
    return y.astype(np.int64)


MIN_ROWS_WITH_DISJOINT_LABELS = 100  # of fewer rows, all predicted classes may be wrong


def compare_labels(labels: Array, predicted: Array) -> Array:
    """Return whether each label (n,) equals the predicted class (n,).

    Texts must be exactly equal. If one argument has numbers and the other texts, these are read as numbers. Raises
    InputError TO103 for missing values, TO119 if many labels have no value in common with the predicted classes.

    >>> compare_labels(np.array([1, 2, 3]), np.array(["1", "02", "none"])).tolist()
    [True, True, False]
    """
    for name, values in (("label", labels), ("predicted class", predicted)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            fix = "Fill or remove those rows; rows are never dropped silently."
            refuse_first_invalid(values, ~np.isfinite(values), "TO103", f"Every {name} must be given.", fix)
    if (labels.dtype.kind in "US") == (predicted.dtype.kind in "US"):
        is_correct: Array = labels == predicted
    else:
        code_of_value: dict[Any, int] = {}
        codes = []
        for values in (labels, predicted):
            unique, inverse = np.unique(values, return_inverse=True)
            numbers = [to_number(value) for value in map(to_plain_name, unique.tolist())]
            keys = [value if number is None else number for value, number in zip(unique, numbers, strict=True)]
            codes.append(np.array([code_of_value.setdefault(key, len(code_of_value)) for key in keys])[inverse])
        is_correct = codes[0] == codes[1]
    if len(labels) >= MIN_ROWS_WITH_DISJOINT_LABELS and not is_correct.any():
        values_of_both = [np.unique(values).tolist() for values in (labels, predicted)]
        if not set(map(str, values_of_both[0])) & set(map(str, values_of_both[1])):
            got = " and ".join(", ".join(map(str, values[:3])) for values in values_of_both)
            raise InputError(
                "TO119",
                "The labels and the predicted classes have no value in common.",
                f"labels and predicted classes such as {got}",
                "Write both as the same names or numbers of classes.",
            )
    return is_correct

"""Recognize implausible data, such as hard labels instead of probabilities, shifted labels, or copied rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.class_names import labels_are_positions
from trueodds.data.copied_rows import copied_row_notes
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import largest_probabilities
from trueodds.data.training_rows import training_row_notes

# Minimum gain of accuracy, in addition to 2/√n: at most 0.03 % of 3,000 random models with 2 to 10 classes reached it.
MIN_ACCURACY_GAIN = 0.25
GOLDEN_RATIO = (5**0.5 - 1) / 2
MIN_ROWS = 30  # minimum number of rows for another order of the classes; with fewer, any order may fit
MIN_LABELS = 10  # minimum number of rows for hard labels; with fewer, all probabilities may be 0 and 1 by chance
SAMPLE_SIZE = 2**15  # number of probabilities in the sample of rows that is checked first
# Minimum number of sampled rows: by the normal approximation, a gain of MIN_ACCURACY_GAIN appears less than half
# as large in one of 10⁷ samples.
MIN_SAMPLE_ROWS = 2000
BLOCK_SIZE = 2**16  # number of probabilities per block
MIN_EXPECTED_EVENTS = 5  # expected number of events of a class that is worth a note if none occurred: e⁻⁵ = 0.7 %
# The same for the first of several classes if labels are positions: labels that start at 1 then leave it empty.
MIN_EXPECTED_FIRST = 0.5
MAX_NAMED_CLASSES = 5  # number of classes that a note names
# Outcomes that are predictions: at most this share of them differs from the predicted class, and at most a tenth of
# the differences that are expected, of which there must be ten, even if the model is underconfident by this factor.
MAX_DIFFERENCES = 0.005
MAX_SHARE_OF_EXPECTED_DIFFERENCES = 0.1
MIN_EXPECTED_DIFFERENCES = 10
UNDERCONFIDENCE = 3  # true log odds divided by predicted ones; random forests reach about 2.5
# Confidences that are probabilities of one class: below 1/2, answers are right more often than stated (by this number
# of standard errors), as often as 1 − confidence says (within a quarter of the distance), and less often the higher
# the confidence is (by this number of standard errors) or where it is nearly 0.
MIN_LOW_CONFIDENCES = 20
MIN_EXCESS, MIN_DECREASE = 5, 2
NEARLY_ZERO = 0.1
MAX_CHANCE = 1e-6  # probability that by chance every group has a single class

# Notes on data that make a recalibration pointless.
IMPLAUSIBLE_DATA_CODES = ("TN108", "TN142", "TN149", "TN186", "TN187")

HARD_LABELS_TEXT = (
    "Every {what} is 0 or 1, as in predicted labels: pass probabilities, for instance from predict_proba. Labels "
    "have accuracy, but no calibration."
)


def plausibility_notes(preds: Predictions) -> list[Note]:
    """Return notes on data that were probably misread, or on rows that are copies or were used for a fit.

    Fractions in the first block rule out hard labels, and errors in the first blocks rule out that outcomes are
    predictions. A sample of the rows usually rules out another order of the classes, and the first rows usually have
    all classes. Otherwise all rows are used. Cost: about a millisecond for any number of rows if that is sufficient, in
    the first call for these rows.
    """
    return list(preds.cached(("plausibility", preds.notes), lambda: _check_plausibility(preds)))


def _check_plausibility(preds: Predictions) -> list[Note]:
    notes = [*check_hard_labels(preds), *check_confidences(preds)]
    if not any(note.code == "TN108" for note in preds.notes):  # logits that are probabilities: nearly equal predictions
        # Both of the last notes can name the same cause.
        notes += [*check_class_order(preds), *(check_predicted_outcomes(preds) or training_row_notes(preds))]
    return [*notes, *check_observed_classes(preds), *copied_row_notes(preds), *check_groups_by_outcome(preds)]


def check_hard_labels(preds: Predictions) -> list[Note]:
    """Return a note if every probability is 0 or 1."""
    if preds.n < MIN_LABELS or preds.logits is not None:  # logits may be so large that their probabilities are 0 and 1
        return []
    p = preds.p
    n_first = max(1, BLOCK_SIZE // (1 if p.ndim == 1 else p.shape[1]))
    is_certain = all(((part == 0) | (part == 1)).all() for part in (p[:n_first], p[n_first:]))
    return [hard_labels_note(preds.kind)] if is_certain else []


def hard_labels_note(kind: str) -> Note:
    return Note("TN149", HARD_LABELS_TEXT.format(what="confidence" if kind == "confidence" else "probability"))


def check_class_order(preds: Predictions) -> list[Note]:
    """Return a note if another order of the classes would raise accuracy significantly, and above one half."""
    if preds.kind != "classes" or preds.y is None or preds.n < MIN_ROWS:
        return []
    step = preds.n // max(MIN_SAMPLE_ROWS, SAMPLE_SIZE // preds.k)
    if step > 1 and _compare_class_orders(preds, slice(None, None, step), MIN_ACCURACY_GAIN / 2) is None:
        return []
    accuracies = _compare_class_orders(preds, slice(None), MIN_ACCURACY_GAIN + 2 / np.sqrt(preds.n))
    if accuracies is None or not _is_better_on_other_rows(preds, accuracies[0]):
        return []
    accuracy, reordered_accuracy = accuracies
    text = (
        f"With the classes in another order the accuracy would be {100 * reordered_accuracy:.1f} % instead of "
        f"{100 * accuracy:.1f} %: are the labels, or ⟨classes=⟩, in the order of the columns?"
    )
    return [Note("TN142", text)]


def _compare_class_orders(preds: Predictions, rows: slice, min_gain: float) -> tuple[float, float] | None:
    """Return the accuracy, also with the best order of the classes; None for a small gain or below one half."""
    k, (_, predicted) = preds.k, largest_probabilities(preds.p[rows], of_size=preds.p.size)
    assert preds.y is not None
    w = None if preds.weight is None else preds.weight[rows]
    label, predicted, weight = _count_pairs(preds.y[rows], predicted, w, k)
    total_weight = weight.sum()
    if total_weight <= 0:
        return None
    accuracy = float(weight[label == predicted].sum() / total_weight)
    # The sum of the predicted classes' largest weights bounds the accuracy of any order, which usually avoids the
    # search.
    largest = np.zeros(k)
    np.maximum.at(largest, predicted, weight)
    if min(1.0, float(largest.sum() / total_weight)) - accuracy <= min_gain:
        return None
    order = np.array([1, 0]) if k == 2 else _best_order(label, predicted, weight, k)
    reordered_accuracy = float(weight[label == order[predicted]].sum() / total_weight)
    is_better_order = reordered_accuracy - accuracy > min_gain and reordered_accuracy > 0.5
    return (accuracy, reordered_accuracy) if is_better_order else None


def _is_better_on_other_rows(preds: Predictions, accuracy: float) -> bool:
    """Whether the best order of the classes of each half of the rows raises the accuracy on the other half.

    An order that fits noise does not. With few rows of each class, nearly every row fits some order.
    """
    if preds.k == 2:
        return True
    _, predicted = largest_probabilities(preds.p, of_size=preds.p.size)
    assert preds.y is not None
    y, w = preds.y, np.ones(preds.n) if preds.weight is None else preds.weight
    # Multiples of an irrational number divide the rows evenly, whatever the order or the period of the labels.
    in_first_half = (np.arange(preds.n) * GOLDEN_RATIO) % 1 < 0.5
    hits = 0.0
    for half in (in_first_half, ~in_first_half):
        order = _best_order(*_count_pairs(y[half], predicted[half], w[half], preds.k), preds.k)
        hits += float(w[~half][y[~half] == order[predicted[~half]]].sum())
    return hits / float(w.sum()) - accuracy > 2 / np.sqrt(preds.n)


def _count_pairs(y: Array, predicted: Array, w: Array | None, k: int) -> tuple[Array, Array, Array]:
    """Return the pairs of a label and a predicted class that occur, as two arrays, and the weight of their rows."""
    pair = y * k + predicted
    if k * k <= len(pair):
        weight = np.bincount(pair, w, k * k)
        pairs = np.flatnonzero(weight)
        return pairs // k, pairs % k, weight[pairs]
    pairs, pair_index = np.unique(pair, return_inverse=True)
    return pairs // k, pairs % k, np.bincount(pair_index, w)


def _best_order(label: Array, predicted: Array, weight: Array, k: int) -> Array:
    """Return for each predicted class the label with which the weight of equal pairs is largest, or −1; each once."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    labels, row = np.unique(label, return_inverse=True)
    classes, column = np.unique(predicted, return_inverse=True)
    # The search requires a partner for each label, so each has one of its own, which counts less than the others.
    unmatched = np.arange(len(labels))
    gains = np.concatenate([1 + weight / weight.max(), np.ones(len(labels))])
    pairs = (np.concatenate([row, unmatched]), np.concatenate([column, len(classes) + unmatched]))
    _, matched_column = min_weight_full_bipartite_matching(csr_array((gains, pairs)), maximize=True)
    order = np.full(k, -1)
    is_matched = matched_column[row] == column
    order[predicted[is_matched]] = label[is_matched]
    return order


def check_observed_classes(preds: Predictions) -> list[Note]:
    """Return a note if a class was never observed, although it was expected or labels may start at 1."""
    if preds.kind == "confidence":
        assert preds.y is not None
        return no_correct_answer_notes(float(preds.w @ preds.y), float(preds.w @ preds.p) * preds.n / preds.w.sum())
    if preds.y is not None and preds.y.ndim == 1 and preds.weight is None:
        y_first = preds.y[: max(1, BLOCK_SIZE // preds.k)]
        if np.bincount(y_first, minlength=preds.k).all():
            return []
    is_counted = preds.w > 0
    rows = slice(None) if is_counted.all() else is_counted
    outcomes = preds.votes if preds.votes is not None else preds.y
    assert outcomes is not None
    is_observed: Array
    if outcomes.ndim == 1:
        is_observed = np.bincount(outcomes[rows], minlength=preds.k) > 0
    else:
        is_observed = np.any(outcomes[rows] > 0, axis=0)
    if any(note.code == "TN180" for note in preds.notes):  # which says that the first one was not
        is_observed[0] = True
    expected, unobserved = np.zeros(preds.k), np.flatnonzero(~is_observed)
    if len(unobserved):
        w = preds.w[rows]
        p = preds.P[rows][:, unobserved] if preds.p.ndim == 1 else preds.p[rows][:, unobserved]
        if preds.known is not None:
            p = np.where(preds.known[rows][:, unobserved], p, 0.0)
        expected[unobserved] = (w @ p.astype(np.float64)) * (len(w) / w.sum())
    return unobserved_class_notes(is_observed, expected, preds.classes, preds.kind)


def unobserved_class_notes(is_observed: Array, expected: Array, classes: Sequence[Any], kind: str) -> list[Note]:
    """Return the note on classes that were never observed; `expected` (K,) are their expected numbers of rows."""
    is_expected = expected >= MIN_EXPECTED_EVENTS
    may_start_at_1 = kind == "classes" and not is_observed[0] and labels_are_positions(classes)
    if may_start_at_1 and len(classes) > 2:
        is_expected[0] = is_expected[0] or expected[0] >= MIN_EXPECTED_FIRST
    missing = np.flatnonzero(~is_observed & is_expected)
    if len(missing) == 0:
        return []
    items = [f"{classes[c]} ({expected[c]:,.1f} expected)" for c in missing[:MAX_NAMED_CLASSES]]
    if len(missing) > MAX_NAMED_CLASSES:
        items.append(f"{len(missing) - MAX_NAMED_CLASSES:,} more")
    what, verb = ("Class", "was") if len(missing) == 1 else ("Classes", "were")
    text = f"{what} {', '.join(items)} {verb} never observed."
    if may_start_at_1 and 0 in missing:
        text += f" {positions_hint(len(classes))}"
    return [Note("TN185", text)]


def positions_hint(k: int) -> str:
    """Return the sentence on how labels of k classes are read, for a first class that was never observed."""
    listed = str(list(range(1, k + 1))) if k <= MAX_NAMED_CLASSES else f"[1, 2, …, {k}]"
    return f"Labels that are numbers are read as positions 0 to {k - 1}: if they start at 1, pass ⟨classes={listed}⟩."


def no_correct_answer_notes(n_correct: float, expected: float) -> list[Note]:
    """Return a note if no answer is correct, although several were expected."""
    if n_correct > 0 or expected < MIN_EXPECTED_EVENTS:
        return []
    text = f"No answer is correct ({expected:,.1f} expected). Check how it was determined which answers are correct."
    return [Note("TN185", text)]


def check_predicted_outcomes(preds: Predictions) -> list[Note]:
    """Return a note if the outcomes are probably predicted classes, because nearly all of them equal these."""
    if preds.kind != "classes" or preds.y is None or preds.n < MIN_EXPECTED_DIFFERENCES:
        return []
    n_differences, n_rows, expected = 0, 0, 0.0
    for p, y in _counted_blocks(preds):
        n_differences += int((largest_probabilities(p, of_size=preds.p.size)[1] != y).sum())
        if n_differences > MAX_DIFFERENCES * preds.n:  # usually in one of the first blocks
            return []
    for p, y in _counted_blocks(preds):
        n_rows, p = n_rows + len(y), p.astype(np.float64)
        sharpened = (np.stack([1 - p, p], axis=1) if p.ndim == 1 else p) ** UNDERCONFIDENCE
        expected += float((1 - sharpened.max(axis=1) / sharpened.sum(axis=1)).sum())
    return predicted_outcome_notes(n_differences, n_rows, expected)


def _counted_blocks(preds: Predictions) -> Iterator[tuple[Array, Array]]:
    """Yield the probabilities and the labels of the rows of positive weight in blocks."""
    assert preds.y is not None
    block_rows = max(1, BLOCK_SIZE // preds.k)
    for first in range(0, preds.n, block_rows):
        rows = slice(first, first + block_rows)
        p, y = preds.p[rows], preds.y[rows]
        yield (p, y) if preds.weight is None else (p[preds.weight[rows] > 0], y[preds.weight[rows] > 0])


def predicted_outcome_notes(n_differences: int, n: int, expected: float) -> list[Note]:
    """Return the note on outcomes that are probably predicted classes.

    Of n outcomes, `n_differences` are not the predicted class; `expected` differences would be expected if the log odds
    of the model were too small by the factor UNDERCONFIDENCE.
    """
    if (
        n_differences > MAX_DIFFERENCES * n
        or expected < MIN_EXPECTED_DIFFERENCES
        or n_differences > MAX_SHARE_OF_EXPECTED_DIFFERENCES * expected
    ):
        return []
    which = f"All {n:,}" if n_differences == 0 else f"{n - n_differences:,} of {n:,}"
    text = (
        f"{which} outcomes are the predicted class, although about {expected:,.0f} others are expected even if the"
        " probabilities are far too moderate: these may be predictions, not outcomes, or rows that the model was fitted"
        " to. Check which column or array has the observed class."
    )
    return [Note("TN186", text)]


def check_groups_by_outcome(preds: Predictions) -> list[Note]:
    """Return a note on group columns that were formed by the outcome: every group has one class, not by chance.

    There is none if clusters are given, because rows of a cluster may have the same outcome.
    """
    if preds.y is None or preds.y.ndim > 1 or preds.cluster is not None:
        return []
    names = [name for name, groups in preds.group.items() if _have_single_outcomes(groups, preds)]
    if not names:
        return []
    text = (
        f"All rows of a group of {' or '.join(names)} have the same outcome, as if groups were formed by the outcome."
        " Errors within such groups do not measure calibration: form groups by what is known before the outcome."
    )
    return [Note("TN167", text)]


def _have_single_outcomes(groups: Array, preds: Predictions) -> bool:
    """Return whether every group has a single class, which by chance has a probability below MAX_CHANCE."""
    assert preds.y is not None
    step = max(1, preds.n // MIN_SAMPLE_ROWS)
    for rows in (slice(None, None, step), slice(None)):  # a sample usually has a group with several classes
        codes, y = np.unique(groups[rows], return_inverse=True)[1].ravel(), preds.y[rows]
        shares = np.bincount(y) / len(y)
        n_classes = len(np.unique(codes * preds.k + y))
        sizes = np.bincount(codes)
        if n_classes > len(sizes):
            return False
    # Rows of a group of m rows have one class with probability Σ r^m, where r are the shares of the classes.
    distinct_sizes, counts = np.unique(sizes, return_counts=True)
    log_chances = [math.log((shares**size).sum()) for size in distinct_sizes]
    return float(counts @ log_chances) < math.log(MAX_CHANCE)


def check_confidences(preds: Predictions) -> list[Note]:
    """Return a note if confidences are probably the probabilities of one class, and not of the predicted one."""
    if preds.kind != "confidence" or preds.y is None:
        return []
    is_low = (preds.p < 0.5) if preds.weight is None else (preds.p < 0.5) & (preds.weight > 0)
    return class_probability_notes(preds.p[is_low].astype(np.float64), preds.y[is_low], np.ones(int(is_low.sum())))


def class_probability_notes(low: Array, accuracy: Array, count: Array) -> list[Note]:
    """Return the note on confidences that are probably the probabilities of one class.

    `low` are confidences below 1/2, `accuracy` the observed accuracy, and `count` the number of rows with each.
    """
    n = count.sum()
    if n < MIN_LOW_CONFIDENCES:
        return []
    mean, mean_accuracy = count @ low / n, count @ accuracy / n
    excess = n * (mean_accuracy - mean) / np.sqrt(max(count @ (low * (1 - low)), 1e-300))
    deviation = abs(mean_accuracy - (1 - mean)) / (1 - 2 * mean)
    if excess < MIN_EXCESS or deviation > 1 / 4:
        return []
    deviations = low - mean
    slope_variance = mean_accuracy * (1 - mean_accuracy) * (count @ deviations**2)
    decreases = count @ (deviations * accuracy) <= -MIN_DECREASE * np.sqrt(slope_variance)
    if mean > NEARLY_ZERO and not decreases:
        return []
    text = (
        f"The {n:,.0f} answers with confidence below 0.5 are right in {100 * mean_accuracy:.1f} %, about as often as"
        f" 1 − confidence says ({100 * (1 - mean):.1f} %): these may be probabilities of one class, not confidences."
        " Pass them as the probability with the true class as the label, or pass max(p, 1 − p) as the confidence."
    )
    return [Note("TN187", text)]

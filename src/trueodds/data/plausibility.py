"""Recognize implausible data, such as hard labels instead of probabilities, shifted labels, or copied rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.class_names import labels_are_positions
from trueodds.data.copied_rows import copied_row_notes
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import largest_probabilities

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

# Rows that a model or a calibrator was probably fitted to.
MIN_FITTED_ROWS = 30
MAX_PROBABILITIES = 2**20  # with more, a few fitted parameters do not matter
# Numbers of probabilities, and at least of rows, from which accuracy and slope are estimated.
FITTED_SAMPLE_SIZE, MIN_FITTED_SAMPLE_ROWS = 2**14, 1000
# Largest score of level and slope, in standard deviations: both are smaller for one in 16,000 calibrated models.
MAX_SCORE = 0.01
MIN_DIFFERENT_PREDICTIONS = 10  # number of different predictions; with fewer, scores of exactly 0 are less rare
# A model whose log odds are too small by the first factor, significantly by the last one, and that is right so often.
# Forests reach these slopes on held-out rows of easy tasks, too (docs/level.md), so the note states both causes.
MIN_SLOPE, MIN_SLOPE_OF_CLASSES, MIN_SLOPE_LIMIT = 4.0, 5.0, 2.0
MIN_ACCURACY, MIN_EXCESS_OF_ACCURACY = 0.9, 0.05
# Expected number of errors from which none is a sign: a calibrated model makes none with probability exp(−9.2) = 1e-4.
MIN_EXPECTED_ERRORS = 9.2
MIN_PROB = 1e-12  # inside of logarithms

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
    is_certain = (preds.p[:1] == 0) | (preds.p[:1] == 1)
    notes = check_hard_labels(preds) if is_certain.all() else []
    if preds.kind == "confidence":
        notes += check_confidences(preds)
    if not any(note.code == "TN108" for note in preds.notes):  # logits that are probabilities: nearly equal predictions
        # Both of the last notes can name the same cause.
        notes += [*check_class_order(preds), *(check_predicted_outcomes(preds) or training_row_notes(preds))]
    notes += [*check_observed_classes(preds), *copied_row_notes(preds)]
    if preds.group and preds.cluster is None:  # rows of a cluster may have the same outcome
        notes += check_groups_by_outcome(preds)
    return notes


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
    k, step = preds.k, preds.n // max(MIN_SAMPLE_ROWS, SAMPLE_SIZE // preds.k)
    sample = [(slice(None, None, step), MIN_ACCURACY_GAIN / 2)] if step > 1 else []
    for rows, min_gain in [*sample, (slice(None), MIN_ACCURACY_GAIN + 2 / np.sqrt(preds.n))]:
        _, predicted = largest_probabilities(preds.p[rows], of_size=preds.p.size)
        w = None if preds.weight is None else preds.weight[rows]
        label, predicted, weight = _count_pairs(preds.y[rows], predicted, w, k)
        total_weight = weight.sum()
        if total_weight <= 0:
            return []
        accuracy = float(weight[label == predicted].sum() / total_weight)
        # The sum of the predicted classes' largest weights bounds the accuracy of any order, which usually avoids the
        # search.
        largest = np.zeros(k)
        np.maximum.at(largest, predicted, weight)
        if min(1.0, float(largest.sum() / total_weight)) - accuracy <= min_gain:
            return []
        order = np.array([1, 0]) if k == 2 else _best_order(label, predicted, weight, k)
        reordered_accuracy = float(weight[label == order[predicted]].sum() / total_weight)
        if reordered_accuracy - accuracy <= min_gain or reordered_accuracy <= 0.5:
            return []
    if not _is_better_on_other_rows(preds, accuracy):
        return []
    text = (
        f"With the classes in another order the accuracy would be {100 * reordered_accuracy:.1f} % instead of "
        f"{100 * accuracy:.1f} %: are the labels, or ⟨classes=⟩, in the order of the columns?"
    )
    return [Note("TN142", text)]


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
    ends = ((row, unmatched), (column, len(classes) + unmatched))
    pairs = tuple(np.concatenate(end, dtype=np.int32) for end in ends)  # SciPy 1.12 takes no other type
    _, matched_column = min_weight_full_bipartite_matching(csr_array((gains, pairs)), maximize=True)
    order = np.full(k, -1)
    is_matched = matched_column[row] == column
    order[predicted[is_matched]] = label[is_matched]
    return order


def check_observed_classes(preds: Predictions) -> list[Note]:
    """Return a note if a class was never observed, although it was expected or labels may start at 1."""
    if preds.kind == "confidence":
        assert preds.y is not None
        return no_correct_answer_notes(
            float((preds.w * preds.y).sum()), float((preds.w * preds.p).sum()) * preds.n / preds.w.sum()
        )
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
        expected[unobserved] = (w * p.T.astype(np.float64)).sum(axis=1) * (len(w) / w.sum())
    return unobserved_class_notes(is_observed, expected, preds.classes, preds.kind)


def unobserved_class_notes(is_observed: Array, expected: Array, classes: Sequence[Any], kind: str) -> list[Note]:
    """Return the note on classes that were never observed; `expected` (K,) are their expected numbers of rows."""
    is_expected = expected >= MIN_EXPECTED_EVENTS * (1 - 1e-12)  # up to the rounding of a sum
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
    p, y, block_rows = preds.p, preds.y, max(1, BLOCK_SIZE // preds.k)
    if preds.weight is not None and not preds.weight.all():
        p, y = p[preds.weight > 0], y[preds.weight > 0]
    blocks = [slice(first, first + block_rows) for first in range(0, len(y), block_rows)]
    n_differences, expected = 0, 0.0
    for rows in blocks:
        n_differences += int((largest_probabilities(p[rows], of_size=preds.p.size)[1] != y[rows]).sum())
        if n_differences > MAX_DIFFERENCES * preds.n:  # usually in one of the first blocks
            return []
    for rows in blocks:
        block = p[rows].astype(np.float64)
        sharpened = (np.stack([1 - block, block], axis=1) if p.ndim == 1 else block) ** UNDERCONFIDENCE
        expected += float((1 - sharpened.max(axis=1) / sharpened.sum(axis=1)).sum())
    return predicted_outcome_notes(n_differences, len(y), expected)


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
    """Return a note on group columns that were formed by the outcome: every group has one class, not by chance."""
    if preds.y is None or preds.y.ndim > 1:
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
    assert preds.y is not None
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


def training_row_notes(preds: Predictions) -> list[Note]:
    """Return a note if the predictions fit the outcomes better than those of new rows would.

    Level and slope of a logistic regression without penalty, and of isotonic regression, are exact on the rows that
    they were fitted to. A flexible classifier is nearly always right there, although its confidence is moderate.
    """
    is_recognized = any(note.code == "TN164" for note in preds.notes)  # rows of the fit of the calibrator
    if preds.y is None or preds.kind == "multilabel" or preds.n < MIN_FITTED_ROWS or is_recognized:
        return []
    if _has_exact_level_and_slope(preds):
        return [
            training_row_note("Calibration-in-the-large is exactly 0 and the slope exactly 1, as on rows of the fit")
        ]
    step = max(1, preds.n // max(MIN_FITTED_SAMPLE_ROWS, FITTED_SAMPLE_SIZE // preds.k))
    rows = slice(None, None, step)
    p, y = preds.p[rows], preds.y[rows]
    w = np.ones(len(y)) if preds.weight is None else preds.weight[rows]
    if preds.kind == "confidence":
        largest, is_correct = p, y
    else:
        largest, predicted = largest_probabilities(p, of_size=preds.p.size)
        is_correct = predicted == y
    confidence, accuracy = float((w * largest).sum() / w.sum()), float((w * is_correct).sum() / w.sum())
    # Predictions that only miss the rows of a rare class, of which these have none, are no complete fit.
    is_complete = accuracy > 1 - MIN_PROB and (preds.kind == "confidence" or len(np.unique(y)) > 1)
    if is_complete and (1 - confidence) * _count_independent_rows(preds, w, rows) >= MIN_EXPECTED_ERRORS:
        accuracy = 1.0
    elif accuracy < max(MIN_ACCURACY, confidence + MIN_EXCESS_OF_ACCURACY) or not _has_steep_slope(p, y, w, preds.k):
        return []
    of_sample = "" if step == 1 else f" in a sample of {len(y):,} rows"
    fact = (
        f"Accuracy, {100 * accuracy:.1f} %, is far above the mean confidence, {100 * confidence:.1f} %{of_sample}, as"
        " often on rows of the fit"
    )
    otherwise = " If it has not seen these, it is far too moderate: fit a calibrator by name, such as temperature."
    return [training_row_note(fact, otherwise)]


def training_row_note(fact: str, otherwise: str = "") -> Note:
    """Return the note on a fact that suggests that a model or calibrator was fitted to these rows."""
    return Note(
        "TN163",
        f"{fact}. If the model or a calibrator was fitted to these rows, no result holds for others: pass rows that it"
        f" has not seen.{otherwise}",
    )


def _has_exact_level_and_slope(preds: Predictions) -> bool:
    """Return whether mean prediction and event rate of every class, and the slope, agree far better than by chance."""
    if preds.n * preds.k > MAX_PROBABILITIES:
        return False
    w = np.ones(preds.n) if preds.weight is None else preds.weight
    p_first = preds.p if preds.p.ndim == 1 else preds.p[:, 0]
    y = preds.y
    assert y is not None
    first = 1 if preds.p.ndim == 1 else 0
    if not _is_tiny(w, (y == first) - p_first, p_first * (1 - p_first)):
        return False
    P, Y = preds.P.astype(np.float64), preds.Y
    if not all(_is_tiny(w, Y[:, k] - P[:, k], P[:, k] * (1 - P[:, k])) for k in range(preds.k)):
        return False
    if len(np.unique(p_first)) < MIN_DIFFERENT_PREDICTIONS:
        return False
    scores, variances = _slope_scores(P, y, 1.0)
    return _is_tiny(w, scores, variances)


def _is_tiny(w: Array, scores: Array, variances: Array) -> bool:
    """Return whether the weighted sum of the scores is tiny beside its standard deviation, from their variances."""
    return bool(abs((w * scores).sum()) <= MAX_SCORE * np.sqrt((w * w * np.maximum(variances, 0)).sum()))


def _slope_scores(P: Array, y: Array, slope: float) -> tuple[Array, Array]:
    """Return the derivative of the log-likelihood of each row at a slope of the log-probabilities, and its variance."""
    logs = np.log(np.maximum(P, MIN_PROB))
    q = np.exp(slope * (logs - logs.max(axis=1, keepdims=True)))
    q /= q.sum(axis=1, keepdims=True)
    mean = (q * logs).sum(axis=1)
    return logs[np.arange(len(y)), y] - mean, (q * logs * logs).sum(axis=1) - mean**2


def _has_steep_slope(p: Array, y: Array, w: Array, k: int) -> bool:
    """Return whether the slope is significantly above MIN_SLOPE_LIMIT, and above that of a model that is noted."""
    p = p.astype(np.float64)
    P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    scores, variances = _slope_scores(P, y, MIN_SLOPE_LIMIT)
    min_slope = MIN_SLOPE if k == 2 else MIN_SLOPE_OF_CLASSES
    is_low = (w * scores).sum() <= 2 * np.sqrt((w * w * variances).sum())
    return not (is_low or (w * _slope_scores(P, y, min_slope)[0]).sum() <= 0)


def _count_independent_rows(preds: Predictions, w: Array, rows: slice) -> float:
    """Return the effective number of some rows with weights w, at most the number of their clusters."""
    n_effective = float(w.sum() ** 2 / (w * w).sum())
    return n_effective if preds.cluster is None else min(n_effective, len(np.unique(preds.cluster[rows])))

"""Recognize implausible predictions: hard labels instead of probabilities, or classes in another order."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions

# Minimum gain of accuracy, in addition to 2/√n: at most 0.03 % of 3,000 random models with 2 to 10 classes reached it.
MIN_ACCURACY_GAIN = 0.25
MIN_ROWS = 30  # minimum number of rows for another order of the classes; with fewer, any order may fit
MIN_LABELS = 10  # minimum number of rows for hard labels; with fewer, all probabilities may be 0 and 1 by chance
SAMPLE_SIZE = 2**15  # number of probabilities in the sample of rows that is checked first
# Minimum number of sampled rows: by the normal approximation, a gain of MIN_ACCURACY_GAIN appears less than half
# as large in one of 10⁷ samples.
MIN_SAMPLE_ROWS = 2000
BLOCK_SIZE = 2**16  # number of probabilities per block

HARD_LABELS_TEXT = (
    "Every {what} is 0 or 1, as in predicted labels: pass probabilities, such as those of predict_proba. Labels "
    "have accuracy, but no calibration."
)


def plausibility_notes(preds: Predictions) -> list[Note]:
    """Return notes on implausible predictions: hard labels, or classes in another order.

    Fractions in the first block rule out hard labels, and a sample of the rows usually rules out another order of the
    classes. Otherwise all rows are used. Cost: half a millisecond for any number of rows if the sample is sufficient.
    """
    return [*check_hard_labels(preds), *check_class_order(preds)]


def check_hard_labels(preds: Predictions) -> list[Note]:
    """Return a note if every probability is 0 or 1."""
    if preds.n < MIN_LABELS or preds.logits is not None:  # logits may be so large that their probabilities are 0 and 1
        return []
    p = preds.p
    n_first = max(1, BLOCK_SIZE // (1 if p.ndim == 1 else p.shape[1]))
    if _are_all_certain(p[:n_first]) and _are_all_certain(p[n_first:]):
        return [hard_labels_note(preds.kind)]
    return []


def hard_labels_note(kind: str) -> Note:
    """Return the note on probabilities that are all 0 or 1."""
    return Note("TN149", HARD_LABELS_TEXT.format(what="confidence" if kind == "confidence" else "probability"))


def _are_all_certain(p: Array) -> bool:
    """Return whether all probabilities are 0 or 1."""
    return bool(((p == 0) | (p == 1)).all())


def check_class_order(preds: Predictions) -> list[Note]:
    """Return a note if another order of the classes would raise accuracy significantly, and above one half."""
    if preds.kind != "classes" or preds.y is None or preds.n < MIN_ROWS:
        return []
    step = preds.n // max(MIN_SAMPLE_ROWS, SAMPLE_SIZE // preds.k)
    if step > 1 and _compare_class_orders(preds, slice(None, None, step), MIN_ACCURACY_GAIN / 2) is None:
        return []
    accuracies = _compare_class_orders(preds, slice(None), MIN_ACCURACY_GAIN + 2 / np.sqrt(preds.n))
    if accuracies is None:
        return []
    accuracy, reordered_accuracy = accuracies
    text = (
        f"With the classes in another order the accuracy would be {100 * reordered_accuracy:.1f} % instead of "
        f"{100 * accuracy:.1f} %: are the labels, or classes=, in the order of the columns?"
    )
    return [Note("TN142", text)]


def _compare_class_orders(preds: Predictions, rows: slice, min_gain: float) -> tuple[float, float] | None:
    """Return the accuracy, also with the best order of the classes; None for a small gain or below one half."""
    p, k = preds.p[rows], preds.k
    assert preds.y is not None
    if p.ndim == 1 or k == 2:  # a comparison, which is many times faster than argmax
        predicted = p > 1 - p if p.ndim == 1 else p[:, 1] > p[:, 0]
    else:
        block_rows = max(1, BLOCK_SIZE // k)  # number of rows per block, because argmax copies its input
        predicted = np.concatenate(
            [p[first : first + block_rows].argmax(axis=1) for first in range(0, len(p), block_rows)]
        )
    w = None if preds.weight is None else preds.weight[rows]
    counts = np.bincount(preds.y[rows] * k + predicted, w, k * k).reshape(k, k)
    total_weight = counts.sum()
    if total_weight <= 0:
        return None
    accuracy = float(counts.trace() / total_weight)
    # The sum of the columns' largest counts bounds the accuracy of any order, which usually avoids the search.
    if min(1.0, float(counts.max(axis=0).sum() / total_weight)) - accuracy <= min_gain:
        return None
    if k == 2:
        reordered_accuracy = 1 - accuracy
    else:
        from scipy.optimize import linear_sum_assignment

        reordered_accuracy = float(counts[linear_sum_assignment(counts, maximize=True)].sum() / total_weight)
    is_better_order = reordered_accuracy - accuracy > min_gain and reordered_accuracy > 0.5
    return (accuracy, reordered_accuracy) if is_better_order else None

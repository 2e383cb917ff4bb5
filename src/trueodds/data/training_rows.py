"""Recognize rows that a model or a calibrator was probably fitted to, because its predictions fit them too well."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import largest_probabilities
from trueodds.data.weights import unit_weights

MIN_ROWS = 30
MAX_PROBABILITIES = 2**20  # with more, a few fitted parameters do not matter
# Numbers of probabilities, and at least of rows, from which accuracy and slope are estimated.
SAMPLE_SIZE, MIN_SAMPLE_ROWS = 2**14, 1000
# Largest score of level and slope, in standard deviations: both are smaller for one in 16,000 calibrated models.
MAX_SCORE = 0.01
MIN_VALUES = 10  # number of different predictions; with fewer, scores of exactly 0 are less rare
# A model whose log odds are too small by the first factor, significantly by the last one, and that is right so often.
# Forests reach these slopes on held-out rows of easy tasks, too (docs/level.md), so the note states both causes.
MIN_SLOPE, MIN_SLOPE_OF_CLASSES, MIN_SLOPE_LIMIT = 4.0, 5.0, 2.0
MIN_ACCURACY, MIN_ACCURACY_GAIN = 0.9, 0.05
# Expected number of errors from which none is a sign: a calibrated model makes none with probability exp(−9.2) = 1e-4.
MIN_EXPECTED_ERRORS = 9.2
MIN_PROB = 1e-12  # inside of logarithms


def training_row_notes(preds: Predictions) -> list[Note]:
    """Return a note if the predictions fit the outcomes better than those of new rows would.

    Level and slope of a logistic regression without penalty, and of isotonic regression, are exact on the rows that
    they were fitted to. A flexible classifier is nearly always right there, although its confidence is moderate.
    """
    is_recognized = any(note.code == "TN164" for note in preds.notes)  # rows of the fit of the calibrator
    if preds.y is None or preds.kind == "multilabel" or preds.n < MIN_ROWS or is_recognized:
        return []
    if _has_exact_level_and_slope(preds):
        return [
            training_row_note("Calibration-in-the-large is exactly 0 and the slope exactly 1, as on rows of the fit")
        ]
    step = max(1, preds.n // max(MIN_SAMPLE_ROWS, SAMPLE_SIZE // preds.k))
    if accuracies := _compare_accuracy_with_confidence(preds, slice(None, None, step)):
        accuracy, confidence = accuracies
        rows = "" if step == 1 else f" in a sample of {len(range(0, preds.n, step)):,} rows"
        fact = (
            f"Accuracy, {100 * accuracy:.1f} %, is far above the mean confidence, {100 * confidence:.1f} %{rows}, as"
            " often on rows of the fit"
        )
        otherwise = " If it has not seen these, it is far too moderate: fit a calibrator by name, such as temperature."
        return [training_row_note(fact, otherwise)]
    return []


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
    w = preds.w
    p_first = preds.p if preds.p.ndim == 1 else preds.p[:, 0]
    y = preds.y
    assert y is not None
    first = 1 if preds.p.ndim == 1 else 0
    if not _is_tiny(w, (y == first) - p_first, p_first * (1 - p_first)):
        return False
    P, Y = preds.P.astype(np.float64), preds.Y
    if not all(_is_tiny(w, Y[:, k] - P[:, k], P[:, k] * (1 - P[:, k])) for k in range(preds.k)):
        return False
    if len(np.unique(p_first)) < MIN_VALUES:
        return False
    scores, variances = _slope_scores(P, y, 1.0)
    return _is_tiny(w, scores, variances)


def _is_tiny(w: Array, scores: Array, variances: Array) -> bool:
    """Return whether the weighted sum of the scores is tiny beside its standard deviation, from their variances."""
    return bool(abs(w @ scores) <= MAX_SCORE * np.sqrt(w * w @ np.maximum(variances, 0)))


def _slope_scores(P: Array, y: Array, slope: float) -> tuple[Array, Array]:
    """Return the derivative of the log-likelihood of each row at a slope of the log-probabilities, and its variance."""
    logs = np.log(np.maximum(P, MIN_PROB))
    q = np.exp(slope * (logs - logs.max(axis=1, keepdims=True)))
    q /= q.sum(axis=1, keepdims=True)
    mean = (q * logs).sum(axis=1)
    return logs[np.arange(len(y)), y] - mean, (q * logs * logs).sum(axis=1) - mean**2


def _compare_accuracy_with_confidence(preds: Predictions, rows: slice) -> tuple[float, float] | None:
    """Return accuracy and mean confidence of some rows if the former is far larger and the slope steep or infinite."""
    assert preds.y is not None
    p, y = preds.p[rows], preds.y[rows]
    w = unit_weights(len(y)) if preds.weight is None else preds.weight[rows]
    if preds.kind == "confidence":
        largest, is_correct = p, y
    else:
        largest, predicted = largest_probabilities(p, of_size=preds.p.size)
        is_correct = predicted == y
    confidence, accuracy = w @ largest / w.sum(), w @ is_correct / w.sum()
    # Predictions that only miss the rows of a rare class, of which these have none, are no complete fit.
    is_complete = accuracy > 1 - MIN_PROB and (preds.kind == "confidence" or len(np.unique(y)) > 1)
    if is_complete and (1 - confidence) * _count_independent_rows(preds, w, rows) >= MIN_EXPECTED_ERRORS:
        return 1.0, float(confidence)
    if accuracy < max(MIN_ACCURACY, confidence + MIN_ACCURACY_GAIN):
        return None
    p = p.astype(np.float64)
    P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    scores, variances = _slope_scores(P, y, MIN_SLOPE_LIMIT)
    min_slope = MIN_SLOPE if preds.k == 2 else MIN_SLOPE_OF_CLASSES
    if w @ scores <= 2 * np.sqrt(w * w @ variances) or w @ _slope_scores(P, y, min_slope)[0] <= 0:
        return None
    return float(accuracy), float(confidence)


def _count_independent_rows(preds: Predictions, w: Array, rows: slice) -> float:
    """Return the effective number of some rows with weights w, at most the number of their clusters."""
    n_effective = float(w.sum() ** 2 / (w @ w))
    return n_effective if preds.cluster is None else min(n_effective, len(np.unique(preds.cluster[rows])))

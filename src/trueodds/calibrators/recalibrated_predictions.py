"""Replace the probabilities of predictions, and keep their labels, weights, groups and clusters."""

from __future__ import annotations

from typing import Any

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array
from trueodds.data.prediction_arrays import ARRAY_FIELDS
from trueodds.data.predictions import Predictions, restore_predictions

PROBABILITY_NOTE_PREFIX = "TN10"  # the codes of notes on sums, rounding, ties and logits of probabilities begin so


def replace_probabilities(preds: Predictions, P: Array) -> Predictions:
    """Return the predictions with the probabilities P (n, K), and everything else that belongs to the rows."""
    values = {name: getattr(preds, name) for name in ARRAY_FIELDS} | {
        "p": P[:, 1] if preds.kind == "confidence" else P,
        "logits": None,
        "dtype": P.dtype.name,
        "notes": tuple(note for note in preds.notes if not note.code.startswith(PROBABILITY_NOTE_PREFIX)),
    }
    return restore_predictions(values)


def check_predictions(preds: Any, classes: tuple[Any, ...]) -> None:
    """Raise TO203 for anything but Predictions, and TO501 for other classes or another order."""
    if not isinstance(preds, Predictions):
        fix = "Pass Predictions(y_true, y_prob), or call predict_proba for probabilities alone."
        raise InputError("TO203", "`preds` must be Predictions.", describe(preds), fix)
    if preds.kind != "multilabel":
        check_class_names(preds.classes, classes)


def check_class_names(names: tuple[Any, ...], classes: tuple[Any, ...]) -> None:
    """Raise TO501 for predictions of other classes, or of the same ones in another order.

    Names are compared if both sides have names; the numbers 0..K−1 refer to the columns.
    """
    own_names, expected_names = [str(name) for name in names], [str(name) for name in classes]
    if len(own_names) != len(expected_names) or (
        own_names != expected_names and [str(i) for i in range(len(own_names))] not in (own_names, expected_names)
    ):
        raise InputError(
            "TO501",
            "The predictions are not for the calibrator's classes in its order.",
            f"{', '.join(own_names)}, and {', '.join(expected_names)} in the calibrator",
            "Order the columns as the calibrator's classes.",
        )

"""Check predictions that a calibrator is applied to, convert them to class columns, and replace their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.class_names import class_numbers
from trueodds.data.prediction_arrays import replace_arrays
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import check_probabilities, prob_columns

# The codes of notes on sums, rounding, ties and logits of probabilities begin so.
_PROBABILITY_NOTE_PREFIXES = ("TN10", "TN193")


def logit_columns(z: Array) -> Array:
    """Log odds (n,) of the second class as the logits (0, z); logits (n, K) as they are."""
    return np.stack([np.zeros_like(z), z], axis=1) if z.ndim == 1 else z


def class_names_array(classes: tuple[Any, ...]) -> Array:
    """The class names as an array (K,), of dtype object if their types differ."""
    if len({type(name) for name in classes}) == 1:
        names = np.array(classes)
        if names.ndim == 1:
            return names
    mixed_names = np.empty(len(classes), dtype=object)
    mixed_names[:] = classes
    return mixed_names


def check_prob_matrix(y_prob: ArrayLike, k: int, sum_tolerance: float | None = None) -> Array:
    """Check probabilities of rows without outcomes as `Predictions` does, and return them as (n, K) float64."""
    raw = arrays.as_array(y_prob, "y_prob")
    p = arrays.as_float_array(raw, "y_prob")
    arrays.check_shape(p, "y_prob")
    check_class_count(p, k, "y_prob")
    check_probabilities(p, raw.dtype, sum_tolerance, check_sums=True)
    return prob_columns(p)


def check_class_count(values: Array, k: int, name: str) -> None:
    """Raise TO501 for another number of classes than the calibrator has; `name` is that of the argument."""
    n_classes = 2 if values.ndim == 1 else values.shape[1]
    if n_classes != k:
        one_row = values.ndim == 1 and len(values) == k
        raise InputError(
            "TO501",
            f"This calibrator was fitted for {k} classes.",
            f"{n_classes} ({name} has shape {tuple(values.shape)})",
            "Pass a single row as P[:1]." if one_row else "Pass one column per class, in the order of ⟨.classes⟩.",
        )


def check_column_order(table: Any, classes: tuple[Any, ...]) -> None:
    """Raise TO501 for a data frame whose columns are named after the classes in another order."""
    columns = getattr(table, "columns", None)
    if columns is None or callable(columns):
        return
    column_classes, expected = [str(name).rsplit("_", 1)[-1] for name in columns], [str(name) for name in classes]
    numbers, expected_numbers = class_numbers(list(map(str, columns))), class_numbers(expected)
    if numbers is not None and expected_numbers is not None:
        column_classes, expected = list(map(str, numbers)), list(map(str, expected_numbers))
    if column_classes != expected and sorted(column_classes) == sorted(expected):
        raise InputError(
            "TO501",
            "The columns are not in the order of the calibrator's classes.",
            ", ".join(map(str, columns)),
            f"Order them as {', '.join(expected)}.",
        )


def resolve_predictions(preds: Any, classes: tuple[Any, ...]) -> Predictions:
    """Return Predictions, or those of a tuple (y_true, y_prob), for a calibrator of these classes.

    Raises TO203 for anything else, and TO501 for other classes or another order.
    """
    if isinstance(preds, tuple) and len(preds) == 2:
        preds = Predictions(*preds)
    if not isinstance(preds, Predictions):
        fix = "Pass Predictions(y_true, y_prob), or call predict_proba for probabilities alone."
        raise InputError("TO203", "`preds` must be Predictions.", describe(preds), fix)
    if preds.kind != "multilabel":
        check_class_names(preds.classes, classes)
    return preds


def check_class_names(names: tuple[Any, ...], classes: tuple[Any, ...]) -> None:
    """Raise TO501 for predictions of other classes, or of the same ones in another order.

    Names are compared if both sides have names; the numbers 0..K−1 refer to the columns and so agree with any names.
    """
    own_names, expected_names = [str(name) for name in names], [str(name) for name in classes]
    column_numbers = [str(i) for i in range(len(own_names))]
    agree = own_names == expected_names or column_numbers in (own_names, expected_names)
    if (numbers := class_numbers(own_names)) is not None:
        agree = agree or numbers == class_numbers(expected_names)
    if len(own_names) != len(expected_names) or not agree:
        raise InputError(
            "TO501",
            "The predictions are not for the calibrator's classes in its order.",
            f"{', '.join(own_names)}, and {', '.join(expected_names)} in the calibrator",
            "Order the columns as the calibrator's classes.",
        )


def replace_probabilities(preds: Predictions, P: Array) -> Predictions:
    """Return the predictions with the probabilities P (n, K), and everything else that belongs to the rows."""
    notes = tuple(note for note in preds.notes if not note.code.startswith(_PROBABILITY_NOTE_PREFIXES))
    p = P[:, 1] if preds.kind == "confidence" else P
    return replace_arrays(preds, p=p, logits=None, dtype=P.dtype.name, notes=notes)


def add_note(preds: Predictions, note: Note) -> Predictions:
    return replace_arrays(preds, notes=(*preds.notes, note))


def independent_labels_error(k: int) -> InputError:
    return InputError(
        "TO502",
        "Calibrators need classes that exclude each other; these labels are independent.",
        f"{k} labels",
        "Fit one per label, on the rows in which it is known: ⟨Predictions(Y[:, j], P[:, j])⟩, or, from logits,"
        " ⟨Predictions.from_logits(Y[:, j], Z[:, j])⟩.",
    )


def missing_logits_error() -> InputError:
    return InputError(
        "TO509",
        "This calibrator was fitted on logits, which probabilities do not determine.",
        "probabilities",
        "Pass the logits with ⟨logits=True⟩, or fit it on probabilities.",
    )

"""Concatenate the rows of several predictions of the same kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.errors import InputError
from trueodds.data.prediction_arrays import ARRAY_FIELDS
from trueodds.data.predictions import Predictions, restore_predictions

# The arrays with one entry or row per prediction; those of `group` are concatenated separately.
_ROW_ARRAYS = ("p", "logits", "partial_y", "votes", "counts", "weight", "row_id")


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Concatenate the rows of several Predictions in order, without validating them again.

    Raises InputError TO401 for another kind, other classes, columns that only one has, or clusters.

    >>> both = concatenate([Predictions([0, 1], [0.2, 0.7]), Predictions([1], [0.9])])
    >>> both.n, both.p.tolist()
    (3, [0.2, 0.7, 0.9])
    """
    first = parts[0]
    for other in parts[1:]:
        if _concatenation_key(other) != _concatenation_key(first):
            got = f"{_concatenation_key(first)} and {_concatenation_key(other)}"
            raise InputError(
                "TO401",
                "Predictions of different kinds or classes cannot be concatenated.",
                got,
                "Read them in the same way.",
            )
    if len(parts) == 1:
        return first
    values = {name: getattr(first, name) for name in ARRAY_FIELDS} | {"n": sum(part.n for part in parts)}
    for name in _ROW_ARRAYS:
        if values[name] is not None:
            values[name] = np.concatenate([getattr(part, name) for part in parts])
    if any(part.labeled is not None for part in parts):
        masks = [np.ones(part.n, dtype=bool) if part.labeled is None else part.labeled for part in parts]
        values["labeled"] = np.concatenate(masks)
    values["group"] = {name: np.concatenate([part.group[name] for part in parts]) for name in first.group}
    values["notes"] = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return restore_predictions(values)


def _concatenation_key(preds: Predictions) -> tuple[object, ...]:
    """Return what must be equal; clustered rows match only themselves, because numbers of clusters are their own."""
    present_arrays = tuple(name for name in _ROW_ARRAYS if getattr(preds, name) is not None)
    return (
        preds.kind,
        preds.classes,
        preds.p.shape[1:],
        present_arrays,
        tuple(sorted(preds.group)),
        preds.cluster is None or id(preds),
    )

"""How large an error can these rows show at most? What the farthest outcomes would make of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand

CONSTANT = 10  # classes that are tried as the outcome of every row


def largest(estimand: Estimand, preds: Predictions) -> float:
    """The largest error among the outcomes that are farthest from what was said, greater being worse; −∞ where undefined.

    Every row has its least likely outcome, its likeliest, or all have the same: the error of bins lies farthest where
    all rows of a bin have one outcome.
    """
    errors = [
        float(estimand.combined(estimand.estimator.as_loss(estimand.estimator.values(views))))
        for views in _tried(estimand, preds)
    ]
    return max((value for value in errors if value == value), default=-np.inf)


def _tried(estimand: Estimand, preds: Predictions) -> Iterator[tuple[View, ...]]:
    if len(estimand.views) == 1:
        (view,) = estimand.views
        for y in _outcomes(view.p):
            yield (View(view.p, y, view.w, n=view.n, name=view.name, classes=view.classes, exact=view.exact),)
    else:  # several views read the same label
        for y in _outcomes(preds.P):
            yield estimand.lens.views(preds.with_labels(y.argmax(axis=1)))


def _outcomes(p: Array) -> Iterator[Array]:
    """Outcomes of the shape of the probabilities: (n,) of 0 and 1, or (n, m) one-hot."""
    if p.ndim == 1:
        yield from (np.zeros(len(p)), np.ones(len(p)), (p < 0.5).astype(np.float64), (p >= 0.5).astype(np.float64))
        return
    every = np.arange(p.shape[1])
    for label in (p.argmin(axis=1), p.argmax(axis=1), *(np.full(len(p), c) for c in every[:CONSTANT])):
        yield (label[:, None] == every).astype(np.float64)

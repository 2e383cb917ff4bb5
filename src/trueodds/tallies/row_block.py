"""Block of rows in the memory layout of the compiled kernels of a tally, with its values by class and by rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_observed
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import NOTED_SUM_DEVIATION, two_columns
from trueodds.kernels import as_plain_array


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """A block of rows in the memory layout of the kernels: read-only and C-ordered."""

    kind: str  # kind of the predictions: "classes", "confidence" or "multilabel"
    P: Array  # (n, m) probabilities, float32 or float64; m = 1 for bare confidence
    y: Array | None  # (n,) labels, or (n, m) of 0 and 1 for multilabel; None for votes
    votes: Array | None  # (n, m) share of the votes for each class; None for labels
    w: Array | None  # (n,) weights; None if all are 1
    rounding_tolerance: float  # largest deviation of a row sum from 1 by rounding
    has_one_column: bool  # whether one column was given, so that the probability of the first of two classes is 1 − p
    logits: Array | None = None  # (n,) log odds or (n, m) logits, if P was computed from them and may underflow
    log_observed: Array | None = None  # (n,) log-probability of what was observed, if there are logits

    @classmethod
    def from_predictions(cls, preds: Predictions, selection: slice | Array) -> RowBlock:
        p = preds.p[selection]
        logits = log_probs = None
        if preds.logits is not None and preds.kind == "multilabel":
            assert preds.y is not None
            logits = preds.logits[selection]
            log_probs = -np.logaddexp(0.0, np.where(preds.y[selection] == 1, -logits, logits)).mean(axis=1)
        elif preds.logits is not None:
            logits = preds.logits[selection]
            log_probs = preds.cached("log observed", partial(log_observed, preds))[selection]
        if preds.kind == "confidence":
            P = p[:, None]
        else:
            P = two_columns(p, logits) if p.ndim == 1 else p
        rounding_tolerance = np.inf
        if preds.kind == "classes" and p.ndim == 2:
            dtype = np.dtype(preds.dtype)
            eps = float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
            rounding_tolerance = max(P.shape[1] * eps, NOTED_SUM_DEVIATION)
        y, votes, w = (
            None if column is None else as_plain_array(column[selection])
            for column in (preds.y, preds.votes, preds.weight)
        )
        return cls(preds.kind, as_plain_array(P), y, votes, w, rounding_tolerance, p.ndim == 1, logits, log_probs)

    @property
    def has_exact_cells(self) -> bool:
        """Whether a value times the number of cells is exact in float64, so that it gives the cell, as for float32."""
        return self.P.dtype == np.float32

    @property
    def is_unweighted(self) -> bool:
        """Whether each row has one label and there are no weights."""
        return self.w is None and self.votes is None

    @property
    def weights(self) -> Array:
        return np.ones(len(self.P)) if self.w is None else self.w


def values_by_rank(rows: RowBlock, ranked_columns: Array) -> tuple[Array, Array]:
    """The largest probabilities of each row and their outcomes, both (n, ranks), from their columns (n, ranks)."""
    if rows.kind == "confidence" and rows.votes is None:
        assert rows.y is not None
        return rows.P, rows.y[:, None]
    P = as_plain_array(np.take_along_axis(rows.P, ranked_columns, axis=1))
    if rows.votes is not None:
        return P, np.take_along_axis(rows.votes, ranked_columns, axis=1)
    assert rows.y is not None
    return P, ranked_columns == rows.y[:, None]


def values_by_class(rows: RowBlock, first: int, last: int) -> tuple[Array, Array]:
    return as_plain_array(rows.P[:, first:last]), outcomes_by_class(rows, first, last)


def outcomes_by_class(rows: RowBlock, first: int, last: int) -> Array:
    """The outcome shares of the classes first..last−1, (n, last − first) float64."""
    if rows.votes is not None:
        return rows.votes[:, first:last]
    assert rows.y is not None
    observed = rows.y[:, first:last] if rows.kind == "multilabel" else rows.y[:, None] == np.arange(first, last)
    return observed.astype(np.float64)

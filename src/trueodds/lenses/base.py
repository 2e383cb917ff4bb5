"""Base class of lenses, and the mapping of labels to the outcomes that a lens examines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import InducedProbabilities, LogOdds
from trueodds.data.predictions import Predictions
from trueodds.lenses.row_sources import ExactProbabilities, RowSource
from trueodds.lenses.view import View


@dataclass(frozen=True, eq=False)
class OutcomeCodes:
    """Mapping of labels to the outcomes of one view: `code[i, c]` is the outcome of label c in row i.

    In a binary view the code is 1 for the event. In a joint view it is the number of the outcome. If the code does not
    depend on the prediction, a single row of codes applies to all rows.
    """

    code: Array  # (n, K) or (1, K) ints

    def outcomes_of_labels(self, labels: Array, m: int) -> Array:
        """Return the outcomes of the labels (n,): (n,) bool for a binary view, (n, m) one-hot for a joint view."""
        row = np.arange(len(labels)) if len(self.code) > 1 else 0
        outcomes = self.code[row, labels]
        return outcomes == 1 if m == 1 else outcomes[:, None] == np.arange(m)

    def outcome_numbers(self, labels: Array) -> Array:
        """Return the outcome number of each label (n, draws), in the integer type of the labels."""
        if len(self.code) == 1:
            if np.array_equal(self.code[0], np.arange(self.code.shape[1])):  # each class is an outcome of its own
                return labels
            return self.code[0].astype(labels.dtype)[labels]
        return np.take_along_axis(self.code.astype(labels.dtype), labels.astype(np.intp), axis=1)

    def outcome_shares(self, shares: Array, m: int) -> Array:
        """Return the outcome shares, (n,) or (n, m), of the class shares (n, K) of each row's votes."""
        if m == 1:
            return np.where(self.code == 1, shares, 0.0).sum(axis=1)
        if np.array_equal(self.code, np.arange(shares.shape[1])[None]):  # each class is an outcome of its own
            return shares
        return np.stack([np.where(self.code == outcome, shares, 0.0).sum(axis=1) for outcome in range(m)], axis=1)


class Lens(Settings):
    """Base class of lenses: a lens extracts one or several views from predictions.

    A subclass implements `probabilities`, the predicted probabilities of each view, and `outcome_codes`, the mapping
    of labels to the outcomes of each view.
    """

    name: str = ""  # as `as_lens` takes it
    aggregate = "mean"  # default aggregation of the values of its views

    def probabilities(self, preds: Predictions) -> list[Array]:
        """Return the predicted probabilities of each view: (n,), or (n, m) for a joint view."""
        raise NotImplementedError

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """Return the mapping of labels to outcomes, for each view."""
        raise NotImplementedError

    def view_names(self, preds: Predictions) -> list[str]:
        """Return the name of each view, which labels its part of a result."""
        return [self.name]

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Return the views of these predictions and their outcomes."""
        self.check(preds)
        # Independent labels are binary, and for bare confidence the number of classes is unknown.
        classes = {"multilabel": 2, "confidence": 0}.get(preds.kind, preds.k)
        has_weights = preds.weight is not None or (preds.kind == "multilabel" and preds.known is not None)
        rows_of_views = None if preds.y is None or has_weights else self.unweighted_rows(preds, preds.y)
        names = self.view_names(preds)
        sources = [self.complement_source(preds, i) for i in range(len(names))]
        if rows_of_views is not None:
            return tuple(
                View(rows=rows, name=name, classes=classes, exact=source)
                for name, rows, source in zip(names, rows_of_views, sources, strict=True)
            )
        return tuple(
            View(p, y, w, name=name, classes=classes, votes=preds.counts, exact=source)
            for name, p, y, w, source in zip(
                names,
                self.probabilities(preds),
                self._observed_outcomes(preds),
                self._weights_of_views(preds, len(names)),
                sources,
                strict=True,
            )
        )

    def _weights_of_views(self, preds: Predictions, n_views: int) -> list[Array | None]:
        if preds.known is None:
            return [preds.weight] * n_views
        columns = self.class_columns(preds)
        weights: list[Array | None] = [preds.w * preds.known[:, c] for c in columns]
        for c, w in zip(columns, weights, strict=True):
            if w is not None and not w.any():
                got, fix = f"{describe(preds.classes[c])}, in {preds.n:,} rows", "Leave out its columns, or these rows."
                raise InputError("TO358", "A label is unknown in every row.", got, fix)
        return weights

    def complement_source(self, preds: Predictions, i: int) -> ExactProbabilities | None:
        """Return the source of exact complements and logarithms of view i; None if only its probabilities are known."""
        if preds.kind == "multilabel" and preds.logits is not None:
            return LogOdds(preds.logits[:, self.class_columns(preds)[i]])
        return (
            InducedProbabilities(preds, lambda: self.outcome_codes(preds)[i].code) if preds.kind == "classes" else None
        )

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource] | None:
        """Return the row source of each view, for rows of weight 1 with one label `y` each; None if there is none."""
        return None

    def _observed_outcomes(self, preds: Predictions) -> list[Array]:
        if preds.kind == "multilabel":
            assert preds.y is not None
            return [preds.y[:, c] == 1 for c in self.class_columns(preds)]
        widths = [1 if p.ndim == 1 else p.shape[1] for p in self.probabilities(preds)]
        if preds.votes is not None:
            return [
                codes.outcome_shares(preds.votes, m) for codes, m in zip(self.outcome_codes(preds), widths, strict=True)
            ]
        assert preds.y is not None
        return [
            codes.outcomes_of_labels(preds.y, m) for codes, m in zip(self.outcome_codes(preds), widths, strict=True)
        ]

    def class_columns(self, preds: Predictions) -> list[int]:
        raise NotImplementedError

    def check(self, preds: Predictions) -> None:
        """Raise InputError if the lens does not apply to these predictions."""
        if preds.kind == "multilabel":
            raise InputError(
                "TO204",
                f"The lens {self.name} needs mutually exclusive classes, but these labels are independent.",
                f"⟨lens={self.name!r}⟩",
                "Use ⟨lens='classwise'⟩ or 'class:NAME'.",
            )
        if preds.kind == "confidence":
            raise InputError(
                "TO204",
                f"The lens {self.name} needs the probability of every class, but only confidences are given.",
                f"⟨lens={self.name!r}⟩",
                "Use ⟨lens='confidence'⟩.",
            )

    def notes(self, preds: Predictions) -> list[Note]:
        """Return the notes on the data that are specific to this lens."""
        return []

    def __str__(self) -> str:
        return self.name


def event_codes(target: Array | int, k: int) -> OutcomeCodes:
    """Return the outcome codes of a binary view: its event is the label `target` of k, for all rows or by row (n,)."""
    return OutcomeCodes((np.arange(k) == np.atleast_1d(np.asarray(target))[:, None]).astype(np.int8))


def class_probability(preds: Predictions, c: int) -> Array:
    """Return the probability (n,) of class c. A single column is the probability of the second class."""
    return preds.p if preds.p.ndim == 1 and c == 1 else preds.P[:, c]

"""Base class of lenses, and how a lens turns labels into the outcomes of its views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import InducedProbabilities
from trueodds.data.predictions import Predictions
from trueodds.lenses.rows import Exact, Rows
from trueodds.lenses.view import View


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How a label becomes the outcome of one view: `code[i, c]` is what view and row i make of label c.

    A binary view codes 1 for the event; a joint view codes the number of the outcome. One row serves all
    rows where the code does not depend on the prediction.
    """

    code: Array  # (n, K) or (1, K) ints

    def of_labels(self, labels: Array, m: int) -> Array:
        """The outcome of each row's label: (n,) of 0 and 1, or (n, m) one-hot for a joint view."""
        row = np.arange(len(labels)) if len(self.code) > 1 else 0
        z = self.code[row, labels]
        return z == 1 if m == 1 else z[:, None] == np.arange(m)

    def numbers(self, labels: Array) -> Array:
        """The code of each label of (n, draws), in as small whole numbers."""
        if len(self.code) == 1:
            if np.array_equal(self.code[0], np.arange(self.code.shape[1])):  # every class for itself
                return labels
            return self.code[0].astype(labels.dtype)[labels]
        return np.take_along_axis(self.code.astype(labels.dtype), labels.astype(np.intp), axis=1)

    def of_shares(self, shares: Array, m: int) -> Array:
        """The outcome shares of each row's votes."""
        if m == 1:
            return np.where(self.code == 1, shares, 0.0).sum(axis=1)
        if np.array_equal(self.code, np.arange(shares.shape[1])[None]):  # every class for itself
            return shares
        return np.stack([np.where(self.code == z, shares, 0.0).sum(axis=1) for z in range(m)], axis=1)


class Lens(Settings):
    """A claim about predictions. `predicted` gives the probabilities of each view, `outcomes` how labels are read."""

    name: str = ""
    aggregate = "mean"  # how its views make one number, if not said otherwise
    vector = True  # whether the lens needs a probability for every class

    def predicted(self, preds: Predictions) -> list[Array]:
        """The induced probabilities of each view: (n,), or (n, m) for a joint view."""
        raise NotImplementedError

    def outcomes(self, preds: Predictions) -> list[Outcomes]:
        """How each view reads a label."""
        raise NotImplementedError

    def view_names(self, preds: Predictions) -> list[str]:
        """The name of each view, for parts of a result."""
        return [self.name]

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """The views of these predictions and their outcomes."""
        self.check(preds)
        # Independent labels are a yes or no each; bare confidence does not tell how many classes there were.
        classes = {"multilabel": 2, "confidence": 0}.get(preds.kind, preds.k)
        plain = None if preds.y is None or preds.weight is not None else self.plain(preds, preds.y)
        names = self.view_names(preds)
        exact = [self.exact(preds, i) for i in range(len(names))]
        if plain is not None:
            return tuple(
                View.of_rows(rows, name=name, classes=classes, exact=e)
                for name, rows, e in zip(names, plain, exact, strict=True)
            )
        return tuple(
            View(p, z, preds.weight, name=name, classes=classes, votes=preds.counts, exact=e)
            for name, p, z, e in zip(names, self.predicted(preds), self._observed(preds), exact, strict=True)
        )

    def exact(self, preds: Predictions, i: int) -> Exact | None:
        """Where the complements and logarithms of a view come from; None where its probability is all there is."""
        return InducedProbabilities(preds, lambda: self.outcomes(preds)[i].code) if preds.kind == "classes" else None

    def plain(self, preds: Predictions, y: Array) -> Sequence[Rows] | None:
        """The rows of each view where there are no weights and a label `y` each; None: columns are made at once."""
        return None

    def _observed(self, preds: Predictions) -> list[Array]:
        if preds.kind == "multilabel":
            assert preds.y is not None
            return [preds.y[:, c] == 1 for c in self.columns(preds)]
        widths = [1 if p.ndim == 1 else p.shape[1] for p in self.predicted(preds)]
        if preds.votes is not None:
            return [o.of_shares(preds.votes, m) for o, m in zip(self.outcomes(preds), widths, strict=True)]
        assert preds.y is not None
        return [o.of_labels(preds.y, m) for o, m in zip(self.outcomes(preds), widths, strict=True)]

    def columns(self, preds: Predictions) -> list[int]:
        """Which classes the views are about, for lenses that look at single classes."""
        raise NotImplementedError

    def check(self, preds: Predictions) -> None:
        """Refuse a lens that has no meaning for these predictions."""
        if preds.kind == "multilabel":
            raise InputError(
                "TO204",
                f"The lens {self.name} compares classes that exclude each other; these labels are independent.",
                f"lens={self.name!r}",
                "Use lens='classwise' or 'class:NAME'.",
            )
        if preds.kind == "confidence":
            raise InputError(
                "TO204",
                f"The lens {self.name} needs the probability of every class; here is only the confidence.",
                f"lens={self.name!r}",
                "Use lens='confidence'.",
            )

    def notes(self, preds: Predictions) -> list[Note]:
        """Facts about the data that this lens brings up."""
        return []

    def __str__(self) -> str:
        return self.name


def hit(target: Array | int, k: int) -> Outcomes:
    """The event is one label: the same for all rows, or one per row."""
    return Outcomes((np.arange(k) == np.atleast_1d(np.asarray(target))[:, None]).astype(np.int8))


def column(preds: Predictions, c: int) -> Array:
    """The probability of one class; a single column holds that of the second."""
    return preds.p if preds.p.ndim == 1 and c == 1 else preds.P[:, c]

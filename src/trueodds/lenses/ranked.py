"""Lenses on the ranked probabilities of each row: confidence, top-label, the r-th largest, and top-k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Integer
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels.row_statistics import row_maxima
from trueodds.lenses.base import Lens, OutcomeCodes, event_codes
from trueodds.lenses.row_sources import LargestProbability, RowSource, ViewColumn
from trueodds.lenses.view import View


@dataclass(frozen=True, eq=False)
class Confidence(Lens):
    """Confidence lens: the largest probability against whether that class was observed.

    Ties are resolved in favor of the lowest class number.
    """

    name = "confidence"

    def probabilities(self, preds: Predictions) -> list[Array]:
        if preds.kind == "confidence":
            return [preds.p]
        if preds.p.ndim == 1:
            return [np.maximum(preds.p, 1 - preds.p)]
        return [row_maxima(preds.p)[0]]

    def unweighted_rows(self, preds: Predictions, y: Array) -> Sequence[RowSource] | None:
        """Return a row source that finds the largest probabilities while it computes the sums."""
        if preds.kind == "confidence":
            return [ViewColumn(preds.p, y, 1)]
        return None if preds.p.ndim == 1 else [LargestProbability(preds.p, y, preds.record_tied)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        if preds.kind == "confidence":
            return [event_codes(1, 2)]
        return [event_codes(predicted_class(preds), preds.k)]

    def check(self, preds: Predictions) -> None:
        if preds.kind == "multilabel":
            super().check(preds)

    def notes(self, preds: Predictions) -> list[Note]:
        """Note on tied largest probabilities, for which the predicted class depends on the class order."""
        if preds.kind == "confidence":
            return []
        ties = preds.tied
        if ties == 0:
            return []
        return [
            Note(
                "TN103",
                f"{ties:,} {'row has' if ties == 1 else 'rows have'} tied largest probabilities. The first of the tied"
                " classes counts as predicted.",
            )
        ]


def predicted_class(preds: Predictions) -> Array:
    """Return the predicted class (n,): the lowest number among the largest probabilities."""
    if preds.p.ndim == 1:
        return _more_probable_of_two(preds.p)
    return row_maxima(preds.p)[1].astype(np.int64)


def _more_probable_of_two(p: Array) -> Array:
    """Return 1 where the second of two classes, which has probability p, is the more probable one, else 0."""
    return (p > 1 - p).astype(np.int64)


def has_wrong_prediction(preds: Predictions) -> bool:
    """Return whether any prediction is wrong: a row of positive weight whose most probable class was not observed.

    Of independent labels, a single wrong one suffices. Rows of votes always count as wrong.
    """
    observed, has_weight = preds.y, preds.w > 0
    if observed is None:
        return True
    if preds.kind == "confidence":
        predicted = np.ones_like(observed)
    elif observed.ndim == 2:
        predicted = _more_probable_of_two(preds.p)
    else:
        predicted = predicted_class(preds)
    return bool(np.any((predicted != observed)[has_weight]))


def accuracy(preds: Predictions) -> float:
    (view,) = Confidence().views(preds)
    return view.mean(view.y)


@dataclass(frozen=True, eq=False)
class TopLabel(Lens):
    """Top-label lens: confidence conditional on the predicted class.

    There is one view per predicted class. Their mean is weighted by how often each class is predicted, so that the
    total is the error conditional on confidence *and* predicted class. Source: Gupta & Ramdas (2022).
    """

    name = "top-label"
    aggregate = "weight"

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        predicted = predicted_class(preds)
        return [event_codes(predicted, preds.k)] * len(_predicted_class_numbers(predicted, preds.w))

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """Return a view for each predicted class, in which rows with another predicted class have weight zero."""
        self.check(preds)
        (view,) = Confidence().views(preds)
        predicted = predicted_class(preds)
        return tuple(
            View(
                view.p,
                view.y,
                view.w * (predicted == c),
                name=f"predicted:{preds.classes[c]}",
                classes=preds.k,
                votes=view.votes,
                exact=view.exact,
            )
            for c in _predicted_class_numbers(predicted, preds.w)
        )

    def notes(self, preds: Predictions) -> list[Note]:
        return Confidence().notes(preds)


def _predicted_class_numbers(predicted: Array, w: Array) -> list[int]:
    """Return the numbers of the classes that are predicted (n,) in some row of positive weight w (n,)."""
    return np.unique(predicted[w > 0]).tolist()


@dataclass(frozen=True, eq=False)
class Rank(Lens):
    """Rank lens: the r-th largest probability against whether that class was observed."""

    rank: Integer

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"rank:{self.rank}"

    def probabilities(self, preds: Predictions) -> list[Array]:
        return [np.take_along_axis(preds.P, self._class_at_rank(preds)[:, None], axis=1)[:, 0]]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        return [event_codes(self._class_at_rank(preds), preds.k)]

    def _class_at_rank(self, preds: Predictions) -> Array:
        return rank_classes(_class_scores(preds))[:, self.rank - 1]

    def check(self, preds: Predictions) -> None:
        super().check(preds)
        if not 1 <= self.rank <= preds.k:
            raise InputError(
                "TO204",
                "The rank must be one of 1..K.",
                f"{self.name} for {preds.k} classes",
                "Ranks count from 1, the largest probability.",
            )


@dataclass(frozen=True, eq=False)
class TopK(Lens):
    """Top-k lens: the k largest probabilities and the rest, as one vector. `top-1` is confidence."""

    size: Integer

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"top-{self.size}"

    def probabilities(self, preds: Predictions) -> list[Array]:
        """Return the k largest probabilities in decreasing order and the sum of the others, (n, k + 1)."""
        if self.size == 1:
            return Confidence().probabilities(preds)
        ranked = np.take_along_axis(preds.P, rank_classes(_class_scores(preds)), axis=1)
        rest = ranked[:, self.size :].sum(axis=1, dtype=np.float64, keepdims=True)
        return [np.concatenate([ranked[:, : self.size], rest], axis=1)]

    def outcome_codes(self, preds: Predictions) -> list[OutcomeCodes]:
        """The outcome is the rank of the observed class, counted from 0, or k for the rest."""
        if self.size == 1:
            return Confidence().outcome_codes(preds)
        rank_of_class = np.empty((preds.n, preds.k), dtype=np.int64)
        np.put_along_axis(rank_of_class, rank_classes(_class_scores(preds)), np.arange(preds.k)[None, :], axis=1)
        return [OutcomeCodes(np.minimum(rank_of_class, self.size))]

    def check(self, preds: Predictions) -> None:
        super().check(preds)
        if not 1 <= self.size < preds.k:
            raise InputError(
                "TO204",
                "top-k needs 1 ≤ k < K.",
                f"{self.name} for {preds.k} classes",
                "Use ⟨lens='canonical'⟩ for all classes.",
            )


def _class_scores(preds: Predictions) -> Array:
    """Return the scores (n, K) by which classes are ranked: the logits if known, whose order no rounding changes."""
    return preds.P if preds.logits is None or preds.logits.ndim == 1 else preds.logits


def rank_classes(P: Array) -> Array:
    """Return the class numbers (n, K) of each row by decreasing score, the lower number first in case of ties."""
    return np.argsort(-P, axis=1, kind="stable")

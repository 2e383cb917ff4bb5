"""How are many resamples of one holdout seen by many estimators? Put in order once for each view and label."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens import as_lens
from trueodds.lenses.view import View


class InOrder(Selections):
    """Selections whose rows are numbered by rising score already, so that other labels need no new sorting."""

    def __init__(self, view: View, rows: Array, scores: Array) -> None:
        super().__init__(view, rows)
        self.scores = scores  # of these rows, which views that differ by their labels share

    @cached_property
    def alike(self) -> bool:
        """Rows of weight 1 and one score, equally many."""
        return True

    @cached_property
    def sorted_scores(self) -> tuple[Array, Array]:
        """Scores and outcomes as they stand."""
        return self.scores, self.view.y[self.rows]


class Pool:
    """One lens's views of a holdout, each in the order of its scores, so that resamples in order read memory in order."""

    def __init__(self, P: Array, y: Array, lens: str) -> None:
        self.P, self.lens = P, lens
        views = as_lens(lens).views(Predictions(y, P))
        self.order = [np.argsort(view.p, kind="stable").astype(np.int32) for view in views]
        self.place = [np.argsort(order).astype(np.int32) for order in self.order]  # where each row stands
        self.views = [
            View(view.p[order].astype(np.float64), view.y[order], name=view.name, classes=view.classes)
            for view, order in zip(views, self.order, strict=True)
        ]

    def relabeled(self, y: Array) -> list[View]:
        """The same views with other labels of the holdout's rows."""
        return [
            View(old.p, new.y[order], name=old.name, classes=old.classes)
            for old, new, order in zip(
                self.views, as_lens(self.lens).views(Predictions(y, self.P)), self.order, strict=True
            )
        ]

    def rows(self, drawn: Array) -> list[tuple[Array, Array]]:
        """Where the rows of resamples (resamples, n) of the holdout stand in each view, rising, and their scores."""
        places = [np.sort(place[drawn], axis=1) for place in self.place]
        return [(rows, view.p[rows]) for rows, view in zip(places, self.views, strict=True)]


def selections(views: Sequence[View], rows: Sequence[tuple[Array, Array]], limit: int | None = None) -> list[InOrder]:
    """These resamples of each view, or the first few of them."""
    return [
        InOrder(view, selected[:limit], scores[:limit]) for view, (selected, scores) in zip(views, rows, strict=True)
    ]


def draw_labels(P: Array, rng: np.random.Generator) -> Array:
    """One label for each row from its own probabilities, which makes the model calibrated."""
    total = np.cumsum(P, axis=1)
    y = (total < rng.random(len(P))[:, None] * total[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(y, P.shape[1] - 1))

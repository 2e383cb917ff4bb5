"""Which rates, never falling with the score, fit the outcomes best, and what would they save?"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.diagrams.monotone.scores import scores_of
from trueodds.estimators.corp import Corp
from trueodds.estimators.smoothing.isotonic_fit import isotonic_fit
from trueodds.lenses.view import View


class Curve:
    """The CORP curve of one view: blocks of scores with one rate, and the score's parts."""

    def __init__(self, view: View, score: str) -> None:
        self.view, self.corp = view, Corp(score)
        self.scores = scores_of(view)
        self.fit = np.clip(isotonic_fit(self.scores.w, self.scores.wy), 0.0, 1.0)  # (m,)
        self.numbers = self.corp.parts(view)
        # From sums by score, which no order of the rows changes, not even by a rounding.
        w = self.scores.w.sum()
        self.mean_prediction = float((self.scores.w * self.scores.at).sum() / w)
        self.outcome_rate = float(self.scores.wy.sum() / w)

    @property
    def title(self) -> str:
        """The name of the view as people read it."""
        return self.view.name.removeprefix("class:")

    @cached_property
    def blocks(self) -> dict[str, Array]:
        """Stretches of scores with one rate: x_low, x_high, rate, and the n and weight of their rows."""
        first = np.flatnonzero(np.diff(self.fit, prepend=-1.0) > 0)
        last = np.append(first[1:], len(self.fit)) - 1
        return {
            "x_low": self.scores.at[first],
            "x_high": self.scores.at[last],
            "rate": self.fit[first],
            "n": np.add.reduceat(self.scores.n, first),
            "weight": np.add.reduceat(self.scores.w, first),
        }

    @property
    def certain(self) -> bool:
        """Whether the curve starts at 0 or ends at 1, where labels drawn from it cannot differ."""
        return bool(self.fit[0] == 0 or self.fit[-1] == 1)

    def notes(self) -> list[Note]:
        """A word where the score is infinite."""
        return self.corp.notes(self.view)

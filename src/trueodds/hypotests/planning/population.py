"""Where do simulated data sets come from? The user's own rows, with labels from a truth that is off by so much."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import combine, shares
from trueodds.hypotests.planning.distortion import MAX_SIZE, Distortion
from trueodds.lenses.lens import Lens, Positive
from trueodds.lenses.view import View


class Population:
    """The rows as a population, seen through one lens; a claim about one score needs no other class than that."""

    def __init__(self, preds: Predictions, lens: Lens, distortion: Distortion) -> None:
        if preds.cluster is not None:
            raise InputError(
                "TO205",
                "Simulated labels are independent of each other, and these rows come in clusters.",
                "cluster=",
                "Plan with one row per cluster.",
            )
        self.preds, self.lens, self.distortion, self.n = preds, lens, distortion, preds.n
        blank = np.zeros(preds.P.shape if preds.kind == "multilabel" else preds.n, dtype=np.int64)
        self._rows = preds.with_labels(blank) if preds.y is None else preds
        self.views = lens.views(self._rows)
        self.alone = len(self.views) == 1 and not self.views[0].joint and preds.kind != "multilabel"
        self.sample_lens: Lens = lens
        if self.alone:  # the other classes would only cost time
            (view,) = self.views
            self.sample_lens = ScoreLens(lens, view.name, view.classes)
            self._rows = Predictions(blank, view.p, weight=preds.weight)

    def truth(self, x: float) -> Array:
        """The true probabilities at distortion x: of the one event (n,), or of every class (n, K)."""
        R = self.distortion.truth(self.preds, x)
        return self.through(R)[0] if self.alone else R

    def through(self, R: Array) -> list[Array]:
        """True probabilities as the views see them."""
        if self.preds.kind == "multilabel":
            return [R[:, c] for c in self.lens.columns(self._rows)]
        widths = [view.p.shape[1] if view.joint else 1 for view in self.views]
        return [o.of_shares(R, m) for o, m in zip(self._outcomes, widths, strict=True)]

    @cached_property
    def _outcomes(self) -> list[Any]:
        return self.lens.outcomes(self.preds)

    def effect(self, x: float) -> float:
        """The lens's mean |r − p| at distortion x: how far off what is said is, in probability units."""
        effects = []
        for view, r in zip(self.views, self.through(self.distortion.truth(self.preds, x)), strict=True):
            gap = np.abs(r - view.p)
            effects.append(float(view.w @ (gap.sum(axis=1) / 2 if view.joint else gap)) / view.total)
        if len(self.views) == 1:
            return effects[0]
        return float(combine(np.array(effects), shares(self.views, self.lens.aggregate), self.lens.aggregate))

    @cached_property
    def largest(self) -> float:
        """The effect of the strongest distortion."""
        return self.effect(MAX_SIZE)

    def sample(self, truth: Array, n: int, seed: tuple[int, int]) -> Predictions:
        """n rows drawn with replacement, labels drawn from the truth; the same rows and luck for every truth and n."""
        rows = np.random.default_rng([*seed, 0]).integers(0, self.n, n)
        u = np.random.default_rng([*seed, 1])
        drawn = self._rows[rows]
        if self.alone:
            return drawn.with_labels(u.random(n) < truth[rows])
        if self.preds.kind == "multilabel":
            return drawn.with_labels(u.random((n, truth.shape[1])) < truth[rows])
        labels = (np.cumsum(truth[rows], axis=1) <= u.random(n)[:, None]).sum(axis=1)
        return drawn.with_labels(np.minimum(labels, truth.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class ScoreLens(Positive):
    """The one score that a lens looks at, by itself."""

    lens: Lens
    view: str
    classes: int  # of the problem that the lens looked at

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the lens behind."""
        return str(self.lens)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """The score against the outcome."""
        (view,) = super().views(preds)
        view.name, view.classes = self.view, self.classes
        return (view,)

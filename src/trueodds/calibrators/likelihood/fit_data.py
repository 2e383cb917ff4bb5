"""What is known of the rows of a fit before its parameters? How many they are, what came, and whether they hang together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.calibrators.likelihood.logs import MIN_PROB, Floored, Probabilities
from trueodds.core.typing import Array

_EQUAL = 1e-9  # relative: weights that differ by less are the same, and so small a share of votes is none


@dataclass(frozen=True, eq=False)
class FitData:
    """Rows in memory as a rule gets them; what is not asked is not looked for."""

    P: Any  # (n, K) probabilities or their logarithms (`Probabilities`), or an array of logits
    Y: Array  # (n, K) shares, or class numbers (n,)
    w: Array  # (n,) above 0
    cluster: Array | None = None
    min_prob: float = MIN_PROB
    logits: bool = False

    @classmethod
    def of(cls, P: Probabilities, Y: Array, w: Array, cluster: Array | None, min_prob: float, logits: bool) -> FitData:
        """The rows that have weight: one without is no row."""
        if not w.all():
            live = w > 0
            P, Y, w, cluster = P[live], Y[live], w[live], None if cluster is None else cluster[live]
        return cls(P, Y, w, cluster, min_prob, logits)

    @property
    def k(self) -> int:
        """How many classes."""
        return self.P.shape[1]

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.w)

    @cached_property
    def mass(self) -> float:
        """The weight of all rows."""
        return float(self.w.sum()) or 1.0

    @cached_property
    def class_totals(self) -> Array:
        """The weight of the outcomes of each class, (K,)."""
        return np.bincount(self.Y, self.w, self.k) if self.Y.ndim == 1 else np.asarray(self.w @ self.Y)

    @property
    def floored(self) -> Floored:
        """What the floor of the fit moves; of logits, those of exact zeros."""
        P = np.where(np.isneginf(self.P), 0.0, 1.0) if self.logits else self.P
        return Floored.of(P, self.Y, self.min_prob)

    @cached_property
    def errors(self) -> str:
        """How standard errors are made: by the curvature, unless weights differ, or rows have votes or clusters."""
        return self.looked.errors

    @property
    def weight(self) -> float:
        """The weight of a row, where all are equal."""
        return float(self.w[0])

    @cached_property
    def looked(self) -> Likeness:
        """Whether rows weigh the same, have one outcome each and stand alone."""
        if self.cluster is not None:
            return Likeness(clustered=True)
        voted = self.Y.ndim == 2 and bool((self.Y.max(axis=1) < 1 - _EQUAL).any())
        return Likeness(float(self.w.min()), float(self.w.max()), False, voted)


@dataclass(frozen=True, slots=True)
class Likeness:
    """Whether rows are alike, in a form that adds."""

    lightest: float = 1.0
    heaviest: float = 1.0
    clustered: bool = False
    voted: bool = False

    @property
    def errors(self) -> str:
        """How standard errors are made."""
        if self.clustered or self.voted:
            return "clusters" if self.clustered else "votes"
        return "curvature" if self.heaviest - self.lightest <= _EQUAL * self.lightest else "weights"

    def __add__(self, other: Likeness) -> Likeness:
        return Likeness(
            min(self.lightest, other.lightest),
            max(self.heaviest, other.heaviest),
            self.clustered or other.clustered,
            self.voted or other.voted,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """The same of rows that are not in memory: what `FitData` says of each batch, added up."""

    n: int
    mass: float
    class_totals: Array  # (K,)
    floored: Floored
    looked: Likeness

    @classmethod
    def of(cls, data: FitData) -> Facts:
        """Of one batch."""
        return cls(data.n, data.mass, data.class_totals, data.floored, data.looked)

    @property
    def k(self) -> int:
        """How many classes."""
        return len(self.class_totals)

    @property
    def errors(self) -> str:
        """How standard errors would be made in memory."""
        return self.looked.errors

    @property
    def weight(self) -> float:
        """The weight of a row, where all are equal."""
        return self.looked.lightest

    def scaled(self, by: float) -> Facts:
        """With all weights times a number."""
        looked = replace(self.looked, lightest=self.looked.lightest * by, heaviest=self.looked.heaviest * by)
        return replace(self, mass=self.mass * by, class_totals=self.class_totals * by, looked=looked)

    def __add__(self, other: Facts) -> Facts:
        return Facts(
            self.n + other.n,
            self.mass + other.mass,
            self.class_totals + other.class_totals,
            self.floored + other.floored,
            self.looked + other.looked,
        )

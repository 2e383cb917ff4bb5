"""Rows of a fit with their weights and clusters, their summary for streamed fits, and iteration over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, FloorCounts, LogProbabilities, Probabilities
from trueodds.core.typing import Array
from trueodds.kernels import in_blocks

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
    def floored(self) -> FloorCounts:
        """What the floor of the fit moves; of logits, those of exact zeros."""
        P = np.where(np.isneginf(self.P), 0.0, 1.0) if self.logits else self.P
        return FloorCounts.of(P, self.Y, self.min_prob)

    @cached_property
    def errors(self) -> str:
        """How standard errors are made: by the curvature, unless weights differ, or rows have votes or clusters."""
        return self.looked.errors

    @property
    def weight(self) -> float:
        """The weight of a row, where all are equal."""
        return float(self.w[0])

    @cached_property
    def looked(self) -> RowHomogeneity:
        """Whether rows weigh the same, have one outcome each and stand alone."""
        if self.cluster is not None:
            return RowHomogeneity(clustered=True)
        voted = self.Y.ndim == 2 and bool((self.Y.max(axis=1) < 1 - _EQUAL).any())
        return RowHomogeneity(float(self.w.min()), float(self.w.max()), False, voted)


@dataclass(frozen=True, slots=True)
class RowHomogeneity:
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

    def __add__(self, other: RowHomogeneity) -> RowHomogeneity:
        return RowHomogeneity(
            min(self.lightest, other.lightest),
            max(self.heaviest, other.heaviest),
            self.clustered or other.clustered,
            self.voted or other.voted,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FitDataSummary:
    """The same of rows that are not in memory: what `FitData` says of each batch, added up."""

    n: int
    mass: float
    class_totals: Array  # (K,)
    floored: FloorCounts
    looked: RowHomogeneity

    @classmethod
    def of(cls, data: FitData) -> FitDataSummary:
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

    def scaled(self, by: float) -> FitDataSummary:
        """With all weights times a number."""
        looked = replace(self.looked, lightest=self.looked.lightest * by, heaviest=self.looked.heaviest * by)
        return replace(self, mass=self.mass * by, class_totals=self.class_totals * by, looked=looked)

    def __add__(self, other: FitDataSummary) -> FitDataSummary:
        return FitDataSummary(
            self.n + other.n,
            self.mass + other.mass,
            self.class_totals + other.class_totals,
            self.floored + other.floored,
            self.looked + other.looked,
        )


_VALUES = 2**18  # probabilities of a part: what is made of them stays in a core's cache


def iterate_blocks(P: Probabilities, Y: Array, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    """Rows that have weight, some at a time: probabilities as float64 or their logarithms, outcomes, weights."""
    rows = max(1, _VALUES // P.shape[1])
    for start in range(0, len(P), rows):
        part = slice(start, start + rows)
        p, y, m = P[part], Y[part], w[part]
        if not m.all():
            p, y, m = p[m > 0], y[m > 0], m[m > 0]
        yield p if isinstance(p, LogProbabilities) else p.astype(np.float64, copy=False), y, m


def one_hot_shares(Y: Array, k: int) -> Array:
    """Outcomes as shares (n, K): they are given so, or as class numbers (n,).

    >>> one_hot_shares(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if Y.ndim == 2:
        return Y
    shares = np.zeros((len(Y), k))
    shares[np.arange(len(Y)), Y] = 1.0
    return shares


_VALUES_PER_THREAD_BLOCK = (
    2**18
)  # of a block of rows: what is made of it stays near, and few blocks wait for the interpreter


def apply_in_blocks(apply: Callable[[Any], Array], P: Probabilities) -> Array:
    """`apply` of the rows, some at a time on threads; (n, K) float64."""
    out = np.empty(P.shape)

    def work(start: int, stop: int) -> None:
        out[start:stop] = apply(P[start:stop])

    in_blocks(work, len(P), max(1, _VALUES_PER_THREAD_BLOCK // P.shape[1]))
    return out

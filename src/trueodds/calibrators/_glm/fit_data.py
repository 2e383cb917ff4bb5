"""The rows to which a calibrator is fitted, their summary for streamed fits, and iteration over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, LogProbabilities, Probabilities, ReplacedCounts
from trueodds.core.typing import Array
from trueodds.kernels import map_blocks

_WEIGHT_TOLERANCE = 1e-9  # relative difference up to which weights are equal, and share of votes that counts as 0
_PROBABILITIES_PER_BLOCK = 2**18  # so that temporaries stay in a core's cache


@dataclass(frozen=True, eq=False)
class FitData:
    """Rows in memory to which a calibrator is fitted."""

    P: Any  # (n, K) probabilities or their logarithms (`Probabilities`), or an array of logits
    Y: Array  # (n, K) outcome shares, or class numbers (n,)
    w: Array  # (n,) weights above 0
    cluster: Array | None = None  # (n,) labels of clusters
    min_prob: float = MIN_PROB  # smallest probability inside a logarithm
    logits: bool = False  # whether P holds logits

    @classmethod
    def from_rows(
        cls, P: Probabilities, Y: Array, w: Array, cluster: Array | None, min_prob: float, logits: bool
    ) -> FitData:
        """The rows that have positive weight."""
        if not w.all():
            has_weight = w > 0
            P, Y, w = P[has_weight], Y[has_weight], w[has_weight]
            cluster = None if cluster is None else cluster[has_weight]
        return cls(P, Y, w, cluster, min_prob, logits)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.P.shape[1]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.w)

    @cached_property
    def total_weight(self) -> float:
        """Total weight; 1 if there are no rows, as a divisor."""
        return float(self.w.sum()) or 1.0

    @cached_property
    def class_totals(self) -> Array:
        """Total weight of the outcomes of each class, (K,)."""
        return np.bincount(self.Y, self.w, self.k) if self.Y.ndim == 1 else np.asarray(self.w @ self.Y)

    @property
    def replaced_counts(self) -> ReplacedCounts:
        """Counts of the probabilities that `min_prob` replaces; of logits, those of exact zeros."""
        P = np.where(np.isneginf(self.P), 0.0, 1.0) if self.logits else self.P
        return ReplacedCounts.from_probabilities(P, self.Y, self.min_prob)

    @cached_property
    def std_error_method(self) -> str:
        """How standard errors are computed, one of `parameter_uncertainty.STD_ERROR_METHODS`."""
        return self.homogeneity.std_error_method

    @property
    def row_weight(self) -> float:
        """The weight of a row, if all are equal."""
        return float(self.w[0])

    @cached_property
    def homogeneity(self) -> RowHomogeneity:
        """Whether rows have equal weights, a single outcome each and no clusters."""
        if self.cluster is not None:
            return RowHomogeneity(has_clusters=True)
        has_vote_shares = self.Y.ndim == 2 and bool((self.Y.max(axis=1) < 1 - _WEIGHT_TOLERANCE).any())
        return RowHomogeneity(float(self.w.min()), float(self.w.max()), False, has_vote_shares)


@dataclass(frozen=True, slots=True)
class RowHomogeneity:
    """Whether rows have equal weights, single outcomes and no clusters; summaries of batches add up."""

    min_weight: float = 1.0
    max_weight: float = 1.0
    has_clusters: bool = False
    has_vote_shares: bool = False  # whether some row has votes for several classes

    @property
    def std_error_method(self) -> str:
        """How standard errors are computed, one of `parameter_uncertainty.STD_ERROR_METHODS`."""
        if self.has_clusters or self.has_vote_shares:
            return "clusters" if self.has_clusters else "votes"
        return "curvature" if self.max_weight - self.min_weight <= _WEIGHT_TOLERANCE * self.min_weight else "weights"

    def __add__(self, other: RowHomogeneity) -> RowHomogeneity:
        return RowHomogeneity(
            min(self.min_weight, other.min_weight),
            max(self.max_weight, other.max_weight),
            self.has_clusters or other.has_clusters,
            self.has_vote_shares or other.has_vote_shares,
        )


@dataclass(frozen=True, slots=True, eq=False)
class FitDataSummary:
    """Summary of rows that are not in memory; summaries of batches add up."""

    n: int  # number of rows
    total_weight: float
    class_totals: Array  # (K,) total weight of the outcomes of each class
    replaced_counts: ReplacedCounts
    homogeneity: RowHomogeneity

    @classmethod
    def from_fit_data(cls, data: FitData) -> FitDataSummary:
        """Summarize one batch."""
        return cls(data.n, data.total_weight, data.class_totals, data.replaced_counts, data.homogeneity)

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.class_totals)

    @property
    def std_error_method(self) -> str:
        """How standard errors would be computed in memory."""
        return self.homogeneity.std_error_method

    @property
    def row_weight(self) -> float:
        """The weight of a row, if all are equal."""
        return self.homogeneity.min_weight

    def scale_weights(self, factor: float) -> FitDataSummary:
        """The summary with all weights multiplied by a number."""
        homogeneity = replace(
            self.homogeneity,
            min_weight=self.homogeneity.min_weight * factor,
            max_weight=self.homogeneity.max_weight * factor,
        )
        return replace(
            self,
            total_weight=self.total_weight * factor,
            class_totals=self.class_totals * factor,
            homogeneity=homogeneity,
        )

    def __add__(self, other: FitDataSummary) -> FitDataSummary:
        return FitDataSummary(
            self.n + other.n,
            self.total_weight + other.total_weight,
            self.class_totals + other.class_totals,
            self.replaced_counts + other.replaced_counts,
            self.homogeneity + other.homogeneity,
        )


def iterate_blocks(P: Probabilities, Y: Array, w: Array) -> Iterator[tuple[Any, Array, Array]]:
    """Iterate over blocks of rows with positive weight: probabilities or their logarithms, outcomes, weights."""
    block_size = max(1, _PROBABILITIES_PER_BLOCK // P.shape[1])
    for start in range(0, len(P), block_size):
        block = slice(start, start + block_size)
        p, y, weights = P[block], Y[block], w[block]
        if not weights.all():
            p, y, weights = p[weights > 0], y[weights > 0], weights[weights > 0]
        yield p if isinstance(p, LogProbabilities) else p.astype(np.float64, copy=False), y, weights


def one_hot_shares(Y: Array, k: int) -> Array:
    """Outcomes as shares (n, K), from shares or from class numbers (n,).

    >>> one_hot_shares(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if Y.ndim == 2:
        return Y
    shares = np.zeros((len(Y), k))
    shares[np.arange(len(Y)), Y] = 1.0
    return shares


def apply_in_blocks(apply: Callable[[Any], Array], P: Probabilities) -> Array:
    """Apply a function to blocks of the rows of P (n, K), on several threads; returns (n, K) float64."""
    out = np.empty(P.shape)

    def apply_to_block(start: int, stop: int) -> None:
        """Apply the function to the rows from start to stop."""
        out[start:stop] = apply(P[start:stop])

    map_blocks(apply_to_block, len(P), max(1, _PROBABILITIES_PER_BLOCK // P.shape[1]))
    return out

"""The capital that a monitor bets on alternatives to calibration: a mixture over all starts, so that no start is late.

The alternatives are tilts of the log odds, slopes, and tilts in score cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.typing import Array

# Saved: distances of the tilts from the margin, in log odds, and edges of the score cells, for one or two views.
GAPS, EDGES = (
    (0.025, 0.07, 0.15, 0.28, 0.5, 0.85),
    (0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999),
)
# Fewer of both for many views, whose state would be large.
FEW_GAPS, FEW_EDGES = (0.04, 0.12, 0.3, 0.7), (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99)
SLOPES = (1 / 1.5, 0.8, 1.25, 1.5)


@dataclass(frozen=True)
class Alternatives:
    """The alternatives of one view, in the order of its log-likelihood ratios: tilts, slopes, and tilts by cell.

    Attributes
    ----------
    margin : float
        Largest error of the log odds that is no error.
    center : float
        Log odds about which the slopes turn, in addition to 0.
    gaps : tuple of float
        Distances of the tilts from the margin, for either sign.
    edges : tuple of float
        Inner edges of the score cells.
    slopes : tuple of float
        The slopes.

    Examples
    --------
    >>> alternatives = Alternatives(margin=0.05, center=-2.0)
    >>> alternatives.n_tilts, alternatives.n_slopes, alternatives.n_cells, alternatives.size
    (12, 8, 14, 188)
    """

    margin: float
    center: float = 0.0
    gaps: tuple[float, ...] = GAPS
    edges: tuple[float, ...] = EDGES
    slopes: tuple[float, ...] = field(default=SLOPES)

    @cached_property
    def tilts(self) -> Array:
        """The tilts, (tilts,): the positive ones, and then their negatives."""
        positive = self.margin + np.array(self.gaps)
        return np.concatenate((positive, -positive))

    @cached_property
    def centers(self) -> Array:
        """The two centers of the slopes, (2,). If they are equal, each slope counts twice, with half of its weight."""
        return np.array([0.0, self.center])

    @property
    def n_tilts(self) -> int:
        return 2 * len(self.gaps)

    @property
    def n_slopes(self) -> int:
        return 2 * len(self.slopes)

    @property
    def n_cells(self) -> int:
        return len(self.edges) + 1

    @property
    def size(self) -> int:
        """Number of alternatives."""
        return self.n_tilts + self.n_slopes + self.n_cells * self.n_tilts


# Share of the capital of a view that each kind of bet gets.
LEVEL, SLOPE, CELLS, SPOTS = 0.40, 0.15, 0.30, 0.15
SHOCK_LEVEL, SHOCK_SPOTS = LEVEL / (LEVEL + SPOTS), SPOTS / (LEVEL + SPOTS)  # the other two are not valid then
DISCOUNTS = (0.6, 0.9)  # Saved: with which the products of cells forget earlier cohorts
CASH = 0.2  # prior weight of "no error" in a cell
TIMESCALE, DECAY = 20.0, 0.5


def uninvested(t: float) -> float:
    """Return the share of the capital that is not yet invested after t cohorts, G(t) = (1 + t/20)^(−1/2)."""
    return float((1 + t / TIMESCALE) ** -DECAY)


def newly_invested(t: float) -> float:
    """Return the share of the capital that is invested in the drifts which begin after t cohorts."""
    return uninvested(t) - uninvested(t + 1)


@dataclass(frozen=True, slots=True)
class Capital:
    """The capital of each alternative and view, as logarithms, after `t` judged cohorts.

    Attributes
    ----------
    t : int
        Number of judged cohorts.
    log_values : array (views, alternatives + discounts)
        Log capital of each alternative, and of the products of cells for each discount.
    memory : array (discounts, views, cells, tilts + 1)
        Discounted sums of the log-likelihood ratios by cell, by which the products bet.
    """

    t: int
    log_values: Array
    memory: Array

    @classmethod
    def start(cls, alternatives: Alternatives, n_views: int, t: int = 0) -> Capital:
        """Return the capital after t cohorts without rows."""
        with np.errstate(divide="ignore"):
            invested = np.log(1 - uninvested(t))
        shape = (len(DISCOUNTS), n_views, alternatives.n_cells, alternatives.n_tilts + 1)
        return cls(t, np.full((n_views, alternatives.size + len(DISCOUNTS)), invested), np.zeros(shape))

    def products(self, log_ratios: Array, alternatives: Alternatives) -> Array:
        """Return the log factor by which another cohort multiplies the products of cells, (views, discounts).

        In each cell it is a mean over tilts, of which those count most that the earlier cohorts favored.
        """
        by_cell = _by_cell(log_ratios, alternatives)
        prior = np.log(np.append(np.full(alternatives.n_tilts, (1 - CASH) / alternatives.n_tilts), CASH))
        bets = prior + self.memory
        return (log_sum(bets + by_cell) - log_sum(bets)).sum(axis=2).T

    @classmethod
    def join(cls, capitals: Sequence[Capital]) -> Capital:
        """Return the capital of the views of all groups, one after the other."""
        log_values = np.concatenate([capital.log_values for capital in capitals])
        return cls(capitals[0].t, log_values, np.concatenate([capital.memory for capital in capitals], axis=1))

    def split(self, n_views: int) -> list[Capital]:
        """Return the capital of each group, of which each has so many views."""
        return [
            Capital(self.t, self.log_values[i : i + n_views].copy(), self.memory[:, i : i + n_views].copy())
            for i in range(0, len(self.log_values), n_views)
        ]

    def judge(self, log_ratios: Array, alternatives: Alternatives, products: Array | None = None) -> Capital:
        """Return the capital after another cohort, given the log-likelihood ratios, (views, alternatives).

        `products` are those of `products(log_ratios, alternatives)`, which are computed unless they are known.
        """
        factors = np.hstack((log_ratios, self.products(log_ratios, alternatives) if products is None else products))
        discounts = np.array(DISCOUNTS)[:, None, None, None]
        memory = discounts * self.memory + _by_cell(log_ratios, alternatives)
        return Capital(self.t + 1, np.logaddexp(self.log_values, np.log(newly_invested(self.t))) + factors, memory)

    def log_shares(self, alternatives: Alternatives, *, has_shock: bool = False) -> Array:
        """Return the log weighted capital of each alternative and product, (views, alternatives + discounts)."""
        with np.errstate(divide="ignore"):
            return self.log_values + np.log(weights(alternatives, has_shock=has_shock))

    def log_evidence(self, alternatives: Alternatives, *, has_shock: bool = False) -> Array:
        """Return the log e-value of each view, (views,)."""
        shares = self.log_shares(alternatives, has_shock=has_shock)
        return np.logaddexp(log_sum(shares), np.log(uninvested(self.t)))


def weights(alternatives: Alternatives, *, has_shock: bool = False) -> Array:
    """Return the share of the capital that each alternative gets, and each discount of the products of cells."""
    level, slope, cells, spots = (SHOCK_LEVEL, 0.0, 0.0, SHOCK_SPOTS) if has_shock else (LEVEL, SLOPE, CELLS, SPOTS)
    n_spots = alternatives.n_cells * alternatives.n_tilts
    return np.concatenate(
        [
            np.full(n, share / n)
            for n, share in (
                (alternatives.n_tilts, level),
                (alternatives.n_slopes, slope),
                (n_spots, spots),
                (len(DISCOUNTS), cells),
            )
        ]
    )


def _by_cell(log_ratios: Array, alternatives: Alternatives) -> Array:
    """Return the log-likelihood ratios of the tilts in each cell, (views, cells, tilts + 1); the last bet is cash."""
    shape = (len(log_ratios), alternatives.n_cells, alternatives.n_tilts + 1)
    by_cell = np.zeros(shape)
    first = alternatives.n_tilts + alternatives.n_slopes
    by_cell[..., :-1] = log_ratios[:, first:].reshape(*shape[:2], alternatives.n_tilts)
    return by_cell


def log_sum(a: ArrayLike) -> Array:
    """Return the log of the sum of exponentials along the last axis."""
    a = np.asarray(a)
    largest = a.max(axis=-1, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(a - largest).sum(axis=-1)) + largest[..., 0])

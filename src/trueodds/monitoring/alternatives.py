"""The alternatives to calibration that a monitor bets on: tilts of the log odds, slopes, and tilts in score cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

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

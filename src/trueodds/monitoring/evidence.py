"""Sums of the rows of a cohort, and the log-likelihood ratio that they give each alternative to calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.likelihood_ratio_sums import CELL_COLUMNS, CERTAIN_COLUMNS, sum_likelihood_ratios
from trueodds.kernels.tilted_sums import sum_tilted
from trueodds.monitoring.alternatives import Alternatives
from trueodds.monitoring.shock import shock_log_ratio

# Columns of `cells`; the first three are also those of `certain`.
ROWS, EVENTS, EXPECTED, VARIANCE, UNKNOWN, UNLABELED, UNLABELED_EXPECTED = range(7)
CERTAIN_UNKNOWN, IMPOSSIBLE = CERTAIN_COLUMNS.index("unknown"), CERTAIN_COLUMNS.index("impossible")
N_TOTALS = len(CELL_COLUMNS)


@dataclass(frozen=True, slots=True)
class EvidenceSums:
    """Sums of one view of the rows of a cohort or of one of its groups. They add up over any parts of the rows.

    The log-likelihood ratio of a tilt beyond the margin is 0 for a row with probability 0 or 1, whose outcome is
    certain; these rows are counted separately, and so are those whose outcome is impossible.

    Attributes
    ----------
    cells : array (cells, 7 + tilts)
        For each score cell the number of rows with a known outcome, their events, expected events and variance, the
        number of unknown outcomes, of rows without a known outcome, whether unknown or left out, the expected events
        of these, and the log-likelihood ratio of each tilt.
    slopes : array (slopes,)
        Log-likelihood ratio of each slope.
    certain : array (5,)
        Number of rows with probability 0 or 1 and a known outcome, of their events and expected events, and of unknown
        and impossible outcomes.
    tilted : array (cells, TILT_GRID) or None
        Σψ(u) of each cell on a grid of tilts u, from which a shock that the rows share is integrated out.
    """

    cells: Array
    slopes: Array
    certain: Array
    tilted: Array | None = None

    def __add__(self, other: EvidenceSums) -> EvidenceSums:
        tilted = None if self.tilted is None or other.tilted is None else self.tilted + other.tilted
        return EvidenceSums(self.cells + other.cells, self.slopes + other.slopes, self.certain + other.certain, tilted)

    @property
    def totals(self) -> Array:
        """Sums of all rows, (7,), in the order of the columns of `cells`."""
        totals = self.cells[:, :N_TOTALS].sum(axis=0)
        totals[:VARIANCE] += self.certain[:VARIANCE]
        totals[UNKNOWN] += self.certain[CERTAIN_UNKNOWN]
        return totals

    @property
    def cell_rows(self) -> Array:
        """Number of rows of each score cell, (cells,), with or without a label."""
        rows = self.cells[:, ROWS] + self.cells[:, UNLABELED]
        ones = self.certain[EXPECTED]
        rows[0] += self.certain[ROWS] - ones
        rows[-1] += ones
        return rows

    @property
    def impossible(self) -> float:
        """Number of events with probability 0, and of nonevents with probability 1."""
        return float(self.certain[IMPOSSIBLE])

    def log_ratios(self, alternatives: Alternatives, shock_sd: float) -> Array:
        """Return the log-likelihood ratio of each alternative, (alternatives,)."""
        by_cell = self.cells[:, N_TOTALS:]
        if not shock_sd:
            return np.concatenate((by_cell.sum(axis=0), self.slopes, by_cell.ravel()))
        assert self.tilted is not None
        # A shock is common to all cells: no product over them, and no slope, is valid.
        blocks = [
            (self.cells.sum(axis=0), self.tilted.sum(axis=0)),
            *zip(self.cells, self.tilted, strict=True),
        ]
        level, *cells = [
            shock_log_ratio(cell[EVENTS], cell[UNKNOWN], psi, alternatives.tilts, alternatives.margin, shock_sd)
            if cell[ROWS] or cell[UNKNOWN]
            else np.zeros(alternatives.n_tilts)
            for cell, psi in blocks
        ]
        return np.concatenate((level, np.zeros(alternatives.n_slopes), np.concatenate(cells)))


def sum_evidence(
    p: Array,
    outcome: Array,
    w: Array | None,
    key: Array,
    n_keys: int,
    alternatives: Alternatives,
    *,
    squared_weights: bool,
    counts_nonevents: bool = True,
    shock_sd: float,
) -> list[EvidenceSums]:
    """Return the sums of the rows of each key; the arguments are those of `sum_likelihood_ratios`."""
    margin, tilts = alternatives.margin, alternatives.tilts
    sums = sum_likelihood_ratios(
        p,
        outcome,
        w,
        key,
        n_keys,
        squared_weights=squared_weights,
        counts_nonevents=counts_nonevents,
        edges=np.array(alternatives.edges),
        tilts=np.concatenate((tilts, [margin, -margin])),
        slopes=np.array(alternatives.slopes) - 1,
        centers=alternatives.centers,
        margin=margin,
    )
    psi = sums.cells[..., N_TOTALS:]
    events, unknown = sums.cells[..., EVENTS], sums.cells[..., UNKNOWN]
    cells = np.empty((*sums.cells.shape[:2], N_TOTALS + len(tilts)))
    cells[..., :N_TOTALS] = sums.cells[..., :N_TOTALS]
    for j, tilt in enumerate(tilts):
        # The margin on the side of the tilt; an unknown outcome is the one that is worse for the tilt.
        bound, psi_bound = (margin, psi[..., -2]) if tilt > 0 else (-margin, psi[..., -1])
        observed = events if tilt > 0 else events + unknown
        cells[..., N_TOTALS + j] = (tilt - bound) * observed + psi_bound - psi[..., j]
    parts = [EvidenceSums(*part) for part in zip(cells, sums.slopes, sums.certain, strict=True)]
    if not shock_sd:
        return parts
    tilted = sum_tilted(p, outcome, w, key, n_keys, np.array(alternatives.edges))
    return [replace(part, tilted=psi_of_key) for part, psi_of_key in zip(parts, tilted, strict=True)]

"""Sums of the rows of a cohort, and the log-likelihood ratio that they give each alternative to calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.cohort_sums import CELL_COLUMNS, CERTAIN_COLUMNS, TILT_GRID, sum_likelihood_ratios, sum_tilted
from trueodds.monitoring.capital import Alternatives

# Columns of `cells`; the first three are also those of `certain`.
ROWS, EVENTS, EXPECTED, VARIANCE, UNKNOWN, UNLABELED, UNLABELED_EXPECTED = range(7)
CERTAIN_UNKNOWN, IMPOSSIBLE = CERTAIN_COLUMNS.index("unknown"), CERTAIN_COLUMNS.index("impossible")
N_TOTALS = len(CELL_COLUMNS)
_N_NODES = 301  # at most 0.6 standard deviations apart, for which the trapezoidal rule is exact to 1e-20
_MAX_DEVIATIONS = 9.0  # standard deviations of the posterior of the shifted shock that the nodes cover


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


def shock_log_ratio(events: float, unknown: float, psi: Array, tilts: Array, margin: float, sd: float) -> Array:
    r"""Return the log-likelihood ratio of each tilt t beyond the margin m, under a shock u of mean 0.

    .. math:: \log \frac{\int e^{S(t + u)} \varphi_s(u)\,du}{\int e^{S(\pm m + u)} \varphi_s(u)\,du},
        \qquad S(v) = v \sum y - \sum \psi(v)

    The ratio increases with the events, so that it is valid for every error within the margin. An unknown outcome is
    the one that is worse for the tilt. The nodes of the quadrature follow the likelihood, which is much narrower than
    the prior if there are many rows.

    Parameters
    ----------
    events, unknown : float
        Number of events and of unknown outcomes.
    psi : array (TILT_GRID,)
        Sums of log(1 − p + p e^v) on the grid of tilts.
    tilts : array
        The tilts, each beyond the margin.
    margin, sd : float
        The margin, and the standard deviation of the shock.
    """
    log_partition = _interpolate(psi)
    ratios = np.empty(len(tilts))
    for sign in (1, -1):
        side = np.flatnonzero(np.sign(tilts) == sign)
        observed = events if sign > 0 else events + unknown
        bounds = np.concatenate((tilts[side], [sign * margin]))
        grid_values = TILT_GRID * observed - psi
        peak = int(np.clip(grid_values.argmax(), 1, len(TILT_GRID) - 2))
        information = max(float(log_partition(TILT_GRID[peak], 2)), 1e-9)
        mode = float(TILT_GRID[peak] + (observed - log_partition(TILT_GRID[peak], 1)) / information)
        deviation = (information + 1 / sd**2) ** -0.5
        means = (information * np.clip(mode, TILT_GRID[0], TILT_GRID[-1]) + bounds / sd**2) * deviation**2
        low = max(float(means.min()) - _MAX_DEVIATIONS * deviation, float(TILT_GRID[0]))
        high = min(float(means.max()) + _MAX_DEVIATIONS * deviation, float(TILT_GRID[-1]))
        nodes = np.linspace(low, high, _N_NODES)
        log_likelihood = observed * nodes - log_partition(nodes)
        log_integrand = log_likelihood - (nodes - bounds[:, None]) ** 2 / (2 * sd**2)
        largest = log_integrand.max(axis=1)
        integrals = np.log(np.exp(log_integrand - largest[:, None]).sum(axis=1)) + largest
        ratios[side] = integrals[:-1] - integrals[-1]
    return ratios


def _interpolate(psi: Array) -> Any:
    """Return the spline of degree 5 through the values on the grid."""
    from scipy.interpolate import BSpline

    basis = _cardinal_splines()
    return BSpline.construct_fast(basis.t, basis.c @ psi, basis.k)


@cache
def _cardinal_splines() -> Any:
    """Return the splines that are 1 at one point of the grid and 0 at the others."""
    from scipy.interpolate import make_interp_spline  # slow to import, and only needed with a shock

    return make_interp_spline(TILT_GRID, np.eye(len(TILT_GRID)), k=5)

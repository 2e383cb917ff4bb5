"""The log-likelihood ratio of rows that share a random shock of their log odds, by quadrature."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels.tilted_sums import TILT_GRID

_N_NODES = 301  # at most 0.6 standard deviations apart, for which the trapezoidal rule is exact to 1e-20
_MAX_DEVIATIONS = 9.0  # standard deviations of the posterior of the shifted shock that the nodes cover


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

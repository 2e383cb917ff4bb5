"""Interval calibration error (RintCE): error on score intervals of random position and of the best width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import (
    CELL_EXEMPTION,
    MAX_DISTINCT_SCORES,
    DistinctScoreError,
    DistinctScores,
    ScoreStatistic,
)
from trueodds.kernels.smoothing import SlidingWindows, mean_absolute_window_sum
from trueodds.lenses.view import View

MAX_HALVINGS = 30  # narrower intervals than 1e-9 could lower the sum by at most 1e-9


@dataclass(frozen=True)
class IntervalError(DistinctScoreError):
    r"""Interval calibration error (RintCE): error on randomly shifted intervals plus their width, at the best width.

    The scores are divided into intervals of width ε with a random offset, and the absolute residuals of the intervals
    are summed. Narrow intervals let noise through. Wide intervals hide errors that cancel and move a score far to the
    rate of its interval. The width is therefore added, and the minimum over all widths is taken. No bins are chosen.

    Parameters
    ----------
    bandwidth : "auto" or float, default="auto"
        "auto" is the best width, which `parts` reports with both terms. A number is one width in (0, 1].

    Notes
    -----
    .. math:: \min_{\varepsilon \in \{1, 1/2, 1/4, \dots\}} \; R_\varepsilon + \varepsilon, \quad
        R_\varepsilon = \mathbb{E}_{r} \sum_j \Big|\tfrac1w \sum_{i:\, \lfloor (p_i + r)/\varepsilon \rfloor = j}
        w_i (y_i - p_i)\Big|, \; r \sim U[0, \varepsilon)

    The expectation is computed exactly, without random offsets, from an interval that slides over the scores:
    :math:`R_\varepsilon = \tfrac1\varepsilon \int |\sum_{a \le p_i < a + \varepsilon} w_i (y_i - p_i)/w|\, da`. The
    limit ε → 0, the ECE over distinct scores, counts as width 0. Shapes: a binary view (n,).

    Units: probability, in [0, 1], or up to 2 at a fixed width; 0 is best. The value is at least the distance to the
    nearest calibrated predictions.

    Bias: upward. A calibrated model scores about 1.6 (mean p(1-p)/n)^(1/3), which is 0.1 at n = 1,000, because noise
    makes wide intervals best. `noise_floor` reports it.

    Cost: O(n log n) time and O(n) memory, with one pass per width. Draws distinguish 4,096 scores. Tallies merge at the
    resolution of their cells.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu & Nakkiran (2023).

    Examples
    --------
    A single row: its residual is 0.2 at any width, and narrower intervals are always better.

    >>> import trueodds as to
    >>> [round(to.measure([1], [0.8], "interval_ce", bandwidth=h, interval=None).value, 4) for h in ("auto", 0.25)]
    [0.2, 0.45]
    """

    # Subadditive though it is a minimum. R_ε is a seminorm of the residuals at each ε, and R_2ε ≤ R_ε because an
    # interval is two of half its width. If ε serves μ best and δ serves ν, then with the wider of the two, say ε,
    #   R_ε(μ + ν) + ε ≤ R_ε(μ) + ε + R_ε(ν) ≤ R_ε(μ) + ε + R_δ(ν) + δ,
    # which is the sum of the two errors. The triangle inequality is all that the interval uses.
    name: ClassVar[str] = "interval_ce"
    is_bounded_by_mean_gap: ClassVar[bool] = True
    upper_bound: ClassVar[float] = 2.0
    is_smooth: ClassVar[bool] = False  # the width is part of the value, and no resample shows it
    exemptions: ClassVar[dict[str, str]] = CELL_EXEMPTION
    bandwidth: Annotated[float, Range(0, 1, closed="right")] | Literal["auto"] = "auto"

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Sum of both terms, at the best or the given width."""
        window_errors = WindowErrors(s)

        def statistic(_w: Array, wp: Array, wy: Array) -> Array:
            residual = wy - wp
            error, width = self._errors_and_widths(window_errors, residual.reshape(-1, len(s)))
            return (error + width).reshape(residual.shape[:-1])

        return statistic

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"bandwidth": self.bandwidth}

    def parts(self, view: View) -> dict[str, float]:
        """Both terms: the error on intervals, and their width."""
        s, _, wp, wy = DistinctScores(self, view).shares()
        error, width = self._errors_and_widths(WindowErrors(s), (wy - wp)[None])
        return {"error": float(error[0]), "width": float(width[0])}

    def _errors_and_widths(self, window_errors: WindowErrors, residual: Array) -> tuple[Array, Array]:
        """Error on intervals and width, (draws,), for each row of residuals (draws, m)."""
        if self.bandwidth == "auto":
            return window_errors.minimize(residual)
        width = float(self.bandwidth)
        return window_errors.error(width, residual), np.full(len(residual), width)


class WindowErrors:
    """Errors on intervals of any width for the same scores s (m,). The windows of each width are cached for draws."""

    def __init__(self, s: Array) -> None:
        self.s = s
        self._windows: dict[float, SlidingWindows] = {}

    def error(self, width: float, residual: Array) -> Array:
        """The error on intervals of this width, for each row of residuals (draws, m)."""
        if len(self.s) > MAX_DISTINCT_SCORES:
            return np.array([mean_absolute_window_sum(self.s, row, width) for row in residual])
        if width not in self._windows:
            self._windows[width] = SlidingWindows(self.s, width)
        return self._windows[width].mean_absolute_sums(residual)

    def minimize(self, residual: Array) -> tuple[Array, Array]:
        """Error and width at the minimum of their sum, for each row of residuals (draws, m).

        The error increases as the width decreases, so the search ends when the error alone reaches the best sum.
        """
        optimal_error, optimal_width = np.abs(residual).sum(axis=1), np.zeros(len(residual))  # those of width 0
        active = np.flatnonzero(optimal_error > 0)
        for n_halvings in range(MAX_HALVINGS):
            if not len(active):
                break
            width = 0.5**n_halvings
            error = self.error(width, residual[active])
            min_sum = optimal_error[active] + optimal_width[active]
            is_better = error + width < min_sum
            optimal_error[active[is_better]], optimal_width[active[is_better]] = error[is_better], width
            active = active[error < min_sum]
        return optimal_error, optimal_width

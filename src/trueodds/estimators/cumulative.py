"""Errors of cumulative residuals in order of the score: Kolmogorov-Smirnov error, ECCE-MAD and ECCE-R."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.unbinned import Reader, UnbinnedError
from trueodds.lenses.view import View


@dataclass(frozen=True)
class CumulativeError(UnbinnedError):
    r"""The largest absolute cumulative residual over rising scores (KS error, ECCE-MAD).

    Answers: below which score has the model promised most too much or too little in total?

    .. math:: \max_s |C(s)|, \quad C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i)

    Evaluated only where the score changes, so tied rows never depend on their order. `ks` and `ecce_mad` are two
    names of one quantity. Units: probability, in [0, 1]; 0 is best; at least the absolute mean gap, at most the ECE
    over distinct scores. Bias: upward, about 1.25 sqrt(mean p(1-p) / n) for a calibrated model (the mean of the
    largest |Brownian motion|, sqrt(pi/2)), which `noise_floor` reports; no bins, no bandwidth. Cost: O(n log n)
    time, O(n) memory; draws tell 4,096 scores apart. From a tally it is the value at the tally's resolution.
    Raises TO205 for a lens with a vector per row.
    Source: Gupta et al. (2021); Arrieta-Ibarra et al. (2022).

    Parameters
    ----------
    start : {"below", "both"}
        `below` sums from the lowest score on, as the authors do; the complements 1 − p and 1 − y then give another
        number. `both` takes the larger of the sums from below and from above.

    >>> round(float(CumulativeError()(View(p=[0.2, 0.9, 0.9], y=[1, 0, 1]))), 4)
    0.2667
    """

    name: ClassVar[str] = "ecce_mad"
    start: Literal["below", "both"] = "below"
    exempt: ClassVar[dict[str, str]] = {"cells": "scores of one cell count as one score, so a tally has its resolution"}

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The maximum over the ends of the runs of equal scores."""

        def farthest(_w: Array, wp: Array, wy: Array) -> Array:
            total = (wy - wp).sum(axis=-1)
            up, down = _ends(wy - wp)
            if self.start == "below":
                return np.asarray(np.maximum(up, down))
            return np.asarray(np.maximum(np.maximum(up, down), np.maximum(total + down, up - total)))

        return farthest


@dataclass(frozen=True)
class KolmogorovSmirnov(CumulativeError):
    r"""The same quantity under its name in the literature on networks: the Kolmogorov–Smirnov calibration error.

    .. math:: \max_s |C(s)|, \quad C(s) = \tfrac1w \sum_{p_i \le s} w_i (y_i - p_i)

    Units: probability, in [0, 1]; 0 is best. Bias, cost and errors as for `ecce_mad`, which is the same number; no
    table of the two-sample Kolmogorov–Smirnov test applies to it. Source: Gupta et al. (2021).

    >>> round(float(KolmogorovSmirnov()(View(p=[0.2, 0.9, 0.9], y=[1, 0, 1]))), 4)
    0.2667
    """

    name: ClassVar[str] = "ks"


@dataclass(frozen=True)
class CumulativeRange(UnbinnedError):
    r"""The range of the cumulative residuals (ECCE-R): the worst total over any interval of scores (cutoff error).

    Answers: over which interval of scores has the model promised most too much or too little in total?

    .. math:: \max_s C(s) - \min_s C(s) = \sup_{a < b} \Big|\tfrac1w \sum_{a < p_i \le b} w_i (y_i - p_i)\Big|

    with C as for `ks` and C = 0 before the first score. Units: probability, in [0, 1]; 0 is best; between KS and
    twice KS. Bias: upward, about 1.6 sqrt(mean p(1-p) / n) for a calibrated model (the mean range of
    Brownian motion, sqrt(8/pi)), which `noise_floor` reports. Cost: O(n log n) time, O(n) memory; draws tell 4,096
    scores apart. From a tally it is the value at its resolution. Raises TO205 for a lens with a vector per row.
    Source: Arrieta-Ibarra et al. (2022); as cutoff calibration error, an interval supremum, Rossellini et al. (2025).

    >>> round(float(CumulativeRange()(View(p=[0.2, 0.9, 0.9], y=[1, 0, 1]))), 4)
    0.2667
    """

    name: ClassVar[str] = "ecce_r"
    exempt: ClassVar[dict[str, str]] = CumulativeError.exempt

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """Largest minus smallest, the start at 0 included."""

        return lambda _w, wp, wy: np.add(*_ends(wy - wp))


def _ends(steps: Array) -> tuple[Array, Array]:
    """How far up and how far down a path of these steps (…, m) leads from 0; they are overwritten."""
    path = np.cumsum(steps, axis=-1, out=steps)
    return np.maximum(path.max(axis=-1), 0.0), np.maximum(-path.min(axis=-1), 0.0)

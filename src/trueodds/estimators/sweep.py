"""Monotonic sweep calibration error (ECE-sweep): binned error with as many bins as have monotonic event rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Order, check
from trueodds.core.typing import Array
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.kernels.partitions import monotonic_sweep
from trueodds.lenses.effective_sample_size import n_represented
from trueodds.lenses.view import View

Base = Literal["equal-mass", "uniform"]


@dataclass(frozen=True)
class SweepError(DistinctScoreError):
    r"""Monotonic sweep calibration error: binned error with the largest number of bins whose event rates increase.

    The number of bins is increased as long as the event rates do not decrease with the score. The last such number is
    used.

    Parameters
    ----------
    base : {"equal-mass", "uniform"}, default="equal-mass"
        The bins, called `partition` in the public functions. With equal-mass bins a weight of two counts as two rows.
    order : float, default=2.0
        Power q of the average over bins. Infinity takes the worst bin.

    Notes
    -----
    .. math:: \Big(\sum_{b \le k} \tfrac{w_b}{w} |\bar p_b - \bar y_b|^q\Big)^{1/q}, \quad
        k = \max\{k : \bar y_1 \le \dots \le \bar y_{j} \text{ for each number of bins } j \le k\}

    Shapes: one score per row, (n,). There are at most n − 1 bins, and empty bins are ignored. Tied scores stay
    together, while the authors' code splits them by row order. If the event rates decrease with two bins already, a
    single bin is used.

    Units: probability, in [0, 1]; 0 is best. The default power 2, as in the authors' code, gives an RMSCE. ``order=1``
    gives the ECE.

    Bias: upward, but less than with a fixed number of bins where few bins suffice. `noise_floor` reports it. The labels
    determine the number of bins, so each draw repeats the search, and the interval accounts for the noise floor. Power
    is low at small n, where chance stops the search early.

    Cost: O(n log n + k² log n) time, O(n) memory. Draws distinguish 4,096 scores. With a tally, bins are cut between
    its cells.

    References
    ----------
    .. [1] Roelofs, Cain, Shlens & Mozer (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [0, 1, 0, 1], [0.1, 0.2, 0.7, 0.8]  # two bins rise (1/2, 1/2), three do not (1/2, 0, 1)
    >>> sweep = to.measure(y, p, "sweep", order=1, interval=None)
    >>> round(sweep.value, 4), sweep.settings["occupied_bins"]
    (0.3, 2)
    """

    name: ClassVar[str] = "sweep"
    interval: ClassVar[str | None] = "noise-floor"
    by_rank: ClassVar[bool] = True
    is_norm: ClassVar[bool] = False
    exemptions: ClassVar[dict[str, str]] = {"cells": "bins are cut between cells and not between rows"}
    base: Base = "equal-mass"
    order: Order = 2.0

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        return ("partition", "order")

    @classmethod
    def from_settings(cls, _name: str, *, partition: str = "equal-mass", **settings: Any) -> SweepError:
        return cls(base=check("partition", partition, Base, "equal-mass"), **settings)

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Return the error as a function of the sums; the number of bins is selected separately for each draw."""
        max_bins = round(n_represented(view)) - 1

        def statistic(w: Array, wp: Array, wy: Array) -> Array:
            errors, _ = self._sweep(w, wp, wy, s, max_bins)
            return errors.reshape(np.broadcast_shapes(w.shape, wp.shape, wy.shape)[:-1])

        return statistic

    def settings_used(self, view: View) -> dict[str, Any]:
        order = "inf" if np.isinf(self.order) else self.order
        return {"partition": f"sweep over {self.base}", "order": order, "occupied_bins": self.bins(view)}

    def bins(self, view: View) -> int:
        """Number of bins that the sweep selects."""
        s, w, wp, wy = DistinctScores(self, view).shares()
        _, n_bins = self._sweep(w, wp, wy, s, round(n_represented(view)) - 1)
        return int(n_bins[0])

    def _sweep(self, w: Array, wp: Array, wy: Array, s: Array, max_bins: int) -> tuple[Array, Array]:
        """Error and selected number of bins of each draw, (draws,), from sums (…, m) at the scores s (m,)."""
        by_mass = self.base == "equal-mass"
        w, wp, wy = (np.atleast_2d(x) for x in (w, wp, wy))
        return monotonic_sweep(w, wp, wy, s, max_bins=max_bins, by_mass=by_mass, order=self.order)

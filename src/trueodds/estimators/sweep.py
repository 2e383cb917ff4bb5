"""Binned error on the largest number of bins with monotone outcome rates (ECE-sweep)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.core.settings import Order, check
from trueodds.core.typing import Array
from trueodds.estimators.unbinned import Reader, Scores, UnbinnedError
from trueodds.kernels.monotonic_sweep import sweep
from trueodds.lenses.view import View

Base = Literal["equal-mass", "uniform"]


@dataclass(frozen=True)
class SweepError(UnbinnedError):
    r"""Binned error on the largest number of bins whose outcome rates rise with the score (ECE-sweep).

    Answers: how far are the stated probabilities from the frequencies that came, if the data choose how finely to
    look? Bins are added one by one as long as a higher score goes with an outcome rate that is not lower; the last
    such number is used. For experts: the sieve of the monotone binnings, entered from below.

    .. math:: \Big(\sum_{b \le k} \tfrac{w_b}{w} |\bar p_b - \bar y_b|^q\Big)^{1/q}, \quad
        k = \max\{k : \bar y_1 \le \dots \le \bar y_{j} \text{ for each number of bins } j \le k\}

    Shapes: one score per row, (n,). Units: probability, in [0, 1]; 0 is best. The power is q = 2 as in the authors'
    code, so the default is an RMSCE; `order=1` gives the ECE. At most n − 1 bins; empty bins are absent; equal
    scores stay together, where the authors' code splits them by the order of the rows. A score that does not rank
    (rates fall already with two bins) is judged in one bin, by its mean alone.

    Bias: upward, less than with a fixed number of bins where a few suffice, and `noise_floor` says how much; the
    labels choose the bins, so each draw chooses again, and the interval allows for the floor. Little power at small
    n, where chance stops the search early. Cost: O(n log n + k² log n) time, O(n) memory; draws tell 4,096 scores
    apart. From a tally bins are cut between its cells. Raises TO203 for other settings, TO205 for a vector per row.
    Source: Roelofs, Cain, Shlens & Mozer (2022).

    Parameters
    ----------
    base : str
        `partition` in the façade's words. What is cut finer and finer: `equal-mass` (a weight of two counts as two rows) or `uniform`.
    order : float
        The power q; infinity takes the worst bin.

    >>> view = View(p=[0.1, 0.2, 0.7, 0.8], y=[0, 1, 0, 1])  # two bins rise (1/2, 1/2), three do not (1/2, 0, 1)
    >>> round(float(SweepError(order=1)(view)), 4), SweepError()(view).settings["occupied_bins"]
    (0.3, 2)
    """

    name: ClassVar[str] = "sweep"
    interval: ClassVar[str | None] = "noise-floor"
    norm: ClassVar[bool] = False
    exempt: ClassVar[dict[str, str]] = {"cells": "bins are cut between cells and not between rows"}
    base: Base = "equal-mass"
    order: Order = 2.0

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return ("partition", "order")

    @classmethod
    def from_settings(cls, _name: str, *, partition: str = "equal-mass", **settings: Any) -> SweepError:
        """The estimator from the façade's settings, where what is swept is the partition."""
        return cls(base=check("partition", partition, Base, "equal-mass"), **settings)

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The sweep over the groups of scores, chosen again for each draw."""
        max_bins = round(view.counted) - 1

        def reader(w: Array, wp: Array, wy: Array) -> Array:
            values, _ = self._swept(w, wp, wy, s, max_bins)
            return values.reshape(np.broadcast_shapes(w.shape, wp.shape, wy.shape)[:-1])

        return reader

    def settings_used(self, view: View) -> dict[str, Any]:
        """What was swept, and how many bins came of it."""
        order = "inf" if np.isinf(self.order) else self.order
        return {"partition": f"sweep over {self.base}", "order": order, "occupied_bins": self.bins(view)}

    def bins(self, view: View) -> int:
        """How many bins the data chose."""
        s, w, wp, wy = Scores(self, view).shares()
        return int(self._swept(w, wp, wy, s, round(view.counted) - 1)[1][0])

    def _swept(self, w: Array, wp: Array, wy: Array, s: Array, max_bins: int) -> tuple[Array, Array]:
        by_mass = self.base == "equal-mass"
        w, wp, wy = (np.atleast_2d(x) for x in (w, wp, wy))
        return sweep(w, wp, wy, s, max_bins=max_bins, by_mass=by_mass, order=self.order)

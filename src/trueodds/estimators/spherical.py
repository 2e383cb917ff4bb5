"""How nearly does the prediction point at the class that came? The spherical score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Spherical(ProperScore):
    r"""One minus the spherical reward: the cosine between the prediction and the class that came, as a loss.

    Answers: how good are the probabilities altogether, in a score that is bounded like Brier's but, like log loss,
    looks hardest at the class that came?

    .. math:: \tfrac1w \sum_i w_i \Big(1 - \sum_k y_{ik} \frac{p_{ik}}{\lVert p_i \rVert_2}\Big)

    Shapes: a binary view (n,), read as the vectors (1 − p, p), or a joint one (n, m). Units: none, in [0, 1]; 0 is
    best; said evenly, K classes cost 1 − 1/√K. The literature also has the reward, which is 1 minus this and better
    when higher. Strictly proper. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(nK). Needs rows;
    merges as any mean does. A calibrated model pays the mean of 1 − ‖p‖, which `noise_floor` reports.
    Raises TO205 for cells of many rows. Source: Good (1971); Gneiting & Raftery (2007).

    >>> round(float(Spherical()(View(p=[[0.6, 0.0, 0.8]], y=[[1, 0, 0]]))), 4)  # 1 − .6/1
    0.4
    """

    name: ClassVar[str] = "spherical"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"

    def rows(self, view: View) -> Array:
        """The score of each row."""
        single_rows(view, self.name)
        return _loss(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        single_rows(view, self.name)
        return float(view.w @ _loss(view, view.p) / view.total)


def _loss(view: View, y: Array) -> Array:
    p = view.p.astype(np.float64, copy=False)
    if p.ndim == 1:
        q, norm = view.q, np.hypot(view.q, p)
        # 1 − p/‖p‖ without its cancellation near p = 1
        missed: Array = y * q * q / (norm * (norm + p)) + (1 - y) * p * p / (norm * (norm + q))
        return missed
    square = p * p
    norm, p_observed = np.sqrt(square.sum(axis=1)), (p * y).sum(axis=1)
    sharp = (square * (1 - y)).sum(axis=1) / (norm * (norm + p_observed))  # the same, for a row of one class
    total: Array = np.where(y.max(axis=1) == 1, sharp, y.sum(axis=1) - p_observed / norm)
    return total

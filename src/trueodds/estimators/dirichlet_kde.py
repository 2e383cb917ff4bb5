"""How far is each prediction from the outcomes of the predictions around it, all classes at once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import FiniteOrder, Range
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator
from trueodds.estimators.smoothing.dirichlet import below
from trueodds.estimators.smoothing.neighbors import Neighbors
from trueodds.lenses.view import View


@dataclass(frozen=True)
class DirichletError(Estimator):
    r"""Canonical calibration error with Dirichlet kernels: each prediction against the outcomes around it.

    Answers: how far are whole probability vectors from the frequencies that came with similar vectors, without bins?

    .. math:: \frac1w \sum_j w_j \sum_c |\hat r_{jc} - p_{jc}|^q, \quad
        \hat r_j = \frac{\sum_{i \ne j} w_i k(p_j; p_i)\, y_i}{\sum_{i \ne j} w_i k(p_j; p_i)}

    with k(·; p) the Dirichlet density of parameters p / b + 1, which peaks at p. Each row is left out of its own
    estimate. Everything is done on logarithms.

    Shapes: a joint view (n, m), or a binary view (n,), where k is the beta density of the score and the error is
    :math:`|\hat r_j - p_j|^q`. Units: the q-th power of a probability, no root is taken: for q = 1 the L1 distance,
    which is twice TV, in [0, 2], and for a binary view |r − p| itself, in [0, 1]; 0 is best. (The authors' code gives
    twice that for two classes.) Bias: upward, for a calibrated model by the noise and the smoothing of the estimates r̂, which
    `noise_floor` reports (with many classes that is most of the value); errors narrower than the bandwidth are not
    seen. Cost: O(n²m) time; beyond 5,000 rows
    a fixed sample of 5,000 of them is used, and said. Does not merge from tallies. Weights are importance weights.
    Raises TO203 for settings that mean nothing, TO205 for cells of many rows.
    Source: Popordanoska, Sayer & Blaschko (2022).

    Parameters
    ----------
    order : float
        The power q.
    bandwidth : float or "auto"
        Of the kernels, b. `auto` takes the likeliest for the predictions, each judged by the others, of 20 values
        from 1e-5 to 1; no labels are used. Where predictions repeat exactly that is the smallest one, and each is
        compared with its equals.
    floor : float
        Stands in for smaller probabilities in the kernels' logarithms, where an exact 0 has no density around it; the
        rows it touched are noted. The error itself uses the probabilities as they are.

    >>> view = View(p=[0.3, 0.3, 0.3, 0.3], y=[1, 0, 0, 0])  # left out, the others say 0, 1/3, 1/3, 1/3
    >>> round(float(DirichletError(bandwidth=0.1)(view)), 4)  # (.3 + 3 · .0333) / 4
    0.1
    """

    name: ClassVar[str] = "dirichlet_kde"
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    interval: ClassVar[str | None] = "noise-floor"
    exempt: ClassVar[dict[str, str]] = {
        "weight two": "a row is left out of its own estimate with all its weight, of two rows one stays",
    }
    order: FiniteOrder = 1.0
    bandwidth: Annotated[float, Range(1e-12, closed="left")] | Literal["auto"] = "auto"
    min_prob: Annotated[float, Range(0, 1e-3, closed="right")] = 1e-12

    @property
    def power(self) -> float:  # type: ignore[override]
        """No root is taken."""
        return float(self.order)

    def value(self, view: View) -> float:
        """The error of the view's rows."""
        return self.linear(view).value()

    def linear(self, view: View) -> Neighbors:
        """The same with each row as a cell: the kernels stay, the outcomes or the rows' weights change."""
        return Neighbors(self, view)

    def resampled(self, views: Sequence[View], resamples: int, rng: np.random.Generator) -> tuple[Array, str] | None:
        """Where a sample stands for all rows, its rows are drawn."""
        rows = self.linear(views[0])
        return (rows.drawn(resamples, rng)[None], "sampled rows") if rows.sampled and len(views) == 1 else None

    def settings_used(self, view: View) -> dict[str, Any]:
        """Order, bandwidth and floor as used."""
        rows = self.linear(view)
        used = {} if rows.lonely else {"bandwidth": rows.bandwidth}
        return {"order": self.order, **used, "min_prob": self.min_prob}

    def notes(self, view: View) -> list[Note]:
        """A word where there is no neighbor, where zeros were floored, and where a sample was taken."""
        rows = self.linear(view)
        if rows.lonely:
            return [Note("TN118", "One row has no other to be compared with, so the error is undefined.")]
        note_list = []
        if rows.sampled:
            text = f"{rows.sampled:,} rows were compared with each other in place of {len(view.w):,}: a fixed sample."
            note_list.append(Note("TN119", text))
        if touched := below(rows.P, self.min_prob):
            text = f"The floor {self.min_prob:g} of the kernels stood in for smaller probabilities in {touched:,} rows."
            note_list.append(Note("TN120", text))
        return note_list

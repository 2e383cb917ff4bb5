"""Are residuals 0 around each of a few places on the simplex? The calibrated mean embedding test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount
from trueodds.estimators.smoothing import kernels
from trueodds.estimators.smoothing.kernels import Bandwidth, Kernel, KernelName, Similarity, matrix
from trueodds.hypotests.by_view import ViewTest
from trueodds.hypotests.pairing.embedding import Embedding
from trueodds.hypotests.pairing.places import as_places, choose_places
from trueodds.hypotests.statistics import ViewResult
from trueodds.lenses.view import View

MIN_ROWS_PER_LOCATION = (
    60  # rows that chance at one location must be worth, for the χ² law to reject about as often as it says
)


@dataclass(frozen=True)
class MeanEmbedding(ViewTest):
    r"""CME test: is the mean residual 0 around each of J test locations?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: D_{ij} = k(p_i, t_j)\,(y_i - p_i)_{s_j}, \quad Q = n\, \mu^\top S^{-1} \mu

    with μ the mean and S the sample covariance (n − 1) of the rows of D; χ² with J degrees of freedom. A location is a
    place t on the simplex and the number s of an outcome there. It costs O(nJ) where the SKCE costs O(n²), and sees
    what happens around its locations only.

    Locations must not know the labels. By default they are five predictions that stand evenly among the rows (fewer
    below 50 rows: one per ten of them), in an order that their values fix, and the outcome of each is drawn as evenly
    from what was said there. `locations=(T, s)` gives others, T (J, m), or (J,) for a binary view.

    Shapes: binary and joint views. Statistic: Q ≥ 0, large values count. Effect: UCME, the root of the mean μ_j²: a
    residual averaged with the kernel as weight, in probability units within [0, 1].
    `null="redraw"` (the default) is exact. The χ² law rejects too often with few rows, and where some combination of
    locations looks at a few rare outcomes: 8 to 9 % of calibrated data at 5 % with 250 rows of three classes, 20 % with
    250 binary scores, up to 90 % with 100 rows of rare events. Where chance is worth fewer than 60 rows for each location that is told. Where locations say the same,
    or nothing, S is singular: its pseudo-inverse is taken and its rank is the degrees of freedom (note TN220). A
    residual that does not vary at all, and is not 0, makes Q infinite.
    Cost: O(nJ² + nJm); with redraws as much per draw. Needs rows.
    Weights are importance weights: μ is the weighted mean and S grows with the squares of the weights.
    Raises TO203 for locations, kernel or bandwidth that are none, TO205 for locations of another shape than the view.
    Source: Widmann, Lindsten & Zachariah (2021), after Jitkrittum et al. (2016).

    Parameters
    ----------
    locations : int or (array, array)
        How many, or which: (T, s).
    kernel, bandwidth
        As for the estimator `skce`.

    >>> view = View(p=[[1.0, 0.0], [0.0, 1.0]], y=[[0, 1], [1, 0]])  # both wrong
    >>> at = ([[1.0, 0.0], [0.0, 1.0]], [0, 0])
    >>> round(MeanEmbedding(locations=at, kernel="gaussian", bandwidth=1.0).on(view).effect, 4)  # (1 − 1/e) / 2
    0.3161
    """

    name: ClassVar[str] = "cme"
    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "Q is χ² with as many degrees of freedom as locations that differ"
    exempt: ClassVar[dict[str, str]] = {"weight two": "weights are importance weights: chance grows with their squares"}
    null: str = "redraw"
    locations: BinCount | tuple[Any, ...] = 5
    kernel: KernelName | Similarity = "exponential"
    bandwidth: Bandwidth = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.locations, (tuple, list)) and len(self.locations) != 2:
            raise InputError(
                "TO203",
                "locations is an integer of at least 1, or two arrays.",
                f"{len(self.locations)} of them",
                "For instance 5, or (T, s) with places (J, m) and the number of an outcome for each.",
            )

    def on(self, view: View) -> ViewResult:
        """Q, its χ² p-value, and the mean residual at the locations."""
        near = self.cells(view)
        form, count = near.form(), len(near.places.outcome)
        q, rank = float(form.q[0]), int(form.rank[0])
        p = float(chdtrc(rank, q)) if rank else float("nan") if np.isnan(q) else float(q == 0)
        ucme = float((form.mean[0] ** 2).mean())
        notes, doubts = [], []
        if np.isnan(q):
            notes.append(Note("TN118", "One row does not tell how rows vary, so Q is undefined."))
        elif rank < count:
            text = f"{count} test locations tell {rank} things apart: so many are the degrees of freedom."
            notes.append(Note("TN220", text))
        if self.null == "asymptotic" and (rows_per_location := near.effective_n() / count) < MIN_ROWS_PER_LOCATION:
            doubts.append(
                f"What chance does at a test location is worth {rows_per_location:.2g} rows: χ² rejects too often."
            )
        parts = {"ucme": {"squared": ucme, "df": float(rank)}}
        return ViewResult(
            q, p, float(np.sqrt(ucme)), parts, self._settings_used(view, count), tuple(notes), tuple(doubts)
        )

    def cells(self, view: View) -> Embedding:
        """Q; large values count."""
        places = (
            choose_places(view, self.locations) if isinstance(self.locations, int) else as_places(view, self.locations)
        )
        return Embedding(view, places, self._kernel(view).of(matrix(view), places.at))

    def _kernel(self, view: View) -> Kernel:
        key = ("kernel", self.kernel, self.bandwidth)
        return view.once(key, lambda: kernels.chosen(self.kernel, self.bandwidth, view))

    def _settings_used(self, view: View, count: int) -> dict[str, Any]:
        named = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "given")
        width = {"bandwidth": self._kernel(view).bandwidth} if isinstance(self.kernel, str) else {}
        return {"locations": count, "kernel": named, **width}

"""The calibrated mean embedding (CME) test: mean kernel-weighted residuals at test locations on the simplex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc

from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.data.arrays import as_array, as_float_array
from trueodds.estimators._pairwise import similarity_kernels
from trueodds.estimators._pairwise.hashed_order import evenly_by_weight, hashed_order
from trueodds.estimators._pairwise.similarity_kernels import Bandwidth, Kernel, KernelName, Similarity, matrix
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.kernels import in_blocks
from trueodds.lenses.view import View

ROWS_PER_LOCATION = 10  # rows per place that is chosen here: a covariance of J places needs some rows more than J


@dataclass(frozen=True)
class Locations:
    """Test locations of one view."""

    at: Array  # (J, m), or (J, 1) for a binary view
    outcome: Array  # (J,)

    def residuals(self, r: Array) -> Array:
        """The residual of each location's outcome, (…, J), from those of joint (…, m) or binary (…) views."""
        if self.at.shape[1] > 1:
            return r[..., self.outcome]
        return r[..., None] * np.where(self.outcome == 1, 1.0, -1.0)


def choose_locations(view: View, count: int) -> Locations:
    """Predictions that stand evenly among the rows, whatever their order, and outcomes that were said there.

    The j-th outcome is where (j + ½) / J falls in the cumulative probabilities of its place; equal locations are one.
    """
    mask = view.w > 0
    P, w = matrix(view)[mask], view.w[mask]
    count = max(1, min(count, len(P) // ROWS_PER_LOCATION))
    order = hashed_order(P)
    at = P[order[evenly_by_weight(w[order], count)]]
    outcome = np.ones(count, dtype=np.int64)
    if view.joint:
        u = (np.arange(count) + 0.5) / count
        outcome = np.minimum((np.cumsum(at, axis=1) <= u[:, None]).sum(axis=1), at.shape[1] - 1)
    _, first = np.unique(np.column_stack([at, outcome]), axis=0, return_index=True)
    return Locations(at[np.sort(first)], outcome[np.sort(first)])


def as_locations(view: View, locations: Any) -> Locations:
    """The caller's locations, in the shape of the view."""
    at, outcome = as_array(locations[0], "the places"), as_array(locations[1], "the outcomes")
    m = view.p.shape[1] if view.joint else 1
    if not view.joint and at.ndim == 2 and at.shape[1] == 2:
        at = at[:, 1]
    at = as_float_array(at.reshape(len(at), -1), "the places").astype(np.float64)
    if at.ndim != 2 or not len(at) or at.shape[1] != m or outcome.shape != (len(at),):
        raise InputError(
            "TO205",
            "The locations do not fit the view.",
            f"places {at.shape} and outcomes {outcome.shape} for {max(m, 2)} outcomes",
            f"Give T {'(J, ' + str(m) + ')' if view.joint else '(J,)'} and s (J,).",
        )
    if not (np.isfinite(at).all() and (at >= 0).all() and (at <= 1).all()):
        raise InputError("TO203", "Places are probabilities.", "a value outside [0, 1]", "Give points of the simplex.")
    if outcome.dtype.kind not in "iu" or (outcome < 0).any() or (outcome >= max(m, 2)).any():
        raise InputError(
            "TO203", "Outcomes are numbers of columns.", describe(outcome.tolist()), f"Count from 0 to {max(m, 2) - 1}."
        )
    return Locations(at, outcome.astype(np.int64))


EIGENVALUE_TOLERANCE = (
    1e-9  # of the largest eigenvalue of a correlation matrix: below, a direction is said by the others
)
STILL = 1e-12  # of its mean square: below, a residual does not vary
AT_ONCE = 2**20  # residuals at locations held at once


@dataclass(frozen=True)
class QuadraticForm:
    """Q, its rank, and the mean residuals, of each draw."""

    q: Array  # (draws,)
    rank: Array  # (draws,)
    mean: Array  # (draws, J)


class Embedding:
    """Residuals around the locations, row by row: the cells of the CME."""

    def __init__(self, view: View, places: Locations, similar: Array) -> None:
        self.view, self.places, self.similar = view, places, similar  # (n, J)
        self.index, self.size = np.arange(len(view)), len(view)

    def form(self) -> QuadraticForm:
        """The quadratic form of the view itself."""
        view = self.view
        w = view.w[:, None] if view.joint else view.w
        return self._form(self.places.residuals((w * (view.y - view.p))[None]))

    def value(self) -> float:
        """Q of the view itself."""
        return float(self.form().q[0])

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """Q of each draw."""

        def work(a: int, b: int) -> Array:
            return self._form(self.places.residuals(wy[a:b] - wp)).q

        return np.concatenate([np.empty(0), *in_blocks(work, len(wy), self._block)])

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: it is no error that an interval is made for."""
        return None

    @property
    def of_labels(self) -> Callable[[Array], Array] | None:
        """Q of labels drawn anew, from (n, draws) numbers of outcomes, for joint views."""
        return self._relabeled if self.view.joint else None

    def _relabeled(self, labels: Array) -> Array:
        w, predicted = self.view.w[:, None], self.view.p[:, self.places.outcome].astype(np.float64)

        def work(a: int, b: int) -> Array:
            observed = labels.T[a:b, :, None] == self.places.outcome
            return self._form(w * (observed - predicted)).q

        return np.concatenate([np.empty(0), *in_blocks(work, labels.shape[1], self._block)])

    @property
    def _block(self) -> int:
        return max(1, AT_ONCE // max(1, self.similar.size))

    def effective_n(self) -> float:
        """As many rows of equal weight as stand behind Q by chance: rank² / Σ_i E|a_i|⁴, Σ_i E a_i a_i' being 1.

        Rows where outcomes are rare weigh heavily in a combination of locations that looks at them alone.
        """
        view, s = self.view, self.places.outcome
        P = view.P
        named = np.unique(s)
        rest = np.maximum(1 - P[:, named].sum(axis=1), 0.0)
        cases = [(P[:, c], s == c) for c in named] + [(rest, np.zeros(len(s), dtype=bool))]
        kernel_weights, predicted = view.w[:, None] * self.similar, P[:, s]
        cov = np.zeros((len(s), len(s)))
        for chance, observed in cases:
            d = kernel_weights * (observed - predicted)
            cov += (chance[:, None] * d).T @ d
        scale = np.diag(cov) > 0
        scale = np.where(scale, 1 / np.sqrt(np.where(scale, np.diag(cov), 1.0)), 0.0)
        values, vectors = np.linalg.eigh(cov * scale[:, None] * scale)
        mask = values > EIGENVALUE_TOLERANCE * max(values[-1], EIGENVALUE_TOLERANCE)
        whiten = (scale[:, None] * vectors)[:, mask] / np.sqrt(values[mask])
        fourth = 0.0
        for chance, observed in cases:
            lengths = (((kernel_weights * (observed - predicted)) @ whiten) ** 2).sum(axis=1)
            fourth += float(chance @ lengths**2)
        return float(mask.sum() ** 2 / fourth) if fourth > 0 else 0.0

    def _form(self, residuals: Array) -> QuadraticForm:
        """From w (y − p) of each location's outcome, (draws, n, J)."""
        d = residuals * self.similar
        w, n = self.view.w, float((self.view.w > 0).sum())
        mean = d.sum(axis=1) / w.sum()
        if n < 2:  # what a single row would vary by is not known
            return QuadraticForm(np.full(len(d), np.nan), np.zeros(len(d), dtype=np.int64), mean)
        square = np.swapaxes(d, 1, 2) @ d
        cross = np.einsum("i,bij->bj", w, d)[:, :, None] * mean[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            around = square - cross - np.swapaxes(cross, 1, 2) + (w @ w) * mean[:, :, None] * mean[:, None, :]
            cov = around * (n / (n - 1)) / w.sum() ** 2
        return _quadratic(mean, cov, np.einsum("bjj->bj", square) / w.sum() ** 2)


def _quadratic(mean: Array, cov: Array, size: Array) -> QuadraticForm:
    """μ' S⁺ μ and the rank of S, on the scale of correlations; infinite where a mean that is not 0 does not vary."""
    variance = np.einsum("bjj->bj", cov)
    varies = variance > STILL * size
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(np.nan_to_num(cov) * scale[:, :, None] * scale[:, None, :])
    counts = values > EIGENVALUE_TOLERANCE * np.maximum(values[:, -1:], EIGENVALUE_TOLERANCE)
    along = np.einsum("bjk,bj->bk", vectors, mean * scale)
    q = (along**2 / np.where(counts, values, np.inf)).sum(axis=1)
    return QuadraticForm(np.where(((size > 0) & ~varies).any(axis=1), np.inf, q), counts.sum(axis=1), mean)


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
            choose_locations(view, self.locations)
            if isinstance(self.locations, int)
            else as_locations(view, self.locations)
        )
        return Embedding(view, places, self._kernel(view).of(matrix(view), places.at))

    def _kernel(self, view: View) -> Kernel:
        key = ("kernel", self.kernel, self.bandwidth)
        return view.once(key, lambda: similarity_kernels.chosen(self.kernel, self.bandwidth, view))

    def _settings_used(self, view: View, count: int) -> dict[str, Any]:
        named = self.kernel if isinstance(self.kernel, str) else getattr(self.kernel, "__name__", "given")
        width = {"bandwidth": self._kernel(view).bandwidth} if isinstance(self.kernel, str) else {}
        return {"locations": count, "kernel": named, **width}

"""Canonical calibration error of probability vectors by kernel regression with Dirichlet kernels on the simplex."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.special import gammaln

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import FiniteOrder, Range
from trueodds.core.typing import Array
from trueodds.estimators._pairwise.similarity_kernels import (
    complete_vectors,
    draw_multiplicities,
    evenly_spaced_positions,
    hashed_order,
    prediction_matrix,
)
from trueodds.estimators.base import CellStatistic, Estimator, require_single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class DirichletError(Estimator):
    r"""Canonical calibration error with Dirichlet kernels: predicted vectors against a leave-one-out kernel regression.

    It measures the calibration of whole probability vectors without bins.

    Parameters
    ----------
    order : float, default=1.0
        Power q.
    bandwidth : float or "auto", default="auto"
        Bandwidth b of the kernels. "auto" maximizes the leave-one-out likelihood of the predictions over 20 values from
        1e-5 to 1, without labels. If predictions repeat exactly, this is the smallest value, and each prediction is
        compared with its equals.
    min_prob : float, default=1e-12
        Replaces smaller probabilities in the logarithms of the kernels, because an exact 0 has no density around it. A
        note reports the number of rows. The error itself uses the original probabilities.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view holds cells of many rows.

    Notes
    -----
    .. math:: \frac1w \sum_j w_j \sum_c |\hat r_{jc} - p_{jc}|^q, \quad
        \hat r_j = \frac{\sum_{i \ne j} w_i k(p_j; p_i)\, y_i}{\sum_{i \ne j} w_i k(p_j; p_i)}

    k(·; p) is the Dirichlet density with parameters p / b + 1, whose mode is p. Each row is excluded from its own
    estimate. All computations use logarithms. Weights are importance weights. Shapes: a joint view (n, m), or a binary
    view (n,), where k is the beta density of the score and the error is :math:`|\hat r_j - p_j|^q`.

    Units: the q-th power of a probability. No root is taken. For q = 1 the value is the L1 distance, which is twice
    total variation, in [0, 2], and for a binary view |r − p|, in [0, 1]; 0 is best. The authors' code gives twice that
    for two classes.

    Bias: upward. A calibrated model scores the noise and the smoothing bias of r̂, which `noise_floor` reports. With
    many classes that is most of the value. Errors narrower than the bandwidth are not detected.

    Cost: O(n²m) time. Beyond 5,000 rows a fixed subsample of 5,000 is used, and a note says so. Tallies are not
    supported.

    References
    ----------
    .. [1] Popordanoska, Sayer & Blaschko (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 0, 0], [0.3] * 4  # leave-one-out rates are 0, 1/3, 1/3, 1/3
    >>> error = to.measure(y, p, "dirichlet_kde", lens="positive", bandwidth=0.1, interval=None)
    >>> round(error.value, 4)  # (.3 + 3 · .0333) / 4
    0.1
    """

    name: ClassVar[str] = "dirichlet_kde"
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    interval: ClassVar[str | None] = "noise-floor"
    exemptions: ClassVar[dict[str, str]] = {
        "weight two": "a row is left out of its own estimate with all its weight, of two rows one stays",
    }
    order: FiniteOrder = 1.0
    bandwidth: Annotated[float, Range(1e-12, closed="left")] | Literal["auto"] = "auto"
    min_prob: Annotated[float, Range(0, 1e-3, closed="right")] = 1e-12

    @property
    def norm_power(self) -> float:  # type: ignore[override]
        return float(self.order)

    def value(self, view: View) -> float:
        return self.cell_statistic(view).value()

    def cell_statistic(self, view: View) -> ComparedRows:
        """The statistic with each row as a cell: kernels are fixed, outcomes or row weights change."""
        return ComparedRows(self, view)

    def resample_units(
        self, views: Sequence[View], resamples: int, rng: np.random.Generator
    ) -> tuple[Array, str] | None:
        """Resamples of the subsample, if one is used."""
        rows = self.cell_statistic(views[0])
        return (rows.draw_errors(resamples, rng)[None], "sampled rows") if rows.n_sampled and len(views) == 1 else None

    def settings_used(self, view: View) -> dict[str, Any]:
        rows = self.cell_statistic(view)
        used = {} if rows.has_single_row else {"bandwidth": rows.bandwidth}
        return {"order": self.order, **used, "min_prob": self.min_prob}

    def notes(self, view: View) -> list[Note]:
        rows = self.cell_statistic(view)
        if rows.has_single_row:
            return [Note("TN118", "The error is undefined for a single row, because it compares pairs of rows.")]
        note_list = []
        if rows.n_sampled:
            text = f"{rows.n_sampled:,} of {len(view.w):,} rows were compared with each other, as a fixed subsample."
            note_list.append(Note("TN119", text))
        if n_clipped := count_rows_below(rows.P, self.min_prob):
            text = f"⟨min_prob={self.min_prob:g}⟩ clipped probabilities in {n_clipped:,} rows of the kernels."
            note_list.append(Note("TN120", text))
        return note_list


MAX_COMPARED_ROWS = 5_000  # maximum number of rows that are compared with each other
MAX_CACHE_BYTES = 2 * 10**8  # maximum size in bytes of the kernel values that are cached
MAX_DOUBLE_PRECISION_ROWS = 1_000  # maximum number of rows with which draws are summed in double precision
MAX_BLOCK_ESTIMATES = 2**21  # maximum number of estimated probabilities in memory at once: 16 MB


class ComparedRows(CellStatistic):
    """Cell statistic whose cells are the rows of a view, or of a fixed subsample.

    `P` (n, m), `y` (n, m) and `w` (n,) are predictions, outcomes and weights of the rows of positive weight, or of
    5,000 of them if there are more. All other rows share the last cell, which is ignored.
    """

    def __init__(self, estimator: DirichletError, view: View) -> None:
        require_single_rows(view, estimator.name)
        rows = np.flatnonzero(view.w > 0)
        self.n_sampled = MAX_COMPARED_ROWS if len(rows) > MAX_COMPARED_ROWS else 0
        if self.n_sampled:
            # Equal predictions are ordered by their outcomes, so that the order of the rows does not matter.
            order = hashed_order(prediction_matrix(view)[rows], view.y[rows], view.w[rows])
            rows = np.sort(rows[order[evenly_spaced_positions(len(rows), MAX_COMPARED_ROWS)]])
        self.index = np.full(len(view.w), len(rows), dtype=np.int64)
        self.index[rows] = np.arange(len(rows))
        self.size = len(rows) + (len(rows) < len(view.w))
        self.estimator, self.view, self.rows = estimator, view, rows
        self.w = view.w[rows]
        self.P = prediction_matrix(view)[rows]
        self.y = view.y[rows] if view.joint else view.y[rows, None]
        self.has_single_row = len(rows) < 2

    @cached_property
    def bandwidth(self) -> float:
        """The given bandwidth, or that of largest likelihood."""
        if isinstance(self.estimator.bandwidth, str):
            min_prob = self.estimator.min_prob
            return self.view.cached(
                ("likeliest bandwidth", min_prob), lambda: likeliest_bandwidth(self.P, self.w, min_prob)
            )
        return float(self.estimator.bandwidth)

    @cached_property
    def kernel(self) -> DirichletKernel:
        """The kernels around the rows."""
        return DirichletKernel(self.P, self.bandwidth, self.estimator.min_prob)

    @cached_property
    def strips(self) -> list[tuple[slice, Array]] | None:
        """The kernel values of strips of rows (see `DirichletKernel.strips`), stored for draws; None if too many."""
        n_views = 1 if self.view.joint else max(1, self.view.classes)  # number of such objects at a time
        if len(self.rows) ** 2 * n_views * 4 > MAX_CACHE_BYTES:
            return None
        return [(rows, k.astype(self.dtype, copy=False)) for rows, k in self.kernel.strips()]

    @property
    def dtype(self) -> type:
        """The floating-point precision of draws. The value itself is computed in double precision."""
        return np.float64 if len(self.rows) <= MAX_DOUBLE_PRECISION_ROWS else np.float32

    def value(self) -> float:
        if self.has_single_row:
            return float("nan")
        w = self.w / self.w.sum()
        outcomes = w[:, None] * self.y
        error = 0.0
        for rows, k in self.kernel.strips():
            error += float(w[rows] @ self._row_errors((k @ outcomes) / (k @ w)[:, None], rows))
        return error

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw. All copies of a row are excluded from its own estimate."""
        n, m = self.P.shape
        if self.has_single_row:
            return np.full(len(wy), np.nan)
        outcomes = wy[:, :n].reshape(len(wy), n, m)
        mass = w[:, :n] / w[:, :n].sum(axis=1, keepdims=True)
        outcomes = outcomes / w[:, :n].sum(axis=1)[:, None, None]
        block_size = max(1, MAX_BLOCK_ESTIMATES // (n * m))
        errors = [
            self._errors_of_draws(
                mass if len(w) == 1 else mass[start : start + block_size], outcomes[start : start + block_size]
            )
            for start in range(0, len(wy), block_size)
        ]
        return np.concatenate(errors)

    def _errors_of_draws(self, w: Array, outcomes: Array) -> Array:
        """The error of each draw (draws,) from weights (1 or draws, n) and weighted outcomes (draws, n, m)."""
        draws, n, m = outcomes.shape
        n_free = max(1, m - 1)  # the probability of the last class follows from the others
        stacked_outcomes: Array = np.ascontiguousarray(
            outcomes[:, :, :n_free].transpose(1, 0, 2), dtype=self.dtype
        ).reshape(n, draws * n_free)
        mass: Array = np.ascontiguousarray(w.T, dtype=self.dtype)
        errors = np.zeros(draws)
        for rows, k in self.strips or self.kernel.strips():
            with np.errstate(invalid="ignore"):  # the error of a draw of a single row is NaN
                r = (k @ stacked_outcomes).reshape(-1, draws, n_free) / (k @ mass)[:, :, None]
            if m > 1:
                r = np.concatenate([r, 1 - r.sum(axis=2, keepdims=True)], axis=2)
            errors += (self._row_errors(r, rows) * w.T[rows]).sum(axis=0)
        return errors

    def _row_errors(self, r: Array, rows: slice) -> Array:
        """The error of each row, from estimates (rows, m) or (rows, draws, m)."""
        p = self.P[rows] if r.ndim == 2 else self.P[rows, None, :]
        gap = np.abs(r - p)
        return np.asarray((gap if self.estimator.order == 1 else gap**self.estimator.order).sum(axis=-1))

    def draw_errors(self, resamples: int, rng: np.random.Generator) -> Array:
        """The error when the rows of the sample are drawn with replacement."""
        n = len(self.rows)
        block_size = max(1, MAX_BLOCK_ESTIMATES // (n * self.P.shape[1]))
        weights = (block * self.w for block in draw_multiplicities(n, resamples, block_size, rng))
        return np.concatenate([self.statistic(w, w, w[..., None] * self.y) for w in weights])


BANDWIDTHS: Array = np.concatenate([np.logspace(-5, -1, 15), np.linspace(0.2, 1.0, 5)])  # candidates
MAX_BANDWIDTH_ROWS = 1_000  # maximum number of rows by which the bandwidth is chosen
ROWS_PER_STRIP = 256  # number of rows whose kernel values are computed at once
MIN_EXPONENT = -60.0  # exp of this, divided by the number of rows, is far above the underflow of single precision


class DirichletKernel:
    r"""Densities of parameters p_i / b + 1 around the rows p_i, at the rows themselves; each integrates to one.

    .. math:: \log k(x; p_i) = \sum_c \tfrac{p_{ic}}{b} \log x_c + \log\Gamma\Big(\sum_c \alpha_{ic}\Big)
        - \sum_c \log\Gamma(\alpha_{ic})

    One column p is the pair (p, 1 − p): the beta kernel.
    """

    def __init__(self, P: Array, bandwidth: float, min_prob: float) -> None:
        self.P, self.bandwidth = complete_vectors(P), bandwidth
        self.log_P = np.log(np.maximum(self.P, min_prob))

    def constants(self, bandwidth: float) -> Array:
        """Log normalizing constant of each kernel for a bandwidth, (n,)."""
        alpha = np.maximum(self.P, 0.0) / bandwidth + 1
        return np.asarray(gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1))

    def strips(self) -> Iterator[tuple[slice, Array]]:
        """Yield some rows at a time, and the kernels around all n rows at these rows, (rows, n).

        The kernel around a row is 0 at the row itself. The values at each row are scaled so that the largest is 1.
        """
        constants = self.constants(self.bandwidth)
        exponents = (np.maximum(self.P, 0.0) / self.bandwidth).T
        n = len(self.P)
        for start in range(0, n, ROWS_PER_STRIP):
            rows = slice(start, min(start + ROWS_PER_STRIP, n))
            k = self.log_P[rows] @ exponents
            k += constants
            self_pairs = (np.arange(rows.stop - start), np.arange(start, rows.stop))
            k[self_pairs] = -np.inf
            k -= k.max(axis=1, keepdims=True)
            # Distant rows keep a positive value, for draws without a close row.
            np.maximum(k, MIN_EXPONENT, out=k)
            np.exp(k, out=k)
            k[self_pairs] = 0.0
            yield rows, k


def count_rows_below(P: Array, min_prob: float) -> int:
    """Return the number of rows of P (n, m) with a probability below the minimum."""
    return int((complete_vectors(P) < min_prob).any(axis=1).sum())


def likeliest_bandwidth(P: Array, w: Array, min_prob: float) -> float:
    """Return the bandwidth of largest leave-one-out likelihood of the predictions P (n, m) with weights w (n,).

    With more than 1,000 rows, a subsample of 1,000 is used that does not depend on the row order.
    """
    if len(P) > MAX_BANDWIDTH_ROWS:
        rows = hashed_order(P, w)[evenly_spaced_positions(len(P), MAX_BANDWIDTH_ROWS)]
        P, w = P[rows], w[rows]
    kernel = DirichletKernel(P, 1.0, min_prob)
    products = kernel.log_P @ np.maximum(kernel.P, 0.0).T
    # The likelihoods are not divided by the weights of the other rows, which are the same for every bandwidth (and
    # whose logarithm is lost by cancellation if one row has nearly all the weight).
    log_likelihoods = []
    for bandwidth in BANDWIDTHS:
        log_kernels = products / bandwidth
        log_kernels += kernel.constants(bandwidth) + np.log(w)
        np.fill_diagonal(log_kernels, -np.inf)
        row_maxima = log_kernels.max(axis=1)
        log_sums = row_maxima + np.log(np.exp(log_kernels - row_maxima[:, None]).sum(axis=1))
        log_likelihoods.append(float(weighted_sum(w, log_sums)))
    # The smallest of the bandwidths whose likelihoods are equal but for rounding, which depends on the row order.
    tolerance = 1e-9 * float(w.sum())
    is_likeliest = np.array(log_likelihoods) >= max(log_likelihoods) - tolerance
    return float(BANDWIDTHS[np.argmax(is_likeliest)])

"""What came where the predictions were like this one, observed, redrawn and resampled?"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueodds.core.typing import Array
from trueodds.estimators.base import single_rows
from trueodds.estimators.smoothing.dirichlet import DirichletKernel, likeliest
from trueodds.estimators.smoothing.hashed import evenly, hashed_order
from trueodds.estimators.smoothing.kernels import matrix
from trueodds.lenses.view import View

if TYPE_CHECKING:
    from trueodds.estimators.dirichlet_kde import DirichletError


ROWS = 5_000  # rows that are compared with each other
MAX_CACHE_BYTES = 2 * 10**8  # bytes of similarities that are kept between calls
DOUBLE = 1_000  # rows up to which draws are summed in double precision
NUMBERS = 2**21  # estimates of probabilities held at once


class Neighbors:
    """One view's rows for one error: each row is a cell, and those outside a sample share the last."""

    def __init__(self, error: DirichletError, view: View) -> None:
        single_rows(view, error.name)
        rows = np.flatnonzero(view.w > 0)
        self.sampled = ROWS if len(rows) > ROWS else 0
        if self.sampled:
            # Among equal predictions the outcomes decide, so that the order of the rows never does.
            order = hashed_order(matrix(view)[rows], view.y[rows], view.w[rows])
            rows = np.sort(rows[order[evenly(len(rows), ROWS)]])
        self.index = np.full(len(view.w), len(rows), dtype=np.int64)
        self.index[rows] = np.arange(len(rows))
        self.size = len(rows) + (len(rows) < len(view.w))
        self.error, self.view, self.rows = error, view, rows
        self.w = view.w[rows]
        self.P = matrix(view)[rows]
        self.y = view.y[rows] if view.joint else view.y[rows, None]
        self.lonely = len(rows) < 2

    @cached_property
    def bandwidth(self) -> float:
        """The bandwidth given, or the likeliest."""
        if isinstance(self.error.bandwidth, str):
            return likeliest(self.P, self.w, self.error.min_prob)
        return float(self.error.bandwidth)

    @cached_property
    def kernel(self) -> DirichletKernel:
        """The kernels around the rows."""
        return DirichletKernel(self.P, self.bandwidth, self.error.min_prob)

    @cached_property
    def strips(self) -> list[tuple[slice, Array]] | None:
        """The kernels as kept for draws; None where they are too many."""
        views = 1 if self.view.joint else max(1, self.view.classes)  # as many may stand side by side
        if len(self.rows) ** 2 * views * 4 > MAX_CACHE_BYTES:
            return None
        return [(at, k.astype(self.kind, copy=False)) for at, k in self.kernel.strips()]

    @property
    def kind(self) -> type:
        """The precision of draws; the value itself is always made in double."""
        return np.float64 if len(self.rows) <= DOUBLE else np.float32

    def value(self) -> float:
        """The error of the view itself."""
        if self.lonely:
            return float("nan")
        w = self.w / self.w.sum()
        outcomes = w[:, None] * self.y
        error = 0.0
        for at, k in self.kernel.strips():
            error += float(w[at] @ self._row_errors((k @ outcomes) / (k @ w)[:, None], at))
        return error

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw; the copies of a row are left out of its estimate with it."""
        n, m = self.P.shape
        if self.lonely:
            return np.full(len(wy), np.nan)
        outcomes = wy[:, :n].reshape(len(wy), n, m)
        mass = w[:, :n] / w[:, :n].sum(axis=1, keepdims=True)
        outcomes = outcomes / w[:, :n].sum(axis=1)[:, None, None]
        step = max(1, NUMBERS // (n * m))
        parts = [
            self._errors(mass if len(w) == 1 else mass[a : a + step], outcomes[a : a + step])
            for a in range(0, len(wy), step)
        ]
        return np.concatenate(parts)

    def _errors(self, w: Array, outcomes: Array) -> Array:
        draws, n, m = outcomes.shape
        n_free = max(1, m - 1)  # the last class has what the others leave
        flat: Array = np.ascontiguousarray(outcomes[:, :, :n_free].transpose(1, 0, 2), dtype=self.kind).reshape(
            n, draws * n_free
        )
        mass: Array = np.ascontiguousarray(w.T, dtype=self.kind)
        errors = np.zeros(draws)
        for at, k in self.strips or self.kernel.strips():
            with np.errstate(invalid="ignore"):  # a draw of one row alone tells nothing
                r = (k @ flat).reshape(-1, draws, n_free) / (k @ mass)[:, :, None]
            if m > 1:
                r = np.concatenate([r, 1 - r.sum(axis=2, keepdims=True)], axis=2)
            errors += (self._row_errors(r, at) * w.T[at]).sum(axis=0)
        return errors

    def _row_errors(self, r: Array, at: slice) -> Array:
        """The error of each row, from estimates (rows, m) or (rows, draws, m)."""
        p = self.P[at] if r.ndim == 2 else self.P[at, None, :]
        gap = np.abs(r - p)
        return np.asarray((gap if self.error.order == 1 else gap**self.error.order).sum(axis=-1))

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: the estimates are ratios."""
        return None

    def drawn(self, resamples: int, rng: np.random.Generator) -> Array:
        """The error when the rows of the sample are drawn with replacement."""
        n = len(self.rows)
        block = max(1, NUMBERS // (n * self.P.shape[1]))
        errors = []
        for start in range(0, resamples, block):
            drawn = rng.integers(0, n, (min(block, resamples - start), n))
            w = np.stack([np.bincount(one, minlength=n) for one in drawn]) * self.w
            errors.append(self.statistic(w, w, w[..., None] * self.y))
        return np.concatenate(errors)

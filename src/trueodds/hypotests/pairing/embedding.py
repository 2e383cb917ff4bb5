"""How large are mean residuals around test locations, for their covariance? One quadratic form per draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array
from trueodds.hypotests.pairing.places import Places
from trueodds.kernels import in_blocks
from trueodds.lenses.view import View

ALIKE = 1e-9  # of the largest eigenvalue of a correlation matrix: below, a direction is said by the others
STILL = 1e-12  # of its mean square: below, a residual does not vary
AT_ONCE = 2**20  # residuals at locations held at once


@dataclass(frozen=True)
class Form:
    """Q, its rank, and the mean residuals, of each draw."""

    q: Array  # (draws,)
    rank: Array  # (draws,)
    mean: Array  # (draws, J)


class Embedding:
    """Residuals around the locations, row by row: the cells of the CME."""

    def __init__(self, view: View, places: Places, similar: Array) -> None:
        self.view, self.places, self.similar = view, places, similar  # (n, J)
        self.index, self.size = np.arange(len(view)), len(view)

    def form(self) -> Form:
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
        mask = values > ALIKE * max(values[-1], ALIKE)
        whiten = (scale[:, None] * vectors)[:, mask] / np.sqrt(values[mask])
        fourth = 0.0
        for chance, observed in cases:
            lengths = (((kernel_weights * (observed - predicted)) @ whiten) ** 2).sum(axis=1)
            fourth += float(chance @ lengths**2)
        return float(mask.sum() ** 2 / fourth) if fourth > 0 else 0.0

    def _form(self, residuals: Array) -> Form:
        """From w (y − p) of each location's outcome, (draws, n, J)."""
        d = residuals * self.similar
        w, n = self.view.w, float((self.view.w > 0).sum())
        mean = d.sum(axis=1) / w.sum()
        if n < 2:  # what a single row would vary by is not known
            return Form(np.full(len(d), np.nan), np.zeros(len(d), dtype=np.int64), mean)
        square = np.swapaxes(d, 1, 2) @ d
        cross = np.einsum("i,bij->bj", w, d)[:, :, None] * mean[:, None, :]
        with np.errstate(divide="ignore", invalid="ignore"):
            around = square - cross - np.swapaxes(cross, 1, 2) + (w @ w) * mean[:, :, None] * mean[:, None, :]
            cov = around * (n / (n - 1)) / w.sum() ** 2
        return _quadratic(mean, cov, np.einsum("bjj->bj", square) / w.sum() ** 2)


def _quadratic(mean: Array, cov: Array, size: Array) -> Form:
    """μ' S⁺ μ and the rank of S, on the scale of correlations; infinite where a mean that is not 0 does not vary."""
    variance = np.einsum("bjj->bj", cov)
    varies = variance > STILL * size
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(np.nan_to_num(cov) * scale[:, :, None] * scale[:, None, :])
    counts = values > ALIKE * np.maximum(values[:, -1:], ALIKE)
    along = np.einsum("bjk,bj->bk", vectors, mean * scale)
    q = (along**2 / np.where(counts, values, np.inf)).sum(axis=1)
    return Form(np.where(((size > 0) & ~varies).any(axis=1), np.inf, q), counts.sum(axis=1), mean)

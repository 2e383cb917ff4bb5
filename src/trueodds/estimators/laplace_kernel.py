"""Laplace-kernel calibration error of one score and maximum mean calibration error (MMCE)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Positive
from trueodds.core.typing import Array
from trueodds.estimators.base import Linear
from trueodds.estimators.skce import RowPairs, SquaredKernelError
from trueodds.estimators.unbinned import Reader, UnbinnedError
from trueodds.kernels.pairs import sum_along_line
from trueodds.lenses.view import View

FORMS = ("biased", "unbiased", "weighted")


@dataclass(frozen=True)
class LaplaceError(UnbinnedError):
    r"""Do residuals of neighboring scores point the same way? The Laplace-kernel calibration error.

    Answers: is there a stretch of scores, long or short, where the model promises too much or too little? Two rows
    whose scores lie close and whose outcomes both missed in the same direction raise it; in a calibrated model such
    pairs cancel. It is the largest mean residual that a smooth function of the score can pick out.

    .. math:: \Big(\tfrac1{w^2} \sum_{ij} w_i w_j (y_i - p_i)(y_j - p_j)\, e^{-|p_i - p_j| / \theta}\Big)^{1/2}

    with θ the bandwidth, and each row paired with itself too. Shapes: a binary view (n,). Units: a mean residual, in
    [0, 1]; 0 is best; at most the ECE over distinct scores. Bias: upward, a calibrated model scores about
    sqrt(mean p(1-p) / n), which `noise_floor` reports. Cost: O(n log n) time, O(n) memory, exact; draws tell 4,096
    scores apart. From a tally it is the value at the tally's resolution.
    Raises TO203 for a bandwidth that is no positive number, TO205 for a lens with a vector per row.
    Source: Błasiok, Gopalan, Hu & Nakkiran (2023); without the division by θ that some programs make.

    Parameters
    ----------
    bandwidth : float
        θ: how far apart scores may lie and still count as neighbors.

    >>> round(float(LaplaceError()(View(p=[0.9, 0.9], y=[1, 0]))), 4)  # one score, mean residual −.4
    0.4
    """

    name: ClassVar[str] = "laplace_kce"
    exempt: ClassVar[dict[str, str]] = {"cells": "scores of one cell count as one score, so a tally has its resolution"}
    bandwidth: Positive = 1.0

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The norm of the residuals at the scores."""
        decay = _decay(s, self.bandwidth)
        return lambda _w, wp, wy: _norm(wy - wp, decay)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The bandwidth."""
        return {"bandwidth": float(self.bandwidth)}


@dataclass(frozen=True)
class MeanEmbeddingError(LaplaceError):
    r"""The Laplace-kernel error of width 0.4, known from training with it (MMCE), in its three forms.

    Answers: as `laplace_kce`, on the scale of the papers that train with it; they look at the confidence.

    `biased` is the norm of `laplace_kce` with θ = 0.4. `unbiased` is the square of it without the pairs of a row with
    itself, divided by (Σw)² − Σw² (weights are importance weights): its mean is the true square, so it may be
    negative and is shown signed; it is half of `skce` with the kernel `tv-exponential`. `weighted` compares the rows
    that came with those that did not, as if both were equally many:

    .. math:: \Big\lVert \sum_{y_i = 1} \tfrac{w_i}{w_+} (1 - p_i)\, \varphi(p_i)
        - \sum_{y_i = 0} \tfrac{w_i}{w_-}\, p_i\, \varphi(p_i) \Big\rVert, \quad
        \varphi(p) \cdot \varphi(q) = e^{-|p - q| / \theta}

    **The weighted form is not 0 for a calibrated model**, unless half of the outcomes came. It is a loss for training:
    compare it with the noise floor, which is what a calibrated model with these predictions scores, never with 0. It
    has no interval by default.

    Shapes: a binary view (n,). Units: a mean residual, in [0, 1] (`unbiased`: its square, within ±1; `weighted`: at
    most 2); 0 is best. Bias: `biased` upward by about sqrt(mean p(1-p) / n) at calibration, `unbiased` none.
    Cost: O(n log n); the draws of `unbiased` look at every row. From a tally: at its resolution, `unbiased` not.
    Raises TO203 for a form or bandwidth that is none, TO205 for a lens with a vector per row.
    Source: Kumar, Sarawagi & Jain (2018).

    Parameters
    ----------
    bandwidth : float
        θ; other programs use 0.2, or write 0.4 as twice 0.2.
    form : str
        `biased`, `unbiased` or `weighted`.

    >>> view = View(p=[0.9, 0.9], y=[1, 0])
    >>> round(float(MeanEmbeddingError()(view)), 4), round(float(MeanEmbeddingError(form="unbiased")(view)), 4)
    (0.4, -0.09)
    """

    name: ClassVar[str] = "mmce"
    lower_bound: ClassVar[float] = -math.inf  # `unbiased` is below 0 by chance
    upper_bound: ClassVar[float] = 2.0
    bandwidth: Positive = 0.4
    form: Annotated[str, OneOf(tuple(FORMS))] = "biased"

    @property
    def interval(self) -> str | None:  # type: ignore[override]
        """A norm has one, and what scatters around a plug-in; the weighted form is regular only away from balance."""
        return {"biased": "residual-norm", "unbiased": "debiased", "weighted": None}[self.form]

    @property
    def norm(self) -> bool:  # type: ignore[override]
        """The sides of the weighted form are divided by their own weights, so it is no norm of the residuals."""
        return self.form == "biased"

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        """Which pairs are a row with itself, cells do not tell."""
        return self.form == "unbiased"

    @property
    def _squared(self) -> SquaredKernelError:
        """The same pairs with (p, 1 − p) for p, so twice as much."""
        return SquaredKernelError(form="unbiased", kernel="tv-exponential", bandwidth=float(self.bandwidth))

    def _pairs(self, view: View) -> RowPairs:
        pairs = self._squared.linear(view)
        pairs.twice = 1.0
        return pairs

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The norm of the residuals, or of the two sides against each other."""
        if self.form != "weighted":
            return super().reads(s, share, view)
        decay = _decay(s, self.bandwidth)

        def reader(w: Array, _wp: Array, wy: Array) -> Array:
            return _norm(_portion(wy) * (1 - s) - _portion(w - wy) * s, decay)

        return reader

    def scores(self, view: View) -> Linear:
        """The sums at each score; for the unbiased form each row is a cell."""
        return self._pairs(view) if self.form == "unbiased" and not view.joint else super().scores(view)

    def plug_in(self, view: View) -> float:
        """What resamples of the unbiased form scatter around."""
        return self._pairs(view).biased() if self.form == "unbiased" else self.value(view)

    def expected(self, view: View) -> float | None:
        """Nothing remains of a calibrated model's unbiased form."""
        return 0.0 if self.form == "unbiased" else None

    def resampled(self, views: Sequence[View], resamples: int, rng: np.random.Generator) -> tuple[Array, str] | None:
        """Many rows of the unbiased form, one draw at a time."""
        if self.form != "unbiased":
            return None
        squared = self._squared.resampled(views, resamples, rng)
        return None if squared is None else (squared[0] / 2, squared[1])

    def settings_used(self, view: View) -> dict[str, Any]:
        """Bandwidth and form."""
        return {**super().settings_used(view), "form": self.form}

    def notes(self, view: View) -> list[Note]:
        """What the form cannot tell on these rows."""
        if self.form == "unbiased":
            return self._squared.notes(view)
        if self.form == "biased":
            return []
        note_list = [
            Note(
                "TN121",
                "The weighted MMCE of a calibrated model is not 0 unless half of the outcomes came: compare it with the noise floor.",
            )
        ]
        event_weight = float((view.w * view.y).sum())
        if min(event_weight, view.total - event_weight) <= 0:
            every = "Every outcome came" if event_weight > 0 else "No outcome came"
            note_list.append(Note("TN122", f"{every}, so there is one side only, and nothing to weigh it against."))
        return note_list


def _decay(s: Array, bandwidth: float) -> Array:
    """The similarity of each sorted score with the one before it."""
    with np.errstate(over="ignore"):
        return np.concatenate(([0.0], np.exp(-np.diff(s) / bandwidth)))


def _norm(e: Array, decay: Array) -> Array:
    """The kernel norm of point masses e (…, m) at sorted scores."""
    rows = e.reshape(-1, len(decay))
    square = sum_along_line(rows, decay) + np.square(rows).sum(axis=1)
    return np.sqrt(np.maximum(square, 0.0)).reshape(e.shape[:-1])  # below 0 only by rounding


def _portion(mass: Array) -> Array:
    """Each mass as a share of its side; a side that is empty adds nothing."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 0.0)

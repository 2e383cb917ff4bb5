"""Truthful calibration errors: averaged two-bin and quantile-binned squared errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BinRule, count_of_bins
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, OneOf
from trueodds.core.typing import Array
from trueodds.estimators.base import Linear, one_score
from trueodds.estimators.unbinned import Reader, UnbinnedError
from trueodds.lenses.view import View

FORMS = ("atb", "quantile")


@dataclass(frozen=True)
class Truthful(UnbinnedError):
    r"""A squared calibration error that honest probabilities minimize in expectation, however few the rows (ATB).

    Answers: which model is better calibrated, by a number that cannot be lowered by bending the probabilities? ECE on
    a sample can: a forecaster who knows the truth scores lower by rounding it, because that evens out its own noise.
    `form="atb"`, the averaged two-bin error, cuts the scores in two at a threshold that is uniform on [0, 1]:

    .. math:: \int_0^1 R(p < t)^2 + R(p \ge t)^2 \, dt, \quad R(A) = \tfrac1w \sum_{i \in A} w_i (p_i - y_i)

    `form="quantile"` has B bins of equal mass, B Σ_b R(b)², which is the squared ℓ2-ECE where every bin holds n/B rows.
    The squares of *sums* make both truthful: for independent outcomes the expectation is a constant, the noise, plus
    the error itself with the true probabilities for outcomes. That is 0 for the truth, and with `atb` for nothing else
    but the truth averaged over rows that are told alike. Take the root only for display: truth need not minimize its
    expectation. For several classes use the lens `classwise` (the mean over classes stays truthful); through
    `confidence` no form is, because the probabilities choose which event is judged, and a note says so.

    Shapes: a binary view (n,). Units: probability squared; 0 is best; `atb` in [0, 1]; `quantile` in [0, 1] where no
    ties fill a bin beyond its share, else at most B. `parts` holds the root, in units of probability. Bias: upward by
    the noise, mean p(1-p) / n for a calibrated model with `atb` and B times that with `quantile`, which `noise_floor`
    reports.
    Cost: O(n log n), exact: the integrand changes only at scores. Merges exactly where the scores are told apart
    (`atb`) or the bins are fixed. Raises TO203 for an unknown form, or bins with `atb`; TO205 for a vector per row.
    Source: Hartline, Hu & Wu (2025), arXiv 2508.13100; for classes Lu, Wu, Hartline & Hu (2025), arXiv 2510.06388.

    Parameters
    ----------
    form : {"atb", "quantile"}
    bins : int or {"auto", "sqrt"}, optional
        B of `quantile`; 15 if not said. Tied scores are never split.

    >>> round(float(Truthful()(View(p=[0.2, 0.6], y=[0, 1]))), 6)  # .2 (−.1)² + .4 (.1² + .2²) + .4 (−.1)²
    0.026
    """

    name: ClassVar[str] = "truthful"
    upper_bound: ClassVar[float] = math.inf  # `quantile` is at most the number of bins
    interval: ClassVar[str | None] = "noise-floor"
    norm: ClassVar[bool] = False  # its root is one
    power: ClassVar[float] = 2.0
    exempt: ClassVar[dict[str, str]] = {"cells": "the rows of a cell become one score, which thresholds cannot part"}
    form: Annotated[str, OneOf(FORMS)] = "atb"
    bins: BinCount | BinRule | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins is not None and self.form == "atb":
            raise InputError("TO203", "atb has no bins.", f"bins={self.bins!r}", "Use form='quantile'.")

    def reads(self, s: Array, share: Array, view: View) -> Reader:
        """The integral over thresholds: one term for each gap between scores, and the two ends."""
        gaps = np.maximum(np.diff(np.concatenate(([0.0], np.minimum(s, 1.0), [1.0]))), 0.0)

        def reader(_w: Array, wp: Array, wy: Array) -> Array:
            below = np.cumsum(wp - wy, axis=-1)
            total = below[..., -1]
            above = total[..., None] - below
            return gaps[0] * total**2 + (below**2 + above**2) @ gaps[1:]

        return reader

    def scores(self, view: View) -> Linear:
        """The squared error; for draws groups of scores, or the bins."""
        return super().scores(view) if self.form == "atb" else Quantiles(self, view)

    def parts(self, view: View) -> dict[str, float]:
        """The root, in units of probability."""
        return {"root": float(np.sqrt(self.value(view)))}

    def settings_used(self, view: View) -> dict[str, Any]:
        """The form, and how many bins."""
        if self.form == "atb":
            return {"form": "atb"}
        quantiles = Quantiles(self, view)
        return {"form": "quantile", "bins": quantiles.bins, "occupied_bins": len(quantiles.binned.w)}

    def notes(self, view: View) -> list[Note]:
        """A word where the probabilities choose the event."""
        if view.name.split(":")[0].split("-")[0] not in ("confidence", "rank", "top"):
            return []
        text = f"Through {view.name} the probabilities choose which event is judged, so this error is not truthful there; it is through classwise or class:NAME."
        return [Note("TN133", text)]


class Quantiles:
    """One view's bins of equal mass and the sum of squared residual sums over them."""

    def __init__(self, error: Truthful, view: View) -> None:
        one_score(view, error.name)
        partition = EqualMass(15 if error.bins is None else error.bins)
        self.view, self.frozen = view, view.once(partition, lambda: partition.freeze(view))
        self.size = self.frozen.size
        # The number asked for, not the number occupied: ties must not make the error cheaper.
        self.bins = count_of_bins(partition.bins, view)

    @property
    def binned(self) -> View:
        """The occupied bins."""
        return self.view.binned(self.frozen)

    @cached_property
    def index(self) -> Array:
        """The bin of each row."""
        return self.frozen.index(self.view.at)

    def value(self) -> float:
        """The error of the view itself."""
        binned = self.binned
        return float(self.statistic(binned.w, binned.w * binned.p, binned.w * binned.y))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per bin."""
        return np.asarray(self.bins * ((wp - wy) ** 2).sum(axis=-1) / w.sum(axis=-1) ** 2)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: the error is the square of a norm."""
        return None

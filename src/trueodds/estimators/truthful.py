"""Truthful calibration errors: averaged two-bin and quantile-binned squared errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BinRule, resolve_n_bins
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, OneOf
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic, require_one_score
from trueodds.estimators.distinct_scores import DistinctScoreError, ScoreStatistic
from trueodds.lenses.view import View

FORMS = ("atb", "quantile")


@dataclass(frozen=True)
class Truthful(DistinctScoreError):
    r"""Truthful calibration error (ATB): squared error that the true probabilities minimize in expectation.

    This holds at any sample size. ECE on a sample can be lowered by distorting the probabilities: a forecaster who
    knows the true probabilities scores better after rounding them, because rounding averages out noise. This error
    cannot be lowered in this way.

    Parameters
    ----------
    form : {"atb", "quantile"}, default="atb"
        "atb" is the averaged two-bin error, which splits the scores at a uniform threshold. "quantile" uses equal-mass
        bins.
    bins : int or {"auto", "sqrt"}, optional
        Number of bins B of "quantile". The default is 15. Tied scores are never split.

    Raises
    ------
    InputError
        TO203 if the form is unknown or bins are given with "atb". TO205 if the view has a vector per row.

    Notes
    -----
    .. math:: \int_0^1 R(p < t)^2 + R(p \ge t)^2 \, dt, \quad R(A) = \tfrac1w \sum_{i \in A} w_i (p_i - y_i)

    This is the form "atb". The form "quantile" is B Σ_b R(b)², which is the squared ℓ2-ECE if every bin holds n/B rows.
    The squares of *sums* make both truthful: for independent outcomes the expectation is a constant, the noise, plus
    the error with the true probabilities as outcomes. That error is 0 for the true probabilities, and with "atb" only
    for them, averaged over rows with equal predictions. Use the root for display only, because the true probabilities
    need not minimize its expectation. For several classes use the lens `classwise` (the mean over classes stays
    truthful). No form is truthful with the lens `confidence`, because the probabilities select the event, and a note
    says so. Shapes: a binary view (n,).

    Units: squared probability; 0 is best. "atb" is in [0, 1]. "quantile" is in [0, 1] if no ties enlarge a bin, else at
    most B. `parts` holds the root, in units of probability.

    Bias: upward by the noise, mean p(1-p) / n for a calibrated model with "atb" and B times that with "quantile", which
    `noise_floor` reports.

    Cost: O(n log n), exact, because the integrand changes only at scores. Tallies merge exactly if they distinguish the
    scores ("atb") or the bins are fixed.

    References
    ----------
    .. [1] Hartline, Hu & Wu (2025). arXiv 2508.13100.
    .. [2] Lu, Wu, Hartline & Hu (2025). arXiv 2510.06388, for several classes.

    Examples
    --------
    >>> import trueodds as to
    >>> error = to.measure([0, 1], [0.2, 0.6], "truthful", interval=None)
    >>> round(error.value, 6)  # .2 (−.1)² + .4 (.1² + .2²) + .4 (−.1)²
    0.026
    """

    name: ClassVar[str] = "truthful"
    upper_bound: ClassVar[float] = math.inf  # `quantile` is at most the number of bins
    interval: ClassVar[str | None] = "noise-floor"
    is_norm: ClassVar[bool] = False  # the root is a norm
    norm_power: ClassVar[float] = 2.0
    exemptions: ClassVar[dict[str, str]] = {
        "cells": "thresholds cannot separate the rows of a cell, which share one score"
    }
    form: Annotated[str, OneOf(FORMS)] = "atb"
    bins: BinCount | BinRule | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bins is not None and self.form == "atb":
            raise InputError("TO203", "form='atb' uses no bins.", f"⟨bins={self.bins!r}⟩", "Use form='quantile'.")

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Integral over thresholds: one term for each gap between scores, and the two ends."""
        gaps = np.maximum(np.diff(np.concatenate(([0.0], np.minimum(s, 1.0), [1.0]))), 0.0)

        def statistic(_w: Array, wp: Array, wy: Array) -> Array:
            sums_from_below = np.cumsum(wp - wy, axis=-1)
            total_residual = sums_from_below[..., -1]
            sums_from_above = total_residual[..., None] - sums_from_below
            return gaps[0] * total_residual**2 + weighted_sum(gaps[1:], (sums_from_below**2 + sums_from_above**2).T)

        return statistic

    def score_statistic(self, view: View) -> CellStatistic:
        """The squared error as a function of sums per group of scores (`atb`) or per bin (`quantile`)."""
        return super().score_statistic(view) if self.form == "atb" else QuantileSums(self, view)

    def parts(self, view: View) -> dict[str, float]:
        """The root, in units of probability."""
        return {"root": float(np.sqrt(self.value(view)))}

    def settings_used(self, view: View) -> dict[str, Any]:
        if self.form == "atb":
            return {"form": "atb"}
        quantiles = QuantileSums(self, view)
        return {"form": "quantile", "bins": quantiles.n_requested_bins, "occupied_bins": len(quantiles.occupied_bins.w)}

    def notes(self, view: View) -> list[Note]:
        lens_family = view.name.split(":")[0].split("-")[0]  # "rank" for the view "rank:2", "top" for "top-2"
        if lens_family not in ("confidence", "rank", "top"):
            return []
        text = (
            f"With the lens {view.name} the probabilities select the event, so this error is not truthful. Use"
            " classwise or class:NAME."
        )
        return [Note("TN133", text)]


class QuantileSums(CellStatistic):
    """Cell statistic of the form "quantile": its cells are equal-mass bins.

    `size` is the number of bins of the fitted partition `fitted_bins`, which may be empty in a draw. The error is
    multiplied by `n_requested_bins` instead, so that ties, which merge bins, do not lower it.
    """

    def __init__(self, error: Truthful, view: View) -> None:
        require_one_score(view, error.name)
        partition = EqualMass(15 if error.bins is None else error.bins)
        self.view, self.fitted_bins = view, view.cached(partition, lambda: partition.fit(view))
        self.size = self.fitted_bins.size
        self.n_requested_bins = resolve_n_bins(partition.bins, view)

    @property
    def occupied_bins(self) -> View:
        """The occupied bins as a view with one cell per bin."""
        return self.view.binned(self.fitted_bins)

    @cached_property
    def index(self) -> Array:
        return self.view.assign(self.fitted_bins)

    def value(self) -> float:
        binned = self.occupied_bins
        return float(self.statistic(binned.w, binned.w * binned.p, binned.w * binned.y))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        return np.asarray(self.n_requested_bins * ((wp - wy) ** 2).sum(axis=-1) / w.sum(axis=-1) ** 2)

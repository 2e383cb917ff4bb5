"""Class-wise and adaptive calibration errors: static, adaptive, thresholded and average (SCE, ACE, TACE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BinsOrEdges, Partition
from trueodds.binning.partition_by_name import as_partition
from trueodds.core.errors import InputError, Note
from trueodds.core.registry import settings_of
from trueodds.core.settings import Range, check
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.estimators.binned import PARTITION_SETTINGS, BinnedError, BinSums
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View

RANGES = EqualMass(15)
SETTLED = 25  # rows in each range from which on its edges stand still enough


def with_partition(settings: dict[str, Any], usual: str) -> dict[str, Any]:
    """The façade's settings with words of a partition made into one; `bins` alone means those of the `usual` rule."""
    partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
    edges = isinstance(check("bins", partition_settings.get("bins"), BinsOrEdges | None, 15), tuple)
    if partition_settings and "partition" not in partition_settings and not edges:
        partition_settings["partition"] = usual
    return settings | {"partition": as_partition(**partition_settings)} if partition_settings else settings


@dataclass(frozen=True)
class StaticError(BinnedError):
    r"""The binned error of each class against the rest, averaged over classes (SCE, class-wise ECE).

    Answers: how far is the probability of each class from how often that class came? Confidence looks only at the
    class that was predicted; this looks at all of them, also at the small probabilities.

    .. math:: \frac1K \sum_k \sum_b \tfrac{w_{kb}}{w} |\bar p_{kb} - \bar y_{kb}|

    It is ECE with the lens `classwise`; through another lens it is ECE there. Shapes: (n,) per class. Units:
    probability, in [0, 1]; 0 is best. With many classes it is small by nature, for most probabilities are near 0.
    Bias: upward, in every class about as for ECE, which `noise_floor` reports. Cost: O(nK log bins) time, O(K bins)
    memory. Merges exactly. Empty bins are absent; a class that never came counts. Errors as for ECE.
    Source: Nixon et al. (2019), whose code closes bins on the left (`closed="left"`); as class-wise ECE, Kull et al.
    (2019), whose code makes 14 bins of 15.

    >>> float(StaticError()(View(p=[0.9, 0.8], y=[1, 0])))  # 1/2 · .1 + 1/2 · .8
    0.45
    """

    name: ClassVar[str] = "sce"
    lens: ClassVar[str | None] = "classwise"


@dataclass(frozen=True)
class AverageError(BinnedError):
    r"""The mean distance over occupied bins, each counting alike whatever it holds (Average Calibration Error).

    Answers: how far is said from seen at a typical height of the score, rather than for a typical row? A bin of three
    rows moves it as much as one of a thousand.

    .. math:: \frac1R \sum_{b : w_b > 0} |\bar p_b - \bar y_b|

    R is the number of occupied bins: an empty bin is absent and never counts as 0. Shapes: a binary view (n,), or a
    joint view (n, m). Units: probability, in [0, 1]; 0 is best; at most MCE on the same bins. Bias: upward, more
    than ECE, as the noise of small bins has full weight; `noise_floor` reports it. Cost: O(n log bins) time, O(bins)
    memory. Merges exactly. Errors as for ECE. Source: netcal calls this ACE (Neumann et al. 2018); `ace` here is
    Nixon's error, which cuts equal-mass ranges.

    >>> view = View(p=[0.9] * 3 + [0.2], y=[1, 1, 1, 1])
    >>> round(float(AverageError()(view)), 4), round(float(BinnedError()(view)), 4)  # (.1 + .8)/2, (3 · .1 + .8)/4
    (0.45, 0.275)
    """

    name: ClassVar[str] = "average_ce"

    def bins(self, view: View) -> BinSums:
        """The bins of this view, which will count alike."""
        return AlikeSums(self, view, self.cells(view))

    def parts(self, view: View) -> dict[str, float]:
        """How much of the mean is overconfidence (said above seen) and how much underconfidence."""
        if not super().parts(view):
            return {}
        binned = self.bins(view).binned
        gap = (binned.p - binned.y) / len(binned.w)
        return {"over": float(gap[gap > 0].sum()), "under": float(-gap[gap < 0].sum())}


class AlikeSums(BinSums):
    """Bins that count alike, as long as they are occupied."""

    def gap_weights(self) -> Array | None:
        """The same weight for every occupied bin."""
        return (self.bin_weight > 0) / (self.bin_weight > 0).sum() if self._is_mean_gap else None

    def _average(self, w: Array, gap: Array, enough: Array) -> Array:
        return super()._average((w > 0).astype(np.float64), gap, enough)


class RangeSums(AlikeSums):
    """Ranges that count alike; in a resample, held where they were, by how much more or less fell into each.

    Ranges cut anew would hold equal mass again but lie elsewhere: the mass that moved says how far. Without it
    resamples vary too little (the interval covered 85 % of a strongly miscalibrated model's errors).
    """

    def gap_weights(self) -> Array | None:
        """None for ranges of few rows: how they move from sample to sample adds more than the noise of their gaps."""
        return super().gap_weights() if self.binned.n.min() >= SETTLED else None

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw on the ranges of the view."""
        if not (self.bin_weight > 0).all():
            return super().statistic(w, wp, wy)
        return BinSums._average(self, w / self.bin_weight, self._gap(w, wp, wy), self.enough)


@dataclass(frozen=True)
class AdaptiveError(AverageError):
    r"""The mean distance over ranges that hold equally many rows, averaged over classes (ACE).

    Answers: the same as SCE, with the bins where the predictions are: narrow in the crowd near 0, wide elsewhere.

    .. math:: \frac1K \sum_k \frac1R \sum_{r} |\bar p_{kr} - \bar y_{kr}|

    Equal scores are never split by the order of rows, so there may be fewer ranges than asked; R counts the occupied
    ones of each class, and each has the same weight, as in the paper. Shapes: (n,) per class. Units: probability,
    in [0, 1]; 0 is best. Bias: upward, about as for ECE on as many bins; `noise_floor` reports it. Cost:
    O(nK log n) time, O(n) memory. From a tally ranges are cut between its cells. Raises TO205 for a vector per row.
    Source: Nixon et al. (2019). Their code does something else: it weights ranges by rows and starts range r at the
    score of rank round(rn/R), closed on the left, which moves the number in the third digit.

    >>> view = View(p=[0.1, 0.3, 0.5, 0.6], y=[0, 1, 0, 1])
    >>> round(float(AdaptiveError(EqualMass(2))(view)), 4)  # (|.2 − .5| + |.55 − .5|) / 2
    0.175
    """

    name: ClassVar[str] = "ace"
    lens: ClassVar[str | None] = "classwise"
    exempt: ClassVar[dict[str, str]] = {"cells": "ranges are cut between cells and not between rows"}
    partition: Partition | None = RANGES

    def bins(self, view: View) -> BinSums:
        """The ranges of this view, which count alike."""
        return RangeSums(self, view, self.cells(view))

    def partition_for(self, view: View) -> Partition:
        """Equal-mass ranges, where nothing else is said."""
        return self.partition or RANGES

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> AdaptiveError:
        """The estimator from the façade's settings; bins are equal-mass unless the partition is said."""
        return cls(**with_partition(settings, "equal-mass"))


@dataclass(frozen=True)
class ThresholdedError(Estimator):
    r"""The adaptive error over the scores above a threshold, averaged over classes (TACE).

    Answers: how far are the probabilities that matter from what came, when thousands of nearly zero ones would drown
    them?

    .. math:: \frac1K \sum_k \sum_{r} \frac{w_{kr}}{w_k} |\bar p_{kr} - \bar y_{kr}|

    over equal-mass ranges of the scores strictly above `threshold`; :math:`w_k` is the weight of those scores
    (`normalize="kept"`, as in the authors' code) or of all rows ("all"). A class without such a score adds 0, and a
    note says so. Shapes: (n,) per class. Units: probability, in [0, 1]; 0 is best. It jumps as the threshold passes
    a score: quote it with its threshold. Bias: upward, which `noise_floor` reports. Cost: O(nK log n) time, O(n)
    memory. From a tally whole cells are kept or not. Raises TO203 for other settings, TO205 for a vector per row.
    Source: Nixon et al. (2019). Their code starts range r at the kept score of rank round(rn/R), closed on the left,
    which moves the number in the third digit.

    Parameters
    ----------
    partition : Partition
        15 equal-mass ranges; `uniform` gives the thresholded class-wise ECE.
    threshold : float or "1/K"
        Scores at or below it are left out.
    normalize : {"kept", "all"}
        What the weight of a range is a share of.

    >>> view = View(p=[0.001, 0.3, 0.5, 0.6], y=[0, 1, 0, 1])
    >>> round(float(ThresholdedError(EqualMass(1))(view)), 4)  # |1.4/3 − 2/3|; 3/4 of it with normalize="all"
    0.2
    """

    name: ClassVar[str] = "tace"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    lens: ClassVar[str | None] = "classwise"
    interval: ClassVar[str | None] = "residual-norm"
    exempt: ClassVar[dict[str, str]] = {"cells": "the threshold and the ranges fall between rows of one cell"}
    partition: Partition = RANGES
    threshold: Annotated[float, Range(0, 1, closed="left")] | Literal["1/K"] = 0.01
    normalize: Literal["kept", "all"] = "kept"

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """The settings the façade may pass."""
        return (*PARTITION_SETTINGS, *(name for name in settings_of(cls) if name != "partition"))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> ThresholdedError:
        """The estimator from the façade's settings; bins are equal-mass unless the partition is said."""
        return cls(**with_partition(settings, "equal-mass"))

    def value(self, view: View) -> float:
        """The error over the ranges of the kept scores."""
        return ThresholdedSums(self, view).value()

    def linear(self, view: View) -> Linear | None:
        """The error with the ranges held fixed; None where the labels choose them."""
        return None if self.partition.uses_outcomes else ThresholdedSums(self, view)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Partition, threshold and norm as used."""
        binned = ThresholdedSums(self, view).binned
        return {
            "partition": str(self.partition),
            "threshold": self.threshold,
            "normalize": self.normalize,
            "occupied_bins": len(binned.w),
            "smallest_bin": int(binned.n.min(initial=view.n_rows)),
        }

    def parts(self, view: View) -> dict[str, float]:
        """Which share of the weight was kept."""
        return {"kept": float(ThresholdedSums(self, view).binned.w.sum() / view.total)}

    def notes(self, view: View) -> list[Note]:
        """A word where no score was kept, or ranges hold few rows."""
        binned = ThresholdedSums(self, view).binned
        if n_small := int((binned.n < 10).sum()):
            text = f"{n_small} of {len(binned.n)} occupied bins hold fewer than 10 rows; the noise floor tells what that adds."
            return [Note("TN105", text)]
        return self.joint_notes([view])

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """A word where views have no score above the threshold."""
        none = [view.name or "the view" for view in views if len(ThresholdedSums(self, view).binned.w) == 0]
        if not none:
            return []
        which = ", ".join(none[:3]) + (", …" if len(none) > 3 else "")
        where = "" if len(views) == 1 else f" in {len(none)} of {len(views)} views"
        return [Note("TN111", f"No score lies above the threshold {self.threshold}{where} ({which}), which adds 0.")]


class ThresholdedSums:
    """One view's ranges of the scores above the threshold; the other rows fall into a last cell that is not read."""

    def __init__(self, error: ThresholdedError, view: View) -> None:
        one_score(view, error.name)
        low = 1 / view.classes if error.threshold == "1/K" and view.classes > 1 else error.threshold
        if isinstance(low, str):
            raise InputError(
                "TO205",
                "threshold='1/K' needs the number of classes, which a bare confidence does not tell.",
                "threshold='1/K'",
                "Give the threshold as a number.",
            )
        self.share = error.normalize == "kept"
        rows = np.flatnonzero((view.at.astype(np.float64, copy=False) > low) & (view.w > 0))
        p, y, w, n, at = (x[rows] for x in (view.p, view.y, view.w, view.n, view.at))
        above_threshold = View(p, y, w, n=n, at=at, classes=view.classes)
        cells = error.partition.freeze(above_threshold) if len(rows) else Bins(np.array([0.0, 1.0]))
        self.size = cells.size + 1
        self.index = np.full(len(view), cells.size)
        self.index[rows] = cells.index(at)
        self.sums = tuple(np.bincount(self.index, x, self.size) for x in (view.w, view.w * view.p, view.w * view.y))
        ranges = np.flatnonzero(self.sums[0][:-1] > 0)
        w, wp, wy = (x[ranges] for x in self.sums)
        self.binned = View(wp / w, wy / w, w, n=np.bincount(self.index, view.n, self.size)[ranges], name=view.name)

    def gap_weights(self) -> Array:
        """The weight of each range in the error; 0 for the cell of the rows that are left out."""
        w: Array = self.sums[0].astype(np.float64)
        total = w.sum()
        w[-1] = 0.0
        return w / (max(float(w.sum()), 1e-300) if self.share else total)

    def value(self) -> float:
        """The error of the view itself."""
        return float(self.statistic(*self.sums))

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw from its sums per range."""
        return self._shared(w, np.abs(wp - wy)[..., :-1].sum(axis=-1))

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array:
        """The error of (residual of the draw − observed residual), ranges weighted as observed."""
        dw, dwp, dwy = draws
        with np.errstate(divide="ignore", invalid="ignore"):
            gap = w * np.abs((dwp - dwy) / dw - (wp - wy) / w)
        return self._shared(w, np.where((w > 0) & (dw > 0), gap, 0.0)[..., :-1].sum(axis=-1))

    def _shared(self, w: Array, total: Array) -> Array:
        of = (w[..., :-1] if self.share else w).sum(axis=-1)
        return np.asarray(np.where(of > 0, total / np.where(of > 0, of, 1.0), 0.0))

"""Instance-level calibration error and its average over right and wrong answers (ICE, MacroCE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from trueodds.binning.sorted_scores import by_score, group_starts
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.estimators.base import Estimator, Linear, one_score
from trueodds.kernels.sort import find_score
from trueodds.lenses.view import View

Sums = tuple[Any, Any, Any, Any]  # Σwy, Σwy(1−p), Σw(1−y), Σw(1−y)p: numbers, or one per draw


@dataclass(frozen=True)
class InstanceError(Estimator):
    r"""Mean distance between a stated probability and the outcome it was about (instance-level error, ICE).

    Answers: how far is one prediction, on average, from the 1 or 0 that came?

    .. math:: \tfrac1w \sum_i w_i\, |y_i - p_i|

    Shapes: a binary view (n,); the confidence lens if none is named. Units: probability, in [0, 1]; 0 is best and
    means that every answer was sure and right. A calibrated model that is ever unsure does not reach 0: it scores
    mean 2p(1-p), which `noise_floor` reports. The absolute distance is no proper score: sure answers are paid more
    than honest ones, so compare models by a proper score instead. Bias: none, it is a plain mean.
    Shares of votes count as votes: .7 is a row of weight .7 that came and one of .3 that did not.
    Cost: O(n) time; draws O(n log n). Merges exactly from four sums. Parts: `ice_pos` and `ice_neg`, the mean
    distance where the outcome came and where it did not. Raises TO205 for a lens with a vector per row.
    Source: Si, Zhao, Min & Boyd-Graber (2022).

    >>> round(float(InstanceError()(View(p=[0.9, 0.8, 0.6], y=[1, 1, 0]))), 4)
    0.3
    """

    name: ClassVar[str] = "ice"
    lower_bound: ClassVar[float] = 0.0
    lens: ClassVar[str | None] = "confidence"
    interval: ClassVar[str | None] = "bca"

    def of(self, sums: Sums, _absent: tuple[float, float]) -> Array:
        """The error from the four sums; `_absent` holds what an empty side counts as."""
        yes, short, no, excess = sums
        return ratio(short + excess, yes + no, np.nan)

    def absent(self, _if_right: tuple[float, float]) -> tuple[float, float]:
        """What a side without rows counts as in a draw, given its mean if the predictions were right."""
        return _if_right

    def value(self, view: View) -> float:
        """The error from the view's four sums."""
        return float(self.of(four_sums(view, self.name), self.absent((np.nan, np.nan))))

    def linear(self, view: View) -> Linear:
        """The same, for draws: groups of equal or neighbouring scores."""
        return Sides(self, view)

    def parts(self, view: View) -> dict[str, float]:
        """The mean distance on each side; NaN where a side has no rows."""
        short, excess = mean_distance_by_outcome(four_sums(view, self.name), (np.nan, np.nan))
        return {"ice_pos": float(short), "ice_neg": float(excess)}

    def notes(self, view: View) -> list[Note]:
        """A word where a side has no rows."""
        yes, _, no, _ = four_sums(view, self.name)
        if yes > 0 and no > 0:
            return []
        often, side = ("every row", "ice_neg") if yes > 0 else ("no row", "ice_pos")
        return [Note("TN130", f"The outcome came in {often}: {self._without_a_side(side)}.")]

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        """How many views lack a side."""
        lacking = [view.name for view in views if InstanceError().notes(view)]
        if not lacking:
            return []
        some = ", ".join(lacking[:3]) + (", …" if len(lacking) > 3 else "")
        text = f"In {len(lacking)} of {len(views)} views ({some}) the outcome came always or never: "
        return [Note("TN130", f"{text}{self._without_a_side('that side')}.")]

    def _without_a_side(self, side: str) -> str:
        return f"{side} has no mean"


@dataclass(frozen=True)
class MacroError(InstanceError):
    r"""Mean distance between probability and outcome, right and wrong answers counting alike (MacroCE).

    Answers: is the model sure where it is right, and unsure where it is wrong? An accurate model that is always sure
    looks good on average, because its errors are few; here they are half of the number.

    .. math:: \tfrac12 \Big( \frac{\sum_i w_i y_i (1 - p_i)}{\sum_i w_i y_i}
        + \frac{\sum_i w_i (1 - y_i) p_i}{\sum_i w_i (1 - y_i)} \Big)

    Shapes: a binary view (n,); the confidence lens if none is named. Units: probability, in [0, 1]; 0 is best and
    means sure of every right answer and giving no chance to a wrong one. It measures discrimination as much as
    calibration: a calibrated model does not score 0, and `noise_floor` tells what it would score. Bias: none while
    both sides have rows. A side without rows has no mean: see `empty`; among draws and resamples it takes the mean
    it would have if the predictions were right. Cost: O(n) time; draws O(n log n). Merges exactly from four
    sums. Parts: `ice`, `ice_pos`, `ice_neg`. Raises TO203 for an unknown `empty`, TO205 for a lens with a vector
    per row. Source: Si, Zhao, Min & Boyd-Graber (2022).

    Parameters
    ----------
    empty : {"nan", "zero"}
        What the number is where no row was right, or none wrong: none at all (NaN, with a note), or as if the empty
        side were perfect, as in the authors' code.

    >>> round(float(MacroError()(View(p=[0.9, 0.8, 0.6], y=[1, 1, 0]))), 4)
    0.375
    """

    name: ClassVar[str] = "macroce"
    empty: Literal["nan", "zero"] = "nan"

    def of(self, sums: Sums, absent: tuple[float, float]) -> Array:
        """The mean of the two sides."""
        short, excess = mean_distance_by_outcome(sums, absent)
        return (short + excess) / 2

    def absent(self, if_right: tuple[float, float]) -> tuple[float, float]:
        """A side without rows counts 0 if that was asked."""
        return (0.0, 0.0) if self.empty == "zero" else if_right

    def settings_used(self, view: View) -> dict[str, Any]:
        """What an empty side counts as."""
        return {"empty": self.empty}

    def parts(self, view: View) -> dict[str, float]:
        """The mean over all rows, and over each side."""
        return {"ice": InstanceError().value(view), **super().parts(view)}

    def notes(self, view: View) -> list[Note]:
        """A word where a side has no rows, or would have none if the predictions were right."""
        note_list = super().notes(view)
        p = view.p[view.w > 0]
        if self.empty == "nan" and ((p == 0).all() or (p == 1).all()):
            text = f"Every probability is {float(p[0]):g}, so a model that was right would have one side only: there is no noise floor."
            note_list.append(Note("TN130", text))
        return note_list

    def _without_a_side(self, side: str) -> str:
        if self.empty == "zero":
            return f"{side} is absent and counts as 0"
        return f"{side} has no mean, and MacroCE no value"


def four_sums(view: View, name: str) -> Sums:
    """Σwy, Σwy(1−p), Σw(1−y), Σw(1−y)p of a view of rows or of cells."""
    one_score(view, name)
    w, y, p = view.w, view.y, view.p.astype(np.float64, copy=False)
    yes, no = w * y, w * (1 - y)
    if view.is_rows:  # no difference of sums, which would lose digits of p near 0 or 1
        short, excess = yes * (1 - p), no * p
    else:
        both = view.sums("wpy")
        short, excess = yes - both, w * p - both
    return float(yes.sum()), float(short.sum()), float(no.sum()), float(excess.sum())


def mean_distance_by_outcome(sums: Sums, absent: tuple[float, float]) -> tuple[Array, Array]:
    """The mean distance where the outcome came and where it did not; what is absent takes the given numbers."""
    yes, short, no, excess = sums
    return ratio(short, yes, absent[0]), ratio(excess, no, absent[1])


def ratio(top: Any, bottom: Any, otherwise: Any) -> Array:
    """Top over bottom where there is a bottom, else what is given."""
    there = np.asarray(bottom) > 0
    return np.where(there, top / np.where(there, bottom, 1.0), otherwise)


class Sides:
    """One view's scores in rising groups, fixed without the labels, from which draws have their four sums.

    Equal scores share a group; up to 4,096 distinct ones are told apart, fewer where the rows are many. Each group
    has the mean score of its outcomes that come, and of those that do not, under the predictions themselves, so that
    the mean of null draws is exact in groups of any width.
    """

    def __init__(self, error: InstanceError, view: View) -> None:
        one_score(view, error.name)
        self.error, self.view = error, view
        max_groups = min(max(2**24 // len(view), 256), 4096)  # leaving each row out once costs rows · groups
        s, mass, _ = by_score(view).sums()
        first = group_starts(mass, max_groups)
        self.index, self.size = find_score(view.p, s[first]), len(first)
        w, wp, wpp = (np.bincount(self.index, x, self.size) for x in (view.w, view.w * view.p, view.sums("wpp")))
        mean = ratio(wp, w, 0.0)
        self.if_yes = ratio(wpp, _beyond(wp, w, 1e-8), mean)
        self.if_no = ratio(wp - wpp, _beyond(w - wp, w, 1e-8), mean)
        yes, no = mean_distance_by_outcome(self._sums(w, wp), (np.nan, np.nan))
        self.absent = error.absent((float(yes), float(no)))

    def _sums(self, w: Array, wy: Array) -> Sums:
        missed = w - wy
        yes, no = wy.sum(axis=-1), missed.sum(axis=-1)
        short, excess = (wy * (1 - self.if_yes)).sum(axis=-1), (missed * self.if_no).sum(axis=-1)
        return _beyond(yes, yes + no, 1e-12), short, _beyond(no, yes + no, 1e-12), excess

    def value(self) -> float:
        """The error of the view itself, every score told apart."""
        return self.error.value(self.view)

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The error of each draw."""
        return self.error.of(self._sums(w, wy), self.absent)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """No norm: the interval is that of a smooth function of means."""
        return None


def _beyond(mass: Array, total: Array, share: float) -> Array:
    """The mass, or 0 where it is so small a share of the whole that rounding may be all of it."""
    return np.where(mass > share * total, mass, 0.0)

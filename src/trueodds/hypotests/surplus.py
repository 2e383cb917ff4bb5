"""By how much is a proper score worse than the probabilities themselves promise, and how much may it be by chance?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.hypotests.statistics import Cells, ViewResult
from trueodds.lenses.view import View

SCORES = ("brier", "log_loss")
SKEWED = 1.0  # skewness of the promised sum from which on a normal p of 1 % comes in 2 % (simulated)
LEVEL = 1e-12  # of a row: smaller differences between its scores, or from a sure outcome, are rounding


@dataclass(frozen=True)
class Surplus:
    """The sum of S − E S over rows: linear in the outcomes, its law given by the probabilities."""

    pull: Array  # (n,) the score of the event less that of its absence; (n, m) the score less its expectation
    span: Array  # (n,) between the best and the worst score that a row can have
    std: float  # standard deviation of the weighted sum
    skewness: float

    @classmethod
    def of(cls, view: View, score: str) -> Surplus:
        """What a view promises of a score."""
        return _vectors(view, score) if view.joint else _single(view, score)

    def total(self, wp: Array, wy: Array) -> Array:
        """The weighted sum, from wp and wy of each row, (…, n) or (…, n, m)."""
        if self.pull.ndim == 1:
            return np.asarray((wy - wp) @ self.pull)
        return np.asarray(np.tensordot(wy, self.pull, axes=2))


def z_test(view: View, score: str) -> ViewResult:
    """z of the surplus, its two-sided p, and the probability that must at least be misplaced."""
    surplus = Surplus.of(view, score)
    late, w = missed(view), view.w
    endless = bool(late.any()) and (score == "log_loss" or surplus.std == 0)
    weights = w[:, None] if view.joint else w
    total = float(surplus.total(weights * view.p, weights * view.y))
    underflowed = bool((w[:, None] * (view.P <= 0) * (view.Y > LEVEL)).any())
    beyond = surplus.std == 0 and not endless and underflowed
    if surplus.std == 0 and not endless and not beyond:
        text = "By its own probabilities the score cannot but come out as promised, so z is undefined."
        return ViewResult(float("nan"), float("nan"), float("nan"), notes=(Note("TN214", text),))
    z = float("inf") if endless else math.copysign(math.inf, total) if beyond else total / surplus.std
    notes: tuple[Note, ...] = ()
    if beyond:
        notes = (
            Note("TN215", "Outcomes were observed whose probability is less than any float holds: z is infinite."),
        )
    if late.any():
        suffix = ", and z is infinite" if endless else ""
        notes = (Note("TN215", f"Outcomes came that had probability 0: no calibrated model lets them{suffix}."),)
    if score == "log_loss" and endless:  # an infinite loss outweighs the rows whose loss cannot be infinite
        effect = float(w[late].sum() / w[_ruling_out(view)].sum())
    else:
        effect = total / float(w @ surplus.span)
    doubts: tuple[str, ...] = ()
    if abs(surplus.skewness) > SKEWED:
        doubts = ("A few rows, or rare outcomes, carry the chance of the score, so that z is skewed and not normal.",)
    return ViewResult(z, float(2 * ndtr(-abs(z))), effect, notes=notes, doubts=doubts)


def cells(view: View, score: str) -> Cells:
    """|z|, each row by itself; infinite where an outcome comes that had probability 0 and the score knows no bound."""
    surplus = Surplus.of(view, score)
    watch = score == "log_loss" or surplus.std == 0
    certain = _ruling_out(view) & watch
    p, w = view.p[certain].astype(np.float64), view.w[certain]
    weight = w[:, None] if view.joint else w
    impossible = np.isneginf(view.log_P[certain])
    ruled = impossible if view.joint else impossible.any(axis=1)
    must = np.zeros_like(p) if view.joint else w * impossible[:, 0]  # the event, where its absence is impossible
    tolerance = weight * (LEVEL + 4 * np.maximum(p - 1, 0.0))

    min_weight = float(view.w.min(where=view.w > 0, initial=np.inf))

    def reader(_w: Array, wp: Array, wy: Array) -> Array:
        if surplus.std > 0:
            z = np.abs(surplus.total(wp, wy)) / surplus.std
        else:
            beyond = np.abs(surplus.total(wp, wy)) > min_weight / 2
            z = np.where(beyond, np.inf, np.nan)
        if not watch:
            return z
        observed = wy[..., certain, :] if view.joint else wy[..., certain]
        violated = ruled & (np.abs(observed - must) > tolerance)
        return np.where(violated.any(axis=(-2, -1) if view.joint else -1), np.inf, z)

    return Cells.of_rows(view, reader)


def missed(view: View) -> Array:
    """The rows where an outcome came that had probability 0, (n,) bool."""
    some = view.Y > (0 if view.joint else np.array([LEVEL, 0]))
    return np.asarray((np.isneginf(view.log_P) & some).any(axis=1) & (view.w > 0))


def _ruling_out(view: View) -> Array:
    """The rows that rule an outcome out, (n,) bool."""
    return np.asarray(np.isneginf(view.log_P).any(axis=1))


def _single(view: View, score: str) -> Surplus:
    p = view.p.astype(np.float64)
    if score == "brier":
        pull = 1 - 2 * p
    else:
        logs = np.where(_ruling_out(view)[:, None], 0.0, view.log_P)  # there the other outcome is certain
        pull = logs[:, 0] - logs[:, 1]
    variance = pull**2 * np.maximum(view.sums("wwv"), 0.0)
    return Surplus(pull, np.abs(pull), *_std_and_skewness(view, variance, pull * (1 - 2 * p) * variance))


def _vectors(view: View, score: str) -> Surplus:
    p, logs = np.maximum(view.p, 0.0, dtype=np.float64), view.log_P
    possible = ~np.isneginf(logs)
    s = -2 * p if score == "brier" else -np.where(possible, logs, 0.0)
    share = p / p.sum(axis=1, keepdims=True)
    pull = s - (share * s).sum(axis=1, keepdims=True)
    pull[np.abs(pull) <= LEVEL * np.abs(s).max(axis=1, keepdims=True)] = 0.0
    if score == "log_loss":
        pull[~possible] = 0.0
        low = np.where(possible, s, np.inf).min(axis=1)
        span = s.max(axis=1) - low  # s is 0, the least it can be, where nothing is said
    else:
        span = s.max(axis=1) - s.min(axis=1)
    ww = view.sums("ww")
    second, third = (share * pull**2).sum(axis=1), (share * pull**3).sum(axis=1)
    return Surplus(pull, span, *_std_and_skewness(view, ww * second, ww * third))


def _std_and_skewness(view: View, second: Array, third: Array) -> tuple[float, float]:
    """Standard deviation and skewness of the sum, from Σw² times the second and third moment of each row."""
    std = float(np.sqrt(second.sum()))
    if std == 0:
        return 0.0, 0.0
    w = np.divide(view.sums("ww"), view.w, out=np.zeros(len(view)), where=view.w > 0)
    return std, float((w * third).sum() / std**3)

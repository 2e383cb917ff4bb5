"""How large may a kernel error be by chance? Drawn rows, blocks of rows, and a bound for any predictions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from trueodds.core.typing import Array
from trueodds.estimators.pairing.row_pairs import RowPairs
from trueodds.lenses.view import View
from trueodds.resampling.among import pvalue

LARGEST = 2.0  # of |k (e_y − p)·(e_z − q)| where k is at most 1
MIN_EFFECTIVE_N = 10.0  # Σ p(1 − p) below which the laws of large n reject too often
MIN_BLOCKS = 20  # t with 19 degrees of freedom exceeds the normal 5 % point in 5.8 %
DRAWN = 2**21  # rows drawn at once


def bootstrap(pairs: RowPairs, resamples: int, rng: np.random.Generator) -> tuple[float, float]:
    """n U / (n − 1) − V, and its p-value among what it is on drawn rows (Arcones & Giné 1992).

    A weight is part of each row's residual here: Σ w_i w_j h_ij is as degenerate as Σ h_ij.
    """
    n = len(pairs.rows)
    draws = []
    for start in range(0, resamples, max(1, DRAWN // n)):
        rows = rng.integers(0, n, (min(max(1, DRAWN // n), resamples - start), n))
        draws.append(on_drawn(pairs, np.stack([np.bincount(one, minlength=n) for one in rows])))
    statistic = observed(pairs)
    return statistic, pvalue(statistic, np.concatenate(draws))


def observed(pairs: RowPairs) -> float:
    """n U / (n − 1) − V on all rows, in units of the mean weight squared."""
    n, own = len(pairs.rows), float((pairs.residual**2).sum(axis=1) @ pairs.own)
    pair_sum = float(pairs.forms.observed[0])
    return pairs.twice * (pair_sum / (n - 1) ** 2 - (pair_sum + own) / n**2) / float(pairs.w.mean()) ** 2


def on_drawn(pairs: RowPairs, counts: Array) -> Array:
    """n U / (n − 1) − V on drawn rows, less what is linear in the draws: n⁻² [a Σ (c_i c_j − [i=j] c_i) h_ij − 2 Σ c_i h_ij].

    `counts` (draws, n) says how often each row was drawn; a = n / (n − 1). The sum over pairs i ≠ j is one square of
    c − 1/a, as a c'Hc − 2 c'H1 = a (c − 1/a)'H(c − 1/a) − 1'H1 / a.
    """
    n = len(pairs.rows)
    a = n / (n - 1)
    c = counts.astype(np.float64)
    own = (pairs.residual**2).sum(axis=1) * pairs.own
    square = a * pairs.forms.counted(c - 1 / a) - pairs.forms.observed / a
    return np.asarray(pairs.twice * (square + (a * (c**2 - c) - 2 * c) @ own) / n**2 / float(pairs.w.mean()) ** 2)


@dataclass(frozen=True)
class Blocks:
    """The mean over blocks, each counting with its pairs, and its standard error."""

    mean: float
    stderr: float
    count: int

    @classmethod
    def of(cls, pairs: RowPairs) -> Blocks:
        """From the pairs within blocks; for blocks of one size it is the mean of their U and its standard error."""
        starts, w = pairs.edges[:-1], pairs.w
        below = np.add.reduceat(w, starts) ** 2 - np.add.reduceat(w**2, starts)
        above, count = pairs.twice * pairs.forms.by_block(), len(starts)
        mean = float(above.sum() / below.sum())
        if count < 2:
            return cls(mean, float("nan"), count)
        deviations = above - mean * below
        return cls(mean, float(np.sqrt(count / (count - 1) * (deviations**2).sum()) / below.sum()), count)

    @property
    def z(self) -> float:
        """How many standard errors above 0."""
        return self.mean / self.stderr

    @property
    def pvalue(self) -> float:
        """One-sided normal."""
        return float(ndtr(-self.z))

    def doubts(self) -> tuple[str, ...]:
        """Whether a standard error of so few is one."""
        if self.count >= MIN_BLOCKS:
            return ()
        return (
            f"The standard error comes from {self.count} blocks, and z is heavier in its tails than the normal law.",
        )


def bound_of_unbiased(u: float, n: int) -> float:
    """exp(−⌊n/2⌋ (U/B)² / 2): U lies that far above 0 at most so often. A negative U is no evidence at all."""
    return float(np.exp(-(n // 2) * (max(0.0, u) / LARGEST) ** 2 / 2))


def bound_of_biased(v: float, n: int) -> float:
    """exp(−max(0, √(nV/B) − 1)² / 2)."""
    return float(np.exp(-(max(0.0, np.sqrt(n * max(0.0, v) / LARGEST) - 1) ** 2) / 2))


def doubts(view: View) -> tuple[str, ...]:
    """Whether outcomes are so rare that the laws of large n reject too often."""
    mask = view.w > 0
    w, p = view.w[mask], np.asarray(view.p[mask], dtype=np.float64)
    v = (1 - (p**2).sum(axis=1)) / 2 if view.joint else p * (1 - p)
    effective_n = float((w @ v) ** 2 / (w**2 @ v)) if (v > 0).any() else 0.0
    if effective_n >= MIN_EFFECTIVE_N:
        return ()
    return (
        f"Outcomes are rare: the chance in them is worth {effective_n:.2g} rows of it all, Σ p(1 − p), and laws of large n reject too often.",
    )

"""Which order of several models do the rows settle? All pairwise differences, judged so that they hold together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from trueodds.core.typing import Array
from trueodds.resampling.comparing.pairs import Pair


class Joint:
    """Levels and p-values of many differences at once, by the largest of their resamples (max-T), else Bonferroni's.

    All pairs are resampled together, so the law of their largest standardized deviation is known; where some pair is
    resampled by cells, which do not keep how models vary together, Bonferroni's correction is used. It is also the
    bound that max-T never exceeds. Source: Hothorn, Bretz & Westfall (2008).
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.count = max(1, len(pairs))
        drawn_pairs = [pair for pair in pairs if pair.method is not None and pair.draws is not None]
        cells = any(
            side.resampled is not None and side.resampled.how == "cells" for p in drawn_pairs for side in (p.a, p.b)
        )
        self.largest = None if cells or len(drawn_pairs) < len(pairs) else _largest([p.draws for p in drawn_pairs])

    def level(self, level: float) -> float:
        """The level of each interval at which all of them hold together."""
        bonferroni = 1 - (1 - level) / self.count
        if self.largest is None:
            return bonferroni
        above = int(np.floor((1 - level) * (1 + len(self.largest)))) - 1  # so many draws may lie at or above the bound
        if above < 1:
            return bonferroni
        bound = float(np.sort(self.largest)[-above])
        return float(min(bonferroni, max(level, 2 * ndtr(bound) - 1)))

    def adjusted(self, p: float, *, swapped: bool = False) -> float:
        """The p-value of one difference among all; Bonferroni's where it does not come from these resamples."""
        bonferroni = min(1.0, p * self.count)
        if self.largest is None or swapped:
            return bonferroni
        share = float((1 + (self.largest >= -ndtri(p / 2)).sum()) / (1 + len(self.largest)))
        return min(bonferroni, max(share, p))


def _largest(draws: Sequence[Array | None]) -> Array | None:
    """The largest standardized deviation of each resample."""
    varying = [values for values in draws if values is not None and np.ptp(values) > 0]
    if not varying or len({len(values) for values in varying}) > 1:
        return None
    return np.asarray(np.max([np.abs(values - values.mean()) / values.std(ddof=1) for values in varying], axis=0))

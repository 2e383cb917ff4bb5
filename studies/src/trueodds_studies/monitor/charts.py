"""Other ways to watch calibration over time: control charts, and weekly tests, of many streams at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import chi2

from trueodds.core.typing import Array

HOSMER_LEMESHOW_BINS = 10
PLANNED_LOOKS = 208  # weeks in four years, over which the weekly tests divide their level


@dataclass
class Charts:
    """Control charts of the standardized gap z = (Σy − Σp)/√Σp(1 − p), and weekly Hosmer–Lemeshow tests.

    `alarms` has the first cohort in which each chart alarmed for each stream, or a number beyond all cohorts.
    """

    streams: int
    never: int
    cusum: Array = field(init=False)  # sums upward and downward, (2, streams)
    alarms: dict[str, Array] = field(init=False)

    NAMES = ("Hosmer-Lemeshow", "CUSUM 5", "CUSUM 7", "Shewhart 3")

    def __post_init__(self) -> None:
        self.cusum = np.zeros((2, self.streams))
        self.alarms = {name: np.full(self.streams, self.never) for name in self.NAMES}

    def observe(self, cohort: int, p: Array, y: Array) -> None:
        """Take a cohort, (streams, rows)."""
        z = (y - p).sum(axis=1) / np.sqrt((p * (1 - p)).sum(axis=1))
        self.cusum = np.maximum(0, self.cusum + np.stack((z, -z)) - 0.5)
        largest = self.cusum.max(axis=0)
        level = 0.05 / PLANNED_LOOKS
        crossed = {
            "Hosmer-Lemeshow": hosmer_lemeshow_pvalues(p, y) <= level,
            "CUSUM 5": largest > 5,
            "CUSUM 7": largest > 7,
            "Shewhart 3": np.abs(z) > 3,
        }
        for name, is_crossed in crossed.items():
            self.alarms[name] = np.where(is_crossed, np.minimum(self.alarms[name], cohort), self.alarms[name])


def hosmer_lemeshow_pvalues(p: Array, y: Array) -> Array:
    """P-values of external Hosmer–Lemeshow tests with ten groups of equal size, (streams,).

    >>> hosmer_lemeshow_pvalues(np.full((1, 20), 0.5), np.tile([0.0, 1.0], 10)[None]).tolist()
    [1.0]
    """
    order = np.argsort(p, axis=1, kind="stable")
    shape = (len(p), HOSMER_LEMESHOW_BINS, p.shape[1] // HOSMER_LEMESHOW_BINS)
    n = shape[1] * shape[2]
    ps, ys = (np.take_along_axis(values, order, axis=1)[:, :n].reshape(shape) for values in (p, y))
    gaps, variances = (ys - ps).sum(axis=2), (ps * (1 - ps)).sum(axis=2)
    return np.asarray(chi2.sf((gaps**2 / variances).sum(axis=1), HOSMER_LEMESHOW_BINS))

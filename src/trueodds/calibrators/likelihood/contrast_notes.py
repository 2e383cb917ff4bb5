"""What should a reader know of shifts and slopes against a baseline? Zeros that came, absent classes, tiny baselines."""

from __future__ import annotations

from functools import partial

import numpy as np

from trueodds.calibrators.likelihood.fit_data import FitData
from trueodds.calibrators.likelihood.logs import floored, logs_of
from trueodds.calibrators.likelihood.row_sums import RowSums
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.data.complements import log_sum

_TURNED = 1000.0  # times that differing slopes and a tiny baseline may move the odds of two other classes, unsaid


def ruled_out(count: int) -> list[Note]:
    """That so many outcomes came that had probability 0."""
    if not count:
        return []
    text = f"{count:,} outcomes came that had probability 0, which no calibrated model has: evidence of its own. How far they bend this map is decided by the floor; fit with another one to see."
    return [Note("TN541", text)]


def absent_class_notes(absent: list[int], baseline: int) -> list[Note]:
    """That classes never came, and what their odds are then."""
    if not absent:
        return []
    which = f"Class {absent[0]}" if len(absent) == 1 else f"{len(absent):,} classes"
    consequence = (
        "the mean shift against it, the baseline, stays 0"
        if baseline in absent
        else "the odds against the baseline stay as they were said"
    )
    text = f"{which} never came, so no finite shift fits; {consequence}, and the classes that came are fitted among themselves. Set a penalty for an estimate."
    return [Note("TN540", text)]


def turned(gamma: Array, baseline: int, data: RowSums) -> list[Note]:
    """That differing slopes decide rows in which the baseline is tiny, from passes over rows `FitData`."""
    slope_range = float(np.ptp(gamma))
    count = data.sum(partial(_tiny, baseline=baseline, slope_range=slope_range)) if slope_range > 0 else 0
    if not count:
        return []
    safer = (
        baseline
        if data.rows is None
        else int(np.argmax(np.quantile(floored(data.rows.P, data.rows.min_prob), 0.05, axis=0)))
    )
    text = f"In {count:,} of {data.facts.n:,} rows class {baseline}, the baseline, is so small that slopes which differ by {slope_range:.3g} alone move the odds of two other classes more than {_TURNED:,.0f} times"
    better = "." if safer == baseline else f"; class {safer} is seldom so small: baseline={safer}."
    return [Note("TN542", text + better)]


def _tiny(data: FitData, baseline: int, slope_range: float) -> int:
    logs = logs_of(data.P)
    small = log_sum(logs) - logs[:, baseline]
    return int((slope_range * np.minimum(small, -np.log(data.min_prob)) > np.log(_TURNED)).sum())

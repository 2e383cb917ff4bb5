"""A monitor whose diagram has every mark: a reset, an alarm with its onset, and open cohorts."""

from __future__ import annotations

from functools import cache

import numpy as np

import trueodds as to


@cache
def monitored() -> to.Monitor:
    """Return a monitor of 60 cohorts, of which the last five are open; it was reset after 20 and drifts from 35 on."""
    rng = np.random.default_rng(4)
    day = np.repeat(np.arange(60), 150)
    p = rng.beta(2, 6, day.size)
    y = (rng.random(day.size) < np.where(day < 35, p, np.minimum(1.4 * p, 1))).astype(int)
    preds = to.Predictions(y, p)
    monitor = to.Monitor(5, "integer").update(preds[day < 20], day[day < 20], 20)
    monitor.report()
    monitor.reset("recalibrated")
    monitor.update(preds, day, 60)
    monitor.report()
    return monitor

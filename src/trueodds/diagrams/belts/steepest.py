"""Over which stretch does a walk rise or fall most steeply, of the rise that chance does not explain?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array


class Segment(NamedTuple):
    """From one vertex to a later one."""

    start: int
    stop: int


def steepest(x: Array, y: Array, chance: float) -> Segment | None:
    r"""The a < b with the largest :math:`(|y_b - y_a| - \text{chance}) / (x_b - x_a)`; None where none is positive.

    If `chance` is what no stretch of a calibrated walk changes by, but with a small probability, all stretches at once,
    then this is the largest slope that is certain. Dinkelbach's method: for a slope s the best stretch of
    :math:`|y_b - y_a| - \text{chance} - s (x_b - x_a)` is found in one pass, and gives the next s. Rising x.
    Cost: O(m) a pass, some 5 passes. Source: Dinkelbach (1967), Management Science 13.

    >>> steepest(np.array([0, 0.4, 0.7, 1]), np.array([0, 0, -0.3, -0.31]), 0.1)
    Segment(start=1, stop=2)
    >>> steepest(np.array([0, 0.5, 1]), np.array([0, 0.1, 0]), 0.1)
    """
    segment, slope = None, 0.0
    for side in (side * y for side in (1.0, -1.0)):
        for _ in range(100):
            level = side - slope * x
            lowest = np.minimum.accumulate(level)
            stop = int(np.argmax(level - lowest))
            if level[stop] - lowest[stop] - chance <= 1e-12:
                break
            start = stop - int(np.argmax(level[stop::-1] == lowest[stop]))  # the last of equals: the shortest stretch
            segment, slope = Segment(start, stop), float((side[stop] - side[start] - chance) / (x[stop] - x[start]))
    return segment

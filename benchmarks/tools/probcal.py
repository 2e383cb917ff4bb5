"""What does probcal take? Its binary ECE, after NumPy has reduced the rows to confidence and hit.

Its smooth ECE smooths logits, another quantity, so it is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from probcal.metrics import ece

from benchmarks.data import Arrays

DISTRIBUTION = "probcal"


def binary(given: Arrays, strategy: str) -> Callable[[], float]:
    """15 bins; a score on an edge goes to the upper one."""

    def ask() -> float:
        P, y = given["P"], given["y"]
        best = P.argmax(axis=1)
        return ece((best == y).astype(np.int64), P[np.arange(len(P)), best], n_bins=15, strategy=strategy)

    return ask


ANSWERS = {"top-label": partial(binary, strategy="width"), "equal-mass": partial(binary, strategy="mass")}

"""Calls of probcal: binary ECE, after reducing the rows to confidence and correctness with NumPy.

Its smooth ECE smooths logits, another quantity, so it is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from probcal.metrics import ece

from benchmarks.data import Arrays

DISTRIBUTION = "probcal"


def binary(arrays: Arrays, strategy: str) -> Callable[[], float]:
    """15 bins; a score on an edge belongs to the upper bin."""

    def ask() -> float:
        P, y = arrays["P"], arrays["y"]
        top_class = P.argmax(axis=1)
        return ece((top_class == y).astype(np.int64), P[np.arange(len(P)), top_class], n_bins=15, strategy=strategy)

    return ask


ANSWERS = {"top-label": partial(binary, strategy="width"), "equal-mass": partial(binary, strategy="mass")}

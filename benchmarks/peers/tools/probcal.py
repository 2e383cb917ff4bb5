"""Calls of probcal: binary ECE in 15 bins, after reducing the rows to confidence and correctness with NumPy.

Its smooth ECE smooths logits and not probabilities, which is another quantity, so it is not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from probcal.metrics import ece

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "probcal"


def prepare_top_label_ece(arrays: Arrays, strategy: str) -> Callable[[], float]:
    """Return the call that computes the ECE of the predicted class; a score on an edge belongs to the upper bin."""

    def top_label_ece() -> float:
        P, y = arrays["P"], arrays["y"]
        top_class = P.argmax(axis=1)
        is_correct = (top_class == y).astype(np.int64)
        return ece(is_correct, P[np.arange(len(P)), top_class], n_bins=15, strategy=strategy)

    return top_label_ece


CALLS_BY_TASK = {
    "top-label": partial(prepare_top_label_ece, strategy="width"),
    "equal-mass": partial(prepare_top_label_ece, strategy="mass"),
}

"""Calls of relplot: smooth ECE, after its own reduction of rows to confidence and correctness."""

from __future__ import annotations

from collections.abc import Callable

import relplot

from benchmarks.data import Arrays

DISTRIBUTION = "relplot"


def smooth(arrays: Arrays) -> Callable[[], float]:
    """The kernel of the paper, reflected at 0 and 1."""

    def ask() -> float:
        confidence, hit = relplot.multiclass_logits_to_confidences(arrays["P"], arrays["y"], probs=True)
        return relplot.smECE(confidence, hit)

    return ask


ANSWERS = {"smooth": smooth}

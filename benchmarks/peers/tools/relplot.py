"""Calls of relplot: smooth ECE of the predicted class, whose confidence and correctness relplot computes."""

from __future__ import annotations

from collections.abc import Callable

import relplot

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "relplot"


def prepare_smooth_ece(arrays: Arrays) -> Callable[[], float]:
    """Return the call that computes the smooth ECE with the kernel of Błasiok & Nakkiran, reflected at 0 and 1."""

    def smooth_ece() -> float:
        confidence, is_correct = relplot.multiclass_logits_to_confidences(arrays["P"], arrays["y"], probs=True)
        return relplot.smECE(confidence, is_correct)

    return smooth_ece


CALLS_BY_TASK = {"smooth": prepare_smooth_ece}

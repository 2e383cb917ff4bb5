"""Copying the array of probabilities, whose time is a lower bound for any tool that reads it once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.job_data import Arrays

DISTRIBUTION = "numpy"


def prepare_copies(arrays: Arrays) -> dict[str, Callable[[], Any]]:
    """Return two calls without a value: copying into existing memory (copyto) and into new memory (copy)."""
    P, buffer = arrays["P"], np.zeros_like(arrays["P"])

    def copy_into_new_memory() -> None:
        P.copy()

    return {"copyto": lambda: np.copyto(buffer, P), "copy": copy_into_new_memory}


CALLS_BY_TASK = dict.fromkeys(("top-label", "class-wise", "equal-mass", "smooth"), prepare_copies)

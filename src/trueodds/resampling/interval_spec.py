"""Which interval is used: its method, its level, and what is resampled how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from trueodds.core.settings import OneOf, Probability, Range, Settings

UNITS = ("auto", "rows", "cells")  # what is resampled
METHODS = ("auto", "percentile", "basic", "bca", "sun", "debiased")


@dataclass(frozen=True)
class IntervalSpec(Settings):
    """How the interval is made."""

    interval: Annotated[str, OneOf(METHODS)] | None = "auto"
    level: Probability = 0.95
    resamples: Annotated[int, Range(2, 100_000_000)] = 2000
    resample: Annotated[str, OneOf(UNITS)] = "auto"

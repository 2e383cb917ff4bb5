"""The benchmark jobs: the task, the data, and the tolerance within which results must agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """One job; a tool participates if it supports the task."""

    name: str
    title: str
    question: str  # key of a tool's ANSWERS
    data: str  # key of data.MAKERS
    tolerance: float  # tolerated difference from our value
    time_limits: Mapping[str, float] = field(default_factory=dict)  # time limits in seconds, by label


# Peers sum up to 10⁶ values in float32, which leaves about 1e-5 of a mean (float64 sums agree to 1e-8), and put a
# score on an edge into the other bin.
SINGLE = 5e-5
# Quantile edges are interpolated between other neighbors, so that a row or two change bins.
MASS = 5e-5
# The peers halve the bandwidth's interval ten times, to 2⁻¹⁰, and give the error at its end; where the error falls
# with the bandwidth its slope is below 1, so the values differ by less than that.
SMOOTH = 1e-3
# Two independent streams: the end of an interval from 1,000 resamples has a standard error of .085 standard
# deviations of the statistic (√(.025 · .975 / 1000) over a normal density of .058), here .085 · .0013; four of √2 such.
# (With the same seed, SciPy and trueodds currently draw the same rows; neither guarantees it.)
RESAMPLED = 6e-4
# Binned estimates agree to rounding; kernel estimates and their mean differ by the grid of the peer (observed: 1.1e-4).
KERNEL = 2e-4
# Inverse temperatures: the loosest optimizer stops where its step is 64 rounding units of float32.
TEMPERATURE = 1e-3
# Mean square of recalibrated probabilities; pooled blocks agree to rounding, curves between them may be steps or lines.
CURVES = 1e-3
# The same for penalized models with different strength; with 10⁴ rows the penalty has little effect.
LINEAR = 2e-3

JOBS = (
    Job("top-label", "top-label ECE, 10⁶ × 10", "top-label", "ten", SINGLE),
    Job("top-label-1000", "top-label ECE, 5·10⁴ × 1000", "top-label", "thousand", SINGLE),
    Job("class-wise", "class-wise ECE, 10⁶ × 10", "class-wise", "ten", SINGLE),
    Job("class-wise-1000", "class-wise ECE, 5·10⁴ × 1000", "class-wise", "thousand", SINGLE),
    Job("equal-mass", "equal-mass ECE, 10⁶ × 10", "equal-mass", "ten", MASS),
    Job("smooth", "smooth ECE, 10⁶ × 10", "smooth", "ten", SMOOTH),
    Job("bootstrap", "bootstrap × 1000 of ECE, 10⁵ × 10", "bootstrap", "hundred-thousand", RESAMPLED),
    Job("experiment", "200 sets × 30 estimates, n = 115, K = 5", "experiment", "sets", KERNEL),
    Job("skce", "SKCE × 999 redraws, 5000 × 10", "skce", "five-thousand", 0.0),
    Job("temperature", "temperature, 5·10⁴ × 1000", "temperature", "thousand", TEMPERATURE),
    Job("vector", "vector scaling, 10⁴ × 10", "vector", "ten-thousand", LINEAR),
    Job("dirichlet", "Dirichlet calibration, 10⁴ × 10", "dirichlet", "ten-thousand", LINEAR),
    Job("isotonic", "isotonic one-vs-rest, 10⁶ × 10", "isotonic", "ten", CURVES),
    Job(
        "draws",
        "1000 draws of ECE, once tallied",
        "draws",
        "ten",
        0.0,
        dict.fromkeys(("bootstrap", "redraw", "bootstrap, 100 × rows", "redraw, 100 × rows"), 0.010),
    ),
)


def named(names: list[str] | None) -> tuple[Job, ...]:
    """The jobs with these names, or all."""
    known = {job.name: job for job in JOBS}
    if unknown := [name for name in names or () if name not in known]:
        raise SystemExit(f"There is no job {', '.join(unknown)}. Known: {', '.join(known)}.")
    return JOBS if names is None else tuple(known[name] for name in names)

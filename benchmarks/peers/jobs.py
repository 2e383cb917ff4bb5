"""The jobs of the comparison: a task, its data, and the tolerance within which the results of all tools must agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Job:
    """A task on one data set; every tool that supports the task participates."""

    name: str
    title: str
    task: str  # key of `CALLS_BY_TASK` in the module of a tool
    data: str  # key of `job_data.DATA_SETS`
    tolerance: float  # largest difference from the result of trueodds that counts as agreement
    time_limits: Mapping[str, float] = field(default_factory=dict)  # seconds for calls of trueodds, by their label


# Sums of up to 10⁶ values in float32 leave an error of about 1e-5 in a mean (sums in float64 agree to 1e-8), and put a
# score that lies on an edge into the other bin.
FLOAT32_TOLERANCE = 5e-5
# Packages interpolate quantile edges between different neighbors, so that a row or two change bins.
EQUAL_MASS_TOLERANCE = 5e-5
# The peers halve an interval for the bandwidth ten times, to a width of 2⁻¹⁰, and return the error at its end. As a
# function of the bandwidth the error has a slope below 1, so the values differ by less than the width.
SMOOTH_TOLERANCE = 1e-3
# Resamples come from two independent streams. The end of an interval from 1,000 resamples has a standard error of .085
# standard deviations of the statistic (√(.025 · .975 / 1000) divided by the normal density .058), here .085 · .0013;
# the tolerance is four times √2 of these. (With the same seed, SciPy and trueodds currently draw the same rows; neither
# guarantees it.)
BOOTSTRAP_TOLERANCE = 6e-4
# Binned estimates agree to rounding. Kernel estimates, and so the mean of all, differ by the grid of the peer (observed
# difference: 1.1e-4).
KERNEL_TOLERANCE = 2e-4
# Of inverse temperatures: the least strict optimizer stops when its step is 64 rounding units of float32.
TEMPERATURE_TOLERANCE = 1e-3
# Of mean squares of recalibrated probabilities: pooled blocks agree to rounding, but the isotonic curve between them
# may consist of steps or of lines.
ISOTONIC_TOLERANCE = 1e-3
# Of the same for models with penalties of different strength, which have little effect on 10⁴ rows.
LINEAR_MODEL_TOLERANCE = 2e-3

JOBS = (
    Job("top-label", "top-label ECE, 10⁶ × 10", "top-label", "ten", FLOAT32_TOLERANCE),
    Job("top-label-1000", "top-label ECE, 5·10⁴ × 1000", "top-label", "thousand", FLOAT32_TOLERANCE),
    Job("class-wise", "class-wise ECE, 10⁶ × 10", "class-wise", "ten", FLOAT32_TOLERANCE),
    Job("class-wise-1000", "class-wise ECE, 5·10⁴ × 1000", "class-wise", "thousand", FLOAT32_TOLERANCE),
    Job("equal-mass", "equal-mass ECE, 10⁶ × 10", "equal-mass", "ten", EQUAL_MASS_TOLERANCE),
    Job("smooth", "smooth ECE, 10⁶ × 10", "smooth", "ten", SMOOTH_TOLERANCE),
    Job("bootstrap", "bootstrap × 1000 of ECE, 10⁵ × 10", "bootstrap", "hundred-thousand", BOOTSTRAP_TOLERANCE),
    Job("experiment", "200 sets × 30 estimates, n = 115, K = 5", "experiment", "sets", KERNEL_TOLERANCE),
    Job("skce", "SKCE × 999 redraws, 5000 × 10", "skce", "five-thousand", 0.0),
    Job("temperature", "temperature, 5·10⁴ × 1000", "temperature", "thousand", TEMPERATURE_TOLERANCE),
    Job("vector", "vector scaling, 10⁴ × 10", "vector", "ten-thousand", LINEAR_MODEL_TOLERANCE),
    Job("dirichlet", "Dirichlet calibration, 10⁴ × 10", "dirichlet", "ten-thousand", LINEAR_MODEL_TOLERANCE),
    Job("isotonic", "isotonic one-vs-rest, 10⁶ × 10", "isotonic", "ten", ISOTONIC_TOLERANCE),
    Job(
        "draws",
        "1000 draws of ECE, once tallied",
        "draws",
        "ten",
        0.0,
        dict.fromkeys(("bootstrap", "redraw", "bootstrap, 100 × rows", "redraw, 100 × rows"), 0.010),
    ),
)


def select_jobs(names: Sequence[str] | None) -> tuple[Job, ...]:
    """Return the jobs with these names, or all for None; exit with an error for an unknown name."""
    jobs_by_name = {job.name: job for job in JOBS}
    if unknown := [name for name in names or () if name not in jobs_by_name]:
        raise SystemExit(f"There is no job {', '.join(unknown)}. Known: {', '.join(jobs_by_name)}.")
    return JOBS if names is None else tuple(jobs_by_name[name] for name in names)

"""The number of rows for which the confidence interval of an error has a given width."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

from trueodds.core.errors import InputError, Note
from trueodds.core.power_results import Power
from trueodds.core.results import Estimate, Interval
from trueodds.core.settings import Positive, check
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests._power.power import LIMITS_LEVEL, MAX_ROWS, MIN_ROWS
from trueodds.lenses.base import Lens
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.measure import estimate_error

DATA_SETS_PER_WIDTH = 16  # resampled data sets per estimate of the mean width
MAX_ITERATIONS = 5  # maximum number of iterations
WIDTH_TOLERANCE = 0.02  # relative to the target width


def rows_for_width(
    preds: Predictions,
    estimator: Estimator,
    lens: Lens,
    aggregate: str,
    width: float,
    alpha: float,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
) -> Power:
    """Number of rows for which the interval of an error has the mean total width `width`.

    >>> from trueodds.estimators import ESTIMATORS
    >>> from trueodds.lenses.lens_by_name import as_lens
    >>> preds = Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.6, 0.4] * 50)
    >>> brier, positive = ESTIMATORS.make("brier", {}), as_lens("positive")
    >>> 300 < rows_for_width(preds, brier, positive, "mean", 0.01, 0.05, np.random.default_rng(0)).required < 500
    True
    """
    if preds.cluster is not None:
        raise InputError(
            "TO205",
            "Planning for an interval width assumes independent rows, and these rows are clustered.",
            "cluster=",
            "Use one row per cluster.",
        )
    width = check("width", width, Positive)
    interval_spec = IntervalSpec(level=1 - alpha)
    estimate = estimate_error(preds, estimator, lens, aggregate, interval_spec, rng)
    now = _interval_width(estimate)
    if not math.isfinite(now):
        why = next((note.text for note in estimate.notes if note.code == "TN201"), "it is infinite")
        raise InputError(
            "TO205",
            "The estimator has no interval with a finite width.",
            f"{estimator.name} through {lens}: {why}",
            "Choose an error with an interval, such as ece, rmsce or brier.",
        )
    n, tried, widths = _next_sample_size(preds.n, now, width), 0, np.full(DATA_SETS_PER_WIDTH, np.nan)
    for round_ in range(MAX_ITERATIONS):
        tried = min(n, MAX_ROWS)
        for s in range(DATA_SETS_PER_WIDTH):
            sample = preds[rng.integers(0, preds.n, tried)]
            widths[s] = _interval_width(estimate_error(sample, estimator, lens, aggregate, interval_spec, rng))
            if progress:
                progress((round_ + (s + 1) / DATA_SETS_PER_WIDTH) / MAX_ITERATIONS)
        mean = float(np.nanmean(widths)) if np.isfinite(widths).any() else now * math.sqrt(preds.n / tried)
        n = _next_sample_size(tried, mean, width)
        if abs(mean - width) <= WIDTH_TOLERANCE * width or (tried == MAX_ROWS and n > tried):
            break
    if progress:
        progress(1.0)
    extrapolated = n > MAX_ROWS
    finite_widths = widths[np.isfinite(widths)]
    half_width = (
        float(
            stdtrit(len(finite_widths) - 1, LIMITS_LEVEL / 2 + 0.5)
            * finite_widths.std(ddof=1)
            / math.sqrt(len(finite_widths))
        )
        if len(finite_widths) > 1
        else 0.0
    )
    settings = dict(estimate.settings) | {
        "width_now": now,
        "tried": tried,
        "width_tried": mean,
        "simulations": DATA_SETS_PER_WIDTH,
    }
    return Power(
        estimator.name, "width", str(lens), preds.n, alpha, float(width), required=n if extrapolated else tried,
        limits=Interval(mean - half_width, mean + half_width, LIMITS_LEVEL, "t"), settings=settings,
        notes=(*estimate.notes, *_width_notes(extrapolated=extrapolated)),
    )  # fmt: skip


def _interval_width(estimate: Estimate) -> float:
    return math.nan if estimate.interval is None else estimate.interval.high - estimate.interval.low


def _next_sample_size(n: int, now: float, width: float) -> int:
    """Number of rows by the square-root rule."""
    return max(MIN_ROWS, math.ceil(n * (now / width) ** 2))


def _width_notes(*, extrapolated: bool) -> list[Note]:
    notes = [Note("TN233", "This applies to similar rows; it was simulated with rows resampled from these.")]
    if extrapolated:
        text = (
            f"No data sets of more than {MAX_ROWS:,} rows were simulated; the required number of rows is extrapolated."
        )
        notes.append(Note("TN232", text))
    return notes

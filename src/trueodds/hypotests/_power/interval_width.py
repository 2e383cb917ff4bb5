"""The number of rows for which the confidence interval of an error, or of a coefficient, has a given width."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri, stdtrit

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.results import Estimate, Interval
from trueodds.core.settings import Positive, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests._power.power import LIMITS_LEVEL, MAX_ROWS, MIN_ROWS
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.power_results import Power
from trueodds.lenses.base import Lens
from trueodds.resampling.estimate import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec

DATA_SETS_PER_WIDTH = 16  # number of resampled data sets per estimate of the mean width
MAX_SAMPLE_SIZES = 5  # maximum number of sample sizes that are tried
WIDTH_TOLERANCE = 0.02  # tolerance of the mean width, relative to the target width


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
    """Number of rows for which the 1 − `alpha` interval of an error has the mean total width `width`.

    The width of data sets of n rows resampled from `preds` is simulated; n is then adjusted by the rule that the width
    is proportional to 1/√n, until the mean width is the target. `aggregate` is how the views of the lens are reduced to
    one error, and `progress` receives the finished share. With clusters, the number for independent rows is multiplied
    by the design effect.

    >>> from trueodds.estimators import ESTIMATORS
    >>> from trueodds.lenses.lens_by_name import as_lens
    >>> preds = Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.6, 0.4] * 50)
    >>> brier, positive = ESTIMATORS.make("brier", {}), as_lens("positive")
    >>> 300 < rows_for_width(preds, brier, positive, "mean", 0.01, 0.05, np.random.default_rng(0)).required < 500
    True
    """
    width = check("width", width, Positive)
    interval_spec = IntervalSpec(level=1 - alpha)
    reported_estimate = estimate_error(preds, estimator, lens, aggregate, interval_spec, rng)
    clustered_width, estimate = _interval_width(reported_estimate), reported_estimate
    if preds.cluster is not None:
        preds = preds.without_clusters()
        estimate = estimate_error(preds, estimator, lens, aggregate, interval_spec, rng)
    current_width = _interval_width(estimate)
    if not math.isfinite(current_width + clustered_width):
        reason = next((note.text for note in reported_estimate.notes if note.code == "TN201"), "it is infinite")
        raise InputError(
            "TO205",
            "The estimator has no interval with a finite width.",
            f"{estimator.name} through {lens}: {reason}",
            "Choose an error with an interval, such as ece, rmsce or brier.",
        )

    def simulate_width(n: int) -> float:
        """Width of the interval for n rows resampled from the predictions."""
        sample = preds[rng.integers(0, preds.n, n)]
        return _interval_width(estimate_error(sample, estimator, lens, aggregate, interval_spec, rng))

    n_by_rule, n_tried, widths, mean_width = _search_sample_size(
        simulate_width, preds.n, current_width, width, progress
    )
    is_extrapolated = n_by_rule > MAX_ROWS
    half_width = _half_width_of_limits(widths[np.isfinite(widths)])
    required = n_by_rule if is_extrapolated else n_tried
    notes = [*reported_estimate.notes, *_width_notes(is_extrapolated=is_extrapolated)]
    settings = dict(reported_estimate.settings) | {
        "width_now": clustered_width,
        "tried": n_tried,
        "width_tried": mean_width,
        "simulations": DATA_SETS_PER_WIDTH,
    }
    if reported_estimate is not estimate:
        settings["design_effect"] = (clustered_width / current_width) ** 2
        required = math.ceil(required * settings["design_effect"])
        notes.append(design_effect_note(settings["design_effect"]))
    return Power(
        name=estimator.name,
        question="width",
        lens=str(lens),
        n=preds.n,
        alpha=alpha,
        target=float(width),
        required=required,
        limits=Interval(mean_width - half_width, mean_width + half_width, LIMITS_LEVEL, "t"),
        settings=settings,
        notes=tuple(notes),
    )


def _search_sample_size(
    simulate_width: Callable[[int], float],
    n_rows: int,
    current_width: float,
    target_width: float,
    progress: Callable[[float], None] | None,
) -> tuple[int, int, Array, float]:
    """Search the number of rows with the target width, beginning at the `current_width` of `n_rows` rows.

    Returns the number of rows by the square-root rule of `_next_sample_size`, the last simulated number of rows, its
    simulated widths (DATA_SETS_PER_WIDTH,), and their mean.
    """
    n_by_rule, widths = _next_sample_size(n_rows, current_width, target_width), np.full(DATA_SETS_PER_WIDTH, np.nan)
    for iteration in range(MAX_SAMPLE_SIZES):
        n_tried = min(n_by_rule, MAX_ROWS)
        for number in range(DATA_SETS_PER_WIDTH):
            widths[number] = simulate_width(n_tried)
            if progress:
                progress((iteration + (number + 1) / DATA_SETS_PER_WIDTH) / MAX_SAMPLE_SIZES)
        if np.isfinite(widths).any():
            mean_width = float(np.nanmean(widths))
        else:  # no data set has an interval, so the square-root rule replaces the simulation
            mean_width = current_width * math.sqrt(n_rows / n_tried)
        n_by_rule = _next_sample_size(n_tried, mean_width, target_width)
        has_target_width = abs(mean_width - target_width) <= WIDTH_TOLERANCE * target_width
        if has_target_width or (n_tried == MAX_ROWS and n_by_rule > n_tried):
            break
    if progress:
        progress(1.0)
    return n_by_rule, n_tried, widths, mean_width


def _half_width_of_limits(widths: Array) -> float:
    """Half the width of the confidence limits of a mean of simulated widths, by Student's t; 0 for a single one."""
    if len(widths) <= 1:
        return 0.0
    return float(stdtrit(len(widths) - 1, LIMITS_LEVEL / 2 + 0.5) * widths.std(ddof=1) / math.sqrt(len(widths)))


def _interval_width(estimate: Estimate) -> float:
    """Total width of the interval of an estimate; NaN without an interval."""
    return math.nan if estimate.interval is None else estimate.interval.high - estimate.interval.low


def _next_sample_size(n: int, width: float, target_width: float) -> int:
    """Number of rows with the target width, if n rows have this width and it decreases with the root of n."""
    return max(MIN_ROWS, math.ceil(n * (width / target_width) ** 2))


def design_effect_note(design_effect: float) -> Note:
    """Note on the factor by which clusters increase the number of rows."""
    text = (
        f"Design effect {format_number(design_effect)}: clusters multiply the variance, and so the number of rows, by"
        " this factor compared with independent rows. It applies to clusters of the same sizes as these."
    )
    return Note("TN279", text)


def _width_notes(*, is_extrapolated: bool) -> list[Note]:
    """Notes on the resampled rows, and on an extrapolated number of rows."""
    notes = [Note("TN233", "This applies to similar rows; it was simulated with rows resampled from these.")]
    if is_extrapolated:
        text = (
            f"No data sets of more than {MAX_ROWS:,} rows were simulated; the required number of rows is extrapolated."
        )
        notes.append(Note("TN232", text))
    return notes


COEFFICIENT_OF_PART = {"slope": "slope", "in-the-large": "in_the_large"}
NAME_OF_PART = {"slope": "the calibration slope", "in-the-large": "calibration-in-the-large (log odds)"}
MAX_DF_ITERATIONS = 50  # maximum number of iterations of the degrees of freedom


def rows_for_coefficient_width(preds: Predictions, cox: Cox, lens: Lens, width: float, alpha: float) -> Power:
    """Number of rows for which the 1 − `alpha` interval of the coefficient tested by `cox` has the total width `width`.

    The standard error at n similar rows is √(N/n) times that of the N rows of `preds`, as in the criterion of Riley et
    al. (2021). With clusters it is the jackknife's, and n counts rows in clusters of the same sizes. The interval is
    then Student's t, whose degrees of freedom grow with n, so that n is found by iteration.

    >>> from trueodds.lenses.lens_by_name import as_lens
    >>> preds = Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.3, 0.4] * 50)
    >>> plan = rows_for_coefficient_width(preds, Cox(part="slope"), as_lens("positive"), 0.5, 0.05)
    >>> round(plan.required / (200 * (plan.settings["width_now"] / 0.5) ** 2), 2)
    1.0
    """
    width = check("width", width, Positive)
    if cox.part not in COEFFICIENT_OF_PART:
        raise InputError(
            "TO205",
            "width refers to the interval of one coefficient of cox.",
            f"part={cox.part!r}",
            "Pass part='slope', or part='in-the-large' for calibration-in-the-large on the log-odds scale.",
        )
    views = lens.views(preds)
    if len(views) > 1:
        fix = "Use ⟨lens='class:NAME'⟩ or 'confidence'."
        raise InputError(
            "TO205", "The interval of a coefficient is planned for one view.", f"⟨lens={str(lens)!r}⟩", fix
        )
    name = COEFFICIENT_OF_PART[cox.part]
    coefficient = cox.coefficients(views[0], preds.cluster)[name]
    if not math.isfinite(coefficient.se):
        fix = "Use more rows or clusters, or probabilities that differ; ⟨min_prob=⟩ limits probabilities of 0 and 1."
        got = f"{name} {coefficient.value:.4g}, standard error {coefficient.se:.4g}"
        raise InputError("TO205", "The coefficient has no finite standard error in these rows.", got, fix)
    units, quantile = coefficient.effective_units, 1 - alpha / 2

    def critical_value(n: float) -> float:
        """Half the width of the interval at n rows, in standard errors."""
        if units is None:
            return float(ndtri(quantile))
        return float(stdtrit(max(units * n / preds.n - 1, 1.0), quantile))

    required = float(preds.n)
    for _ in range(MAX_DF_ITERATIONS):
        previous = required
        required = preds.n * (2 * critical_value(previous) * coefficient.se / width) ** 2
        if abs(required - previous) < 0.1:
            break
    notes = [Note("TN233", "This applies to similar rows, with the coefficients estimated from these.")]
    settings = {
        "part": cox.part,
        "width_now": 2 * critical_value(preds.n) * coefficient.se,
        "std_error": coefficient.se,
    }
    if preds.cluster is not None:
        independent = cox.coefficients(views[0])[name]
        design_effect = (coefficient.se / independent.se) ** 2
        settings["design_effect"] = design_effect
        notes.append(design_effect_note(design_effect))
    return Power(
        name=NAME_OF_PART[cox.part],
        question="width",
        lens=str(lens),
        n=preds.n,
        alpha=alpha,
        target=float(width),
        required=max(MIN_ROWS, math.ceil(required - 1e-9)),
        settings=settings,
        notes=tuple(notes),
    )

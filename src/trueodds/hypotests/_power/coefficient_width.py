"""The number of rows for which the interval of the calibration slope or intercept has a given width."""

from __future__ import annotations

import math

from scipy.special import ndtri, stdtrit

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Positive, check
from trueodds.data.predictions import Predictions
from trueodds.hypotests._power.interval_width import design_effect_note
from trueodds.hypotests._power.power import MIN_ROWS
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.power_results import Power
from trueodds.lenses.base import Lens

COEFFICIENT_OF_PART = {"slope": "slope", "in-the-large": "in_the_large"}
NAME_OF_PART = {"slope": "the calibration slope", "in-the-large": "calibration-in-the-large (log odds)"}
MAX_ITERATIONS = 50  # maximum number of iterations of the degrees of freedom


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
        fix = "Use lens='class:NAME' or 'confidence'."
        raise InputError("TO205", "The interval of a coefficient is planned for one view.", f"lens={str(lens)!r}", fix)
    name = COEFFICIENT_OF_PART[cox.part]
    coefficient = cox.coefficients(views[0], preds.cluster)[name]
    if not math.isfinite(coefficient.se):
        fix = "Use more rows or clusters, or probabilities that differ; min_prob= limits probabilities of 0 and 1."
        got = f"{name} {coefficient.value:.4g}, standard error {coefficient.se:.4g}"
        raise InputError("TO205", "The coefficient has no finite standard error in these rows.", got, fix)
    units, quantile = coefficient.effective_units, 1 - alpha / 2

    def critical_value(n: float) -> float:
        """Half the width of the interval at n rows, in standard errors."""
        if units is None:
            return float(ndtri(quantile))
        return float(stdtrit(max(units * n / preds.n - 1, 1.0), quantile))

    required = float(preds.n)
    for _ in range(MAX_ITERATIONS):
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

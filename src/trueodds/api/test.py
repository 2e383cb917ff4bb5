"""Test the hypothesis that the predictions are calibrated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_test_seed,
    confidence_only_setting,
    data_notes,
    reported_call_settings,
    resolve_data,
    resolve_lens,
    resolve_method,
)
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.progress import Progress, report_progress
from trueodds.core.results import Verdict
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.estimators.base import Estimator
from trueodds.hypotests import DEFAULT, TESTS
from trueodds.hypotests.base import HypothesisTest, lens_family
from trueodds.hypotests.equivalence import Margin, add_equivalence_decision, error_to_compare
from trueodds.lenses.base import Lens
from trueodds.lenses.hypothesis import apply_hypothesis


@accept_separate_arrays
def test(
    data: Any,
    test: Any = DEFAULT,
    *,
    lens: Any = None,
    hypothesis: Any = "calibrated",
    margin: float | None = None,
    level: float = 0.95,
    region: Any = None,
    mode: str | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Verdict:
    """Test the null hypothesis that the predictions are calibrated.

    The result has a p-value, an effect size and the null hypothesis in words.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Predictions with their outcomes. The two arrays may also be passed separately, as in
        ``test(y_true, y_prob)``. Whatever `read` accepts (a path, a data frame) is read first.
    test : str or HypothesisTest, default="omnibus"
        Name of a test (``trueodds list tests`` prints them). An instance with its settings is accepted too.
        ``"omnibus"`` combines tests of level, slope and local errors. ``"consistency"`` tests whether an error of the
        observed size is plausible under calibration, for any `statistic`.
    lens : str, Lens, callable, or sequence of them, optional
        Which predicted probability is examined, such as ``"confidence"``, ``"classwise"`` or ``"class:NAME"``, as in
        `measure`. Several lenses are tested on the same null draws, and the p-value is then family-wise. By default
        ``"omnibus"`` tests the lenses of an audit: with more than two classes the confidence, every class, and the
        whole vector of up to 100 classes. Other tests, and tests with a margin, have one default lens; if it is the
        confidence of several classes, the result says "confidence only".
    hypothesis : "calibrated", fitted calibrator or callable, default="calibrated"
        The calibration function under the null hypothesis: the identity, or a function of the probabilities (n, K).
        Under the null each label is drawn with the probability that this function gives it. Rows are still binned by
        the predicted probabilities.
    margin : float, optional
        Equivalence margin: the largest error that would not matter. The `decision` of the result is then ``"within"``,
        ``"beyond"`` or ``"undecided"``, from the interval of the error and not from the p-value. It is available for
        tests of an error that has an interval, through one lens.
    level : float, default=0.95
        Confidence level of the interval that is compared with `margin`. The p-value does not depend on it.
    region : as in `resolve_data`
    mode, weight_kind : as in `resolve_data`
    rng : as in `as_generator`
    progress : as in `report_progress`
    **settings
        Settings of the test: `resamples` for ``"omnibus"``; also `statistic`, `redraw`, `aggregate` and the settings of
        the statistic for ``"consistency"``.

    Returns
    -------
    Verdict
        The p-value, the statistic, the effect size, the null hypothesis, the settings used and notes.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid arrays, TO301 to TO313 for files and columns, TO201 for an unknown name, TO202 for an
        unknown setting, TO203 for an invalid value, TO204 for an unknown or unsuitable lens, TO205 for settings that
        exclude each other, TO403 if a tally was passed and single rows are needed.

    See Also
    --------
    measure : Estimate the size of the error.
    power : Compute the power of a test.

    Notes
    -----
    With several lenses `parts` has the p-value of each one. On one processor core the default test of 10 classes takes
    0.2 s for 10,000 rows and 0.5 s for 100,000 rows (up to five times as long if the p-value is near a usual level),
    and with ``lens="confidence"`` less than 0.05 s.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([0, 1] * 50, [0.5] * 100)
    >>> to.test(preds, resamples=99).pvalue, to.test(preds, "consistency", statistic="brier", resamples=99).pvalue
    (1.0, 1.0)
    """
    level, margin = check("level", level, Level, 0.95), check("margin", margin, Margin | None)
    generator, progress_context = as_generator(rng), report_progress(progress)
    method = resolve_method(TESTS, HypothesisTest, test, add_test_seed(test, settings, rng, generator))
    rows = resolve_data(data, mode, weight_kind, region)
    is_identity = isinstance(hypothesis, str) and hypothesis == "calibrated"
    requested_lenses = list(lens) if isinstance(lens, (list, tuple)) else [lens]
    _check_distinct(requested_lenses, lens)
    statistic = getattr(method, "statistic", None)
    method_with_lens = statistic if isinstance(statistic, Estimator) else method
    lenses = [resolve_lens(rows, requested, method_with_lens) for requested in requested_lenses]
    lens_notes: list[Note] = []
    if lens is None and method.defaults_to_lens_family and margin is None:
        lenses, lens_notes = lens_family(rows)
    confidence_only = confidence_only_setting(rows, lens, lenses[0]) if len(lenses) == 1 else {}
    error = None if margin is None else error_to_compare(method, margin, lenses)
    if not is_identity:
        rows, lenses = apply_hypothesis(rows, hypothesis, lenses, getattr(method, "redraw", "labels"))
    with progress_context as report:
        verdict = method.run(rows, lenses, generator, lambda share: report(share, "simulating labels"))
    if margin is not None and error is not None:
        verdict = add_equivalence_decision(margin, verdict, method, error, rows, lenses[0], level, as_generator(rng))
    settings_used = reported_call_settings(rng, rows, weight_kind, region, lenses[0] if len(lenses) == 1 else None)
    settings_used |= confidence_only
    if not is_identity:
        settings_used["hypothesis"] = getattr(hypothesis, "method", None) or getattr(hypothesis, "__name__", "given")
        hypothesis_text = f"the probabilities of the hypothesis {settings_used['hypothesis']}"
        # A null distribution that draws no labels, such as "z is standard normal", names no probabilities.
        verdict = replace(verdict, null=verdict.null.replace("the predicted probabilities", hypothesis_text))
    notes = dict.fromkeys([*data_notes(rows, source=data), *lens_notes, *verdict.notes])
    return replace(verdict, settings=dict(verdict.settings) | settings_used, notes=tuple(notes))


def _check_distinct(lenses: list[Any], argument: Any) -> None:
    """Raise TO204 for no lenses, or for a repeated lens; `argument` is that of the caller."""
    identities = {str(lens) if isinstance(lens, (str, Lens)) else id(lens) for lens in lenses}
    if not lenses or len(identities) < len(lenses):
        raise InputError(
            "TO204",
            "Lenses that are tested jointly must be at least one, and distinct.",
            describe(argument),
            "Name each lens once.",
        )

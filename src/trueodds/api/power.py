"""Compute the power of a test, or the number of rows needed for an effect or an interval width."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_seed,
    add_test_seed,
    confidence_only_setting,
    reported_call_settings,
    resolve_data,
    resolve_lens,
    resolve_method,
)
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.progress import Progress, report_progress
from trueodds.core.rng import as_generator
from trueodds.core.settings import check
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests import DEFAULT, TESTS
from trueodds.hypotests._power.interval_width import rows_for_width
from trueodds.hypotests._power.power import (
    PLAN_SETTINGS,
    PowerPlan,
    analyze_power,
    check_power_settings,
    n_null_draws_for_level,
)
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.power_results import Power

_PROGRESS_STEP = "simulating data sets"  # name of the step that the progress shows


@accept_separate_arrays
def power(
    data: Any,
    test: Any = DEFAULT,
    *,
    n: int | None = None,
    power: float = 0.8,
    effect: float | None = None,
    width: float | None = None,
    alpha: float = 0.05,
    lens: Any = None,
    estimator: str | Estimator = "ece",
    region: Any = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Power:
    r"""Compute the power of a test, the smallest detectable error, or the number of rows needed.

    Without `effect` and `width` the result is the smallest error that the test detects with `n` rows and the given
    power. With `effect` it is the power against that error, and the number of rows needed. With `width` it is the
    number of rows needed for an interval of that width: that of `estimator`, or with ``test="cox"`` that of the
    calibration slope (``part="slope"``) or of calibration-in-the-large on the log-odds scale (``part="in-the-large"``).

    Parameters
    ----------
    data : Predictions, (y_true, y_prob) or Source
        Predictions with their outcomes, as in `measure`. The outcomes matter for `width` only.
    test : str or HypothesisTest, default="omnibus"
        Name of a test (``trueodds list tests`` prints them). An instance with its settings is accepted too.
    n : int, optional
        Number of rows. The default is the number of rows of `data`.
    power : float, default=0.8
        Target power: the share of data sets in which the error is to be detected.
    effect : float, optional
        Size of an error, such as 0.03, whose power is computed, and the number of rows needed to detect it. It is the
        mean :math:`|r - p|` of the lens, in units of probability.
    width : float, optional
        Width, from end to end, of an interval whose number of rows is computed: that of `estimator`, or that of a
        coefficient of the test cox. Its level is 1 − `alpha`.
    alpha : float, default=0.05
        Significance level.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. The default is that of the method if it has one
        (``"canonical"`` for proper scores), else ``"positive"`` for two classes and ``"confidence"`` for more. `effect`
        is the error of one lens, so the power is that of ``test(…, lens=lens)`` and not of a test of several lenses.
    estimator : str or Estimator, default="ece"
        Estimator whose interval is planned with `width`.
    region : as in `resolve_data`
    weight_kind : as in `resolve_data`
    rng : as in `as_generator`
    progress : as in `report_progress`
    **settings
        `simulations`, ``distortion="temperature"|"shift"`` and ``direction="over"|"under"``, and the settings of the
        test or the estimator. The default of `resamples` is 199, and more for a small `alpha`.

    Returns
    -------
    Power
        The detectable effect, the power or the required number of rows, with its simulation error.

    Raises
    ------
    InputError
        TO101 to TO118 for invalid arrays, TO301 to TO313 for files and columns, TO201 for an unknown name, TO202 for an
        unknown setting, TO203 for an invalid value, TO204 for an unknown or unsuitable lens, TO205 for settings that
        exclude each other, TO403 if a tally was passed and single rows are needed.

    See Also
    --------
    test : Test whether the predictions are calibrated.
    measure : Estimate a calibration error with an interval.

    Notes
    -----
    The power is simulated from the given predictions. Rows are drawn with replacement, labels are drawn from a true
    distribution :math:`r \propto p^t` that differs from the predictions by the requested error, and the test is run.
    For likelihood-ratio tests the non-central χ² distribution with the expected gain replaces the simulation.

    The number of rows for a width of the calibration slope follows from its standard error in the given rows, which
    decreases with the root of their number; this is the criterion of [1]_ for the slope, with the coefficients and
    the distribution of the predictions estimated from these rows. Their criterion for the O:E ratio is that of
    ``estimator="o_e"``; the other two, for the C statistic and the net benefit, are not among the widths here, and
    follow from formulas in ``docs/how_to/clinical_validation.md``. With clusters, the number of rows for a width is
    larger by their design effect, which a note reports; power simulations assume independent rows.

    References
    ----------
    .. [1] Riley et al. (2021). Minimum sample size for external validation of a clinical prediction model with a
       binary outcome. Statistics in Medicine 40, 4230–4251.

    Examples
    --------
    >>> import trueodds as to
    >>> preds = to.Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.6, 0.4] * 50)
    >>> plan = to.power(preds, effect=0.1, simulations=200)
    >>> plan.n, plan.power > 0.8, 130 < plan.required < 200
    (200, True, True)
    >>> overlapping = to.Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.3, 0.4] * 50)
    >>> to.power(overlapping, "cox", part="slope", width=0.5).required
    709
    """
    check("test", test, str | HypothesisTest)
    check("estimator", estimator, str | Estimator)
    progress_context = report_progress(progress)
    generator, rows = as_generator(rng), resolve_data(data, "exact", weight_kind, region)
    plan_settings = {name: settings.pop(name) for name in PLAN_SETTINGS if name in settings}
    if rows.cluster is not None and len(np.unique(rows.cluster)) == rows.n:
        rows = rows.without_clusters()  # with one row per cluster, rows are independent
    check_power_settings(test, estimator, width, {"n": n, "effect": effect} | plan_settings)
    plan = PowerPlan(n, power, effect, alpha, **plan_settings)
    if width is not None and test != DEFAULT:
        from trueodds.hypotests._power.interval_width import rows_for_coefficient_width

        # `check_power_settings` has refused every other test.
        cox = resolve_method(TESTS, HypothesisTest, test, settings)
        result = rows_for_coefficient_width(rows, cox, resolve_lens(rows, lens, cox), width, plan.alpha)
    elif width is not None:
        aggregation = check("aggregate", settings.pop("aggregate", None), Aggregate | None)
        error_estimator = resolve_method(
            ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator)
        )
        resolved_lens = resolve_lens(rows, lens, error_estimator)
        aggregation = aggregation or resolved_lens.aggregate
        with progress_context as report:
            result = rows_for_width(
                rows,
                error_estimator,
                resolved_lens,
                aggregation,
                width,
                plan.alpha,
                generator,
                lambda share: report(share, _PROGRESS_STEP),
            )
    else:
        if TESTS.is_setting_of(test, "resamples"):
            n_independent_labels = rows.k if rows.kind == "multilabel" else 1
            settings.setdefault("resamples", n_null_draws_for_level(plan.alpha, n_independent_labels))
        method = resolve_method(TESTS, HypothesisTest, test, add_test_seed(test, settings, rng, generator))
        statistic = getattr(method, "statistic", None)  # of the test consistency, which has no lens of its own
        resolved_lens = resolve_lens(rows, lens, statistic if isinstance(statistic, Estimator) else method)
        with progress_context as report:
            result = analyze_power(
                rows, method, resolved_lens, plan, generator, lambda share: report(share, _PROGRESS_STEP)
            )
        only = confidence_only_setting(rows, lens, resolved_lens)
        result = replace(result, settings=dict(result.settings) | only)
    return replace(result, settings=dict(result.settings) | reported_call_settings(rng, rows, weight_kind, region))

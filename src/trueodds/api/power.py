"""Compute the power of a test, or the number of rows needed for an effect or an interval width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_seed,
    add_test_seed,
    call_settings,
    pairs_arrays,
    resolve_lens,
    resolve_method,
    restrict_to_region,
)
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.power_results import Power
from trueodds.core.rng import as_generator
from trueodds.core.settings import check
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests import DEFAULT, TESTS
from trueodds.hypotests._power.interval_width import rows_for_width
from trueodds.hypotests._power.power import PLANS, Plan, check_question, null_draws_for_level, power_of
from trueodds.hypotests.base import HypothesisTest


@pairs_arrays
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
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> Power:
    r"""How many rows it takes: what a test sees in n rows, or the rows for an effect or for the width of an interval.

    By simulation from these very predictions: rows are drawn with replacement, labels from a truth
    :math:`r \propto p^t` that is off by so much, and the test is run. An effect is the lens's mean :math:`|r - p|`.
    Where the test is a likelihood ratio the non-central χ² law of its expected gain takes the place of simulation.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob) or Source
        The predictions; their labels matter for `width` only.
    n : int, optional
        Rows; as many as there are, if not said.
    power : float
        In which share of data sets the error is to be found.
    effect : float, optional
        An error in probability units: the answer is then its power at n rows, and the rows for the wanted power.
    width : float, optional
        Of an interval of `estimator` at level 1 − alpha, from end to end: the answer is then the rows for it.
    region, weight_kind, rng, progress
        As for `test`.
    **settings
        `simulations`, `distortion="temperature"|"shift"`, `direction="over"|"under"`, and those of the test or the
        estimator; of `resamples` 199 are made if not said (more for a small alpha).

    >>> preds = Predictions([0, 1, 1, 0] * 50, [0.3, 0.8, 0.6, 0.4] * 50)
    >>> plan = power(preds, effect=0.1, simulations=200)
    >>> plan.n, plan.power > 0.8, 130 < plan.required < 200
    (200, True, True)
    """
    check("test", test, str | HypothesisTest)
    check("estimator", estimator, str | Estimator)
    check("progress", progress, Callable[..., Any] | None)
    generator, rows = as_generator(rng), restrict_to_region(resolve_data(data, "exact", weight_kind), region)
    own = {name: settings.pop(name) for name in PLANS if name in settings}
    check_question(test, estimator, width, {"n": n, "effect": effect} | own)
    plan = Plan(n, power, effect, alpha, **own)
    if width is not None:
        aggregation = check("aggregate", settings.pop("aggregate", None), Aggregate | None)
        error = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
        chosen = resolve_lens(rows, lens, error)
        result = rows_for_width(
            rows, error, chosen, aggregation or chosen.aggregate, width, plan.alpha, generator, progress
        )
    else:
        if isinstance(test, str) and test in TESTS.names() and TESTS.takes(test, "resamples"):
            settings.setdefault("resamples", null_draws_for_level(plan.alpha))
        method = resolve_method(TESTS, HypothesisTest, test, add_test_seed(test, settings, rng, generator))
        statistic = getattr(method, "statistic", None)
        chosen = resolve_lens(rows, lens, statistic if isinstance(statistic, Estimator) else method)
        result = power_of(rows, method, chosen, plan, generator, progress)
    return replace(result, settings=dict(result.settings) | call_settings(rng, rows, weight_kind, region))

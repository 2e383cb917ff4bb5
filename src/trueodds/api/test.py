"""Test the hypothesis that the predictions are calibrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import (
    add_test_seed,
    call_settings,
    data_notes,
    pairs_arrays,
    resolve_lens,
    resolve_method,
    restrict_to_region,
)
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.errors import InputError, describe
from trueodds.core.results import Verdict
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.estimators.base import Estimator
from trueodds.hypotests import DEFAULT, TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.equivalence import Margin, error_to_compare, verdict_by_margin
from trueodds.lenses.base import Lens
from trueodds.lenses.hypothesis import apply_hypothesis
from trueodds.tallies.tally import Tally


@pairs_arrays
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
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> Verdict:
    """Whether the error may be chance: a p-value under a null said in words, with an effect size.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        As for `measure`.
    test : str or HypothesisTest
        A name of `trueodds list tests`, or an instance. The default, `omnibus`, looks for level, slope and local errors
        at once; `consistency` asks whether an error of this very size could be chance, for any `statistic`.
    lens : str, Lens, callable, or a sequence of them
        Several lenses are judged on the same draws: the p-value is then that of the family.
    hypothesis : "calibrated", fitted calibrator or callable
        The calibration function that is tested: the identity, or ρ, a function of P (n, K). Under r = ρ each label
        comes with its probability in ρ(P); rows are still pooled by what the model said.
    margin : float, optional
        An error that would not matter. The `decision` is then `within`, `beyond` or `undecided`, by the interval of
        the error and not by p; for tests of an error that has one, through one lens.
    level : float
        Of that interval; the p-value does not use it.
    region, mode, weight_kind, rng
        As for `measure`.
    progress : callable, optional
        Called with the share of the draws that is done.
    **settings
        The test's own: of `omnibus` `resamples`; of `consistency` also `statistic`, `redraw`, `aggregate`, and the
        settings of the statistic.

    >>> preds = Predictions([0, 1] * 50, [0.5] * 100)
    >>> test(preds, resamples=99).pvalue, test(preds, "consistency", statistic="brier", resamples=99).pvalue
    (1.0, 1.0)
    """
    level, margin = check("level", level, Level, 0.95), check("margin", margin, Margin | None)
    check("progress", progress, Callable[..., Any] | None)
    generator = as_generator(rng)
    method = resolve_method(TESTS, HypothesisTest, test, add_test_seed(test, settings, rng, generator))
    rows = restrict_to_region(resolve_data(data, mode, weight_kind), region)
    is_identity = isinstance(hypothesis, str) and hypothesis == "calibrated"
    several = list(lens) if isinstance(lens, (list, tuple)) else [lens]
    if not several or len(
        {str(lens_choice) if isinstance(lens_choice, (str, Lens)) else id(lens_choice) for lens_choice in several}
    ) < len(several):
        raise InputError(
            "TO204", "Lenses judged together must be at least one, and differ.", describe(lens), "Name each lens once."
        )
    statistic = getattr(method, "statistic", None)
    own = statistic if isinstance(statistic, Estimator) else method
    lenses = [resolve_lens(rows, lens_choice, own) for lens_choice in several]
    error = None if margin is None else error_to_compare(method, margin, lenses)
    if not is_identity:
        rows, lenses = apply_hypothesis(rows, hypothesis, lenses, getattr(method, "redraw", "labels"))
    if isinstance(rows, Tally):
        verdict = method.from_tally(rows, lenses, generator)
    else:
        verdict = method(rows, lenses, generator, progress)
    if margin is not None and error is not None:
        verdict = verdict_by_margin(margin, verdict, method, error, rows, lenses[0], level, as_generator(rng))
    settings_used = call_settings(rng, rows, weight_kind, region)
    if not is_identity:
        settings_used["hypothesis"] = getattr(hypothesis, "method", None) or getattr(hypothesis, "__name__", "given")
        of_it = f"the probability that the hypothesis {settings_used['hypothesis']} gives it"
        verdict = replace(verdict, null=verdict.null.replace("its stated probability", of_it))
    notes = dict.fromkeys([*data_notes(rows), *verdict.notes])
    return replace(verdict, settings=dict(verdict.settings) | settings_used, notes=tuple(notes))

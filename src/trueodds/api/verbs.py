"""The façade: measure, test, power, fit, draw. It finds the member, takes the lens, and calls it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import call_settings, lens_for, looked_at, notes_of, resolve_method, seeded, seeded_test
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.planned import Power
from trueodds.core.results import Estimate, Verdict
from trueodds.core.rng import as_generator
from trueodds.core.saved import schema_of
from trueodds.core.settings import Level, check
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.hypotests import DEFAULT, TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.hypotests.margin import Margin, error_of, verdict_by_margin
from trueodds.hypotests.planning.power import PLANS, Plan, check_question, power_of, redraws_for
from trueodds.hypotests.planning.width import rows_for
from trueodds.io.models import models_of, pairs_arrays
from trueodds.io.reading import read
from trueodds.io.resolve import IN_MEMORY, in_passes, resolved
from trueodds.io.source import Source
from trueodds.lenses.hypothesis import under
from trueodds.lenses.lens import Lens, as_lens
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.resampling.measured import measured
from trueodds.tallies.tally import Tally

if TYPE_CHECKING:
    from trueodds.calibrators.fitted_calibrator import FittedCalibrator
    from trueodds.diagrams.base import Diagram


@pairs_arrays
def measure(
    data: Any,
    estimator: str | Estimator = "ece",
    *,
    lens: Any = None,
    interval: str | None = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    resample: str = "auto",
    aggregate: str | None = None,
    region: Any = None,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Estimate:
    """How far off the probabilities are: an error with its interval and its noise floor.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source or Tally
        Of two arrays `measure(y_true, y_prob, "ece")` says the same. A Source is collected where it fits into memory
        and tallied where it does not (`mode` decides by hand).
    estimator : str or Estimator
        A name of `trueodds list estimators`, or an instance with its settings.
    lens : str, Lens or callable, optional
        Which claim is examined; `positive` for two classes, else `confidence`; `canonical` for proper scores.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None
        None gives the bare number, without interval and noise floor, for inner loops.
    level : float
        Of the interval.
    resamples : int, optional
        Bootstrap resamples, 2,000 if not said.
    resample : {"auto", "rows", "cells"}
        What is drawn with replacement; rows up to 200,000 of them, beyond that bins and outcomes.
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the views of a lens such as `classwise` make one number: the mean, if not said (`weight` for `top-label`).
    region : str, mapping or callable, optional
        Only the rows whose predictions lie there: `"confidence > 0.9"`, `{"class:cat": (0.2, 0.8)}`, or P -> mask.
    mode : {"exact", "tally"}, optional
        Rows in memory, or cells of the fine grid.
    weight_kind : {"importance", "frequency"}
        Whether a weight of two is two observed rows (`frequency`) or one row that counts double.
    rng : int or Generator
        The same call with the same seed gives the same number.
    **settings
        The estimator's own: bins, partition, min_size, closed, range, distance, order, floor, …

    >>> preds = Predictions([1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25)
    >>> print(round(measure(preds, "brier").value, 4))
    0.0925
    """
    interval_spec = IntervalSpec(
        interval, check("level", level, Level, 0.95), 2000 if resamples is None else resamples, resample
    )
    aggregate = check("aggregate", aggregate, Aggregate | None)
    generator = as_generator(rng)
    method = resolve_method(ESTIMATORS, Estimator, estimator, seeded(estimator, settings, rng, generator))
    rows = looked_at(resolved(data, mode, weight_kind), region)
    chosen = lens_for(rows, lens, method)
    aggregation = aggregate or chosen.aggregate
    estimate = measured(rows, method, chosen, aggregation, interval_spec, generator)
    settings_used = dict(estimate.settings) | call_settings(rng, rows, weight_kind, region)
    return replace(estimate, settings=settings_used, notes=tuple(dict.fromkeys([*notes_of(rows), *estimate.notes])))


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
    method = resolve_method(TESTS, HypothesisTest, test, seeded_test(test, settings, rng, generator))
    rows = looked_at(resolved(data, mode, weight_kind), region)
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
    lenses = [lens_for(rows, lens_choice, own) for lens_choice in several]
    error = None if margin is None else error_of(method, margin, lenses)
    if not is_identity:
        rows, lenses = under(rows, hypothesis, lenses, getattr(method, "redraw", "labels"))
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
    notes = dict.fromkeys([*notes_of(rows), *verdict.notes])
    return replace(verdict, settings=dict(verdict.settings) | settings_used, notes=tuple(notes))


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
    generator, rows = as_generator(rng), looked_at(resolved(data, "exact", weight_kind), region)
    own = {name: settings.pop(name) for name in PLANS if name in settings}
    check_question(test, estimator, width, {"n": n, "effect": effect} | own)
    plan = Plan(n, power, effect, alpha, **own)
    if width is not None:
        aggregation = check("aggregate", settings.pop("aggregate", None), Aggregate | None)
        error = resolve_method(ESTIMATORS, Estimator, estimator, seeded(estimator, settings, rng, generator))
        chosen = lens_for(rows, lens, error)
        result = rows_for(rows, error, chosen, aggregation or chosen.aggregate, width, plan.alpha, generator, progress)
    else:
        if isinstance(test, str) and test in TESTS.names() and TESTS.takes(test, "resamples"):
            settings.setdefault("resamples", redraws_for(plan.alpha))
        method = resolve_method(TESTS, HypothesisTest, test, seeded_test(test, settings, rng, generator))
        statistic = getattr(method, "statistic", None)
        chosen = lens_for(rows, lens, statistic if isinstance(statistic, Estimator) else method)
        result = power_of(rows, method, chosen, plan, generator, progress)
    return replace(result, settings=dict(result.settings) | call_settings(rng, rows, weight_kind, region))


@pairs_arrays
def fit(
    data: Any,
    method: Any = "auto",
    *,
    lens: Any = None,
    level: float = 0.95,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> FittedCalibrator:
    """What fixes the probabilities: a fitted calibrator with `predict_proba`, `summary` and `save`.

    `auto` chooses by cross-fitted log loss with the one-standard-error rule, confirms by the gain on rows that neither
    fit nor choice has seen, and is the identity where nothing is confirmed. A map is of all probabilities, so `lens` and
    `level`, which every call takes, change nothing here.

    Rows that do not fit into memory, or lie on workers, are fitted in passes over them by the methods that sums are
    enough for, and by the others, `auto` too, to a random sample of them, as a note says; `mode="exact"` collects them,
    `mode="tally"` never does. A Tally fits `histogram` and `isotonic`.

    >>> preds = Predictions([0, 1, 1, 0] * 25, [0.1, 0.8, 0.7, 0.3] * 25)
    >>> fit(preds, "identity").predict_proba([0.25]).tolist()
    [[0.75, 0.25]]
    """
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.base import CalibratorSpec
    from trueodds.calibrators.from_sums import fit_any_source

    check("level", level, Level, 0.95)
    as_generator(rng)
    if lens is not None:
        as_lens(lens)
    if hasattr(method, "made") and not isinstance(method, (CalibratorSpec, type)):
        method = method.made()  # Temperature() and the like, of scikit-learn's kind
    if isinstance(method, str) and method == "auto":
        settings.setdefault("rng", rng)
    spec = resolve_method(CALIBRATORS, CalibratorSpec, method, settings)
    rows = in_passes(data, mode, weight_kind, IN_MEMORY)
    return fit_any_source(spec, rows, repeated=weight_kind == "frequency")


@pairs_arrays
def draw(
    data: Any,
    diagram: Any = "reliability",
    *,
    lens: Any = None,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    ax: Any = None,
    title: str | bool | None = None,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    legend: bool | None = None,
    **settings: Any,
) -> Diagram:
    """Where the probabilities are off: a diagram with `frame()`, `draw(ax)` and `save(path)`.

    With `ax` it is drawn there at once. Several models, `{"before": a, "after": b}`, are drawn by the diagrams that
    compare. Layers are left out by `less`, as in `draw(preds).less("strip")`. `title`, `figsize`, `dpi` and `legend`
    are those of `Diagram.draw` and hold wherever the diagram is drawn, shown or saved.

    >>> draw(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).name
    'reliability'
    """
    from trueodds.diagrams import DIAGRAMS
    from trueodds.diagrams.drawing.presentation import Presentation
    from trueodds.diagrams.recipe import Recipe

    as_generator(rng)
    presentation = Presentation(title, figsize, dpi, legend)
    recipe = resolve_method(DIAGRAMS, Recipe, diagram, settings)
    models = {name: resolved(model, mode, weight_kind) for name, model in _models(data).items()}
    rows = next(iter(models.values()))
    picture = recipe.of_models(models, lens_for(rows, lens, recipe), rng)
    notes = [*notes_of(*models.values()), *picture.notes]
    clustered = any(isinstance(model, Predictions) and model.cluster is not None for model in models.values())
    if clustered and not recipe.clusters:
        text = "The bars take the rows as independent, and these come in clusters: the bars are too short."
        notes.append(Note("TN248", text))
    settings_used = dict(picture.settings) | call_settings(rng, rows, weight_kind)
    picture = replace(picture, settings=settings_used, notes=tuple(dict.fromkeys(notes)), presentation=presentation)
    if ax is not None:
        picture.draw(ax, figsize=figsize, dpi=dpi)
    return picture


def _models(data: Any) -> dict[str, Any]:
    """Models by name; one alone has none."""
    return models_of(data) or {"": data}


def load(path: Any) -> FittedCalibrator | Tally:
    """A calibrator or a tally saved by `save`, checked on the way in; no pickle is ever read."""
    from trueodds.calibrators import wire as calibrators
    from trueodds.tallies import wire as tallies

    check("path", path, str | os.PathLike)
    return tallies.load(path) if schema_of(path) == "trueodds.tally" else calibrators.load(path)


@pairs_arrays
def tally(
    data: Any,
    *,
    lenses: Sequence[Any] = (),
    grid: int | None = None,
    bins: int = 15,
    resume: str | Path | None = None,
    progress: Any = None,
) -> Tally:
    """The sums of all rows on the fine grid: small, mergeable with `+`, and enough for an audit without a fix.

    `lenses` adds `groups:` lenses, `grid` a canonical grid with that many cells per axis. `resume` names a file that
    keeps the sum so far: after a stop the same call goes on from there and ends with the same sums.

    Raises InputError: TO331 where the state is of other files or settings, TO205 for what is no file.

    >>> tally(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).n
    3
    """
    check("lenses", lenses, str | Lens | Sequence[Any])
    check("resume", resume, str | os.PathLike | None)
    check("progress", progress, Callable[..., Any] | None)
    if isinstance(data, Tally):
        return data
    source = data if isinstance(data, Source) else read(data)
    step = partial(Tally.of, lenses=lenses, grid=grid, bins=bins)
    if resume is not None:
        from trueodds.io.resumed import resumed

        settings = {"lenses": [str(as_lens(lens)) for lens in lenses], "grid": grid, "bins": bins}
        return resumed(source, step, resume, settings, progress)
    total: Tally = source.reduce(step, progress=progress)
    return total

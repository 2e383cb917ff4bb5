"""The façade: measure, test, fit, draw. It finds the member, takes the lens, and calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.registry import near
from trueodds.core.results import Estimate, Verdict
from trueodds.core.rng import as_generator
from trueodds.core.saved import schema_of
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import AGGREGATES, Estimator, ProperScore
from trueodds.hypotests import TESTS
from trueodds.hypotests.base import HypothesisTest
from trueodds.inference import tallied
from trueodds.inference.asked import Asked
from trueodds.inference.estimate import Sureness, estimates
from trueodds.inference.redraw import null_draws
from trueodds.problem.hypothesis import under
from trueodds.problem.lens import Lens, as_lens, default_lens
from trueodds.problem.predictions import Predictions
from trueodds.problem.region import within
from trueodds.sources.resolve import resolved
from trueodds.tally.tally import Tally

Array = NDArray[Any]
REDRAWS = 999
VOTES_DRAWN = 4_000_000


def measure(
    data: Any,
    estimator: str | Estimator,
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
    data : Predictions, Source or Tally
        A Source is collected where it fits into memory and tallied where it does not (`mode` decides by hand).
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
    sure = Sureness(interval, level, 2000 if resamples is None else resamples, resample)
    if aggregate is not None and aggregate not in AGGREGATES:
        raise InputError(
            "TO203", "There is no aggregate of that name.", repr(aggregate), near(str(aggregate), AGGREGATES)
        )
    generator = as_generator(rng)
    member = _member(ESTIMATORS, Estimator, estimator, _dealt(estimator, settings, rng, generator))
    rows = _looked_at(resolved(data, mode, weight_kind), region)
    chosen = lens_for(rows, lens, member)
    together = aggregate or chosen.aggregate
    if isinstance(rows, Tally):
        estimate = tallied.estimate(rows, member, chosen, together, sure, REDRAWS, generator)
    else:
        asked = [Asked.of(member, chosen, rows, together)]
        (estimate,) = estimates(rows, asked, sure, generator, lambda every: floors(rows, every, generator))
    return replace(estimate, settings=dict(estimate.settings) | _said(rng, rows, weight_kind, region))


def test(
    data: Any,
    test: Any = "consistency",
    *,
    lens: Any = None,
    hypothesis: Any = "calibrated",
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
    data : Predictions, Source or Tally
        As for `measure`.
    test : str or HypothesisTest
        A name of `trueodds list tests`, or an instance.
    lens : str, Lens, callable, or a sequence of them
        Several lenses are judged on the same draws: the p-value is then that of the family.
    hypothesis : "calibrated", fitted calibrator or callable
        The calibration function that is tested: the identity, or ρ, a function of P (n, K). Under r = ρ each label
        comes with its probability in ρ(P); rows are still pooled by what the model said.
    level : float
        Accepted by every member; this test gives a p-value and does not use it.
    region, mode, weight_kind, rng
        As for `measure`.
    progress : callable, optional
        Called with the share of the draws that is done.
    **settings
        The test's own: statistic, redraw, resamples, aggregate, and the settings of the statistic.

    >>> preds = Predictions([0, 1] * 50, [0.5] * 100)
    >>> test(preds, "consistency", resamples=99).pvalue
    1.0
    """
    Sureness(level=level)
    generator = as_generator(rng)
    dealt = settings if test != "consistency" else _dealt(settings.get("statistic", "ece"), settings, rng, generator)
    member = _member(TESTS, HypothesisTest, test, dealt)
    rows = _looked_at(resolved(data, mode, weight_kind), region)
    several = list(lens) if isinstance(lens, (list, tuple)) else [lens]
    if not several or len({str(each) for each in several}) < len(several):
        raise InputError(
            "TO204", "Lenses judged together must be at least one, and differ.", repr(lens), "Name each lens once."
        )
    statistic = getattr(member, "statistic", None)
    own = statistic if isinstance(statistic, Estimator) else member
    lenses = [lens_for(rows, each, own) for each in several]
    if hypothesis != "calibrated":
        rows, lenses = _under(rows, hypothesis, lenses, member)
    if isinstance(rows, Tally):
        verdict = member.from_tally(rows, lenses, generator)
    else:
        verdict = member(rows, lenses, generator, progress)
    said = _said(rng, rows, weight_kind, region)
    if hypothesis != "calibrated":
        said["hypothesis"] = getattr(hypothesis, "method", None) or getattr(hypothesis, "__name__", "given")
    return replace(verdict, settings=dict(verdict.settings) | said)


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
) -> Any:
    """What fixes the probabilities: a fitted calibrator with `predict_proba`, `summary` and `save`.

    `auto` splits the rows, chooses by cross-fitted log loss with the one-standard-error rule, confirms by the
    paired gain on untouched rows, and is the identity where nothing is confirmed. A map is of all probabilities, so
    `lens` and `level`, which every call takes, change nothing here.

    >>> preds = Predictions([0, 1, 1, 0] * 25, [0.1, 0.8, 0.7, 0.3] * 25)
    >>> fit(preds, "identity").predict_proba([0.25]).tolist()
    [[0.75, 0.25]]
    """
    from trueodds.calibrators import CALIBRATORS
    from trueodds.calibrators.base import Rule
    from trueodds.calibrators.fitted import fit as fitted

    Sureness(level=level)
    if lens is not None:
        as_lens(lens)
    rows = data if isinstance(data, Tally) else resolved(data, mode or "exact", weight_kind)
    if isinstance(rows, Tally):
        raise InputError("TO403", "Fitting a calibrator needs the rows.", "a tally", "Give the file of predictions.")
    if method == "auto":
        settings.setdefault("rng", rng)
    return fitted(_member(CALIBRATORS, Rule, method, settings), rows)


def draw(
    data: Any,
    diagram: Any = "reliability",
    *,
    lens: Any = None,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    ax: Any = None,
    **settings: Any,
) -> Any:
    """Where the probabilities are off: a diagram with `frame()`, `draw(ax)` and `save(path)`.

    With `ax` it is drawn there at once.

    >>> draw(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).name
    'reliability'
    """
    from trueodds.diagrams import DIAGRAMS

    member = DIAGRAMS.make(diagram, settings) if isinstance(diagram, str) else diagram
    rows = resolved(data, mode, weight_kind)
    chosen = lens_for(rows, lens, None)
    picture = member(rows.views(chosen) if isinstance(rows, Tally) else chosen.views(rows), rng=rng)
    if isinstance(rows, Predictions) and rows.cluster is not None:
        note = Note(
            "TN248", "The bars take the rows as independent, and these come in clusters: the bars are too short."
        )
        picture = replace(picture, notes=(*picture.notes, note))
    picture = replace(picture, settings=dict(picture.settings) | _said(rng, rows, weight_kind))
    if ax is not None:
        picture.draw(ax)
    return picture


def load(path: Any) -> Any:
    """A calibrator or a tally saved by `save`, checked on the way in; no pickle is ever read."""
    from trueodds.calibrators import wire as calibrators
    from trueodds.tally import wire as tallies

    return (tallies if schema_of(path) == "trueodds.tally" else calibrators).load(path)


def tally(
    data: Any, *, lenses: Sequence[Any] = (), grid: int | None = None, bins: int = 15, progress: Any = None
) -> Tally:
    """The sums of all rows on the fine grid: small, mergeable with `+`, and enough for an audit without a fix.

    `lenses` adds `groups:` lenses, `grid` a canonical grid with that many cells per axis.

    >>> tally(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).n
    3
    """
    if isinstance(data, Tally):
        return data
    from trueodds.sources import read

    source = data if hasattr(data, "reduce") else read(data)
    total: Tally = source.reduce(lambda batch: Tally.of(batch, lenses=lenses, grid=grid, bins=bins), progress=progress)
    return total


BELONG = {
    "weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "weights": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "sample_weight": "Weights belong to the rows: Predictions(y_true, y_prob, weight=…).",
    "cluster": "Clusters belong to the rows: Predictions(y_true, y_prob, cluster=…).",
    "group": "Groups belong to the rows: Predictions(y_true, y_prob, group=…); audit looks at each.",
    "seed": "The seed is rng=.",
    "random_state": "The seed is rng=.",
}


def _dealt(estimator: Any, settings: dict[str, Any], rng: Any, generator: np.random.Generator) -> dict[str, Any]:
    """The settings, with the seed of the call for an estimator that deals rows into folds."""
    if not isinstance(estimator, str) or "rng" in settings or estimator not in ESTIMATORS.names():
        return settings
    if not ESTIMATORS.takes(estimator, "rng"):
        return settings
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    return settings | {"rng": seed}


def _member(registry: Any, kind: type, asked: Any, settings: dict[str, Any]) -> Any:
    known = isinstance(asked, str) and asked in registry.names()
    for name in settings.keys() & BELONG.keys():
        if known and registry.takes(asked, name):
            continue
        raise InputError("TO202", "That is said elsewhere.", repr(name), BELONG[name])
    if isinstance(asked, kind):
        if settings:
            raise InputError(
                "TO202",
                "A member given as an instance has its own settings.",
                ", ".join(settings),
                "Set them on the instance, or give its name.",
            )
        return asked
    if not isinstance(asked, str):
        raise InputError(
            "TO201",
            f"A {registry.kind} is a name or an instance.",
            repr(asked),
            f"Known: {', '.join(registry.names())}.",
        )
    return registry.make(asked, settings)


def lens_for(rows: Predictions | Tally, lens: Any, member: Estimator | HypothesisTest | None) -> Lens:
    """The lens asked for, else the member's own, else that of the data: positive for two classes, confidence above."""
    if lens is not None:
        return as_lens(lens)
    if member is not None and member.lens and rows.kind == "classes":
        return as_lens(member.lens)
    return default_lens(rows)


def _under(
    rows: Predictions | Tally, rho: Any, lenses: list[Lens], member: HypothesisTest
) -> tuple[Predictions, list[Lens]]:
    """The rows and lenses of another hypothesis than the identity."""
    if isinstance(rows, Tally):
        raise InputError("TO403", "A given calibration function needs the rows.", "a tally", "Use mode='exact'.")
    if getattr(member, "redraw", "labels") == "both":
        raise InputError(
            "TO205",
            "redraw='both' draws rows of the model's own predictions.",
            "redraw='both' with hypothesis=",
            "Leave redraw out: labels are drawn from the given function.",
        )
    return under(rows, rho, lenses)


def floors(
    rows: Predictions, asked: Sequence[Asked], rng: np.random.Generator, redraws: int = REDRAWS
) -> list[Array | None]:
    """Null draws for the noise floors; where the expectation is known, as for proper scores, none are needed.

    Each question may have draws of its own, so that beyond 200,000 rows they cost bins. The floor of a mean over many
    rows is exact enough with few draws of their votes: as many are made as 4 million drawn shares allow, and at
    least 20.
    """

    def drawable(each: Asked) -> bool:
        countless = each.estimator.redraws == "votes" and rows.votes is not None and rows.counts is None
        if not each.is_mean_of_views:  # the mean of the largest is not the largest mean
            return not countless
        # What is unbiased for independent rows is not for the rows of clusters.
        known = rows.cluster is None and each.estimator.expected(each.views[0]) is not None
        return not isinstance(each.estimator, ProperScore) and not known and not countless

    voted = [each for each in asked if drawable(each) and each.estimator.redraws == "votes"]
    others = [each for each in asked if drawable(each) and each.estimator.redraws != "votes"]
    few = min(redraws, max(20, VOTES_DRAWN // (rows.n * rows.k)))
    found = {
        id(each): draws
        for drawn, count in ((others, redraws), (voted, few))
        if drawn
        for each, draws in zip(drawn, null_draws(rows, drawn, count, rng, together=False), strict=True)
    }
    return [found.get(id(each)) for each in asked]


def _looked_at(rows: Predictions | Tally, region: Any) -> Any:
    """The rows of a region of the simplex, or all."""
    if region is None:
        return rows
    if isinstance(rows, Tally):
        raise InputError(
            "TO403", "A region of the simplex needs the rows.", f"region={region!r} of a tally", "Use mode='exact'."
        )
    return within(rows, region)


def _said(rng: Any, rows: Predictions | Tally, weight_kind: str, region: Any = None) -> dict[str, Any]:
    said: dict[str, Any] = {"seed": int(rng) if isinstance(rng, (int, np.integer)) else "generator"}
    if region is not None:
        said["region"] = getattr(region, "__name__", None) or str(region)
    if weight_kind != "importance" or (isinstance(rows, Predictions) and rows.weight is not None):
        said["weight_kind"] = weight_kind
    return said

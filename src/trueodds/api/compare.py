"""Compare the calibration errors or scores of two models, or rank several."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import add_seed, call_settings, pairs_models, resolve_lens, resolve_method
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.comparison_results import Comparison, Ranking
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_number
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.io.read import has_label, is_array, is_pair, models_of
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.resampling.comparison.compare_models import SWAPS, ModelComparison, with_call_settings
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

DEFAULT = "debiased_l2"  # tells models apart where the bias of ece hides it


@typing.overload
def compare(
    a: Mapping[str, Any] | list[Any] | tuple[Any, ...], b: str | Estimator = "debiased_l2", /, **settings: Any
) -> Ranking: ...
@typing.overload
def compare(a: Any, b: Any, /, estimator: str | Estimator | None = None, **settings: Any) -> Comparison: ...
@pairs_models
def compare(
    a: Any,
    b: Any = None,
    /,
    estimator: str | Estimator | None = None,
    *,
    lens: Any = None,
    interval: str | None = "auto",
    level: float = 0.95,
    resamples: int | None = None,
    resample: str = "auto",
    null: str = "auto",
    paired: bool | None = None,
    names: Sequence[str] | None = None,
    aggregate: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Comparison | Ranking:
    r"""Which model is off by less: the difference of two errors, a − b, or the order of several.

    `compare(a, b)` gives a Comparison of the debiased root mean square errors, with that of the Brier scores in a note;
    `compare(a, b, "brier")` one of another estimator; `compare([a, b, c], "brier")`, or a mapping of names to models, a Ranking
    with every pairwise difference and intervals that hold together. On the same rows both models are resampled
    together, so what chance does to both alike cancels.

    The interval is BCa for means over rows such as proper scores (there p is that of the paired t-test), and that of
    Welch's t-test where tallies keep only their sums; centered at
    the plug-in for debiased squares (`skce`, `laplace_kce`), of which `rmsce` and `debiased_l2` are roots; for `ece` and other means of absolute gaps, each
    value less what is known of its bias; else it is put together from the models' own intervals (MOVER). Errors that are
    biased upward (`ece`) tell two models apart on far more rows than debiased ones, which is why those are the default. p is then 1 − the largest level at which the interval excludes 0. Which of two
    models answers right more often is not asked here; McNemar's test says that.

    Parameters
    ----------
    a, b : Predictions, (y_true, y_prob), Source or Tally
        Or, as `a` alone, a list or a mapping of at least two. Of arrays `compare(y_true, p_a, p_b, "brier")` and
        `compare(y_true, {"a": p_a, "b": p_b}, "brier")` say the same; `compare(y_true, [p_a, p_b, p_c], "brier")` ranks.
    estimator : str or Estimator, optional
        A name of `trueodds list estimators`, or an instance; `debiased_l2` by default.
    lens : str, Lens or callable, optional
        Which claim is examined, the same of all models; the default is that of the first.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None
        Of the difference; None gives the bare number. Raw bootstraps of an upward biased error exclude 0 far too
        often: for two calibrated models in up to 37 %.
    level : float
        Of the interval; of a ranking, of all of them together.
    resamples : int, optional
        2,000 resamples and 999 swaps if not said.
    resample : {"auto", "rows", "cells"}
        As for `measure`.
    null : {"auto", "swap"}
        `swap` gives the p-value of the swap permutation: in each row (or cluster) the models exchange their
        predictions with probability 1/2. Its null is that predictions are exchangeable, not equal calibration.
    paired : bool, optional
        Whether the models speak of the same rows in the same order; if not said, equal outcomes, weights and clusters
        decide, and a note says so.
    names : sequence of str, optional
        What the models are called; `a`, `b`, `c`, … if not said.
    aggregate, weight_kind, rng
        As for `measure`.
    **settings
        The estimator's own.

    Raises
    ------
    InputError
        TO203 for a setting, TO205 for `paired=True` with different outcomes, for `null="swap"` with different rows and
        for different numbers of classes through `canonical` and `classwise`, TO403 for either with tallies and for an estimator that needs more than their cells.

    >>> y, p = [1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25
    >>> comparison = compare(Predictions(y, p), Predictions(y, [0.5] * 100), "brier")
    >>> print(round(comparison.difference, 4), comparison.better)
    -0.1575 a
    >>> compare([Predictions(y, p), Predictions(y, [0.5] * 100)], "brier").order
    ('a', 'b')
    """
    columns = has_label(a) and models_of(a) is None  # of one model
    several = isinstance(a, (Mapping, list, tuple)) and not is_pair(a) and not columns
    names = check("names", names, Sequence[str | int | float] | None)
    if several and isinstance(b, Mapping):
        fix = "For instance compare(y_true, {'a': p_a, 'b': p_b}, 'brier')."
        raise InputError("TO205", "Several models go into one mapping.", "two mappings", fix)
    if several and b is not None:
        estimator = b
    elif is_pair(a) and is_array(b):
        b = (a[0], b)  # of the same outcomes
    interval_spec = IntervalSpec(
        interval, check("level", level, Level, 0.95), 2000 if resamples is None else resamples, resample
    )
    aggregate = check("aggregate", aggregate, Aggregate | None)
    generator = as_generator(rng)
    named, estimator = estimator is not None, DEFAULT if estimator is None else estimator
    method = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
    models = _rows(_named(a, b, names, several=several), weight_kind)
    first = next(iter(models.values()))
    chosen = resolve_lens(first, lens, method)
    _refuse_other_classes(models, chosen)
    swaps = SWAPS if resamples is None else resamples
    contest = ModelComparison(method, chosen, aggregate or chosen.aggregate, interval_spec, null, paired, swaps)
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    doubted = [
        Note(note.code, f"{name}: {note.text}")
        for name, rows in models.items()
        if isinstance(rows, Predictions)
        for note in plausibility_notes(rows)
    ]
    if several:
        return with_call_settings(contest.among(models, seed), call_settings(rng, first, weight_kind), doubted)
    one, other = models
    answer = contest.between(models[one], models[other], (one, other), seed)
    if not named:
        doubted.append(_scores(contest, models, seed))
    return with_call_settings(answer, call_settings(rng, first, weight_kind), doubted)


def _scores(contest: ModelComparison, models: Mapping[str, Predictions | Tally], seed: int) -> Note:
    """The difference of the Brier scores, which also counts how well the models tell outcomes apart."""
    one, other = models
    score = resolve_method(ESTIMATORS, Estimator, "brier", {})
    lens = resolve_lens(models[one], None, score)
    interval_spec = replace(contest.interval_spec, interval="auto")
    brier = replace(
        contest, estimator=score, lens=lens, aggregate=lens.aggregate, interval_spec=interval_spec, null="auto"
    )
    comparison = brier.between(models[one], models[other], (one, other), seed)
    interval, p = (f" {comparison.interval}" if comparison.interval else ""), comparison.pvalue
    text = (
        f"Brier score through {lens}, of calibration and sharpness together: {one} − {other} "
        f"{format_number(comparison.difference)}{interval}"
    )
    return Note("TN239", text + ("." if p is None else f", p={format_number(p)}."))


def _named(a: Any, b: Any, names: Sequence[str] | None, *, several: bool) -> dict[str, Any]:
    """The models by name."""
    if not several and (b is None or isinstance(b, Estimator) or (isinstance(b, str) and b in ESTIMATORS.names())):
        raise InputError(
            "TO205", "A comparison needs two models.", "one", "compare(a, b, 'brier'), or measure for a single model."
        )
    models = list(a.values() if isinstance(a, Mapping) else a) if several else [a, b]
    if names is None:
        named = several and isinstance(a, Mapping)
        names = [str(name) for name in a] if named else [_letter(i) for i in range(len(models))]
    if len(models) < 2 or len(names) != len(models) or len(set(names)) < len(names):
        raise InputError(
            "TO205",
            "A comparison needs at least two models, and a name of its own for each.",
            f"{len(models)} models named {', '.join(map(str, names))}",
            "Give every model one name.",
        )
    return dict(zip(map(str, names), models, strict=True))


def _refuse_other_classes(models: Mapping[str, Predictions | Tally], lens: Lens) -> None:
    """Refuse models of different classes where the scale depends on them: Brier's score of 2 is half that of 3."""
    sizes = {name: (model.kind, model.k) for name, model in models.items()}
    if isinstance(lens, (Canonical, Classwise)) and len(set(sizes.values())) > 1:
        words = {"classes": "{k} classes", "multilabel": "{k} independent labels", "confidence": "confidence alone"}
        raise InputError(
            "TO205",
            f"Models of different classes have no common scale through the lens {lens}.",
            ", ".join(f"{name} with {words[kind].format(k=k)}" for name, (kind, k) in sizes.items()),
            "Compare models of the same classes, or through a lens such as confidence or class:NAME.",
        )


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"m{number + 1}"


def _rows(models: Mapping[str, Any], weight_kind: str) -> dict[str, Predictions | Tally]:
    """The rows of each model; beside a tally, the others are counted too."""
    mode = "tally" if any(isinstance(model, Tally) for model in models.values()) else "exact"
    return {name: resolve_data(model, mode, weight_kind) for name, model in models.items()}

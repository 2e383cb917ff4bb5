"""Compare the calibration errors or scores of two models, or rank several."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trueodds.api.arguments import add_seed, reported_call_settings, resolve_all, resolve_lens, resolve_method
from trueodds.api.array_arguments import accept_arrays_of_models
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import format_number
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import Level, check
from trueodds.data.plausibility import plausibility_notes
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Aggregate, Estimator
from trueodds.io.models import has_label, is_array, is_pair, models_by_name
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Classwise
from trueodds.resampling.comparison.compare_models import DEFAULT_SWAPS, ModelComparison, add_call_settings
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally, models_with_rows

DEFAULT_ESTIMATOR = "debiased_l2"  # unlike ece, it has no bias that hides differences between models


@typing.overload
def compare(
    a: Mapping[str, Any] | list[Any] | tuple[Any, ...], b: str | Estimator = "debiased_l2", /, **settings: Any
) -> Ranking: ...
@typing.overload
def compare(a: Any, b: Any, /, estimator: str | Estimator | None = None, **settings: Any) -> Comparison: ...
@accept_arrays_of_models
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
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    **settings: Any,
) -> Comparison | Ranking:
    """Compare the errors or scores of two models, or rank several models.

    ``compare(a, b)`` estimates the difference a − b of the debiased root mean square calibration errors. The difference
    of the Brier scores is added in a note. ``compare([a, b, c], "brier")``, or a mapping of names to models, returns a
    ranking with all pairwise differences, simultaneous intervals and adjusted p-values. Models with predictions for the
    same rows are resampled together, so noise that is common to both cancels.

    Parameters
    ----------
    a, b : Predictions, (y_true, y_prob), Source or Tally
        The two models; or, as `a` alone, a list or a mapping of at least two models. Arrays may be passed as
        ``compare(y_true, p_a, p_b, "brier")``, ``compare(y_true, {"a": p_a, "b": p_b}, "brier")``, or
        ``compare(y_true, [p_a, p_b, p_c], "brier")`` for a ranking.
    estimator : str or Estimator, default="debiased_l2"
        Name of an estimator (``trueodds list estimators`` prints them). An instance with its settings is accepted too.
    lens : str, Lens or callable, optional
        Which predicted probability is examined, such as ``"confidence"``, ``"classwise"`` or ``"class:NAME"``, as in
        `measure`. The default is that of the first model, for all models.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None, default="auto"
        Method of the confidence interval of the difference. None omits the interval, which is fast. A plain bootstrap
        of an error with upward bias excludes 0 too often: for two calibrated models in up to 37 % of samples.
    level : float, default=0.95
        Confidence level of the interval. In a ranking it is the simultaneous level of all intervals.
    resamples : int, optional
        Number of bootstrap resamples and of swap permutations. The defaults are 2,000 and 999.
    resample : {"auto", "rows", "cells"}, default="auto"
        What the bootstrap draws with replacement, as in `measure`.
    null : {"auto", "swap"}, default="auto"
        ``"swap"`` returns the p-value of a permutation test in which the models exchange their predictions in each row
        (or cluster) with probability 1/2. Its null hypothesis is that the predictions are exchangeable, which is
        stronger than equal calibration.
    paired : bool, optional
        Whether the models have predictions for the same rows. Rows with ids (`question` of `read_answers`, `row_id` of
        `read`, `Predictions.with_row_id`) are paired by them, in any order; True then compares the rows that all models
        have, and note TN272 counts the others. Rows without ids are paired in their order. By default pairing is
        inferred from equal sets of ids, else from equal outcomes, weights and clusters, and a note reports it.
    names : sequence of str, optional
        Names of the models. The defaults are the keys of a mapping, else `a`, `b`, `c`, …
    aggregate : {"mean", "max", "sum", "prevalence", "weight"}, optional
        How the values of several views, such as the classes of ``"classwise"``, are combined into one number. The
        default is the mean (``"weight"`` for ``"top-label"``).
    weight_kind : as in `resolve_all`
    rng : as in `as_generator`
    **settings
        Settings of the estimator, such as `bins`, `partition`, `min_size`, `closed`, `range`, `distance`, `order` or
        `min_prob`.

    Returns
    -------
    Comparison or Ranking
        A `Comparison` of two models, or a `Ranking` of the models in a list or a mapping.

    Raises
    ------
    InputError
        As for `measure`. Also TO205 for fewer than two models, for ``paired=True`` with different outcomes or without
        common ids, for ``null="swap"`` with different rows, and for different classes through ``"canonical"`` or
        ``"classwise"``; TO403 for ``paired=True`` or ``null="swap"`` with tallies, and for an estimator that needs more
        than the cells of a tally.

    See Also
    --------
    measure : Estimate the error or score of one model.

    Notes
    -----
    The interval of a mean over rows, such as a proper score, is BCa, and its p-value is that of the paired t-test.
    Tallies keep only the sums of such scores; there the interval is that of Welch's t-test. Intervals of debiased
    squared errors (`skce`, `laplace_kce`, and `rmsce` and `debiased_l2`, which are roots of them) are centered at the
    plug-in value. For `ece` and other means of absolute gaps, an estimate of its bias is subtracted from each value. In
    all other cases the intervals of the two models are combined (MOVER). Then p is 1 − the highest level at which the
    interval excludes 0.

    A measure with a target, such as `o_e` or `calibration_in_the_large`, can be too high or too low. Then errors are
    the distances :math:`|a - t|` and :math:`|b - t|` from the target t. They are equal if the difference a − b or the
    sum (a − t) + (b − t) is 0. The larger of the two p-values tests both (an intersection–union test [1]_), and the
    interval follows from those of the difference and the sum. In simulations of 1,000 pairs of models that were equally
    far from the target, one too high and the other too low, 50 to 57 were called different at the 5 % level.

    Whether `ece` or a debiased error separates two models with fewer rows depends on the models. The default is a
    debiased error because noise does not add to it.
    McNemar's test compares the accuracies of two models; this function does not.

    The t test of a mean is inaccurate where few rows decide, such as those of a rare outcome. If the difference depends
    on fewer than 25 effective rows or clusters (Cochran's rule [2]_), or if neither model made an error, the note TN273
    says so, and neither model is called better.

    References
    ----------
    .. [1] Berger (1982). Multiparameter hypothesis testing and acceptance sampling.
    .. [2] Cochran (1977). Sampling Techniques, third edition, section 2.15.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25
    >>> comparison = to.compare(to.Predictions(y, p), to.Predictions(y, [0.5] * 100), "brier")
    >>> print(round(comparison.difference, 4), comparison.better)
    -0.1575 a
    >>> to.compare([to.Predictions(y, p), to.Predictions(y, [0.5] * 100)], "brier").order
    ('a', 'b')
    """
    is_one_table = has_label(a) and models_by_name(a) is None  # the columns of one model
    is_ranking = isinstance(a, (Mapping, list, tuple)) and not is_pair(a) and not is_one_table
    names = check("names", names, Sequence[str | int | float] | None)
    if is_ranking and isinstance(b, Mapping):
        fix = "For instance compare(y_true, {'a': p_a, 'b': p_b}, 'brier')."
        raise InputError("TO205", "Several models must be passed in one mapping.", "two mappings", fix)
    if is_ranking and b is not None:
        if estimator is not None:
            raise InputError(
                "TO205",
                "The estimator is given twice.",
                f"{describe(b)} and {describe(estimator)}",
                "Pass one of them.",
            )
        estimator = b
    elif is_pair(a) and is_array(b):
        b = (a[0], b)  # with the outcomes of the first model
    interval_spec = IntervalSpec(
        interval, check("level", level, Level, 0.95), 2000 if resamples is None else resamples, resample
    )
    aggregate = check("aggregate", aggregate, Aggregate | None, None)
    generator = as_generator(rng)
    has_estimator, estimator = estimator is not None, DEFAULT_ESTIMATOR if estimator is None else estimator
    method = resolve_method(ESTIMATORS, Estimator, estimator, add_seed(estimator, settings, rng, generator))
    models = resolve_rows_of_models(_models_by_name(a, b, names, is_ranking=is_ranking), weight_kind)
    method, models = prepare_models(method, models)
    first_model = next(iter(models.values()))
    resolved_lens = resolve_lens(first_model, lens, method)
    _check_same_classes(models, resolved_lens)
    swaps = DEFAULT_SWAPS if resamples is None else resamples
    comparison_settings = ModelComparison(
        method, resolved_lens, aggregate or resolved_lens.aggregate, interval_spec, null, paired, swaps
    )
    seed = seed_of(rng, generator)
    notes = [
        Note(note.code, f"{name}: " + note.text)
        for name, rows in models_with_rows(models).items()
        for note in plausibility_notes(rows)
    ]
    if is_ranking:
        ranking = comparison_settings.rank_models(models, seed)
        return add_call_settings(
            ranking, reported_call_settings(rng, first_model, weight_kind, lens=resolved_lens), notes
        )
    first_name, second_name = models
    comparison = comparison_settings.compare_pair(
        models[first_name], models[second_name], (first_name, second_name), seed
    )
    if not has_estimator:
        notes.append(_note_brier_difference(comparison_settings, models, seed))
    return add_call_settings(
        comparison, reported_call_settings(rng, first_model, weight_kind, lens=resolved_lens), notes
    )


def _note_brier_difference(settings: ModelComparison, models: Mapping[str, Predictions | Tally], seed: int) -> Note:
    """Return a note on the difference of the Brier scores of two models, which also depends on their sharpness."""
    first_name, second_name = models
    score = resolve_method(ESTIMATORS, Estimator, "brier", {})
    lens = resolve_lens(models[first_name], None, score)
    interval_spec = replace(settings.interval_spec, interval="auto")
    brier_comparison = replace(
        settings, estimator=score, lens=lens, aggregate=lens.aggregate, interval_spec=interval_spec, null="auto"
    )
    comparison = brier_comparison.compare_pair(models[first_name], models[second_name], (first_name, second_name), seed)
    interval, p = (f" {comparison.interval}" if comparison.interval else ""), comparison.pvalue
    text = (
        f"Brier score (lens {lens}), which measures calibration and sharpness together: {first_name} − {second_name} "
        f"{format_number(comparison.difference)}{interval}"
    )
    return Note("TN239", text + ("." if p is None else f", p={format_number(p)}."))


def _models_by_name(a: Any, b: Any, names: Sequence[str] | None, *, is_ranking: bool) -> dict[str, Any]:
    """Return the models by name, or raise TO205 for fewer than two.

    `a` contains all models if `is_ranking`; otherwise `a` and `b` are the two models. `names` replace the keys of a
    mapping or the default names.
    """
    if not is_ranking and (b is None or isinstance(b, Estimator) or (isinstance(b, str) and b in ESTIMATORS)):
        raise InputError(
            "TO205",
            "A comparison needs two models.",
            "one",
            "Call compare(a, b, 'brier'), or measure(a, 'brier') for a single model.",
        )
    models = list(a.values() if isinstance(a, Mapping) else a) if is_ranking else [a, b]
    if names is None:
        has_names = is_ranking and isinstance(a, Mapping)
        names = [str(name) for name in a] if has_names else [default_model_name(i) for i in range(len(models))]
    if len(models) < 2:
        problem, got = "A comparison needs at least two models with distinct names.", f"{len(models)} models"
        raise InputError("TO205", problem, f"{got} named {', '.join(map(str, names))}", "Pass one name per model.")
    return name_models(models, names)


def name_models(models: Sequence[Any], names: Sequence[Any]) -> dict[str, Any]:
    """Return the models by name, or raise TO205 if their number is not that of the names, or names are repeated."""
    if len(names) != len(models) or len(set(map(str, names))) < len(names):
        raise InputError(
            "TO205",
            "Models need distinct names.",
            f"{len(models)} models named {', '.join(map(str, names))}",
            "Pass one name per model.",
        )
    return dict(zip(map(str, names), models, strict=True))


def _check_same_classes(models: Mapping[str, Predictions | Tally], lens: Lens) -> None:
    """Raise TO205 if the models have different classes and the lens examines all classes.

    The scale of the error then depends on the number of classes.
    """
    sizes = {name: (model.kind, model.k) for name, model in models.items()}
    if isinstance(lens, (Canonical, Classwise)) and len(set(sizes.values())) > 1:
        kind_texts = {
            "classes": "{k} classes",
            "multilabel": "{k} independent labels",
            "confidence": "confidence alone",
        }
        raise InputError(
            "TO205",
            f"Models with different classes are not comparable through the lens {lens}.",
            ", ".join(f"{name} with {kind_texts[kind].format(k=k)}" for name, (kind, k) in sizes.items()),
            "Compare models with the same classes, or use a lens such as confidence or class:NAME.",
        )


def default_model_name(number: int) -> str:
    """Return the name of a model by its position: a, b, c, …, z, then m27, m28, …"""
    return chr(ord("a") + number) if number < 26 else f"m{number + 1}"


def prepare_models(
    method: Estimator, models: Mapping[str, Predictions | Tally]
) -> tuple[Estimator, dict[str, Predictions | Tally]]:
    """Return the estimator and the rows of each model that it evaluates, such as recalibrated ones."""
    prepared = {name: method.prepare(rows) for name, rows in models.items()}
    return next(iter(prepared.values()))[0], {name: rows for name, (_, rows) in prepared.items()}


def resolve_rows_of_models(models: Mapping[str, Any], weight_kind: str | None) -> dict[str, Predictions | Tally]:
    """Return the rows of each model that have a positive weight."""
    return {name: rows for name, (_, rows) in resolve_all_of_models(models, weight_kind).items()}


def resolve_all_of_models(
    models: Mapping[str, Any], weight_kind: str | None
) -> dict[str, tuple[Predictions | Tally, Predictions | Tally]]:
    """Return the data of each model, and its rows of positive weight; if one is a tally, the others are tallied too."""
    mode = "tally" if any(isinstance(model, Tally) for model in models.values()) else "exact"
    return {name: resolve_all(model, mode, weight_kind) for name, model in models.items()}

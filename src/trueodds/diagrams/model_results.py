"""Errors of several models: matched views, measured errors, differences to the first model, and sentences on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import join_words
from trueodds.diagrams.recipe import Models
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences
from trueodds.resampling.comparison.paired_rows import same_rows
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.estimate import estimate_error
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import lens_views

# The colors of Okabe & Ito without yellow, which is hard to see on white, and a wine red: distinguishable with any
# color vision. In grayscale, markers and line styles distinguish models.
COLORS = ("#0072B2", "#C8450A", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINE_STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (5, 1.4, 1.2, 1.4)),
    (0, (8, 2)),
    (0, (2.5, 1.2)),
    (0, (8, 1.4, 1.2, 1.4, 1.2, 1.4)),
    (0, (1.2, 2.4)),
)
MAX_MODELS = len(COLORS)
MAX_NAME_WIDTH, NAME_FONT_SIZE = 150.0, 8.5  # maximum width of a name in a legend, and its font size, in points
MAX_MARKED_THRESHOLDS = 20  # largest number of thresholds at each of which a curve has a marker
DEFAULT_MODEL_NAME = "model"  # label of a model without a name


def sentence_name(name: str) -> str:
    return name or "the model"


def legend_name(name: str) -> str:
    return styling.shorten_text(name or DEFAULT_MODEL_NAME, MAX_NAME_WIDTH, NAME_FONT_SIZE)


def marks_thresholds(thresholds: list[float] | int | None) -> bool:
    """Return whether curves over thresholds have a marker at each of them.

    `thresholds` is the setting of the diagram. Few thresholds that the user listed have markers, because the curve of a
    single one would have no line. Thresholds that the diagram chose (an int or None) have none.
    """
    return isinstance(thresholds, list) and len(thresholds) <= MAX_MARKED_THRESHOLDS


MISSING = float("nan")  # value of a number that is not available


def match_views(models: Models, lens: Lens, diagram_name: str) -> dict[str, tuple[View, ...]]:
    """Return the views of each model under the lens: the same binary views in the same order for all models.

    Raises InputError TO705 for too many models, and TO205 for models with different views and for joint views.
    """
    if len(models) > MAX_MODELS:
        raise InputError(
            "TO705",
            f"A diagram can show at most {MAX_MODELS} models.",
            f"{len(models)} models",
            "Draw fewer models; to.compare ranks any number of them.",
        )
    views_by_name = {name: lens_views(data, lens) for name, data in models.items()}
    first_name = next(iter(views_by_name))
    view_names = [view.name for view in views_by_name[first_name]]
    for name, views in views_by_name.items():
        by_view_name = {view.name: view for view in views}
        if set(by_view_name) != set(view_names):
            raise InputError(
                "TO205",
                "All models must have the same views.",
                f"{first_name}: {', '.join(view_names[:5])}; {name}: {', '.join(list(by_view_name)[:5])}",
                "Pass models with the same classes, or a lens that applies to all of them, such as 'confidence'.",
            )
        joint_view = next((view for view in views if view.joint), None)
        if joint_view is not None:
            raise InputError(
                "TO205",
                f"The diagram {diagram_name} requires one probability per row; this lens has a vector per row.",
                f"⟨lens={joint_view.name!r}⟩",
                "Use ⟨lens='confidence'⟩, 'classwise' or 'class:NAME'.",
            )
        views_by_name[name] = tuple(by_view_name[view_name] for view_name in view_names)
    return views_by_name


def are_equal(values: Sequence[float]) -> bool:
    """Whether numbers such as the event rates of several models are equal, except for rounding."""
    return bool(np.allclose(values, values[0], rtol=1e-9, atol=1e-12))


@dataclass(frozen=True)
class ModelResult:
    """Error of a model with interval and noise floor, and its difference to the error of the first model.

    A negative difference means that the model is better than the first. Numbers that are not available are NaN.
    """

    error: float = MISSING
    error_low: float = MISSING
    error_high: float = MISSING
    noise_floor: float = MISSING
    difference: float = MISSING
    difference_low: float = MISSING
    difference_high: float = MISSING

    @property
    def significant_sign(self) -> int:
        """Significant sign of the difference: −1 if the model is better than the first, 1 if worse, else 0."""
        return int(self.difference_low > 0) - int(self.difference_high < 0)


def measure_models(
    models: Models, estimator: Estimator, lens: Lens, interval_spec: IntervalSpec, paired: bool | None, seed: int
) -> tuple[list[ModelResult], list[Note]]:
    """Measure the error of each model and its difference to the first one, with simultaneous intervals.

    Models with the same rows are resampled together. Models with different rows are compared as independent samples.
    Tallies do not store rows and are not compared. Notes report these cases.

    Parameters
    ----------
    models : mapping of str to Predictions or Tally
        The models by name.
    estimator : Estimator
        The error.
    lens : Lens
        The lens under which it is estimated.
    interval_spec : IntervalSpec
        Level and resamples of the intervals; those of the differences hold simultaneously.
    paired : bool or None
        Whether the models predict the same rows; None decides by their outcomes.
    seed : int
        Seed of the resamples.

    Returns
    -------
    list of ModelResult
        One result per model.
    list of Note
        How models were compared.
    """
    notes: list[Note] = []
    compared: list[ComparedModel] = []  # the models whose rows are known
    estimates: list[Estimate] = []
    for number, (name, data) in enumerate(models.items()):
        if not isinstance(data, Predictions):
            rng = np.random.default_rng([seed, number])
            estimates.append(estimate_error(data, estimator, lens, lens.aggregate, interval_spec, rng))
            continue
        # Models with equal seeds are evaluated on the same resamples of rows.
        seeds = [seed] if number == 0 else [seed, number]
        if compared:
            first = compared[0]
            has_same_rows, reason = same_rows(first.preds, data, paired)
            seeds = list(first.key) if has_same_rows else seeds
            if reason and not has_same_rows:
                text = (
                    f"{sentence_name(first.name)} and {sentence_name(name)} are compared as independent samples: "
                    f"{reason}. If they contain the same rows, put them in the same order and pass ⟨paired=True⟩."
                )
                notes.append(Note("TN263", text))
        estimand = Estimand.from_predictions(estimator, lens, data, lens.aggregate)
        compared.append(ComparedModel(name, data, estimand, interval_spec, seeds))
        estimates.append(compared[-1].estimate)
    results = [_result_without_difference(estimate) for estimate in estimates]
    if len(compared) < len(models):
        if len(models) > 1:
            text = (
                "Differences between models are not available for tallies, which do not store the covariance between "
                "models."
            )
            notes.append(Note("TN263", text))
        return results, notes
    differences = [ErrorDifference(model, compared[0]) for model in compared[1:]]
    level = SimultaneousDifferences(differences).level(interval_spec.level) if differences else interval_spec.level
    results[1:] = [
        _result_with_difference(result, difference, level)
        for result, difference in zip(results[1:], differences, strict=True)
    ]
    return results, notes


def _result_without_difference(estimate: Estimate) -> ModelResult:
    interval, noise_floor = estimate.interval, estimate.noise_floor
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return ModelResult(estimate.value, low, high, MISSING if noise_floor is None else noise_floor)


def _result_with_difference(result: ModelResult, difference: ErrorDifference, level: float) -> ModelResult:
    interval = difference.interval(level) if math.isfinite(difference.value) else None
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return replace(result, difference=difference.value, difference_low=low, difference_high=high)


ZERO_TOLERANCE = 1e-12  # smaller absolute values are rounding errors
TIE_TOLERANCE = 1e-10  # relative difference of sums in a different order


def format_error(x: float) -> str:
    """Format an error with four decimals, or three significant digits if it is small.

    >>> format_error(0.25), format_error(-0.0000421), format_error(3e-17)
    ('0.2500', '−0.0000421', '0')
    """
    if not math.isfinite(x):
        return "∞" if x > 0 else "–"
    if abs(x) < ZERO_TOLERANCE:
        return "0"
    n_decimals = 4 if abs(x) >= 1e-3 else 2 - math.floor(math.log10(abs(x)))
    text = f"{x:.2e}" if abs(x) < 1e-6 else f"{x:.{n_decimals}f}"
    return text.replace("-", "−")


def format_interval(low: float, high: float) -> str:
    """Format an interval, preceded by a space; return an empty string if a limit is not finite."""
    return f" [{format_error(low)}, {format_error(high)}]" if math.isfinite(low) and math.isfinite(high) else ""


def tied_indices(values: Sequence[float], optimum: float) -> list[int]:
    """Return the indices of the values that equal the optimum, up to rounding error."""
    return [
        i
        for i, value in enumerate(values)
        if value == optimum or abs(value - optimum) <= TIE_TOLERANCE * max(1, abs(optimum))
    ]


def describe_comparison(names: Sequence[str], results: Sequence[ModelResult], error_name: str) -> str:
    """Describe which model has the smallest error, and which differences to the first model are significant.

    `error_name` is how the error is called in the text, such as `ECE` or `Brier score`.
    """
    if len(names) == 1:
        return f"{error_name} {format_error(results[0].error)}{_format_noise_floor(results[0])}."
    if len(names) == 2:
        return _describe_two_models(names, results, error_name)
    return _describe_many_models(names, results, error_name)


def _describe_many_models(names: Sequence[str], results: Sequence[ModelResult], error_name: str) -> str:
    """Describe which of three or more models has the smallest error, and how the others compare."""
    order = sorted(range(len(names)), key=lambda i: (math.isnan(results[i].error), results[i].error, names[i]))
    smallest_error = results[order[0]].error
    errors = [result.error for result in results]
    leaders = [order[0], *(i for i in tied_indices(errors, smallest_error) if i != order[0])]
    text = (
        f"{join_words(sorted(names[i] for i in leaders))} {'has' if len(leaders) == 1 else 'have'} the "
        f"{'same' if len(leaders) == len(names) else 'smallest'} {error_name}: "
        f"{format_error(smallest_error)}{_format_common_noise_floor([results[i] for i in leaders])}."
    )
    if all(math.isnan(result.difference_low) for result in results):  # no differences are known
        other_texts = [f"{names[i]} {format_error(results[i].error)}" for i in order if i not in leaders]
        return f"{text} The others: {join_words(other_texts)}." if other_texts else text
    return f"{text} {_describe_differences_to_first(names, results, order)}"


def _describe_differences_to_first(names: Sequence[str], results: Sequence[ModelResult], order: Sequence[int]) -> str:
    """Describe which models are significantly better or worse than the first; `order` sorts models by their error."""
    model_texts = [f"{name} ({format_error(result.error)})" for name, result in zip(names, results, strict=True)]
    texts_by_sign: dict[int, list[str]] = {-1: [], 0: [], 1: []}
    for i in order:
        has_same_predictions = results[i].difference_low == results[i].difference_high == 0
        if i > 0 and not has_same_predictions:
            texts_by_sign[results[i].significant_sign].append(model_texts[i])
    better, undecided, worse = texts_by_sign.values()
    if not better and not worse:
        return f"None differs significantly from {model_texts[0]}."
    phrases = [
        f"{join_words(models)} {'is' if len(models) == 1 else 'are'} {adjective}"
        for models, adjective in ((better, "better"), (worse, "worse"))
        if models
    ]
    text = f"Significantly different from {model_texts[0]}: {', '.join(phrases)}."
    return f"{text} Undecided: {join_words(undecided)}." if undecided else text


def _describe_two_models(names: Sequence[str], results: Sequence[ModelResult], error_name: str) -> str:
    """Compare two models, with the interval of their difference where it is known."""
    first, second = results
    better, worse = (1, 0) if second.error < first.error else (0, 1)
    is_tied = len(tied_indices([first.error, second.error], first.error)) == 2
    if is_tied:
        text = (
            f"{join_words(sorted(names))} have the same {error_name}: "
            f"{format_error(results[better].error)}{_format_common_noise_floor(results)}"
        )
    else:
        better_text, worse_text = (
            f"{format_error(results[i].error)}{_format_noise_floor(results[i])}" for i in (better, worse)
        )
        text = f"{names[better]}: {error_name} {better_text}; {names[worse]}: {worse_text}"
    if math.isnan(second.difference) or (is_tied and second.difference_low == second.difference_high):
        return f"{text}."
    sign = 1 if second.difference >= 0 else -1
    low, high = sorted((sign * second.difference_low, sign * second.difference_high))
    size = format_error(abs(second.difference))
    if math.isnan(low):
        return f"{text}. They differ by {size}."
    significance = "is significant" if second.significant_sign else "is not significant"
    return f"{text}. The difference, {size}{format_interval(low, high)}, {significance}."


def _format_noise_floor(result: ModelResult) -> str:
    return "" if math.isnan(result.noise_floor) else f" (noise\u00a0floor\u00a0{format_error(result.noise_floor)})"


def _format_common_noise_floor(results: Sequence[ModelResult]) -> str:
    """Format the noise floor of models with the same error; empty if their simulated noise floors differ."""
    texts = {_format_noise_floor(result) for result in results}
    return texts.pop() if len(texts) == 1 else ""

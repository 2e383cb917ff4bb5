"""Errors of several models, their differences to the first model, and a summary in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.diagrams.model_lineup import Models, sentence_name
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.resampling.comparison.compared_model import ComparedModel
from trueodds.resampling.comparison.differences import ErrorDifference, SimultaneousDifferences
from trueodds.resampling.comparison.paired_rows import same_rows
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.resampling.measure import estimate_error

MISSING = float("nan")


@dataclass(frozen=True)
class ModelResult:
    """Error of a model with interval and noise floor, and its difference to the first model (negative is better)."""

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
    """The results of each model; the intervals of the differences hold simultaneously at the level of `interval_spec`.

    Models with the same rows are resampled together. Models with different rows are compared as independent samples.
    Tallies do not store rows and are not compared. Notes report these cases.
    """
    notes: list[Note] = []
    sides: list[ComparedModel] = []
    estimates: list[Estimate] = []
    for number, (name, rows) in enumerate(models.items()):
        if not isinstance(rows, Predictions):
            rng = np.random.default_rng([seed, number])
            estimates.append(estimate_error(rows, estimator, lens, lens.aggregate, interval_spec, rng))
            continue
        key = [seed] if number == 0 else [seed, number]
        if sides:
            same, why = same_rows(sides[0].preds, rows, paired)
            key = list(sides[0].key) if same else key
            if why and not same:
                text = (
                    f"{sentence_name(sides[0].name)} and {sentence_name(name)} are compared as independent samples: "
                    f"{why}. If they contain the same rows, put them in the same order and pass paired=True."
                )
                notes.append(Note("TN263", text))
        sides.append(
            ComparedModel(
                name,
                rows,
                Estimand.from_predictions(estimator, lens, rows, lens.aggregate),
                interval_spec,
                key,
                [2**20 + number],
            )
        )
        estimates.append(sides[-1].estimate)
    results = [_single_result(estimate) for estimate in estimates]
    if len(sides) < len(models):
        if len(models) > 1:
            text = (
                "Differences between models are not available for tallies, which do not store the covariance between "
                "models."
            )
            notes.append(Note("TN263", text))
        return results, notes
    pairs = [ErrorDifference(side, sides[0]) for side in sides[1:]]
    pair_level = SimultaneousDifferences(pairs).level(interval_spec.level) if pairs else interval_spec.level
    return [
        results[0],
        *(_paired_result(one, pair, pair_level) for one, pair in zip(results[1:], pairs, strict=True)),
    ], notes


def _single_result(estimate: Estimate) -> ModelResult:
    interval, noise_floor = estimate.interval, estimate.noise_floor
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return ModelResult(estimate.value, low, high, MISSING if noise_floor is None else noise_floor)


def _paired_result(one: ModelResult, pair: ErrorDifference, level: float) -> ModelResult:
    interval = pair.interval(level) if math.isfinite(pair.value) else None
    low, high = (interval.low, interval.high) if interval else (MISSING, MISSING)
    return ModelResult(one.error, one.error_low, one.error_high, one.noise_floor, pair.value, low, high)


ZERO_TOLERANCE = 1e-12  # smaller absolute values are rounding errors
TIE_TOLERANCE = 1e-10  # relative difference of sums in a different order


def format_error(x: float) -> str:
    """An error with four decimals, or three significant digits if it is small.

    >>> format_error(0.25), format_error(-0.0000421), format_error(3e-17)
    ('0.2500', '−0.0000421', '0')
    """
    if not math.isfinite(x):
        return "∞" if x > 0 else "–"
    if abs(x) < ZERO_TOLERANCE:
        return "0"
    small = 4 if abs(x) >= 1e-3 else 2 - math.floor(math.log10(abs(x)))
    text = f"{x:.2e}" if abs(x) < 1e-6 else f"{x:.{small}f}"
    return text.replace("-", "−")


def format_interval(low: float, high: float) -> str:
    """An interval as text, or an empty string if there is none."""
    return f" [{format_error(low)}, {format_error(high)}]" if math.isfinite(low) and math.isfinite(high) else ""


def tied_indices(values: Sequence[float], optimum: float) -> list[int]:
    """Indices of the values that equal the optimum, up to rounding error."""
    return [
        i
        for i, value in enumerate(values)
        if value == optimum or abs(value - optimum) <= TIE_TOLERANCE * max(1, abs(optimum))
    ]


def join_names(names: Sequence[str]) -> str:
    """Names as an enumeration, such as "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def describe_comparison(names: Sequence[str], results: Sequence[ModelResult], unit: str) -> str:
    """Which model has the smallest error, and which differences are significant."""
    if len(names) == 1:
        return f"{unit} {format_error(results[0].error)}{_format_noise_floor(results[0])}."
    if len(names) == 2:
        return _describe_pair(names, results, unit)
    order = sorted(range(len(names)), key=lambda i: (math.isnan(results[i].error), results[i].error, names[i]))
    leader = results[order[0]]
    leaders = [order[0], *(i for i in tied_indices([one.error for one in results], leader.error) if i != order[0])]
    names_text, value_text = (
        join_names(sorted(names[i] for i in leaders)),
        f"{format_error(leader.error)}{_format_tied_noise_floor([results[i] for i in leaders])}",
    )
    text = (
        f"{names_text} {'has' if len(leaders) == 1 else 'have'} the {_same_or_smallest(leaders, names)} {unit}: "
        f"{value_text}."
    )
    if all(math.isnan(one.difference_low) for one in results):
        others = [f"{names[i]} {format_error(results[i].error)}" for i in order if i not in leaders]
        if not others:
            return text
        rest = join_names(others)
        return f"{text} The others: {rest}."
    better, worse, unsettled = (
        [f"{names[i]} ({format_error(results[i].error)})" for i in order if i and _difference_sign(results[i]) == sign]
        for sign in (-1, 1, 0)
    )
    first = f"{names[0]} ({format_error(results[0].error)})"
    if not better and not worse:
        return f"{text} None differs significantly from {first}."
    phrases = [
        f"{join_names(some)} {_is_or_are(some)} {word}" for some, word in ((better, "better"), (worse, "worse")) if some
    ]
    text += f" Significantly different from {first}: {', '.join(phrases)}."
    return f"{text} Undecided: {join_names(unsettled)}." if unsettled else text


def _difference_sign(one: ModelResult) -> int | None:
    """Significant sign of the difference; None for a model identical to the first."""
    return None if one.difference_low == one.difference_high == 0 else one.significant_sign


def _same_or_smallest(leaders: Sequence[int], names: Sequence[str]) -> str:
    return "same" if len(leaders) == len(names) else "smallest"


def _is_or_are(some: Sequence[str]) -> str:
    return "is" if len(some) == 1 else "are"


def _describe_pair(names: Sequence[str], results: Sequence[ModelResult], unit: str) -> str:
    first, second = results
    better, worse = (1, 0) if second.error < first.error else (0, 1)
    a, b = results[better], results[worse]
    text = (
        f"{names[better]}: {unit} {format_error(a.error)}{_format_noise_floor(a)}; {names[worse]}: "
        f"{format_error(b.error)}{_format_noise_floor(b)}."
    )
    same = len(tied_indices([first.error, second.error], first.error)) == 2
    if same:
        text = (
            f"{join_names(sorted(names))} have the same {unit}: "
            f"{format_error(a.error)}{_format_tied_noise_floor(results)}."
        )
    if math.isnan(second.difference) or (same and second.difference_low == second.difference_high):
        return text
    sign = 1 if second.difference >= 0 else -1
    low, high = sorted((sign * second.difference_low, sign * second.difference_high))
    if math.isnan(low):
        return f"{text} They differ by {format_error(abs(second.difference))}."
    settled = "is significant" if second.significant_sign else "is not significant"
    return f"{text} The difference, {format_error(abs(second.difference))}{format_interval(low, high)}, {settled}."


def _format_noise_floor(result: ModelResult) -> str:
    return "" if math.isnan(result.noise_floor) else f" (noise\u00a0floor\u00a0{format_error(result.noise_floor)})"


def _format_tied_noise_floor(results: Sequence[ModelResult]) -> str:
    """The noise floor of tied models, or an empty string if their simulated values differ."""
    texts = {_format_noise_floor(one) for one in results}
    return texts.pop() if len(texts) == 1 else ""

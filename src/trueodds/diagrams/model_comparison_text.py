"""Text about the errors of several models: which one is smallest, and which differences are significant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueodds.diagrams._style.formatting import join_words
from trueodds.diagrams.model_results import ModelResult

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
    """The noise floor of one model in parentheses."""
    return "" if math.isnan(result.noise_floor) else f" (noise\u00a0floor\u00a0{format_error(result.noise_floor)})"


def _format_common_noise_floor(results: Sequence[ModelResult]) -> str:
    """Format the noise floor of models with the same error; empty if their simulated noise floors differ."""
    texts = {_format_noise_floor(result) for result in results}
    return texts.pop() if len(texts) == 1 else ""

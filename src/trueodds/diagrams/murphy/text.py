"""Describe in words which of several models has the lower Murphy curve, and at which thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import join_words
from trueodds.diagrams.model_comparison_text import describe_comparison, format_error, tied_indices
from trueodds.diagrams.model_results import ModelResult
from trueodds.diagrams.murphy.crossings import (
    RELATIVE_TOLERANCE,
    find_crossings,
    length_with_sign,
    lowest_curves,
    lowest_curves_at_points,
    pointwise_signs,
    sign_segments,
)
from trueodds.diagrams.murphy.curves import MurphyModel
from trueodds.diagrams.table_columns import Columns

SCORE_NAMES = {"brier": "Brier score", "log_loss": "log loss"}
MAX_LISTED = 3  # segments, crossings or thresholds that are listed individually
MAX_SHARES = 5  # shares of the thresholds that are listed
TIE_TOLERANCE = 1e-9  # differences in the number of thresholds up to this are rounding errors
SHARE_TOLERANCE = 1e-9  # shares up to this are rounding errors


def describe_decomposition(model: MurphyModel) -> str:
    """The score of one model and its decomposition."""
    terms = model.decomposition
    return (
        f"{SCORE_NAMES[model.score_name]} {format_error(terms['score'])} = {format_error(terms['mcb'])} miscalibration "
        f"− {format_error(terms['dsc'])} discrimination + {format_error(terms['unc'])} uncertainty."
    )


def describe_plane(models: Sequence[MurphyModel], results: Sequence[ModelResult]) -> str:
    """Which model has the best score, and which parts of it."""
    if len(models) == 1:
        return describe_decomposition(models[0])
    mcb, dsc = ([model.decomposition[name] for model in models] for name in ("mcb", "dsc"))
    lowest_mcb_names, highest_dsc_names = (
        _sorted_names(models, tied_indices(values, optimum)) for values, optimum in ((mcb, min(mcb)), (dsc, max(dsc)))
    )
    return (
        f"{describe_comparison([model.name for model in models], results, SCORE_NAMES[models[0].score_name])} "
        f"Lowest MCB: {lowest_mcb_names} ({format_error(min(mcb))}). "
        f"Highest DSC: {highest_dsc_names} ({format_error(max(dsc))}). "
        f"UNC\u00a0{format_error(models[0].decomposition['unc'])}."
    )


def _sorted_names(models: Sequence[MurphyModel], indices: Sequence[int]) -> str:
    """The names of the models with these indices, sorted and joined."""
    return join_words(sorted(models[i].name for i in indices))


def describe_curves(
    models: Sequence[MurphyModel],
    curves: Sequence[Columns],
    bands: Sequence[Columns],
    results: Sequence[ModelResult],
    *,
    fixed_thresholds: bool = False,
) -> str:
    """Describe which model has the lower cost, and at which thresholds.

    `curves` and `bands` are the table rows of each model. With `fixed_thresholds`, the thresholds are those that the
    user chose: the text describes only these and does not interpolate between them.
    """
    names = [model.name for model in models]
    if len(models) == 1:
        return describe_one_curve(models[0], curves[0], fixed_thresholds=fixed_thresholds)
    if len(models) > 2:
        return describe_many_curves(names, curves, results, models[0].score_name, fixed_thresholds=fixed_thresholds)
    band_of_second = bands[1] if bands else None
    if fixed_thresholds:
        return describe_two_at_thresholds(names, curves, band_of_second)
    return describe_two_curves(names, curves, band_of_second)


def describe_one_curve(model: MurphyModel, curve: Mapping[str, Array], *, fixed_thresholds: bool = False) -> str:
    """The threshold at which miscalibration contributes most to the cost of one model."""
    index, n_evaluated = int(np.argmax(curve["mcb"])), len(curve["mcb"])
    if curve["mcb"][index] <= RELATIVE_TOLERANCE:
        thresholds_text = f" at {_describe_all_thresholds(curve['threshold'])}" if fixed_thresholds else ""
        return f"{describe_decomposition(model)} No monotone recalibration would lower the cost{thresholds_text}."
    mcb, cost = format_error(float(curve["mcb"][index])), format_error(float(curve["score"][index]))
    threshold_text = _format_threshold(curve["threshold"][index])
    if fixed_thresholds:
        opening = (
            f"At the threshold {threshold_text}, miscalibration contributes"
            if n_evaluated == 1
            else "Miscalibration contributes most"
        )
        threshold_part = "" if n_evaluated == 1 else f" at {threshold_text} ({n_evaluated} thresholds evaluated):"
        return f"{describe_decomposition(model)} {opening}{threshold_part} {mcb} of the cost {cost}."
    side = "at" if curve["side"][index] == "at" else f"just {curve['side'][index]}"
    return (
        f"{describe_decomposition(model)} Miscalibration contributes most {side} the threshold {threshold_text}: {mcb} "
        f"of the cost {cost}."
    )


def describe_two_curves(
    names: Sequence[str], curves: Sequence[Mapping[str, Array]], band: Mapping[str, Array] | None
) -> str:
    """Describe at how many thresholds the better of two models has the lower cost, and where the curves cross.

    If the second model has a band, the text also states where the difference is significant.
    """
    thresholds, difference = curves[0]["threshold"], curves[1]["score"] - curves[0]["score"]
    segments = sign_segments(thresholds, difference)
    length_lower, length_higher = length_with_sign(segments, -1), length_with_sign(segments, 1)
    if length_lower + length_higher == 0:
        return f"{join_words(sorted(names))} have the same cost at every threshold."
    better, sign = _cheaper_model(names, length_lower, length_higher)
    length, crossings = max(length_lower, length_higher), find_crossings(segments)
    length_of_percent, shorter_length = (thresholds[-1] - thresholds[0]) / 100, min(length_lower, length_higher)
    if abs(length_lower - length_higher) <= TIE_TOLERANCE:
        text = f"{_describe_tie(names)} at {length / length_of_percent:.0f}\u00a0% of the thresholds"
    else:
        contrast = "at no threshold a higher cost" if not shorter_length else "a lower cost"
        text = f"{names[better]} has {contrast} than {names[1 - better]}"
        if shorter_length:
            text += f" at {length / length_of_percent:.0f}\u00a0% of the thresholds"
            text += f" and a higher cost at {shorter_length / length_of_percent:.0f}\u00a0%"
    if len(crossings) > MAX_LISTED:
        text += f"; the curves cross {len(crossings)} times"
    elif crossings:
        text += f"; the curves cross at {join_words([_format_threshold(threshold) for threshold in crossings])}"
    if band is None or np.isnan(band["beyond"]).all():
        return f"{text}."
    phrases = [
        _describe_significant_ranges(band, segment_sign, adjective)
        for segment_sign, adjective in ((sign, "lower"), (-sign, "higher"))
    ]
    return (
        f"{text}. {_describe_significance(names[better], phrases, abs(length_lower - length_higher) <= TIE_TOLERANCE)}"
    )


def describe_two_at_thresholds(
    names: Sequence[str], curves: Sequence[Mapping[str, Array]], band: Mapping[str, Array] | None
) -> str:
    """Describe which of two models has the lower cost at the given thresholds only."""
    x, sign_at_threshold = curves[0]["threshold"], pointwise_signs(curves[1]["score"] - curves[0]["score"])
    n_lower, n_higher = int((sign_at_threshold < 0).sum()), int((sign_at_threshold > 0).sum())
    if n_lower + n_higher == 0:
        return f"{join_words(sorted(names))} have the same cost at {_describe_all_thresholds(x)}."
    better, sign = _cheaper_model(names, n_lower, n_higher)
    text = f"{names[better]} has a lower cost than {names[1 - better]} at "
    if max(n_lower, n_higher) == len(x):
        text += _describe_all_thresholds(x)
        if len(x) == 1:
            text += (
                f": {format_error(float(curves[better]['score'][0]))} versus"
                f" {format_error(float(curves[1 - better]['score'][0]))}"
            )
    elif n_lower == n_higher:
        phrases = [
            f"{names[better]} at {_list_thresholds(x[sign_at_threshold == sign])}",
            f"{names[1 - better]} at {_list_thresholds(x[sign_at_threshold == -sign])}",
        ]
        text = f"{_describe_tie(names)} at {n_lower} of {len(x)} evaluated thresholds: {', '.join(phrases)}"
    else:
        text += f"{max(n_lower, n_higher)} of {len(x)} evaluated thresholds"
        text += (
            f", a higher cost at {_list_thresholds(x[sign_at_threshold == -sign])}" if min(n_lower, n_higher) else ""
        )
        text += (
            f", the same cost at {_list_thresholds(x[sign_at_threshold == 0])}"
            if (sign_at_threshold == 0).any()
            else ""
        )
    if band is None or np.isnan(band["beyond"]).all():
        return f"{text}."
    significant_thresholds = [
        (band["threshold"][band["beyond"] == beyond_sign], adjective)
        for beyond_sign, adjective in ((sign, "lower"), (-sign, "higher"))
    ]
    # A single threshold is not repeated, because the previous sentence names it.
    phrases = [
        f"{adjective} {'there' if len(x) == 1 else f'at {_list_thresholds(thresholds_of_sign, len(x))}'}"
        if len(thresholds_of_sign)
        else ""
        for thresholds_of_sign, adjective in significant_thresholds
    ]
    return f"{text}. {_describe_significance(names[better], phrases, n_lower == n_higher)}"


def _cheaper_model(names: Sequence[str], lower_amount: float, higher_amount: float) -> tuple[int, int]:
    """Index of the model that is cheaper at more thresholds, and the sign of second minus first where it is cheaper.

    The amounts are the number of thresholds, or their length, at which the second model has a lower and a higher cost.
    With equal amounts it is the first model by name.
    """
    is_tied = abs(lower_amount - higher_amount) <= TIE_TOLERANCE
    is_second_cheaper = names[1] < names[0] if is_tied else lower_amount > higher_amount
    return (1, -1) if is_second_cheaper else (0, 1)


def _describe_tie(names: Sequence[str]) -> str:
    """The start of a sentence on two models with the lower cost at equally many thresholds."""
    return f"{join_words(sorted(names))} each have the lower cost"


def _describe_significance(better: str, phrases: Sequence[str], is_tied: bool) -> str:
    """State where differences are significant, or that they are not."""
    text = "; ".join(phrase for phrase in phrases if phrase)
    return f"Significant differences: {f'{better} ' if is_tied and text else ''}{text or 'none'}."


def _describe_all_thresholds(x: Array) -> str:
    """A phrase for all of the evaluated thresholds."""
    if len(x) == 1:
        return f"the threshold {_format_threshold(x[0])}"
    return f"{'both' if len(x) == 2 else f'all {len(x)}'} evaluated thresholds"


def _list_thresholds(x: Array, n_evaluated: int | None = None) -> str:
    """Few thresholds by value, many by their count."""
    if n_evaluated is not None and len(x) == n_evaluated:
        return "both" if n_evaluated == 2 else f"all {n_evaluated}"
    return (
        join_words([_format_threshold(threshold) for threshold in x])
        if len(x) <= MAX_LISTED
        else f"{len(x)}{f' of {n_evaluated}' if n_evaluated else ''}"
    )


def describe_many_curves(
    names: Sequence[str],
    curves: Sequence[Mapping[str, Array]],
    results: Sequence[ModelResult],
    score_name: str,
    *,
    fixed_thresholds: bool = False,
) -> str:
    """The shares of thresholds at which each model has the lowest cost, and the model with the best score."""
    x, values = curves[0]["threshold"], [curve["score"] for curve in curves]
    weight_by_set = lowest_curves_at_points(values) if fixed_thresholds else lowest_curves(x, values)
    total = sum(weight_by_set.values())
    share_by_models = {
        tuple(sorted(names[i] for i in curve_set)): weight / total for curve_set, weight in weight_by_set.items()
    }
    return (
        f"{_describe_lowest_cost(share_by_models, len(names), x if fixed_thresholds else None)} "
        f"{describe_comparison(names, results, SCORE_NAMES[score_name])}"
    )


def _describe_lowest_cost(share_by_models: Mapping[tuple[str, ...], float], n_models: int, points: Array | None) -> str:
    """The models with the lowest cost, with shares of the thresholds or counts of the evaluated ones."""
    everywhere = "every threshold" if points is None else _describe_all_thresholds(points)
    n_evaluated = None if points is None else len(points)
    share_by_names = {name_set: weight for name_set, weight in share_by_models.items() if weight > SHARE_TOLERANCE}
    always_lowest = sorted(set.intersection(*map(set, share_by_names)))
    order = sorted(share_by_names, key=lambda name_set: (-round(share_by_names[name_set], 12), name_set))

    def format_amount(name_set: tuple[str, ...], names_unit: bool) -> str:
        """The share or count of the thresholds at which these models are the lowest."""
        if n_evaluated is not None:
            unit = f" of {n_evaluated} evaluated thresholds" if names_unit else ""
            return f"{share_by_names[name_set] * n_evaluated:.0f}{unit}"
        return f"{100 * share_by_names[name_set]:.0f}\u00a0%{' of the thresholds' if names_unit else ''}"

    if len(always_lowest) == n_models:
        return f"{join_words(always_lowest)} have the same cost at {everywhere}."
    if always_lowest and len(share_by_names) == 1:
        verb = "has" if len(always_lowest) == 1 else "have"
        return f"{join_words(always_lowest)} {verb} the lowest cost at {everywhere}."
    if always_lowest:
        single_model_set = tuple(always_lowest)
        never_text = "no threshold" if n_evaluated is None else f"none of {n_evaluated} evaluated thresholds"
        suffix = (
            f", and strictly the lowest at {format_amount(single_model_set, n_evaluated is None)}"
            if single_model_set in share_by_names
            else ""
        )
        return f"At {never_text} is the cost of {join_words(always_lowest)} higher than that of another model{suffix}."
    shown_sets = [name_set for name_set in order if share_by_names[name_set] >= 0.005][:MAX_SHARES]
    labels = ["all tied" if len(name_set) == n_models else join_words(name_set) for name_set in shown_sets]
    shares = [
        f"{label} ({format_amount(name_set, name_set == shown_sets[0])})"
        for label, name_set in zip(labels, shown_sets, strict=True)
    ]
    rest = sum(share_by_names[name_set] for name_set in order if name_set not in shown_sets)
    if rest >= 0.005:
        shares.append(f"others ({rest * n_evaluated:.0f})" if n_evaluated else f"others ({100 * rest:.0f}\u00a0%)")
    # Names of tied models contain commas.
    if any(1 < len(name_set) < n_models for name_set in shown_sets):
        return f"Lowest cost: {'; '.join(shares)}."
    return f"Lowest cost: {join_words(shares)}."


def _describe_significant_ranges(band: Mapping[str, Array], sign: int, adjective: str) -> str:
    """The thresholds at which the band excludes 0 on the side of `sign`, as a phrase; empty if none."""
    is_significant = band["beyond"] == sign
    if not is_significant.any():
        return ""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_significant.astype(int), [0]])))
    runs = list(zip(edges[::2], edges[1::2] - 1, strict=True))
    if len(runs) > MAX_LISTED:
        return f"{adjective} at {100 * is_significant.mean():.0f}\u00a0% of the evaluated thresholds"
    x = band["threshold"]
    ranges = [
        (
            _format_threshold(x[a])
            if _format_threshold(x[a]) == _format_threshold(x[b])
            else f"{_format_threshold(x[a])} to {_format_threshold(x[b])}"
        )
        for a, b in runs
    ]
    return f"{adjective} at {join_words(ranges)}"


def _format_threshold(threshold: float) -> str:
    """Format a threshold in percent."""
    return styling.format_percent(float(threshold))


def format_score_range(models: Sequence[MurphyModel]) -> str:
    """Format the smallest and the largest mean score of the models."""
    scores = [model.decomposition["score"] for model in models]
    low, high = min(scores), max(scores)
    return f"score {low:.3f}" if len(scores) == 1 else f"score {low:.3f}–{high:.3f}"

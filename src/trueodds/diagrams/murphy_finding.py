"""Which of several models has the lower Murphy curve, and at which thresholds, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import SCORE_NAMES, format_percent, join_words
from trueodds.diagrams.model_results import ModelResult, describe_comparison, format_error
from trueodds.diagrams.murphy_curves import MurphyModel
from trueodds.diagrams.table_columns import Columns

MAX_LISTED = 3  # largest number of segments, crossings or thresholds that are listed one by one
MAX_SHARES = 5  # largest number of sets of models whose shares of the thresholds are listed
MIN_NAMED_SHARE = 0.005  # smallest share of the thresholds that is mentioned
TIE_TOLERANCE = 1e-9  # numbers, or lengths, of thresholds count as equal up to this difference
SHARE_TOLERANCE = 1e-9  # shares up to this are rounding errors
RELATIVE_TOLERANCE = 1e-12  # relative differences up to this are rounding errors


def describe_decomposition(model: MurphyModel) -> str:
    terms = model.decomposition
    return (
        f"{SCORE_NAMES[model.score_name]} {format_error(terms['score'])} = {format_error(terms['mcb'])} miscalibration "
        f"− {format_error(terms['dsc'])} discrimination + {format_error(terms['unc'])} uncertainty."
    )


def describe_curves(
    models: Sequence[MurphyModel],
    curves: Sequence[Columns],
    bands: Sequence[Columns],
    results: Sequence[ModelResult],
    *,
    fixed_thresholds: bool,
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


def describe_one_curve(model: MurphyModel, curve: Mapping[str, Array], *, fixed_thresholds: bool) -> str:
    """Describe the score of one model, and at which threshold miscalibration contributes most to its cost."""
    index, n_evaluated = int(np.argmax(curve["mcb"])), len(curve["mcb"])
    if curve["mcb"][index] <= RELATIVE_TOLERANCE:
        thresholds_text = f" at {_describe_all_thresholds(curve['threshold'])}" if fixed_thresholds else ""
        return f"{describe_decomposition(model)} No monotone recalibration would lower the cost{thresholds_text}."
    mcb, cost = format_error(float(curve["mcb"][index])), format_error(float(curve["score"][index]))
    threshold_text = _format_threshold(curve["threshold"][index])
    if fixed_thresholds:
        if n_evaluated == 1:
            opening = f"At the threshold {threshold_text}, miscalibration contributes"
        else:
            opening = f"Miscalibration contributes most at {threshold_text} ({n_evaluated} thresholds evaluated):"
        return f"{describe_decomposition(model)} {opening} {mcb} of the cost {cost}."
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
    longer, shorter = max(length_lower, length_higher), min(length_lower, length_higher)
    percent_length = (thresholds[-1] - thresholds[0]) / 100  # of one percent of the thresholds
    if abs(length_lower - length_higher) <= TIE_TOLERANCE:
        text = f"{_describe_tie(names)} at {longer / percent_length:.0f}\u00a0% of the thresholds"
    elif not shorter:
        text = f"{names[better]} has at no threshold a higher cost than {names[1 - better]}"
    else:
        text = f"{names[better]} has a lower cost than {names[1 - better]}"
        text += f" at {longer / percent_length:.0f}\u00a0% of the thresholds"
        text += f" and a higher cost at {shorter / percent_length:.0f}\u00a0%"
    crossings = find_crossings(segments)
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
    other = 1 - better
    # The thresholds at which the better model has a lower cost than the other, a higher one, and the same.
    x_lower, x_higher, x_equal = (x[sign_at_threshold == s] for s in (sign, -sign, 0))
    text = f"{names[better]} has a lower cost than {names[other]} at "
    if len(x_lower) == len(x):
        text += _describe_all_thresholds(x)
        if len(x) == 1:
            cost_of_better, cost_of_other = (format_error(float(curves[i]["score"][0])) for i in (better, other))
            text += f": {cost_of_better} versus {cost_of_other}"
    elif n_lower == n_higher:
        text = (
            f"{_describe_tie(names)} at {n_lower} of {len(x)} evaluated thresholds: "
            f"{names[better]} at {_list_thresholds(x_lower)}, {names[other]} at {_list_thresholds(x_higher)}"
        )
    else:
        text += f"{len(x_lower)} of {len(x)} evaluated thresholds"
        if len(x_higher):
            text += f", a higher cost at {_list_thresholds(x_higher)}"
        if len(x_equal):
            text += f", the same cost at {_list_thresholds(x_equal)}"
    if band is None or np.isnan(band["beyond"]).all():
        return f"{text}."
    phrases = []
    for beyond, adjective in ((sign, "lower"), (-sign, "higher")):
        significant_thresholds = band["threshold"][band["beyond"] == beyond]
        if len(significant_thresholds):
            # A single threshold is not repeated, because the previous sentence names it.
            where = "there" if len(x) == 1 else f"at {_list_thresholds(significant_thresholds, len(x))}"
            phrases.append(f"{adjective} {where}")
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
    if len(x) == 1:
        return f"the threshold {_format_threshold(x[0])}"
    return f"{'both' if len(x) == 2 else f'all {len(x)}'} evaluated thresholds"


def _list_thresholds(x: Array, n_evaluated: int | None = None) -> str:
    """List few thresholds by value and many by their count; `n_evaluated` is the number of all thresholds, if named."""
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
    fixed_thresholds: bool,
) -> str:
    """Describe at which share of the thresholds each of several models has the lowest cost, and which score is best."""
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
    """Describe which models have the lowest cost, with shares of the thresholds or counts of the evaluated ones.

    `share_by_models` is the share of the thresholds at which each set of models, given by their names, has the lowest
    cost. `points` are the evaluated thresholds if the user chose them.
    """
    everywhere = "every threshold" if points is None else _describe_all_thresholds(points)
    n_evaluated = None if points is None else len(points)
    share_by_names = {names: share for names, share in share_by_models.items() if share > SHARE_TOLERANCE}
    always_lowest = sorted(set.intersection(*map(set, share_by_names)))  # alone or tied
    order = sorted(share_by_names, key=lambda names: (-round(share_by_names[names], 12), names))

    def format_amount(names: tuple[str, ...], has_unit: bool) -> str:
        """The share or count of the thresholds at which these models are the lowest, with what it is a share of."""
        if n_evaluated is not None:
            unit = f" of {n_evaluated} evaluated thresholds" if has_unit else ""
            return f"{share_by_names[names] * n_evaluated:.0f}{unit}"
        return f"{100 * share_by_names[names]:.0f}\u00a0%{' of the thresholds' if has_unit else ''}"

    if len(always_lowest) == n_models:
        return f"{join_words(always_lowest)} have the same cost at {everywhere}."
    if always_lowest and len(share_by_names) == 1:
        verb = "has" if len(always_lowest) == 1 else "have"
        return f"{join_words(always_lowest)} {verb} the lowest cost at {everywhere}."
    if always_lowest:
        nowhere = "no threshold" if n_evaluated is None else f"none of {n_evaluated} evaluated thresholds"
        text = f"At {nowhere} is the cost of {join_words(always_lowest)} higher than that of another model"
        if tuple(always_lowest) in share_by_names:  # where no other model is tied with them
            text += f", and strictly the lowest at {format_amount(tuple(always_lowest), n_evaluated is None)}"
        return f"{text}."
    shown_sets = [names for names in order if share_by_names[names] >= MIN_NAMED_SHARE][:MAX_SHARES]
    phrases = []
    for i, names in enumerate(shown_sets):
        label = "all tied" if len(names) == n_models else join_words(names)
        phrases.append(f"{label} ({format_amount(names, has_unit=i == 0)})")
    other_share = sum(share_by_names[names] for names in order if names not in shown_sets)
    if other_share >= MIN_NAMED_SHARE:
        amount = f"{other_share * n_evaluated:.0f}" if n_evaluated else f"{100 * other_share:.0f}\u00a0%"
        phrases.append(f"others ({amount})")
    # Names of tied models contain commas or an "and".
    if any(1 < len(names) < n_models for names in shown_sets):
        return f"Lowest cost: {'; '.join(phrases)}."
    return f"Lowest cost: {join_words(phrases)}."


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
    return format_percent(float(threshold))


def format_score_range(models: Sequence[MurphyModel]) -> str:
    scores = [model.decomposition["score"] for model in models]
    low, high = min(scores), max(scores)
    return f"score {low:.3f}" if len(scores) == 1 else f"score {low:.3f}–{high:.3f}"


class SignSegment(NamedTuple):
    """A range of x in which a difference of curves has one sign."""

    low: float
    high: float
    sign: int  # −1, 0 or 1


def sign_segments(x: Array, difference: Array) -> list[SignSegment]:
    """Divide x into segments in which a piecewise linear difference of two curves has a constant sign.

    The difference is given at the increasing points `x` (m,). Two equal points are a jump.

    >>> segments = sign_segments(np.array([0.0, 1.0, 1.0, 2.0]), np.array([-1.0, 1.0, -2.0, -2.0]))
    >>> [tuple(segment) for segment in segments]
    [(0.0, 0.5, -1), (0.5, 1.0, 1), (1.0, 2.0, -1)]
    """
    segments: list[SignSegment] = []
    points = zip(x, difference, pointwise_signs(difference).tolist(), strict=True)
    for (start, difference_at_start, sign_at_start), (stop, difference_at_stop, sign_at_stop) in pairwise(points):
        if stop <= start:
            continue
        if sign_at_start * sign_at_stop < 0:
            root = float(start + (stop - start) * difference_at_start / (difference_at_start - difference_at_stop))
            _append_segment(segments, float(start), root, sign_at_start)
            _append_segment(segments, root, float(stop), sign_at_stop)
        else:  # where the difference is 0 at one end, it has the sign of the other end
            _append_segment(segments, float(start), float(stop), sign_at_start or sign_at_stop)
    return segments


def _append_segment(segments: list[SignSegment], low: float, high: float, sign: int) -> None:
    """Append a segment, or extend the last one if it has the same sign."""
    if segments and segments[-1].sign == sign:
        low = segments.pop().low
    segments.append(SignSegment(low, high, sign))


def length_with_sign(segments: list[SignSegment], sign: int) -> float:
    """The total length of the segments with that sign."""
    return sum(segment.high - segment.low for segment in segments if segment.sign == sign)


def find_crossings(segments: list[SignSegment]) -> list[float]:
    """Where the sign changes; segments of equality in between are skipped."""
    signed_segments = [segment for segment in segments if segment.sign]
    return [following.low for segment, following in pairwise(signed_segments) if segment.sign != following.sign]


def pointwise_signs(difference: Array) -> Array:
    """The sign of the difference at each point, 0 within rounding error."""
    tolerance = _rounding_tolerance(difference)
    sign: Array = (difference > tolerance).astype(int) - (difference < -tolerance)
    return sign


def _rounding_tolerance(values: Array) -> float:
    """The largest difference of such values that is a rounding error."""
    return RELATIVE_TOLERANCE * max(1.0, float(np.abs(values).max(initial=0.0)))


def lowest_curves(x: Array, curves: Sequence[Array]) -> dict[tuple[int, ...], float]:
    """The length of x on which each set of curves, given by their indices, is lowest; curves that coincide are a set.

    The curves are piecewise linear between the increasing points `x` (m,), where two equal points are a jump.

    >>> lowest_curves(np.array([0.0, 1.0]), [np.array([0.0, 1.0]), np.array([0.75, 0.75]), np.array([0.0, 1.0])])
    {(0, 2): 0.75, (1,): 0.25}
    """
    y = np.stack(curves)
    has_width = np.diff(x) > 0
    y_start, y_stop = y[:, :-1][:, has_width], y[:, 1:][:, has_width]  # (curves, intervals)
    width = np.diff(x)[has_width]
    # Cut each interval where two curves cross. Between the cuts the order of the curves does not change, so that the
    # midpoint determines it. Cuts are fractions of the width of the interval.
    cut_fractions = [np.zeros_like(width), np.ones_like(width)]
    for i, j in combinations(range(len(y)), 2):
        difference_at_start, difference_at_stop = y_start[i] - y_start[j], y_stop[i] - y_stop[j]
        crosses = difference_at_start * difference_at_stop < 0
        change = np.where(crosses, difference_at_start - difference_at_stop, 1.0)
        cut_fractions.append(np.where(crosses, difference_at_start / change, 0.0))
    bounds = np.sort(np.stack(cut_fractions), axis=0)
    centers = (bounds[1:] + bounds[:-1]) / 2
    values = y_start[:, None] + centers * (y_stop - y_start)[:, None]
    return _sum_by_set(values <= values.min(axis=0) + _rounding_tolerance(y), np.diff(bounds, axis=0) * width)


def lowest_curves_at_points(curves: Sequence[Array]) -> dict[tuple[int, ...], float]:
    """The number of points at which each set of curves, given by their indices, is lowest; tied curves are a set.

    >>> lowest_curves_at_points([np.array([0.0, 1.0]), np.array([0.0, 2.0])])
    {(0,): 1.0, (0, 1): 1.0}
    """
    y = np.stack(curves)
    return _sum_by_set(y <= y.min(axis=0) + _rounding_tolerance(y), np.ones(y.shape[1]))


def _sum_by_set(is_lowest: Array, weight: Array) -> dict[tuple[int, ...], float]:
    """Sum `weight` (…) by the set of the curves that are lowest there, the largest sum first.

    `is_lowest` (curves, …) tells which curves are lowest. The keys are the indices of the curves of a set.
    """
    # Bit i of a code is set if curve i belongs to the set.
    set_codes = np.tensordot(1 << np.arange(len(is_lowest)), is_lowest, axes=1).ravel()
    weight_by_set: dict[tuple[int, ...], float] = {}
    for set_code, weight_of_set in enumerate(np.bincount(set_codes, weight.ravel()).tolist()):
        if weight_of_set > 0:
            curve_set = tuple(i for i in range(len(is_lowest)) if set_code >> i & 1)
            weight_by_set[curve_set] = weight_of_set
    return dict(sorted(weight_by_set.items(), key=lambda item: -item[1]))

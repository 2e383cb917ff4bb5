"""Summarize in words which model has the lower Murphy curve, and at which thresholds."""

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
    sign_segments,
    signs,
)
from trueodds.diagrams.murphy.curves import Columns, MurphyModel

SCORE_NAMES = {"brier": "Brier score", "log_loss": "log loss"}
MAX_LISTED = 3  # segments, crossings or thresholds that are listed individually
MAX_SHARES = 5  # shares of the thresholds that are listed
TIE_TOLERANCE = 1e-9  # differences in the number of thresholds up to this are rounding errors
SHARE_TOLERANCE = 1e-9  # shares up to this are rounding errors


def describe_decomposition(model: MurphyModel) -> str:
    """The score of one model and its decomposition."""
    n = model.numbers
    return (
        f"{SCORE_NAMES[model.score]} {format_error(n['score'])} = {format_error(n['mcb'])} miscalibration "
        f"− {format_error(n['dsc'])} discrimination + {format_error(n['unc'])} uncertainty."
    )


def describe_plane(models: Sequence[MurphyModel], scores: Sequence[ModelResult]) -> str:
    """Which model has the best score, and which parts of it."""
    if len(models) == 1:
        return describe_decomposition(models[0])
    mcb, dsc = ([model.numbers[name] for model in models] for name in ("mcb", "dsc"))
    lowest_mcb_names, highest_dsc_names = (
        _sorted_names(models, tied_indices(values, optimum)) for values, optimum in ((mcb, min(mcb)), (dsc, max(dsc)))
    )
    return (
        f"{describe_comparison([model.name for model in models], scores, SCORE_NAMES[models[0].score])} "
        f"Lowest MCB: {lowest_mcb_names} ({format_error(min(mcb))}). "
        f"Highest DSC: {highest_dsc_names} ({format_error(max(dsc))}). "
        f"UNC\u00a0{format_error(models[0].numbers['unc'])}."
    )


def _sorted_names(models: Sequence[MurphyModel], which: Sequence[int]) -> str:
    return join_words(sorted(models[i].name for i in which))


def describe_curves(
    models: Sequence[MurphyModel],
    curves: Sequence[Columns],
    bands: Sequence[Columns],
    scores: Sequence[ModelResult],
    *,
    fixed_thresholds: bool = False,
) -> str:
    """Which model has the lower cost at which thresholds; given thresholds are not interpolated."""
    names = [model.name for model in models]
    if len(models) == 1:
        return describe_one_curve(models[0], curves[0], fixed_thresholds=fixed_thresholds)
    if len(models) == 2:
        band = bands[1] if bands else None
        return (
            describe_two_at_thresholds(names, curves, band)
            if fixed_thresholds
            else describe_two_curves(names, curves, band)
        )
    return describe_many_curves(names, curves, scores, models[0].score, fixed_thresholds=fixed_thresholds)


def describe_one_curve(model: MurphyModel, curve: Mapping[str, Array], *, fixed_thresholds: bool = False) -> str:
    """The threshold at which miscalibration contributes most to the cost of one model."""
    at, n_evaluated = int(np.argmax(curve["mcb"])), len(curve["mcb"])
    if curve["mcb"][at] <= RELATIVE_TOLERANCE:
        there = f" at {_describe_all_thresholds(curve['threshold'])}" if fixed_thresholds else ""
        return f"{describe_decomposition(model)} No monotone recalibration would lower the cost{there}."
    mcb, cost = format_error(float(curve["mcb"][at])), format_error(float(curve["score"][at]))
    where = _format_threshold(curve["threshold"][at])
    if fixed_thresholds:
        lead = (
            f"At the threshold {where}, miscalibration contributes"
            if n_evaluated == 1
            else "Miscalibration contributes most"
        )
        of = "" if n_evaluated == 1 else f" at {where} ({n_evaluated} thresholds evaluated):"
        return f"{describe_decomposition(model)} {lead}{of} {mcb} of the cost {cost}."
    side = "at" if curve["side"][at] == "at" else f"just {curve['side'][at]}"
    return (
        f"{describe_decomposition(model)} Miscalibration contributes most {side} the threshold {where}: {mcb} of the "
        f"cost {cost}."
    )


def describe_two_curves(
    names: Sequence[str], curves: Sequence[Mapping[str, Array]], band: Mapping[str, Array] | None
) -> str:
    """The thresholds at which the better model has the lower cost, significant differences, and crossings."""
    x, difference = curves[0]["threshold"], curves[1]["score"] - curves[0]["score"]
    segments = sign_segments(x, difference)
    less, more = length_with_sign(segments, -1), length_with_sign(segments, 1)
    if less + more == 0:
        return f"{join_words(sorted(names))} have the same cost at every threshold."
    better, sign = _cheaper_model(names, less, more)
    length, crossed = max(less, more), find_crossings(segments)
    span, rest = (x[-1] - x[0]) / 100, min(less, more)
    if abs(less - more) <= TIE_TOLERANCE:
        text = f"{_describe_tie(names)} at {length / span:.0f}\u00a0% of the thresholds"
    else:
        where = "at no threshold a higher cost" if not rest else "a lower cost"
        text = f"{names[better]} has {where} than {names[1 - better]}"
        if rest:
            text += f" at {length / span:.0f}\u00a0% of the thresholds and a higher cost at {rest / span:.0f}\u00a0%"
    if len(crossed) > MAX_LISTED:
        text += f"; the curves cross {len(crossed)} times"
    elif crossed:
        text += f"; the curves cross at {join_words([_format_threshold(threshold) for threshold in crossed])}"
    if band is None or np.isnan(band["beyond"]).all():
        return f"{text}."
    phrases = [_describe_significant_ranges(band, own, word) for own, word in ((sign, "lower"), (-sign, "higher"))]
    return f"{text}. {_describe_significance(names[better], phrases, abs(less - more) <= TIE_TOLERANCE)}"


def describe_two_at_thresholds(
    names: Sequence[str], curves: Sequence[Mapping[str, Array]], band: Mapping[str, Array] | None
) -> str:
    """Describe which of two models has the lower cost at the given thresholds only."""
    x, own = curves[0]["threshold"], signs(curves[1]["score"] - curves[0]["score"])
    less, more = int((own < 0).sum()), int((own > 0).sum())
    if less + more == 0:
        return f"{join_words(sorted(names))} have the same cost at {_describe_all_thresholds(x)}."
    better, sign = _cheaper_model(names, less, more)
    text = f"{names[better]} has a lower cost than {names[1 - better]} at "
    if max(less, more) == len(x):
        text += _describe_all_thresholds(x)
        if len(x) == 1:
            text += (
                f": {format_error(float(curves[better]['score'][0]))} versus"
                f" {format_error(float(curves[1 - better]['score'][0]))}"
            )
    elif less == more:
        phrases = [
            f"{names[better]} at {_list_thresholds(x[own == sign])}",
            f"{names[1 - better]} at {_list_thresholds(x[own == -sign])}",
        ]
        text = f"{_describe_tie(names)} at {less} of {len(x)} evaluated thresholds: {', '.join(phrases)}"
    else:
        text += f"{max(less, more)} of {len(x)} evaluated thresholds"
        text += f", a higher cost at {_list_thresholds(x[own == -sign])}" if min(less, more) else ""
        text += f", the same cost at {_list_thresholds(x[own == 0])}" if (own == 0).any() else ""
    if band is None or np.isnan(band["beyond"]).all():
        return f"{text}."
    hits = [
        (band["threshold"][band["beyond"] == beyond_sign], word)
        for beyond_sign, word in ((sign, "lower"), (-sign, "higher"))
    ]
    # A single threshold is not repeated, because the previous sentence names it.
    phrases = [
        f"{word} {'there' if len(x) == 1 else f'at {_list_thresholds(hit, len(x))}'}" if len(hit) else ""
        for hit, word in hits
    ]
    return f"{text}. {_describe_significance(names[better], phrases, less == more)}"


def _cheaper_model(names: Sequence[str], less: float, more: float) -> tuple[int, int]:
    """The model that is better at more thresholds and the sign of the difference; for ties the first by name."""
    second = names[1] < names[0] if abs(less - more) <= TIE_TOLERANCE else less > more
    return (1, -1) if second else (0, 1)


def _describe_tie(names: Sequence[str]) -> str:
    return f"{join_words(sorted(names))} each have the lower cost"


def _describe_significance(better: str, phrases: Sequence[str], drawn: bool) -> str:
    text = "; ".join(phrase for phrase in phrases if phrase)
    return f"Significant differences: {f'{better} ' if drawn and text else ''}{text or 'none'}."


def _describe_all_thresholds(x: Array) -> str:
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
    scores: Sequence[ModelResult],
    score: str,
    *,
    fixed_thresholds: bool = False,
) -> str:
    """The shares of thresholds at which each model has the lowest cost, and the model with the best score."""
    x, values = curves[0]["threshold"], [curve["score"] for curve in curves]
    weight_by_set = lowest_curves_at_points(values) if fixed_thresholds else lowest_curves(x, values)
    total = sum(weight_by_set.values())
    share_by_models = {tuple(sorted(names[i] for i in some)): weight / total for some, weight in weight_by_set.items()}
    return (
        f"{_describe_lowest_cost(share_by_models, len(names), x if fixed_thresholds else None)} "
        f"{describe_comparison(names, scores, SCORE_NAMES[score])}"
    )


def _describe_lowest_cost(share_by_models: Mapping[tuple[str, ...], float], models: int, points: Array | None) -> str:
    """The models with the lowest cost, with shares of the thresholds or counts of the evaluated ones."""
    everywhere = "every threshold" if points is None else _describe_all_thresholds(points)
    n_evaluated = None if points is None else len(points)
    share_of = {some: weight for some, weight in share_by_models.items() if weight > SHARE_TOLERANCE}
    always = sorted(set.intersection(*map(set, share_of)))
    order = sorted(share_of, key=lambda some: (-round(share_of[some], 12), some))

    def format_amount(some: tuple[str, ...], first: bool) -> str:
        if n_evaluated is not None:
            return f"{share_of[some] * n_evaluated:.0f}{f' of {n_evaluated} evaluated thresholds' if first else ''}"
        return f"{100 * share_of[some]:.0f}\u00a0%{' of the thresholds' if first else ''}"

    if len(always) == models:
        return f"{join_words(always)} have the same cost at {everywhere}."
    if always and len(share_of) == 1:
        return f"{join_words(always)} {'has' if len(always) == 1 else 'have'} the lowest cost at {everywhere}."
    if always:
        alone = tuple(always)
        at = "no threshold" if n_evaluated is None else f"none of {n_evaluated} evaluated thresholds"
        suffix = (
            f", and strictly the lowest at {format_amount(alone, n_evaluated is None)}" if alone in share_of else ""
        )
        return f"At {at} is the cost of {join_words(always)} higher than that of another model{suffix}."
    shown = [some for some in order if share_of[some] >= 0.005][:MAX_SHARES]
    shares = [
        f"{'all tied' if len(some) == models else join_words(some)} ({format_amount(some, some == shown[0])})"
        for some in shown
    ]
    rest = sum(share_of[some] for some in order if some not in shown)
    if rest >= 0.005:
        shares.append(f"others ({rest * n_evaluated:.0f})" if n_evaluated else f"others ({100 * rest:.0f}\u00a0%)")
    # Names of tied models contain commas.
    if any(1 < len(some) < models for some in shown):
        return f"Lowest cost: {'; '.join(shares)}."
    return f"Lowest cost: {join_words(shares)}."


def _describe_significant_ranges(band: Mapping[str, Array], sign: int, word: str) -> str:
    hit = band["beyond"] == sign
    if not hit.any():
        return ""
    at = np.flatnonzero(np.diff(np.concatenate([[0], hit.astype(int), [0]])))
    runs = list(zip(at[::2], at[1::2] - 1, strict=True))
    if len(runs) > MAX_LISTED:
        return f"{word} at {100 * hit.mean():.0f}\u00a0% of the evaluated thresholds"
    x = band["threshold"]
    ranges = [
        (
            _format_threshold(x[a])
            if _format_threshold(x[a]) == _format_threshold(x[b])
            else f"{_format_threshold(x[a])} to {_format_threshold(x[b])}"
        )
        for a, b in runs
    ]
    return f"{word} at {join_words(ranges)}"


def _format_threshold(threshold: float) -> str:
    return styling.format_percent(float(threshold))


def format_score_range(models: Sequence[MurphyModel]) -> str:
    """Format the smallest and the largest mean score of the models."""
    scores = [model.numbers["score"] for model in models]
    low, high = min(scores), max(scores)
    return f"score {low:.3f}" if len(scores) == 1 else f"score {low:.3f}–{high:.3f}"

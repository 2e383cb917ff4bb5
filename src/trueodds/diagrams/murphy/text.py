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
    TOLERANCE,
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
    calm, sharp = (
        _sorted_names(models, tied_indices(values, optimum)) for values, optimum in ((mcb, min(mcb)), (dsc, max(dsc)))
    )
    return (
        f"{describe_comparison([model.name for model in models], scores, SCORE_NAMES[models[0].score])} "
        f"Lowest MCB: {calm} ({format_error(min(mcb))}). Highest DSC: {sharp} ({format_error(max(dsc))}). "
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
    at, looked = int(np.argmax(curve["mcb"])), len(curve["mcb"])
    if curve["mcb"][at] <= TOLERANCE:
        there = f" at {_all_thresholds(curve['threshold'])}" if fixed_thresholds else ""
        return f"{describe_decomposition(model)} No monotone recalibration would lower the cost{there}."
    mcb, cost = format_error(float(curve["mcb"][at])), format_error(float(curve["score"][at]))
    where = _format_threshold(curve["threshold"][at])
    if fixed_thresholds:
        lead = (
            f"At the threshold {where}, miscalibration contributes"
            if looked == 1
            else "Miscalibration contributes most"
        )
        of = "" if looked == 1 else f" at {where} ({looked} thresholds evaluated):"
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
        text = f"{_both_cheaper(names)} at {length / span:.0f}\u00a0% of the thresholds"
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
    phrases = [_beyond_ranges(band, own, word) for own, word in ((sign, "lower"), (-sign, "higher"))]
    return f"{text}. {_beyond_chance(names[better], phrases, abs(less - more) <= TIE_TOLERANCE)}"


def describe_two_at_thresholds(
    names: Sequence[str], curves: Sequence[Mapping[str, Array]], band: Mapping[str, Array] | None
) -> str:
    """Describe which of two models has the lower cost at the given thresholds only."""
    x, own = curves[0]["threshold"], signs(curves[1]["score"] - curves[0]["score"])
    less, more = int((own < 0).sum()), int((own > 0).sum())
    if less + more == 0:
        return f"{join_words(sorted(names))} have the same cost at {_all_thresholds(x)}."
    better, sign = _cheaper_model(names, less, more)
    text = f"{names[better]} has a lower cost than {names[1 - better]} at "
    if max(less, more) == len(x):
        text += _all_thresholds(x)
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
        text = f"{_both_cheaper(names)} at {less} of {len(x)} evaluated thresholds: {', '.join(phrases)}"
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
    return f"{text}. {_beyond_chance(names[better], phrases, less == more)}"


def _cheaper_model(names: Sequence[str], less: float, more: float) -> tuple[int, int]:
    """The model that is better at more thresholds and the sign of the difference; for ties the first by name."""
    second = names[1] < names[0] if abs(less - more) <= TIE_TOLERANCE else less > more
    return (1, -1) if second else (0, 1)


def _both_cheaper(names: Sequence[str]) -> str:
    return f"{join_words(sorted(names))} each have the lower cost"


def _beyond_chance(better: str, phrases: Sequence[str], drawn: bool) -> str:
    text = "; ".join(phrase for phrase in phrases if phrase)
    return f"Significant differences: {f'{better} ' if drawn and text else ''}{text or 'none'}."


def _all_thresholds(x: Array) -> str:
    if len(x) == 1:
        return f"the threshold {_format_threshold(x[0])}"
    return f"{'both' if len(x) == 2 else f'all {len(x)}'} evaluated thresholds"


def _list_thresholds(x: Array, looked: int | None = None) -> str:
    """Few thresholds by value, many by their count."""
    if looked is not None and len(x) == looked:
        return "both" if looked == 2 else f"all {looked}"
    return (
        join_words([_format_threshold(threshold) for threshold in x])
        if len(x) <= MAX_LISTED
        else f"{len(x)}{f' of {looked}' if looked else ''}"
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
    won = {tuple(sorted(names[i] for i in some)): weight / total for some, weight in weight_by_set.items()}
    return (
        f"{_lowest_cost(won, len(names), x if fixed_thresholds else None)} "
        f"{describe_comparison(names, scores, SCORE_NAMES[score])}"
    )


def _lowest_cost(won: Mapping[tuple[str, ...], float], models: int, points: Array | None) -> str:
    """The models with the lowest cost, with shares of the thresholds or counts of the evaluated ones."""
    everywhere = "every threshold" if points is None else _all_thresholds(points)
    looked = None if points is None else len(points)
    share_of = {some: weight for some, weight in won.items() if weight > SHARE_TOLERANCE}
    always = sorted(set.intersection(*map(set, share_of)))
    order = sorted(share_of, key=lambda some: (-round(share_of[some], 12), some))

    def much(some: tuple[str, ...], first: bool) -> str:
        if looked is not None:
            return f"{share_of[some] * looked:.0f}{f' of {looked} evaluated thresholds' if first else ''}"
        return f"{100 * share_of[some]:.0f}\u00a0%{' of the thresholds' if first else ''}"

    if len(always) == models:
        return f"{join_words(always)} have the same cost at {everywhere}."
    if always and len(share_of) == 1:
        return f"{join_words(always)} {'has' if len(always) == 1 else 'have'} the lowest cost at {everywhere}."
    if always:
        alone = tuple(always)
        at = "no threshold" if looked is None else f"none of {looked} evaluated thresholds"
        suffix = (
            f", and strictly the lowest at {much(alone, True) if looked is None else much(alone, False)}"
            if alone in share_of
            else ""
        )
        return f"At {at} is the cost of {join_words(always)} higher than that of another model{suffix}."
    shown = [some for some in order if share_of[some] >= 0.005][:MAX_SHARES]
    shares = [
        f"{'all tied' if len(some) == models else join_words(some)} ({much(some, some == shown[0])})" for some in shown
    ]
    rest = sum(share_of[some] for some in order if some not in shown)
    if rest >= 0.005:
        shares.append(f"others ({rest * looked:.0f})" if looked else f"others ({100 * rest:.0f}\u00a0%)")
    # Names of tied models contain commas.
    if any(1 < len(some) < models for some in shown):
        return f"Lowest cost: {'; '.join(shares)}."
    return f"Lowest cost: {join_words(shares)}."


def _beyond_ranges(band: Mapping[str, Array], sign: int, word: str) -> str:
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

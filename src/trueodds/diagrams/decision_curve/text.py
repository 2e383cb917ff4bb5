"""Describe in words at which thresholds a model has a higher net benefit than treating everyone and no one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.diagrams._style.formatting import format_range, format_share, join_words
from trueodds.diagrams.model_styles import sentence_name

MIN_RELATIVE_WIDTH = 0.2  # ranges of thresholds narrower than this share of the widest range are not named
MAX_RANGES = 2  # largest number of ranges of thresholds that a sentence names: the widest ones
TIE_TOLERANCE = 1e-12  # net benefits whose difference is smaller count as equal


def threshold_ranges(thresholds: Array, mask: Array) -> list[tuple[float, float]]:
    """The ranges of successive thresholds at which a condition holds.

    >>> threshold_ranges(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True]))
    [(0.1, 0.2), (0.4, 0.4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask).astype(int), [0]])))
    return [(float(thresholds[a]), float(thresholds[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def format_ranges(thresholds: Array, mask: Array) -> str:
    """The widest ranges of thresholds at which a condition holds, as a phrase; empty if there are none.

    >>> format_ranges(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True])).replace("\u00a0", " ")
    'mainly from 10 % to 20 %'
    """
    ranges = threshold_ranges(thresholds, mask)
    if not ranges:
        return ""
    by_width = sorted(ranges, key=lambda ends: ends[0] - ends[1])
    min_width = MIN_RELATIVE_WIDTH * (by_width[0][1] - by_width[0][0])
    shown = sorted(ends for ends in by_width[:MAX_RANGES] if ends[1] - ends[0] >= min_width)
    return f"{'mainly ' if len(shown) < len(ranges) else ''}{join_words([format_range(*ends) for ends in shown])}"


def describe_one_model(name: str, curve: Mapping[str, Array], level: float) -> str:
    """Describe where the net benefit of a model exceeds that of both default strategies, and where significantly."""
    x, max_default = curve["threshold"], np.maximum(curve["treat_all"], 0.0)
    model = name or "The model"
    is_higher = curve["net_benefit"] > max_default + TIE_TOLERANCE
    ranges_higher = format_ranges(x, is_higher)
    text = f"{model} has a higher net benefit than treating all and treating none {ranges_higher or 'at no threshold'}"
    if np.isnan(curve["low"]).all():
        return f"{text}."
    ranges_significantly_higher = format_ranges(x, curve["beyond"] > 0)
    if ranges_significantly_higher and ranges_higher:
        text += f"; significantly ({100 * level:.4g}\u00a0%, pointwise) {ranges_significantly_higher}"
    elif ranges_higher:
        text += "; nowhere significantly"
    ranges_significantly_lower = format_ranges(x, curve["beyond"] < 0)
    if ranges_significantly_lower:
        return f"{text}. Significantly lower than one of them {ranges_significantly_lower}."
    return f"{text}."


def describe_several_models(names: Sequence[str], curves: Sequence[Mapping[str, Array]]) -> str:
    """Describe the share of the thresholds at which each model, or a default strategy, has the highest net benefit."""
    default = np.maximum(curves[0]["treat_all"], 0.0)
    values = np.stack([default, *(curve["net_benefit"] for curve in curves)])
    is_highest = values >= values.max(axis=0) - TIE_TOLERANCE
    # Where treating all or none is as good, no model is needed.
    is_highest[1:] &= ~is_highest[0]
    n_ties = is_highest.sum(axis=0)
    shares = (is_highest / n_ties).mean(axis=1)
    labels = ["treating all or none", *map(sentence_name, names)]
    order = sorted(range(len(labels)), key=lambda i: (-round(float(shares[i]), 12), labels[i]))
    phrases = [f"{labels[i]} ({100 * shares[i]:.0f}\u00a0%)" for i in order if shares[i] >= 0.005]
    phrases[0] = phrases[0].replace(")", " of the thresholds)")
    return f"Highest net benefit: {join_words(phrases)}."


def describe_share_of_thresholds(curve: Mapping[str, Array]) -> str:
    """Name the share of thresholds at which the model is better than both default strategies, in a short phrase."""
    is_higher = curve["net_benefit"] > np.maximum(curve["treat_all"], 0.0) + TIE_TOLERANCE
    return f"higher at {format_share(float(is_higher.mean()))} of thresholds"

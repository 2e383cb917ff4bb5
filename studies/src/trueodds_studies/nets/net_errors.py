"""How far off is one net, by uniform bins and by trees, in total variation and in squares, and is that chance?"""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.api.verbs import draw, measure, test
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens import as_lens
from trueodds_studies.nets.catalog import Net, groups

PARTITIONS: dict[str, dict[str, Any]] = {
    "uniform 10": {"partition": "uniform", "bins": 10},
    "tree, 100 rows": {"partition": "median-variance", "min_size": 100},
    "tree, 10 rows": {"partition": "median-variance", "min_size": 10},
}
"""Ten equal parts of each probability, and trees that cut at the median of the class of largest variance."""

DISTANCES = ("tv", "sq-euclidean")


def lenses(net: Net) -> dict[str, str]:
    """What can be looked at: of one dimension, of two, and all classes; each once."""
    by_dimension = {"confidence": "confidence"}
    if net.has_class_probs and net.classes > 3:
        by_dimension["groups"] = groups(net.classes)
    if net.has_class_probs:
        by_dimension["canonical"] = "canonical"
    return by_dimension


def error_rows(net: Net, preds: Predictions, resamples: int, redraws: int, seed: int) -> list[dict[str, Any]]:
    """A row per lens, partition and distance: the error, its interval, its noise floor, and p."""
    rows = []
    for dimension, lens in lenses(net).items():
        for bins, settings in PARTITIONS.items():
            for distance in DISTANCES:
                own = {"lens": lens, "distance": distance, **settings}
                answer = measure(preds, "ece", resamples=resamples, rng=seed, **own)
                verdict = test(preds, "consistency", statistic="ece", resamples=redraws, rng=seed, **own)
                rows.append(
                    {
                        "lens": dimension,
                        "bins": bins,
                        "distance": distance,
                        "value": answer.value,
                        "low": None if answer.interval is None else answer.interval.low,
                        "high": None if answer.interval is None else answer.interval.high,
                        "floor": answer.noise_floor,
                        "p": verdict.pvalue,
                    }
                )
    return rows


def outside(preds: Predictions, level: float) -> dict[str, dict[str, int]]:
    """How many bins of the confidence lie outside the bars of a calibrated model, by ten bins and by a tree."""
    counts = {}
    for label, bins in (("uniform", "uniform 10"), ("tree", "tree, 100 rows")):
        panels = draw(preds, "reliability", lens="confidence", level=level, **PARTITIONS[bins]).panels
        counts[label] = {
            name: int(panels[column][0]) for name, column in (("outside", "bins_outside"), ("bins", "bins"))
        }
    return counts


def frequent(net: Net, preds: Predictions) -> dict[str, Any] | None:
    """The mean distance in the three fullest of 25 cells of the triangle, and in the others, weighted by rows.

    `beyond` is how many cells stray more than chance explains, `beyond there` how many of the three fullest do.
    """
    if not (net.has_class_probs and net.classes >= 3):
        return None
    lens = "canonical" if net.classes == 3 else groups(net.classes)
    table = draw(preds, "simplex", lens=lens, partition="simplex-grid", bins=5).table
    order = np.argsort(-table["share"], kind="stable")
    full, rest = order[:3], order[3:]
    if not len(rest):
        return None
    there, elsewhere = (
        float((table["share"][part] * table["distance"][part]).sum() / table["share"][part].sum())
        for part in (full, rest)
    )
    beyond = {"beyond": int(table["beyond"].sum()), "beyond there": int(table["beyond"][full].sum())}
    return {"there": there, "elsewhere": elsewhere, **beyond, "cells": len(order)}


def right(preds: Predictions) -> tuple[float, float]:
    """How often the likeliest class comes, and how sure the net is of it on average."""
    (view,) = as_lens("confidence").views(preds)
    return float(view.y.mean()), float(view.p.mean())

"""Which estimator for which number of rows and purpose? By rule from the numbers, with those that cannot be told from the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.trajectories.collected import Trajectories
from trueodds_studies.trajectories.estimator_variants import LENSES, VARIANTS

BANDS = ((30, 100), (100, 500), (500, 1500), (1500, 5000))
PURPOSES = ("single number", "ranking", "test of 0")
DEFAULTS = ("ece", "ece_linear", "ece_kde", "debiased_l1")  # of which the numbers are shown
PLAIN = {label for label, variant in VARIANTS.items() if variant.kind == "ours" and not variant.settings}
SHOWN = 5  # of those that cannot be told from the best


def rows(of: Trajectories) -> list[dict[str, Any]]:
    """One row per lens, band of sizes and purpose.

    Single number: least RMSE against the mean distance, the median over trajectories; the constant 0 takes part.
    Ranking: largest mean share of pairs in order. Test of 0: largest mean power at 5 %, of those that see all
    resamples. Over the sizes of a band the mean counts. Those are level with the best whose difference from it has 95 %
    limits, over distributions, that hold 0.
    """
    questions = [(lens, band, purpose) for lens in LENSES for band in BANDS for purpose in PURPOSES]
    table = []
    for lens, (low, high), purpose in questions:
        at = [i for i, n in enumerate(of.sizes) if low <= n <= high]
        row = _recommend(of, lens, at, purpose) if at else None
        table += [{"lens": lens, "n": f"{low} to {high}", "purpose": purpose, **row}] if row else []
    return table


def _recommend(of: Trajectories, lens: str, at: Sequence[int], purpose: str) -> dict[str, Any] | None:
    values, average = _values(of, lens, at, purpose)
    if not values:
        return None
    names = list(values)
    sign = 1.0 if purpose == "single number" else -1.0
    table = np.stack([values[name] for name in names], axis=-1)  # (trajectories, sizes, members)
    first = int(np.argmin(sign * average(table, axis=0).mean(axis=0)))
    score, low, high = of.limits(table, lambda x, axis: _and_behind(average(x, axis=axis).mean(axis=0), first))
    (score, _), (low, below), (high, above) = score, low, high
    level = [names[i] for i in np.argsort(sign * score) if below[i] <= 0 <= above[i] and i != first]
    real = [i for i in np.argsort(sign * score) if names[i] != "0"]
    default_positions = {name: names.index(name) for name in DEFAULTS if name in names}
    default_texts = [
        f"{name} {score[i]:.3g}{' (level)' if name in level or i == first else ''}"
        for name, i in default_positions.items()
    ]
    return {
        "take": names[first], "value": float(score[first]), "low": float(low[first]), "high": float(high[first]),
        "level": ", ".join(level[:SHOWN]) + (f" and {len(level) - SHOWN} more" if len(level) > SHOWN else ""),
        "best but 0": names[real[0]], "its value": float(score[real[0]]),
        "defaults": ", ".join(default_texts), "agree": not PLAIN.isdisjoint({names[first], *level}),
    }  # fmt: skip


def _and_behind(score: Array, first: int) -> Array:
    return np.stack([score, score - score[first]])


def _values(of: Trajectories, lens: str, at: Sequence[int], purpose: str) -> tuple[dict[str, Array], Any]:
    """By member (trajectories or cells, sizes); those that have a number at each of these sizes."""
    values = {}
    for label in of.labels(lens):
        if VARIANTS[label].kind == "swapped" or (purpose == "single number" and VARIANTS[label].target != "l1"):
            continue
        if purpose == "test of 0" and VARIANTS[label].slow:  # of few draws no quantile has the level of the others'
            continue
        if purpose == "single number":
            every = of.rmse(lens, label)
        else:
            every = of.right(lens, label) if purpose == "ranking" else of.stat(lens, label, "power")
        selected = every[:, at]
        selected = selected[:, ~np.isnan(selected).all(axis=0)]
        expected = len(at) if purpose != "test of 0" else selected.shape[1]
        if selected.size and selected.shape[1] == expected and not np.isnan(selected).any():
            values[label] = selected
    n_sizes = max((v.shape[1] for v in values.values()), default=0)
    values = {label: v for label, v in values.items() if v.shape[1] == n_sizes}
    return values, np.median if purpose == "single number" else np.mean


def sentence(results: Sequence[dict[str, Any]]) -> str:
    """Whether the defaults of the library agree."""
    agree = [row for row in results if row["agree"]]
    away = [
        f"{row['purpose']} through {row['lens']}, n {row['n']}: {row['take']}" for row in results if not row["agree"]
    ]
    zero = sum(row["take"] == "0" for row in results if row["purpose"] == "single number")
    n_bands = sum(row["purpose"] == "single number" for row in results)
    text = f"In {len(agree)} of {len(results)} cases an estimator without settings is the best or level with it"
    text += f"; not for {'; '.join(away)}." if away else "."
    return f"{text} As a single number the constant 0 comes closest in {zero} of {n_bands} bands of sizes."

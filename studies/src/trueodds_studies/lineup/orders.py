"""Which order does a measure put the models in, which of it is settled, and how does it change with the rows?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from trueodds.api.comparing import compare
from trueodds.core.typing import Array
from trueodds_studies.lineup.measures import MEASURES, Measure, Models


def rank_models(measure_name: str, nets: Models, draws: int, resamples: int, seed: int) -> dict[str, Any]:
    """A measure's numbers for every model, their order with all pairs, and the numbers in halves of the rows."""
    one = MEASURES[measure_name]
    order = compare(dict(nets), one.name, lens=one.lens, resamples=resamples, rng=seed, **one.settings)
    settled = {frozenset(pair) for pair in order.settled}
    models = []
    for name, result in order.models.items():
        row: dict[str, Any] = {"net": name, "value": result.value, "floor": result.noise_floor}
        row |= {"low": None, "high": None}
        if result.interval is not None:
            row |= {"low": result.interval.low, "high": result.interval.high}
        models.append(row)
    pairs = []
    for result in order.pairs:
        between = result.interval
        pairs.append(
            {
                "pair": list(result.names),
                "difference": result.difference,
                "low": None if between is None else between.low,
                "high": None if between is None else between.high,
                "settled": frozenset(result.names) in settled,
            }
        )
    return {
        "measure": measure_name,
        "n": order.n,
        "models": models,
        "pairs": pairs,
        "halves": in_halves(one, nets, draws, seed).tolist(),
    }


def in_halves(one: Measure, nets: Models, draws: int, seed: int) -> Array:
    """The measure of every model in random halves of the rows, (draws, models): the same halves for all.

    A mean over half of the rows, drawn without replacement, scatters about that over all rows just as the mean of a
    fresh test set of all rows would about the truth. No row comes twice, which a bootstrap's rows do, and which makes
    a debiased square biased again.
    """
    n = next(iter(nets.values())).n
    values = []
    for number in range(draws):
        rows = half(n, seed, number)
        values.append([one.of(preds[rows]) for preds in nets.values()])
    return np.array(values)


def half(n: int, seed: int, number: int) -> Array:
    """Half of the rows, in their order.

    >>> len(half(10, 0, 0)), half(10, 0, 0).tolist() == half(10, 0, 0).tolist()
    (5, True)
    """
    return np.sort(np.random.default_rng([seed, 2, number]).choice(n, n // 2, replace=False))


def signs(values: Array) -> Array:
    """Of every two models, which has the larger number: −1, 0 or 1, (…, pairs), in the order of `combinations`."""
    first, second = np.array(list(combinations(range(values.shape[-1]), 2))).T
    return np.sign(values[..., first] - values[..., second])


def tau(a: Array, b: Array) -> Array:
    """Kendall's tau of two orders: the share of pairs that both put alike less that of those they do not.

    >>> float(tau(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0])).round(3))
    0.333
    """
    return np.asarray((signs(a) * signs(b)).mean(axis=-1))


def flips(all_rows: Array, halves: Array) -> Array:
    """How often each pair stands the other way round in the halves."""
    return np.asarray((signs(halves) != signs(all_rows)).mean(axis=0))

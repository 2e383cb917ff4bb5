"""How large is each model's error, how large would noise alone make it, and how far is it from the first model's?"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.diagrams.models.lineup import Models, called
from trueodds.estimators.base import Estimator
from trueodds.lenses.lens import Lens
from trueodds.resampling.comparing.pairs import Pair
from trueodds.resampling.comparing.rankings import Joint
from trueodds.resampling.comparing.sameness import same_rows
from trueodds.resampling.comparing.sides import Side
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.interval_spec import IntervalSpec
from trueodds.resampling.measured import measured

UNKNOWN = float("nan")


@dataclass(frozen=True)
class ModelResult:
    """One model's error with its interval and floor, and its difference to the first model: negative is better."""

    error: float = UNKNOWN
    error_low: float = UNKNOWN
    error_high: float = UNKNOWN
    noise_floor: float = UNKNOWN
    difference: float = UNKNOWN
    difference_low: float = UNKNOWN
    difference_high: float = UNKNOWN

    @property
    def settled(self) -> int:
        """−1 where it is less off than the first model beyond chance, 1 where it is more off, else 0."""
        return int(self.difference_low > 0) - int(self.difference_high < 0)


def measure_models(
    models: Models, estimator: Estimator, lens: Lens, interval_spec: IntervalSpec, paired: bool | None, seed: int
) -> tuple[list[ModelResult], list[Note]]:
    """Each model's standing; the intervals of the differences hold together at the level of `interval_spec`.

    On the same rows models are resampled together; models of other rows are compared as other samples, and tallies,
    which do not keep their rows, not at all. Notes say which.
    """
    notes: list[Note] = []
    sides: list[Side] = []
    estimates: list[Estimate] = []
    for number, (name, rows) in enumerate(models.items()):
        if not isinstance(rows, Predictions):
            rng = np.random.default_rng([seed, number])
            estimates.append(measured(rows, estimator, lens, lens.aggregate, interval_spec, rng))
            continue
        key = [seed] if number == 0 else [seed, number]
        if sides:
            same, why = same_rows(sides[0].preds, rows, paired)
            key = list(sides[0].key) if same else key
            if why and not same:
                text = f"{called(sides[0].name)} and {called(name)} are compared as samples of different rows: {why}. If they are the same rows, bring them into one order and pass paired=True."
                notes.append(Note("TN263", text))
        sides.append(
            Side(name, rows, Estimand.of(estimator, lens, rows, lens.aggregate), interval_spec, key, [2**20 + number])
        )
        estimates.append(sides[-1].estimate)
    results = [_alone(estimate) for estimate in estimates]
    if len(sides) < len(models):
        if len(models) > 1:
            text = "Of a tally no difference between models is told: it does not keep how they vary from row to row."
            notes.append(Note("TN263", text))
        return results, notes
    pairs = [Pair(side, sides[0]) for side in sides[1:]]
    pair_level = Joint(pairs).level(interval_spec.level) if pairs else interval_spec.level
    return [results[0], *(_beside(one, pair, pair_level) for one, pair in zip(results[1:], pairs, strict=True))], notes


def _alone(estimate: Estimate) -> ModelResult:
    interval, noise_floor = estimate.interval, estimate.noise_floor
    low, high = (interval.low, interval.high) if interval else (UNKNOWN, UNKNOWN)
    return ModelResult(estimate.value, low, high, UNKNOWN if noise_floor is None else noise_floor)


def _beside(one: ModelResult, pair: Pair, level: float) -> ModelResult:
    interval = pair.interval(level) if math.isfinite(pair.value) else None
    low, high = (interval.low, interval.high) if interval else (UNKNOWN, UNKNOWN)
    return ModelResult(one.error, one.error_low, one.error_high, one.noise_floor, pair.value, low, high)

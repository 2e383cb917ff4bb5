"""How do decision costs vary from sample to sample? Rows drawn with replacement, the same ones for models of the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.binning.by_score import by_score
from trueodds.core.typing import Array
from trueodds.diagrams.models.elementary import costs, places
from trueodds.kernels.resample import Resampler
from trueodds.lenses.view import View
from trueodds.resampling.resamples import Resamples


def by_rows(
    views: Sequence[View], cluster: Array | None, thresholds: Array, resamples: int, rng: np.random.Generator
) -> list[Array]:
    """Costs of resamples of the same rows for each of these views, (resamples, thresholds); clusters stay whole."""
    size = 2 * len(thresholds) + 1
    slots = np.stack([places(view.p, thresholds) + i * size for i, view in enumerate(views)], axis=1)
    mass = np.stack([view.w for view in views], axis=1)
    events = np.stack([view.w * view.y for view in views], axis=1)
    resampler = Resampler(slots, mass, np.zeros_like(mass), events, size * len(views), cluster)

    def of(times: Array) -> list[Array]:
        w, _, wy = resampler.sums(times)
        cost_draws = []
        for i in range(len(views)):
            columns = slice(i * size, (i + 1) * size)
            # A resample whose rows all have weight 0 says nothing.
            mask = w[:, columns].sum(axis=1) > 0
            cost_draws.append(costs(w[mask, columns], wy[mask, columns], thresholds))
        return cost_draws

    blocks = Resamples(len(mass), cluster, resamples, rng).mapped(of, resampler.size)
    return [np.concatenate(draws) for draws in zip(*blocks, strict=True)]


def by_cells(view: View, thresholds: Array, resamples: int, rng: np.random.Generator) -> Array:
    """The same from the sums of a tally: outcomes by place, drawn for as many rows as the weights are worth."""
    size = 2 * len(thresholds) + 1
    s, w, wy = by_score(view).sums()
    place = places(s, thresholds)
    events, nonevents = np.bincount(place, wy, size), np.bincount(place, w - wy, size)
    share = np.clip(np.concatenate([events, nonevents]), 0.0, None)
    drawn = rng.multinomial(max(1, round(view.effective_n)), share / share.sum(), size=resamples).astype(np.float64)
    return costs(drawn[:, :size] + drawn[:, size:], drawn[:, :size], thresholds)

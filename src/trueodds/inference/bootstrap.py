"""How the statistic varies from sample to sample: rows, clusters or cells drawn with replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.core.kernels.resample import Resampler
from trueodds.estimators.base import Linear, Mean
from trueodds.inference.asked import Asked, Layout, by_asked
from trueodds.problem.predictions import Predictions
from trueodds.problem.view import View

Array = NDArray[Any]
Draws = tuple[Array, Array, Array]  # Σw (draws, bins), Σwp and Σwy (draws, bins[, m])

ROWS_AT_MOST = 200_000  # beyond, multinomial counts over bins and outcomes: the cost of bins, not of rows


@dataclass(frozen=True)
class Resampled:
    """What the resamples gave for one question."""

    values: Array  # (views, draws): the statistic of each view
    spread: Array | None  # (views, draws): the error's norm of (residuals of the draw − observed residuals)
    how: str


def bootstrap(
    preds: Predictions, asked: Sequence[Asked], resamples: int, rng: np.random.Generator, resample: str = "auto"
) -> list[Resampled]:
    """Every question on one set of resamples; rows carry their weights, clusters stay whole.

    Partitions chosen without labels are held fixed. Rows are drawn as `rng.integers(0, n, (resamples, n))`.
    """
    found: dict[int, Resampled] = {}
    if resample == "auto" and preds.cluster is None:
        for i, each in enumerate(asked):
            if (own := each.estimator.resampled(each.views, resamples, rng)) is not None:
                found[i] = Resampled(own[0], None, own[1])
    left = [i for i in range(len(asked)) if i not in found]
    means = [i for i in left if isinstance(asked[i].estimator, Mean)]
    linear = [i for i in left if i not in means and asked[i].linear is not None]
    others = [i for i in left if i not in means and i not in linear]
    if resample == "cells" and preds.cluster is not None:
        raise InputError(
            "TO205",
            "Cells take rows as independent, and these come in clusters.",
            "resample='cells'",
            "Leave resample out: clusters are resampled whole.",
        )
    if resample == "cells" and any(len(asked[i].views) > 1 for i in linear):
        raise InputError(
            "TO205",
            "Cells do not keep how classes vary together.",
            "resample='cells' with several views",
            "Use resample='rows', or a lens with one view.",
        )
    cells = resample == "cells" or (resample == "auto" and preds.n > ROWS_AT_MOST and preds.cluster is None)
    if cells:
        for i in linear:
            found[i] = from_cells(asked[i], resamples, rng)
        linear = []
    by_rows = means + linear + others
    if by_rows:
        found.update(zip(by_rows, _by_rows(preds, asked, means, linear, others, resamples, rng), strict=True))
    return [found[i] for i in range(len(asked))]


def _by_rows(
    preds: Predictions,
    asked: Sequence[Asked],
    means: list[int],
    linear: list[int],
    others: list[int],
    resamples: int,
    rng: np.random.Generator,
) -> list[Resampled]:
    how = "rows" if preds.cluster is None else "clusters"
    scores = [Scores(asked[i]) for i in means]
    bins = Bins([asked[i] for i in linear]) if linear else None
    block = min(64, bins.layout.block if bins else 64)
    values: dict[int, list[Array]] = {i: [] for i in means + linear + others}
    spreads: dict[int, list[Array]] = {i: [] for i in linear}
    for start in range(0, resamples, block):
        rows = _drawn_rows(preds, min(block, resamples - start), rng)
        for i, score in zip(means, scores, strict=True):
            values[i].append(score.of(rows))
        if bins:
            for i, (value, spread) in zip(linear, bins.of(rows), strict=True):
                values[i].append(value)
                if spread is not None:
                    spreads[i].append(spread)
        for i in others:
            values[i].append(
                np.stack([[asked[i].estimator.value(v.take(r)) for v in asked[i].views] for r in rows], axis=1)
            )
    return [
        Resampled(
            np.concatenate(values[i], axis=1), np.concatenate(spreads[i], axis=1) if spreads.get(i) else None, how
        )
        for i in means + linear + others
    ]


def _drawn_rows(preds: Predictions, count: int, rng: np.random.Generator) -> Array | list[Array]:
    if preds.cluster is None:
        return rng.integers(0, preds.n, (count, preds.n))
    order = np.argsort(preds.cluster, kind="stable")
    sizes = np.bincount(preds.cluster)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    drawn = rng.integers(0, len(sizes), (count, len(sizes)))
    return [np.concatenate([order[starts[g] : starts[g + 1]] for g in one]) for one in drawn]


class Scores:
    """A mean of one score per row, resampled."""

    def __init__(self, asked: Asked) -> None:
        self.w = asked.views[0].w
        assert isinstance(asked.estimator, Mean)
        self.scores = [self.w * asked.estimator.rows(view) for view in asked.views]

    def of(self, rows: Array | list[Array]) -> Array:
        """The mean of each view and resample, (views, draws)."""
        return np.array([[float(score[r].sum()) / float(self.w[r].sum()) for r in rows] for score in self.scores])


class Bins:
    """Statistics on fixed bins, resampled through one array of accumulators."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = asked
        self.layout = Layout(asked)
        said, seen = self.layout.said_and_seen()
        self.resampler = Resampler(self.layout.slots(), self.layout.views[0].w, said, seen, self.layout.size)
        self.observed = self.layout.observed()

    def of(self, rows: Array | list[Array]) -> list[tuple[Array, Array | None]]:
        """Value and spread of each question for these resamples."""
        if isinstance(rows, np.ndarray):
            sums = self.resampler.sums(rows)
        else:  # whole clusters: resamples of unequal length
            sums = np.concatenate([self.resampler.sums(r[None]) for r in rows], axis=1)
        w = self.layout.masses(sums[0])
        wp, wy = self.layout.shaped(sums[1]), self.layout.shaped(sums[2])
        values, spreads = [], []
        for v, one in enumerate(self.layout.linear):
            values.append(one.statistic(w[v], wp[v], wy[v]))
            spreads.append(_spread(one, tuple(each[v] for each in self.observed), (w[v], wp[v], wy[v])))
        out: list[tuple[Array, Array | None]] = []
        start = 0
        for each, value in zip(self.asked, by_asked(self.asked, values), strict=True):
            mine = spreads[start : start + len(each.views)]
            start += len(each.views)
            out.append(
                (value, None if any(one is None for one in mine) else np.stack([m for m in mine if m is not None]))
            )
        return out


def _spread(one: Linear, observed: tuple[Array, ...], draws: tuple[Array, Array, Array]) -> Array | None:
    w, wp, wy = observed
    return one.spread(w[0], wp[0], wy[0], draws)


def from_cells(asked: Asked, resamples: int, rng: np.random.Generator) -> Resampled:
    """Resamples of each view's bins: multinomial counts over bins and outcomes, Σp normal from its moments.

    Weighted, fractional or joint bins have their residual sums drawn as normal with the (co)variance that the
    rows had.
    """
    values, spreads = [], []
    for view, one in zip(asked.views, asked.linear or (), strict=True):
        pooled = view.pool(one.index, one.size)
        slots = np.unique(one.index[view.w > 0])
        small = _joint_draws(view, one, pooled, resamples, rng) if view.joint else _binary_draws(pooled, resamples, rng)
        w, wp, wy = (_widened(x, slots, one.size) for x in small)
        observed = [_widened(x[None], slots, one.size) for x in _sums(pooled)]
        values.append(one.statistic(w, wp, wy))
        spreads.append(one.spread(observed[0][0], observed[1][0], observed[2][0], (w, wp, wy)))
    spread = None if any(s is None for s in spreads) else np.stack([s for s in spreads if s is not None])
    return Resampled(np.stack(values), spread, "cells")


def _sums(pooled: View) -> tuple[Array, Array, Array]:
    w = pooled.w[:, None] if pooled.joint else pooled.w
    return pooled.w, w * pooled.p, w * pooled.y


def _widened(x: Array, slots: Array, size: int) -> Array:
    out = np.zeros((len(x), size, *x.shape[2:]))
    out[:, slots] = x
    return out


def _binary_draws(pooled: View, resamples: int, rng: np.random.Generator) -> Draws:
    n, w, p, y = pooled.n, pooled.w, pooled.p, pooled.y
    seen = w * y
    hard = np.array_equal(n, w) and np.allclose(seen, np.rint(seen), rtol=0, atol=1e-6)
    if not hard:
        ww = pooled.sums("ww")
        mass = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
        residual = w * (y - p)
        left = np.maximum(pooled.sums("wwr") - residual**2 * ww / w**2, 0.0)
        drawn = residual * mass / w + np.sqrt(left) * rng.standard_normal((resamples, len(w)))
        return mass, p * mass, p * mass + drawn
    yes = np.rint(seen)
    no = n - yes
    total = round(float(n.sum()))
    counts = rng.multinomial(total, np.concatenate([yes, no]) / total, size=resamples).astype(np.float64)
    yes_drawn, no_drawn = counts[:, : len(n)], counts[:, len(n) :]
    with np.errstate(divide="ignore", invalid="ignore"):
        p_yes = np.where(yes > 0, pooled.sums("wpy") / yes, 0.0)
        p_no = np.where(no > 0, (w * p - pooled.sums("wpy")) / no, 0.0)
    within = np.maximum(pooled.sums("wpp") - yes * p_yes**2 - no * p_no**2, 0.0) / n
    mass = yes_drawn + no_drawn
    said = yes_drawn * p_yes + no_drawn * p_no + np.sqrt(within * mass) * rng.standard_normal(mass.shape)
    return mass, said, yes_drawn


def _joint_draws(view: View, one: Linear, pooled: View, resamples: int, rng: np.random.Generator) -> Draws:
    """Residual sums of each cell, normal with the covariance that the rows' residuals have."""
    residual = view.w[:, None] * (view.y - view.p)
    slots, cell = np.unique(one.index, return_inverse=True)
    cell = cell.reshape(-1)
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(len(slots)))
    w, ww = pooled.w, pooled.sums("ww")
    mass = np.maximum(w + np.sqrt(ww) * rng.standard_normal((resamples, len(w))), 0.0)
    seen = mass[..., None] * pooled.p
    for b, rows in enumerate(np.split(residual[order], starts[1:])):
        mean = rows.sum(axis=0)
        root = np.linalg.svd(rows - mean / len(rows), full_matrices=False)
        noise = rng.standard_normal((resamples, len(root.S))) @ (root.S[:, None] * root.Vh)
        seen[:, b] += mass[:, b, None] / w[b] * mean + noise
    return mass, mass[..., None] * pooled.p, seen

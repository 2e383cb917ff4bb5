"""What the statistic would be if every stated probability were right: labels drawn from the predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.kernels import draws, flips, in_blocks
from trueodds.kernels.labels import by_row
from trueodds.kernels.resample import order_by_bin
from trueodds.lenses.lens import Outcomes
from trueodds.resampling.estimand import Estimand, Layout, by_estimand
from trueodds.resampling.redraw_cells import bin_draws, by_bins

MAX_BLOCK_LABELS = 2**26  # labels of a byte that are drawn before they are read
LIGHT = 2**14  # cells of one question, up to which questions share their draws' memory

LABELS = "each label is drawn with its stated probability, independently of the others, predictions kept fixed"
BOTH = "rows are drawn with replacement and each label with its stated probability, independently of the others"
FLIPS = "the residuals of whole {unit} keep their sizes and have their signs flipped at random (approximate)"
GUARD = "; the larger p counts of this and of labels drawn with the correlation within clusters that was seen"


def null_of(preds: Predictions, redraw: str = "labels") -> str:
    """The null law in words."""
    if preds.cluster is not None:
        return FLIPS.format(unit="clusters") + (GUARD if preds.kind != "multilabel" else "")
    if preds.votes is not None:
        return FLIPS.format(unit="rows")
    return BOTH if redraw == "both" else LABELS


def null_draws(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    rng: np.random.Generator,
    redraw: str = "labels",
    progress: Callable[[float], None] | None = None,
    share: float | None = None,
    *,
    joint: bool = True,
) -> list[Array]:
    """The statistic of each view under the null, (views, draws) for each question; one set of draws for all.

    With clusters or votes the signs of whole residuals are flipped; `redraw="both"` resamples rows too and
    chooses every partition again. A statistic on fixed bins costs one addition per row and draw; one that
    chooses with the labels, or needs rows, is refitted on each draw. With `share` labels are redrawn though there
    are clusters, whose rows share their random number in that share of the draws. `together=False` lets every
    question have draws of its own, as noise floors may, so that beyond 200,000 rows more of them cost only bins.
    """
    key = stream_key(rng)
    if redraw == "both":
        return _both(preds, estimands, resamples, rng, progress)
    flip = share is None and (preds.cluster is not None or preds.votes is not None)
    out: list[Array | None] = [None] * len(estimands)
    if share is None:
        for i, estimand in enumerate(estimands):
            if by_bins(preds, estimands if joint else [estimand], joint=joint):
                out[i] = bin_draws(preds, estimand, resamples, rng)
    voted = [i for i, estimand in enumerate(estimands) if out[i] is None and estimand.estimator.redraws == "votes"]
    left = [i for i in range(len(estimands)) if out[i] is None and i not in voted]
    labeled = [] if flip else [i for i in left if _by_label(preds, estimands[i])]
    on_bins = [i for i in left if i not in labeled and estimands[i].linear is not None]
    by_rows = [i for i in left if estimands[i].linear is None]
    # Many cells fill the memory that other questions' draws would be made in: each such question goes by itself.
    heavy = [] if flip else [i for i in on_bins if sum(one.size for one in estimands[i].linear or ()) > LIGHT]
    light = [i for i in on_bins if i not in heavy]
    drawn = _flipped if flip else _resampled_labels
    parts = [
        (light, drawn),
        *(([i], drawn) for i in heavy),
        (labeled, _labeled),
        (by_rows, _row_by_row),
        (voted, _votes),
    ]
    parts = [(chosen, work) for chosen, work in parts if chosen]
    for number, (chosen, work) in enumerate(parts):
        part_progress = None if progress is None else _part_of(progress, number, len(parts))
        statistics = work(preds, [estimands[i] for i in chosen], resamples, key, part_progress, share)
        for i, values in zip(chosen, statistics, strict=True):
            out[i] = values
    return [values for values in out if values is not None]


def _part_of(progress: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    return lambda done: progress((number + done) / count)


def _resampled_labels(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    share: float | None,
) -> list[Array]:
    layout = Layout(estimands)
    outcomes = [None] * len(layout.views) if preds.kind == "multilabel" else _outcomes(preds, estimands)
    tables = _tables(layout, outcomes, preds, estimands)
    w, wp, _ = layout.observed()

    P, mass, cluster, rows = preds.P, preds.w, preds.cluster, None
    separate = preds.kind == "multilabel"
    # Rows in the order of their cells meet the same slots one after the other.
    if layout.size > draws.MANY and all(view.joint for view in layout.views):
        rows = order_by_bin(layout.linear[0].index, layout.linear[0].size)
        P, mass, tables = P[rows], mass[rows], tables[:, rows]
        cluster = None if cluster is None else cluster[rows]

    def sums(start: int, stop: int) -> Array:
        return draws.sums(
            P,
            mass,
            tables,
            layout.size,
            key,
            start,
            stop,
            separate=separate,
            rows=rows,
            cluster=cluster,
            share=share or 0.0,
        )

    return _in_blocks(estimands, layout, resamples, w, wp, sums, progress)


def _by_label(preds: Predictions, estimand: Estimand) -> bool:
    """Whether the statistic reads which label each row has, instead of sums."""
    if preds.kind == "multilabel" or estimand.linear is None:
        return False
    return all(getattr(one, "of_labels", None) is not None for one in estimand.linear)


def _labeled(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    share: float | None,
) -> list[Array]:
    """The same labels for statistics that read them as they are."""
    statistics: list[list[list[Array]]] = [[[] for _ in estimand.views] for estimand in estimands]
    outcomes = [estimand.lens.outcomes(preds) for estimand in estimands]
    block = max(1, MAX_BLOCK_LABELS // preds.n)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        labels = by_row(preds.P, key, start, stop, cluster=preds.cluster, share=share or 0.0)
        for i, estimand in enumerate(estimands):
            for v, one in enumerate(estimand.linear or ()):
                statistics[i][v].append(one.of_labels(outcomes[i][v].numbers(labels)))  # type: ignore[attr-defined]
        if progress:
            progress(stop / resamples)
    return [np.array([np.concatenate(values) for values in per_view]) for per_view in statistics]


def _flipped(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _share: float | None,
) -> list[Array]:
    layout = Layout(estimands)
    cluster = np.arange(preds.n) if preds.cluster is None else preds.cluster
    slots = layout.slots()
    predicted, observed = layout.predicted_and_observed()
    w, wp, _ = layout.observed()
    base = np.bincount(slots.ravel(), predicted.ravel(), layout.size)

    def sums(start: int, stop: int) -> Array:
        return base + flips.sums(cluster, slots, observed - predicted, layout.size, key, start, stop)

    return _in_blocks(estimands, layout, resamples, w, wp, sums, progress)


def _in_blocks(
    estimands: Sequence[Estimand],
    layout: Layout,
    resamples: int,
    w: list[Array],
    wp: list[Array],
    sums: Callable[[int, int], Array],
    progress: Callable[[float], None] | None,
) -> list[Array]:
    def work(start: int, stop: int) -> list[Array]:
        drawn = layout.shaped(sums(start, stop))
        return [one.statistic(w[v], wp[v], wy) for v, (one, wy) in enumerate(zip(layout.linear, drawn, strict=True))]

    statistics: list[list[Array]] = []
    for start in range(0, resamples, layout.block):
        stop = min(start + layout.block, resamples)
        statistics += in_blocks(lambda a, b, start=start: work(start + a, start + b), stop - start, layout.side)  # type: ignore[misc]
        if progress:
            progress(stop / resamples)
    return by_estimand(estimands, [np.concatenate(values) for values in zip(*statistics, strict=True)])


def _outcomes(preds: Predictions, estimands: Sequence[Estimand]) -> list[Outcomes | None]:
    return [outcome for estimand in estimands for outcome in estimand.lens.outcomes(preds)]


def _tables(
    layout: Layout, outcomes: Sequence[Outcomes | None], preds: Predictions, estimands: Sequence[Estimand]
) -> Array:
    """Which accumulator a row adds to when label c is drawn; views that read different labels share a table."""
    tables: list[Array] = []
    readers: list[list[tuple[Array, set[int]]]] = []  # by table: which rows read which labels
    columns = [
        c for estimand in estimands for c in (estimand.lens.columns(preds) if preds.kind == "multilabel" else [])
    ]
    for v, (one, m, offset) in enumerate(zip(layout.linear, layout.widths, layout.offsets, strict=False)):
        outcome = outcomes[v]
        if outcome is None:
            reads = {columns[v]}
            code = (np.arange(preds.k) == columns[v]).astype(np.int64)[None, :]
        else:
            code = outcome.code
            reads = set(np.flatnonzero(code[0] == 1)) if m == 1 and len(code) == 1 else set(range(preds.k))
        base = (offset + one.index * m)[:, None]
        counted = layout.views[v].w[:, None] > 0  # a row outside a subgroup adds nothing
        table = next((t for t, used in enumerate(readers) if not any(_meet(counted, reads, *u) for u in used)), None)
        if table is None:
            tables.append(np.full((preds.n, preds.k), -1, dtype=np.int32))
            readers.append([])
            table = len(tables) - 1
        readers[table].append((counted, reads))
        if m > 1:
            tables[table] = np.where(counted, base + code, tables[table]).astype(np.int32)
        elif len(code) == 1:
            columns_read = sorted(reads)
            tables[table][:, columns_read] = np.where(counted, base, tables[table][:, columns_read])
        else:
            tables[table] = np.where(counted & (code == 1), base, tables[table]).astype(np.int32)
    return np.stack(tables)


def _meet(rows: Array, labels: set[int], other_rows: Array, other_labels: set[int]) -> bool:
    """Whether two views read the same label of the same row."""
    return bool(labels & other_labels) and bool((rows & other_rows).any())


def _row_by_row(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    share: float | None,
) -> list[Array]:
    """Every draw as whole views, for statistics that need them."""
    outcomes = [None if preds.kind == "multilabel" else estimand.lens.outcomes(preds) for estimand in estimands]
    statistics: list[list[list[float]]] = [[[] for _ in estimand.views] for estimand in estimands]
    flip = share is None and (preds.cluster is not None or preds.votes is not None)
    for start in range(0, resamples, 32):
        stop = min(start + 32, resamples)
        many = _drawn(preds, key, start, stop, flip, share or 0.0)
        for one in many:
            for i, estimand in enumerate(estimands):
                for v, view in enumerate(estimand.views):
                    m = view.p.shape[1] if view.joint else 1
                    if flip:
                        s = one[:, None] if view.joint else one
                        y = view.p + s * (view.y - view.p)
                    elif preds.kind == "multilabel":
                        y = one[:, estimand.lens.columns(preds)[v]]
                    else:
                        codes = outcomes[i]
                        assert codes is not None
                        y = codes[v].of_labels(one, m)
                    statistics[i][v].append(estimand.estimator.value(view.with_y(y)))
        if progress:
            progress(stop / resamples)
    return [np.array(values) for values in statistics]


def _votes(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _share: float | None,
) -> list[Array]:
    """Every row's votes drawn anew from its probabilities, as many as it has: what a perfect model would score.

    A row with a label instead of votes has one.
    """
    if preds.votes is not None and preds.counts is None:
        raise InputError(
            "TO205",
            "Votes can be drawn anew only where their number is known.",
            "votes as shares",
            "Pass the votes as whole counts.",
        )
    outcomes = [None if preds.kind == "multilabel" else estimand.lens.outcomes(preds) for estimand in estimands]
    statistics = [np.empty((len(estimand.views), resamples)) for estimand in estimands]
    rng = np.random.default_rng(key)
    P = np.maximum(preds.P.astype(np.float64), 0.0)  # 1 − p may round below 0
    if preds.kind != "multilabel":
        P = P / P.sum(axis=1, keepdims=True)
    count = np.ones(preds.n, dtype=np.int64) if preds.counts is None else np.rint(preds.counts).astype(np.int64)
    for r in range(resamples):
        shares = rng.random(P.shape) < P if preds.kind == "multilabel" else rng.multinomial(count, P) / count[:, None]
        for estimand, codes, values in zip(estimands, outcomes, statistics, strict=True):
            for v, view in enumerate(estimand.views):
                m = view.p.shape[1] if view.joint else 1
                y = shares[:, estimand.lens.columns(preds)[v]] if codes is None else codes[v].of_shares(shares, m)
                values[v, r] = estimand.estimator.value(view.with_y(y))
        if progress and r % 32 == 0:
            progress(r / resamples)
    return statistics


def _drawn(preds: Predictions, key: int, start: int, stop: int, flip: bool, share: float = 0.0) -> Array:
    if flip:
        if preds.cluster is None:
            return flips.signs(preds.n, key, start, stop)
        return flips.signs(int(preds.cluster.max()) + 1, key, start, stop)[:, preds.cluster]
    if preds.kind == "multilabel":
        labels = [np.random.default_rng([key, r]).random(preds.p.shape) < preds.p for r in range(start, stop)]
        return np.stack(labels)
    return draws.labels(preds.P, key, start, stop, cluster=preds.cluster, share=share)


def _both(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> list[Array]:
    statistics: list[list[Array]] = [[] for _ in estimands]
    preds = preds if preds.weight is None else preds[preds.weight > 0]  # a row of weight 0 is no row
    for r in range(resamples):
        rows = rng.integers(0, preds.n, preds.n)
        sample = preds[rows]
        sample = sample.with_labels(_drawn(sample, stream_key(rng), 0, 1, flip=False)[0])
        for i, estimand in enumerate(estimands):
            views = estimand.lens.views(sample)
            statistics[i].append(np.array([estimand.estimator.value(view) for view in views]))
        if progress and r % 32 == 0:
            progress(r / resamples)
    return [np.stack(values, axis=1) for values in statistics]


def within_clusters(preds: Predictions, estimands: Sequence[Estimand]) -> float:
    """How much of the largest possible correlation the residuals within clusters show, from 0 to 1.

    The variance of cluster sums over that of independent rows, against the variance that rows with one common
    random number would have; of all views the largest. Miscalibration adds to it, so it errs on the safe side.
    """
    assert preds.cluster is not None
    correlation = 0.0
    for view in (view for estimand in estimands for view in estimand.views if not view.joint):
        v = np.maximum(view.sums("wwv"), 0.0)
        independent = float(v.sum())
        observed = float((np.bincount(preds.cluster, view.w * (view.y - view.p)) ** 2).sum())
        largest = float((np.bincount(preds.cluster, np.sqrt(v)) ** 2).sum())
        if largest > independent * (1 + 1e-9):
            correlation = max(correlation, (observed - independent) / (largest - independent))
    return min(max(correlation, 0.0), 1.0)

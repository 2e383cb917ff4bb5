"""The null distribution: statistics of labels drawn from the predicted probabilities, and their mean, the noise floor.

`null_draws` chooses the fastest way to draw each estimand: bin by bin, row by row through bin sums, or with complete
rows. `enumerate_labelings` has the statistics of all labelings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.data.probabilities import two_columns
from trueodds.estimators.base import Mean, ProperScore
from trueodds.kernels import random_labels, random_streams
from trueodds.kernels.random_label_sums import allows_short_integers, needs_single_labels
from trueodds.lenses.base import OutcomeCodes
from trueodds.resampling.estimand import AccumulatorLayout, Estimand, select_rows
from trueodds.resampling.null_draws_by_bin import can_draw_by_bin, draw_bin_statistics_of_rows
from trueodds.resampling.null_draws_by_row import (
    LabelUnits,
    draw_label_sums,
    draw_row_labels,
    draw_sign_flips,
    draw_total_variation,
    has_total_variation,
    label_key,
    label_units,
    uses_row_labels,
    votes_per_row,
)

DEFAULT_REDRAWS = 999  # null draws of a noise floor
MAX_DRAWN_VOTES = 4_000_000  # shares of votes (draws times rows times classes) that are drawn in all
MIN_VOTE_REDRAWS = 20  # null draws of votes, however many rows there are


def noise_floor_draws(
    rows: Predictions, estimands: Sequence[Estimand], rng: np.random.Generator, redraws: int = DEFAULT_REDRAWS
) -> list[Array | None]:
    """Return the null draws (views, draws) for the noise floor of each estimand; None if its expectation is known.

    The estimands need not share their draws, so that with more than 200,000 rows only bins are drawn. For a mean over
    many rows of votes few draws are precise enough: as many are made as 4 million drawn shares allow, and at least 20.
    """
    draws: list[Array | None] = [None] * len(estimands)
    indices = [i for i, estimand in enumerate(estimands) if _needs_null_draws(rows, estimand)]
    vote_indices = [i for i in indices if estimands[i].estimator.null_draws_of == "votes"]
    label_indices = [i for i in indices if i not in vote_indices]
    vote_redraws = min(redraws, max(MIN_VOTE_REDRAWS, MAX_DRAWN_VOTES // (rows.n * rows.k)))
    for drawn_indices, n_draws in ((label_indices, redraws), (vote_indices, vote_redraws)):
        if drawn_indices:
            drawn_estimands = [estimands[i] for i in drawn_indices]
            new_draws = null_draws(rows, drawn_estimands, n_draws, rng, share_draws=False)
            for i, estimand_draws in zip(drawn_indices, new_draws, strict=True):
                draws[i] = estimand_draws
    return draws


def _needs_null_draws(rows: Predictions, estimand: Estimand) -> bool:
    """Whether the noise floor has to be simulated, and can be: its expectation is not known, as for proper scores."""
    if estimand.estimator.null_draws_of == "votes" and rows.votes is not None and rows.counts is None:
        return False  # the number of votes per row is unknown
    if not estimand.is_mean_of_views:  # the expected maximum is not the maximum of the expectations
        return True
    # An estimator that is unbiased for independent rows is biased for clustered rows, unless it is a mean.
    estimator = estimand.estimator
    is_linear = rows.cluster is None or isinstance(estimator, Mean) or estimator.has_fixed_expectation
    is_known = is_linear and estimator.expected_if_calibrated(estimand.views[0]) is not None
    return not isinstance(estimator, ProperScore) and not is_known


def subtract_noise_floor(values: Any, floors: Any, power: float = 1.0) -> Array:
    """Return √max(0, e² − f²) for errors e below twice their noise floor f; NaN for others and for negative e.

    It debiases `values` by their noise floors `floors`. If the errors are a `power` of a norm, e and f are the norms,
    and the result is the same power of the debiased norm.

    >>> subtract_noise_floor([0.05, 0.03, 0.2], 0.04).round(4).tolist()
    [0.03, 0.0, nan]
    """
    values, floors, root = np.asarray(values, dtype=np.float64), np.asarray(floors, dtype=np.float64), 1 / power
    errors, noise_floors = np.maximum(values, 0), np.maximum(floors, 0)
    reduced = np.maximum(errors ** (2 * root) - noise_floors ** (2 * root), 0) ** (1 / (2 * root))
    return np.where((values >= 0) & (errors**root < 2 * noise_floors**root), reduced, np.nan)


MAX_SHARED_CELLS = 2**14  # cells of one estimand up to which estimands share the memory of their draws

DRAWN_LABELS_TEXT = "labels drawn independently from the predicted probabilities, predictions kept fixed"
DRAWN_ROWS_TEXT = "rows drawn with replacement, labels drawn independently from the predicted probabilities"
SIGN_FLIPS_TEXT = "residuals of whole {unit} with their signs flipped at random, magnitudes kept fixed (approximate)"
CORRELATED_LABELS_TEXT = (
    "; p is the larger of this p-value and the one for {labels} drawn with the estimated correlation within {unit}"
)


def null_description(preds: Predictions, redraw: str = "labels") -> str:
    if preds.cluster is not None:
        return (SIGN_FLIPS_TEXT + CORRELATED_LABELS_TEXT).format(unit="clusters", labels="labels")
    if preds.votes is not None:
        text = SIGN_FLIPS_TEXT + (CORRELATED_LABELS_TEXT if draws_correlated_labels(preds) else "")
        return text.format(unit="rows", labels="votes")
    return DRAWN_ROWS_TEXT if redraw == "both" else DRAWN_LABELS_TEXT


def draws_correlated_labels(preds: Predictions) -> bool:
    """Whether a test also uses labels, or votes, that are drawn with their estimated correlation within clusters."""
    return preds.cluster is not None or votes_per_row(preds) is not None


def null_draws(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    rng: np.random.Generator,
    redraw: str = "labels",
    progress: Callable[[float], None] | None = None,
    cluster_share: float | None = None,
    *,
    share_draws: bool = True,
) -> list[Array]:
    """Return null draws of the statistic of each view, (views, draws) for each estimand, from one set of draws.

    A statistic on fixed bins costs one addition per row and draw. Other statistics are recomputed on each draw.
    `redraw="labels"` draws labels; with clusters or votes the signs of residuals are flipped instead, unless
    `cluster_share` is given: then labels are redrawn, and all rows of a cluster, or all votes of a row, use the same
    random number with this probability, so 0.0 means independent labels. "both" resamples the rows too, and chooses
    every partition again. `progress` receives the finished share of the draws. Without `share_draws`, as for noise
    floors, only bins are drawn for more than 200,000 rows.
    """
    key = stream_key(rng)
    if redraw == "both":
        return _draw_rows_and_labels(preds, estimands, resamples, rng, progress)
    draws: list[Array | None] = [None] * len(estimands)
    if cluster_share is None:
        for i, estimand in enumerate(estimands):
            if can_draw_by_bin(preds, estimands if share_draws else [estimand], share_draws=share_draws):
                draws[i] = draw_bin_statistics_of_rows(preds, estimand, resamples, rng)
    undrawn = [i for i in range(len(estimands)) if draws[i] is None]
    groups = _group_by_drawing(preds, estimands, undrawn, cluster_share, share_draws=share_draws)
    for number, (chosen, draw_statistics) in enumerate(groups):
        part_progress = None if progress is None else _scale_progress(progress, number, len(groups))
        statistics = draw_statistics(
            preds, [estimands[i] for i in chosen], resamples, key, part_progress, cluster_share
        )
        for i, values in zip(chosen, statistics, strict=True):
            draws[i] = values
    return [values for values in draws if values is not None]


# Function that draws the statistics of a group of estimands and returns an array (views, draws) for each.
_DrawStatistics = Callable[..., list[Array]]


def _group_by_drawing(
    preds: Predictions,
    estimands: Sequence[Estimand],
    undrawn: Sequence[int],
    cluster_share: float | None,
    *,
    share_draws: bool,
) -> list[tuple[list[int], _DrawStatistics]]:
    """Group the indices `undrawn` of estimands by the function that draws their statistics; no group is empty."""
    flips_signs = cluster_share is None and (preds.cluster is not None or preds.votes is not None)
    by_votes: list[int] = []
    by_labels: list[int] = []
    by_total_variation: list[int] = []
    by_rows: list[int] = []
    small_estimands: list[int] = []  # with statistics on bins
    large_estimands: list[int] = []  # with statistics on many bins
    for i in undrawn:
        estimand = estimands[i]
        if estimand.estimator.null_draws_of == "votes":
            by_votes.append(i)
        elif estimand.cell_statistics is None:
            by_rows.append(i)
        elif not flips_signs and uses_row_labels(preds, estimand):
            by_labels.append(i)
        elif not flips_signs and not cluster_share and has_total_variation(preds, estimand):
            by_total_variation.append(i)
        elif not flips_signs and sum(statistic.size for statistic in estimand.cell_statistics) > MAX_SHARED_CELLS:
            large_estimands.append(i)
        else:
            small_estimands.append(i)
    # Groups share their draws only if all of them use the same labels.
    has_other_groups = len(small_estimands) < len(undrawn) - len(by_votes)
    by_rows_drawn = _group_by_rows(estimands, small_estimands)
    draw_binned: _DrawStatistics = draw_sign_flips
    if not flips_signs:
        # All groups use the same integers. Labels that are drawn one by one use those of 32 bits.
        short_integers = (
            preds.votes is None
            and allows_short_integers(preds.w)
            and not (share_draws and has_other_groups)
            and not (len(by_rows_drawn) > 1 and _need_single_labels(preds, estimands, small_estimands, cluster_share))
        )
        draw_binned = partial(draw_label_sums, short_integers=short_integers)
    # An estimand with many cells fills the memory that the draws share, so each is a group of its own.
    groups: list[tuple[list[int], _DrawStatistics]] = [
        *((chosen, draw_binned) for chosen in by_rows_drawn),
        *(([i], draw_binned) for i in large_estimands),
        (by_total_variation, draw_total_variation),
        (by_labels, draw_row_labels),
        (by_rows, _draw_row_statistics),
        (by_votes, _draw_vote_statistics),
    ]
    return [(chosen, draw_statistics) for chosen, draw_statistics in groups if chosen]


def _group_by_rows(estimands: Sequence[Estimand], chosen: Sequence[int]) -> list[list[int]]:
    """Group the indices `chosen` of estimands by the array of their rows, each group with the same draws."""
    by_rows: dict[int, list[int]] = {}
    for i in chosen:
        by_rows.setdefault(id(estimands[i].rows), []).append(i)
    return list(by_rows.values())


def _need_single_labels(
    preds: Predictions, estimands: Sequence[Estimand], chosen: Sequence[int], cluster_share: float | None
) -> bool:
    """Whether the bin sums of some estimands, if each is drawn by itself, can be added up from single labels."""
    sizes = [AccumulatorLayout([estimands[i]]).n_accumulators for i in chosen]
    return needs_single_labels(preds.k, 2 * max(sizes, default=0), cluster_share or 0.0)


def _scale_progress(progress: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    return lambda fraction: progress((number + fraction) / count)


def _draw_row_statistics(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    cluster_share: float | None,
) -> list[Array]:
    """Return null draws of statistics that require complete views, whose outcomes are replaced in each draw."""
    outcome_codes = _outcome_codes(preds, estimands)
    statistics: list[list[list[float]]] = [[[] for _ in estimand.views] for estimand in estimands]
    flips_signs = cluster_share is None and (preds.cluster is not None or preds.votes is not None)
    units = label_units(preds)
    draws_votes = not flips_signs and units.row is not None
    for start in range(0, resamples, 32):
        stop = min(start + 32, resamples)
        drawn_block = _draw_signs_or_labels(preds, units, key, start, stop, flips_signs, cluster_share or 0.0)
        for drawn in drawn_block:
            shares = units.shares_by_row(drawn, preds.n) if draws_votes else None
            for i, estimand in enumerate(estimands):
                rows = slice(None) if estimand.rows is None else estimand.rows
                for v, view in enumerate(estimand.views):
                    m = view.p.shape[1] if view.joint else 1
                    if flips_signs:
                        signs = drawn[rows, None] if view.joint else drawn[rows]
                        y = view.p + signs * (view.y - view.p)
                    elif preds.kind == "multilabel":
                        y = drawn[rows, estimand.lens.class_columns(preds)[v]]
                    else:
                        codes = outcome_codes[i]
                        assert codes is not None
                        y = (
                            codes[v].outcomes_of_labels(drawn[rows], m)
                            if shares is None
                            else codes[v].outcome_shares(shares[rows], m)
                        )
                    statistics[i][v].append(estimand.estimator.value(view.with_y(y)))
        if progress:
            progress(stop / resamples)
    return [np.array(values) for values in statistics]


def _draw_vote_statistics(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    key: int,
    progress: Callable[[float], None] | None,
    _cluster_share: float | None,
) -> list[Array]:
    """Return null draws with the votes of every row, or its one label, redrawn as under a calibrated model."""
    if preds.votes is not None and preds.counts is None:
        raise InputError(
            "TO205",
            "Redrawing votes requires their number per row.",
            "votes as shares",
            "Pass the votes as integer counts.",
        )
    outcome_codes = _outcome_codes(preds, estimands)
    statistics = [np.empty((len(estimand.views), resamples)) for estimand in estimands]
    rng = np.random.default_rng(key)
    P = np.maximum(preds.P.astype(np.float64), 0.0)  # 1 − p may round below 0
    if preds.kind != "multilabel":
        P = P / P.sum(axis=1, keepdims=True)
    count = np.ones(preds.n, dtype=np.int64) if preds.counts is None else np.rint(preds.counts).astype(np.int64)
    for r in range(resamples):
        shares = rng.random(P.shape) < P if preds.kind == "multilabel" else rng.multinomial(count, P) / count[:, None]
        for estimand, codes, values in zip(estimands, outcome_codes, statistics, strict=True):
            shares_of_rows = shares if estimand.rows is None else shares[estimand.rows]
            for v, view in enumerate(estimand.views):
                m = view.p.shape[1] if view.joint else 1
                y = (
                    shares_of_rows[:, estimand.lens.class_columns(preds)[v]]
                    if codes is None
                    else codes[v].outcome_shares(shares_of_rows, m)
                )
                values[v, r] = estimand.estimator.value(view.with_y(y))
        if progress and r % 32 == 0:
            progress(r / resamples)
    return statistics


def _outcome_codes(preds: Predictions, estimands: Sequence[Estimand]) -> list[list[OutcomeCodes] | None]:
    """Return how labels are mapped to the outcomes of each view, for each estimand; None for independent labels."""
    return [
        None if preds.kind == "multilabel" else estimand.lens.outcome_codes(select_rows(preds, estimand.rows))
        for estimand in estimands
    ]


def _draw_signs_or_labels(
    preds: Predictions,
    units: LabelUnits,
    key: int,
    start: int,
    stop: int,
    flips_signs: bool,
    cluster_share: float = 0.0,
) -> Array:
    """Return signs (draws, n), labels (draws, units), or outcomes (draws, n, K) of several labels, of some draws."""
    if flips_signs:
        if preds.cluster is None:
            return random_streams.random_signs(preds.n, key, start, stop)
        return random_streams.random_signs(int(preds.cluster.max()) + 1, key, start, stop)[:, preds.cluster]
    draw_labels = partial(random_labels.draw_labels, start=start, stop=stop, cluster_probability=cluster_share)
    if preds.kind == "multilabel":
        if cluster_share > 0:
            columns = [
                draw_labels(two_columns(preds.P[:, k]), label_key(key, k), cluster=preds.cluster)
                for k in range(preds.k)
            ]
            return np.stack(columns, axis=2) > 0
        labels = [np.random.default_rng([key, r]).random(preds.p.shape) < preds.p for r in range(start, stop)]
        return np.stack(labels)
    return draw_labels(units.P, key, cluster=units.cluster)


def _draw_rows_and_labels(
    preds: Predictions,
    estimands: Sequence[Estimand],
    resamples: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> list[Array]:
    """Return null draws of every statistic with rows resampled, labels drawn and partitions chosen again."""
    statistics: list[list[Array]] = [[] for _ in estimands]
    preds = preds if preds.weight is None else preds[preds.weight > 0]  # rows of weight 0 do not count
    for r in range(resamples):
        rows = rng.integers(0, preds.n, preds.n)
        sample = preds[rows]
        labels = _draw_signs_or_labels(sample, label_units(sample), stream_key(rng), 0, 1, flips_signs=False)
        sample = sample.with_labels(labels[0])
        for i, estimand in enumerate(estimands):
            views = estimand.lens.views(sample)
            statistics[i].append(np.array([estimand.estimator.value(view) for view in views]))
        if progress and r % 32 == 0:
            progress(r / resamples)
    return [np.stack(values, axis=1) for values in statistics]


def cluster_correlation(preds: Predictions, estimands: Sequence[Estimand]) -> float:
    """Estimate the within-cluster correlation of the residuals, relative to the largest possible one, from 0 to 1.

    The rows of a cluster are correlated, or without clusters the votes of a row. It compares the variance of cluster
    sums with that of independent rows or votes and with that of rows or votes that share one random number, and takes
    the maximum over all views. Miscalibration increases it, which makes the test conservative.
    """
    n_votes = votes_per_row(preds)
    correlation = 0.0
    scalar_views = [(estimand, view) for estimand in estimands for view in estimand.views if not view.joint]
    for estimand, view in scalar_views:
        subset = select_rows(preds, estimand.rows)
        cluster = np.arange(subset.n) if subset.cluster is None else subset.cluster
        variances = np.maximum(view.sums("wwv"), 0.0)
        n_votes_of_rows = 1 if n_votes is None else n_votes if estimand.rows is None else n_votes[estimand.rows]
        independent_variance = float((variances / n_votes_of_rows).sum())
        observed_variance = float((np.bincount(cluster, view.w * (view.y - view.p)) ** 2).sum())
        max_variance = float((np.bincount(cluster, np.sqrt(variances)) ** 2).sum())
        if max_variance > independent_variance * (1 + 1e-9):
            correlation = max(
                correlation, (observed_variance - independent_variance) / (max_variance - independent_variance)
            )
    return min(max(correlation, 0.0), 1.0)


MAX_LABELINGS = 2**20  # largest number of labelings that are enumerated
LABELINGS_PER_BLOCK = 2**12  # labelings evaluated at once


def enumerate_labelings(preds: Predictions, estimands: Sequence[Estimand]) -> tuple[list[Array], Array]:
    """Return the statistics (views, labelings) of each estimand under every possible labeling, and their probabilities.

    The labelings are the combinations of the classes of positive probability of all rows. Raises InputError if there
    are more than MAX_LABELINGS of them, and for rows that are not independent with one label each.
    """
    if preds.kind == "multilabel" or preds.cluster is not None:
        raise InputError(
            "TO205",
            "Enumerating all labelings requires independent rows with one label each.",
            "independent labels" if preds.cluster is None else "clusters",
            "Leave redraw out.",
        )
    P = np.asarray(preds.P, dtype=np.float64)
    P = P / P.sum(axis=1, keepdims=True)
    allowed = [np.flatnonzero(row > 0) for row in P]
    n_labelings = float(np.prod([float(len(classes)) for classes in allowed]))
    if n_labelings > MAX_LABELINGS:
        raise InputError(
            "TO205",
            f"There are more than {MAX_LABELINGS:,} labelings of these rows.",
            f"{preds.n:,} rows, {n_labelings:.3g} labelings",
            "Leave redraw out: labels are drawn at random.",
        )
    sizes = [len(classes) for classes in allowed]
    probabilities: list[Array] = []
    values: list[list[list[Array]]] = [[[] for _ in estimand.views] for estimand in estimands]
    for start in range(0, int(n_labelings), LABELINGS_PER_BLOCK):
        stop = min(start + LABELINGS_PER_BLOCK, int(n_labelings))
        # A labeling is a number whose digit of row i, in the base of its allowed classes, selects the class of this
        # row.
        digits = np.unravel_index(np.arange(start, stop), sizes)
        labels = np.stack([classes[digit] for classes, digit in zip(allowed, digits, strict=True)], axis=1)
        probabilities.append(P[np.arange(preds.n), labels].prod(axis=1))
        for estimand, values_by_view in zip(estimands, values, strict=True):
            for v, view_values in enumerate(values_by_view):
                view_values.append(_labeling_statistics(estimand, v, preds, labels))
    statistics = [np.stack([np.concatenate(blocks) for blocks in values_by_view]) for values_by_view in values]
    return statistics, np.concatenate(probabilities)


def _labeling_statistics(estimand: Estimand, v: int, preds: Predictions, labels: Array) -> Array:
    """Return the statistic of view v for each of the `labels` (labelings, n), from cell sums if they are sufficient."""
    view, outcome = estimand.views[v], estimand.lens.outcome_codes(preds)[v]
    m = view.p.shape[1] if view.joint else 1
    outcomes = np.stack([outcome.outcomes_of_labels(labeling, m) for labeling in labels]).astype(np.float64)
    if estimand.cell_statistics is None:
        return np.array([estimand.estimator.value(view.with_y(y)) for y in outcomes])
    cell_statistic = estimand.cell_statistics[v]
    cells = np.zeros((cell_statistic.size, preds.n))
    cells[cell_statistic.index, np.arange(preds.n)] = view.w
    return cell_statistic.statistic(
        cells.sum(axis=1)[None], (cells @ view.p)[None], cells @ outcomes if m > 1 else outcomes @ cells.T
    )

"""The null distribution: statistics of labels drawn from the predicted probabilities, and their mean, the noise floor.

`null_draws` chooses the fastest way to draw each estimand: by bin, by row through the sums of
cells, or by complete rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from trueodds.core.rng import stream_key
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean, ProperScore
from trueodds.kernels.random_labels import allows_short_integers, needs_single_labels
from trueodds.lenses.classes import Classwise
from trueodds.lenses.ranked import TopLabel
from trueodds.lenses.subgroups import GroupLens
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS
from trueodds.resampling.cell_draws import CellRedraw, null_covariance
from trueodds.resampling.draws import evaluate
from trueodds.resampling.estimand import Estimand, pooled_view, select_rows
from trueodds.resampling.label_draws import (
    CellLayout,
    OutcomeDraws,
    Redraw,
    RowRedraw,
    SignFlips,
    VoteRedraw,
    uses_row_labels,
    votes_per_row,
)
from trueodds.resampling.poisson_binomial import MAX_EXACT_VARIANCE

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
        return evaluate(estimands, RowRedraw(preds, resamples, rng, progress))
    draws: list[Array | None] = [None] * len(estimands)
    if cluster_share is None:
        for i, estimand in enumerate(estimands):
            if can_draw_by_bin(preds, estimands if share_draws else [estimand], share_draws=share_draws):
                draws[i] = redraw_cells(preds, estimand, resamples, rng)
    undrawn = [i for i in range(len(estimands)) if draws[i] is None]
    groups = _group_by_drawing(preds, estimands, undrawn, cluster_share, share_draws=share_draws)
    for number, (chosen, create_draws) in enumerate(groups):
        part_progress = None if progress is None else _scale_progress(progress, number, len(groups))
        drawn_estimands = [estimands[i] for i in chosen]
        outcome_draws = create_draws(preds, resamples, key, part_progress)
        if isinstance(outcome_draws, Redraw) and uses_row_labels(preds, drawn_estimands[0]):
            values = outcome_draws.evaluate_labels(drawn_estimands)
        else:
            values = evaluate(drawn_estimands, outcome_draws)
        for i, estimand_values in zip(chosen, values, strict=True):
            draws[i] = estimand_values
    return [values for values in draws if values is not None]


_CreateDraws = Callable[..., OutcomeDraws]  # from predictions, number of draws, key, and progress


def _group_by_drawing(
    preds: Predictions,
    estimands: Sequence[Estimand],
    undrawn: Sequence[int],
    cluster_share: float | None,
    *,
    share_draws: bool,
) -> list[tuple[list[int], _CreateDraws]]:
    """Group the indices `undrawn` of estimands that are evaluated together, each group with what creates its draws."""
    flips_signs = cluster_share is None and (preds.cluster is not None or preds.votes is not None)
    groups: dict[tuple[str, int], list[int]] = {}
    for i in undrawn:
        groups.setdefault(_drawing_group(preds, estimands[i], i, cluster_share, flips_signs=flips_signs), []).append(i)
    create_draws: _CreateDraws = SignFlips if flips_signs else partial(Redraw, cluster_share=cluster_share or 0.0)
    create_by_kind: dict[str, _CreateDraws] = {"votes": VoteRedraw}
    if not flips_signs:
        # Groups share their draws only if all of them use the same integers. Labels that are drawn one by one use those
        # of 32 bits.
        in_cells = [[estimands[i] for i in group] for (kind, _), group in groups.items() if kind == "cells"]
        has_other_groups = any(kind not in ("cells", "votes") for kind, _ in groups)
        short_integers = (
            preds.votes is None
            and allows_short_integers(preds.w)
            and not (share_draws and has_other_groups)
            and not (len(in_cells) > 1 and _need_single_labels(preds, in_cells, cluster_share))
        )
        create_by_kind["cells"] = create_by_kind["many cells"] = partial(create_draws, short_integers=short_integers)
    return [(group, create_by_kind.get(kind, create_draws)) for (kind, _), group in groups.items()]


def _drawing_group(
    preds: Predictions, estimand: Estimand, i: int, cluster_share: float | None, *, flips_signs: bool
) -> tuple[str, int]:
    """Return the kind of draws of estimand number i, and a number that estimands evaluated together have in common."""
    if estimand.estimator.null_draws_of == "votes":
        return "votes", 0
    if estimand.cell_statistics is None:
        return "rows", 0
    if flips_signs:
        return "cells", id(estimand.rows)
    if uses_row_labels(preds, estimand):
        return "labels", 0
    if not cluster_share and _has_total_variation(preds, estimand):
        return "vectors", i  # their labels always use integers of 32 bits
    if sum(statistic.size for statistic in estimand.cell_statistics) > MAX_SHARED_CELLS:
        return "many cells", i  # which fill the memory that the draws of several estimands share
    return "cells", id(estimand.rows)


def _has_total_variation(preds: Predictions, estimand: Estimand) -> bool:
    """Whether each value is a mean distance of the vectors of cells, and rows have one label each."""
    has_single_labels = preds.kind != "multilabel" and preds.votes is None
    return has_single_labels and all(statistic.is_mean_total_variation for statistic in estimand.cell_statistics or ())


def _need_single_labels(preds: Predictions, groups: Sequence[Sequence[Estimand]], cluster_share: float | None) -> bool:
    """Whether the bin sums of some estimands, if each is drawn by itself, can be added up from single labels."""
    sizes = [CellLayout([estimand]).n_accumulators for group in groups for estimand in group]
    return needs_single_labels(preds.k, 2 * max(sizes), cluster_share or 0.0)


def _scale_progress(progress: Callable[[float], None], number: int, count: int) -> Callable[[float], None]:
    return lambda fraction: progress((number + fraction) / count)


MAX_DRAWN_BINS = 8192  # with more bins there are only a few rows per bin, and drawing each label costs no more
MAX_CORRELATED_BINS = 2000  # total number of bins of all classes whose covariance is computed


def can_draw_by_bin(preds: Predictions, estimands: Sequence[Estimand], *, share_draws: bool = True) -> bool:
    """Whether to draw outcome counts per bin instead of labels: many rows, and an estimand that needs bin sums only.

    Estimands, and views of one estimand, that share their draws depend on the same labels, which must then be drawn.
    With `share_draws=False`, several views of one estimand are allowed if their joint distribution is known: views of
    disjoint rows, of independent labels, or of classes with few bins.
    """
    if preds.n <= MAX_RESAMPLED_ROWS or preds.cluster is not None or preds.votes is not None or len(estimands) > 1:
        return False
    (estimand,) = estimands
    views = estimand.views
    if (
        estimand.estimator.null_draws_of == "votes"
        or any(view.joint for view in views)
        or estimand.cell_statistics is None
    ):
        return False
    sizes = [cell_statistic.size for cell_statistic in estimand.cell_statistics]
    if max(sizes) > MAX_DRAWN_BINS:
        return False
    if len(views) > 1:
        are_independent = preds.kind == "multilabel" or isinstance(estimand.lens, TopLabel)
        have_covariance = _is_classwise(preds, estimand) and len(sizes) * max(sizes) <= MAX_CORRELATED_BINS
        if share_draws or not (are_independent or have_covariance):
            return False
    if preds.weight is None:
        return True
    # A sum dominated by a few rows with large weights is not normal, so labels are drawn row by row.
    variances = [
        pooled_view(view, cell_statistic).sums("wwv")
        for view, cell_statistic in zip(views, estimand.cell_statistics, strict=True)
    ]
    return all(((v >= MAX_EXACT_VARIANCE * preds.weight.max() ** 2) | (v == 0)).all() for v in variances)


def redraw_cells(preds: Predictions, estimand: Estimand, resamples: int, rng: np.random.Generator) -> Array:
    """Return null draws (views, draws) from the outcome counts of bins; classes have their null covariance."""
    is_correlated = len(estimand.views) > 1 and _is_classwise(preds, estimand)
    (draws,) = evaluate([estimand], CellRedraw(resamples, rng, null_covariance(estimand) if is_correlated else None))
    return draws


def _is_classwise(preds: Predictions, estimand: Estimand) -> bool:
    """Whether the views are the classes of predictions that exclude each other."""
    lens = estimand.lens.lens if isinstance(estimand.lens, GroupLens) else estimand.lens
    return preds.kind == "classes" and isinstance(lens, Classwise)


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

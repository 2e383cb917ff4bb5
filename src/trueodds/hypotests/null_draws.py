"""Null draws of the statistics of a test, with more draws if the p-value is near the usual levels.

More draws make the decision at such a level almost independent of the seed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.base import FractionProgress
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, draws_correlated_labels, null_draws

MAX_RESAMPLES, MAX_LABELS = 4_999, 10**8  # maximum number of draws, and of drawn labels, for borderline p-values
MIN_BORDERLINE_PVALUE, MAX_BORDERLINE_PVALUE = 0.005, 0.15  # range around the usual levels, where more draws are made


def draw_null_statistics(
    preds: Predictions,
    estimands: Sequence[Estimand],
    redraw: str,
    resamples: int,
    rng: np.random.Generator,
    progress: FractionProgress | None,
    family_pvalue: Callable[[Sequence[Array]], float] | None = None,
) -> list[list[Array]]:
    """Return the draws (views, draws, …) of each estimand, for each null distribution.

    With clusters, or several votes per row, there are two null distributions: sign flips, and labels redrawn with the
    estimated correlation within clusters, or of the votes of a row. Otherwise there is one, that of `redraw`.
    `family_pvalue` computes the p-value of a test from the draws of all estimands. If its largest value over the null
    distributions is borderline, more than `resamples` draws are made; without `family_pvalue` their number is fixed.
    It is also fixed for drawn rows, because every draw then finds all cells again.
    """
    samplers = [functools.partial(null_draws, redraw=redraw)]
    if redraw == "labels" and draws_correlated_labels(preds):
        # In a bin without any observed event all residuals −p are small, so sign flips underestimate the variance.
        # Redrawn labels include the events that could have been observed there.
        samplers.append(functools.partial(null_draws, cluster_share=cluster_correlation(preds, estimands)))
    draws_by_null = [sampler(preds, estimands, resamples, rng, progress=progress) for sampler in samplers]
    n_more_draws = min(MAX_RESAMPLES, MAX_LABELS // max(1, preds.n)) - resamples
    if family_pvalue is None or n_more_draws <= 0 or redraw == "both":
        return draws_by_null
    p = max(family_pvalue(draws) for draws in draws_by_null)
    if not MIN_BORDERLINE_PVALUE <= p <= MAX_BORDERLINE_PVALUE:
        return draws_by_null
    extended_draws = []
    for draws, sampler in zip(draws_by_null, samplers, strict=True):
        more_draws = sampler(preds, estimands, n_more_draws, rng, progress=progress)
        extended_draws.append(
            [np.concatenate([first, second], axis=1) for first, second in zip(draws, more_draws, strict=True)]
        )
    return extended_draws


def min_cluster_pvalue(preds: Predictions) -> float:
    """Return the smallest p-value of sign flips of whole clusters: 2^(1 − G) for G clusters, 0 without clusters."""
    return 0.0 if preds.cluster is None else 2.0 ** -float(preds.cluster.max())  # clusters are numbered from 0

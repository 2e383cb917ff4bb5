"""Null draws of the statistics of a test, with more of them if the p-value is near the usual levels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.hypotests.base import FractionProgress
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import cluster_correlation, null_draws

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
    """Draws of each estimand under each null distribution, (views, draws, …).

    The outer list has one entry per null distribution: two with clusters, and otherwise one. If the largest p-value of
    the family by `family_pvalue`, a function of the draws of all estimands, is borderline, more than `resamples` draws
    are made.
    """
    samplers = [functools.partial(null_draws, redraw=redraw)]
    if preds.cluster is not None and preds.kind != "multilabel":
        # Sign flips have no variance in a bin without any event; labels redrawn with correlation do.
        samplers.append(functools.partial(null_draws, cluster_share=cluster_correlation(preds, estimands)))
    draws_by_null = [sampler(preds, estimands, resamples, rng, progress=progress) for sampler in samplers]
    n_more_draws = min(MAX_RESAMPLES, MAX_LABELS // max(1, preds.n)) - resamples
    if family_pvalue is None or n_more_draws <= 0:
        return draws_by_null
    p = max(family_pvalue(draws) for draws in draws_by_null)
    if MIN_BORDERLINE_PVALUE <= p <= MAX_BORDERLINE_PVALUE:
        for draws, sampler in zip(draws_by_null, samplers, strict=True):
            more_draws = sampler(preds, estimands, n_more_draws, rng, progress=progress)
            draws[:] = [np.concatenate(both, axis=1) for both in zip(draws, more_draws, strict=True)]
    return draws_by_null

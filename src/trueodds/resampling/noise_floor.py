"""The noise floor: the mean value of an estimator for a calibrated model, from null draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Mean, ProperScore
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

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
    is_linear = rows.cluster is None or isinstance(estimand.estimator, Mean)
    is_known = is_linear and estimand.estimator.expected_if_calibrated(estimand.views[0]) is not None
    return not isinstance(estimand.estimator, ProperScore) and not is_known


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

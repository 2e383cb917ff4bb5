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
    """Null draws for the noise floors; None if the expectation is known, as for proper scores.

    Estimands may have separate draws, so that with more than 200,000 rows only bins are drawn. For a mean over many
    rows of votes few draws are precise enough: as many are made as 4 million drawn shares allow, and at least 20.
    """

    def needs_draws(estimand: Estimand) -> bool:
        """Whether the noise floor has to be simulated and can be."""
        lacks_vote_counts = (
            estimand.estimator.null_draws_of == "votes" and rows.votes is not None and rows.counts is None
        )
        if not estimand.is_mean_of_views:  # the expected maximum is not the maximum of the expectations
            return not lacks_vote_counts
        # An estimator that is unbiased for independent rows is biased for clustered rows, unless it is a mean.
        is_linear = rows.cluster is None or isinstance(estimand.estimator, Mean)
        is_known = is_linear and estimand.estimator.expected_if_calibrated(estimand.views[0]) is not None
        return not isinstance(estimand.estimator, ProperScore) and not is_known and not lacks_vote_counts

    vote_estimands = [
        estimand for estimand in estimands if needs_draws(estimand) and estimand.estimator.null_draws_of == "votes"
    ]
    label_estimands = [
        estimand for estimand in estimands if needs_draws(estimand) and estimand.estimator.null_draws_of != "votes"
    ]
    vote_redraws = min(redraws, max(MIN_VOTE_REDRAWS, MAX_DRAWN_VOTES // (rows.n * rows.k)))
    draws_of = {
        id(estimand): draws
        for drawn, count in ((label_estimands, redraws), (vote_estimands, vote_redraws))
        if drawn
        for estimand, draws in zip(drawn, null_draws(rows, drawn, count, rng, share_draws=False), strict=True)
    }
    return [draws_of.get(id(estimand)) for estimand in estimands]


def subtract_noise_floor(values: Any, floors: Any, power: float = 1.0) -> Array:
    """√max(0, e² − floor²) if the error e is below twice its noise floor, NaN otherwise and for negative e.

    For errors that are a `power` of a norm the root is taken first.

    >>> subtract_noise_floor([0.05, 0.03, 0.2], 0.04).round(4).tolist()
    [0.03, 0.0, nan]
    """
    values, floors, root = np.asarray(values, dtype=np.float64), np.asarray(floors, dtype=np.float64), 1 / power
    e, noise_floor = np.maximum(values, 0), np.maximum(floors, 0)
    reduced = np.maximum(e ** (2 * root) - noise_floor ** (2 * root), 0) ** (1 / (2 * root))
    return np.where((values >= 0) & (e**root < 2 * noise_floor**root), reduced, np.nan)

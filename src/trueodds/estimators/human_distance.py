"""Squared distance of the probabilities from the label distribution of annotators, corrected for few votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.estimators.base import require_single_rows
from trueodds.estimators.human_calibration import VoteMean, predicted_and_voted_shares, vote_counts
from trueodds.lenses.view import View


@dataclass(frozen=True)
class HumanDistance(VoteMean):
    r"""Squared distance between probabilities and the label distribution of annotators, corrected for few votes.

    It also reports how much of the distance is due to the ranking of the classes.

    Raises
    ------
    InputError : as in `require_single_rows`

    See Also
    --------
    distce : Total variation between probabilities and votes.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \Big( \lVert P_i - V_i \rVert^2
        - \sum_k \frac{V_{ik} (1 - V_{ik})}{m_i - 1} \Big)

    The m_i votes of a row are drawn from an unobserved population Q_i. Their variance around it is Σ Q(1 − Q) / m,
    which the second term estimates without bias. The remainder estimates the mean of |P − Q|² for any number of votes.

    `parts` holds `order`, `size`, `vote_noise` and `median_votes`. `order` is |P − S|², where S is the projection of P
    on the vectors that put no class above another with more votes (classes with equally many votes may have any order).
    `size` is the value minus `order`. Because S is a projection on a cone, |P − V|² is |P − S|² + |S − V|² + 2⟨P − S, S
    − V⟩ with a nonnegative last term, which `size` includes, minus the noise. The ranking is that of the observed
    votes: few votes swap close classes, so `order` of a perfect model is not 0. `vote_noise` is the subtracted term:
    the score of a model equal to the population without the correction.

    Shapes: a binary view (n,), which is the vector (1 − p, p) and scores 2 (p − y)², or a joint view (n, m). The
    default lens is canonical.

    Units: squared probability. |P − Q|² lies in [0, 2], and 0 is best.

    Bias: none with at least 2 votes per row, so the value may be negative. Rows with one vote, and shares of an unknown
    number of votes, are not corrected (TN141, TN140) and are biased upward by the noise. `noise_floor` is the mean over
    redrawn votes: 0 for rows of 2 votes or more and 1 − ΣP² for a single label. The 95 % interval from 300 resamples
    covered 92.6 to 94.8 % of 1,000 or 2,000 data sets each (2 to 50 votes, n = 200 to 1,000). In the worst case it
    covered 93.3 % with 2,000 resamples.

    Cost: O(nm) for the value, O(nm log m) for the parts. Rows are required.

    The correction for noise and the split into parts are specific to this library. The projection pools classes after
    sorting those with equal votes by P [2]_ [3]_.

    References
    ----------
    .. [1] Brier (1950), for the squared distance.
    .. [2] Kruskal (1964).
    .. [3] de Leeuw (1977), for the proof.

    Examples
    --------
    >>> import trueodds as to
    >>> distance = to.measure([[5, 0, 5]], [[0.1, 0.2, 0.7]], "human_distance", interval=None)
    >>> round(distance.value, 4), {name: round(part, 4) for name, part in distance.parts.items()}
    (0.1844, {'order': 0.005, 'size': 0.1794, 'vote_noise': 0.0556, 'median_votes': 10.0})
    """

    name: ClassVar[str] = "human_distance"

    def row_values(self, P: Array, vote_shares: Array, view: View) -> Array:
        return np.square(P - vote_shares).sum(axis=1) - _vote_noise(vote_shares, view)

    def expected_if_calibrated(self, view: View) -> float | None:
        """Expected value over redrawn votes: 0 if the noise is subtracted, 1 − ΣP² for a single label."""
        mask = view.w > 0
        if view.votes is None and _has_shares(view.y[mask]).any():
            return None
        P = predicted_and_voted_shares(view)[0]
        has_single_vote = np.ones(len(P), dtype=bool) if view.votes is None else view.votes < 2
        label_variance = np.where(has_single_vote, P.sum(axis=1) - np.square(P).sum(axis=1), 0.0)
        return float(weighted_sum(view.w[mask], label_variance[mask]) / view.total)

    def parts(self, view: View) -> dict[str, float]:
        """Order and size, which add up to the value, and the subtracted noise."""
        require_single_rows(view, self.name)
        P, vote_shares = predicted_and_voted_shares(view)
        mask = view.w > 0
        row_weights = view.w[mask] / view.total
        distance = self.row_values(P, vote_shares, view)[mask]
        order_distance = squared_distance_to_vote_order(P, vote_counts(vote_shares, view))[mask]
        parts = {
            "order": float(weighted_sum(row_weights, order_distance)),
            "size": float(weighted_sum(row_weights, distance - order_distance)),
            "vote_noise": float(weighted_sum(row_weights, _vote_noise(vote_shares, view)[mask])),
        }
        return parts | super().parts(view)

    def notes(self, view: View) -> list[Note]:
        y = view.y[view.w > 0]
        if view.votes is None and _has_shares(y).any():
            text = "The number of votes is unknown, so their noise is not subtracted and the value is too high."
            return [*super().notes(view), Note("TN140", text)]
        n_single = len(y) if view.votes is None else int((view.votes[view.w > 0] < 2).sum())
        if n_single:
            text = (
                f"{n_single:,} of {len(y):,} rows have a single vote, from which noise cannot be estimated, so nothing"
                " is subtracted there."
            )
            return [Note("TN141", text)]
        return []


def squared_distance_to_vote_order(P: Array, votes: Array) -> Array:
    """Squared distance of each row of P (n, m) to the nearest vector in the order of its `votes` (n, m), (n,).

    The nearest vector S is unique, because the vectors in the order of the votes form a convex cone. For two classes
    with equally many votes, S is at least as high for the one with the larger P: swapping them leaves the cone
    unchanged, and swapping them back to the order of P does not increase the distance. It is therefore enough to
    require decreasing votes, and decreasing P among equal votes. This is a chain, which pooling solves. Pooled means
    preserve the sum and stay above the minimum, so S is on the simplex if P is. (Pooling the classes with equal votes
    first would force them to be equal, which is a smaller cone.)

    >>> squared_distance_to_vote_order(np.array([[0.5, 0.1, 0.2]]), np.array([[4, 4, 2]])).round(3).tolist()
    [0.005]
    """
    order = np.lexsort((-P, -votes), axis=1)
    predicted = np.take_along_axis(P, order, axis=1)
    return np.asarray(np.square(predicted - project_nonincreasing(predicted)).sum(axis=1))


def project_nonincreasing(x: Array) -> Array:
    """Return the nearest non-increasing vector of each row of x (n, m), by the pool-adjacent-violators algorithm.

    All rows are processed together, column by column. Each column starts as a block of its own. A block whose mean is
    larger than that of the block before it is merged with it, until the means of the row do not increase.
    """
    n, m = x.shape
    block_sums, block_sizes = np.zeros((n, m)), np.zeros((n, m), dtype=np.int64)
    last_block = np.full(n, -1)  # number of the last block of each row
    rows = np.arange(n)
    for column in range(m):
        last_block += 1
        block_sums[rows, last_block], block_sizes[rows, last_block] = x[:, column], 1
        violators = rows[last_block > 0]
        while len(violators):
            block = last_block[violators]
            # Means compared without dividing
            is_violator = (
                block_sums[violators, block] * block_sizes[violators, block - 1]
                > block_sums[violators, block - 1] * block_sizes[violators, block]
            )
            violators, block = violators[is_violator], block[is_violator]
            block_sums[violators, block - 1] += block_sums[violators, block]
            block_sizes[violators, block - 1] += block_sizes[violators, block]
            block_sizes[violators, block] = 0
            last_block[violators] -= 1
            violators = violators[last_block[violators] > 0]
    blocks = block_sizes > 0
    return np.repeat(block_sums[blocks] / block_sizes[blocks], block_sizes[blocks]).reshape(n, m)


def _vote_noise(vote_shares: Array, view: View) -> Array:
    """Σ v(1 − v) / (votes − 1) of the vote shares v of each row, (n,); 0 if the number of votes is unknown."""
    if view.votes is None:
        return np.zeros(len(vote_shares))
    known = view.votes > 1
    return np.where(known, (vote_shares * (1 - vote_shares)).sum(axis=1) / np.where(known, view.votes - 1, 1), 0.0)


def _has_shares(y: Array) -> Array:
    """Mask of the outcomes that are shares of several votes."""
    return np.asarray((y > 0) & (y < 1))

"""Calibration to human label uncertainty: entropy, distribution, ranking and squared distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import entr

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.estimators.base import Mean, require_single_rows
from trueodds.lenses.view import View

MIN_VOTES = 30  # votes per row below which the noise of the votes is as large as the differences measured


@dataclass(frozen=True)
class VoteMean(Mean):
    """Base class: a mean over rows of a comparison between predicted probabilities and the votes of annotators.

    A binary view is the vector (1 − p, p) of two outcomes. A single label counts as one vote.

    Raises
    ------
    InputError
        TO203 if a setting is invalid. TO205 if the view holds cells of many rows.
    """

    lens: ClassVar[str | None] = "canonical"
    null_draws_of: ClassVar[str] = "votes"

    def row_scores(self, view: View) -> Array:
        require_single_rows(view, self.name)
        return self.row_values(*predicted_and_voted_shares(view), view)

    def row_values(self, P: Array, vote_shares: Array, view: View) -> Array:
        """Value of each row from predicted and voted shares, both (n, m) float64."""
        raise NotImplementedError

    def parts(self, view: View) -> dict[str, float]:
        """Median number of votes per row, if known."""
        if view.votes is None:
            return {}
        return {"median_votes": float(np.median(view.votes[view.w > 0]))}

    def notes(self, view: View) -> list[Note]:
        y, votes = view.y[view.w > 0], self.parts(view).get("median_votes")
        if votes is None and ((y > 0) & (y < 1)).any():
            text = (
                "Votes are given as shares and the number of votes is unknown, so there is no noise floor. Pass the"
                " counts."
            )
            return [Note("TN132", text)]
        if votes is None or votes == 1:
            text = (
                "Rows have a single label, which counts as a unanimous vote. Even a perfect model is far from it, so"
                " compare with the noise floor."
            )
            return [Note("TN131", text)]
        if votes < MIN_VOTES:
            n_votes = view.votes[view.w > 0] if view.votes is not None else np.array([votes])
            subject = "Every row has" if n_votes.min() == n_votes.max() else "Half of the rows have at most"
            text = (
                f"{subject} {votes:g} votes. With so few, even a perfect model does not reach the best value, so"
                " compare with the noise floor."
            )
            return [Note("TN131", text)]
        return []

    def joint_notes(self, views: Sequence[View]) -> list[Note]:
        return self.notes(views[0])


@dataclass(frozen=True)
class EntropyError(VoteMean):
    r"""Human entropy calibration error (EntCE): difference between the entropy of the model and of annotator votes.

    Parameters
    ----------
    signed : bool, default=False
        Average the signed difference, so that overconfident and underconfident rows cancel.
    base : {"e", "2"}, default="e"
        Entropy in nats or in bits.
    correction : {"miller-madow"}, optional
        Add the first-order bias correction of the entropy of few votes.

    Raises
    ------
    InputError
        TO203 if a setting is unknown. TO205 if the view holds cells of many rows, or if a correction is requested and
        the numbers of votes are unknown.

    See Also
    --------
    distce : Total variation between probabilities and votes.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, |H(P_i) - H(V_i)|, \quad H(q) = -\sum_k q_k \log q_k

    Entropy does not depend on which classes are uncertain: a model that is undecided between the wrong classes can
    score 0, so use it together with `distce`. `parts` holds `mean_absolute`, `mean_signed` and `median_votes`. Shapes:
    a binary view (n,) or a joint view (n, m). The default lens is canonical.

    Units: nats, in [0, log m]; 0 is best. The signed value is positive if the model is less certain than the
    annotators.

    Bias: upward. The entropy of votes is too low by about (number of classes with votes − 1) / (2 · votes), which is
    large with fewer than 30 votes per row. `noise_floor` reports the score of a model from whose probabilities the
    votes were drawn.

    Cost: O(nm). Rows are required.

    References
    ----------
    .. [1] Baan, Aziz, Plank & Fernández (2022).
    .. [2] Miller (1955), for the correction.

    Examples
    --------
    >>> import trueodds as to
    >>> votes = [[1, 1], [0, 2]]
    >>> round(to.measure(votes, [0.5, 0.5], "entce", base="2", interval=None).value, 4)
    0.5
    """

    name: ClassVar[str] = "entce"
    signed: bool = False
    base: Literal["e", "2", 2] = "e"
    correction: Literal["miller-madow"] | None = None

    def as_loss(self, values: Any) -> Any:
        """Absolute value of a signed mean, because both signs are errors."""
        return np.abs(values) if self.signed else values

    def row_values(self, P: Array, vote_shares: Array, view: View) -> Array:
        gap = self._entropy_differences(P, vote_shares, view)
        return gap if self.signed else np.abs(gap)

    def parts(self, view: View) -> dict[str, float]:
        """Mean absolute and mean signed difference."""
        require_single_rows(view, self.name)
        gap = self._entropy_differences(*predicted_and_voted_shares(view), view)[view.w > 0]
        share = view.w[view.w > 0] / view.total
        mean_differences = {"mean_absolute": float(share @ np.abs(gap)), "mean_signed": float(share @ gap)}
        return mean_differences | super().parts(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"signed": self.signed, "base": str(self.base), "correction": self.correction}

    def _entropy_differences(self, P: Array, vote_shares: Array, view: View) -> Array:
        """Entropy of the prediction minus that of the votes of each row, (n,)."""
        vote_entropy = _entropy(vote_shares)
        if self.correction:
            vote_entropy = vote_entropy + self._miller_madow_correction(vote_shares, view)
        gap: Array = _entropy(P) - vote_entropy
        return gap / np.log(2) if str(self.base) == "2" else gap

    def _miller_madow_correction(self, vote_shares: Array, view: View) -> Array:
        """Bias correction (number of classes with votes − 1) / (2 · votes), which is 0 for unanimous rows."""
        extra_classes = (vote_shares > 0).sum(axis=1) - 1
        if view.votes is not None:
            return extra_classes / (2.0 * view.votes)
        if extra_classes[view.w > 0].any():
            raise InputError(
                "TO205",
                "The entropy correction needs the number of votes of each row.",
                "shares of votes",
                "Pass the votes as integer counts, or omit correction.",
            )
        return np.zeros(len(vote_shares))


@dataclass(frozen=True)
class DistributionError(VoteMean):
    r"""Human distribution calibration error (DistCE): total variation between probabilities and annotator votes.

    It is the mean probability mass that would have to move, row by row, to agree with the votes.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, \tfrac12 \sum_k |P_{ik} - V_{ik}|

    This is the strictest notion: every row must match, not groups of rows. `parts` holds `median_votes`. Shapes: a
    binary view (n,), where the value is the mean of |p - y|, or a joint view (n, m). The default lens is canonical.

    Units: probability, in [0, 1]; 0 is best.

    Bias: upward. A model from whose probabilities the votes were drawn scores about sum over k of sqrt(P(1-P) / (2 pi
    votes)). `noise_floor` reports its exact distribution.

    Cost: O(nm). Rows are required.

    References
    ----------
    .. [1] Baan, Aziz, Plank & Fernández (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([[3, 2, 5]], [[0.1, 0.2, 0.7]], "distce", interval=None).value, 4)
    0.2
    """

    name: ClassVar[str] = "distce"
    lower_bound: ClassVar[float] = 0.0

    def row_values(self, P: Array, vote_shares: Array, view: View) -> Array:
        return np.asarray(np.abs(P - vote_shares).sum(axis=1) / 2)


@dataclass(frozen=True)
class RankAgreement(VoteMean):
    r"""Human ranking calibration score (RankCS): share of rows whose classes the model ranks as the annotators do.

    Parameters
    ----------
    ties : {"tolerant", "index"}, default="tolerant"
        Handling of classes with equally many votes. "tolerant" accepts any order of them. "index" orders them by class
        number, as the paper does.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i\, 1\{V_{ia} > V_{ib} \Rightarrow P_{ia} > P_{ib} \text{ for all } a, b\}

    Classes with different numbers of votes must not be tied in P. The tolerant rule is specific to this library.
    `parts` holds `tie_rate`, the share of rows in which two classes have equally many votes (including none), and
    `median_votes`. Shapes: a binary view (n,) or a joint view (n, m). The default lens is canonical.

    Units: share of rows, in [0, 1]; 1 is best. With single labels it is the accuracy.

    Bias: downward, because votes that happen to swap two close classes count against the model. Even a model from whose
    probabilities the votes were drawn scores below 1, at the value that `noise_floor` reports.

    Cost: O(nm log m). Rows are required.

    References
    ----------
    .. [1] Baan, Aziz, Plank & Fernández (2022).

    Examples
    --------
    >>> import trueodds as to
    >>> votes, P = [[2, 2, 6], [2, 3, 5]], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
    >>> to.measure(votes, P, "rankcs", interval=None).value
    0.5
    """

    name: ClassVar[str] = "rankcs"
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0
    best_value: ClassVar[float] = 1.0
    ties: Literal["tolerant", "index"] = "tolerant"

    def row_values(self, P: Array, vote_shares: Array, view: View) -> Array:
        """1 for each row whose ranking agrees, else 0."""
        votes = vote_counts(vote_shares, view)
        if self.ties == "index":
            equal_ranks = np.argsort(P, axis=1, kind="stable") == np.argsort(votes, axis=1, kind="stable")
            return equal_ranks.all(axis=1).astype(np.float64)
        # Sorted by decreasing votes, and in ties by decreasing probability, probabilities must decrease with the votes.
        order = np.lexsort((-P, -votes), axis=1)
        predicted, voted = (np.take_along_axis(values, order, axis=1) for values in (P, votes))
        is_tied, is_ordered = voted[:, :-1] == voted[:, 1:], predicted[:, :-1] > predicted[:, 1:]
        return (is_tied | is_ordered).all(axis=1).astype(np.float64)

    def parts(self, view: View) -> dict[str, float]:
        """Share of rows in which two classes have equally many votes."""
        require_single_rows(view, self.name)
        votes = np.sort(vote_counts(predicted_and_voted_shares(view)[1], view)[view.w > 0], axis=1)
        tied = (votes[:, 1:] == votes[:, :-1]).any(axis=1)
        return {"tie_rate": float(weighted_sum(view.w[view.w > 0], tied) / view.total)} | super().parts(view)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"ties": self.ties}


def vote_counts(vote_shares: Array, view: View) -> Array:
    """Return the votes (n, m) as counts if known, because shares summed by a lens may miss a tie by rounding."""
    return vote_shares if view.votes is None else np.rint(vote_shares * view.votes[:, None])


def predicted_and_voted_shares(view: View) -> tuple[Array, Array]:
    """Return the predicted and voted share of every outcome, (n, m) float64. A binary view has two outcomes."""
    return view.P, view.Y


def _entropy(q: Array) -> Array:
    """Entropy (n,) in nats of distributions q (n, m). Values below 0 from rounding count as 0."""
    return np.asarray(entr(np.maximum(q, 0.0)).sum(axis=1))


@dataclass(frozen=True)
class HumanDistance(VoteMean):
    r"""Squared distance between probabilities and the label distribution of annotators, corrected for few votes.

    It also reports how much of the distance is due to the ranking of the classes.

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

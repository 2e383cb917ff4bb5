"""What does a calibrator say of rows that its fit has not seen, and which one would have been chosen without them?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trueodds.calibrators.base import CalibratorSpec, applied
from trueodds.calibrators.choosing.gain import log_capped, mean_and_error, mixed, mixing
from trueodds.calibrators.likelihood.logs import Probabilities, probabilities
from trueodds.core.typing import Array
from trueodds.tallies.scores import log_score

EQUAL = 1e-9  # nats per row by which maps that are the same may differ, as `ensemble_temperature` and `temperature`
HOPELESS = 2.0  # standard errors behind the best, from which a candidate is not fitted any more


class Rows(NamedTuple):
    """The rows on which candidates are compared, and the fold of each."""

    P: Probabilities  # (n, K)
    Y: Array  # (n, K)
    w: Array  # (n,)
    fold: Array  # (n,) 0..folds − 1
    cluster: Array | None = None

    @property
    def folds(self) -> int:
        """How many folds."""
        return int(self.fold.max()) + 1

    def shares(self) -> Array:
        """The share of the uniform that is mixed into what is said of each row, by fits without its fold, (n, 1)."""
        n, sizes = len(self.w), np.bincount(self.fold)
        return np.asarray(np.array([mixing(n - size) for size in sizes.tolist()])[self.fold][:, None])

    def logs(self, spec: CalibratorSpec, train: Array, to: Array) -> Array:
        """The logarithms of what the rule, fitted to the rows `train`, says of the rows `to`; after mixing, but of the identity."""
        share = mixing(int(train.sum()))
        if spec.name == "identity":
            return log_capped(probabilities(self.P[to]), share)
        Q = applied(spec, self.P[train], self.Y[train], self.w[train], self.P[to])
        return np.asarray(np.log(mixed(Q, share)))

    def crossed(self, spec: CalibratorSpec) -> Array:
        """The same of all rows, each by a fit without its fold, (n, K)."""
        out = np.empty(self.Y.shape)
        for f in range(self.folds):
            to = self.fold == f
            out[to] = self.logs(spec, ~to, to)
        return out

    def compared(self, losses: Array, some: Array | slice = slice(None)) -> tuple[int, list[tuple[float, float]]]:
        """Which of the candidates' losses (c, m) on some rows is the least, and the mean distance of each, with its error."""
        w, cluster = self.w[some], None if self.cluster is None else self.cluster[some]
        means = losses @ w / w.sum()
        lowest = int(np.argmax(means <= means.min() + EQUAL))
        return lowest, [mean_and_error(loss - losses[lowest], w, cluster) for loss in losses]


class Inner(NamedTuple):
    """What choosing without each fold came to."""

    chosen: tuple[int, ...]  # by fold: the candidate that the other folds choose
    dropped: frozenset[int]  # candidates that no fold chose, and most left behind
    losses: Array  # (c, n) means over the fits without two folds


def simplest(specs: Sequence[CalibratorSpec], distances: Sequence[tuple[float, float]]) -> int:
    """The simplest candidate within one standard error of the best that gains half as much; else the identity, if it is best.

    That nothing is changed without need is for the confirmation to see to.
    """
    identity = next(i for i, spec in enumerate(specs) if spec.name == "identity")
    gain, _ = distances[identity]
    if gain <= EQUAL:
        return identity
    near = (i for i, (distance, se) in enumerate(distances) if distance <= min(se, gain / 2) + EQUAL)
    return next(i for i in near if i != identity)


def chosen_without(rows: Rows, specs: Sequence[CalibratorSpec]) -> Inner:
    """The candidate that would be chosen without each fold: by fits without two folds, judged on one of these.

    A fit without the folds j and k is judged on j where the choice is made without k, and on k where it is made without
    j. The pairs come in turns, each fold in as many, and after each turn but the last the choice without k goes on
    among fewer: those are left behind that are `HOPELESS` standard errors from the best, or more complex than the one
    that is chosen so far and no better.
    """
    folds, n = rows.folds, len(rows.w)
    losses = np.full((folds, len(specs), n), np.nan)
    alive, known = np.ones((folds, len(specs)), dtype=bool), np.zeros((folds, n), dtype=bool)
    chosen = np.zeros(folds, dtype=np.int64)
    for turn in range(1, folds // 2 + 1):
        for j, k in sorted({(min(pair), max(pair)) for pair in ((f, (f + turn) % folds) for f in range(folds))}):
            in_j, in_k = rows.fold == j, rows.fold == k
            both = in_j | in_k
            for i in np.flatnonzero(alive[j] | alive[k]).tolist():
                loss = log_score(rows.logs(specs[i], ~both, both), rows.Y[both])
                losses[k, i, in_j], losses[j, i, in_k] = loss[in_j[both]], loss[in_k[both]]
            known[k, in_j] = known[j, in_k] = True
        for f in range(folds):
            left = np.flatnonzero(alive[f]).tolist()
            _, distances = rows.compared(losses[f][np.ix_(left, known[f])], known[f])
            among = [specs[i] for i in left]
            now = simplest(among, distances)
            chosen[f] = left[now]
            if turn < folds // 2:
                for place in _left_behind(among, distances, now):
                    alive[f, left[place]] = False
    dropped = {i for i in range(len(specs)) if 2 * alive[:, i].sum() < folds} - set(chosen.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a candidate may be without a fit for some rows
        return Inner(tuple(chosen.tolist()), frozenset(dropped), np.nanmean(losses, axis=0))


def _left_behind(specs: Sequence[CalibratorSpec], distances: Sequence[tuple[float, float]], now: int) -> list[int]:
    dropped = []
    for i, (distance, se) in enumerate(distances):
        no_better = i > now and distance >= distances[now][0]
        if specs[i].name != "identity" and i != now and (no_better or distance > HOPELESS * se):
            dropped.append(i)
    return dropped

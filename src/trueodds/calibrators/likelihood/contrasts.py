"""Which slope and shift of each class's log odds against one of them make what came most likely?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.calibrators.likelihood.descent import descent
from trueodds.calibrators.likelihood.likeliest import MANY, SLIGHT
from trueodds.calibrators.likelihood.logs import softmax
from trueodds.calibrators.likelihood.newton import Minimum, Ridge, minimum
from trueodds.tally.by_class import by_class

Array = NDArray[Any]

_EQUAL = 1e-12  # of log odds: those that lie so close together are equal


def contrasts(x: Array, Y: Array, w: Array, free: Array, penalty: float) -> Minimum:
    """(γ, τ) of each class that is free, from log odds x (n, K) against the baseline; that of the baseline is 0."""
    k, mass = Y.shape[1], float(w.sum()) or 1.0
    # Around their means, where the rows alone decide: then log odds that are all equal leave the slope as it is.
    means = np.zeros(k) if penalty else w @ x / mass
    x = x - means
    x[:, np.abs(x).max(axis=0, initial=0.0) <= _EQUAL * (1 + np.abs(means))] = 0.0
    at_identity, means = partial(softmax, x + means), means[free]
    ties = np.repeat(np.eye(k)[:, free], 2, axis=0).repeat(2, axis=1) * np.tile(np.eye(2), (k, int(free.sum())))
    target = np.column_stack([np.ones(len(means)), means]).reshape(-1)
    sums = partial(by_class, np.asfortranarray(x)[:, :, None], np.asfortranarray(Y), w, ties=ties)

    def least(strength: float, nothing: float) -> Minimum:
        pull = np.full(len(target), strength / mass)
        if len(target) <= MANY:
            return minimum(sums, target, Ridge(pull, target), nothing=nothing)
        q = at_identity()
        bend = (w / mass) @ np.stack([q * (1 - q) * x**2, q * (1 - q)], axis=2).reshape(len(x), -1) @ ties
        scale = 1 / np.sqrt(bend + 2 * pull + 1e-9 * bend.max())
        return descent(partial(sums, curved=False), target, Ridge(pull, target), scale)

    found = least(penalty, 1e-2)
    if not found.converged:
        slight = least(penalty + SLIGHT, 0.0)
        found = Minimum(slight.theta, slight.at, found.passes + slight.passes, False, slight.slope)
    back = found.theta.copy()
    back[1::2] -= back[::2] * means
    return Minimum(back, found.at, found.passes, found.converged, found.slope)

"""Where do the rows come from? Gaussian mixtures of several modes a class, drawn anew for every seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trueodds.core.typing import Array

MODES = 4  # of each class
MAX_ENTRY = 0.3  # entries of the matrix that a mode's normal numbers are multiplied by lie in ± this
RAREST = 10.0  # how many times as often the first class comes as the last one, where classes are uneven


@dataclass(frozen=True)
class Mixture:
    """A distribution of the experiment: K classes in d dimensions.

    Means are uniform on [−1, 1]^d, covariances AᵀA with entries of A uniform on [−.3, .3], modes of a class equally
    frequent. Source: Posocco & Bonnefoy (2021), section 5.1.
    """

    k: int
    d: int
    number: int  # of the distributions of this shape
    seed: int = 0
    even: bool = True  # whether classes are equally frequent

    @property
    def key(self) -> tuple[int, ...]:
        """What seeds everything that is drawn from it."""
        return (self.seed, self.k, self.d, self.number, int(self.even))

    @cached_property
    def parts(self) -> tuple[Array, Array]:
        """Means (K·modes, d) and matrices (K·modes, d, d); uneven classes have the same."""
        rng = np.random.default_rng([*self.key[:-1], 1])
        size = self.k * MODES
        return rng.uniform(-1, 1, (size, self.d)), rng.uniform(-MAX_ENTRY, MAX_ENTRY, (size, self.d, self.d))

    @property
    def prior(self) -> Array:
        """How often each class comes, (K,)."""
        p = np.ones(self.k) if self.even else RAREST ** -(np.arange(self.k) / (self.k - 1))
        return np.asarray(p / p.sum())

    def rows(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        """Features (n, d) and labels (n,) of n independent rows."""
        means, matrices = self.parts
        mode = rng.choice(self.k * MODES, n, p=np.repeat(self.prior / MODES, MODES))
        normal = rng.standard_normal((n, self.d))
        X = np.empty_like(normal)
        for m in range(len(means)):
            indices = np.flatnonzero(mode == m)
            X[indices] = means[m] + normal[indices] @ matrices[m]
        return X, mode // MODES

    def posterior(self, X: Array) -> Array:
        """The true probability of each class at X (n, d), (n, K)."""
        means, matrices = self.parts
        logs = np.empty((len(X), len(means)))
        for m, (mean, A) in enumerate(zip(means, matrices, strict=True)):
            z = np.linalg.solve(A.T, (X - mean).T)  # x = mean + z A, so that zᵀ = A⁻ᵀ (x − mean)ᵀ
            logs[:, m] = -0.5 * (z**2).sum(axis=0) - np.log(abs(np.linalg.det(A)))
        logs += np.repeat(np.log(self.prior), MODES)
        share = np.exp(logs - logs.max(axis=1, keepdims=True)).reshape(len(X), self.k, MODES).sum(axis=2)
        return np.asarray(share / share.sum(axis=1, keepdims=True))

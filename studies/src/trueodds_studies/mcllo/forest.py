"""What does a forest say of which every probability is known? Votes of 20 trees, and the numbers that may stand in for their zeros."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trueodds.core.typing import Array

FLOORS = (2.2e-16, 1e-12, 1e-8, 1e-6, 1e-4, 1e-3)  # the first is what rounding leaves of 1


@dataclass(frozen=True)
class Forest:
    r"""Votes v ~ Multinomial(trees, r) and labels that come with the same r ~ Dirichlet(½, …, ½).

    Given its votes a label comes with probability :math:`(v_j + ½) / (\sum v + K/2)`: votes + ½ are exactly right,
    and a class without votes comes in 1 of 43 rows where 20 trees vote among 3 classes.
    """

    n: int = 240
    trees: int = 20
    k: int = 3

    def rows(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Votes (n, k) and labels (n,)."""
        r = rng.dirichlet(np.full(self.k, 0.5), self.n)
        y = (np.cumsum(r, axis=1)[:, :-1] <= rng.random(self.n)[:, None]).sum(axis=1)
        return rng.multinomial(self.trees, r), y


@dataclass(frozen=True)
class Stand:
    """What stands in for a zero: a floor of the shares, votes added to every class, or a mixture with the uniform."""

    kind: str
    amount: float = 0.0

    @property
    def name(self) -> str:
        """As the tables call it."""
        return {
            "floor": f"floor {self.amount:.2g}",
            "votes": f"votes + {self.amount:.3g}",
            "mixture": "mixture 1/(n + 1)",
        }[self.kind]

    def of(self, votes: Array) -> Array:
        """Probabilities above 0, rows summing to 1.

        >>> Stand("votes", 0.5).of(np.array([[1, 0]])).tolist()
        [[0.75, 0.25]]
        """
        n, k = votes.shape
        if self.kind == "votes":
            P = votes + self.amount
        else:
            P = votes / votes.sum(axis=1, keepdims=True)
            P = np.maximum(P, self.amount) if self.kind == "floor" else n / (n + 1) * P + 1 / ((n + 1) * k)
        return np.asarray(P / P.sum(axis=1, keepdims=True))


def stands(k: int = 3) -> Iterator[Stand]:
    """From the smallest floor to the most votes added."""
    yield from (Stand("floor", min_prob) for min_prob in FLOORS)
    yield Stand("mixture")
    yield from (Stand("votes", amount) for amount in (1 / k, 0.5))


def unexpected(votes: Array, y: Array) -> Array:
    """(n,) whether what came had no votes."""
    return np.asarray(votes[np.arange(len(y)), y] == 0)

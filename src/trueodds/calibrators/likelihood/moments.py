"""How do columns vary together, and how are they turned so that they do not? Moments that add, without losing digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trueodds.core.typing import Array

_ALIKE = 1e-9  # a column that varies by less, relative to its size, is constant
_SAME = 1e-8  # the share of the variance below which columns are linear in each other


class Lines(NamedTuple):
    """Rows of a binary logistic model."""

    X: Array  # (n, m), best column by column in memory; the first is the intercept's, where there is one
    y: Array  # (n,) shares
    w: Array  # (n,)
    offset: Array | None = None  # (n,)


class Turns(NamedTuple):
    """From columns to uncorrelated ones of variance 1, and back."""

    shift: Array  # (m,) added to each column
    varies: Array  # (m,) whether it varies
    inner: Array  # (m, r) of the shifted columns
    turn: Array  # (m, r) from the coefficients of the new columns to those of the old ones
    back: Array  # (r, m) for which back·turn = 1

    def turned(self, lines: Lines, rest: Array) -> Lines:
        """The new columns, with what `rest` makes of the old ones as the offset."""
        Z = (lines.X.T + self.shift[:, None]) * self.varies[:, None]
        columns = np.zeros((self.inner.shape[1], len(lines.X)))
        for i, j in np.ndindex(*columns.shape[:1], len(Z)):
            columns[i] += self.inner[j, i] * Z[j]
        return Lines(columns.T, lines.y, lines.w, lines.X @ rest)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums of squares of columns about their means; those of more rows are the sum, by the distance of the means.

    >>> X, y, w = np.array([[1.0, 2.0], [1.0, 4.0], [1.0, 9.0]]), np.array([1.0, 0.0, 1.0]), np.ones(3)
    >>> one, both = Moments.of(Lines(X[:1], y[:1], w[:1])), Moments.of(Lines(X[1:], y[1:], w[1:]))
    >>> (one + both).products.tolist(), Moments.of(Lines(X, y, w)).products.tolist()
    ([[3.0, 0.0], [0.0, 26.0]], [[3.0, 0.0], [0.0, 26.0]])
    """

    total: float
    n_events: float
    n_nonevents: float
    means: Array  # (m,) 0 where a column is not shifted: of the intercept, or where there is none
    squares: Array  # (m,) Σ w x², as they are
    products: Array  # (m, m) Σ w zz', about the means

    @classmethod
    def of(cls, lines: Lines, intercept: bool = True) -> Moments:
        """Of some rows."""
        X, y, w, _ = lines
        total, means = float(w.sum()), np.zeros(X.shape[1])
        if intercept and total > 0:
            means[1:] = [w @ column / total for column in X.T[1:]]
        Z = X.T - means[:, None]
        squares = np.array([w @ column**2 for column in X.T])
        products = np.array([[(w * one) @ other for other in Z] for one in Z])
        return cls(total, float(w @ y), float(w @ (1 - y)), means, squares, products.reshape(len(Z), len(Z)))

    def __add__(self, other: Moments) -> Moments:
        total, difference = self.total + other.total, other.means - self.means
        part = other.total / total if total > 0 else 0.0
        return Moments(
            total,
            self.n_events + other.n_events,
            self.n_nonevents + other.n_nonevents,
            self.means + difference * part,
            self.squares + other.squares,
            self.products + other.products + self.total * part * np.outer(difference, difference),
        )

    @property
    def turns(self) -> Turns:
        """To uncorrelated columns."""
        m, total = len(self.means), self.total
        size, rms = np.sqrt(self.products.diagonal() / total), np.sqrt(self.squares / total)
        varies = size > _ALIKE * rms
        size = np.where(varies, size, 1.0)
        correlation = self.products * np.outer(varies, varies) / total / np.outer(size, size)
        values, turns = np.linalg.eigh(correlation)
        live = values > _SAME * max(float(values[-1]), _SAME)
        values, turns = np.sqrt(values[live]), turns[:, live]
        center = np.eye(m)
        center[0, 1:] = -self.means[1:]
        inner = turns / size[:, None] / values
        back = (turns * size[:, None] * values).T @ np.linalg.inv(center)
        return Turns(-self.means, varies, inner, center @ inner, back)

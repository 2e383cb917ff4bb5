"""Log odds of a view, and orthonormal polynomials of them with their score statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.lenses.view import View

MinProb = Annotated[float, Range(1e-15, 0.5, closed="left")] | Annotated[float, Range(0, 0)]  # 1 − floor is no 1

CERTAIN = 1e-20  # of the information that each row has beside its own
MIN_INFORMATION = (
    1e-100  # of a row's weight: the information by which columns are scaled, so that their powers are finite
)
LARGEST = 1e50  # score of outcomes that are next to impossible: its powers are finite
ROUNDING, TINY = 1e-24, 1e-160


@dataclass(frozen=True, eq=False, slots=True)
class Logits:
    """The cells of a view on the scale of log odds; those without weight stand at 0 and count for nothing."""

    p: Array  # (n,) in [0, 1]
    x: Array  # (n,) its logit
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    bread: Array  # (n,) Σw p(1−p), the information on the logit
    meat: Array  # (n,) Σw²p(1−p), the variance of Σw(y − p)
    squared_weight: Array  # (n,) the square of one row's weight
    touched: int  # rows that the floor moved

    @classmethod
    def of(cls, view: View, min_prob: float, name: str) -> Logits:
        """The logits of a view; where one is infinite a floor must be given."""
        w, mask = view.w, view.w > 0
        logs = np.where(mask[:, None], view.log_P, np.log(0.5))
        certain = np.isneginf(logs).any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"The log odds of a probability of 0 or 1 are infinite, and {name} needs them.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with probability 0 or 1",
                "Give min_prob=, for instance 1e-6, which a note then counts; or use the tests spiegelhalter or consistency.",
            )
        moved = np.zeros(len(w), dtype=bool)
        p, q = (np.where(mask, prob.astype(np.float64), 0.5) for prob in (view.p, view.q))
        if min_prob:
            moved = (logs < np.log(min_prob)).any(axis=1)
            logs = np.clip(logs, np.log(min_prob), np.log1p(-min_prob))
            p, q = (np.clip(prob, min_prob, 1 - min_prob) for prob in (p, q))
        v, ww = p * q, view.sums("ww")
        bread, meat = w * v, ww * v
        if not view.is_rows:
            inside = mask & ~moved
            bread = np.where(inside, np.maximum(view.w * view.p - view.sums("wpp"), 0.0), bread)
            meat = np.where(inside, view.sums("wwv"), meat)
        x = logs[:, 1] - logs[:, 0]
        return cls(p, x, w, ww, bread, meat, ww / np.maximum(view.n, 1.0), int(view.n[moved].sum()))

    def notes(self, view: View, min_prob: float) -> tuple[Note, ...]:
        """How many rows the floor moved."""
        if not self.touched:
            return ()
        text = f"The floor {min_prob:g} stood in for the probabilities of {self.touched:,} of {view.n_rows:,} rows."
        return (Note("TN106", text),)


@dataclass(frozen=True, eq=False, slots=True)
class Powers:
    """Polynomials of the logit x up to a degree, orthonormal in the information of the null, and their scores."""

    columns: Array  # (n, m + 1), one per degree; fewer than asked where x takes few values
    raw: Array  # (m + 1, m + 1): column j is Σ_i raw[i, j] x^i
    by_bread: (
        Array  # (m + 1, m + 1) lower triangular: by the information, scores of variance 1 independent of each other
    )
    white: Array  # (m + 1, m + 1) the same by the variance
    tosses: Array  # (m + 1,) the tosses of a fair coin whose number of heads would be as far from normal as the score

    @classmethod
    def of(cls, logits: Logits, degree: int) -> Powers:
        """Each column from the last one times x, without what the earlier ones hold already."""
        information = float(logits.bread.sum())
        weight = logits.w / logits.w.sum()
        # A little of every row, so that those which the null takes for certain are told apart, too.
        weight = logits.bread / information + CERTAIN * weight if information > 0 else weight
        center = float(weight @ logits.x)
        scale = float(np.sqrt(weight @ (logits.x - center) ** 2))
        distinct = scale > 1e-12 * max(1.0, abs(center))
        x = (logits.x - center) / (scale if distinct else 1.0)
        columns, raw = [np.ones(len(weight))], [np.eye(1, degree + 1)[0]]
        for _ in range(degree if distinct else 0):
            column = x * columns[-1]
            terms = (np.roll(raw[-1], 1) - center * raw[-1]) / scale
            full_size = np.sqrt(weight @ column**2)
            for _twice in range(2):
                for earlier, its in zip(columns, raw, strict=True):
                    share = weight @ (column * earlier)
                    column, terms = column - share * earlier, terms - share * its
            size = np.sqrt(weight @ column**2)
            if size <= 1e-9 * full_size:
                break
            columns.append(column / size)
            raw.append(terms / size)
        total = np.sqrt(max(information, MIN_INFORMATION * logits.w.sum()))
        made, m = np.stack(columns, axis=1) / total, len(columns)
        bread, meat = (made.T @ (weights[:, None] * made) for weights in (logits.bread, logits.meat))
        # The fourth cumulant of y is about its variance where outcomes are rare: the few rows with weight in q⁴ tell.
        peaked, squared_variance = (logits.meat * logits.squared_weight) @ made**4, np.diag(meat) ** 2
        tosses = np.divide(4 * squared_variance, peaked, out=np.zeros(m), where=peaked > 0)
        return cls(made, np.stack(raw, axis=1)[:m] / total, _independent(bread), _independent(meat), tosses)

    @property
    def degree(self) -> int:
        """The highest power."""
        return self.columns.shape[1] - 1

    def coefficients(self, beta: Array) -> Array:
        """Of 1, x, x², … in the fitted log odds, where β moves them away from x itself."""
        b = self.raw[: len(beta), : len(beta)] @ beta
        b[1:2] += 1.0
        return b

    def scores(self, residuals: Array) -> tuple[Array, Array]:
        """Squared scores of each degree (…, m + 1) from Σw(y − p) (…, n): by the information, and by the variance.

        Summed up to a degree they are its score statistics; by the variance each is χ² with one degree of freedom,
        independently of the others.
        """
        scores = residuals @ self.columns
        by_bread, by_meat = (np.clip(scores @ root.T, -LARGEST, LARGEST) ** 2 for root in (self.by_bread, self.white))
        return by_bread, by_meat


def _independent(covariance: Array) -> Array:
    """The inverse of the lower triangular root; a variance that is rounding beside its column's is that much at least."""
    root = np.zeros_like(covariance)
    for j, own in enumerate(covariance.diagonal()):
        root[j, :j] = np.linalg.solve(root[:j, :j], covariance[:j, j])
        root[j, j] = np.sqrt(max(own - root[j, :j] @ root[j, :j], ROUNDING * own, TINY))
    return np.linalg.inv(root)

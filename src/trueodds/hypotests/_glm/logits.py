"""Log odds of a view, and orthonormal polynomials of them with their score statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.lenses.view import View

MinProb = Annotated[float, Range(1e-15, 0.5, closed="left")] | Annotated[float, Range(0, 0)]  # 1 − min_prob < 1

ADDED_INFORMATION = 1e-20  # information added to each row, relative to its weight
MIN_INFORMATION = 1e-100  # lower limit of the information per weight, so that powers of the columns are finite
MAX_SCORE = 1e50  # upper limit of the scores of nearly impossible outcomes, so that their powers are finite
ROUNDING, TINY = 1e-24, 1e-160


@dataclass(frozen=True, eq=False, slots=True)
class Logits:
    """Cells of a view on the logit scale; cells without weight have log odds 0 and do not count."""

    p: Array  # (n,) in [0, 1]
    x: Array  # (n,) its logit
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    information: Array  # (n,) Σw p(1−p), the information on the logit
    score_variance: Array  # (n,) Σw²p(1−p), the variance of Σw(y − p)
    squared_weight: Array  # (n,) the square of one row's weight
    n_clipped: int  # number of rows clipped at min_prob

    @classmethod
    def from_view(cls, view: View, min_prob: float, name: str) -> Logits:
        """Log odds of a view; infinite log odds require `min_prob`."""
        w, mask = view.w, view.w > 0
        logs = np.where(mask[:, None], view.log_P, np.log(0.5))
        certain = np.isneginf(logs).any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"{name} uses log odds, which are infinite for probabilities of 0 or 1.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with probability 0 or 1",
                "Pass min_prob=, for example 1e-6, or use the tests spiegelhalter or consistency.",
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
        """A note on the number of clipped rows."""
        if not self.n_clipped:
            return ()
        text = f"min_prob={min_prob:g} clipped the probabilities of {self.n_clipped:,} of {view.n_rows:,} rows."
        return (Note("TN106", text),)


@dataclass(frozen=True, eq=False, slots=True)
class LogitPolynomials:
    """Polynomials of the logit x up to a degree, orthonormal in the null information, and their scores."""

    columns: Array  # (n, m + 1), one per degree; fewer than requested if x has few distinct values
    raw: Array  # (m + 1, m + 1): column j is Σ_i raw[i, j] x^i
    information_whitening: Array  # (m + 1, m + 1) lower triangular: whitens the scores by the information
    variance_whitening: Array  # (m + 1, m + 1) whitens the scores by their variance
    n_coin_tosses: Array  # (m + 1,) number of fair coin tosses whose sum has the same excess kurtosis as the score

    @classmethod
    def from_logits(cls, logits: Logits, degree: int) -> LogitPolynomials:
        """Gram-Schmidt: each column is x times the previous one, orthogonalized against all earlier ones."""
        information = float(logits.information.sum())
        weight = logits.w / logits.w.sum()
        # Every row has a small weight, so that rows with probabilities near 0 or 1 are distinguished as well.
        weight = logits.information / information + ADDED_INFORMATION * weight if information > 0 else weight
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
        bread, meat = (made.T @ (weights[:, None] * made) for weights in (logits.information, logits.score_variance))
        # For rare outcomes the fourth cumulant of y is about its variance, so rows with a large fourth power dominate.
        peaked, squared_variance = (logits.score_variance * logits.squared_weight) @ made**4, np.diag(meat) ** 2
        n_coin_tosses = np.divide(4 * squared_variance, peaked, out=np.zeros(m), where=peaked > 0)
        return cls(
            made, np.stack(raw, axis=1)[:m] / total, _inverse_cholesky(bread), _inverse_cholesky(meat), n_coin_tosses
        )

    @property
    def degree(self) -> int:
        """The highest power."""
        return self.columns.shape[1] - 1

    def coefficients(self, beta: Array) -> Array:
        """Coefficients of 1, x, x², … in the fitted log odds x + Xβ."""
        b = self.raw[: len(beta), : len(beta)] @ beta
        b[1:2] += 1.0
        return b

    def scores(self, residuals: Array) -> tuple[Array, Array]:
        """Squared scores of each degree (…, m + 1) from Σw(y − p) (…, n), by the information and by the variance.

        The sum up to a degree is its score statistic. Standardized by the variance, each is an independent χ² with one
        degree of freedom.
        """
        scores = residuals @ self.columns
        information_whitening, by_meat = (
            np.clip(scores @ root.T, -MAX_SCORE, MAX_SCORE) ** 2
            for root in (self.information_whitening, self.variance_whitening)
        )
        return information_whitening, by_meat


def _inverse_cholesky(covariance: Array) -> Array:
    """Inverse Cholesky factor; a variance below the rounding error of its column is replaced by that error."""
    root = np.zeros_like(covariance)
    for j, own in enumerate(covariance.diagonal()):
        root[j, :j] = np.linalg.solve(root[:j, :j], covariance[:j, j])
        root[j, j] = np.sqrt(max(own - root[j, :j] @ root[j, :j], ROUNDING * own, TINY))
    return np.linalg.inv(root)

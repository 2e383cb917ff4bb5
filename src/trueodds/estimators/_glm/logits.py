"""Log odds of a view, and orthonormal polynomials in them with the score statistics of their coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.lenses.view import View

MinProb = Annotated[float, Range(1e-15, 0.5, closed="left")] | Annotated[float, Range(0, 0)]  # 1 − min_prob < 1

ADDED_INFORMATION = 1e-20  # information added to each row, relative to its weight
MIN_INFORMATION = 1e-100  # lower limit of the information per weight, so that powers of the columns are finite
MAX_SCORE = 1e50  # upper limit of the scores of nearly impossible outcomes, so that their powers are finite
MIN_RELATIVE_STD = 1e-12  # standard deviation of the logits, relative to their mean, below which they count as equal
MIN_RELATIVE_SIZE = 1e-9  # norm of an orthogonalized column, relative to the original one, below which it is dropped
MIN_RELATIVE_VARIANCE, MIN_VARIANCE = 1e-24, 1e-160  # lower limits of a conditional variance, which may be rounded to 0


@dataclass(frozen=True, eq=False, slots=True)
class Logits:
    """The rows (or cells of a tally) of a view on the logit scale; rows without weight have log odds 0."""

    p: Array  # (n,) in [0, 1]
    x: Array  # (n,) its logit
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    information: Array  # (n,) Σw p(1−p), the information on the logit
    score_variance: Array  # (n,) Σw²p(1−p), the variance of Σw(y − p)
    squared_weight: Array  # (n,) the square of one row's weight
    n_clipped: int  # number of rows clipped at min_prob

    @staticmethod
    def certain_rows(view: View) -> Array:
        """Return a mask (n,) of the rows of positive weight whose log odds are infinite."""
        return np.asarray(np.isneginf(view.log_P).any(axis=1) & (view.w > 0))

    @classmethod
    def from_view(cls, view: View, min_prob: float, name: str) -> Logits:
        """Create the log odds of a view; infinite log odds require `min_prob`. `name` is the test, for the error."""
        w, mask = view.w, view.w > 0
        logs = np.where(mask[:, None], view.log_P, np.log(0.5))
        certain = np.isneginf(logs).any(axis=1)
        if not min_prob and certain.any():
            raise InputError(
                "TO205",
                f"{name} uses log odds, which are infinite for probabilities of 0 or 1.",
                f"{int(view.n[certain].sum()):,} of {view.n_rows:,} rows with probability 0 or 1",
                "Pass ⟨min_prob=⟩, for example 0.001, on which the result depends, or use the tests spiegelhalter or"
                " consistency.",
            )
        clipped = np.zeros(len(w), dtype=bool)
        p, q = (np.where(mask, prob.astype(np.float64), 0.5) for prob in (view.p, view.q))
        if min_prob:
            clipped = (logs < np.log(min_prob)).any(axis=1)
            logs = np.clip(logs, np.log(min_prob), np.log1p(-min_prob))
            p, q = (np.clip(prob, min_prob, 1 - min_prob) for prob in (p, q))
        variance, ww = p * q, view.sums("ww")
        information, score_variance = w * variance, ww * variance
        if not view.is_rows:
            inside = mask & ~clipped
            information = np.where(inside, np.maximum(view.w * view.p - view.sums("wpp"), 0.0), information)
            score_variance = np.where(inside, view.sums("wwv"), score_variance)
        x = logs[:, 1] - logs[:, 0]
        return cls(
            p=p,
            x=x,
            w=w,
            ww=ww,
            information=information,
            score_variance=score_variance,
            squared_weight=ww / np.maximum(view.n, 1.0),
            n_clipped=int(view.n[clipped].sum()),
        )

    def notes(self, view: View, min_prob: float) -> tuple[Note, ...]:
        """A note on the number of clipped rows."""
        return clipping_notes(min_prob, self.n_clipped, view.n_rows)


def clipping_notes(min_prob: float, n_clipped: int, n_rows: int | None = None) -> tuple[Note, ...]:
    """Return a note on the clipped rows, if there are any; without `n_rows` as a number of rows with such values."""
    if not n_clipped:
        return ()
    of_rows = (
        f"probabilities in {n_clipped:,}" if n_rows is None else f"the probabilities of {n_clipped:,} of {n_rows:,}"
    )
    return (Note("TN106", f"⟨min_prob={min_prob:g}⟩ clipped {of_rows} rows."),)


@dataclass(frozen=True, eq=False, slots=True)
class LogitPolynomials:
    """Polynomials of the logit x up to a degree, orthonormal in the null information, and their scores."""

    columns: Array  # (n, m + 1), one per degree; fewer than requested if x has few distinct values
    monomial_coefficients: Array  # (m + 1, m + 1): column j is Σ_i monomial_coefficients[i, j] x^i
    information_whitening: Array  # (m + 1, m + 1) lower triangular: whitens the scores by the information
    variance_whitening: Array  # (m + 1, m + 1) whitens the scores by their variance
    n_coin_tosses: Array  # (m + 1,) effective number of fair coin tosses: 4 (Σw²vx²)² / Σw⁴vx⁴ with v = p(1 − p)

    @classmethod
    def from_logits(cls, logits: Logits, degree: int) -> LogitPolynomials:
        """Create the polynomials up to a degree by Gram-Schmidt orthogonalization in the null information.

        Each column is x times the previous one, orthogonalized against all earlier ones, as in the Arnoldi iteration.
        """
        information = float(logits.information.sum())
        weight = logits.w / logits.w.sum()
        if information > 0:
            # The added weight is tiny. It distinguishes rows whose probabilities are so near 0 or 1 that they have no
            # information.
            weight = logits.information / information + ADDED_INFORMATION * weight
        center = float(weighted_sum(weight, logits.x))
        scale = float(np.sqrt(weighted_sum(weight, (logits.x - center) ** 2)))
        distinct = scale > MIN_RELATIVE_STD * max(1.0, abs(center))
        x = (logits.x - center) / (scale if distinct else 1.0)
        # The columns at the rows, and the coefficients of each column as a polynomial in logits.x.
        columns, coefficients = [np.ones(len(weight))], [np.eye(1, degree + 1)[0]]
        for _ in range(degree if distinct else 0):
            column = x * columns[-1]
            coefficient = (np.roll(coefficients[-1], 1) - center * coefficients[-1]) / scale
            norm_before = np.sqrt(weighted_sum(weight, column**2))
            for _repetition in range(2):  # the second pass removes the rounding errors of the first
                for earlier_column, earlier_coefficient in zip(columns, coefficients, strict=True):
                    projection = weighted_sum(weight, column * earlier_column)
                    column = column - projection * earlier_column
                    coefficient = coefficient - projection * earlier_coefficient
            norm = np.sqrt(weighted_sum(weight, column**2))
            if norm <= MIN_RELATIVE_SIZE * norm_before:  # x has too few distinct values for this degree
                break
            columns.append(column / norm)
            coefficients.append(coefficient / norm)
        root_information = np.sqrt(max(information, MIN_INFORMATION * logits.w.sum()))
        scaled_columns, m = np.stack(columns, axis=1) / root_information, len(columns)
        score_information, score_variance = (
            scaled_columns.T @ (weights[:, None] * scaled_columns)
            for weights in (logits.information, logits.score_variance)
        )
        # For rare outcomes the fourth cumulant of y is about its variance: few rows with a large fourth power make the
        # number of tosses small.
        fourth_moment = (logits.score_variance * logits.squared_weight) @ scaled_columns**4
        squared_variance = np.diag(score_variance) ** 2
        n_coin_tosses = np.divide(4 * squared_variance, fourth_moment, out=np.zeros(m), where=fourth_moment > 0)
        return cls(
            columns=scaled_columns,
            monomial_coefficients=np.stack(coefficients, axis=1)[:m] / root_information,
            information_whitening=_inverse_cholesky(score_information),
            variance_whitening=_inverse_cholesky(score_variance),
            n_coin_tosses=n_coin_tosses,
        )

    @property
    def degree(self) -> int:
        """Degree of the polynomials, at most the requested one."""
        return self.columns.shape[1] - 1

    def coefficients(self, beta: Array) -> Array:
        """Return the coefficients of 1, x, x², … in the fitted log odds x + Xβ, from the first b values of β, (b,)."""
        b = self.monomial_coefficients[: len(beta), : len(beta)] @ beta
        b[1:2] += 1.0  # the offset x; a slice, because b has no such element if β is a shift only
        return b

    def scores(self, residuals: Array) -> tuple[Array, Array]:
        """Return the squared standardized scores of each degree (…, m + 1), from the residuals w(y − p) (…, n).

        The first result is standardized by the information, the second by the variance of the scores; they differ with
        weights. The sum up to a degree is its score statistic. Standardized by the variance, each is an independent χ²
        with one degree of freedom.
        """
        scores = residuals @ self.columns
        information_scores, variance_scores = (
            np.clip(scores @ whitening.T, -MAX_SCORE, MAX_SCORE) ** 2
            for whitening in (self.information_whitening, self.variance_whitening)
        )
        return information_scores, variance_scores


def _inverse_cholesky(covariance: Array) -> Array:
    """Return the inverse Cholesky factor of a covariance (m, m).

    Conditional variances below the rounding error of their column are replaced by it, so that no root is undefined.
    """
    factor = np.zeros_like(covariance)
    for j, variance in enumerate(covariance.diagonal()):
        factor[j, :j] = np.linalg.solve(factor[:j, :j], covariance[:j, j])
        factor[j, j] = np.sqrt(
            max(variance - factor[j, :j] @ factor[j, :j], MIN_RELATIVE_VARIANCE * variance, MIN_VARIANCE)
        )
    return np.linalg.inv(factor)

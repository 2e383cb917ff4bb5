"""What are the log odds of a view, and which polynomials of them are told apart by it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.problem.view import View

Array = NDArray[Any]

Floor = Annotated[float, Range(1e-15, 0.5, closed="left")] | Annotated[float, Range(0, 0)]  # 1 − floor is no 1


@dataclass(frozen=True, eq=False, slots=True)
class Logits:
    """The cells of a view on the scale of log odds; those without weight stand at 0 and count for nothing."""

    p: Array  # (n,) in [0, 1]
    x: Array  # (n,) its logit
    w: Array  # (n,) Σw
    ww: Array  # (n,) Σw²
    bread: Array  # (n,) Σw p(1−p), the information on the logit
    meat: Array  # (n,) Σw²p(1−p), the variance of Σw(y − p)
    each: Array  # (n,) the square of one row's weight
    touched: int  # rows that the floor moved

    @classmethod
    def of(cls, view: View, floor: float, name: str) -> Logits:
        """The logits of a view; where one is infinite a floor must be given."""
        w, seen = view.w, view.w > 0
        logs = np.where(seen[:, None], view.log_P, np.log(0.5))
        sure = np.isneginf(logs).any(axis=1)
        if not floor and not (w @ np.exp(logs.sum(axis=1)) > 0):
            sure = seen  # no row leaves anything to chance that a number can hold
        if not floor and sure.any():
            raise InputError(
                "TO205",
                f"The log odds of a probability of 0 or 1 are infinite, and {name} needs them.",
                f"{int(view.n[sure].sum()):,} of {view.n_rows:,} rows with probability 0 or 1",
                "Give floor=, for instance 1e-6, which a note then counts; or use the tests spiegelhalter or consistency.",
            )
        moved = np.zeros(len(w), dtype=bool)
        p, q = (np.where(seen, each.astype(np.float64), 0.5) for each in (view.p, view.q))
        if floor:
            moved = (logs < np.log(floor)).any(axis=1)
            logs = np.clip(logs, np.log(floor), np.log1p(-floor))
            p, q = (np.clip(each, floor, 1 - floor) for each in (p, q))
        v, ww = p * q, view.sums("ww")
        bread, meat = w * v, ww * v
        if not view.is_rows:
            inside = seen & ~moved
            bread = np.where(inside, np.maximum(view.w * view.p - view.sums("wpp"), 0.0), bread)
            meat = np.where(inside, view.sums("wwv"), meat)
        x = logs[:, 1] - logs[:, 0]
        return cls(p, x, w, ww, bread, meat, ww / np.maximum(view.n, 1.0), int(view.n[moved].sum()))

    def notes(self, view: View, floor: float) -> tuple[Note, ...]:
        """How many rows the floor moved."""
        if not self.touched:
            return ()
        text = f"The floor {floor:g} stood in for the probabilities of {self.touched:,} of {view.n_rows:,} rows."
        return (Note("TN106", text),)


@dataclass(frozen=True, eq=False, slots=True)
class Powers:
    """Polynomials of the logit x up to a degree, orthonormal in the information of the null, and their scores."""

    columns: Array  # (n, m + 1), one per degree; fewer than asked where x takes few values
    raw: Array  # (m + 1, m + 1): column j is Σ_i raw[i, j] x^i
    white: Array  # (m + 1, m + 1) lower triangular: it makes scores of variance 1 that do not depend on each other
    tosses: Array  # (m + 1,) the tosses of a fair coin whose number of heads would be as far from normal as the score

    @classmethod
    def of(cls, logits: Logits, degree: int) -> Powers:
        """Each column from the last one times x, without what the earlier ones hold already."""
        weight = logits.bread / logits.bread.sum()
        center = float(weight @ logits.x)
        scale = float(np.sqrt(weight @ (logits.x - center) ** 2))
        apart = scale > 1e-12 * max(1.0, abs(center))
        x = (logits.x - center) / (scale if apart else 1.0)
        columns, raw = [np.ones(len(weight))], [np.eye(1, degree + 1)[0]]
        for _ in range(degree if apart else 0):
            column = x * columns[-1]
            terms = (np.roll(raw[-1], 1) - center * raw[-1]) / scale
            whole = np.sqrt(weight @ column**2)
            for _twice in range(2):
                for earlier, its in zip(columns, raw, strict=True):
                    share = weight @ (column * earlier)
                    column, terms = column - share * earlier, terms - share * its
            size = np.sqrt(weight @ column**2)
            if size <= 1e-9 * whole:
                break
            columns.append(column / size)
            raw.append(terms / size)
        total = np.sqrt(logits.bread.sum())
        made, m = np.stack(columns, axis=1) / total, len(columns)
        spread = made.T @ (logits.meat[:, None] * made)
        white = np.linalg.inv(np.linalg.cholesky(spread))
        # The fourth cumulant of y is about its variance where outcomes are rare: the few rows with weight in q⁴ tell.
        peaked = (logits.meat * logits.each) @ made**4 / np.diag(spread) ** 2
        return cls(made, np.stack(raw, axis=1)[:m] / total, white, 4 / peaked)

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
        return scores**2, (scores @ self.white.T) ** 2

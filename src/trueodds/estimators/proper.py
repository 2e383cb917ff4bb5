"""How good the probabilities are altogether: proper scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.estimators.base import ProperScore
from trueodds.problem.view import View
from trueodds.tally import scores

Array = NDArray[Any]


@dataclass(frozen=True)
class Brier(ProperScore):
    r"""Mean squared distance between probabilities and outcome.

    .. math:: \tfrac1w \sum_i w_i (p_i - y_i)^2 \quad\text{or}\quad \tfrac1w \sum_i w_i \sum_k (p_{ik} - y_{ik})^2

    The first form is for a binary view, in [0, 1]; the second for a joint one, in [0, 2]; 0 is best, and lower
    is better: calibration and sharpness both count. Unbiased. A vote of .7 is a row of weight .7 and one of .3.
    Cost: O(nK). Merges exactly. Source: Brier (1950).

    >>> float(Brier()(View(p=[0.5, 1.0], y=[1, 1])))
    0.125
    """

    name: ClassVar[str] = "brier"
    lens: ClassVar[str | None] = "canonical"

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return scores.brier(view.p, view.y)

    def value(self, view: View) -> float:
        """The weighted mean, from the sums of cells where there are no rows."""
        if view.is_rows or view.joint:
            _rows_only(view)
            return float(view.w @ self.rows(view) / view.total)
        sums = view.sums("wpp") - 2 * view.sums("wpy") + view.w * view.y  # y² = y for each vote
        return float(sums.sum() / view.total)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        p = view.p.astype(np.float64, copy=False)
        if view.joint:
            _rows_only(view)
            return float(view.w @ (1 - (p * p).sum(axis=1)) / view.total)
        return float((view.w * p - view.sums("wpp")).sum() / view.total)


@dataclass(frozen=True)
class LogLoss(ProperScore):
    r"""Mean surprise at the outcome, in nats.

    .. math:: -\tfrac1w \sum_i w_i \sum_k y_{ik} \log p_{ik}

    In [0, ∞]; 0 is best. One outcome that was said to be impossible makes it infinite: that is evidence, and
    is kept; `floor` replaces smaller probabilities where a finite number is needed, and the number of rows
    it touched is noted. Unbiased. Cost: O(n). Needs rows. Source: Good (1952).

    >>> round(float(LogLoss()(View(p=[0.5, 1.0], y=[1, 1]))), 4)
    0.3466
    """

    name: ClassVar[str] = "log_loss"
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    floor: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.floor, str) or not 0 <= self.floor < 1:
            raise InputError("TO203", "floor must lie in [0, 1).", repr(self.floor), "For instance floor=1e-12.")

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return scores.log_loss(view.p, view.y, self.floor)

    def value(self, view: View) -> float:
        """The weighted mean."""
        loss = self.rows(view)
        return float(view.w[view.w > 0] @ loss[view.w > 0] / view.total)

    def expected(self, view: View) -> float:
        """The mean entropy: what even a calibrated model pays."""
        return float(view.w @ scores.log_loss(view.p, view.p, self.floor) / view.total)

    def said(self, view: View) -> dict[str, Any]:
        """The floor, where there is one."""
        return {"floor": self.floor} if self.floor else {}

    def notes(self, view: View) -> list[Note]:
        """Outcomes that were said to be impossible, and rows the floor touched."""
        counted = view.w > 0
        impossible = int((np.isinf(scores.log_loss(view.p, view.y, 0.0)) & counted).sum())
        said = (
            [
                Note(
                    "TN104",
                    f"{impossible:,} {'outcome' if impossible == 1 else 'outcomes'} came that had probability 0: evidence against calibration of its own.",
                )
            ]
            if impossible
            else []
        )
        touched = scores.below(view.p[counted], self.floor) if self.floor else 0
        if touched:
            said.append(Note("TN106", f"The floor {self.floor:g} touched {touched:,} rows."))
        return said


def _rows_only(view: View) -> None:
    if not view.is_rows:
        raise InputError(
            "TO205",
            "The score of a whole vector needs single rows; cells of vectors hold only their means.",
            f"{len(view.w):,} cells of {view.n_rows:,} rows",
            "Measure it from rows, or from a tally, which carries the sums of the proper scores.",
        )

"""What is a confidence worth to one who may also not answer? Utility over all thresholds of answering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, one_score, single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class AnswerOrAbstain(ProperScore):
    r"""The mean utility of answering where the confidence reaches a threshold, over all thresholds (BAS).

    Answers: a right answer is worth 1, none 0, and a wrong one costs t/(1 − t), so that whoever acts on this price
    answers exactly if the chance to be right is at least t. What do these confidences earn, prices t being uniform on
    [0, 1]?

    .. math:: \tfrac1w \sum_i w_i \int_0^{c_i} \Big( y_i - (1 - y_i) \tfrac{t}{1 - t} \Big) dt
        = \tfrac1w \sum_i w_i \big( c_i + (1 - y_i) \log(1 - c_i) \big)

    A right answer earns its confidence c, a wrong one c + log(1 − c) < 0, which falls without bound: one wrong answer
    that was called certain makes the mean −∞. That is evidence and is kept; `min_prob` replaces smaller 1 − c in the
    logarithm where a finite number is needed, and the rows that it touched are noted. Strictly proper: with the chance
    q to be right, the expectation c + (1 − q) log(1 − c) is greatest at c = q alone. Unlike log loss it
    punishes too much confidence more than too little: doubt of what is right costs at most 1.

    Shapes: a binary view (n,). Units: utility, in [−∞, 1]; 1 is best, 0 is what never answering earns. Bias: none. A vote
    of .7 is a row of weight .7 and one of .3. Cost: O(n). Needs rows. A calibrated model earns the mean of
    c + (1 − c) log(1 − c), which `noise_floor` reports: it is a ceiling here, for bending c can only lose.
    Raises TO203 for a floor outside [0, 1), TO205 for a lens with a vector per row or cells of many rows.
    Source: Wu, Gustafsson, Phillips, Gao, Thakur & Clifton (2026), arXiv 2604.03216, whose abstract has the idea (an
    answer-or-abstain utility, summed over thresholds; truthful confidence is uniquely best; asymmetric); the price
    t/(1 − t), the uniform t and the closed form are worked out here from it.

    >>> round(float(AnswerOrAbstain()(View(p=[0.9, 0.5], y=[1, 0]))), 4)  # (.9 + .5 + log .5) / 2
    0.3534
    """

    name: ClassVar[str] = "bas"
    lens: ClassVar[str | None] = "confidence"
    needs_rows: ClassVar[bool] = True
    best_value: ClassVar[float] = 1.0
    min_prob: Annotated[float, Range(0, 1, closed="left")] = 0.0

    def rows(self, view: View) -> Array:
        """The utility of each row."""
        one_score(view, self.name)
        single_rows(view, self.name)
        return _exact(view) + self._lost(1 - view.y.astype(np.float64, copy=False), view)

    def expected(self, view: View) -> float:
        """The mean utility if every confidence were right."""
        return float(view.w @ (_exact(view) + self._lost(view.q, view)) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The floor, where one was asked for."""
        return {"min_prob": self.min_prob} if self.min_prob else {}

    def notes(self, view: View) -> list[Note]:
        """Certain answers that were wrong, and rows that the floor touched."""
        counted = view.w > 0
        doubt = view.log_P[:, 0]
        n_wrong = int((np.isneginf(doubt) & (view.y < 1) & counted).sum())
        note_list = []
        if n_wrong:
            text = f"{n_wrong:,} {'answer' if n_wrong == 1 else 'answers'} called certain turned out wrong: evidence against calibration of its own."
            more = "" if self.min_prob else " The mean is −∞; min_prob=0.01 assumes a doubt of 1 in 100 at least."
            note_list.append(Note("TN104", text + more))
        if self.min_prob and (touched := int(((doubt < np.log(self.min_prob)) & counted).sum())):
            note_list.append(Note("TN106", f"The floor {self.min_prob:g} touched {touched:,} rows."))
        return note_list

    def _lost(self, wrong: Array, view: View) -> Array:
        """wrong · log(1 − c), which is 0 where nothing was wrong, however sure the answer."""
        doubt = view.log_P[:, 0]
        if self.min_prob:
            doubt = np.maximum(doubt, np.log(self.min_prob))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(wrong > 0, wrong * doubt, 0.0))


def _exact(view: View) -> Array:
    return view.p.astype(np.float64, copy=False)

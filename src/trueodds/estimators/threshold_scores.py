"""Scores of decisions at a threshold: the elementary score of Murphy curves and the utility of abstaining (BAS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Probability, Range
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, one_score, single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MurphyLoss(ProperScore):
    r"""The mean cost of acting where the probability exceeds a threshold: a point of the Murphy curve.

    Answers: for one who acts above θ because a false alarm costs θ and a miss 1 − θ, what do these probabilities cost?

    .. math:: S_\theta(p, y) = 2\theta\, \mathbf 1\{p > \theta, y = 0\} + 2(1 - \theta)\, \mathbf 1\{p < \theta, y = 1\}

    A score that states the threshold itself leaves the choice open and pays half of either cost, the mean of the two
    one-sided limits; how many rows do so is noted. θ = 1/2 gives the misclassification rate. Every proper score of a
    binary outcome is a mixture of these over θ: the area under the curve is Brier's score, and with the weight
    1/(2θ(1 − θ)) log loss. So a model that is lower at every θ is better for everyone, and curves that cross say
    for whom. The factor 2, which makes the area Brier's, is that of Dimitriadis et al. (2024); Ehm et al. (2016)
    have the elementary score without it, half of this.

    Shapes: a binary view (n,). Units: cost, in [0, 2 max(θ, 1 − θ)]; 0 is best. Proper, not strictly: only the side of
    the threshold counts. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(n). Needs rows;
    merges as any mean does. A calibrated model pays the mean of 2 min(θ(1 − p), (1 − θ)p), which `noise_floor` reports.
    Raises TO203 for a threshold outside (0, 1), TO205 for a lens with a vector per row or cells of many rows.
    Source: Ehm, Gneiting, Jordan & Krüger (2016); Dimitriadis, Gneiting, Jordan & Vogel (2024).

    >>> float(MurphyLoss(threshold=0.2)(View(p=[0.1, 0.3, 0.9, 0.9], y=[1, 0, 1, 0])))  # (1.6 + .4 + 0 + .4) / 4
    0.6
    """

    name: ClassVar[str] = "murphy_loss"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    threshold: Probability = 0.5

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return self._cost(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        return float(view.w @ self._cost(view, _float64_scores(view)) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        """The threshold."""
        return {"threshold": float(self.threshold)}

    def notes(self, view: View) -> list[Note]:
        """How many rows leave the decision open."""
        at = int(((_float64_scores(view) == self.threshold) & (view.w > 0)).sum())
        text = f"{at:,} {'row states' if at == 1 else 'rows state'} the threshold {self.threshold:g} itself and {'pays' if at == 1 else 'pay'} half of either cost."
        return [Note("TN129", text)] if at else []

    def _cost(self, view: View, y: Array) -> Array:
        one_score(view, self.name)
        single_rows(view, self.name)
        theta = float(self.threshold)
        acts = (np.sign(_float64_scores(view) - theta) + 1) / 2  # 1/2 at the threshold
        cost: Array = 2 * (theta * acts * (1 - y) + (1 - theta) * (1 - acts) * y)
        return cost


def _float64_scores(view: View) -> Array:
    """The scores in double precision, so that the threshold is not rounded to their type."""
    return view.p.astype(np.float64, copy=False)


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
        return _float64_confidence(view) + self._lost(1 - view.y.astype(np.float64, copy=False), view)

    def expected(self, view: View) -> float:
        """The mean utility if every confidence were right."""
        return float(view.w @ (_float64_confidence(view) + self._lost(view.q, view)) / view.total)

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


def _float64_confidence(view: View) -> Array:
    return view.p.astype(np.float64, copy=False)

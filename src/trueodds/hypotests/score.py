"""Is the mean proper score what the probabilities themselves promise? Spiegelhalter's question for any lens and score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from trueodds.core.settings import OneOf
from trueodds.hypotests import surplus
from trueodds.hypotests.by_view import ViewTest
from trueodds.hypotests.statistics import Cells, ViewResult
from trueodds.lenses.view import View


@dataclass(frozen=True)
class Score(ViewTest):
    r"""The surplus of a proper score: is it as good as the probabilities say it will be?

    Null hypothesis: each label comes with its stated probability, independently given the predictions.

    .. math:: z = \frac{\sum_i w_i (S(p_i, y_i) - \mathrm{E}_i S)}{\sqrt{\sum_i w_i^2 \mathrm{Var}_i S}}, \qquad
              \mathrm{E}_i S = \sum_k p_{ik} S(p_i, k)

    with S Brier's score :math:`\sum_k (p_k - 1\{y = k\})^2` or the log loss :math:`-\log p_y`, and mean and variance
    under the probabilities themselves; two-sided normal. Through a binary lens Brier's form is Spiegelhalter's z. It
    sees probabilities that are too extreme (z > 0) or too timid (z < 0), not what cancels in that direction. The log
    loss of powers of the probabilities is what a temperature changes, so it is the score test of temperature 1.

    Shapes: binary and joint views. Statistic: z, any size.
    Effect: the surplus over the span between the best and the worst score that each row could have,

    .. math:: \frac{\sum_i w_i (S(p_i, y_i) - \mathrm{E}_i S)}{\sum_i w_i (\max_k S(p_i, k) - \min_k S(p_i, k))}

    in probability units within [−1, 1]: so much probability, at least, must lie on other outcomes than was said, in
    total variation averaged with the spans as weights. For one score it is the mean of y − p toward ½, for Brier's
    form with weights |1 − 2p|. Outcomes of probability 0 are left out of the span of the log loss; with tiny
    probabilities the span is long, and the bound weak.

    An outcome that had probability 0 makes the log loss infinite: then z is, p is 0 (note TN215), and the effect is the
    share of such rows among those that rule an outcome out. Undefined (NaN, note TN214) where no row's score can vary.
    The normal law fails where few rows or rare outcomes carry the chance, most of all for the log loss: a skewness of
    the promised sum beyond 1 is told.
    Cost: O(nK); with redraws O(nK) per draw. Brier's form works on the cells of a tally, log loss needs rows.
    Raises TO203 for an unknown statistic.
    Source: Spiegelhalter (1986), for any score and number of classes.

    Parameters
    ----------
    statistic : {"brier", "log_loss"}
        The proper score.

    >>> view = View(p=[[0.7, 0.2, 0.1]], y=[[0, 1, 0]])  # promised .46, paid 1.14
    >>> result = Score().on(view)
    >>> round(result.effect, 4), round(result.statistic, 4)  # .68 / (2 · .6); .68 / √.2416
    (0.5667, 1.3834)
    """

    name: ClassVar[str] = "score"
    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    asymptotic_null: ClassVar[str] = "z is standard normal"
    exempt: ClassVar[dict[str, str]] = {"weight two": "weights are importance weights: chance grows with their squares"}
    statistic: Annotated[str, OneOf(tuple(surplus.SCORES))] = "brier"

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        """The log loss bends within a cell, which knows only its mean prediction."""
        return self.statistic == "log_loss"

    def on(self, view: View) -> ViewResult:
        """z, its two-sided p, and the probability that must at least be misplaced."""
        return replace(surplus.z_test(view, self.statistic), settings_used={"statistic": self.statistic})

    def cells(self, view: View) -> Cells:
        """|z|, each row by itself."""
        return surplus.cells(view, self.statistic)

"""Answer-or-abstain score (BAS): mean utility of answering above a confidence threshold, over all thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.estimators.base import ProperScore, require_one_score, require_single_rows
from trueodds.lenses.view import View


@dataclass(frozen=True)
class AnswerOrAbstain(ProperScore):
    r"""Answer-or-abstain score (BAS): mean utility of answering above a confidence threshold, over all thresholds.

    A correct answer is worth 1, no answer 0, and a wrong answer costs t/(1 − t). With this price it is optimal to
    answer if the probability of being correct is at least t. The thresholds t are uniform on [0, 1].

    Parameters
    ----------
    min_prob : float, default=0.0
        Smallest value of 1 − c inside the logarithm. A note reports the number of rows affected.

    Raises
    ------
    InputError
        TO203 if `min_prob` is outside [0, 1). TO205 if the view has a vector per row or cells of many rows.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \int_0^{c_i} \Big( y_i - (1 - y_i) \tfrac{t}{1 - t} \Big) dt
        = \tfrac1w \sum_i w_i \big( c_i + (1 - y_i) \log(1 - c_i) \big)

    A correct answer scores its confidence c, a wrong one c + log(1 − c) < 0, which is unbounded below: one wrong answer
    with confidence 1 makes the mean −∞. This is evidence against the model and is not clipped unless `min_prob` is
    given. The score is strictly proper: if the probability of being correct is q, the expectation c + (1 − q) log(1 −
    c) is largest at c = q only. Unlike log loss it penalizes overconfidence more than underconfidence: doubt about a
    correct answer costs at most 1. A vote share of 0.7 counts as a row of weight 0.7 and one of 0.3. Shapes: a binary
    view (n,).

    Units: utility, in [−∞, 1]; 1 is best. Never answering scores 0.

    Bias: none. A calibrated model scores the mean of c + (1 − c) log(1 − c), which `noise_floor` reports. It is an
    upper limit here, because changing c can only lower the expected score.

    Cost: O(n). Rows are required.

    The abstract of [1]_ states the idea: an answer-or-abstain utility summed over thresholds, for which truthful
    confidence is uniquely optimal, and asymmetric. The price t/(1 − t), the uniform t and the closed form are derived
    here from it.

    References
    ----------
    .. [1] Wu, Gustafsson, Phillips, Gao, Thakur & Clifton (2026). arXiv 2604.03216.

    Examples
    --------
    >>> import trueodds as to
    >>> answers = to.Predictions.from_confidence([0.9, 0.5], [1, 0])
    >>> round(to.measure(answers, "bas", interval=None).value, 4)  # (.9 + .5 + log .5) / 2
    0.3534
    """

    name: ClassVar[str] = "bas"
    lens: ClassVar[str | None] = "confidence"
    needs_rows: ClassVar[bool] = True
    best_value: ClassVar[float] = 1.0
    upper_bound: ClassVar[float] = 1.0
    min_prob: Annotated[float, Range(0, 1, closed="left")] = 0.0

    def row_scores(self, view: View) -> Array:
        """The utility of each row, (n,)."""
        require_one_score(view, self.name)
        require_single_rows(view, self.name)
        return _confidences(view) + self._wrong_answer_penalty(1 - view.y.astype(np.float64, copy=False), view)

    def expected_if_calibrated(self, view: View) -> float:
        """Expected utility of a calibrated model with these confidences."""
        utilities = _confidences(view) + self._wrong_answer_penalty(view.q, view)
        return float(weighted_sum(view.w, utilities) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"min_prob": self.min_prob} if self.min_prob else {}

    def notes(self, view: View) -> list[Note]:
        counted = view.w > 0
        log_complement = view.log_P[:, 0]
        n_wrong = int((np.isneginf(log_complement) & (view.y < 1) & counted).sum())
        note_list = []
        if n_wrong:
            text = (
                f"{n_wrong:,} {'answer' if n_wrong == 1 else 'answers'} with confidence 1"
                f" {'was' if n_wrong == 1 else 'were'} wrong, which is impossible under calibration."
            )
            suffix = (
                ""
                if self.min_prob
                else " The mean is −∞. min_prob=0.01 assumes an error probability 1 − c of at least 0.01 for them."
            )
            note_list.append(Note("TN104", text + suffix))
        if self.min_prob and (n_clipped := int(((log_complement < np.log(self.min_prob)) & counted).sum())):
            note_list.append(Note("TN106", f"min_prob={self.min_prob:g} clipped probabilities in {n_clipped:,} rows."))
        return note_list

    def _wrong_answer_penalty(self, wrong: Array, view: View) -> Array:
        """Return wrong · log(1 − c), (n,), for the share `wrong` (n,) of each answer; 0 for a correct answer."""
        log_complement = view.log_P[:, 0]
        if self.min_prob:
            log_complement = np.maximum(log_complement, np.log(self.min_prob))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(wrong > 0, wrong * log_complement, 0.0))


def _confidences(view: View) -> Array:
    """Confidence of each answer, (n,) float64."""
    return view.p.astype(np.float64, copy=False)

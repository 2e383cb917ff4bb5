"""Selective prediction: risk at a coverage, area under the risk-coverage curve, and answer-or-abstain score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators._glm.logits import clipping_notes
from trueodds.estimators.base import ProperScore, require_one_score, require_single_rows
from trueodds.estimators.distinct_scores import DistinctScoreError, DistinctScores, ScoreStatistic
from trueodds.lenses.selective_risk import (
    area_under_curve,
    exact_aurc_limits,
    exact_risk_limits,
    risk_at_shares,
    rows_per_weight,
)
from trueodds.lenses.view import View


@dataclass(frozen=True)
class RiskCoverageMeasure(DistinctScoreError):
    """Base class of measures of the risk-coverage curve, which follows the rows in decreasing order of their score.

    The curve is linear in the errors of each score. Its expected value under calibration is therefore the value for the
    expected errors.
    """

    lens: ClassVar[str | None] = "confidence"
    interval: ClassVar[str | None] = "percentile"
    is_norm: ClassVar[bool] = False
    vanishes_if_calibrated: ClassVar[bool] = False
    is_unbiased: ClassVar[bool] = True

    def summarize_curve(self, n: Array, errors: Array) -> Array:
        """The measure (…) from the rows and errors of each score (…, m), in decreasing order of the scores."""
        raise NotImplementedError

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """The measure from the sums at the scores, which are scaled to numbers of rows."""
        n_rows = rows_per_weight(view) * view.total

        def statistic(w: Array, _wp: Array, wy: Array) -> Array:
            errors = np.clip(w - wy, 0.0, None)
            return self.summarize_curve(n_rows * w[..., ::-1], n_rows * errors[..., ::-1])

        return statistic

    def expected_if_calibrated(self, view: View) -> float:
        """The measure of a calibrated model with these predictions: a row is wrong with probability 1 − p."""
        s, w, wp, _ = DistinctScores(self, view).shares()
        return float(self.evaluate_scores(s, w, view)(w, wp, wp))


@dataclass(frozen=True)
class AreaUnderRiskCoverage(RiskCoverageMeasure):
    r"""Area under the risk-coverage curve (AURC): mean error rate of the most confident rows, over all coverages.

    A selective classifier answers if its confidence is high, and abstains otherwise. The coverage is the share of rows
    that it answers, and the risk is the error rate of these answers.

    See Also
    --------
    risk : The risk at one coverage.

    Notes
    -----
    With the n rows in decreasing order of the score and z = 1 − y,

    .. math:: \mathrm{AURC} = \frac1n \sum_{i=1}^{n} \frac1i \sum_{j \le i} z_j

    Rows of equal scores are in random order, and the exact mean over all orders is used. Through the lens `confidence`,
    and for confidences with correctness, z is an error of the predicted class. Through a lens on one class, such as
    `positive`, z is a row without the event, and the risk is 1 − precision of the rows with the largest probabilities.
    A vote share of 0.7 counts as a row of weight 0.7 without error and one of 0.3 with it. A weight of two is equal to
    two rows; weights that are not counts add up to the effective number of rows. Shapes: a binary view (n,).

    Units: probability, in [0, 1]; 0 is best. A random order has the error rate on average.

    Bias: the order is given, so the mean of the labels has none. AURC is not 0 for a calibrated model: `noise_floor`
    reports the value that a calibrated model with these scores has on average. It measures few errors and a correct
    order together. A test against redrawn labels, such as that of `by_group`, compares it with this value.

    The interval has the percentiles of resampled rows or clusters. If no row is wrong, or all are, it is exact: it
    follows from the binomial limit of the error rate and the order with the largest AURC. In simulations with 50, 200
    and 800 rows, 95 % intervals contained the true AURC in 91 to 97 % of 150 data sets, and those of the paired
    difference of two models with 100 and 500 rows in 91 to 95 %.

    Cost: O(n log n). Draws distinguish 4,096 scores. Tallies merge from sums per distinct score, at the resolution of
    their grid.

    References
    ----------
    .. [1] El-Yaniv & Wiener (2010). On the foundations of noise-free selective classification.
    .. [2] Geifman, Uziel & El-Yaniv (2019). Bias-reduced uncertainty estimation for deep neural classifiers.

    Examples
    --------
    >>> import trueodds as to
    >>> answers = to.Predictions.from_confidence([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    >>> round(to.measure(answers, "aurc", interval=None).value, 4)  # (0 + 1/2 + 1/3 + 2/4)/4
    0.3333
    """

    name: ClassVar[str] = "aurc"

    def summarize_curve(self, n: Array, errors: Array) -> Array:
        return area_under_curve(n, errors)

    def exact_limits(self, view: View, n: float, level: float) -> tuple[float, float] | None:
        """Exact limits if no row is wrong, or all are."""
        require_one_score(view, self.name)
        error_rate = 1 - float(weighted_sum(view.w, view.y)) / view.total
        return exact_aurc_limits(error_rate > 0.5, n, level) if min(error_rate, 1 - error_rate) <= 1e-12 else None


@dataclass(frozen=True)
class RiskAtCoverage(RiskCoverageMeasure):
    r"""Selective risk: error rate of the most confident rows, at one coverage.

    The setting is also part of the name: ``"risk@0.8"`` is the risk at a coverage of 0.8.

    Parameters
    ----------
    coverage : float, default=0.8
        Share of the rows that are answered, in (0, 1].

    See Also
    --------
    aurc : The mean risk over all coverages.

    Notes
    -----
    .. math:: \frac{1}{cn} \sum_{i \le cn} z_i

    with the n rows in decreasing order of the score, z = 1 − y and the coverage c. A fraction of a row counts as such,
    and of rows with equal scores, the mean over their random orders is used. Lenses, votes and weights are those of
    `aurc`. A row that abstains is no row here; `trueodds answers` relates the coverage to all questions.
    Shapes: a binary view (n,).

    Units: probability, in [0, 1]; 0 is best. At a coverage of 1 it is the error rate.

    Bias: none for given scores. It is not 0 for a calibrated model; see `aurc`.

    The interval has the percentiles of resampled rows or clusters. If none of the answers is wrong, or all are, it is
    the exact binomial interval. In the simulations of `aurc` it contained the true risk at coverages of 0.3 and 0.8 in
    91 to 100 % of 150 data sets, and the interval of a paired difference at 0.5 in 95 to 98 %.

    Cost: O(n log n). Draws distinguish 4,096 scores. Tallies merge from sums per distinct score, at the resolution of
    their grid.

    References
    ----------
    .. [1] Geifman & El-Yaniv (2017). Selective classification for deep neural networks.

    Examples
    --------
    >>> import trueodds as to
    >>> answers = to.Predictions.from_confidence([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    >>> to.measure(answers, "risk@0.5", interval=None).value  # one of two
    0.5
    """

    name: ClassVar[str] = "risk"
    setting_in_name: ClassVar[str] = "coverage"
    coverage: Annotated[float, Range(0, 1, closed="right")] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "name", f"risk@{float(self.coverage):.12g}")

    def summarize_curve(self, n: Array, errors: Array) -> Array:
        return risk_at_shares(n, errors, np.array([float(self.coverage)]))[..., 0]

    def exact_limits(self, view: View, n: float, level: float) -> tuple[float, float] | None:
        """Exact limits if none of the answers is wrong, or all are."""
        risk = self.value(view)
        return exact_risk_limits(risk == 1, float(self.coverage) * n, level) if risk in (0.0, 1.0) else None

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"coverage": float(self.coverage)}


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
        return view.mean(_confidences(view) + self._wrong_answer_penalty(view.q, view))

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
                else " The mean is −∞. ⟨min_prob=0.01⟩ assumes an error probability 1 − c of at least 0.01 for them."
            )
            note_list.append(Note("TN104", text + suffix))
        n_clipped = int(((log_complement < np.log(self.min_prob)) & counted).sum()) if self.min_prob else 0
        return [*note_list, *clipping_notes(self.min_prob, n_clipped)]

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

"""Confidence threshold above which the error rate of the answers is at most a target, with a stated confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import betainc, ndtri

from trueodds.core.errors import Note
from trueodds.core.formatting import format_coverage, format_number, format_percent, format_threshold
from trueodds.core.results import Result
from trueodds.core.settings import Probability, Range, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.effective_sample_size import cluster_count_note, effective_sample_size, equal_clusters, unit_weight
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.selective_risk import spaced_steps
from trueodds.lenses.view import View

# Number of thresholds with a significance level of their own, at geometric steps of the number of answers. In
# simulations, fewer lower the coverage if the risk is constant, and more if the risk increases with the coverage.
N_STARTS = 5


@dataclass(frozen=True, slots=True, repr=False)
class SelectiveThreshold(Result):
    """Lowest confidence threshold whose risk was shown to be at most a target.

    Attributes
    ----------
    threshold : float or None
        Answer if the confidence is at least this value. None if no threshold was found.
    coverage : float
        Share of the questions that this rule answers; 0 without a threshold.
    risk : float or None
        Observed error rate of these answers.
    answered : int
        Number of these answers.
    n_queries : int
        Number of questions.
    max_risk : float
        The target.
    level : float
        The confidence level.
    notes : tuple of Note
        Facts about the clusters.
    """

    json_keys: ClassVar[tuple[str, ...]] = ("threshold", "coverage", "risk", "answered", "max_risk", "level")

    threshold: float | None
    coverage: float
    risk: float | None
    answered: int
    n_queries: int
    max_risk: float
    level: float
    notes: tuple[Note, ...] = ()

    def describe(self) -> str:
        """Describe the rule and what is known about its risk in one line.

        Returns
        -------
        str
            The line.
        """
        claim = f"risk ≤ {format_number(self.max_risk)} with {format_percent(self.level)} confidence"
        if self.threshold is None:
            required = _required_rows(self.max_risk, self.level)
            return (
                f"no threshold has a {claim}, which requires at least {required:,} independent answers, all of them"
                " correct"
            )
        return (
            f"confidence ≥ {format_threshold(self.threshold)} answers"
            f" {format_coverage(self.answered, self.n_queries)}, observed risk {format_number(self.risk)} · {claim}"
        )


def selective_threshold(
    preds: Predictions, *, max_risk: float = 0.05, level: float = 0.95, n_queries: int | None = None
) -> SelectiveThreshold:
    r"""Lowest threshold λ of the confidence for which P(wrong | confidence ≥ λ) ≤ `max_risk` at the confidence `level`.

    The threshold is chosen on the rows that evaluate it. The fallback procedure [3]_ limits the probability that the
    risk of the chosen threshold is larger than the target to δ = 1 − `level`. For each of up to 200 thresholds, from
    the fewest answers to the most, it tests the hypothesis that the risk is larger than the target. The p-value is

    .. math:: P(\mathrm{Bin}(n_\lambda, \mathrm{max\_risk}) \le e_\lambda)

    where e of the n answers are wrong. Five thresholds have a significance level of their own, δ/5: in geometric steps
    of n, from the smallest n with which a hypothesis can be rejected. If a hypothesis is rejected, its level is added
    to that of the next one. If no n up to the number of answers suffices for δ/5, only the rule that answers all
    questions is tested, at δ.

    Clustered rows count as their effective number of independent rows, multiplied by the squared ratio of the quantiles
    of the normal and of Student's t distribution for the effective number of clusters. Rows with weights that are not
    counts count as their effective sample size. `n_queries` is the number of questions, including those without an
    answer. Cost: O(n log n), with clusters O(200 n): 10 s of CPU for 100,000 answers. Raises TO203 for settings out of
    range.

    >>> preds = Predictions.from_confidence([0.9] * 200 + [0.6] * 200, [1] * 198 + [0] * 2 + [1, 0] * 100)
    >>> print(selective_threshold(preds))
    confidence ≥ 0.9 answers 50%, observed risk 0.01 · risk ≤ 0.05 with 95% confidence

    References
    ----------
    .. [1] Geifman & El-Yaniv (2017). Selective classification for deep neural networks. The problem.
    .. [2] Angelopoulos et al. (2021). Learn then test. Thresholds by multiple testing.
    .. [3] Wiens & Dmitrienko (2005). The fallback procedure.
    .. [4] Korn & Graubard (1998). Binomial limits from the effective number of rows.
    """
    max_risk = check("max_risk", max_risk, Probability, 0.05)
    level = check("level", level, Annotated[float, Range(0.5, 1, closed="neither")], 0.95)
    view, cluster = _rows_by_confidence(preds)
    answered = view.n_rows
    n_queries = answered if n_queries is None else n_queries
    check("n_queries", n_queries, Annotated[int, Range(answered)], answered)
    weight_up_to = np.cumsum(view.w.astype(np.float64))
    # The last row of each run of equal confidences: a threshold is the confidence of one of these rows.
    ends = np.flatnonzero(np.append(np.diff(view.p) != 0, True))
    ends = ends[spaced_steps(weight_up_to[ends])]
    risk = np.cumsum(view.w * (1 - view.y.astype(np.float64)))[ends] / weight_up_to[ends]
    n_without_errors, n_effective = _effective_numbers(view, cluster, ends, risk < max_risk, level)
    levels = _own_levels(_binomial_pvalue(0.0, n_without_errors, max_risk), ends + 1, 1 - level)
    chosen = _last_rejected(_binomial_pvalue(risk, n_effective, max_risk), levels)
    note = None if cluster is None else cluster_count_note(view.w, cluster)
    notes = () if note is None else (note,)
    if chosen is None:
        return SelectiveThreshold(None, 0.0, None, 0, n_queries, max_risk, level, notes)
    end = int(ends[chosen])
    share = float(weight_up_to[end] / weight_up_to[-1]) * answered
    return SelectiveThreshold(
        float(view.p[end]), share / n_queries, float(risk[chosen]), round(share), n_queries, max_risk, level, notes
    )


def _rows_by_confidence(preds: Predictions) -> tuple[View, Array | None]:
    """The rows of positive weight in decreasing order of confidence, and their clusters, numbered from 0."""
    (view,) = as_lens("confidence").views(preds)
    rows = np.flatnonzero(view.w > 0)
    order = rows[np.argsort(-view.p[rows], kind="stable")]
    cluster = preds.cluster
    return view.take(order), None if cluster is None else np.unique(cluster[order], return_inverse=True)[1].reshape(-1)


def _effective_numbers(
    view: View, cluster: Array | None, ends: Array, is_candidate: Array, level: float
) -> tuple[Array, Array]:
    """Effective numbers (m,) of independent answers up to each of `ends` (m,): if none was wrong, and as observed.

    The rows of the view are in decreasing order of confidence. The first number decides which thresholds can be
    rejected, so it must not depend on the errors. The second one is 0 where `is_candidate` (m,) is False, which saves
    time.
    """
    if cluster is None:
        w = view.w.astype(np.float64)
        unit = unit_weight(view)
        n = np.cumsum(w) / unit if unit is not None else np.cumsum(w) ** 2 / np.cumsum(w**2)
        return n[ends], np.where(is_candidate, n[ends], 0.0)
    n_without_errors, n_effective = np.zeros(len(ends)), np.zeros(len(ends))
    for i, end in enumerate(ends):
        rows = slice(0, int(end) + 1)
        n_without_errors[i] = equal_clusters(view.w[rows], cluster[rows])
        if is_candidate[i]:
            size = effective_sample_size([view.take(np.arange(end + 1))], cluster[rows])
            normal_to_t_ratio = float(ndtri(level)) / size.critical_value(2 * level - 1)
            n_effective[i] = size.effective_rows * normal_to_t_ratio**2
    return n_without_errors, n_effective


def _binomial_pvalue(risk: Any, n: Array, max_risk: float) -> Array:
    """P(Bin(n, max_risk) ≤ n risk), continued to fractional n (m,); 1 for no rows."""
    n_wrong = risk * n
    with np.errstate(invalid="ignore"):
        pvalue = betainc(n - n_wrong, n_wrong + 1, 1 - max_risk)
    return np.asarray(np.where(n > n_wrong, pvalue, 1.0))


def _own_levels(min_pvalue: Array, n: Array, delta: float) -> Array:
    """The significance level (m,) that each threshold has before others are rejected; their sum is `delta`.

    `min_pvalue` (m,) is the p-value without errors, the smallest possible one, and n (m,) the number of answers.
    """
    levels = np.zeros(len(n))
    testable = np.flatnonzero(min_pvalue <= delta / N_STARTS)
    if not len(testable):  # too few answers
        levels[-1] = delta
        return levels
    first = int(testable[0])
    targets = n[first] * (n[-1] / n[first]) ** (np.arange(N_STARTS) / N_STARTS)
    starts = np.unique(np.searchsorted(n, targets))
    levels[starts] = delta / len(starts)
    return levels


def _last_rejected(pvalue: Array, levels: Array) -> int | None:
    """Index of the last hypothesis that the fallback procedure rejects; None if it rejects none.

    The hypotheses are tested in their order. The level of a rejected one is added to that of the next.
    """
    last_rejected, added_level = None, 0.0
    for i, (p, own_level) in enumerate(zip(pvalue.tolist(), levels.tolist(), strict=True)):
        level = own_level + added_level
        if p <= level and level > 0:
            last_rejected, added_level = i, level
        else:
            added_level = 0.0
    return last_rejected


def _required_rows(max_risk: float, level: float) -> int:
    """Number of correct answers, none wrong, whose upper limit of the risk is the target."""
    return math.ceil(math.log(1 - level) / math.log(1 - max_risk) - 1e-9)

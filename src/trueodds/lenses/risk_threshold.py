"""Threshold of a score whose risk (errors, misses or false alarms) is at most a target, with a stated confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.special import betainc, ndtri

from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_coverage, format_number, format_percent, format_threshold
from trueodds.core.results import Result
from trueodds.core.settings import Probability, Range, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.effective_sample_size import cluster_count_note, effective_sample_size, equal_clusters
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.selective_risk import spaced_steps
from trueodds.lenses.view import View

Risk = Literal["error", "fnr", "fpr"]
_RISK_NAMES = {"error": "risk", "fnr": "false negative rate", "fpr": "false positive rate"}
# Number of thresholds with a significance level of their own, at geometric steps of the number of answers, below each
# number of rows. In simulations, fewer find more in few rows, and less if the risk increases with the coverage.
_STARTS_BELOW = ((1, 300.0), (2, 1000.0), (5, math.inf))
_REQUIRED_POWER = 0.8  # probability with which the number of required rows is to suffice


@dataclass(frozen=True, slots=True, repr=False)
class RiskThreshold(Result):
    """Threshold of a score whose risk was shown to be at most a target.

    Attributes
    ----------
    threshold : float or None
        Select a row if its score is at least this value: answer the question, or predict the event. None if no
        threshold was found.
    coverage : float
        Share of the rows that this rule selects; 0 without a threshold.
    risk : float or None
        Observed risk of the rule.
    answered : int
        Number of rows that it selects.
    n : int
        Number of rows, or of questions.
    max_risk : float
        The target.
    level : float
        The confidence level.
    kind : {"error", "fnr", "fpr"}
        Which risk is bounded.
    lens : str
        The lens, whose predicted probability is the score.
    required : int or None
        About how many rows would suffice, if no threshold was found; None if that cannot be estimated.
    notes : tuple of Note
        Facts about the rows.
    """

    json_schema: ClassVar[str] = "trueodds.threshold/1"

    threshold: float | None
    coverage: float
    risk: float | None
    answered: int
    n: int
    max_risk: float
    level: float
    kind: Risk = "error"
    lens: str = "confidence"
    required: int | None = None
    notes: tuple[Note, ...] = ()

    def describe(self) -> str:
        """Describe the rule and what is known about its risk in one line.

        Returns
        -------
        str
            The line.
        """
        name = _RISK_NAMES[self.kind]
        claim = f"{name} ≤ {format_number(self.max_risk)} with {format_percent(self.level)} confidence"
        score, verb = ("confidence", "answers") if self.lens == "confidence" else ("probability", "selects")
        if self.threshold is None and any(note.code == "TN298" for note in self.notes):
            return f"no threshold that selects a row has a {claim}"
        if self.threshold is None:
            rows = {
                "error": f"independent {'answers' if verb == 'answers' else 'selected rows'}, all of them correct",
                "fnr": "independent events",
                "fpr": "independent non-events",
            }[self.kind]
            more = "" if self.required is None else f"; about {self.required:,} rows like these may suffice"
            least = _rows_without_errors(self.max_risk, self.level)
            return f"no threshold has a {claim}, which requires at least {least:,} {rows}{more}"
        return (
            f"{score} ≥ {format_threshold(self.threshold)} {verb} {format_coverage(self.answered, self.n)},"
            f" observed {name} {format_number(self.risk)} · {claim}"
        )


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule that selects rows by their score."""

    n_selected: int = 0  # number of rows in decreasing order of the score
    risk: float | None = None
    required: float | None = None  # number of rows that would suffice, if the rule selects none
    notes: tuple[Note, ...] = ()


def find_threshold(
    preds: Predictions,
    *,
    risk: Risk = "error",
    lens: Any = "confidence",
    max_risk: float = 0.05,
    level: float = 0.95,
    n_queries: int | None = None,
) -> RiskThreshold:
    r"""Threshold λ of a score whose risk is at most `max_risk` at the confidence `level`.

    The threshold is chosen on the rows that evaluate it. In at most a share δ = 1 − `level` of data sets, its risk is
    larger than the target. Of the thresholds for which this is shown, the result is the lowest for ``"error"`` and
    ``"fpr"``, and the highest for ``"fnr"``.

    The risk ``"error"`` is P(no event | score ≥ λ), for the lens ``"confidence"`` the error rate of the answers. It
    need not be monotone in λ, so that the fallback procedure [3]_ adjusts for the choice. For each of up to 200
    thresholds, from the fewest answers to the most, it tests the hypothesis that the risk is larger than the target.
    The p-value is

    .. math:: P(\mathrm{Bin}(n_\lambda, \mathrm{max\_risk}) \le e_\lambda)

    where e of the n answers are wrong. Five thresholds have a significance level of their own, δ/5: in geometric steps
    of n, from the smallest n with which a hypothesis can be rejected; two below 1,000 rows, and one below 300. If a
    hypothesis is rejected, its level is added to that of the next one. If no n up to the number of answers suffices,
    only the rule that answers all questions is tested, at δ.

    ``"fnr"`` is P(score < λ | event), and ``"fpr"`` is P(score ≥ λ | no event). They are monotone in λ, so that the
    hypotheses are nested and need no adjustment: each is tested at δ, from the threshold without errors on, until one
    is not rejected. This is the confidence limit of a quantile by order statistics.

    Clustered rows count as their effective number of independent rows, multiplied by the squared ratio of the quantiles
    of the normal and of Student's t distribution for the effective number of clusters. Weighted rows count as their
    effective sample size, whole numbers too, unless they were repeated as frequencies. `n_queries` is the number of
    questions, including those without an answer. Cost: O(n log n), with clusters O(200 n): 10 s of CPU for 100,000
    answers. Raises TO203 for settings out of range, and TO205 for a lens that has not one probability per row, or
    outcomes that are shares.

    >>> preds = Predictions.from_confidence([0.9] * 200 + [0.6] * 200, [1] * 198 + [0] * 2 + [1, 0] * 100)
    >>> print(find_threshold(preds))
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
    view, cluster = _rows_by_score(preds, lens)
    n_rows = view.n_rows
    n = n_rows if n_queries is None else check("n_queries", n_queries, Annotated[int, Range(n_rows)], n_rows)
    if risk == "error":
        rule = _find_error_rule(view, cluster, max_risk, level)
    else:
        rule = _find_rate_rule(view, cluster, risk, max_risk, level)
    note = None if cluster is None else cluster_count_note(view.w, cluster)
    end, weight_up_to = rule.n_selected - 1, np.cumsum(view.w.astype(np.float64))
    is_found = end >= 0
    answered = float(weight_up_to[end] / weight_up_to[-1]) * n_rows if is_found else 0.0
    return RiskThreshold(
        threshold=float(view.p[end]) if is_found else None,
        coverage=answered / n,
        risk=rule.risk,
        answered=round(answered),
        n=n,
        max_risk=max_risk,
        level=level,
        kind=risk,
        lens=str(as_lens(lens)),
        required=None if rule.required is None else math.ceil(rule.required * n / n_rows),
        notes=rule.notes if note is None else (*rule.notes, note),
    )


def _rows_by_score(preds: Predictions, lens: Any) -> tuple[View, Array | None]:
    """The rows of positive weight in decreasing order of their score, and their clusters, numbered from 0."""
    views = as_lens(lens).views(preds)
    if len(views) > 1 or views[0].joint:
        fix = "Use ⟨lens='confidence'⟩, or the class whose probability is the score, such as ⟨lens='class:0'⟩."
        raise InputError("TO205", "A threshold needs a lens with one probability per row.", str(as_lens(lens)), fix)
    view = views[0]
    rows = np.flatnonzero(view.w > 0)
    order = rows[np.argsort(-view.p[rows], kind="stable")]
    cluster = preds.cluster
    return view.take(order), None if cluster is None else np.unique(cluster[order], return_inverse=True)[1].reshape(-1)


def _find_error_rule(view: View, cluster: Array | None, max_risk: float, level: float) -> _Rule:
    """Find the rule with the most answers whose error rate was shown to be at most `max_risk`."""
    weight_up_to = np.cumsum(view.w.astype(np.float64))
    # The last row of each run of equal scores: a threshold is the score of one of these rows.
    ends = np.flatnonzero(np.append(np.diff(view.p) != 0, True))
    ends = ends[spaced_steps(weight_up_to[ends])]
    error = np.cumsum(view.w * (1 - view.y.astype(np.float64)))[ends] / weight_up_to[ends]
    n_without_errors, n_effective = _effective_numbers(view, cluster, ends, error < max_risk, level)
    levels = _own_levels(n_without_errors, ends + 1, max_risk, 1 - level)
    chosen = _last_rejected(_binomial_pvalue(error, n_effective, max_risk), levels)
    if chosen is not None:
        return _Rule(int(ends[chosen]) + 1, float(error[chosen]))
    return _Rule(required=_rows_for_power(error, n_without_errors, n_effective, view.n_rows, max_risk, level))


def _rows_for_power(
    error: Array, n_without_errors: Array, n_effective: Array, n_rows: float, max_risk: float, level: float
) -> float | None:
    """Number of rows like these with which some rule is shown to meet the target with a probability of 80 %.

    None if no rule can be expected to meet it, or if that many rows are at hand and by chance did not suffice. Each
    rule has its error rate with half an error in one more answer, because a rule is noticed for its few errors; in
    simulations the result is half to twice the true number, and a third where the risk is nearly the target. The
    binomial test is approximated by a normal distribution. A rule is tested only if it could be shown without errors,
    where a cluster counts as one row.
    """
    expected_error = (error * n_effective + 0.5) / (n_effective + 1)
    is_candidate = (n_effective > 0) & (expected_error < max_risk)
    if not is_candidate.any():
        return None
    expected_error, rows_per_answer = expected_error[is_candidate], n_rows / n_effective[is_candidate]
    rows_per_unit = n_rows / n_without_errors[is_candidate]
    required = math.inf
    for n_starts, limit in _STARTS_BELOW:
        own_level = (1 - level) / n_starts
        deviation = -float(ndtri(own_level)) * math.sqrt(max_risk * (1 - max_risk))
        deviation = deviation + float(ndtri(_REQUIRED_POWER)) * np.sqrt(expected_error * (1 - expected_error))
        answers = np.square(deviation / (max_risk - expected_error))
        units = _rows_without_errors(max_risk, 1 - own_level)
        required = float(
            np.maximum(answers * rows_per_answer, units * np.maximum(rows_per_answer, rows_per_unit)).min()
        )
        if required < limit:
            break
    return required if required > n_rows else None  # the rows at hand did not suffice


def _find_rate_rule(view: View, cluster: Array | None, risk: Risk, max_risk: float, level: float) -> _Rule:
    """Find the rule whose false negative (false positive) rate was shown to be at most `max_risk`.

    Only the events (other rows) count, from the lowest (highest) score on. The rule that is tested at each of their
    scores misses the events below it (selects the rows above it).
    """
    if not np.isin(view.y, (0, 1)).all():
        problem, fix = f"A {_RISK_NAMES[risk]} needs one outcome per row.", "Pass one label per row."
        raise InputError("TO205", problem, "shares of several labels", fix)
    is_counted = view.y == (1 if risk == "fnr" else 0)
    counted = np.flatnonzero(is_counted)[:: -1 if risk == "fnr" else 1]
    if not len(counted):
        return _Rule()
    score, w = view.p[counted], view.w[counted].astype(np.float64)
    starts = np.flatnonzero(np.append(True, np.diff(score) != 0))  # the first row of each run of equal scores
    rate = (np.cumsum(w) - w)[starts] / w.sum()  # of wrong rows before
    starts, rate = starts[rate < max_risk], rate[rate < max_risk]
    if cluster is None:
        n_units = np.full(len(starts), _independent_rows(view.take(counted))[-1])
    else:
        grid = np.append(0, 1 + spaced_steps(rate[1:])) if len(rate) > 1 else np.array([0])
        starts, rate = starts[grid], rate[grid]
        n_units = np.zeros(len(starts))
        for i, start in enumerate(starts):
            is_wrong = (np.arange(len(counted)) < start).astype(np.float64)
            n_units[i] = _clustered_rows(View(p=np.zeros(len(w)), y=is_wrong, w=w), cluster[counted], level)
            if _binomial_pvalue(rate[i], n_units[i], max_risk) > 1 - level:
                break
    is_accepted = np.logical_and.accumulate(_binomial_pvalue(rate, n_units, max_risk) <= 1 - level)
    if not is_accepted[0]:
        return _Rule(required=_rows_without_errors(max_risk, level) * view.n_rows / float(n_units[0]))
    last = int(np.flatnonzero(is_accepted)[-1])
    limit = score[starts[last]]
    n_selected = int(np.count_nonzero(view.p >= limit if risk == "fnr" else view.p > limit))
    if not n_selected:
        n_highest = int(np.count_nonzero(score == score[0]))
        text = f"The highest score, {format_threshold(float(score[0]))}, is that of {n_highest:,} non-events"
        return _Rule(
            notes=(Note("TN298", f"{text}, so that a rule that selects any row has too many false positives."),)
        )
    return _Rule(n_selected, float(rate[last]))


def _effective_numbers(
    view: View, cluster: Array | None, ends: Array, is_candidate: Array, level: float
) -> tuple[Array, Array]:
    """Effective numbers (m,) of independent answers up to each of `ends` (m,): if none was wrong, and as observed.

    The rows of the view are in decreasing order of confidence. The first number decides which thresholds can be
    rejected, so it must not depend on the errors. The second one is 0 where `is_candidate` (m,) is False, which saves
    time.
    """
    if cluster is None:
        n = _independent_rows(view)
        return n[ends], np.where(is_candidate, n[ends], 0.0)
    n_without_errors, n_effective = np.zeros(len(ends)), np.zeros(len(ends))
    for i, end in enumerate(ends):
        rows = slice(0, int(end) + 1)
        n_without_errors[i] = equal_clusters(view.w[rows], cluster[rows])
        if is_candidate[i]:
            n_effective[i] = _clustered_rows(view.take(np.arange(end + 1)), cluster[rows], level)
    return n_without_errors, n_effective


def _independent_rows(view: View) -> Array:
    """Effective sample sizes (n,) of the first 1, 2, … independent rows; a weight of two is one row."""
    w = view.w.astype(np.float64)
    return np.asarray(np.cumsum(w) ** 2 / np.cumsum(w**2))


def _clustered_rows(view: View, cluster: Array, level: float) -> float:
    """Effective number of independent rows with the one-sided limits of a proportion in clusters at this level."""
    size = effective_sample_size([view], cluster)
    normal_to_t_ratio = float(ndtri(level)) / size.critical_value(2 * level - 1)
    return size.effective_rows * normal_to_t_ratio**2


def _binomial_pvalue(risk: Any, n: Any, max_risk: float) -> Array:
    """P(Bin(n, max_risk) ≤ n risk), continued to fractional n (m,); 1 for no rows."""
    n_wrong = risk * n
    with np.errstate(invalid="ignore"):
        pvalue = betainc(n - n_wrong, n_wrong + 1, 1 - max_risk)
    return np.asarray(np.where(n > n_wrong, pvalue, 1.0))


def _own_levels(n_effective: Array, n: Array, max_risk: float, delta: float) -> Array:
    """The significance level (m,) that each threshold has before others are rejected; their sum is `delta`.

    n (m,) are the numbers of answers, and `n_effective` (m,) those of independent answers if none is wrong. Both do not
    depend on the errors.
    """
    levels = np.zeros(len(n))
    n_starts = next(n_starts for n_starts, limit in _STARTS_BELOW if n[-1] < limit)
    testable = np.flatnonzero(_binomial_pvalue(0.0, n_effective, max_risk) <= delta / n_starts)
    if not len(testable):  # too few answers
        levels[-1] = delta
        return levels
    first = int(testable[0])
    targets = n[first] * (n[-1] / n[first]) ** (np.arange(n_starts) / n_starts)
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


def _rows_without_errors(max_risk: float, level: float) -> int:
    """Number of rows, none of them wrong, whose upper limit of the risk is the target."""
    return math.ceil(math.log(1 - level) / math.log(1 - max_risk) - 1e-9)

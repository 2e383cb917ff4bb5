"""Selective risk: the risk-coverage curve of a classifier that may abstain, and the area under it (AURC)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from trueodds.core.formatting import format_coverage, format_number
from trueodds.core.results import Interval
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, Range, check
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.effective_sample_size import effective_n, unit_weight
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View, rank_scores

COVERAGE_TOLERANCE = 1e-12  # relative: a coverage this close to the end of a step is equal to it
_RISK_TOLERANCE = 1e-12  # a risk this close to 0 or 1 is equal to it
_COVERAGE_SHRINKAGE = 1 - 1e-9  # factor that makes equal coverages equal, however the weights are scaled
MAX_DEFAULT_COVERAGES = 200  # evenly spaced coverages at which the risk is computed if none are requested


class OperatingPoint(NamedTuple):
    """Coverage and risk of the rule that answers if the confidence is at least `threshold`, all ties included."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class SelectiveRisk:
    r"""Risk-coverage curve of selective answering, and the area under it (AURC).

    A selective classifier answers the questions in which its confidence is high and abstains from the others. The
    coverage is the share of questions that it answers, the risk the error rate of these answers. With the answers in
    decreasing order of confidence, z their errors (1 if wrong) and n their number,

    .. math:: \mathrm{AURC} = \frac1n \sum_{i=1}^{n} \frac1i \sum_{j \le i} z_j

    is the mean risk over all coverages. Equal confidences form one step of the curve. For AURC their order is random,
    and the exact mean over all orders is used. AURC is in [0, 1], and 0 is best. It rewards few errors and a correct
    ranking by confidence, and does not measure calibration. `random` is its mean for a random order of all answers,
    which is the error rate. `ideal` is its value with all errors last. Source: El-Yaniv & Wiener (2010); Geifman &
    El-Yaniv (2017); Geifman, Uziel & El-Yaniv (2019).
    """

    threshold: Array  # (m,) the distinct confidences, decreasing
    coverage: Array  # (m,) share of questions answered at this confidence or above
    risk: Array  # (m,) share of those answers that are wrong
    aurc: float
    random: float  # mean of AURC for a random order: the error rate
    ideal: float  # AURC with all errors last
    interval: Interval | None  # of aurc; None without resamples
    # of random − aurc, which is above 0 if the order is better than a random one; None if all are right or all wrong
    gain: Interval | None
    answered: int  # number of answers
    n_queries: int  # number of questions
    # coverage, threshold, risk, low and high at the requested coverages, (c,) each; NaN beyond the last answer. The
    # threshold is also NaN within a step, because no threshold answers a part of equal confidences.
    at: Mapping[str, Array]

    @property
    def table(self) -> dict[str, Array]:
        """The curve by columns, from the most confident answers to all of them."""
        return {"threshold": self.threshold, "coverage": self.coverage, "risk": self.risk}

    def operating_point(self, coverage: float) -> OperatingPoint | None:
        """The highest threshold that answers at least this share of the questions; None if fewer have an answer."""
        index = int(np.searchsorted(self.coverage, coverage * (1 - COVERAGE_TOLERANCE)))
        if index == len(self.coverage):
            return None
        return OperatingPoint(float(self.threshold[index]), float(self.coverage[index]), float(self.risk[index]))

    def __float__(self) -> float:
        return self.aurc

    def __str__(self) -> str:
        interval = f" {self.interval}" if self.interval else ""
        return (
            f"aurc {format_number(self.aurc)}{interval} · random order {format_number(self.random)} · ideal order"
            f" {format_number(self.ideal)} · {self.answered:,} of {self.n_queries:,} answered"
            f" ({format_coverage(self.answered, self.n_queries)})"
        )


def selective_risk(
    preds: Predictions,
    *,
    n_queries: int | None = None,
    at: Sequence[float] = (),
    resamples: int = 2000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> SelectiveRisk:
    """Risk-coverage curve and AURC, with a percentile interval from resampled rows or clusters.

    `n_queries` is the number of questions, including those without an answer. `at` are coverages in (0, 1] at which the
    risk is reported with an interval, for equal confidences in random order; `operating_point` has the threshold that
    answers at least as many, with its own coverage and risk. `resamples=0` omits the intervals. A weight of two is
    equivalent to two rows. For weights that are not counts only ratios matter. Rows of weight 0 are excluded. Cost: O(n
    log n), and O(n) for each resample: 1 s of CPU for 10,000 answers, 13 s for 100,000. Raises TO203 for settings out
    of range.

    >>> curve = selective_risk(Predictions.from_confidence([0.9, 0.8, 0.8, 0.6], [1, 1, 0, 1]), at=[0.5], resamples=0)
    >>> curve.coverage.tolist(), round(float(curve), 4)  # (0 + (0/2 + 1/2)/2 + 1/3 + 1/4)/4
    ([0.25, 0.75, 1.0], 0.2083)
    >>> curve.at["risk"].tolist()  # the second answer is one of two, of which one is wrong
    [0.25]
    >>> curve.operating_point(0.5)  # both of them are answered
    OperatingPoint(threshold=0.8, coverage=0.75, risk=0.3333333333333333)
    """
    (view,) = as_lens("confidence").views(preds)
    return selective_risk_of_view(
        view, preds.cluster, n_queries=n_queries, at=at, resamples=resamples, level=level, rng=rng
    )


def selective_risk_of_view(
    view: View,
    cluster: Array | None = None,
    *,
    n_queries: int | None = None,
    at: Sequence[float] | Array | None = (),
    resamples: int = 2000,
    level: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> SelectiveRisk:
    """Risk-coverage curve of a binary view of rows, or of the cells of a tally.

    `at=None` requests the coverages of a diagram. At a coverage within a step, the risk is the mean over random orders
    of the equal confidences. Its limits are pointwise percentiles of the resamples. If none of the answers up to a
    coverage is wrong, or all are, the resamples do not vary, and one limit is an exact binomial limit instead. If none
    or all of the answers are wrong, the interval of AURC is exact too, see `exact_aurc_limits`.
    """
    if view.is_rows and not (mask := view.w > 0).all():
        view = view.take(np.flatnonzero(mask))
        cluster = None if cluster is None else np.unique(cluster[mask], return_inverse=True)[1].reshape(-1)
    answered = view.n_rows
    n_queries = answered if n_queries is None else n_queries
    _check_settings(n_queries, answered, resamples, level)
    steps = _confidence_steps(view)
    n_up_to, n_total, n_wrong = np.cumsum(steps.n), float(steps.n.sum()), float(steps.errors.sum())
    coverage = n_up_to / n_total * (answered / n_queries)
    requested = _coverage_grid(coverage) if at is None else _check_coverages(at)
    # Requested coverages as shares of the answers; NaN if more questions are requested than have an answer.
    shares = np.where(
        requested <= coverage[-1] * (1 + COVERAGE_TOLERANCE),
        np.minimum(requested * (n_queries / answered), 1.0),
        np.nan,
    )
    risk = risk_at_shares(steps.n, steps.errors, shares)
    errors_last = np.array([n_total - n_wrong, n_wrong])
    interval = gain = None
    low = high = np.full(len(requested), np.nan)
    if resamples:
        resampled = _resample_curves(_resample_steps(view, steps, cluster, resamples, as_generator(rng)), shares)
        n_units = effective_n(view) if cluster is None else len(np.unique(cluster))
        low, high = _risk_limits(resampled.risks, risk, shares * n_units, level)
        if 0 < n_wrong < n_total:
            interval = _percentile_interval(resampled.aurc, level)
            gain = _percentile_interval(resampled.gain, level)
        else:
            interval = Interval(*exact_aurc_limits(n_wrong > 0, n_units, level), level, "exact")
    return SelectiveRisk(
        threshold=steps.threshold,
        coverage=coverage,
        risk=np.cumsum(steps.errors) / n_up_to,
        aurc=float(area_under_curve(steps.n, steps.errors)),
        random=n_wrong / n_total,
        ideal=float(area_under_curve(errors_last, errors_last * [0, 1])),
        interval=interval,
        gain=gain,
        answered=answered,
        n_queries=int(n_queries),
        at={
            "coverage": requested,
            "threshold": _thresholds_at_shares(steps, shares),
            "risk": risk,
            "low": low,
            "high": high,
        },
    )


@dataclass(frozen=True, slots=True)
class _ConfidenceSteps:
    """Steps of the risk-coverage curve: the answers of each distinct confidence, in decreasing order."""

    threshold: Array  # (m,) the confidence
    n: Array  # (m,) number of answers with this confidence
    errors: Array  # (m,) number of those answers that are wrong
    step_of_row: Array  # (rows,) the step of each row of the view


def _confidence_steps(view: View) -> _ConfidenceSteps:
    """Return the steps of the risk-coverage curve of a view of rows or cells."""
    _, first, step = np.unique(-rank_scores(view), return_index=True, return_inverse=True)
    step, m = step.reshape(-1), len(first)
    w, is_wrong = view.w * rows_per_weight(view), 1 - view.y.astype(np.float64)
    return _ConfidenceSteps(
        threshold=view.p[first].astype(np.float64),
        n=np.bincount(step, w, m),
        errors=np.bincount(step, w * is_wrong, m),
        step_of_row=step,
    )


def _thresholds_at_shares(steps: _ConfidenceSteps, shares: Array) -> Array:
    """Threshold (s,) that answers exactly each of the `shares` (s,) of the answers; NaN within a step."""
    n_up_to = np.cumsum(steps.n)
    n_requested = np.nan_to_num(shares) * float(steps.n.sum())
    last_step = np.minimum(np.searchsorted(n_up_to, n_requested * (1 - COVERAGE_TOLERANCE)), len(n_up_to) - 1)
    is_end_of_step = n_requested * (1 + COVERAGE_TOLERANCE) >= n_up_to[last_step]
    return np.where(is_end_of_step, steps.threshold[last_step], np.nan)


@dataclass(frozen=True, slots=True)
class _ResampledCurves:
    """Statistics of the risk-coverage curve of each resample."""

    aurc: Array  # (resamples,)
    gain: Array  # (resamples,) error rate minus AURC
    risks: Array  # (resamples, coverages) risk at each requested coverage


def _resample_curves(steps: Iterator[tuple[Array, Array]], shares: Array) -> _ResampledCurves:
    """Compute AURC, gain and the risk at `shares` (coverages,) from the answers and errors of each resample's steps."""
    aurc, gain, risks = [], [], []
    for n, errors in steps:
        aurc.append(float(area_under_curve(n, errors)))
        gain.append(errors.sum() / n.sum() - aurc[-1])
        risks.append(risk_at_shares(n, errors, shares) if len(shares) else shares)
    return _ResampledCurves(np.array(aurc), np.array(gain), np.array(risks).reshape(len(risks), -1))


def _tail_probabilities(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def _risk_limits(risks: Array, risk: Array, n_answers: Array, level: float) -> tuple[Array, Array]:
    """Limits of the risk: percentiles of the resamples, or an exact binomial one if none or all are wrong."""
    low, high = np.quantile(risks, _tail_probabilities(level), axis=0)
    for i in np.flatnonzero((risk == 0) | (risk == 1)):
        exact_low, exact_high = exact_risk_limits(bool(risk[i]), float(n_answers[i]), level)
        low[i], high[i] = (exact_low, high[i]) if risk[i] else (low[i], exact_high)
    return low, high


def rows_per_weight(view: View) -> float:
    """Number of rows that a weight of 1 represents; weights that are not counts add up to `effective_n`."""
    unit = unit_weight(view)
    return 1 / unit if unit is not None else effective_n(view) / view.total


def _check_settings(n_queries: Any, answered: int, resamples: Any, level: Any) -> None:
    check("n_queries", n_queries, Annotated[int, Range(answered)], answered)
    check("resamples", resamples, Annotated[int, Range(0, 100_000_000)], 1000)
    check("level", level, Level, 0.95)


def _check_coverages(at: Any) -> Array:
    """Return the requested coverages (c,), or raise TO203 if one is not in (0, 1]."""
    coverage = Annotated[float, Range(0, 1, closed="right")]
    return np.array(check("at", at, Sequence[coverage], [0.8]), dtype=np.float64)


def _percentile_interval(draws: Array, level: float) -> Interval:
    low, high = np.quantile(draws, _tail_probabilities(level))
    return Interval(float(low), float(high), level, "percentile")


def exact_aurc_limits(all_wrong: bool, n: float, level: float) -> tuple[float, float]:
    """Limits of AURC if none of n answers was wrong, or all were.

    If no answer was wrong, the error rate is at most r, its exact binomial limit. AURC is largest if the wrong answers
    have the highest confidence: r + ∫ r/c dc for coverages c from r to 1, which is r (1 − log r). If all answers were
    wrong, the same limit holds for the share of correct answers, and AURC is at least 1 minus this value.
    """
    rate = 1 - _exact_limit(n, level)
    max_aurc = rate * (1 - float(np.log(rate)))
    return (1 - max_aurc, 1.0) if all_wrong else (0.0, max_aurc)


def exact_risk_limits(all_wrong: bool, n: float, level: float) -> tuple[float, float]:
    """Exact binomial limits of the risk if none of n answers was wrong, or all were.

    >>> [round(limit, 4) for limit in exact_risk_limits(False, 10, 0.95)]  # 1 − 0.025^(1/10)
    [0.0, 0.3085]
    """
    limit = _exact_limit(n, level)
    return (limit, 1.0) if all_wrong else (0.0, 1 - limit)


def _exact_limit(n: float, level: float) -> float:
    """Smallest share of which all n rows are events with probability (1 − level)/2 at least."""
    return float(((1 - level) / 2) ** (1 / max(n, 1.0)))


def spaced_steps(coverage: Array) -> Array:
    """Indices of at most 200 of the steps with ends `coverage` (m,): the first to reach each evenly spaced coverage.

    >>> spaced_steps(np.array([0.5, 1.0])).tolist(), len(spaced_steps(np.arange(1, 1001)))
    ([0, 1], 200)
    """
    if len(coverage) <= MAX_DEFAULT_COVERAGES:
        return np.arange(len(coverage))
    spaced_coverages = np.arange(1, MAX_DEFAULT_COVERAGES) / MAX_DEFAULT_COVERAGES * coverage[-1] * _COVERAGE_SHRINKAGE
    return np.unique(np.append(np.searchsorted(coverage, spaced_coverages), len(coverage) - 1))


def _coverage_grid(coverage: Array) -> Array:
    """Coverages of a diagram: the ends of steps, which have a threshold, and evenly spaced coverages in long steps."""
    spacing = float(coverage[-1]) / MAX_DEFAULT_COVERAGES
    spaced_coverages = np.arange(1, MAX_DEFAULT_COVERAGES) * spacing
    step = np.searchsorted(coverage, spaced_coverages * _COVERAGE_SHRINKAGE)
    start, end = np.concatenate(([0.0], coverage))[step], coverage[step]
    margin = spacing / 2 / _COVERAGE_SHRINKAGE
    is_inside = (spaced_coverages - start > margin) & (end - spaced_coverages > margin)
    return np.unique(np.concatenate((coverage[spaced_steps(coverage)], spaced_coverages[is_inside])))


def _resample_steps(
    view: View, steps: _ConfidenceSteps, cluster: Array | None, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Yield answers and errors, (m,) each, of the steps in each resample of rows, or of clusters if there are any."""
    m = len(steps.n)
    if not view.is_rows:
        size = max(1, round(effective_n(view)))
        share = np.clip(np.concatenate([steps.errors, steps.n - steps.errors]), 0.0, None)
        for _ in range(resamples):
            counts = rng.multinomial(size, share / share.sum()).astype(np.float64)
            n_wrong, n_right = counts[:m], counts[m:]
            yield n_wrong + n_right, n_wrong
        return
    w, is_wrong = view.w * rows_per_weight(view), 1 - view.y.astype(np.float64)
    step = steps.step_of_row
    unit = np.arange(len(step)) if cluster is None else cluster  # what is drawn with replacement
    n_units = int(unit.max()) + 1
    for _ in range(resamples):
        weight = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)[unit] * w
        if weight.any():  # skip a resample whose rows all have weight 0
            yield np.bincount(step, weight, m), np.bincount(step, weight * is_wrong, m)


def risk_at_shares(n: Array, errors: Array, shares: Array) -> Array:
    """Expected risk (…, s) of the most confident `shares` (s,) of the answers, from those of each step (…, m)."""
    n, errors = np.broadcast_arrays(n, errors)
    if n.ndim > 1:
        return np.array([risk_at_shares(*curve, shares) for curve in zip(n, errors, strict=True)])
    n_up_to, errors_up_to = (np.concatenate(([0.0], np.cumsum(values))) for values in (n, errors))
    k = shares * n_up_to[-1]
    with np.errstate(invalid="ignore"):
        risk = np.asarray(np.clip(np.interp(k, n_up_to, errors_up_to) / k, 0.0, 1.0))
    # At the end of a step without errors, a rounded share would reach into the next step.
    return np.where(risk < _RISK_TOLERANCE, 0.0, np.where(risk > 1 - _RISK_TOLERANCE, 1.0, risk))


def area_under_curve(n: Array, errors: Array) -> Array:
    """AURC (…) from the answers and errors of each step (…, m), in decreasing order of confidence.

    A step of g answers with e errors follows N answers with E errors. In random order, the expected risk after j of its
    answers is (E + j e/g)/(N + j). The sum over j is e + (E − N e/g)(H(N + g) − H(N)) with harmonic numbers H.
    """
    n_up_to, errors_before = np.cumsum(n, axis=-1), np.cumsum(errors, axis=-1) - errors
    n_before = n_up_to - n
    harmonic = _harmonic_number(n_up_to)
    harmonic_difference = np.diff(harmonic, axis=-1, prepend=0.0)
    rate = np.divide(errors, n, out=np.zeros(np.broadcast_shapes(n.shape, errors.shape)), where=n > 0)
    sums_of_steps = errors + (errors_before - n_before * rate) * harmonic_difference
    return np.asarray(sums_of_steps.sum(axis=-1) / n_up_to[..., -1])


def _harmonic_number(x: Array) -> Array:
    """Harmonic number H(x) = 1 + 1/2 + … + 1/x, continued to real x: ψ(x + 1) + γ."""
    from scipy.special import digamma

    return np.asarray(digamma(np.maximum(x, 0.0) + 1) + np.euler_gamma)

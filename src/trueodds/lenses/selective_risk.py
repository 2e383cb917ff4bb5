"""Risk-coverage curve and its area (AURC) for a selective classifier that may abstain."""

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
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

COVERAGE_TOLERANCE = 1e-12  # relative: a coverage this close to the end of a step is equal to it
_ROUNDING = 1e-12  # risks that differ less from 0 or 1 are 0 or 1
_BELOW_ROUNDING = 1 - 1e-9  # factor that makes equal coverages equal, however the weights are scaled
MAX_DEFAULT_COVERAGES = 200  # evenly spaced coverages at which the risk is computed if none are requested


class OperatingPoint(NamedTuple):
    """Coverage and risk of the rule that answers if the confidence is at least `threshold`, all ties included."""

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True, slots=True)
class SelectiveRisk:
    r"""Risk-coverage curve of selective answering, and the area under it (AURC).

    With the answers in decreasing order of confidence, z their errors and n their number,

    .. math:: \mathrm{AURC} = \frac1n \sum_{i=1}^{n} \frac1i \sum_{j \le i} z_j

    is the mean risk over all coverages. Equal confidences form one step of the curve. In the sum they have random
    order, and the exact mean over all orders is used. The risk is in [0, 1], and 0 is best. It rewards correct ranking
    by confidence and few errors, and does not measure calibration. `random`, the error rate, is the mean for a random
    order. `ideal` is the value with all errors last. Source: El-Yaniv & Wiener (2010); Geifman & El-Yaniv (2017);
    Geifman, Uziel & El-Yaniv (2019).
    """

    threshold: Array  # (m,) the distinct confidences, decreasing
    coverage: Array  # (m,) share of questions answered at this confidence or above
    risk: Array  # (m,) share of those answers that are wrong
    aurc: float
    random: float  # mean of AURC for a random order: the error rate
    ideal: float  # AURC with all errors last
    interval: Interval | None  # of aurc; None without resamples
    # of random − aurc: above 0 the order is better than a random one; None if all are right or wrong
    gain: Interval | None
    answered: int  # number of answers
    n_queries: int  # number of questions
    # coverage, threshold, risk, low and high at the requested coverages, (c,) each; NaN beyond the last answer. The
    # threshold is NaN inside a tie too: no threshold answers a part of equal confidences.
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
    """Risk-coverage curve of a binary view, from rows or cells of a tally; `at=None` uses the coverages of a diagram.

    Equal confidences have random order between steps. The limits at a coverage are pointwise percentiles. If no answer
    up to there is wrong, or all are, resamples do not vary, and the exact binomial limit is used. If that holds for all
    answers, the limit of AURC is its largest, or smallest, value at that error rate.
    """
    if view.is_rows and not (mask := view.w > 0).all():
        view = view.take(np.flatnonzero(mask))
        cluster = None if cluster is None else np.unique(cluster[mask], return_inverse=True)[1].reshape(-1)
    answered = view.n_rows
    n_queries = answered if n_queries is None else n_queries
    _check_settings(n_queries, answered, resamples, level)
    negative_confidence, step = np.unique(-view.p, return_inverse=True)
    threshold, step, m = -negative_confidence.astype(np.float64), step.reshape(-1), len(negative_confidence)
    w, is_wrong = _represented_rows(view), 1 - view.y.astype(np.float64)
    n, errors = np.bincount(step, w, m), np.bincount(step, w * is_wrong, m)
    n_up_to, n_total, n_wrong = np.cumsum(n), float(n.sum()), float(errors.sum())
    coverage = n_up_to / n_total * (answered / n_queries)
    requested = _coverage_grid(coverage) if at is None else _check_coverages(at)
    shares = np.where(
        requested <= coverage[-1] * (1 + COVERAGE_TOLERANCE),
        np.minimum(requested * (n_queries / answered), 1.0),
        np.nan,
    )
    risk = _risk_at_shares(n, errors, shares)
    errors_last = np.array([n_total - n_wrong, n_wrong])
    aurc, ideal = _area_under_curve(n, errors), _area_under_curve(errors_last, errors_last * [0, 1])
    interval = gain = None
    low = high = np.full(len(requested), np.nan)
    if resamples:
        resampled = _resample_curves(_resample_steps(view, step, m, cluster, resamples, as_generator(rng)), shares)
        n_units = view.effective_n if cluster is None else len(np.unique(cluster))
        low, high = _risk_limits(resampled.risks, risk, shares * n_units, level)
        if 0 < n_wrong < n_total:
            interval = _percentile_interval(resampled.aurc, level)
            gain = _percentile_interval(resampled.gain, level)
        else:
            interval = _exact_aurc_interval(n_wrong > 0, 1 - ((1 - level) / 2) ** (1 / n_units), level)
    n_requested = np.nan_to_num(shares) * n_total
    last_step = np.minimum(np.searchsorted(n_up_to, n_requested * (1 - COVERAGE_TOLERANCE)), m - 1)
    is_end_of_step = n_requested * (1 + COVERAGE_TOLERANCE) >= n_up_to[last_step]
    return SelectiveRisk(
        threshold=threshold,
        coverage=coverage,
        risk=np.cumsum(errors) / n_up_to,
        aurc=aurc,
        random=n_wrong / n_total,
        ideal=ideal,
        interval=interval,
        gain=gain,
        answered=answered,
        n_queries=int(n_queries),
        at={
            "coverage": requested,
            "threshold": np.where(is_end_of_step, threshold[last_step], np.nan),
            "risk": risk,
            "low": low,
            "high": high,
        },
    )


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
        aurc.append(_area_under_curve(n, errors))
        gain.append(errors.sum() / n.sum() - aurc[-1])
        risks.append(_risk_at_shares(n, errors, shares) if len(shares) else shares)
    return _ResampledCurves(np.array(aurc), np.array(gain), np.array(risks).reshape(len(risks), -1))


def _tail_probabilities(level: float) -> list[float]:
    """The probabilities of the two limits of a central interval."""
    return [(1 - level) / 2, (1 + level) / 2]


def _risk_limits(risks: Array, risk: Array, n_answers: Array, level: float) -> tuple[Array, Array]:
    """Limits (coverages,) of the risk at each coverage: percentiles of `risks` (resamples, coverages).

    If none or all of the `n_answers` (coverages,) are wrong, one of the limits is the exact binomial limit instead.
    """
    low, high = np.quantile(risks, _tail_probabilities(level), axis=0)
    exact_limit = ((1 - level) / 2) ** (1 / np.maximum(n_answers, 1.0))
    return np.where(risk == 1, exact_limit, low), np.where(risk == 0, 1 - exact_limit, high)


def _represented_rows(view: View) -> Array:
    """Weights (n,) as numbers of rows, on which the area depends. Weights that are not counts keep their ratios."""
    unit = view.unit_weight
    return view.w / unit if unit is not None else view.w * (view.effective_n / view.w.sum())


def _check_settings(n_queries: Any, answered: int, resamples: Any, level: Any) -> None:
    """Raise TO203 for settings out of range."""
    check("n_queries", n_queries, Annotated[int, Range(answered)], answered)
    check("resamples", resamples, Annotated[int, Range(0, 100_000_000)], 1000)
    check("level", level, Level, 0.95)


def _check_coverages(at: Any) -> Array:
    """Return the requested coverages (c,), or raise TO203 if one is not in (0, 1]."""
    coverage = Annotated[float, Range(0, 1, closed="right")]
    return np.array(check("at", at, Sequence[coverage], [0.8]), dtype=np.float64)


def _percentile_interval(draws: Array, level: float) -> Interval:
    """The percentile interval of resampled values (resamples,)."""
    low, high = np.quantile(draws, _tail_probabilities(level))
    return Interval(float(low), float(high), level, "percentile")


def _exact_aurc_interval(all_wrong: bool, rate: float, level: float) -> Interval:
    """Bound of AURC if no answer was wrong but a share `rate` may be, and comes first: r + ∫ r/c dc from r to 1.

    If all answers were wrong, the same share may be correct and come first, which gives the lower bound.
    """
    upper_bound = rate * (1 - float(np.log(rate)))
    return Interval(1 - upper_bound, 1.0, level, "exact") if all_wrong else Interval(0.0, upper_bound, level, "exact")


def spaced_steps(coverage: Array) -> Array:
    """Indices of at most 200 steps that end at the first coverages, of all `coverage` (m,), above evenly spaced ones.

    >>> spaced_steps(np.array([0.5, 1.0])).tolist(), len(spaced_steps(np.arange(1, 1001)))
    ([0, 1], 200)
    """
    if len(coverage) <= MAX_DEFAULT_COVERAGES:
        return np.arange(len(coverage))
    even = np.arange(1, MAX_DEFAULT_COVERAGES) / MAX_DEFAULT_COVERAGES * coverage[-1] * _BELOW_ROUNDING
    return np.unique(np.append(np.searchsorted(coverage, even), len(coverage) - 1))


def _coverage_grid(coverage: Array) -> Array:
    """Coverages of a diagram: the ends of steps, which have a threshold, and even coverages inside long steps.

    `coverage` (m,) are the ends of all steps.
    """
    spacing = float(coverage[-1]) / MAX_DEFAULT_COVERAGES
    even = np.arange(1, MAX_DEFAULT_COVERAGES) * spacing
    step = np.searchsorted(coverage, even * _BELOW_ROUNDING)
    start, margin = np.concatenate(([0.0], coverage))[step], spacing / 2 / _BELOW_ROUNDING
    is_inside = (even - start > margin) & (coverage[step] - even > margin)
    return np.unique(np.concatenate((coverage[spaced_steps(coverage)], even[is_inside])))


def _resample_steps(
    view: View, step: Array, m: int, cluster: Array | None, resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Answers and errors, (m,) each, of the steps in each resample of rows, of clusters, or of the rows of a tally.

    `step` (n,) is the step of each row of the view, `cluster` (n,) the number of its cluster.
    """
    w, is_wrong = _represented_rows(view), 1 - view.y.astype(np.float64)
    if not view.is_rows:
        size = max(1, round(view.effective_n))
        n, errors = np.bincount(step, w, m), np.bincount(step, w * is_wrong, m)
        share = np.clip(np.concatenate([errors, n - errors]), 0.0, None)
        for _ in range(resamples):
            counts = rng.multinomial(size, share / share.sum()).astype(np.float64)
            yield counts[:m] + counts[m:], counts[:m]
        return
    unit = np.arange(len(step)) if cluster is None else cluster
    n_units = int(unit.max()) + 1
    for _ in range(resamples):
        weight = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)[unit] * w
        if weight.any():  # skip a resample whose rows all have weight 0
            yield np.bincount(step, weight, m), np.bincount(step, weight * is_wrong, m)


def _risk_at_shares(n: Array, errors: Array, shares: Array) -> Array:
    """Expected risk (s,) of the most confident `shares` (s,) of the answers, from those of each step (m,)."""
    n_up_to, errors_up_to = (np.concatenate(([0.0], np.cumsum(values))) for values in (n, errors))
    k = shares * n_up_to[-1]
    with np.errstate(invalid="ignore"):
        risk = np.asarray(np.clip(np.interp(k, n_up_to, errors_up_to) / k, 0.0, 1.0))
    # At the end of a step without errors, a rounded share would reach into the next step.
    return np.where(risk < _ROUNDING, 0.0, np.where(risk > 1 - _ROUNDING, 1.0, risk))


def _area_under_curve(n: Array, errors: Array) -> float:
    """AURC from the answers and errors of each step (m,), in decreasing order of confidence.

    For g tied answers with e errors after N answers with E errors, the j-th in random order has the expected risk (E +
    j e/g)/(N + j). The sum over j is e + (E − N e/g)(H(N + g) − H(N)) with harmonic numbers H.
    """
    n_up_to, errors_before = np.cumsum(n), np.cumsum(errors) - errors
    n_before = n_up_to - n
    harmonic_difference = np.diff(_harmonic_number(np.concatenate(([0.0], n_up_to))))
    rate = np.divide(errors, n, out=np.zeros(len(n)), where=n > 0)
    return float((errors + (errors_before - n_before * rate) * harmonic_difference).sum() / n_up_to[-1])


def _harmonic_number(x: Array) -> Array:
    """Harmonic number H(x) = 1 + 1/2 + … + 1/x, continued to real x: ψ(x + 1) + γ."""
    from scipy.special import digamma

    return np.asarray(digamma(np.maximum(x, 0.0) + 1) + np.euler_gamma)

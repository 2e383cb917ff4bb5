"""The measures that clinical and credit-risk reports state, with intervals: how high, how steep, how discriminating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Interval, strict
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.cox import Cox
from trueodds.inference.asked import Asked
from trueodds.inference.estimate import Sureness, estimates
from trueodds.inference.floors import floors
from trueodds.inference.intervals import normal
from trueodds.problem.lens import default_lens
from trueodds.problem.log_probabilities import log_probabilities
from trueodds.problem.predictions import Predictions
from trueodds.problem.view import View

Array = NDArray[Any]

RESAMPLES = 199  # behind the interval of the ICI, whose smoother is fitted in each
MOST_ROWS = 50_000  # beyond which its smoother takes longer than the rest of the audit
PASSES = 60
LEAST = -1e4  # log-probability below which the power is no more sensitive; of an exact zero


@dataclass(frozen=True)
class Measure:
    """One measure with its interval."""

    name: str
    value: float | None
    interval: Interval | None
    ideal: float | None = None  # of a calibrated model

    def to_dict(self) -> dict[str, Any]:
        """The measure as JSON holds it."""
        ends = None if self.interval is None else self.interval.to_dict()
        return {"name": self.name, "value": strict(self.value), "interval": ends, "ideal": self.ideal}

    @property
    def distance(self) -> float:
        """How many standard errors lie between the value and the ideal one, by a normal interval; 0 where unknown."""
        if self.interval is None or self.value is None or self.ideal is None:
            return 0.0
        half = (self.interval.high - self.interval.low) / 2
        z = float(ndtri((1 + self.interval.level) / 2))
        return abs(self.value - self.ideal) * z / half if half > 0 else 0.0


def measures_of(preds: Predictions, level: float, rng: np.random.Generator) -> tuple[Measure, ...]:
    """Of two classes calibration in the large, slope, O:E, ICI and AUC; else the mean gap and the slope."""
    if preds.kind == "multilabel" or preds.w.sum() <= 0:
        return ()
    (view,) = default_lens(preds).views(preds)
    if preds.kind == "classes" and preds.k > 2:
        return _gap(view, preds.cluster, level), _measure("calibration_slope", *exponent(preds), level, 1.0)
    try:
        found = Cox().coefficients(view, preds.cluster)
    except InputError:  # a probability of 0 or 1 has no logit
        found = dict.fromkeys(("in_the_large", "slope"), (np.nan, np.nan))
    slope = _measure("calibration_slope", *found["slope"], level, 1.0)
    if preds.kind != "classes":
        return _gap(view, preds.cluster, level), slope
    large = _measure("calibration_in_the_large", *found["in_the_large"], level, 0.0)
    names = ["o_e", *(["ici"] if preds.n <= MOST_ROWS else [])]
    asked = [Asked.of(ESTIMATORS.make(name, {}), default_lens(preds), preds) for name in names]
    sure = Sureness(level=level, resamples=RESAMPLES)
    found_by_rows = estimates(preds, asked, sure, rng, lambda every: floors(preds, every, rng, RESAMPLES))
    known = {"o_e": ("observed_to_expected", 1.0), "ici": ("ici", 0.0)}
    others = [
        Measure(known[name][0], each.value, each.interval, known[name][1])
        for name, each in zip(names, found_by_rows, strict=True)
    ]
    return large, slope, *others, _measure("auc", *auc(view, preds.cluster), level, None)


def notes_of(preds: Predictions) -> list[Note]:
    """Why two classes have no calibration in the large and no slope: probabilities of 0 or 1 have no log odds."""
    if preds.kind != "classes" or preds.k > 2:
        return []
    (view,) = default_lens(preds).views(preds)
    extreme = int(((view.p <= 0) | (view.q <= 0)).sum())
    if not extreme:
        return []
    text = (
        f"Of {preds.n:,} probabilities {extreme:,} are exactly 0 or 1 and have no log odds, so calibration in the large "
        "and slope have no value. With a limit, to.test(preds, 'cox', floor=1e-6) estimates both."
    )
    return [Note("TN268", text)]


def by_name(measures: tuple[Measure, ...]) -> Mapping[str, Measure]:
    """The measures by their names."""
    return {each.name: each for each in measures}


def _measure(name: str, value: float, error: float, level: float, ideal: float | None) -> Measure:
    """A measure with the normal interval of its standard error."""
    if not np.isfinite(value):
        return Measure(name, None, None, ideal)
    if not np.isfinite(error):
        return Measure(name, value, None, ideal)
    return Measure(name, value, normal(value, error, level), ideal)


def _gap(view: View, cluster: Array | None, level: float) -> Measure:
    """Mean prediction minus outcome rate; its error from the residuals as they are."""
    share = view.w / view.total
    residual = share * (view.p - view.y)
    gap = float(residual.sum())
    parts = residual if cluster is None else np.bincount(cluster, residual)
    spread = float(np.sqrt(((parts - share * gap if cluster is None else parts) ** 2).sum()))
    return _measure("mean_gap", gap, spread, level, 0.0)


def exponent(preds: Predictions) -> tuple[float, float]:
    """The power of the probabilities that fits best, β = 1/T, with its standard error; NaN where none is finite.

    Below 1 the probabilities are too extreme, above 1 too timid. Newton's method on the concave log-likelihood of
    p^β / Σ p^β; the standard error is the sandwich's, with clusters that of their sums.
    """
    Y, w = preds.Y, preds.w
    logs = np.maximum(log_probabilities(preds), LEAST)

    def at(beta: float) -> tuple[Array, Array, float]:
        eta = beta * logs
        eta = eta - eta.max(axis=1, keepdims=True)
        q = np.exp(eta)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        mean = (q * logs).sum(axis=1)
        likelihood = float(w @ (Y * (eta - np.log(total))).sum(axis=1))
        return (Y * logs).sum(axis=1) - mean, (q * (logs - mean[:, None]) ** 2).sum(axis=1), likelihood

    beta, (residual, bend, likelihood) = 1.0, at(1.0)
    for _ in range(PASSES):
        information = float(w @ bend)
        if information <= 0:
            return float("nan"), float("nan")
        step = float(w @ residual) / information
        while abs(step) > 1e-12 * max(1.0, abs(beta)):
            there = at(beta + step)
            if there[2] >= likelihood:
                break
            step /= 2
        else:
            break
        beta, (residual, bend, likelihood) = beta + step, there
        if not abs(beta) < 1e6:
            return float("nan"), float("nan")
    scores = w * residual
    if preds.cluster is not None:
        scores = np.bincount(preds.cluster, scores)
    return beta, float(np.sqrt((scores**2).sum()) / (w @ bend))


def auc(view: View, cluster: Array | None = None) -> tuple[float, float]:
    """The area under the ROC curve and its standard error; NaN where only one class occurs.

    The error is DeLong's: from the share of the other class that each row is placed beyond. Rows count by weight;
    with votes each row is partly of both classes. Source: DeLong, DeLong & Clarke-Pearson (1988).
    """
    events, others = view.w * view.y, view.w * (1 - view.y)
    ones, zeros = float(events.sum()), float(others.sum())
    if ones <= 0 or zeros <= 0:
        return float("nan"), float("nan")
    place = rankdata(view.p, "dense") - 1
    below, above = (np.bincount(place, x) for x in (others, events))
    beaten = (np.cumsum(below) - below / 2)[place] / zeros  # share of the other class below, ties by half
    lost = (above.sum() - np.cumsum(above) + above / 2)[place] / ones
    area = float(events @ beaten) / ones
    influence = events / ones * (beaten - area) + others / zeros * (lost - area)
    if cluster is not None:
        influence = np.bincount(cluster, influence)
    return area, float(np.sqrt((influence**2).sum()))

"""Spline calibration: a penalized spline of the log odds, or Gupta et al.'s spline of the confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.special import expit

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._curves.one_vs_rest import (
    Curve,
    OneVsRest,
    effective_rows,
    fit_curves_of_logs,
    sums_by_log_odds,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    Probabilities,
    floor_logs,
    floor_notes,
    log_pair_of_score,
    probabilities,
    probability_pair,
)
from trueodds.calibrators._glm.logistic_regression import fit_smoothed, intercept_and_score
from trueodds.calibrators._splines import confidence_spline
from trueodds.calibrators._splines.natural_spline import (
    NaturalSpline,
    OutcomeCounts,
    fit_shift,
    fit_spline,
    place_knots,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf, Positive, Range
from trueodds.core.typing import Array


@dataclass(frozen=True, eq=False)
class LogOddsSpline:
    """A natural cubic spline from log odds to log odds.

    Its fit took what is below `min_prob` for the floor, and so does the curve: beyond the scores that were seen the line
    at an end may lead anywhere, and an exact zero is infinitely far beyond.
    """

    takes_logs: ClassVar[bool] = True
    spline: NaturalSpline
    freedom: float = 2.0  # effective degrees of freedom
    settled: bool = True  # whether it is the minimum, and that is finite
    n_passes: int = 0
    min_prob: float = 0.0  # 0 is none

    def __call__(self, x: Array) -> Array:
        """The probabilities at x."""
        return self.of_logs(log_pair_of_score(x))[:, 1]

    def of_logs(self, logs: Array) -> Array:
        """Both probabilities (n, 2), from the logarithms of both."""
        if self.min_prob > 0:
            logs = floor_logs(logs, self.min_prob)
        return probability_pair(self.spline(logs[:, 1] - logs[:, 0]))

    def falls(self) -> float:
        """By how much the probability falls between the first and the last knot, over all stretches where it does."""
        low, high = self.spline.knots[[0, -1]]
        along = expit(self.spline(low + (high - low) * np.arange(1001) / 1000))
        return float(np.maximum(-np.diff(along), 0.0).sum())

    def to_dict(self) -> dict[str, Any]:
        """The knots, the values there, and what the fit took."""
        return {
            "x": self.spline.knots.tolist(),
            "f": self.spline.values.tolist(),
            "freedom": self.freedom,
            "settled": self.settled,
            "n_passes": self.n_passes,
            "min_prob": self.min_prob,
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> LogOddsSpline:
        """Knots that rise, and a finite value at each; files of earlier versions have no floor."""
        parameters = {"min_prob": 0.0, **parameters}
        saved_parameters.check_keys(parameters, ("x", "f", "freedom", "settled", "n_passes", "min_prob"), "a curve")
        x = saved_parameters.read_vector(parameters, "x", -1e9, 1e9, increasing="strictly")
        if len(x) < 2 or not isinstance(parameters["settled"], bool):
            raise InputError(
                "TO505",
                "In a saved calibrator a spline must have two knots or more, and settled is true or false.",
                f"{len(x)} {'knot' if len(x) == 1 else 'knots'}, {str(parameters['settled'])[:40]}",
                "Fit it again and save it with .save(path).",
            )
        f = saved_parameters.read_vector(parameters, "f", -1e9, 1e9, size=len(x))
        freedom = saved_parameters.read_number(parameters, "freedom", 0, 1e6)
        min_prob = saved_parameters.read_number(parameters, "min_prob", 0, 0.5)
        return cls(
            NaturalSpline(x, f),
            freedom,
            parameters["settled"],
            saved_parameters.read_count(parameters, "n_passes"),
            min_prob,
        )


def fit_log_odds_spline(
    logs: Array, y: Array, w: Array, knots: int, penalty: float | None, min_prob: float
) -> LogOddsSpline:
    """The curve for floored log-probabilities of both sides (n, 2), outcome shares y and weights w; without a penalty it is chosen."""
    x, mass, events = sums_by_log_odds(logs[:, 1] - logs[:, 0], y, effective_rows(w)[1])
    data = OutcomeCounts(x, events, np.maximum(mass - events, 0.0)).in_groups(len(x))
    if data.separated:
        smoothed_fit = fit_smoothed(
            intercept_and_score(data.x), data.events / data.mass, data.mass, np.array([0.0, 1.0])
        )
        ends = np.array([data.x[0], max(data.x[-1], data.x[0] + 1.0)])
        return LogOddsSpline(
            NaturalSpline(ends, intercept_and_score(ends) @ smoothed_fit.theta),
            2.0,
            False,
            smoothed_fit.n_passes,
            min_prob,
        )
    fit = fit_spline(data, place_knots(data, knots), penalty) if len(data.x) > 1 else fit_shift(data)
    return LogOddsSpline(fit.curve, fit.freedom, fit.converged, fit.n_passes, min_prob)


_KNOTS = {"natural": 12, "gupta": 6}
_FALL = 1e-3  # of probability, from which a falling stretch is worth a word


@dataclass(frozen=True, eq=False)
class SplineMap(OneVsRest):
    """A spline in the log odds of the second of two classes, or of every class."""

    name: ClassVar[str] = "spline"
    takes_logs: ClassVar[bool] = True
    curve: ClassVar[Callable[[Mapping[str, Any]], Curve]] = LogOddsSpline.from_dict

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether every curve is the finite best one."""
        return all(curve.settled for curve in self.curves)

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Of all curves, over single scores or groups of them."""
        return sum(curve.n_passes for curve in self.curves)

    def describe(self) -> str:
        """The effective degrees of freedom, of which a line has 2."""
        free = [curve.freedom for curve in self.curves]
        if len(free) == 1:
            return f"{free[0]:.1f} degrees of freedom"
        return f"{len(free)} curves of {min(free):.1f} to {max(free):.1f} degrees of freedom"

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> Any:
        """The curves; where scores are saved in place of them, the map of the confidence."""
        if "scores" in parameters:
            return confidence_spline.ConfidenceMap.from_dict(parameters, k)
        return super().from_dict(parameters, k)


@dataclass(frozen=True)
class SplineSpec(CalibratorSpec):
    r"""A smooth curve: as wavy as the outcomes ask for, and a line in the log odds where they do not.

    .. math:: q = \sigma(f(\mathrm{logit}\,p)), \quad
        \min_f \sum_i w_i\,[\log(1 + e^{f(x_i)}) - y_i f(x_i)] + \lambda \int f''(x)^2\,dx

    `kind="natural"`: f is a natural cubic spline with `knots` knots (12) at even quantiles of x = logit p, a line
    beyond them. λ is `penalty`; `"auto"` takes the one at which minus the log-likelihood and 1.4 times the degrees of
    freedom are least (AIC would count them once), on a fixed grid, so that nothing depends on the order of rows.
    Lines cost nothing, so the identity and LLO are inside; a large λ gives LLO. The curve may fall: a note says so.
    Two classes: the curve of the second; more: one per class against the rest, then each row over its sum. Labels may
    change. Weights that are no counts are scaled to as many as there are rows. Where the score separates the outcomes
    no curve is best; it becomes the line with Platt's shares. Logs are of at least `min_prob`, in the fit and in the
    map: an exact zero is where the fit saw it, not where the line at the end of the curve leads. Fitted to n rows it loses about its degrees of freedom / 2n nats per new row to the best curve; on fewer
    than some hundred rows it is mostly a line.

    `kind="gupta"`: for the confidence alone. With rows by rising score s, the running sums h of (right − s)/n are
    fitted by least squares, over the rank t from 0 to 1, with a natural cubic spline with `knots` even knots (6); the
    confidence becomes s + h'(t), straight between neighboring scores, in [0, 1]. The other classes share the rest as
    they did, and the confidence never falls below what keeps the label. Equal scores are pooled.

    Cost: O(K n log n), about 5 passes over the scores and up to 80 over 1,024 groups of them. Sources: Lucena (2018),
    with the roughness of Green & Silverman (1994) as the penalty and the 1.4 of Kim & Gu (2004); Gupta et al. (2021).

    >>> p = np.arange(1, 100) / 100
    >>> m = SplineSpec().fit(np.stack([1 - p, p], axis=1), np.stack([1 - p**2, p**2], axis=1), np.full(99, 100.0))
    >>> m.apply(np.array([[0.5, 0.5]])).round(2).tolist()
    [[0.75, 0.25]]
    """

    name: ClassVar[str] = "spline"
    takes_logs: ClassVar[bool] = True
    complexity: ClassVar[int] = 15
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = SplineMap
    kind: Annotated[str, OneOf(tuple(_KNOTS))] = "natural"
    knots: Annotated[int, Range(3, 100)] | None = None
    penalty: Positive | Literal["auto"] = "auto"
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kind == "gupta" and self.penalty != "auto":
            raise InputError("TO203", "kind='gupta' has no penalty.", repr(self.penalty), "Leave it out.")

    def settings(self) -> dict[str, Any]:
        """The settings, with the knots of the kind where none are given."""
        return {**super().settings(), "knots": self._knots}

    @property
    def _knots(self) -> int:
        return int(self.knots or _KNOTS[self.kind])

    def fit(self, P: Probabilities, Y: Array, w: Array) -> CalibrationMap:
        """The curves of these rows."""
        if self.kind == "gupta":
            return confidence_spline.fit_confidence(probabilities(P), Y, w, self._knots)
        penalty = None if isinstance(self.penalty, str) else float(self.penalty)
        fit_curve = partial(fit_log_odds_spline, knots=self._knots, penalty=penalty, min_prob=self.min_prob)
        return SplineMap(fit_curves_of_logs(fit_curve, P, Y, w, self.min_prob))

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Floored values, curves without a finite best one, and falling ones; what was clipped, or raised."""
        if isinstance(calibration_map, confidence_spline.ConfidenceMap):
            return _adjusted(calibration_map, probabilities(P))
        assert isinstance(calibration_map, SplineMap)
        fit_notes = floor_notes(P, Y, self.min_prob)
        open_ended = sum(not curve.settled for curve in calibration_map.curves)
        if open_ended:
            which = f" of {open_ended:,} classes" * (len(calibration_map.curves) > 1)
            text = f"The scores{which} separate what came from what did not, or all outcomes are the same: no finite curve fits best. It became a line in the log odds, with one more outcome of either kind imagined."
            fit_notes.append(Note("TN528", text))
        falls = max(curve.falls() for curve in calibration_map.curves)
        if falls > _FALL:
            which = " of a class" * (len(calibration_map.curves) > 1)
            text = f"The curve{which} falls by up to {falls:.2g} in places, where a higher score gets a lower probability; a larger penalty, or isotonic, keeps the order of scores."
            fit_notes.append(Note("TN529", text))
        return fit_notes


def _adjusted(calibration_map: confidence_spline.ConfidenceMap, P: Array) -> list[Note]:
    raised = calibration_map.raised(P)
    if not calibration_map.clipped and not raised:
        return []
    text = f"The spline left [0, 1] at {calibration_map.clipped:,} scores and was clipped there; in {raised:,} of {len(P):,} rows the confidence was raised so that the label stays."
    return [Note("TN531", text)]


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(0 < value < math.inf)

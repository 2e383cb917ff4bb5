"""How does the log odds of one class curve? The fitted spline, as a curve of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from trueodds.calibrators import wire
from trueodds.calibrators.curves.by_score import by_log_odds
from trueodds.calibrators.curves.one_vs_rest import as_rows
from trueodds.calibrators.likelihood.binary_logistic import fit_smoothed, line
from trueodds.calibrators.likelihood.logs import of_score, raised, sides
from trueodds.calibrators.splines.natural import Natural
from trueodds.calibrators.splines.penalized import OutcomeCounts, fit_spline, shifted, spaced
from trueodds.core.errors import InputError
from trueodds.core.typing import Array


@dataclass(frozen=True, eq=False)
class LogOdds:
    """A natural cubic spline from log odds to log odds.

    Its fit took what is below `min_prob` for the floor, and so does the curve: beyond the scores that were seen the line
    at an end may lead anywhere, and an exact zero is infinitely far beyond.
    """

    takes_logs: ClassVar[bool] = True
    spline: Natural
    freedom: float = 2.0  # effective degrees of freedom
    settled: bool = True  # whether it is the minimum, and that is finite
    n_passes: int = 0
    min_prob: float = 0.0  # 0 is none

    def __call__(self, x: Array) -> Array:
        """The probabilities at x."""
        return self.of_logs(of_score(x))[:, 1]

    def of_logs(self, logs: Array) -> Array:
        """Both probabilities (n, 2), from the logarithms of both."""
        if self.min_prob > 0:
            logs = raised(logs, self.min_prob)
        return sides(self.spline(logs[:, 1] - logs[:, 0]))

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
    def from_dict(cls, parameters: Mapping[str, Any]) -> LogOdds:
        """Knots that rise, and a finite value at each; files of earlier versions have no floor."""
        parameters = {"min_prob": 0.0, **parameters}
        wire.keys(parameters, ("x", "f", "freedom", "settled", "n_passes", "min_prob"), "a curve")
        x = wire.vector(parameters, "x", -1e9, 1e9, increasing="strictly")
        if len(x) < 2 or not isinstance(parameters["settled"], bool):
            raise InputError(
                "TO505",
                "In a saved calibrator a spline must have two knots or more, and settled is true or false.",
                f"{len(x)} {'knot' if len(x) == 1 else 'knots'}, {str(parameters['settled'])[:40]}",
                "Fit it again and save it with .save(path).",
            )
        f = wire.vector(parameters, "f", -1e9, 1e9, size=len(x))
        freedom = wire.number(parameters, "freedom", 0, 1e6)
        min_prob = wire.number(parameters, "min_prob", 0, 0.5)
        return cls(Natural(x, f), freedom, parameters["settled"], wire.count(parameters, "n_passes"), min_prob)


def fitted_curve(logs: Array, y: Array, w: Array, knots: int, penalty: float | None, min_prob: float) -> LogOdds:
    """The curve for floored log-probabilities of both sides (n, 2), outcome shares y and weights w; without a penalty it is chosen."""
    x, mass, events = by_log_odds(logs[:, 1] - logs[:, 0], y, as_rows(w)[1])
    data = OutcomeCounts(x, events, np.maximum(mass - events, 0.0)).in_groups(len(x))
    if data.separated:
        smoothed_fit = fit_smoothed(line(data.x), data.events / data.mass, data.mass, np.array([0.0, 1.0]))
        ends = np.array([data.x[0], max(data.x[-1], data.x[0] + 1.0)])
        return LogOdds(Natural(ends, line(ends) @ smoothed_fit.theta), 2.0, False, smoothed_fit.n_passes, min_prob)
    fit = fit_spline(data, spaced(data, knots), penalty) if len(data.x) > 1 else shifted(data)
    return LogOdds(fit.curve, fit.freedom, fit.converged, fit.n_passes, min_prob)

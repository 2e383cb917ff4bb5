"""Platt scaling: a sigmoid of the log odds, or of the probability, for two classes or for each class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, ClassVar

import numpy as np
from scipy.special import expit

from trueodds.calibrators._curves.one_vs_rest import (
    IterativeOneVsRest,
    OneVsRestRows,
    OneVsRestSpec,
)
from trueodds.calibrators._glm.fit_data import SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    binary_logs,
    logs_for_slopes,
    probability_pair,
)
from trueodds.calibrators._glm.logistic_regression import (
    Coefficient,
    LogisticRows,
    curve_notes,
    fit_finite_from_sums,
    fit_logistic_from_sums,
    intercept_and_score,
)
from trueodds.calibrators.base import SoftmaxTerm
from trueodds.calibrators.saved_parameters import OMIT_DEFAULT, PassCount, Saved, ZeroOrOne
from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

_INPUT_SCALES = ("logit", "raw")
_FLAT_CURVE = np.zeros(2)  # intercept and slope of the curve q = 1/2, which stay where the rows do not determine them


class Sigmoid(Saved):
    """1/(1 + exp(−(slope·x + intercept))), x being the probability or its log odds."""

    symbols: ClassVar[Mapping[str, str]] = {"a": "slope", "b": "intercept"}
    slope: Coefficient
    intercept: Coefficient
    on: Annotated[str, OneOf(_INPUT_SCALES)] = "logit"  # what x is: "logit" for log odds, "raw" for the probability
    n_passes: PassCount = 0
    converged: ZeroOrOne = True  # whether the optimum is finite without smoothed targets
    # Smallest probability of the fit on log odds; used if the slope is negative.
    min_prob: Annotated[MinProb, OMIT_DEFAULT] = MIN_PROB

    def __post_init__(self) -> None:
        if not self.slope < 0:  # then `min_prob` is not used, nor saved
            object.__setattr__(self, "min_prob", MIN_PROB)

    @property
    def takes_logs(self) -> bool:
        return self.on == "logit"

    @property
    def nonincreasing(self) -> bool:
        return self.slope <= 0

    def __call__(self, x: Array) -> Array:
        """The values at x; with a positive slope in log odds an exact zero stays zero."""
        if self.on == "logit":
            return self.apply_to_logs(binary_logs(x))[:, 1]
        return np.asarray(expit(self.slope * x.astype(np.float64) + self.intercept))

    def apply_to_logs(self, logs: Array) -> Array:
        if self.slope == 0:
            return probability_pair(np.full(len(logs), self.intercept))
        logs = logs_for_slopes(logs, self.slope, self.min_prob)
        return probability_pair(self.slope * (logs[:, 1] - logs[:, 0]) + self.intercept)


class PlattMap(IterativeOneVsRest):
    """A sigmoid for the second of two classes, or for every class."""

    curves: tuple[Sigmoid, ...]

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The sigmoid as a mixture, for two classes and log odds."""
        curve = self.curves[0]
        if k > 2 or curve.on == "raw":
            return None
        return (SoftmaxTerm(1.0, np.full(2, curve.slope), np.array([0.0, curve.intercept]), curve.min_prob),)

    def describe(self) -> str:
        """The parameters, such as `slope 0.55, intercept -0.45`, or the range of the slopes of several curves."""
        if len(self.curves) == 1:
            return f"slope {format_number(self.curves[0].slope)}, intercept {format_number(self.curves[0].intercept)}"
        slopes = [curve.slope for curve in self.curves]
        return f"slopes {format_number(min(slopes))} to {format_number(max(slopes))} in {len(slopes)} curves"


class PlattSpec(OneVsRestSpec):
    r"""Platt scaling: a sigmoid of the log odds, or of the probability itself, fitted by maximum likelihood.

    Two classes have one sigmoid, for the second class. With more classes each has its own sigmoid against the rest, so
    predicted classes may change; rows are then divided by their sums.

    Parameters
    ----------
    on : {"logit", "raw"}, default="logit"
        Input x of the sigmoid: log(p/(1 − p)), or p itself. `"raw"` is scikit-learn's "sigmoid" of a forest. It does
        not contain the identity.
    smooth : bool, default=True
        Whether the targets are smoothed to t. This keeps every fit finite and shrinks a little towards the base rate.
        With False the targets are y, and smoothed targets are used only where the scores separate the outcomes.

    Notes
    -----
    .. math:: q = \frac{1}{1 + e^{-(s x + b)}}, \qquad
        \max_{s, b} \sum_i w_i\,[t_i \log q_i + (1 - t_i)\log(1 - q_i)], \quad
        t = y\,\tfrac{N_1 + 1}{N_1 + 2} + (1 - y)\,\tfrac{1}{N_0 + 2}

    With `on="logit"` and `smooth=False` it is `llo`. A slope that is not positive is reported in a note.

    Cost: O(nK) per pass, about 7 passes.

    References
    ----------
    .. [1] Platt (1999).
    .. [2] Lin, Lin & Weng (2007).

    Examples
    --------
    >>> P = np.array([[0.1, 0.9], [0.9, 0.1]] * 4)
    >>> fitted = PlattSpec(smooth=False).fit(P, np.eye(2)[[1, 0, 1, 0, 1, 0, 0, 1]], np.ones(8))
    >>> round(fitted.curves[0].slope, 6)
    0.5
    """

    name, map_type = "platt", PlattMap
    candidate = False
    on: Annotated[str, OneOf(_INPUT_SCALES)] = "logit"
    smooth: bool = True
    min_prob: MinProb = MIN_PROB

    def fit_curve(self, data: SummableRows) -> Sigmoid:
        rows = data.map_rows(partial(_logistic_rows, on=self.on))
        optimum = (
            fit_logistic_from_sums(rows, _FLAT_CURVE, smooth=True)
            if self.smooth
            else fit_finite_from_sums(rows, _FLAT_CURVE)
        )
        intercept, slope = optimum.theta.tolist()
        return Sigmoid(slope, intercept, self.on, optimum.n_passes, optimum.converged, self.min_prob)

    def notes_from_sums(self, calibration_map: PlattMap, data: SummableRows) -> list[Note]:
        if self.on == "raw":  # without logarithms
            return curve_notes(calibration_map.curves)
        return super().notes_from_sums(calibration_map, data)


def _logistic_rows(class_rows: OneVsRestRows, on: str) -> LogisticRows:
    """The rows of a logistic model of the log odds, or of the probability with `on="raw"`."""
    x = class_rows.logs[:, 1] - class_rows.logs[:, 0] if on == "logit" else class_rows.x.astype(np.float64)
    return LogisticRows(intercept_and_score(x), class_rows.y, class_rows.w)

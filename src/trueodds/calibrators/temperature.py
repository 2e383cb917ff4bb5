"""Temperature scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators._glm.fit_data import FitData
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    floored_logs,
    softmax,
)
from trueodds.calibrators._glm.newton import MAX_BETA, MIN_BETA, minimize_beta
from trueodds.calibrators._glm.row_sums import RowSums
from trueodds.calibrators.base import CalibrationMap, SummedSpec, Term
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.tallies.softmax_likelihood import Likelihood, softmax_linear, softmax_tempered

_MANY = 2**16  # probabilities of a sample from which it pays to begin where that sample ends


@dataclass(frozen=True)
class TemperatureMap(CalibrationMap):
    """Rows proportional to p^β with β = 1/T; an exact zero stays zero."""

    name: ClassVar[str] = "temperature"
    takes_logs: ClassVar[bool] = True
    beta: float
    n_passes: int = 0

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether β lies inside its range."""
        return MIN_BETA < self.beta < MAX_BETA

    def apply(self, P: Probabilities) -> Array:
        """The powers, divided by their sum, in logs so that nothing underflows on the way."""
        if isinstance(P, LogProbabilities):
            return softmax(self.beta * P.values)
        from trueodds.kernels.softmax import powered

        return powered(P, self.beta)

    def terms(self, k: int) -> tuple[Term, ...]:
        """softmax(β log p)."""
        return (Term(1.0, self.beta * np.eye(k), np.zeros(k)),)

    def describe(self) -> str:
        """`T = 1.60`."""
        return format_temperature(self.beta)

    def to_dict(self) -> dict[str, Any]:
        """β, and the passes that finding it took."""
        return {"beta": self.beta, "n_passes": self.n_passes}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> TemperatureMap:  # noqa: ARG003 - any number of classes
        """β within its range."""
        saved_parameters.check_keys(parameters, ("beta", "n_passes"), "parameters")
        return cls(
            saved_parameters.read_number(parameters, "beta", MIN_BETA, MAX_BETA),
            saved_parameters.read_count(parameters, "n_passes"),
        )


@dataclass(frozen=True)
class TemperatureSpec(SummedSpec):
    r"""One temperature T > 0 for all rows and classes, by maximum likelihood.

    .. math:: q_{ik} \propto p_{ik}^{\beta}, \quad
        \beta = \arg\min_\beta \sum_i w_i\,[\mathrm{lse}(\beta \log p_i) - \beta\, y_i\cdot\log p_i], \quad T = 1/\beta

    T > 1 says the model was too sure, T < 1 not sure enough. The same from probabilities as from logits. Convex in
    β; Newton's method inside a bracket, on the series of six derivatives where it holds, so it always converges. Of
    many rows, it begins where a sample of them ends; the result is that of all rows. Keeps the order within each row,
    hence every label (up to rounding). Fits take log(max(p, `min_prob`)); the map itself has no floor. Cost: O(nK) per
    pass, 4 passes over few rows and one or two over many. Source: Guo et al. (2017).

    >>> P = np.array([[0.1, 0.9]] * 4)
    >>> TemperatureSpec().fit(P, np.eye(2)[[1, 1, 1, 0]], np.ones(4)).describe()
    'T = 2.00'
    """

    name: ClassVar[str] = "temperature"
    complexity: ClassVar[int] = 1
    keeps_argmax: ClassVar[bool] = True
    takes_logs: ClassVar[bool] = True
    map_type: ClassVar[type[CalibrationMap] | None] = TemperatureMap
    accepts_raw_arrays: ClassVar[bool] = True
    min_prob: MinProb = MIN_PROB

    def fit_data(self, data: RowSums) -> TemperatureMap:
        """The temperature of these rows."""

        def sums(beta: float, every: int = 1) -> Likelihood:
            likelihood: Likelihood = data.sum(partial(_sums, beta=beta, min_prob=self.min_prob, every=every))
            return likelihood

        start = 1.0
        for every, within in ((64, 1e-3), (8, 1e-4)):
            if data.size >= every * _MANY:
                start, _ = minimize_beta(partial(sums, every=every), start, within=within)
        return TemperatureMap(*minimize_beta(sums, start))

    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Floored values, and a β at an end of its range."""
        assert isinstance(calibration_map, TemperatureMap)
        return data.facts.floored.notes() + boundary_notes(calibration_map.beta)


def _sums(data: FitData, beta: float, min_prob: float, every: int) -> Likelihood:
    """What these rows, or one of so many, add to the likelihood of β and its derivatives."""
    if isinstance(data.P, LogProbabilities):
        logs = floored_logs(data.P[::every], min_prob)
        return softmax_linear(logs[:, :, None], data.Y[::every], data.w[::every], np.array([beta]))
    return softmax_tempered(data.P, data.Y, data.w, beta, min_prob, every=every)


def format_temperature(beta: float) -> str:
    """`T = 1.60`."""
    t = 1 / beta
    return f"T = {t:.2f}" if 0.1 <= t < 100 else f"T = {t:,.0f}" if t >= 100 else f"T = {t:.3g}"


def boundary_notes(beta: float) -> list[Note]:
    """That β stopped at an end of its range."""
    if beta >= MAX_BETA:
        return [
            Note(
                "TN503",
                f"Every row got its most probable class right, or nearly so: no finite temperature fits best. T stopped at {1 / MAX_BETA:g}, which makes almost every probability 0 or 1.",
            )
        ]
    if beta <= MIN_BETA:
        return [
            Note(
                "TN504",
                f"The predictions inform no better than chance, or point the wrong way: T stopped at {1 / MIN_BETA:g}, which makes every row uniform.",
            )
        ]
    return []

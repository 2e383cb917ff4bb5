"""IROvA-TS: temperature scaling followed by one-vs-rest isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from trueodds.calibrators._glm.fit_data import apply_in_blocks
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    replacement_notes,
    to_logs,
)
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.isotonic import IsotonicMap, IsotonicSpec
from trueodds.calibrators.saved_parameters import Key
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, boundary_notes
from trueodds.core.errors import Note
from trueodds.core.typing import Array


@dataclass(frozen=True, eq=False)
class IrovaTsMap(CalibrationMap):
    """A non-decreasing curve per class, applied to tempered rows."""

    name: ClassVar[str] = "irova_ts"
    takes_logs: ClassVar[bool] = True
    temperature_map: Annotated[TemperatureMap, Key("temperature")]  # applied first
    curves: Annotated[IsotonicMap, Key("isotonic")]  # of the tempered probabilities

    @property
    def n_passes(self) -> int:  # type: ignore[override]
        """Passes of the fit of the temperature."""
        return self.temperature_map.n_passes

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """Whether the temperature lies inside its range."""
        return self.temperature_map.converged

    def apply(self, P: Probabilities) -> Array:
        """The curves' values at the tempered rows, normalized."""
        return apply_in_blocks(lambda p: self.curves.apply(tempered_scores(self.temperature_map, p)), P)

    def describe(self) -> str:
        """The temperature and the number of knots."""
        return f"{self.temperature_map.describe()}, then {self.curves.describe()}"


@dataclass(frozen=True)
class IrovaTsSpec(CalibratorSpec):
    r"""IROvA-TS: temperature scaling, then an isotonic regression for each class against the rest.

    The temperature corrects what all classes have in common, so that the curves start from better scores. Rows are
    divided by their sums. Two classes have one curve, for the second class, and the temperature hardly changes it.
    Probabilities may become exactly 0 or 1, and predicted classes may change.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit of T takes log(max(p, `min_prob`)). Where log-probabilities
        are known (`Predictions.from_logits`), the default applies to exact zeros only.

    Notes
    -----
    .. math:: q_{ik} \propto g_k\!\Big(\frac{p_{ik}^\beta}{\sum_l p_{il}^\beta}\Big), \quad g_k \text{ non-decreasing}

    Equal scores are pooled.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Zhang, Kailkhura & Han (2020), IROvA-TS. Unlike in their code, rows are divided by their sums.

    Examples
    --------
    >>> P, y = np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]), np.array([1, 0, 0])
    >>> IrovaTsSpec().fit(P, np.eye(2)[y], np.ones(3)).apply(P)[:, 1].round(3).tolist()
    [1.0, 0.0, 0.0]
    """

    name: ClassVar[str] = "irova_ts"
    takes_logs: ClassVar[bool] = True
    candidate: ClassVar[bool] = False
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = IrovaTsMap
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> IrovaTsMap:
        """Fit the temperature, then the curves of the tempered rows."""
        temperature_map = TemperatureSpec(self.min_prob).fit(P, Y, w)
        return IrovaTsMap(temperature_map, IsotonicSpec().fit(tempered_scores(temperature_map, P), Y, w))

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Notes on replaced probabilities, on a β at an end of its range, and on exact zeros."""
        assert isinstance(calibration_map, IrovaTsMap)
        tempered = tempered_scores(calibration_map.temperature_map, P)
        return [
            *replacement_notes(P, Y, self.min_prob),
            *boundary_notes(calibration_map.temperature_map.beta),
            *IsotonicSpec().notes(calibration_map.curves, tempered, Y, w),
        ]


def tempered_scores(temperature_map: TemperatureMap, P: Probabilities) -> Array:
    """Tempered rows (n, K), divided by sums in increasing order, so that permuted rows get identical scores.

    `TemperatureMap.apply` sums in the order of the columns. Its rounding errors would split ties, which isotonic
    regression pools.
    """

    def temper_block(p: Probabilities) -> Array:
        """Temper one block of rows, (n, K)."""
        # In one memory layout, because the order in which NumPy adds depends on it.
        p = p if isinstance(p, LogProbabilities) else np.ascontiguousarray(p, dtype=np.float64)
        logs = np.ascontiguousarray(to_logs(p))
        logs = logs - logs.max(axis=1, keepdims=True)
        powers = np.exp(temperature_map.beta * logs)
        return powers / np.sort(powers, axis=1).sum(axis=1, keepdims=True)

    return apply_in_blocks(temper_block, P)

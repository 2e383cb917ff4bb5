"""An estimator's own draws in the units of a test: what is divided by a standard error that no label changes."""

from __future__ import annotations

from trueodds.core.typing import Array
from trueodds.estimators.base import Linear


class Scaled:
    """A statistic on fixed cells over its standard error under the null; bare where that is 0, for nothing varies then."""

    def __init__(self, linear: Linear, unit: float) -> None:
        self.linear, self.unit = linear, unit or 1.0

    @property
    def size(self) -> int:
        """How many cells."""
        return self.linear.size

    @property
    def index(self) -> Array:
        """The cell of each row."""
        return self.linear.index

    def value(self) -> float:
        """The statistic of the view itself."""
        return self.linear.value() / self.unit

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The statistic of each draw."""
        return self.linear.statistic(w, wp, wy) / self.unit

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> None:
        """None: it is no error that an interval is made for."""

"""Between which two rates does an outcome lie at a score? What one more row would make of it, either way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.calibrators import wire
from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.kernels.knots import Knots
from trueodds.kernels.tangents import one_more


@dataclass(frozen=True, eq=False)
class Bracket:
    """Two rising steps of the score: the rate if its row did not come (p₀), and if it came (p₁ ≥ p₀)."""

    low_x: Array  # (a,) strictly rising: from each on p₀ is the next one
    low_y: Array  # (a + 1,) in [0, 1]
    high_x: Array  # (b,) strictly rising: beyond each p₁ is the next one
    high_y: Array  # (b + 1,) in [0, 1]

    def __call__(self, x: Array) -> Array:
        """The one rate p₁ / (1 − p₀ + p₁) at each x (n,): whatever comes, its log loss is as far from that end's."""
        low, high = self.ends(x)
        return np.asarray(high / (1 - low + high))

    def ends(self, x: Array) -> tuple[Array, Array]:
        """p₀ and p₁ at each x (n,)."""
        low, high = self._knots
        return low.steps(x, self.low_y, right=True), high.steps(x, self.high_y, right=False)

    @cached_property
    def _knots(self) -> tuple[Knots, Knots]:
        return Knots(self.low_x), Knots(self.high_x)

    @property
    def size(self) -> int:
        """How many steps there are; none if no row was there."""
        return len(self.low_x) + len(self.high_x)

    def to_dict(self) -> dict[str, Any]:
        """The steps."""
        return {name: getattr(self, name).tolist() for name in ("low_x", "low_y", "high_x", "high_y")}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Bracket:
        """Steps that rise, the lower ones never above the higher ones."""
        wire.keys(parameters, ("low_x", "low_y", "high_x", "high_y"), "a curve")
        steps = {}
        for side in ("low", "high"):
            none = parameters[f"{side}_x"] == []
            # float16 may say a little more than 1
            x = np.empty(0) if none else wire.vector(parameters, f"{side}_x", 0, 2, increasing="strictly")
            steps[f"{side}_x"] = x
            steps[f"{side}_y"] = wire.vector(parameters, f"{side}_y", 0, 1, size=len(x) + 1, increasing="weakly")
        new = cls(**steps)
        # p₁ rises only later than p₀ does, so it is enough to look where p₀ does.
        low, high = new.ends(np.append(0.0, new.low_x))
        if (low > high).any() or new.low_y[0] > new.high_y[0]:
            raise InputError(
                "TO505",
                "In a saved calibrator low_y must not exceed high_y at any score.",
                str(new.low_y.tolist())[:40],
                "Fit it again and save it with .save(path).",
            )
        return new


def bracket(s: Array, mass: Array, events: Array) -> Bracket:
    """The two rates at any score, given Σw and Σwy at rising scores s (m,); without any row they are 0 and 1."""
    low, high = one_more(mass, events)
    low, high = np.append(0.0, low), np.append(high, 1.0)
    falls, rises = low[1:] != low[:-1], high[1:] != high[:-1]
    return Bracket(s[falls], np.append(0.0, low[1:][falls]), s[rises], np.append(high[:1], high[1:][rises]))

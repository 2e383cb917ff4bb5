"""What every test is: a frozen set of settings, called on predictions and lenses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.results import Verdict
from trueodds.problem.lens import Lens
from trueodds.problem.predictions import Predictions
from trueodds.tally.tally import Tally

Progress = Callable[[float], None]


@dataclass(frozen=True)
class HypothesisTest:
    """A test of a hypothesis about the calibration function; its settings are its fields.

    Labels are drawn before the lens looks, so that one draw serves every lens: that is why a test takes
    predictions and lenses, not one view.
    """

    name: ClassVar[str]
    lens: ClassVar[str | None] = None  # the default lens where it is not the façade's
    vectors: ClassVar[bool] = True  # whether a view may hold a vector per row
    exempt: ClassVar[dict[str, str]] = {}  # laws of tests/laws that cannot hold for it, each with the reason

    def __call__(
        self, preds: Predictions, lenses: Sequence[Lens], rng: np.random.Generator, progress: Progress | None = None
    ) -> Verdict:
        """The verdict on one lens, or on a family of several."""
        raise NotImplementedError

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """The verdict from a tally's cells."""
        raise InputError("TO403", f"The test {self.name} needs the rows.", "a tally", "Use mode='exact'.")

"""What every test is: a frozen set of settings, called on predictions and lenses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.results import Verdict
from trueodds.problem.lens import Lens
from trueodds.problem.predictions import Predictions

Progress = Callable[[float], None]


@dataclass(frozen=True)
class HypothesisTest:
    """A test of a hypothesis about the calibration function; its settings are its fields.

    Labels are drawn before the lens looks, so that one draw serves every lens: that is why a test takes
    predictions and lenses, not one view.
    """

    name: ClassVar[str]

    def __call__(
        self, preds: Predictions, lenses: Sequence[Lens], rng: np.random.Generator, progress: Progress | None = None
    ) -> Verdict:
        """The verdict on one lens, or on a family of several."""
        raise NotImplementedError

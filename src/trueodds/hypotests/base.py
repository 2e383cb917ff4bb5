"""The base class of hypothesis tests: a frozen set of settings, called on predictions and lenses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError, Note
from trueodds.core.results import Verdict
from trueodds.core.settings import Settings
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.tallies.tally import Tally

Progress = Callable[[float], None]


@dataclass(frozen=True)
class HypothesisTest(Settings):
    """A test of a hypothesis about the calibration function; its settings are its fields.

    Labels are drawn before the lens looks, so that one draw serves every lens: that is why a test takes
    predictions and lenses, not one view.
    """

    name: ClassVar[str]
    lens: ClassVar[str | None] = None  # the default lens where it is not the façade's
    vectors: ClassVar[bool] = True  # whether a view may hold a vector per row
    nulls: ClassVar[tuple[str, ...]] = ()  # what null= may be; none where the test has one law only
    exempt: ClassVar[dict[str, str]] = {}  # laws of tests/laws that cannot hold for it, each with the reason

    def __call__(
        self, preds: Predictions, lenses: Sequence[Lens], rng: np.random.Generator, progress: Progress | None = None
    ) -> Verdict:
        """The verdict on one lens, or on a family of several."""
        raise NotImplementedError

    def from_tally(self, tally: Tally, lenses: Sequence[Lens], rng: np.random.Generator) -> Verdict:
        """The verdict from a tally's cells."""
        raise InputError("TO403", f"The test {self.name} needs the rows.", "a tally", "Use mode='exact'.")

    def error(self) -> Estimator | None:
        """The error whose interval a margin is compared with; None where the statistic is no such error."""
        return None

    def degrees(self, view: View) -> int | None:
        """The degrees of freedom, where the statistic of a view is twice a gain in log-likelihood; else None."""
        return None

    def estimand(self, preds: Predictions, lens: Lens) -> Estimand | None:
        """What labels are redrawn for, the predictions kept; None where the p-value comes in another way."""
        return None

    def pvalue_of(self, estimand: Estimand, draws: NDArray[Any], *, joint: bool) -> float:
        """The p-value of one lens among its draws; `joint` says whether the draws of its views hang together."""
        raise InputError("TO205", f"The test {self.name} redraws no labels.", self.name, "Use consistency.")


REDRAWS = ("labels", "both", "all")


def independence_notes(preds: Predictions) -> list[Note]:
    """What the null takes for granted about these rows."""
    if preds.cluster is not None:
        return [
            Note(
                "TN204",
                "With clusters the test is approximate; with few clusters and rare or nearly sure outcomes it can reject more often than it says.",
            )
        ]
    return [
        Note(
            "TN203",
            "Independence of the rows given the predictions is part of the null; rows of one source belong in cluster=.",
        )
    ]

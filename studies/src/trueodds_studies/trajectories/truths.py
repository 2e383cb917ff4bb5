"""What is the truth that estimates are held against? A bracket from many rows, and how wide it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueodds.binning.partition import EqualMass, Uniform
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.estimators.binned import BinnedError
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.estimators.debiased import DebiasedL2
from trueodds.lenses.view import View

BINS = 100  # of equal mass; within them a curve of a model is all but straight
FINE = 10_000  # of equal mass, which see what jumps between neighboring scores
LEGACY = 2000  # uniform bins of the authors' truth


@dataclass(frozen=True)
class Truth:
    """The mean distance of said and true between an estimate that errs upward and one that errs downward."""

    low: float
    high: float
    l2: float
    legacy: float
    fine: float  # errs downward on the finest bins: above the bracket only where a model's curve is not smooth

    @property
    def l1(self) -> float:
        """The middle; no distance is below 0."""
        return max(0.0, (self.low + self.high) / 2)

    @classmethod
    def of(cls, views: Sequence[View]) -> Truth:
        """The mean over the views.

        Above: the plug-in on equal-mass bins, to whose every bin chance adds. Below: each half of the rows judged in
        the direction that the other half shows, which chance can only turn the wrong way. The squared error has an
        unbiased estimate.
        """
        folds = [CrossFitted(calibrator=HistogramSpec(b, "equal-mass"), folds=2, fit_on="others") for b in (BINS, FINE)]
        estimators = (
            folds[0],
            BinnedError(EqualMass(BINS)),
            DebiasedL2(EqualMass(BINS)),
            BinnedError(Uniform(LEGACY)),
            folds[1],
        )
        return cls(*(float(np.mean([one.value(view) for view in views])) for one in estimators))

    def of_target(self, target: str) -> float:
        """The truth for estimators of the mean distance (`l1`), or of its root mean square (`l2`)."""
        return self.l2 if target == "l2" else self.l1

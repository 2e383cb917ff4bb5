"""Scaling-binning: histogram binning of the values of a fitted sigmoid."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import numpy as np

from trueodds.binning.equal_mass import EqualMass
from trueodds.binning.partition import BinRule
from trueodds.calibrators._curves.one_vs_rest import (
    IterativeOneVsRest,
    fit_curves_of_logs,
    zero_probability_notes,
)
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    LogProbabilities,
    MinProb,
    Probabilities,
    replacement_notes,
)
from trueodds.calibrators._glm.logistic_regression import curve_notes
from trueodds.calibrators.base import CalibratorSpec
from trueodds.calibrators.histogram import StepCurve, edges_between_scores, format_bins
from trueodds.calibrators.platt import PlattSpec, Sigmoid
from trueodds.calibrators.saved_parameters import Saved, delegated
from trueodds.core.errors import Note
from trueodds.core.settings import BinCount
from trueodds.core.typing import Array
from trueodds.kernels.bins import Bins
from trueodds.lenses.view import View


class BinnedSigmoid(Saved):
    """A sigmoid of the log odds, replaced by its mean in each bin of its values."""

    takes_logs = True
    symbols: ClassVar[Mapping[str, str]] = {name: f"sigmoid.{path}" for name, path in Sigmoid.symbols.items()}
    sigmoid: Sigmoid
    steps: StepCurve  # from the value of the sigmoid to its mean in the bin

    n_passes = delegated("sigmoid", "n_passes")
    converged = delegated("sigmoid", "converged")
    nonincreasing = delegated("sigmoid", "nonincreasing")

    def __call__(self, x: Array) -> Array:
        return self.steps(self.sigmoid(x))

    def apply_to_logs(self, logs: Array) -> Array:
        q = self.steps(self.sigmoid.apply_to_logs(logs)[:, 1])
        return np.stack([1 - q, q], axis=1)


class ScalingBinningMap(IterativeOneVsRest):
    """A binned sigmoid for the second of two classes, or for every class."""

    curves: tuple[BinnedSigmoid, ...]

    def describe(self) -> str:
        return format_bins([curve.steps for curve in self.curves])


class ScalingBinningSpec(CalibratorSpec):
    r"""Scaling-binning: a sigmoid of the log odds, replaced by its mean in each of several equal-mass bins.

    The map has only a few values, so that its calibration error can be estimated. The means vary less than the event
    rates of `histogram`, at the price of the sigmoid's bias. Two classes have one curve, for the second class. With
    more classes each has a curve against the rest, and rows are divided by their sums, which the paper omits. Predicted
    classes may change, and scores in one bin become equal.

    Parameters
    ----------
    bins : int or {"auto"}, default=15
        Number of bins. `"auto"` is ⌈n^(2/5)⌉. Tied scores are never split.

    Notes
    -----
    .. math:: g = \arg\max_{s, b} \sum_i w_i\,\ell(y_i, \sigma(s \log\tfrac{p_i}{1-p_i} + b)), \qquad
        q = \frac{\sum_{i \in b} w_i\, g(p_i)}{\sum_{i \in b} w_i} \ \text{for } g(p) \in b

    The sigmoid is that of `platt` with `smooth=False`. The paper uses three sets of rows for sigmoid, bins and means.
    Here, as in the authors' program, all rows serve all three, so that nothing depends on row order or chance. For the
    guarantee of the paper, split the rows yourself.

    Cost: O(K n log n).

    References
    ----------
    .. [1] Kumar, Liang & Ma (2019).

    Examples
    --------
    >>> p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0.25, 0.25, 0.75, 0.75])
    >>> m = ScalingBinningSpec(bins=1).fit(np.stack([1 - p, p], axis=1), np.stack([1 - y, y], axis=1), np.ones(4))
    >>> m.apply(np.array([[0.99, 0.01]])).round(6).tolist()  # one bin predicts the base rate
    [[0.5, 0.5]]
    """

    name, map_type = "scaling_binning", ScalingBinningMap
    takes_logs = True
    candidate = False
    exemptions: ClassVar[Mapping[str, str]] = {
        "two classes swapped": "where rows do not divide by bins the lower bins are the larger ones"
    }
    bins: BinCount | BinRule = 15
    min_prob: MinProb = MIN_PROB

    def fit(self, P: Probabilities, Y: Array, w: Array) -> ScalingBinningMap:
        return ScalingBinningMap(fit_curves_of_logs(partial(_fit_binned_sigmoid, spec=self), P, Y, w, 0.0))

    def notes(self, calibration_map: ScalingBinningMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        fit_notes = replacement_notes(P, Y, self.min_prob)
        fit_notes += curve_notes(calibration_map.curves)
        return fit_notes + zero_probability_notes(calibration_map.apply(P), Y)


def _fit_binned_sigmoid(logs: Array, y: Array, w: Array, spec: ScalingBinningSpec) -> BinnedSigmoid:
    """Fit the curve of one class to log(1 − p) and log p (n, 2), outcome shares y (n,) and weights w (n,)."""
    platt = PlattSpec(smooth=False, min_prob=spec.min_prob)
    sigmoid: Sigmoid = platt.fit(LogProbabilities(logs), np.stack([1 - y, y], axis=1), w).curves[0]
    sigmoid_values = sigmoid.apply_to_logs(logs)[:, 1]
    bins = EqualMass(spec.bins).fit(View(sigmoid_values, y, w))
    assert isinstance(bins, Bins)
    edges = edges_between_scores(bins.edges, np.unique(sigmoid_values))
    bin_index = Bins(edges).index(sigmoid_values)
    means = np.bincount(bin_index, w * sigmoid_values) / np.bincount(bin_index, w)
    return BinnedSigmoid(sigmoid, StepCurve(edges, np.clip(means, 0.0, 1.0)))

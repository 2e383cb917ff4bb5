"""Top-versus-all calibration: a binary calibrator fitted to the confidence in the predicted class."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators._curves.one_vs_rest import zero_probability_notes
from trueodds.calibrators._glm.fit_data import apply_in_blocks, iterate_blocks
from trueodds.calibrators._glm.log_probabilities import (
    LogProbabilities,
    Probabilities,
    floored_logs,
    predicted_class,
    replacement_notes,
    to_probabilities,
)
from trueodds.calibrators.base import (
    CalibrationMap,
    CalibratorSpec,
    SoftmaxTerm,
    lower_min_prob_for_logs,
    to_accepted_input,
)
from trueodds.calibrators.saved_parameters import check_keys, delegated, invalid_value_error, read_map_type, read_value
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec, boundary_notes, local_minimum_beta
from trueodds.core.arithmetic import weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.typing import Array
from trueodds.data.log_probabilities import log_sum_exp

_TOP_MARGIN = 1 + 1e-12  # factor by which the top stays above the next, so that rounding does not make them equal


class TopVsAllMap(CalibrationMap, eq=True):
    """A map of the confidence, which also scales the other classes in proportion; a temperature maps the whole row."""

    takes_logs = True
    inner_map: CalibrationMap  # of the confidence: its two classes are a wrong and a correct prediction

    n_passes = delegated("inner_map", "n_passes")
    converged = delegated("inner_map", "converged")

    def apply(self, P: Probabilities) -> Array:
        """Recalibrated rows, in which the predicted class stays."""
        if isinstance(self.inner_map, TemperatureMap):
            return self.inner_map.apply(P)
        return apply_in_blocks(lambda p: self.recalibrate_rows(p)[0], P)

    def recalibrate_rows(self, P: Probabilities) -> tuple[Array, Array]:
        """Recalibrated rows, and a mask of the rows whose confidence was raised to keep the predicted class."""
        k, all_rows, predicted = P.shape[1], np.arange(len(P)), predicted_class(P)
        Q = to_probabilities(P).astype(np.float64)
        confidence = self.inner_map.apply(to_accepted_input(self.inner_map, _confidence_pairs(P, predicted)))[:, 1]
        Q[all_rows, predicted] = 0.0
        others_total, largest_other = Q.sum(axis=1), Q.max(axis=1)
        Q[others_total == 0] = 1.0  # beside a confidence of 1 the others share equally
        Q[all_rows, predicted] = 0.0
        largest_other = np.where(others_total > 0, largest_other, 1.0)
        others_total = np.where(others_total > 0, others_total, k - 1)
        # The confidence at which the runner-up, scaled in proportion, is as large.
        min_confidence = largest_other / (others_total + largest_other) * _TOP_MARGIN
        is_raised = confidence < min_confidence
        confidence = np.where(is_raised, min_confidence, confidence)
        Q *= ((1 - confidence) / others_total)[:, None]
        Q[all_rows, predicted] = confidence
        return Q, is_raised

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The mixture of a temperature; other inner maps have none."""
        return self.inner_map.mixture_terms(k) if isinstance(self.inner_map, TemperatureMap) else None

    def named_parameters(self) -> dict[str, Any]:
        return self.inner_map.named_parameters()

    def describe(self) -> str:
        return f"{self.inner_map.name} of the confidence: {self.inner_map.describe()}"

    def to_dict(self) -> dict[str, Any]:
        return {"calibrator": self.inner_map.name, "parameters": self.inner_map.to_dict()}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int = 2) -> TopVsAllMap:  # noqa: ARG003 - any number of classes
        """Read the inner map for two classes by its name."""
        check_keys(parameters, ("calibrator", "parameters"), "parameters")
        name, inner_parameters = parameters["calibrator"], read_value("parameters", parameters["parameters"], dict)
        map_type = read_map_type("calibrator", name)
        if map_type is cls:
            raise invalid_value_error("calibrator", "one for two classes", name)
        return cls(map_type.from_dict(inner_parameters, 2))


class TopVsAllSpec(CalibratorSpec):
    r"""Top-versus-all calibration: a binary calibrator fitted to the confidence in the predicted class.

    The calibrator is fitted to the largest probability of each row, with the outcome whether the predicted class is
    correct. All rows fit one curve, where one curve per class would have few rows each. Only the confidence is
    calibrated: the recalibrated probabilities of the other classes are not backed by data. Every predicted class stays.

    Parameters
    ----------
    calibrator : str or CalibratorSpec, default="temperature"
        Calibrator of the confidence: a name or an instance that suits two classes. With `"temperature"` the whole row
        is tempered.

    Notes
    -----
    .. math:: x_i = \max_k p_{ik}, \quad c_i = y_{i,\arg\max_k p_{ik}}, \qquad
        q_{i,\mathrm{top}} = f(x_i), \quad q_{ij} = p_{ij}\,\frac{1 - f(x_i)}{1 - x_i}

    With `"temperature"`, T minimizes

    .. math:: -\sum_i w_i\,[c_i \log s_i + (1 - c_i)\log(1 - s_i)], \quad s_i = \max_k q_{ik}, \;
        q_{ik} \propto p_{ik}^{1/T},

    which is not convex. The local minimum reached downhill from the temperature of all classes is taken. Where f(x)
    is too small to keep the predicted class, it is raised, and note TN512 counts these rows.

    Cost: O(nK) per pass, about 8 passes for T; otherwise that of the calibrator on n rows.

    References
    ----------
    .. [1] Le Coz, Herbin & Adjed (2024).

    Examples
    --------
    >>> P = np.array([[0.1, 0.8, 0.1]] * 4)
    >>> m = TopVsAllSpec("isotonic").fit(P, np.eye(3)[[1, 1, 2, 0]], np.ones(4))
    >>> m.apply(P[:1]).round(3).tolist()
    [[0.25, 0.5, 0.25]]
    """

    name, map_type = "top_vs_all", TopVsAllMap
    keeps_argmax = True
    takes_logs = True
    candidate = False
    accepts_raw_arrays = True
    exemptions: ClassVar[Mapping[str, str]] = {
        "class order": "of tied largest probabilities, the first is the predicted class"
    }
    calibrator: str | CalibratorSpec = "temperature"

    def __post_init__(self) -> None:
        super().__post_init__()
        spec = self._resolve_spec()
        if spec.map_type is None or spec.name == self.name or spec.logits:
            raise InputError(
                "TO203",
                "calibrator must be one for two classes that takes probabilities.",
                spec.name + (" with ⟨logits=True⟩" if spec.logits else ""),
                "For instance calibrator='isotonic'.",
            )

    def settings(self) -> dict[str, Any]:
        """The calibrator by its name."""
        return {"calibrator": self._resolve_spec().name}

    def _resolve_spec(self) -> CalibratorSpec:
        if isinstance(self.calibrator, CalibratorSpec):
            return self.calibrator
        if not isinstance(self.calibrator, str):
            raise InputError(
                "TO203",
                "calibrator must be a name or a CalibratorSpec.",
                describe(self.calibrator),
                "For instance 'isotonic'.",
            )
        spec: CalibratorSpec = CALIBRATORS.make(self.calibrator, {})
        return spec

    def _resolve_spec_for(self, P: Probabilities) -> CalibratorSpec:
        """The settings of the inner calibrator, with a lower default `min_prob` if P holds log-probabilities."""
        spec = self._resolve_spec()
        return lower_min_prob_for_logs(spec) if isinstance(P, LogProbabilities) else spec

    def fit(self, P: Probabilities, Y: Array, w: Array) -> TopVsAllMap:
        spec = self._resolve_spec_for(P)
        if isinstance(spec, TemperatureSpec):
            loss = partial(top_class_derivatives, P, Y, w, spec.min_prob)
            start = spec.fit(P, Y, w).beta  # near the optimum; at T = 1 all rows may be certain and the gradient 0
            return TopVsAllMap(TemperatureMap(*local_minimum_beta(loss, start)))
        confidence_pairs, correctness = _correctness_problem(P, Y)
        return TopVsAllMap(spec.fit(to_accepted_input(spec, confidence_pairs), correctness, w))

    def notes(self, calibration_map: TopVsAllMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        spec = self._resolve_spec_for(P)
        if isinstance(spec, TemperatureSpec):
            assert isinstance(calibration_map.inner_map, TemperatureMap)
            return replacement_notes(P, Y, spec.min_prob) + boundary_notes(calibration_map.inner_map.beta)
        # TN505 on exact zeros is counted again below, because a confidence of exactly 0 may have been raised.
        confidence_pairs, correctness = _correctness_problem(P, Y)
        fit_notes = [
            note
            for note in spec.notes(calibration_map.inner_map, to_accepted_input(spec, confidence_pairs), correctness, w)
            if note.code != "TN505"
        ]
        n_raised, has_no_zero = 0, []
        for p, _, _ in iterate_blocks(P, Y, w):
            Q, is_raised = calibration_map.recalibrate_rows(p)
            n_raised += int(is_raised.sum())
            has_no_zero.append((Q > 0).all(axis=1))
        fit_notes += zero_probability_notes(np.concatenate(has_no_zero)[:, None])
        if n_raised:
            text = (
                f"In {n_raised:,} of {len(P):,} rows the recalibrated confidence would have made another class the most"
                " probable; there it was raised to keep the predicted class."
            )
            fit_notes.append(Note("TN512", text))
        return fit_notes


def _correctness_problem(P: Probabilities, Y: Array) -> tuple[Probabilities, Array]:
    """The two-class problem whether the predicted class is correct: confidence pairs (n, 2) and outcomes (n, 2).

    Of tied classes the first is predicted.
    """
    all_rows, predicted = np.arange(len(P)), predicted_class(P)
    correct = Y[all_rows, predicted] if Y.ndim == 2 else (predicted == Y).astype(np.float64)
    return _confidence_pairs(P, predicted), np.stack([1 - correct, correct], axis=1)


def _confidence_pairs(P: Probabilities, predicted: Array) -> Probabilities:
    """The probabilities (n, 2) that the predicted class (n,) is wrong and correct, or their logarithms."""
    if isinstance(P, LogProbabilities):
        logs, all_rows = P.values, np.arange(len(P))
        others = logs.copy()
        others[all_rows, predicted] = -np.inf
        return LogProbabilities(np.stack([log_sum_exp(others), logs[all_rows, predicted]], axis=1))
    x = np.minimum(P[np.arange(len(P)), predicted].astype(np.float64), 1.0)  # rounding may leave it slightly above
    return np.stack([1 - x, x], axis=1)


def top_class_derivatives(P: Probabilities, Y: Array, w: Array, min_prob: float, beta: float) -> tuple[float, float]:
    """First and second derivative of the log loss of the tempered confidence s with respect to β = 1/T.

    With c the correctness, and μ and ν the mean and variance under q of the other classes' log-probabilities minus that
    of the predicted class, they are Σ w μ(c − s) and Σ w [ν(c − s) + μ² s(1 − s)].
    """
    first = second = 0.0
    for p, y, weights in iterate_blocks(P, Y, w):
        all_rows, predicted = np.arange(len(p)), predicted_class(p)
        correct = y[all_rows, predicted] if y.ndim == 2 else predicted == y
        logs = floored_logs(p, min_prob)
        logs = logs - logs[all_rows, predicted][:, None]
        logs[all_rows, predicted] = -np.inf
        runner_up = logs.max(axis=1)
        powers = np.exp(beta * (logs - runner_up[:, None]))
        logs[all_rows, predicted] = 0.0
        total = powers.sum(axis=1)
        mean = (powers * logs).sum(axis=1) / total
        variance = (powers * (logs - mean[:, None]) ** 2).sum(axis=1) / total
        odds = total * np.exp(beta * runner_up)
        confidence = 1 / (1 + odds)
        first += float(weighted_sum(weights, mean * (correct - confidence)))
        second += float(
            weighted_sum(weights, variance * (correct - confidence) + mean**2 * confidence * odds * confidence)
        )
    return first, second

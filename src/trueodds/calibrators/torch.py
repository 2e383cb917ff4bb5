"""Convert fitted calibration maps to PyTorch modules, which are differentiable and run on any device.

A module consists of layers: softmax mixtures, and one calibration curve per class. The attribute `on_logs` says whether
a layer takes log-probabilities, −inf for an exact zero, instead of probabilities. Curve layers take one column for each
of C curves: the second of two classes (C = 1), or every class (C = K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from trueodds.calibrators._curves.natural_spline import SLOPE_TOLERANCE
from trueodds.calibrators._curves.one_vs_rest import LOGIT, OneVsRest
from trueodds.calibrators._glm.log_probabilities import MIN_PROB_OF_LOGITS, min_prob_for_slopes, to_logs
from trueodds.calibrators.base import CalibrationMap, SoftmaxTerm
from trueodds.calibrators.calibrator_predictions import check_class_count, check_prob_matrix, missing_logits_error
from trueodds.calibrators.isotonic import IrovaTsMap, MonotoneCurve, PiecewiseLinearCurve
from trueodds.calibrators.logistic import BetaCurve, Sigmoid
from trueodds.calibrators.spline import TIE_MARGIN, ConfidenceMap, LogOddsSpline
from trueodds.calibrators.uniform_mixture import IdentityMap, MixedMap
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import NonNegative, check
from trueodds.core.typing import Array
from trueodds.data.arrays import tensor_to_array
from trueodds.data.log_probabilities import MAX_LOG_ODDS, MIN_ACCURATE_DIFFERENCE
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, SUM_TOLERANCE_OF_DTYPE, check_logits
from trueodds.data.remedies import restate_own_arguments


class CalibrationModule(torch.nn.Module):
    """A fitted calibration map as a PyTorch module: `forward` computes what `predict_proba` does, with a gradient.

    It is made by `FittedCalibrator.to_torch`. The parameters are float64 buffers: `.to(device)` and `.state_dict()`
    apply, and they are not trained. The computation and the result have their dtype; after `.float()` it is float32.

    Parameters
    ----------
    calibration_map : CalibrationMap
        The fitted map.
    classes : tuple
        Names of the K classes, in the order of the columns.
    logits : bool or None, default=None
        Whether `forward` takes logits. By default, it does for a map that was fitted on logits.
    sum_tolerance : float or None, default=None
        Largest deviation of a row's sum from 1, as for `Predictions`.

    Attributes
    ----------
    method : str
        Name of the calibrator.
    classes : tuple
        Names of the K classes.
    logits : bool
        Whether `forward` takes logits or log-probabilities; otherwise it takes probabilities.

    Raises
    ------
    InputError
        TO525 for a map without a formula, TO509 for a map of logits with ``logits=False``.

    Examples
    --------
    >>> from trueodds.calibrators.temperature import TemperatureMap
    >>> module = CalibrationModule(TemperatureMap(0.5), ("no", "yes"))
    >>> module(torch.tensor([[0.1, 0.9]])).numpy().round(2).tolist(), module.logits
    ([[0.25, 0.75]], False)
    """

    def __init__(
        self,
        calibration_map: CalibrationMap,
        classes: tuple[Any, ...],
        logits: bool | None = None,
        sum_tolerance: float | None = None,
    ) -> None:
        super().__init__()
        if calibration_map.logits and logits is False:
            raise missing_logits_error()
        self.method, self.classes = calibration_map.name, classes
        logits = check("logits", logits, bool | None, None)
        self.logits = calibration_map.logits if logits is None else logits
        self.sum_tolerance = check("sum_tolerance", sum_tolerance, NonNegative | None, None)
        self._on_raw_logits, self._takes_logs = calibration_map.logits, calibration_map.takes_logs
        self.layer = _build_layer(calibration_map, len(classes))
        # The sum of a row's probabilities. Its dtype is that of the computation, which a map without parameters lacks.
        self.register_buffer("row_sum", torch.ones((), dtype=torch.float64), persistent=False)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Recalibrate a batch.

        Values are checked as in `predict_proba`, except in a compiled or exported program.

        Parameters
        ----------
        values : Tensor of shape (n, K) or (n,)
            Probabilities, or logits if `logits` is True; of shape (n,) those of the second of two classes.

        Returns
        -------
        Tensor of shape (n, K)
            Recalibrated probabilities.

        Raises
        ------
        InputError
            TO101 for anything but such a tensor, TO501 for another number of classes; TO102 to TO104 and TO108 for
            invalid values, as for `Predictions`.
        """
        if not isinstance(values, torch.Tensor) or values.ndim not in (1, 2):
            got = f"shape {tuple(values.shape)}" if isinstance(values, torch.Tensor) else describe(values)
            raise InputError("TO101", "The input must be a tensor (n, K) or (n,).", got, "Pass one row per prediction.")
        check_class_count(values, len(self.classes), "values")
        if not torch.compiler.is_compiling():
            _check_values(values.detach(), len(self.classes), self.logits, self.sum_tolerance)
        with torch.autocast(values.device.type, enabled=False):
            return self._recalibrate(values.to(torch.promote_types(self.row_sum.dtype, torch.float32)))

    def _recalibrate(self, x: torch.Tensor) -> torch.Tensor:
        if self.logits:
            z = torch.stack([torch.zeros_like(x), x], dim=1) if x.ndim == 1 else x
            if self._on_raw_logits:
                return self.layer(z)
            if self._takes_logs and self.layer.on_logs:
                return self.layer(torch.log_softmax(z, dim=1))
            x = torch.softmax(z, dim=1)
        elif x.ndim == 1:
            x = torch.stack([(self.row_sum.to(x.dtype) - x).clamp(min=0), x], dim=1)
        return self.layer(safe_log(x) if self.layer.on_logs else x)

    def extra_repr(self) -> str:
        """Describe the map and its input.

        Returns
        -------
        str
            One line of text.
        """
        return f"{self.method}, {len(self.classes)} classes, of {'logits' if self.logits else 'probabilities'}"


def _build_layer(calibration_map: CalibrationMap, k: int) -> torch.nn.Module:
    """The layer that computes a calibration map for K classes; raises TO525 for a map that no layer can compute.

    It takes log-probabilities (n, K) if its attribute `on_logs` is True, else probabilities. The layer of a map that
    was fitted on logits takes logits instead of log-probabilities.
    """
    if isinstance(calibration_map, IdentityMap):
        return IdentityLayer()
    if (stages := calibration_map.mixture_stages(k)) is not None:
        layers = [MixtureLayer(terms, calibration_map.logits and i == 0) for i, terms in enumerate(stages)]
        return LayerSequence(layers)
    if isinstance(calibration_map, MixedMap):
        return UniformShareLayer(_build_layer(calibration_map.base_map, k), calibration_map.share)
    if isinstance(calibration_map, IrovaTsMap):
        steps = (calibration_map.temperature_map, calibration_map.curves)
        return LayerSequence([_build_layer(step, k) for step in steps])
    if isinstance(calibration_map, ConfidenceMap):
        return ConfidenceLayer(calibration_map)
    if isinstance(calibration_map, OneVsRest) and (curves := build_curves(calibration_map.curves)) is not None:
        return OneVsRestLayer(curves, k)
    raise InputError(
        "TO525",
        "This map cannot be converted to PyTorch, because it has steps or no simple formula.",
        f"{calibration_map.name} with {k} classes",
        "Fit temperature, vector, structured, beta, isotonic or spline; or apply it with predict_proba.",
    )


def _check_values(values: torch.Tensor, k: int, logits: bool, sum_tolerance: float | None) -> None:
    """Raise the error of `predict_proba` for invalid values; the tensor is copied only if some may be invalid."""
    if not values.is_floating_point():
        values = values.to(torch.float32)
    if logits:
        is_valid = ((values < torch.inf) & ((values > -torch.inf) | (values.ndim == 2))).all()
        if values.ndim == 2:
            is_valid &= torch.isfinite(values).any(dim=1).all()
        if not len(values) or not bool(is_valid):
            check_logits(tensor_to_array(values))
        return
    dtype_tolerance = SUM_TOLERANCE_OF_DTYPE.get(str(values.dtype).removeprefix("torch."), DEFAULT_SUM_TOLERANCE)
    sum_tolerance = dtype_tolerance if sum_tolerance is None else sum_tolerance
    is_valid = ((values >= 0) & (values <= 1 + k * torch.finfo(values.dtype).eps)).all()
    if values.ndim == 2:
        row_sums = values.sum(dim=1, dtype=torch.promote_types(values.dtype, torch.float32))
        is_valid &= ((row_sums - 1).abs() <= sum_tolerance).all()
    if not len(values) or not bool(is_valid):
        try:
            check_prob_matrix(tensor_to_array(values), k, sum_tolerance)
        except InputError as problem:
            raise restate_own_arguments(problem, "logits=True to to_torch") from None


class IdentityLayer(torch.nn.Module):
    """The unchanged probabilities."""

    on_logs = False

    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return p


class LayerSequence(torch.nn.Module):
    """Layers that are applied in turn, each to the probabilities of the one before."""

    def __init__(self, layers: Sequence[torch.nn.Module]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.on_logs = layers[0].on_logs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(safe_log(x) if i > 0 and layer.on_logs else x)
        return x


class UniformShareLayer(torch.nn.Module):
    """The rows of another layer mixed with a share of the uniform distribution."""

    def __init__(self, base: torch.nn.Module, share: float) -> None:
        super().__init__()
        self.base, self.on_logs = base, base.on_logs
        self.register_buffer("share", torch.tensor(share, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.base(x)
        share = self.share.to(q.dtype)
        return (1 - share) * (q / q.sum(dim=1, keepdim=True)) + share / q.shape[1]


class MixtureLayer(torch.nn.Module):
    """A mixture Σ weight · softmax(W log p + b)."""

    on_logs = True

    def __init__(self, terms: Sequence[SoftmaxTerm], on_raw_logits: bool) -> None:
        super().__init__()
        self.terms = torch.nn.ModuleList(SoftmaxLayer(term, on_raw_logits) for term in terms)
        self.register_buffer("weights", torch.tensor([term.weight for term in terms], dtype=torch.float64))

    def forward(self, logs: torch.Tensor) -> torch.Tensor:
        q = self.weights[0].to(logs.dtype) * self.terms[0](logs)
        for i in range(1, len(self.terms)):  # not a slice: an exported program with an empty one cannot be loaded
            q = q + self.weights[i].to(logs.dtype) * self.terms[i](logs)
        return q


class SoftmaxLayer(torch.nn.Module):
    """softmax(W log p + b) as `SoftmaxTerm` defines it, also for the infinite logarithms of exact zeros."""

    def __init__(self, term: SoftmaxTerm, on_raw_logits: bool) -> None:
        super().__init__()
        min_prob = term.min_prob_by_class
        self.on_raw_logits, self.normalized = on_raw_logits, term.normalized
        self.has_min_prob = bool(min_prob.any())
        self.zeros_only = term.zeros_only or bool(min_prob.max() <= MIN_PROB_OF_LOGITS)
        self.register_buffer("W", _to_buffer(term.W))
        self.register_buffer("b", _to_buffer(term.b))
        self.register_buffer("log_min_prob", _to_buffer(to_logs(min_prob)))

    def forward(self, logs: torch.Tensor) -> torch.Tensor:
        """Return the probabilities (n, K) of logarithms or logits, −inf for an exact zero."""
        W, b, log_min_prob = (buffer.to(logs.dtype) for buffer in (self.W, self.b, self.log_min_prob))
        x = logs
        if self.has_min_prob and self.on_raw_logits:
            x = torch.where(torch.isneginf(x), torch.logsumexp(x, dim=1, keepdim=True) + log_min_prob, x)
        elif self.has_min_prob:
            x = _raise_to_min_prob(x, log_min_prob, self.zeros_only)
        if self.normalized:
            x = x - torch.logsumexp(logs, dim=1, keepdim=True)
        if W.ndim == 1:
            return _softmax(torch.where(W == 0, 0.0, W * x) + b, b)
        # The log −∞ of an exact zero gives −∞ where its weight is positive. Where it is negative, it gives +∞, which
        # prevails.
        is_zero = torch.isneginf(x)
        eta = torch.where(is_zero, 0.0, x) @ W.T + b
        for infinity, has_sign in ((-torch.inf, W > 0), (torch.inf, W < 0)):
            eta = torch.where(is_zero.to(x.dtype) @ has_sign.to(x.dtype).T > 0, infinity, eta)
        return _softmax(eta, b)


class OneVsRestLayer(torch.nn.Module):
    """One curve for two classes, else a curve for each class and rows that are divided by their sums."""

    def __init__(self, curves: torch.nn.Module, k: int) -> None:
        super().__init__()
        self.curves, self.k, self.on_logs = curves, k, curves.on_logs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return probabilities (n, K) of logarithms or probabilities."""
        if self.k == 2:
            pair = self.curves(x[:, :1], x[:, 1:]) if self.on_logs else self.curves(x[:, 1:])
            return torch.cat(pair, dim=1)
        q = (self.curves(_log_of_others(x), x) if self.on_logs else self.curves(x))[1]
        total = q.sum(dim=1, keepdim=True)
        return torch.where(total == 0, 1 / self.k, q / torch.where(total == 0, 1.0, total))


def build_curves(curves: Sequence[Any]) -> torch.nn.Module | None:
    """One module for the curves of all classes; None for curves with steps or of a class that has no layer."""
    if all(isinstance(curve, Sigmoid) for curve in curves):
        slopes, intercepts = ([getattr(curve, name) for curve in curves] for name in ("slope", "intercept"))
        scales = {curve.on for curve in curves}
        if scales == {"logit"}:
            min_prob = min_prob_for_slopes(slopes, [curve.min_prob for curve in curves])
            return BetaCurves(slopes, slopes, intercepts, min_prob)
        return ProbabilitySigmoids(slopes, intercepts) if scales == {"raw"} else None
    if all(isinstance(curve, BetaCurve) for curve in curves):
        b, a, c = ([getattr(curve, name) for curve in curves] for name in "bac")
        return BetaCurves(b, a, c, np.zeros(len(curves)))
    if all(isinstance(curve, LogOddsSpline) for curve in curves):
        return LogOddsSplines(curves)
    if all(
        isinstance(curve, PiecewiseLinearCurve) or (isinstance(curve, MonotoneCurve) and curve.between == "linear")
        for curve in curves
    ):
        return PiecewiseLinearCurves(curves)
    return None


class BetaCurves(torch.nn.Module):
    """The beta curves logit q = c + a log p − b log(1 − p) of the classes; Platt's sigmoids of log odds have a = b.

    Probabilities are raised to the `min_prob` of the class, which is 0 for none.
    """

    on_logs = True

    def __init__(self, b: Sequence[float], a: Sequence[float], c: Sequence[float], min_prob: Array) -> None:
        super().__init__()
        self.zeros_only = bool(min_prob.max() <= MIN_PROB_OF_LOGITS)
        self.register_buffer("log_min_prob", _to_buffer(to_logs(min_prob)))
        for name, values in (("a", a), ("b", b), ("c", c)):
            self.register_buffer(name, _to_buffer(values))

    def forward(self, log_rest: torch.Tensor, logs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return 1 − q and q, both (n, C), from log(1 − p) and log p, both (n, C)."""
        a, b, c, log_min_prob = (buffer.to(logs.dtype) for buffer in (self.a, self.b, self.c, self.log_min_prob))
        log_rest, logs = (_raise_to_min_prob(x, log_min_prob, self.zeros_only) for x in (log_rest, logs))
        return _sigmoid_pair(torch.where(a == 0, 0.0, a * logs) - torch.where(b == 0, 0.0, b * log_rest) + c)


class ProbabilitySigmoids(torch.nn.Module):
    """Platt's sigmoids of probabilities, logit q = slope · p + intercept, of the classes."""

    on_logs = False

    def __init__(self, slopes: Sequence[float], intercepts: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("slopes", _to_buffer(slopes))
        self.register_buffer("intercepts", _to_buffer(intercepts))

    def forward(self, p: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return 1 − q and q, both (n, C), from p (n, C)."""
        return _sigmoid_pair(self.slopes.to(p.dtype) * p + self.intercepts.to(p.dtype))


class LogOddsSplines(torch.nn.Module):
    """The splines from log odds to recalibrated log odds of the classes."""

    on_logs = True

    def __init__(self, curves: Sequence[LogOddsSpline]) -> None:
        super().__init__()
        min_prob = np.array([curve.min_prob for curve in curves])
        self.zeros_only = bool(min_prob.max() <= MIN_PROB_OF_LOGITS)
        self.register_buffer("log_min_prob", _to_buffer(to_logs(min_prob)))
        splines = [curve.spline for curve in curves]
        self.splines = PiecewiseCubics(
            knots=[spline.knots for spline in splines],
            values=[spline.values for spline in splines],
            second_derivatives=[spline.second_derivatives for spline in splines],
            end_slopes=[spline.slope(spline.knots[[0, -1]]) for spline in splines],
        )

    def forward(self, log_rest: torch.Tensor, logs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return 1 − q and q, both (n, C), from log(1 − p) and log p, both (n, C)."""
        log_min_prob = self.log_min_prob.to(logs.dtype)
        log_rest, logs = (_raise_to_min_prob(x, log_min_prob, self.zeros_only) for x in (log_rest, logs))
        return _sigmoid_pair(self.splines(logs - log_rest))


class PiecewiseLinearCurves(torch.nn.Module):
    """Piecewise linear curves of the probability of each class, constant beyond the first and the last knot."""

    def __init__(self, curves: Sequence[Any]) -> None:
        super().__init__()
        self.on_logs = all(curve.scale == LOGIT for curve in curves)  # all have the scale of the same fit
        # A single knot is a constant, which needs a second one.
        knots = [np.append(curve.x, curve.x[-1] + 1) if len(curve.x) == 1 else curve.x for curve in curves]
        values = [np.append(curve.y, curve.y) if len(curve.x) == 1 else curve.y for curve in curves]
        flat = np.zeros((len(curves), 2))
        self.lines = PiecewiseCubics(knots, values, [np.zeros(len(x)) for x in knots], list(flat))

    def forward(self, *columns: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return 1 − q and q, both (n, C), from p (n, C); with `on_logs` from log(1 − p) and log p, both (n, C)."""
        score = (columns[1] - columns[0]).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS) if self.on_logs else columns[0]
        q = self.lines(score)
        return 1 - q, q


class ConfidenceLayer(torch.nn.Module):
    """A recalibrated confidence in the predicted class, which stays; the other classes are scaled in proportion."""

    on_logs = False

    def __init__(self, confidence_map: ConfidenceMap) -> None:
        super().__init__()
        self.curve = PiecewiseLinearCurves([PiecewiseLinearCurve(confidence_map.scores, confidence_map.confidences)])

    def forward(self, p: torch.Tensor) -> torch.Tensor:
        k, predicted = p.shape[1], p.argmax(dim=1, keepdim=True)
        others = p.scatter(1, predicted, 0.0)
        total = others.sum(dim=1, keepdim=True)
        # Beside a confidence of 1 the others share equally; where they are tiny, their shares have a gradient of 0.
        shares = torch.where(total == 0, 1 / (k - 1), others.detach() / torch.where(total == 0, 1.0, total.detach()))
        is_tiny = total < torch.finfo(p.dtype).tiny ** 0.5
        shares = torch.where(is_tiny, shares, others / torch.where(is_tiny, 1.0, total))
        # Where the runner-up is equally probable, with a margin for rounding.
        largest = shares.amax(dim=1, keepdim=True)
        tie = largest / (1 + largest) * (1 + TIE_MARGIN * torch.finfo(p.dtype).eps)
        confidence = torch.maximum(self.curve(p.gather(1, predicted))[1], tie)
        return (shares * (1 - confidence)).scatter(1, predicted, confidence)


class PiecewiseCubics(torch.nn.Module):
    """Piecewise cubic curves, one for each column: values and second derivatives at knots, lines beyond the ends."""

    def __init__(
        self,
        knots: Sequence[Array],
        values: Sequence[Array],
        second_derivatives: Sequence[Array],
        end_slopes: Sequence[Array],
    ) -> None:
        super().__init__()
        n_knots = max(map(len, knots))
        self.register_buffer("knots", _pad_rows(knots, n_knots, np.inf))
        self.register_buffer("values", _pad_rows(values, n_knots, 0.0))
        self.register_buffer("second_derivatives", _pad_rows(second_derivatives, n_knots, 0.0))
        self.register_buffer("ends", _to_buffer([[x[0], x[-1]] for x in knots]))
        slopes = np.array(end_slopes)
        self.register_buffer("end_slopes", _to_buffer(np.where(np.abs(slopes) > SLOPE_TOLERANCE, slopes, 0.0)))
        self.register_buffer("last_segment", torch.tensor([[len(x) - 2] for x in knots]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the values (n, C) at x (n, C), which may be infinite.

        Between two knots with values y0 and y1 and second derivatives d0 and d1, the cubic at the relative position u
        is the line between the values plus width²/6 (d0 (v³ − v) + d1 (u³ − u)), v = 1 − u.
        """
        x = x.T.contiguous()
        knots, values, second, ends, slopes = (
            buffer.to(x.dtype)
            for buffer in (self.knots, self.values, self.second_derivatives, self.ends, self.end_slopes)
        )
        low, high = ends[:, :1], ends[:, 1:]
        # At x = low or high, `maximum` and `minimum` pass on half of the gradient. The line beyond the end adds the
        # other half.
        inside = torch.minimum(torch.maximum(x, low), high)
        segment = torch.searchsorted(knots, inside.detach(), right=True) - 1
        segment = torch.minimum(segment.clamp(min=0), self.last_segment)
        (x0, x1), (y0, y1), (d0, d1) = (
            (rows.gather(1, segment), rows.gather(1, segment + 1)) for rows in (knots, values, second)
        )
        width = x1 - x0
        u = (inside - x0) / width
        v = 1 - u
        y = y0 + u * (y1 - y0) + width * width / 6 * (d0 * (v**3 - v) + d1 * (u**3 - u))
        zero = torch.zeros((), dtype=x.dtype, device=x.device)
        for slope, beyond in (
            (slopes[:, :1], torch.minimum(x - low, zero)),
            (slopes[:, 1:], torch.maximum(x - high, zero)),
        ):
            y = y + torch.where(slope == 0, 0.0, slope * beyond)
        return y.T


def safe_log(p: torch.Tensor) -> torch.Tensor:
    """log p, −∞ for an exact zero, whose gradient is 0."""
    is_positive = p > 0
    return torch.where(is_positive, torch.where(is_positive, p, 1.0).log(), -torch.inf)


def _softmax(eta: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Rows proportional to exp η; an entry +∞ has probability 1, and a row of only −∞ is uniform over the finite b."""
    largest = eta.detach().amax(dim=1, keepdim=True)
    takes_row = torch.zeros_like(eta).masked_fill(~torch.isposinf(eta), -torch.inf)
    eta = torch.where(torch.isposinf(largest), takes_row, eta)
    eta = torch.where(torch.isneginf(largest), torch.zeros_like(b).masked_fill(torch.isneginf(b), -torch.inf), eta)
    return torch.softmax(eta, dim=1)


def _sigmoid_pair(eta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """1 − q and q for the log odds η of q, both with full precision."""
    return torch.sigmoid(-eta), torch.sigmoid(eta)


def _raise_to_min_prob(logs: torch.Tensor, log_min_prob: torch.Tensor, zeros_only: bool) -> torch.Tensor:
    """Logarithms limited below at log(min_prob), −∞ for no limit; with `zeros_only` it replaces exact zeros alone."""
    return torch.where(torch.isneginf(logs) if zeros_only else logs < log_min_prob, log_min_prob, logs)


def _log_of_others(logs: torch.Tensor) -> torch.Tensor:
    """log(1 − p) of each class (n, K); where that would lose digits, the log of the sum of the other classes."""
    complement = -torch.expm1(logs)
    others = logs.masked_fill(torch.zeros_like(logs).scatter(1, logs.argmax(dim=1, keepdim=True), 1.0) > 0, -torch.inf)
    largest = others.detach().amax(dim=1, keepdim=True)
    largest = torch.where(torch.isneginf(largest), 0.0, largest)
    log_others = safe_log((others - largest).exp().sum(dim=1, keepdim=True)) + largest
    # Only the complement of the largest probability can be so small.
    return torch.where(complement < MIN_ACCURATE_DIFFERENCE, log_others, safe_log(complement))


def _to_buffer(values: Any) -> torch.Tensor:
    """A copy of the values as a float64 tensor."""
    return torch.tensor(np.array(values, dtype=np.float64))


def _pad_rows(rows: Sequence[Array], length: int, value: float) -> torch.Tensor:
    """Rows (C, length) of these values, filled up with a number."""
    return _to_buffer([np.pad(row, (0, length - len(row)), constant_values=value) for row in rows])

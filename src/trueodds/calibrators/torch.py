"""Convert fitted calibration maps to PyTorch modules, which are differentiable and run on any device."""

from __future__ import annotations

from typing import Any

import torch

from trueodds.calibrators._curves.one_vs_rest import OneVsRest
from trueodds.calibrators._splines.confidence_spline import ConfidenceMap
from trueodds.calibrators.base import CalibrationMap
from trueodds.calibrators.calibrator_predictions import check_class_count, check_prob_matrix, missing_logits_error
from trueodds.calibrators.identity import IdentityMap
from trueodds.calibrators.irova_ts import IrovaTsMap
from trueodds.calibrators.torch_layers import (
    ConfidenceLayer,
    IdentityLayer,
    LayerSequence,
    MixtureLayer,
    OneVsRestLayer,
    UniformShareLayer,
    build_curves,
    safe_log,
)
from trueodds.calibrators.uniform_mixture import MixedMap
from trueodds.core.errors import InputError, describe
from trueodds.core.settings import NonNegative, check
from trueodds.data.arrays import tensor_to_array
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
        """Recalibrate a batch in the dtype of the computation."""
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
    was fitted on logits takes logits in place of log-probabilities.
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

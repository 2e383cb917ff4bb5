"""CalibrationError: a metric for torchmetrics with a state of fixed size, for any estimator that a tally supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

import trueodds
from trueodds.api.measure import measure_value
from trueodds.core.errors import InputError, install_command
from trueodds.core.results import Estimate
from trueodds.io.torch import Kind
from trueodds.tallies.tally import Tally
from trueodds.torch.tally import TallyResults, check_loaded_tensors, check_same_layout, layout_digest
from trueodds.torch.tensor_sums import TensorLayout, add_batch, has_float64, make_layout, read_tally, tally_of_two_rows

try:
    import torchmetrics
except ModuleNotFoundError:
    message = f"CalibrationError needs torchmetrics. {install_command('torch')}"
    raise ModuleNotFoundError(message, name="torchmetrics") from None

NOT_IN_TALLY = "TO405"  # code of the error for a lens or a score that a tally does not contain


class CalibrationError(TallyResults, torchmetrics.Metric):
    """Calibration error as a metric of torchmetrics, with a state of fixed size.

    Unlike the metrics of torchmetrics, it keeps sums instead of rows, is exact for half precision, and gives an
    interval, a noise floor and a p-value. Processes, `MetricCollection`, `MetricTracker` and checkpoints work as usual.

    Parameters
    ----------
    num_classes : int
        Number of classes, at least 2; of independent labels with ``kind="multilabel"``.
    estimator : str or Estimator, default="ece"
        Any estimator that a tally supports, such as ``"ece"``, ``"mce"``, ``"rmsce"`` or ``"debiased_l2"``.
    logits : bool, default=False
        Whether `update` gets logits. They are never guessed from their values.
    lens : str or Lens, optional
        The aspect that is measured. The default is the confidence, or the second of two classes.
    bins : int, optional
        Number of bins of the estimator. The default is that of the estimator.
    kind : {"classes", "multilabel", "confidence"}, default="classes"
        Exclusive classes, independent labels, or the confidence in one answer and whether it was correct.
    weighted : bool, default=False
        Whether `update` gets weights, or votes instead of labels.
    all_lenses : bool, default=False
        Whether all lenses and the proper scores are kept, which `audit` needs and which is slower. They are also kept
        if the lens or the estimator needs them.
    classes : sequence, optional
        Names of the classes. The default is their numbers. Labels are always positions 0..K−1, as in torch.
    **kwargs
        Arguments of `torchmetrics.Metric`, such as `sync_on_compute`.

    Raises
    ------
    InputError
        TO201 to TO204 for an unknown estimator, lens or setting, TO113 for invalid names of classes, TO403 for an
        estimator that needs single rows.

    See Also
    --------
    trueodds.torch.TorchTally : The same sums without torchmetrics.

    Notes
    -----
    Numbers of bins that divide 3,840, such as 10, 12, 15, 16, 20 and 30, are exact; for others, the edges are moved to
    the nearest ones of the fine grid, as a note of `estimate` says. Bins are right-closed, so that a probability of 1
    is in the last one, and empty bins are left out. Range and bias are those of the estimator; the best value of a
    calibration error is 0. The state has 155 kB per view, or 348 kB with ``weighted=True``.

    Examples
    --------
    >>> import torch
    >>> metric = CalibrationError(3)
    >>> metric.update(torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]), torch.tensor([0, 2]))
    >>> round(metric.compute().item(), 4)
    0.45
    >>> metric.estimate(interval=None).n
    2
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    def __init__(
        self,
        num_classes: int,
        estimator: Any = "ece",
        *,
        logits: bool = False,
        lens: Any = None,
        bins: int | None = None,
        kind: Kind = "classes",
        weighted: bool = False,
        all_lenses: bool = False,
        classes: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        _refuse_torchmetrics_arguments(kwargs)
        super().__init__(**kwargs)
        self.estimator = estimator
        settings = {"lens": lens, "bins": bins}
        self._settings: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
        self._lens = lens
        self._layout = self._make_sufficient_layout(
            partial(make_layout, num_classes, logits, kind, weighted, bins=15, classes=classes), all_lenses
        )
        zeros = self._layout.zeros()
        self._state_names = tuple(zeros)
        for name, tensor in zeros.items():
            self.add_state(name, tensor, dist_reduce_fx="max" if name == "maxima" else "sum")
        # Saved: the digest, with the sums, so that a checkpoint of a metric with other settings is recognized.
        self.add_state("layout", torch.tensor(layout_digest(self._layout)), dist_reduce_fx="max")

    def _make_sufficient_layout(self, make: Callable[..., TensorLayout], all_lenses: bool) -> TensorLayout:
        """Return the smallest layout whose tallies contain what the estimator needs."""
        layout = make(all_lenses=all_lenses)
        if not self._is_sufficient(layout):
            layout = make(all_lenses=True)
            self._is_sufficient(layout)  # raises an error if not even all lenses are sufficient
        return layout

    def _is_sufficient(self, layout: TensorLayout) -> bool:
        """Return whether the estimator can be computed from a tally of this layout, by computing it for two rows.

        Raises the error of the estimator for invalid settings, or if a tally of all lenses is not sufficient.
        """
        try:
            trueodds.measure(tally_of_two_rows(layout), self.estimator, interval=None, **self._settings)
        except InputError as problem:
            if problem.code == NOT_IN_TALLY and not layout.all_lenses:
                return False
            raise
        return True

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        """Move the sums to another device, but keep their dtypes if the module is converted to another precision."""

        def move(tensor: torch.Tensor) -> torch.Tensor:
            device = fn(torch.empty(0, device=tensor.device)).device
            return tensor.to(device) if has_float64(device) else tensor

        return super()._apply(move, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Add a batch and return its value. After an invalid batch, the sums are those before it.

        Parameters
        ----------
        *args, **kwargs
            Arguments of `update`.

        Returns
        -------
        Tensor
            Value of the batch alone.
        """
        state, n_updates = self._sums(), self.update_count
        try:
            return super().forward(*args, **kwargs)
        except InputError:
            for name, tensor in state.items():
                setattr(self, name, tensor)
            self._update_count: int = n_updates
            raise

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        """Add the states of all processes, after a check that they have the same settings."""
        check_same_layout(self._layout, self.cell_counts.device, kwargs.get("process_group") or self.process_group)
        super()._sync_dist(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Load the sums, unless they belong to other settings or are damaged."""
        loaded = {name: state_dict[prefix + name] for name in self._state_names if prefix + name in state_dict}
        digest = state_dict.get(prefix + "layout")
        if loaded and (digest is None or int(digest) != layout_digest(self._layout)):
            fix = f"Create the metric with the settings of the checkpoint, not {self._layout!r}."
            raise InputError("TO401", "The checkpoint belongs to a metric with other settings.", f"{digest}", fix)
        check_loaded_tensors({name: getattr(self, name) for name in loaded}, loaded)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one or several values, as metrics of torchmetrics do.

        Parameters
        ----------
        val : Tensor or sequence of Tensor, optional
            Results of `compute` or `forward`. The default is the current value.
        ax : matplotlib Axes, optional
            Axes of the plot.

        Returns
        -------
        tuple of Figure and Axes
            The plot.
        """
        return self._plot(val, ax)

    def update(self, preds: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor of shape (n, K), or (n,) for two classes or confidence
            Logits or probabilities, as set. They must not require grad.
        target : Tensor of shape (n,), or (n, K)
            Labels 0..K−1; votes, independent labels and correctness as for `TorchTally.update`.
        weight : Tensor of shape (n,), optional
            Nonnegative weights of the rows.

        Raises
        ------
        InputError
            As `TorchTally.update`.
        """
        state = self._sums()
        for name, tensor in add_batch(self._layout, state, preds, target, weight).items():
            if tensor is not state[name]:
                setattr(self, name, tensor)

    def compute(self) -> torch.Tensor:
        """Return the value of the estimator.

        Returns
        -------
        Tensor
            Scalar in float64, on the device of the metric.

        Raises
        ------
        InputError
            TO108 if there are no rows; those of `trueodds.measure`.
        """
        value = measure_value(read_tally(self._layout, self._sums()), self.estimator, **self._settings)
        return torch.tensor(value, dtype=torch.float64, device=self.cell_counts.device)

    def tally(self) -> Tally:
        """Return the sums as a `Tally`.

        If there are several processes, the sums are those of all rows, as in `compute`, and all processes must call
        this method. The same holds for `estimate`, `test` and `audit`.

        Returns
        -------
        Tally
            A copy of the sums, on the host.
        """
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        ):
            return read_tally(self._layout, self._sums())

    def estimate(self, **settings: Any) -> Estimate:
        """Estimate the calibration error with its interval and noise floor.

        Parameters
        ----------
        **settings
            Settings of `trueodds.measure`, such as `interval`, `level` and `rng`; `lens` and `bins` default to those of
            the metric.

        Returns
        -------
        Estimate
            The value with its interval and noise floor.
        """
        measure_settings: dict[str, Any] = self._settings | settings
        return trueodds.measure(self.tally(), self.estimator, **measure_settings)

    def _read_tally(self) -> Tally:
        return self.tally()

    def _sums(self) -> dict[str, torch.Tensor]:
        return {name: getattr(self, name) for name in self._state_names}


def _refuse_torchmetrics_arguments(settings: Mapping[str, Any]) -> None:
    """Raise TO202 for settings of the calibration error of torchmetrics, which have other names here."""
    remedies = {
        "n_bins": "Pass ⟨bins=⟩.",
        "norm": "The norms l1, l2 and max are the estimators 'ece', 'rmsce' and 'mce'.",
    }
    unknown = [name for name in remedies if name in settings]
    if unknown:
        got = ", ".join(f"⟨{name}={settings[name]!r}⟩" for name in unknown)
        fix = " ".join(remedies[name] for name in unknown)
        raise InputError("TO202", "CalibrationError has no such setting.", got, fix)

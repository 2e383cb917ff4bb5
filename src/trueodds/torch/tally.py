"""TorchTally: a tally that is updated with batches of tensors, on the CPU or a GPU, in memory of fixed size."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch

import trueodds
from trueodds.core.errors import InputError
from trueodds.core.results import Estimate, Verdict
from trueodds.io.torch import Kind
from trueodds.tallies.tally import Tally
from trueodds.torch.tensor_sums import TensorLayout, add_batch, has_float64, make_layout, read_tally

_LAYOUT_KEY = "layout"  # entry of a state with the settings of the tally


class TallyResults:
    """Base class of `TorchTally` and `CalibrationError`, with the test and the audit of the rows summed so far.

    Subclasses define `_read_tally`.
    """

    _layout: TensorLayout
    _lens: Any = None  # lens of the tests, None for the default lens

    def _read_tally(self) -> Tally:
        """Return the sums of all rows so far."""
        raise NotImplementedError

    def test(self, test: Any = "omnibus", **settings: Any) -> Verdict:
        """Test whether all rows so far are calibrated.

        Parameters
        ----------
        test : str or Test, default="omnibus"
            Any test that a tally supports.
        **settings
            Settings of `trueodds.test`, such as `lens` and `resamples`.

        Returns
        -------
        Verdict
            Statistic and p-value.

        Raises
        ------
        InputError
            TO108 if there are no rows; those of `trueodds.test`.
        """
        test_settings: dict[str, Any] = {"lens": self._lens} | settings
        return trueodds.test(self._read_tally(), test, **test_settings)

    def audit(self, **settings: Any) -> Any:
        """Audit all rows so far.

        Parameters
        ----------
        **settings
            Settings of `trueodds.audit`, such as `alpha` and `rng`.

        Returns
        -------
        Audit
            The report.

        Raises
        ------
        InputError
            TO108 if there are no rows; TO346 with ``all_lenses=False``; those of `trueodds.audit`.
        """
        if not self._layout.all_lenses:
            fix = "Create it with all_lenses=True."
            raise InputError("TO346", "An audit needs all lenses and the proper scores.", "all_lenses=False", fix)
        return trueodds.audit(self._read_tally(), **settings)


class TorchTally(TallyResults):
    """Sums of predictions in tensors, updated batch by batch in memory that does not grow with the rows.

    Probabilities of any dtype are counted on a fine grid of 3,880 cells per class, with int64 counts and float64 sums,
    on the CPU or the GPU where they are. From the sums, `estimate`, `test` and `audit` compute what the functions of
    the package compute from a tally.

    Parameters
    ----------
    num_classes : int
        Number of classes, at least 2; of independent labels with ``kind="multilabel"``; 1 with ``kind="confidence"``.
    logits : bool, default=False
        Whether `update` gets logits. They are never guessed from their values: logits that are passed as probabilities
        are an error.
    kind : {"classes", "multilabel", "confidence"}, default="classes"
        Exclusive classes, independent labels, or the confidence in one answer and whether it was correct.
    weighted : bool, default=False
        Whether `update` gets weights, or votes instead of labels. A cell then has nine sums instead of four.
    all_lenses : bool, default=True
        Whether all lenses of a tally and the proper scores are kept, which `audit` needs. False keeps only the default
        lens (the confidence; of two classes the probability of the second), which is several times as fast and needs
        less memory.
    bins : int, default=15
        Uniform bins of the null covariance between classes, which is kept up to 2,000 bins in all classes.
    classes : sequence, optional
        Names of the classes. The default is their numbers. Labels are always positions 0..K−1, as in torch.
    device : device, optional
        Device of the sums, which must be that of the batches. The default is the CPU.

    Attributes
    ----------
    n : int
        Number of rows so far.
    device : torch.device
        Device of the sums.

    Raises
    ------
    InputError
        TO203 for an invalid setting, TO113 for invalid names of classes.

    See Also
    --------
    trueodds.torch.CalibrationError : The same sums as a metric of torchmetrics.
    trueodds.torch.read_batches : Read a data loader for the functions of the package.

    Notes
    -----
    Memory: 155 kB per class and three more views (348 kB with ``weighted=True``), and 8·(K·bins)² bytes for the null
    covariance; for ten classes 2.2 MB. On the CPU, batches are summed by the compiled loops of the package; on other
    devices by operations of torch, without a copy of the rows to the host. Independent labels, confidence and votes,
    batches with invalid values, and batches on Apple's GPUs, which have no float64, are moved to the host.

    The sums of several processes are added by `all_reduce`, and tallies of several machines with ``+`` after `compute`.

    Examples
    --------
    >>> import torch
    >>> tally = TorchTally(3, logits=True)
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]])
    >>> for labels in ([0, 1, 2], [0, 1, 1], [0, 0, 2]):
    ...     tally.update(logits, torch.tensor(labels))
    >>> tally.n, round(tally.estimate("ece", interval=None).value, 3)
    (9, 0.182)
    """

    def __init__(
        self,
        num_classes: int,
        *,
        logits: bool = False,
        kind: Kind = "classes",
        weighted: bool = False,
        all_lenses: bool = True,
        bins: int = 15,
        classes: Sequence[Any] | None = None,
        device: Any = None,
    ) -> None:
        self._layout = make_layout(num_classes, logits, kind, weighted, all_lenses, bins, classes)
        self._state = self._layout.zeros(device)

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return int(self._state["row_counts"][0])

    @property
    def device(self) -> torch.device:
        """Device of the sums."""
        return self._state["cell_counts"].device

    def update(self, preds: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor of shape (n, K), or (n,) for two classes or confidence
            Logits or probabilities, as set. They must not require grad.
        target : Tensor of shape (n,), or (n, K)
            Labels 0..K−1. Votes of several people have a column per class. Independent labels are 0 or 1; with
            ``kind="confidence"``, whether the answer was correct.
        weight : Tensor of shape (n,), optional
            Nonnegative weights of the rows.

        Raises
        ------
        InputError
            TO340 for tensors that require grad, TO341 for other objects, TO342 for several devices, TO345 for weights
            or votes without ``weighted=True``, TO101 to TO116 for invalid values and labels. The sums are then
            unchanged.
        """
        self._state = add_batch(self._layout, self._state, preds, target, weight)

    def compute(self) -> Tally:
        """Return the sums as a `Tally`, which all functions of the package accept.

        Returns
        -------
        Tally
            A copy of the sums, on the host.

        Raises
        ------
        InputError
            TO108 if there are no rows.
        """
        return read_tally(self._layout, self._state)

    def _read_tally(self) -> Tally:
        return self.compute()

    def estimate(self, estimator: Any = "ece", **settings: Any) -> Estimate:
        """Estimate the calibration error of all rows so far.

        Parameters
        ----------
        estimator : str or Estimator, default="ece"
            Any estimator that a tally supports.
        **settings
            Settings of `trueodds.measure`, such as `lens`, `bins` and `interval`.

        Returns
        -------
        Estimate
            The value with its interval and noise floor.

        Raises
        ------
        InputError
            TO108 if there are no rows; those of `trueodds.measure`.
        """
        return trueodds.measure(self.compute(), estimator, **settings)

    def reset(self) -> None:
        """Remove all rows."""
        self._state = self._layout.zeros(self.device)

    def to(self, device: Any) -> Self:
        """Move the sums to a device, or to the CPU if the device has no float64, and return the tally.

        Parameters
        ----------
        device : device
            The device.

        Returns
        -------
        TorchTally
            This tally.
        """
        device = device if has_float64(device) else "cpu"
        self._state = {name: tensor.to(device) for name, tensor in self._state.items()}
        return self

    def all_reduce(self, group: Any = None) -> None:
        """Add the sums of all processes of `torch.distributed`, so that each has those of all rows.

        Call it once after the last update; a second call would count rows repeatedly.

        Parameters
        ----------
        group : ProcessGroup, optional
            The processes. The default is all.

        Raises
        ------
        InputError
            TO401 if the processes have tallies with other settings; TO347 if torch.distributed is not initialized.
        """
        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            raise InputError(
                "TO347",
                "all_reduce needs initialized processes.",
                "torch.distributed is not initialized",
                "Call torch.distributed.init_process_group first, or leave all_reduce out.",
            )
        check_same_layout(self._layout, self.device, group)
        for name, tensor in self._state.items():
            operation = distributed.ReduceOp.MAX if name == "maxima" else distributed.ReduceOp.SUM
            distributed.all_reduce(tensor, op=operation, group=group)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the sums and the settings, for `torch.save`.

        Returns
        -------
        dict
            Tensors by name, and the settings as text under ``"layout"``.
        """
        return {name: tensor.clone() for name, tensor in self._state.items()} | {_LAYOUT_KEY: repr(self._layout)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replace the sums by those of `state_dict`.

        Parameters
        ----------
        state_dict : mapping
            What `state_dict` of a tally with the same settings returned.

        Raises
        ------
        InputError
            TO401 for the state of a tally with other settings, or another mapping.
        """
        layout = state_dict.get(_LAYOUT_KEY)
        if layout != repr(self._layout) or set(state_dict) != {*self._state, _LAYOUT_KEY}:
            raise InputError(
                "TO401",
                "The state belongs to a tally with other settings.",
                str(layout),
                f"Create the tally with the same settings, not {self._layout!r}.",
            )
        check_loaded_tensors(self._state, state_dict)
        self._state = {name: state_dict[name].to(tensor.device).clone() for name, tensor in self._state.items()}

    def __repr__(self) -> str:
        return f"TorchTally(n={self.n:,}, {self._layout.k} classes, device={str(self.device)!r})"


def check_loaded_tensors(state: Mapping[str, torch.Tensor], loaded: Mapping[str, Any]) -> None:
    """Raise TO402 unless the loaded tensors have the shapes and dtypes of the state."""
    for name, tensor in state.items():
        value = loaded[name]
        if not isinstance(value, torch.Tensor) or (value.shape, value.dtype) != (tensor.shape, tensor.dtype):
            got = f"{value.dtype} of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else str(value)
            fix = f"Save it again; it must be {tensor.dtype} of shape {tuple(tensor.shape)}."
            raise InputError("TO402", f"The saved tensor {name} is not valid.", got, fix)


def layout_digest(layout: TensorLayout) -> int:
    """Return a number that identifies a layout: two layouts have the same one with probability 2⁻⁵⁶."""
    # Saved in checkpoints of a metric, so that the names and the order of the fields of the layout must stay.
    return int.from_bytes(hashlib.blake2b(repr(layout).encode(), digest_size=7).digest())


def check_same_layout(layout: TensorLayout, device: torch.device, group: Any) -> None:
    """Raise TO401 unless all processes of torch.distributed have the same layout; every process must call it."""
    digest = layout_digest(layout)
    digest_and_negative = torch.tensor([digest, -digest], device=device)
    torch.distributed.all_reduce(digest_and_negative, op=torch.distributed.ReduceOp.MAX, group=group)
    largest, smallest = int(digest_and_negative[0]), -int(digest_and_negative[1])
    if largest != smallest:
        raise InputError(
            "TO401", "Tallies with different settings cannot be added.", repr(layout), "Use the same in all processes."
        )

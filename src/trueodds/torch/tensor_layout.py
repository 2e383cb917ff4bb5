"""The tensors in which `TorchTally` and `CalibrationMetrics` keep the sums of a tally on a device, and their checks.

Tensors have a fixed size, unlike the cells of a tally, so that processes can add them: the settings alone determine it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from trueodds.core.errors import InputError
from trueodds.core.settings import BinCount, Count, check
from trueodds.data.class_names import check_class_names
from trueodds.io.torch import Kind
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.tally_sums import COUNT_FIELDS, MAX_NULL_SIZE, MAXIMUM_FIELDS, default_views

DTYPES = ("float16", "float32", "float64")  # dtypes of probabilities by which rows are counted
ROW_COUNTS = tuple(name for name in COUNT_FIELDS if name not in MAXIMUM_FIELDS)  # counts of special rows, such as ties
SCORE_SUMS = tuple(field.name for field in fields(ProperScoreSums))  # sums of a proper score


@dataclass(frozen=True)
class TensorLayout:
    """Shapes and meaning of the tensors of a tally, which follow from its settings (see `TorchTally`)."""

    k: int  # number of classes
    kind: Kind
    logits: bool  # whether batches have logits
    weighted: bool  # whether rows have weights
    all_lenses: bool  # whether the views of all lenses are kept, not only those of the default lens
    bins: int  # of the null covariance
    classes: tuple[Any, ...]

    @property
    def ranks(self) -> int:
        """Number of ranks whose views are kept: 1 for the most probable class, 2 with the second one, …"""
        return default_views(self.kind, self.k, default_lens_only=not self.all_lenses).ranks

    @property
    def class_range(self) -> range:
        """Numbers of the classes whose views are kept."""
        return default_views(self.kind, self.k, default_lens_only=not self.all_lenses).classes

    @property
    def n_views(self) -> int:
        """Number of binary views."""
        return self.ranks + len(self.class_range)

    @property
    def sum_names(self) -> tuple[str, ...]:
        """Names of the sums of a cell."""
        return WEIGHTED_SUMS if self.weighted else UNWEIGHTED_SUMS

    @property
    def has_null_covariance(self) -> bool:
        """Whether the null covariance between the classes is summed."""
        return self.all_lenses and self.kind == "classes" and self.k * self.bins <= MAX_NULL_SIZE

    def zeros(self, device: Any = None) -> dict[str, torch.Tensor]:
        """Return the tensors of no rows, by name, on a device or, if it has no float64, on the CPU.

        To merge the tensors of several processes, take the maximum of `maxima` and the sum of the others.
        """
        if device is not None and not has_float64(device):
            device = "cpu"
        n_cells = self.n_views * N_CELLS
        size = self.k * self.bins if self.has_null_covariance else 0
        # Saved: names, shapes and dtypes, in the `state_dict` of a checkpoint.
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "cell_counts": ((n_cells,), torch.int64),
            "cell_sums": ((n_cells, len(self.sum_names)), torch.float64),
            "null_covariance": ((size, size), torch.float64),
            "score_sums": ((len(SCORES) if self.all_lenses else 0, len(SCORE_SUMS)), torch.float64),
            "total_weight": ((1,), torch.float64),
            "row_counts": ((1 + len(ROW_COUNTS) + len(DTYPES),), torch.int64),  # all, special, and by dtype
            "maxima": ((len(MAXIMUM_FIELDS),), torch.float64),
        }
        return {name: torch.zeros(shape, dtype=dtype, device=device) for name, (shape, dtype) in shapes.items()}


def has_float64(device: Any) -> bool:
    """Return whether a device supports tensors of float64; Apple's GPUs (mps) do not."""
    return torch.device(device).type != "mps"


def make_layout(
    num_classes: int,
    logits: bool,
    kind: Kind,
    weighted: bool,
    all_lenses: bool,
    bins: int,
    classes: Sequence[Any] | None,
) -> TensorLayout:
    """Check the settings of a tally and return the layout of its tensors."""
    kind = check("kind", kind, Kind, "classes")
    if kind == "confidence":
        k, names = 2, ("wrong", "correct")
    else:
        k = check("num_classes", num_classes, Count, 10)
        if k < 2 and kind == "classes":
            fix = "Two classes with a single probability are num_classes=2."
            raise InputError("TO203", "num_classes must be at least 2.", str(k), fix)
        names = check_class_names(classes, k)
    for name, value in (("logits", logits), ("weighted", weighted), ("all_lenses", all_lenses)):
        check(name, value, bool, False)
    return TensorLayout(k, kind, logits, weighted, all_lenses, check("bins", bins, BinCount, 15), names)


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

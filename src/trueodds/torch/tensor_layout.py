"""Layout of the sums of a tally as tensors of fixed size: the views, the sums of a cell, and the scores."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch

from trueodds.io.torch import Kind
from trueodds.kernels.fine_grid import N_CELLS
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.special_row_counts import COUNT_FIELDS, MAXIMUM_FIELDS
from trueodds.tallies.stored_views import default_views
from trueodds.tallies.tally_sums import MAX_NULL_SIZE

DTYPES = ("float16", "float32", "float64")  # of the probabilities
ROW_COUNTS = tuple(name for name in COUNT_FIELDS if name not in MAXIMUM_FIELDS)
SCORE_SUMS = tuple(field.name for field in fields(ProperScoreSums))


@dataclass(frozen=True)
class TensorLayout:
    """What the tensors of a tally hold: the views, the sums of a cell and the scores.

    Parameters
    ----------
    k : int
        Number of classes.
    kind : {"classes", "confidence", "multilabel"}
        Kind of the predictions.
    logits : bool
        Whether scores are logits.
    weighted : bool
        Whether rows have weights or votes, for which a cell needs more sums.
    all_lenses : bool
        Whether all lenses of a `Tally` are kept, and the proper scores, or only the default lens.
    bins : int
        Number of uniform bins of the null covariance between classes.
    classes : tuple
        Names of the classes.
    """

    k: int
    kind: Kind
    logits: bool
    weighted: bool
    all_lenses: bool
    bins: int
    classes: tuple[Any, ...]

    @property
    def ranks(self) -> int:
        """Number of ranks whose views are kept."""
        return default_views(self.kind, self.k, is_group=not self.all_lenses)[0]

    @property
    def class_range(self) -> range:
        """Numbers of the classes whose views are kept."""
        return default_views(self.kind, self.k, is_group=not self.all_lenses)[1]

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
        """Whether the null covariance between classes is kept."""
        return self.all_lenses and self.kind == "classes" and self.k * self.bins <= MAX_NULL_SIZE

    def zeros(self, device: Any = None) -> dict[str, torch.Tensor]:
        """Return the tensors of no rows, by name; `maxima` is reduced by its maximum, the others by their sum.

        They are on the CPU if the device has no float64.
        """
        if device is not None and not has_float64(device):
            device = "cpu"
        n_cells, size = self.n_views * N_CELLS, self.k * self.bins if self.has_null_covariance else 0
        shapes: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
            "cell_counts": ((n_cells,), torch.int64),
            "cell_sums": ((n_cells, len(self.sum_names)), torch.float64),
            "null_covariance": ((size, size), torch.float64),
            "score_sums": ((len(SCORES) if self.all_lenses else 0, len(SCORE_SUMS)), torch.float64),
            "total_weight": ((1,), torch.float64),
            "row_counts": ((1 + len(ROW_COUNTS) + len(DTYPES),), torch.int64),
            "maxima": ((len(MAXIMUM_FIELDS),), torch.float64),
        }
        return {name: torch.zeros(shape, dtype=dtype, device=device) for name, (shape, dtype) in shapes.items()}


def has_float64(device: Any) -> bool:
    """Whether tensors of float64 can be on a device; those of Apple's GPUs cannot."""
    return torch.device(device).type != "mps"

"""The sums of a tally as tensors of fixed size: their layout, adding batches on any device, and conversion to a Tally.

The settings alone determine the sizes, unlike the number of cells of a tally, so that processes can add their sums.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import BinCount, Count, check
from trueodds.core.typing import Array
from trueodds.data.arrays import tensor_to_array
from trueodds.data.class_names import check_class_names
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, NOTED_SUM_DEVIATION, SUM_TOLERANCE_OF_DTYPE
from trueodds.io.torch import Kind, check_tensors, to_predictions
from trueodds.kernels.fine_grid import CELL_EDGES, N_CELLS
from trueodds.tallies.block_sums import report_bin_of_cells
from trueodds.tallies.cells import UNWEIGHTED_SUMS, WEIGHTED_SUMS, Cells
from trueodds.tallies.default_lens_tally import sum_confidence, tally_default_lens
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.tally import Tally
from trueodds.tallies.tally_sums import (
    COUNT_FIELDS,
    MAX_NULL_SIZE,
    MAXIMUM_FIELDS,
    SpecialRowCounts,
    default_views,
    view_names,
)

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


NOTE_ON_LOGITS = "TN108"  # code of the note on logits that look like probabilities


def add_batch(
    layout: TensorLayout, state: Mapping[str, torch.Tensor], scores: Any, target: Any, weight: Any = None
) -> dict[str, torch.Tensor]:
    """Add a batch to the sums of a tally in place; return them, as new tensors if `state` is of inference mode.

    A batch on the CPU is summed by the compiled loops of the package, and a batch on another device by operations of
    torch on that device. Batches that these cannot sum, such as those of votes or invalid values, are copied to the
    CPU. Logits that look like probabilities cause a warning.
    """
    check_tensors(scores, target, weight)
    _check_batch(layout, scores, target, weight)
    device = state["cell_counts"].device
    if not has_float64(scores.device):
        scores, target, weight = (None if tensor is None else tensor.cpu() for tensor in (scores, target, weight))
    if scores.device != device:
        raise InputError(
            "TO342",
            "The batch and the sums must be on one device.",
            f"the batch on {scores.device}, the sums on {device}",
            f"Create the tally with device={str(scores.device)!r}, or move it with .to().",
        )
    if len(scores) == 0 or (weight is not None and bool((weight == 0).all())):  # for instance padding alone
        return dict(state)
    if torch.is_inference_mode_enabled() or not state["maxima"].is_inference():
        writable = dict(state)
    else:  # torch does not change a tensor of inference mode outside of it
        writable = {name: tensor.clone() for name, tensor in state.items()}
    if not layout.all_lenses and scores.device.type == "cpu" and _add_confidence(layout, writable, scores, target):
        return writable
    if _must_use_host(layout, scores, target, weight):
        _add_tally(layout, writable, _tally_batch(layout, scores, target, weight))
    else:
        add_batch_on_device(layout, writable, scores, target, weight)
    return writable


def _check_batch(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> None:
    """Raise an error for swapped arguments, wrong shapes, or weights and votes that the tally does not support."""
    if layout.kind != "multilabel" and target.is_floating_point() and not scores.is_floating_point():
        raise InputError(
            "TO109",
            "The arguments look swapped: the predictions are integers, and target has fractions.",
            f"{scores.dtype} and {target.dtype}".replace("torch.", ""),
            "Pass (preds, target).",
        )
    if layout.kind != "confidence" and _count_classes(layout, scores) != layout.k:
        shape = "(n,) or (n, 2)" if layout.k == 2 and layout.kind == "classes" else f"(n, {layout.k})"
        raise InputError(
            "TO101",
            f"The predictions of {layout.k} classes must have the shape {shape}.",
            f"shape {tuple(scores.shape)}",
            _shape_remedy(layout.k, scores),
        )
    for name, values in (("target", target), ("weight", weight)):
        if values is not None and len(values) != len(scores):
            raise InputError(
                "TO107",
                f"{name} must have one row per prediction.",
                f"{len(values):,} rows of {name} and {len(scores):,} predictions",
                "Align the rows; nothing is truncated.",
            )
    has_votes = layout.kind == "classes" and target.ndim == 2
    if not layout.weighted and has_votes:
        raise InputError(
            "TO345",
            "Labels must be class numbers (n,); votes need additional sums.",
            f"target of shape {tuple(target.shape)}",
            "Pass target.argmax(dim=1) if it is one-hot, target[:, 0] if it is one column; for votes, weighted=True.",
        )
    if not layout.weighted and weight is not None:
        raise InputError(
            "TO345",
            "Weights need additional sums.",
            "a weight and weighted=False",
            "Create it with weighted=True.",
        )


def _count_classes(layout: TensorLayout, scores: torch.Tensor) -> int | None:
    """Return the number of classes of the scores; None if they have another number of dimensions."""
    if scores.ndim == 1 and layout.kind == "classes":
        return 2
    return scores.shape[1] if scores.ndim == 2 else None


def _shape_remedy(k: int, scores: torch.Tensor) -> str:
    """Return the remedy for scores that do not have the shape for k classes, such as those of images or tokens."""
    shape = scores.shape
    if scores.ndim > 2:
        images = "preds.movedim(1, -1).flatten(0, -2) and target.flatten() of images (n, K, …)"
        tokens = "preds.flatten(0, -2) and target.flatten() of tokens (n, …, K)"
        matching = [text for text, n_classes in ((images, shape[1]), (tokens, shape[-1])) if n_classes == k]
        return f"Pass {' or '.join(matching or (images, tokens))}."
    if scores.ndim == 2 and shape[1] == 1:
        return "Pass preds[:, 0], the scores of the second of two classes, and num_classes=2."
    if scores.ndim == 1 and shape[0] == k:
        return "Pass preds[None] and target[None] for a single row."
    if scores.ndim < 2:
        return "Pass one row of scores per prediction, not predicted classes."
    return f"Create it with num_classes={shape[1]}, or pass the scores of all classes."


def _must_use_host(
    layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> bool:
    """Return whether a batch is on the CPU, or has a form or values that its device cannot sum."""
    return scores.device.type == "cpu" or not can_sum_on_device(layout, scores, target, weight)


def _warn_caller(text: str) -> None:
    """Issue a warning at the line that called the library, however many of its functions lie between."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("trueodds."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)


def _tally_batch(
    layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> Tally:
    """Return the tally of a batch, which is copied to the CPU."""

    def make_predictions(start: int, stop: int) -> Any:
        rows = slice(start, stop)
        preds = to_predictions(
            scores[rows],
            target[rows],
            None if weight is None else weight[rows],
            logits=layout.logits,
            kind=layout.kind,
            classes=layout.classes if layout.kind == "multilabel" else None,
            copy=False,
        )
        notes_on_logits.extend(note for note in preds.notes if note.code == NOTE_ON_LOGITS)
        return preds

    n = len(scores)
    notes_on_logits: list[Note] = []
    if layout.all_lenses:
        tally = Tally.from_predictions(make_predictions(0, n), bins=layout.bins)
        if layout.logits and layout.kind != "classes":
            tally = _replace_log_loss(tally, scores, target, weight)
    else:
        tally = tally_default_lens(make_predictions, n, layout.k, layout.bins)
    if notes_on_logits:
        _warn_caller(str(notes_on_logits[0]))
    return tally


def _add_confidence(
    layout: TensorLayout, state: Mapping[str, torch.Tensor], scores: torch.Tensor, target: torch.Tensor
) -> bool:
    """Add a batch to the sums of the confidence alone in one pass; return whether it was added.

    It is not added, and must be checked otherwise, unless it consists of valid probabilities of three or more classes.
    """
    if layout.kind != "classes" or layout.logits or layout.weighted or layout.k < 3 or scores.ndim != 2:
        return False
    name = _dtype_name(scores)
    is_half_precision = name in SUM_TOLERANCE_OF_DTYPE

    def read_rows(start: int, stop: int) -> Array:
        """Return the rows start to stop − 1, converted from half precision to float32, which is exact."""
        rows = scores[start:stop]
        return tensor_to_array(rows.float() if is_half_precision else rows)

    tolerance = SUM_TOLERANCE_OF_DTYPE.get(name, DEFAULT_SUM_TOLERANCE)
    summed = sum_confidence(read_rows, tensor_to_array(target), layout.k, tolerance)
    if summed is None:
        return False
    counts, sums, ties = summed
    state["cell_counts"].numpy()[:] += counts
    state["cell_sums"].numpy()[:] += sums
    state["total_weight"].add_(len(scores))
    state["row_counts"].numpy()[:] += _row_counts(len(scores), SpecialRowCounts(ties=ties), name)
    return True


def _dtype_name(scores: torch.Tensor) -> str:
    return str(scores.dtype).removeprefix("torch.")


def _row_counts(n: int, counts: SpecialRowCounts, dtype: str) -> Array:
    """Return the number of rows, of special rows of each kind, and of rows in each of the dtypes of the layout."""
    # Other dtypes are converted to one of those of the layout.
    converted_dtype = {"bfloat16": "float32"}.get(dtype, dtype if dtype in DTYPES else "float64")
    rows_of_dtype = [n if name == converted_dtype else 0 for name in DTYPES]
    return np.array([n, *(getattr(counts, name) for name in ROW_COUNTS), *rows_of_dtype])


def _replace_log_loss(tally: Tally, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> Tally:
    """Return the tally with the log loss computed from log odds instead of probabilities, which may round to 0 or 1."""
    z, y = scores.double(), target.double()
    loss = -torch.where(y > 0, torch.nn.functional.logsigmoid(z), torch.nn.functional.logsigmoid(-z))
    loss = loss.mean(dim=1) if loss.ndim == 2 else loss
    w = None if weight is None else np.asarray(tensor_to_array(weight), dtype=np.float64)
    sums = ProperScoreSums.from_scores(tensor_to_array(loss), w)
    counts = replace(
        tally.counts,
        zeros=int(torch.isneginf(z).sum()),
        ones=int(torch.isposinf(z).sum()),
        true_zeros=sums.infinite,
    )
    return replace(tally, scores={**tally.scores, "log_loss": sums}, counts=counts)


def _add_tally(layout: TensorLayout, state: Mapping[str, torch.Tensor], tally: Tally) -> None:
    """Add a tally to the tensors of `state`. Tensors on the CPU are changed as NumPy arrays that share their memory."""
    cells = tally.cells.with_explicit_sums() if layout.weighted else tally.cells
    sums: dict[str, Any] = {
        "total_weight": tally.weight,
        "row_counts": _row_counts(tally.n, tally.counts, tally.dtype),
    }
    if tally.null is not None:
        sums["null_covariance"] = tally.null
    if tally.scores:
        sums["score_sums"] = np.array([astuple(tally.scores[name]) for name in SCORES])
    maxima = np.array([getattr(tally.counts, name) for name in MAXIMUM_FIELDS])
    if state["maxima"].device.type == "cpu":
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        arrays["cell_counts"][cells.index] += cells.n
        arrays["cell_sums"][cells.index] += cells.sums
        for name, values in sums.items():
            arrays[name] += values
        np.maximum(arrays["maxima"], maxima, out=arrays["maxima"])
        return
    device = state["maxima"].device
    index = torch.as_tensor(cells.index, device=device)
    state["cell_counts"].index_add_(0, index, torch.as_tensor(cells.n, device=device))
    state["cell_sums"].index_add_(0, index, torch.as_tensor(cells.sums, device=device))
    for name, values in sums.items():
        state[name].add_(torch.as_tensor(values, device=device))
    torch.maximum(state["maxima"], torch.as_tensor(maxima, device=device), out=state["maxima"])


def read_tally(layout: TensorLayout, state: Mapping[str, torch.Tensor]) -> Tally:
    """Return the sums as a tally; of the cells, only the occupied ones are copied to the CPU."""
    row_counts = state["row_counts"].tolist()
    n = row_counts[0]
    if n == 0:
        raise InputError("TO108", "No rows were added.", "0 rows", "Call update with at least one batch first.")
    index = torch.nonzero(state["cell_counts"]).flatten()
    n_special = dict(zip(ROW_COUNTS, row_counts[1:], strict=False))
    maxima = dict(zip(MAXIMUM_FIELDS, state["maxima"].tolist(), strict=True))
    dtypes = [name for name, rows in zip(DTYPES, row_counts[1 + len(ROW_COUNTS) :], strict=True) if rows]
    return Tally(
        kind=layout.kind,
        classes=layout.classes,
        dtype="+".join(dtypes),
        bins=layout.bins,
        grid=None,
        view_names=view_names(layout.ranks, layout.class_range),
        n=n,
        weight=float(state["total_weight"][0]),
        cells=Cells(
            tensor_to_array(index),
            tensor_to_array(state["cell_counts"][index]),
            tensor_to_array(state["cell_sums"][index]),
        ),
        joint={},
        null=tensor_to_array(state["null_covariance"]).copy() if layout.has_null_covariance else None,
        scores={name: _score_sums(values) for name, values in zip(SCORES, state["score_sums"].tolist(), strict=False)},
        counts=SpecialRowCounts(**n_special, **maxima),
        groups={},
    )


def tally_of_two_rows(layout: TensorLayout) -> Tally:
    """Return the tally of two rows with equal probabilities, which shows whether the settings are valid."""
    state = layout.zeros()
    if layout.kind == "confidence":
        scores, target = torch.full((2,), 0.5), torch.tensor([0, 1])
    else:
        scores = torch.full((2, layout.k), 1 / layout.k, dtype=torch.float64)
        target = torch.eye(2, layout.k).long() if layout.kind == "multilabel" else torch.tensor([0, 1])
    add_batch(replace(layout, logits=False), state, scores, target)
    return read_tally(layout, state)


def _score_sums(values: list[float]) -> ProperScoreSums:
    sums: dict[str, Any] = dict(zip(SCORE_SUMS, values, strict=True))
    return ProperScoreSums(**(sums | {"infinite": int(sums["infinite"])}))


VALUES_PER_CHUNK = 2**24  # values of the matrix whose products give the null covariance, which limits memory
MAX_WEIGHT = 1e30  # batches with larger weights are checked on the host, which raises an error


class Batch(NamedTuple):
    """A batch in float64 on its device."""

    P: torch.Tensor  # (n, K) probabilities
    y: torch.Tensor  # (n,) int64 labels, or (n, K) votes or labels of 0 and 1
    w: torch.Tensor  # (n,) weights
    log_observed: torch.Tensor | None  # (n,) log-probability of the observed class, if the scores are logits


def can_sum_on_device(
    layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None
) -> bool:
    """Return whether a batch has class numbers as labels and valid values, so that its device can sum it.

    Other batches are checked and summed on the host. To save time, the device transfers only the result of the check.
    """
    n, k = len(scores), layout.k
    has_labels = layout.kind == "classes" and target.ndim == 1 and not target.dtype.is_floating_point
    if not has_labels or len(target) != n or n == 0 or not scores.dtype.is_floating_point:
        return False
    labels = target.to(torch.int64)
    valid = (labels.amin() >= 0) & (labels.amax() < k)
    values = scores.double()
    if layout.logits:
        valid &= torch.isfinite(values).all() & ((values.amin() < 0) | (values.amax() > 1))
    else:
        valid &= (values.amin() >= 0) & (values.amax() <= 1)
        if values.ndim == 2:
            deviation = (values.sum(dim=1) - 1).abs().amax()
            valid &= deviation <= SUM_TOLERANCE_OF_DTYPE.get(_dtype_name(scores), DEFAULT_SUM_TOLERANCE)
    if weight is not None:
        if weight.shape != (n,):
            return False
        valid &= (weight.amin() > 0) & (weight.double().amax() < MAX_WEIGHT) & (weight.double().amin() > 1 / MAX_WEIGHT)
    return bool(valid)


def add_batch_on_device(
    layout: TensorLayout,
    state: Mapping[str, torch.Tensor],
    scores: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
) -> None:
    """Add a batch to the tensors of `state`, on their device; `can_sum_on_device` must be true for it."""
    batch = _make_batch(layout, scores, target, weight)
    n, device = len(batch.P), scores.device
    edges = torch.as_tensor(CELL_EDGES[1:-1].copy(), device=device)
    # These need most memory, and come first so that the sums are unchanged if there is too little.
    null = _null_covariance(layout, batch, edges) if layout.has_null_covariance else None
    score_sums = _batch_score_sums(layout, batch) if layout.all_lenses else None
    dtype = "float64" if layout.logits else _dtype_name(scores)
    counts = _row_counts(n, _special_counts(layout, batch, scores), dtype)
    for view, p, outcome in _views(layout, batch):
        cells = torch.bucketize(p, edges) + view * N_CELLS  # right-closed
        state["cell_counts"].index_add_(0, cells, torch.ones_like(cells))
        state["cell_sums"].index_add_(0, cells, _cell_terms(layout, p, outcome, batch.w))
    if null is not None:
        state["null_covariance"].add_(null)
    if score_sums is not None:
        state["score_sums"].add_(score_sums)
    state["total_weight"].add_(batch.w.sum())
    state["row_counts"].add_(torch.as_tensor(counts, device=device))
    if layout.all_lenses and not layout.logits:
        worst = state["maxima"][MAXIMUM_FIELDS.index("worst_sum")]
        worst.copy_(torch.maximum(worst, _sum_deviation(layout, batch.P, scores).amax()))


def _make_batch(layout: TensorLayout, scores: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None) -> Batch:
    """Convert scores, labels and weights to probabilities, labels and weights in float64."""
    values, y = scores.double(), target.to(torch.int64)
    w = torch.ones(len(values), dtype=torch.float64, device=values.device) if weight is None else weight.double()
    if values.ndim == 1:  # of the second of two classes; the complement is rounded to the dtype, as on the host
        rounded = scores.float() if scores.dtype.itemsize < 4 else scores
        first = torch.zeros_like(values) if layout.logits else (1 - rounded).double()
        values = torch.stack([first, values], dim=1)
    if not layout.logits:
        return Batch(values, y, w, None)
    log_observed = torch.log_softmax(values, dim=1).gather(1, y[:, None])[:, 0]
    return Batch(torch.softmax(values, dim=1), y, w, log_observed)


def _views(layout: TensorLayout, batch: Batch) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield the number of each stored view, its probabilities (n,) and its outcomes (n,): first ranks, then classes."""
    remaining = batch.P.clone() if layout.ranks > 1 else batch.P
    columns = torch.arange(layout.k, device=batch.P.device)
    for rank in range(layout.ranks):
        top = remaining.amax(dim=1, keepdim=True)
        top_class = torch.where(remaining == top, columns, layout.k).amin(dim=1)  # the lowest class if several are tied
        yield rank, top[:, 0], (top_class == batch.y).double()
        if rank + 1 < layout.ranks:
            remaining.scatter_(1, top_class[:, None], -1.0)
    for position, c in enumerate(layout.class_range):
        yield layout.ranks + position, batch.P[:, c].contiguous(), (batch.y == c).double()


def _cell_terms(layout: TensorLayout, p: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the terms that each row adds to the sums of its cell (n, sums), in the order of `layout.sum_names`."""
    if not layout.weighted:
        return torch.stack([p, p * p, y, y * p], dim=1)
    terms = [w, w * p, w * y, w * w, w * p * p, w * p * y, w * y * y, w * w * p * (1 - p), w * w * (y - p) ** 2]
    return torch.stack(terms, dim=1)


def _null_covariance(layout: TensorLayout, batch: Batch, edges: torch.Tensor) -> torch.Tensor:
    """Return the covariance of the residual sums of two report bins under calibration, upper triangle (K·bins, K·bins).

    For bins of the classes k and l it is the sum of w²(δ_kl p_k − p_k p_l) over the rows that lie in both. The sum of
    the products w p_k w p_l is that of a matrix product.
    """
    k, bins = layout.k, layout.bins
    bin_of_cell = torch.as_tensor(report_bin_of_cells(bins).astype("int64"), device=batch.P.device)
    offsets = torch.arange(k, device=batch.P.device) * bins
    rows_per_chunk = max(1, VALUES_PER_CHUNK // (k * bins))
    null = torch.zeros(k * bins, k * bins, dtype=torch.float64, device=batch.P.device)
    diagonal = torch.zeros(k * bins, dtype=torch.float64, device=batch.P.device)
    for start in range(0, len(batch.P), rows_per_chunk):
        P, w = batch.P[start : start + rows_per_chunk], batch.w[start : start + rows_per_chunk, None]
        columns = bin_of_cell[torch.bucketize(P.contiguous(), edges)] + offsets
        # Row by row, w p_k is placed in the column of the bin of class k.
        wp_by_bin = torch.zeros(len(P), k * bins, dtype=torch.float64, device=P.device).scatter_(1, columns, w * P)
        products = wp_by_bin.T @ wp_by_bin
        diagonal.index_add_(0, columns.flatten(), (w * w * P).flatten())
        null.sub_(torch.triu(products))
    null.diagonal().add_(diagonal)
    return null


def _batch_score_sums(layout: TensorLayout, batch: Batch) -> torch.Tensor:
    """Return the sums of the Brier score and of the log loss, (2, 7), in the order of `SCORE_SUMS`."""
    observed = batch.P.gather(1, batch.y[:, None])[:, 0]
    if layout.k == 2:
        brier = (batch.P[:, 1] - batch.y) ** 2
    else:
        brier = (batch.P * batch.P).sum(dim=1) - 2 * observed + 1
    loss = -torch.log(observed) if batch.log_observed is None else -batch.log_observed
    rows = []
    for score in (brier, loss):
        infinite = torch.isinf(score)
        s, w = torch.where(infinite, 0.0, score), torch.where(infinite, 0.0, batch.w)
        terms = {"w": w, "ww": w * w, "ws": w * s, "wws": w * w * s, "wwss": w * w * s * s}
        terms |= {"infinite": infinite.double(), "infinite_w": batch.w - w}
        rows.append(torch.stack([terms[name].sum() for name in SCORE_SUMS]))
    return torch.stack(rows)


def _special_counts(layout: TensorLayout, batch: Batch, scores: torch.Tensor) -> SpecialRowCounts:
    """Return the numbers of special rows of a batch."""
    counts = {}
    if layout.ranks:
        counts["ties"] = ((batch.P == batch.P.amax(dim=1, keepdim=True)).sum(dim=1) > 1).sum()
    if layout.all_lenses and not layout.logits:  # finite logits give neither zeros nor ones
        counts["zeros"], counts["ones"] = (batch.P == 0).sum(), (batch.P == 1).sum()
        counts["inexact_sums"] = (_sum_deviation(layout, batch.P, scores) > 0).sum()
        counts["true_zeros"] = (batch.P.gather(1, batch.y[:, None]) == 0).sum()
    values = torch.stack(list(counts.values())).tolist() if counts else []
    return SpecialRowCounts(**dict(zip(counts, values, strict=True)))


def _sum_deviation(layout: TensorLayout, P: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Return the distance of each row sum from 1 (n,); 0 if it is as small as rounding of the dtype."""
    if scores.ndim == 1:
        return torch.zeros_like(P[:, 0])
    eps = torch.finfo(torch.float32 if scores.dtype == torch.bfloat16 else scores.dtype).eps
    deviation = (P.sum(dim=1) - 1).abs()
    return torch.where(deviation > max(layout.k * eps, NOTED_SUM_DEVIATION), deviation, 0.0)

"""Add batches of tensors to the sums of a tally, which are tensors of fixed size, and convert these to a Tally."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import torch

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.arrays import tensor_to_array
from trueodds.data.probabilities import DEFAULT_SUM_TOLERANCE, SUM_TOLERANCE_OF_DTYPE
from trueodds.io.torch import check_tensors, to_predictions
from trueodds.tallies.cells import Cells
from trueodds.tallies.default_lens_tally import sum_confidence, tally_default_lens
from trueodds.tallies.proper_score_sums import SCORES, ProperScoreSums
from trueodds.tallies.tally import Tally
from trueodds.tallies.tally_sums import MAXIMUM_FIELDS, SpecialRowCounts, view_names
from trueodds.torch import device_sums
from trueodds.torch.tensor_layout import DTYPES, ROW_COUNTS, SCORE_SUMS, TensorLayout, has_float64

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
        device_sums.add_batch_on_device(layout, writable, scores, target, weight)
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
    return scores.device.type == "cpu" or not device_sums.can_sum_on_device(layout, scores, target, weight)


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
    name = str(scores.dtype).removeprefix("torch.")
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

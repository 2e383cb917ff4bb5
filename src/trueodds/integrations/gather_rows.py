"""Gather the rows that several processes have collected, with torch.distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import distributed

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.integrations.row_collector import CollectedRows, RowCollector

# Types of scores and labels in the order of precision; other types are converted to one of them without loss.
_SCORE_DTYPES = (np.float16, np.float32, np.float64)
_LABEL_DTYPES = (np.int64, np.float64)


def gather_rows(collector: RowCollector, device: Any = "cpu") -> None:
    """Replace the rows of the collector by those of all processes; every process must call it.

    Rows may be spread unevenly, and a process may have none. If more rows were added in all than fit into memory, the
    result is a uniform random sample of all of them.

    Parameters
    ----------
    collector : RowCollector
        The rows of this process, whose `shard` is its number.
    device : torch.device or str, default="cpu"
        Device that the backend of torch.distributed communicates with.

    Raises
    ------
    InputError
        TO352, in every process, if the processes have different classes or labels of different shapes.
    """
    rows = collector.rows() if collector.n_added else None
    scores = None if rows is None else _as_one_of(rows.scores, _SCORE_DTYPES)
    labels = None if rows is None else _as_one_of(rows.labels, _LABEL_DTYPES)
    counts = [collector.n_added, collector.n_ignored, int(collector.has_bfloat16)]
    headers = _gather(np.array([counts + _layout(scores, _SCORE_DTYPES) + _layout(labels, _LABEL_DTYPES)]), device)
    n_added, n_ignored, n_bfloat16 = headers[:, :3].sum(axis=0).tolist()
    if not n_added:
        return
    layouts = headers[headers[:, 0] > 0, 3:]
    if (layouts[:, [0, 2]] != layouts[0, [0, 2]]).any():
        raise InputError(
            "TO352",
            "All processes must have the same classes and the same kind of labels.",
            f"{' and '.join(map(str, np.unique(layouts[:, 0])))} columns of scores",
            "Use the same model and data format in every process.",
        )
    n_score_columns, score_dtype, n_label_columns, label_dtype = layouts.max(axis=0).tolist()
    keys = np.empty(0, dtype=np.uint64) if rows is None else rows.keys
    scores, labels = np.empty(0) if scores is None else scores, np.empty(0) if labels is None else labels
    all_keys = _gather_keys(keys, device)
    max_rows = max(1, collector.max_probs // max(1, n_score_columns))
    if len(all_keys) > max_rows:  # rows that are not in the sample are not sent
        is_sampled = keys < np.partition(all_keys, max_rows)[max_rows]
        scores, labels, keys = scores[is_sampled], labels[is_sampled], keys[is_sampled]
        all_keys = _gather_keys(keys, device)
    all_rows = CollectedRows(
        _gather_columns(scores.astype(_SCORE_DTYPES[score_dtype]), n_score_columns, device),
        _gather_columns(labels.astype(_LABEL_DTYPES[label_dtype]), n_label_columns, device),
        all_keys,
        None,
    )
    collector.replace_rows(all_rows, n_added, n_ignored, n_bfloat16 > 0)


def _gather_keys(keys: Array, device: Any) -> Array:
    """Return the keys of all processes; torch does not communicate unsigned integers of 64 bits."""
    return _gather(keys.view(np.int64)[:, None], device)[:, 0].view(np.uint64)


def _gather_columns(values: Array, n_columns: int, device: Any) -> Array:
    """Return the rows of all processes; without columns they are a vector."""
    rows = _gather(values.reshape(len(values), max(1, n_columns)), device)
    return rows if n_columns else rows[:, 0]


def _gather(values: Array, device: Any) -> Array:
    """Return the rows (n, m) of all processes in the order of their numbers; n may differ between them."""
    n_processes = distributed.get_world_size()
    count = torch.tensor([len(values)], device=device)
    counts = [torch.zeros_like(count) for _ in range(n_processes)]
    distributed.all_gather(counts, count)
    lengths = [int(n) for n in counts]
    padded = np.zeros((max(lengths), values.shape[1]), dtype=values.dtype)
    padded[: len(values)] = values
    tensor = torch.from_numpy(padded).to(device)
    tensors = [torch.empty_like(tensor) for _ in range(n_processes)]
    distributed.all_gather(tensors, tensor)
    return np.concatenate([part[:n].cpu().numpy() for part, n in zip(tensors, lengths, strict=True)])


def _as_one_of(values: Array, dtypes: tuple[Any, ...]) -> Array:
    """Convert values to the first of these types that holds them exactly, if their type is not among them."""
    return values if values.dtype in dtypes else values.astype(dtypes[-1] if values.dtype.kind == "f" else dtypes[0])


def _layout(values: Array | None, dtypes: tuple[Any, ...]) -> list[int]:
    """Return the number of columns, 0 for a vector, and the index of the type."""
    if values is None:
        return [0, 0]
    return [values.shape[1] if values.ndim == 2 else 0, [np.dtype(dtype) for dtype in dtypes].index(values.dtype)]

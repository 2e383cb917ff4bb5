"""Gather the rows that several processes have collected, with torch.distributed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.integrations.epoch_summary import CollectedRows, RowCollector

# Types in which scores and labels are sent, in the order of precision; other types are converted to them without loss.
_SCORE_DTYPES = (np.float16, np.float32, np.float64)
_LABEL_DTYPES = (np.int64, np.float64)


class _Header(NamedTuple):
    """What a process reports before it sends its rows: how many there are, and the form of their arrays."""

    n_added: int
    n_ignored: int
    has_bfloat16: int  # 1 or 0
    n_score_columns: int  # 0 for a vector
    score_dtype: int  # index in `_SCORE_DTYPES`
    n_label_columns: int  # 0 for a vector
    label_dtype: int  # index in `_LABEL_DTYPES`


def gather_rows(collector: RowCollector, device: Any = "cpu") -> None:
    """Replace the rows of the collector by those of all processes; every process must call it.

    Rows may be spread unevenly, and a process may have none. If more rows were added in all than fit into memory, the
    result is a uniform random sample of all of them. Raises TO352, in every process, if the processes have different
    classes or labels of different shapes.
    """
    scores, labels, keys = np.empty(0), np.empty(0), np.empty(0, dtype=np.uint64)
    if collector.n_added:
        rows = collector.rows()
        scores, labels = _convert_dtype(rows.scores, _SCORE_DTYPES), _convert_dtype(rows.labels, _LABEL_DTYPES)
        keys = rows.keys
    header = _Header(
        collector.n_added,
        collector.n_ignored,
        int(collector.has_bfloat16),
        *_describe_array(scores, _SCORE_DTYPES),
        *_describe_array(labels, _LABEL_DTYPES),
    )
    headers = [_Header(*values) for values in _gather_array(np.array([header]), device).tolist()]
    nonempty = [header for header in headers if header.n_added]
    if not nonempty:
        return
    _check_same_columns(nonempty)
    n_score_columns, n_label_columns = nonempty[0].n_score_columns, nonempty[0].n_label_columns
    score_dtype = _SCORE_DTYPES[max(header.score_dtype for header in nonempty)]
    label_dtype = _LABEL_DTYPES[max(header.label_dtype for header in nonempty)]

    all_keys = _gather_keys(keys, device)
    max_rows = max(1, collector.max_probs // max(1, n_score_columns))
    if len(all_keys) > max_rows:  # rows that are not in the sample are not sent
        is_sampled = keys < np.partition(all_keys, max_rows)[max_rows]
        scores, labels, keys = scores[is_sampled], labels[is_sampled], keys[is_sampled]
        all_keys = _gather_keys(keys, device)
    all_rows = CollectedRows(
        _gather_columns(scores.astype(score_dtype), n_score_columns, device),
        _gather_columns(labels.astype(label_dtype), n_label_columns, device),
        all_keys,
        None,
    )
    collector.replace_rows(
        all_rows,
        sum(header.n_added for header in headers),
        sum(header.n_ignored for header in headers),
        any(header.has_bfloat16 for header in headers),
    )


def _check_same_columns(headers: Sequence[_Header]) -> None:
    """Raise TO352 unless the arrays of all processes have the same numbers of columns."""
    columns = {(header.n_score_columns, header.n_label_columns) for header in headers}
    if len(columns) > 1:
        numbers = sorted({header.n_score_columns for header in headers})
        raise InputError(
            "TO352",
            "All processes must have the same classes and the same kind of labels.",
            f"{' and '.join(map(str, numbers))} columns of scores",
            "Use the same model and data format in every process.",
        )


def _gather_keys(keys: Array, device: Any) -> Array:
    """Return the keys of all processes; they are sent as int64, because torch does not send uint64."""
    return _gather_array(keys.view(np.int64)[:, None], device)[:, 0].view(np.uint64)


def _gather_columns(values: Array, n_columns: int, device: Any) -> Array:
    """Return the values of all processes: rows with this number of columns, or a vector if it is 0."""
    rows = _gather_array(values.reshape(len(values), max(1, n_columns)), device)
    return rows if n_columns else rows[:, 0]


def _gather_array(values: Array, device: Any) -> Array:
    """Return the rows (n, m) of all processes in the order of the processes; n may differ between them.

    `all_gather` requires tensors of the same shape, so that shorter arrays are padded with zeros, which are removed.
    """
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
    return np.concatenate([rows[:n].cpu().numpy() for rows, n in zip(tensors, lengths, strict=True)])


def _convert_dtype(values: Array, dtypes: tuple[Any, ...]) -> Array:
    """Convert values to one of `dtypes`: other floating-point values to the last, integers to the first."""
    if values.dtype in dtypes:
        return values
    return values.astype(dtypes[-1] if values.dtype.kind == "f" else dtypes[0])


def _describe_array(values: Array, dtypes: tuple[Any, ...]) -> tuple[int, int]:
    """Return the number of columns, 0 for a vector, and the index of the type in `dtypes`."""
    n_columns = values.shape[1] if values.ndim == 2 else 0
    return n_columns, [np.dtype(dtype) for dtype in dtypes].index(values.dtype)

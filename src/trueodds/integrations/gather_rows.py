"""Gather the rows that several processes have collected, with torch.distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import distributed

from trueodds.core.errors import InputError
from trueodds.integrations.epoch_summary import CollectedRows, RowCollector, select_rows


def gather_rows(collector: RowCollector) -> None:
    """Replace the rows of the collector by those of all processes; every process must call it.

    Rows may be spread unevenly, and a process may have none. If more rows were added in all than fit into memory, the
    result is a uniform random sample of all of them. Raises TO352, in every process, if the processes have different
    classes or labels of different shapes.
    """
    rows = collector.rows() if collector.n_added else None
    counts = (collector.n_added, collector.n_ignored, collector.has_bfloat16)
    columns = None if rows is None else (_count_columns(rows.scores), _count_columns(rows.labels))
    headers = _gather((counts, columns, None if rows is None else rows.keys))
    all_counts, all_columns, all_keys = zip(*headers, strict=True)
    distinct_columns = {columns for columns in all_columns if columns is not None}
    if not distinct_columns:
        return
    if len(distinct_columns) > 1:
        numbers = sorted({n_score_columns for n_score_columns, _ in distinct_columns})
        raise InputError(
            "TO352",
            "All processes must have the same classes and the same kind of labels.",
            f"{' and '.join(map(str, numbers))} columns of scores",
            "Use the same model and data format in every process.",
        )
    ((n_score_columns, _),) = distinct_columns
    keys = np.concatenate([keys for keys in all_keys if keys is not None])
    max_rows = max(1, collector.max_probs // max(1, n_score_columns))
    if rows is not None and len(keys) > max_rows:  # rows that are not in the sample are not sent
        rows = select_rows(rows, rows.keys < np.partition(keys, max_rows)[max_rows])
    parts = [part[:3] for part in _gather(rows) if part is not None]
    scores, labels, keys = map(np.concatenate, zip(*parts, strict=True))
    n_added, n_ignored, has_bfloat16 = zip(*all_counts, strict=True)
    collector.replace_rows(CollectedRows(scores, labels, keys, None), sum(n_added), sum(n_ignored), any(has_bfloat16))


def _count_columns(values: Any) -> int:
    """Return the number of columns, 0 for a vector."""
    return values.shape[1] if values.ndim == 2 else 0


def _gather(value: Any) -> list[Any]:
    """Return the values of all processes in their order."""
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values

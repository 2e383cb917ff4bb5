"""Which row is it? A number for each row that stays what it is however the rows are cut into batches."""

from __future__ import annotations

import hashlib

import numpy as np

from trueodds.core.typing import Array
from trueodds.io.blocks import Block

_TABLE = 40  # bits for the row; the number of its table stands above them


def ids_of(block: Block, first: int) -> Array:
    """Ids (n,) uint64: those of the rows' own column, else the number of their table, counted from `first`, and their place."""
    if block.row_id is not None:
        return named(block.row_id)
    parts = [
        np.arange(segment.start, segment.start + segment.n, dtype=np.uint64)
        + np.uint64((first + segment.table) << _TABLE)
        for segment in block.segments
    ]
    return np.concatenate(parts)


def named(ids: Array) -> Array:
    """Whole numbers as they are, anything else by a hash of its text.

    >>> named(np.array(["a", "b", "a"])).tolist()[0] == named(np.array(["a"])).tolist()[0]
    True
    """
    if ids.dtype.kind in "iu":
        return ids.astype(np.uint64)
    texts, where = np.unique(ids.astype(np.str_), return_inverse=True)
    hashes = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts.tolist()
    ]
    return np.array(hashes, dtype=np.uint64)[where.reshape(-1)]

"""Hashes of the ids of rows, by which two sets of rows are compared."""

from __future__ import annotations

import hashlib

import numpy as np

from trueodds.core.typing import Array


def hash_ids(ids: Array) -> Array:
    """Return whole numbers unchanged, and a hash of the text of any other value.

    >>> hash_ids(np.array(["a", "b", "a"])).tolist()[0] == hash_ids(np.array(["a"])).tolist()[0]
    True
    """
    if ids.dtype.kind in "iu" or (ids.dtype.kind == "f" and (ids == np.rint(ids)).all() and abs(ids).max() < 2**53):
        return ids.astype(np.int64).astype(np.uint64) if ids.dtype.kind == "f" else ids.astype(np.uint64)
    texts, inverse = np.unique(ids.astype(np.str_), return_inverse=True)
    hashes = [
        int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in texts.tolist()
    ]
    return np.array(hashes, dtype=np.uint64)[inverse.reshape(-1)]

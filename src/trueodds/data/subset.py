"""The row numbers that a mask, a slice or a list selects."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.typing import Array


def row_numbers(rows: Any, n: int) -> Array:
    """The numbers of the selected rows out of n, (m,); no selection that NumPy refuses, and at least one row.

    >>> row_numbers([True, False, True], 3).tolist(), row_numbers(slice(-1, None), 3).tolist()
    ([0, 2], [2])
    """
    try:
        chosen = rows if isinstance(rows, slice) else np.asarray(rows)
        if isinstance(chosen, np.ndarray) and chosen.size == 0:
            chosen = slice(0)
        where: Array = np.arange(n)[chosen]
    except (IndexError, TypeError, ValueError, OverflowError) as problem:
        raise _no_subset(str(problem)) from None
    if where.ndim != 1:
        raise _no_subset(describe(rows))
    if len(where) == 0:
        raise InputError("TO108", "The subset holds no rows.", "0 rows", "Check the mask.")
    return where


def _no_subset(got: str) -> InputError:
    return InputError(
        "TO118",
        "A subset is chosen by a mask of all rows, a slice or a list of row numbers.",
        got,
        "For one row pass [i].",
    )

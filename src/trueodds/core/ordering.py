"""Sort by computed numbers, so that rounding errors do not decide which of two equal numbers comes first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np


def round_significant(x: float) -> float:
    """Round to nine significant digits.

    >>> round_significant(0.1 + 0.2) == round_significant(0.3)
    True
    """
    return float(f"{x:.9g}")


def decreasing_order(values: Iterable[float], *tie_breakers: Iterable[float]) -> Sequence[int]:
    """Return the indices that sort the values from the largest to the smallest.

    Values that agree to nine digits are ordered by the next of `tie_breakers`, also decreasing, and finally keep their
    order. NaN comes last.

    >>> decreasing_order([0.3, 0.5, 0.1 + 0.2])
    [1, 0, 2]
    >>> decreasing_order([0.3, 0.5, 0.1 + 0.2], [1, 2, 3])
    [1, 2, 0]
    """
    keys = [[-round_significant(value) for value in column] for column in (values, *tie_breakers)]
    return np.lexsort(keys[::-1]).tolist()

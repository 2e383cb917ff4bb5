"""What do many selections of scores look like through a kernel, each with its own bandwidth?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trueodds.binning.selections import Selections
from trueodds.core.typing import Array
from trueodds.estimators.smoothing.density import Kernel, cells
from trueodds.estimators.smoothing.waves import Waves
from trueodds.kernels import in_blocks
from trueodds.kernels.sorted_sets import bin_linearly

Read = Callable[[Array, Array, Waves], Array]

MAX_CACHED_CELLS = 2**22  # cells of all selections up to which their waves are kept for the next bandwidth: 64 MB
_CELLS = 2**14  # of selections that are smoothed together, so that they stay in a core's own cache


def side_by_side(of: Selections, kernel: Kernel, widths: Array, span: tuple[float, float], read: Read) -> Array:
    """What `read` makes of each of selections that are alike, (selections,).

    It gets how many rows there are, and how many that came, in each cell of a grid on the span, smoothed with the
    bandwidth of each selection, (some selections, cells) in the order of the waves: the cells of a `Mirrored`.
    """
    low, high = span
    sizes = np.array([cells(width / (high - low) / kernel.finer) for width in widths])
    values = np.empty(len(of))
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        values[which] = _on_one_grid(of, which, kernel, widths[which], Waves(low, high, size), read)
    return values


def _on_one_grid(of: Selections, which: Array, kernel: Kernel, widths: Array, waves: Waves, read: Read) -> Array:
    block = max(1, _CELLS // waves.size)

    def transformed(rows: Any) -> Array:
        p, y = (x[rows] for x in of.sorted_scores)
        return waves.of(bin_linearly(p, y, waves.low, waves.high, waves.place))

    def every() -> Array:
        out = np.empty((len(of), 2, waves.size // 2 + 1), dtype=np.complex128)
        for start in range(0, len(of), block):
            out[start : start + block] = transformed(slice(start, start + block))
        return out

    cache = of.once((Waves, waves.low, waves.size), every) if len(of) * waves.size <= MAX_CACHED_CELLS else None
    same = bool((widths == widths[0]).all())
    damping = waves.damping(kernel.at_multiples, widths[0]) if same else None

    def work(start: int, stop: int) -> Array:
        rows = slice(start, stop) if len(which) == len(of) else which[start:stop]
        own = waves.damping(kernel.at_multiples, widths[start:stop, None]) if damping is None else damping
        smooth = waves.damped(transformed(rows) if cache is None else cache[rows], own)
        return read(smooth[:, 0], smooth[:, 1], waves)

    return np.concatenate(in_blocks(work, len(which), block))

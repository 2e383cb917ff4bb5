"""Loops over rows that numba compiles: sums, sorting, resampling, isotonic regression and likelihoods.

Each module contains the kernels of one topic, and Python functions that call them on blocks of rows. The names below
are what all kernels share.
"""

from trueodds.kernels.compilation import (
    as_plain_array,
    compile_fused,
    compile_inline,
    compile_kernel,
    compile_reordering,
)
from trueodds.kernels.parallel import (
    count_threads,
    draws_per_block,
    map_blocks,
    map_columns,
    map_items,
    map_rows_in_blocks,
    sum_blocks,
)

__all__ = [
    "as_plain_array",
    "compile_fused",
    "compile_inline",
    "compile_kernel",
    "compile_reordering",
    "count_threads",
    "draws_per_block",
    "map_blocks",
    "map_columns",
    "map_items",
    "map_rows_in_blocks",
    "sum_blocks",
]

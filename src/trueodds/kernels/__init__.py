"""Loops over rows that numba compiles: sums, sorting, resampling, isotonic regression and likelihoods.

Each module contains the kernels of one topic, and Python functions that call them on blocks of rows. The names below
are what all kernels share.
"""

import sys

from trueodds.kernels.parallel import (
    as_plain_array,
    count_threads,
    draws_per_block,
    map_blocks,
    map_columns,
    map_items,
    map_rows_in_blocks,
    read_thread_variable,
    sum_blocks,
)

if "numba" not in sys.modules:
    read_thread_variable("NUMBA_NUM_THREADS")  # the errors of numba, when it is imported, do not name it

from trueodds.kernels.compilation import (
    compile_fused,
    compile_inline,
    compile_kernel,
    compile_reordering,
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

"""Prefetch memory in compiled loops, so that the processor computes while it waits for memory."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

CACHE_LINE = 64  # bytes per cache line


def _prefetch(_typing: Any, x: Any, index: Any) -> Any:
    """Generate the code of `prefetch`: one instruction, which never raises a fault, even at an invalid address.

    The signature is that of numba's intrinsics: the typing context and the types of the arguments.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Emit the prefetch instruction."""
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
        read_access, high_locality, data_cache = int32(0), int32(3), int32(1)
        address = builder.bitcast(builder.gep(data, [args[1]]), byte_pointer)
        builder.call(prefetch, [address, read_access, high_locality, data_cache])
        return context.get_dummy_value()

    return types.void(x, index), build


def _skip_prefetch(_x: Any, _index: Any) -> None:
    """Do nothing in place of `prefetch`, if compilation is disabled."""


# Prefetch the cache line of x[index], for a contiguous x (n,); `index` may be out of bounds.
prefetch: Any = _skip_prefetch if getattr(numba.config, "DISABLE_JIT", False) else intrinsic(_prefetch)

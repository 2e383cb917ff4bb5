"""Prefetch memory in compiled loops, so that waiting for it overlaps with computing."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

CACHE_LINE = 64  # bytes per cache line


def _prefetch(_typing: Any, x: Any, place: Any) -> Any:
    """Generate the code of `prefetch`: one prefetch instruction, which never faults, even at an invalid address."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, soon, as_data = number(0), number(3), number(1)
        at = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(prefetch, [at, to_read, soon, as_data])
        return context.get_dummy_value()

    return types.void(x, place), build


def _nothing(_x: Any, _place: Any) -> None:
    """Replace `prefetch` without a compiler."""


# Prefetch the cache line of x[place], for a contiguous x (n,); `place` may be out of bounds.
prefetch: Any = _nothing if getattr(numba.config, "DISABLE_JIT", False) else intrinsic(_prefetch)

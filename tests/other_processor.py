"""Runs a command as on another processor: `python -m tests.other_processor COMMAND`.

NumPy, OpenBLAS, numba and the C library choose code for the processor they run on. Their results differ by rounding.
Here each of them uses the code of the oldest processor that it supports.
"""

from __future__ import annotations

import os
import platform
import sys

# The oldest core that the OpenBLAS of NumPy's and SciPy's wheels has code for.
CORES = {"x86_64": "Prescott", "AMD64": "Prescott", "aarch64": "ARMV8"}
# What the C library's exp, log and pow look for; names of glibc up to 2.32 and from 2.33 on. It ignores unknown ones.
HWCAPS = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"


def dispatched_features() -> list[str]:
    """The features of this processor for which NumPy has code beside its baseline, all of which can be disabled."""
    try:
        from numpy._core import _multiarray_umath as umath
    except ImportError:  # NumPy 1
        from numpy.core import _multiarray_umath as umath
    return [feature for feature in umath.__cpu_dispatch__ if umath.__cpu_features__[feature]]


def environment() -> dict[str, str]:
    """The variables that choose the code of the oldest processor, for processes that start with them."""
    variables = {"NUMBA_CPU_NAME": "generic", "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched_features())}
    machine = platform.machine()
    if machine in CORES:
        variables["OPENBLAS_CORETYPE"] = CORES[machine]
    if machine == "x86_64" and sys.platform == "linux":
        variables["GLIBC_TUNABLES"] = HWCAPS
    return {name: value for name, value in variables.items() if value}


if __name__ == "__main__":
    chosen = environment()
    sys.stderr.write("".join(f"{name}={value!r}\n" for name, value in chosen.items()))
    sys.stderr.flush()
    os.execvpe(sys.argv[1], sys.argv[1:], os.environ | chosen)

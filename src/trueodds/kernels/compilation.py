"""Compile kernels with numba on first use, and cache the machine code on disk."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import signal
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding
from numba.core.caching import FunctionCache, IndexDataCacheFile

from trueodds.core.progress import announce_compilation
from trueodds.kernels.parallel import is_abandoned

_FOLDER = Path(__file__).parent
_CHECKSUM_BYTES = 16
_TARGET_FILE = "target.json"  # describes the processors on which the code in a folder of machine code runs
PRECOMPILE_VARIABLE = "TRUEODDS_PRECOMPILE"  # folder to which machine code is written while a platform wheel is built
_NOT_STORED = (
    "Compiled code cannot be stored, so each process compiles it again, which takes seconds to a minute. Set "
    "NUMBA_CACHE_DIR to a folder that you alone can write, such as one made by `mkdir -m 700 ~/numba-cache`."
)
_KERNEL_IMPORT = re.compile(r"trueodds\.kernels\.(\w+)")


def compile_kernel(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function on first use and cache it on disk, or in memory, with a warning, if no folder is writable.

    The function releases the GIL, so that `map_blocks` can run it on several threads. Division by zero gives inf or
    NaN, as in NumPy. `options` are further ones of `numba.njit`.
    """
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(**options)(function)
    if disk_cache := kernel_cache(function):
        dispatcher._cache = disk_cache
        dispatcher.compile = partial(_compile_uninterrupted, dispatcher.compile)
    elif not getattr(numba.config, "DISABLE_JIT", False):
        dispatcher.compile = partial(_compile_without_cache, dispatcher.compile)
    return dispatcher


def _compile_without_cache(compile_signature: Callable[[Any], Any], signature: Any) -> Any:
    _warn_once(_NOT_STORED)
    return compile_signature(signature)


def _compile_uninterrupted(compile_signature: Callable[[Any], Any], signature: Any) -> Any:
    """Compile a kernel for a signature, and raise KeyboardInterrupt afterwards if Ctrl-C was pressed meanwhile.

    An interrupt within a compilation can be lost, because callbacks of llvmlite ignore exceptions, and locks of numba
    can stay locked, so that helper threads would wait forever. A signal handler of the program is left alone. Helper
    threads do not notice Ctrl-C, and compile nothing once their call has failed.
    """
    if threading.current_thread() is not threading.main_thread():
        if is_abandoned():
            raise KeyboardInterrupt
        return compile_signature(signature)
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return compile_signature(signature)
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        compiled = compile_signature(signature)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupts:
        raise KeyboardInterrupt
    return compiled


def compile_inline(function: Callable[..., Any]) -> Any:
    """Compile a helper of kernels as part of each kernel that calls it.

    Otherwise the helper is compiled twice, on its own and within its callers, which takes up to twice as long. The
    options of the caller apply, so helpers that reorder sums need a function of their own; so do long helpers that a
    kernel calls in several places, because their code is repeated.
    """
    return compile_kernel(function, inline="always")


def compile_reordering(function: Callable[..., Any]) -> Any:
    """Compile as `compile_kernel`, and allow the compiler to reorder sums, so that they can be vectorized."""
    return compile_kernel(function, fastmath={"reassoc", "nsz"})


def compile_fused(function: Callable[..., Any]) -> Any:
    """Compile as `compile_reordering`, and also allow fused multiply-add instructions, which round once."""
    return compile_kernel(function, fastmath={"reassoc", "nsz", "contract"})


def kernel_cache(function: Callable[..., Any]) -> Any:
    """Return the cache of one kernel, or None if numba is disabled or no folder is writable."""
    if getattr(numba.config, "DISABLE_JIT", False):
        return None
    try:
        return KernelCache(function)
    except RuntimeError:  # numba found no writable folder for its cache
        return None


class KernelCacheFile(IndexDataCacheFile):
    """Index and files of the machine code of one function, with file names that two processes cannot share by chance.

    Numba numbers the files. Two processes that compile the function for different types at the same time can choose
    the same number, and one of them later loads the machine code of the other.

    Numba raises the errors of damaged files, such as those that a full disk truncated, in every call. Here each file of
    machine code ends with its checksum, and a damaged file is removed with a warning, so that it is compiled again.
    """

    def load(self, key: Any) -> Any:
        name = _read_or_remove(self._index_path, lambda: self._load_index().get(key))
        return None if name is None else _read_or_remove(self._data_path(name), lambda: self._load_data(name))

    def save(self, key: Any, data: Any) -> None:
        """Store machine code under its key, in a file that is named after a hash of the key."""
        names = _read_or_remove(self._index_path, self._load_index) or {}
        if key not in names:
            digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
            names[key] = self._data_name(int.from_bytes(digest))
            self._save_index(names)
        self._save_data(names[key], data)

    def _dump(self, obj: Any) -> bytes:
        pickled: bytes = super()._dump(obj)
        return pickled + _checksum(pickled)

    def _load_data(self, name: str) -> Any:
        content = Path(self._data_path(name)).read_bytes()
        if not content.endswith(_checksum(content[:-_CHECKSUM_BYTES])):
            raise ValueError("its checksum is wrong")
        return super()._load_data(name)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).digest()


def _read_or_remove(path: str, read: Callable[[], Any]) -> Any:
    """Return what `read` returns for a file, or None if there is none; remove a damaged file, with a warning."""
    try:
        return read()
    except FileNotFoundError:
        return None
    except Exception as problem:  # noqa: BLE001 - what unpickling raises depends on the bytes
        with suppress(OSError):
            Path(path).unlink()
        is_left = os.path.lexists(path)
        outcome = "Remove it, or set NUMBA_CACHE_DIR to another folder" if is_left else "It was removed"
        reason = getattr(problem, "strerror", None) or problem
        _warn_once(f"The file of compiled code {path} is damaged ({reason}). {outcome}; the code is compiled again.")
        return None


@cache
def _warn_once(text: str) -> None:
    """Warn; Python alone would repeat the text after a compilation, in which numba changes the filters of warnings."""
    warnings.warn(text, stacklevel=3)


class KernelCache(FunctionCache):
    """Numba's cache of one function, preceded by precompiled machine code if the package contains it.

    Machine code is valid for one version of Python, of numba, and of the kernels' source files. Otherwise, the kernel
    is compiled on first use, as without machine code.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Numba invalidates its cache only if the function's own file changes, but it inlines functions of other files.
        source = source_hash(Path(function.__code__.co_filename))
        self._cache_file = KernelCacheFile(self._cache_path, self._impl.filename_base, source)
        self._precompiled = self._open_index(precompiled_folder(), source)
        self._wheel_cache = self._open_index(os.environ.get(PRECOMPILE_VARIABLE), source)

    def _open_index(self, folder: Path | str | None, source: str) -> Any:
        return None if folder is None else KernelCacheFile(str(folder), self._impl.filename_base, source)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function for this signature from the cache of the user or of the package, or None."""
        result = super().load_overload(sig, target_context)
        if result is None and self._precompiled is not None:
            data = self._precompiled.load(self._index_key(sig, PortableTarget()))
            result = None if data is None else self._impl.rebuild(target_context, data)
        if result is None:
            announce_compilation()
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function, also in the folder for a platform wheel if one is being built.

        If the disk is full, the function is not stored, a warning says so, and the next process compiles it again.

        If the program's own signal handler raised an interrupt while machine code was generated, a callback of llvmlite
        ignored it, and the machine code is missing. The interrupt is raised again here.
        """
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn_once(_NOT_STORED)
            # The index may already name a file that was not written, but exists from other source code.
            with suppress(OSError):
                Path(self._cache_file._index_path).unlink()
        except RuntimeError as error:
            if "no compiled object" not in str(error):
                raise
            raise KeyboardInterrupt from None
        if self._wheel_cache is not None and self._impl.check_cachable(data):
            self._wheel_cache.save(self._index_key(sig, PortableTarget()), self._impl.reduce(data))


class PortableTarget:
    """Stands for the processor in the keys of precompiled code, which runs on several ones."""

    def magic_tuple(self) -> tuple[str, ...]:
        return ("portable",)


@cache
def precompiled_folder() -> Path | None:
    """Return the folder of machine code of the package, or None if there is none for this processor."""
    folder = _FOLDER / "precompiled"
    try:
        target = json.loads((folder / _TARGET_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    features = binding.get_host_cpu_features()
    fits = target["machine"] == platform.machine() and all(features.get(name) for name in target["features"])
    return folder if fits else None


@cache
def source_hash(file: Path) -> str:
    """Return a hash of a source file and of the kernel modules that it imports, which may be inlined in its kernels."""
    digest, files, pending = hashlib.blake2b(digest_size=16), set(), [file, _FOLDER / "__init__.py"]
    while pending:
        if (path := pending.pop()) not in files:
            files.add(path)
            pending += [_FOLDER / f"{name}.py" for name in _KERNEL_IMPORT.findall(path.read_text(encoding="utf-8"))]
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()

"""How are arrays under keys read: a dict of them, or an .npz file?"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueodds.core.errors import InputError
from trueodds.sources.table import Batch, Table, sliced
from trueodds.sources.values import Place, plain

Array = NDArray[Any]


class MappingTable(Table):
    """A mapping of names to arrays of equal lengths."""

    keyed = True
    format = "arrays"

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.name = "the mapping"
        self.columns = tuple(str(key) for key in arrays)
        self._arrays = dict(zip(self.columns, arrays.values(), strict=True))
        lengths = {np.shape(each)[0] for each in self._arrays.values() if np.ndim(each)}
        self.rows = lengths.pop() if len(lengths) == 1 else None

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Views of the arrays."""
        return sliced(aligned(self.name, {name: self._plain(name) for name in names}), size)

    def _plain(self, name: str) -> Array:
        return plain(self._arrays[name], Place(self.name, name))


class NpzTable(Table):
    """An .npz archive of arrays, read whole; pickled ones are never opened."""

    keyed = True
    format = "npz"

    def __init__(self, path: str) -> None:
        self.name = path
        with self._opened() as archive:
            self.columns = tuple(archive.files)
            shapes = [_shape(archive, key) for key in archive.files]
        lengths = {shape[0] for shape in shapes if shape}
        self.rows = lengths.pop() if len(lengths) == 1 else None

    def batches(self, names: Sequence[str], numeric: Collection[str], size: int) -> Iterator[Batch]:
        """Views of the arrays; only the named ones are read."""
        arrays = {name: plain(array, Place(self.name, name)) for name, array in self._loaded(names).items()}
        return sliced(aligned(self.name, arrays), size)

    def chunks(self, numeric: Collection[str], size: int) -> Iterator[dict[str, Any]]:
        """Every array, whole: an archive is written in one piece."""
        yield self._loaded(self.columns)

    def _loaded(self, names: Sequence[str]) -> dict[str, Array]:
        arrays = {}
        with self._opened() as archive:
            for name in names:
                try:
                    arrays[name] = archive[name]
                except ValueError as problem:
                    if "allow_pickle" not in str(problem):
                        raise
                    fix = "Save names with dtype=str; pickles are never read."
                    raise Place(self.name, name).wrong_type("an array of objects", fix) from None
        return arrays

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with open(self.name, "rb") as file:
                archive = np.load(file, allow_pickle=False)
                if not isinstance(archive, np.lib.npyio.NpzFile):
                    raise ValueError("a single array without a name")
                with archive:
                    yield archive
        except InputError:
            raise
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
            raise self._broken(problem) from None

    def _broken(self, problem: Exception) -> InputError:
        return InputError(
            "TO303", f"{self.name} cannot be read as npz.", str(problem)[:200], "Write it with numpy.savez."
        )


def _shape(archive: Any, key: str) -> tuple[int, ...]:
    """An array's shape from its first bytes; an array of objects has none that is of use."""
    try:
        with archive.zip.open(f"{key}.npy") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return read(file)[0]
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        return ()


def aligned(name: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """Arrays (n,) or (n, K) that all have the same n > 0."""
    first = next(iter(arrays))
    for key, array in arrays.items():
        if array.ndim not in (1, 2):
            raise Place(name, key).wrong_type(f"shape {array.shape}", "Arrays must be (n,) or (n, K).")
        if len(array) != len(arrays[first]):
            raise InputError(
                "TO310",
                f"The arrays of {name} must have equal lengths.",
                f"{first!r} with {len(arrays[first]):,} rows and {key!r} with {len(array):,} rows",
                "Nothing is truncated: align the rows first.",
            )
    return arrays

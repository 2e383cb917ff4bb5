"""Compiled kernels on disk: when they are reused, and the machine code of a platform wheel."""

import ast
import json
import os
import pickle
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache

from trueodds import kernels
from trueodds.core import errors, printable, progress, typing
from trueodds.kernels import compilation
from trueodds.kernels.compilation import KernelCache, KernelCacheFile

pytestmark = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
KERNEL = "from trueodds.kernels import compile_kernel\n\n\n@compile_kernel\ndef {}():\n    return {}\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with three kernels, of which `outer` calls `inner`, and the library's compiler."""
    folder = tmp_path / "trueodds" / "kernels"
    folder.mkdir(parents=True)
    core = folder.parent / "core"
    core.mkdir()
    for empty in (folder.parent, core):
        (empty / "__init__.py").touch()
    for name in ("__init__.py", "compilation.py", "parallel.py"):
        (folder / name).write_text((Path(kernels.__file__).parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    for module in (errors, typing, progress, printable):
        (core / Path(module.__file__).name).write_text(
            Path(module.__file__).read_text(encoding="utf-8"), encoding="utf-8"
        )
    outer = "from trueodds.kernels.inner import inner\n" + KERNEL.format("outer", "inner()")
    for name, text in {"outer": outer, "inner": KERNEL.format("inner", 1), "other": KERNEL.format("other", 1)}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def call(package: Path, cache: str, largest_file: int = -1, n_warnings: int = 0, **environment: str) -> tuple[int, int]:
    """The result of `outer` in a new process, and how many functions were loaded instead of compiled."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, -1)); "
    code += "from trueodds.kernels.outer import outer; print(outer(), sum(outer.stats.cache_hits.values()))"
    root = package.parents[1]
    # With a limit, Python 3.11 would write a part of the bytecode of any library, and fail to read it later.
    places = {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(root / cache), "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env=os.environ | places | environment,
        encoding="utf-8",
    )
    value, hits = run.stdout.split()
    assert run.stderr.count("UserWarning") == n_warnings, run.stderr
    return int(value), int(hits)


@pytest.mark.slow
def test_kernels_are_compiled_in_a_locale_whose_encoding_is_not_utf8(package):
    text = "# σ ≤ 1\n" + KERNEL.format("inner", 1)
    (package / "inner.py").write_text(text, encoding="utf-8")
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert call(package, "cache", **locale) == (1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("decorator", ["compile_kernel", "compile_inline"])
def test_code_on_disk_is_stale_only_once_a_kernel_that_it_calls_changes(package, decorator):
    # A kernel inlines what it calls from other files, and numba compares its own file alone.
    (package / "inner.py").write_text(KERNEL.format("inner", 1).replace("compile_kernel", decorator), encoding="utf-8")
    assert call(package, "cache") == (1, 0)
    (package / "inner.py").write_text(KERNEL.format("inner", 2).replace("compile_kernel", decorator), encoding="utf-8")
    assert call(package, "cache") == (2, 0)
    (package / "other.py").write_text(KERNEL.format("other", 2), encoding="utf-8")
    assert call(package, "cache") == (2, 1)


@pytest.mark.slow
def test_precompiled_code_is_used_where_it_fits_the_sources_and_the_processor(package):
    folder = package / "precompiled"
    folder.mkdir()
    target = {"machine": platform.machine(), "features": []}
    assert call(package, "first", TRUEODDS_PRECOMPILE=str(folder)) == (1, 0)
    assert call(package, "second") == (1, 0)  # the folder does not say for which processors it is
    (folder / "target.json").write_text(json.dumps(target), encoding="utf-8")
    assert call(package, "third") == (1, 1)
    (folder / "target.json").write_text(json.dumps(target | {"features": ["no such feature"]}), encoding="utf-8")
    assert call(package, "fourth") == (1, 0)
    (folder / "target.json").write_text(json.dumps(target), encoding="utf-8")
    (package / "inner.py").write_text(KERNEL.format("inner", 2), encoding="utf-8")
    assert call(package, "fifth") == (2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("largest_file", [100, 4000])  # nothing fits on the disk, or the index but not the function
def test_a_full_disk_neither_stops_a_kernel_nor_leaves_outdated_code(package, largest_file):
    assert call(package, "cache") == (1, 0)
    (package / "inner.py").write_text(KERNEL.format("inner", 2), encoding="utf-8")
    assert call(package, "cache", largest_file, n_warnings=1) == (2, 0)
    assert call(package, "cache", largest_file, n_warnings=1) == (2, 0)
    assert call(package, "cache") == (2, 0)
    assert call(package, "cache") == (2, 1)


def test_a_cache_that_cannot_be_written_is_said_once_with_the_remedy(monkeypatch):
    def find_no_folder(_function):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(compilation, "KernelCache", find_no_folder)
    compilation._warn_once.cache_clear()
    first, second = (kernels.compile_kernel(lambda x, c=constant: x + c) for constant in (1, 2))
    with pytest.warns(UserWarning, match=r"cannot be stored.* Set NUMBA_CACHE_DIR .*mkdir -m 700") as caught:
        assert (first(1), second(1)) == (2, 3)
    assert len(caught) == 1


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def alter_the_last_bytes(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20] + b"\0" * 20)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def fill_with_garbage(file: Path) -> None:
    file.write_bytes(b"not a pickle")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_truncated_file_of_the_cache_is_named_once_and_written_again(package, suffix):
    # Every call raised EOFError or UnpicklingError, which did not name the file.
    assert call(package, "cache") == (1, 0)
    (file,) = (package.parents[1] / "cache").rglob(f"outer.*{suffix}")
    truncate(file)
    assert call(package, "cache", n_warnings=1) == (1, 0)
    assert call(package, "cache") == (1, 1)


@pytest.mark.slow
def test_a_folder_in_place_of_a_file_of_the_cache_is_named_once_and_left_alone(package):
    assert call(package, "cache") == (1, 0)
    (file,) = (package.parents[1] / "cache").rglob("outer.*.nbi")
    file.unlink()
    file.mkdir()
    assert call(package, "cache", n_warnings=2) == (1, 0)  # the other one says that nothing can be stored
    assert file.is_dir()


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", [truncate, alter_the_last_bytes, empty, fill_with_garbage])
def test_a_damaged_file_of_the_cache_is_removed_with_a_warning_that_names_it(tmp_path, suffix, damage):
    key, stored = ("int64", "cpu"), KernelCacheFile(str(tmp_path), "add", "source")
    stored.save(key, b"machine code")
    assert stored.load(key) == b"machine code"
    (file,) = tmp_path.glob(f"*{suffix}")
    damage(file)
    with pytest.warns(UserWarning, match=f"{re.escape(str(file))} is damaged .*It was removed; the code is compiled"):
        assert stored.load(key) is None
    assert not file.exists()
    stored.save(key, b"machine code")
    assert stored.load(key) == b"machine code"


def assigned_pairs(kernel):
    """The targets and values of all assignments to elements or slices."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                is_unpacked = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=True) if is_unpacked else [(target, node.value)]
                yield from ((t, v) for t, v in pairs if isinstance(t, ast.Subscript))


def is_slice(node):
    """Whether a node is a part of an array: x[a:b], but not x.shape[0]."""
    return isinstance(node, ast.Subscript) and any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))


def test_processes_that_compile_for_different_types_store_them_in_different_files(tmp_path):
    # Numba gave both the same number, so that a process could load machine code for other types.
    first, second = (KernelCacheFile(str(tmp_path), "add", "source") for _ in range(2))
    second._load_index = dict  # as if it had read the index before the first process wrote it
    first.save(("int64", "cpu"), b"one")
    second.save(("float64", "cpu"), b"two")
    assert {pickle.loads(file.read_bytes()) for file in tmp_path.glob("*.nbc")} == {b"one", b"two"}


def test_an_interrupt_that_llvmlite_ignored_is_raised_again(monkeypatch, tmp_path):
    # Ctrl-C during the generation of machine code once became a RuntimeError.
    def save_nothing(*_arguments):
        raise RuntimeError("no compiled object yet for <Library 'add'>")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(FunctionCache, "save_overload", save_nothing)
    cache = KernelCache(kernels.as_plain_array)
    with pytest.raises(KeyboardInterrupt):
        cache.save_overload(None, None)


def test_no_kernel_assigns_an_array_to_a_slice():
    # numba compiles the message for unequal shapes, which took 4 s of the first fit and of the first audit.
    assignments = []
    for file in Path(kernels.__file__).parent.glob("*.py"):
        for function in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef) and any(
                "compile_" in ast.unparse(decorator) for decorator in function.decorator_list
            ):
                for target, value in assigned_pairs(function):
                    is_row = isinstance(value, ast.Subscript) and not isinstance(value.value, ast.Attribute)
                    if is_slice(value) or (is_slice(target) and is_row):
                        assignments.append(f"{file.name}: {ast.unparse(target)} = {ast.unparse(value)}")
    assert assignments == []

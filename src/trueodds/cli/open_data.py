"""Open the files that a command names: one source or sum of tallies for all of them, or one for each model.

Saved tallies and calibrators are recognized among them.
"""

from __future__ import annotations

import filecmp
import glob
import importlib
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from hashlib import blake2b
from math import isfinite
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import click

from trueodds.cli import record_options
from trueodds.core.errors import InputError, install_command
from trueodds.core.registry import METHOD_FAMILIES

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
_ENGINE_OF_KEYWORD = {"scheduler": "dask", "master": "spark"}
# The option of each command that names a method.
_METHOD_KEYWORD_OF_COMMAND = {
    "measure": "estimator",
    "compare": "estimator",
    "groups": "estimator",
    "test": "test",
    "power": "test",
    "fit": "method",
    "draw": "diagram",
}


MIN_COPY_BYTES = 4096  # size from which files of the same content are copies; small parts may be equal by chance
BLAS_BUFFER_BYTES = 2**25  # memory that OpenBLAS allocates for each thread at its first use


def open_data(files: Sequence[str], columns: Mapping[str, Any], *, needs_label: bool = True) -> Any:
    """Return the source of the rows, or the sum of the tallies, at these paths; `columns` are settings of `read`.

    Rows without a label are read unless the command `needs_label`.
    """
    _allocate_blas_buffers()
    refuse_repeated(files)
    _refuse_method_names(files)
    refuse_calibrators(files)
    are_tallies = [is_tally(file) for file in files]
    if any(are_tallies):
        if not all(are_tallies):
            row_file = files[are_tallies.index(False)]
            raise InputError(
                "TO603", "Tallies and rows cannot be mixed.", row_file, "Tally the rows first: trueodds tally."
            )
        if columns:
            name = next(iter(columns)).replace("_", "-")
            raise InputError("TO603", "Column options do not apply to a tally.", f"--{name}", f"Leave --{name} out.")
        return add_tallies(files)
    if record_options.has_record_options(files, columns):
        return record_options.open_records(files, columns)
    from trueodds.io.read import read, read_unlabeled

    read_rows = read if needs_label else read_unlabeled
    return read_rows(files[0] if len(files) == 1 else list(files), **start_engine(columns))


def _allocate_blas_buffers() -> None:
    """Under a limit of the address space, let OpenBLAS allocate its buffers before the rows take the memory.

    If there is none left, OpenBLAS ends the process with the exit code 1, which is that of a failed gate; here the lack
    of memory is a MemoryError.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    import numpy as np

    n_threads = int(os.environ.get("OPENBLAS_NUM_THREADS") or os.cpu_count() or 1)
    np.empty(BLAS_BUFFER_BYTES * n_threads, dtype=np.uint8)
    square = np.ones((256, 256))  # large enough for OpenBLAS to use all threads
    square @ square


def _refuse_method_names(files: Sequence[str]) -> None:
    """Raise TO301 for the name of a method among the files, which should be the value of an option."""
    keyword = _METHOD_KEYWORD_OF_COMMAND.get(click.get_current_context().info_name or "")
    if keyword is None:
        return
    family = "calibrator" if keyword == "method" else keyword
    module, _, table = METHOD_FAMILIES[family][1].partition(":")
    for file in files:
        if file in getattr(importlib.import_module(module), table).names() and not os.path.exists(file):
            fix = f"The {family} is an option: --{keyword} {file}."
            raise InputError("TO301", "There is no such file.", repr(file), fix)


class Model(NamedTuple):
    """Where the predictions of a model are."""

    name: str
    file: str  # or pattern
    columns: Mapping[str, Any]  # settings of `read`


def find_models(files: Sequence[str], columns_of_models: Sequence[Mapping[str, Any]]) -> list[Model]:
    """Return the models: several files with the same columns, or several columns of one file."""
    if len(columns_of_models) == 1:
        return [
            Model(name, file, columns_of_models[0]) for name, file in zip(names_of_files(files), files, strict=True)
        ]
    if len(files) > 1:
        got = f"{len(files)} files and {len(columns_of_models)} models in columns"
        fix = "Pass one file, or --probs or --logits once."
        raise InputError("TO603", "Models are either files or columns of one file.", got, fix)
    return [Model(_name_of_columns(columns), files[0], columns) for columns in columns_of_models]


def _name_of_columns(columns: Mapping[str, Any]) -> str:
    """Return the name of a model in columns: that of the column, or of its columns without the wildcard."""
    requested = columns.get("logits", columns.get("probs"))
    return ",".join(requested) if isinstance(requested, list) else str(requested).replace("*", "").strip("_.") or "*"


def open_models(models: Sequence[Model], notify: Callable[[float, str], None]) -> list[Any]:
    """Return the data of several models; `notify` gets the finished share and the step."""
    opened = []
    files = [model.file for model in models]
    for number, model in enumerate(models):
        notify(number / len(models), "reading")
        # A tally beside other files has no columns to select.
        has_columns = not is_tally(model.file) or all(map(is_tally, files))
        columns = _columns_of_model(model.file, files, model.columns) if has_columns else {}
        opened.append(open_data([model.file], columns))
    return opened


def _columns_of_model(file: str, files: Sequence[str], columns: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings of one of several files, without those of text files if only other files are such."""
    text_files = [other for other in files if other.lower().endswith(TEXT_SUFFIXES)]
    is_other = bool(text_files) and file not in text_files
    return {name: value for name, value in columns.items() if not (is_other and name in ("separator", "decimal"))}


def open_models_by_name(files: Sequence[str], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of each file by its name without folder and suffix; epochs of several runs are named run/epoch.

    A file whose name is a number is an epoch, and its folder is the run.
    """
    names = [_stem(file) for file in files]
    folders = [Path(os.path.realpath(os.path.expanduser(file))).parent for file in files]
    if len(set(folders)) > 1 and all(map(_is_number, names)):
        names = [f"{folder.name}/{name}" for folder, name in zip(folders, names, strict=True)]
    if repeated_names := {name for name in names if names.count(name) > 1}:
        raise InputError(
            "TO603",
            "Two models have the same name.",
            ", ".join(sorted(repeated_names)),
            "Rename the files so that their names differ.",
        )
    return {
        name: open_data([file], _columns_of_model(file, files, columns))
        for name, file in zip(names, files, strict=True)
    }


def names_of_files(files: Sequence[str]) -> list[str]:
    """Return the names of the files without folder and suffix if they are distinct, else the files as given."""
    stems = [_stem(file) for file in files]
    return stems if len(set(stems)) == len(stems) else list(files)


def _stem(file: str) -> str:
    """Return the name of a file without its folder and suffix; that of a tally is .tally.json."""
    return Path(file).stem.removesuffix(".tally")


def _is_number(name: str) -> bool:
    try:
        return isfinite(float(name))
    except ValueError:
        return False


def start_engine(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Start the engine that the options name, until the command ends; return the settings of `read`."""
    settings = dict(columns)
    for keyword, engine in _ENGINE_OF_KEYWORD.items():
        if keyword in settings and settings.get("engine") != engine:
            raise InputError(
                "TO601",
                f"--{keyword} goes with --engine {engine}.",
                f"--{keyword} {settings[keyword]}",
                f"Add --engine {engine}.",
            )
    address, master = settings.pop("scheduler", None), settings.pop("master", None)
    try:
        if address is not None:
            client = importlib.import_module("distributed").Client(address, timeout="10s")
            click.get_current_context().call_on_close(client.close)
        if settings.get("engine") == "spark":
            _start_spark(master)
    except ModuleNotFoundError as problem:
        engine = settings["engine"]
        problem_text = f"The engine {engine} needs {problem.name}, which is not installed."
        raise InputError("TO306", problem_text, "", install_command(engine)) from None
    except OSError as problem:
        raise InputError("TO332", "The Dask cluster does not respond.", f"{address}: {problem}", "Check it.") from None
    return settings


def _start_spark(master: str | None) -> None:
    """Start a Spark session with this Python, or connect to `master`; it stops when the command ends."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the one that has trueodds
    builder = importlib.import_module("pyspark.sql").SparkSession.builder.appName("trueodds")
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # pandas is not used
    session = (builder if master is None else builder.master(master)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    click.get_current_context().call_on_close(session.stop)


def add_tallies(files: Sequence[str]) -> Any:
    from trueodds.tallies import tally_reader

    refuse_repeated(files)
    for file in files:
        if is_calibrator(file):
            raise InputError("TO402", "The file is a calibrator, not a tally.", file, "Name tallies only.")
        if os.path.exists(file) and not file.endswith(".json"):
            fix = f"Tally the rows first: trueodds tally {file} --out F."
            raise InputError("TO402", "The file is not a tally.", file, fix)
    if len(files) == 1:
        return tally_reader.load(files[0])
    tallies = [_with_fingerprint(tally_reader.load(file)) for file in files]
    _refuse_common_rows(files, tallies)
    return reduce(add, tallies)


def _with_fingerprint(tally: Any) -> Any:
    """Return a tally that has a fingerprint of its rows, by which a merge of the same rows is recognized.

    A tally of an older version has none; it gets a fingerprint of its sums instead of one of each batch of rows.
    """
    from trueodds.tallies import tally_sums
    from trueodds.tallies.batch_fingerprints import FINGERPRINT_LENGTH, BatchFingerprints

    if tally.batches.rows:
        return tally
    return replace(tally, batches=BatchFingerprints({tally_sums.digest(tally)[:FINGERPRINT_LENGTH]: tally.n}))


def _refuse_common_rows(files: Sequence[str], tallies: Sequence[Any]) -> None:
    """Raise TO603 for two tallies that contain the same rows or have the same sums, because rows would count twice."""
    from trueodds.tallies import tally_sums

    fix = "Leave one of them out. If the rows are different but equal, tally their files together: trueodds tally."
    file_of_batch: dict[str, str] = {}
    file_of_digest: dict[str, str] = {}
    for file, tally in zip(files, tallies, strict=True):
        # Sums are also compared because an older tally has no fingerprints of its rows, and a copy of it may have them.
        if (first := file_of_digest.setdefault(tally_sums.digest(tally), file)) != file:
            problem = "Two tallies have the same sums, so they are copies, and their rows would count twice."
            raise InputError("TO603", problem, f"{first} and {file}", fix)
        common = Counter[str]()  # number of common rows by the file that has them
        for fingerprint, n_rows in tally.batches.rows.items():
            if (first := file_of_batch.setdefault(fingerprint, file)) != file:
                common[first] += n_rows
        if common:
            ((first, n_rows),) = common.most_common(1)
            problem = f"Two tallies contain the same {n_rows:,} rows, which would count twice."
            raise InputError("TO603", problem, f"{first} and {file}", fix)


def is_tally(path: str) -> bool:
    """Return whether a file is a tally, by its name or its schema."""
    from trueodds.core.json_files import read_schema_family

    return path.endswith(".tally.json") or (path.endswith(".json") and read_schema_family(path) == "trueodds.tally")


def is_calibrator(path: str) -> bool:
    from trueodds.core.json_files import read_schema_family

    return path.endswith(".json") and read_schema_family(path) == "trueodds.calibrator"


def refuse_calibrators(files: Sequence[str]) -> None:
    for file in files:
        if is_calibrator(file):
            fix = f"Apply it to predictions, and name the result: trueodds apply {file} FILE --out F."
            raise InputError("TO603", "The file is a calibrator, not predictions.", file, fix)


def refuse_repeated(files: Sequence[str]) -> None:
    """Raise an error for a file that is given twice, whose rows would count twice."""
    real_paths: set[str] = set()
    for path in _all_paths(files):
        if (real_path := os.path.realpath(path)) in real_paths:
            problem = "A file is given twice, so its rows would count twice."
            raise InputError("TO603", problem, path, "Name it once.")
        real_paths.add(real_path)


def refuse_copies(files: Sequence[str]) -> None:
    """Raise an error for a copy of a file, whose rows would count twice; other commands note copied rows."""
    sizes = {path: os.path.getsize(path) for path in _all_paths(files) if os.path.isfile(path)}
    n_of_size = Counter(size for size in sizes.values() if size >= MIN_COPY_BYTES)
    path_by_ends: dict[bytes, str] = {}
    for path in (path for path, size in sizes.items() if n_of_size[size] > 1):
        other = path_by_ends.setdefault(_digest_of_ends(path, sizes[path]), path)
        if other != path and filecmp.cmp(path, other, shallow=False):
            problem = "Two files have the same content, so their rows would count twice."
            raise InputError("TO603", problem, f"{other} and {path}", "Name one of them.")


def _all_paths(files: Sequence[str]) -> list[str]:
    return [path for file in files for path in matching_paths(os.path.expanduser(file))]


def _digest_of_ends(path: str, size: int) -> bytes:
    """Return a digest of the size, the first and the last bytes of a file, which hardly any but copies share."""
    with open(path, "rb") as content:
        ends = content.read(MIN_COPY_BYTES)
        content.seek(size - MIN_COPY_BYTES)
        ends += content.read()
    return blake2b(size.to_bytes(8, "little") + ends).digest()


def matching_paths(path: str) -> list[str]:
    """Return the path if it exists, else the files that match it as a pattern."""
    return [path] if os.path.exists(path) else glob.glob(path, recursive=True)

"""Recognize saved tallies and calibrators among the files of a command, and add tallies up."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

from trueodds.core.errors import InputError


def add_tallies(files: Sequence[str]) -> Any:
    """Return the sum of saved tallies."""
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

    A tally of an older version has none; it gets a fingerprint of its sums in place of one of each batch of rows.
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
    """Return whether a file is a saved calibrator, by its schema."""
    from trueodds.core.json_files import read_schema_family

    return path.endswith(".json") and read_schema_family(path) == "trueodds.calibrator"


def refuse_calibrators(files: Sequence[str]) -> None:
    """Raise TO603 for a calibrator among the files of predictions."""
    for file in files:
        if is_calibrator(file):
            fix = f"Apply it to predictions, and name the result: trueodds apply {file} FILE --out F."
            raise InputError("TO603", "The file is a calibrator, not predictions.", file, fix)


def refuse_repeated(files: Sequence[str]) -> None:
    """Raise an error for a file that is given twice, whose rows would count twice."""
    real_paths: set[str] = set()
    for file in files:
        for path in _matching_paths(os.path.expanduser(file)):
            if (real_path := os.path.realpath(path)) in real_paths:
                problem = "A file is given twice, so its rows would count twice."
                raise InputError("TO603", problem, path, "Name it once.")
            real_paths.add(real_path)


def _matching_paths(path: str) -> list[str]:
    """Return the path if it exists, else the files that match it as a pattern."""
    return [path] if os.path.exists(path) else glob.glob(path, recursive=True)

"""Where the reference numbers and data are, and how a test reads them; absent, the test is skipped."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(os.environ.get("TRUEODDS_REFERENCE", Path(__file__).parents[2] / "shared"))


def path(relative: str) -> Path:
    """A file of the reference folder."""
    file = ROOT / relative
    if not file.exists():
        if os.environ.get("TRUEODDS_NO_SKIPS"):
            pytest.fail(f"{relative} is not in the reference folder")
        pytest.skip(f"{relative} is not in the reference folder")
    return file


def golden(relative: str) -> Any:
    """A JSON file of reference numbers."""
    return json.loads(path(f"golden/{relative}").read_text(encoding="utf-8"))


def estimators() -> dict[str, Any]:
    """All keys of the estimators' reference numbers."""
    return {key: value for i in (1, 2, 3, 4) for key, value in golden(f"estimators/golden_part{i}.json").items()}


def frame(relative: str) -> dict[str, np.ndarray]:
    """A CSV of reference input as columns."""
    with path(f"golden/{relative}").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def columns(table: dict[str, np.ndarray], prefix: str = "p") -> np.ndarray:
    """The columns whose name is the prefix and a number, as a matrix."""
    names = [name for name in table if name.startswith(prefix) and name[len(prefix) :].isdigit()]
    return np.stack([table[name] for name in names], axis=1)


def data(name: str) -> Any:
    """A data file: npz as arrays, parquet as a pyarrow table."""
    if name.endswith(".npz"):
        return np.load(path(f"data/{name}"), allow_pickle=False)
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path(f"data/{name}"))

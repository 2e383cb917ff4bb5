"""Is whatever becomes of a file told by code, or harmless? Thousands of mutated files, read by every reader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.fuzzing import FORMATS, check
from tests.io.mutated import CSV, SETTINGS, answer, mutated
from trueodds import Predictions, read
from trueodds.data.predictions import concatenate
from trueodds.io import csv_files


def both_csv_readers(path: Path, draw: np.random.Generator, settings: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What the reader with Arrow and the one without make of a file, whole or in batches."""
    size, at_once = int(draw.choice([1, 2, 3, 5, 65536])), draw.random() < 0.5

    def rows() -> Predictions:
        source = read(path, batch_rows=size, **settings)
        return source.collect() if at_once else concatenate(list(source.batches()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "CHUNK_BYTES", int(draw.choice([8, 40, 100, 1 << 22])))
        answers = [answer(rows)]
        patch.setitem(sys.modules, "pyarrow", None)
        return [*answers, answer(rows)]


@pytest.mark.slow
def test_both_csv_readers_give_the_same_answer_on_mutated_files(tmp_path: Path) -> None:
    differing = [seed for seed in range(300) if differs(seed, tmp_path)]
    assert differing == []


def differs(seed: int, folder: Path) -> bool:
    draw = np.random.default_rng(seed)
    kind = draw.choice(list(CSV))
    path = folder / "a.csv"
    path.write_bytes(mutated(CSV[kind], draw))
    with_arrow, without = both_csv_readers(path, draw, SETTINGS[kind])
    return with_arrow != without


@pytest.mark.parametrize("name", FORMATS)
def test_a_mutated_file_is_read_with_all_of_its_rows_or_refused_with_a_code(name: str, tmp_path: Path) -> None:
    outcomes = {
        check(name, seed, tmp_path) for seed in range(60)
    }  # any other exception fails, as rows that are lost do
    assert "read" in outcomes
    assert len(outcomes) > 1

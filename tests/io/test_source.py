"""Are batches bounded, added up, and collected only where they fit?"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.io.rows import columns, write
from trueodds import InputError, read


def test_batches_of_a_parquet_file_hold_no_more_rows_than_requested(tmp_path: Path) -> None:
    # One row group of 40,000 rows: whoever read it whole would show one batch of that size.
    parquet.write_table(pa.table(columns(n=40_000)), tmp_path / "a.parquet", row_group_size=40_000)
    source = read(tmp_path / "a.parquet", batch_rows=3000)
    assert [batch.n for batch in source.batches()] == [3000] * 13 + [1000]


def test_many_classes_make_batches_shorter() -> None:
    # 2²² probabilities in a batch are 2²² / 512 = 8192 rows of 512 classes.
    P = np.full((10_000, 512), 1 / 512, dtype=np.float32)
    source = read({"label": np.zeros(10_000, int), "probs": P})
    assert [batch.n for batch in source.batches()] == [8192, 1808]


def test_batches_own_no_more_memory_than_their_rows(tmp_path: Path) -> None:
    parquet.write_table(pa.table(columns(n=60_000, k=4)), tmp_path / "a.parquet")
    source = read(tmp_path / "a.parquet", batch_rows=1000)
    source.reduce(lambda batch: batch.n)
    tracemalloc.start()
    source.reduce(lambda batch: batch.n)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60_000 * 4 * 8 / 2  # half of the probabilities; a batch is a sixtieth of them


def test_reduce_adds_up_and_tells_its_progress(tmp_path: Path) -> None:
    table = columns()
    source = read(write(tmp_path / "a.parquet", table), batch_rows=20)
    calls: list[Any] = []
    total = source.reduce(lambda batch: batch.p.sum(axis=0), progress=lambda *now: calls.append(now))
    np.testing.assert_allclose(total, sum(table[f"p_{j}"].sum() * np.eye(3)[j] for j in range(3)), rtol=1e-14)
    assert calls == [(20, 50), (40, 50), (50, 50)]
    calls.clear()
    read(write(tmp_path / "a.csv", table)).collect(progress=lambda *now: calls.append(now))
    assert calls == [(50, None)]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "feather", "npz"])
def test_rows_are_collected_only_where_they_fit(tmp_path: Path, kind: str) -> None:
    source = read(write(tmp_path / f"a.{kind}", columns()), batch_rows=10)
    assert source.collect_within(149) is None
    preds = source.collect_within(150)
    assert preds is not None
    assert preds.n == 50
    assert source.n_probabilities == (150 if kind in ("parquet", "npz") else None)


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"label": 0, "p_1": 0.5}\n' * 500 + "broken\n", encoding="utf-8")
    assert read(tmp_path / "a.jsonl", batch_rows=10).collect_within(100) is None


@pytest.mark.parametrize("kind", ["mapping", "pair"])
def test_a_batch_without_weight_goes_with_its_neighbors(kind: str) -> None:
    w = np.array([0.0, 0, 0, 1, 1, 0, 0, 0])
    y, p = np.zeros(8, int), np.full(8, 0.5)
    table = {"label": y, "p_1": p, "w": w}
    source = read(table, weight="w", batch_rows=2) if kind == "mapping" else read((y, p), weight=w, batch_rows=2)
    parts = list(source.batches())
    assert sum(part.n for part in parts) == 8
    np.testing.assert_array_equal(np.concatenate([part.w for part in parts]), w)


def test_notes_count_over_all_rows(tmp_path: Path) -> None:
    p = np.where(np.arange(40) % 4 == 0, 0.500001, 0.5)  # ten rows sum to 1.000001
    source = read({"label": np.zeros(40, int), "p_0": p, "p_1": np.full(40, 0.5)}, batch_rows=10)
    (note,) = source.collect().notes
    assert note.code == "TN101"
    assert note.text.startswith("10 rows")


def test_rounded_tables_are_admitted_by_a_tolerance() -> None:
    table = {"label": [0], "p_0": [0.33], "p_1": [0.66]}
    with pytest.raises(InputError, match="TO104"):
        read(table).collect()
    assert read(table, sum_tolerance=0.02).collect().n == 1


def test_a_source_describes_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", columns())
    description = read(path, weight="w", group="site", cluster="patient").describe()
    names = {"probs": ["p_0", "p_1", "p_2"], "label": "label", "weight": "w", "group": ["site"], "cluster": "patient"}
    assert description == {"file": path, "format": "parquet", "rows": 50, "columns": names, "notes": []}

"""Is a PyArrow RecordBatchReader read once, and is every further pass refused?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds.io import arrow

pa = pytest.importorskip("pyarrow")


def table(n: int = 300, **columns: Any) -> Any:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return pa.table({"label": (rng.random(n) < p).astype(int), "p_0": 1 - p, "p_1": p, **columns})


def reader(rows: Any) -> Any:
    return pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=40))


@pytest.mark.slow
def test_every_verb_reads_a_stream_as_it_reads_the_table() -> None:
    rows = table()
    assert to.measure(reader(rows), "ece") == to.measure(rows, "ece")
    assert to.tally(reader(rows)).score("brier")["mean"] == pytest.approx(to.tally(rows).score("brier")["mean"])
    assert str(to.fit(reader(rows), "platt")) == str(to.fit(rows, "platt"))
    verdicts = [to.audit(data, resamples=99).to_dict()["verdict"] for data in (reader(rows), rows)]
    assert verdicts[0] == verdicts[1]
    assert to.compare(reader(rows), reader(rows), "brier").difference == 0
    assert to.read(reader(rows)).collect().n == 300


def test_a_second_pass_is_refused_and_the_remedy_works() -> None:
    rows = table()
    stream = reader(rows)
    source = to.read(stream)
    preds = source.collect()
    for second_pass in (source.collect, lambda: to.tally(source), lambda: to.measure(source, "ece")):
        with pytest.raises(to.InputError, match=r"TO413.*collect\(\)"):
            second_pass()
    with pytest.raises(to.InputError, match="TO413"):
        to.measure(stream, "ece")  # a new source of the exhausted reader
    assert to.measure(preds, "ece") == to.measure(preds, "ece")


@pytest.mark.parametrize("form", ["lists", "numbers"])
def test_the_number_of_classes_is_known_without_losing_rows(form: str) -> None:
    rows = table()
    p = rows["p_1"].to_numpy()
    single = pa.table({"label": rows["label"], "p": p if form == "numbers" else np.stack([1 - p, p], axis=1).tolist()})
    source = to.read(reader(single), probs="p")
    assert source.collect().p.shape[0] == 300
    assert to.tally(to.read(reader(single), probs="p")).n == 300


def test_rows_that_do_not_fit_into_memory_are_tallied(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table()
    monkeypatch.setattr("trueodds.api.arguments.max_probabilities_in_memory", lambda: 200)
    estimate = to.measure(reader(rows), "ece")
    assert estimate.n == 300
    assert "TN405" in [note.code for note in estimate.notes]
    # If the rows that were read are too many to be kept, the call must be told to tally.
    monkeypatch.setattr(arrow, "MAX_BUFFER_BYTES", 100)
    with pytest.raises(to.InputError, match="TO413"):
        to.measure(reader(rows), "ece")
    assert to.measure(reader(rows), "ece", mode="tally").value == estimate.value


def test_an_invalid_value_names_its_row_and_a_missing_one_too() -> None:
    rows = table(50)
    values = rows["p_1"].to_numpy().copy()
    values[45] = 2.0
    broken = rows.set_column(2, "p_1", pa.array(values))
    with pytest.raises(to.InputError, match=r"TO102.*row 45"):
        to.read(reader(broken)).collect()
    missing = rows.set_column(2, "p_1", pa.array([*values[:41], None, *values[42:]]))
    with pytest.raises(to.InputError, match=r"row 41"):
        to.read(reader(missing)).collect()


def test_a_stream_without_rows_is_refused() -> None:
    rows = table(10)
    with pytest.raises(to.InputError, match="TO413"):
        to.measure(reader(rows.slice(0, 0)), "ece")

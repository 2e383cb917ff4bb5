"""Are the classes of columns recognized by the labels, as tidymodels, KNIME and others name the columns?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from trueodds import InputError, Predictions, read

P_YES = [0.25, 0.5, 0.875, 0.75]
LABELS = ["No", "No", "Yes", "No"]


def table(no: str, yes: str, labels: list[str] = LABELS, **more: Any) -> dict[str, Any]:
    return {no: [1 - p for p in P_YES], yes: P_YES, "truth": labels} | more


def sources(columns: dict[str, Any], folder: Path) -> list[Any]:
    """The same columns as files and data frames."""
    frame = pd.DataFrame(columns)
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    frame.to_json(folder / "a.jsonl", orient="records", lines=True)
    frame.to_feather(folder / "a.feather")
    files = [folder / f"a.{suffix}" for suffix in ("csv", "parquet", "jsonl", "feather")]
    return [*files, frame, pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)]


@pytest.mark.parametrize(
    ("no", "yes"),
    [
        (".pred_No", ".pred_Yes"),
        ("P (Churn=No)", "P (Churn=Yes)"),
        ("probability(No)", "probability(Yes)"),
        ("No", "Yes"),
    ],
)
def test_listed_columns_are_the_classes_that_the_labels_name(tmp_path: Path, no: str, yes: str) -> None:
    """Regression: the classes were the whole names of the columns, which no label is."""
    for source in sources(table(no, yes), tmp_path):
        for names in ([no, yes], [yes, no]):
            preds = read(source, label="truth", probs=names).collect()
            assert preds.classes == (("No", "Yes") if names == [no, yes] else ("Yes", "No"))
            assert preds.P[:, preds.classes.index("Yes")].tolist() == P_YES
            assert [preds.classes[y] for y in preds.y] == LABELS


def test_columns_of_a_frame_of_probabilities_are_the_classes_that_the_labels_name() -> None:
    frame = pd.DataFrame({"P (Churn=Yes)": P_YES, "P (Churn=No)": [1 - p for p in P_YES]})
    preds = Predictions(LABELS, frame)
    assert (preds.classes, preds.y.tolist()) == (("Yes", "No"), [1, 1, 0, 1])


def test_a_batch_with_a_single_class_has_the_classes_of_the_others(tmp_path: Path) -> None:
    pd.DataFrame(table(".pred_No", ".pred_Yes")).to_csv(tmp_path / "a.csv", index=False)
    source = read(tmp_path / "a.csv", label="truth", probs=[".pred_No", ".pred_Yes"], batch_rows=2)
    assert [batch.classes for batch in source.batches()] == [("No", "Yes")] * 2


def test_labels_that_are_whole_names_of_columns_are_these() -> None:
    columns = {"a": [0.5, 0.25], "ba": [0.5, 0.75], "label": ["a", "ba"]}
    assert read(columns, probs=["a", "ba"]).collect().classes == ("a", "ba")


def test_a_part_of_the_names_that_is_not_unique_is_not_guessed() -> None:
    columns = {"xa": [0.5], "xxa": [0.5], "label": ["b"]}
    with pytest.raises(InputError, match=r"TO105.*'b' in row 0.*\['xa', 'xxa'\]"):
        read({name: [*cells] * 2 for name, cells in columns.items()}, probs=["xa", "xxa"]).collect()


def test_a_label_beside_those_of_the_columns_is_named(tmp_path: Path) -> None:
    labels = [*LABELS[:3], "NA"]
    with pytest.raises(InputError, match=r"TO105.*'NA' in row 3 .*\['No', 'Yes'\]"):
        read(table(".pred_No", ".pred_Yes", labels), label="truth", probs=[".pred_No", ".pred_Yes"]).collect()


def test_classes_in_another_order_than_the_columns_are_refused() -> None:
    data = table("P (Churn=No)", "P (Churn=Yes)")
    names = ["P (Churn=No)", "P (Churn=Yes)"]
    with pytest.raises(InputError, match="TO113"):
        read(data, label="truth", probs=names, classes=["Yes", "No"]).collect()
    assert read(data, label="truth", probs=names, classes=["No", "Yes"]).collect().y.tolist() == [0, 0, 1, 0]


def test_a_star_leaves_out_the_text_of_the_predicted_class(tmp_path: Path) -> None:
    """Regression: the column of the predicted class was an error, although it cannot be a probability."""
    predicted = pd.Categorical(["No", "No", "Yes", "Yes"])
    for source in sources(table(".pred_No", ".pred_Yes") | {".pred_class": list(predicted)}, tmp_path):
        preds = read(source, label="truth", probs=".pred_*").collect()
        assert (preds.classes, preds.p[:, 1].tolist()) == (("No", "Yes"), P_YES)
        (note,) = (note for note in preds.notes if note.code == "TN314")
        assert ".pred_class" in note.text


def test_a_column_of_text_is_refused_if_a_single_column_would_remain() -> None:
    data = pd.DataFrame({"p_yes": P_YES, "p_class": LABELS, "label": [0, 0, 1, 0]})
    with pytest.raises(InputError, match=r"TO307.*'p_class'"):
        read(data).collect()


def test_text_is_left_out_of_a_pattern_by_every_source_of_typed_columns(tmp_path: Path) -> None:
    """Regression: archives, lists, and categories of lazy frames and relations were read as probabilities."""
    columns = {"label": [0, 0, 1, 0], "p_no": [1 - p for p in P_YES], "p_yes": P_YES, "p_source": list("abab")}
    np.savez(tmp_path / "a.npz", **{name: np.array(cells) for name, cells in columns.items()})
    frame = pl.DataFrame(columns)
    query = frame.with_columns(p_source=pl.col("p_source").cast(pl.Enum(["a", "b"]))).lazy()
    connection = duckdb.connect()
    connection.register("rows", pd.DataFrame(columns))
    relation = connection.sql("select * exclude (p_source), p_source::enum('a', 'b') as p_source from rows")
    for source in (tmp_path / "a.npz", columns, query, relation):
        preds = read(source).collect()
        assert (preds.k, [note.code for note in preds.notes]) == (2, ["TN314"])

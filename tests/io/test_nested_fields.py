"""Are fields inside cells read by their paths, in every kind of file and frame?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import feather, parquet

from tests.io.test_columns import refusal
from trueodds import measure, read
from trueodds.io.recalibrated_files import recalibrate_stated, rewrite
from trueodds.io.source import Source

NAMES = ("cat", "ant", "dog")
FORMS = (
    "parquet",
    "feather",
    "jsonl",
    "arrow table",
    "pandas",
    "pyarrow pandas",
    "polars",
    "lazy polars",
    "duckdb",
    "mapping",
)


def probabilities(n: int = 40) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Probabilities of cat, ant and dog, and the number of the observed one."""
    draw = np.random.default_rng(5)
    P = draw.dirichlet(np.ones(3), n)
    return P, np.array([draw.choice(3, p=row) for row in P])


def nested_rows() -> list[dict[str, Any]]:
    """The same probabilities in every layout; lists of classes have another order in each row."""
    draw, rows = np.random.default_rng(6), []
    for p, y in zip(*probabilities(), strict=True):
        order = draw.permutation(3).tolist()
        rows.append(
            {
                "instance": {"target": NAMES[y], "weight": 1.0 + y, "site": {"name": "north" if y else "south"}},
                "prediction": {"classes": [NAMES[c] for c in order], "scores": [p[c] for c in order]},
                "pairs": [{"label": NAMES[c], "prob": p[c]} for c in order],
                "probs": dict(zip(NAMES, p.tolist(), strict=True)),
            }
        )
    return rows


def open_form(form: str, folder: Path, rows: list[dict[str, Any]]) -> Any:
    """The rows as a file or frame."""
    table = pa.Table.from_pylist(rows)
    path = str(folder / f"rows.{form}")
    if form == "parquet":
        parquet.write_table(table, path, row_group_size=13)
    elif form == "feather":
        feather.write_feather(table, path)
    elif form == "jsonl":
        Path(path).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    else:
        return {
            "arrow table": lambda: table,
            "pandas": table.to_pandas,
            "pyarrow pandas": lambda: table.to_pandas(types_mapper=pd.ArrowDtype),
            "polars": lambda: pl.DataFrame(rows),
            "lazy polars": lambda: pl.DataFrame(rows).lazy(),
            "duckdb": lambda: duckdb.from_arrow(table),
            "mapping": lambda: {name: [row[name] for row in rows] for name in rows[0]},
        }[form]()
    return path


def by_name(source: Source) -> tuple[NDArray[np.float64], list[str]]:
    """The probabilities of cat, ant and dog, and the names of the labels."""
    preds = source.collect()
    assert preds.y is not None
    return preds.P[:, [preds.classes.index(name) for name in NAMES]], [preds.classes[y] for y in preds.y]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("probs", ["prediction.scores", "prediction", "pairs", "pairs.*", "probs", "probs.*"])
def test_classes_are_found_by_name_whatever_their_order_in_a_row(tmp_path: Path, form: str, probs: str) -> None:
    P, y = probabilities()
    source = read(open_form(form, tmp_path, nested_rows()), label="instance.target", probs=probs, batch_rows=7)
    read_P, labels = by_name(source)
    np.testing.assert_array_equal(read_P, P)
    assert labels == [NAMES[c] for c in y]
    # Batches of seven rows, as a tally reads them, hold the same values.
    batches = [batch.P[:, [batch.classes.index(name) for name in NAMES]] for batch in source.batches()]
    np.testing.assert_array_equal(np.concatenate(batches), P)


@pytest.mark.parametrize("form", FORMS)
def test_weights_groups_and_listed_classes_may_be_fields(tmp_path: Path, form: str) -> None:
    P, y = probabilities()
    data = open_form(form, tmp_path, nested_rows())
    columns = {"label": "instance.target", "weight": "instance.weight", "group": ["instance.site.name"]}
    preds = read(data, probs=["probs.ant", "probs.cat", "probs.dog"], **columns).collect()
    assert preds.classes == ("ant", "cat", "dog")
    np.testing.assert_array_equal(preds.p, P[:, [1, 0, 2]])
    assert preds.w.tolist() == (1.0 + y).tolist()
    assert preds.group["instance.site.name"].tolist() == ["north" if c else "south" for c in y]


@pytest.mark.parametrize("form", ["parquet", "pandas", "polars"])
def test_confidence_and_logits_may_be_fields(tmp_path: Path, form: str) -> None:
    rows = [{"label": y, "pred": {"yes": p, "z": {"a": 0.0, "b": z}}} for y, p, z in ((1, 0.7, 2.0), (0, 0.4, -1.0))]
    data = open_form(form, tmp_path, rows)
    assert read(data, confidence="pred.yes", correct="label").collect().p.tolist() == [0.7, 0.4]
    logits = read(data, logits="pred.z.*").collect().logits
    assert logits is not None
    assert logits.tolist() == [[0.0, 2.0], [0.0, -1.0]]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "pandas", "arrow table"])
def test_vectors_of_spark_are_dense_or_sparse(tmp_path: Path, form: str) -> None:
    vectors = [
        {"type": 1, "size": None, "indices": None, "values": [0.2, 0.3, 0.5]},
        {"type": 0, "size": 3, "indices": [2], "values": [1.0]},
        {"type": 0, "size": 3, "indices": [0, 1], "values": [0.4, 0.6]},
    ]
    rows = [{"label": y, "probability": vector} for y, vector in zip((2, 2, 0), vectors, strict=True)]
    expected = [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0], [0.4, 0.6, 0.0]]
    assert read(open_form(form, tmp_path, rows), probs="probability").collect().p.tolist() == expected
    assert read(open_form(form, tmp_path, rows[:1]), probs="probability").collect().p.tolist() == expected[:1]


def test_maps_of_parquet_are_lists_of_classes(tmp_path: Path) -> None:
    probs_by_class = pa.array(
        [[("no", 0.3), ("yes", 0.7)], [("yes", 0.2), ("no", 0.8)]], pa.map_(pa.string(), pa.float64())
    )
    parquet.write_table(pa.table({"label": ["yes", "no"], "m": probs_by_class}), tmp_path / "m.parquet")
    assert read(str(tmp_path / "m.parquet"), probs="m").collect().p.tolist() == [[0.3, 0.7], [0.8, 0.2]]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "pandas", "polars"])
def test_a_row_with_other_classes_is_an_error_that_names_it(tmp_path: Path, form: str) -> None:
    rows = [{"label": "a", "q": [{"label": name, "score": 0.5} for name in names]} for names in ("ab", "ac")]
    with refusal("TO308", "q.b", "row 1"):
        read(open_form(form, tmp_path, rows), probs="q").collect()
    rows[1]["q"] = [{"label": name, "score": 0.5} for name in "abc"]
    with refusal("TO310", "'q'", "3 values in row 1 after rows of 2"):
        read(open_form(form, tmp_path, rows), probs="q").collect()
    rows[1]["q"] = [{"label": "a", "score": 0.5}, {"label": "a", "score": 0.5}]
    with refusal("TO308", "row 1"):
        read(open_form(form, tmp_path, rows), probs="q").collect()


def test_numbers_as_labels_do_not_count_classes_that_each_row_names() -> None:
    def frame(labels: list[Any], first: Any, second: Any) -> pd.DataFrame:
        pairs = [[{"label": first, "prob": p}, {"label": second, "prob": 1 - p}] for p in (0.3, 0.6)]
        return pd.DataFrame({"label": labels, "q": pairs})

    # Label 1 may be the second class of the list in the file, or the second by name.
    data = frame([0, 1], "no", "a")
    with refusal("TO357", "a, no", r"probs=\['q.a', 'q.no'\]"):
        read(data, probs="q").collect()
    with refusal("TO357"):
        read(data, probs="q", classes=["x", "y"]).collect()
    preds = read(data, probs=["q.no", "q.a"]).collect()  # the remedy, in the order that is meant
    assert (preds.classes, preds.p[:, 0].tolist()) == (("no", "a"), [0.3, 0.6])
    with refusal("TO105", "'no' in row 1", r"probs=\['q.0', 'q.1'\] and classes="):
        read(frame(["yes", "no"], "1", "0"), probs="q").collect()
    renamed = read(frame(["yes", "no"], "1", "0"), probs=["q.0", "q.1"], classes=["no", "yes"]).collect()
    assert renamed.p[:, 1].tolist() == [0.3, 0.6]  # the remedy
    assert read(frame([0, 1], "1", "0"), probs="q").collect().p[:, 1].tolist() == [0.3, 0.6]
    assert read(frame([False, True], True, False), probs="q").collect().p[:, 1].tolist() == [0.3, 0.6]


@pytest.mark.parametrize("form", ["parquet", "jsonl", "pandas", "polars", "duckdb"])
def test_a_column_whose_name_has_a_dot_comes_before_a_field(tmp_path: Path, form: str) -> None:
    rows = [{"label": 1, "p": {"yes": 0.1}, "p.yes": 0.9}, {"label": 0, "p": {"yes": 0.2}, "p.yes": 0.8}]
    data = open_form(form, tmp_path, rows)
    assert read(data, probs="p.yes").collect().p.tolist() == [0.9, 0.8]
    with refusal("TO313", "'p'", "p.yes"):
        read(data, probs="p")
    assert read(data, probs="p.*").collect().p.tolist() == [0.9, 0.8]  # the remedy


@pytest.mark.parametrize("form", ["parquet", "feather", "pandas", "polars", "lazy polars", "arrow table", "duckdb"])
def test_a_missing_cell_is_reported_with_its_row_even_if_it_is_the_first(tmp_path: Path, form: str) -> None:
    rows = [{"label": 0, "s": None}, {"label": 1, "s": {"a": 0.3, "b": 0.7}}]
    for probs in ("s", "s.b", "s.*"):
        with refusal("TO308", "row 0"):
            read(open_form(form, tmp_path, rows), probs=probs).collect()


@pytest.mark.parametrize("form", ["jsonl", "mapping"])
def test_fields_are_looked_up_in_the_first_cell_that_is_not_null(tmp_path: Path, form: str) -> None:
    rows = [{"label": 0, "s": None}, {"label": 1, "s": {"a": 0.3, "b": 0.7}}]
    for probs in ("s", "s.b", "s.*"):
        with refusal("TO308", "row 0"):
            read(open_form(form, tmp_path, rows), probs=probs).collect()


@pytest.mark.parametrize("form", FORMS)
def test_a_star_leaves_out_fields_of_text(tmp_path: Path, form: str) -> None:
    # Fields in the order of the alphabet: older versions of pyarrow sort those of Python's dictionaries.
    rows = [{"label": "bc"[y], "s": {"a": "bc"[y], "b": 1 - p, "c": p}} for y, p in ((0, 0.1), (1, 0.75))]
    source = read(open_form(form, tmp_path, rows), probs="s.*")
    assert source.collect().p.tolist() == [[0.9, 0.1], [0.25, 0.75]]
    assert source.collect().classes == ("b", "c")
    assert [note.text for note in source.notes] == ["probs 's.*' also matches the text in s.a, which was not read."]
    with refusal("TO307", "a, b, c", r"probs='s\.\*'"):
        read(open_form(form, tmp_path, rows), probs="s")


@pytest.mark.parametrize("form", ["parquet", "feather", "jsonl"])
def test_fields_are_read_beside_columns_in_the_names_of_folders(tmp_path: Path, form: str) -> None:
    for site in ("north", "south"):
        folder = tmp_path / "data" / f"site={site}"
        folder.mkdir(parents=True)
        rows = [{"label": 1, "s": {"a": 0.3, "b": 0.7}}, {"label": 0, "s": {"a": 0.6, "b": 0.4}}]
        open_form(form, folder, rows)
    preds = read(str(tmp_path / "data" / "*" / f"rows.{form}"), probs="s.*", group="site").collect()
    assert preds.p.tolist() == [[0.3, 0.7], [0.6, 0.4]] * 2
    assert preds.group is not None
    assert preds.group["site"].tolist() == ["north", "north", "south", "south"]
    with refusal("TO304", "site.name"):
        read(str(tmp_path / "data" / "*" / f"rows.{form}"), probs="s.*", group="site.name")


def test_a_column_of_a_text_file_has_no_fields(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("label;p;s\n1;0,5;x\n0;0,25;y\n", encoding="utf-8")
    with refusal("TO304", "p.yes"):
        read(str(path), probs="p.yes")


def test_errors_name_the_fields_that_exist(tmp_path: Path) -> None:
    data = open_form("jsonl", tmp_path, nested_rows())
    with refusal("TO304", "instance.targt", "Did you mean instance.target"):
        read(data, label="instance.targt", probs="probs")
    with refusal("TO307", "instance", "target, weight, site", "Name the field"):
        read(data, label="instance.target", probs="instance")
    with refusal("TO304", "label='label'"):
        read(data, probs="prediction.scores")
    rows = [{"label": 1, "s": {"model": "m1", "probs": [0.2, 0.8], "version": 2}}]
    with refusal("TO307", "model, probs, version", "probs='s.probs'"):
        read(open_form("pandas", tmp_path, rows), probs="s")
    assert read(open_form("pandas", tmp_path, rows), probs="s.probs").collect().p.tolist() == [[0.2, 0.8]]


def test_recalibrated_fields_become_columns(tmp_path: Path) -> None:
    P, _ = probabilities()
    for form in ("jsonl", "parquet"):
        source = read(open_form(form, tmp_path, nested_rows()), label=None, probs="pairs")
        out = tmp_path / f"out.{form}"
        assert rewrite(source, lambda Q: Q[:, ::-1], out)[0] == len(P)
        written = read(str(out), label="instance.target", probs="pairs.*").collect()
        assert written.classes == ("ant", "cat", "dog")
        np.testing.assert_array_equal(written.p, P[:, [2, 0, 1]])  # those of dog, cat and ant
        np.testing.assert_array_equal(by_name(read(str(out), label="instance.target", probs="probs"))[0], P)


def test_a_measure_of_fields_is_that_of_the_columns(tmp_path: Path) -> None:
    P, y = probabilities()
    source = read(open_form("parquet", tmp_path, nested_rows()), label="instance.target", probs="prediction.scores")
    expected = np.mean(((np.eye(3)[y] - P) ** 2).sum(axis=1))
    assert float(measure(source, "brier", interval=None)) == pytest.approx(expected, rel=1e-12)
    tallied = measure(source, "brier", interval=None, mode="tally")
    assert float(tallied) == pytest.approx(expected, rel=1e-12)


def test_the_field_that_was_read_is_replaced_where_a_shorter_path_exists_too(tmp_path: Path) -> None:
    record = {"out": {"top": 1}, "out.top": {"score": 0.5}}
    recalibrate_stated([record], lambda p: p / 2, str(tmp_path / "new.jsonl"), confidence="out.top.score")
    written = json.loads((tmp_path / "new.jsonl").read_text(encoding="utf-8"))
    assert written == {"out": {"top": 1}, "out.top": {"score": 0.25}}

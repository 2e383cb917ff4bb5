"""Do integer labels keep their meaning when files have the columns of probabilities in different orders?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.test_columns import refusal
from trueodds import Predictions, compare, fit, measure, read, tally
from trueodds.calibrators.fitted_calibrator import load
from trueodds.io.columns import ColumnSelection
from trueodds.io.frames import open_table
from trueodds.io.table_source import ReadingSettings, TableHeader

pd = pytest.importorskip("pandas")

NAMES = ["ant", "bee", "cat"]


def animals(names: list[str], seed: int = 0, *, text: bool = False) -> Any:
    """200 rows with labels 0, 1, 2 for ant, bee, cat, and the columns in the order of `names`."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 2, 3], 200)
    y = (P.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    columns = {f"p_{name}": P[:, NAMES.index(name)] for name in names}
    return pd.DataFrame({"label": np.array(NAMES)[y] if text else y, **columns})


def saved(folder: Path, name: str, frame: Any) -> str:
    frame.to_csv(folder / name, index=False)
    return str(folder / name)


REORDERED = ["bee", "ant", "cat"]
LISTED = ["p_ant", "p_bee", "p_cat"]


@pytest.fixture
def two_files(tmp_path: Path) -> list[str]:
    return [saved(tmp_path, "a.csv", animals(NAMES)), saved(tmp_path, "b.csv", animals(REORDERED, 1))]


@pytest.mark.parametrize("mode", ["exact", "tally"])
def test_integer_labels_and_columns_in_other_orders_are_refused(two_files: list[str], mode: str) -> None:
    orders = "p_ant, p_bee, p_cat and p_bee, p_ant, p_cat in a.csv and b.csv"
    with refusal("TO309", orders, r"probs=\['p_ant', 'p_bee', 'p_cat'\]"):
        measure(two_files, "brier", mode=mode)


def test_of_many_columns_the_first_that_differs_is_named(tmp_path: Path) -> None:
    names = [f"p_species{letter}" for letter in "abcdefghijklmnopqrst"]
    frame = pd.DataFrame(np.full((2, 20), 0.05), columns=names).assign(label=[0, 1])
    files = [saved(tmp_path, "a.csv", frame), saved(tmp_path, "b.csv", frame[[*names[:5], *names[:4:-1], "label"]])]
    with refusal("TO309", "column 5 p_speciesf and p_speciest in a.csv and b.csv"):
        read(files).collect()


def test_numbers_in_the_names_tell_which_column_a_label_means_in_any_order(tmp_path: Path) -> None:
    names = ["p_class0", "p_class1", "p_class2"]
    frame = pd.DataFrame([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], columns=names).assign(label=[0, 2])
    files = [saved(tmp_path, "a.csv", frame), saved(tmp_path, "b.csv", frame[[*names[::-1], "label"]])]
    for ordered in (files, files[::-1]):
        # every observed class has the largest probability: the Brier score is the mean of .14 and .06
        assert measure(ordered, "brier", interval=None).value == pytest.approx(0.1)


def test_a_pattern_of_files_is_refused_too(two_files: list[str], tmp_path: Path) -> None:
    assert len(two_files) == 2
    with refusal("TO309"):
        tally(str(tmp_path / "*.csv"))


def test_listed_columns_give_the_same_result_in_any_order_of_files(two_files: list[str]) -> None:
    expected = pd.concat([animals(NAMES), animals(NAMES, 1)])
    value = measure(read(expected), "brier").value
    for files in (two_files, two_files[::-1]):
        assert measure(read(files, probs=LISTED), "brier").value == pytest.approx(value, rel=1e-12)


def test_text_labels_are_matched_by_name_in_any_order(tmp_path: Path) -> None:
    files = [
        saved(tmp_path, "a.csv", animals(NAMES, text=True)),
        saved(tmp_path, "b.csv", animals(REORDERED, 1, text=True)),
    ]
    expected = measure(read(pd.concat([animals(NAMES), animals(NAMES, 1)])), "brier").value
    for order in (files, files[::-1]):
        assert measure(read(order), "brier").value == pytest.approx(expected, rel=1e-12)


def test_numbered_columns_are_matched_by_number_in_any_order(tmp_path: Path) -> None:
    first = animals(NAMES).set_axis(["label", "p_0", "p_1", "p_2"], axis=1)
    files = [saved(tmp_path, "a.csv", first), saved(tmp_path, "b.csv", first[["label", "p_1", "p_0", "p_2"]])]
    value = measure(read(first), "brier").value
    for order in (files, files[::-1]):
        assert measure(read(order), "brier").value == pytest.approx(value, rel=1e-12)


def test_a_partition_with_another_order_is_refused_unless_its_labels_are_names() -> None:
    selection = ColumnSelection()
    for text in (False, True):
        head = open_table(animals(NAMES, text=text))
        settings = ReadingSettings(selection, first_table=TableHeader("first", selection.resolve(head)))
        source = settings.make_source([open_table(animals(REORDERED, text=text))])
        if text:
            preds = source.collect()
            assert preds.classes == tuple(NAMES)
            assert preds.p.tolist() == read(animals(NAMES)).collect().p.tolist()
        else:
            with refusal("TO309", "in first and "):
                source.collect()


def test_tallies_of_integer_labels_remember_the_columns() -> None:
    first, other = tally(animals(NAMES)), tally(animals(REORDERED, 1))
    assert (first.classes, other.classes) == (("ant", "bee", "cat"), ("bee", "ant", "cat"))
    with refusal("TO401", "'ant', 'bee', 'cat'", "'bee', 'ant', 'cat'"):
        first + other
    merged = first + tally(read(animals(REORDERED, 1), probs=LISTED))
    assert merged.n == 400


def test_a_calibrator_of_integer_labels_remembers_the_columns(tmp_path: Path) -> None:
    fit(animals(NAMES), "vector").save(tmp_path / "cal.json")
    calibrator = load(tmp_path / "cal.json")
    assert calibrator.classes == ("ant", "bee", "cat")
    frame = animals(REORDERED)[["p_bee", "p_ant", "p_cat"]]
    with refusal("TO501", "p_bee, p_ant, p_cat"):
        calibrator.predict_proba(frame)


def test_a_class_lens_takes_the_number_or_the_name_of_a_column() -> None:
    frame = animals(NAMES)
    assert measure(frame, "ece", lens="class:1").value == measure(frame, "ece", lens="class:bee").value


@pytest.mark.parametrize("probs", ["p_*", ["p_bee", "p_ant", "p_cat"]])
def test_classes_that_are_the_columns_in_another_order_are_refused(probs: Any) -> None:
    with refusal("TO113", "ant, bee, cat for the columns p_bee, p_ant, p_cat", r"probs=\['p_ant', 'p_bee', 'p_cat'\]"):
        read(animals(REORDERED), probs=probs, classes=NAMES).collect()


def test_classes_in_the_order_of_the_columns_and_new_names_are_accepted() -> None:
    assert read(animals(NAMES), classes=NAMES).collect().classes == tuple(NAMES)
    assert read(animals(REORDERED), classes=["x", "y", "z"]).collect().classes == ("x", "y", "z")


def test_new_names_of_columns_in_several_orders_are_refused(two_files: list[str]) -> None:
    with refusal("TO309"):
        read(two_files, classes=["x", "y", "z"]).collect()
    assert read(two_files, classes=NAMES).collect().n == 400  # the names say which column is which


def test_models_with_equal_integer_labels_and_other_orders_are_not_compared() -> None:
    models = {"a": read(animals(NAMES)).collect(), "b": read(animals(REORDERED)).collect()}
    with refusal("TO205", "ant, bee, cat and bee, ant, cat"):
        compare(models, "brier", resamples=99)


def test_a_file_with_names_is_compared_by_row_with_arrays_without() -> None:
    frame = animals(NAMES)
    arrays = Predictions(frame["label"].to_numpy(), frame[LISTED].to_numpy())
    assert "unpaired" not in str(compare({"a": read(frame).collect(), "b": arrays}, "brier", resamples=99))


def test_rows_that_do_not_sum_to_one_name_the_columns_that_were_read() -> None:
    with refusal("TO104", "The columns read are p_ant, p_bee; the similar P_cat is not."):
        read(animals(NAMES).rename(columns={"p_cat": "P_cat"})).collect()
    with refusal("TO104", "The columns read are p_ant, p_bee, p_cat, p_value."):
        read(animals(NAMES).assign(p_value=0.5)).collect()

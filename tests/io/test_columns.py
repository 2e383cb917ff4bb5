"""Are names and patterns settled as they were meant?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.io.rows import FILES, columns, write
from trueodds import InputError, Predictions, read
from trueodds.data.predictions import concatenate

PETS = {"label": ["dog", "cat", "eel"], "p_cat": [0.2, 0.5, 0.1], "p_dog": [0.5, 0.3, 0.2], "p_eel": [0.3, 0.2, 0.7]}
UNTYPED = ("csv", "jsonl")


def refusal(code: str, *words: str) -> Any:
    return pytest.raises(InputError, match=rf"\[{code}\]" + "".join(f".*{word}" for word in words))


@pytest.mark.parametrize("kind", FILES)
def test_text_labels_are_what_the_star_stands_for(tmp_path: Path, kind: str) -> None:
    preds = read(write(tmp_path / f"a.{kind}", PETS)).collect()
    assert preds.classes == ("cat", "dog", "eel")
    assert preds.y.tolist() == [1, 0, 2]


def test_columns_keep_the_order_of_the_file() -> None:
    preds = read({"label": [0, 1], "p_z": [0.9, 0.2], "p_a": [0.1, 0.8]}).collect()
    assert preds.p.tolist() == [[0.9, 0.1], [0.2, 0.8]]
    assert (preds.classes, preds.y.tolist()) == (("z", "a"), [0, 1])  # whole numbers mean columns: 0 is p_z


def test_columns_numbered_out_of_order_are_matched_by_their_number() -> None:
    # As sorted by name: p_0, p_1, p_10, p_2, …: label 2 is column p_2, which stands fourth, not third.
    names = sorted(str(i) for i in range(11))
    P = np.eye(11)
    source = read({"label": np.arange(11)} | {f"p_{name}": P[:, int(name)] for name in names})
    preds = source.collect()
    assert preds.p[np.arange(11), preds.y].tolist() == [1.0] * 11
    assert source.notes[0].code == "TN302"


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "feather", "npz"])
def test_a_column_of_lists_holds_a_row_of_probabilities(tmp_path: Path, kind: str) -> None:
    table = columns()
    P = np.stack([table[f"p_{j}"] for j in range(3)], axis=1)
    source = read(write(tmp_path / f"a.{kind}", {"label": table["label"], "probs": P}), probs="probs", batch_rows=13)
    np.testing.assert_array_equal(source.collect().p, P)
    np.testing.assert_array_equal(np.concatenate([batch.p for batch in source.batches()]), P)
    if kind in ("parquet", "npz"):
        assert source.n_probabilities == 150


@pytest.mark.parametrize("kind", FILES)
def test_one_column_of_numbers_is_the_second_class(tmp_path: Path, kind: str) -> None:
    preds = read(write(tmp_path / f"a.{kind}", {"label": [0, 1], "score": [0.25, 0.75]}), probs="score").collect()
    assert preds.p.tolist() == [0.25, 0.75]
    assert preds.k == 2


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_columns_can_be_listed_in_an_order_of_their_own(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", {"label": [0], "no": [0.25], "yes": [0.75]})
    assert read(path, probs=["yes", "no"]).collect().p.tolist() == [[0.75, 0.25]]


@pytest.mark.parametrize("kind", FILES)
def test_logits_become_their_softmax(tmp_path: Path, kind: str) -> None:
    table = {"label": np.array([0, 1]), "z_0": np.array([1.5, -2.0]), "z_1": np.array([0.0, 3.0])}
    expected = Predictions.from_logits(table["label"], np.stack([table["z_0"], table["z_1"]], axis=1))
    path = write(tmp_path / f"a.{kind}", table)
    np.testing.assert_array_equal(read(path, logits="z_*").collect().p, expected.p)
    np.testing.assert_array_equal(read(path, probs="z_*", logits=True).collect().p, expected.p)


@pytest.mark.parametrize("kind", FILES)
def test_confidence_goes_with_correctness(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / f"a.{kind}", {"c": np.array([0.9, 0.6]), "ok": np.array([1, 0])})
    preds = read(path, confidence="c", correct="ok").collect()
    assert preds.kind == "confidence"
    assert preds.y.tolist() == [1, 0]


@pytest.mark.parametrize("kind", UNTYPED)
def test_true_and_false_are_read_from_text(tmp_path: Path, kind: str) -> None:
    text = {"csv": "c,ok\n0.9,true\n0.6,false\n", "jsonl": '{"c": 0.9, "ok": true}\n{"c": 0.6, "ok": false}\n'}
    (tmp_path / f"a.{kind}").write_text(text[kind], encoding="utf-8")
    assert read(tmp_path / f"a.{kind}", confidence="c", correct="ok").collect().y.tolist() == [1, 0]


def test_votes_are_matched_to_probabilities_by_name() -> None:
    table = {"v_b": [3, 0], "v_a": [1, 2], "p_a": [0.3, 0.9], "p_b": [0.7, 0.1]}
    preds = read(table, votes="v_*").collect()
    assert preds.votes.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert preds.classes == ("a", "b")
    with refusal("TO313", "'v_c'"):
        read(table | {"v_c": [0, 0], "p_d": [0, 0]}, votes="v_*")


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("settings", [{"logits": "z_*"}, {"logits": True, "probs": "z_*"}], ids=["pattern", "flag"])
def test_logits_with_votes_are_what_python_makes_of_them(tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    draw = np.random.default_rng(0)
    votes, z = draw.multinomial(9, [0.2, 0.3, 0.5], 40), draw.normal(size=(40, 3))
    table = {f"v_{name}": votes[:, j] for j, name in ((2, "c"), (0, "a"), (1, "b"))}
    table |= {f"z_{name}": z[:, j] for j, name in enumerate("abc")}
    source = read(write(tmp_path / f"a.{kind}", table), votes="v_*", **settings)
    expected = Predictions.from_logits(votes, z, classes=list("abc"))
    for preds in (source.collect(), concatenate(list(source.batches()))):
        assert preds.classes == expected.classes
        for name in ("p", "logits", "votes", "counts"):
            np.testing.assert_array_equal(getattr(preds, name), getattr(expected, name))
    assert source.describe()["columns"] == {"logits": ["z_a", "z_b", "z_c"], "votes": ["v_a", "v_b", "v_c"]}


def test_multilabel_outcomes_are_matched_to_probabilities_by_name() -> None:
    table = {"y_red": [1, 0], "y_big": [0, 1], "p_big": [0.2, 0.9], "p_red": [0.8, 0.4]}
    preds = read(table, multilabel="y_*").collect()
    assert preds.kind == "multilabel"
    assert preds.y.tolist() == [[0, 1], [1, 0]]


def test_a_pattern_leaves_out_columns_with_another_use_and_says_so() -> None:
    table = {"p_label": [0, 1], "p_0": [0.9, 0.2], "p_1": [0.1, 0.8], "p_weight": [1.0, 2.0], "p_site": ["a", "b"]}
    source = read(table, label="p_label", weight="p_weight", group="p_site")
    assert source.collect().p.tolist() == [[0.9, 0.1], [0.2, 0.8]]
    assert [note.code for note in source.notes] == ["TN301"] * 3
    assert "'p_label'" in str(source.notes[0])
    assert source.describe()["columns"]["probs"] == ["p_0", "p_1"]


def test_arrays_may_bear_their_usual_names() -> None:
    preds = read({"labels": np.array([0, 1]), "probs": np.array([[0.9, 0.1], [0.2, 0.8]])}).collect()
    assert preds.y.tolist() == [0, 1]


@pytest.mark.parametrize("use", ["label", "weight", "group", "cluster", "votes", "logits"])
def test_a_missing_column_is_an_error_that_lists_the_near_ones(use: str) -> None:
    table = {"label": [0], "p_0": [0.5], "p_1": [0.5], "weight": [1.0]}
    with refusal("TO304", f"{use}='wieght'", "Did you mean weight"):
        read(table, **{use: "wieght"})


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    with refusal("TO305", r"q_\*"):
        read({"label": [0], "p_0": [0.5]}, probs="q_*")


def test_two_columns_of_one_name_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("label,p_0,p_0\n0,0.5,0.5\n", encoding="utf-8")
    with refusal("TO313", "'p_0'"):
        read(tmp_path / "a.csv")
    with refusal("TO313", "twice"):
        read({"label": [0], "p_0": [0.5]}, probs=["p_0", "p_0"])


@pytest.mark.parametrize(
    "choice",
    [
        {"multilabel": "v_*", "confidence": "p_0"},
        {"logits": "p_*", "confidence": "p_0"},
        {"votes": "v_*", "multilabel": "v_*"},
        {"correct": "label"},
        {"confidence": "p_0", "correct": "label", "classes": ["a", "b"]},
        {"logits": "p_*", "sum_tolerance": 0.1},
    ],
)
def test_choices_that_exclude_each_other_are_an_error(choice: dict[str, Any]) -> None:
    with refusal("TO205"):
        read({"label": [0], "p_0": [0.5], "v_0": [1]}, **choice)


def test_predictions_take_no_second_weight() -> None:
    with refusal("TO205", "weight"):
        read(Predictions([0], [0.5]), weight="w")


@pytest.mark.parametrize("choice", [{"weight": np.ones(1)}, {"probs": 3}, {"label": 0}, {"batch_rows": 0}])
def test_a_column_is_named_by_text(choice: dict[str, Any]) -> None:
    with refusal("TO203"):
        read({"label": [0], "p_0": [0.5]}, **choice)


@pytest.mark.parametrize(
    ("names", "choice", "code", "words"),
    [
        (
            ["v_cat", "v_dog", "p_cat", "p_dog", "p_eel"],
            {"votes": "v_*"},
            "TO313",
            "2 and 3: v_eel is missing .there is p_eel",
        ),
        (
            ["v_cat", "v_dog", "v_eel", "p_cat", "p_dog"],
            {"votes": "v_*"},
            "TO313",
            "3 and 2: p_eel is missing .there is v_eel",
        ),
        (["v_cat", "v_dog", "p_cat", "p_dog"], {}, "TO304", "votes='v_\\*'; .* label="),
        (["confidence", "correct"], {}, "TO304", "confidence='confidence' and correct='correct'"),
        (["label", "p_0", "sex", "region"], {"group": ["sex,region"]}, "TO304", r"group=\['sex', 'region'\]"),
        (["label", "p_0", "sex", "region"], {"group": ["sex,regio"]}, "TO304", "Did you mean"),
    ],
)
def test_a_column_that_is_not_there_leads_to_what_is(
    names: list[str], choice: dict[str, Any], code: str, words: str
) -> None:
    with refusal(code, words):
        read({name: [1, 0] for name in names}, **choice)


def test_a_confidence_out_of_its_scale_or_without_a_value_says_what_may_be_meant() -> None:
    how: dict[str, Any] = {"confidence": "c", "correct": "ok"}
    with refusal("TO102", "If 70 means 70 %, divide by 100"):
        read({"c": [70, 90.0], "ok": [1, 0]}, **how).collect()
    with refusal("TO102", "percentages"):
        read({"label": [0, 1], "p_0": [70, 90.0], "p_1": [30, 10.0]}).collect()
    with refusal("TO308", "never dropped.*abstained="):
        read({"c": [0.7, None], "ok": [1, 0]}, **how).collect()
    with pytest.raises(InputError, match=r"never dropped silently\.$"):
        read({"label": [0, 1], "p_0": [0.5, None]}).collect()


def test_a_missing_column_of_logits_names_the_keyword_that_was_passed() -> None:
    with refusal("TO305", r"Got probs='p_\*'"):
        read({"label": [0, 1], "a": [0.5, 2.0], "b": [1.0, 0.0]}, logits=True)
    with refusal("TO305", r"Got logits='z_\*'"):
        read({"label": [0, 1], "a": [0.5, 2.0], "b": [1.0, 0.0]}, logits="z_*")


NUMBERED_COLUMNS = [
    (["p_1", "p_2", "p_3", "p_4"], "p_*"),
    (["p_01", "p_02", "p_03", "p_04"], "p_*"),
    (["p_1.0", "p_2.0", "p_3.0", "p_4.0"], "p_*"),
    (["p_grade_1", "p_grade_2", "p_grade_3", "p_grade_4"], "p_*"),
    (["prob_class1", "prob_class2", "prob_class3", "prob_class4"], "prob_*"),
    (["1", "2", "3", "4"], ["1", "2", "3", "4"]),
]


@pytest.mark.parametrize(
    ("names", "star"), NUMBERED_COLUMNS, ids=lambda value: value[0] if isinstance(value, list) else ""
)
@pytest.mark.parametrize("keyword", ["probs", "logits"])
def test_labels_are_the_numbers_of_columns_chosen_by_star_or_by_list(names: list[str], star: Any, keyword: str) -> None:
    P = np.full((3, 4), 0.25)
    values = {name: P[:, j] for j, name in enumerate(names)}
    for columns_requested in (star, names):
        for label in ([1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], ["01", "02", "03"]):
            source = read({"label": label, **values}, **{keyword: columns_requested})
            assert source.collect().y.tolist() == [0, 1, 2]
        with refusal("TO105", "0 in row 0", r"classes=\[0, 1, 2, 3\]"):
            read({"label": [0, 1, 2], **values}, **{keyword: columns_requested}).collect()
        positions = read({"label": [0, 1, 2], **values}, **{keyword: columns_requested}, classes=[0, 1, 2, 3])
        assert positions.collect().y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", FILES)
def test_text_labels_of_other_spelling_are_matched_by_number(tmp_path: Path, kind: str) -> None:
    data = {"label": ["01", "03", "02"], "p_1": [0.2, 0.5, 0.1], "p_2": [0.5, 0.3, 0.2], "p_3": [0.3, 0.2, 0.7]}
    assert read(write(tmp_path / f"a.{kind}", data)).collect().y.tolist() == [0, 2, 1]


def test_listed_columns_give_the_same_classes_as_a_star() -> None:
    data = {"label": [1, 2, 1], "p_1": [0.2, 0.5, 0.1], "p_2": [0.8, 0.5, 0.9]}
    assert read(data).collect().classes == read(data, probs=["p_1", "p_2"]).collect().classes == (1, 2)


CLASSIFIER_LOG = {
    "true_label": ["cat", "dog", "dog", "Cat"],
    "predicted_label": ["cat", "cat", "dog", "cat"],
    "confidence": [0.9, 0.6, 0.8, 0.7],
}
LOG_COLUMNS = {"label": "true_label", "predicted": "predicted_label", "confidence": "confidence"}


@pytest.mark.parametrize("kind", FILES)
def test_an_answer_is_correct_if_the_predicted_class_is_exactly_the_label(tmp_path: Path, kind: str) -> None:
    source = read(write(tmp_path / f"a.{kind}", CLASSIFIER_LOG), **LOG_COLUMNS)
    preds = source.collect()
    assert (preds.kind, preds.y.tolist()) == ("confidence", [1, 0, 1, 0])  # Cat is not cat
    assert source.describe()["columns"] == {
        "confidence": ["confidence"],
        "label": "true_label",
        "predicted": "predicted_label",
    }


@pytest.mark.parametrize(
    ("labels", "predicted"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 0]),
        ([1, 2, 3, 4], [1.0, 2.0, 3.0, 0.0]),
        ([1, 2, 3, 4], ["1", "02", "3.0", "none"]),
        (["1", "2", "3", "other"], [1.0, 2.0, 3.0, 0.0]),
    ],
)
def test_a_predicted_number_equals_a_label_of_any_spelling(labels: Any, predicted: Any) -> None:
    data = {"label": np.array(labels), "predicted": np.array(predicted), "confidence": np.full(4, 0.5)}
    assert read(data, predicted="predicted", confidence="confidence").collect().y.tolist() == [1, 1, 1, 0]


def test_two_columns_of_texts_are_compared_as_they_are_written() -> None:
    data = {"label": ["01", "1"], "predicted": ["1", "1"], "confidence": [0.5, 0.5]}
    assert read(data, predicted="predicted", confidence="confidence").collect().y.tolist() == [0, 1]


def test_labels_and_predicted_classes_without_a_common_value_are_refused() -> None:
    data = {"label": ["cat", "dog"] * 60, "predicted": ["CAT", "DOG"] * 60, "confidence": [0.5] * 120}
    with refusal("TO119", "cat, dog and CAT, DOG", "'label' and 'predicted'"):
        read(data, predicted="predicted", confidence="confidence").collect()
    first_rows = {name: values[:4] for name, values in data.items()}
    assert read(first_rows, predicted="predicted", confidence="confidence").collect().y.tolist() == [0, 0, 0, 0]


def test_a_missing_label_or_predicted_class_is_refused_with_its_row() -> None:
    data = {"label": np.array([1.0, np.nan]), "predicted": np.array([1.0, 2.0]), "confidence": [0.5, 0.5]}
    with refusal("TO103", "nan in row 1"):
        read(data, predicted="predicted", confidence="confidence").collect()


def test_a_column_that_is_both_the_true_and_the_predicted_class_or_the_confidence_is_refused() -> None:
    data = {"label": [0, 1], "predicted": [0, 0], "confidence": [0.6, 0.7], "correct": [1, 0]}
    for arguments in (
        {"label": "predicted", "predicted": "predicted", "confidence": "confidence"},
        {"label": "label", "predicted": "confidence", "confidence": "confidence"},
        {"correct": "correct", "confidence": "correct"},
    ):
        with refusal("TO313", "The same column was named twice."):
            read(data, **arguments).collect()


def test_predicted_needs_a_confidence_and_a_label_and_no_correctness() -> None:
    data = {"label": [1, 0], "predicted": [1, 1], "confidence": [0.5, 0.5], "correct": [1, 0]}
    for arguments, words in (
        ({"predicted": "predicted"}, "predicted needs a confidence"),
        ({"predicted": "predicted", "confidence": "confidence", "label": None}, "needs a label"),
        ({"predicted": "predicted", "confidence": "confidence", "correct": "correct"}, "Both define"),
    ):
        with refusal("TO205", words):
            read(data, **arguments)


def test_a_confidence_without_an_outcome_names_the_columns_that_give_it() -> None:
    with refusal("TO304", "label='true_label', predicted='predicted_label'"):
        read(CLASSIFIER_LOG, confidence="confidence").collect()
    with refusal("TO304", "confidence='confidence', label='true_label', predicted='predicted_label'"):
        read(CLASSIFIER_LOG)


def test_the_categories_of_a_label_in_a_frame_are_its_classes_in_the_order_of_the_columns() -> None:
    P = np.full((3, 3), 1 / 3)
    numbers = pd.Series(pd.Categorical([1, 2, 1], categories=[1, 2, 3]))
    names = pd.Series(pd.Categorical(["low", "medium", "low"], categories=["low", "medium", "high"]))
    pets = pd.DataFrame(P, columns=["p_ant", "p_bee", "p_cat"])
    source = read(pets.assign(label=numbers))
    assert (source.collect().classes, source.collect().y.tolist()) == ((1, 2, 3), [0, 1, 0])
    assert [note.code for note in source.notes] == ["TN188"]
    lists = pl.DataFrame(
        {"label": pl.Series(["low", "medium", "low"], dtype=pl.Enum(["low", "medium", "high"])), "p": P}
    )
    assert read(lists, probs="p").collect().y.tolist() == [0, 1, 0]
    graded = pd.DataFrame(P, columns=["p_high", "p_medium", "p_low"]).assign(label=names)
    assert read(graded).collect().y.tolist() == [2, 1, 2]
    numbered = pd.DataFrame(P, columns=["p_0", "p_1", "p_2"]).assign(label=numbers)
    assert read(numbered).collect().y.tolist() == [1, 2, 1]


def archive(folder: Path, **arrays: Any) -> Path:
    file = folder / "a.npz"
    np.savez(file, **arrays)
    return file


def test_the_one_array_that_can_be_logits_is_read_as_logits(tmp_path: Path) -> None:
    z, y = np.random.default_rng(0).normal(size=(6, 3)), np.array([0, 1, 2, 0, 1, 2])
    expected = Predictions.from_logits(y, z).p
    w = np.arange(1.0, 7.0)
    for arrays, how in (
        ({"label": y, "scores": z}, {}),
        ({"label": y, "scores": z, "w": w}, {"weight": "w"}),  # which has another role
        ({"labels": y, "logits": z, "probs": np.full((6, 3), 1 / 3), "features": z[:, :2]}, {}),
        ({"labels_test": y, "logits_test": z, "logits_val": z[:4], "labels_val": y[:4]}, {"label": "labels_test"}),
        ({"label": y, "scores": z, "image": np.zeros((6, 2, 2)), "names": np.array(list("abcdef"))}, {}),
    ):
        for data in (arrays, archive(tmp_path, **arrays)):
            source = read(data, logits=True, **how)
            np.testing.assert_allclose(source.collect().p, expected)
    binary = read({"label": y % 2, "log_odds": z[:, 0]}, logits=True).collect()
    np.testing.assert_allclose(binary.P[:, 1], 1 / (1 + np.exp(-z[:, 0])))


def test_several_arrays_that_can_be_logits_are_named_and_the_remedy_works(tmp_path: Path) -> None:
    z, y = np.random.default_rng(0).normal(size=(6, 3)), np.array([0, 1, 2, 0, 1, 2])
    file = archive(tmp_path, label=y, z_a=z, z_b=2 * z, odds=z[:, 0])
    with refusal("TO414", r"z_a \(6, 3\), z_b \(6, 3\), odds \(6,\)", "logits='z_a'"):
        read(file, logits=True)
    np.testing.assert_allclose(read(file, logits="z_a").collect().p, Predictions.from_logits(y, z).p)
    with refusal("TO305"):  # nothing is read as logits unless this is said
        read(file)

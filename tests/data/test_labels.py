"""Are labels, names, votes, weights and groups understood or refused by name, whatever holds them?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tests.data.refused import refused
from trueodds import Predictions

THREE = np.full((3, 3), 1 / 3)
P2 = [0.1, 0.2, 0.3]


class Tensor:
    """What a torch tensor shows to NumPy: the array protocol."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values if dtype is None else self.values.astype(dtype)


class TensorThatRequiresGrad:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


# Numbers as labels


@pytest.mark.parametrize(
    "y",
    [
        [0, 2, 1],
        (0, 2, 1),
        [0.0, 2.0, 1.0],
        np.array([0, 2, 1], np.uint8),
        np.array([0, 2, 1], ">i4"),
        np.array([0, 2, 1], object),
        np.ma.array([0, 2, 1]),
        Tensor([0, 2, 1]),
        pd.Series([0, 2, 1], index=[7, 7, 8]),
        pd.array([0, 2, 1], "Int64"),
        pl.Series([0, 2, 1]),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_whole_numbers_are_labels_whatever_holds_them(y: Any) -> None:
    preds = Predictions(y, THREE)
    assert preds.y is not None
    assert (preds.y.tolist(), preds.y.dtype) == ([0, 2, 1], np.dtype(np.int64))


@pytest.mark.parametrize(
    "p", [np.array(P2, object), Tensor(P2), pd.Series(P2), pd.array(P2, "Float64"), pl.Series(P2), np.ma.array(P2)]
)
def test_probabilities_may_come_in_any_container(p: Any) -> None:
    assert Predictions([0, 1, 1], p).p.tolist() == P2


def test_booleans_are_labels() -> None:
    for y in ([False, True], np.array([0, 1], bool), np.array([False, True], object)):
        assert Predictions(y, [0.2, 0.3]).y.tolist() == [0, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(("bad", "k"), [(3, 3), (-1, 3), (2**62, 3)])
def test_labels_out_of_range_are_refused_with_their_row(bad: int, k: int) -> None:
    # torchmetrics: labels K and -1 pass
    with refused("TO105", str(bad), "row 1", "1 such value"):
        Predictions([0, bad, 1], np.full((3, k), 1 / k))


def test_labels_that_start_at_one_are_refused_with_that_reason() -> None:
    with refused("TO105", "3 in row 2", fix="start at 1"):
        Predictions([1, 2, 3], THREE)


def test_minus_one_beside_every_class_is_called_an_unknown_label() -> None:
    for y, p in (([0, -1, 1], P2), ([0, 2, -1, 1], np.full((4, 3), 1 / 3))):
        with refused("TO105", "-1 in row", fix="a label is unknown: remove those rows"):
            Predictions(y, p)
    with refused("TO105", "-1 in row 1", fix="classes=[-1, 0, 1]"):  # three classes
        Predictions([0, -1, 1], THREE)


@pytest.mark.parametrize("huge", [2**63, 2**64 - 1, 10**30])
def test_huge_integers_are_out_of_range_and_no_crash(huge: int) -> None:
    with refused("TO105", "row 0"):
        Predictions([huge, 1, 1], P2)
    with refused("TO102", "row 1"):
        Predictions([0, 1, 1], [0, huge, 1])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_label_that_is_no_number_is_refused_with_or_without_classes(bad: float) -> None:
    for first, classes in ((0, None), (5, [5, 6]), (0, ["a", "b"])):
        with refused("TO103", "inf" if bad == np.inf else "none", "row 1"):  # NaN is a label that is not known yet
            Predictions([first + 1, bad, first], P2, classes=classes).require_labels()


def test_a_fraction_is_no_label_and_the_fix_names_votes() -> None:
    with refused("TO106", "0.5", "row 1", fix="shares"):
        Predictions([0, 0.5, 1], P2)


TEMPERATURES = [17.2, 21.9, 20.4]  # outcomes of a regression
FORECASTS = [18.0, 21.0, 19.5]


@pytest.mark.parametrize("forecasts", [FORECASTS, P2, np.rint(FORECASTS), np.stack([FORECASTS, FORECASTS], axis=1)])
def test_outcomes_of_a_regression_are_recognized_whatever_the_forecasts(forecasts: Any) -> None:
    with refused("TO106", "17.2 in row 0", fix="look like the outcomes of a regression: pass events such as y <= q"):
        Predictions(TEMPERATURES, forecasts)
    with refused("TO106", "17.2 in row 0", fix="outcomes of a regression"):
        Predictions.from_logits(TEMPERATURES, forecasts)


def test_outcomes_of_a_regression_are_recognized_as_text() -> None:
    for forecasts in (FORECASTS, P2):
        with refused("TO106", "'17.2' in row 0", fix="outcomes of a regression"):
            Predictions([str(y) for y in TEMPERATURES], forecasts)


def test_counts_beside_one_number_per_row_may_be_outcomes_of_a_regression_or_classes() -> None:
    for forecasts in (FORECASTS, P2):
        with refused("TO105", "7 in row 0", fix="probabilities of all, or"):
            Predictions([7, 0, 3], forecasts)
        with refused("TO105", fix="Predictions.from_confidence(p, correct); if they are the outcomes of a regression"):
            Predictions([7, 0, 3], forecasts)
    with refused("TO106", "0.3 in row 0", fix="shares; for the outcomes of a regression"):
        Predictions([0.3, 0.6, 0.1], P2)


def test_binary_labels_beside_other_numbers_are_not_taken_for_a_regression() -> None:
    for y in ([0, 1, 1], [0.0, 1.0, 1.0]):
        with refused("TO102", "-2.5 in row 1", fix="If these are logits"):
            Predictions(y, [0.5, -2.5, 1.5])
    with refused("TO109", fix="swap"):
        Predictions([-1.2, 0.3, 2.5], [0, 1, 1])


def test_ratings_that_are_fractions_are_passed_as_classes() -> None:
    ratings = [0.5, 1.5, 1]
    with refused("TO106", "0.5 in row 0", fix="classes=[0.5, 1, 1.5]"):
        Predictions(ratings, THREE)
    preds = Predictions(ratings, THREE, classes=[0.5, 1, 1.5])
    assert preds.y is not None
    assert preds.y.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    "y",
    [
        [0, None, 1],
        np.array([0, np.nan, 1], object),
        pd.array([0, None, 1], "Int64"),
        pd.array([True, None, False], "boolean"),
        pd.Series([0, pd.NA, 1], dtype=object),
        pl.Series([0, None, 1]),
        np.ma.array([0, 1, 1], mask=[0, 1, 0]),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_missing_labels_are_refused_when_they_are_read(y: Any) -> None:
    preds = Predictions(y, P2)
    assert preds.labeled is not None
    assert preds.labeled.tolist() == [True, False, True]
    with refused("TO103", "row 1"):
        assert preds.y is None


@pytest.mark.parametrize(
    "p",
    [
        [0.1, None, 0.3],
        pd.array([0.1, None, 0.3], "Float64"),
        pl.Series([0.1, None, 0.3]),
        np.ma.array(P2, mask=[0, 1, 0]),
    ],
)
def test_missing_probabilities_are_refused(p: Any) -> None:
    with refused("TO103"):
        Predictions([0, 1, 1], p)


def test_a_tensor_that_needs_detaching_is_refused_with_that_reason() -> None:
    with refused("TO101", "requires grad", fix="detach"):
        Predictions([0, 1], TensorThatRequiresGrad())


def test_mixed_objects_are_refused() -> None:
    with refused("TO114", "int and str"):
        Predictions(np.array([0, "a"], object), [0.1, 0.2])
    with refused("TO114", "Decimal"):
        from decimal import Decimal

        Predictions([0, 1], [Decimal("0.1"), Decimal("0.2")])


# Names


@pytest.mark.parametrize(
    "y",
    [
        ["dog", "cat", "dog"],
        np.array([b"dog", b"cat", b"dog"]),
        np.array(["dog", "cat", "dog"], object),
        pd.Series(["dog", "cat", "dog"], dtype="category"),
        pd.array(["dog", "cat", "dog"], "string"),
        pl.Series(["dog", "cat", "dog"]),
        pl.Series(["dog", "cat", "dog"], dtype=pl.Categorical),
    ],
)
def test_names_follow_the_order_of_classes_not_of_the_alphabet(y: Any) -> None:
    for classes in (["dog", "cat"], np.array(["dog", "cat"]), [b"dog", b"cat"], pd.Index(["dog", "cat"])):
        preds = Predictions(y, P2, classes=classes)  # type: ignore[arg-type]
        assert preds.y.tolist() == [0, 1, 0]  # type: ignore[union-attr]
        assert preds.classes == ("dog", "cat")


def test_names_without_classes_are_refused() -> None:
    with refused("TO106", "'cat'", "row 0", fix="classes="):
        Predictions(["cat", "dog"], [0.1, 0.2])


def test_a_name_that_is_no_class_is_refused_with_its_row() -> None:
    with refused("TO105", "'cow'", "row 1", "2 such values", fix="'cat', 'dog'"):
        Predictions(["cat", "cow", "cow"], P2, classes=["cat", "dog"])


@pytest.mark.parametrize("y", [[3, 7, 5], [3.0, 7.0, 5.0], ["3", "7", "5"], np.array([b"3", b"7", b"5"])])
def test_numbers_as_names_are_matched_as_names(y: Any) -> None:
    for classes in ([3, 5, 7], np.array([3, 5, 7], np.int16)):
        assert Predictions(y, THREE, classes=classes).y.tolist() == [0, 2, 1]  # type: ignore[union-attr,arg-type]


def test_a_number_that_is_no_name_among_number_names_is_refused() -> None:
    with refused("TO105", "0", "row 0"):
        Predictions([0, 1, 2], THREE, classes=[3, 5, 7])
    # classes are given, so a label is a name and never the number of a column: 0 is none of "1" and "2"
    with refused("TO105", "0", "row 0", fix="labels must be their numbers. If labels are positions"):
        Predictions([0, 1, 1], P2, classes=["1", "2"])


@pytest.mark.parametrize("y", [[0, 2, 1], [0.0, 2.0, 1.0]])
def test_whole_numbers_are_columns_where_the_names_are_words_or_count_from_zero(y: Any) -> None:
    for classes in (["a", "b", "c"], ["0", "1", "2"], [0, 1, 2]):
        assert Predictions(y, THREE, classes=classes).y.tolist() == [0, 2, 1]  # type: ignore[union-attr]
    with refused("TO105", "3", "row 2"):
        Predictions([1, 2, 3], THREE, classes=["a", "b", "c"])


def test_boolean_names_are_matched_as_names() -> None:
    assert Predictions([False, True, True], P2, classes=[True, False]).y.tolist() == [1, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("classes", "got"),
    [
        (["a", "a"], "'a', 'a'"),
        ([1, "1"], "1, '1'"),  # a label "1" could be either
        (["a"], "1 names for 2"),
        (["a", "b", "c"], "3 names for 2"),
        ("ab", "'ab'"),
        (5, "5"),
        ([["a"], ["b"]], "['a']"),
        ([None, "a"], "None"),
    ],
)
def test_classes_that_name_nothing_are_refused(classes: Any, got: str) -> None:
    with refused("TO113", got):
        Predictions([0, 1, 1], P2, classes=classes)


# Votes


def test_counts_and_shares_are_votes() -> None:
    counts = Predictions([[3, 1], [0, 4]], [0.2, 0.3])
    assert counts.votes.tolist() == [[0.75, 0.25], [0, 1]]  # type: ignore[union-attr]
    assert counts.counts.tolist() == [4, 4]  # type: ignore[union-attr]
    shares = Predictions([[0.75, 0.25], [0, 1]], [0.2, 0.3])
    assert shares.votes.tolist() == counts.votes.tolist()  # type: ignore[union-attr]
    assert shares.counts is None
    assert counts.y is None


@pytest.mark.parametrize(
    ("votes", "code", "got"),
    [
        ([[1, 2], [0, 0], [0, 0]], "TO111", "row 1 (2 such rows)"),
        ([[1, 2], [1.5, 2], [1, 0]], "TO111", "3.5 in row 1"),
        ([[1, 2], [-1, 2], [1, 0]], "TO111", "-1.0 in row 1, class 0"),
        ([[1, 2], [np.nan, 2], [1, 0]], "TO111", "nan in row 1, class 0"),
        ([[1, 2, 0]] * 3, "TO111", "3 columns for 2"),
        ([["a", "b"]] * 3, "TO114", "<U1"),
    ],
)
def test_votes_that_are_none_are_refused(votes: Any, code: str, got: str) -> None:
    with refused(code, got):
        Predictions(votes, P2)


# Weights, groups, clusters


@pytest.mark.parametrize(
    ("weight", "code", "got"),
    [
        ([1, -1, 1], "TO110", "-1.0 in row 1"),
        ([1, np.nan, 1], "TO110", "nan in row 1"),
        ([1, np.inf, 1], "TO110", "inf in row 1"),
        ([1e308, 1e308, 1], "TO110", "1e+308"),
        ([0, 0, 0], "TO110", "3 zeros"),
        ([1, 1], "TO107", "(2,) for 3"),
        ([[1], [1], [1]], "TO107", "(3, 1)"),
        (["a", "b", "c"], "TO114", "<U1"),
        ([1, None, 1], "TO103", "row 1"),
        (2.0, "TO101", "2.0"),
    ],
)
def test_weights_that_are_none_are_refused(weight: Any, code: str, got: str) -> None:
    with refused(code, got):
        Predictions([0, 1, 1], P2, weight=weight)


@pytest.mark.parametrize(
    "weight", [[1, 0, 2], [True, False, True], np.array([0.5, 0, 1], np.float32), pl.Series([1, 2, 3])]
)
def test_weights_are_float64_whatever_the_input(weight: Any) -> None:
    preds = Predictions([0, 1, 1], P2, weight=weight)
    assert preds.w.dtype == np.float64
    assert preds.w.tolist() == [float(value) for value in weight]


@pytest.mark.parametrize(
    "column",
    [["a", None, "b"], [1.0, np.nan, 2.0], pl.Series(["a", None, "b"]), np.array(["2020", "NaT", "2021"], "M8[Y]")],
)
def test_a_group_with_missing_values_is_refused_with_its_row(column: Any) -> None:
    with refused("TO112", "row 1"):
        Predictions([0, 1, 1], P2, group=column)
    with refused("TO112", "row 1"):
        Predictions([0, 1, 1], P2, group={"site": column})
    with refused("TO112", "row 1"):
        Predictions([0, 1, 1], P2, cluster=column)


def test_groups_of_the_wrong_length_are_refused() -> None:
    with refused("TO112", "(2,) for 3"):
        Predictions([0, 1, 1], P2, group=["a", "b"])
    with refused("TO112", "(2,) for 3"):
        Predictions([0, 1, 1], P2, cluster=[1, 2])


def test_groups_have_names_and_keep_their_values() -> None:
    preds = Predictions([0, 1, 1], P2, group={"site": ["x", "y", "x"], "age": [30, 40, 50]})
    assert {name: column.tolist() for name, column in preds.group.items()} == {
        "site": ["x", "y", "x"],
        "age": [30, 40, 50],
    }
    assert list(Predictions([0, 1, 1], P2, group=pd.Series(["x", "y", "x"])).group) == ["group"]


def test_clusters_are_numbered() -> None:
    assert Predictions([0, 1, 1], P2, cluster=["b", "a", "b"]).cluster.tolist() == [1, 0, 1]  # type: ignore[union-attr]


# Other entrances


@pytest.mark.parametrize("bad", [2, 0.5, -1])
def test_correctness_is_zero_or_one(bad: float) -> None:
    with refused("TO116", str(float(bad)), "row 1"):
        Predictions.from_confidence([0.2, 0.3], np.array([1, bad], float))
    with refused("TO116", "row 1, class 0"):
        Predictions.from_multilabel(np.array([[1, 0], [bad, 0]], float), [[0.2, 0.3]] * 2)


def test_confidence_of_several_columns_is_refused() -> None:
    with refused("TO101", "(1, 2)", fix="Predictions(y_true, y_prob)"):
        Predictions.from_confidence([[0.2, 0.8]], [1])


def test_a_fitted_classifier_brings_its_classes() -> None:
    class Model:
        classes_ = np.array(["no", "yes"])

        def predict_proba(self, X: Any) -> np.ndarray:
            return np.array([[0.2, 0.8]] * len(X))

    preds = Predictions.from_estimator(Model(), [[0], [1]], ["yes", "no"])
    assert (preds.classes, preds.y.tolist()) == (("no", "yes"), [1, 0])  # type: ignore[union-attr]
    with refused("TO117", "object"):
        Predictions.from_estimator(object(), [[0]], [1])


def test_a_classifier_without_predict_proba_is_not_called_unfitted() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    with refused("TO117", "LinearSVC()", fix="RecalibratedClassifier(model)"):
        Predictions.from_estimator(LinearSVC().fit(X, y), X, y)
    with refused("TO117", "LogisticRegression()", fix="Fit it first."):
        Predictions.from_estimator(LogisticRegression(), X, y)


def test_different_indexes_of_labels_and_probabilities_are_noted_because_rows_are_paired_by_position() -> None:
    pd = pytest.importorskip("pandas")
    y, p = pd.Series([0, 1, 1], index=[2, 0, 1]), pd.Series([0.2, 0.7, 0.9])
    for make in (Predictions, Predictions.from_logits):
        preds = make(y, p)
        assert [note.code for note in preds.notes if note.code != "TN108"] == ["TN156"]
        assert "(2 and 0 in row 0)" in preds.notes[0].text
        assert preds.y.tolist() == [0, 1, 1]
        assert not [note for note in make(y, p.set_axis(y.index)).notes if note.code == "TN156"]
        assert not [note for note in make(y.to_numpy(), p).notes if note.code == "TN156"]
    table = pd.DataFrame({"a": [0.8, 0.3, 0.1], "b": [0.2, 0.7, 0.9]})
    assert [note.code for note in Predictions(y, table).notes] == ["TN156"]


@pytest.mark.parametrize(("labels", "classes"), [([1, 2, 2], "[1, 2]"), ([-1, 1, 1], "[-1, 1]")])
def test_two_other_codes_are_proposed_as_classes(labels: list[int], classes: str) -> None:
    with refused("TO105", fix=f"Predictions(y_true, y_prob, classes={classes})"):
        Predictions(labels, [0.2, 0.7, 0.9])


@pytest.mark.parametrize(
    ("texts", "fix"),
    [(["63%", "12 %"], "divide by 100"), (["0.63", "1e-3"], "astype(float)"), (["yes", "no"], "predicted labels")],
)
def test_probabilities_as_text_are_answered_by_what_they_look_like(texts: list[str], fix: str) -> None:
    with refused("TO114", repr(texts[0]), fix=fix):
        Predictions([0, 1], texts)


def test_tensors_are_read_whatever_their_dtype_but_not_with_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor([[1.0, 2.0], [0.5, 0.25]])
    plain = Predictions.from_logits([0, 1], z)
    half = Predictions.from_logits(torch.tensor([0, 1]), z.bfloat16())
    assert half.p.tolist() == plain.p.tolist()
    with refused("TO340", fix="tensor.detach()"):
        Predictions.from_logits([0, 1], z.requires_grad_())


def test_numbers_match_classes_that_are_written_as_text() -> None:
    # a command line can only write names as text: labels 1 and 2, or -1 and +1, must still be usable
    assert Predictions([1, 2, 2], [0.1, 0.7, 0.9], classes=["1", "2"]).y.tolist() == [0, 1, 1]  # type: ignore[union-attr]
    assert Predictions([-1, 1], [0.1, 0.7], classes=["-1", "1"]).y.tolist() == [0, 1]  # type: ignore[union-attr]
    assert Predictions([1.0, 2.0], [0.1, 0.7], classes=["1", "2"]).y.tolist() == [0, 1]  # type: ignore[union-attr]


def test_scores_that_are_no_logits_are_read_as_logits_and_noted() -> None:
    scores = np.linspace(300, 850, 20)
    y = [0, 1] * 10
    assert [note.code for note in Predictions.from_logits(y, scores).notes] == ["TN193"]
    assert [note.code for note in Predictions.from_logits(y, -scores).notes] == ["TN193"]
    assert [note.code for note in Predictions.from_logits(y, np.eye(3)[[0, 1] * 10] * 500).notes] == ["TN193"]
    # Large logits are plausible for some rows, and scores are log odds if differences of columns are.
    assert Predictions.from_logits(y, np.linspace(-100, 100, 20)).notes == ()
    assert Predictions.from_logits(y, np.stack([scores, scores + 1], axis=1)).notes == ()


def test_logits_that_look_like_probabilities_are_read_as_logits_and_noted() -> None:
    preds = Predictions.from_logits([0, 1], [[0.3, 0.7], [0.6, 0.4]])
    assert [note.code for note in preds.notes] == ["TN108"]
    assert Predictions.from_logits([0, 1], [[0.3, 0.9], [0.6, 0.4]]).notes == ()


# Class names with numbers


GRADES = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]])


def positions(y: Any, names: Any, **settings: Any) -> list[int]:
    """Return the columns that the labels mean, of a data frame with these names."""
    preds = Predictions(y, pd.DataFrame(GRADES[:, : len(names)], columns=names), sum_tolerance=1, **settings)
    assert preds.y is not None
    return preds.y.tolist()


NUMBERED_NAMES = [
    ["1", "2", "3", "4"],
    [1, 2, 3, 4],
    [1.0, 2.0, 3.0, 4.0],
    ["01", "02", "03", "04"],
    ["1.0", "2.0", "3.0", "4.0"],
    ["p_1", "p_2", "p_3", "p_4"],
    ["class1", "class2", "class3", "class4"],
    ["prob_class1", "prob_class2", "prob_class3", "prob_class4"],
    ["p_grade_1", "p_grade_2", "p_grade_3", "p_grade_4"],
    ["p.1", "p.2", "p.3", "p.4"],
    ["class-1", "class-2", "class-3", "class-4"],
    ["P(y=1)", "P(y=2)", "P(y=3)", "P(y=4)"],
    ["class_1_prob", "class_2_prob", "class_3_prob", "class_4_prob"],
]


@pytest.mark.parametrize("names", NUMBERED_NAMES, ids=lambda names: str(names[0]))
@pytest.mark.parametrize("y", [[1, 2, 3], [1.0, 2.0, 3.0], ["1", "2", "3"], ["01", "02", "03"], ["1.0", "2.0", "3.0"]])
def test_labels_are_the_numbers_in_the_names_of_columns_and_classes(names: list[Any], y: Any) -> None:
    assert positions(y, names) == [0, 1, 2]
    preds = Predictions(y, GRADES, classes=names)
    assert preds.y is not None
    assert preds.y.tolist() == [0, 1, 2]
    logits = Predictions.from_logits(y, pd.DataFrame(np.log(GRADES), columns=names))
    assert logits.y is not None
    assert logits.y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("names", NUMBERED_NAMES, ids=lambda names: str(names[0]))
def test_a_label_that_is_no_number_of_a_name_is_refused_with_a_remedy_that_works(names: list[Any]) -> None:
    for settings in ({}, {"classes": names}):
        with refused("TO105", "0 in row 0", fix="pass Predictions(y_true, y_prob, classes=[0, 1, 2, 3])"):
            positions([0, 1, 2], names, **settings)
    assert positions([0, 1, 2], names, classes=[0, 1, 2, 3]) == [0, 1, 2]


def test_names_numbered_from_0_in_another_order_are_matched_by_number() -> None:
    for names in (["p_2", "p_0", "p_1"], ["class2", "class0", "class1"], ["2", "0", "1"]):
        assert positions([0, 1, 2], names) == [1, 2, 0]
        assert positions([0, 1, 2], names, classes=names) == [1, 2, 0]


def test_names_numbered_from_0_in_order_mean_positions() -> None:
    for names in (["p_0", "p_1", "p_2"], ["class0", "class1", "class2"], ["00", "01", "02"]):
        assert positions([0, 2, 1], names) == [0, 2, 1]
        assert positions([0, 2, 1], names, classes=names) == [0, 2, 1]


def test_ratings_and_signs_are_numbers() -> None:
    assert positions([0.5, 1.5, 2], ["p_.5", "p_1", "p_1.5", "p_2"]) == [0, 2, 3]
    assert positions([0.5, 1.5, 1], GRADES[0], classes=[0.5, 1, 1.5, 2]) == [0, 2, 1]
    assert positions([-1, 1, -1], ["p_-1", "p_1"]) == [0, 1, 0]
    assert positions([-1, 1, -1], ["class-1", "class1"]) == [0, 1, 0]
    assert positions([-1, 1, -1], ["p_no", "p_yes"], classes=[-1, 1]) == [0, 1, 0]


def test_digits_by_accident_are_no_numbers_of_classes() -> None:
    assert positions([0, 1, 0], ["gpt4", "claude3"]) == [0, 1, 0]
    assert positions(["claude3", "gpt4", "gpt4"], ["gpt4", "claude3"]) == [1, 0, 0]


def test_one_name_that_is_a_number_makes_labels_names() -> None:
    assert positions([1, 2, 1], ["p_1", "p_2", "p_other"]) == [0, 1, 0]
    with refused("TO105", "0 in row 1"):
        positions([1, 0, 1], ["p_1", "p_2", "p_other"])


def test_equal_numbers_are_told_apart_as_text_only() -> None:
    assert positions(["1", "01", "1"], ["1", "01"]) == [0, 1, 0]


def test_an_integer_beyond_the_exact_range_of_floats_is_matched_exactly() -> None:
    large = 2**53
    assert positions([large + 1, large, large], [f"p_{large}", f"p_{large + 1}"]) == [1, 0, 0]


def test_classes_with_the_numbers_of_the_columns_in_another_order_are_refused() -> None:
    with refused("TO113", fix="Reorder the columns"):
        positions([1, 2, 1], ["p_1", "p_2"], classes=["c2", "c1"])


# Categories of labels


def categorical(values: list[Any], categories: list[Any]) -> Any:
    return pd.Series(pd.Categorical(values, categories=categories))


@pytest.mark.parametrize("wrap", [list, lambda series: series, lambda series: series.array])
def test_the_categories_of_a_categorical_are_the_classes_in_the_order_of_the_columns(wrap: Any) -> None:
    series = categorical([1, 2, 3], [1, 2, 3, 4])
    preds = Predictions(wrap(series), GRADES)
    assert preds.y is not None
    if wrap is list:  # a plain list has no categories
        assert preds.y.tolist() == [1, 2, 3]
        return
    assert (preds.classes, preds.y.tolist()) == ((1, 2, 3, 4), [0, 1, 2])
    assert [note.code for note in preds.notes] == ["TN188"]
    assert Predictions.from_logits(wrap(series), np.log(GRADES)).classes == (1, 2, 3, 4)


def test_text_categories_are_names_also_of_a_polars_enum() -> None:
    names = ["low", "medium", "high"]
    for series in (categorical(["high", "low"], names), pl.Series(["high", "low"], dtype=pl.Enum(names))):
        preds = Predictions(series, np.full((2, 3), 1 / 3))
        assert preds.y is not None
        assert (preds.classes, preds.y.tolist()) == (tuple(names), [2, 0])
    two = Predictions(categorical(["yes", "no"], ["no", "yes"]), [0.8, 0.3])
    assert two.y is not None
    assert two.y.tolist() == [1, 0]
    # a Polars Categorical has no order of its own
    with refused("TO106", "'high' in row 0"):
        Predictions(pl.Series(["high", "low"], dtype=pl.Categorical), np.full((2, 3), 1 / 3))


def test_names_of_columns_come_before_the_order_of_categories() -> None:
    pets = categorical(["dog", "cat"], ["cat", "dog"])
    preds = Predictions(pets, pd.DataFrame({"p_dog": [0.9, 0.2], "p_cat": [0.1, 0.8]}))
    assert preds.y is not None
    assert (preds.classes, preds.y.tolist()) == (("dog", "cat"), [0, 1])
    assert positions(categorical([1, 2, 3], [1, 2, 3, 4]), ["p_0", "p_1", "p_2", "p_3"]) == [1, 2, 3]
    assert positions(categorical([1, 2, 3], [1, 2, 3, 4]), ["p_4", "p_3", "p_2", "p_1"]) == [3, 2, 1]
    assert positions(categorical([1, 2, 3], [1, 2, 3, 4]), ["p_ant", "p_bee", "p_cat", "p_dog"]) == [0, 1, 2]
    assert positions(categorical([1, 2, 3], [1, 2, 3, 4]), range(4)) == [0, 1, 2]  # columns without names


def test_categories_of_another_number_than_the_columns_are_no_classes() -> None:
    preds = Predictions(categorical([1, 2, 3], [1, 2, 3]), GRADES)
    assert preds.y is not None
    assert preds.y.tolist() == [1, 2, 3]


def test_names_of_ranges_with_an_underscore_are_no_numbers() -> None:
    """Regression: Python reads 0_18 as the number 18, so that labels 0 and 1 were refused."""
    preds = Predictions([0, 1, 1], [0.2, 0.7, 0.9], classes=["0_18", "19_35"])
    assert preds.y is not None
    assert preds.y.tolist() == [0, 1, 1]

"""Do checked predictions stay what they were: read-only, whole in every subset, apart from the input?"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds import Predictions
from trueodds.core.errors import Note


def full() -> Predictions:
    return Predictions(
        [[3, 1, 0], [0, 4, 0], [1, 1, 2], [0, 0, 4]],
        [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5], [0.0, 0.0, 1.0]],
        weight=[1, 2, 0, 1],
        group={"site": ["a", "b", "a", "b"]},
        cluster=["u", "u", "v", "w"],
        classes=["x", "y", "z"],
    )


def test_the_input_is_neither_altered_nor_locked() -> None:
    y, p, w = np.array([0, 1]), np.array([0.2, 0.7]), np.array([1.0, 2.0])
    g = np.array(["a", "b"])
    before = [array.copy() for array in (y, p, w, g)]
    Predictions(y, p, weight=w, group=g)[[0]]
    assert all(np.array_equal(a, b) for a, b in zip(before, (y, p, w, g), strict=True))
    assert all(array.flags.writeable for array in (y, p, w, g))


def test_attributes_and_arrays_are_read_only() -> None:
    for preds in (full(), full()[[0, 1]], Predictions([0, 1], [0.2, 0.7], weight=[1, 2], group=["a", "b"])):
        with pytest.raises(AttributeError, match="read-only"):
            preds.n = 5
        arrays = [preds.p, preds.y, preds.votes, preds.counts, preds.weight, preds.cluster, *preds.group.values()]
        for array in arrays:
            if array is not None:
                with pytest.raises(ValueError, match="read-only"):
                    array[0] = array[0]
        with pytest.raises(TypeError):
            preds.group["other"] = np.arange(preds.n)  # type: ignore[index]


@pytest.mark.parametrize("rows", [[1, 3], np.array([False, True, False, True]), slice(1, 4, 2), np.array([-3, -1])])
def test_a_subset_keeps_everything_that_belongs_to_its_rows(rows: Any) -> None:
    part = full()[rows]
    assert (part.n, len(part), part.k, part.classes, part.kind) == (2, 2, 3, ("x", "y", "z"), "classes")
    assert part.p.tolist() == [[0.1, 0.8, 0.1], [0.0, 0.0, 1.0]]
    assert part.votes.tolist() == [[0, 1, 0], [0, 0, 1]]  # type: ignore[union-attr]
    assert part.counts.tolist() == [4, 4]  # type: ignore[union-attr]
    assert part.w.tolist() == [2, 1]
    assert part.group["site"].tolist() == ["b", "b"]
    assert part.cluster.tolist() == [0, 1]  # type: ignore[union-attr]  # numbered afresh: what is counted is the subset


def test_a_subset_may_repeat_rows() -> None:
    assert full()[[1, 1, 0]].w.tolist() == [2, 2, 1]


def test_a_subset_of_labels_keeps_labels() -> None:
    assert Predictions([0, 1, 1], [0.2, 0.3, 0.4])[1:].y.tolist() == [1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "TO108"),
        (np.zeros(4, bool), "TO108"),
        (slice(4, 9), "TO108"),
        ([2], "TO110"),  # its weight is 0
        (1, "TO118"),
        ([9], "TO118"),
        ([True, False], "TO118"),
        ([0.5], "TO118"),
        ("site", "TO118"),
        ([[0], [1]], "TO118"),
    ],
)
def test_a_subset_that_is_none_is_refused(rows: Any, code: str) -> None:
    with refused(code):
        full()[rows]


def test_copies_are_as_read_only_as_the_original() -> None:
    preds = full()
    for twin in (copy.copy(preds), copy.deepcopy(preds), pickle.loads(pickle.dumps(preds))):
        assert repr(twin) == repr(preds)
        assert twin.p.tolist() == preds.p.tolist()
        assert not twin.p.flags.writeable


def test_repeated_writes_each_row_as_often_as_its_weight() -> None:
    many = full().expand_frequencies()
    assert many.weight is None
    assert many.p[:, 1].tolist() == [0.2, 0.8, 0.8, 0.0]
    with refused("TO110", "0.5 in row 0", fix="importance"):
        Predictions([0, 1], [0.2, 0.3], weight=[0.5, 1]).expand_frequencies()


def test_one_column_stands_for_two_classes() -> None:
    preds = Predictions([0, 1], [0.25, 0.75])
    assert preds.P.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    assert preds.Y.tolist() == [[1, 0], [0, 1]]


def test_a_hundred_classes_are_one_hot_too() -> None:
    preds = Predictions([3, 99], np.full((2, 100), 0.01))
    assert preds.Y.sum() == 2
    assert preds.Y[0, 3] == preds.Y[1, 99] == 1


def test_the_line_says_what_is_inside() -> None:
    assert repr(full()) == "Predictions(n=4, 3 classes, weight, cluster, votes, group site)"
    assert repr(Predictions.from_confidence([0.5], [1])) == "Predictions(n=1, confidence and correctness)"


@pytest.mark.parametrize(
    ("code", "columns"),
    [
        ("TO113", {"classes": ["a", "b\ud800"]}),
        ("TO114", {"group": {"g": ["x", "y\udcff", "x"]}}),
        ("TO114", {"cluster": ["x", "y\udcff", "x"]}),
    ],
)
def test_text_that_cannot_be_encoded_is_refused(code: str, columns: dict[str, Any]) -> None:
    with refused(code):
        Predictions([0, 1, 1], [0.2, 0.7, 0.9], **columns)
    with refused("TO114", "in row 1"):
        Predictions(["a", "\ud800", "a"], [0.2, 0.7, 0.9], classes=["a", "b"])


def test_text_of_every_plane_of_unicode_is_a_name() -> None:
    names = ["\ud7ff", "\ue000", "\U0001f600", "\U0010ffff"]
    preds = Predictions(names, np.full((4, 4), 0.25), classes=names, group={"g": names})
    assert preds.y.tolist() == [0, 1, 2, 3]


def test_the_labels_of_a_copy_are_read_only_too() -> None:
    preds = Predictions([0, 1], [0.2, 0.7]).with_labels(np.array([1, 1]))
    assert preds.y.tolist() == [1, 1]
    assert not preds.y.flags.writeable


def test_notes_are_added_without_a_copy_of_the_rows_or_of_what_was_computed_from_them() -> None:
    preds = full()
    preds.cached("key", lambda: "value")
    noted = preds.with_notes(Note("TN101", "A note."))
    assert [note.code for note in noted.notes] == [*(note.code for note in preds.notes), "TN101"]
    assert np.shares_memory(noted.p, preds.p)
    assert noted.cached("key", lambda: "computed again") == "value"

"""Arrays of types that other libraries define: frames of Arrow, small floats, and text of variable length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import trueodds as to
from trueodds import Predictions
from trueodds.core.errors import InputError

Y, P = [0, 1, 1, 0], [0.25, 0.75, 0.5, 0.125]  # exact in every float of eight bits
SITES = ["b", "a", "b", "c"]
GROUPS = {"site": SITES, "year": [1, 2, 1, 1]}


def group_frames() -> list[Any]:
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    return [
        pa.table(GROUPS),
        pa.table(GROUPS).to_batches()[0],
        pa.table({"site": pa.array(SITES).dictionary_encode(), "year": GROUPS["year"]}),
        pd.DataFrame(GROUPS),
        pl.DataFrame(GROUPS),
    ]


@pytest.mark.parametrize("number", range(5))
def test_each_column_of_a_frame_is_a_group_column(number: int) -> None:
    preds = Predictions(Y, P, group=group_frames()[number])
    assert {name: column.tolist() for name, column in preds.group.items()} == GROUPS


def test_missing_values_and_equal_names_in_arrow_groups_are_errors() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(InputError, match=r"TO112.*site has missing values.*row 1"):
        Predictions(Y, P, group=pa.table({"site": ["a", None, "b", "b"]}))
    with pytest.raises(InputError, match="TO313"):
        Predictions(Y, P, group=pa.Table.from_arrays([pa.array(SITES), pa.array(Y)], names=["site", "site"]))


def test_a_record_batch_is_read_as_a_table() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"label": Y, "p_0": [1 - p for p in P], "p_1": P, "site": SITES})
    batch = table.to_batches()[0]
    assert to.measure(batch, "brier", interval=None) == to.measure(table, "brier", interval=None)
    assert to.read(batch, group="site").collect().group["site"].tolist() == SITES


SMALL_FLOATS = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", SMALL_FLOATS)
def test_small_floats_have_their_exact_values_in_every_argument(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def small(values: Any) -> np.ndarray:
        return np.array(values).astype(getattr(ml_dtypes, dtype))

    weight = [1.0, 2.0, 0.5, 1.0]
    preds = Predictions(
        small(Y), small(P), weight=small(weight), group=small(Y), cluster=small(Y), classes=small([0, 1])
    )
    assert (preds.y.tolist(), preds.p.tolist(), preds.weight.tolist()) == (Y, P, weight)
    assert preds.group["group"].tolist() == preds.cluster.tolist() == Y
    np.testing.assert_array_equal(
        Predictions.from_logits(Y, small(weight)).p, Predictions.from_logits(Y, np.array(weight)).p
    )
    assert Predictions.from_confidence(small(P), small(Y)).p.tolist() == P
    assert Predictions.from_multilabel(small([[0, 1]]), small([P[:2]])).p.tolist() == [P[:2]]
    votes = [[2, 1], [0, 3], [1, 1], [1, 0]]
    np.testing.assert_array_equal(Predictions(small(votes), small(P)).votes, Predictions(votes, P).votes)
    columns = {"label": small(Y), "p_0": small([1 - p for p in P]), "p_1": small(P)}
    assert to.read(columns).collect().P[:, 1].tolist() == P
    assert (
        to.measure(small(Y), small(P), "brier", interval=None).value == to.measure(Y, P, "brier", interval=None).value
    )


def test_integers_of_four_bits_are_labels() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert Predictions(np.array(Y).astype(ml_dtypes.int4), P).y.tolist() == Y


STRINGS = getattr(np.dtypes, "StringDType", None)  # of NumPy 2


@pytest.mark.skipif(STRINGS is None, reason="NumPy 1 has no StringDType")
def test_text_of_variable_length_is_accepted_in_every_argument() -> None:
    labels = np.array(["no", "yes", "yes", "no"], dtype=STRINGS())
    preds = Predictions(labels, P, group=labels, cluster=labels, classes=np.array(["no", "yes"], dtype=STRINGS()))
    assert preds.y.tolist() == preds.cluster.tolist() == Y
    assert (preds.classes, preds.group["group"].tolist()) == (("no", "yes"), labels.tolist())
    assert Predictions.from_confidence(P, labels).y.tolist() == Y  # right or wrong
    assert to.read({"label": labels, "p_no": [1 - p for p in P], "p_yes": P}).collect().y.tolist() == Y
    with pytest.raises(InputError, match=r"TO114.*numbers as text"):
        Predictions(Y, np.array(["0.5"] * 4, dtype=STRINGS()))


@pytest.mark.skipif(STRINGS is None, reason="NumPy 1 has no StringDType")
@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_text_of_variable_length_is_an_error(missing: Any) -> None:
    labels = np.array(["no", missing, "yes", "no"], dtype=STRINGS(na_object=missing))
    with pytest.raises(InputError, match=r"TO103.*row 1"):
        Predictions(labels, P, classes=["no", "yes"]).require_labels()
    with pytest.raises(InputError, match=r"TO112.*row 1"):
        Predictions(Y, P, group=labels)

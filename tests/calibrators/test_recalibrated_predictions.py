"""Are predictions recalibrated as predict_proba does it, with everything else that belongs to their rows?"""

from typing import Any

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import draw_predictions
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

P, Y = draw_predictions(120, 3, 2.0, 0)
ROWS: dict[str, Any] = {
    "weight": np.arange(120) % 4 + 0.5,
    "group": {"site": np.array(["a", "b"] * 60)},
    "cluster": np.arange(120) // 3,
    "classes": ["x", "y", "z"],
}


def test_everything_but_the_probabilities_is_kept() -> None:
    preds = Predictions(np.array(ROWS["classes"])[Y], P, **ROWS)
    calibrator = to.fit(preds, "temperature")
    recalibrated = calibrator.recalibrate(preds)
    assert (recalibrated.p == calibrator.predict_proba(P)).all()
    for name in ("y", "weight", "cluster"):
        assert (getattr(recalibrated, name) == getattr(preds, name)).all()
    assert (recalibrated.group["site"] == preds.group["site"]).all()
    assert (recalibrated.classes, recalibrated.kind, recalibrated.n, recalibrated.k) == (
        ("x", "y", "z"),
        "classes",
        120,
        3,
    )
    expected = Predictions(np.array(ROWS["classes"])[Y], calibrator.predict_proba(P), **ROWS)
    measured = to.measure(recalibrated, "brier").to_dict()
    assert [note["code"] for note in measured.pop("notes")] == ["TN164"]  # these are the rows of the fit
    assert measured == {k: v for k, v in to.measure(expected, "brier").to_dict().items() if k != "notes"}
    with pytest.raises(ValueError, match="read-only"):
        recalibrated.p[0, 0] = 1.0


def test_a_tuple_of_arrays_is_recalibrated_as_its_predictions() -> None:
    calibrator = to.fit((Y, P), "temperature")
    recalibrated = calibrator.recalibrate((Y, P))
    assert (recalibrated.p == calibrator.predict_proba(P)).all()
    assert [note.code for note in recalibrated.notes] == ["TN164"]
    with pytest.raises(InputError, match="TO501"):
        calibrator.recalibrate((Y % 2, P[:, :2] / P[:, :2].sum(axis=1, keepdims=True)))


def test_votes_are_kept() -> None:
    votes = np.random.default_rng(0).multinomial(5, P)
    recalibrated = to.fit(Predictions(Y, P), "temperature").recalibrate(Predictions(votes, P))
    assert recalibrated.votes is not None
    assert recalibrated.counts is not None
    assert (recalibrated.votes == votes / 5).all()
    assert (recalibrated.counts == 5).all()


def test_small_complements_of_a_single_column_keep_their_digits() -> None:
    preds = Predictions([0, 1, 0, 1] * 20, [0.2, 0.9, 0.4, 1 - 2**-50] * 20)
    calibrator = to.fit(preds, "temperature")
    recalibrated = calibrator.recalibrate(preds)
    assert recalibrated.p.shape == (80, 2)  # in one column 1 − p would be exactly 0
    assert (recalibrated.p == calibrator.predict_proba(preds.p)).all()


def test_a_confidence_stays_a_confidence() -> None:
    preds = Predictions.from_confidence([0.9, 0.8, 0.7, 0.9] * 20, [1, 0, 1, 0] * 20, cluster=np.arange(80) // 2)
    recalibrated = to.fit(preds, "platt").recalibrate(preds)
    assert (recalibrated.kind, recalibrated.p.shape) == ("confidence", (80,))
    assert (recalibrated.cluster == preds.cluster).all()


def test_logits_are_used_where_the_map_takes_them() -> None:
    z = np.log(P)
    preds = Predictions.from_logits(Y, z)
    of_logits = to.fit(preds, "vector", logits=True)
    assert (of_logits.recalibrate(preds).p == of_logits.predict_proba(z, logits=True)).all()
    assert of_logits.recalibrate(preds).logits is None
    with pytest.raises(InputError, match="TO509"):
        of_logits.recalibrate(Predictions(Y, P))


def test_a_rounded_table_needs_no_second_tolerance() -> None:
    rounded = Predictions(Y, P.round(2), sum_tolerance=0.02)
    recalibrated = to.fit(rounded, "temperature").recalibrate(rounded)
    assert recalibrated.p.sum(axis=1) == pytest.approx(1)
    assert not any(note.code == "TN101" for note in recalibrated.notes)  # of the sums before


def test_other_classes_or_another_order_are_refused() -> None:
    calibrator = to.fit(Predictions(np.array(["x", "y", "z"])[Y], P, classes=["x", "y", "z"]), "temperature")
    assert calibrator.recalibrate(Predictions(Y, P)).n == 120  # numbers are those of the columns
    other = Predictions(np.array(["y", "x", "z"])[Y], P, classes=["y", "x", "z"])
    for preds in (other, Predictions([0, 1], [0.2, 0.7])):
        with pytest.raises(InputError, match=r"TO501.*x, y, z in the calibrator"):
            calibrator.recalibrate(preds)
    labels = Predictions.from_multilabel(np.eye(3, dtype=int), P[:3], classes=["x", "y", "z"])
    with pytest.raises(InputError, match="TO502"):
        calibrator.recalibrate(labels)
    with pytest.raises(InputError, match=r"TO203.*call predict_proba"):
        calibrator.recalibrate(P)  # type: ignore[arg-type]

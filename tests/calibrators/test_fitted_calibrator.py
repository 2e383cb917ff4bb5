"""A fitted calibrator: applied, printed, saved and read again; and files that are none."""

import os

import numpy as np
import pandas as pd
import pytest

import trueodds as to
from tests.calibrators.rows import both, draw_predictions, made
from trueodds.calibrators import CALIBRATORS, Isotonic
from trueodds.calibrators.fitted_calibrator import FittedCalibrator, calibrator_from_dict, load
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IsotonicSpec
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

METHODS = [name for name in CALIBRATORS.names() if name != "auto"]


def fit_calibrator(name="temperature", k=3, **more):
    P, y = draw_predictions(120, k, 2.0, 0)
    return fit(made(name), Predictions(y, P, **more))


def test_it_prints_in_one_line_and_tells_all_in_its_summary():
    result = fit(TemperatureSpec(), Predictions([0, 1, 1], [0.2, 0.7, 0.9]))
    assert result.describe() == "temperature · T = 0.001, its lower bound · n=3 · 2 classes"
    assert str(result).startswith(f"{result.describe()}\n  [TN503]")
    assert "settings: temperature (min_prob=1e-12)" in result.summary()
    assert "[TN503]" in result.summary()


def test_a_map_with_parameters_to_read_prints_their_table_before_the_notes():
    result = fit_calibrator("mcllo", classes=["a", "b", "c"])
    lines = result.summary().split("\n")
    assert lines[2].startswith("against c")
    assert [line.split()[0] for line in lines[3:5]] == ["a", "b"]
    assert lines[5].startswith("a against c: where the model predicts both as equally likely")
    summary_lines = fit(made("mcllo"), Predictions([0, 1, 1], [0.2, 0.7, 0.4])).summary().split("\n")
    assert [line.startswith("[TN") for line in summary_lines[-3:]] == [False, True, True]
    assert fit_calibrator("temperature").calibration_map.table(("a", "b", "c")) == []


def test_one_probability_and_two_columns_are_the_same():
    result = fit_calibrator(k=2)
    p = np.array([0.2, 0.9])
    assert result.predict_proba(p).tolist() == result.predict_proba(both(p)).tolist()


def test_a_prediction_is_the_name_of_the_first_of_the_most_probable_classes():
    result = fit_calibrator("identity", classes=["a", "b", "c"])
    assert result.predict([[0.2, 0.4, 0.4], [0.5, 0.25, 0.25]]).tolist() == ["b", "a"]
    mixed = FittedCalibrator(
        result.calibration_map, ("a", 1, 2.5), result.n
    )  # an array of names must not turn 1 into "1"
    assert mixed.predict([[0.0, 1.0, 0.0]]).tolist() == [1]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        ([[0.5, 0.5]], "TO501"),
        ([0.5, 0.5], "TO501"),
        ([[0.5, 0.5, 0.5]], "TO104"),
        ([[np.nan, 0.5, 0.5]], "TO103"),
        ([[-0.5, 1.0, 0.5]], "TO102"),
        ([], "TO108"),
    ],
)
def test_what_is_no_probability_is_refused(bad, code):
    with pytest.raises(InputError, match=code):
        fit_calibrator().predict_proba(bad)


def test_predictions_and_frames_in_order_are_taken_and_other_orders_refused():
    result = fit_calibrator(classes=["a", "b", "c"])
    P = draw_predictions(10, 3, 1.0, 4)[0]
    want = result.predict_proba(P)
    assert (result.predict_proba(Predictions([0] * 10, P)) == want).all()
    assert (result.predict_proba(pd.DataFrame(P, columns=["p_a", "p_b", "p_c"])) == want).all()
    assert (result.predict_proba(pd.DataFrame(P, columns=["x", "y", "z"])) == want).all()
    with pytest.raises(InputError, match=r"TO501.*not in the order"):
        result.predict_proba(pd.DataFrame(P, columns=["p_b", "p_a", "p_c"]))
    with pytest.raises(InputError, match=r"TO501.*P\[:1\]"):
        result.predict_proba(P[0])


def test_an_estimator_of_scikit_learns_kind_is_a_method_too():
    P, y = draw_predictions(120, 3, 2.0, 0)
    preds = Predictions(y, P)
    assert (
        to.fit(preds, Isotonic(between="step")).calibration_map.to_dict()
        == fit(IsotonicSpec("step"), preds).calibration_map.to_dict()
    )
    chosen = to.fit(preds, "auto", candidates=[Isotonic(), "temperature"])
    assert chosen.describe().endswith(("confirmed on held-out rows", "no fix is justified"))
    assert repr(chosen) == f"FittedCalibrator({chosen.describe()})"


def test_logits_given_as_probabilities_are_refused_with_the_argument_that_the_call_has():
    with pytest.raises(InputError, match=r"TO102.*pass logits=True\.$"):
        fit_calibrator().predict_proba([[-2.5, 0.3, 1.2]])
    with pytest.raises(InputError, match=r"TO102.*Predictions\.from_logits"):
        Predictions([0], [[-2.5, 0.3, 1.2]])


def test_rounded_tables_are_admitted_on_request():
    rounded = [[0.33, 0.33, 0.33]]
    with pytest.raises(InputError, match="TO104"):
        fit_calibrator().predict_proba(rounded)
    assert fit_calibrator().predict_proba(rounded, sum_tolerance=0.02).sum() == pytest.approx(1.0)


def test_float32_rows_come_back_as_float64():
    assert fit_calibrator().predict_proba(np.full((2, 3), 1 / 3, dtype=np.float32)).dtype == np.float64


def test_independent_labels_are_refused():
    with pytest.raises(InputError, match="TO502"):
        fit(TemperatureSpec(), Predictions.from_multilabel([[0, 1]], [[0.2, 0.8]]))


def test_notes_on_the_data_stay_with_the_fit():
    result = fit(TemperatureSpec(), Predictions([0, 1], [[0.6, 0.400001], [0.3, 0.7]]))
    assert result.notes[0].code == "TN101"


@pytest.mark.parametrize(
    ("name", "k"),
    [(name, k) for name in CALIBRATORS.names() for k in (2, 4) if k == 2 or not CALIBRATORS.load(name).two_classes],
)
def test_saved_and_loaded_it_maps_to_the_same_bits(name, k, tmp_path):
    result = fit_calibrator(name, k, classes=[f"class {c}" for c in range(k)])
    result.save(tmp_path / "cal.json")
    restored = load(tmp_path / "cal.json")
    P = draw_predictions(500, k, 3.0, 1)[0]
    assert (restored.predict_proba(P) == result.predict_proba(P)).all()
    assert restored.to_dict() == result.to_dict()
    assert (restored.classes, restored.n, restored.notes) == (result.classes, result.n, result.notes)
    assert os.listdir(tmp_path) == ["cal.json"]


def test_a_file_holds_the_schema_and_the_version():
    document = fit_calibrator().to_dict()
    keys = ["schema", "method", "parameters", "classes", "n", "settings", "notes", "version", "fingerprint"]
    assert list(document) == [*keys, "named_parameters"]
    assert document["schema"] == "trueodds.calibrator/1"
    assert document["settings"] == {"calibrator": "temperature", "min_prob": 1e-12}


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "cal.json"
    fit_calibrator().save(path)
    before = path.read_text(encoding="utf-8")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(InputError, match=r"TO503.*disk"):
        fit_calibrator("isotonic").save(path)
    assert path.read_text(encoding="utf-8") == before
    assert os.listdir(tmp_path) == ["cal.json"]


def test_names_that_json_cannot_hold_are_refused(tmp_path):
    odd = FittedCalibrator(TemperatureMap(1.0), (("a", 1), ("b", 2)), 10)
    with pytest.raises(InputError, match="TO506"):
        odd.save(tmp_path / "cal.json")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": 7}', '{"schema": "trueodds.tally/1"}', '{"x": NaN}', "[" * 100_000, "\x80"],
)
def test_a_file_that_is_no_calibrator_is_refused(text, tmp_path):
    path = tmp_path / "cal.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="TO503"):
        load(path)


def test_a_missing_file_and_a_pickle_are_refused(tmp_path):
    import pickle

    with pytest.raises(InputError, match="TO503"):
        load(tmp_path / "none.json")
    (tmp_path / "cal.pkl").write_bytes(pickle.dumps({"schema": "trueodds.calibrator/1"}))
    with pytest.raises(InputError, match="TO503"):
        load(tmp_path / "cal.pkl")


def test_a_later_schema_asks_for_a_later_version():
    with pytest.raises(InputError, match="TO504"):
        calibrator_from_dict({"schema": "trueodds.calibrator/2"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("method", "auto"),
        ("method", "os.system"),
        ("method", ["temperature"]),
        ("classes", ["a"]),
        ("classes", ["a", "a", "b"]),
        ("classes", ["a", {}, "b"]),
        ("n", 0),
        ("n", True),
        ("n", 2.5),
        ("settings", []),
        ("notes", [{"code": 1, "text": "x"}]),
        ("notes", "x"),
        ("version", 1),
        ("parameters", []),
        ("parameters", {}),
        ("parameters", {"beta": 1.0, "n_passes": 3, "more": 1}),
        ("parameters", {"beta": 0, "n_passes": 3}),
        ("parameters", {"beta": -1.0, "n_passes": 3}),
        ("parameters", {"beta": "1", "n_passes": 3}),
        ("parameters", {"beta": True, "n_passes": 3}),
        ("parameters", {"beta": 1e9, "n_passes": 3}),
        ("parameters", {"beta": 10**400, "n_passes": 3}),
        ("parameters", {"beta": 1.0, "n_passes": -3}),
    ],
)
def test_a_value_out_of_place_is_refused(key, value):
    with pytest.raises(InputError, match="TO505"):
        calibrator_from_dict({**fit_calibrator().to_dict(), key: value})


def test_a_key_too_few_or_too_many_is_refused():
    document = fit_calibrator().to_dict()
    for wrong in ({**document, "extra": 1}, {k: v for k, v in document.items() if k != "notes"}):
        with pytest.raises(InputError, match="TO505"):
            calibrator_from_dict(wrong)


def test_the_shape_of_the_data_is_checked_once_for_fits_too():
    with pytest.raises(InputError, match="TO104"):
        fit(IsotonicSpec(), Predictions([0], [[0.5, 0.6]]))

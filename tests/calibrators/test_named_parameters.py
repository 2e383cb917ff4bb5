"""Are fitted parameters available under their symbols in the literature, with the values of the formulas?"""

import copy
import json
import pickle

import numpy as np
import pytest

import trueodds as to
from tests.calibrators.rows import GROUP_SETTINGS, draw_predictions
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict

P, Y = draw_predictions(400, 3, 2.0, 0)
P_TWO, Y_TWO = draw_predictions(400, 2, 2.0, 0)


def softmax(z):
    q = np.exp(z - z.max(axis=1, keepdims=True))
    return q / q.sum(axis=1, keepdims=True)


def recalibrated_log_odds(fitted):
    Q = fitted.predict_proba(P_TWO)
    return np.log(Q[:, 1] / Q[:, 0])


def test_the_formulas_of_two_classes_give_the_recalibrated_probabilities():
    log_odds = np.log(P_TWO[:, 1] / P_TWO[:, 0])
    fitted = to.fit(Y_TWO, P_TWO, "temperature")
    assert recalibrated_log_odds(fitted) == pytest.approx(log_odds / fitted.T, rel=1e-8, abs=1e-9)
    fitted = to.fit(Y_TWO, P_TWO, "platt")
    assert recalibrated_log_odds(fitted) == pytest.approx(fitted.a * log_odds + fitted.b, rel=1e-8, abs=1e-9)
    fitted = to.fit(Y_TWO, P_TWO, "beta")
    formula = fitted.c + fitted.a * np.log(P_TWO[:, 1]) - fitted.b * np.log(P_TWO[:, 0])
    assert recalibrated_log_odds(fitted) == pytest.approx(formula, rel=1e-8, abs=1e-9)
    fitted = to.fit(Y_TWO, P_TWO, "llo")
    formula = np.log(fitted.delta) + fitted.gamma * log_odds
    assert recalibrated_log_odds(fitted) == pytest.approx(formula, rel=1e-8, abs=1e-9)


def test_the_formulas_of_several_classes_give_the_recalibrated_probabilities():
    fitted = to.fit(Y, P, "dirichlet")
    assert fitted.predict_proba(P) == pytest.approx(softmax(np.log(P) @ fitted.W.T + fitted.b), rel=1e-8)
    fitted = to.fit(Y, P, "vector")
    assert fitted.predict_proba(P) == pytest.approx(softmax(fitted.W * np.log(P) + fitted.b), rel=1e-8)
    fitted = to.fit(Y, P, "bias_corrected_temperature")
    assert fitted.predict_proba(P) == pytest.approx(softmax(np.log(P) / fitted.T + fitted.b), rel=1e-8)
    fitted = to.fit(Y, P, "mcllo")  # against the last class
    z = np.log(fitted.delta) + fitted.gamma * np.log(P[:, :2] / P[:, [2]])
    assert fitted.predict_proba(P) == pytest.approx(softmax(np.c_[z, np.zeros(len(P))]), rel=1e-8)
    assert to.fit(Y, P, "platt").a.shape == (3,)  # a sigmoid for each class


def test_named_parameters_are_in_the_json_but_not_in_the_file(tmp_path):
    fitted = to.fit(Y_TWO, P_TWO, "platt")
    document = fitted.to_dict()
    assert document["named_parameters"] == fitted.parameters == {"a": fitted.a, "b": fitted.b}
    assert calibrator_from_dict(document).parameters == fitted.parameters
    fitted.save(tmp_path / "platt.json")
    saved = json.loads((tmp_path / "platt.json").read_text(encoding="utf-8"))
    assert saved == {key: value for key, value in document.items() if key != "named_parameters"}


# Calibrators whose map is a curve of knots, bins or cells, or unchanged probabilities, and no formula.
WITHOUT_FORMULA = {
    "identity", "isotonic", "centered_isotonic", "irm", "venn_abers", "enir", "bbq", "histogram", "simplex_histogram",
    "spline", "multicalibrated",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CALIBRATORS.names() if name != "auto"])
def test_every_formula_has_its_parameters_as_attributes_in_the_json_and_in_the_frame(name):
    two_classes = CALIBRATORS.load(name).two_classes
    settings = {"priors": [0.2, 0.3, 0.5]} if name == "prior_shift" else GROUP_SETTINGS.get(name, {})
    fitted = to.fit(*((Y_TWO, P_TWO) if two_classes else (Y, P)), name, **settings)
    parameters, frame = fitted.parameters, fitted.frame()
    assert (not parameters) == (name in WITHOUT_FORMULA)
    for symbol, value in parameters.items():
        assert np.isfinite(value).all()
        assert np.array_equal(getattr(fitted, symbol), value)
        numbers = frame["value"][[own == symbol for own in frame["parameter"]]]
        assert np.array_equal(numbers, np.ravel(value))
        assert np.array_equal(fitted.to_dict()["named_parameters"][symbol], value)
    interval = fitted.interval
    assert (
        np.isfinite(frame["low"]).all() == np.isfinite(frame["high"]).all() == (interval is not None or not parameters)
    )
    for symbol, ends in (interval or {}).items():
        rows = frame[frame["parameter"] == symbol]
        assert np.array_equal(rows[["low", "high"]], np.reshape(ends, (-1, 2)))


def test_parameters_of_mixtures_bins_and_kernels_give_the_recalibrated_probabilities():
    fitted = to.fit(Y, P, "ensemble_temperature", loss="brier")
    tempered = softmax(np.log(P) / fitted.T)
    mixed = fitted.w[0] * tempered + fitted.w[1] * P + fitted.w[2] / 3
    assert fitted.predict_proba(P) == pytest.approx(mixed, rel=1e-8)
    fitted = to.fit(Y, P, "prior_shift", priors=[0.2, 0.3, 0.5])
    weighted = P * fitted.w
    assert fitted.predict_proba(P) == pytest.approx(weighted / weighted.sum(axis=1, keepdims=True), rel=1e-8)
    fitted = to.fit(Y_TWO, P_TWO, "evidential", output="point")
    log_odds = np.log(P_TWO[:, 1] / P_TWO[:, 0])
    assert recalibrated_log_odds(fitted) == pytest.approx(fitted.a * log_odds + fitted.b, rel=1e-6, abs=1e-7)
    fitted = to.fit(Y, P, "evidential", output="point")
    assert fitted.predict_proba(P) == pytest.approx(softmax(fitted.theta * np.log(P)), rel=1e-6)
    fitted = to.fit(Y_TWO, P_TWO, "scaling_binning")
    sigmoid = 1 / (1 + np.exp(-(fitted.a * log_odds + fitted.b)))  # each bin has its mean
    assert fitted.predict_proba(P_TWO)[:, 1].mean() == pytest.approx(sigmoid.mean(), rel=1e-6)
    assert to.fit(Y, P, "irova_ts").T == to.fit(Y, P, "temperature").T


def test_a_map_without_a_formula_has_no_parameters():
    fitted = to.fit(Y_TWO, P_TWO, "isotonic")
    assert fitted.parameters == {}
    with pytest.raises(AttributeError, match="'FittedCalibrator' object has no attribute 'T'"):
        _ = fitted.T


def test_copies_have_the_parameters():
    fitted = to.fit(Y, P, "temperature")
    for copied in (copy.copy(fitted), copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert fitted.T == copied.T


def test_the_frame_has_a_row_per_number():
    fitted = to.fit(Y, P, "dirichlet")
    frame = fitted.frame()
    assert frame["parameter"].tolist() == ["W"] * 9 + ["b"] * 3
    assert frame["index"].tolist()[:4] == ["0, 0", "0, 1", "0, 2", "1, 0"]
    assert frame["value"].tolist() == [*fitted.W.ravel().tolist(), *fitted.b.tolist()]


def test_the_intervals_are_those_of_the_table():
    fitted = to.fit(Y_TWO, P_TWO, "llo")
    (low, high), shown = fitted.interval["gamma"], fitted.summary()
    assert f"[{low:.3f}, {high:.3f}]" in shown
    assert "[{:.3f}, {:.3f}]".format(*fitted.interval["delta"]) in shown
    assert fitted.value == fitted.parameters
    several = to.fit(Y, P, "mcllo")
    assert (several.interval["delta"][:, 0] < several.delta).all()
    assert (several.delta < several.interval["delta"][:, 1]).all()
    assert to.fit(Y, P, "temperature").interval is None

"""A calibrator of one probability, fitted to the largest."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from tests.reference import columns, frame, golden
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.calibrators.temperature import MAX_BETA, MIN_BETA, TemperatureSpec
from trueodds.calibrators.top_vs_all import TopVsAllSpec, top_class_derivatives
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions

BINARY = ("isotonic", "centered_isotonic", "histogram", "platt", "beta", "temperature", "identity", "venn_abers")


def fit_map(P, y, calibrator="temperature"):
    return TopVsAllSpec(calibrator).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


@pytest.mark.parametrize(("calibrator", "key"), [("isotonic", "isotonic"), (HistogramSpec(bins=15), "hist15")])
def test_the_reference_numbers_of_maps_of_the_confidence(calibrator, key):
    # Pieces checked against scikit-learn and netcal; exact (golden/recalibration/tva.json).
    want, rows = golden("recalibration/tva.json"), frame("recalibration/multi4.csv")
    m = fit_map(columns(rows), rows["y"], calibrator)
    assert m.inner_map.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want[key]), abs=1e-10)


def test_the_reference_temperature():
    # Found by comparing values, which leaves about 1e-8 of β.
    want, rows = golden("recalibration/tva.json"), frame("recalibration/multi4.csv")
    m = fit_map(columns(rows), rows["y"])
    assert m.inner_map.beta == pytest.approx(want["ts_beta"], abs=3e-8)


def top_loss(P, correct, w, beta):
    s = powers(P, beta).max(axis=1)
    return -(w * (correct * np.log(s) + (1 - correct) * np.log(1 - s))).sum()


def test_an_independent_minimizer_finds_the_same_temperature_with_votes_and_weights():
    rng = np.random.default_rng(0)
    P, y = draw_predictions(300, 4, 1.8, 1)
    Y, w = 0.7 * one_hot(y, 4) + 0.3 * rng.dirichlet(np.ones(4), 300), rng.random(300)
    m = TopVsAllSpec().fit(P, Y, w)
    correct = Y[np.arange(300), P.argmax(axis=1)]
    optimum = minimize_scalar(
        lambda beta: top_loss(P, correct, w, beta), bounds=(0.1, 3), method="bounded", options={"xatol": 1e-9}
    ).x
    assert m.inner_map.beta == pytest.approx(optimum, abs=1e-6)  # a minimizer that compares values resolves no more


def test_the_slopes_are_those_of_the_loss():
    rng = np.random.default_rng(2)
    P, Y, w = rng.dirichlet(np.ones(4), 50), rng.dirichlet(np.ones(4), 50), rng.random(50)
    correct = Y[np.arange(50), P.argmax(axis=1)]
    for beta in (0.3, 1.0, 2.5):
        h = 1e-5  # central differences: h² of the third derivative and eps/h of rounding
        first, second = top_class_derivatives(P, Y, w, 1e-12, beta)
        up, down = (top_loss(P, correct, w, beta + step) for step in (h, -h))
        assert first == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)
        up, down = (top_class_derivatives(P, Y, w, 1e-12, beta + step)[0] for step in (h, -h))
        assert second == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)


def test_the_slope_vanishes_at_the_temperature():
    P, y = draw_predictions(3000, 5, 2.0, 3)
    m = fit_map(P, y)
    assert abs(top_class_derivatives(P, y, np.ones(3000), 1e-12, m.inner_map.beta)[0]) / 3000 < 1e-8


def test_two_classes_have_the_temperature_of_the_log_loss():
    P, y = draw_predictions(500, 2, 2.0, 4)
    assert fit_map(P, y).inner_map.beta == pytest.approx(TemperatureSpec().fit(P, y, np.ones(500)).beta, rel=1e-9)


def test_the_others_share_what_is_left_in_proportion():
    # The top said .6 and came in half of the rows: .5 is left for .3 and .1, three to one.
    P = np.array([[0.6, 0.3, 0.1]] * 4)
    m = fit_map(P, [0, 0, 1, 2], "isotonic")
    assert m.apply(P[:1])[0] == pytest.approx([0.5, 0.375, 0.125])


def test_a_confidence_that_is_too_small_for_the_label_is_raised_and_counted():
    # The top said .6 and came in a quarter of the rows; in proportion the next would have .3/.4 of the rest. They
    # meet at q = 3/4 (1 − q), q = 3/7.
    P = np.array([[0.3, 0.6, 0.1]] * 4)
    result = fit(TopVsAllSpec("isotonic"), Predictions([1, 0, 0, 2], P))
    Q = result.predict_proba(P)
    assert Q[0] == pytest.approx([3 / 7, 3 / 7, 1 / 7])
    assert (Q.argmax(axis=1) == 1).all()
    assert "4 of 4 rows" in next(note.text for note in result.notes if note.code == "TN512")


def test_zeros_are_counted_in_the_whole_row():
    # Always right at .9: nothing is left for the others. Never right at .6: raised, so that nobody is ruled out.
    P = np.array([[0.9, 0.05, 0.05]] * 3 + [[0.6, 0.2, 0.2]] * 2)
    result = fit(TopVsAllSpec("isotonic"), Predictions([0, 0, 0, 1, 2], P))
    assert result.predict_proba(P)[[0, 3]] == pytest.approx(np.array([[1, 0, 0], [1 / 3, 1 / 3, 1 / 3]]))
    codes = {note.code: note.text for note in result.notes}
    assert "3 of the 5 rows" in codes["TN505"]
    assert "In 2 of 5 rows" in codes["TN512"]


def test_a_top_that_was_certain_leaves_the_others_alike():
    P = np.array([[0.0, 1.0, 0.0]] * 4)
    m = fit_map(P, [1, 1, 1, 0], "isotonic")
    assert m.apply(P[:1])[0] == pytest.approx([0.125, 0.75, 0.125])


@pytest.mark.parametrize("calibrator", BINARY)
def test_every_label_stays_and_rows_sum_to_one(calibrator):
    rng = np.random.default_rng(5)
    P = rng.multinomial(20, np.ones(4) / 4, 300) / 20
    y = rng.integers(0, 4, 300)
    Q = fit_map(P, y, calibrator).apply(P)
    assert (Q.argmax(axis=1) == P.argmax(axis=1)).all()
    assert Q.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert (Q >= 0).all()


@pytest.mark.parametrize("calibrator", BINARY)
def test_saved_and_read_back_it_is_the_same_map(calibrator):
    P, y = draw_predictions(200, 4, 2.0, 6)
    result = fit(TopVsAllSpec(calibrator), Predictions(y, P))
    restored = calibrator_from_dict(result.to_dict())
    assert (restored.predict_proba(P) == result.predict_proba(P)).all()
    assert result.settings == {"calibrator": "top_vs_all", "inner": calibrator}
    assert result.calibration_map.describe().startswith(f"{calibrator} of the confidence")


def test_confidence_is_calibrated_by_the_curve():
    P, y = draw_predictions(20_000, 5, 2.5, 7)
    half, rest = slice(0, 10_000), slice(10_000, None)
    Q = fit_map(P[half], y[half], "isotonic").apply(P[rest])
    right = Q.argmax(axis=1) == y[rest]
    # Two means of 10⁴ rows, one of them through the fit: four standard errors of each, at most ½/√10⁴.
    assert abs(Q.max(axis=1).mean() - right.mean()) < 8 * 0.5 / 100


def test_labels_and_one_hot_shares_are_the_same():
    P, y = draw_predictions(400, 3, 2.0, 8)
    for calibrator in ("temperature", "isotonic"):
        one, other = (TopVsAllSpec(calibrator).fit(P, Y, np.ones(400)) for Y in (y, one_hot(y, 3)))
        assert one.apply(P) == pytest.approx(other.apply(P), abs=1e-12)


def test_always_right_and_never_right_end_at_the_range_and_say_so():
    P = draw_predictions(50, 3, 2.0, 9)[0]
    right = fit(TopVsAllSpec(), Predictions(P.argmax(axis=1), P))
    wrong = fit(TopVsAllSpec(), Predictions(P.argmin(axis=1), P))
    assert (right.calibration_map.inner_map.beta, wrong.calibration_map.inner_map.beta) == (MAX_BETA, MIN_BETA)
    assert not right.calibration_map.converged
    assert [[note.code for note in calibrator.notes] for calibrator in (right, wrong)] == [
        ["TN503"],
        ["TN142", "TN504"],
    ]


def test_an_unknown_name_lists_the_near_ones():
    with pytest.raises(InputError, match="isotonic"):
        TopVsAllSpec("isotonnic")


def test_a_fit_to_logits_is_refused():
    spec_types = [CALIBRATORS.load(name) for name in CALIBRATORS.names()]
    on_logits = next(spec_type for spec_type in spec_types if "logits" in spec_type.__dataclass_fields__)
    with pytest.raises(InputError, match="TO203"):
        TopVsAllSpec(on_logits(logits=True))

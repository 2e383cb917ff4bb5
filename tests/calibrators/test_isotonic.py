"""Isotonic regression."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IsotonicMap, IsotonicSpec, fit_monotone
from trueodds.data.predictions import Predictions


def fit_map(P, y, between="linear"):
    return IsotonicSpec(between).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_a_fall_is_pooled_and_the_line_runs_between_the_knots():
    # Outcomes 0 1 0 1 at .1 .2 .3 .4: the middle two fall and pool to 1/2.
    m = fit_map(both([0.1, 0.2, 0.3, 0.4]), [0, 1, 0, 1])
    assert m.curves[0].x.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert m.curves[0].y.tolist() == [0.0, 0.5, 0.5, 1.0]
    # Half way from .3 to .4 is half way from 1/2 to 1; beyond the ends it is flat.
    assert m.apply(both([0.05, 0.35, 0.9]))[:, 1] == pytest.approx([0.0, 0.75, 1.0])


def test_a_step_keeps_the_value_of_the_knot_to_its_left():
    m = fit_map(both([0.1, 0.2, 0.3, 0.4]), [0, 1, 0, 1], "step")
    assert m.apply(both([0.05, 0.2, 0.39, 0.4]))[:, 1].tolist() == [0.0, 0.5, 0.5, 1.0]


def test_tied_scores_are_pooled_whatever_the_row_order():
    m = fit_map(both([0.5, 0.5, 0.5, 0.7]), [1, 0, 1, 1])
    assert m.curves[0].y == pytest.approx([2 / 3, 1.0])


@pytest.mark.parametrize("between", ["linear", "step"])
def test_the_reference_numbers(between):
    # scikit-learn's IsotonicRegression, exact (golden/recalibration/isotonic.json).
    want, rows = golden("recalibration/isotonic.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"], between)
    got = m.apply(both(want["grid"]))[:, 1]
    assert got == pytest.approx(np.array(want["binary"][f"pred_{between}"]), abs=1e-10)


def test_the_reference_numbers_with_ties():
    want, rows = golden("recalibration/isotonic.json"), frame("recalibration/binary_ties.csv")
    got = fit_map(both(rows["p"]), rows["y"]).apply(both(want["grid"]))[:, 1]
    assert got == pytest.approx(np.array(want["ties"]["pred_linear"]), abs=1e-10)


def test_the_reference_numbers_one_against_the_rest():
    # scikit-learn's CalibratedClassifierCV on a frozen classifier, 1e-16.
    want = golden("recalibration/isotonic_ovr.json")
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    m = fit_map(columns(rows), rows["y"])
    assert m.apply(columns(test)) == pytest.approx(np.array(want["pred"]), abs=1e-10)


def test_a_row_that_no_curve_believes_becomes_uniform():
    P = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]] * 3)
    m = fit_map(P, [0, 1, 2] * 3)
    assert m.apply(np.full((1, 3), 0.2))[0] == pytest.approx(np.full(3, 1 / 3))


def test_no_increasing_curve_fits_better():
    # The fit minimizes squared error over increasing curves: the identity is one of them.
    P, y = draw_predictions(500, 2, 2.0, 0)
    m = fit_map(P, y)
    assert ((m.apply(P)[:, 1] - y) ** 2).sum() < ((P[:, 1] - y) ** 2).sum()
    assert (np.diff(m.curves[0].y) >= 0).all()


def test_exact_zeros_are_kept_and_noted():
    result = fit(IsotonicSpec(), Predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]))
    assert result.predict_proba([0.1]).tolist() == [[1.0, 0.0]]
    assert [note.code for note in result.notes] == ["TN505"]
    assert "4 of the 4 rows" in result.notes[0].text


def test_a_class_without_rows_keeps_its_column():
    P, y = draw_predictions(60, 3, 1.0, 1)
    result = fit(IsotonicSpec(), Predictions(np.minimum(y, 1), P))
    assert result.predict_proba(P).shape == (60, 3)
    assert "TN501" in [note.code for note in result.notes]


@pytest.mark.parametrize("name", ["isotonic", "centered_isotonic", "venn_abers"])
@pytest.mark.parametrize("k", [2, 4])
def test_labels_and_float32_give_the_fit_of_shares_and_float64(name, k):
    P, y = draw_predictions(300, k, 2.0, 3)
    P, spec = P.astype(np.float32), CALIBRATORS.load(name)()
    for w in (np.ones(300), np.random.default_rng(0).integers(0, 3, 300) / 2):
        one, other = spec.fit(P, y, w), spec.fit(P.astype(np.float64), one_hot(y, k), w)
        assert one.to_dict() == other.to_dict()
        assert spec.notes(one, P, y, w) == spec.notes(other, P.astype(np.float64), one_hot(y, k), w)


def test_a_fit_of_arrays_is_the_curve_of_each_class():
    P, y = draw_predictions(300, 3, 2.0, 4)
    w = np.random.default_rng(1).random(300)
    m = IsotonicSpec().fit(P, one_hot(y, 3), w)
    for c, curve in enumerate(m.curves):
        alone = fit_monotone(P[:, c], (y == c).astype(float), w)
        assert (alone.x == curve.x).all()
        assert (alone.y == curve.y).all()


def test_saved_curves_never_fall_though_means_of_weights_are_rounded():
    # Adjacent means that are equal but for rounding: each pair of rows has mean 1/3 by other weights.
    rng = np.random.default_rng(2)
    for _ in range(50):
        a = rng.random(40)
        w = np.stack([a, 2 * a], axis=1).ravel()
        m = IsotonicSpec().fit(both(np.repeat(np.arange(40) / 40, 2)), one_hot([1, 0] * 40), w)
        assert (IsotonicMap.from_dict(m.to_dict(), 2).curves[0].y == m.curves[0].y).all()


@pytest.mark.parametrize("between", ["linear", "step"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_rows_with_a_zero_are_noted_without_being_mapped(k, between):
    P, y = draw_predictions(200, k, 3.0, 5)
    y[:20] = np.arange(20) % k  # said for sure and right: the lowest scores of every class never come
    P[:20] = one_hot(y[:20], k)
    m = fit_map(P, y, between)
    assert (m.rows_without_zero(P) == (m.apply(P) > 0).all(axis=1)).all()
    assert not m.rows_without_zero(P).all()

"""Centered isotonic regression."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import CenteredIsotonicSpec, IsotonicSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, w=None):
    return CenteredIsotonicSpec().fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_a_pooled_block_is_one_point_at_its_mean():
    # Outcomes 0 1 0 1 at .1 .2 .3 .4, the third with weight 3: the middle two pool to 1/4 at (.2 + 3 · .3)/4 = .275.
    (curve,) = fit_map(both([0.1, 0.2, 0.3, 0.4]), [0, 1, 0, 1], w=np.array([1.0, 1.0, 3.0, 1.0])).curves
    assert curve.x == pytest.approx([0.1, 0.275, 0.4])
    assert curve.y == pytest.approx([0.0, 0.25, 1.0])


def test_the_reference_numbers_with_ties():
    # cir_model 0.2.0, 2e-16 (golden/recalibration/cir.json).
    want, rows = golden("recalibration/cir.json"), frame("recalibration/binary_ties.csv")
    m = fit_map(both(rows["p"]), rows["y"])
    assert m.curves[0].x == pytest.approx(want["ties"]["x"], abs=1e-12)
    assert m.curves[0].y == pytest.approx(want["ties"]["y"], abs=1e-12)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(want["ties"]["pred_grid"], abs=1e-12)


def test_the_reference_numbers():
    want, rows = golden("recalibration/cir.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"])
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(want["binary"]["pred_grid"], abs=1e-12)


def test_equal_neighbors_are_pooled_too():
    # Pairs 1 0 at .1 .2 and at .3 .4 are 1/2 each: one stretch, one point in the middle.
    (curve,) = fit_map(both([0.1, 0.2, 0.3, 0.4]), [1, 0, 1, 0]).curves
    assert (curve.x.tolist(), curve.y.tolist()) == ([0.25], [0.5])


def test_blocks_at_exactly_zero_and_one_stay_flat():
    m = fit_map(both([0.1, 0.2, 0.3, 0.6, 0.7, 0.9]), [0, 0, 0, 1, 1, 1])
    assert m.apply(both([0.05, 0.25, 0.3, 0.45, 0.6, 0.95]))[:, 1] == pytest.approx([0, 0, 0, 0.5, 1, 1])


def test_inside_the_curve_rises_strictly():
    P, y = draw_predictions(2000, 2, 2.0, 0)
    (curve,) = fit_map(P, y).curves
    inner = (curve.y > 0) & (curve.y < 1)
    assert (np.diff(curve.y[inner]) > 0).all()
    assert (np.diff(curve.x) > 0).all()


def test_it_errs_less_than_isotonic_regression_where_the_truth_rises():
    # Oron & Flournoy's claim, on 200 sets of 100 rows: the paired difference of the squared errors lies more than four
    # of its standard errors below 0.
    rng, better = np.random.default_rng(1), []
    grid = np.linspace(0.05, 0.95, 50)
    for _ in range(200):
        p = rng.random(100)
        P, Y = both(p), one_hot(rng.random(100) < p**2)
        errors = [
            ((spec.fit(P, Y, np.ones(100)).apply(both(grid))[:, 1] - grid**2) ** 2).mean()
            for spec in (CenteredIsotonicSpec(), IsotonicSpec("step"))
        ]
        better.append(errors[0] - errors[1])
    assert np.mean(better) < -4 * np.std(better) / np.sqrt(200)


def test_constant_scores_give_the_rate():
    m = fit_map(both([0.4] * 5), [0, 1, 1, 0, 1])
    assert m.apply(both([0.1, 0.4, 0.9]))[:, 1] == pytest.approx([0.6, 0.6, 0.6])
    assert m.describe() == "1 knot"


def test_exact_zeros_are_noted():
    result = fit(CenteredIsotonicSpec(), Predictions([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]))
    assert [note.code for note in result.notes] == ["TN505"]
    assert "4 of the 4 rows" in result.notes[0].text

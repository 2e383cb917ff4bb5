"""Tempered rows, then an isotonic curve per class."""

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IrovaTsSpec, IsotonicSpec, tempered_scores
from trueodds.calibrators.temperature import TemperatureMap, TemperatureSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y):
    return IrovaTsSpec().fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_the_reference_numbers():
    # The official Mix-n-Match code before it adds 1e-9 p, 1e-9; rows over their sum, which it leaves out
    # (golden/recalibration/irm_irova.json).
    want = golden("recalibration/irm_irova.json")
    rows, test = frame("recalibration/multi4.csv"), columns(frame("recalibration/multi4_test.csv"))
    m = fit_map(columns(rows), rows["y"])
    tempered = tempered_scores(m.temperature_map, test)
    raw = np.stack([curve(tempered[:, c]) for c, curve in enumerate(m.curves.curves)], axis=1)
    assert raw == pytest.approx(np.array(want["irova_ts_raw"]), abs=1e-10)
    assert m.apply(test) == pytest.approx(np.array(want["irova_ts_pred"]), abs=1e-10)


def test_it_is_the_isotonic_fit_of_tempered_rows():
    P, y = draw_predictions(300, 3, 2.0, 0)
    tempered = TemperatureSpec().fit(P, y, np.ones(300))
    Q = tempered_scores(tempered, P)
    assert pytest.approx(tempered.apply(P), abs=1e-15) == Q
    assert fit_map(P, y).apply(P) == pytest.approx(IsotonicSpec().fit(Q, one_hot(y, 3), np.ones(300)).apply(Q))


def test_rows_of_the_same_numbers_have_the_same_scores_to_the_bit():
    # Sums in another order are rounded otherwise, and a score that differs in its last bit is another score.
    P = np.random.default_rng(0).dirichlet(np.ones(9), 200)
    order = np.random.default_rng(1).permutation(9)
    Q = tempered_scores(TemperatureMap(0.37), P)
    assert (tempered_scores(TemperatureMap(0.37), P[:, order]) == Q[:, order]).all()
    assert (tempered_scores(TemperatureMap(0.37), P[::-1]) == Q[::-1]).all()


def test_by_hand():
    # Four rows said .8 of which half came, one said .9 and came. Any temperature keeps .8 below .9.
    P, y = both([0.8, 0.8, 0.8, 0.8, 0.9]), [1, 0, 1, 0, 1]
    assert fit_map(P, y).apply(P)[:, 1] == pytest.approx([0.5, 0.5, 0.5, 0.5, 1.0])


def test_its_notes_are_those_of_both_parts():
    result = fit(IrovaTsSpec(), Predictions([0, 1, 1], both([0.2, 0.7, 1.0])))
    assert [note.code for note in result.notes] == ["TN502", "TN503", "TN505"]
    assert not result.calibration_map.converged

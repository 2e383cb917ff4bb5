"""One increasing curve for the probabilities of all classes."""

import numpy as np
import pytest

from tests.calibrators.rows import draw_predictions, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.isotonic import IrmSpec
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def fit_map(P, y, **settings):
    return IrmSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_the_reference_numbers():
    # The official Mix-n-Match code, 8e-16 (golden/recalibration/irm_irova.json).
    want = golden("recalibration/irm_irova.json")
    rows, test = frame("recalibration/multi4.csv"), columns(frame("recalibration/multi4_test.csv"))
    m = fit_map(columns(rows), rows["y"])
    assert m.curve(test.ravel()).reshape(test.shape) == pytest.approx(np.array(want["irm_raw"]), abs=1e-10)
    assert m.apply(test) == pytest.approx(np.array(want["irm_pred"]), abs=1e-10)


def test_all_pairs_fit_one_curve():
    # Pairs by score: .1 (0, 0, 0), .3 (0, 1, 0), .6 (1, 0, 1): means 0, 1/3, 2/3. Over their sum, which is 1.
    P = np.array([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    m = fit_map(P, [0, 1, 2])
    assert m.curve.x.tolist() == [0.1, 0.3, 0.6]
    assert m.curve.y == pytest.approx([0, 1 / 3, 2 / 3])
    assert m.apply(P[:1])[0] == pytest.approx([2 / 3, 1 / 3, 0], abs=1e-9)


def test_the_order_within_a_row_survives_where_the_curve_is_flat():
    P = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    Q = fit_map(P, [2, 0]).apply(P)  # of .2 two of two came, of the others none: the curve is flat at 1/3
    assert (np.argsort(Q, axis=1) == np.argsort(P, axis=1)).all()
    assert Q == pytest.approx(1 / 3, abs=1e-9)


def test_votes_are_shares():
    P, y = draw_predictions(100, 3, 1.5, 0)
    Y = one_hot(y, 3)
    halves = IrmSpec().fit(P, (Y + Y[::-1]) / 2, np.ones(100))
    doubled = IrmSpec().fit(np.concatenate([P, P]), np.concatenate([Y, Y[::-1]]), np.ones(200))
    assert halves.apply(P) == pytest.approx(doubled.apply(P), abs=1e-12)


def test_it_needs_fewer_rows_than_a_curve_per_class():
    # One curve is right for labels drawn with a power of what was said, up to the sum of the row.
    P, y = draw_predictions(4000, 5, 2.0, 1)
    train, rest = slice(0, 400), slice(400, None)
    m = fit_map(P[train], y[train])
    brier = lambda Q: ((Q - one_hot(y[rest], 5)) ** 2).sum(axis=1).mean()
    assert brier(m.apply(P[rest])) < brier(P[rest]) - 0.02


def test_classes_that_are_all_but_ruled_out_are_counted():
    P = np.array([[0.9, 0.05, 0.05]] * 3)
    result = fit(IrmSpec(), Predictions([0, 0, 0], P))
    assert "3 of the 3 rows" in next(note.text for note in result.notes if note.code == "TN513")
    assert (result.predict_proba(P) > 0).all()


def test_the_tilt_is_a_setting():
    P, y = draw_predictions(100, 3, 1.5, 2)
    assert fit_map(P, y, tilt=1.0).apply(P).min() > fit_map(P, y).apply(P).min()
    for wrong in (0, -1, 2, "x", True):
        with pytest.raises(InputError, match="TO203"):
            IrmSpec(tilt=wrong)

"""The calibration function, cell by cell of the simplex."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.calibrators.rows import both, draw_predictions, one_hot, powers
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.simplex_grid import Distinct
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.simplex_histogram import SimplexHistogramSpec
from trueodds.data.predictions import Predictions
from trueodds.lenses.view import View

KINDS = ("median-variance", "simplex-grid")
kinds = pytest.mark.parametrize("partition", KINDS)


def fit_map(P, y, w=None, **settings):
    return SimplexHistogramSpec(**settings).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)) if w is None else w)


def test_the_widest_axis_is_split_at_its_median():
    # Class 0 is said with 0, .2, .6, .8 (the widest), class 1 with .5, .3, .3, .1: the median .4 parts two and two.
    P = np.array([[0.0, 0.5, 0.5], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.8, 0.1, 0.1]])
    m = fit_map(P, [1, 2, 0, 1], min_size=2)
    assert m.to_dict()["cells"] == {"node": [0], "axis": [0], "cut": [0.4]}
    assert m.values.tolist() == [[0, 0.5, 0.5], [0.5, 0.5, 0]]
    assert m.apply(np.array([[0.39, 0.61, 0.0], [0.4, 0.0, 0.6]])).tolist() == m.values.tolist()


def test_a_cell_of_the_grid_that_held_no_row_leaves_a_row_as_it_is():
    P = np.array([[0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.7, 0.2, 0.1]])
    m = fit_map(P, [2, 1, 0], partition="simplex-grid", bins=2)  # (low, low, high) twice, (high, low, low) once
    assert m.apply(P).tolist() == [[0, 0.5, 0.5], [0, 0.5, 0.5], [1, 0, 0]]
    strange = np.array([[0.1, 0.8, 0.1]])
    assert m.apply(strange).tolist() == strange.tolist()
    m = fit_map(P[:2], [2, 1], partition="simplex-grid", bins=2)
    assert m.apply(P[2:]).tolist() == P[2:].tolist()  # sorted after the last cell


def test_how_many_new_rows_will_find_no_cell_is_foretold():
    # Rows alone in their cell estimate it (Good and Turing); over fresh rows it is right within four standard errors.
    P, y = draw_predictions(2000, 3, 1.5, 0)
    spec = SimplexHistogramSpec("simplex-grid", bins=30)
    result = fit(spec, Predictions(y, P))
    note = next(note for note in result.notes if note.code == "TN524")
    foretold = float(note.text.split("%")[0].split()[-1]) / 100
    fresh, _ = draw_predictions(2000, 3, 1.5, 1)
    unknown = (result.calibration_map.cells.index(fresh) < 0).mean()
    assert 0.01 < unknown < 0.5
    assert abs(unknown - foretold) < 4 * np.sqrt(2 * foretold / 2000) + 0.0005
    assert "TN524" not in [note.code for note in fit(SimplexHistogramSpec(), Predictions(y, P)).notes]


def test_cells_say_the_mean_outcome_that_the_canonical_error_pools():
    P, y = draw_predictions(500, 4, 1.5, 2)
    view = View(P, one_hot(y, 4), np.ones(500))
    binned = view.binned(MedianVariance(min_size=10).fit(view))
    m = fit_map(P, y)
    assert m.values == pytest.approx(binned.y)
    assert m.cells.size == len(binned)


@kinds
def test_of_all_maps_that_are_constant_on_its_cells_none_has_a_smaller_brier_score(partition):
    P, y = draw_predictions(400, 3, 1.7, 3)
    m, Y = fit_map(P, y, partition=partition, bins=3), one_hot(y, 3)
    base = ((m.apply(P) - Y) ** 2).sum()
    for cell in range(m.cells.size):
        for axis in range(3):
            moved = m.values.copy()
            moved[cell] += 0.01 * (np.eye(3)[axis] - 1 / 3)
            assert ((replace(m, values=moved).apply(P) - Y) ** 2).sum() > base


@kinds
def test_values_scatter_about_the_truth_as_counts_do(partition):
    # Four vectors apart from each other, so that both partitions have a cell for each; the truth is their square root
    # over its sum. Pearson's statistic over 100 samples is χ² with 100 · 4 · 2 degrees of freedom, standard
    # deviation 40: stay within four.
    predicted = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]])
    true, P = powers(predicted, 0.5), np.repeat(predicted, 200, axis=0)
    rng, total = np.random.default_rng(5), 0.0
    for _ in range(100):
        y = (np.repeat(true, 200, axis=0).cumsum(axis=1) > rng.random((800, 1))).argmax(axis=1)
        m = fit_map(P, y, partition=partition, bins=5, min_size=100)
        assert m.cells.size == Distinct().fit(View(P, one_hot(y, 3))).size
        total += (200 * (m.apply(predicted) - true) ** 2 / true).sum()
    assert abs(total - 800) < 4 * 40


@kinds
def test_two_classes_are_cells_of_the_one_probability(partition):
    P, y = draw_predictions(200, 2, 1.5, 6)
    m = fit_map(P, y, partition=partition)
    assert m.apply(P).sum(axis=1) == pytest.approx(1)
    if partition == "median-variance":
        assert set(m.to_dict()["cells"]["axis"]) == {0}
        cuts = np.concatenate([[0], np.sort(m.to_dict()["cells"]["cut"]), [2]])
        where = np.searchsorted(cuts, P[:, 1], "right")
        assert all(m.apply(P)[where == b, 1] == pytest.approx(y[where == b].mean()) for b in np.unique(where))


@kinds
def test_votes_weights_and_rows_without_weight(partition):
    P = np.array([[0.3, 0.3, 0.4]] * 4)
    Y = np.array([[0.75, 0.25, 0], [0, 0.5, 0.5], [1, 0, 0], [0, 0, 1]])
    m = SimplexHistogramSpec(partition).fit(P, Y, np.array([2.0, 1.0, 1.0, 0.0]))
    assert m.apply(P)[0] == pytest.approx([2.5 / 4, 1 / 4, 0.5 / 4])


@kinds
def test_labels_may_change_and_exact_zeros_are_noted(partition):
    P = np.array([[0.6, 0.4, 0.0]] * 30)
    result = fit(SimplexHistogramSpec(partition), Predictions([1] * 29 + [0], P, classes=[0, 1, 2]))
    assert result.predict([[0.6, 0.4, 0.0]]).tolist() == [1]
    assert {note.code for note in result.notes} == {"TN142", "TN501", "TN505"}


@kinds
def test_one_row_is_answered(partition):
    assert fit_map(both([0.3]), [1], partition=partition).apply(both([0.3])).tolist() == [[0, 1]]


@kinds
@pytest.mark.parametrize("k", [2, 3])
def test_a_saved_map_places_every_row_as_before(partition, k):
    P, y = draw_predictions(600, k, 1.5, 7)
    result = fit(SimplexHistogramSpec(partition), Predictions(y, P))
    restored = calibrator_from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    fresh = draw_predictions(600, k, 1.5, 8)[0]
    assert (restored.calibration_map.apply(fresh) == result.calibration_map.apply(fresh)).all()

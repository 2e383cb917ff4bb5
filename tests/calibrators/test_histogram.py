"""Histogram binning."""

import numpy as np
import pytest

from tests.calibrators.rows import both, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitted_calibrator import calibrator_from_dict
from trueodds.calibrators.fitting import fit
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.data.predictions import Predictions


def fit_map(P, y, bins=15, partition="uniform"):
    return HistogramSpec(bins, partition).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_each_bin_says_its_outcome_rate_and_an_empty_one_its_midpoint():
    # Five bins: (0, .2] has rates 0, 0, 1; (.2, .4] none, midpoint .3; (.4, .6] 1; (.6, .8] none; (.8, 1] 1/2.
    m = fit_map(both([0.1, 0.15, 0.2, 0.6, 0.9, 0.95]), [0, 0, 1, 1, 0, 1], 5)
    assert m.curves[0].values == pytest.approx([1 / 3, 0.3, 1.0, 0.7, 0.5])
    assert m.curves[0].n_empty == 2


@pytest.mark.parametrize(("bins", "partition", "key"), [(10, "uniform", "width10"), (10, "equal-mass", "mass10")])
def test_the_reference_numbers(bins, partition, key):
    # netcal 1.4.0 and uncertainty-calibration 0.1.4, exact (golden/recalibration/histogram.json).
    want, rows = golden("recalibration/histogram.json"), frame("recalibration/binary.csv")
    m = fit_map(both(rows["p"]), rows["y"], bins, partition)
    assert m.curves[0].values == pytest.approx(np.array(want[key]["values"]), abs=1e-10)
    assert m.curves[0].edges == pytest.approx(np.array(want[key]["edges"]), abs=1e-10)
    assert m.apply(both(want["grid"]))[:, 1] == pytest.approx(np.array(want[key]["pred_grid"]), abs=1e-10)


@pytest.mark.parametrize(
    ("bins", "partition", "key"),
    [
        (10, "uniform", "guo_ovr_width10"),
        (15, "uniform", "guo_ovr_width15"),
        (10, "equal-mass", "guo_ovr_mass10"),
        (15, "equal-mass", "guo_ovr_mass15"),  # 400 rows do not divide by 15: the cuts are at floor(n i/M)
    ],
)
def test_the_reference_numbers_one_against_the_rest(bins, partition, key):
    want = golden("recalibration/histogram.json")
    rows, test = frame("recalibration/multi4.csv"), frame("recalibration/multi4_test.csv")
    m = fit_map(columns(rows), rows["y"], bins, partition)
    assert m.apply(columns(test)) == pytest.approx(np.array(want[key]), abs=1e-10)


def test_the_map_has_the_smallest_squared_error_of_all_maps_on_its_bins():
    rows = frame("recalibration/binary.csv")
    P, y = both(rows["p"]), rows["y"]
    m = fit_map(P, y, 10)
    base = ((m.apply(P)[:, 1] - y) ** 2).sum()
    for b in range(10):
        moved = m.curves[0].values.copy()
        moved[b] += 0.01
        assert ((moved[np.maximum(np.ceil(rows["p"] * 10).astype(int) - 1, 0)] - y) ** 2).sum() > base


def test_empty_bins_and_exact_zeros_are_noted():
    result = fit(HistogramSpec(bins=4), Predictions([0, 0, 1, 1], [0.1, 0.2, 0.9, 0.9]))
    assert [note.code for note in result.notes] == ["TN506", "TN505"]
    assert "2 of 4 bins" in result.notes[0].text


def test_tied_scores_are_never_split_and_no_equal_mass_bin_is_empty():
    # Two scores: four groups of 50 rows end within the ties, at .4 and beyond the last score; one edge parts rows.
    # Peers give the rows of a tie to bins by their order, and NaN where there are fewer rows than bins.
    p, y = np.repeat([0.2, 0.6], 100), np.tile([0, 0, 0, 1], 50)
    order = np.random.default_rng(0).permutation(200)
    for rows in (slice(None), order):
        curve = fit_map(both(p[rows]), y[rows], 4, "equal-mass").curves[0]
        assert curve.edges.tolist() == [0.0, 0.4, 1.0]
        assert curve.values.tolist() == [0.25, 0.25]
    small = fit_map(both([0.2, 0.6]), [0, 1], 15, "equal-mass")
    assert small.apply(both([0.1, 0.9]))[:, 1].tolist() == [0.0, 1.0]


def test_many_exact_zeros_can_be_saved_and_read_again():
    result = fit(HistogramSpec(4, "equal-mass"), Predictions([0, 0, 1, 0, 1, 1], [0.0, 0.0, 0.0, 0.0, 0.5, 1.0]))
    assert result.predict_proba([0.0, 1e-9, 0.5, 1.0])[:, 1].tolist() == [0.25, 0.25, 1.0, 1.0]
    restored = calibrator_from_dict(result.to_dict())
    assert (restored.predict_proba([0.0, 0.5, 1.0]) == result.predict_proba([0.0, 0.5, 1.0])).all()


@pytest.mark.parametrize("bins", [1, 10, 15, 16, 20])
def test_a_requested_bin_is_a_bin_and_one_falls_into_the_last(bins):
    # Peers make 14 bins of 15, open another for 1.0, or drop it.
    m = fit_map(both(np.ones(4)), [1, 1, 1, 0], bins)
    assert len(m.curves[0].values) == bins
    assert m.apply(both([1.0]))[0, 1] == 0.75


def test_an_absent_class_and_a_row_that_no_bin_believes_keep_their_columns():
    P = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]] * 4)
    Q = fit_map(P, [0, 1, 0] * 4, 2).apply(np.vstack([P, [[1.0, 0, 0]]]))
    assert Q.shape == (13, 3)
    assert np.isfinite(Q).all()
    assert Q.sum(axis=1) == pytest.approx(1)


def test_votes_weights_and_rows_without_weight():
    # One bin: (2 · .75 + 1 · 0)/3; the third row weighs nothing.
    m = HistogramSpec(1).fit(both([0.3, 0.6, 0.9]), both([0.75, 0.0, 1.0]), np.array([2.0, 1.0, 0.0]))
    assert m.apply(both([0.5]))[0, 1] == pytest.approx(0.5)


def test_one_row_is_answered():
    assert fit_map(both([0.3]), [1]).apply(both([0.3]))[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("partition", ["uniform", "equal-mass"])
def test_values_scatter_about_the_truth_as_counts_do(partition):
    # 200 samples, ten bins, truth .3 everywhere: Σ n (θ − .3)²/.21 is χ² with 2,000 degrees of freedom, standard
    # deviation 63, up to the discreteness of counts; stay within four.
    rng = np.random.default_rng(4)
    total = 0.0
    for _ in range(200):
        p = rng.random(1000)
        m = fit_map(both(p), rng.random(1000) < 0.3, 10, partition)
        total += ((m.apply(both(p))[:, 1] - 0.3) ** 2).sum() / 0.21
    assert abs(total - 2000) < 4 * np.sqrt(2 * 2000)

"""Histogram binning."""

import numpy as np
import pytest

from tests.calibrators.rows import both, one_hot
from tests.reference import columns, frame, golden
from trueodds.calibrators.fitted import fit
from trueodds.calibrators.histogram import HistogramRule
from trueodds.core.errors import InputError
from trueodds.problem.predictions import Predictions


def fitted(P, y, bins=15, partition="uniform"):
    return HistogramRule(bins, partition).fit(P, one_hot(y, P.shape[1]), np.ones(len(P)))


def test_each_bin_says_its_outcome_rate_and_an_empty_one_its_midpoint():
    # Five bins: (0, .2] has rates 0, 0, 1; (.2, .4] none, midpoint .3; (.4, .6] 1; (.6, .8] none; (.8, 1] 1/2.
    m = fitted(both([0.1, 0.15, 0.2, 0.6, 0.9, 0.95]), [0, 0, 1, 1, 0, 1], 5)
    assert m.curves[0].values == pytest.approx([1 / 3, 0.3, 1.0, 0.7, 0.5])
    assert m.curves[0].empty == 2


@pytest.mark.parametrize(("bins", "partition", "key"), [(10, "uniform", "width10"), (10, "equal-mass", "mass10")])
def test_the_reference_numbers(bins, partition, key):
    # netcal 1.4.0 and uncertainty-calibration 0.1.4, exact (golden/recalibration/histogram.json).
    want, rows = golden("recalibration/histogram.json"), frame("recalibration/binary.csv")
    m = fitted(both(rows["p"]), rows["y"], bins, partition)
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
    m = fitted(columns(rows), rows["y"], bins, partition)
    assert m.apply(columns(test)) == pytest.approx(np.array(want[key]), abs=1e-10)


def test_the_map_has_the_smallest_squared_error_of_all_maps_on_its_bins():
    rows = frame("recalibration/binary.csv")
    P, y = both(rows["p"]), rows["y"]
    m = fitted(P, y, 10)
    base = ((m.apply(P)[:, 1] - y) ** 2).sum()
    for b in range(10):
        moved = m.curves[0].values.copy()
        moved[b] += 0.01
        assert ((moved[np.maximum(np.ceil(rows["p"] * 10).astype(int) - 1, 0)] - y) ** 2).sum() > base


def test_empty_bins_and_exact_zeros_are_noted():
    result = fit(HistogramRule(bins=4), Predictions([0, 0, 1, 1], [0.1, 0.2, 0.9, 0.9]))
    assert [note.code for note in result.notes] == ["TN506", "TN505"]
    assert "2 of 4 bins" in result.notes[0].text


@pytest.mark.parametrize("settings", [{"bins": 0}, {"bins": 2.5}, {"partition": "sweep"}, {"bins": "many"}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(InputError, match="TO203"):
        HistogramRule(**settings)

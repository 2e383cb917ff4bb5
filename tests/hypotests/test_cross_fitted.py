"""The tests of cross-fitted errors keep their level and detect costly miscalibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import trueodds as to
from trueodds import Predictions
from trueodds.calibrators.histogram import HistogramSpec
from trueodds.estimators.cross_fitted import CrossFitted
from trueodds.hypotests.cross_fitted import CrossFittedTest, DecisionRegretTest
from trueodds.lenses.view import View

TREAT = [[0.0, 4.0], [1.0, 0.0]]  # to miss costs 4, to treat in vain 1: treat from p = .2 on


def calibrated(n, seed):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-1.5 * rng.normal(size=n)))
    return Predictions((rng.random(n) < p).astype(int), p)


def test_student_by_hand():
    # One bin, two blocks of four: the first has one rate for all, .5, so the second's rows that said .9 are told less.
    # Their outcomes 0, 0, 1, 0 gain .9, .9, −.1, .9:
    # mean .65, Σ(g − .65)² = 3(.25)² + .75² = .75, t = 2.6/√(4/3 · .75).
    test_rows = np.random.default_rng(0).permutation(8) % 2 == 1
    y = np.empty(8)
    y[test_rows], y[~test_rows] = [0, 0, 1, 0], [0, 1, 0, 1]
    error = CrossFitted(calibrator=HistogramSpec(bins=1), folds=2)
    result = CrossFittedTest(statistic=error).evaluate(View([0.9] * 8, y))
    assert result.statistic == pytest.approx(2.6, rel=1e-12)
    assert result.pvalue == pytest.approx(stats.t.sf(2.6, 3), rel=1e-12)
    assert result.effect == pytest.approx(0.65, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cross_fitted", {}),
        ("cross_fitted", {"score": "brier"}),
        ("decision_regret", {"cost": TREAT}),
    ],
)
def test_size_under_the_null(name, settings):
    # Rejections at 5 % over 200 data sets are at most Binomial(200, .05): stay below its 99.9 % point.
    hits = sum(to.test(calibrated(200, seed), name, **settings).pvalue <= 0.05 for seed in range(200))
    assert hits <= stats.binom.ppf(0.999, 200, 0.05)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("cross_fitted", {}), ("cross_fitted", {"score": "log_loss"}), ("decision_regret", {"cost": TREAT})],
)
def test_what_is_lost_is_found(name, settings):
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    verdict = to.test(Predictions((rng.random(3000) < p**2).astype(int), p), name, **settings)
    assert verdict.pvalue < 0.01
    assert verdict.effect > 0


def test_it_is_of_the_estimate_that_measure_gives():
    preds = calibrated(300, 3)
    verdict = to.test(preds, "decision_regret", cost=TREAT, rng=5)
    estimate = to.measure(preds, "decision_regret", cost=TREAT, rng=5, interval=None)
    assert verdict.effect == estimate.value
    assert verdict.settings["cost"] == ((0.0, 4.0), (1.0, 0.0))


def test_where_no_action_changes_nothing_speaks_against_the_model():
    verdict = to.test(Predictions([0, 1] * 20, [0.1, 0.9] * 20), "decision_regret")
    assert (verdict.statistic, verdict.pvalue) == (0.0, 1.0)
    assert "TN234" in [note.code for note in verdict.notes]


def test_few_changed_rows_are_noted():
    verdict = to.test(calibrated(60, 4), "decision_regret", cost=TREAT)
    (note,) = (note for note in verdict.notes if note.code == "TN212")
    assert "consistency with statistic='decision_regret'" in note.text


def test_consistency_tests_the_same_statistic_by_resampled_labels():
    verdict = to.test(calibrated(60, 4), "consistency", statistic="decision_regret", cost=TREAT, resamples=49)
    assert 0.02 <= verdict.pvalue <= 1


def test_a_plain_cross_fit_is_refused():
    with pytest.raises(ValueError, match="TO203"):
        to.test(calibrated(60, 4), "cross_fitted", fit_on="others")
    with pytest.raises(ValueError, match="TO203"):
        DecisionRegretTest(statistic="isotonic")

"""The study of intervals: its worlds, its truth, and what its quick form finds."""

import numpy as np
import pytest

from trueodds.core.errors import InputError
from trueodds_studies.common.distorted_worlds import (
    DISTORTION_SHAPES,
    DistortedWorld,
    count_noise_floors,
    scale_to_noise_floors,
)
from trueodds_studies.intervals import MIN_COVERAGE, QUICK, Plan, intervals

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", DISTORTION_SHAPES)
@pytest.mark.parametrize("k", [2, 3])
def test_rows_come_with_the_stated_truth(shape, k):
    # 20,000 rows: the mean outcome of each class stays within 4.4 standard errors of its mean truth, at most .0035 each
    world = DistortedWorld("x", k, "normal", shape, 0.5)
    rng = np.random.default_rng(0)
    preds, truth = world.rows(rng, 20_000), world.true_probs(world.draw_predictions(np.random.default_rng(0), 20_000))
    np.testing.assert_allclose(truth.sum(axis=1), 1, atol=1e-9)
    assert (truth >= 0).all()
    rates = np.bincount(preds.y, minlength=k) / 20_000
    np.testing.assert_allclose(rates, truth.mean(axis=0), atol=4.4 * 0.0036)


@pytest.mark.parametrize(("k", "lens"), [(2, "positive"), (10, "confidence"), (3, "classwise")])
def test_a_world_has_an_error_of_as_many_noise_floors_as_requested(k, lens):
    world = scale_to_noise_floors(DistortedWorld("x", k, "normal", "temperature"), lens, 2.0, 1000)
    assert count_noise_floors(world, lens, 1000) == pytest.approx(2.0, abs=0.01)
    assert scale_to_noise_floors(world, lens, 0.0, 1000) is world
    # 6 % of few rows cannot be off by five floors
    assert (
        count_noise_floors(
            scale_to_noise_floors(DistortedWorld("x", 2, "normal", "local"), "positive", 5.0, 100), "positive", 100
        )
        < 5
    )


def test_the_quick_form_covers_the_truth():
    # 20 data sets a cell at 91 %: of all hits together at least as many as a binomial with 99.9 %
    study = intervals(quick=True, methods=["ece", "ace", "corp"])
    hits = sum(round(row["covers"] * QUICK.sets) for row in study.rows)
    n = QUICK.sets * len(study.rows)
    assert hits >= MIN_COVERAGE * n - 3.1 * np.sqrt(n * MIN_COVERAGE * (1 - MIN_COVERAGE))
    assert {row["half"] for row in study.rows} == {0, 1}
    assert "wide" in study.sentence
    assert all(row["without"] == 0 for row in study.rows)


def test_a_study_of_one_estimator_gives_the_same_rows():
    plan = Plan(sets=3, rows=(100,), binary=(("normal", "waves"),), several=(), floors=(1.0,), resamples=20, redraws=19)
    one, all_of_them = intervals(methods=["ace"], plan=plan), intervals(plan=plan)
    assert one.rows[0] in all_of_them.rows


def test_an_unknown_estimator_is_refused():
    with pytest.raises(InputError, match="TO203"):
        intervals(quick=True, methods=["nothing"])

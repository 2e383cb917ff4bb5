"""Does the study of confirmation measure what it says?"""

import numpy as np
import pytest
from scipy import stats

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.temperature import TemperatureMap
from trueodds.cli.study import installed_studies
from trueodds_studies.confirm import (
    CONFIRM_CALIBRATED,
    CONFIRM_MISCALIBRATED,
    QUICK,
    Cell,
    Plan,
    _expected_gain,
    confirm,
    measure_cell,
    paired_t_pvalue,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "world", [*CONFIRM_CALIBRATED, *(design.world for design in CONFIRM_MISCALIBRATED)], ids=lambda world: world.name
)
def test_outcomes_come_as_the_world_says(world):
    rows = world.rows(np.random.default_rng(0), 20_000)
    gap = np.eye(world.k)[rows.y] - world.true_probs(rows.P.copy())
    # The mean of 20,000 gaps is within four and a half standard errors, weighed by anything known beforehand.
    for weighed in (gap, gap * rows.P):
        assert (np.abs(weighed.mean(axis=0)) < 4.5 * weighed.std(axis=0) / np.sqrt(rows.n) + 1e-12).all()
    assert (np.abs(world.true_probs(rows.P.copy()) - rows.P).max() < 1e-12) == (world in CONFIRM_CALIBRATED)


def test_a_quick_study_has_a_row_for_each_world():
    study = installed_studies().load("confirm")(quick=True)
    assert [(row["design"], row["n"]) for row in study.rows] == [
        ("logit-normal", 100), ("exact zeros", 100), ("T = 0.6", 150),
    ]  # fmt: skip
    assert [row["data sets"] for row in study.rows] == [QUICK.sets, QUICK.sets, QUICK.powered]
    assert "Of 8 calibrated data sets, auto confirms a recalibration in " in study.sentence


def test_the_same_seed_gives_the_same_study():
    plan = Plan(2, 2, (100,), ("logit-normal", "T = 0.6"))
    assert confirm(plan=plan).rows == confirm(plan=plan).rows


def test_an_error_is_confirmed_more_often_than_by_a_paired_test_of_the_gain():
    # Of 60 sets 92 % are confirmed, and a paired test of the temperature's gain finds half.
    design = next(design for design in CONFIRM_MISCALIBRATED if design.world.name == "T = 1.3")
    row = measure_cell(Cell(design.world, design.n, 20, design.method), Plan())
    assert row["confirmed"] >= row["paired t test"]
    assert row["confirmed"] >= stats.binom.ppf(0.001, 20, 0.8) / 20
    assert row["gain, new rows"] > 0.005
    assert row["gain, all data sets"] > row["confirmed"] * row["gain, new rows"] - 1e-12


def test_a_calibrated_world_is_rarely_mended():
    world = next(world for world in CONFIRM_CALIBRATED if world.name == "heavy tails")
    row = measure_cell(Cell(world, 100, 40), Plan())
    assert row["confirmed"] <= stats.binom.ppf(0.999, 40, 0.05) / 40
    assert row["paired t test"] is row["method"] is None


def test_the_paired_test_of_one_method_is_that_of_its_cross_fitted_gain():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 400)
    P, Y = np.stack([1 - p, p], axis=1), np.eye(2)[(rng.random(400) < p**3 / (p**3 + (1 - p) ** 3)).astype(int)]
    assert paired_t_pvalue("temperature", P, Y) < 1e-4
    assert paired_t_pvalue("identity", P, Y) == 1.0
    assert "temperature" in CALIBRATORS.names()


def test_the_gain_of_a_map_is_worked_by_hand():
    # p = .9 halved in log odds is .75 (odds of 3); if .75 is right the gain is .75 ln(.75/.9) + .25 ln(.25/.1) = .0923.
    P, truth = np.array([[0.1, 0.9]]), np.array([[0.25, 0.75]])
    assert _expected_gain(TemperatureMap(0.5), P, truth) == pytest.approx(
        0.75 * np.log(0.75 / 0.9) + 0.25 * np.log(2.5)
    )

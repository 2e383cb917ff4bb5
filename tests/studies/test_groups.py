"""Does the study of repairs by group know the truth, and compute what it compares with?"""

import numpy as np
import pytest

from trueodds.data.predictions import Predictions
from trueodds_studies.groups import DESIGNS, Cell, Plan, draw, groups, hkrr, measure_cell


@pytest.mark.parametrize("design", [design for design in DESIGNS if design.tau == 0], ids=lambda design: design.name)
def test_the_true_probabilities_are_those_of_many_rows(design):
    """Of 100,000 rows; the standard error of a mean of 10,000 or more is at most .5 points, or 1 in clusters."""
    shifts = np.zeros((design.groups, 5) if design.crossed else design.groups)
    rows = draw(design, np.random.default_rng(0), shifts, 100_000)
    for part in (rows.truth < 0.2, rows.truth >= 0.2):
        assert rows.preds.y[part].mean() == pytest.approx(rows.truth[part].mean(), abs=0.015)


def test_hkrr_moves_a_group_and_level_by_its_mean_error():
    p, group = np.full(100, 0.35), np.repeat([0, 1], 50)
    y = np.concatenate([np.arange(50) < 30, np.arange(50) < 17])  # errors of .25 and −.01
    rows = Predictions(y, p, group={"group": group})
    assert hkrr(rows, rows)[[0, -1]].tolist() == pytest.approx([0.6, 0.35])


def test_clear_differences_are_confirmed():
    row = measure_cell(
        Cell(next(design for design in DESIGNS if design.tau == 0.6 and design.groups == 40)), Plan(powered=2)
    )
    assert row["confirmed"] == 1
    assert row["worst, after"] < row["worst, before"]
    assert row["excess loss, group_shift"] < row["excess loss, unchanged"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study():
    plan = Plan(sets=1, powered=1)
    assert groups(plan=plan).rows == groups(plan=plan).rows

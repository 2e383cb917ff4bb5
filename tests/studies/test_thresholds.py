"""Does the study of thresholds know the true risks, and count what exceeds them?"""

import numpy as np
import pytest

from trueodds_studies.thresholds import DESIGNS, Cell, Plan, measure_cell, thresholds


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_the_true_risk_is_that_of_many_rows(design):
    """Of 100,000 rows; the standard error of a share among 5,000 of them or more is at most .7 points."""
    preds = design.draw(np.random.default_rng(0), 100_000)
    is_selected, y = preds.p >= 0.5, preds.y == 1
    counted = {"error": is_selected, "fnr": y, "fpr": ~y}[design.risk]
    is_wrong = {"error": ~y, "fnr": ~is_selected, "fpr": is_selected}[design.risk]
    risk, coverage = design.true_risks(0.5)
    assert is_wrong[counted].mean() == pytest.approx(risk, abs=0.02)
    assert is_selected.mean() == pytest.approx(coverage, abs=0.01)


def test_a_rule_that_is_always_wrong_is_counted():
    """Just above the target every threshold is wrong, so that what is found exceeds it."""
    design = next(design for design in DESIGNS if design.name == "just above the target")
    row = measure_cell(Cell(design, 200), Plan(sets=40))
    assert row["found"] == row["exceeded"]
    assert row["oracle"] == 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_study():
    plan = Plan(sets=2, rows=(100,))
    assert thresholds(plan=plan).rows == thresholds(plan=plan).rows

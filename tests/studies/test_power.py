"""Are the worlds of the study of power as named, and has the audit more power there than it had by the ECE?"""

import numpy as np
import pytest

from trueodds_studies.common.power_worlds import POWER_WORLDS
from trueodds_studies.power import Plan, measure_cell, power, power_cells, summarize


@pytest.mark.parametrize("world", POWER_WORLDS, ids=lambda world: f"{world.name} {world.k}")
def test_worlds_state_and_have_probabilities_and_only_calibrated_ones_agree(world):
    P, Q = world.simulate(np.random.default_rng(0), 400)
    for probs in (P, Q):
        assert probs.shape == (400, world.k)
        assert probs.min() >= 0
        assert probs.sum(axis=1) == pytest.approx(1)
    assert np.allclose(P, Q) == world.calibrated
    y = world.rows(np.random.default_rng(0), 400).y
    gap = np.eye(world.k)[y] - Q  # labels come with the true probabilities
    assert (np.abs(gap.mean(axis=0)) < 5 * np.sqrt((Q * (1 - Q)).mean(axis=0) / 400) + 1e-12).all()


@pytest.mark.slow
def test_a_row_has_the_audit_and_the_best_single_test():
    plan = Plan(sets=25, calibrated=5, rows=(200,), resamples=99)
    world = next(candidate for candidate in POWER_WORLDS if candidate.name == "temperature .6" and candidate.k == 2)
    (cell,) = power_cells(plan, [world])
    row = measure_cell(cell, plan)
    assert row["audit"] > row["earlier audit"]  # 63 % beside 12 to 15 % at 150 rows
    assert row["test"] in ("spiegelhalter", "cox", "ks", "tcal", "debiased_l2")
    assert row["best test"] >= row["audit"] - 20
    assert not row["held out"]


def test_the_study_runs_in_a_moment_and_sums_up():
    study = power(plan=Plan(sets=2, calibrated=2, rows=(50,), max_classes=2, resamples=19), worlds=POWER_WORLDS[:7])
    assert {row["K"] for row in study.rows} == {2}
    assert study.rows[0]["best test"] is None
    assert "the audit rejects" in study.sentence
    assert (
        summarize([row for row in study.rows if row["best test"] is None]) == "Only calibrated designs were simulated."
    )


def test_the_share_of_the_best_test_is_also_stated_without_saturated_cells():
    # (30 + 10 + 100) / (40 + 40 + 100) = 78 % of all; without the last cell 40/80 = 50 %, and 10/40 = 25 % of vectors.
    cells = [
        {"K": k, "n": n, "audit": audit, "earlier audit": 0.0, "best test": single, "held out": False}
        for k, n, audit, single in ((2, 100, 30.0, 40.0), (3, 300, 10.0, 40.0), (3, 1000, 100.0, 100.0))
    ]
    sentence = summarize(cells)
    assert "(78 % of it)" in sentence
    assert "at least 98 % in 1 of these cells; over the other 2 the audit has 50 %" in sentence
    assert "25 % over the 1 of them with three or more classes and up to 300 rows. In 1 cells" in sentence

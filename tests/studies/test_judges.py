"""Does the study of judges draw what it says, and measure every design?"""

from __future__ import annotations

import numpy as np
import pytest

from trueodds_studies.judges import (
    _CHOICES,
    JUDGES,
    SPREAD,
    Cell,
    Plan,
    _cells,
    _draw,
    _intercept,
    _run_difference,
    judges,
)


@pytest.mark.parametrize("mean", Plan().means)
def test_labels_have_the_mean_of_the_design(mean: float) -> None:
    y, score = _draw(Cell("random", "good", mean, 30), 100_000, np.random.default_rng(0))
    standard_error = np.sqrt(mean * (1 - mean) / 100_000)
    assert abs(y.mean() - mean) < 4 * standard_error
    assert abs(score.mean() - mean) < 4 * standard_error  # the score of a good judge is the probability
    assert _intercept(0.5, SPREAD) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("judge", JUDGES)
def test_scores_lie_in_the_unit_interval(judge: str) -> None:
    _, score = _draw(Cell("random", judge, 0.8, 30), 2000, np.random.default_rng(1))
    assert score.min() >= 0
    assert score.max() <= 1


def test_the_difference_has_the_value_of_the_design() -> None:
    # System b is wrong where it differs and a is right, in .8 of these rows: .3 (.8 − .2).
    values = [
        _run_difference(Cell("difference .3", "good", 0.8, 300), np.random.default_rng(seed)) for seed in range(20)
    ]
    assert values[0][1] == pytest.approx(0.18)
    assert np.mean([result.value for result, _ in values]) == pytest.approx(0.18, abs=0.02)


def test_at_least_eighty_designs_of_the_means_are_measured() -> None:
    cells = list(_cells(Plan()))
    assert len({cell.key for cell in cells}) == len(cells)
    assert sum(cell.design == "random" for cell in cells) >= 80


@pytest.mark.slow
def test_a_quick_study_has_a_row_for_each_design() -> None:
    study = judges(quick=True)
    assert {row["design"] for row in study.rows} == {
        "random", "clusters", "unequal", "strata", "difference .1", "difference .3", "error rates",
    }  # fmt: skip
    assert {row["design"] for row in study.also[0].rows} == set(_CHOICES)
    assert study.sentence.startswith(f"Of {len(study.rows)} designs with 10 data sets each")
    small = Plan(sets=2, labels=(30,), means=(0.8,))
    assert judges(plan=small).rows == judges(plan=small).rows

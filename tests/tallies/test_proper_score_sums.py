"""Do the sums of a score hold its weighted mean and standard error, however the rows are split?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from trueodds.core.typing import Array
from trueodds.tallies.proper_score_sums import ProperScoreSums, brier, count_rows_below, log_loss, log_loss_from_logs

SCORES = np.array([0.1, 2.0, np.inf, 0.7, np.inf, 0.4])
WEIGHTS = np.array([1.0, 0.5, 0.0, 3.0, 0.0, 2.0])


@pytest.mark.parametrize("w", [None, WEIGHTS])
@pytest.mark.parametrize("cut", [0, 1, 3, 6])
def test_the_mean_and_its_standard_error_are_those_of_the_rows_with_a_finite_score(w: Array | None, cut: int) -> None:
    s, weights = (SCORES[[0, 1, 3, 5]], np.ones(4)) if w is None else (SCORES[w > 0], w[w > 0])
    rows = SCORES[[0, 1, 3, 5]] if w is None else SCORES
    sums = ProperScoreSums.from_scores(rows[:cut], None if w is None else w[:cut])
    sums = sums + ProperScoreSums.from_scores(rows[cut:], None if w is None else w[cut:])
    mean = np.average(s, weights=weights)
    assert sums.mean == pytest.approx(mean, rel=1e-14)
    assert sums.standard_error == pytest.approx(math.sqrt((weights**2 * (s - mean) ** 2).sum()) / weights.sum())
    assert (sums.infinite, sums.infinite_w) == (0 if w is None else 2, 0.0)  # rows of weight 0 do not count


def test_an_infinite_score_of_positive_weight_makes_the_mean_infinite_and_no_row_has_none() -> None:
    for w in (None, WEIGHTS + 1):
        sums = ProperScoreSums.from_scores(SCORES, w)
        assert (sums.mean, sums.infinite, sums.infinite_w) == (math.inf, 2, 2.0)
        assert math.isnan(sums.standard_error)
    assert math.isnan(ProperScoreSums().mean)
    assert math.isnan(ProperScoreSums().standard_error)
    assert ProperScoreSums.from_scores(np.full(3, 0.1)).standard_error < 1e-8  # a rounded variance may be negative


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_shares_are_expected_scores_over_their_votes(dtype: type) -> None:
    # A share of y is y of a row with the event and 1 − y of one without.
    p, y = np.array([0.25, 0.5, 1.0, 0.0], dtype), np.array([0.75, 0.0, 0.5, 0.0])
    q, r = p.astype(float), 1 - y
    np.testing.assert_allclose(brier(p, y), y * (q - 1) ** 2 + r * q**2, rtol=1e-15)
    vectors = [np.stack([1 - x, x], axis=1) for x in (p, y)]
    np.testing.assert_allclose(brier(*vectors), 2 * brier(p, y), rtol=1e-15)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = -np.where(y > 0, y * np.log(q), 0) - np.where(r > 0, r * np.log(1 - q), 0)
    for loss in (log_loss(p, y), log_loss(*vectors)):
        np.testing.assert_allclose(loss, expected, rtol=1e-15)
    clipped = -y * np.log(np.maximum(q, 0.3)) - r * np.log(np.maximum(1 - q, 0.3))
    np.testing.assert_allclose(log_loss(p, y, 0.3), clipped, rtol=1e-15)


def test_rows_with_a_probability_below_a_limit_are_counted_once() -> None:
    logs = np.log([[0.1, 0.2, 0.7], [0.05, 0.05, 0.9], [0.3, 0.3, 0.4]])
    assert [count_rows_below(logs, limit) for limit in (0.04, 0.06, 0.15, 0.35)] == [0, 1, 2, 3]
    assert log_loss_from_logs(logs, np.eye(3))[0] == pytest.approx(-math.log(0.1), rel=1e-15)

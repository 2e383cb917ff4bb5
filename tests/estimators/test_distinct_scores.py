"""Do draws of errors without bins agree with the rows, beyond the number of scores that draws tell apart?"""

import numpy as np
import pytest

from trueodds import Predictions, test
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.distinct_scores import MAX_DISTINCT_SCORES, DistinctScoreError
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View
from trueodds.resampling.estimand import Estimand
from trueodds.resampling.null_distribution import null_draws

test.__test__ = False
SCORED = [name for name in ESTIMATORS.names() if issubclass(ESTIMATORS.load(name), DistinctScoreError)]


def many(n: int = 3 * MAX_DISTINCT_SCORES, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < p).astype(float)


@pytest.mark.parametrize("name", SCORED)
def test_a_draw_that_repeats_what_was_observed_has_the_observed_value(name: str) -> None:
    p, y = many()
    one = ESTIMATORS.make(name, {}).cell_statistic(View(p, y))
    w, wp, wy = (np.bincount(one.index, x, one.size)[None] for x in (np.ones(len(p)), p, y))
    assert float(one.statistic(w, wp, wy)[0]) == pytest.approx(one.value(), rel=1e-10)


def test_groups_of_neighboring_scores_change_the_null_of_ks_by_little() -> None:
    # KS of 12,288 scores on 4,096 groups misses what the path does within a group of three rows: each draw changes by
    # at most the three residuals of one group, 3/n, on either side.
    p, y = many()
    preds = Predictions(y.astype(int), p)
    estimand = Estimand.from_predictions(ESTIMATORS.make("ks", {}), as_lens("positive"), preds)
    (grouped,) = null_draws(preds, [estimand], 49, np.random.default_rng(1))
    key = np.random.default_rng(1)
    from trueodds.core.rng import stream_key
    from trueodds.kernels import random_labels

    labels = random_labels.draw_labels(preds.P, stream_key(key), 0, 49)
    exact = [estimand.estimator.value(View(p, label.astype(float))) for label in labels]
    (_, one) = estimand.values, estimand.cell_statistics[0]
    assert np.abs(grouped[0] - one._grouping_offset - exact).max() <= 3 / len(p) + 1e-12
    assert abs(one._grouping_offset) <= 3 / len(p)


def test_a_ratio_below_its_best_surprises_as_much_as_one_above() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, 800)
    for share in (0.8, 1.2):
        preds = Predictions((rng.random(800) < share * p).astype(int), p)
        verdict = test(preds, "consistency", statistic="o_e", resamples=199)
        assert verdict.pvalue == pytest.approx(1 / 200)

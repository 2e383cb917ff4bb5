"""The multicalibration error: the worst subgroup, standardized by its null standard deviation."""

import json

import numpy as np
import pytest

from trueodds.api.by_group import by_group
from trueodds.data.predictions import Predictions
from trueodds.hypotests.cumulative import ECCE
from trueodds.lenses.view import View


def test_the_error_by_hand():
    # Group a says .2, .8 and gets 1, 0: residuals +.8, -.8 over 2 rows reach .4;
    # sigma = sqrt(.32)/2 = .2828, ratio 1.4142.
    # Group b says .5 twice and gets 1 and 0: one step of 0. The whole reaches .2;
    # sigma = sqrt(.82)/4 = .2264, ratio .8835.
    preds = Predictions([1, 0, 1, 0], [0.2, 0.8, 0.5, 0.5], group=list("aabb"))
    multicalibration = by_group(preds, resamples=99).multicalibration
    assert multicalibration.worst == "group=a"
    assert multicalibration.groups == pytest.approx(
        {"all rows": 0.2 * 4 / 0.82**0.5, "group=a": 2**0.5, "group=b": 0.0}
    )
    assert multicalibration.sigma == pytest.approx(2**0.5)
    assert float(multicalibration) == pytest.approx(2**0.5 * 0.82**0.5 / 4)


def test_the_error_is_that_of_the_authors_program():
    # mcgrad 0.1.5, MulticalibrationError(df, "y", "p", weight_column="w", categorical_segment_columns=["a", "b"],
    # max_depth=2, min_samples_per_segment=1): mce, mce_sigma, and segments_ecce_sigma in rising order (float32).
    rng = np.random.default_rng(0)
    p, a, b = rng.random(500), rng.choice(["u", "v"], 500), rng.choice(["x", "y", "z"], 500)
    y = (rng.random(500) < p**1.3).astype(int)
    weight = rng.integers(1, 4, 500).astype(float)
    preds = Predictions(y, p, group={"a": a, "b": b}, weight=weight)
    multicalibration = by_group(preds, crossings=2, interval=None, resamples=49).multicalibration
    assert multicalibration.value == pytest.approx(0.0698756, rel=1e-6)
    assert multicalibration.sigma == pytest.approx(3.5336034, rel=1e-6)
    published = [
        0.95264745, 0.9765626, 1.0131807, 1.3694601, 1.7611754, 2.1163657, 2.3815575, 2.4027412, 2.7636, 2.9666336,
        3.0722144, 3.5336034,
    ]  # fmt: skip
    assert sorted(multicalibration.groups.values()) == pytest.approx(published, rel=1e-6)


def test_each_group_is_measured_as_the_test_of_its_own_rows_does():
    rng = np.random.default_rng(0)
    p, group, weight = rng.random(300), rng.integers(0, 3, 300), rng.integers(1, 4, 300)
    y = (rng.random(300) < p**1.5).astype(int)
    multicalibration = by_group(Predictions(y, p, group=group, weight=weight), resamples=99).multicalibration
    for g in range(3):
        mask = group == g
        alone = ECCE().evaluate(View(p=p[mask], y=y[mask], w=weight[mask].astype(float))).statistic
        assert multicalibration.groups[f"group={g}"] == pytest.approx(alone)
    overall = ECCE().evaluate(View(p=p, y=y, w=weight.astype(float)))
    assert multicalibration.groups["all rows"] == pytest.approx(overall.statistic)
    assert multicalibration.value >= overall.effect  # the whole is one of the groups
    assert multicalibration.sigma == pytest.approx(max(multicalibration.groups.values()))


@pytest.mark.slow
def test_p_is_that_of_the_maximum_and_no_smaller_than_the_worst_groups_own():
    # The reference program gives the worst group's own p,
    # which forty groups of a calibrated model bring below 5 % often.
    small = own = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p, group = rng.random(400), rng.integers(0, 20, 400)
        y = (rng.random(400) < p).astype(int)
        multicalibration = by_group(Predictions(y, p, group=group), interval=None, resamples=99).multicalibration
        small += multicalibration.pvalue <= 0.05
        sigma = multicalibration.sigma
        own += ECCE().upper_tail(sigma) <= 0.05
    assert own > 20  # uncorrected
    assert small <= 9  # Binomial(60, .05) is above 9 once in a thousand


def test_outcomes_against_certain_predictions_are_infinitely_surprising():
    preds = Predictions([0, 1, 1, 1], [0.0, 1.0, 1.0, 0.0], group=list("aabb"))
    groups = by_group(preds, resamples=99)
    assert groups.multicalibration.sigma == np.inf
    assert groups.multicalibration.pvalue == 0.01
    document = json.loads(json.dumps(groups.to_dict(), allow_nan=False))
    assert document["multicalibration"]["value"] is None
    assert "TN223" in {note["code"] for note in document["notes"]}


def test_a_vector_per_row_has_none():
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(3), 60)
    preds = Predictions(rng.integers(0, 3, 60), P, group=rng.integers(0, 2, 60))
    assert by_group(preds, lens="canonical", resamples=99).multicalibration is None
    assert by_group(preds, lens="confidence", resamples=99).multicalibration is not None

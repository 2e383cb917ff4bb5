"""Is the number of rows for a width of the calibration slope that of new data sets, with and without clusters?"""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from trueodds.hypotests._power.interval_width import DATA_SETS_PER_WIDTH, _search_sample_size
from trueodds.hypotests.cox import Cox
from trueodds.lenses.lens_by_name import as_lens


def cohort(n, seed=0, clusters=0, cluster_std=0.8):
    """Overconfident predictions, with clusters whose log odds differ."""
    rng = np.random.default_rng(seed)
    marker = rng.normal(0, 1, n)
    cluster = np.arange(n) % clusters if clusters else None
    shift = rng.normal(0, cluster_std, clusters)[cluster] if clusters else 0
    y = rng.random(n) < 1 / (1 + np.exp(1.6 - 0.9 * marker - shift))
    return to.Predictions(y, 1 / (1 + np.exp(1.3 - 1.35 * marker)), cluster=cluster)


def width_of(preds, part):
    (view,) = as_lens("positive").views(preds)
    name = {"slope": "slope", "in-the-large": "in_the_large"}[part]
    interval = Cox().coefficients(view, preds.cluster)[name].interval
    return interval.high - interval.low


@pytest.mark.parametrize(("part", "target"), [("slope", 0.2), ("in-the-large", 0.15)])
def test_the_required_rows_have_the_width_in_new_data(part, target):
    plan = to.power(cohort(3000), "cox", part=part, width=target)
    # The standard error of 3,000 rows varies by about 2 %, the mean of 20 new widths by less.
    assert np.mean([width_of(cohort(plan.required, seed), part) for seed in range(1, 21)]) == pytest.approx(
        target, rel=0.06
    )
    assert plan.settings["width_now"] == pytest.approx(width_of(cohort(3000), part), rel=1e-9)
    assert (plan.question, plan.target, plan.n) == ("width", target, 3000)


def test_the_standard_error_is_that_of_the_information_matrix():
    # Riley et al. (2021): Var = (X' diag(q(1 − q)) X)⁻¹ with X = (1, logit p) at the fitted probabilities q
    preds = cohort(500)
    parts = to.test(preds, "cox").parts["joint"]
    x = np.stack([np.ones(500), np.log(preds.p / (1 - preds.p))])
    q = 1 / (1 + np.exp(-(parts["intercept"] + parts["slope"] * x[1])))
    se = np.sqrt(np.linalg.inv(x * q * (1 - q) @ x.T)[1, 1])
    plan = to.power(preds, "cox", part="slope", width=0.3)
    assert plan.settings["std_error"] == pytest.approx(se, rel=1e-6)
    assert plan.required == np.ceil(500 * (2 * 1.959963984540054 * se / 0.3) ** 2)


def test_clusters_multiply_the_rows_by_their_design_effect():
    clustered = cohort(3000, clusters=60)
    for settings in ({"test": "cox", "part": "in-the-large"}, {"estimator": "o_e"}):
        with_clusters, without = (
            to.power(rows, width=0.2, **settings) for rows in (clustered, clustered.without_clusters())
        )
        effect = with_clusters.settings["design_effect"]
        assert effect > 3  # 50 rows per cluster
        assert "TN279" in [note.code for note in with_clusters.notes]
        assert "design_effect" not in without.settings
        # Student's t in place of the normal distribution adds up to 5 %.
        assert 0.97 < with_clusters.required / (without.required * effect) < 1.06


def test_a_smaller_level_needs_more_rows():
    rows = [to.power(cohort(500), "cox", part="slope", width=0.3, alpha=alpha).required for alpha in (0.1, 0.05, 0.01)]
    assert rows[0] < rows[1] < rows[2]


@pytest.mark.parametrize(
    ("settings", "fix"),
    [
        ({"test": "cox"}, "part='slope'"),
        ({"estimator": "slope"}, "test='cox'"),
        ({"estimator": "cox"}, "test='cox'"),
        ({"estimator": "calibration intercept"}, "test='cox'"),
        ({"test": "spiegelhalter"}, "part='slope'"),
        ({"test": "cox", "part": "slope", "n": 100}, "Omit one"),
        ({"test": "cox", "part": "slope", "estimator": "o_e"}, "Omit one"),
        ({"test": "cox", "part": "slope", "lens": "classwise"}, "class:NAME"),
    ],
    ids=str,
)
def test_errors_name_the_way_to_plan_for_a_slope(settings, fix):
    with refused("TO205", fix=fix):
        to.power(cohort(100), width=0.3, **settings)


def test_a_slope_without_a_standard_error_is_refused():
    with refused("TO205", "standard error nan"):
        to.power(to.Predictions([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5]), "cox", part="slope", width=0.3)


def test_at_most_five_sample_sizes_are_tried():
    tried = []

    def width(n):
        """Too narrow from 1,000 rows on and too wide below, so that no number of rows has the width 0.1."""
        tried.append(n)
        return 0.05 if n >= 1000 else 0.2

    _search_sample_size(width, 1000, 0.1, 0.1, None)
    assert list(dict.fromkeys(tried)) == [1000, 250]
    assert len(tried) == 5 * DATA_SETS_PER_WIDTH

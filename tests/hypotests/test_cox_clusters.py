"""Cox's regression of clustered rows: standard errors, intervals and p-values of the parts, and the printed null."""

import re

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, t

import trueodds as to
from trueodds.core.errors import InputError
from trueodds.hypotests.cox import Cox
from trueodds.lenses.view import View
from trueodds.reports.standard_measures import standard_measures

NAMES = ("in_the_large", "intercept", "slope")


def cohort(n=1200, seed=1):
    rng = np.random.default_rng(seed)
    marker = rng.normal(0, 1, n)
    return expit(-1.3 + 1.35 * marker), (rng.random(n) < expit(-1.6 + 0.9 * marker)).astype(float)


def copied(copies=10, n=1200):
    """Rows that are copied, with their origin as cluster."""
    p, y = cohort(n)
    return to.Predictions(np.tile(y, copies).astype(int), np.tile(p, copies), cluster=np.tile(np.arange(n), copies))


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", text)]


def test_copies_of_rows_do_not_narrow_the_intervals():
    # Ten copies of a row tell nothing that one does not: the jackknife over clusters is that over the single rows.
    p, y = cohort()
    single = Cox().coefficients(View(p=p, y=y), np.arange(len(p)))
    preds = copied()
    verdict = to.test(preds, "cox", null="redraw", resamples=19)
    joint, large, slope = (verdict.parts[part] for part in ("joint", "in-the-large", "slope"))
    estimated = {"in_the_large": large, "intercept": joint, "slope": slope}
    for name in NAMES:
        assert estimated[name][name] == pytest.approx(single[name].value, rel=1e-8)
        assert estimated[name][f"{name}_se"] == pytest.approx(single[name].se, rel=1e-6)
        ends = single[name].interval
        label = name.replace("_", " ")
        printed = re.search(rf"{label} ([^\[]+\[[^\]]+\])", verdict.describe())
        assert numbers(printed[1]) == pytest.approx([single[name].value, ends.low, ends.high], abs=6e-5)
    assert [note.code for note in verdict.notes].count("TN270") == 1
    # Without clusters the copies count as rows, and the standard errors are about √10 smaller.
    independent = to.test(to.Predictions(preds.y, preds.P[:, 1]), "cox", null="redraw", resamples=19)
    assert 2.9 < slope["slope_se"] / independent.parts["slope"]["slope_se"] < 3.4
    assert "TN270" not in {note.code for note in independent.notes}


def test_pvalues_of_the_parts_are_those_of_their_intervals():
    # An interval of level 1 − p touches the null value, with the same effective number of clusters.
    parts = to.test(copied(), "cox", null="redraw", resamples=19).parts
    for part, name, null in (("in-the-large", "in_the_large", 0.0), ("slope", "slope", 1.0)):
        statistic = abs(parts[part][name] - null) / parts[part][f"{name}_se"]
        assert parts[part]["pvalue"] == pytest.approx(2 * t.sf(statistic, parts[part]["units"] - 1), rel=1e-9)
    assert parts["joint"]["pvalue"] > 1e-16  # that of 12,000 independent rows is 2e-152


def test_the_regression_agrees_with_llo_and_the_audit():
    preds = copied(4, 300)
    parts = to.test(preds, "cox", null="redraw", resamples=19).parts
    uncertainty = to.fit(preds, "llo").calibration_map.uncertainty
    assert np.sqrt(np.diag(uncertainty.covariance[0])) == pytest.approx(
        [parts["joint"]["intercept_se"], parts["joint"]["slope_se"]], rel=1e-6
    )
    assert uncertainty.effective_units == pytest.approx(parts["joint"]["units"], rel=1e-6)
    slope = parts["slope"]
    half_width = t.ppf(0.975, slope["units"] - 1) * slope["slope_se"]
    measures = {measure.name: measure for measure in standard_measures(preds, 0.95, np.random.default_rng(0))}
    interval = measures["calibration_slope"].interval
    assert (interval.low, interval.high) == pytest.approx(
        (slope["slope"] - half_width, slope["slope"] + half_width), rel=1e-6
    )


def test_calibration_in_the_large_leaves_one_cluster_out_by_hand():
    # Leaving out cluster g changes the shift by s_g / (H − H_g), and the variance is (G − 1)/G of their squares.
    p, y = cohort(60)
    cluster = np.repeat(np.arange(12), 5)
    coefficient = Cox().coefficients(View(p=p, y=y), cluster)["in_the_large"]
    q = expit(logit(p) + coefficient.value)
    assert (y - q).sum() == pytest.approx(0, abs=1e-8)
    score, curvature = np.bincount(cluster, y - q), np.bincount(cluster, q * (1 - q))
    steps = score / (curvature.sum() - curvature)
    assert coefficient.se == pytest.approx(np.sqrt(11 / 12 * (steps**2).sum()), rel=1e-8)
    leverage = curvature / curvature.sum()
    u = steps**2 / (steps**2).sum()
    assert coefficient.effective_units == pytest.approx(min(1 / (leverage**2).sum(), 3 / (u**2).sum(), 12), rel=1e-8)


@pytest.mark.slow
def test_wald_tests_keep_their_level_where_rows_depend_on_each_other():
    # Calibrated rows of which the five of a cluster share one uniform number. Of 200 data sets 5 % are rejected, and
    # up to 8 % with so many clusters; the χ² of independent rows rejects more than twice as many.
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(60), 5)
    rejections, naive = {"in-the-large": 0, "slope": 0, "joint": 0}, 0
    for _ in range(200):
        p = expit(np.repeat(rng.normal(-0.5, 1, 60), 5) + rng.normal(0, 0.3, 300))
        view = View(p=p, y=(rng.random(60)[cluster] < p).astype(float))
        parts = Cox(null="redraw").evaluate_with_clusters(view, cluster).parts
        for part in rejections:
            rejections[part] += parts[part]["pvalue"] <= 0.05
        naive += Cox().evaluate(view).parts["in-the-large"]["pvalue"] <= 0.05
    assert max(rejections.values()) <= binom.ppf(0.999, 200, 0.08)
    assert naive > 2 * binom.ppf(0.999, 200, 0.08)


def test_mcllo_reports_the_tests_of_its_clustered_form_beside_redraws():
    preds = copied(5, 200)
    asymptotic = to.test(preds, "mcllo", form="wald")
    with_redraws = to.test(preds, "mcllo", null="redraw", resamples=19)
    for part in ("event", "shift", "scale", "joint"):
        assert with_redraws.parts[part] == pytest.approx(dict(asymptotic.parts[part]), nan_ok=True)
    assert "posterior" not in with_redraws.parts["joint"]
    assert "TN270" in {note.code for note in with_redraws.notes}
    independent = to.test(to.Predictions(preds.y, preds.P[:, 1]), "mcllo", null="redraw", resamples=19)
    assert with_redraws.statistic == independent.statistic  # that of the draws, with the variance of the model
    assert with_redraws.parts["event"]["gamma_se"] > 2 * independent.parts["event"]["gamma_se"]


@pytest.mark.parametrize("part", ["joint", "in-the-large", "slope"])
def test_one_pvalue_of_clustered_rows_decides_and_agrees_with_the_interval(part):
    # The redrawn labels decided with p = 0.18 beside a part with p = 0.02 and an interval that excluded 1.
    for seed in range(20):
        rng = np.random.default_rng([seed, 40])
        cluster, x = np.arange(400) % 40, rng.normal(-1, 1.2, 400)
        y = rng.random(400) < expit(0.75 * x + 0.4 * rng.normal(size=40)[cluster])
        verdict = to.test(to.Predictions(y.astype(int), expit(x), cluster=cluster), "cox", part=part)
        tested = verdict.parts[part]
        assert (verdict.pvalue, verdict.statistic) == (tested["pvalue"], tested["statistic"])
        assert verdict.settings["form"] == "wald"
        if part != "joint":
            name, null = ("slope", 1.0) if part == "slope" else ("in_the_large", 0.0)
            half_width = t.ppf(0.975, tested["units"] - 1) * tested[f"{name}_se"]
            assert (verdict.pvalue < 0.05) == (abs(tested[name] - null) > half_width)


def test_the_joint_test_of_clustered_rows_is_that_of_llo():
    preds = copied(4, 300)
    uncertainty = to.fit(preds, "llo").calibration_map.uncertainty
    verdict = to.test(preds, "cox")
    deviation = np.array([verdict.parts["joint"]["intercept"], verdict.parts["joint"]["slope"] - 1])
    # The llo fit has the same coefficients in another order of its covariance: T² is unaffected by its scale.
    statistic = deviation @ np.linalg.inv(uncertainty.covariance[0]) @ deviation
    assert verdict.statistic == pytest.approx(statistic, rel=1e-4)


def test_a_form_for_independent_rows_is_refused_with_clusters():
    with pytest.raises(InputError, match="TO205"):
        to.test(copied(2, 100), "cox", form="score")
    undefined = to.test(to.Predictions([0, 1] * 50, [0.4, 0.7] * 50, cluster=np.arange(100) % 2), "cox")
    assert np.isnan(undefined.pvalue)
    assert "TN237" in {note.code for note in undefined.notes}


def test_too_few_clusters_give_no_intervals_and_no_pvalues():
    p, y = cohort(200)
    preds = to.Predictions(y.astype(int), p, cluster=np.arange(200) % 2)
    verdict = to.test(preds, "cox", null="redraw", resamples=19)
    assert np.isnan([verdict.parts[part]["pvalue"] for part in ("joint", "slope")]).all()
    assert "slope 0" not in verdict.describe()
    assert "slope [" not in verdict.describe()
    assert np.isfinite(verdict.parts["slope"]["slope"])


def test_clusters_of_one_prediction_test_the_intercept_only():
    rng = np.random.default_rng(0)
    preds = to.Predictions(rng.integers(0, 2, 100), np.full(100, 0.3), cluster=np.repeat(np.arange(20), 5))
    parts = to.test(preds, "cox", null="redraw", resamples=19).parts
    assert parts["joint"]["df"] == 1
    assert parts["joint"]["pvalue"] == pytest.approx(parts["in-the-large"]["pvalue"])
    assert np.isnan(parts["slope"]["pvalue"])


@pytest.mark.parametrize(
    ("part", "null", "printed"),
    [
        ("slope", "asymptotic", "null: slope 1 for any intercept: labels"),
        ("slope", "redraw", "null: slope 1 for any intercept (drawn with intercept 0): labels"),
        ("in-the-large", "asymptotic", "null: calibration-in-the-large 0 given slope 1: labels"),
        ("in-the-large", "redraw", "null: calibration-in-the-large 0 given slope 1: labels"),
        ("joint", "asymptotic", "null: labels"),
    ],
)
def test_the_printed_null_names_the_tested_part(part, null, printed):
    p, y = cohort(200)
    settings = {} if null == "asymptotic" else {"resamples": 19}
    assert printed in to.test(y.astype(int), p, "cox", part=part, null=null, **settings).describe()


def test_the_advice_on_dependent_rows_can_be_followed():
    p, y = cohort(200)
    rows, cluster = y.astype(int), np.repeat(np.arange(40), 5)
    with pytest.raises(InputError, match="null='redraw'"):
        to.test(to.Predictions(rows, p, cluster=cluster), "giviti")
    for name, needs_redraw in (("giviti", True), ("cox", False), ("mcllo", False)):
        (note,) = (note for note in to.test(rows, p, name).notes if note.code == "TN203")
        assert ("null='redraw'" in note.text) == needs_redraw
        settings = {"null": "redraw", "resamples": 19} if needs_redraw else {}
        assert 0 < to.test(to.Predictions(rows, p, cluster=cluster), name, **settings).pvalue <= 1

"""The error of every subgroup, judged together."""

import dataclasses

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from tests.test_schemas import assert_valid
from trueodds.api.by_group import by_group
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests.group_tests import joint_group_pvalues
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.subgroups import subgroup_partitions
from trueodds.resampling.comparison import group_gaps


def calibrated(seed, n=240):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.5, n)
    return p, (rng.random(n) < p).astype(int), {"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n)}


def codes(result):
    return {note.code for note in result.notes}


# Values


def test_the_errors_by_hand():
    # a: .5 said twice, both came: .5 off. b: .2 said of five, one came: right.
    preds = Predictions([1, 1, 1, 0, 0, 0, 0], [0.5, 0.5, 0.2, 0.2, 0.2, 0.2, 0.2], group=list("aabbbbb"))
    groups = by_group(preds, resamples=99)
    assert [(group.label, group.n) for group in groups.groups] == [("group=a", 2), ("group=b", 5)]
    assert [group.estimate.value for group in groups.groups] == pytest.approx([0.5, 0.0])
    assert [(gap.first, gap.second, gap.difference) for gap in groups.gaps] == [
        ("group=a", "group=b", pytest.approx(0.5))
    ]
    # Both outcomes of a come in a quarter of all draws, and the error of .5 also where none came: in half of them.
    p = groups["group=a"].pvalue
    assert abs(p - 0.5) <= 0.5 * 3.3 / 99**0.5


def test_a_group_has_the_error_of_its_own_rows():
    p, y, group = calibrated(0)
    preds = Predictions(y, p, group=group)
    groups = by_group(preds, "rmsce", crossings=2, bins=10, resamples=99)
    assert len(groups.groups) == 2 + 3 + 6
    mask = (group["a"] == 1) & (group["b"] == 2)
    alone = to.measure(preds[mask], "rmsce", bins=10, interval=None)
    assert groups["a=1, b=2"].estimate.value == pytest.approx(alone.value)
    assert groups["a=1, b=2"].n == mask.sum()
    assert groups.overall.value == pytest.approx(to.measure(preds, "rmsce", bins=10, interval=None).value)


@pytest.mark.slow
def test_adult_is_off_for_men_and_undecided_for_its_small_groups():
    table, people = reference.data("adult_rf_predictions.parquet"), reference.data("adult_features.parquet")
    test = np.array(people["split"].to_pylist()) == "test"
    group = {name: np.array(people[name].to_pylist())[test] for name in ("sex", "race")}
    y, p = table["y"].to_numpy(), table["p"].to_numpy()
    assert (np.array(people["income"].to_pylist())[test] == np.where(y == 1, ">50K", "<=50K")).all()  # row for row
    groups = by_group(Predictions(y, p, group=group), crossings=2, resamples=499)
    for label, n in (("sex=Female", 5421), ("sex=Male", 10860), ("race=Other", 135), ("sex=Female, race=Other", 46)):
        assert groups[label].n == n
    men = group["sex"] == "Male"
    # Sums over bins of |sum of y - p|, divided by n: written here without the library.
    place = np.clip(np.ceil(p[men] * 15).astype(int) - 1, 0, 14)
    by_hand = np.abs(np.bincount(place, y[men] - p[men])).sum() / men.sum()
    assert groups["sex=Male"].estimate.value == pytest.approx(by_hand)
    assert groups["sex=Male"].joint == groups.pvalue == pytest.approx(0.002)
    assert groups["sex=Male"].status == "miscalibrated"
    assert groups["race=Other"].status == "undecided"
    assert (
        groups["race=Other"].min_detectable
        > groups["sex=Male"].min_detectable
        > groups["sex=Male"].estimate.noise_floor
    )
    (between,) = [gap for gap in groups.gaps if gap.column == "sex"]
    assert between.settled
    assert between.interval.high < 0  # Female - Male
    assert groups.multicalibration.worst == "sex=Male, race=White"
    assert groups.multicalibration.pvalue == pytest.approx(0.002)


# The joint p


@pytest.mark.slow
def test_the_family_keeps_its_level_for_overlapping_groups():
    # 11 groups that share rows; with uncorrected p-values a calibrated model is rejected in far more than 5 %.
    ece, lens = ESTIMATORS.make("ece", {}), as_lens("positive")
    alone = []

    def is_rejected(seed):
        p, y, group = calibrated(seed, 120)
        preds = Predictions(y, p, group=group)
        groups = [group for partition in subgroup_partitions(preds, 2) for group in partition.groups]
        adjusted = joint_group_pvalues(preds, groups, ece, lens, "mean", 99, 0.05, np.random.default_rng(seed))
        alone.append(min(adjusted.pvalues) <= 0.05)
        return min(adjusted.adjusted) <= 0.05

    assert rate_is_at_level(map(is_rejected, range(200)), 0.05, excluded=0.15)
    assert np.mean(alone) > 0.15


@pytest.mark.slow
def test_the_family_keeps_its_level_if_only_the_groups_that_deviate_most_are_examined():
    # 24 calibrated groups of 40 rows, of which the 6 with the largest z-scores are examined. Rejections at 5 % of any
    # group are at most Binomial(200, .05); if the 18 others did not count, they would be far more.
    ece, lens = ESTIMATORS.make("ece", {}), as_lens("positive")
    rejected = without = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = rng.random(960)
        preds = Predictions((rng.random(960) < p).astype(int), p, group=np.arange(960) % 24)
        (partition,) = subgroup_partitions(preds, max_groups=6)
        assert len(partition.unexamined_groups) == 18
        for n_untested in (18, 0):
            generator = np.random.default_rng(seed)
            pvalues = joint_group_pvalues(
                preds, partition.groups, ece, lens, "mean", 999, 0.05, generator, n_untested=n_untested
            )
            rejected += n_untested > 0 and min(pvalues.adjusted) <= 0.05
            without += n_untested == 0 and min(pvalues.adjusted) <= 0.05
    assert rejected <= binom.ppf(0.999, 200, 0.05)
    assert without > 20


def test_more_than_fifty_groups_are_all_tested_and_the_one_that_is_off_is_found():
    # 60 groups of 100 rows of probability 0.2. In one, twice as many events occur: z = 20 / sqrt(100 × .16) = 5.
    events = np.arange(100) % 5 == 0
    twice = np.arange(100) % 5 <= 1
    y = np.concatenate([*[events] * 59, twice]).astype(int)
    preds = Predictions(y, np.full(6000, 0.2), group=np.repeat(np.arange(60), 100))
    groups = by_group(preds, "o_e", interval=None)
    assert len(groups.groups) == 60
    assert [(group.label, group.direction) for group in groups.miscalibrated] == [("group=59", "under")]
    assert groups.worst.label == "group=59"
    assert groups.multicalibration.worst == "group=59"
    # With a limit, the group is examined because it deviates most, and joint p is adjusted for the 50 others.
    limited = by_group(preds, "o_e", interval=None, max_groups=10)
    assert [group.label for group in limited.miscalibrated] == ["group=59"]
    assert limited.worst.joint == pytest.approx(limited.settings["min_pvalue"])
    assert limited.settings["min_pvalue"] == pytest.approx(51 / (1 + limited.settings["redraws"]))
    assert limited.settings["min_pvalue"] <= 0.05
    assert limited.multicalibration is None
    assert {"TN151", "TN282"} <= set(codes(limited))


def test_too_many_unexamined_groups_for_any_rejection_are_noted():
    preds = Predictions(np.arange(400) % 2, np.full(400, 0.5), group=np.arange(400) % 40)
    groups = by_group(preds, interval=None, max_groups=1, resamples=99)
    assert groups.settings["min_pvalue"] == pytest.approx(0.4)
    assert "TN281" in codes(groups)


@pytest.mark.slow
def test_of_many_groups_fifty_are_compared_with_intervals_for_the_pairs_of_all():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(60), 60)
    p = rng.random(3600)
    y = (rng.random(3600) < np.where(group == 59, p**4, p)).astype(int)
    groups = by_group(Predictions(y, p, group=group), resamples=199)
    assert "TN280" in codes(groups)
    assert len(groups.gaps) == 50 * 49 / 2
    assert "group=59" in {gap.first for gap in groups.gaps} | {gap.second for gap in groups.gaps}
    # Bonferroni's correction for the 60 · 59 / 2 pairs of all groups.
    assert {round(gap.interval.level, 9) for gap in groups.gaps} == {round(1 - 0.05 / 1770, 9)}
    assert groups.widest[0].first == "group=59"
    rest = by_group(Predictions(y, p, group=group), resamples=199, against="rest")
    assert len(rest.gaps) == 50


def test_a_group_has_a_direction_where_it_has_means():
    # 100 rows of probability 0.5: 95 % of the calibrated ones have 50 ± 9.8 events.
    y, p = np.concatenate([np.arange(100) < events for events in (60, 40, 59, 50)]).astype(int), np.full(400, 0.5)
    groups = by_group(Predictions(y, p, group=np.repeat(list("abcd"), 100)), resamples=19, interval=None)
    assert [group.direction for group in groups.groups] == ["under", "over", None, None]
    assert list(groups.frame()["direction"][:2]) == ["under", "over"]


def test_a_group_whose_slope_is_wrong_has_no_direction_from_a_mean_gap_that_is_noise():
    rng = np.random.default_rng(4)
    p = rng.beta(1, 3, 1200)
    is_extreme = np.arange(1200) % 2 == 0
    true = np.where(is_extreme, 0.25 + 0.4 * (p - 0.25), p)  # with the same mean as p
    preds = Predictions((rng.random(1200) < true).astype(int), p, group=np.where(is_extreme, "a", "b"))
    group = by_group(preds, resamples=199)["group=a"]
    assert group.status == "miscalibrated"
    assert group.mean_prob != group.event_rate
    assert group.direction is None
    table = to.audit(preds, resamples=199).to_dict()["groups"]
    assert [entry["direction"] for entry in table if entry["label"] == "group=a"] == [None]
    tallied = to.audit(to.tally(preds), resamples=199).to_dict()
    assert [entry["direction"] for entry in tallied["groups"] if entry["label"] == "group=a"] == [None]


def test_the_direction_of_a_group_accounts_for_clusters():
    # 14 of 20 clusters of equal rows are events, while 10 ± 4.8 are expected; of independent rows 140, and 100 ± 14.
    y = np.repeat(np.arange(20) < 14, 10).astype(int)
    p, cluster = np.full(200, 0.5), np.repeat(np.arange(20), 10)
    by_row = by_group(Predictions(y, p, group=["a"] * 200), interval=None, resamples=19)
    by_cluster = by_group(Predictions(y, p, group=["a"] * 200, cluster=cluster), interval=None, resamples=19)
    assert (by_row.groups[0].direction, by_cluster.groups[0].direction) == ("under", None)


def test_a_duplicate_column_costs_nothing():
    p, y, group = calibrated(1)
    y = np.where(group["a"] == 1, p > 0.5, y).astype(int)
    once = by_group(Predictions(y, p, group={"a": group["a"]}), resamples=199)
    twice = by_group(Predictions(y, p, group={"a": group["a"], "again": group["a"]}), crossings=2, resamples=199)
    assert twice["a=1"].joint == twice["again=1"].joint == twice["a=1, again=1"].joint == once["a=1"].joint
    assert twice["a=0"].joint == once["a=0"].joint  # Holm would have tripled it


def test_one_column_and_no_other_group_is_the_test_of_consistency():
    p, y, _ = calibrated(2)
    preds = Predictions(y, p, group=np.zeros(len(p), dtype=int))
    groups = by_group(preds, resamples=199)
    assert (
        groups.groups[0].pvalue
        == groups.groups[0].joint
        == pytest.approx(to.test(preds, "consistency", resamples=199).pvalue)
    )


# Small groups


def test_a_group_of_one_row_is_noted_and_undecided():
    p, y, _ = calibrated(3, 100)
    groups = by_group(Predictions(y, p, group=["solo", *["others"] * 99]), resamples=99)
    solo = groups["group=solo"]
    assert (solo.n, solo.estimate.interval, solo.status) == (1, None, "undecided")
    assert {"TN150", "TN153"} <= codes(groups)
    assert [gap.interval for gap in groups.gaps] == [None]


def test_a_small_group_is_never_fine():
    p, y, _ = calibrated(4, 4000)
    group = np.repeat(["large", "small"], [3950, 50])
    groups = by_group(Predictions(y, p, group=group), min_effect=0.08, resamples=199)
    assert [group.status for group in groups.groups] == ["within", "undecided"]
    large, small = groups.groups
    assert small.min_detectable > large.min_detectable > large.estimate.noise_floor
    assert small in groups.undecided


@pytest.mark.slow
def test_groups_that_were_not_examined_are_listed_and_noted():
    values = np.repeat(np.arange(60), 3)
    p, y, _ = calibrated(5, len(values))
    weight = np.where(values == 0, 0.0, 1.0)
    preds = Predictions(y, p, group={"many": values, "few": values > 30}, weight=weight)
    groups = by_group(preds, crossings=True, interval=None, resamples=49)
    assert sum(group.column == "many" for group in groups.groups) == 59
    assert [(group.label, group.reason) for group in groups.unexamined] == [
        ("many=0", "no_weight"),
        ("many=0, few=False", "no_weight"),
    ]
    left = [note.text for note in groups.notes if note.code == "TN151"]
    assert left[0] == "1 of 60 groups of many not examined, because no row has weight and known labels: many=0."
    assert "TN152" in codes(groups)
    limited = by_group(preds, interval=None, max_groups=50, resamples=49)
    assert [group.reason for group in limited.unexamined].count("max_groups") == 9
    assert {group.label for group in (*limited.groups, *limited.unexamined)} >= {f"many={i}" for i in range(60)}
    assert "52 of 62 groups examined" in str(limited).splitlines()[0]
    assert len(limited.to_dict()["unexamined"]) == 10


def test_what_is_seen_is_no_more_than_a_far_groups_own_error():
    # Thirteen groups, 199 redraws: the far one's error lies above all of its draws, and was named as the smallest seen.
    rng = np.random.default_rng(20)
    p, group = rng.beta(1, 1.2, 1500), {"sex": rng.integers(0, 3, 1500), "region": rng.integers(0, 3, 1500)}
    mask = (group["sex"] == 0) & (group["region"] == 0)
    y = (rng.random(1500) < np.where(mask, 0.4 * p, p)).astype(int)
    preds = Predictions(y, p, group=group)
    by_resamples = {count: by_group(preds, crossings=2, resamples=count, interval=None) for count in (199, 999)}
    for groups in by_resamples.values():
        worst = groups["sex=0, region=0"]
        assert worst.status == "miscalibrated"
        assert worst.min_detectable < 0.8 * worst.estimate.value
        for subgroup in groups.groups:  # off is what reaches the error that is seen
            assert (subgroup.status == "miscalibrated") == (subgroup.estimate.value >= subgroup.min_detectable)
    one, other = (groups["sex=0, region=0"].min_detectable for groups in by_resamples.values())
    assert abs(one - other) < 0.25 * other


def test_groups_of_too_few_clusters_are_never_seen():
    # Signs of four clusters flipped together have p of 1/8 at least; of eight 1/128.
    p, y, _ = calibrated(21, 400)
    blind, seeing = (
        by_group(Predictions(y, p, group=np.arange(400) % 2, cluster=np.arange(400) % k), resamples=99) for k in (8, 16)
    )
    assert [group.min_detectable for group in blind.groups] == [None, None]  # four of the eight in each
    across = by_group(Predictions(y, p, group=np.arange(400) % 3, cluster=np.arange(400) // 100), resamples=199)
    assert [group.min_detectable for group in across.groups] == [None] * 3  # all four reach into each group
    assert all(group.min_detectable is not None for group in seeing.groups)


def test_the_direction_of_a_slope_is_that_of_the_slope_and_not_of_the_mean_gap():
    # Group a: log odds twice as large as the true ones, which are shifted by 1, so that the mean is too low. It was
    # "miscalibrated, under" beside a slope of 0.5. Group b: log odds half as large as the true ones.
    rng = np.random.default_rng(4)
    x, is_a = rng.normal(0, 1.5, 2000), np.arange(2000) < 1000
    y = rng.random(2000) < expit(np.where(is_a, x / 2 + 1, 2 * x))
    preds = Predictions(y.astype(int), expit(x), group={"site": np.where(is_a, "a", "b")})
    a, b = by_group(preds, "calibration_slope", resamples=199).groups
    assert (a.status, a.direction) == ("miscalibrated", "too extreme")
    assert (b.status, b.direction) == ("miscalibrated", "too moderate")
    assert by_group(preds, "calibration_intercept", resamples=199)["site=a"].direction == "under"


def test_a_group_of_one_cluster_has_no_p_value_and_no_noise_floor():
    p, y, _ = calibrated(21, 400)
    site = np.arange(400) % 4  # every site is one cluster: flipping all its signs changes no error
    y = np.where(site == 3, 1, y)
    groups = by_group(Predictions(y, p, group={"site": site}, cluster=site), resamples=199)
    assert all(np.isnan([group.pvalue, group.joint, group.estimate.noise_floor]).all() for group in groups.groups)
    assert np.isnan(groups.pvalue)
    assert groups.settings["min_pvalue"] == 1.0
    assert groups.multicalibration is None
    assert {"TN155", "TN282"} <= codes(groups)


@pytest.mark.parametrize("estimator", ["ece", "o_e", "calibration_slope"])
def test_the_error_of_all_rows_has_the_interval_that_measure_gives_with_the_same_seed(estimator: str) -> None:
    p, y, group = calibrated(3, 400)
    preds = Predictions(y, p, group=group)
    overall, measured = by_group(preds, estimator, rng=7).overall, to.measure(preds, estimator, rng=7)
    assert (overall.interval, overall.noise_floor) == (measured.interval, measured.noise_floor)


@pytest.mark.slow
def test_an_error_that_no_outcomes_can_show_is_not_named():
    # Three rows said .9 are off by .1, .233, .567 or .9;
    # the last comes in a thousandth of the redraws, so that it may be seen among 40 such groups, and .567, in 2.7 %,
    # is not. One row is .9 off in a tenth: no surprise by itself.
    p, group = np.full(120, 0.9), np.arange(120) // 3
    three = by_group(Predictions(np.ones(120, dtype=int), p, group=group), interval=None, resamples=999)
    min_detectable = [group.min_detectable for group in three.groups]
    assert all(value is None or value == pytest.approx(0.9) for value in min_detectable)
    assert sum(value is not None for value in min_detectable) > 20
    one = by_group(Predictions(np.ones(40, dtype=int), p[:40], group=np.arange(40)), interval=None, resamples=999)
    assert {group.min_detectable for group in one.groups} == {None}


def test_groups_of_the_same_rows_have_the_same_floor():
    p, y, group = calibrated(22, 90)
    group = {"a": np.where(np.arange(90) == 7, 9, group["a"]), "b": group["b"]}
    groups = by_group(Predictions(y, p, group=group | {"again": group["b"]}), crossings=2, resamples=99)
    solo = [group for group in groups.groups if group.n == 1]
    assert len(solo) >= 3
    assert len({group.estimate.noise_floor for group in solo}) == 1
    assert groups["b=1"].estimate.noise_floor == groups["again=1"].estimate.noise_floor
    # One row said p is off by 1 − p where it comes and by p where not: 2p(1 − p) in the mean.
    mean, std = 2 * p[7] * (1 - p[7]), abs(1 - 2 * p[7]) * np.sqrt(p[7] * (1 - p[7]))
    assert abs(solo[0].estimate.noise_floor - mean) <= 4 * std / 99**0.5


# The direction


def test_a_group_reports_the_mean_prediction_and_the_event_rate():
    preds = Predictions([1, 1, 1, 0, 0], [0.5, 0.7, 0.2, 0.2, 0.5], group=list("aabbb"), weight=[1, 3, 1, 1, 2])
    groups = by_group(preds, resamples=49, interval=None)
    # a: (.5 + 3 × .7) / 4 and all came; b: (.2 + .2 + 2 × .5) / 4 and one of weight 1 of 4 came.
    assert [(group.mean_prob, group.event_rate) for group in groups.groups] == [
        (pytest.approx(0.65), 1.0),
        (pytest.approx(0.35), 0.25),
    ]
    assert [group["event_rate"] for group in assert_valid(groups.to_dict(), "groups")["groups"]] == [1.0, 0.25]
    assert [i for i, line in enumerate(str(groups).splitlines()) if "predicted" in line] in ([1], [2])  # a heading


def test_several_views_have_no_direction():
    rng = np.random.default_rng(23)
    P = rng.dirichlet(np.ones(3), 60)
    preds = Predictions(rng.integers(0, 3, 60), P, group=np.arange(60) % 2)
    for lens in ("classwise", "canonical"):
        groups = by_group(preds, lens=lens, resamples=29, interval=None)
        assert {
            (group["mean_prob"], group["event_rate"]) for group in assert_valid(groups.to_dict(), "groups")["groups"]
        } == {(None, None)}
        assert "observed" not in str(groups).splitlines()[1]
    assert by_group(preds, resamples=29, interval=None).groups[0].mean_prob == pytest.approx(P.max(axis=1)[::2].mean())


# Gaps


def test_an_interval_of_the_widest_gap_holds_the_interval_of_its_own():
    p, y, group = calibrated(6, 1500)
    y = np.where(group["b"] == 2, (np.random.default_rng(0).random(1500) < p**3), y).astype(int)
    groups = by_group(Predictions(y, p, group={"b": group["b"]}), resamples=300)
    (widest,) = groups.widest
    assert (widest.first, widest.settled) == ("b=2", True)
    ends = [gap.interval for gap in groups.gaps]
    assert widest.interval.low == max(max(interval.low, -interval.high) for interval in ends)
    assert widest.interval.high == max(max(abs(interval.low), abs(interval.high)) for interval in ends)
    assert widest.interval.low <= widest.difference <= widest.interval.high


@pytest.mark.slow
def test_the_intervals_of_all_gaps_hold_the_true_ones_together():
    # The first group's errors are .1 in every bin, the others' 0.
    # At least 95 % of the families of three intervals cover: misses in 60 data sets are at most Binomial(60, .05).
    missed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        group = np.repeat([0, 1, 2], [400, 150, 150])
        p = (rng.integers(0, 15, 700) + 0.5) / 15
        shift = np.where(group == 0, 0.1, 0.0)
        y = (rng.random(700) < np.where(p > 0.5, p - shift, p + shift)).astype(int)
        groups = by_group(Predictions(y, p, group=group), resamples=200, rng=seed)
        truth = {"group=0": 0.1, "group=1": 0.0, "group=2": 0.0}
        covered = [g.interval.low <= truth[g.first] - truth[g.second] <= g.interval.high for g in groups.gaps]
        missed += not (all(covered) and groups.widest[0].interval.low <= 0.1 <= groups.widest[0].interval.high)
    assert missed <= binom.ppf(0.999, 60, 0.05)


def test_gaps_from_the_rest_leave_out_no_row():
    p, y, group = calibrated(7)
    preds = Predictions(y, p, group={"b": group["b"]})
    groups = by_group(preds, against="rest", resamples=99)
    inside = group["b"] == 0
    expected = (
        to.measure(preds[inside], "ece", interval=None).value - to.measure(preds[~inside], "ece", interval=None).value
    )
    assert (groups.gaps[0].first, groups.gaps[0].second) == ("b=0", "rest")
    assert groups.gaps[0].difference == pytest.approx(expected)


def test_under_rest_the_text_says_which_group_is_apart_from_the_rest():
    p, y, group = calibrated(24, 3000)
    y = np.where(group["b"] == 2, p > 0.6, y).astype(int)
    text = str(by_group(Predictions(y, p, group=group), against="rest", resamples=199))
    assert "widest gap of two groups of b: b=2 − " in text
    assert "significantly different from the rest of b: b=" in text
    assert "significantly different from the rest of a: no group" in text
    assert "of two groups" not in str(by_group(Predictions(y, p, group=group), resamples=99))


def test_clusters_that_reach_into_several_groups_are_resampled_whole():
    # Each cluster has a row in either group with the same prediction and outcome:
    # the gap cannot vary, whatever is drawn.
    rng = np.random.default_rng(8)
    p = rng.random(60).round(1)
    y = (rng.random(60) < p).astype(int)
    preds = Predictions(
        np.tile(y, 2), np.tile(p, 2), group=np.repeat(["a", "b"], 60), cluster=np.tile(np.arange(60), 2)
    )
    groups = by_group(preds, resamples=200)
    (between,) = groups.gaps
    assert (between.difference, between.interval.low, between.interval.high) == (0.0, 0.0, 0.0)
    assert "TN204" in codes(groups)
    (partition,) = subgroup_partitions(preds)
    assert group_gaps.splits_clusters(preds, partition.groups)
    disjoint = Predictions(
        np.tile(y, 2), np.tile(p, 2), group=np.repeat(["a", "b"], 60), cluster=np.repeat([0, 1, 2, 3], 30)
    )
    assert not group_gaps.splits_clusters(disjoint, subgroup_partitions(disjoint)[0].groups)


# Weights, votes, labels


def test_a_weight_of_two_is_two_rows_in_every_error():
    p, y, group = calibrated(9, 80)
    twice = np.repeat(np.arange(80), np.where(group["a"] == 1, 2, 1))
    weighted = by_group(Predictions(y, p, group=group["a"], weight=np.where(group["a"] == 1, 2.0, 1.0)), resamples=99)
    repeated = by_group(Predictions(y[twice], p[twice], group=group["a"][twice]), resamples=99)
    for one, other in zip(weighted.groups, repeated.groups, strict=True):
        assert one.estimate.value == pytest.approx(other.estimate.value)


def test_votes_are_tested_by_one_of_them_and_measured_by_all():
    rng = np.random.default_rng(10)
    P, group = rng.dirichlet(np.ones(3), 200), rng.integers(0, 2, 200)
    votes = np.array([rng.multinomial(5, row) for row in P])
    preds = Predictions(votes, P, group=group)
    groups = by_group(preds, resamples=99)
    assert "TN202" in codes(groups)
    alone = to.measure(preds[group == 0], "ece", interval=None)
    assert groups["group=0"].estimate.value == pytest.approx(alone.value)


def test_labels_that_do_not_exclude_each_other_are_measured_one_by_one():
    rng = np.random.default_rng(11)
    P, group = rng.random((100, 2)), rng.integers(0, 2, 100)
    preds = Predictions.from_multilabel((rng.random((100, 2)) < P).astype(int), P, group=group)
    with pytest.raises(InputError, match="TO408"):
        by_group(preds, resamples=49)
    assert by_group(preds, lens="class:1", resamples=49).lens == "class:1"


# Asking and telling


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"crossings": 3}, "TO203"),
        ({"crossings": "all"}, "TO203"),
        ({"crossings": -1}, "TO203"),
        ({"min_effect": -0.1}, "TO203"),
        ({"min_effect": float("nan")}, "TO203"),
        ({"against": "all"}, "TO203"),
        ({"aggregate": "median"}, "TO203"),
        ({"bins": 0}, "TO203"),
        ({"bin": 3}, "TO202"),
        ({"level": 95}, "TO203"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_is_refused(settings, code):
    p, y, group = calibrated(12, 30)
    with pytest.raises(InputError, match=code):
        by_group(Predictions(y, p, group=group), **settings)


def test_rows_without_groups_and_tallies_are_refused():
    p, y, group = calibrated(13, 30)
    with pytest.raises(InputError, match="TO409"):
        by_group(Predictions(y, p))
    with pytest.raises(InputError, match="TO403"):
        by_group(to.tally(Predictions(y, p, group=group)))


def test_the_same_call_gives_the_same_answer():
    p, y, group = calibrated(14)
    preds = Predictions(y, p, group=group)
    assert by_group(preds, resamples=99, rng=3).to_dict() == by_group(preds, resamples=99, rng=3).to_dict()


def test_the_order_of_the_rows_moves_no_error():
    p, y, group = calibrated(15)
    order = np.random.default_rng(0).permutation(len(p))
    one = by_group(Predictions(y, p, group=group), crossings=2, resamples=49)
    other = by_group(
        Predictions(y[order], p[order], group={k: v[order] for k, v in group.items()}), crossings=2, resamples=49
    )
    assert [g.label for g in one.groups] == [g.label for g in other.groups]
    assert [g.estimate.value for g in one.groups] == pytest.approx([g.estimate.value for g in other.groups])
    assert one.multicalibration.groups == pytest.approx(other.multicalibration.groups)


def test_the_answer_is_frozen_strict_and_lines_up():
    p, y, group = calibrated(16)
    groups = by_group(Predictions(y, p, group=group), crossings=2, resamples=49)
    with pytest.raises(dataclasses.FrozenInstanceError):
        groups.level = 0.5
    document = assert_valid(groups.to_dict(), "groups")
    assert [group["label"] for group in document["groups"]] == [group.label for group in groups.groups]
    lines = str(groups).splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("status"))  # a wide table has a second block
    table = lines[start : start + 1 + len(groups.groups)]
    assert (
        len(
            {line.index(word) for line, word in zip(table, ["status", *(g.status for g in groups.groups)], strict=True)}
        )
        == 1
    )
    frame = groups.frame()
    assert list(frame["label"]) == [group.label for group in groups.groups]
    assert max(map(len, lines[1 : start + 1 + len(groups.groups)])) <= 80
    assert groups._repr_html_().count("<tr") == 1 + len(groups.groups) + 1  # headings, subgroups and all rows
    with pytest.raises(KeyError):
        groups["a=7"]


def test_p_at_the_floor_and_zero_are_printed_as_an_audit_prints_them():
    p, y, group = calibrated(25, 600)
    y = np.where(group["b"] == 2, p > 0.5, y).astype(int)
    head, *lines = str(by_group(Predictions(y, p, group=group["b"]), resamples=99)).splitlines()
    assert "family-wise p ≤ 0.01 ·" in head
    assert "worst: group=2; joint p ≤ 0.01 ·" in head
    assert any("smallest detectable" in line for line in lines)
    blocks = [[line for line in lines if line.startswith(f"group={name} ")] for name in (0, 2)]
    assert "".join(f"{line}  " for line in blocks[1]).count("≤ 0.01  ") == 2
    assert "[0.0000, " in blocks[0][0]


def test_an_interval_from_zero_of_a_group_that_is_off_is_explained():
    explained = {}
    for seed in (1, 2):
        p, _, group = calibrated(seed, 300)
        y = (np.random.default_rng(seed).random(300) < np.where(group["a"] == 1, p**2, p)).astype(int)
        groups = by_group(Predictions(y, p, group=group["a"]), resamples=99)
        from_zero = [group.label for group in groups.miscalibrated if group.estimate.interval.low == 0]
        explained[seed] = "The interval of a miscalibrated group can start at 0 (" in str(groups)
        assert explained[seed] == bool(from_zero)
    assert explained == {1: False, 2: True}


@pytest.mark.parametrize(
    ("y", "p", "group", "settings"),
    [
        ([0, 1, 1, 1], [0.0, 1.0, 1.0, 0.0], "aabb", {}),  # infinite surprise
        ([0, 1, 1, 1], [0.1, 0.4, 0.7, 0.9], "abbb", {"estimator": "skce"}),  # undefined for one row
        ([0, 1, 1, 1], [0.1, 0.4, 0.7, 0.9], "aabb", {"interval": None}),
    ],
    ids=["infinite", "undefined", "bare"],
)
def test_what_is_infinite_undefined_or_not_requested_keeps_the_schema(y, p, group, settings):
    document = assert_valid(
        by_group(Predictions(y, p, group=list(group)), resamples=49, **settings).to_dict(), "groups"
    )
    assert None in (
        document["multicalibration"]["value"],
        *(group["error"] for group in document["groups"]),
        document["groups"][0]["interval"],
    )


def test_the_worst_group_of_a_signed_error_is_the_farthest_from_zero() -> None:
    rng = np.random.default_rng(1)
    group = rng.choice(["a", "b"], 1200)
    p = rng.uniform(0.3, 0.7, 1200)
    y = (rng.random(1200) < np.where(group == "a", p - 0.25, p - 0.08)).astype(int)
    preds = to.Predictions(y, p, group={"g": group})
    groups = by_group(preds, "calibration_in_the_large", resamples=199)
    assert groups["g=a"].joint == groups["g=b"].joint
    assert groups["g=a"].estimate.value < groups["g=b"].estimate.value < 0
    assert groups.worst.label == groups.to_dict()["worst"] == "g=a"
    assert "can start at 0" not in groups.describe()


@pytest.mark.slow
def test_groups_of_rare_events_within_the_margin_are_noted() -> None:
    # Both groups are calibrated; half of their event rates, 4 and 40 %, is .02 and .2, and the margin .05.
    site = np.repeat(["common", "rare"], 5000)
    y = np.where(site == "rare", np.arange(10_000) % 25 == 0, np.arange(10_000) % 5 < 2)
    preds = to.Predictions(y.astype(int), np.where(site == "rare", 0.04, 0.4), group={"site": site})
    notes = [note.text for note in by_group(preds, resamples=99).notes if note.code == "TN240"]
    assert len(notes) == 1
    assert "groups that are within it: site=rare." in notes[0]
    for settings in ({"min_effect": 0.01}, {"lens": "confidence"}, {"estimator": "o_e"}):
        assert "TN240" not in [note.code for note in by_group(preds, resamples=99, **settings).notes]
    for rows in (preds, to.tally(preds)):
        notes = [note["text"] for note in to.audit(rows, resamples=99).to_dict()["notes"] if note["code"] == "TN240"]
        assert len(notes) == 1

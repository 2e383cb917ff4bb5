"""Comparison of two models: reference values, pairing, p-values, and the swap permutation."""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.resampling.comparing.models import calibrated_and_overconfident, golden, odds, rows
from trueodds.core.errors import InputError
from trueodds.estimators import ESTIMATORS


def codes(result: to.Comparison | to.Ranking) -> set[str]:
    return {note.code for note in result.notes}


def refused(code: str, *models: object, **settings: object) -> InputError:
    with pytest.raises(InputError) as problem:
        to.compare(*models, **settings)
    assert problem.value.code == code
    return problem.value


# Reference values


def test_the_difference_of_brier_scores_has_the_reference_s_standard_error() -> None:
    known = reference.estimators()["b.paired_brier_z"]["value"]
    comparison = to.compare(*golden(), "brier")
    assert comparison.difference == pytest.approx(known["diff"], rel=1e-10)
    assert comparison.settings["standard_error"] == pytest.approx(known["se"], rel=1e-10)
    assert comparison.difference / comparison.settings["standard_error"] == pytest.approx(known["z"], rel=1e-10)
    assert comparison.pvalue == pytest.approx(
        1.5e-7, rel=0.01
    )  # t with 999 degrees of freedom beyond 5.2904, two sides


def test_a_paired_bootstrap_on_request_is_the_reference_s() -> None:
    known = reference.estimators()["b.paired_bootstrap.conf_ece15"]["value"]  # rows default_rng(4).integers(0, n, n)
    comparison = to.compare(*golden(), "ece", interval="percentile", resamples=400, rng=4)
    values = [estimate.value for estimate in comparison.models.values()]
    assert [*values, comparison.difference] == pytest.approx([known["A"], known["B"], known["diff"]], rel=1e-10)
    assert [comparison.interval.low, comparison.interval.high] == pytest.approx(known["ci95"], rel=1e-10)


def test_swapped_predictions_give_the_reference_s_p() -> None:
    known = reference.estimators()["b.paired_swap_permutation.conf_ece15"]["value"]  # none of 399 swaps reaches it
    comparison = to.compare(*golden(), "ece", null="swap", resamples=known["R"])
    assert comparison.pvalue == pytest.approx(known["p_plus1"])
    assert "exchangeable" in comparison.null
    assert "TN229" in codes(comparison)


# By hand


def test_a_difference_of_scores_by_hand() -> None:
    # (p − y)² is .04 .04 .25 .25 and .25 .25 .25 .25: differences −.21 −.21 0 0, mean −.105, s.e. √(.0147)/2
    y = [1, 0, 1, 0]
    comparison = to.compare(to.Predictions(y, [0.8, 0.2, 0.5, 0.5]), to.Predictions(y, [0.5] * 4), "brier")
    assert comparison.difference == pytest.approx(-0.105)
    assert comparison.settings["standard_error"] == pytest.approx(np.sqrt(0.0147) / 2)


def test_swaps_of_two_rows_by_hand() -> None:
    # Brier: rows differ by −.21 and 0, so every swap gives ± .105: none is farther off, and all tie with what was seen
    y = [1, 1]
    comparison = to.compare(
        to.Predictions(y, [0.8, 0.5]), to.Predictions(y, [0.5, 0.5]), "brier", null="swap", resamples=99
    )
    assert comparison.pvalue == 1.0


def test_clusters_are_one_unit_of_a_mean() -> None:
    # two rows twice over: the standard error is that of the two clusters, (d₁ − d₂)/2 of their means
    y, p, q, cluster = [1, 1, 0, 0], [0.9, 0.9, 0.4, 0.4], [0.5] * 4, [0, 0, 1, 1]
    a, b = (to.Predictions(y, probs, cluster=cluster) for probs in (p, q))
    # differences .01 − .25 = −.24 and .16 − .25 = −.09
    assert to.compare(a, b, "brier").settings["standard_error"] == pytest.approx(0.15 / 2)


def test_different_rows_add_their_variances() -> None:
    a, b = calibrated_and_overconfident()
    alone = [np.std((preds.p - preds.y) ** 2, ddof=1) ** 2 / preds.n for preds in (a, b)]
    comparison = to.compare(a, b, "brier", paired=False)
    assert comparison.settings["standard_error"] == pytest.approx(np.sqrt(sum(alone)))
    assert comparison.n == 800
    assert not comparison.paired


# The same rows?


def test_equal_outcomes_are_taken_as_the_same_rows_with_a_note() -> None:
    comparison = to.compare(*calibrated_and_overconfident(), "brier", resamples=200)
    assert comparison.paired
    assert "TN226" in codes(comparison)
    assert "TN226" not in codes(to.compare(*calibrated_and_overconfident(), "brier", resamples=200, paired=True))


def test_rows_in_another_order_are_not_taken_for_the_same_with_a_note() -> None:
    a, b = calibrated_and_overconfident()
    comparison = to.compare(a, b[::-1], "brier", resamples=200)
    assert not comparison.paired
    (text,) = (note.text for note in comparison.notes if note.code == "TN227")
    assert "their outcomes differ" in text
    assert "same order" in text
    error = refused("TO205", a, b[::-1], estimator="brier", paired=True)
    assert "outcomes differ" in error.got


@pytest.mark.parametrize(("what", "message"), [("weight", "weights differ"), ("cluster", "clusters differ")])
def test_rows_of_other_weights_or_clusters_are_other_rows(what: str, message: str) -> None:
    a, b = calibrated_and_overconfident(60)
    b = to.Predictions(b.y, b.p, **{what: np.arange(60) // 2 + 1})
    assert message in refused("TO205", a, b, paired=True).got
    assert not to.compare(a, b, "brier", resamples=100).paired


def test_bare_confidence_does_not_tell_whose_rows_these_are() -> None:
    right = np.arange(80) % 4 > 0
    a = to.Predictions.from_confidence(np.linspace(0.6, 0.9, 80), right)
    b = to.Predictions.from_confidence(np.linspace(0.5, 0.9, 80), ~right)  # another model is right elsewhere
    assert not to.compare(a, b, "ece", resamples=100).paired
    assert to.compare(a, b, "ece", resamples=100, paired=True).paired


def test_classes_in_another_order_are_the_same_outcomes() -> None:
    a = to.Predictions(["cat", "dog"] * 30, [[0.7, 0.3], [0.4, 0.6]] * 30, classes=["cat", "dog"])
    b = to.Predictions(["cat", "dog"] * 30, [[0.2, 0.8], [0.5, 0.5]] * 30, classes=["dog", "cat"])
    assert to.compare(a, b, "ece", lens="class:cat", resamples=100).paired


def test_pairing_takes_out_what_chance_does_to_both() -> None:
    a, b = calibrated_and_overconfident(1000)
    widths = [
        np.ptp([i.low, i.high]) for i in (to.compare(a, b, "brier", paired=one).interval for one in (True, False))
    ]
    assert widths[0] < widths[1] / 2


# Intervals and p-values


@pytest.mark.parametrize(
    "name", ["brier", "log_loss", "ece", "rmsce", "debiased_l2", "debiased_l1", "skce", "ks", "o_e"]
)
def test_the_other_way_round_is_minus_the_same(name: str) -> None:
    a, b = calibrated_and_overconfident(200)
    one, other = to.compare(a, b, name, resamples=300), to.compare(b, a, name, resamples=300)
    assert one.difference == pytest.approx(-other.difference)
    # the null draws of the two models are others, which may move an end by a few thousandths
    assert [one.interval.low, one.interval.high] == pytest.approx([-other.interval.high, -other.interval.low], abs=0.01)


@pytest.mark.parametrize("name", ["ece", "rmsce", "skce", "ks", "o_e"])
def test_p_is_the_level_at_which_the_interval_ends_at_0(name: str) -> None:
    eta, y = rows(600)
    a, b = to.Predictions(y, odds(eta + 1.5)), to.Predictions(y, odds(eta))
    comparison = to.compare(a, b, name, resamples=400)
    assert comparison.min_pvalue <= comparison.pvalue < 0.05
    for level, excludes in ((1 - 1.05 * comparison.pvalue, True), (1 - 0.9 * comparison.pvalue, False)):
        interval = to.compare(a, b, name, resamples=400, level=level).interval
        at_min_pvalue = comparison.pvalue == comparison.min_pvalue  # farther than resamples reach
        assert at_min_pvalue or (interval.low > 0 or interval.high < 0) == excludes


def test_equal_models_differ_by_nothing() -> None:
    a, _ = calibrated_and_overconfident()
    for name in ("brier", "ece", "rmsce", "skce"):
        comparison = to.compare(a, a, name, resamples=200)
        assert (comparison.difference, comparison.pvalue, comparison.better) == (0.0, 1.0, None)
        assert comparison.interval.low <= 0 <= comparison.interval.high


def test_a_model_is_called_better_only_where_the_interval_excludes_zero() -> None:
    a, b = calibrated_and_overconfident(2000)
    comparison = to.compare(a, b, "debiased_l2")
    assert (comparison.better, comparison.interval.high < 0) == ("a", True)
    assert to.compare(a, b[::-1], "ece", resamples=200).better in (None, "a")
    assert to.compare(*calibrated_and_overconfident(40), "ece", resamples=200).better is None


def test_where_1_is_best_the_model_nearer_to_1_is_better() -> None:
    eta, y = rows(800)
    high, low = to.Predictions(y, odds(eta + 1)), to.Predictions(y, odds(eta + 0.5))  # both promise too much
    comparison = to.compare(high, low, "o_e", resamples=300)
    values = [estimate.value for estimate in comparison.models.values()]
    assert values[0] < values[1] < 1
    assert comparison.difference == pytest.approx((1 - values[0]) - (1 - values[1]))  # of the distances from 1
    assert comparison.better == "b"


def test_the_noise_floors_of_both_are_shown_and_a_gap_between_them_is_noted() -> None:
    eta, y = rows(300)
    comparison = to.compare(to.Predictions(y, odds(eta)), to.Predictions(y, np.full(300, 0.5)), "ece", resamples=200)
    floors = [estimate.noise_floor for estimate in comparison.models.values()]
    assert floors[0] > 1.5 * floors[1]  # many bins and one
    assert str(comparison).count("noise floor") == 2
    assert "TN228" in codes(comparison)
    assert "TN228" not in codes(to.compare(*calibrated_and_overconfident(300), "brier", resamples=200))


def test_equal_predictions_have_equal_noise_floors() -> None:
    """Regression: the noise floors were drawn separately, and their difference was attributed to the models."""
    eta, y = rows(300)
    comparison = to.compare(to.Predictions(y, odds(eta)), to.Predictions(y, odds(eta)), "ece", resamples=200)
    floors = [estimate.noise_floor for estimate in comparison.models.values()]
    assert floors[0] == floors[1]
    assert "TN228" not in codes(comparison)


@pytest.mark.parametrize("estimator", ["ece", "brier", "debiased_l2", "o_e"])
def test_errors_that_are_equal_up_to_rounding_have_no_difference(estimator: str) -> None:
    """Regression: the difference was 2.8e-17, and that of the ECE had an interval of ± half of its noise floor."""
    eta, y = rows(300)
    p = odds(eta)
    rounded = 1 - (1 - p)
    assert (rounded != p).any()
    comparison = to.compare(to.Predictions(y, p), to.Predictions(y, rounded), estimator, resamples=200)
    assert comparison.interval is not None
    assert (comparison.difference, comparison.interval.low, comparison.interval.high) == (0, 0, 0)
    assert comparison.pvalue == 1


def test_an_infinite_error_is_not_rounded() -> None:
    y, p, certain = np.array([0, 1] * 50), np.full(100, 0.4), np.full(100, 0.4)
    certain[0] = 1.0  # an impossible outcome
    assert to.compare(to.Predictions(y, certain), to.Predictions(y, p), "log_loss").difference == np.inf


def test_a_gap_between_noise_floors_within_their_simulation_error_is_not_noted() -> None:
    """Regression: two samples of one calibrated model were said to differ by the error of the simulation."""
    a, b = (to.Predictions(rows(300, seed)[1], np.full(300, 0.5)) for seed in (1, 2))
    comparison = to.compare(a, b, "ece", resamples=200, paired=False)
    floors = [estimate.noise_floor for estimate in comparison.models.values()]
    assert floors[0] != floors[1]  # from different draws of the same distribution
    assert "TN228" not in codes(comparison)


def test_without_an_interval_the_difference_stands_alone() -> None:
    a, b = calibrated_and_overconfident(200)
    bare = to.compare(a, b, "ece", interval=None)
    assert (bare.interval, bare.pvalue) == (None, None)
    assert bare.difference == to.measure(a, "ece", interval=None).value - to.measure(b, "ece", interval=None).value
    unknown = to.compare(a, b, "ece", distance="kl", resamples=100)
    assert unknown.interval is None
    assert "TN201" in codes(unknown)
    assert "TN211" in codes(to.compare(a, b, "ece", resamples=50))


def test_an_infinite_score_leaves_no_interval() -> None:
    y = [0, 1, 1, 0] * 5
    comparison = to.compare(
        to.Predictions(y, [0.2, 0.7, 0.9, 0.4] * 5), to.Predictions(y, [0, 1, 0, 0] * 5), "log_loss"
    )
    assert comparison.difference == -np.inf
    assert comparison.to_dict()["difference"] is None
    assert comparison.interval is None
    assert "TN201" in codes(comparison)


def test_a_frequency_weight_of_two_is_two_rows() -> None:
    a, b = calibrated_and_overconfident(100)
    w = np.arange(100) % 3
    twice = [np.repeat(column, w) for column in (a.y, a.p, b.p)]
    one = to.compare(*(to.Predictions(a.y, p, weight=w) for p in (a.p, b.p)), "brier", weight_kind="frequency")
    other = to.compare(to.Predictions(twice[0], twice[1]), to.Predictions(twice[0], twice[2]), "brier")
    assert (one.difference, one.pvalue) == pytest.approx((other.difference, other.pvalue))


@pytest.mark.slow
def test_every_estimator_compares() -> None:
    rng = np.random.default_rng(0)
    P, Q = rng.dirichlet(np.ones(3), (2, 80))
    y = (P.cumsum(axis=1) < rng.random((80, 1))).sum(axis=1).clip(max=2)
    a, b = to.Predictions(y, P), to.Predictions(y, Q)
    for name in ESTIMATORS.names():
        lens = "class:1" if name in ("o_e", "corp", "e50", "e90", "emax", "ici") else None
        settings = {"utility": {"lens": "confidence"}, "decision_regret": {"cost": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}}
        try:
            comparison = to.compare(a, b, name, **({"lens": lens} | settings.get(name, {})), resamples=20)
        except InputError as problem:  # what cannot be measured cannot be compared
            with pytest.raises(InputError):
                to.measure(a, name, **({"lens": lens} | settings.get(name, {})), resamples=20)
            assert problem.code.startswith("TO2")  # noqa: PT017 - the refusals of both are held together
            continue
        errors = [estimate.value for estimate in comparison.models.values()]
        if "distance_from" in comparison.settings:
            errors = [abs(value - comparison.settings["distance_from"]) for value in errors]
        assert comparison.difference == pytest.approx(errors[0] - errors[1], nan_ok=True), name


@pytest.mark.slow
def test_beyond_200_000_rows_bins_are_drawn_and_rows_tell_how_models_vary_together() -> None:
    a, b = calibrated_and_overconfident(210_000)
    comparison = to.compare(a, b, "ece", resamples=100)
    assert comparison.models["a"].settings["resample"] == "cells"
    assert comparison.settings["correlation"] != 0
    assert comparison.better == "a"
    raw = to.compare(a, b, "ece", resamples=100, interval="percentile")
    assert raw.models["a"].settings["resample"] == "rows"


# The swap


def test_clusters_are_swapped_whole() -> None:
    # one cluster: every swap gives the difference or minus it, so p is 1 however far apart the models are
    y, cluster = [1, 0] * 20, [0] * 40
    a, b = to.Predictions(y, [0.9, 0.1] * 20, cluster=cluster), to.Predictions(y, [0.5] * 40, cluster=cluster)
    comparison = to.compare(a, b, "brier", null="swap", resamples=49)
    assert comparison.pvalue == 1.0
    assert "cluster" in comparison.null


@pytest.mark.slow
def test_swapped_rows_keep_their_size() -> None:
    # Two models with independent noise of the same size are exchangeable: rejections at 10 % over 100 data sets are
    # Binomial(100, .1), with 99.9 % at most 20.
    rejected = 0
    for seed in range(100):
        eta, y = rows(60, seed)
        noise = np.random.default_rng(seed).normal(size=(2, 60))
        a, b = (to.Predictions(y, odds(eta + shift)) for shift in noise)
        rejected += to.compare(a, b, "ece", null="swap", resamples=19, interval=None, rng=seed).pvalue <= 0.1
    assert rejected <= 20


def test_different_rows_or_classes_cannot_be_swapped() -> None:
    a, b = calibrated_and_overconfident(40)
    refused("TO205", a, b, null="swap", paired=False)
    three = to.Predictions.from_confidence(np.full(40, 0.5), np.arange(40) % 2)
    assert to.compare(three, three, "ece", null="swap", paired=True, resamples=19).pvalue == 1.0
    wide = np.full((40, 3), 1 / 3)
    refused("TO205", to.Predictions(a.y, wide), to.Predictions(b.y, wide[:, :2] * 1.5), null="swap", lens="canonical")


# What is refused


def test_what_is_no_comparison_is_refused() -> None:
    a, b = calibrated_and_overconfident(40)
    refused("TO205", a)
    refused("TO205", [a])
    refused("TO205", [a, b], names=["x", "x"])
    refused("TO203", a, b, null="redraw")
    refused("TO203", a, b, paired="yes")
    refused("TO203", a, b, interval="wald")
    refused("TO203", a, b, aggregate="median")
    refused("TO202", a, b, region="confidence > 0.9")
    refused("TO202", a, b, bin=3)
    refused("TO201", a, b, estimator="eec")
    refused("TO205", a, b, interval="percentile", resample="cells")


def test_models_of_different_classes_are_refused_where_the_scale_depends_on_them() -> None:
    rng = np.random.default_rng(0)
    p, P = rng.random(60), rng.dirichlet(np.ones(3), 60)
    two, three = to.Predictions(rng.integers(0, 2, 60), p), to.Predictions(rng.integers(0, 3, 60), P)
    labels = to.Predictions.from_multilabel(rng.integers(0, 2, (60, 2)), rng.random((60, 2)))
    for models in ((two, three), (to.tally(two), to.tally(three)), (two, to.tally(three)), (two, labels)):
        with pytest.raises(to.InputError, match=r"TO205.*not comparable.*a with 2 classes, b with"):
            to.compare(*models, "brier")
    with pytest.raises(to.InputError, match=r"TO205.*not comparable"):
        to.compare([three, two, three], "ece", lens="classwise")
    # through the confidence a question of two answers and one of three are the same: was the answer right?
    assert to.compare(two, three, "ece", lens="confidence", resamples=50).paired is False
    alone = to.Predictions.from_confidence(P.max(axis=1), rng.integers(0, 2, 60))
    assert to.compare(three, alone, "ece", lens="confidence", resamples=50).n >= 60


# The default


@pytest.mark.slow
def test_the_default_tells_models_apart_where_ece_does_not_and_shows_brier() -> None:
    # slopes 2 and 1.4 on 500 rows: 30 of 30 by the debiased square in the study that chose it; 8 of 8 here at worst 7
    settled = 0
    for seed in range(8):
        eta, y = rows(500, seed)
        comparison = to.compare(to.Predictions(y, odds(2 * eta)), to.Predictions(y, odds(1.4 * eta)), resamples=300)
        assert comparison.estimator == "debiased_l2"
        settled += comparison.better == "b"
    assert settled >= 7
    (note,) = [note for note in comparison.notes if note.code == "TN239"]
    brier = to.compare(to.Predictions(y, odds(2 * eta)), to.Predictions(y, odds(1.4 * eta)), "brier", resamples=300)
    assert f"{brier.difference:.4f}" in note.text
    assert "TN239" not in codes(to.compare(*calibrated_and_overconfident(100), "debiased_l2", resamples=50))


@pytest.mark.slow
def test_equal_models_are_seldom_distinguished_by_the_bounds_of_their_biases() -> None:
    # Two models that see different halves of what decides the outcome, both with slope 1.6: at 5 % of 100 pairs at most
    # 13 with 99.9 %.
    rejected = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        u, v = rng.normal(0, 1.3, (2, 300))
        y = (rng.random(300) < odds(u + v)).astype(int)
        comparison = to.compare(
            to.Predictions(y, odds(1.27 * u)), to.Predictions(y, odds(1.27 * v)), "ece", resamples=100
        )
        rejected += comparison.pvalue <= 0.05
    assert rejected <= 13


@pytest.mark.slow
def test_an_interval_of_means_never_excludes_0_beside_a_p_above_alpha() -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.4, 0.4, 25)
        y = (rng.random(25) < p).astype(int)
        comparison = to.compare(to.Predictions(y, p), to.Predictions(y, np.clip(p + 0.1, 0, 1)), "brier", resamples=100)
        if comparison.interval is not None and comparison.pvalue > 0.05:
            assert comparison.interval.low <= 0 <= comparison.interval.high


@pytest.mark.parametrize("interval", ["debiased", "sun"])
def test_the_brier_score_beside_the_default_takes_no_interval_that_it_lacks(interval: str) -> None:
    a, b = calibrated_and_overconfident(100)
    default, named = to.compare(a, b, interval=interval), to.compare(a, b, "debiased_l2", interval=interval)
    assert str(default.interval) == str(named.interval)
    (note,) = [note for note in default.notes if note.code == "TN239"]
    assert note.text.startswith("Brier score (lens canonical)")


def test_an_estimator_that_is_given_twice_is_refused() -> None:
    """Regression: the keyword was ignored."""
    a, b = calibrated_and_overconfident(60)
    with pytest.raises(InputError, match=r"TO205.*twice.*'brier' and 'log_loss'"):
        to.compare([a, b], "brier", estimator="log_loss")

"""Power and sample size: exact values, simulation against theory, and reported texts."""

import numpy as np
import pytest
from scipy import stats

import trueodds as to
from tests.data.refused import refused
from trueodds.core.errors import InputError
from trueodds.hypotests import TESTS
from trueodds.hypotests._power import simulation as simulated
from trueodds.hypotests._power.power import find_root, power_limits, rows_from_sqrt
from trueodds.hypotests._power.simulation import Distortion, Population, SimulatedPower
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.omnibus import Omnibus
from trueodds.hypotests.power_results import Power
from trueodds.lenses.lens_by_name import as_lens


def binary(n=600, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    return to.Predictions((rng.random(n) < p).astype(int), p)


def classes(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1), P)


def sets(test, preds, lens="positive", n=200, count=400, alpha=0.05, **distortion):
    population = Population(preds, as_lens(lens), Distortion(**distortion))
    return SimulatedPower(test, population, n, alpha, count, 7)


def consistency(**settings):
    return TESTS.make("consistency", {"resamples": 199} | settings)


# Against what is known


@pytest.mark.slow
def test_the_power_of_a_test_of_one_proportion_is_the_exact_one():
    # All rows say .8, so ece is |mean y − .8| and the test is one of a proportion. The truth is
    # 1/(1 + e^(−logit .8 + .5)) = .7081, n = 100. Of 199 draws at most 9 may be as far off: each count s of successes
    # is rejected with probability P(Binomial(199, p_s) ≤ 9), p_s = P(|S − 80| ≥ |s − 80|) under Binomial(100, .8).
    s = np.arange(101)
    distances = np.abs(s - 80)
    under_null = stats.binom.pmf(s, 100, 0.8)
    p = np.array([under_null[distances >= distance].sum() for distance in distances])
    r = 1 / (1 + np.exp(-(np.log(4) - 0.5)))
    exact = float(stats.binom.pmf(s, 100, r) @ stats.binom.cdf(9, 199, np.minimum(p, 1)))
    preds = to.Predictions([1] * 8 + [0] * 2, [0.8] * 10)
    share = sets(consistency(), preds, n=100, count=2000, kind="shift").rejection_rate(0.5)
    # 2000 simulations: Binomial(2000, exact) within its 99.9 % range
    assert stats.binom.ppf(0.0005, 2000, exact) <= 2000 * share <= stats.binom.ppf(0.9995, 2000, exact)


@pytest.mark.slow
def test_an_undistorted_truth_is_rejected_as_often_as_the_level_says():
    # 1000 data sets at 5 %: Binomial(1000, .05) within 28..74 with 99.9 %
    for n, max_draws in ((150, simulated.MAX_LABELS_OF_DRAWS), (3000, simulated.MAX_LABELS_OF_DRAWS)):
        simulation = sets(consistency(), binary(), n=n, count=1000)
        assert simulation.pools_draws == (n * 1000 * 199 > max_draws)
        assert 28 <= 1000 * simulation.rejection_rate(0.0) <= 74


@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical"])
def test_null_draws_that_are_kept_reject_the_very_data_sets_that_the_test_rejects(lens):
    test, preds = consistency(resamples=39), classes()
    simulation = sets(test, preds, lens, n=150, count=60)
    truth = simulation.population.true_probabilities(0.5)
    samples = [simulation.population.sample(truth, 150, (7, s)) for s in range(60)]
    anew = [
        test(sample, [simulation.population.sample_lens], np.random.default_rng([7, s, 2])).pvalue <= 0.05
        for s, sample in enumerate(samples)
    ]
    assert simulation.rejection_rate(0.0) <= 1  # makes the null draws, which serve the next truth
    assert simulation.rejection_rate(0.5) == np.mean(anew)


@pytest.mark.parametrize("name", ["consistency", "omnibus"])
@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical"])
def test_redrawn_rows_are_drawn_once_per_data_set_and_give_the_p_values_of_the_test(name, lens):
    # The null draws of redraw="both" were made again for every distortion: 250 s for 30 rows.
    test = TESTS.make(name, {"resamples": 19, "redraw": "both"})
    simulation = sets(test, classes(20), lens, n=12, count=3)
    for x in (0.0, 1.0):
        truth = simulation.population.true_probabilities(x)
        for number in range(3):
            sample = simulation._sample_data_set(truth, number)
            rng = np.random.default_rng([7, number, 2])
            known = test(sample, [simulation.population.sample_lens], rng).pvalue
            assert simulation._data_set_pvalue(number, sample) == known
    assert len(simulation._null_draws_by_data_set) == 3


def test_a_p_value_is_computed_once_for_the_same_labels_of_a_data_set(monkeypatch):
    simulation = sets(consistency(resamples=39), classes(20), "confidence", n=4, count=30)
    rates = [simulation.rejection_rate(x) for x in (0.0, 0.5)]
    monkeypatch.setattr(simulation, "_data_set_pvalue", None)  # with all labels known, nothing is computed
    assert [simulation.rejection_rate(x) for x in (0.0, 0.5)] == rates


@pytest.mark.slow
def test_a_lens_of_one_score_is_simulated_without_the_other_classes():
    # the same rows as with all classes, and labels from the same truth: the shares differ by chance alone.
    # The difference of two shares near .5 of 400 has a standard deviation of .035: within 3.3 of them.
    preds = classes(k=5)
    alone = sets(consistency(), preds, "confidence", n=200)
    all_classes = sets(consistency(), preds, "confidence", n=200)
    (
        all_classes.population.is_single_score,
        all_classes.population.sample_lens,
        all_classes.population._sampled_preds,
    ) = (
        False,
        all_classes.population.lens,
        preds,
    )
    assert alone.population.is_single_score
    assert abs(alone.rejection_rate(0.6) - all_classes.rejection_rate(0.6)) < 0.12


@pytest.mark.slow
def test_pooled_null_draws_give_the_power_of_draws_of_each_data_set(monkeypatch):
    separate_share = sets(consistency(), binary(), n=1200).rejection_rate(0.35)
    monkeypatch.setattr(simulated, "MAX_LABELS_OF_DRAWS", 0)
    simulation = sets(consistency(), binary(), n=1200)
    # the same data sets, each judged by other draws: Monte-Carlo p-values near the level differ by .02 at most,
    # which moves a few of the 400 data sets
    assert simulation.pools_draws
    assert abs(simulation.rejection_rate(0.35) - separate_share) < 0.03


@pytest.mark.slow
def test_more_rows_and_more_distortion_are_seen_more_often():
    small, many = sets(consistency(), binary(), n=200), sets(consistency(), binary(), n=800)
    assert small.rejection_rate(0.2) < small.rejection_rate(0.6) < many.rejection_rate(0.6)
    assert small.rejection_rate(0.2) < many.rejection_rate(0.2)


@pytest.mark.slow
def test_the_law_of_a_likelihood_ratio_agrees_with_its_simulation():
    # 600 data sets near 70 %: within 3.3 standard deviations (.062) of a law that is right up to terms of 1/√n,
    # measured as .03 at 1000 rows with 3000 data sets
    preds = binary(1500)
    plan = to.power(preds, Cox(), n=1000, effect=0.026)
    assert plan.limits is None
    tried = sets(Cox(), preds, n=1000, count=600).rejection_rate(plan.settings["size"])
    assert abs(plan.power - tried) < 0.062 + 0.03
    # at twice the rows the noncentrality is twice as large: χ²'(2, 2λ)
    crit = stats.chi2.isf(0.05, 2)
    noncentral = next(x for x in np.arange(0.1, 40, 0.001) if stats.ncx2.sf(crit, 2, x) >= plan.power)
    assert to.power(preds, Cox(), n=2000, effect=0.026).power == pytest.approx(
        stats.ncx2.sf(crit, 2, 2 * noncentral), abs=1e-3
    )


def test_the_gain_of_a_likelihood_ratio_is_the_divergence_of_truth_and_prediction():
    # a temperature lies in the family of Cox's regression, so that twice the expected gain is 2 Σ KL(r ‖ p)
    preds = binary(300)
    population = Population(preds, as_lens("positive"), Distortion())
    (view,), r = population.views, population.true_probabilities(0.4)
    p = view.p
    divergence = (r * np.log(r / p) + (1 - r) * np.log((1 - r) / (1 - p))).sum()
    assert Cox().evaluate(view.with_y(r)).statistic == pytest.approx(2 * divergence, rel=1e-6)


# The three questions


@pytest.mark.slow
def test_the_effect_that_is_found_has_the_target_power():
    plan = to.power(binary(), n=300, simulations=200)
    assert plan.question == "effect"
    assert plan.n == 300
    back = to.power(binary(), n=300, effect=plan.effect, simulations=200)
    assert back.power == pytest.approx(0.8, abs=0.006)  # the same data sets and the same luck
    assert back.required == pytest.approx(300, rel=0.03)


@pytest.mark.slow
def test_half_of_an_effect_takes_about_four_times_the_rows():
    small, large = (to.power(binary(), effect=e, simulations=100).required for e in (0.05, 0.1))
    assert 3 < small / large < 5.5


@pytest.mark.slow
def test_the_rows_are_those_at_hand_by_default():
    assert to.power(binary(321), simulations=40).n == 321


def test_a_width_is_that_of_intervals_on_new_rows():
    plan = to.power(binary(2000), width=0.03, estimator="brier")
    assert plan.question == "width"
    fresh = [to.measure(binary(plan.required, seed), "brier").interval for seed in range(20, 28)]
    # the 2000 rows stand for the population: their spread of squared errors is known to about 3 %
    assert np.mean([interval.high - interval.low for interval in fresh]) == pytest.approx(0.03, rel=0.1)
    assert plan.limits.low < 0.0306
    assert plan.limits.high > 0.0294


@pytest.mark.slow
def test_the_root_law_alone_would_be_wrong_for_an_error_near_its_floor():
    preds = binary(500)
    plan = to.power(preds, width=0.06)
    assert plan.settings["width_tried"] == pytest.approx(0.06, rel=0.1)


@pytest.mark.slow
def test_what_no_distortion_reaches_is_reported_and_not_invented():
    plan = to.power(binary(), n=8, simulations=100)
    assert plan.settings["reached"] is False
    assert plan.power < 0.8
    assert str(plan).startswith("Even the largest error of this kind, overconfidence of 0.")
    assert f"in only {100 * plan.power:.1f} % [" in str(plan)


@pytest.mark.slow
def test_more_rows_than_are_simulated_are_extrapolated_with_a_note(monkeypatch):
    monkeypatch.setattr("trueodds.hypotests._power.power.MAX_ROWS", 700)
    plan = to.power(binary(), effect=0.03, simulations=100)
    assert "TN232" in [note.code for note in plan.notes]
    assert plan.required > 700
    assert plan.settings["extrapolated"]
    hopeless = to.power(binary(), effect=0.004, simulations=100)
    assert hopeless.required is None
    assert "more rows than could be tried" in str(hopeless)
    assert "TN232" in [note.code for note in hopeless.notes]


@pytest.mark.slow
def test_rows_that_say_0_and_1_are_moved_by_nothing_and_noted():
    p = np.r_[np.linspace(0.05, 0.95, 100), np.ones(50), np.zeros(50)]
    plan = to.power(to.Predictions((p > 0.5).astype(int), p), simulations=40)
    (note,) = [note for note in plan.notes if note.code == "TN231"]
    assert note.text.startswith("100 rows")


def test_every_plan_says_for_what_it_holds():
    for settings in ({"simulations": 20}, {"width": 0.1, "estimator": "brier"}):
        assert "TN233" in [note.code for note in to.power(binary(), **settings).notes]


@pytest.mark.slow
@pytest.mark.parametrize("lens", ["canonical", "classwise", "class:1", "top-2"])
def test_every_lens_of_classes_can_be_planned_for(lens):
    plan = to.power(classes(), lens=lens, n=100, effect=0.05, simulations=20)
    assert 0 <= plan.power <= 1


@pytest.mark.slow
def test_independent_labels_bare_confidence_and_votes_can_be_planned_for():
    rng = np.random.default_rng(0)
    P = rng.random((200, 3))
    plans = [
        to.Predictions.from_multilabel((rng.random((200, 3)) < P).astype(int), P),
        to.Predictions.from_confidence(P[:, 0], rng.random(200) < P[:, 0]),
        to.Predictions(rng.multinomial(5, [0.5, 0.5], 200), P[:, 0]),
    ]
    for preds in plans:
        assert 0 < to.power(preds, n=80, simulations=20).effect < 1


# Families of truths


def test_distortions_are_those_of_the_formula():
    # p = (.2, .8), t = e^(−1): odds 4^.3679 = 1.6652, so r = .6248; a shift by 1 lowers log 4 to .3863: r = .5954
    preds = to.Predictions([1, 0], [0.8, 0.8])
    assert Distortion().true_probabilities(preds, 1.0)[0, 1] == pytest.approx(0.62480, abs=1e-5)
    assert Distortion("shift").true_probabilities(preds, 1.0)[0, 1] == pytest.approx(0.59539, abs=1e-5)
    assert Distortion("shift", "under").true_probabilities(preds, 1.0)[0, 1] > 0.8
    population = Population(preds, as_lens("positive"), Distortion())
    assert population.effect(1.0) == pytest.approx(0.8 - 0.62480, abs=1e-5)


def test_what_has_probability_zero_keeps_it():
    preds = to.Predictions([0, 1], [[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]])
    for kind in ("temperature", "shift"):
        for x in (0.0, 1.0, 20.0):
            r = Distortion(kind).true_probabilities(preds, x)
            assert (r[:, 2] == 0).all()
            assert r.sum(axis=1) == pytest.approx(1)


def test_the_effect_of_a_vector_is_the_mean_total_variation():
    # (.5, .3, .2) with the first class lowered by log 2: (.25, .3, .2)/.75 = (1/3, .4, .2667): half of .3333 is .1667
    preds = to.Predictions([0, 1], [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    population = Population(preds, as_lens("canonical"), Distortion("shift"))
    assert population.effect(np.log(2)) == pytest.approx(1 / 6)


# What it is built from


def test_limits_of_a_simulated_share_are_those_of_scipy():
    for hits in (0, 7, 40):
        known = stats.binomtest(hits, 40).proportion_ci(method="exact")
        interval = power_limits(hits / 40, 40)
        assert (interval.low, interval.high) == pytest.approx((known.low, known.high))


def test_a_curve_that_never_reaches_the_level_is_followed_to_its_end():
    arguments = {"zero_value": 0.0, "linearize": lambda v: v, "value_tolerance": 1e-9, "x_tolerance": 1e-9}
    assert find_root(lambda x: x / 100, 1.0, 5.0, 20.0, **arguments) == (20.0, 0.2)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan_and_progress_ends_at_1():
    shares: list[float] = []
    a = to.power(binary(), n=100, simulations=40, rng=3, progress=lambda share, step: shares.append(share))
    assert a == to.power(binary(), n=100, simulations=40, rng=3)
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)
    assert to.power(binary(), n=100, simulations=40, rng=4) != a


def test_a_small_level_has_as_many_draws_as_it_needs():
    plan = to.power(binary(), n=60, alpha=0.01, simulations=20)
    assert plan.settings["null_draws"] == 999


@pytest.mark.parametrize("test", ["omnibus", Omnibus()])
def test_an_unspecified_number_of_draws_is_that_of_the_level(test):
    """An instance without a number of draws failed with a TypeError."""
    settings = {"resamples": None} if isinstance(test, str) else {}
    plan = to.power(binary(), test, n=60, alpha=0.01, simulations=20, **settings)
    assert plan.settings["null_draws"] == 999


def test_a_plan_prints_in_one_line():
    settings = {"distortion": "temperature", "direction": "over"}
    limits = power_limits(0.8, 1000)
    plan = Power("consistency", "effect", "confidence", 2000, 0.05, 0.8, 0.8, 0.0397, None, limits, settings)
    assert (
        str(plan)
        == "Smallest detectable error: with 2,000 rows, the consistency test detects overconfidence of 0.0397 on"
        " average with 80 % power (simulated: 80.0 % [77.4 %, 82.4 %]) · lens confidence · alpha 0.05"
    )
    plan = Power("cox", "rows", "confidence", 2000, 0.05, 0.8, 0.514, 0.03, 3420, None, settings)
    assert (
        str(plan)
        == "If the probabilities are overconfident by 0.03 on average, the cox test rejects in 51.4 % of data sets of"
        " 2,000 rows; 80 % power requires 3,420 rows · lens confidence · alpha 0.05"
    )
    assert float(plan) == 3420
    settings = {"width_now": 0.0235, "partition": None}
    plan = Power("brier", "width", "canonical", 899, 0.05, 0.04, required=299, limits=limits, settings=settings)
    assert (
        str(plan)
        == "A 95 % interval for brier of width 0.04 requires about 299 rows (with 899 rows its width is 0.0235)"
        " · lens canonical"
    )
    under = {"distortion": "shift", "direction": "under", "shifted": "predicted class"}
    plan = Power("cox", "effect", "confidence", 50, 0.05, 0.8, 0.8, 0.2, None, None, under)
    assert "detects probabilities of the predicted class that are too low by 0.2 on average" in str(plan)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"power": 1.2}, "TO203"),
        ({"power": 0.04}, "TO205"),
        ({"alpha": 5}, "TO203"),
        ({"effect": -0.1}, "TO203"),
        ({"effect": 0.9}, "TO205"),
        ({"n": 2}, "TO203"),
        ({"n": 10.5}, "TO203"),
        ({"simulations": True}, "TO203"),
        ({"distortion": "shfit"}, "TO203"),
        ({"direction": "up"}, "TO203"),
        ({"width": 0}, "TO203"),
        ({"width": 0.1, "effect": 0.1}, "TO205"),
        ({"width": 0.1, "test": "spiegelhalter"}, "TO205"),
        ({"estimator": "brier"}, "TO205"),
        ({"width": 0.1, "estimator": "o_e", "lens": ["positive"]}, "TO204"),
        ({"bims": 5}, "TO202"),
        ({"test": "consistencyy"}, "TO201"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(settings, code):
    with pytest.raises(InputError, match=code):
        to.power(binary(100), **settings)


def test_clusters_and_tallies_are_refused():
    preds = binary(40)
    with pytest.raises(InputError, match="TO205"):
        to.power(to.Predictions(preds.y, preds.p, cluster=np.arange(40) // 2), simulations=20)
    with pytest.raises(InputError, match="TO403"):
        to.power(to.tally(preds))


def test_what_a_test_refuses_is_refused_before_anything_is_simulated():
    with pytest.raises(InputError, match="TO205"):
        to.power(classes(), "spiegelhalter", lens="canonical")


def test_a_weighted_likelihood_ratio_is_simulated():
    preds = binary(200)
    weighted = to.Predictions(preds.y, preds.p, weight=np.r_[np.ones(100), np.full(100, 3.0)])
    plan = to.power(weighted, Cox(), effect=0.1, n=100, simulations=20)
    assert plan.settings["simulations"] == 20


@pytest.mark.slow
def test_one_row_per_cluster_can_be_planned_for() -> None:
    """The remedy of the error for clustered rows works: rows of different clusters are independent."""
    p, y = [0.3, 0.8, 0.6, 0.4] * 50, [0, 1, 1, 0] * 50
    clustered = to.Predictions(y, p, cluster=np.arange(200) // 2)
    with refused("TO205", fix="preds[np.unique(preds.cluster, return_index=True)[1]]"):
        to.power(clustered, n=50, simulations=50)
    for settings in ({"n": 50, "simulations": 50}, {"width": 0.1, "estimator": "brier"}):
        first_rows = np.unique(clustered.cluster, return_index=True)[1]
        plain = to.power(to.Predictions(y, p)[first_rows], **settings)
        assert to.power(clustered[first_rows], **settings) == plain


@pytest.mark.parametrize(
    ("settings", "minimum"),
    [({"resamples": 9}, 19), ({"resamples": 99, "alpha": 0.005}, 199), ({"test": "consistency", "resamples": 9}, 19)],
)
def test_too_few_null_draws_for_alpha_are_refused_with_the_number_that_suffices(settings, minimum):
    # The smallest of B + 1 equally likely p-values is 1/(1 + B), which is .05 for 19 draws and .005 for 199.
    with refused("TO203", fix=f"at least {minimum}."):
        to.power(binary(), effect=0.1, simulations=20, **settings)
    to.power(binary(), effect=0.1, simulations=20, **settings | {"resamples": minimum})


def test_independent_labels_need_a_null_draw_for_each_of_them():
    # Holm's correction of 20 labels multiplies the smallest p-value by 20: at 5 % it needs 399 draws.
    rng = np.random.default_rng(0)
    p = rng.random((60, 20))
    preds = to.Predictions.from_multilabel((rng.random(p.shape) < p).astype(int), p)
    with refused("TO203", fix="at least 399."):
        to.power(preds, effect=0.1, simulations=20, resamples=199)


def test_a_root_that_rounding_has_raised_is_the_same_number_of_rows():
    for n in (5, 6, 7, 10, 99, 1000, 123_457, 10**6):
        assert rows_from_sqrt(n**0.5) == rows_from_sqrt(np.nextafter(n**0.5, np.inf)) == n
    assert rows_from_sqrt(10.001) == 101  # a part of a row is a row
    assert rows_from_sqrt(1.0) == 5

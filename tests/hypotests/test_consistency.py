"""The consistency test: level, power, reference values, and reported texts."""

import numpy as np
import pytest

from tests import reference
from tests.rates import rate_is_at_level
from trueodds.binning.median_variance import MedianVariance
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.estimators import ESTIMATORS
from trueodds.hypotests import TESTS
from trueodds.lenses.lens_by_name import as_lens


def verdict(preds, lens="positive", seed=0, **settings):
    lenses = [as_lens(name) for name in (lens if isinstance(lens, list) else [lens])]
    return TESTS.make("consistency", {"resamples": 199, **settings})(preds, lenses, np.random.default_rng(seed))


def calibrated(rng, n, k=3):
    P = rng.dirichlet(np.ones(k), n)
    return Predictions((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1), P)


@pytest.mark.slow
@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical", ["confidence", "classwise", "canonical"]])
@pytest.mark.parametrize("redraw", ["labels", "both"])
def test_size_under_the_null(lens, redraw):
    # Rows and labels redrawn is slower and approximate.
    rng = np.random.default_rng(2)
    sets, excluded = (400, 0.12) if redraw == "labels" else (60, 0.25)
    settings = {"resamples": 99} if redraw == "labels" else {"resamples": 39, "redraw": "both"}
    verdicts = (verdict(calibrated(rng, 60), lens, seed, **settings) for seed in range(sets))
    assert rate_is_at_level((each.pvalue <= 0.05 for each in verdicts), 0.05, excluded=excluded)


def test_an_overconfident_model_is_found_and_the_effect_is_its_excess():
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    preds = Predictions((rng.random(3000) < 0.5 + 0.5 * (p - 0.5)).astype(int), p)
    result = verdict(preds)
    assert result.pvalue == result.min_pvalue == 1 / 200
    # the truth is E|p - .5|/2 = .125; the statistic minus its null mean is near it, a little below
    assert 0.08 < result.effect < 0.13


def test_redraws_agree_with_the_reference_on_a_tree():
    # golden anchors, g3cal_200, median-variance tree min 10: 121 of 200 draws (labels only) at least as large
    rows = reference.frame("anchors/synthetic/g3cal_200.csv")
    names = [name for name in rows if name.startswith("p")]
    y = rows["y"].astype(int)
    preds = Predictions(y - y.min(), np.stack([rows[name] for name in names], axis=1))
    known = reference.golden("anchors/golden.json")["kernel_and_ece"]["g3cal_200"]["ece"][
        "median_variance_minsize10_maxbinsinf"
    ]
    statistic = ESTIMATORS.make("ece", {"partition": MedianVariance(10)})
    result = verdict(preds, "canonical", statistic=statistic, resamples=3999)
    assert result.statistic == pytest.approx(known["tv"], rel=1e-10)
    share = known["labels_only_tv"]["exceed_count"] / 200
    assert abs(result.pvalue - share) < 3.3 * np.sqrt(share * (1 - share) * (1 / 200 + 1 / 3999))


@pytest.mark.slow
def test_clusters_flip_whole_residuals_and_keep_their_level():
    # 100 clusters of 5 equal labels: label redraws would reject most; sign flips reject near 5 %.
    # 200 sets: Binomial(200, .08) stays at or below 29 with 99.9 % (the flips are approximate, 6 % measured).
    rng = np.random.default_rng(4)
    naive = flipped = 0
    for seed in range(200):
        p = rng.random(100)
        y = (rng.random(100) < p).astype(int)
        rows = np.repeat(np.arange(100), 5)
        plain = Predictions(y[rows], p[rows])
        clustered = Predictions(y[rows], p[rows], cluster=rows)
        naive += verdict(plain, seed=seed, resamples=99).pvalue <= 0.05
        flipped += verdict(clustered, seed=seed, resamples=99).pvalue <= 0.05
    assert naive > 100
    assert flipped <= 29
    assert "clusters" in verdict(clustered).null


@pytest.mark.slow
def test_with_votes_one_vote_per_row_is_drawn():
    # crowds differ between items of equal score, each calibrated in the mean: Multinomial(m, p) redraws would
    # reject almost always; one vote per row keeps 5 % (200 sets, at most 22 with 99.9 %)
    rng = np.random.default_rng(5)
    rejections = 0
    for seed in range(200):
        p = rng.uniform(0.2, 0.8, 150)
        q = np.clip(p + rng.choice([-0.15, 0.15], 150), 0, 1)
        yes = rng.binomial(20, q)
        preds = Predictions(np.stack([20 - yes, yes], axis=1), p)
        result = verdict(preds, seed=seed, resamples=99)
        rejections += result.pvalue <= 0.05
    assert rejections <= 22
    assert "TN202" in [note.code for note in result.notes]


def test_a_lens_of_several_views_says_each_of_them_with_holm():
    result = verdict(calibrated(np.random.default_rng(6), 300), "classwise")
    assert list(result.parts) == ["class:0", "class:1", "class:2"]
    for part in result.parts.values():
        assert part["holm"] >= part["pvalue"]
    assert result.family_pvalue is not None


def test_several_lenses_make_a_family_on_one_set_of_draws():
    preds = calibrated(np.random.default_rng(7), 300)
    family = verdict(preds, ["confidence", "canonical"])
    assert family.parts["confidence"]["pvalue"] == verdict(preds, "confidence").pvalue
    assert family.pvalue == family.family_pvalue
    assert family.lens == "family"


def test_one_class_far_off_is_not_averaged_away_in_the_family():
    rng = np.random.default_rng(8)
    k = 20
    P = rng.dirichlet(np.ones(k), 2000)
    y = (rng.random(2000)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1)
    y[(y == 3) & (rng.random(2000) < 0.6)] = 4
    assert verdict(Predictions(y, P), ["confidence", "classwise"]).pvalue <= 0.01


@pytest.mark.slow
def test_labels_of_a_multilabel_row_may_depend_on_each_other():
    # three copies of one label per row: each label is calibrated, and the family is Holm's.
    # 200 sets at 5 %: at most 22 with 99.9 %
    rng = np.random.default_rng(9)
    rejections = 0
    for seed in range(200):
        p = rng.random(100)
        y = (rng.random(100) < p).astype(int)
        preds = Predictions.from_multilabel(np.stack([y] * 3, axis=1), np.stack([p] * 3, axis=1))
        rejections += verdict(preds, "classwise", seed=seed, resamples=99).pvalue <= 0.05
    assert rejections <= 22


@pytest.mark.slow
def test_any_estimator_can_be_the_statistic():
    preds = calibrated(np.random.default_rng(10), 80)
    n_tested = 0
    for name in ESTIMATORS.names():
        try:
            result = verdict(preds, ESTIMATORS.load(name).lens or "confidence", statistic=name, resamples=19)
        except InputError as refusal:  # measures of votes have no null law for single labels
            if refusal.code == "TO205":
                continue
            raise
        assert 0 < result.pvalue <= 1
        assert result.settings["statistic"].partition("@")[0] == name  # without a setting, as in risk@0.8
        n_tested += 1
    assert n_tested >= len(ESTIMATORS.names()) - 3


def test_the_statistic_takes_its_own_settings():
    result = verdict(calibrated(np.random.default_rng(11), 80), "confidence", statistic="rmsce", bins=7, resamples=19)
    assert result.settings["partition"] == "uniform 7"


def test_the_same_seed_gives_the_same_verdict():
    preds = calibrated(np.random.default_rng(12), 80)
    assert verdict(preds, "confidence", seed=3) == verdict(preds, "confidence", seed=3)


def test_clusters_refuse_the_scheme_that_draws_single_rows():
    rng = np.random.default_rng(13)
    preds = Predictions(rng.integers(0, 2, 40), rng.random(40), cluster=np.arange(40) // 2)
    with pytest.raises(InputError, match="TO205"):
        verdict(preds, redraw="both")


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high", "clusters"), [(0.0, 1.0, 50), (0.9, 1.0, 100), (0.0, 0.05, 200)])
@pytest.mark.parametrize("shared_outcome", [True, False])
def test_clusters_keep_the_level_where_outcomes_are_rare_or_nearly_certain(low, high, clusters, shared_outcome):
    # Flipped signs alone rejected 7 to 17 % of these at 5 %; the larger p of the two nulls is asked to stay near 5 %.
    rng = np.random.default_rng(14)
    of = np.repeat(np.arange(clusters), 4)

    def is_rejected(seed):
        p = rng.uniform(low, high, clusters)
        y = (rng.random(clusters) < p)[of] if shared_outcome else rng.random(len(of)) < p[of]
        return verdict(Predictions(y.astype(int), p[of], cluster=of), seed=seed, resamples=99).pvalue <= 0.05

    assert rate_is_at_level(map(is_rejected, range(200)), 0.07, excluded=0.17)


def test_few_clusters_say_how_small_their_p_can_be():
    # of 4 clusters there are 16 sign patterns, and each and its opposite give one statistic: p is at least 1/8
    preds = Predictions([0, 1] * 20, [0.9] * 40, cluster=np.arange(40) // 10)
    result = verdict(preds)
    assert result.min_pvalue == 1 / 8
    assert result.pvalue >= 1 / 8


def test_an_undefined_statistic_has_no_p_value():
    result = verdict(calibrated(np.random.default_rng(15), 60), "confidence", statistic="mce", min_count=10**6)
    assert np.isnan(result.statistic)
    assert np.isnan(result.pvalue)
    assert "TN107" in [note.code for note in result.notes]
    assert result.to_dict()["pvalue"] is None


def test_an_infinite_statistic_is_compared_with_infinite_draws():
    preds = Predictions([1, 0, 1, 1] * 5, [[1.0, 0.0], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6]] * 5)
    assert verdict(preds, statistic="log_loss").pvalue == 1 / 200  # no redraw gives what was called impossible


def test_settings_of_the_statistic_are_read_back_for_several_lenses():
    settings_used = verdict(
        calibrated(np.random.default_rng(16), 80), ["confidence", "rank:2"], bins=10, distance="l2"
    ).settings
    assert (settings_used["partition"], settings_used["distance"]) == ("uniform 10", "l2")


def test_too_few_draws_to_name_single_claims_are_noted():
    P = np.random.default_rng(17).dirichlet(np.ones(12), 200)
    result = verdict(Predictions(np.arange(200) % 12, P), "classwise", resamples=99)
    assert "TN209" in [note.code for note in result.notes]


def test_zero_weights_do_not_break_the_scheme_that_draws_rows():
    preds = Predictions([0, 1, 1], [0.2, 0.3, 0.9], weight=[0, 0, 1])
    assert verdict(preds, redraw="both", resamples=19).pvalue > 0


def test_all_labellings_of_the_nine_rows_give_the_exact_p():
    rows = reference.frame("estimators/a2_blog9.csv")
    preds = Predictions(rows["y"].astype(int), reference.columns(rows))
    known = reference.estimators()["a2.exact_null_pvalue_fixed_scores.confidence_ece.ew5"]
    result = verdict(preds, "confidence", bins=5, redraw="all")
    assert result.pvalue == pytest.approx(known["value"], rel=1e-12)
    assert result.statistic - result.effect == pytest.approx(known["null_mean"], rel=1e-12)
    assert (result.min_pvalue, "resamples" in result.settings) == (None, False)
    assert "every labeling" in result.null


@pytest.mark.parametrize("lens", ["confidence", "classwise", "canonical", ["confidence", "classwise"]])
def test_draws_come_near_what_all_labellings_say(lens):
    preds = calibrated(np.random.default_rng(12), 6)
    exact, drawn = (verdict(preds, lens, redraw=how, resamples=4999) for how in ("all", "labels"))
    # 3.3 binomial standard errors of 4,999 draws; the families order ties differently, so each part is compared
    pairs = [(exact.pvalue, drawn.pvalue)] if isinstance(lens, str) else []
    pairs += [(exact.parts[name]["pvalue"], drawn.parts[name]["pvalue"]) for name in exact.parts]
    for a, b in pairs:
        assert abs(a - b) < 3.3 * np.sqrt(a * (1 - a) / 4999) + 1 / 5000


def test_a_fair_coin_thrown_four_times():
    # p = (1/2)^4 for each labelling; the gap |rate − 1/2| is .5 for 0000 and 1111 only: p = 2/16
    result = verdict(Predictions([1, 1, 1, 1], [0.5] * 4), redraw="all")
    assert (result.statistic, result.pvalue) == (0.5, 0.125)


@pytest.mark.parametrize(
    "rows",
    [
        Predictions(np.zeros(21, dtype=int), np.full(21, 0.5)),
        Predictions([1, 0], [0.5, 0.5], cluster=[0, 0]),
    ],
    ids=["too many", "clusters"],
)
def test_what_cannot_be_gone_through_is_refused(rows):
    with pytest.raises(InputError, match="TO205"):
        verdict(rows, redraw="all")

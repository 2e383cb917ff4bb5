"""The Hosmer-Lemeshow test: reference values, level, groups without variance, ties, weights, tallies, errors."""

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from trueodds.core.errors import InputError
from trueodds.hypotests.hosmer_lemeshow import HosmerLemeshow
from trueodds.lenses.view import View


def binary(name):
    rows = reference.frame(f"estimators/{name}.csv")
    return to.Predictions(rows["y"].astype(int), rows["p"])


def four_classes():
    rows = reference.frame("estimators/b_multi1000.csv")
    return to.Predictions(rows["y"].astype(int), reference.columns(rows))


def run_test(preds, **settings):
    """By the chi-square law, which most of these tests are about."""
    return to.test(preds, "hosmer_lemeshow", **({"null": "asymptotic"} | settings))


def drawn(rng, P):
    return (rng.random(len(P))[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, P.shape[1] - 1)


def codes(verdict):
    return [note.code for note in verdict.notes]


@pytest.mark.parametrize("name", ["c", "c2"])
def test_ten_groups_agree_with_r_generalhoslem(name):
    # golden: R generalhoslem::logitgof; c2 is c rounded to twentieths, full of ties, with zeros and ones
    known = reference.estimators()[f"{name}.hosmer_lemeshow.g10"]["value"]
    preds = binary({"c": "c_binary500", "c2": "c2_binary500_ties"}[name])
    verdict, in_sample = run_test(preds), run_test(preds, fitted=True)
    assert verdict.statistic == pytest.approx(known["stat"], rel=1e-12)
    assert verdict.pvalue == pytest.approx(known["p_df_g"], rel=1e-10)
    assert in_sample.pvalue == pytest.approx(known["p_df_g_minus_2"], rel=1e-10)
    assert (verdict.settings["groups"], verdict.settings["df"], in_sample.settings["df"]) == (10, 10, 8)


def test_the_exact_form_agrees_with_the_reference():
    known = reference.estimators()["c.hosmer_lemeshow_exactvar.g10"]["value"]
    verdict = run_test(binary("c_binary500"), form="exact")
    assert (verdict.statistic, verdict.pvalue) == pytest.approx((known["stat"], known["p"]), rel=1e-10)


@pytest.mark.parametrize("baseline", [0, 3])
def test_vectors_agree_with_the_reference_in_both_forms(baseline):
    # golden: Fagerland's form by R generalhoslem for the first class; the exact form by an independent NumPy program
    golden, preds = reference.estimators(), four_classes()
    known = golden[f"b.multinomial_hl_exactcov.g10.ref{baseline}"]["value"]
    verdict = run_test(preds, lens="canonical", baseline=baseline)
    assert (verdict.statistic, verdict.pvalue) == pytest.approx((known["stat"], known["p"]), rel=1e-10)
    assert (verdict.settings["form"], verdict.settings["df"], verdict.settings["baseline"]) == ("exact", 30, baseline)
    known = golden[f"b.multinomial_hl.g10.ref{baseline}"]["value"]
    pearson = run_test(preds, lens="canonical", form="pearson", baseline=baseline)
    assert (pearson.statistic, pearson.pvalue) == pytest.approx((known["stat"], known["p_df_g_cm1"]), rel=1e-10)
    in_sample = run_test(preds, lens="canonical", fitted=True, baseline=baseline)
    assert (in_sample.statistic, in_sample.pvalue) == pytest.approx((known["stat"], known["p_df_gm2_cm1"]), rel=1e-10)


def test_by_hand_with_weights():
    # One group, p = .2 and .6, weights 1 and 3, only the second comes.
    # O − E = 3 − (.2 + 1.8) = 1; p̄ = .5 and Σw² = 10: pearson 1/(10·.25) = .4.
    # exact: V = 1·.16 + 9·.24 = 2.32: 1/2.32 = .4310. Effect: (1/16 − 2.32/16) < 0, so 0.
    view = View(p=[0.2, 0.6], y=[0, 1], w=[1, 3])
    pearson, exact = (HosmerLemeshow(bins=1, form=form).evaluate(view) for form in ("pearson", "exact"))
    assert pearson.statistic == pytest.approx(0.4, rel=1e-12)
    assert exact.statistic == pytest.approx(1 / 2.32, rel=1e-12)
    assert pearson.effect == 0
    assert pearson.parts == {"group 1": pytest.approx({"n": 2, "predicted": 0.5, "expected": 2.0, "observed": 3.0})}


@pytest.mark.slow
def test_size_with_g_degrees_of_freedom_and_why_not_g_minus_two():
    # The fault of most texts: g − 2 on predictions that were not fitted on these rows rejects 10 to 18 %.
    # Rejections at 5 % over 600 data sets are Binomial(600, .05): inside 14..49 with 99.9 %.
    rng = np.random.default_rng(1)
    as_external = as_fitted = 0
    for _ in range(600):
        p = 1 / (1 + np.exp(-1.3 * rng.standard_normal(300)))
        view = View(p, rng.random(300) < p)
        as_external += HosmerLemeshow().evaluate(view).pvalue <= 0.05
        as_fitted += HosmerLemeshow(fitted=True).evaluate(view).pvalue <= 0.05
    assert 14 <= as_external <= 49
    assert as_fitted > 49


@pytest.mark.slow
def test_size_on_vectors_is_kept_by_the_exact_form_and_missed_by_pearsons():
    # As above: 14..49 of 600. Pearson's form with g(K − 1) degrees of freedom rejects 1 to 2 %, below 14 of 600.
    rng = np.random.default_rng(2)
    exact = pearson = 0
    for _ in range(600):
        P = rng.dirichlet(np.ones(3), 300)
        view = View(P, np.eye(3)[drawn(rng, P)])
        exact += HosmerLemeshow().evaluate(view).pvalue <= 0.05
        pearson += HosmerLemeshow(form="pearson").evaluate(view).pvalue <= 0.05
    assert 14 <= exact <= 49
    assert pearson < 14
    notes = [note.text for note in run_test(to.Predictions(drawn(rng, P), P), lens="canonical", form="pearson").notes]
    assert any("too rarely" in text for text in notes)


def test_the_effect_is_the_gap_beyond_chance():
    # said p, true rate .5 + .6 (p − .5): the root mean square of .4 |p − .5| is .4/√12 = .1155; one group loses a
    # hundredth of the variance that lies within groups. A calibrated model has a gap of 0.
    rng = np.random.default_rng(3)
    p, u = rng.random(20_000), rng.random(20_000)
    miscalibrated = run_test(to.Predictions((u < 0.5 + 0.6 * (p - 0.5)).astype(int), p))
    right = run_test(to.Predictions((u < p).astype(int), p))
    # the standard error of the gap is below √(.25/20,000) = .0035
    assert miscalibrated.effect == pytest.approx(0.4 / np.sqrt(12), abs=3 * 0.0035)
    assert right.effect < 3 * 0.0035
    assert miscalibrated.parts["group 1"]["observed"] > miscalibrated.parts["group 1"]["expected"]


def test_a_group_without_chance_adds_nothing_or_everything_but_never_nan():
    # generalhoslem gives 0/0 = NaN where a group says 0 throughout
    p, y = np.repeat([0.0, 0.4], 10), np.repeat([0, 1, 0], [10, 4, 6])
    for form in ("pearson", "exact"):
        result = HosmerLemeshow(bins=2, form=form).evaluate(View(p, y))
        # (4 − 4)² / 2.4 = 0 for the second group, and the first has no degree of freedom
        assert (result.statistic, result.pvalue) == pytest.approx((0.0, 1.0), abs=1e-12)
        assert result.settings_used["df"] == 1
        broken = HosmerLemeshow(bins=2, form=form).evaluate(View(p, np.where(np.arange(20) == 0, 1, y)))
        assert (broken.statistic, broken.pvalue) == (np.inf, 0.0)
        assert [note.code for note in broken.notes] == ["TN215"]
    monte_carlo = run_test(to.Predictions([1] + [0] * 19, p), bins=2, null="redraw", resamples=99)
    assert (monte_carlo.statistic, monte_carlo.pvalue) == (np.inf, 0.01)
    certain = run_test(to.Predictions([0, 1], [0.0, 1.0]))
    assert (certain.statistic, certain.pvalue) == (0.0, 1.0)


def test_a_probability_above_one_by_rounding_is_one():
    p = np.repeat(np.array([0.5, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32), 20)
    y = np.repeat([0, 1, 1], [10, 10, 20])
    for form in ("pearson", "exact"):
        assert HosmerLemeshow(bins=2, form=form).evaluate(View(p, y)).statistic == pytest.approx(0.0, abs=1e-9)
        late = np.where(np.arange(40) == 39, 0, y)
        assert HosmerLemeshow(bins=2, form=form).evaluate(View(p, late)).statistic == np.inf


def test_equal_scores_stay_in_one_group_and_fewer_groups_are_noted():
    y, p = np.arange(60) % 2, np.repeat([0.2, 0.5, 0.5, 0.5, 0.9, 0.9], 10)
    order = np.random.default_rng(4).permutation(60)
    verdict, shuffled = run_test(to.Predictions(y, p)), run_test(to.Predictions(y[order], p[order]))
    assert verdict.statistic == pytest.approx(shuffled.statistic, rel=1e-12)
    # the cuts are .2, .5 and .9; the lowest quantile is also the first edge, so that .2 and .5 are one group
    assert verdict.settings["groups"] == 2
    assert "TN216" in codes(verdict)
    small = run_test(to.Predictions([0, 1, 0], [0.1, 0.5, 0.7]))
    assert small.settings["groups"] == small.settings["df"] == 3


def test_a_vector_of_two_outcomes_is_one_score():
    rng = np.random.default_rng(12)
    p = rng.random(300)
    y = rng.random(300) < p**2
    single, joint = View(p, y), View(np.stack([1 - p, p], axis=1), np.stack([~y, y], axis=1))
    for form in ("exact", "pearson"):
        a, b = (HosmerLemeshow(form=form).evaluate(view) for view in (single, joint))
        assert (a.statistic, a.pvalue, a.effect) == pytest.approx((b.statistic, b.pvalue, b.effect), rel=1e-9)
        assert a.parts["group 3"] == pytest.approx(b.parts["group 3"], rel=1e-9)


def test_the_order_of_the_other_classes_is_irrelevant():
    preds, order = four_classes(), np.array([2, 0, 3, 1])
    moved = to.Predictions(np.argsort(order)[preds.y], preds.P[:, order])
    for form in ("exact", "pearson"):
        a = run_test(preds, lens="canonical", form=form, baseline=3)
        b = run_test(moved, lens="canonical", form=form, baseline=2)
        assert a.statistic == pytest.approx(b.statistic, rel=1e-10)


def test_outcomes_without_chance_cost_degrees_of_freedom_and_rare_ones_do_not():
    rng = np.random.default_rng(5)
    P = np.column_stack([rng.dirichlet([2, 2], 200), np.zeros(200)])
    y = np.eye(3)[drawn(rng, P)]
    for form in ("pearson", "exact"):
        assert HosmerLemeshow(form=form).evaluate(View(P, y)).settings_used["df"] == 10
    known = HosmerLemeshow().evaluate(View(P, y)).statistic
    assert known == pytest.approx(HosmerLemeshow(form="exact").evaluate(View(P[:, 1], y[:, 1])).statistic, rel=1e-10)
    rare = P * (1 - 1e-9) + [0, 0, 1e-9]
    result = HosmerLemeshow().evaluate(View(rare, y))
    assert result.settings_used["df"] == 20
    assert result.statistic == pytest.approx(known, rel=1e-5)
    # rows that know two classes each hang together in pairs: of four classes each group loses two directions
    pairs = np.concatenate([np.pad(P[:, :2], [(0, 0), (0, 2)]), np.pad(P[:, :2], [(0, 0), (2, 0)])])
    assert HosmerLemeshow(bins=1).evaluate(View(pairs, np.eye(4)[drawn(rng, pairs)])).settings_used["df"] == 2


def test_rows_that_sum_to_one_only_roughly_keep_their_degrees_of_freedom():
    preds = four_classes()
    exact = run_test(preds, lens="canonical")
    single = run_test(to.Predictions(preds.y, preds.P.astype(np.float32)), lens="canonical")
    table = run_test(to.Predictions(preds.y, preds.P.round(3), sum_tolerance=0.003), lens="canonical")
    assert exact.settings["df"] == single.settings["df"] == table.settings["df"] == 30
    assert single.statistic == pytest.approx(exact.statistic, rel=1e-4)
    assert table.statistic == pytest.approx(exact.statistic, rel=0.05)


def test_only_ratios_of_weights_count():
    preds, rng = four_classes(), np.random.default_rng(6)
    w = rng.random(1000) + 0.1
    for lens in ("confidence", "canonical"):
        one, ten = (run_test(to.Predictions(preds.y, preds.P, weight=c * w), lens=lens) for c in (1, 10))
        assert one.statistic == pytest.approx(ten.statistic, rel=1e-9)
        even = run_test(to.Predictions(preds.y, preds.P, weight=np.full(1000, 0.3)), lens=lens)
        assert even.statistic == pytest.approx(run_test(preds, lens=lens).statistic, rel=1e-9)


def test_a_row_of_weight_zero_is_none():
    preds = binary("c_binary500")
    w = (np.arange(500) % 3 > 0).astype(float)
    mask = w > 0
    verdict = run_test(to.Predictions(preds.y, preds.p, weight=w))
    assert verdict.statistic == pytest.approx(
        run_test(to.Predictions(preds.y[mask], preds.p[mask])).statistic, rel=1e-12
    )


@pytest.mark.slow
def test_weights_keep_the_level():
    # 14..49 of 600 with 99.9 %, though weights from .2 to 5 make the rows worth half their number
    rng, rejections = np.random.default_rng(7), 0
    for _ in range(600):
        p, w = rng.uniform(0.1, 0.9, 400), np.exp(rng.uniform(-1.6, 1.6, 400))
        rejections += HosmerLemeshow(bins=5).evaluate(View(p, rng.random(400) < p, w)).pvalue <= 0.05
    assert 14 <= rejections <= 49


def test_small_expectations_are_a_doubt_that_redraws_answer():
    rng = np.random.default_rng(8)
    p = rng.beta(1, 19, 200)
    preds = to.Predictions((rng.random(200) < p).astype(int), p)
    verdict, monte_carlo = run_test(preds), run_test(preds, null="redraw", resamples=99)
    assert "TN212" in codes(verdict)
    assert "TN212" not in codes(monte_carlo)
    assert monte_carlo.statistic == verdict.statistic
    many = rng.uniform(0.3, 0.7, 400)
    assert "TN212" not in codes(run_test(to.Predictions((rng.random(400) < many).astype(int), many)))


@pytest.mark.parametrize("lens", ["confidence", "canonical"])
def test_redraws_agree_with_chi_square_where_groups_are_large(lens):
    # the p of 999 draws has a standard error of at most √(.25/999) = .016
    rng = np.random.default_rng(9)
    P = rng.dirichlet([3, 3, 3], 3000)
    preds = to.Predictions(drawn(rng, P), P)
    asymptotic = run_test(preds, lens=lens, form="exact")
    draws = run_test(preds, lens=lens, form="exact", null="redraw")
    assert draws.pvalue == pytest.approx(asymptotic.pvalue, abs=4 * 0.016)


def test_a_tally_gives_nearly_the_same():
    # groups are cut between cells 1/3840 wide: a row or two per cut changes sides
    rng = np.random.default_rng(10)
    P = rng.dirichlet([2, 2, 2], 3000)
    preds = to.Predictions(drawn(rng, P**1.4 / (P**1.4).sum(axis=1, keepdims=True)), P)
    tally = to.tally(preds, grid=60)
    for lens, tolerance in (("class:1", 0.03), ("canonical", 0.15)):
        rows, cells = run_test(preds, lens=lens), run_test(tally, lens=lens)
        assert cells.statistic == pytest.approx(rows.statistic, rel=tolerance)
        assert cells.settings["df"] == rows.settings["df"]


def test_clusters_are_tested_by_flipped_signs():
    rng = np.random.default_rng(11)
    p = np.repeat(rng.uniform(0.2, 0.8, 80), 5)
    preds = to.Predictions((rng.random(400) < p).astype(int), p, cluster=np.repeat(np.arange(80), 5))
    assert 0 < run_test(preds, null="redraw", resamples=99).pvalue <= 1


def test_classwise_tells_each_class():
    verdict = run_test(four_classes(), lens="classwise")
    assert list(verdict.parts) == ["class:0", "class:1", "class:2", "class:3"]
    assert verdict.pvalue == verdict.family_pvalue


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"bins": 0}, "TO203"),
        ({"bins": "sqrt"}, "TO203"),
        ({"form": "fagerland"}, "TO203"),
        ({"baseline": "first"}, "TO203"),
        ({"fitted": 1}, "TO203"),
        ({"fitted": True, "null": "redraw"}, "TO205"),
        ({"fitted": True, "form": "exact"}, "TO205"),
        ({"fitted": True, "bins": 2}, "TO205"),
        ({"baseline": 4, "lens": "canonical"}, "TO205"),
    ],
)
def test_what_cannot_be_is_refused(settings, code):
    with pytest.raises(InputError) as refusal:
        run_test(four_classes() if "lens" in settings else binary("c_binary500"), **settings)
    assert refusal.value.code == code


def test_labels_are_resampled_unless_the_model_was_fitted_on_these_rows():
    preds = binary("c_binary500")
    usual = to.test(preds, "hosmer_lemeshow", resamples=99)
    assert (usual.settings["null"], usual.min_pvalue) == ("redraw", 0.01)
    assert to.test(preds, "hosmer_lemeshow", fitted=True).settings["null"] == "asymptotic"


@pytest.mark.slow
def test_the_default_keeps_its_level_on_sharp_predictions():
    # Logits of sd 4, 30 rows: the chi-square law rejects 11 to 12 %. Binomial(500, .05) is at most 43 with 99.9 %.
    def draw():
        p = 1 / (1 + np.exp(-4 * rng.standard_normal(30)))
        return to.Predictions((rng.random(30) < p).astype(int), p)

    rng = np.random.default_rng(13)
    verdicts = (to.test(draw(), "hosmer_lemeshow", resamples=99, rng=seed) for seed in range(500))
    assert rate_is_at_level((verdict.pvalue <= 0.05 for verdict in verdicts), 0.05, excluded=0.11)
    assert sum(run_test(draw()).pvalue <= 0.05 for _ in range(500)) > 43


@pytest.mark.parametrize("value", [np.array([]), np.array([1, 2]), "yes", None])
def test_fitted_that_is_no_boolean_is_refused_by_its_code(value):
    with pytest.raises(InputError, match=r"TO203.*fitted must be True or False"):
        HosmerLemeshow(fitted=value)


@pytest.mark.parametrize("p", [5e-324, 1e-310])
def test_an_event_with_a_probability_near_the_smallest_float_has_an_infinite_statistic(p):
    # d² / Σp exceeds the largest float; the product of this infinity with a residual of 0 was undefined.
    assert run_test(to.Predictions([1] + [0] * 19, np.full(20, p))).statistic == np.inf
    assert run_test(to.Predictions([0] * 20, np.full(20, p)), null="redraw", resamples=19).pvalue == 1.0

"""Multicategory linear in log odds as a test."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

import trueodds as to
from tests.calibrators.linear import reference
from tests.calibrators.rows import draw_predictions, labels, one_hot
from tests.rates import rate_is_at_level
from tests.reference import columns, frame, golden
from trueodds.calibrators.mcllo import MclloSpec
from trueodds.hypotests._glm.mcllo_likelihood import MclloModel
from trueodds.hypotests.cox import Cox
from trueodds.hypotests.mcllo import Mcllo
from trueodds.lenses.view import View


def drawn(n, k, seed, sharpness=1.0):
    P, y = draw_predictions(n, k, sharpness, seed)
    return View(p=P, y=one_hot(y, k))


def votes():
    rows = frame("recalibration/multi3_votes.csv")
    return to.Predictions(rows["y"].astype(int), columns(rows))


@pytest.mark.parametrize("baseline", range(4))
def test_the_reference_numbers(baseline):
    # scipy's BFGS on δ with a Hessian by differences (golden/recalibration/mcllo.json).
    want, rows = golden("recalibration/mcllo.json")[f"base{baseline}"], reference()
    results = {
        form: Mcllo(form=form, baseline=baseline).evaluate(View(p=rows.P, y=rows.Y))
        for form in ("likelihood-ratio", "wald", "score")
    }
    for form, key in (("likelihood-ratio", "lrt"), ("wald", "wald"), ("score", "score")):
        assert results[form].statistic == pytest.approx(want[key], rel=1e-9)
        assert results[form].pvalue == pytest.approx(want[f"p_{key}"], rel=1e-7)
    parts = results["wald"].parts
    assert parts["joint"]["df"] == 6
    classes = [parts[f"class:{j}"] for j in want["categories"]]
    for key in ("tau", "gamma", "delta"):
        assert [one[key] for one in classes] == pytest.approx(want[key], abs=1e-8)
    for key in ("tau", "gamma"):
        assert [one[f"{key}_se"] for one in classes] == pytest.approx(want[f"se_{key}"], abs=1e-8)
    # The order of the reference's covariance is all τ, then all γ; sub-tests are Wald's by its blocks.
    V, tau, gamma = np.array(want["cov_tau_gamma"]), np.array(want["tau"]), np.array(want["gamma"]) - 1
    assert parts["shift"]["statistic"] == pytest.approx(tau @ np.linalg.solve(V[:3, :3], tau), rel=1e-7)
    assert parts["scale"]["statistic"] == pytest.approx(gamma @ np.linalg.solve(V[3:, 3:], gamma), rel=1e-7)
    C = np.array([[1, -1, 0], [0, 1, -1]])
    contrasts = C @ gamma
    equal = parts["equal-scales"]
    assert equal["statistic"] == pytest.approx(contrasts @ np.linalg.solve(C @ V[3:, 3:] @ C.T, contrasts), rel=1e-7)
    assert equal["pvalue"] == pytest.approx(chi2.sf(equal["statistic"], 2))
    one = np.ix_([0, 3], [0, 3])
    pair = np.array([tau[0], gamma[0]])
    assert classes[0]["statistic"] == pytest.approx(pair @ np.linalg.solve(V[one], pair), rel=1e-7)


def test_the_score_statistic_by_hand():
    # Vectors (½, ¼, ¼) twice: log odds log 2 and 0 against the last, so class 1 has no slope and class 0 none apart
    # from its shift. Came: class 0 twice. Residuals Σ(y − p) = (1, −½), information 2(diag p − pp') = (½, −¼; −¼, ⅜).
    # Its inverse is (3, 2; 2, 4), so the statistic is 3 − 2 + 1 = 2, with 2 degrees of freedom instead of 4.
    result = Mcllo(form="score").evaluate(View(p=[[0.5, 0.25, 0.25]] * 2, y=[[1, 0, 0]] * 2))
    assert result.statistic == pytest.approx(2)
    assert result.parts["joint"]["df"] == 2
    assert "TN218" in {note.code for note in result.notes}
    # A class that came only: the likelihood's limit says 1 for it.
    assert result.parts["joint"]["likelihood_ratio"] == pytest.approx(-2 * np.log(0.25), abs=1e-6)
    assert np.isnan(result.parts["class:0"]["tau"])


def test_two_classes_are_coxs_regression():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 200)
    for w in (None, rng.choice([1.0, 5.0], 200)):
        view = View(p=p, y=rng.random(200) < p**1.5, w=w)
        for form in ("likelihood-ratio", "score"):
            ours, cox = Mcllo(form=form).evaluate(view), Cox(form=form).evaluate(view)
            assert ours.statistic == pytest.approx(cox.statistic, rel=1e-8)
            assert ours.effect == pytest.approx(cox.effect, rel=1e-6)
        event, line = ours.parts["event"], cox.parts["joint"]
        assert (event["tau"], event["gamma"]) == pytest.approx((line["intercept"], line["slope"]), abs=1e-8)
        assert (event["tau_se"], event["gamma_se"]) == pytest.approx((line["intercept_se"], line["slope_se"]), rel=1e-6)


def test_its_map_is_the_calibrators():
    view = drawn(500, 4, 1, sharpness=1.6)
    m = MclloSpec(baseline=1).fit(view.p, view.y, np.ones(500))
    result = Mcllo(baseline=1).evaluate(view)
    assert [result.parts[f"class:{j}"]["gamma"] for j in (0, 2, 3)] == pytest.approx(m.gamma, abs=1e-8)
    assert result.effect == pytest.approx(np.abs(m.apply(view.p) - view.p).sum(axis=1).mean() / 2, abs=1e-9)


def test_intervals_are_of_logs_and_holm_corrects_the_classes():
    parts = Mcllo().evaluate(drawn(400, 4, 2, sharpness=1.3)).parts
    one = parts["class:0"]
    assert one["delta_low"] == pytest.approx(np.exp(one["tau"] - 1.959964 * one["tau_se"]), rel=1e-6)
    assert one["gamma_high"] == pytest.approx(one["gamma"] + 1.959964 * one["gamma_se"], rel=1e-6)
    pvalues = [parts[f"class:{j}"]["pvalue"] for j in range(3)]
    assert min(parts[f"class:{j}"]["holm"] for j in range(3)) == pytest.approx(min(1, 3 * min(pvalues)))


def test_the_posterior_of_calibration_is_that_of_bic():
    joint = Mcllo().evaluate(drawn(400, 3, 3)).parts["joint"]
    odds = np.exp((4 * np.log(400) - joint["likelihood_ratio"]) / 2)
    assert joint["posterior"] == pytest.approx(odds / (1 + odds))


@pytest.mark.parametrize("min_prob", [1e-12, 1e-6, 1e-3])
def test_min_prob_decides_where_observed_outcomes_had_probability_zero(min_prob):
    # golden/recalibration/mcllo_zeros.json: 240 rows of 20 votes, five of which held none for what came.
    want = golden("recalibration/mcllo_zeros.json")
    for baseline, one in enumerate(want[f"clip_{min_prob:g}"]["by_base"]):
        verdict = to.test(votes(), "mcllo", baseline=baseline, min_prob=min_prob)
        assert verdict.statistic == pytest.approx(one["lrt"], abs=1e-8)
        note_texts = {note.code: note.text for note in verdict.notes}
        assert note_texts["TN235"].startswith("5 observed outcomes had predicted probability 0")
        assert "117 of 240 rows" in note_texts["TN106"]
        assert {f"floor:{min_prob / 10:g}", f"floor:{min_prob * 10:g}"} <= set(verdict.parts)
    if min_prob == 1e-3:
        near = want["clip_0.0001"]["by_base"][2]["lrt"]
        assert verdict.parts["floor:0.0001"]["statistic"] == pytest.approx(near, abs=1e-8)
        assert "floor:0.01" in verdict.parts


def test_exact_zeros_need_a_floor():
    with pytest.raises(to.InputError, match=r"TO205.*117 of 240 rows"):
        to.test(votes(), "mcllo")


@pytest.mark.slow
def test_the_score_of_resampled_labels_keeps_its_level():
    # p-values of 999 draws are uniform on i/1000: of 300 data sets Binomial(300, .05) reject at 5 %; its 99.9 % range.
    # Sharp predictions, few rows, many classes: where χ² cannot be trusted. The draws are judged without the façade.
    rejected = 0
    for repetition in range(300):
        rng = np.random.default_rng([1, repetition])
        P = rng.dirichlet(np.full(5, 0.3), 60)
        odds = MclloModel.from_view(View(p=P, y=one_hot(labels(P, rng), 5)), -1, 1e-12, "mcllo")
        Y = np.stack([odds.Y, *(one_hot(labels(P, rng), 5) for _ in range(99))])
        values = odds.score_statistics(Y)
        rejected += (values >= values[0] * (1 - 1e-10)).mean() <= 0.05
    low, high = binom.ppf([0.0005, 0.9995], 300, 0.05)
    assert low <= rejected <= high


@pytest.mark.slow
@pytest.mark.parametrize("form", ["likelihood-ratio", "wald", "score"])
def test_size_with_unequal_weights(form):
    # Without the sandwich weights of 1 and 5 reject several times as often.
    rng = np.random.default_rng(5)

    def is_rejected(_):
        P, w = rng.dirichlet(np.ones(3), 600), rng.choice([1.0, 5.0], 600)
        return Mcllo(form=form).evaluate(View(p=P, y=one_hot(labels(P, rng), 3), w=w)).pvalue <= 0.05

    assert rate_is_at_level(map(is_rejected, range(400)), 0.05, excluded=0.15)


def test_draws_use_the_statistic_that_is_shown():
    for view in (drawn(60, 4, 4), View(p=[0.2, 0.7, 0.6, 0.3], y=[0, 1, 0, 1])):
        test = Mcllo(null="redraw")
        assert test.cell_statistic(view).value() == pytest.approx(test.evaluate(view).statistic, rel=1e-10)


def test_redraws_take_the_score_and_nothing_else():
    P, y = draw_predictions(80, 3, 2.5, 6)
    verdict = to.test(to.Predictions(y, P), "mcllo", null="redraw", resamples=199)
    assert (verdict.settings["form"], verdict.min_pvalue, verdict.pvalue) == ("score", 0.005, 0.005)
    assert verdict.statistic == pytest.approx(to.test(to.Predictions(y, P), "mcllo", form="score").statistic)
    with pytest.raises(to.InputError, match="TO205"):
        Mcllo(null="redraw", form="wald")


def test_separated_outcomes_have_a_limit_and_no_parameters():
    P = draw_predictions(40, 3, 1.0, 4)[0]
    result = Mcllo().evaluate(View(p=P, y=one_hot(P.argmax(axis=1), 3)))
    assert result.statistic == pytest.approx(-2 * np.log(P.max(axis=1)).sum(), abs=1e-3)
    (text,) = [note.text for note in result.notes if note.code == "TN217"]
    assert "to.fit(preds, 'mcllo', penalty=0.5)" in text
    pulled = to.fit(to.Predictions(P.argmax(axis=1), P), "mcllo", penalty=0.5)
    assert np.isfinite(pulled.calibration_map.gamma).all()
    assert pulled.calibration_map.converged
    assert any("limit" in warning for warning in result.asymptotic_warnings)
    assert np.isnan([result.parts["class:0"][key] for key in ("tau", "gamma_se", "pvalue", "holm")]).all()
    assert np.isnan(Mcllo(form="wald").evaluate(View(p=P, y=one_hot(P.argmax(axis=1), 3))).statistic)


def test_a_class_that_never_occurred_leaves_the_score_and_the_limit():
    P, y = draw_predictions(100, 3, 1.0, 5)
    mask = y != 2
    result = Mcllo().evaluate(View(p=P[mask], y=one_hot(y[mask], 3)))
    assert np.isfinite(result.statistic)
    assert "TN217" in {note.code for note in result.notes}


def test_few_sharp_rows_bring_a_doubt_and_many_do_not():
    sharp = to.test(to.Predictions(*_rows(60, 0.1)), "mcllo", min_prob=1e-12)
    assert "TN212" in {note.code for note in sharp.notes}
    flat = to.test(to.Predictions(*_rows(400, 1.0)), "mcllo")
    assert "TN212" not in {note.code for note in flat.notes}


def _rows(n, alpha):
    rng = np.random.default_rng(8)
    P = rng.dirichlet(np.full(4, alpha), n)
    return labels(P, rng), P


def test_the_effective_n_of_coin_flips_is_their_number():
    # A shift of n rows of ½ only: every whitened score has size 1/n, so their worth is n; of rarer outcomes it is
    # about how many came: Σ p z² = (q³ + p³)/(n q p) = (1/(pq) − 3)/n, here .1: 8.11/n.
    view = View(p=np.full(50, 0.5), y=np.ones(50))
    assert MclloModel.from_view(view, -1, 0.0, "mcllo").effective_n == pytest.approx(50)
    rare = View(p=np.full(50, 0.1), y=np.ones(50))
    assert MclloModel.from_view(rare, -1, 0.0, "mcllo").effective_n == pytest.approx(50 / (1 / 0.09 - 3))


@pytest.mark.slow
def test_power_is_that_of_the_non_central_law():
    # golden/recalibration/mc_power.json: K = 3, Dirichlet(1), δ₁ = 2, n = 100: .648 of 1,000. Of 300 of ours the share
    # differs by at most four standard errors of both, 4 √(.648 · .352 (1/1000 + 1/300)).
    want = golden("recalibration/mc_power.json")["n100_d2.0"]["rej05"]
    rng, rejected = np.random.default_rng(9), 0
    for _ in range(300):
        P = rng.dirichlet(np.ones(3), 100)
        R = P * [2.0, 1.0, 1.0]
        rejected += (
            Mcllo().evaluate(View(p=P, y=one_hot(labels(R / R.sum(axis=1, keepdims=True), rng), 3))).pvalue <= 0.05
        )
    assert abs(rejected / 300 - want) < 4 * np.sqrt(want * (1 - want) * (1 / 1000 + 1 / 300))


def test_a_row_of_weight_zero_is_no_row_even_at_probability_zero():
    view = drawn(40, 3, 11)
    more = View(
        p=np.concatenate([[[0.0, 0.0, 1.0]], view.p]), y=np.concatenate([[[1, 0, 0]], view.y]), w=[0] + [1] * 40
    )
    assert Mcllo().evaluate(more).statistic == pytest.approx(Mcllo().evaluate(view).statistic, rel=1e-10)


def test_a_tally_gives_nearly_the_statistic_of_the_rows():
    rng = np.random.default_rng(12)
    p = rng.uniform(0.05, 0.95, 3000)
    preds = to.Predictions((rng.random(3000) < p**1.2).astype(int), p)
    exact, tallied = (to.test(preds, "mcllo", mode=mode) for mode in ("exact", "tally"))
    assert tallied.statistic == pytest.approx(exact.statistic, rel=2e-3)


def test_a_baseline_beyond_the_classes_is_refused():
    with pytest.raises(to.InputError, match="TO203"):
        Mcllo(baseline=3).evaluate(drawn(10, 3, 0))

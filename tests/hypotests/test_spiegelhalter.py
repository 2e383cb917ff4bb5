"""Spiegelhalter's z: reference values, level, direction, weights, where it is undefined, tallies."""

import numpy as np
import pytest

import trueodds as to
from tests import reference
from trueodds.core.errors import InputError
from trueodds.hypotests.spiegelhalter import Spiegelhalter
from trueodds.lenses.view import View


def run_test(preds, **settings):
    return to.test(preds, "spiegelhalter", **settings)


def c_binary():
    rows = reference.frame("estimators/c_binary500.csv")
    return to.Predictions(rows["y"].astype(int), rows["p"])


def four_classes():
    rows = reference.frame("estimators/b_multi1000.csv")
    return to.Predictions(rows["y"].astype(int), reference.columns(rows))


def codes(verdict):
    return [note.code for note in verdict.notes]


def test_z_agrees_with_r_rms():
    # golden: R rms::val.prob, S:z and S:p
    known = reference.estimators()["c.spiegelhalter"]["value"]
    verdict = run_test(c_binary())
    assert (verdict.statistic, verdict.pvalue) == pytest.approx((known["z"], known["p_two_sided"]), rel=1e-10)


def test_z_of_the_confidence_agrees_with_the_reference():
    known = reference.estimators()["b_conf.spiegelhalter"]["value"]
    verdict = run_test(four_classes())
    assert verdict.lens == "confidence"
    assert (verdict.statistic, verdict.pvalue) == pytest.approx((known["z"], known["p_two_sided"]), rel=1e-10)


def test_by_hand_with_weights():
    # p = .9 fails, p = .2 comes, weights 1 and 2. Σw(1 − 2p)(y − p) = .8·.9 + 2·.6·.8 = 1.68;
    # Σw²(1 − 2p)²p(1 − p) = .64·.09 + 4·.36·.16 = .288; z = 1.68/√.288. Effect: 1.68/(.8 + 2·.6) = .84.
    result = Spiegelhalter().evaluate(View(p=[0.9, 0.2], y=[0, 1], w=[1, 2]))
    assert result.statistic == pytest.approx(1.68 / np.sqrt(0.288), rel=1e-12)
    assert result.effect == pytest.approx(0.84, rel=1e-12)


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_size_under_the_null(n, weighted):
    # Rejections at 5 % over 600 data sets are Binomial(600, .05): inside 14..49 with 99.9 %.
    rng, rejections = np.random.default_rng(n + weighted), 0
    for _ in range(600):
        p = rng.beta(0.3, 0.3, n)
        w = np.exp(rng.uniform(-1, 1, n)) if weighted else None
        rejections += Spiegelhalter().evaluate(View(p, rng.random(n) < p, w)).pvalue <= 0.05
    assert 14 <= rejections <= 49


def test_overconfidence_is_positive_and_timidity_negative():
    rng = np.random.default_rng(1)
    p, u = rng.random(5000), rng.random(5000)
    bold = run_test(to.Predictions((u < 0.5 + 0.5 * (p - 0.5)).astype(int), p))
    timid = run_test(to.Predictions((u < p).astype(int), 0.5 + 0.5 * (p - 0.5)))
    assert bold.statistic > 0 > timid.statistic
    # y − p is −(p − ½)/2 on average: the mean toward ½ with weights |1 − 2p|
    # is Σ(1 − 2p)²/4 / Σ|1 − 2p| = (1/3)/4/(1/2) = 1/6,
    # with standard error √(mean of (1 − 2p)² v)/(½√5000) < .5/(.5·71)
    assert bold.effect == pytest.approx(1 / 6, abs=3 / 71)
    assert -1 / 6 < timid.effect < 0


@pytest.mark.parametrize("p", [[0.0, 0.5, 1.0, 0.5], [0.5, 0.5, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0]])
def test_where_every_probability_is_0_a_half_or_1_z_is_undefined(p):
    verdict = run_test(to.Predictions([0, 0, 1, 1], p))
    assert np.isnan([verdict.statistic, verdict.pvalue, verdict.effect]).all()
    assert "TN214" in codes(verdict)
    assert np.isnan(run_test(to.Predictions([0, 0, 1, 1], p), null="redraw", resamples=19).pvalue)


def test_an_impossible_outcome_where_nothing_else_varies_is_infinitely_surprising():
    preds = to.Predictions([1, 1, 1, 1], [0.0, 0.5, 1.0, 0.5])
    verdict, monte_carlo = run_test(preds), run_test(preds, null="redraw", resamples=19)
    assert (verdict.statistic, verdict.pvalue) == (np.inf, 0.0)
    assert (monte_carlo.statistic, monte_carlo.pvalue) == (np.inf, 0.05)
    assert "TN215" in codes(verdict)


def test_a_probability_above_one_by_rounding_is_no_negative_variance():
    above = np.nextafter(np.float32(1), np.float32(2))
    verdict = run_test(to.Predictions([1, 1], np.array([above, above], dtype=np.float32)))
    assert np.isnan(verdict.statistic)
    assert "TN214" in codes(verdict)


def test_redraws_agree_with_the_normal_law():
    # the p of 999 draws has a standard error of at most √(.25/999) = .016
    rng = np.random.default_rng(3)
    p = rng.random(1000)
    preds = to.Predictions((rng.random(1000) < p).astype(int), p)
    asymptotic, draws = run_test(preds), run_test(preds, null="redraw")
    assert draws.pvalue == pytest.approx(asymptotic.pvalue, abs=4 * 0.016)


def test_only_ratios_of_weights_count():
    preds = c_binary()
    w = np.random.default_rng(4).random(500) + 0.1
    one, ten = (run_test(to.Predictions(preds.y, preds.p, weight=c * w)).statistic for c in (1, 10))
    assert one == pytest.approx(ten, rel=1e-12)


def test_a_tally_gives_nearly_the_same():
    # within a cell p moves by at most 1/3840, so that each residual and pull moves by less than 1/1000 of its span
    preds = c_binary()
    rows, cells = run_test(preds), run_test(to.tally(preds))
    assert cells.statistic == pytest.approx(rows.statistic, abs=0.02)
    assert cells.effect == pytest.approx(rows.effect, abs=0.001)


def test_a_lens_with_a_vector_per_row_is_refused():
    with pytest.raises(InputError, match="TO205"):
        run_test(four_classes(), lens="canonical")

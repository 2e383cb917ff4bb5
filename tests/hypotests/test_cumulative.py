"""KS and ECCE: worked values, null distributions far into the tail, ties, and deterministic predictions."""

import math

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.rates import rate_is_at_level
from trueodds.hypotests.cumulative import ECCE, KS, brownian_both_ends_tail, brownian_maximum_tail, brownian_range_tail
from trueodds.lenses.view import View


def codes(verdict):
    return [note.code for note in verdict.notes]


def confidence(name="estimators/b_multi1000.csv"):
    rows = reference.frame(name)
    P = reference.columns(rows)
    return View(P.max(axis=1), (P.argmax(axis=1) == rows["y"]).astype(float))


def test_the_reference_values_of_500_rows():
    # golden c.ecce_*: the authors' code (ecevecce) gives the same
    known, rows = reference.estimators(), reference.frame("estimators/c_binary500.csv")
    view = View(rows["p"], rows["y"])
    for test, effect, p in (
        (KS(start="below"), "c.ecce_mad_eq_ks", "c.ecce_mad_pvalue"),
        (ECCE(), "c.ecce_r", "c.ecce_r_pvalue"),
    ):
        result = test.evaluate(view)
        assert result.effect == pytest.approx(known[effect]["value"], rel=1e-12)
        assert result.effect / result.statistic == pytest.approx(known["c.ecce_sigma_n"]["value"], rel=1e-12)
        assert result.pvalue == pytest.approx(known[p]["value"], rel=1e-10)
        assert result.asymptotic_warnings == ()


def test_a_tiny_p_keeps_its_digits():
    # x = 8.0396 on both, and P = 4 Φ(−x), 8 Φ(−x) up to terms of e^(−4x²). The reference 1.776e-15 is 1 − CDF, which is
    # 8 steps of 2^−52 there; the true value is 1.803e-15.
    known, view = reference.estimators(), confidence()
    for test, p, times in ((KS(start="below"), "b_conf.ecce_mad_pvalue", 4), (ECCE(), "b_conf.ecce_r_pvalue", 8)):
        result = test.evaluate(view)
        assert result.pvalue == pytest.approx(times * math.erfc(result.statistic / math.sqrt(2)) / 2, rel=1e-10)
        assert abs(result.pvalue - known[p]["value"]) < 4 * 2**-52
    assert 0 < KS().evaluate(View(0.5 + np.arange(900) * 1e-5, np.ones(900))).pvalue < 1e-190  # x = 30


@pytest.mark.parametrize("beyond", [brownian_maximum_tail, brownian_both_ends_tail, brownian_range_tail])
def test_the_two_series_of_a_law_meet(beyond):
    # at x = 1 one is summed over the tail and one over the distribution function; slope about −1, so 1e-9 apart
    assert beyond(1 - 1e-9) == pytest.approx(beyond(1 + 1e-9), abs=5e-9)
    x = np.linspace(0, 6, 400)
    assert (np.diff([beyond(value) for value in x]) <= 0).all()
    assert beyond(0.0) == 1


@pytest.mark.slow
def test_the_laws_against_walks():
    # 20,000 walks of 1,000 steps of ±1: a walk that is looked at between its steps goes about 0.58 steps farther on
    # each side, so x moves by .58 / √1000 = .018 (.037 for the range), and P by at most that times its slope of 0.7.
    steps = np.where(np.random.default_rng(0).random((20_000, 1000)) < 0.5, -1, 1).cumsum(axis=1) / np.sqrt(1000)
    top, low = steps.max(axis=1).clip(0), -steps.min(axis=1).clip(None, 0)
    end = steps[:, -1]
    both = np.maximum(np.maximum(top, low), np.maximum(end + low, top - end))
    cases = (
        (brownian_maximum_tail, np.maximum(top, low), 0.018),
        (brownian_both_ends_tail, both, 0.018),
        (brownian_range_tail, top + low, 0.037),
    )
    for beyond, value, moved in cases:
        for x in (1.0, 1.5, 2.0, 2.5):
            assert abs((value > x).mean() - beyond(x)) < 0.7 * moved + 3.3 * np.sqrt(0.25 / 20_000)


def test_by_hand_and_where():
    # residuals by rising score: +.8, −.3, −.6, +.2 over 4 rows; C = .2, .125, −.025, .025.
    # σ = √(.16 + .21 + .24 + .16)/4
    view = View(p=[0.2, 0.3, 0.6, 0.8], y=[1, 0, 0, 1])
    sigma = math.sqrt(0.16 + 0.21 + 0.24 + 0.16) / 4
    ks, ecce = KS().evaluate(view), ECCE().evaluate(view)
    assert (ks.effect, ks.statistic) == (pytest.approx(0.2), pytest.approx(0.2 / sigma))
    assert ks.parts["strongest"] == {"from": 0.2, "to": 0.2, "residual": pytest.approx(0.2)}
    # the range is .2 − (−.025), fallen over the scores .3 and .6
    assert (ecce.effect, ecce.statistic) == (pytest.approx(0.225), pytest.approx(0.225 / sigma))
    assert ecce.parts["strongest"] == {"from": 0.3, "to": 0.6, "residual": pytest.approx(-0.225)}


@pytest.mark.parametrize("name", ["ks", "ecce"])
def test_equal_scores_are_one_step_with_a_note_that_p_is_too_large(name):
    rng = np.random.default_rng(1)
    p = rng.integers(1, 10, 200) / 10
    y = (rng.random(200) < p).astype(int)
    order = np.lexsort((-y, p))
    verdict = to.test(to.Predictions(y, p), name)
    assert to.test(to.Predictions(y[order], p[order]), name).statistic == pytest.approx(verdict.statistic, rel=1e-12)
    assert "TN212" in codes(verdict)
    assert "one score" in next(note.text for note in verdict.notes if note.code == "TN212")
    assert to.test(to.Predictions(y, p), name, null="redraw").pvalue <= verdict.pvalue


@pytest.mark.parametrize("name", ["ks", "ecce"])
def test_few_expected_outcomes_are_noted(name):
    p = np.linspace(0.001, 0.002, 500)  # variance .75
    verdict = to.test(to.Predictions(np.arange(500) == 250, p), name)
    assert "effective size" in next(note.text for note in verdict.notes if note.code == "TN212")
    assert "TN212" not in codes(to.test(to.Predictions(np.arange(500) == 250, p), name, null="redraw"))


@pytest.mark.parametrize("name", ["ks", "ecce"])
def test_few_rows_of_large_weight_are_noted(name):
    p, y, few = np.full(500, 0.5), np.arange(500) % 2, np.arange(500) < 10
    verdict = to.test(to.Predictions(y, p, weight=np.where(few, 1000.0, 1.0)), name)  # variance 10/4 of a large weight
    assert "effective size of 2.5 rows" in next(note.text for note in verdict.notes if note.code == "TN212")
    assert "effective size" not in "".join(note.text for note in to.test(to.Predictions(y, p), name).notes)


@pytest.mark.parametrize("name", ["ks", "ecce"])
def test_probabilities_of_0_and_1_leave_nothing_to_chance(name):
    right = to.test(to.Predictions([0, 1, 1], [0.0, 1.0, 1.0]), name)
    wrong = to.test(to.Predictions([0, 1, 0], [0.0, 1.0, 1.0]), name)
    assert (right.pvalue, right.statistic, wrong.pvalue, wrong.statistic) == (1, 0, 0, math.inf)
    assert codes(right)[-1] == codes(wrong)[-1] == "TN223"
    assert to.test(to.Predictions([0, 1, 0], [0.0, 1.0, 1.0]), name, null="redraw").pvalue == 1 / 1000


@pytest.mark.parametrize("name", ["ks", "ecce"])
def test_weights_enter_the_variance_by_their_squares(name):
    # all weights 2.5: the error is that of equal weights and so is its standard error
    rng = np.random.default_rng(2)
    p = rng.random(100)
    y = (rng.random(100) < p).astype(int)
    a = to.test(to.Predictions(y, p), name)
    b = to.test(to.Predictions(y, p, weight=np.full(100, 2.5)), name)
    assert (b.statistic, b.effect) == (pytest.approx(a.statistic), pytest.approx(a.effect))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ks", "ecce"])
@pytest.mark.parametrize("null", ["asymptotic", "redraw"])
def test_size_under_the_null(name, null):
    rng = np.random.default_rng(3)

    def is_rejected(seed):
        p = rng.random(60)
        preds = to.Predictions((rng.random(60) < p).astype(int), p, weight=rng.gamma(2, 1, 60))
        settings = {"resamples": 99} if null == "redraw" else {}
        return to.test(preds, name, null=null, rng=seed, **settings).pvalue <= 0.05

    assert rate_is_at_level(map(is_rejected, range(400)), 0.05, excluded=0.12)


def test_the_range_sees_overconfidence_that_the_maximum_sees_less():
    rng = np.random.default_rng(4)
    p = rng.random(400)
    preds = to.Predictions((rng.random(400) < 0.5 + 0.55 * (p - 0.5)).astype(int), p)
    assert to.test(preds, "ecce").pvalue < 1e-4
    assert to.test(preds, "ecce").parts["strongest"]["from"] < 0.6


@pytest.mark.slow
def test_a_tally_gives_nearly_the_same():
    rng = np.random.default_rng(5)
    p = rng.random(5000)
    preds = to.Predictions((rng.random(5000) < p**1.1).astype(int), p)
    for name in ("ks", "ecce"):
        rows, cells = to.test(preds, name), to.test(to.tally(preds), name)
        assert cells.statistic == pytest.approx(rows.statistic, rel=0.02)
        drawn = to.test(to.tally(preds), name, null="redraw")
        assert abs(drawn.pvalue - rows.pvalue) < 0.05


def test_votes_in_a_tally_have_no_such_law():
    votes = np.array([[3, 1], [1, 4], [2, 2]])
    tally = to.tally(to.Predictions(votes, [0.2, 0.7, 0.5]))
    with pytest.raises(to.InputError, match="TO205"):
        to.test(tally, "ks")
    assert "flipped" in to.test(tally, "ks", null="redraw").null


def test_vectors_are_refused():
    with pytest.raises(to.InputError, match="TO205"):
        to.test(to.Predictions([0, 1, 2], np.eye(3) * 0.4 + 0.2), "ks", lens="canonical")


@pytest.mark.parametrize("null", ["asymptotic", "redraw"])
def test_ks_is_the_same_for_the_complement(null):
    # The path from below of (1 − p, 1 − y) is minus that from above of (p, y); scores of twentieths are tied.
    # Redraws of the two are other labels, so their p-values differ by chance: at most .016 each for 999 of them.
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 300) / 20
    y = (rng.random(300) < np.where(p < 0.4, p + 0.2, p - 0.05)).astype(int)
    one, other = (to.test(to.Predictions(*pair), "ks", null=null) for pair in ((y, p), (1 - y, 1 - p)))
    assert one.statistic == pytest.approx(other.statistic, rel=1e-9)
    assert one.pvalue == pytest.approx(other.pvalue, abs=1e-9 if null == "asymptotic" else 5 * 0.016)
    below = [to.test(to.Predictions(*pair), "ks", start="below").statistic for pair in ((y, p), (1 - y, 1 - p))]
    assert below[0] != pytest.approx(below[1], rel=1e-3)


def test_the_larger_of_both_ends_by_hand():
    # residuals +.8, −.3, −.6, −.8 over 4 rows: C = .2, .125, −.025, −.225; from above −.225, −.425, −.35, −.2
    view = View(p=[0.2, 0.3, 0.6, 0.8], y=[1, 0, 0, 0])
    assert KS().evaluate(view).effect == pytest.approx(0.425)
    assert KS(start="below").evaluate(view).effect == pytest.approx(0.225)
    assert KS().evaluate(view).parts["strongest"] == {"from": 0.3, "to": 0.8, "residual": pytest.approx(-0.425)}


@pytest.mark.slow
def test_the_law_of_both_ends_keeps_the_level():
    # 14..49 of 600 with 99.9 %; steps of 300 rows make the largest a little smaller than that of Brownian motion
    rng, rejections = np.random.default_rng(6), 0
    for _ in range(600):
        p = rng.random(300)
        rejections += KS().evaluate(View(p, rng.random(300) < p)).pvalue <= 0.05
    assert 14 <= rejections <= 49

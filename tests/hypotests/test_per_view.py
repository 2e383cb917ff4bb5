"""What all tests of single views share: families, null distributions, clusters, votes, tallies and errors."""

import dataclasses

import numpy as np
import pytest

import trueodds as to
from tests.data.refused import refused
from tests.rates import rate_is_at_level
from trueodds.hypotests import TESTS
from trueodds.hypotests.per_view import ViewTest
from trueodds.hypotests.spiegelhalter import Spiegelhalter

TEST = "spiegelhalter"  # the simplest member stands for all


def calibrated(rng, n, k=3):
    P = rng.dirichlet(np.ones(k), n)
    return to.Predictions((rng.random(n)[:, None] > np.cumsum(P, axis=1)).sum(axis=1).clip(0, k - 1), P)


def test_one_view_has_no_family_and_several_have_holms():
    preds = calibrated(np.random.default_rng(0), 200)
    one = to.test(preds, TEST, lens="class:0")
    assert one.family_pvalue is None
    all_ = to.test(preds, TEST, lens="classwise")
    singles = [to.test(preds, TEST, lens=f"class:{c}").pvalue for c in range(3)]
    assert [part["pvalue"] for part in all_.parts.values()] == singles
    assert all_.pvalue == all_.family_pvalue == min(3 * min(singles), 1.0)  # Holm's smallest is Bonferroni's
    strongest = int(np.argmin(singles))
    assert all_.statistic == all_.parts[f"class:{strongest}"]["statistic"]
    assert all_.effect == all_.parts[f"class:{strongest}"]["effect"]


def test_a_family_of_lenses_is_holms_by_law_and_joint_by_redraws():
    preds = calibrated(np.random.default_rng(1), 200)
    lenses = ["confidence", "classwise"]
    asymptotic = to.test(preds, TEST, lens=lenses)
    pvalues = [to.test(preds, TEST, lens=lens).parts for lens in lenses]
    single = [to.test(preds, TEST, lens="confidence").pvalue, *(part["pvalue"] for part in pvalues[1].values())]
    assert asymptotic.family_pvalue == pytest.approx(min(4 * min(single), 1.0))
    drawn = to.test(preds, TEST, lens=lenses, null="redraw")
    assert drawn.family_pvalue <= 1
    assert drawn.min_pvalue == 1 / 1000
    assert set(drawn.parts) == {"confidence", "classwise"}


@pytest.mark.slow
def test_the_joint_family_of_redraws_keeps_its_level():
    rng, settings = np.random.default_rng(2), {"lens": ["confidence", "classwise"], "null": "redraw", "resamples": 99}
    verdicts = (to.test(calibrated(rng, 60), TEST, rng=seed, **settings) for seed in range(400))
    assert rate_is_at_level((verdict.pvalue <= 0.05 for verdict in verdicts), 0.05, excluded=0.15)


@pytest.mark.slow
def test_clusters_need_redraws_and_flip_whole_residuals():
    # 100 clusters of 5 equal labels. 200 sets: Binomial(200, .08) stays at or below 29 with 99.9 %, as flips are
    # approximate (6 % measured).
    rng = np.random.default_rng(3)
    rows = np.repeat(np.arange(100), 5)
    naive = flipped = 0
    for seed in range(200):
        p = rng.random(100)
        y = (rng.random(100) < p).astype(int)
        naive += to.test(to.Predictions(y[rows], p[rows]), TEST).pvalue <= 0.05
        clustered = to.Predictions(y[rows], p[rows], cluster=rows)
        flipped += to.test(clustered, TEST, null="redraw", resamples=99, rng=seed).pvalue <= 0.05
    assert naive > 50
    assert flipped <= 29
    with refused("TO205", fix="redraw"):
        to.test(clustered, TEST)


def test_of_several_votes_one_is_drawn_with_a_note():
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(3), 100)
    votes = np.stack([rng.multinomial(7, p) for p in P])
    for null in ("asymptotic", "redraw"):
        verdict = to.test(to.Predictions(votes, P), TEST, null=null)
        assert "TN202" in [note.code for note in verdict.notes]


def test_resampling_rows_and_labels_is_the_scheme_of_the_2019_paper():
    preds = calibrated(np.random.default_rng(5), 100)
    verdict = to.test(preds, TEST, null="redraw", redraw="both", resamples=99)
    assert "rows drawn" in verdict.null
    assert verdict.settings["redraw"] == "both"


def test_a_tally_gives_nearly_the_same_verdict_and_says_what_it_cannot():
    preds = calibrated(np.random.default_rng(6), 3000)
    tally = to.tally(preds)
    for null in ("asymptotic", "redraw"):
        rows, cells = (to.test(data, TEST, null=null, lens="confidence") for data in (preds, tally))
        # A fine cell is 1/3840 wide: the statistic moves far less than a standard error.
        assert cells.statistic == pytest.approx(rows.statistic, abs=0.02)
        # and so does p: of 999 draws its standard error is at most .016
        assert cells.pvalue == pytest.approx(rows.pvalue, abs=0.08)
        assert "TN405" in [note.code for note in cells.notes]
    with refused("TO205"):
        to.test(tally, TEST, null="redraw", redraw="both", lens="confidence")


def test_independent_labels_are_drawn_each_for_itself_and_their_family_is_holms():
    rng = np.random.default_rng(7)
    P = rng.random((200, 3))
    preds = to.Predictions.from_multilabel((rng.random(P.shape) < P).astype(int), P)
    for null in ("asymptotic", "redraw"):
        verdict = to.test(preds, TEST, null=null, resamples=199)
        holm = [part["holm"] for part in verdict.parts.values()]
        assert verdict.pvalue == min(holm)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"null": "bayes"}, "TO203"),
        ({"null": "redraw", "redraw": "rows"}, "TO203"),
        ({"null": "redraw", "resamples": 0}, "TO203"),
        ({"null": "redraw", "resamples": 10.5}, "TO203"),
        ({"redraw": "both"}, "TO205"),
        ({"lens": "canonical"}, "TO205"),
        ({"bins": 10}, "TO202"),
    ],
)
def test_what_has_no_meaning_is_refused(settings, code):
    with refused(code):
        to.test(calibrated(np.random.default_rng(8), 20), TEST, **settings)


def test_an_instance_is_taken_as_it_is():
    preds = calibrated(np.random.default_rng(9), 50)
    assert to.test(preds, Spiegelhalter(null="redraw", resamples=99)).settings["resamples"] == 99


def test_a_single_row_and_constant_predictions_have_an_answer_or_say_why_not():
    assert 0 < to.test(to.Predictions([1], [0.3]), TEST).pvalue <= 1
    flat = to.test(to.Predictions([0, 1, 1], [0.5, 0.5, 0.5]), TEST)
    assert np.isnan(flat.pvalue)
    assert "TN214" in [note.code for note in flat.notes]
    drawn = to.test(to.Predictions([0, 1, 1], [0.5, 0.5, 0.5]), TEST, null="redraw", resamples=19)
    assert np.isnan(drawn.pvalue)


def test_the_floor_of_a_family_by_holm_counts_its_claims():
    rng = np.random.default_rng(10)
    P = rng.random((200, 3))
    preds = to.Predictions.from_multilabel((rng.random(P.shape) < P).astype(int), P)
    assert to.test(preds, TEST, null="redraw", resamples=199).min_pvalue == 3 / 200
    miscalibrated = to.Predictions.from_multilabel(np.ones(P.shape, dtype=int), P / 4)
    verdict = to.test(miscalibrated, TEST, null="redraw", resamples=199)
    assert verdict.pvalue == verdict.min_pvalue == 3 / 200
    tally = to.tally(calibrated(rng, 100))
    lenses = ["confidence", "class:0"]
    assert to.test(tally, TEST, lens=lenses, null="redraw", resamples=199).min_pvalue == 2 / 200


def test_settings_are_passed_by_name():
    # A positional setting of a subclass would change its meaning whenever the base class got another setting.
    view_tests = [test for test in map(TESTS.load, TESTS.names()) if issubclass(test, ViewTest)]
    assert [test for test in view_tests if not all(field.kw_only for field in dataclasses.fields(test))] == []
    with refused("TO202"):
        Spiegelhalter("redraw")

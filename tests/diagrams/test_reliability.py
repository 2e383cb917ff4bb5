"""Values of the reliability diagram and of the confidence histogram."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.reference import data, frame, golden
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams.confidence_histogram import ConfidenceHistogram
from trueodds.diagrams.reliability import (
    Reliability,
    describe_outside_bins,
    describe_segments,
    find_segments,
    format_edge,
    is_explained_by_chance,
)
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

COLUMNS = ["view", "bin", "low", "high", "n", "weight", "share", "mean_prediction", "outcome_rate", "deviation"]


def codes(diagram):
    return [note.code for note in diagram.notes]


def test_values_by_hand():
    # Two bins: .2, .4 with 0, 1 and .9, .9 with 1, 0: means .3 and .9, rates .5 and .5.
    view = View([0.2, 0.4, 0.9, 0.9], [0, 1, 1, 0], name="positive")
    t = Reliability(Uniform(2))([view]).table
    np.testing.assert_allclose(t["mean_prediction"], [0.3, 0.9])
    np.testing.assert_allclose(t["outcome_rate"], [0.5, 0.5])
    np.testing.assert_allclose(t["deviation"], [0.2, -0.4])
    # Σy of .2, .4: P[0] = .48, P[1] = .44: quantiles 0 and 2. Of .9, .9: P[0] = .01, P[1] = .18: 1 and 2.
    np.testing.assert_allclose(t["bar_low"], [0, 0.5])
    np.testing.assert_allclose(t["bar_high"], [1, 1])
    assert t["outside"].tolist() == [False, False]
    assert t["share"].tolist() == [0.5, 0.5]
    assert (t["low"].tolist(), t["high"].tolist(), t["n"].tolist()) == ([0, 0.5], [0.5, 1], [2, 2])


def test_the_reference_bars():
    expected = golden("estimators/golden_part2.json")["c.consistency_bars.ew10"]["value"]
    c = frame("estimators/c_binary500.csv")
    view = View(c["p"], c["y"], name="positive")
    bars = np.array([expected[str(b)]["poisson_binomial_5_95"] for b in range(10)])
    t = Reliability(Uniform(10), level=0.9)([view]).table
    assert (t["bar_low"] == bars[:, 0]).all()
    assert (t["bar_high"] == bars[:, 1]).all()
    obs = np.array([expected[str(b)]["obs"] for b in range(10)])
    assert (t["outside"] == ((obs < bars[:, 0]) | (obs > bars[:, 1]))).all()
    assert [expected[str(b)]["n"] for b in range(10)] == t["n"].tolist()


@pytest.mark.parametrize("settings", [{}, {"bars": "confidence"}, {"bars": None}, {"by": "redraw", "resamples": 99}])
def test_the_table_is_the_same_in_both_styles(settings):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    views = [View(p, rng.random(300) < p**2, name=f"class:{c}") for c in "ab"]
    tables = [Reliability(style=style, **settings)(views, rng=1).table for style in ("diagonal", "deviation")]
    assert list(tables[0]) == list(tables[1])
    assert all((tables[0][name] == tables[1][name]).all() for name in tables[0])


def test_a_style_that_is_none_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"TO203.*'diagonal' or 'deviation'.*'classic'"):
        Reliability(style="classic")


def test_a_rate_on_the_end_of_its_bar_is_inside():
    # One row at .5: the bar of the rate is [0, 1], and both outcomes lie on its ends.
    for p in (0.5, 0.3, 0.1):
        for y in (0, 1):
            assert not Reliability(level=0.95)([View([p], [y])]).table["outside"][0]


def test_edges_ties_and_empty_bins():
    # .3 is the edge of (.2, .3] and belongs to it; 0 belongs to the first bin; five equal scores stay together.
    view = View([0.0, 0.3, 0.3, 0.3, 0.3, 0.3, 1.0], [0, 1, 0, 0, 1, 0, 1])
    t = Reliability(Uniform(10))([view]).table
    assert t["bin"].tolist() == [0, 2, 9]
    assert t["n"].tolist() == [1, 5, 1]
    assert Reliability(EqualMass(4))([view]).table["n"].max() >= 5


def test_a_weight_of_two_is_two_rows_for_rates_and_not_for_bars():
    p, y = np.array([0.1, 0.2, 0.7, 0.8]), np.array([0, 1, 0, 1])
    w = np.array([2.0, 1.0, 1.0, 2.0])
    weighted = Reliability(Uniform(2))([View(p, y, w)]).table
    rows = Reliability(Uniform(2))([View(np.repeat(p, w.astype(int)), np.repeat(y, w.astype(int)))]).table
    for name in ("mean_prediction", "outcome_rate", "deviation", "share", "weight"):
        np.testing.assert_allclose(weighted[name], rows[name], rtol=1e-14)
    assert (weighted["n"] == 2).all()
    # Importance weights: two rows of weight two tell no more than two rows.
    doubled = Reliability(Uniform(2))([View(p, y, np.full(4, 2.0))]).table
    once = Reliability(Uniform(2))([View(p, y)]).table
    assert (doubled["bar_low"] == once["bar_low"]).all()
    assert codes(Reliability(Uniform(2))([View(p, y, w)]))[0] == "TN242"


def test_confidence_bars_are_around_the_rate():
    view = View(np.full(10, 0.7), [1] * 3 + [0] * 7)
    t = Reliability(Uniform(1), bars="confidence", level=0.95)([view]).table
    np.testing.assert_allclose([t["bar_low"][0], t["bar_high"][0]], [0.1077913, 0.6032219], atol=1e-6)
    assert t["outside"].tolist() == [True]  # .7 lies above .603


def test_without_bars_there_is_nothing_to_be_outside_of():
    diagram = Reliability(bars=None)([View([0.2, 0.9], [0, 1])])
    assert list(diagram.table) == COLUMNS
    assert "bins_outside" not in diagram.panels
    assert "beyond" not in diagram.finding


def test_simultaneous_bars_divide_the_error_by_the_number_of_bars():
    rng = np.random.default_rng(0)
    views = [View(rng.random(200), rng.random(200) < 0.5, name=f"class:{c}") for c in range(3)]
    one, all_ = Reliability(Uniform(5))(views), Reliability(Uniform(5), simultaneous=True)(views)
    assert all_.settings["level_of_each_bar"] == pytest.approx(1 - 0.05 / 15)
    assert (all_.table["bar_low"] <= one.table["bar_low"]).all()
    assert (all_.table["bar_high"] >= one.table["bar_high"]).all()
    assert "TN246" in codes(one)
    assert "TN246" not in codes(all_)


def test_simultaneous_bars_cover_all_bins_at_once():
    # Bonferroni: all 8 bars hold with probability ≥ .9; inside counts of 600 draws are Binomial(600, ≥ .9),
    # below .9 - 4 sd = .851 with probability < 4e-5.
    rng = np.random.default_rng(5)
    p = rng.random(300)
    t = Reliability(Uniform(8), level=0.9, simultaneous=True)([View(p, np.zeros(300))]).table
    index = Uniform(8).fit(View(p, p)).index(p)
    n = np.bincount(index)
    inside = 0
    for _ in range(600):
        rate = np.bincount(index, rng.random(300) < p) / n
        inside += bool(((t["bar_low"] <= rate) & (rate <= t["bar_high"])).all())
    assert inside / 600 >= 0.851


def test_the_largest_error_comes_first():
    good = View([0.5, 0.5], [0, 1], name="class:good")
    bad = View([0.9, 0.9], [0, 0], name="class:bad")
    diagram = Reliability()([good, bad])
    assert diagram.panels["view"].tolist() == ["class:bad", "class:good"]
    np.testing.assert_allclose(diagram.panels["error"], [0.9, 0.0])
    assert diagram.lens == "classwise"
    # Two rows at .9 that never came: an error of .9.
    assert diagram.finding.startswith("Largest error: class bad (ECE\u00a00.9000).")
    assert diagram.panels["finding"][1].startswith("Class good (ECE\u00a00.0000).")


@pytest.mark.slow
def test_what_is_left_out_of_the_picture_is_noted_and_stays_in_the_table():
    views = [View([0.1 + c / 100], [0], name=f"class:{c}") for c in range(20)]
    for diagram in (Reliability()(views), ConfidenceHistogram()(views)):
        assert "TN245" in codes(diagram)
        assert len(diagram.table["view"]) == 20
        assert len(diagram.draw().axes) == 12


def test_each_note_has_its_cause():
    rng = np.random.default_rng(2)
    p = rng.random(5000)
    y = rng.random(5000) < p
    assert codes(Reliability()([View(p, y)])) == ["TN246"]
    assert codes(Reliability(Uniform(1))([View(p, y)])) == ["TN241", "TN246"]
    assert codes(Reliability()([View(p[:9], np.linspace(0, 1, 9))])) == ["TN243", "TN246"]
    cells = View(p, y).pool(Uniform(3840).fit(View(p, y)).index(p), 3840)
    assert codes(Reliability()([cells])) == ["TN244", "TN246"]
    assert codes(Reliability(Sweep())([View(p[:200], y[:200])])) == ["TN247", "TN246"]
    assert codes(Reliability(bars="confidence")([View(p, y)])) == []


def test_a_tree_has_the_extremes_of_its_leaves_as_edges():
    rng = np.random.default_rng(1)
    p = rng.random(100)
    t = Reliability(MedianVariance(20))([View(p, p > 0.5)]).table
    assert (np.diff(t["low"]) > 0).all()
    assert (t["low"] <= t["mean_prediction"]).all()
    assert (t["mean_prediction"] <= t["high"]).all()
    assert t["n"].sum() == 100


def test_the_lens_of_ten_classes():
    z = data("plambda_cifar10_vgg16.npz")
    preds = Predictions(z["labels"].astype(int), z["probs"])
    diagram = Reliability()(as_lens("confidence").views(preds))
    # ECE with 15 uniform bins from the table of the data: .0398.
    t = diagram.table
    assert float(t["share"] @ np.abs(t["deviation"])) == pytest.approx(0.0398, abs=5e-5)
    assert diagram.panels["outcome_rate"][0] == pytest.approx(0.9359)
    assert "97.6\u00a0%" in diagram.finding
    assert "93.6\u00a0%" in diagram.finding


def test_ties_and_certainties_of_a_forest():
    table = data("adult_rf_predictions.parquet")
    p, y = np.asarray(table["p"]), np.asarray(table["y"])
    t = Reliability(Uniform(100))([View(p, y)]).table
    assert t["n"].sum() == len(p)
    # 0 and .01 share the first bin, (.0, .01] closed at 0.
    assert t["n"][0] == (p <= 0.01).sum()


def test_the_histogram_by_hand():
    view = View([0.9, 0.8, 0.8, 0.6], [1, 0, 1, 0], [1.0, 1.0, 1.0, 3.0], name="confidence")
    diagram = ConfidenceHistogram(Uniform(5))([view])
    # Means (.9 + .8 + .8 + 3*.6)/6 = 4.3/6 and 2/6; .6 = 3/5 lies in (.4, .6], .8 in (.6, .8].
    assert diagram.panels["mean_prediction"][0] == pytest.approx(4.3 / 6)
    assert diagram.panels["outcome_rate"][0] == pytest.approx(1 / 3)
    assert diagram.table["bin"].tolist() == [2, 3, 4]
    np.testing.assert_allclose(diagram.table["share"], [1 / 2, 1 / 3, 1 / 6])
    assert "38.3 points overconfident" in diagram.finding


def test_the_histogram_says_whether_chance_explains_the_gap():
    # 100 rows at .9: P[Σy <= 84] ≈ .04, so 80 right is outside, and 90 inside.
    for right, phrase in ((80, "outside the consistency range"), (90, "inside the consistency range")):
        view = View(np.full(100, 0.9), np.arange(100) < right, name="confidence")
        diagram = ConfidenceHistogram()([view])
        assert phrase in diagram.finding
        assert bool(diagram.panels["outside"][0]) is (right == 80)


@pytest.mark.parametrize("name", ["reliability", "confidence_histogram"])
def test_settings_are_words(name):
    view = View([0.2, 0.9], [0, 1])
    diagram = DIAGRAMS.make(name, {"bins": 4, "partition": "equal-mass", "level": 0.8})([view], rng=3)
    assert diagram.settings["partition"] == "equal-mass 4"
    assert diagram.settings["level"] == 0.8
    with pytest.raises(InputError, match="TO202"):
        DIAGRAMS.make(name, {"binz": 4})


@pytest.mark.parametrize("recipe", [Reliability(), Reliability(bars=None), ConfidenceHistogram()])
def test_the_json_is_strict(recipe):
    diagram = recipe([View([0.2, 0.9], [0, 1], name="positive")])
    document = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
    assert document["schema"] == "trueodds.diagram/1"
    assert document["table"]["n"] == [1, 1]
    assert document["settings"]["partition"] == "uniform 15"


def test_tables_are_read_only():
    diagram = Reliability()([View([0.2, 0.9], [0, 1])])
    with pytest.raises(ValueError, match="read-only"):
        diagram.table["n"][0] = 7


def columns(deviation, outside, share=None):
    """A table of equal bins for the words about it."""
    k = len(deviation)
    share = np.full(k, 1 / k) if share is None else np.array(share)
    low = np.arange(k) / k
    return {
        "low": low,
        "high": low + 1 / k,
        "deviation": np.array(deviation),
        "share": share,
        "outside": np.array(outside, dtype=bool),
    }


def plain(text):
    return text.replace("\u00a0", " ")


def test_the_finding_says_where_the_model_is_miscalibrated():
    z = data("plambda_cifar10_vgg16.npz")
    preds = Predictions(z["labels"].astype(int), z["probs"])
    finding = plain(Reliability()(as_lens("confidence").views(preds)).finding)
    # The six bins above 9/15 are all outside and below 0, the five below them inside.
    assert (
        finding == "Overconfident above 60 %: 6 of 11 bins lie outside their consistency bars. "
        "Mean confidence 97.6 %, accuracy 93.6 %."
    )
    finding = plain(Reliability()(as_lens("class:3").views(preds)).finding)
    assert finding.startswith("Underpredicts below 26.7 % and overpredicts above 80 %: 8 of 15 bins lie outside their")


def test_a_segment_is_neighboring_bins_miscalibrated_to_one_side():
    # Two segments on the same side share a word, one in the middle has two ends, all bins are "throughout".
    assert (
        plain(describe_segments(columns([-0.1, 0, 0, -0.1], [1, 0, 0, 1]), "confidence"))
        == "overconfident below 25 % and above 75 %"
    )
    assert (
        plain(describe_segments(columns([0, 0.1, 0.1, 0], [0, 1, 1, 0]), "positive"))
        == "underpredicts between 25 % and 75 %"
    )
    assert describe_segments(columns([0.1, 0.1], [1, 1]), "confidence") == "underconfident throughout"
    # An inside bin between two outside ones ends the segment, and so does a change of side.
    assert len(find_segments(**pick([-0.1, -0.1, -0.1, 0.1], [1, 0, 1, 1]))) == 3


def test_a_segment_that_holds_little_of_the_error_is_not_reported():
    # Shares .9 and .05: .9 * .1 = .09 against .05 * .1 = .005, less than a tenth of .095.
    table = columns([-0.1, 0, 0.1], [1, 0, 1], [0.9, 0.05, 0.05])
    assert plain(describe_segments(table, "confidence")) == "overconfident below 33.3 %"


def pick(deviation, outside):
    table = columns(deviation, outside)
    return {"deviation": table["deviation"], "share": table["share"], "is_outside": table["outside"]}


def test_few_bins_outside_are_what_chance_does():
    # P[Binomial(11, .1) >= 1] = 1 - .9^11 = .686, >= 3 is .0896, >= 4 is .0185.
    assert is_explained_by_chance(11, 1, 0.9)
    assert is_explained_by_chance(11, 3, 0.9)
    assert not is_explained_by_chance(11, 4, 0.9)
    table = columns([0.0] * 10 + [-0.1], [0] * 10 + [1])

    def say(outside, **kwargs):
        how = {
            "sure": False,
            "simultaneous": False,
            "is_confidence_interval": False,
            "view_name": "confidence",
        } | kwargs
        jointly_outside = how.pop("sure")
        return plain(describe_outside_bins(table, outside, jointly_outside, 0.9, **how))

    assert say(1) == "1 of 11 bins lies outside (about 1 expected if calibrated)."
    assert say(1, sure=True) == "Overconfident above 90.9 %: 1 of 11 bins lies outside its consistency bar."
    assert say(1, simultaneous=True) == say(1, sure=True)
    assert say(4) == (
        "Overconfident above 90.9 %: 4 of 11 bins lie outside, 1 in this range and 3 elsewhere (about 1 expected if"
        " calibrated)."
    )
    assert say(0) == "All 11 bins lie inside their consistency bars."
    expected = "In 1 of 11 bins the interval excludes the mean prediction (about 1 expected if calibrated)."
    assert say(1, is_confidence_interval=True) == expected


def test_the_finding_says_how_many_of_the_bins_outside_lie_in_the_range_that_it_names():
    # eight bins above 20 % hold nearly all of the error, and the ninth lies below on the other side
    table = columns([0.0, 0.02, *[-0.2] * 8], [0, 1, *[1] * 8])
    text = plain(
        describe_outside_bins(
            table, 9, True, 0.9, simultaneous=False, is_confidence_interval=False, view_name="confidence"
        )
    )
    assert text == (
        "Overconfident above 20 %: 9 of 10 bins lie outside their consistency bars, 8 in this range and 1 elsewhere."
    )


@pytest.mark.slow
def test_a_calibrated_model_is_rarely_reported_as_miscalibrated():
    # A segment is named where the count is significant (< 5 %) or a Bonferroni bar misses (< 10 %):
    # of 200 calibrated models fewer than 15 % + 4 sd = 25 %, though most have a bin outside its own bar.
    rng = np.random.default_rng(3)
    n_miscalibrated = some = 0
    for _ in range(200):
        p = rng.random(300)
        diagram = Reliability(Uniform(10))([View(p, rng.random(300) < p, name="positive")])
        some += diagram.table["outside"].any()
        n_miscalibrated += "-predicts" in diagram.finding
    assert n_miscalibrated / 200 < 0.25
    assert some > n_miscalibrated


def test_edges_in_words_are_never_rounded_to_the_ends():
    assert [plain(format_edge(x)) for x in (0.0, 0.5, 2 / 3, 0.9998, 1 - 1e-9, 1.0)] == [
        "0 %", "50 %", "66.7 %", "99.98 %", "99.9999999 %", "100 %",
    ]  # fmt: skip


def test_bars_by_redraw_are_the_exact_ones_but_for_chance():
    c = frame("estimators/c_binary500.csv")
    view = View(c["p"], c["y"], name="positive")
    exact = Reliability(Uniform(10))([view])
    drawn = Reliability(Uniform(10), by="redraw", resamples=9999)([view], rng=1)
    # One row more or less where the law has a step near the quantile; test_chance judges each end by its law.
    for name in ("bar_low", "bar_high"):
        assert (np.abs(exact.table[name] - drawn.table[name]) * drawn.table["n"] <= 1 + 1e-9).all()
    assert drawn.settings["by"] == "redraw"
    assert drawn.settings["resamples"] == 9999
    assert "resamples" not in exact.settings
    assert codes(drawn) == ["TN246", "TN266"]
    repeated = Reliability(Uniform(10), by="redraw", resamples=9999)([view], rng=1)
    assert repeated.to_dict() == drawn.to_dict()


def test_too_few_resamples_for_the_level_are_noted():
    view = View(np.linspace(0.1, 0.9, 50), np.arange(50) % 2)
    some, many = (Reliability(by="redraw", resamples=b)([view]).notes[-1].text for b in (99, 999))
    assert "2.48 lie beyond each end, too few" in some  # 99 * .025
    assert "too few" not in many


def test_a_rate_that_its_redraws_reach_is_inside_whatever_the_weights():
    # Two rows of weight .1 and .2 have four rates, each with probability 1/4: none lies beyond the middle 90 %.
    for y in ([0, 0], [0, 1], [1, 0], [1, 1]):
        view = View([0.5, 0.5], y, [0.1, 0.2])
        assert not Reliability(Uniform(1), level=0.9, by="redraw")([view]).table["outside"][0]


def test_clopper_pearson_bars_by_name():
    view = View(np.full(10, 0.7), [1] * 3 + [0] * 7)
    diagram = Reliability(Uniform(1), bars="confidence", interval="clopper-pearson", level=0.95)([view])
    # 3 of 10 at 95 %: [.0667, .6525] (Clopper & Pearson's tables, as in R's binom.test).
    np.testing.assert_allclose([diagram.table["bar_low"][0], diagram.table["bar_high"][0]], [0.0667, 0.6525], atol=5e-5)
    assert diagram.settings["interval"] == "clopper-pearson"
    assert "interval" not in Reliability()([view]).settings


def test_the_strip_of_unequal_bins_shows_where_the_predictions_are():
    # Ten rows at .1 and ten at .9: four bins of five rows would each be drawn as a fourth, whatever their width.
    p = np.concatenate([np.full(10, 0.1), np.linspace(0.9, 0.95, 10)])
    diagram = Reliability(EqualMass(4))([View(p, p > 0.5)])
    strip = diagram.panels["strip"][0]
    assert strip.sum() == pytest.approx(1)
    assert strip[2] == 0.5  # (2/30, 3/30]
    assert strip[26:29].sum() == pytest.approx(0.5)  # (26/30, 29/30]
    assert "strip" not in Reliability()([View(p, p > 0.5)]).panels


def test_histogram_and_crosses_agree_whatever_the_rounding():
    # Three rows of p = .3 and weight .3, of which two came: 2/3 is the upper quantile, .6/.9 in floating point is more.
    one = View([0.3] * 3, [1, 1, 0], [0.3] * 3)
    histogram, crosses = (
        recipe([one]) for recipe in (ConfidenceHistogram(level=0.9), Reliability(Uniform(1), level=0.9))
    )
    assert histogram.panels["bar_high"][0] == pytest.approx(2 / 3)
    assert not histogram.panels["outside"][0]
    assert not crosses.table["outside"][0]
    assert "inside the consistency range (0.0\u00a0% to 66.7\u00a0%)" in histogram.finding


def test_rare_events_that_share_a_bin_are_sent_to_equal_mass():
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.02, 500)
    y = rng.random(500) < p
    (note,) = [note for note in Reliability()([View(p, y)]).notes if note.code == "TN267"]
    assert 'partition="equal-mass"' in note.text
    for diagram in (
        Reliability(EqualMass(5))([View(p, y)]),
        Reliability(Uniform(2))([View(p, y)]),
        Reliability()([View(np.repeat([0.01, 0.02], 50), np.zeros(100))]),  # two values need no more than two bins
        Reliability()([View(rng.random(500), y)]),
    ):
        assert "TN267" not in codes(diagram)
    several = Reliability()([View(p, y, name="class:a"), View(1 - rng.random(500), y, name="class:b")])
    assert any(note.text.startswith("In 1 of 2 classes all predictions lie") for note in several.notes)

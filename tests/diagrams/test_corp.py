"""Values, words and pictures of the CORP diagram."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import trueodds as to
from tests.diagrams.artists import name_of
from tests.diagrams.test_drawing import classwise, marks, view
from tests.reference import data, frame, golden, path
from trueodds.core.errors import InputError
from trueodds.diagrams._style.formatting import format_score
from trueodds.diagrams.corp import Corp
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View

BANDS = ["consistency", "confidence", "honest", None]
STYLES = ["miscalibration", "discrimination"]
QUICK = {"resamples": 99}


def part(diagram, name):
    mask = diagram.table["part"] == name
    return {column: values[mask] for column, values in diagram.table.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


def anchor(name):
    """Scores and outcomes of one of the reference cases."""
    if name.startswith("precip_"):
        table = data("precip_niamey_2016.parquet")
        return np.array(table[name.removeprefix("precip_")]), np.array(table["obs"], dtype=float)
    if name.startswith("hockey_"):
        table = data("brcal_hockey.parquet")
        return np.array(table[name.removeprefix("hockey_")]), np.array(table["y"], dtype=float)
    table = frame("anchors/foreclosure.csv" if name == "foreclosure" else f"anchors/synthetic/{name}.csv")
    return table["x" if "x" in table else "p"], table["y"]


CASES = ["precip_Logistic", "precip_EMOS", "precip_ENS", "precip_EPC", "hockey_x", "hockey_rand"]
CASES += ["g2_300", "g2_300_ties", "foreclosure"]


def test_values_by_hand():
    # .2 and .4 came in the wrong order: one block of rate 1/2; .8 came: its own block of rate 1.
    diagram = Corp(band=None, bins=5)([View([0.2, 0.4, 0.8], [1, 0, 1], name="positive")])
    block = part(diagram, "block")
    assert block["x_low"].tolist() == [0.2, 0.8]
    assert block["x_high"].tolist() == [0.4, 0.8]
    assert block["rate"].tolist() == [0.5, 1.0]
    assert block["n"].tolist() == [2, 1]
    # MCB = (.64 + .16 + .04)/3 − (.25 + .25)/3; DSC = 2/9 − 1/6; UNC = 2/9.
    for name, value in (("mcb", 0.34 / 3), ("dsc", 1 / 18), ("unc", 2 / 9), ("score", 0.28)):
        assert diagram.panels[name][0] == pytest.approx(value)
    strip = part(diagram, "strip")
    assert strip["x_high"].tolist() == [0.2, 0.4, 0.8]
    np.testing.assert_allclose(strip["share"], 1 / 3)
    assert diagram.finding == "Recalibration could reduce the Brier score of 0.2800 by 0.1133."


@pytest.mark.parametrize("name", CASES)
def test_the_blocks_and_numbers_are_those_of_the_reference(name):
    expected = golden("anchors/golden.json")["r_packages"]["corp"][name]
    x, y = anchor(name)
    for score, key in (("brier", "brier"), ("log_loss", "log")):
        diagram = Corp(band=None, score=score)([View(x, y, name="positive")])
        for ours, published in (("mcb", "MCB"), ("dsc", "DSC"), ("unc", "UNC"), ("score", "mean_score")):
            value = expected[key][published]
            assert diagram.panels[ours][0] == (np.inf if value is None else pytest.approx(value, rel=1e-12))
    block = part(diagram, "block")
    if "bins" in expected:
        for ours, published in (("n", "n"), ("x_low", "x_min"), ("x_high", "x_max"), ("rate", "CEP")):
            np.testing.assert_allclose(block[ours], expected["bins"][published], rtol=1e-12)
    else:
        assert len(block["n"]) == expected["nbins"]


def test_tied_scores_are_pooled_whatever_the_order_of_the_rows():
    # A peer's curve depends on the order of rows within ties.
    p, y = np.repeat([0.2, 0.5, 0.7], 20), np.tile([0, 1, 1, 0, 1], 12)
    order = np.random.default_rng(1).permutation(60)
    for band in BANDS:
        first, reordered = (
            Corp(band=band, **QUICK)([View(p[rows], y[rows], name="positive")]) for rows in (slice(None), order)
        )
        assert first.to_dict() == reordered.to_dict()
    assert part(first, "block")["rate"].tolist() == [0.6]


def test_scores_snapped_to_allowed_values_are_ties_like_any_others():
    # A peer snaps after sorting and finds 0.225 for .11 .12 .31 .32 snapped to .1 and .3.
    diagram = Corp(band=None)([View(np.array([0.11, 0.12, 0.31, 0.32]).round(1), [0, 1, 0, 1], name="positive")])
    assert diagram.panels["mcb"][0] == pytest.approx(0.1)
    assert part(diagram, "block")["rate"].tolist() == [0.5]


@pytest.mark.parametrize("band", ["consistency", "confidence", "honest"])
@pytest.mark.parametrize("how", ["auto", "discrete", "continuous"])
def test_the_stated_level_is_the_level_of_the_band(band, how):
    # A peer's continuous bands always report 0.9.
    if how != "auto" and (band == "honest" or (band, how) == ("confidence", "continuous")):
        with pytest.raises(InputError, match="TO203"):
            Corp(band=band, how=how)
        return
    widths = []
    for level in (0.5, 0.9, 0.99):
        diagram = Corp(band=band, how=how, level=level)([view(n=150, name="positive")])
        assert diagram.settings["level"] == level
        assert any(f"{100 * level:.4g}\u00a0%" in text for _, text in diagram.legend())
        widths.append(np.mean(part(diagram, "band")["high"] - part(diagram, "band")["low"]))
    assert widths[0] < widths[1] < widths[2]


def test_draws_are_seeded_and_as_many_as_requested():
    # Peers draw 100 times, unseeded.
    make = lambda rng, **settings: Corp(**settings)([view(name="positive")], rng)
    assert make(3).to_dict() == make(3).to_dict()
    assert make(3).to_dict() != make(4).to_dict()
    assert "999 draws" in make(0).panels["band_method"][0]
    assert "200 draws of labels and rows" in make(0, resamples=200, redraw="both").panels["band_method"][0]


def test_where_it_is_miscalibrated_is_put_in_words():
    # Says .1 and .8 to 500 rows each; .3 and .5 of them come, and .5 of 10 in the middle.
    p, y = np.repeat([0.1, 0.5, 0.8], [500, 10, 500]), np.zeros(1010)
    y[:150] = y[500:505] = y[510:760] = 1
    diagram = Corp(band="honest")([View(p, y, name="positive")])
    out = part(diagram, "outside")
    assert out["x_low"].tolist() == [0.1, 0.8]
    assert out["low"].tolist() == [1, 0]
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith("Overpredicts at 80 % and underpredicts at 10 % (outside the 95 % simultaneous band).")
    assert Corp()([View(p, y, name="confidence")]).finding.startswith("Overconfident at 80")
    assert diagram.panels["share_outside"][0] == pytest.approx(1000 / 1010)


def test_neighboring_scores_miscalibrated_alike_are_one_segment():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.9, 4000)
    diagram = Corp(band="honest")([View(p, rng.random(4000) < p - 0.2, name="positive")])
    assert len(part(diagram, "outside")["x_low"]) == 1
    assert "Overpredicts between 3" in diagram.finding


def test_small_scores_are_distinguished_and_small_savings_are_not_nothing():
    # Stated .1 % and .35 %: nothing of the one and 2 % of the other come, and what lies between as stated.
    p = np.repeat([0.001, 0.002, 0.0035], [20_000, 2_000, 20_000])
    y = np.concatenate([np.arange(20_000) < 400, np.arange(2_000) < 40, np.arange(20_000) < 400])
    diagram = Corp(**QUICK)([View(p, y, name="positive")])
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith("Underpredicts between 0.10 % and 0.35 % (outside the 95 % consistency band).")
    mcb = diagram.panels["mcb"][0]  # the mean of (.02 − p)²
    assert mcb == pytest.approx((20 * 0.019**2 + 2 * 0.018**2 + 20 * 0.0165**2) / 42)
    assert f"by {mcb:.6f}." in finding  # three digits
    alone = Corp(**QUICK)([View(p[p == 0.0035], y[p == 0.0035], name="positive")])
    assert "Underpredicts at 0.35 %" in alone.finding.replace("\u00a0", " ")
    two = p != 0.002
    y[:20_000], p[:20_000] = 0, 0.001
    both = Corp(**QUICK)([View(p[two], y[two], name="positive")]).finding.replace("\u00a0", " ")
    assert both.startswith("Overpredicts at 0.10 % and underpredicts at 0.35 %")


def test_a_calibrated_model_is_not_accused():
    p = np.repeat([0.25, 0.5, 0.75], 40)
    y = np.concatenate([np.arange(40) < 10, np.arange(40) < 20, np.arange(40) < 30])
    for band, text in (
        ("honest", "The diagonal lies inside the simultaneous band."),
        ("consistency", "The curve lies inside the consistency"),
        ("confidence", "The diagonal lies inside the confidence"),
    ):
        diagram = Corp(band=band, **QUICK)([View(p, y, name="positive")])
        assert diagram.finding.startswith(text)
        assert not len(part(diagram, "outside")["x_low"])


def test_a_weight_of_two_is_two_rows_for_the_curve_and_the_numbers():
    p, y, w = np.array([0.2, 0.4, 0.4, 0.8]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 2])
    weighted = Corp(band=None, bins=4)([View(p, y, w, name="positive")])
    twice = Corp(band=None, bins=4)([View(np.repeat(p, w), np.repeat(y, w), name="positive")])
    for name in ("mcb", "dsc", "unc", "mean_prediction", "outcome_rate"):
        assert weighted.panels[name][0] == pytest.approx(twice.panels[name][0])
    for name in ("x_low", "x_high", "rate", "weight", "share"):
        np.testing.assert_allclose(part(weighted, "block")[name], part(twice, "block")[name])
    assert part(weighted, "block")["n"].sum() == 4


def test_a_tally_draws_what_its_rows_draw():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 5000) / 20  # every cell holds one score
    preds = to.Predictions((rng.random(5000) < p**1.3).astype(int), p)
    rows = to.draw(preds, "corp", band="honest", bins=10)
    tallied = to.draw(to.tally(preds), "corp", band="honest", bins=10)
    for name in ("block", "strip"):
        for column in ("x_low", "x_high", "rate", "n", "share"):
            np.testing.assert_allclose(part(tallied, name)[column], part(rows, name)[column], atol=1e-12)
    assert tallied.panels["mcb"][0] == pytest.approx(rows.panels["mcb"][0])
    assert "TN244" in codes(tallied)
    # Scores of a cell lie within 1/3840 of each other, and its limits hold from beyond them on only.
    low, high = (
        np.interp(part(rows, "band")["x_low"], part(tallied, "band")["x_low"], part(tallied, "band")[end])
        for end in ("low", "high")
    )
    assert (low <= part(rows, "band")["low"] + 1e-12).all()
    assert (high >= part(rows, "band")["high"] - 1e-12).all()


@pytest.mark.slow
def test_an_honest_band_needs_the_rows_where_they_weigh_differently():
    p, w = np.linspace(0.1, 0.9, 90).repeat(2), np.tile([1.0, 3.0], 90)
    preds = to.Predictions((p > 0.5).astype(int), p, weight=w)
    assert to.draw(preds, "corp", band="honest").panels["band_method"][0] == "Bentkus"
    with pytest.raises(InputError, match=r"TO403.*or pass the predictions\."):
        to.draw(to.tally(preds), "corp", band="honest")
    assert to.draw(to.tally(preds), "corp", **QUICK).panels["n"][0] == 180


def test_votes_are_drawn():
    rng = np.random.default_rng(2)
    p = rng.random(60)
    view = View(p, rng.binomial(5, p) / 5, name="positive")
    for band in BANDS:
        diagram = Corp(band=band, **QUICK)([view])
        assert diagram.panels["n"][0] == 60
        assert np.isfinite(part(diagram, "block")["rate"]).all()


def test_an_impossible_outcome_makes_the_log_loss_infinite_and_is_noted():
    diagram = Corp(score="log_loss", **QUICK)([View([0.0, 0.5, 0.9], [1, 0, 1], name="positive")])
    assert diagram.panels["mcb"][0] == np.inf
    assert diagram.panels["aside"][0] == "MCB ∞"
    assert "log loss is infinite" in diagram.finding
    assert "TN124" in codes(diagram)
    assert diagram.to_dict()["panels"]["mcb"] == [None]
    json.dumps(diagram.to_dict(), allow_nan=False)


def test_a_curve_at_0_or_1_has_a_confidence_band_without_width_and_a_note():
    view = View([0.1, 0.2, 0.6, 0.7], [0, 0, 0, 1], name="positive")
    diagram = Corp(band="confidence", **QUICK)([view])
    assert "TN256" in codes(diagram)
    assert diagram.finding.startswith("The diagonal lies inside")  # zero width is ignored
    assert "TN256" not in codes(Corp(**QUICK)([view]))


def test_rates_that_fall_cross_the_honest_limits():
    p, y = np.repeat([0.3, 0.7], 100), np.repeat([1, 0], 100)
    crossed = Corp(band="honest")([View(p, y, name="positive")])
    assert "TN257" in codes(crossed)
    band = part(crossed, "band")
    assert (band["low"] <= band["high"]).all()
    assert "TN257" not in codes(Corp(band="honest")([View(p, 1 - y, name="positive")]))


def test_views_come_with_the_largest_miscalibration_first():
    good, bad = view(1, name="class:good"), View([0.9] * 50, [0] * 50, name="class:bad")
    diagram = Corp(**QUICK)([good, bad])
    assert diagram.panels["view"].tolist() == ["class:bad", "class:good"]
    assert diagram.finding.startswith("Largest miscalibration: bad. ")
    assert not diagram.panels["finding"][1].startswith("Largest")


def test_of_many_views_those_that_are_drawn_have_bands():
    diagram = Corp(**QUICK)(classwise(14, n=60))
    banded = set(part(diagram, "band")["view"])
    assert banded == set(diagram.panels["view"][:12])
    assert set(part(diagram, "block")["view"]) == set(diagram.panels["view"])
    assert "TN245" in codes(diagram)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("band", BANDS)
def test_what_is_drawn_is_the_table(style, band):
    diagram = Corp(style=style, band=band, level=0.6, **QUICK)([view(name="positive")])
    ax = diagram.draw().axes[0]
    block = part(diagram, "block")
    (curve,), (dots,) = marks(ax, "curve"), marks(ax, "marks")
    for line in (curve, dots):
        np.testing.assert_array_equal(line.get_xdata()[::2], block["x_low"])
        np.testing.assert_array_equal(line.get_xdata()[1::2], block["x_high"])
        np.testing.assert_array_equal(line.get_ydata()[::2], block["rate"])
    n_gaps = sum(int(np.isnan(line.get_xdata()).sum()) for line in marks(ax, "curve outside"))
    assert n_gaps == len(part(diagram, "outside")["x_low"])  # each segment ends with a gap
    assert len(marks(ax, "band")) == (band is not None)
    if band:
        (shape,) = marks(ax, "band")
        corners = {tuple(corner) for corner in shape.get_paths()[0].vertices}
        rows = part(diagram, "band")
        for x, low, high in zip(rows["x_low"], rows["low"], rows["high"], strict=True):
            assert {(x, low), (x, high)} <= corners
    strips = [child for child in ax.child_axes if name_of(child) == "strip"]
    assert len(strips) == (2 if style == "discrimination" else 1)
    heights = [p.vertices[1, 1] for strip in strips for s in marks(strip, "share") for p in s.get_paths()]
    for share in part(diagram, "strip")["share"]:
        assert share in heights
    lines = {label: marks(ax, label) for label in ("mean predicted", "mean observed")}
    if style == "discrimination":
        assert lines["mean predicted"][0].get_xdata()[0] == diagram.panels["mean_prediction"][0]
        assert lines["mean observed"][0].get_ydata()[0] == diagram.panels["outcome_rate"][0]
        widths = [p.vertices[:, 0].max() for s in marks(strips[0], "share") for p in s.get_paths()]
        np.testing.assert_array_equal(widths, part(diagram, "rates")["share"])
        assert part(diagram, "rates")["share"].sum() == pytest.approx(1)
    else:
        assert not any(lines.values())
    (text,) = [text for text in ax.texts if text.get_gid() == "numbers"]
    for name in ("score", "mcb", "dsc", "unc"):
        assert format_score(diagram.panels[name][0]) in text.get_text()


def test_a_segment_is_drawn_over_the_curve_and_nowhere_else():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    diagram = Corp(**QUICK)([View(p, rng.random(20_000) < p + 0.1 * np.sin(12 * p) * p * (1 - p), name="positive")])
    ax, out, block = diagram.draw().axes[0], part(diagram, "outside"), part(diagram, "block")
    assert len(out["x_low"]) > 1
    x = np.stack([block["x_low"], block["x_high"]], axis=1).ravel()
    ((line,), (dots,)) = marks(ax, "curve outside"), marks(ax, "marks outside")
    ends = np.flatnonzero(np.isnan(line.get_xdata()))
    for segment, low, high in zip(np.split(line.get_xydata(), ends), out["x_low"], out["x_high"], strict=False):
        at, rate = segment[np.isfinite(segment[:, 0])].T
        assert (at[0], at[-1]) == pytest.approx((max(low - 0.005, x[0]), min(high + 0.005, x[-1])))
        np.testing.assert_array_equal(at[1:-1], x[(x > at[0]) & (x < at[-1])])
        np.testing.assert_allclose(rate, np.interp(at, x, np.repeat(block["rate"], 2)))
    is_outside = [any(low <= at <= high for low, high in zip(out["x_low"], out["x_high"], strict=True)) for at in x]
    np.testing.assert_array_equal(dots.get_xdata(), x[is_outside])


@pytest.mark.parametrize("exponent", [0.3, 1.0, 3.0])
def test_the_numbers_never_lie_on_the_curve(exponent):
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    figure = Corp(**QUICK)([View(p, rng.random(3000) < p**exponent, name="positive")]).draw()
    figure.draw_without_rendering()
    ax = figure.axes[0]
    (text,) = [text for text in ax.texts if text.get_gid() == "numbers"]
    box, (curve,) = text.get_window_extent(), marks(ax, "curve")
    x, y = curve.get_data()
    t = np.linspace(0, len(x) - 1, 5000)
    corners = ax.transData.transform(np.stack([np.interp(t, range(len(x)), x), np.interp(t, range(len(x)), y)], axis=1))
    assert not any(box.contains(*corner) for corner in corners)


def test_rates_at_the_right_stand_at_the_height_of_the_curve_also_under_a_legend():
    figure = Figure(figsize=(5, 4))
    ax = Corp(style="discrimination", **QUICK)([view(name="positive")]).draw(figure.subplots())
    figure.draw_without_rendering()
    side = ax.child_axes[0]
    for rate in (0, 0.3, 1):
        assert side.transData.transform((0, rate))[1] == pytest.approx(ax.transData.transform((0, rate))[1])


@pytest.mark.slow
@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize(
    ("p", "y"), [([0.5], [1]), ([0.0], [0]), ([1.0], [1]), ([1.0, 0.0], [0, 1]), ([0.3] * 9, [1] * 4 + [0] * 5)]
)
def test_the_smallest_data_can_be_drawn(band, p, y):
    for redraw in ("both", "labels"):
        diagram = Corp(band=band, style="discrimination", redraw=redraw, **QUICK)([View(p, y, name="positive")])
        table = part(diagram, "band")
        assert ((table["low"] >= 0) & (table["high"] <= 1) & (table["low"] <= table["high"])).all()
    diagram.draw()


def test_a_range_at_one_score_is_seen():
    ax = Corp(**QUICK)([View([0.3] * 20, [1, 0] * 10, name="positive")]).draw().axes[0]
    assert any(hasattr(artist, "get_segments") for artist in marks(ax, "band"))


def test_the_finding_on_real_data_is_correct():
    dataset = np.load(path("data/plambda_cifar10_vgg16.npz"))
    preds = to.Predictions(dataset["labels"], dataset["probs"])
    diagram = to.draw(preds, "corp", band="honest")
    assert diagram.finding.startswith("Overconfident between")
    assert diagram.panels["mcb"][0] == pytest.approx(to.measure(preds, "corp", lens="confidence", interval=None).value)
    grid = Corp(**QUICK)(as_lens("classwise").views(preds))
    assert len(grid.panels["view"]) == 10

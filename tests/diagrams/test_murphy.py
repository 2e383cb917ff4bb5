"""Values, words and pictures of Murphy curves and of the plane of miscalibration and discrimination."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import trueodds as to
from tests.diagrams.artists import name_of
from tests.diagrams.test_drawing import marks, view
from tests.reference import data
from trueodds.core.errors import InputError
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams.model_results import MARKERS, format_error
from trueodds.diagrams.murphy import Murphy
from trueodds.diagrams.murphy_curves import MurphyCurve, threshold_grid
from trueodds.diagrams.murphy_finding import (
    SignSegment,
    find_crossings,
    length_with_sign,
    lowest_curves,
    lowest_curves_at_points,
    sign_segments,
)
from trueodds.estimators.corp import Corp
from trueodds.estimators.proper_scores import Brier
from trueodds.estimators.threshold_scores import MurphyLoss
from trueodds.lenses.view import View

QUICK = {"resamples": 99}


def part(diagram, name, model=None):
    mask = diagram.table["part"] == name
    if model is not None:
        mask = mask & (diagram.table["model"] == model)
    return {column: values[mask] for column, values in diagram.table.items()}


def rain(*names):
    table = data("precip_niamey_2016.parquet")
    y = np.array(table["obs"]).astype(int)
    return {name: to.Predictions(y, np.array(table[name])) for name in names}


def two(n=400, seed=0):
    """A calibrated model and one that is too sure, of the same rows."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    odds = (p / (1 - p)) ** 3
    return {"good": to.Predictions(y, p), "sure": to.Predictions(y, odds / (1 + odds))}


def constant(**probs):
    """Models that say the same of every row; half of the outcomes come.

    One that says p costs θ below p, where it acts, and 1 − θ above it: for .3 and .6 these differ between, and cross
    at θ = .5.
    """
    y = [0, 1] * 20
    return {name: to.Predictions(y, [p] * 40) for name, p in probs.items()}


def plain(diagram):
    return diagram.finding.replace("\u00a0", " ")


def area(curve):
    return np.trapezoid(curve["score"], curve["threshold"])


def test_values_by_hand():
    # θ = .5: .7 acts and nothing comes, 2·.5/3. θ = .95: nobody acts, one comes, 2·.05/3.
    # θ = .9 itself: half of a miss.
    diagram = Murphy(thresholds=[0.5, 0.9, 0.95], band=None)([View([0.2, 0.7, 0.9], [0, 0, 1], name="positive")])
    np.testing.assert_allclose(part(diagram, "curve")["score"], [1 / 3, 0.5 * 0.2 / 3, 0.1 / 3])
    # Knowing the rate 1/3 alone one does not act at any of these: one miss in three. Isotonic rates 0, 0, 1 err never.
    np.testing.assert_allclose(part(diagram, "curve")["unc"], [1 / 3, 0.2 / 3, 0.1 / 3])
    np.testing.assert_allclose(part(diagram, "curve")["mcb"], part(diagram, "curve")["score"])
    np.testing.assert_allclose(part(diagram, "curve")["dsc"], part(diagram, "curve")["unc"])


@pytest.mark.parametrize("name", ["Logistic", "EMOS", "ENS", "EPC"])
def test_the_area_under_the_curve_is_the_brier_score_and_half_of_it_that_of_ehm_and_others(name):
    preds = rain(name)[name]
    curve = part(to.draw(preds, "murphy", band=None), "curve")
    brier = Brier()(View(preds.p, preds.y, name="positive")).value
    assert area(curve) == pytest.approx(brier, rel=1e-12)
    halved = {"score": curve["score"] / 2, "threshold": curve["threshold"]}  # their elementary score has no factor 2
    assert area(halved) == pytest.approx(brier / 2, rel=1e-12)


@pytest.mark.parametrize("votes", [False, True])
def test_areas_of_the_parts_are_the_parts_of_the_brier_score(votes):
    rng = np.random.default_rng(3)
    p = rng.integers(0, 21, 300) / 20  # ties, and 0 and 1 themselves
    y = rng.binomial(5, p) / 5 if votes else rng.random(300) < p**2
    view = View(p, y, rng.integers(1, 4, 300), name="positive")
    curve, own = part(Murphy(band=None)([view]), "curve"), Corp().parts(view)
    for name in ("mcb", "dsc", "unc", "score"):
        assert np.trapezoid(curve[name], curve["threshold"]) == pytest.approx(own[name], rel=1e-10)


@pytest.mark.parametrize("name", ["Logistic", "ENS"])
def test_at_every_threshold_the_score_is_mcb_less_dsc_and_unc(name):
    curve = part(to.draw(rain(name), "murphy", band=None), "curve")
    np.testing.assert_allclose(curve["mcb"] - curve["dsc"] + curve["unc"], curve["score"], atol=1e-14)
    assert (curve["mcb"] >= 0).all()
    assert (curve["dsc"] >= 0).all()


def test_it_is_the_estimator_murphy_loss_at_each_threshold():
    view = View([0.1, 0.3, 0.3, 0.9, 0.5], [1, 0, 0.4, 1, 0], [1, 2, 1, 1, 3], name="positive")
    thresholds = [0.05, 0.3, 0.5, 0.77]
    curve = part(Murphy(thresholds=thresholds, band=None)([view]), "curve")
    expected = [MurphyLoss(threshold)(view).value for threshold in thresholds]
    np.testing.assert_allclose(curve["score"], expected, rtol=1e-12)


def test_at_a_jump_both_limits_are_drawn():
    curve = part(Murphy(band=None)([View([0.4], [1], name="positive")]), "curve")
    at = curve["threshold"] == 0.4
    assert curve["side"][at].tolist() == ["below", "above"]
    np.testing.assert_allclose(curve["score"][at], [0.0, 1.2])  # who says .4 acts below it, and misses above


def test_many_scores_are_drawn_at_some_thresholds_with_their_exact_values():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 20, 3000)  # rare events: nearly all thresholds that matter lie near 0
    view = View(p, rng.random(3000) < p, name="positive")
    diagram = Murphy(band=None)([view])
    curve = part(diagram, "curve")
    assert "TN264" in [note.code for note in diagram.notes]
    assert len(curve["threshold"]) < 400
    assert (curve["threshold"] < 0.01).sum() > 40
    for i in (5, 50, 150):
        if 0 < curve["threshold"][i] < 1:
            assert curve["score"][i] == pytest.approx(MurphyLoss(float(curve["threshold"][i]))(view).value)
    # Between thresholds the cost changes by at most 2 (Δθ + the share of rows between them), so the area is near.
    gaps = np.diff(curve["threshold"])
    between = np.histogram(p, curve["threshold"])[0] / len(p)
    assert abs(area(curve) - Brier()(view).value) <= (gaps * 2 * (gaps + between)).sum()


def test_a_tally_has_the_curve_of_its_rows():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 5000) / 20  # every cell holds one score
    preds = to.Predictions((rng.random(5000) < p**1.3).astype(int), p)
    between = (np.arange(1, 40, 2) / 40).tolist()
    rows, cells = (to.draw(data, "murphy", thresholds=between) for data in (preds, to.tally(preds)))
    for column in ("threshold", "score", "mcb", "dsc", "unc"):
        np.testing.assert_allclose(part(cells, "curve")[column], part(rows, "curve")[column], atol=1e-9)
    low, high = (part(cells, "band")[end] - part(rows, "band")[end] for end in ("low", "high"))
    # Quantiles of 999 draws scatter by about a tenth of the band's width; 4 of these on either side.
    width = (part(rows, "band")["high"] - part(rows, "band")["low"]).max()
    assert max(np.abs(low).max(), np.abs(high).max()) < 0.4 * width
    assert "TN244" in [note.code for note in cells.notes]


def test_ten_million_rows_of_a_tally_are_drawn_by_cells():
    p = np.linspace(0.001, 0.999, 4000)
    n = np.full(4000, 2500.0)
    sums = {"ww": n, "wpp": n * p * p, "wpy": n * p * p, "wyy": n * p, "wwv": n * p * (1 - p), "wwr": n * p * (1 - p)}
    diagram = Murphy()([View(p, p, n, n=n, sums=sums, name="positive")])
    assert diagram.panels["n"][0] == 10_000_000
    assert len(diagram.table["view"]) < 1500


@pytest.mark.slow
def test_a_band_holds_the_true_cost_as_often_as_it_says():
    # Truth: p uniform and calibrated, S = 2θ∫_θ^1(1−p)dp + 2(1−θ)∫_0^θ p dp = θ(1−θ) at every θ.
    hits, sets = 0, 200
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        made = Murphy(thresholds=[0.5], level=0.9, resamples=199)([View(p, rng.random(500) < p, name="positive")], rng)
        band = part(made, "band")
        hits += int(band["low"][0] <= 0.25 <= band["high"][0])
    # Binomial(200, .9), and a percentile band of 500 rows and 199 draws may lose two points: its 99.9 % range.
    assert binom.ppf(0.0005, sets, 0.88) <= hits <= binom.ppf(0.9995, sets, 0.9)


def test_models_of_the_same_rows_are_drawn_on_the_same_resamples():
    models = {"a": two()["good"], "b": two()["good"]}
    band = part(to.draw(models, "murphy", **QUICK), "band", "b")
    assert not band["difference"].any()
    assert not band["difference_low"].any()
    assert not band["beyond"].any()


def test_which_model_is_better_for_whom_is_found():
    diagram = to.draw(two(4000), "murphy")
    assert diagram.finding.startswith("good has a lower cost than sure at ")
    assert "Significant differences: lower at" in diagram.finding
    band = part(diagram, "band", "sure")
    assert (band["beyond"] == 1).any()
    curves = [part(diagram, "curve", name) for name in ("good", "sure")]
    segments = sign_segments(curves[0]["threshold"], curves[1]["score"] - curves[0]["score"])
    assert f"{100 * length_with_sign(segments, 1):.0f}\u00a0% of the thresholds" in diagram.finding
    assert len(find_crossings(segments)) > 3
    assert f"the curves cross {len(find_crossings(segments))} times" in diagram.finding
    # Where many stretches are told by number, the few of a small sample are told by name.
    models = constant(a=0.3, b=0.6)
    assert f"the curves cross at {format_percent(0.5)}." in to.draw(models, "murphy", band=None).finding


def test_a_curve_that_is_nowhere_above_is_reported_as_such():
    y = [0, 1] * 20
    perfect, blind = to.Predictions(y, np.array(y, dtype=float)), to.Predictions(y, [0.5] * 40)
    diagram = to.draw({"perfect": perfect, "blind": blind}, "murphy", **QUICK)
    assert diagram.finding.startswith("perfect has at no threshold a higher cost than blind.")
    same = to.draw({"a": blind, "b": blind}, "murphy", **QUICK)
    assert same.finding == "a and b have the same cost at every threshold."


def test_crossings_are_where_the_sign_turns():
    x, d = np.array([0.0, 0.2, 0.4, 0.6, 1.0]), np.array([0.0, -1.0, 1.0, 0.0, 0.0])
    assert sign_segments(x, d) == [(0.0, pytest.approx(0.3), -1), (pytest.approx(0.3), 0.6, 1), (0.6, 1.0, 0)]
    assert find_crossings(sign_segments(x, d)) == [pytest.approx(0.3)]
    # Equality between is passed over; a jump is a crossing without a root.
    assert find_crossings(sign_segments(np.array([0, 1, 2, 3.0]), np.array([-1, 0, 0, 1.0]))) == [2.0]
    assert find_crossings([SignSegment(0, 1, -1), SignSegment(1, 2, 0), SignSegment(2, 3, -1)]) == []


def test_many_models_are_described_by_the_thresholds_at_which_each_costs_least():
    diagram = to.draw(rain("Logistic", "EMOS", "ENS", "EPC"), "murphy")
    finding = diagram.finding.replace("\u00a0", " ")
    # By hand of the table: the share of x where no other is lower, ties apart (no model is lower where all act).
    curves = {name: part(diagram, "curve", name) for name in ("Logistic", "EMOS", "ENS", "EPC")}
    x = curves["ENS"]["threshold"]
    gap = np.min([curves[name]["score"] for name in ("Logistic", "EMOS", "EPC")], axis=0) - curves["ENS"]["score"]
    assert length_with_sign(sign_segments(x, gap), 1) == pytest.approx(0.25, abs=0.005)
    assert finding.startswith("Lowest cost: Logistic (45 % of the thresholds); ENS (25 %); all tied (12 %); ")
    assert "Logistic has the smallest Brier score: 0.2057" in finding


@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_ties_are_named_together_in_whatever_order_the_models_come(order):
    same = {name: constant(a=0.3)["a"] for name in order}
    assert plain(to.draw(same, "murphy", band=None)).startswith(
        "a, b and c have the same cost at every threshold. a, b and c have the same Brier score: 0.2900. None differs"
        " significantly from"
    )
    models = constant(a=0.3, b=0.6, c=0.3)
    diagram = to.draw({name: models[name] for name in order}, "murphy", band=None)
    # Below .3 all act and above .6 none does; between, b is lower up to .5, and then the others.
    assert plain(diagram).startswith(
        "Lowest cost: all tied (70 % of the thresholds); b (20 %); a and c (10 %). b has the"
    )
    plane = plain(to.draw({name: models[name] for name in order}, "murphy", style="plane", band=None))
    assert "Lowest MCB: b (0.0100). Highest DSC: a, b and c (0)." in plane


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_two_models_a_draw_has_no_winner(order):
    # .4 and .6 differ between .4 and .6, half of that for the one and half for the other.
    models = constant(a=0.4, b=0.6)
    diagram = to.draw({name: models[name] for name in order}, "murphy", band=None)
    assert plain(diagram) == "a and b each have the lower cost at 10 % of the thresholds; the curves cross at 50.0 %."
    same = dict.fromkeys(order, models["a"])
    assert plain(to.draw(same, "murphy", style="plane", band=None)).startswith(
        "a and b have the same Brier score: 0.26"
    )


def test_a_model_that_is_never_above_another_does_not_win_where_they_tie():
    finding = plain(to.draw(constant(a=0.5, b=0.3, c=0.3), "murphy", band=None))
    assert finding.startswith(
        "At no threshold is the cost of a higher than that of another model, and strictly the lowest at 20 % of the"
        " thresholds."
    )


def test_curves_that_cross_between_two_thresholds_share_what_lies_between():
    x = np.array([0.0, 1.0, 1.0, 2.0])
    one, other, third = np.array([0.0, 1, 0, 0]), np.array([0.75, 0.75, 1, 1]), np.array([2.0, 0, 2, 2])
    # one is lowest up to its crossing with third at 2/3, third beyond; at the jump one again.
    shares = lowest_curves(x, [one, other, third])
    assert shares == {(0,): pytest.approx(2 / 3 - 0.0 + 1 - 0.0, abs=1e-12), (2,): pytest.approx(1 / 3, abs=1e-12)}
    assert lowest_curves_at_points([one, other]) == {(0,): 3.0, (1,): 1.0}


def test_given_thresholds_are_evaluated_at_themselves():
    models = constant(a=0.3, b=0.6)
    # At .4: a does not act and misses half, 2·.6·½ = .6; b acts for nothing in half, 2·.4·½ = .4.
    one = to.draw(models, "murphy", thresholds=[0.4], band=None)
    assert plain(one) == "b has a lower cost than a at the threshold 40.0 %: 0.4000 versus 0.6000."
    assert (
        plain(to.draw(models, "murphy", thresholds=[0.2, 0.8], band=None))
        == "a and b have the same cost at both evaluated thresholds."
    )
    assert (
        plain(to.draw(models, "murphy", thresholds=[0.35, 0.4, 0.45], band=None))
        == "b has a lower cost than a at all 3 evaluated thresholds."
    )
    assert (
        plain(to.draw(models, "murphy", thresholds=[0.1, 0.4, 0.45, 0.55], band=None))
        == "b has a lower cost than a at 2 of 4 evaluated thresholds, a higher cost at 55.0 %, the same cost at 10.0 %."
    )
    assert (
        plain(to.draw(models, "murphy", thresholds=[0.4, 0.55], band=None))
        == "a and b each have the lower cost at 1 of 2 evaluated thresholds: a at 55.0 %, b at 40.0 %."
    )
    steps = plain(to.draw(models, "murphy", thresholds=20, band=None))
    assert steps.startswith(
        "b has a lower cost than a at 4 of 21 evaluated thresholds, a higher cost at 55.0 % and 60.0 %, the same cost"
        " at 15."
    )


def test_what_is_beyond_chance_at_given_thresholds_is_reported_for_these_alone():
    models = two(4000)
    finding = plain(to.draw(models, "murphy", thresholds=[0.2, 0.8], **QUICK))
    assert (
        finding
        == "good has a lower cost than sure at both evaluated thresholds. Significant differences: lower at both."
    )
    alone = plain(to.draw(models, "murphy", thresholds=[0.2], **QUICK))
    assert alone.endswith("Significant differences: lower there.")


def test_many_models_at_one_given_threshold_are_compared_there():
    models = constant(a=0.3, b=0.6, c=0.3)
    finding = plain(to.draw(models, "murphy", thresholds=[0.4], band=None))
    assert finding.startswith("b has the lowest cost at the threshold 40.0 %. b has the smallest Brier score: 0.2600.")
    finding = plain(to.draw(models, "murphy", thresholds=[0.4, 0.55, 0.58], band=None))
    assert finding.startswith("Lowest cost: a and c (2 of 3 evaluated thresholds); b (1).")
    finding = plain(to.draw(models, "murphy", thresholds=[0.2, 0.4], band=None))
    assert finding.startswith(
        "At none of 2 evaluated thresholds is the cost of b higher than that of another model, and strictly the lowest"
        " at 1."
    )
    finding = plain(to.draw(models, "murphy", thresholds=[0.2], band=None))
    assert finding.startswith("a, b and c have the same cost at the threshold 20.0 %.")


def test_one_model_at_given_thresholds_is_described_at_these():
    models = constant(a=0.3)
    assert plain(to.draw(models, "murphy", thresholds=[0.4], band=None)).endswith(
        "At the threshold 40.0 %, miscalibration contributes 0.2000 of the cost 0.6000."
    )
    assert plain(to.draw(models, "murphy", thresholds=[0.4, 0.45], band=None)).endswith(
        "Miscalibration contributes most at 40.0 % (2 thresholds evaluated): 0.2000 of the cost 0.6000."
    )
    assert plain(to.draw(models, "murphy", thresholds=[0.1], band=None)).endswith(
        "lower the cost at the threshold 10.0 %."
    )


def test_few_thresholds_are_marked_and_have_bars_since_one_point_is_no_line():
    diagram = to.draw(two(4000), "murphy", thresholds=[0.2], **QUICK)
    ax = diagram.draw().axes[0]
    assert [line.get_marker() for line in marks(ax, "curves")] == list(MARKERS[:2])
    assert [handle.get_marker() for handle, _ in diagram.legend()[:2]] == list(MARKERS[:2])
    for i, bars in enumerate(marks(ax, "band")):
        band = part(diagram, "band", ("good", "sure")[i])
        np.testing.assert_array_equal(bars.get_segments()[0][:, 1], [band["low"][0], band["high"][0]])
    assert marks(ax, "beyond")[0].get_marker() == "o"
    usual = to.draw(two(), "murphy", **QUICK).draw().axes[0]
    assert {line.get_marker() for line in marks(usual, "curves")} == {"None"}


def test_small_numbers_have_three_digits_and_rounding_is_zero():
    texts = [format_error(x) for x in (0.29, 0.0012, 0.00042137, -0.0000421, 3.2e-8, 1e-17, -1e-17, 0.0, np.inf)]
    assert texts == ["0.2900", "0.0012", "0.000421", "−0.0000421", "3.20e−08", "0", "0", "0", "∞"]
    y, p = [0] * 50 + [1] * 50, [0.499] * 100
    assert "= 0.00000100 miscalibration − 0 discrimination + 0.2500" in plain(to.draw(to.Predictions(y, p), "murphy"))


@pytest.mark.slow
def test_what_differs_lies_behind_the_curves():
    rng = np.random.default_rng(1)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    models = {f"{i}": to.Predictions(y, p ** (1 + i / 2)) for i in range(8)}
    ax = to.draw(models, "murphy", **QUICK).draw().axes[0]
    assert marks(ax, "beyond")
    for under in marks(ax, "beyond"):
        assert under.get_zorder() < min(line.get_zorder() for line in marks(ax, "curves"))
        assert under.get_alpha() < 0.5
        assert under.get_solid_capstyle() == "butt"


def plot_height(figure):
    """Of the height of the figure: the axes without the strips at their foot."""
    figure.draw_without_rendering()
    ax = figure.axes[0]
    strips = sum(child.get_position().height for child in ax.child_axes if name_of(child) == "strip")
    return (ax.get_position().height - strips) * figure.get_size_inches()[1]


@pytest.mark.slow
def test_eight_models_leave_the_curves_their_room():
    models = {f"model {i}": preds for i, preds in enumerate([*two(200).values()] * 4)}
    assert plot_height(to.draw(models, "murphy", **QUICK).draw()) >= 3.0


@pytest.mark.parametrize("name", ["Logistic", "EMOS", "ENS", "EPC"])
def test_the_plane_has_the_parts_of_the_score(name):
    models = rain("Logistic", "EMOS", "ENS", "EPC")
    diagram = to.draw(models, "murphy", style="plane", band=None)
    row = part(diagram, "model", name)
    own = to.measure(models[name], "corp", lens="positive")
    for key in ("mcb", "dsc", "unc", "score"):
        assert row[key][0] == pytest.approx(own.parts[key])
    assert row["mcb"][0] - row["dsc"][0] + row["unc"][0] == pytest.approx(row["score"][0])


def test_the_differences_are_those_of_compare():
    models = two()
    row = part(to.draw(models, "murphy", style="plane", resamples=2000, level=0.9), "model", "sure")
    comparison = to.compare(models["sure"], models["good"], "brier", lens="positive", level=0.9)
    for key, value in (
        ("difference", comparison.difference),
        ("difference_low", comparison.interval.low),
        ("difference_high", comparison.interval.high),
    ):
        assert row[key][0] == pytest.approx(value)


def test_a_plane_of_other_outcomes_is_refused_and_curves_of_them_are_noted():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    models = {name: to.Predictions(y, rng.dirichlet([1, 1, 1], 200)) for name in "ab"}
    with pytest.raises(InputError, match=r"TO205.*class:NAME"):
        to.draw(models, "murphy", style="plane")
    assert "TN263" in [note.code for note in to.draw(models, "murphy", **QUICK).notes]
    assert len(to.draw(models, "murphy", style="plane", lens="classwise").panels["view"]) == 3


def test_an_infinite_log_loss_has_no_mark_and_is_noted():
    models = {"a": to.Predictions([0, 1, 1], [0.2, 0.0, 0.9]), "b": to.Predictions([0, 1, 1], [0.2, 0.6, 0.9])}
    diagram = to.draw(models, "murphy", style="plane", score="log_loss", **QUICK)
    assert "TN124" in [note.code for note in diagram.notes]
    assert len(marks(diagram.draw().axes[0], "marks")) == 1


def test_what_is_drawn_is_the_table():
    diagram = to.draw(two(), "murphy", parts=True, **QUICK)
    ax = diagram.draw().axes[0]
    for line, name in zip(marks(ax, "curves"), ("good", "sure"), strict=True):
        curve = part(diagram, "curve", name)
        np.testing.assert_array_equal(line.get_xdata(), curve["threshold"])
        np.testing.assert_array_equal(line.get_ydata(), curve["score"])
    for which in ("mcb", "dsc"):
        np.testing.assert_array_equal(marks(ax, which)[1].get_ydata(), part(diagram, "curve", "sure")[which])
    np.testing.assert_array_equal(marks(ax, "unc")[0].get_ydata(), part(diagram, "curve", "good")["unc"])
    for shape, name in zip(marks(ax, "band"), ("good", "sure"), strict=True):
        band, corners = part(diagram, "band", name), {tuple(corner) for corner in shape.get_paths()[0].vertices}
        for x, low, high in zip(band["threshold"], band["low"], band["high"], strict=True):
            assert {(x, low), (x, high)} <= corners
    (thick,) = marks(ax, "beyond")
    band_rows = part(diagram, "band", "sure")
    hit = np.abs(band_rows["beyond"]) == 1
    np.testing.assert_array_equal(np.isfinite(thick.get_ydata()), hit)
    np.testing.assert_array_equal(thick.get_ydata()[hit], band_rows["score"][hit])
    plane = to.draw(two(), "murphy", style="plane", **QUICK)
    points = [line.get_xydata()[0].tolist() for line in marks(plane.draw().axes[0], "marks")]
    table = part(plane, "model")
    assert points == np.stack([table["mcb"], table["dsc"]], axis=1).tolist()


def test_on_a_line_of_the_plane_the_score_is_the_one_that_stands_there():
    ax = to.draw(rain("Logistic", "ENS"), "murphy", style="plane", **QUICK).draw().axes[0]
    lines = marks(ax, "lines")[0].get_segments()
    labels = sorted(float(text.get_text()) for text in ax.texts if text.get_gid() == "score")
    unc = part(to.draw(rain("ENS"), "murphy", style="plane", band=None), "model")["unc"][0]
    scores = sorted(unc + line[0, 0] - line[0, 1] for line in lines)
    for label in labels:
        assert np.min(np.abs(np.array(scores) - label)) < 1e-9
    assert all((line[1, 1] - line[0, 1]) == pytest.approx(line[1, 0] - line[0, 0]) for line in lines)


def test_the_grid_lies_within_0_and_1_and_holds_both():
    thresholds = threshold_grid([MurphyCurve(view())])
    assert thresholds[0] == 0
    assert thresholds[-1] == 1
    assert (np.diff(thresholds) > 0).all()

"""The diagram of risk and coverage: its curve by hand, its band, abstentions, clusters, and what is painted."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

import trueodds as to
from tests.data.refused import refused
from tests.diagrams.artists import name_of
from trueodds.diagrams.selective_risk import RiskCoverage
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.selective_risk import selective_risk
from trueodds.lenses.view import View


def answers(n=300, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    c = rng.integers(10, 21, n) / 20
    return to.Predictions.from_confidence(c, rng.random(n) < c**power)


def at(diagram, coverage):
    place = np.searchsorted(diagram.table["coverage"], coverage - 1e-9)
    return {name: column[place] for name, column in diagram.table.items()}


def test_the_curve_by_hand():
    """Surest four: one wrong; the other four: three. Asked were 16, so all answers are half of the questions."""
    view = View(p=[0.9] * 4 + [0.6] * 4, y=[1, 1, 1, 0, 0, 0, 0, 1], name="confidence")
    diagram = RiskCoverage(n_queries=16, resamples=99)([view])
    assert diagram.table["coverage"][-1] == 0.5
    for coverage, risk, threshold in (
        (0.125, 1 / 4, np.nan),  # inside a tie
        (0.25, 1 / 4, 0.9),
        (0.375, 2.5 / 6, np.nan),
        (0.5, 1 / 2, 0.6),
    ):
        row = at(diagram, coverage)
        row_values = (row["coverage"], row["risk"], row["threshold"])
        assert row_values == pytest.approx((coverage, risk, threshold), rel=1e-12, nan_ok=True)
    # AURC: four of 1/4, then (1 + 3j/4)/(4 + j) for j = 1 to 4, over 8
    aurc = (4 * 0.25 + sum((1 + 0.75 * j) / (4 + j) for j in range(1, 5))) / 8
    assert diagram.panels["aurc"].item() == pytest.approx(aurc, rel=1e-12)
    assert diagram.panels["random"].item() == 0.5
    assert (diagram.panels["answered"].item(), diagram.panels["n_queries"].item()) == (8, 16)


@pytest.mark.slow
def test_numbers_are_those_of_the_curve_whatever_kind_the_predictions_are():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 200)
    y = (P.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    for preds in (answers(), to.Predictions(y, P), to.Predictions(y == 2, P[:, 2])):
        diagram, curve = to.draw(preds, "selective_risk"), selective_risk(preds, resamples=0)
        assert diagram.lens == "confidence"
        assert diagram.panels["aurc"].item() == float(curve)
        if len(curve.coverage) <= 200:
            steps = np.searchsorted(diagram.table["coverage"], curve.coverage - 1e-9)
            np.testing.assert_allclose(diagram.table["risk"][steps], curve.risk, rtol=1e-9)
        assert (diagram.table["low"] <= diagram.table["risk"] + 1e-12).mean() > 0.97
        assert diagram.settings["n_queries"] == preds.n


@pytest.mark.slow
def test_a_question_with_several_rows_makes_the_band_as_wide_as_one_row_would():
    """Each row five times over, told as clusters: the widths of single rows, √5 times those of copies."""
    preds = answers(300)
    who = np.repeat(np.arange(300), 5)
    copies = preds[who]
    clustered = to.Predictions.from_confidence(copies.p, copies.y, cluster=who)

    def width(rows):
        row = at(to.draw(rows, "selective_risk", resamples=999), 0.8)
        return row["high"] - row["low"]

    # A 95 % width from 999 draws has a relative sd of about .045.
    assert width(clustered) == pytest.approx(width(preds), rel=0.2)
    assert width(clustered) / width(copies) == pytest.approx(np.sqrt(5), rel=0.2)


@pytest.mark.slow
def test_the_finding_says_whether_the_order_has_sense():
    rng = np.random.default_rng(0)
    assert "better than random order" in to.draw(answers(), "selective_risk").finding
    chance = to.Predictions.from_confidence(rng.random(300), rng.random(300) < 0.7)
    assert "not significantly better than random order" in to.draw(chance, "selective_risk").finding
    against = to.Predictions.from_confidence(1 - answers().p, answers().y)
    assert "worse than random order" in to.draw(against, "selective_risk").finding
    right = to.draw(to.Predictions.from_confidence(rng.random(50), np.ones(50, int)), "selective_risk")
    assert right.finding.endswith("AURC\u00a00 (0 to 0.2591), not significantly better than random order.")


@pytest.mark.slow
def test_a_tally_says_what_the_rows_say():
    preds = answers(2000)
    rows, tallied = to.draw(preds, "selective_risk"), to.draw(to.tally(preds), "selective_risk")
    assert tallied.panels["aurc"].item() == pytest.approx(rows.panels["aurc"].item(), rel=1e-9)
    middle = rows.table["coverage"] > 0.2
    # Limits of 1,000 resamples drawn otherwise: within a fifth of the width.
    for name in ("low", "high"):
        gap = np.abs(rows.table[name] - tallied.table[name])[middle]
        assert (gap < 0.2 * (rows.table["high"] - rows.table["low"])[middle]).all()


def test_other_claims_and_settings_out_of_range_are_refused():
    three = to.Predictions([0, 1, 2], np.eye(3) * 0.7 + 0.1)
    for lens in ("classwise", "class:1", "canonical"):
        with refused("TO205", fix="confidence"):
            to.draw(three, "selective_risk", lens=lens)
    for settings in ({"n_queries": 2}, {"n_queries": 2.5}, {"resamples": 5}, {"level": 1}):
        with refused("TO203"):
            to.draw(three, "selective_risk", **settings)
    with refused("TO205"):
        to.draw({"a": three, "b": three}, "selective_risk")


@pytest.mark.slow
def test_the_picture_holds_curve_band_line_and_the_questions_without_an_answer():
    diagram = to.draw(answers(), "selective_risk", n_queries=400, level=0.9)
    (ax,) = diagram.draw().axes
    painted = {name_of(artist) for artist in [*ax.lines, *ax.collections, *ax.child_axes]}
    assert {"curve", "band", "random", "unanswered", "axis_strip"} <= painted
    labels = [label for _, label in diagram.legend()]
    assert labels == [
        "most confident first", "90\u00a0% band, pointwise",
        f"random order: {100 * diagram.panels['random'].item():.1f}\u00a0%", "no prediction",
    ]  # fmt: skip
    curve = next(line for line in ax.lines if name_of(line) == "curve")
    np.testing.assert_array_equal(curve.get_xydata()[:, 1], diagram.table["risk"])
    bare = diagram.less(*diagram.layers)
    (ax,) = bare.draw().axes
    assert not painted & {name_of(artist) for artist in [*ax.lines, *ax.collections, *ax.child_axes]}


def test_without_abstentions_no_question_is_hatched():
    diagram = to.draw(answers(), "selective_risk")
    assert len(diagram.legend()) == 3
    assert diagram.table["coverage"][-1] == 1.0


@pytest.mark.parametrize(
    "preds",
    [answers(3), to.Predictions.from_confidence([0.5], [1]), to.Predictions.from_confidence([0.9] * 5, [1] * 5)],
)
def test_few_rows_are_drawn_too_and_no_words_meet(preds):
    figure = Figure(figsize=(3, 2.4))
    ax = figure.subplots()
    diagram = to.draw(preds, "selective_risk", ax=ax)
    figure.draw_without_rendering()
    low, high = ax.get_ylim()
    assert low < 0 < diagram.table["risk"].max() + 0.01 <= high
    (axis_strip,) = [child for child in ax.child_axes if name_of(child) == "axis_strip"]
    boxes = sorted((text.get_window_extent() for text in axis_strip.texts), key=lambda box: box.x0)
    assert all(one.x1 <= other.x0 for one, other in pairwise(boxes))


def test_views_alone_are_taken_as_independent_rows():
    preds = answers(100)
    a = RiskCoverage()(as_lens("confidence").views(preds))
    np.testing.assert_array_equal(a.table["low"], to.draw(preds, "selective_risk").table["low"])


def test_thresholds_are_at_the_coverages_that_they_attain():
    """Ties of 20, 55 and 25 of 100: ticks at .2, .75 and 1, and none twice."""
    c = np.repeat([0.9, 0.8, 0.6], [20, 55, 25])
    diagram = to.draw(to.Predictions.from_confidence(c, np.arange(100) % 3 > 0), "selective_risk")
    attained = ~np.isnan(diagram.table["threshold"])
    assert diagram.table["coverage"][attained].tolist() == [0.2, 0.75, 1.0]
    assert diagram.table["threshold"][attained].tolist() == [0.9, 0.8, 0.6]
    (axis_strip,) = [child for child in diagram.draw().axes[0].child_axes if name_of(child) == "axis_strip"]
    ticks = [line.get_xdata()[0] for line in axis_strip.lines if name_of(line) == "tick"]
    assert [text.get_text() for text in axis_strip.texts[1:]] == ["90\u00a0%", "80\u00a0%", "60\u00a0%"]
    assert ticks == [0.2, 0.75, 1.0]


def test_many_confidences_have_thresholds_at_all_coverages():
    """The number of rows is no multiple of the 200 coverages of the curve."""
    rng = np.random.default_rng(0)
    diagram = to.draw(to.Predictions.from_confidence(rng.random(1001), rng.random(1001) < 0.7), "selective_risk")
    assert len(diagram.table["threshold"]) == 200
    assert not np.isnan(diagram.table["threshold"]).any()


def test_a_confidence_below_one_is_not_called_certain():
    c = np.repeat([1.0, 0.99998, 0.9999999, 0.7], 50)
    figure = to.draw(to.Predictions.from_confidence(c, np.ones(200)), "selective_risk").draw()
    (axis_strip,) = [child for child in figure.axes[0].child_axes if name_of(child) == "axis_strip"]
    texts = [text.get_text().replace("\u00a0", " ") for text in axis_strip.texts[1:]]
    assert {"100 %", ">99.999 %", "99.998 %", "70 %"} <= set(texts)
    assert texts.count("100 %") <= 2


def finding(preds, **settings):
    return to.draw(preds, "selective_risk", **settings).finding.replace("\u00a0", " ")


@pytest.mark.slow
def test_the_finding_has_the_risk_at_half_of_the_axis_not_of_the_answers():
    """40 answers of 64: half of the questions are 32 answers, 20 without errors and 12 of the 20 with ten errors."""
    preds = to.Predictions.from_confidence([0.9] * 20 + [0.6] * 20, [1] * 20 + [1, 0] * 10)
    assert "25.0 % over all predictions and 18.8 % at a coverage of 50 %; 24 of 64" in finding(preds, n_queries=64)
    assert "25.0 % over all predictions and 0.0 % over the more confident half." in finding(preds)
    assert "25.0 % over all predictions; 60 of 100 cases" in finding(preds, n_queries=100)  # the curve ends at 40 %


@pytest.mark.slow
def test_abstentions_that_are_not_counted_are_stated():
    rows = [{"c": 0.6 + i % 4 / 10, "correct": i % 3 > 0, "skip": i < 20} for i in range(100)]
    answers_read = to.read_answers(rows, confidence="c", abstained="skip")
    assert "cases without a prediction are not counted" in finding(answers_read.predictions)
    counted = finding(answers_read.predictions, n_queries=answers_read.n_queries)
    assert "20 of 100 cases have no prediction" in counted
    assert "not counted" not in counted
    assert "not counted" not in finding(answers_read.predictions, n_queries=80)  # a number that was stated
    assert "not counted" not in finding(answers())


@pytest.mark.slow
def test_a_shared_legend_has_no_rate_that_differs_between_panels():
    models = {"a": answers(), "b": answers(seed=1, power=3.0)}
    both = to.draw(models, ["selective_risk"])
    rates = both.diagrams[0].panels["random"]
    assert abs(rates[0] - rates[1]) > 0.05
    assert [label for _, label in both.diagrams[0].legend() if "random" in label] == ["random order"]
    alone = to.draw(models["a"], "selective_risk")
    assert [label for _, label in alone.legend() if "random" in label] == [f"random order: {100 * rates[0]:.1f}\u00a0%"]


def test_a_grid_in_a_notebook_is_framed_as_other_results_are():
    html = to.draw({"a": answers(), "b": answers(seed=1)}, ["selective_risk"])._repr_html_()
    assert html.startswith('<div style="color:inherit;background:transparent')
    assert "data:image/svg+xml;base64," in html
    assert 'alt="a, selective risk: ' in html

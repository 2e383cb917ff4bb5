"""Recalibration lines pass through the calibrators' values, represent all rows, and are drawn from the table."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import expit, logit

import trueodds as to
from tests.diagrams.artists import name_of
from tests.reference import columns, frame, golden
from trueodds.core.errors import InputError
from trueodds.diagrams.recalibration_lines import MAX_LINES, MAX_LINES_IN_GRID, RecalibrationLines
from trueodds.lenses.view import View


def reference():
    rows = frame("recalibration/binary.csv")
    return View(rows["p"], rows["y"], name="positive")


def biased(seed, n, name="positive"):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return View(p, rng.random(n) < expit(logit(p) / 1.5), name=name)


def at(diagram, path_point, *, outcome=None):
    t = diagram.table
    mask = t["path_point"] == path_point
    if outcome is not None:
        mask &= t["outcome"] == outcome
    return {name: column[mask] for name, column in t.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


def test_the_reference_path_points():
    want = golden("recalibration/llo_boldness.json")
    diagram = RecalibrationLines()([reference()])
    assert diagram.panels["delta"][0] == pytest.approx(want["delta"], rel=1e-8)
    assert diagram.panels["gamma"][0] == pytest.approx(want["gamma"], rel=1e-8)
    assert at(diagram, "predicted")["posterior"][0] == pytest.approx(want["posterior_cal"], rel=1e-7)
    assert at(diagram, "best_fit")["posterior"][0] == pytest.approx(want["posterior_after_mle"], abs=1e-12)
    for name in ("0.95", "0.9", "0.8"):
        assert at(diagram, name)["posterior"][0] == pytest.approx(float(name), abs=1e-9)
    assert diagram.panels["std_predicted"][0] == pytest.approx(want["sd_x"], rel=1e-12)
    assert diagram.panels["std_last"][0] == pytest.approx(want["boldness"]["0.8"]["sd"], rel=1e-9)


def test_two_scores_by_hand():
    # .8 and .2, of either kind 15 of 20 right: the best fit says 3/4 and 1/4. Four lines: two scores, two outcomes.
    view = View([0.8, 0.2] * 20, [1, 0, 1, 0, 1, 1, 0, 0] * 5, name="positive")
    diagram = RecalibrationLines(posteriors=[])([view])
    assert codes(diagram) == []
    mle = at(diagram, "best_fit")
    np.testing.assert_allclose(mle["probability"], [0.25, 0.75, 0.25, 0.75], rtol=1e-9)
    assert mle["outcome"].tolist() == [True, True, False, False]
    assert mle["n"].tolist() == [5, 15, 15, 5]
    np.testing.assert_allclose(mle["share"], [0.125, 0.375, 0.375, 0.125])
    assert diagram.panels["moved"][0] == pytest.approx(0.05)
    np.testing.assert_allclose(at(diagram, "predicted")["probability"], [0.2, 0.8, 0.2, 0.8], rtol=1e-12)


def test_many_rows_are_groups_that_hold_all_of_them():
    view = biased(0, 3000)
    diagram = RecalibrationLines()([view])
    assert "TN249" in codes(diagram)
    predicted, mle = at(diagram, "predicted"), at(diagram, "best_fit")
    assert len(predicted["line"]) == 2 * MAX_LINES
    assert predicted["n"].sum() == 3000
    assert predicted["share"].sum() == pytest.approx(1)
    q = to.fit(to.Predictions(view.y.astype(int), view.p), "llo").predict_proba(view.p)[:, 1]
    for outcome in (True, False):
        rows = at(diagram, "best_fit", outcome=outcome)
        # Groups of equal weight, within one row, at the mean of their rows.
        assert np.ptp(rows["n"]) <= 1
        assert rows["n"] @ rows["probability"] == pytest.approx(q[view.y == outcome].sum(), rel=1e-9)
    assert mle["probability"].max() < predicted["probability"].max()  # too sure: the best fit draws it in


def test_as_many_predictions_as_lines_are_shown_one_by_one():
    view = biased(1, MAX_LINES)
    diagram = RecalibrationLines(posteriors=[])([view])
    assert "TN249" not in codes(diagram)
    assert sorted(at(diagram, "predicted")["probability"]) == pytest.approx(sorted(view.p), rel=1e-12)


def test_a_calibrated_model_is_moved_little():
    # The change of log odds d has Σ q(1 − q)d² of law χ² with 2 d.f., and a probability changes by q(1 − q)d; so the
    # mean change is at most √(χ²/(4n)), which exceeds √(20/(4n)) with probability e⁻¹⁰. P(unchanged) < .9 where
    # χ²/2 > ln n − ln 9 = 9.3, with probability 9e-5.
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 100_000)
    diagram = RecalibrationLines(posteriors=[])([View(p, rng.random(100_000) < p, name="positive")])
    assert diagram.panels["moved"][0] < np.sqrt(20 / 4 / 100_000)
    assert diagram.panels["posterior_predicted"][0] > 0.9


def test_a_path_point_that_few_rows_cannot_reach_is_left_out_with_a_note():
    diagram = RecalibrationLines()([View([0.3, 0.7] * 4, [0, 1, 0, 1, 0, 1, 1, 0], name="positive")])
    assert codes(diagram) == ["TN250", "TN250"]  # .95 and .9: eight rows reach 8/9
    assert dict.fromkeys(diagram.table["path_point"]) == dict.fromkeys(["predicted", "best_fit", "0.8"])
    assert diagram.panels["path_points"][0] == 3
    diagram.draw()


def test_a_joint_view_has_a_panel_for_each_class():
    rows = frame("recalibration/multi4.csv")
    P, y = columns(rows), rows["y"].astype(int)
    diagram = RecalibrationLines(baseline=0)([View(P, np.eye(4)[y], name="canonical", classes=4)])
    want = golden("recalibration/mcllo.json")["base0"]
    by_class = dict(zip(diagram.panels["title"].tolist(), range(4), strict=True))
    for j, name in enumerate("123"):
        assert diagram.panels["delta"][by_class[name]] == pytest.approx(want["delta"][j], rel=1e-7)
    assert np.isnan(diagram.panels["delta"][by_class["0"]])
    # BIC with 6 parameters: the odds are n³ times the likelihood ratio.
    assert diagram.panels["posterior_predicted"][0] == pytest.approx(
        float(expit(3 * np.log(400) - want["nll_null"] + want["nll_mle"])), rel=1e-6
    )
    assert diagram.panels["posterior_best_fit"][0] == pytest.approx(400**3 / (400**3 + 1), rel=1e-12)
    q = to.fit(to.Predictions(y, P), "mcllo", baseline=0).predict_proba(P)
    for j in range(4):
        t = diagram.table
        mask = (t["view"] == f"class:{j}") & (t["path_point"] == "best_fit") & t["outcome"]
        assert t["weight"][mask] @ t["probability"][mask] == pytest.approx(q[y == j, j].sum(), rel=1e-9)


def test_cells_of_a_tally_are_split_by_outcome():
    p, y = np.repeat([0.25, 0.75], 40), np.tile([1, 0, 1, 0, 1, 1, 0, 1], 10)
    preds = to.Predictions(y, p)
    rows, cells = (to.draw(data, "recalibration_lines", posteriors=[0.8]) for data in (preds, to.tally(preds)))
    for name in ("n", "share", "probability", "posterior"):
        np.testing.assert_allclose(cells.table[name], rows.table[name], rtol=1e-7)


def test_separated_outcomes_are_noted_and_drawn():
    diagram = RecalibrationLines(posteriors=[])([View([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], name="positive")])
    assert "TN515" in codes(diagram)
    diagram.draw()


def test_what_is_drawn_is_the_table_and_outcomes_differ_by_color_and_by_dash():
    diagram = RecalibrationLines()([biased(4, 200)])
    ax = diagram.draw().axes[0]
    # As drawn, from the back to the front.
    lines = sorted((line for line in ax.lines if name_of(line) == "lines"), key=lambda line: line.get_zorder())
    drawn = np.array([line.get_xydata() for line in lines])
    t = diagram.table
    want = np.stack([t["place"], t["probability"]], axis=1).reshape(-1, 5, 2)
    order = np.argsort(want[:, 0, 1], kind="stable")
    np.testing.assert_array_equal(drawn, want[order])
    outcomes = t["outcome"][::5][order]
    colors, dashes = ([value(line) for line in lines] for value in (Line2D.get_color, Line2D.get_linestyle))
    for marks in (colors, dashes):
        assert {m for m, c in zip(marks, outcomes, strict=True) if c}.isdisjoint(
            {m for m, c in zip(marks, outcomes, strict=True) if not c}
        )
    np.testing.assert_allclose([line.get_alpha() for line in lines], t["opacity"][::5][order])


def test_path_points_are_labeled_with_their_posteriors():
    labels = [text.get_text() for text in RecalibrationLines()([biased(5, 500)]).draw().axes[0].get_xticklabels()]
    assert [label.split("\n")[0] for label in labels] == [
        "",
        "predicted",
        "best fit",
        "boldest",
        "boldest",
        "boldest",
        "",
    ]
    assert [label.split("\n")[1] for label in labels[3:6]] == ["95\u00a0%", "90\u00a0%", "80\u00a0%"]


@pytest.mark.parametrize("count", [1, 3])
def test_it_draws_into_axes_that_are_given_and_its_labels_stay_apart(count):
    figure = Figure(figsize=(8, 4))
    left, right = figure.subplots(1, 2)
    views = [biased(c, 200, name=f"class:{c}") for c in range(count)]
    assert RecalibrationLines()(views).draw(right) is right
    assert figure.axes == [left, right]
    assert not left.has_data()
    figure.savefig(io.BytesIO(), format="png")
    for panel in right.child_axes or [right]:
        boxes = [label.get_window_extent() for label in panel.get_xticklabels() if label.get_text()]
        shown = [box for box in boxes if box.width > 1]
        assert all(a.x1 < b.x0 for a, b in pairwise(shown))


def test_exact_zeros_and_ones_are_drawn_as_they_are_scored():
    # 80 of 100 right on either side: the best fit says .8 and .2, and it is that which is drawn.
    p = np.repeat([0.0, 1.0], 100)
    y = np.tile(np.arange(100) < 80, 2) == (p > 0)
    diagram = RecalibrationLines()([View(p, y, name="positive")])
    assert sorted(set(at(diagram, "predicted")["probability"])) == [0, 1]
    np.testing.assert_allclose(at(diagram, "best_fit")["probability"], [0.2, 0.8, 0.2, 0.8], atol=1e-8)
    assert at(diagram, "best_fit")["posterior"][0] == pytest.approx(200 / 201, abs=1e-9)
    recalibrated = at(diagram, "0.8", outcome=True)["probability"]
    fall = np.log(200 / 4)  # of log-likelihood, by what is drawn
    assert 160 * np.log(0.8 / recalibrated[1]) + 40 * np.log(0.2 / recalibrated[0]) == pytest.approx(fall, abs=1e-3)
    assert "TN502" in codes(diagram)  # how many probabilities the floor moved


def test_exact_zeros_of_a_joint_view_are_drawn_as_they_are_scored():
    y = np.arange(300) % 3
    predicted = np.eye(3)[np.where(np.arange(300) % 10 < 8, y, (y + 1 + np.arange(300) // 10 % 2) % 3)]
    diagram = RecalibrationLines()([View(predicted, np.eye(3)[y], name="canonical", classes=3)])
    mle_prob = at(diagram, "best_fit")["probability"]
    assert mle_prob.min() > 0.01
    assert mle_prob.max() < 0.99
    # A maximum of the likelihood with shifts: each class has the mean that came.
    mask = diagram.table["view"] == "class:0"
    mask &= diagram.table["path_point"] == "best_fit"
    assert diagram.table["weight"][mask] @ diagram.table["probability"][mask] == pytest.approx(100, abs=1e-6)


@pytest.mark.parametrize(
    ("p", "y"),
    [([0.3] * 50, [0] * 50), ([0.2, 0.4, 0.6, 0.8] * 50, [0, 0, 1, 1] * 50), ([0.5], [1])],
    ids=["one score, none came", "separated", "one row"],
)
def test_where_no_finite_fit_is_best_none_is_called_best_and_there_are_no_boldest(p, y):
    diagram = RecalibrationLines()([View(p, y, name="positive")])
    assert set(diagram.table["path_point"]) == {"predicted", "fit"}
    assert "TN251" in codes(diagram)
    assert "best fit" not in diagram.finding
    assert "%" not in diagram.finding
    assert np.isnan(diagram.panels["posterior_best_fit"][0])
    assert not any("best" in text.get_text() for text in diagram.draw().axes[0].get_xticklabels())


def test_a_perfect_joint_view_has_no_best_fit():
    Y = np.eye(3)[np.arange(90) % 3]
    diagram = RecalibrationLines()([View(Y, Y, name="canonical", classes=3)])
    assert set(diagram.table["path_point"]) == {"predicted", "fit"}
    assert diagram.finding.endswith(
        "maximize the likelihood. The fit that is drawn instead changes it by 0.0 points on average."
    )


def test_one_score_has_no_boldest_path_points():
    diagram = RecalibrationLines()([View([0.3] * 50, [0] * 40 + [1] * 10, name="positive")])
    assert set(diagram.table["path_point"]) == {"predicted", "best_fit"}
    assert codes(diagram) == ["TN251"]


@pytest.mark.parametrize("seed", range(3))
def test_path_points_of_rare_events_have_the_posterior_that_they_are_named_by(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(-5, 1.5, 4000)
    diagram = RecalibrationLines()([View(expit(x), rng.random(4000) < expit(0.8 * x - 0.3), name="positive")])
    for level in (0.95, 0.9, 0.8):
        assert at(diagram, f"{level:g}")["posterior"][0] == pytest.approx(level, abs=1e-5)


def test_panels_with_fewer_path_points_share_the_places_of_the_others():
    separated = View([0.2, 0.4, 0.6, 0.8] * 50, [0, 0, 1, 1] * 50, name="class:a")
    diagram = RecalibrationLines()([separated, biased(8, 200, name="class:b")])
    t = diagram.table
    assert set(t["place"][t["view"] == "class:a"]) == {0, 1}
    assert set(t["place"][t["view"] == "class:b"]) == {0, 1, 2, 3, 4}
    figure = diagram.draw()
    for ax in figure.axes:
        assert ax.get_xlim()[1] > 4
    assert "best" not in [label.get_text() for label in figure.axes[0].get_xticklabels()]  # of one it is none
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()][-4:-1] == [
        "95\u00a0%",
        "90\u00a0%",
        "80\u00a0%",
    ]


def test_a_grid_has_fewer_lines_and_lines_are_as_wide_as_their_share_is_large():
    diagram = RecalibrationLines(posteriors=[])([biased(c, 400, name=f"class:{c}") for c in range(2)])
    predicted = at(diagram, "predicted")
    assert len(predicted["line"]) == 2 * 2 * MAX_LINES_IN_GRID
    mask = predicted["view"] == "class:0"  # widths are relative to the largest share of a panel
    order = np.argsort(predicted["share"][mask])
    assert (np.diff(predicted["width"][mask][order]) >= 0).all()
    assert np.ptp(RecalibrationLines()([View([0.2] * 9 + [0.6], [0, 1] * 5, name="positive")]).table["width"]) > 0.3


@pytest.mark.slow
def test_beyond_twelve_panels_the_others_have_the_predictions_and_the_fit():
    diagram = RecalibrationLines()([biased(c, 60, name=f"class:{c}") for c in range(14)])
    assert "TN245" in codes(diagram)
    assert diagram.panels["path_points"].tolist() == [5] * 12 + [2] * 2
    assert (np.diff(diagram.panels["moved"]) <= 0).all()
    diagram.draw()


def test_the_baseline_may_be_named_and_is_by_default_the_last():
    rng = np.random.default_rng(9)
    P = rng.dirichlet(np.ones(3), 200)
    preds = to.Predictions(rng.choice(["ant", "bee", "cow"], 200), P, classes=["ant", "bee", "cow"])
    named = to.draw(preds, "recalibration_lines", lens="canonical", baseline="class:bee")
    assert named.settings["baseline"] == 1
    assert np.isnan(named.panels["delta"][named.panels["title"].tolist().index("bee")])
    assert to.draw(preds, "recalibration_lines", lens="canonical").settings["baseline"] == 2
    with pytest.raises(InputError, match="TO203"):
        to.draw(preds, "recalibration_lines", lens="canonical", baseline="class:dog")


def test_the_legend_tells_of_outcomes_that_are_there():
    assert [text for _, text in RecalibrationLines()([View([0.3] * 5, [0] * 5, name="positive")]).legend()] == [
        "no event"
    ]

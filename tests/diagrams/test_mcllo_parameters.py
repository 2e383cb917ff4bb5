"""Shifts and slopes have the reference numbers, their intervals and ellipses hold what they say, and are drawn."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from scipy.special import expit, logit

import trueodds as to
from tests.diagrams.artists import name_of
from tests.reference import columns, frame, golden
from trueodds.core.errors import InputError
from trueodds.diagrams.mcllo_parameters import MclloParameters
from trueodds.lenses.view import View

WIDE = 1.959963984540054


def reference():
    rows = frame("recalibration/multi4.csv")
    return View(columns(rows), np.eye(4)[rows["y"].astype(int)], name="canonical", classes=4)


def honest(seed, n=400, k=3, names="canonical"):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return View(P, np.eye(k)[y], name=names, classes=k)


def estimates(diagram):
    mask = diagram.table["kind"] == "estimate"
    return {name: column[mask] for name, column in diagram.table.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


@pytest.mark.parametrize("baseline", [0, 3])
def test_the_reference_numbers(baseline):
    want = golden("recalibration/mcllo.json")[f"base{baseline}"]
    got = estimates(MclloParameters(baseline=baseline)([reference()]))
    tau, se, gamma, se_gamma = (np.array(want[name]) for name in ("tau", "se_tau", "gamma", "se_gamma"))
    assert got["class"].tolist() == [str(j) for j in want["categories"]]
    np.testing.assert_allclose(got["delta"], want["delta"], rtol=1e-7)
    np.testing.assert_allclose(got["gamma"], gamma, rtol=1e-7)
    np.testing.assert_allclose(got["delta_low"], np.exp(tau - WIDE * se), rtol=1e-6)
    np.testing.assert_allclose(got["delta_high"], np.exp(tau + WIDE * se), rtol=1e-6)
    np.testing.assert_allclose(got["gamma_low"], gamma - WIDE * se_gamma, rtol=1e-6)
    np.testing.assert_allclose(got["gamma_high"], gamma + WIDE * se_gamma, rtol=1e-6)
    m = len(tau)
    cov = np.array(want["cov_tau_gamma"]).reshape(2, m, 2, m)
    for j in range(m):
        deviation = np.array([tau[j], gamma[j] - 1])
        assert got["statistic"][j] == pytest.approx(deviation @ np.linalg.solve(cov[:, j, :, j], deviation), rel=1e-6)
    assert got["outside"].all()


def test_two_scores_by_hand():
    # .8 and .2, 20 rows each, 15 and 5 came: τ = 0, γ = ln 3 / ln 4. Each row tells x²q(1 − q) of γ with x = ln 4 and
    # q = 3/4, and q(1 − q) of τ, and by symmetry they are uncorrelated.
    diagram = MclloParameters(level=0.9)([View([0.8, 0.2] * 20, [1, 0, 1, 0, 1, 1, 0, 0] * 5, name="positive")])
    got = estimates(diagram)
    z, se_tau = 1.6448536269514722, 1 / np.sqrt(40 * 0.1875)
    se_gamma, gamma = se_tau / np.log(4), np.log(3) / np.log(4)
    np.testing.assert_allclose(got["gamma"], gamma, rtol=1e-9)
    np.testing.assert_allclose(got["delta"], 1, rtol=1e-9)
    np.testing.assert_allclose(got["gamma_high"], gamma + z * se_gamma, rtol=1e-8)
    np.testing.assert_allclose(got["delta_low"], np.exp(-z * se_tau), rtol=1e-8)
    # The ellipse of 90 %: χ² with 2 d.f. exceeds −2 ln .1 with that probability.
    outline = diagram.table["gamma"][diagram.table["kind"] == "ellipse"]
    assert outline.max() == pytest.approx(gamma + np.sqrt(-2 * np.log(0.1)) * se_gamma, rel=1e-4)
    assert not got["outside"][0]
    assert "neither is significant" in diagram.finding


def test_every_corner_of_an_ellipse_is_as_far_from_its_estimate():
    table = MclloParameters(level=0.8, baseline=0)([reference()]).table
    want = golden("recalibration/mcllo.json")["base0"]
    cov = np.array(want["cov_tau_gamma"]).reshape(2, 3, 2, 3)
    for j, name in enumerate(("1", "2", "3")):
        mask = (table["kind"] == "ellipse") & (table["class"] == name)
        deviation = np.stack([np.log(table["delta"][mask]) - want["tau"][j], table["gamma"][mask] - want["gamma"][j]])
        distances = (deviation * np.linalg.solve(cov[:, j, :, j], deviation)).sum(axis=0)
        np.testing.assert_allclose(distances, -2 * np.log(0.2), rtol=1e-5)


@pytest.mark.slow
def test_an_ellipse_misses_a_right_class_as_often_as_it_says():
    # 400 calibrated data sets of 400 rows: misses of one class are Binomial(400, .1) up to terms in 1/n;
    # its 99.9 % range is 22 to 61.
    missed = sum(bool(estimates(MclloParameters(level=0.9)([honest(seed)]))["outside"][0]) for seed in range(400))
    assert 22 <= missed <= 61


def test_a_class_predicted_too_seldom_and_too_confidently_is_reported():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 6000)
    y = (truth.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1)
    predicted = truth**1.8 * [0.4, 1, 1]  # class 0 is underpredicted relative to class 2; all are overconfident
    predicted /= predicted.sum(axis=1, keepdims=True)
    diagram = MclloParameters(classes=["ant", "bee", "cow"])([View(predicted, np.eye(3)[y], name="canonical")])
    got = estimates(diagram)
    assert got["class"].tolist() == ["ant", "bee"]
    # δ = .4^(−1/1.8), γ = 1/1.8; both within four standard errors
    se = np.log(got["delta_high"] / got["delta"]) / WIDE
    assert abs(np.log(got["delta"][0]) - np.log(2.5) / 1.8) < 4 * se[0]
    assert abs(got["gamma"][0] - 1 / 1.8) < 4 * (got["gamma_high"][0] - got["gamma"][0]) / WIDE
    assert "2 overconfident, 1 underpredicted" in diagram.finding


def test_a_binary_view_is_the_two_parameters_of_llo():
    view = View(*_biased(1, 300), name="class:cat")
    got = estimates(MclloParameters()([view]))
    calibration_map = to.fit(to.Predictions(view.y.astype(int), view.p), "llo").calibration_map
    assert got["class"].tolist() == ["cat"]
    np.testing.assert_allclose(
        [got["delta"][0], got["gamma"][0]], [calibration_map.delta, calibration_map.gamma], rtol=1e-6
    )


def _biased(seed, n):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    return p, rng.random(n) < expit(logit(p) / 1.5)


def test_classes_have_the_names_of_the_data():
    view = honest(2)
    names = ["ant", "bee", "cow"]
    preds = to.Predictions([names[j] for j in view.y.argmax(axis=1)], view.p, classes=names)
    diagram = to.draw(preds, "mcllo_parameters", baseline=0)
    assert diagram.lens == "canonical"
    assert estimates(diagram)["class"].tolist() == ["bee", "cow"]
    assert diagram.panels["baseline"][0] == "ant"
    assert diagram.settings["baseline"] == 0


@pytest.mark.parametrize(
    "view",
    [
        View([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], name="positive"),  # separated
        View([0.5] * 4, [0, 1, 0, 1], name="positive"),  # one score
        View([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7]] * 3, np.eye(3)[[0, 1, 1] * 3], name="canonical"),
    ],
    ids=["separated", "one score", "a class never came"],
)
def test_where_nothing_finite_is_best_the_picture_is_empty_and_says_so(view):
    diagram = MclloParameters()([view])
    assert codes(diagram) == ["TN251"]
    assert len(diagram.table["delta"]) == 0
    assert "no finite" in diagram.finding
    assert "no finite" in " ".join(text.get_text() for text in diagram.draw().axes[0].texts)


@pytest.mark.parametrize("min_prob", [1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize(
    "view",
    [
        View([1.0] * 60 + [0.0] * 40, [1] * 60 + [0] * 40, name="positive"),
        View(np.eye(3)[np.arange(90) % 3], np.eye(3)[np.arange(90) % 3], name="canonical", classes=3),
    ],
    ids=["binary", "one-hot"],
)
def test_perfect_predictions_have_no_finite_parameters(view, min_prob, tmp_path):
    diagram = MclloParameters(min_prob=min_prob)([view])
    assert "TN251" in codes(diagram)
    assert len(diagram.table["delta"]) == 0
    assert "no finite" in diagram.finding
    assert diagram.legend() == []
    diagram.save(tmp_path / "x.png")


@pytest.mark.slow
def test_shifts_beyond_floating_point_are_no_fit():
    # Scores within 1e-3 of each other, around .1: γ is told to within hundreds, and so is τ.
    rng = np.random.default_rng(0)
    p = 0.1 + 1e-4 * rng.uniform(-1, 1, 200)
    diagram = MclloParameters()([View(p, rng.random(200) < 0.1, name="positive")])
    assert codes(diagram) == ["TN251"]
    diagram.draw().savefig(io.BytesIO())


def test_tau_is_the_log_of_delta():
    table = MclloParameters()([honest(1)]).table
    np.testing.assert_allclose(np.exp(table["tau"]), table["delta"], rtol=1e-12)


def test_the_finding_counts_only_what_is_outside_its_ellipse():
    # Own intervals of 5 % miss more often than ellipses of 5 %: somewhere among 60 calibrated sets one is alone.
    alone = 0
    for seed in range(60):
        diagram = MclloParameters()([honest(seed)])
        got = estimates(diagram)
        outside = (got["delta_low"] > 1) | (got["delta_high"] < 1) | (got["gamma_low"] > 1) | (got["gamma_high"] < 1)
        if not got["outside"].any():
            alone += outside.any()
            assert diagram.finding == "None of 2 classes is significantly miscalibrated at 5\u00a0% each."
    assert alone


def test_the_baseline_may_be_named_and_of_two_classes_is_the_first():
    names = ["ant", "bee", "cow"]
    preds = to.Predictions([names[j] for j in honest(2).y.argmax(axis=1)], honest(2).p, classes=names)
    named = to.draw(preds, "mcllo_parameters", baseline="class:bee")
    assert estimates(named)["class"].tolist() == ["ant", "cow"]
    assert named.settings["baseline"] == 1
    assert estimates(to.draw(preds, "mcllo_parameters"))["class"].tolist() == ["ant", "bee"]
    two = View(*(np.stack([1 - column, column], axis=1) for column in _biased(1, 100)), name="canonical", classes=2)
    assert estimates(MclloParameters()([two]))["class"].tolist() == ["1"]
    with pytest.raises(InputError, match="TO203"):
        to.draw(preds, "mcllo_parameters", baseline="class:dog")
    binary = View(*_biased(1, 100), name="class:cat")
    assert estimates(MclloParameters(baseline="class:ant")([binary]))["class"].tolist() == ["cat"]


def test_names_sides_and_the_legend_follow_what_is_drawn():
    full = MclloParameters()([honest(4, n=200, k=4)])
    words = {text.get_text() for text in full.draw().axes[0].texts}
    for layer, gone in (("names", {"0", "1", "2"}), ("sides", {"↑ underconfident", "← overpredicted"})):
        assert words & gone
        assert not {text.get_text() for text in full.less(layer).draw().axes[0].texts} & gone
    assert any("ellipse" in text for _, text in full.legend())
    assert any("region" in text for _, text in full.less("ellipses").legend())
    assert not any("(1, 1)" in text for _, text in full.less("marks").legend())
    assert full.less(*full.layers).legend() == []
    full.less(*full.layers).draw().savefig(io.BytesIO())


def test_of_many_classes_only_those_outside_are_filled_and_lightly():
    diagram = MclloParameters()([honest(8, n=3000, k=20)])
    ax = diagram.draw().axes[0]
    fills = [artist for artist in ax.collections if name_of(artist) == "fills"]
    assert sum(len(artist.get_paths()) for artist in fills) == estimates(diagram)["outside"].sum() < 19
    assert all(artist.get_alpha() <= 0.05 for artist in fills)
    shapes = [artist for artist in ax.collections if name_of(artist) == "ellipses"]
    assert sum(len(artist.get_paths()) for artist in shapes) == 19


def test_zeros_are_floored_with_a_note():
    P = honest(3, n=120).p.copy()
    P[:5] = [0.0, 0.6, 0.4]
    view = View(P, np.eye(3)[np.arange(120) % 3], name="canonical")
    assert "TN502" in codes(MclloParameters(min_prob=1e-3)([view]))


def test_a_name_for_each_class():
    with pytest.raises(InputError, match="TO203"):
        MclloParameters(classes=["one", "two"])([honest(0)])
    with pytest.raises(InputError, match="TO203"):
        MclloParameters(baseline=3)([honest(0)])


def test_what_is_drawn_is_the_table():
    diagram = MclloParameters()([honest(4, n=200, k=4)])
    ax = diagram.draw().axes[0]
    got = estimates(diagram)
    assert ax.get_xscale() == "log"
    drawn = np.concatenate([line.get_xydata() for line in ax.lines if name_of(line) == "estimates"])
    want = np.stack([got["delta"], got["gamma"]], axis=1)
    np.testing.assert_array_equal(drawn[np.lexsort(drawn.T)], want[np.lexsort(want.T)])
    shapes = [c for c in ax.collections if isinstance(c, PolyCollection) and name_of(c) == "ellipses"]
    assert sum(len(shape.get_paths()) for shape in shapes) == 3
    without = MclloParameters(ellipses=False)([honest(4, n=200, k=4)]).draw().axes[0]
    assert not [c for c in without.collections if name_of(c) == "ellipses"]


def test_a_name_is_nearest_to_its_own_estimate_or_joined_to_it_by_a_line():
    diagram = MclloParameters(classes=[f"class {c}" for c in range(10)])([honest(5, n=3000, k=10)])
    figure = diagram.draw()
    figure.canvas.draw()
    ax, got = figure.axes[0], estimates(diagram)
    points = ax.transData.transform(np.stack([got["delta"], got["gamma"]], axis=1))
    names = [text for text in ax.texts if text.get_text().startswith("class ")]
    assert len(names) == 9
    assert {text.arrow_patch is None for text in names} == {True, False}
    for text in names:
        own = list(got["class"]).index(text.get_text())
        assert text.xy == (got["delta"][own], got["gamma"][own])
        if text.arrow_patch is not None:
            continue
        box = text.get_window_extent()
        away = [np.hypot(max(box.x0 - x, x - box.x1, 0), max(box.y0 - y, y - box.y1, 0)) for x, y in points]
        assert int(np.argmin(away)) == own

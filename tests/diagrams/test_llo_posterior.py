"""The map over shift and slope has the reference numbers and correct contours, and it draws what it contains."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.special import expit, logit

import trueodds as to
from tests.diagrams.artists import name_of
from tests.reference import frame, golden
from trueodds.diagrams.llo_likelihood import LloLikelihood
from trueodds.diagrams.llo_posterior import LloPosterior
from trueodds.lenses.view import View


def reference():
    rows = frame("recalibration/binary.csv")
    return View(rows["p"], rows["y"], name="positive")


def biased(seed, n, power=1.3, name="positive"):
    """Odds are said with their log `power` times too large."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return View(p, rng.random(n) < expit(logit(p) / power), name=name)


def rows_of(diagram, kind, level=None):
    t = diagram.table
    mask = t["kind"] == kind
    if level is not None:
        mask &= t["level"] == level
    return {name: column[mask] for name, column in t.items()}


def codes(diagram):
    return [note.code for note in diagram.notes]


def test_the_reference_numbers():
    want = golden("recalibration/llo_boldness.json")
    diagram = LloPosterior(posteriors=(0.99, 0.95, 0.9, 0.8), resolution=5)([reference()])
    mle, identity = rows_of(diagram, "best_fit"), rows_of(diagram, "identity")
    assert mle["delta"][0] == pytest.approx(want["delta"], rel=1e-8)
    assert mle["gamma"][0] == pytest.approx(want["gamma"], rel=1e-8)
    assert mle["posterior"][0] == pytest.approx(want["posterior_after_mle"], abs=1e-12)
    assert mle["loglik"][0] == pytest.approx(want["ll1"], rel=1e-12)
    assert identity["posterior"][0] == pytest.approx(want["posterior_cal"], rel=1e-8)
    assert identity["loglik"][0] == pytest.approx(want["ll0"], rel=1e-12)
    assert diagram.panels["posterior_predicted"][0] == identity["posterior"][0]
    for level, bold in want["boldness"].items():
        mark = rows_of(diagram, "boldest", float(level))
        assert (mark["delta"][0], mark["gamma"][0]) == pytest.approx((bold["delta"], bold["gamma"]), abs=1e-7)
        assert mark["posterior"][0] == pytest.approx(float(level), abs=1e-9)


@pytest.mark.parametrize("level", ["0.99", "0.95", "0.9", "0.8"])
def test_the_boldest_maps_of_the_reference_lie_on_their_contours(level):
    bold, plane = golden("recalibration/llo_boldness.json")["boldness"][level], LloLikelihood.from_view(reference())
    theta = np.array([np.log(bold["delta"]), bold["gamma"]])
    assert float(plane.posterior(plane.log_likelihood_drop(theta))) == pytest.approx(float(level), abs=1e-6)


def test_a_posterior_by_hand():
    # .7 and .3, 20 rows each, 15 and 5 events: the best fit is τ = 0, q = 3/4. Unchanged, the log-likelihood is
    # 30 ln .7 + 10 ln .3, after the best fit 30 ln .75 + 10 ln .25, so P = 1/(1 + exp(fall)/40).
    view = View([0.7, 0.3] * 20, [1, 0, 1, 0, 1, 0, 0, 1] * 5, name="positive")
    fall = 30 * np.log(0.75 / 0.7) + 10 * np.log(0.25 / 0.3)
    identity = rows_of(LloPosterior(resolution=3)([view]), "identity")
    assert identity["posterior"][0] == pytest.approx(1 / (1 + np.exp(fall) / 40), abs=1e-12)
    assert identity["loglik"][0] == pytest.approx(30 * np.log(0.7) + 10 * np.log(0.3), abs=1e-12)


def test_every_point_of_the_map_is_the_posterior_there():
    view = biased(0, 300)
    x = logit(view.p)
    t = rows_of(LloPosterior(resolution=9)([view]), "grid")
    assert len(t["delta"]) == 81
    q = expit(np.log(t["delta"]) + t["gamma"] * x[:, None])
    loglik = (view.y @ np.log(q)) + (1 - view.y) @ np.log1p(-q)
    np.testing.assert_allclose(t["loglik"], loglik, rtol=1e-10)
    top = rows_of(LloPosterior(resolution=2)([view]), "best_fit")["loglik"][0]
    np.testing.assert_allclose(t["posterior"], 1 / (1 + np.exp(top - loglik) / 300), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("n", [400, 20_000])
def test_contours_have_their_posterior(n):
    # 20,000 scores are 2,048 groups: the contour of 1e5 scores was right to 3e-6, so 1e-4 leaves room for fewer.
    plane = LloLikelihood.from_view(biased(1, n))
    for level in (0.95, 0.5):
        line = plane.posterior_contour(level)
        got = [float(plane.posterior(plane.log_likelihood_drop(theta))) for theta in line[::20]]
        np.testing.assert_allclose(got, level, atol=1e-8 if n == 400 else 1e-4)
        np.testing.assert_allclose(line[0], line[-1], atol=1e-9)


def test_the_boldest_map_of_groups_is_that_of_all_rows():
    view = biased(2, 20_000)
    mark = rows_of(LloPosterior(posteriors=[0.9], resolution=2)([view]), "boldest")
    calibrator = to.fit(to.Predictions(view.y.astype(int), view.p), "boldness", posterior=0.9)
    assert mark["delta"][0] == pytest.approx(calibrator.calibration_map.delta, rel=1e-4)
    assert mark["gamma"][0] == pytest.approx(calibrator.calibration_map.gamma, rel=1e-4)


@pytest.mark.slow
def test_a_calibrated_model_is_seldom_called_improbable():
    # Of calibrated models the fall is χ²/2 with 2 d.f., exponential: P(unchanged) < 1/2 where it exceeds ln n, which
    # happens with probability 1/n = 1/200. Of 300 sets at most 7 do, with probability 1 − 2e-4.
    below = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, 200)
        plane = LloLikelihood.from_view(View(p, rng.random(200) < p))
        below += float(plane.posterior(plane.log_likelihood_drop(np.array([0.0, 1.0])))) < 0.5
    assert below <= 7


def test_a_prior_moves_the_posterior_by_its_log_odds():
    even, doubtful = (LloPosterior(prior=prior, resolution=2)([biased(3, 200)]) for prior in (0.5, 0.1))
    a, b = (logit(rows_of(diagram, "identity")["posterior"][0]) for diagram in (even, doubtful))
    assert b - a == pytest.approx(logit(0.1), abs=1e-9)


@pytest.mark.parametrize(("p", "y"), [([0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1]), ([0.5] * 4, [0, 1, 0, 1]), ([0.5], [1])])
def test_where_nothing_finite_is_best_the_picture_is_empty_and_says_so(p, y):
    diagram = LloPosterior()([View(p, y, name="positive")])
    assert codes(diagram) == ["TN251"]
    assert len(diagram.table["delta"]) == 0
    assert "no finite shift" in diagram.finding
    message = " ".join(text.get_text() for text in diagram.draw().axes[0].texts)
    assert "no finite shift" in message


def test_what_few_rows_cannot_reach_is_left_out_with_a_note():
    # 1/(1 + 1/n) is 8/9 for 8 rows.
    diagram = LloPosterior(posteriors=(0.95, 0.8), resolution=3)([View([0.3, 0.7] * 4, [0, 1, 0, 1, 0, 1, 1, 0])])
    assert codes(diagram) == ["TN250"]
    assert set(diagram.table["level"][diagram.table["kind"] == "contour"]) == {0.8}
    diagram.draw()


def test_the_legend_names_the_contours_that_are_drawn():
    # 15/16 is the most that 15 rows can say.
    rng = np.random.default_rng(5)
    p = rng.uniform(0.1, 0.9, 15)
    diagram = LloPosterior(resolution=5)([View(p, rng.random(15) < p, name="positive")])
    assert codes(diagram) == ["TN250"]
    assert "posterior 90, 80\u00a0%" in [text for _, text in diagram.legend()]
    one = LloPosterior(posteriors=(0.95, 0.8), resolution=3)([View([0.3, 0.7] * 4, [0, 1, 0, 1, 0, 1, 1, 0])])
    assert [text for _, text in one.legend()][1] == "posterior 80\u00a0%"


def test_an_empty_picture_explains_nothing():
    diagram = LloPosterior()([View([0.5] * 4, [0, 1, 0, 1], name="positive")])
    assert diagram.legend() == []
    diagram.draw().savefig(io.BytesIO())


@pytest.mark.slow
def test_beyond_twelve_views_the_others_have_no_map():
    diagram = LloPosterior(resolution=4)([biased(c, 60, name=f"class:{c}") for c in range(14)])
    assert "TN245" in codes(diagram)
    assert len(diagram.panels["view"]) == 14
    mapped = set(diagram.table["view"][diagram.table["kind"] == "grid"])
    assert mapped == set(diagram.panels["view"][:12])
    assert (
        set(rows_of(diagram, "best_fit")["view"])
        == set(rows_of(diagram, "identity")["view"])
        == set(diagram.panels["view"])
    )
    assert (np.diff(diagram.panels["posterior_predicted"]) >= 0).all()


def test_contours_and_boldest_maps_of_rare_events_are_where_they_say():
    rng = np.random.default_rng(1)
    x = rng.normal(-5, 1.5, 4000)
    view = View(expit(x), rng.random(4000) < expit(0.8 * x - 0.3), name="positive")
    plane, diagram = LloLikelihood.from_view(view), LloPosterior(resolution=2)([view])
    for level in (0.95, 0.9, 0.8):
        mark, line = rows_of(diagram, "boldest", level), rows_of(diagram, "contour", level)
        assert mark["posterior"][0] == pytest.approx(level, abs=1e-5)
        points = np.stack([np.log(line["delta"]), line["gamma"]], axis=1)[::20]
        np.testing.assert_allclose(
            [plane.posterior(plane.log_likelihood_drop(point)) for point in points], level, atol=1e-4
        )


def test_a_min_prob_that_moves_probabilities_is_noted():
    view = View([0.0, 0.3, 0.7, 1.0] * 10, [0, 0, 1, 1, 0, 1, 0, 1] * 5, name="positive")
    assert "TN502" in codes(LloPosterior(resolution=3, min_prob=1e-4)([view]))


def test_what_is_drawn_is_the_table():
    diagram = LloPosterior(resolution=7)([biased(5, 300)])
    ax = diagram.draw().axes[0]
    assert ax.get_xscale() == "log"
    lines = [line for line in ax.lines if name_of(line) == "contour"]
    for line, level in zip(lines, (0.95, 0.9, 0.8), strict=True):
        contour = rows_of(diagram, "contour", level)
        np.testing.assert_array_equal(line.get_xdata(), contour["delta"])
        np.testing.assert_array_equal(line.get_ydata(), contour["gamma"])
    for kind in ("best_fit", "boldest", "identity"):
        (mark,) = (line for line in ax.lines if name_of(line) == kind)
        np.testing.assert_array_equal(mark.get_xdata(), rows_of(diagram, kind)["delta"])


def test_an_identity_that_lies_far_off_is_pointed_to_from_the_edge():
    diagram = LloPosterior(resolution=4)([biased(6, 20_000, power=3.0)])
    assert not diagram.panels["identity_inside"][0]
    ax = diagram.draw().axes[0]
    assert "outside" in " ".join(text.get_text() for text in ax.texts)
    (mark,) = (line for line in ax.lines if name_of(line) == "identity")
    assert mark.get_ydata()[0] == diagram.panels["gamma_high"][0]

"""The cumulative diagram: path by hand, values of the tests, coverage of the band, steepest segment, and drawing."""

import numpy as np
import pytest

import trueodds as to
from tests import reference
from tests.diagrams.artists import name_of
from tests.diagrams.test_drawing import classwise, marks
from trueodds.diagrams._style.formatting import format_range
from trueodds.diagrams.cumulative import (
    MAX_VERTICES,
    Cumulative,
    CumulativeResiduals,
    ResidualSegment,
    steepest_segment,
)
from trueodds.hypotests.cumulative import ECCE, KS
from trueodds.lenses.view import View


def codes(diagram):
    return [note.code for note in diagram.notes]


def part(diagram, name):
    mask = diagram.table["part"] == name
    return {key: column[mask] for key, column in diagram.table.items()}


def overconfident_view(n=3000, seed=0):
    """Calibrated up to 80 %, overconfident by 15 points above."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.3, 1.0, n)
    return View(p, (rng.random(n) < p - 0.15 * (p > 0.8)).astype(float), name="confidence")


def test_the_cumulative_residuals_by_hand():
    # residuals by rising score: +.8 at .2, −.3 and −.6 and +.2 in between, ties at .6: −.6 + .4 = −.2 from two rows
    diagram = Cumulative()([View([0.6, 0.2, 0.6, 0.3, 0.8], [0, 1, 1, 0, 1], name="positive")])
    curve = part(diagram, "curve")
    assert curve["share_low"] == pytest.approx([0, 0.2, 0.4, 0.8, 1])
    assert curve["score_low"] == pytest.approx([0.2, 0.2, 0.3, 0.6, 0.8])
    assert curve["difference"] == pytest.approx([0, 0.16, 0.1, 0.06, 0.1], abs=1e-15)
    ends = part(diagram, "extreme")
    assert ends["share_low"] == pytest.approx([0, 0.2])
    assert ends["difference"] == pytest.approx([0, 0.16])
    assert diagram.panels["ecce_mad"][0] == pytest.approx(0.16)
    assert diagram.panels["ecce_r"][0] == pytest.approx(0.16)
    # σ² = (.16 + .21 + .24 + .24 + .16) / 25
    assert diagram.panels["null_standard_error"][0] == pytest.approx(np.sqrt(1.01) / 5)
    assert diagram.panels["band"][0] == pytest.approx(2.2414 * np.sqrt(1.01) / 5, rel=1e-4)


def test_the_reference_values_of_500_rows():
    # golden c.ecce_*: the authors' code (ecevecce) gives the same
    known, rows = reference.estimators(), reference.frame("estimators/c_binary500.csv")
    panels = Cumulative()([View(rows["p"], rows["y"], name="positive")]).panels
    for name, key in (
        ("ecce_mad", "c.ecce_mad_eq_ks"),
        ("ecce_r", "c.ecce_r"),
        ("null_standard_error", "c.ecce_sigma_n"),
    ):
        assert panels[name][0] == pytest.approx(known[key]["value"], rel=1e-12)
    for name, key in (("pvalue_mad", "c.ecce_mad_pvalue"), ("pvalue_r", "c.ecce_r_pvalue")):
        assert panels[name][0] == pytest.approx(known[key]["value"], rel=1e-10)


def test_equal_scores_are_one_step_whatever_the_order_of_the_rows():
    # golden c2.ecce_*.tie_blocks
    known, rows = reference.estimators(), reference.frame("estimators/c2_binary500_ties.csv")
    diagram = Cumulative()([View(rows["p"], rows["y"], name="positive")])
    for name in ("ecce_mad", "ecce_r"):
        assert diagram.panels[name][0] == pytest.approx(known[f"c2.{name}.tie_blocks"]["value"], rel=1e-12)
    order = np.random.default_rng(0).permutation(len(rows["p"]))
    reordered = Cumulative()([View(rows["p"][order], rows["y"][order], name="positive")])
    np.testing.assert_allclose(reordered.table["difference"], diagram.table["difference"], atol=1e-15)


def test_errors_and_p_values_are_those_of_the_tests():
    view = overconfident_view(500)
    panels = Cumulative()([view]).panels
    for name, p, test in (("ecce_mad", "pvalue_mad", KS(start="below")), ("ecce_r", "pvalue_r", ECCE())):
        result = test.evaluate(view)
        assert panels[name][0] == result.effect
        assert panels[p][0] == pytest.approx(result.pvalue, rel=1e-12)


@pytest.mark.slow
def test_calibrated_residuals_stay_in_the_band_as_often_as_the_level_says():
    # Of 1,000 calibrated data sets those beyond a 90 % band are Binomial(1000, .1): 70 to 132 in 99.9 % of cases. The
    # path is evaluated at its steps only, so its maximum is about .58 √.2 fewer steps: at n = 800 some .4 % of sets
    # fewer are beyond.
    rng, beyond, named = np.random.default_rng(1), 0, 0
    for _ in range(1000):
        p = rng.uniform(0.1, 0.9, 800)
        cumulative_residuals = CumulativeResiduals(View(p, (rng.random(800) < p).astype(float)), 0.9)
        beyond += np.abs(cumulative_residuals.residual_path).max() > cumulative_residuals.null_bound
        named += cumulative_residuals.significant_segment is not None
    assert 66 <= beyond <= 132
    assert 66 <= named <= 132  # a segment is named if and only if the range is significant


def test_the_steepest_segment_by_hand():
    # Slopes 0, −1, −1/30: with .1 for chance the fall of .3 over .3 is sure of (.3 − .1)/.3,
    # with the tail (.31 − .1)/.6.
    x, y = np.array([0, 0.4, 0.7, 1]), np.array([0, 0, -0.3, -0.31])
    assert steepest_segment(x, y, 0.1) == ResidualSegment(1, 2)
    assert steepest_segment(x, -y, 0.1) == ResidualSegment(1, 2)
    assert steepest_segment(x, y, 0.31) is None
    assert steepest_segment(x, y, 0.305) == ResidualSegment(1, 3)  # nothing shorter is beyond chance
    assert steepest_segment(x, np.zeros(4), 0.0) is None


def test_the_steepest_segment_is_what_trying_all_of_them_finds():
    rng = np.random.default_rng(2)
    for _ in range(20):
        x = np.concatenate([[0], np.cumsum(rng.random(40) + 0.01)])
        y = np.concatenate([[0], np.cumsum(rng.normal(0, 1, 40))])
        rise, run = np.abs(y[None] - y[:, None]), x[None] - x[:, None]
        excess_slope = np.where(run > 0, (rise - 2.5) / np.where(run > 0, run, 1), -np.inf)
        segment = steepest_segment(x, y, 2.5)
        assert (segment is None) == (excess_slope.max() <= 0)
        if segment:
            assert excess_slope[segment.start, segment.stop] == pytest.approx(excess_slope.max(), rel=1e-9)


def test_where_it_falls_is_put_in_words():
    diagram = Cumulative()([overconfident_view()])
    row = part(diagram, "segment")
    assert (row["score_low"][0], row["score_high"][0]) == pytest.approx((0.8, 1.0), abs=0.02)
    assert row["slope"][0] == pytest.approx(-0.15, abs=0.05)
    assert row["slope"][0] == pytest.approx(row["difference"][0] / (row["share_high"] - row["share_low"])[0])
    finding = diagram.finding.replace("\u00a0", " ")
    assert finding.startswith(
        f"Steepest segment {format_range(row['score_low'][0], row['score_high'][0], 'between {} % and {}')}".replace(
            "\u00a0", " "
        )
    )
    assert f": overconfident by {-100 * row['slope'][0]:.0f} points (slope −0.1" in finding
    assert ". ECCE-MAD" in finding
    assert finding.endswith("(p < 0.001).")
    other = Cumulative()([View(1 - overconfident_view().p, 1 - overconfident_view().y, name="positive")])
    assert ": underpredicts by" in other.finding


def test_a_calibrated_model_is_not_accused():
    p = np.repeat([0.25, 0.5, 0.75], 40)
    y = np.concatenate([np.arange(40) < 10, np.arange(40) < 20, np.arange(40) < 30]).astype(float)
    diagram = Cumulative()([View(p, y, name="positive")])
    assert diagram.finding.replace("\u00a0", " ") == "Consistent with calibration: ECCE-MAD 0 points (p = 1.00)."
    assert not len(part(diagram, "segment")["slope"])
    assert np.isnan(diagram.panels["slope"][0])


@pytest.mark.parametrize("n", [MAX_VERTICES - 1, MAX_VERTICES, 50_000])
def test_of_many_scores_the_line_keeps_its_extremes(n):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    view = View(p, (rng.random(n) < p).astype(float), name="positive")
    diagram = Cumulative()([view])
    curve, cumulative_residuals = part(diagram, "curve"), CumulativeResiduals(view, 0.95)
    assert len(curve["difference"]) <= MAX_VERTICES
    assert (len(curve["difference"]) == n + 1) == (n < MAX_VERTICES)
    assert ("TN261" in codes(diagram)) == (n >= MAX_VERTICES)
    assert (curve["difference"].min(), curve["difference"].max()) == (
        cumulative_residuals.residual_path.min(),
        cumulative_residuals.residual_path.max(),
    )
    assert (curve["share_low"][0], curve["share_low"][-1]) == (0, 1)
    assert curve["difference"][-1] == cumulative_residuals.residual_path[-1]
    # between the points that are kept the path deviates no farther than they do within their share of the rows
    drawn = np.interp(cumulative_residuals.row_share, curve["share_low"], curve["difference"])
    assert np.abs(drawn - cumulative_residuals.residual_path).max() < 0.3 * cumulative_residuals.null_standard_error


def test_scores_are_ticked_where_the_rows_up_to_them_end():
    diagram = Cumulative()([View([0.05, 0.1, 0.3, 0.5, 0.85], [0, 0, 1, 0, 1], name="positive")])
    ticks = part(diagram, "tick")
    shares = dict(zip(ticks["score_low"].tolist(), ticks["share_low"].tolist(), strict=True))
    assert shares == pytest.approx(
        {0.5: 0.8, 0.1: 0.4, 0.2: 0.4, 0.8: 0.8, 0.7: 0.8, 0.3: 0.6, 0.6: 0.8, 0.4: 0.6, 0.05: 0.2}
    )


def test_a_weight_of_two_is_two_rows_for_the_line_and_more_for_chance():
    p, y, w = np.array([0.2, 0.4, 0.4, 0.8]), np.array([0, 1, 0, 1]), np.array([1, 2, 1, 2])
    weighted = Cumulative()([View(p, y, w, name="positive")])
    twice = Cumulative()([View(np.repeat(p, w), np.repeat(y, w), name="positive")])
    for name in ("share_low", "score_low", "difference"):
        np.testing.assert_allclose(part(weighted, "curve")[name], part(twice, "curve")[name], atol=1e-15)
    assert weighted.panels["band"][0] > twice.panels["band"][0]


def test_a_tally_draws_what_its_rows_draw():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 5000) / 20  # every cell holds one score
    preds = to.Predictions((rng.random(5000) < p**1.3).astype(int), p)
    rows, tallied = to.draw(preds, "cumulative"), to.draw(to.tally(preds), "cumulative")
    for name in ("share_low", "share_high", "score_low", "score_high", "difference", "slope"):
        np.testing.assert_allclose(tallied.table[name], rows.table[name], atol=1e-12)
    for name in ("pvalue_mad", "pvalue_r", "band"):
        assert tallied.panels[name][0] == pytest.approx(rows.panels[name][0])
    assert "TN244" in codes(tallied)
    assert "TN244" not in codes(rows)


def test_votes_vary_as_they_do():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 400)
    y = rng.binomial(5, p) / 5
    diagram = Cumulative()([View(p, y, name="positive")])
    assert "TN243" in codes(diagram)
    assert diagram.panels["null_standard_error"][0] == pytest.approx(np.sqrt(((y - p) ** 2).sum()) / 400)
    assert "TN243" not in codes(Cumulative()([overconfident_view(100)]))


def test_few_rows_make_the_null_distribution_doubtful_with_a_note():
    assert "TN260" in codes(Cumulative()([View([0.3, 0.6], [0, 1], name="positive")]))
    assert codes(Cumulative()([overconfident_view(500)])) == []


def test_where_nothing_is_left_to_chance_one_outcome_settles_it():
    right = Cumulative()([View([0.0, 1.0, 1.0], [0, 1, 1], name="positive")])
    wrong = Cumulative()([View([0.0, 1.0, 1.0], [0, 1, 0], name="positive")])
    assert (right.panels["pvalue_r"][0], wrong.panels["pvalue_r"][0]) == (1, 0)
    assert "TN223" in codes(wrong)
    assert right.panels["band"][0] == wrong.panels["band"][0] == 0
    assert wrong.finding.replace("\u00a0", " ").startswith("Steepest segment at 100 %: overpredicts by 50 points")
    for diagram in (right, wrong):
        diagram.draw()


def test_the_most_surprising_view_comes_first_and_only_drawn_views_have_lines():
    views = [*classwise(13, n=60), View([0.9] * 50, [0] * 50, name="class:bad")]
    diagram = Cumulative()(views)
    assert diagram.panels["view"][0] == "class:bad"
    assert set(diagram.table["view"]) == set(diagram.panels["view"][:12])
    x = diagram.panels["ecce_r"] / diagram.panels["null_standard_error"]
    assert (np.diff(x) <= 0).all()
    assert "TN245" in codes(diagram)
    assert diagram.finding.startswith("bad: steepest segment at 90")


def test_what_is_drawn_is_the_table():
    diagram = Cumulative()([overconfident_view()])
    ax = diagram.draw().axes[0]
    (curve,), (ends,), (segment,) = (marks(ax, name) for name in ("curve", "extremes", "segment"))
    for line, name in ((curve, "curve"), (ends, "extreme")):
        np.testing.assert_array_equal(line.get_xdata(), part(diagram, name)["share_low"])
        np.testing.assert_array_equal(line.get_ydata(), part(diagram, name)["difference"])
    row = part(diagram, "segment")
    assert (segment.get_xdata()[0], segment.get_xdata()[-1]) == (row["share_low"][0], row["share_high"][0])
    assert segment.get_ydata()[-1] - segment.get_ydata()[0] == pytest.approx(row["difference"][0])
    (band,) = marks(ax, "band")
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (-diagram.panels["band"][0], diagram.panels["band"][0])
    axis_strip = next(child for child in ax.child_axes if name_of(child) == "axis_strip")
    drawn = [line.get_xdata()[0] for line in axis_strip.lines]
    assert drawn == part(diagram, "tick")["share_low"].tolist()
    (numbers,) = [text.get_text() for text in ax.texts if text.get_gid() == "numbers"]
    assert f"ECCE-MAD {100 * diagram.panels['ecce_mad'][0]:.2f} points" in numbers
    assert f"ECCE-R {100 * diagram.panels['ecce_r'][0]:.2f} points" in numbers


@pytest.mark.slow
@pytest.mark.parametrize(("p", "y"), [([0.5], [1]), ([0.0], [0]), ([1.0], [0]), ([0.3] * 9, [1] * 4 + [0] * 5)])
def test_the_smallest_data_can_be_drawn(p, y):
    diagram = Cumulative()([View(p, y, name="positive")])
    assert part(diagram, "curve")["difference"][-1] == pytest.approx(np.mean(y) - np.mean(p))
    diagram.draw()


@pytest.mark.slow
def test_the_finding_on_real_data_is_correct():
    dataset = reference.data("plambda_cifar10_vgg16.npz")
    preds = to.Predictions(dataset["labels"], dataset["probs"])
    diagram = to.draw(preds, "cumulative")
    assert diagram.panels["ecce_mad"][0] == pytest.approx(
        to.measure(preds, "ks", lens="confidence", interval=None).value
    )
    assert diagram.panels["pvalue_r"][0] == pytest.approx(to.test(preds, "ecce", lens="confidence").pvalue)
    assert ": overconfident by" in diagram.finding

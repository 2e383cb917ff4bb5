"""The belt diagram: the numbers of givitiR, few cells for many rows, ranges, what is painted, and what is refused."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.special import expit, logit

import trueodds as to
from tests import reference
from tests.diagrams.test_drawing import classwise, corners, marks, strip_of
from trueodds.core.errors import InputError
from trueodds.diagrams.calibration_belt import CalibrationBelt
from trueodds.estimators._glm.logits import Logits
from trueodds.hypotests._glm.calibration_belt import MAX_CELLS, condense_view, fit_belt
from trueodds.hypotests.giviti import GiViTI
from trueodds.lenses.lens_by_name import as_lens
from trueodds.lenses.view import View


def codes(diagram):
    return [note.code for note in diagram.notes]


def part(diagram, name):
    mask = diagram.table["part"] == name
    return {key: column[mask] for key, column in diagram.table.items()}


def anchors(name):
    if name.startswith("hockey"):
        rows = reference.data("brcal_hockey.parquet").to_pydict()
        return View(np.array(rows[name.removeprefix("hockey_")]), np.array(rows["y"], dtype=float), name="positive")
    rows = reference.frame("anchors/foreclosure.csv" if name == "foreclosure" else f"anchors/synthetic/{name}.csv")
    return View(rows["x" if name == "foreclosure" else "p"], rows["y"], name="positive")


def many(n, seed=0, power=1.15, w=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.8, 1.2, n).clip(1e-7, 1 - 1e-7)
    return View(p, (rng.random(n) < p**power).astype(float), w, name="positive")


def miscalibrated_view():
    """Underpredicts below one half and overpredicts above."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.05, 0.95, 700)
    return View(p, (rng.random(700) < expit(0.3 * logit(p))).astype(float), name="positive")


@pytest.mark.parametrize("name", ["hockey_x", "g2_300"])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_belt_is_that_of_givitir(name, level):
    # golden anchors r_packages.giviti.belt_*; R's own optimizer is loose by 2.5e-7, as a second program found.
    r = reference.golden("anchors/golden.json")["r_packages"]["giviti"][f"belt_{name}_{level:g}"]
    view = anchors(name)
    reduced = condense_view(view, Logits.from_view(view, 0.0, "x"))
    table = fit_belt(reduced, (level,), r["p"]).table
    assert table[f"low_{level:g}"] == pytest.approx(r["L"], abs=5e-7)
    assert table[f"high_{level:g}"] == pytest.approx(r["U"], abs=5e-7)
    diagram = CalibrationBelt(levels=[level])([view])
    assert diagram.panels["degree"][0] == r["m"]
    rows = part(diagram, "belt")
    assert (rows["x_low"][0], rows["x_low"][-1]) == (view.p.min(), view.p.max())
    exact = fit_belt(view, (level,), rows["x_low"][::25]).table
    assert rows["low"][::25] == pytest.approx(exact[f"low_{level:g}"], abs=1e-9)
    assert rows["high"][::25] == pytest.approx(exact[f"high_{level:g}"], abs=1e-9)


@pytest.mark.parametrize("name", ["hockey_x", "hockey_rand", "g2_300", "foreclosure"])
def test_degree_statistic_and_p_are_those_of_givitir(name):
    # foreclosure has 5,000 distinct scores and more, of which the diagram makes 1,024 cells
    r = reference.golden("anchors/golden.json")["r_packages"]["giviti"][name]
    panels = CalibrationBelt()([anchors(name)]).panels
    assert panels["degree"][0] == r["m"]
    assert panels["statistic"][0] == pytest.approx(r["stat"], rel=1e-6)
    assert panels["pvalue"][0] == pytest.approx(r["p"], rel=1e-6, abs=1e-15)


def test_of_a_model_fitted_on_these_rows_it_is_the_internal_test_of_givitir():
    r = reference.golden("anchors/golden.json")["r_packages"]["giviti"]["hockey_x_internal"]
    panels = CalibrationBelt(fitted=True)([anchors("hockey_x")]).panels
    assert (panels["statistic"][0], panels["pvalue"][0]) == pytest.approx((r["stat"], r["p"]), rel=1e-9)


@pytest.mark.parametrize("power", [1.0, 1.15])
def test_few_cells_have_the_likelihood_of_many_rows(power):
    rows = many(6000, power=power)
    reduced = condense_view(rows, Logits.from_view(rows, 0.0, "x"))
    assert len(reduced) <= MAX_CELLS < len(np.unique(rows.p))
    # weight, and the first three moments of the log odds, of what came and of what did not
    for outcome in (0.0, 1.0):
        x, z, w = (
            logit(rows.p[rows.y == outcome]),
            logit(reduced.p[reduced.y == outcome]),
            reduced.w[reduced.y == outcome],
        )
        for power_of_x in range(4):
            assert w @ z**power_of_x == pytest.approx((x**power_of_x).sum(), rel=1e-9)
    assert GiViTI().evaluate(reduced).statistic == pytest.approx(GiViTI().evaluate(rows).statistic, rel=1e-6)
    at = [0.01, 0.2, 0.5, 0.8, 0.99]
    ours, published = (fit_belt(view, (0.95,), at).table for view in (reduced, rows))
    for name, column in published.items():
        assert ours[name] == pytest.approx(column, abs=1e-8)


def test_few_cells_with_unequal_weights_come_near():
    w = np.random.default_rng(1).choice([1.0, 4.0], 3000)
    rows = many(3000, w=w)
    reduced = condense_view(rows, Logits.from_view(rows, 0.0, "x"))
    assert len(reduced) <= MAX_CELLS
    assert reduced.w.sum() == pytest.approx(w.sum())
    assert reduced.sums("ww").sum() == pytest.approx((w**2).sum())
    ours, published = (fit_belt(view, (0.95,), [0.1, 0.5, 0.9]).table for view in (reduced, rows))
    for name, column in published.items():
        assert ours[name] == pytest.approx(column, abs=1e-5)


def test_equal_scores_are_one_cell_and_nothing_else_changes():
    rng = np.random.default_rng(2)
    p = rng.integers(1, 20, 4000) / 20
    rows = View(p, (rng.random(4000) < p**1.1).astype(float))
    reduced = condense_view(rows, Logits.from_view(rows, 0.0, "x"))
    assert reduced.p.tolist() == np.unique(p).tolist()
    assert GiViTI().evaluate(reduced).statistic == pytest.approx(GiViTI().evaluate(rows).statistic, rel=1e-10)


def test_scores_at_the_ends_of_the_floats_stay_inside():
    p = np.concatenate([np.geomspace(5e-324, 0.4, 900), 1 - np.geomspace(2.0**-53, 0.4, 900)])
    rows = View(p, np.tile([0.0, 1.0], 900))
    reduced = condense_view(rows, Logits.from_view(rows, 0.0, "x"))
    assert ((reduced.p > 0) & (reduced.p < 1)).all()
    assert reduced.w.sum() == pytest.approx(1800)


def test_where_the_belt_leaves_the_diagonal_is_reported_drawn_and_returned():
    diagram = CalibrationBelt()([miscalibrated_view()])
    ranges = diagram.ranges()
    assert set(ranges) == {"view", "level", "side", "start", "stop"}
    at95 = ranges["level"] == 0.95
    assert ranges["side"][at95].tolist() == ["above", "below"]
    (above, below), (start, stop) = np.flatnonzero(at95), (ranges["start"], ranges["stop"])
    assert stop[above] < 0.5 < start[below]
    # the narrower belt excludes more of the diagonal
    assert stop[ranges["level"] == 0.8].max() >= stop[below]
    assert start[(ranges["level"] == 0.8) & (ranges["side"] == "below")] < start[below]
    finding = diagram.finding.replace("\u00a0", " ")
    assert (
        finding == f"The 95 % band is above the diagonal (underpredicts) from {100 * start[above]:.0f} % to"
        f" {100 * stop[above]:.0f} % and below it (overpredicts) from {100 * start[below]:.0f} % to"
        f" {100 * stop[below]:.0f} % (p < 0.001)."
    )
    rows = part(diagram, "belt")
    wide = rows["level"] == 0.95
    p, low, high = (rows[name][wide] for name in ("x_low", "low", "high"))
    assert (p[low > p].min(), p[low > p].max()) == pytest.approx((start[above], stop[above]), abs=0.02)
    assert (p[high < p].min(), p[high < p].max()) == pytest.approx((start[below], stop[below]), abs=0.02)


def test_an_overconfident_model_is_reported_as_such():
    view = miscalibrated_view()
    diagram = CalibrationBelt()([View(view.p, view.y, name="confidence")])
    assert "(overconfident)" in diagram.finding
    assert diagram.default_title() == "Does confidence match accuracy?"


@pytest.mark.slow
def test_a_calibrated_model_is_accused_no_more_often_than_the_level_says():
    # The belt leaves the diagonal only where the test rejects, so in at most 5 % of calibrated data sets: of 100 they
    # are at most Binomial(100, .05), 13 or fewer in all but 1 in 1,000 cases.
    rng, accused = np.random.default_rng(5), 0
    for _ in range(100):
        p = rng.uniform(0.1, 0.9, 120)
        drawn = View(p, (rng.random(120) < p).astype(float))
        if GiViTI().evaluate(drawn).pvalue < 0.05:
            accused += len(CalibrationBelt(levels=[0.95])([drawn]).ranges()["start"]) > 0
    assert accused <= 13


def test_a_calibrated_model_is_not_accused():
    p = np.repeat([0.25, 0.5, 0.75], 40)
    y = np.concatenate([np.arange(40) < 10, np.arange(40) < 20, np.arange(40) < 30]).astype(float)
    diagram = CalibrationBelt()([View(p, y, name="positive")])
    assert not len(diagram.ranges()["start"])
    assert diagram.finding.replace("\u00a0", " ") == "The 95 % band contains the whole diagonal (p = 1.00)."
    assert diagram.panels["effect"][0] == pytest.approx(0, abs=1e-9)


def test_zeros_and_ones_are_refused_as_the_test_refuses_them_and_taken_with_a_floor():
    view = View([0.0, 0.3, 0.6, 0.9, 1.0] * 30, [0, 0, 1, 1, 1] * 30, name="positive")
    with pytest.raises(InputError, match=r"TO205.*calibration_belt.*60 of 150 rows.*min_prob="):
        CalibrationBelt()([view])
    diagram = CalibrationBelt(min_prob=1e-3)([view])
    assert codes(diagram).count("TN106") == 1
    assert diagram.panels["statistic"][0] == pytest.approx(GiViTI(min_prob=1e-3).evaluate(view).statistic, rel=1e-9)
    assert part(diagram, "curve")["x_low"][0] == 1e-3


def test_a_tally_draws_what_its_rows_draw():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 20, 5000) / 20  # every cell holds one score
    preds = to.Predictions((rng.random(5000) < p**1.1).astype(int), p)
    rows, tallied = to.draw(preds, "calibration_belt"), to.draw(to.tally(preds), "calibration_belt")
    for name in ("x_low", "x_high", "rate", "low", "high"):
        np.testing.assert_allclose(tallied.table[name], rows.table[name], atol=1e-9)
    assert "TN244" in codes(tallied)
    assert "TN244" not in codes(rows)


def test_equal_weights_of_any_size_change_nothing():
    view = miscalibrated_view()
    heavy = CalibrationBelt()([View(view.p, view.y, np.full(len(view.p), 3.0), name="positive")])
    plain = CalibrationBelt()([view])
    for name in ("rate", "low", "high"):
        np.testing.assert_allclose(heavy.table[name], plain.table[name], atol=1e-7)


def test_votes_are_drawn_and_the_belt_is_noted_to_be_wide():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.9, 200)
    diagram = CalibrationBelt()([View(p, rng.binomial(5, p) / 5, name="positive")])
    assert "TN262" in codes(diagram)
    assert "TN262" not in codes(CalibrationBelt()([miscalibrated_view()]))


def test_few_or_rare_outcomes_make_the_null_distribution_doubtful_with_a_note():
    rng = np.random.default_rng(0)
    p = rng.uniform(1e-4, 1e-2, 60)
    y = np.zeros(60)
    y[3] = 1
    assert "TN260" in codes(CalibrationBelt(levels=[0.95])([View(p, y, name="positive")]))


def test_the_smallest_p_comes_first_and_only_drawn_views_have_belts():
    views = [many(150, seed, name_power, None) for seed, name_power in ((1, 1.0), (2, 3.0))]
    first, second = (View(view.p, view.y, name=f"class:{name}") for view, name in zip(views, "ab", strict=True))
    diagram = CalibrationBelt()([first, second])
    assert diagram.panels["view"].tolist() == ["class:b", "class:a"]
    assert diagram.finding.startswith("b: the 95\u00a0% band")
    crowd = CalibrationBelt(levels=[0.9])(classwise(14, n=60))
    assert set(crowd.table["view"]) == set(crowd.panels["view"][:12])
    assert len(crowd.panels["pvalue"]) == 14
    assert "TN245" in codes(crowd)


def test_level_is_one_of_levels():
    preds = to.Predictions([0, 1, 1, 0, 1, 0] * 9, [0.2, 0.7, 0.8, 0.4, 0.5, 0.3] * 9)
    assert to.draw(preds, "calibration_belt", level=0.9).settings["levels"] == (0.9,)
    assert to.draw(preds, "calibration_belt").settings["levels"] == (0.8, 0.95)
    with pytest.raises(InputError, match="TO203"):
        to.draw(preds, "calibration_belt", level=0.9, levels=[0.8])


def test_a_fit_on_these_rows_with_two_scores_leaves_nothing_and_that_is_refused():
    with pytest.raises(InputError, match="TO205"):
        CalibrationBelt(fitted=True)([View([0.2, 0.2, 0.5, 0.5], [0, 1, 1, 0], name="positive")])


def test_what_is_drawn_is_the_table():
    diagram = CalibrationBelt()([miscalibrated_view()])
    ax = diagram.draw().axes[0]
    (curve,), rows = marks(ax, "curve"), part(diagram, "curve")
    np.testing.assert_array_equal(curve.get_xdata(), rows["x_low"])
    np.testing.assert_array_equal(curve.get_ydata(), rows["rate"])
    for level in (0.8, 0.95):
        (shape,) = marks(ax, f"belt {level:g}")
        vertices = {tuple(corner) for corner in shape.get_paths()[0].vertices}
        limits = part(diagram, "belt")
        mask = limits["level"] == level
        for x, low, high in zip(limits["x_low"][mask], limits["low"][mask], limits["high"][mask], strict=True):
            assert {(x, low), (x, high)} <= vertices
    drawn = [segment[:, 0].tolist() for lines in marks(ax, "range") for segment in lines.get_segments()]
    ranges = diagram.ranges()
    wide = ranges["level"] == 0.95
    assert drawn == [[a, b] for a, b in zip(ranges["start"][wide], ranges["stop"][wide], strict=True)]
    (shares,) = marks(strip_of(ax), "share")
    np.testing.assert_array_equal(corners(shares)[:, 1, 1], part(diagram, "strip")["rate"])
    ax.figure.draw_without_rendering()
    (x0, y0), (x1, y1) = ax.transData.transform([(0, 0), (1, 1)])
    assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-6)


def test_in_small_axes_the_legend_names_every_belt():
    figure = Figure(figsize=(3.4, 2.9))
    ax = figure.add_axes((0.22, 0.2, 0.7, 0.68))
    CalibrationBelt(levels=(0.5, 0.8, 0.95))([miscalibrated_view()]).draw(ax, legend=True)
    figure.draw_without_rendering()
    legend, box = ax.get_legend(), ax.get_window_extent()
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[:3] == ["95\u00a0% band", "80\u00a0% band", "50\u00a0% band"]
    assert legend.get_window_extent().x1 <= box.x1


@pytest.mark.slow
@pytest.mark.parametrize(("p", "y"), [([0.5], [1]), ([0.3] * 9, [1] * 4 + [0] * 5), ([0.1, 0.9], [0, 1])])
def test_the_smallest_data_can_be_drawn(p, y):
    diagram = CalibrationBelt()([View(p, y, name="positive")])
    rows = part(diagram, "belt")
    assert ((rows["low"] >= 0) & (rows["high"] <= 1) & (rows["low"] <= rows["high"])).all()
    assert {"TN217", "TN218", "TN260"} & set(codes(diagram))
    diagram.draw()


def test_the_finding_on_real_data_is_correct():
    dataset = reference.data("plambda_cifar10_vgg16.npz")
    preds = to.Predictions(dataset["labels"], dataset["probs"])
    diagram = to.draw(preds, "calibration_belt", min_prob=1e-6)
    assert "below the diagonal (overconfident) from 61" in diagram.finding
    verdict = to.test(preds, "giviti", lens="confidence", min_prob=1e-6)
    assert diagram.panels["statistic"][0] == pytest.approx(verdict.statistic, rel=1e-5)
    assert diagram.panels["n"][0] == 10_000
    assert as_lens("confidence").views(preds)[0].name == diagram.panels["view"][0]

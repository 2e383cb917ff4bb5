"""Arrows on the triangle: what they are, which of them chance explains, and what is put on paper."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from scipy.stats import binom

import trueodds as to
from tests import reference
from tests.diagrams.artists import name_of
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.simplex_grid import Distinct, SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.diagrams import simplex_geometry
from trueodds.diagrams.simplex import Simplex, closest_rivals, rival_view
from trueodds.diagrams.simplex_arrows import add_holm_pvalues, evaluate_cell_tests
from trueodds.lenses.view import View

FIGURE_1 = "groups:[[0,1,2],[3,4,5],[6,7,8,9]]"


def drawn_labels(rng, P):
    return (rng.random(len(P))[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(max=P.shape[1] - 1)


def preds(n=600, k=3, seed=0, power=1.0):
    """Calibrated labels for power 1; for a smaller power the model is overconfident."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k), n)
    true = P**power / (P**power).sum(axis=1, keepdims=True)
    return to.Predictions(drawn_labels(rng, true), P)


def view(counts, p, **kwargs):
    """One cell: rows with the same prediction p, and the count of each outcome."""
    Y = np.eye(len(p))[np.repeat(np.arange(len(p)), counts)]
    return View(np.tile(p, (len(Y), 1)), Y, name="canonical", **kwargs)


def numbered(diagram, name, m=3):
    return np.stack([diagram.table[f"{name}_{k}"] for k in range(m)], axis=1)


def marks(ax, label):
    return [artist for artist in ax.get_children() if name_of(artist) == label]


def area(corners):
    x, y = simplex_geometry.to_triangle(corners).T
    return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


# Numbers


def test_the_statistic_of_rows_that_say_the_same_is_pearsons():
    # Expected 30, 15, 5; came 20, 20, 10: 100/30 + 25/15 + 25/5 = 10, χ² with 2 degrees of freedom: p = exp(−10/2).
    t = Simplex()([view([20, 20, 10], [0.6, 0.3, 0.1])]).table
    assert t["statistic"][0] == pytest.approx(10)
    assert t["df"].tolist() == [2]
    assert t["pvalue"][0] == pytest.approx(np.exp(-5))
    assert t["distribution"].tolist() == ["chi-square"]
    assert t["distance"][0] == pytest.approx(0.2)
    assert [t[f"outcome_frequency_{k}"][0] for k in range(3)] == pytest.approx([0.4, 0.4, 0.2])
    assert t["beyond"].tolist() == [True]


@pytest.mark.parametrize("net", ["densenet121", "resnet18"])
def test_figure_1_of_the_paper_has_the_cells_and_the_error_of_an_independent_program(net):
    data = reference.data("widmann_cifar10_4nets.npz")
    known = reference.golden("anchors/golden.json")["analytic_and_literal"]["cifar_lenses"][net]
    rows = to.Predictions(data["labels"], data[f"probs_{net}"])
    rounding = 2**-25  # here the probabilities are float32, half a unit in the last place from those of that program
    for k in (5, 10):
        diagram = to.draw(rows, "simplex", lens=FIGURE_1, bins=k)
        assert diagram.panels["cells"][0] == known[f"fig1_groups_nonempty_k{k}"]
        assert diagram.panels["error"][0] == pytest.approx(known[f"fig1_groups_tv_k{k}"], abs=rounding)
        assert diagram.panels["corner_2"][0] == "6 + 7 + 8 + 9"
    tree = to.draw(rows, "simplex", lens=FIGURE_1, min_size=100)
    assert tree.panels["cells"][0] == known["fig1_groups_medvar100_bins"]
    assert tree.panels["error"][0] == pytest.approx(known["fig1_groups_medvar100_tv"], abs=rounding)


@pytest.mark.parametrize(("k", "cells"), [(5, 25), (10, 100)])
def test_the_grid_cuts_the_triangle_into_equal_triangles(k, cells):
    assert (
        cells == reference.golden("anchors/golden.json")["analytic_and_literal"]["uniform_cells"]["values"][f"m3_k{k}"]
    )
    P = np.random.default_rng(0).dirichlet(np.ones(3), 20_000)
    diagram = Simplex(Uniform(k))([View(P, np.eye(3)[np.argmax(P, axis=1)], name="canonical")])
    low, high = numbered(diagram, "low"), numbered(diagram, "high")
    shapes = [simplex_geometry.cell_outline(a, b) for a, b in zip(low, high, strict=True)]
    assert [len(shape) for shape in shapes] == [3] * cells
    np.testing.assert_allclose([area(shape) for shape in shapes], area(np.eye(3)) / cells, rtol=1e-9)


def test_the_leaves_of_a_tree_fill_the_triangle_and_hold_their_rows():
    rows = preds()
    diagram = to.draw(rows, "simplex", lens="canonical", min_size=40)
    low, high = numbered(diagram, "low"), numbered(diagram, "high")
    areas = [area(simplex_geometry.cell_outline(a, b)) for a, b in zip(low, high, strict=True)]
    assert sum(areas) == pytest.approx(area(np.eye(3)))
    view = View(rows.P, np.eye(3)[rows.y], name="canonical")
    frozen = MedianVariance(40).fit(view)
    place = frozen.index(view.partition_values)
    assert ((rows.P >= low[place]) & (rows.P <= high[place])).all()


def test_a_cell_of_few_expected_rows_is_tested_by_exact_distributions():
    # One row that says 1 % of what came: P[that or less likely] = .01, doubled for two sides, times 3 outcomes: .06.
    t = Simplex(simultaneous=False)([view([0, 1, 0], [0.98, 0.01, 0.01])]).table
    assert t["distribution"].tolist() == ["exact by outcome"]
    assert t["pvalue"][0] == pytest.approx(0.06)
    assert t["statistic"][0] > 90  # the p-value of χ² alone would be 1e-20
    assert not t["beyond"][0]


def test_an_outcome_that_had_no_chance_is_beyond_it():
    diagram = Simplex()([view([0, 3, 0], [1.0, 0.0, 0.0])])
    assert diagram.table["pvalue"].tolist() == [0.0]
    assert diagram.table["beyond"].tolist() == [True]
    assert diagram.to_dict()["table"]["statistic"] == [None]
    diagram.draw()


def test_weights_enter_the_covariance_squared():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(3, 4.0), 500)
    Y, w = np.eye(3)[drawn_labels(rng, P)], rng.uniform(0.5, 2.0, 500)
    t = Simplex(SimplexGrid(1))([View(P, Y, w, name="canonical")]).table
    d = (w[:, None] * (Y - P)).sum(axis=0)[:2]
    V = sum(a * a * (np.diag(p) - np.outer(p, p)) for a, p in zip(w, P, strict=True))[:2, :2]
    assert t["statistic"][0] == pytest.approx(d @ np.linalg.solve(V, d))
    tenfold = Simplex(SimplexGrid(1))([View(P, Y, 10 * w, name="canonical")]).table
    assert tenfold["statistic"][0] == pytest.approx(t["statistic"][0])


def test_weighted_cells_of_few_expected_rows_are_noted():
    diagram = Simplex()([view([0, 2, 0], [0.98, 0.01, 0.01], w=[1.0, 3.0])])
    assert [note.code for note in diagram.notes] == ["TN254"]
    assert diagram.notes[0].text.startswith("χ² rejects 1 of 1 cells although fewer than 5 rows of some outcome")


def test_a_tally_draws_what_its_rows_draw_where_the_grid_nests():
    rows = preds(2000)
    exact, tallied = to.draw(rows, "simplex", bins=5), to.draw(to.tally(rows, grid=10), "simplex", bins=5)
    for name in ("n", "share", "distance", "low_1", "high_1"):
        np.testing.assert_allclose(tallied.table[name], exact.table[name], rtol=1e-12, atol=1e-15)
    # Rows of a fine cell count with its mean, which only adds to what chance allows.
    assert (tallied.table["statistic"] <= exact.table["statistic"] + 1e-9).all()
    assert "TN244" in [note.code for note in tallied.notes]
    assert to.draw(to.tally(rows, grid=30), "simplex").settings["partition"] == "simplex-grid 10"
    assert to.draw(to.tally(rows, grid=7), "simplex").settings["partition"] == "simplex-grid 7"


def test_a_grid_that_would_cut_the_cells_of_a_tally_is_refused():
    with pytest.raises(InputError, match=r"TO205.*4 bins.*tally with 10"):
        to.draw(to.tally(preds(), grid=10), "simplex", bins=4)


@pytest.mark.parametrize("lens", ["canonical", "positive", "confidence"])
def test_two_outcomes_are_sent_to_reliability(lens):
    with pytest.raises(InputError, match=r"TO704.*reliability"):
        to.draw(to.Predictions([0, 1, 1], [0.2, 0.7, 0.9]), "simplex", lens=lens)


def test_permuting_classes_permutes_the_table():
    rows, order = preds(), np.array([2, 0, 1])
    a = to.draw(rows, "simplex")
    b = to.draw(to.Predictions(np.argsort(order)[rows.y], rows.P[:, order]), "simplex")
    assert b.panels["error"][0] == pytest.approx(a.panels["error"][0])
    first = np.sort(numbered(a, "outcome_frequency")[:, order], axis=0)
    np.testing.assert_allclose(np.sort(numbered(b, "outcome_frequency"), axis=0), first)
    np.testing.assert_allclose(np.sort(b.table["pvalue"]), np.sort(a.table["pvalue"]), rtol=1e-6)


def test_row_order_is_irrelevant_and_a_weight_of_two_is_two_rows_for_what_is_seen():
    rows = preds(500)
    order = np.random.default_rng(1).permutation(500)
    w = 1.0 + (np.arange(500) % 3 == 0)
    a = to.draw(to.Predictions(rows.y, rows.P, weight=w), "simplex").table
    b = to.draw(to.Predictions(rows.y[order], rows.P[order], weight=w[order]), "simplex").table
    times = w.astype(int)
    c = to.draw(to.Predictions(np.repeat(rows.y, times), np.repeat(rows.P, times, axis=0)), "simplex").table
    for name in ("share", "distance", "mean_prediction_0", "outcome_frequency_2"):
        np.testing.assert_allclose(b[name], a[name], rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(c[name], a[name], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(b["pvalue"], a["pvalue"], rtol=1e-7)
    assert (c["statistic"] > a["statistic"] - 1e-9).all()


# Chance


@pytest.mark.slow
def test_a_calibrated_model_has_an_arrow_beyond_chance_no_more_often_than_stated():
    # Sharp predictions in 100 cells, where χ² alone rejects 55 % of the time.
    # Rejections are at most Binomial(200, .05): stay below its 99.9 % point.
    rng, hits = np.random.default_rng(1), 0
    for _ in range(200):
        z = 4 * rng.normal(size=(400, 3))
        P = np.exp(z - z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        Y = np.eye(3)[drawn_labels(rng, P)]
        hits += Simplex(SimplexGrid(10))([View(P, Y, name="canonical")]).table["beyond"].any()
    assert hits <= binom.ppf(0.999, 200, 0.05)


@pytest.mark.slow
def test_votes_are_tested_by_their_variance():
    # Ten annotators per row whose rates vary around the prediction: calibrated, and far from multinomial.
    rng, small = np.random.default_rng(2), 0
    for _ in range(400):
        P = rng.dirichlet(np.full(3, 5.0), 60)
        leaning = np.stack([rng.dirichlet(2 * p) for p in P])
        Y = np.stack([rng.multinomial(10, probs) for probs in leaning]) / 10
        result = evaluate_cell_tests(View(P, Y, name="canonical"), np.zeros(60, dtype=np.intp), 1, 0.05)
        assert result.method.tolist() == ["votes"]
        small += np.exp(result.log_p[0]) <= 0.05
    # 400 tests at 5 %: within the central 99.9 % of Binomial(400, .05).
    assert binom.ppf(0.0005, 400, 0.05) <= small <= binom.ppf(0.9995, 400, 0.05)


def test_votes_of_a_single_row_prove_nothing():
    diagram = Simplex(ellipses=True)([View([[0.9, 0.1, 0.0]], [[0.0, 0.2, 0.8]], name="canonical")])
    assert diagram.table["pvalue"].tolist() == [1.0]
    assert "TN243" in [note.code for note in diagram.notes]
    diagram.draw()


def test_a_head_lies_outside_its_ellipse_where_the_cell_strays():
    diagram = to.draw(preds(3000, power=0.6), "simplex", bins=4, ellipses=True, simultaneous=False)
    t = diagram.table
    tail, head = (
        simplex_geometry.to_triangle(numbered(diagram, name)) for name in ("mean_prediction", "outcome_frequency")
    )
    turn = np.radians(t["ellipse_angle"])
    d = head - tail
    along, across = d[:, 0] * np.cos(turn) + d[:, 1] * np.sin(turn), d[:, 1] * np.cos(turn) - d[:, 0] * np.sin(turn)
    outside = (2 * along / t["ellipse_long"]) ** 2 + (2 * across / t["ellipse_short"]) ** 2 > 1
    by_chi2 = t["distribution"] == "chi-square"
    assert 0 < (t["beyond"] & by_chi2).sum() < by_chi2.sum()
    assert (outside == t["beyond"])[by_chi2].all()


def test_holm_over_all_cells_of_the_diagram_decides_unless_each_stands_alone():
    rows = preds(3000, power=0.8)
    simultaneous, alone = to.draw(rows, "simplex"), to.draw(rows, "simplex", simultaneous=False)
    assert (simultaneous.table["beyond"] == (simultaneous.table["holm"] <= 0.05)).all()
    assert (alone.table["beyond"] == (alone.table["pvalue"] <= 0.05)).all()
    assert alone.table["beyond"].sum() > simultaneous.table["beyond"].sum()
    assert "TN246" in [note.code for note in alone.notes]


# More than three classes


def test_the_rival_is_the_one_that_the_model_puts_most_probability_beside():
    P = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    one = View(P, np.eye(4)[[2, 2]], name="canonical")
    # Σ p_j p_c: 0–1 .20, 0–2 .05, 1–2 .04 + .03, 1–3 .06, 2–3 .18.
    assert closest_rivals(one).tolist() == [1, 0, 3, 2]


def test_every_class_has_a_triangle_and_the_strongest_evidence_comes_first():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(5), 2000)
    y = drawn_labels(rng, P)
    y[(y == 4) & (rng.random(2000) < 0.6)] = 0  # class e is overpredicted
    diagram = to.draw(to.Predictions(np.array(list("abcde"))[y], P, classes=list("abcde")), "simplex")
    assert sorted(diagram.panels["title"]) == list("abcde")
    assert set(diagram.panels["title"][:2]) <= {"a", "e"}
    assert (diagram.panels["corner_2"] == "rest").all()
    assert diagram.finding.startswith(f"Strongest evidence: {diagram.panels['title'][0]}. ")
    assert "TN253" in [note.code for note in diagram.notes]
    assert diagram.panels["n"].tolist() == [2000] * 5
    smallest = diagram.panels["smallest_pvalue"] * diagram.panels["cells"]
    assert (np.diff(np.minimum(smallest, 1)) >= 0).all()
    assert len(diagram.draw().axes) == 5


# Words


def test_the_finding_says_which_outcome_is_predicted_too_often():
    P = np.tile([0.5, 0.3, 0.2], (400, 1))
    y = np.repeat([0, 1, 2], [120, 120, 160])  # predicted 50 %, observed 30 %; predicted 20 %, observed 40 %
    rows = to.Predictions(np.array(["cat", "dog", "owl"])[y], P, classes=["cat", "dog", "owl"])
    text = to.draw(rows, "simplex").finding
    assert (
        text
        == "Overpredicts cat (20.0 points) and underpredicts owl (20.0 points), mostly where cat is most probable. "
        "The only cell deviates significantly, with 100.0\u00a0% of the predictions."
    )
    numbered = to.draw(to.Predictions(y, P), "simplex").finding
    assert numbered.startswith(
        "Overpredicts class 0 (20.0 points) and underpredicts class 2 (20.0 points), mostly where"
    )
    assert "mostly where class 0 is most probable." in numbered


def test_the_finding_says_that_it_is_overconfident():
    text = to.draw(preds(5000, power=0.3), "simplex").finding
    assert text.startswith("Overconfident in the most probable outcome")
    assert to.draw(preds(5000, power=3.0), "simplex").finding.startswith("Underconfident in the most probable outcome")
    assert to.draw(preds(5000), "simplex").finding.endswith("cells deviates significantly.")


# On paper


def test_what_is_drawn_is_the_table():
    diagram = to.draw(preds(3000, power=0.5), "simplex", bins=5, ellipses=True)
    ax = diagram.draw().axes[0]
    t = diagram.table
    tail, head = (
        simplex_geometry.to_triangle(numbered(diagram, name)) for name in ("mean_prediction", "outcome_frequency")
    )
    for kind, which in (("beyond", t["beyond"]), ("faded", ~t["beyond"])):
        (arrows,) = marks(ax, kind)
        assert isinstance(arrows, Quiver)
        assert which.any()
        np.testing.assert_allclose(arrows.get_offsets(), tail[which])
        np.testing.assert_allclose(np.stack([arrows.U, arrows.V], axis=1), (head - tail)[which])
    (cells,) = marks(ax, "cells")
    assert isinstance(cells, PolyCollection)
    assert len(cells.get_paths()) == len(t["cell"])
    darkness = -cells.get_facecolors()[:, :3].sum(axis=1)
    assert (
        np.argsort(darkness[np.argsort(t["share"], kind="stable")], kind="stable") == np.arange(len(t["cell"]))
    ).all()
    (ellipses,) = marks(ax, "ellipses")
    assert isinstance(ellipses, EllipseCollection)
    np.testing.assert_allclose(ellipses.get_offsets(), tail[t["beyond"]])
    assert [text.get_text() for text in ax.texts][:3] == ["0", "1", "2"]


@pytest.mark.parametrize("layer", ["cells", "arrows", "faded", "ellipses", "key"])
def test_a_layer_that_is_left_out_is_neither_drawn_nor_explained(layer):
    diagram = to.draw(preds(3000, power=0.5), "simplex", bins=5, ellipses=True)
    label = {"arrows": "beyond"}.get(layer, layer)
    full, less = diagram.draw().axes[0], diagram.less(layer).draw().axes[0]
    assert marks(full, label) or [child for child in full.child_axes if name_of(child) == label]
    assert not marks(less, label)
    assert not [child for child in less.child_axes if name_of(child) == label]
    if layer != "key":
        assert len(diagram.less(layer).legend()) == len(diagram.legend()) - 1


@pytest.mark.parametrize("size", [(2.4, 2.0), (2.0, 3.2), (7.0, 3.0)])
def test_units_are_equal_and_the_legend_meets_nothing_in_axes_that_are_given(size):
    figure = Figure(figsize=size)
    ax = figure.subplots()
    assert to.draw(preds(), "simplex").draw(ax) is ax
    figure.draw_without_rendering()
    corners = ax.transData.transform(simplex_geometry.TRIANGLE)
    sides = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, sides[0], rtol=1e-6)
    assert sides[0] > 0.35 * 72 * min(size) * figure.dpi / 72
    boxes = [text.get_window_extent() for text in ax.texts]
    if (legend := ax.get_legend()) is not None:
        assert not any(legend.get_window_extent().overlaps(box) for box in boxes)
    assert legend is not None or size[0] < 3
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            assert a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 or b.y1 <= a.y0
    bounds = figure.get_tightbbox()
    assert min(bounds.x0, bounds.y0) >= 0
    assert bounds.x1 <= size[0]
    assert bounds.y1 <= size[1]


def test_a_cell_without_area_is_a_dot():
    P = np.array([[0.5, 0.5, 0.0]] * 3 + [[0.9, 0.05, 0.05]] * 3)
    diagram = Simplex(Uniform(2, "left"))([View(P, np.eye(3)[[0, 1, 2] * 2], name="canonical")])
    ax = diagram.draw().axes[0]
    (dots,) = marks(ax, "dots")
    np.testing.assert_allclose(dots.get_offsets(), simplex_geometry.to_triangle([[0.5, 0.5, 0.0]]))
    (cells,) = marks(ax, "cells")
    assert len(cells.get_paths()) == 1


def test_cells_that_are_no_boxes_are_dots():
    diagram = Simplex(Distinct())([view([3, 2, 1], [0.5, 0.3, 0.2])])
    assert np.isnan(diagram.table["low_0"]).all()
    assert marks(diagram.draw().axes[0], "dots")


@pytest.mark.parametrize("P", [[[1.0, 0.0, 0.0]], [[0.2, 0.3, 0.5]]])
def test_a_single_row_can_be_drawn(P):
    diagram = Simplex(ellipses=True)([View(P, [[1.0, 0.0, 0.0]], name="canonical")])
    assert len(diagram.table["cell"]) == 1
    diagram.svg()


def test_settings_are_read_back_and_the_table_is_strict_json():
    diagram = to.draw(preds(), "simplex", bins=4, level=0.8, ellipses=True)
    document = json.loads(json.dumps(diagram.to_dict(), allow_nan=False))
    assert document["settings"]["level"] == 0.8
    assert document["settings"]["partition"] == "uniform 4"
    assert str(diagram).startswith("simplex · 16 cells · n=600")


def test_a_p_value_of_the_level_itself_is_beyond_it():
    cells = SimpleNamespace(columns={"cell": np.arange(2), "pvalue": np.array([0.1, 0.5])})
    (table,) = add_holm_pvalues([cells], 0.9, simultaneous=False)
    assert table["beyond"].tolist() == [True, False]


def test_the_legend_speaks_of_arrows_that_are_drawn():
    calm = [text for _, text in to.draw(preds(), "simplex").legend()]
    assert calm[0] == "not significant (95\u00a0%, Holm)"
    assert not any(text.startswith("significant") for text in calm)
    (_, one), *rest = Simplex(ellipses=True)([view([20, 20, 10], [0.6, 0.3, 0.1])]).legend()
    assert one == "significant (95\u00a0%, Holm)"
    assert not any("not significant" in text for _, text in rest)
    none = to.draw(preds(), "simplex", ellipses=True)
    assert not any("head if" in text for _, text in none.legend())
    assert not marks(none.draw().axes[0], "ellipses")


def test_a_class_named_rest_is_distinguished_from_the_rest():
    names = np.array(["rest", "b", "c", "the rest"])
    rows = preds(300, 4)
    corners = to.draw(to.Predictions(names[rows.y], rows.P, classes=names), "simplex").panels
    assert set(corners["corner_2"]) == {"all the rest"}


def test_the_rest_is_the_sum_of_all_others_to_the_last_digit():
    # What is left of nearly nothing must not be the rounding of a subtraction: an outcome of 0 has no chance at all.
    P = np.array([[0.7, 0.3, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.6, 0.4 - 1e-9, 4e-10, 6e-10]])
    three = rival_view(View(P, np.eye(4)[[0, 3, 2]], name="canonical"), 0, 1, "x")
    assert three.p[0, 2] == 0.0
    np.testing.assert_allclose(three.p[:, 2], [0.0, 0.7, 1e-9], rtol=1e-14)
    assert three.y.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.slow
def test_a_thousand_classes_take_seconds():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(1000, 1000))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    diagram = to.draw(to.Predictions(drawn_labels(rng, P), P), "simplex")
    assert len(diagram.panels["view"]) == 1000
    assert "TN245" in [note.code for note in diagram.notes]
    assert len(diagram.draw().axes) == 12


def test_what_says_how_arrows_are_read_stands_close_below():
    for diagram in (to.draw(preds(), "simplex"), to.draw(preds(k=4), "tetrahedron")):
        figure = diagram.draw()
        figure.draw_without_rendering()
        ax = figure.axes[0]
        lowest = min(text.get_window_extent().y0 for text in ax.texts)
        assert 0 <= lowest - ax.xaxis.label.get_window_extent().y1 < 0.5 * figure.dpi

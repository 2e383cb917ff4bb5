"""Arrows in the tetrahedron: what they are, how they are seen, and how they turn on a page."""

import base64
import json
import re
from hashlib import sha256

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import trueodds as to
from tests import reference
from tests.diagrams.artists import name_of
from tests.diagrams.test_simplex import drawn_labels, marks, numbered, preds, view
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.diagrams import simplex_geometry
from trueodds.diagrams.tetrahedron import SVG_SCALE, Tetrahedron, rotation_script, scene_data
from trueodds.lenses.view import View


def four(n=2000, power=0.5, **kwargs):
    return to.draw(preds(n, k=4, power=power), "tetrahedron", **kwargs)


# Numbers


def test_the_statistic_of_rows_that_say_the_same_is_pearsons():
    # Expected 40, 30, 20, 10; came 30, 30, 20, 20: 100/40 + 100/10 = 12.5, 3 degrees of freedom.
    t = Tetrahedron()([view([30, 30, 20, 20], [0.4, 0.3, 0.2, 0.1])]).table
    assert t["statistic"][0] == pytest.approx(12.5)
    assert t["df"].tolist() == [3]
    assert t["pvalue"][0] == pytest.approx(0.0058532, rel=1e-4)  # R: pchisq(12.5, 3, lower.tail = FALSE)
    assert t["distance"][0] == pytest.approx(0.1)


def test_the_grid_has_as_many_cells_as_its_formula_says():
    known = reference.golden("anchors/golden.json")["analytic_and_literal"]["uniform_cells"]["values"]
    P = np.random.default_rng(0).dirichlet(np.ones(4), 60_000)
    rows = View(P, np.eye(4)[drawn_labels(np.random.default_rng(1), P)], name="canonical")
    diagram = Tetrahedron(Uniform(5))([rows])
    assert diagram.panels["cells"][0] == known["m4_k5"] == 65
    low, high = numbered(diagram, "low", 4), numbered(diagram, "high", 4)
    predicted = numbered(diagram, "mean_prediction", 4)
    assert ((predicted >= low) & (predicted <= high)).all()


def test_four_classes_of_a_recalibration_set_and_four_groups_of_ten():
    table = reference.frame("recalibration/multi4.csv")
    rows = to.Predictions(table["y"].astype(int), reference.columns(table))
    diagram = to.draw(rows, "tetrahedron")
    assert diagram.table["n"].sum() == rows.n
    share, predicted, observed = (
        diagram.table["share"],
        numbered(diagram, "mean_prediction", 4),
        numbered(diagram, "outcome_frequency", 4),
    )
    np.testing.assert_allclose(share @ predicted, rows.P.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(share @ observed, np.bincount(rows.y, minlength=4) / rows.n, rtol=1e-12)
    ten = preds(500, k=10)
    grouped = to.draw(ten, "tetrahedron", lens="groups:[[0,1],[2,3],[4,5],[6,7,8,9]]")
    assert [grouped.panels[f"corner_{k}"][0] for k in (0, 3)] == ["0 + 1", "6 + 7 + 8 + 9"]


def test_a_tally_draws_what_its_rows_draw():
    rows = preds(2000, k=4)
    exact, tallied = to.draw(rows, "tetrahedron"), to.draw(to.tally(rows, grid=10), "tetrahedron")
    for name in ("n", "share", "distance", "mean_prediction_2", "outcome_frequency_3"):
        np.testing.assert_allclose(tallied.table[name], exact.table[name], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("k", "suggestion"), [(2, "reliability"), (3, "simplex"), (5, "simplex")])
def test_another_number_of_outcomes_is_refused(k, suggestion):
    with pytest.raises(InputError, match=rf"TO704.*{suggestion}"):
        to.draw(preds(50, k=k), "tetrahedron", lens="canonical")


# Projection


@pytest.mark.parametrize(("azimuth", "elevation"), [(0, 0), (40, 18), (-120, -60), (77, 90)])
def test_turning_changes_no_distance(azimuth, elevation):
    vertices = simplex_geometry.projection_matrix(azimuth, elevation)
    lengths = [np.linalg.norm(vertices[a] - vertices[b]) for a, b in simplex_geometry.EDGES]
    np.testing.assert_allclose(lengths, 1.0, rtol=1e-12)
    assert np.linalg.det(vertices[:3] - vertices[3]) == pytest.approx(
        np.linalg.det(simplex_geometry.TETRAHEDRON[:3] - simplex_geometry.TETRAHEDRON[3])
    )


def test_directions_are_those_of_the_docstring():
    front = simplex_geometry.projection_matrix(0, 0)
    assert front[3, 1] == front[:, 1].max()  # the fourth outcome is at the top
    assert front[0, 0] < front[1, 0]  # the first is left of the second
    assert front[2, 2] == front[:, 2].min()  # the third is behind
    above = simplex_geometry.projection_matrix(0, 90)
    assert above[3, 2] == above[:, 2].max()
    np.testing.assert_allclose(above[3, :2], 0, atol=1e-12)


def test_edges_behind_the_body_are_hidden():
    # From the front no edge of the third corner but those on the outline: the side 0-1-3 covers them all.
    assert simplex_geometry.hidden_edges(simplex_geometry.projection_matrix(0, 5)) == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    assert (
        simplex_geometry.hidden_edges(simplex_geometry.projection_matrix(0, 89)) == [False] * 6
    )  # from above, no edge of the base is hidden
    # From below the fourth corner is behind the floor.
    assert simplex_geometry.hidden_edges(simplex_geometry.projection_matrix(0, -89)) == [
        False,
        False,
        True,
        False,
        True,
        True,
    ]


def test_what_is_drawn_is_the_table_turned():
    diagram = four(azimuth=-30, elevation=25)
    ax = diagram.draw().axes[0]
    vertices, t = simplex_geometry.projection_matrix(-30, 25), diagram.table
    tail, head = (numbered(diagram, name, 4) @ vertices for name in ("mean_prediction", "outcome_frequency"))
    for kind, which in (("beyond", t["beyond"]), ("faded", ~t["beyond"])):
        (arrows,) = marks(ax, kind)
        order = np.argsort(tail[which, 2], kind="stable")
        np.testing.assert_allclose(arrows.get_offsets(), tail[which][order, :2])
        np.testing.assert_allclose(np.stack([arrows.U, arrows.V], axis=1), (head - tail)[which][order, :2])
    (dots,) = marks(ax, "cells")
    np.testing.assert_allclose(dots.get_offsets(), tail[np.argsort(tail[:, 2], kind="stable"), :2])
    assert len(marks(ax, "hidden edge")) == sum(simplex_geometry.hidden_edges(vertices))
    assert len(marks(ax, "edge")) == 6 - sum(simplex_geometry.hidden_edges(vertices))
    assert all(line.get_linestyle() == "--" for line in marks(ax, "hidden edge"))


@pytest.mark.parametrize("layer", ["cells", "arrows", "faded", "key"])
def test_a_layer_that_is_left_out_is_not_drawn(layer):
    label = {"arrows": "beyond"}.get(layer, layer)
    full, less = four().draw().axes[0], four().less(layer).draw().axes[0]
    assert marks(full, label) or [child for child in full.child_axes if name_of(child) == label]
    assert not marks(less, label)
    assert not [child for child in less.child_axes if name_of(child) == label]


@pytest.mark.parametrize("size", [(2.4, 2.0), (6.4, 3.0)])
def test_nothing_leaves_axes_that_are_given(size):
    figure = Figure(figsize=size)
    ax = figure.subplots()
    assert four().draw(ax) is ax
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= size[0]
    assert box.y1 <= size[1]
    if (legend := ax.get_legend()) is not None:
        assert not any(legend.get_window_extent().overlaps(text.get_window_extent()) for text in ax.texts)
    assert legend is not None or size[0] < 3
    right, up = ax.transData.transform([[1, 0], [0, 1]]) - ax.transData.transform([0, 0])
    assert right[0] == pytest.approx(up[1], rel=1e-6)


# On a page


def test_the_page_lets_in_its_own_style_and_script_and_nothing_else(tmp_path):
    four().save(tmp_path / "turn.html")
    text = (tmp_path / "turn.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert set(re.findall(r"https?://[^\"' <]+", text)) <= {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"\son\w+=|\sstyle=|\ssrc=|javascript:", text.replace(rotation_script(), ""))


def test_the_data_of_the_page_are_the_table():
    diagram = four()
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', diagram.interactive_html(), re.DOTALL)
    data = json.loads(text)
    np.testing.assert_allclose([cell["predicted"] for cell in data["cells"]], numbered(diagram, "mean_prediction", 4))
    np.testing.assert_allclose([cell["observed"] for cell in data["cells"]], numbered(diagram, "outcome_frequency", 4))
    assert [cell["beyond"] for cell in data["cells"]] == diagram.table["beyond"].tolist()
    np.testing.assert_allclose(data["corners"], simplex_geometry.TETRAHEDRON)
    body = re.search(r"<tbody>(.*)</tbody>", diagram.interactive_html(), re.DOTALL)[1]
    assert body.count("<tr>") == len(diagram.table["cell"])


def test_without_its_script_the_tetrahedron_stands_as_it_is_drawn():
    diagram = four(azimuth=10, elevation=30)
    fragment = diagram.interactive_html(script=False)
    assert rotation_script() not in fragment
    assert rotation_script() in diagram.interactive_html()
    vertices = SVG_SCALE * simplex_geometry.projection_matrix(10, 30)
    lines = re.findall(r'class="edge" x1="([^"]*)" y1="([^"]*)" x2="([^"]*)" y2="([^"]*)"', fragment)
    want = [[vertices[a, 0], -vertices[a, 1], vertices[b, 0], -vertices[b, 1]] for a, b in simplex_geometry.EDGES]
    np.testing.assert_allclose(np.array(lines, dtype=float), want, atol=0.006)
    assert fragment.count('stroke-dasharray="5 4"') == sum(simplex_geometry.hidden_edges(vertices))


def test_it_can_be_reached_by_keyboard_and_is_described_to_those_who_cannot_see_it():
    fragment = four().interactive_html(script=False)
    assert re.search(
        r'<svg [^>]*role="img" tabindex="0" aria-label="Do the observed frequencies of the four outcomes', fragment
    )
    for token in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "prefers-reduced-motion", "pointermove"):
        assert token in rotation_script()


def test_a_layer_that_is_left_out_is_left_out_of_the_page():
    cells = scene_data(four().less("arrows", "cells"))["cells"]
    assert all(cell["observed"] == cell["predicted"] for cell in cells if cell["beyond"])
    assert any(cell["observed"] != cell["predicted"] for cell in cells if not cell["beyond"])
    assert {cell["radius"] for cell in cells} == {0}


def test_a_class_name_cannot_break_out_of_the_page():
    names = ["</script><b>x</b>", "<!--", "c", "d"]
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 100)
    rows = to.Predictions(np.array(names, dtype=object)[drawn_labels(rng, P)], P, classes=names)
    text = to.draw(rows, "tetrahedron").interactive_html(script=False)
    assert "<b>" not in text
    assert "<!--" not in text
    assert text.count("</script>") == 1


def test_a_folder_that_is_missing_is_an_error_with_its_code(tmp_path):
    with pytest.raises(InputError, match="TO703"):
        four().to_html(tmp_path / "nowhere" / "turn.html")
    with pytest.raises(InputError, match="TO203"):
        four().save(tmp_path / "turn.gif")


def test_weights_and_votes_and_a_single_row_can_be_drawn():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 50)
    for Y, w in ((np.eye(4)[drawn_labels(rng, P)], rng.uniform(0.2, 3.0, 50)), (rng.dirichlet(np.ones(4), 50), None)):
        assert Tetrahedron()([View(P, Y, w, name="canonical")]).svg().startswith("<svg")
    one_row = Tetrahedron()([View([[1.0, 0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]], name="canonical")])
    assert "<svg" in one_row.interactive_html()


def test_controls_in_names_are_text_on_the_page_and_in_the_picture_and_the_table_keeps_the_names(tmp_path):
    names = ["a\x1b[2J", "b\u202e", "c\x9b", "d\u2066"]
    rows = preds(400, k=4, power=0.5)
    diagram = to.draw(to.Predictions(rows.y, rows.p, classes=names), "tetrahedron")
    for suffix in ("html", "svg"):
        diagram.save(tmp_path / f"d.{suffix}")
        text = (tmp_path / f"d.{suffix}").read_text(encoding="utf-8")
        assert not re.search("[\x1b\u202e\x9b\u2066]", text)
    assert r"b\u202e" in (tmp_path / "d.html").read_text(encoding="utf-8")
    drawn = [text.get_text() for text in diagram.draw().findobj(Text)]
    assert {repr(name)[1:-1] for name in names} <= set(drawn)
    assert [diagram.panels[f"corner_{j}"][0] for j in range(4)] == names

"""A picture draws its table, where it is told to, and leaves everything else alone."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text

import trueodds as to
from tests.diagrams.artists import legend_of, name_of
from trueodds.binning.equal_mass import EqualMass, Sweep
from trueodds.binning.median_variance import MedianVariance
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.diagrams import PREDICTION_DIAGRAMS
from trueodds.diagrams._style import styling
from trueodds.diagrams.confidence_histogram import ConfidenceHistogram
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.view import View

SETTINGS = [
    Reliability(),
    Reliability(style="deviation"),
    Reliability(bars="confidence"),
    Reliability(style="deviation", bars="confidence", simultaneous=True),
    Reliability(bars=None),
    Reliability(EqualMass(8), by="redraw", resamples=99),
    ConfidenceHistogram(),
]


def view(seed=0, n=400, name="confidence"):
    rng = np.random.default_rng(seed)
    p = rng.beta(4, 2, n)
    return View(p, rng.random(n) < p**1.5, name=name)


def classwise(k, **kwargs):
    return [view(c, name=f"class:animal number {c}", **kwargs) for c in range(k)]


def strip_of(ax):
    return next(child for child in ax.child_axes if name_of(child) == "strip")


def marks(ax, label):
    return [artist for artist in ax.get_children() if name_of(artist) == label]


def corners(shape: PolyCollection):
    return np.array([path.vertices[:4] for path in shape.get_paths()])


@pytest.mark.parametrize("style", ["deviation", "diagonal"])
@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_what_is_drawn_is_the_table(style, bars):
    diagram = Reliability(Uniform(10), style=style, bars=bars)([view()])
    ax = diagram.draw().axes[0]
    t = diagram.table
    y, origin = ("deviation", t["mean_prediction"]) if style == "deviation" else ("outcome_rate", 0.0)
    inside, outside = marks(ax, "crosses")
    assert 0 < t["outside"].sum() < len(t["outside"])
    for line, which in ((inside, ~t["outside"]), (outside, t["outside"])):
        np.testing.assert_array_equal(line.get_xdata(), t["mean_prediction"][which])
        np.testing.assert_array_equal(line.get_ydata(), t[y][which])
    limits = np.stack([t["bar_low"] - origin, t["bar_high"] - origin], axis=1)
    for bar, which in zip(marks(ax, "bars"), (~t["outside"], t["outside"]), strict=True):
        assert isinstance(bar, LineCollection)
        segments = np.array(bar.get_segments())
        np.testing.assert_array_equal(segments[:, 0, 0], t["mean_prediction"][which])
        np.testing.assert_array_equal(segments[:, :, 1], limits[which])
    (shares,) = marks(strip_of(ax), "share")
    box = corners(shares)
    np.testing.assert_array_equal(box[:, 0, 0], t["low"])
    np.testing.assert_array_equal(box[:, 2, 0], t["high"])
    np.testing.assert_array_equal(box[:, 1, 1], t["share"])
    assert len(marks(ax, "gap")) == (style == "diagonal" and bars == "confidence")


def test_the_bars_are_colored_by_whether_the_cross_is_outside():
    inside, outside = marks(Reliability(Uniform(10))([view()]).draw().axes[0], "bars")
    assert tuple(inside.get_color()[0]) != tuple(outside.get_color()[0])


def test_the_histogram_draws_its_table_and_its_lines():
    diagram = ConfidenceHistogram(EqualMass(7))([view()])
    ax = diagram.draw().axes[0]
    (shares,) = marks(ax, "share")
    np.testing.assert_array_equal(corners(shares)[:, 1, 1], diagram.table["share"])
    assert marks(ax, "predicted")[0].get_xdata()[0] == diagram.panels["mean_prediction"][0]
    assert marks(ax, "observed")[0].get_xdata()[0] == diagram.panels["outcome_rate"][0]
    predicted_label, observed_label, _ = (text.get_text() for text in legend_of(ax).get_texts())
    assert predicted_label == f"mean confidence: {100 * diagram.panels['mean_prediction'][0]:.1f}\u00a0%"
    assert observed_label == f"accuracy: {100 * diagram.panels['outcome_rate'][0]:.1f}\u00a0%"


LAYERS = {"bars": "bars", "crosses": "crosses", "strip": "strip"}


def words_of(ax):
    legend = legend_of(ax)
    return [text.get_text() for text in legend.get_texts()] if legend else []


@pytest.mark.parametrize("bars", ["consistency", "confidence"])
def test_each_layer_can_be_left_out_and_the_legend_follows(bars):
    full = Reliability(Uniform(10), style="diagonal", bars=bars)([view()])
    drawn = full.draw().axes[0]
    layers = LAYERS | ({"gaps": "gap"} if bars == "confidence" else {})
    assert all(marks(drawn, label) for label in layers.values())
    for layer, label in layers.items():
        less = full.less(layer)
        ax = less.draw().axes[0]
        assert not marks(ax, label)
        assert all(marks(ax, other) for name, other in layers.items() if name != layer)
        assert words_of(ax) != words_of(drawn)
        assert less.table is full.table


def test_without_its_bars_the_level_stands_beside_the_crosses_that_they_tested():
    text = words_of(Reliability(level=0.8)([view()]).less("bars").draw().axes[0])
    bar = "the 80\u00a0% consistency bar"
    assert text[:2] == [f"observed, within {bar}", f"observed, outside {bar}"]


def test_without_the_strip_its_room_is_free():
    diagram = Reliability()([view()])
    low, high = diagram.less("strip").draw().axes[0].get_ylim()
    assert (low, high) == (diagram.panels["y_low"][0], diagram.panels["y_high"][0])
    assert diagram.draw().axes[0].get_ylim()[0] < low


def test_the_words_at_the_side_can_be_left_out():
    diagram = Reliability(style="deviation")([view()])
    sides = [
        [text for text in shown.draw().axes[0].texts if text.get_gid() == "side"]
        for shown in (diagram, diagram.less("sides"))
    ]
    assert len(sides[0]) == 2
    assert not sides[1]


def test_the_histogram_has_layers():
    diagram = ConfidenceHistogram()([view()])
    drawn = {"bars": ("share",), "band": ("band",), "lines": ("predicted", "observed")}
    entries = {"bars": 3, "band": 2, "lines": 1}
    for layer, labels in drawn.items():
        less = diagram.less(layer)
        ax = less.draw().axes[0]
        assert not any(marks(ax, label) for label in labels)
        assert all(marks(ax, label) for other, rest in drawn.items() if other != layer for label in rest)
        assert len(words_of(ax)) == entries[layer]
    assert words_of(diagram.less("band", "lines").draw().axes[0]) == []


@pytest.mark.parametrize("recipe", [Reliability(style="diagonal"), ConfidenceHistogram()])
def test_with_every_layer_left_out_a_picture_is_still_drawn(recipe):
    diagram = recipe([view()])
    ax = diagram.less(*diagram.layers).draw().axes[0]
    assert not any(marks(ax, label) for label in ("bars", "crosses", "strip", "gap", "share", "predicted", "band"))


@pytest.mark.parametrize("partition", [EqualMass(6), MedianVariance(40), Sweep()])
def test_bins_that_the_data_choose_are_drawn_as_they_are(partition):
    diagram = Reliability(partition, bars="confidence")([view()])
    ax = diagram.draw().axes[0]
    box = corners(marks(ax, "gap")[0])
    np.testing.assert_array_equal(box[:, 0, 0], diagram.table["low"])
    np.testing.assert_array_equal(box[:, 2, 0], diagram.table["high"])
    assert sum(len(line.get_xdata()) for line in marks(ax, "crosses")) == len(diagram.table["bin"])


def test_the_strip_of_unequal_bins_is_that_of_equal_cells():
    diagram = Reliability(EqualMass(6))([view()])
    (shares,) = marks(strip_of(diagram.draw().axes[0]), "share")
    box, strip = corners(shares), diagram.panels["strip"][0]
    np.testing.assert_array_equal(box[:, 1, 1], strip[strip > 0])
    np.testing.assert_allclose(box[:, 2, 0] - box[:, 0, 0], 1 / 30)


def test_crosses_never_reach_the_strip():
    for style in ("deviation", "diagonal"):
        diagram = Reliability(Uniform(20), style=style)([view(n=60)])
        ax = diagram.draw().axes[0]
        ax.get_figure().canvas.draw()
        top = strip_of(ax).get_window_extent().y1
        for line in marks(ax, "crosses"):
            assert (ax.transData.transform(line.get_xydata())[:, 1] > top).all()


@pytest.mark.parametrize("axes", [np.array([1, 2]), [1, 2], "ax"])
def test_anything_but_one_axes_is_refused(axes):
    with pytest.raises(InputError, match="TO203"):
        Reliability()([view()]).draw(axes)


def test_a_diagram_is_one_line_of_text():
    diagram = Reliability()([view()])
    assert str(diagram).splitlines()[0] == repr(diagram)
    assert "\n" not in repr(diagram)


@pytest.mark.parametrize("width", [6.4, 9.0])
def test_tick_labels_of_neighboring_panels_are_apart(width):
    figure = Reliability()(classwise(3)).draw()
    figure.set_figwidth(width)
    figure.canvas.draw()
    labels = [[label.get_window_extent() for label in ax.get_xticklabels()] for ax in figure.axes]
    for left, right in pairwise(labels):
        assert left[-1].x1 + 10 < right[0].x0


@pytest.mark.parametrize("recipe", SETTINGS)
def test_a_grid_shares_its_axes(recipe):
    figure = recipe(classwise(3)).draw()
    assert isinstance(figure, Figure)
    assert len(figure.axes) == 3
    assert len({ax.get_ylim() for ax in figure.axes}) == 1
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    assert all("animal number" in ax.get_title(loc="left") for ax in figure.axes)


def _words(figure):
    """The words that are painted, with their places."""
    for text in _painted_texts(figure):
        yield text.get_text(), text.get_window_extent()


def _painted_texts(figure):
    """What is painted: of tick labels only those of ticks within the limits, of axes that are switched on."""
    axes = figure.findobj(Axes)
    ticks = [(axis, ax.axison) for ax in axes for axis in (ax.xaxis, ax.yaxis)]
    every = {label for axis, _ in ticks for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)}
    painted = {
        label for axis, on in ticks if on for tick in axis._update_ticks() for label in (tick.label1, tick.label2)
    }
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible() and (text in painted or text not in every):
            yield text


@pytest.mark.slow
def test_pyplot_and_the_users_style_stay_as_they_were():
    import matplotlib.pyplot as plt

    before, figures = dict(matplotlib.rcParams), plt.get_fignums()
    for recipe in (Reliability(), ConfidenceHistogram()):
        diagram = recipe([view()])
        diagram.svg()
        diagram._repr_png_()
    assert plt.get_fignums() == figures
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_drawing_does_not_load_pyplot():
    import subprocess

    code = (
        "import sys\nfrom trueodds.lenses.view import View\nfrom trueodds.diagrams.reliability import"
        " Reliability\nd = Reliability()([View([.2, .9], [0, 1])])\nassert 'matplotlib' not in"
        " sys.modules\nd.svg()\nassert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_there_is_an_error_with_its_fix_and_still_a_table(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    diagram = Reliability()([view()])
    for attempt in (diagram.draw, diagram.svg):
        with pytest.raises(InputError, match=r"TO701.*\[report\]"):
            attempt()
    assert diagram._repr_svg_() is None
    assert diagram._repr_png_() is None
    assert diagram.to_dict()["table"]["n"]


def test_the_frame_is_what_is_installed(monkeypatch):
    diagram = Reliability()([view()])
    assert isinstance(diagram.frame(), pd.DataFrame)
    assert diagram.frame()["n"].tolist() == diagram.table["n"].tolist()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(diagram.frame(), pl.DataFrame)
    assert diagram.frame().columns == list(diagram.table)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(diagram.frame(), dict)
    np.testing.assert_array_equal(diagram.frame()["deviation"], diagram.table["deviation"])


@pytest.mark.slow
def test_the_svg_is_the_same_for_the_same_numbers_and_its_ids_are_not_those_of_another():
    first, repeated, other = (Reliability()([view(seed)]).svg() for seed in (0, 0, 1))
    assert first == repeated
    ids = [set(re.findall(r'\bid="([^"]*)"', text)) for text in (first, other)]
    assert ids[0].isdisjoint(ids[1])
    assert 'id="mine-' in Reliability()([view()]).svg(prefix="mine")


@pytest.mark.slow
def test_a_class_name_cannot_break_out_of_the_svg():
    views = [view(c, name=f'class:<b onload="x">{c}$\\frac$') for c in range(2)]
    root = ElementTree.fromstring(Reliability()(views).svg())
    assert "b" not in {element.tag.rpartition("}")[2] for element in root.iter()}


@pytest.mark.slow
@pytest.mark.parametrize(("ending", "first"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_saved_twice_the_files_are_equal(tmp_path, ending, first):
    diagram = Reliability()([view()])
    for name in "ab":
        diagram.save(tmp_path / f"{name}.{ending}")
    a, b = ((tmp_path / f"{name}.{ending}").read_bytes() for name in "ab")
    assert a == b
    assert a.startswith(first)


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_folder_that_is_missing_is_an_error_with_its_code(tmp_path, ending):
    with pytest.raises(InputError, match="TO703"):
        Reliability()([view()]).save(tmp_path / "nowhere" / f"picture.{ending}")


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match="TO203"):
        Reliability()([view()]).save(tmp_path / "picture.gif")


SIDES = [0.9, 1.2, 1.44, 2.0]  # inches of the axes that are given
# What makes a diagram quick, for tests of how it looks.
QUICK = {"training": {"resamples": 99}, "murphy": {"resamples": 99}, "llo_posterior": {"resolution": 21}}


def softer(k, n=150):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(k), n)
    true = P**0.6 / (P**0.6).sum(axis=1, keepdims=True)
    return to.Predictions((true.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(max=k - 1), P)


@pytest.mark.slow
@pytest.mark.parametrize("name", PREDICTION_DIAGRAMS)
def test_axes_too_small_for_a_grid_hold_its_first_view_as_the_title_says(name):
    lens = "classwise" if name not in ("simplex", "tetrahedron") else "canonical"
    try:
        diagram = to.draw({"1": softer(5)}, name, lens=lens, **QUICK.get(name, {}))
    except InputError as refused:
        assert refused.code in ("TO704", "TO205", "TO409")  # noqa: PT017 -- another error is a fault
        return
    views = len(diagram.panels["view"])
    for side in SIDES:
        figure = Figure(figsize=(side, side))
        ax = figure.add_axes((0, 0, 1, 1))
        diagram.draw(ax)
        figure.draw_without_rendering()
        title, first = ax.get_title(), str(diagram.panels["title"][0])
        assert views == 1 or title in (f"{first}: {diagram.view_order} of {views}", f"1 of {views}: {first}")


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 10])
def test_six_diagrams_of_classes_fit_into_a_small_figure(k):
    figure = Figure(figsize=(6, 4))
    diagram = to.draw(softer(k), "reliability", lens="classwise")
    for ax in figure.subplots(2, 3).flat:
        diagram.draw(ax)
    figure.draw_without_rendering()
    panels = [ax.get_tightbbox() for ax in figure.axes if ax.get_visible()]
    assert len(panels) >= 6
    assert all(box is None or box.width > 0 for box in panels)


def test_a_grid_in_given_axes_takes_fewer_columns_before_it_gives_up():
    figure = Figure(figsize=(2.6, 3.6))
    ax = figure.add_axes((0, 0, 1, 1))
    Reliability()(classwise(6)).draw(ax)
    panels = [child.get_position() for child in ax.child_axes if name_of(child) != "strip"]
    assert len(panels) == 6
    assert len({round(box.x0, 6) for box in panels}) == 2


@pytest.mark.slow
def test_what_a_grid_ranks_by_is_stated_in_its_own_words():
    figure = Figure(figsize=(9, 9))
    ax = figure.add_axes((0, 0, 1, 1))
    belt = to.draw(softer(3), "calibration_belt", lens="classwise")
    belt.draw(ax)
    assert ax.get_title().startswith("classwise, smallest p: ")
    many = ConfidenceHistogram()(classwise(14, n=40))
    assert any(text.get_text().endswith("Shown: 12 of 14 views, largest gap first.") for text in _lines(many.draw()))
    assert any(text.get_text().endswith("Largest error first.") for text in _lines(Reliability()(classwise(3)).draw()))
    (note,) = [note for note in many.notes if note.code == "TN245"]
    assert note.text == "Only 12 of 14 views are drawn, largest gap first. The table contains all of them."


def _lines(figure):
    for text in figure.texts:
        text.set_text(" ".join(text.get_text().split()))
    return figure.texts


def test_names_are_no_formulas_and_no_second_line():
    models = {"a$b$\n_c": softer(3), "_x$\\frac$": softer(3), "_" + 60 * "long name ": softer(3)}
    diagram = to.draw(models, "comparison", lens="class:1")
    figure = diagram.draw()
    figure.draw_without_rendering()
    words = [text for legend in _legends(figure) for text in legend.get_texts()]
    assert not any(text.get_parse_math() for text in words)
    texts = [text.get_text() for text in words]
    assert r"a$b$\n_c" in texts
    assert "_x$\\frac$" in texts
    assert max(text.get_window_extent().x1 for text in words) <= figure.bbox.x1


def test_axis_labels_are_no_formulas():
    ax = Reliability()([view()]).draw().axes[0]
    assert not ax.xaxis.label.get_parse_math()
    assert not ax.yaxis.label.get_parse_math()


def _legends(figure):
    return figure.findobj(Legend)


@pytest.mark.slow
def test_the_legend_names_only_the_crosses_that_are_drawn():
    calm = View(
        np.repeat([0.25, 0.75], 40), np.tile([0, 0, 0, 1, 1, 1, 1, 0], 10).reshape(10, 2, 4).swapaxes(0, 1).ravel()
    )
    miscalibrated = View(np.full(40, 0.9), np.zeros(40))
    for bars in ("consistency", "confidence"):
        diagram = Reliability(bars=bars)([calm])
        assert not diagram.table["outside"].any()
        assert not any("outside" in text or "excludes" in text for text in words_of(diagram.draw().axes[0]))
        for stray in (Reliability(bars=bars)([miscalibrated]), Reliability(bars=bars)([miscalibrated]).less("bars")):
            texts = words_of(stray.draw().axes[0])
            assert any("outside" in text or "excludes" in text for text in texts)
            assert any("95" in text for text in texts)
            assert not any("inside" in text or text.startswith("observed (") for text in texts)


def test_where_every_cross_is_outside_the_legend_shows_the_bar_that_is_drawn():
    p = np.repeat([0.3, 0.7], 500)
    for y, color in (
        (np.ones(1000), styling.OUTSIDE_BAR_COLOR),
        (np.r_[np.ones(500), np.arange(500) % 10 < 7], styling.INSIDE_BAR_COLOR),
    ):
        diagram = Reliability()([View(p, y, name="positive")])
        (bar,) = [mark for mark, label in diagram.legend() if label.endswith("consistency bar")]
        assert bar.get_color() == color


@pytest.mark.parametrize("k", [3, 4, 6])
@pytest.mark.parametrize(
    ("style", "label"), [("diagonal", "Observed frequency"), ("deviation", "Observed − predicted")]
)
def test_the_words_along_the_panels_are_whole(k, style, label):
    figure = Reliability(style=style)(classwise(k)).draw()
    (words,) = [text for text in figure.findobj(Text) if text.get_text().startswith("Observed") and text.get_rotation()]
    assert words.get_text() == label
    box = words.get_window_extent()
    assert 0 <= box.y0 < box.y1 <= figure.bbox.height

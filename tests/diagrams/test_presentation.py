"""Title, size, resolution and legend of a picture, the same for every diagram."""

from __future__ import annotations

import io
import re
from collections import Counter

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

import trueodds as to
from tests.diagrams.artists import legend_of, name_of
from tests.diagrams.monitored import monitored
from tests.diagrams.test_drawing import QUICK, _painted_texts, _words, classwise, marks, softer, view
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams._style import title_and_legend
from trueodds.diagrams.presentation import Presentation
from trueodds.diagrams.reliability import Reliability
from trueodds.lenses.view import View

CLASSES = {"simplex": 3, "tetrahedron": 4}


def drawn(name, **how):
    """A diagram of one view, or of a monitor."""
    if DIAGRAMS.load(name).takes_monitor:
        return to.draw(monitored(), name, **how)
    preds = softer(CLASSES.get(name, 3))
    if DIAGRAMS.load(name).needs_groups:
        preds = to.Predictions(preds.y, preds.P, group={"site": np.arange(preds.n) % 3})
    lens = "canonical" if name in CLASSES else "confidence"
    return to.draw(
        {"1": preds, "2": preds} if name == "training" else preds,
        name,
        lens=lens,
        **QUICK.get(name, {}),
        **how,
    )


@pytest.fixture(scope="module")
def every():
    return {name: drawn(name) for name in DIAGRAMS.names()}


def texts_of(figure):
    return [" ".join(text.get_text().split()) for text in _painted_texts(figure)]


# The diagonal


def test_the_default_is_the_diagonal_with_consistency_bars_around_it():
    diagram = to.draw(softer(3))
    ax = diagram.draw().axes[0]
    (line,) = marks(ax, "diagonal")
    assert line.get_xydata().tolist() == [[0, 0], [1, 1]]
    t = diagram.table
    points = np.concatenate([artist.get_xydata() for artist in marks(ax, "crosses")])
    expected = np.stack([t["mean_prediction"], t["outcome_rate"]], axis=1)
    np.testing.assert_array_equal(points[points[:, 0].argsort()], expected)
    for (x, low), (_, high) in np.concatenate([bars.get_segments() for bars in marks(ax, "bars")]):
        assert low <= x <= high  # the quantiles of what a calibrated model would show lie around its mean
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Confidence", "Accuracy")
    assert to.draw(softer(3), lens="class:1").axis_labels() == ("Predicted probability", "Observed frequency")


@pytest.mark.slow
@pytest.mark.parametrize("views", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("without", [(), ("strip",)])
def test_the_diagonal_rises_at_45_degrees(views, without):
    figure = Reliability()([view()] if views == 1 else classwise(views)).less(*without).draw()
    figure.draw_without_rendering()
    for ax in figure.axes:
        (x0, y0), (x1, y1) = ax.transData.transform([(0, 0), (1, 1)])
        assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-6)


# Titles


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_a_title_replaces_the_headline_and_none_leaves_only_the_legend(every, name):
    diagram = every[name]
    headline, finding = " ".join(diagram.default_title().split()), " ".join(diagram.summary().split())
    own = texts_of(diagram.draw(title="My\nown"))
    assert "My own" in own
    assert headline not in own
    assert finding in own
    usual = texts_of(diagram.draw())
    assert "My own" not in usual
    assert headline in usual
    assert finding in usual
    bare = sorted(words for words in usual if words not in (headline, finding))
    assert sorted(texts_of(diagram.draw(title=False))) == bare
    assert sorted(texts_of(diagram.present(title=False).draw(title=True))) == sorted(usual)
    assert finding not in texts_of(diagram.less("finding").draw())


@pytest.mark.slow
def test_an_empty_title_is_none(every):
    for diagram in (every["reliability"], Reliability()(classwise(3))):
        assert sorted(texts_of(diagram.draw(title=""))) == sorted(texts_of(diagram.draw(title=False)))


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_the_title_of_axes_that_are_given_is_the_callers(every, name):
    for title, shown in (("Mine", "Mine"), (False, ""), ("", "")):
        ax = Figure(figsize=(4, 4)).subplots()
        assert every[name].draw(ax, title=title) is ax
        assert ax.get_title() == shown


def test_a_title_is_no_formula_and_may_be_of_any_length():
    diagram = drawn("reliability", title="$x_ " + 200 * "long and longer " + "\n$")
    for figure in (diagram.draw(), diagram.draw(figsize=(1.5, 1.5)), diagram.draw(figsize=(3, 3))):
        figure.draw_without_rendering()
        title = max(figure.texts, key=lambda text: len(text.get_text()))
        assert title.get_text().startswith("$x_ long")
        assert title.get_text().endswith("…")
        assert not title.get_parse_math()
        box = title.get_window_extent()
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert figure.axes[0].get_window_extent().height > 10


@pytest.mark.slow
def test_a_title_holds_wherever_the_diagram_goes():
    diagram = to.draw(softer(3), title="Mine", figsize=(5, 4), dpi=50, bins=5)
    assert 'aria-label="Mine ' in diagram.svg()
    assert imread(io.BytesIO(diagram._repr_png_())).shape[:2] == (200, 250)
    assert "Mine" in texts_of(diagram.less("strip").draw())
    assert tuple(diagram.draw().get_size_inches()) == (5, 4)
    assert diagram.to_dict() == to.draw(softer(3), bins=5).to_dict()


@pytest.mark.slow
@pytest.mark.parametrize("views", [3, 10])
def test_a_grid_has_a_title_of_its_own_or_none(views):
    diagram = Reliability()(classwise(views))
    assert "Mine" in texts_of(diagram.draw(title="Mine"))
    assert not diagram.draw(title=False).texts[2:]  # what runs along x and along y
    assert diagram.draw(title=False).get_figheight() < diagram.draw().get_figheight()
    ax = Figure(figsize=(8, 8)).subplots()
    assert diagram.draw(ax, title="Mine").get_title() == "Mine"


# Sizes


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS.names())
@pytest.mark.parametrize("figsize", [(3, 3), (8, 4)])
def test_a_figure_of_any_size_holds_all_its_words_apart(every, name, figsize):
    figure = every[name].draw(figsize=figsize, dpi=90)
    figure.draw_without_rendering()
    assert tuple(figure.get_size_inches()) == figsize
    assert figure.dpi == 90
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) >= 0
    assert box.x1 <= figsize[0]
    assert box.y1 <= figsize[1]
    texts = list(_words(figure))
    assert all(a.x0 >= 0 and a.y0 >= 0 and a.x1 <= figure.bbox.x1 and a.y1 <= figure.bbox.y1 for _, a in texts)
    for i, (one, a) in enumerate(texts):
        for other, b in texts[:i]:
            disjoint = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
            assert disjoint, f"{one!r} meets {other!r}"


@pytest.mark.slow
@pytest.mark.parametrize("views", [1, 4, 10])
def test_a_saved_png_has_the_size_and_resolution_that_were_given(tmp_path, views):
    diagram = Reliability()([view()] if views == 1 else classwise(views))
    diagram.save(tmp_path / "a.png", figsize=(4, 3.5), dpi=120)
    assert imread(tmp_path / "a.png").shape[:2] == (420, 480)
    diagram.save(tmp_path / "b.png", figsize=(4, 3.5))
    assert imread(tmp_path / "b.png").shape[:2] == (700, 800)
    diagram.save(tmp_path / "c.svg", title=False, figsize=(4, 3.5))
    assert re.search(r'width="288pt" height="252pt"', (tmp_path / "c.svg").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_grid_of_a_given_size_takes_as_many_columns_as_give_its_panels_room():
    wide, high = (Reliability()(classwise(10)).draw(figsize=size) for size in ((9, 4), (4, 9)))
    columns = [len({round(ax.get_position().x0, 6) for ax in figure.axes}) for figure in (wide, high)]
    assert columns[0] > 3 >= columns[1]
    small = Reliability()(classwise(10)).draw(figsize=(2.5, 2.5))
    assert len(small.axes) == 1
    assert any("largest error of 10" in words or "1 of 10" in words for words in texts_of(small))


BAD = [
    {"title": 3},
    {"title": ["a"]},
    {"figsize": 5},
    {"figsize": "5,4"},
    {"figsize": (5,)},
    {"figsize": (5, 4, 3)},
    {"figsize": (0, 4)},
    {"figsize": (5, float("nan"))},
    {"figsize": (5, "4")},
    {"figsize": (500, 4)},
    {"dpi": 0},
    {"dpi": -100},
    {"dpi": "300"},
    {"dpi": True},
    {"dpi": float("inf")},
    {"figsize": (40, 40), "dpi": 1000},
    {"legend": "yes"},
    {"legend": 1},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_value_that_a_picture_cannot_have_is_refused(tmp_path, bad):
    preds, diagram = to.Predictions([0, 1], [0.2, 0.9]), Reliability()([view()])
    for attempt in (
        lambda: to.draw(preds, **bad),
        lambda: diagram.draw(**bad),
        lambda: diagram.save(tmp_path / "x.png", **bad),
        lambda: diagram.present(**bad),
        lambda: Presentation(**bad),
    ):
        with pytest.raises(InputError, match="TO203"):
            attempt()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [{"figsize": (3, 3)}, {"dpi": 100}])
def test_a_size_is_refused_beside_axes_that_are_given(size):
    ax = Figure().subplots()
    with pytest.raises(InputError, match=r"TO203.*figure of its own"):
        Reliability()([view()]).draw(ax, **size)
    with pytest.raises(InputError, match=r"TO203.*figure of its own"):
        to.draw(to.Predictions([0, 1], [0.2, 0.9]), ax=ax, **size)
    to.draw(to.Predictions([0, 1], [0.2, 0.9]), **size).draw(ax)  # of a figure that this is not


def test_numpy_numbers_are_sizes():
    assert Presentation(figsize=np.array([5, 4]), dpi=np.float32(100)).figsize == (5.0, 4.0)


# Legends


def placed(diagram, room, layout=None, *, legend=None):
    """The diagram in axes of a figure of several, with a legend where there is a place, or without one."""
    figure = Figure(figsize=(3, 3) if room == "3 by 3" else (11, 6), dpi=100, layout=layout)
    ax = figure.subplots() if room == "3 by 3" else figure.add_subplot(2, 4, 7)
    before = ax.get_position().bounds
    diagram.draw(ax, legend=legend)
    if layout is None:
        assert ax.get_position().bounds == before
    figure.draw_without_rendering()
    return ax


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS.names())
@pytest.mark.parametrize(("room", "layout"), [("3 by 3", None), ("2 by 4", None), ("2 by 4", "constrained")])
def test_a_legend_in_given_axes_covers_nothing_and_takes_no_room(every, name, room, layout):
    with_one = placed(every[name], room, layout)
    if (made := with_one.get_legend()) is None:
        return
    without = placed(every[name], room, layout, legend=False)
    assert without.get_legend() is None
    if not every[name].has_inset_axes:
        assert with_one.get_xlim() == pytest.approx(without.get_xlim())
        assert with_one.get_ylim() == pytest.approx(without.get_ylim())
    if layout is None:
        assert with_one.get_position().bounds == without.get_position().bounds
    box, axes = made.get_window_extent(), with_one.get_window_extent()
    assert axes.x0 - 1 <= box.x0
    assert box.x1 <= axes.x1 + 1
    assert axes.y0 - 1 <= box.y0
    assert box.y1 <= axes.y1 + 1
    # Where the legend stands, the same axes without it are blank but for lines of the grid.
    target = with_one if every[name].has_inset_axes else without
    if made is target.get_legend():
        made.set_visible(False)
    target.grid(False)
    image = _pixels(target.figure)[::-1, :, :3]
    under = image[int(box.y0) + 1 : int(box.y1), int(box.x0) + 1 : int(box.x1)]
    assert under.size
    assert under.min() > 0.98 * 255


@pytest.mark.slow
def test_most_diagrams_have_a_place_for_their_legend_in_axes_of_three_inches(every):
    shown = [name for name in every if placed(every[name], "3 by 3").get_legend() is not None]
    assert {"reliability", "reliability_curve", "corp", "calibration_belt", "simplex"} <= set(shown)


@pytest.mark.slow
def test_no_cross_and_no_bar_of_a_reliability_diagram_lies_under_its_legend():
    some = 0
    for seed in range(12):
        for style in ("diagonal", "deviation"):
            diagram = Reliability(style=style)([view(seed)])
            ax = Figure(figsize=(3.2, 3.2)).subplots()
            diagram.draw(ax)
            ax.figure.draw_without_rendering()
            if ax.get_legend() is None:
                continue
            some += 1
            box = ax.get_legend().get_window_extent()
            points = [line.get_xydata() for line in marks(ax, "crosses")]
            points += [np.linspace(*ends, 50) for ends in marks(ax, "bars")[0].get_segments()]
            assert not any(box.contains(*at) for at in ax.transData.transform(np.concatenate(points)))
    assert some >= 12


def full():
    """A picture without an empty place: bars from 0 to 1 all over the unit square."""
    p = np.repeat((np.arange(60) + 0.5) / 60, 2)
    return Reliability(partition=Uniform(60), bars="confidence", level=0.999)([View(p, np.tile([0, 1], 60))])


def test_a_legend_of_the_callers_is_left_alone():
    ax = Figure(figsize=(5, 5)).subplots()
    ax.plot([0.1, 0.2], [0.9, 0.9], label="mine")
    published = ax.legend(loc="upper left")
    Reliability()([view()]).draw(ax)
    assert ax.get_legend() is published


def test_a_legend_covers_none_of_what_the_axes_held_before():
    kinds = [lambda ax: ax.fill_between([0, 1], 0.55, 1.04), lambda ax: ax.text(0.02, 0.97, "Mine", va="top", size=20)]
    for put in kinds:
        ax = Figure(figsize=(4, 4)).subplots()
        own = put(ax)
        Reliability()([view()]).draw(ax)
        made = ax.get_legend()
        if made is not None:
            box = own.get_window_extent() if hasattr(own, "get_text") else own.get_datalim(ax.transData)
            box = box if hasattr(own, "get_text") else box.transformed(ax.transData)
            assert not made.get_window_extent().overlaps(box)


def test_without_an_empty_place_there_is_no_legend_unless_requested():
    for wants_legend, shown in ((None, False), (True, True), (False, False)):
        ax = Figure(figsize=(2.4, 2.4)).subplots()
        full().draw(ax, legend=wants_legend)
        assert (ax.get_legend() is not None) is shown
    figure = full().draw(legend=False)
    assert legend_of(figure.axes[0]) is None


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_a_legend_of_the_axes_shows_the_entries_of_the_diagram(every, name):
    figure = Figure(figsize=(6, 6))
    ax = figure.subplots()
    ax.plot([0.2, 0.4], [0.2, 0.4], label="mine")
    every[name].draw(ax, legend=False)
    handles, labels = ax.get_legend_handles_labels()
    assert labels == ["mine", *(label for _, label in every[name].legend() if label)]
    figure.legend(handles, labels)
    ax.legend()
    figure.draw_without_rendering()


def test_entries_for_a_legend_draw_nothing():
    figure = Figure()
    ax = figure.subplots()
    ax.set_axis_off()
    blank = _pixels(figure)
    title_and_legend.attach_legend_entries(ax, drawn("reliability").legend())
    assert (_pixels(figure) == blank).all()
    assert ax.get_xlim() == (0, 1)


def _pixels(figure):
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())


def test_the_artists_of_a_picture_are_no_entries_of_a_legend():
    ax = Figure().subplots()
    drawn("reliability").draw(ax)
    assert not any(label in ("bars", "crosses", "share") for label in ax.get_legend_handles_labels()[1])
    assert {"bars", "crosses"} <= {name_of(artist) for artist in ax.get_children()}


@pytest.mark.slow
@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_no_id_of_an_svg_stands_twice(every, name):
    ids = Counter(re.findall(r'\bid="([^"]*)"', every[name].svg()))
    assert [name for name, times in ids.items() if times > 1] == []

"""Marks: each kind is drawn with its entry in the legend, which follows what the panels draw."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from trueodds.diagrams._style.marks import (
    Arrows,
    AxisStrip,
    Band,
    Boxes,
    HLine,
    Line,
    PanelSize,
    Points,
    Segments,
    Strip,
    Text,
    VBand,
    VLine,
    draw_marks,
    legend_entries,
)

x = np.array([0.1, 0.4, 0.8])
KINDS = [
    (Line(x, x, color="red", label="a"), Line2D),
    (Points(x, x, color="red", marker="s", label="a"), Line2D),
    (VLine(0.3, color="red", label="a"), Line2D),
    (HLine(0.3, color="red", label="a"), Line2D),
    (Segments(x, x, 0, x, color="red", label="a"), Line2D),
    (Band(x, 0, x, color="red", label="a"), Patch),
    (VBand(0.2, 0.3, color="red", label="a"), Patch),
    (Boxes(x, x + 0.1, 0, x, facecolor="red", label="a"), Patch),
    (Strip(x, x + 0.1, x, max_share=0.8, facecolor="red", label="a"), Patch),
    (Arrows(np.stack([x, x], axis=1), np.stack([x, 1 - x], axis=1), width=0.02, color="red", label="a"), Line2D),
]


@pytest.mark.parametrize(("mark", "handle_class"), KINDS, ids=[type(mark).__name__ for mark, _ in KINDS])
def test_a_mark_and_its_entry_have_one_color(mark, handle_class):
    ax = Figure().subplots()
    draw_marks(ax, [mark])
    assert [label for label in ax.get_legend_handles_labels()[1] if label] == []
    (((handle, label),),) = [legend_entries([[mark]])]
    assert (type(handle), label) == (handle_class, "a")
    color = handle.get_color() if handle_class is Line2D else handle.get_facecolor()
    assert mpl.colors.same_color(color, "red")


@pytest.mark.parametrize("kind", [Line, Points, Segments, Band])
def test_a_mark_without_finite_numbers_draws_nothing_and_has_no_entry(kind):
    for numbers in (np.empty(0), np.full(2, np.nan)):
        mark = kind(*[numbers] * (4 if kind is Segments else 3 if kind is Band else 2), label="a", name="mark")
        ax = Figure().subplots()
        draw_marks(ax, [mark])
        assert not ax.lines
        assert not ax.collections
        assert legend_entries([[mark]]) == []


def test_the_legend_has_one_entry_per_label_in_the_order_of_the_marks_of_all_panels():
    nothing = Points([], [], label="outside", color="red")
    first = [Line(x, x, label="curve", color="blue"), nothing, Points(x, x, label="means", color="gray")]
    second = [
        Line(x, x, label="curve", color="blue"),
        Points(x, x, label="outside", color="red"),
        Points(x, x, label="curve", color="blue"),
    ]
    entries = legend_entries([first, second])
    assert [label for _, label in entries] == ["curve", "outside", "means"]
    assert [type(handle) for handle in entries[0][0]] == [Line2D, Line2D]  # a line with points
    assert entries[1][0].get_color() == "red"


def test_of_several_marks_with_one_label_the_legend_shows_the_first_that_any_panel_draws():
    empty = Line([], [], label="bar", color="gray")
    orange = Line(x, x, label="bar", color="orange")
    for panels, color in (
        ([[empty, orange]], "orange"),
        ([[empty, orange], [Line(x, x, label="bar", color="gray")]], "gray"),
    ):
        ((handle, _),) = legend_entries(panels)
        assert handle.get_color() == color


def test_texts_and_ticks_are_no_entries_and_names_no_formulas():
    ax = Figure(figsize=(5, 4)).subplots()
    draw_marks(ax, [Text(0.5, 0.5, "$x$"), Text(0, 0, ""), AxisStrip(x, ["10 %", "40 %", "41 %"], title="score:")])
    assert [text.get_text() for text in ax.texts] == ["$x$"]
    assert not ax.texts[0].get_parse_math()
    (strip,) = ax.child_axes
    assert strip.texts[0].get_text() == "score:"
    assert len(strip.lines) == 3
    assert PanelSize.of(ax).is_wide

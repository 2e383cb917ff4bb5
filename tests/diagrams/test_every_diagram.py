"""What holds for the picture of every diagram: its layers, its legend, the room of its words, and the smallest data."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import trueodds as to
from tests.data.refused import refused
from tests.diagrams.artists import legend_of, name_of
from tests.diagrams.monitored import monitored
from tests.diagrams.test_drawing import _words, classwise, marks, softer, view
from trueodds.diagrams import DIAGRAMS
from trueodds.diagrams._style.marks import LEGEND_SIZE
from trueodds.diagrams._style.styling import MUTED_COLOR
from trueodds.lenses.view import View

OF_VECTORS = {"simplex": 3, "tetrahedron": 4, "mcllo_parameters": 4}  # number of classes
OF_MODELS = ("comparison", "murphy", "decision_curve", "training")
QUICK: dict[str, dict[str, Any]] = {
    "training": {"resamples": 9},
    "murphy": {"resamples": 99},
    "decision_curve": {"resamples": 99},
    "corp": {"resamples": 99},
    "llo_posterior": {"resolution": 15},
    "groups": {"resamples": 99},
}
STYLES: list[tuple[str, dict[str, Any]]] = [
    ("reliability", {"style": "diagonal"}),
    ("reliability", {"style": "deviation"}),
    ("reliability", {"bars": "confidence"}),
    ("corp", {"style": "discrimination", "band": "consistency"}),
    ("corp", {"style": "discrimination", "band": "honest"}),
    ("calibration_belt", {"levels": (0.5, 0.8, 0.95)}),
    ("comparison", {"style": "deviation"}),
    ("comparison", {"style": "diagonal"}),
    ("murphy", {"style": "murphy"}),
    ("murphy", {"style": "plane"}),
    ("reliability_curve", {"band": "confidence"}),
    ("reliability_curve", {"band": None}),
    ("reliability_curve", {"smoother": "loess"}),
]
CASES = [*((name, {}) for name in DIAGRAMS.names()), *STYLES]


def case_name(case: Any) -> str | None:
    return "-".join(map(str, [case[0], *case[1].values()])) if isinstance(case, tuple) and len(case) == 2 else None


def models(count: int, n: int = 200) -> dict[str, to.Predictions]:
    """Predictions of the same rows, each too extreme by another factor."""
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, n)
    y = (rng.random(n) < p).astype(int)
    factors = 1 + np.arange(count) / 4
    return {f"{i + 1}" if count else "": to.Predictions(y, p**f / (p**f + (1 - p) ** f)) for i, f in enumerate(factors)}


def of_groups(n: int = 600) -> to.Predictions:
    """Predictions that are too high in one of three groups, of which one is too small to be examined."""
    rng = np.random.default_rng(0)
    p, site = rng.beta(2, 2, n), rng.choice(["north", "south", "islands"], n, p=[0.6, 0.39, 0.01])
    y = (rng.random(n) < np.where(site == "north", p, p**2)).astype(int)
    return to.Predictions(y, p, group={"site": site})


def drawn(case: tuple[str, dict[str, Any]], views: int = 1, n_models: int = 2) -> Any:
    """The diagram of one view, of two models where it takes several, or of several views of one model."""
    name, settings = case
    settings = QUICK.get(name, {}) | settings
    if DIAGRAMS.load(name).takes_monitor:
        return to.draw(monitored(), name, **settings)
    if DIAGRAMS.load(name).needs_groups:
        return to.draw(of_groups(), name, **settings)
    if name in OF_VECTORS and views == 1:
        return to.draw(softer(OF_VECTORS[name]), name, lens="canonical", **settings)
    if views > 1:
        return DIAGRAMS.load(name)(**settings)(classwise(views, n=150))
    if name in OF_MODELS:
        return to.draw(models(n_models), name, **settings)
    lens = "confidence" if name == "selective_risk" else "positive"
    return DIAGRAMS.load(name)(**settings)([view(name=lens)])


of_one_view = cache(lambda name, *settings: drawn((name, dict(settings))))


def names_of(diagram: Any) -> set[str]:
    """The names and ids of all that is drawn in new axes, and in the axes within them."""
    ax = diagram.draw().axes[0]
    return {str(name) for artist in ax.findobj() for name in (name_of(artist), artist.get_gid())}


def texts_of(diagram: Any) -> list[str]:
    return [text for _, text in diagram.legend() if text]


# Of each layer: the name of one of its marks, and the text in the legend that only it has.
LAYERS: dict[tuple[str, Any], dict[str, tuple[str, str | None]]] = {
    ("reliability", ("style", "deviation")): {
        "bars": ("bars", "95\u00a0% consistency bar"),
        "crosses": ("crosses", "observed, within the bar"),
        "strip": ("strip", "predictions"),
        "sides": ("side", None),
    },
    ("reliability", ("bars", "confidence")): {
        "bars": ("bars", "observed (95\u00a0% interval)"),
        "crosses": ("crosses", "95\u00a0% interval excludes predicted"),
        "strip": ("strip", "predictions"),
        "gaps": ("gap", "gap"),
    },
    ("reliability_curve", ("band", "confidence")): {
        "band": ("band", "95\u00a0% pointwise band"),
        "curve": ("curve", "observed, smoothed"),
        "reference": ("reference", "expected if calibrated"),
        "strip": ("strip", "predictions"),
        "diagonal": ("diagonal", "perfect calibration"),
    },
    ("corp", ("style", "discrimination")): {
        "band": ("band", "95\u00a0% consistency band (pointwise)"),
        "curve": ("curve", None),
        "marks": ("marks", None),
        "strip": ("strip", "predictions"),
        "numbers": ("numbers", None),
        "diagonal": ("diagonal", "perfect calibration"),
        "means": ("mean predicted", "means: predicted |, observed —"),
    },
    ("calibration_belt", ("levels", (0.8, 0.95))): {
        "belt": ("belt 0.95", "95\u00a0% simultaneous band"),
        "curve": ("curve", "fitted curve, degree 2"),
        "diagonal": ("diagonal", "perfect calibration"),
        "ranges": ("range", "diagonal outside the 95\u00a0% band"),
        "strip": ("strip", "predictions"),
    },
    ("cumulative", None): {
        "band": ("band", "simultaneous band (95\u00a0%)"),
        "curve": ("curve", "cumulative residual"),
        "extremes": ("extremes", "minimum, maximum"),
        "segment": ("segment", "steepest segment (slope −0.14)"),
        "ticks": ("axis_strip", None),
        "numbers": ("numbers", None),
    },
    ("confidence_histogram", None): {
        "bars": ("share", None),
        "band": ("band", "95\u00a0% consistency range"),
        "lines": ("predicted", "observed: 59.0\u00a0%"),
    },
    ("selective_risk", None): {
        "band": ("band", "95\u00a0% band, pointwise"),
        "curve": ("curve", "most confident first"),
        "random": ("random", "random order: 41.0\u00a0%"),
        "thresholds": ("axis_strip", None),
    },
    ("training", None): {
        "intervals": ("intervals", "95\u00a0% interval"),
        "noise_floor": ("noise_floor", "noise floor"),
        "threshold": ("threshold", "p = 5\u00a0%"),
        "lowest_log_loss": ("lowest_log_loss", "lowest log loss"),
    },
    ("recalibration_lines", None): {"lines": ("lines", "event"), "path_points": ("path_points", None)},
    ("mcllo_parameters", None): {
        "ellipses": ("ellipses", "95\u00a0% ellipse contains it"),
        "intervals": ("intervals", None),
        "marks": ("estimates", "(1, 1): calibrated"),
    },
    ("llo_posterior", None): {
        "map": ("map", "posterior near 100\u00a0%"),
        "contours": ("contour", "posterior 95, 90, 80\u00a0%"),
        "marks": ("best_fit", "best fit"),
    },
    ("simplex", None): {
        "cells": ("cells", "share: 0\u00a0% to 3.3\u00a0%"),
        "faded": ("faded", "not significant (95\u00a0%, Holm)"),
        "key": ("key", None),
    },
    ("tetrahedron", None): {
        "cells": ("cells", "share: 0\u00a0% to 6.7\u00a0%"),
        "faded": ("faded", "not significant (95\u00a0%, Holm)"),
        "key": ("key", None),
    },
    ("murphy", ("parts", True)): {
        "curves": ("curves", "1"),
        "band": ("band", "95\u00a0% interval"),
        "beyond": ("beyond", "differs from 1 (95\u00a0%)"),
        "parts": ("mcb", "miscalibration"),
        "strip": ("strip", "predictions"),
        "numbers": ("side", None),
    },
    ("murphy", ("style", "plane")): {
        "marks": ("marks", "1"),
        "bars": ("bars", "95\u00a0% interval of MCB"),
        "lines": ("lines", "equal Brier score"),
        "labels": ("score", None),
        "numbers": ("side", None),
    },
    ("decision_curve", None): {
        "band": ("band", "95\u00a0% pointwise band"),
        "curves": ("curves", "1"),
        "all": ("all", "treat all"),
        "none": ("none", "treat none"),
        "strip": ("strip", "predictions"),
    },
    ("groups", None): {
        "intervals": ("intervals", None),
        "marks": ("miscalibrated", None),
        "noise_floor": ("noise_floor", "noise floor"),
        "overall": ("overall", "all rows: 0.0832"),
        "numbers": ("numbers", None),
    },
    ("monitor", None): {
        "points": ("ratios", "95\u00a0% interval excludes 1"),
        "intervals": ("intervals", None),
        "onset": ("onset", "onset"),
        "alarm": ("threshold", "alarm at 20"),
        "resets": ("resets", "reset"),
        "open": ("open", "open cohorts"),
    },
    ("comparison", None): {
        "bars": ("bars", "95\u00a0% interval"),
        "lines": ("lines", None),
        "marks": ("marks", "hollow: not significant"),
        "strip": ("strip", "predictions"),
        "numbers": ("side", None),
        "diagonal": ("diagonal", None),
    },
}


def with_settings(name: str, setting: Any) -> Any:
    return of_one_view(name, setting) if setting else of_one_view(name)


names_with_all_layers = cache(lambda name, setting: names_of(with_settings(name, setting)))


@pytest.mark.parametrize(
    ("name", "setting", "layer", "mark", "text"),
    [
        pytest.param(name, setting, layer, *expected, id=f"{name}-{layer}" + (f"-{setting[1]}" if setting else ""))
        for (name, setting), layers in LAYERS.items()
        for layer, expected in layers.items()
    ],
)
def test_a_layer_that_is_left_out_is_gone_from_picture_and_legend(name, setting, layer, mark, text):
    full = with_settings(name, setting)
    less = full.less(layer)
    assert mark in names_with_all_layers(name, setting)
    assert mark not in names_of(less)
    if text:
        assert text in texts_of(full)
        assert text not in texts_of(less)
    assert less.table is full.table


@pytest.mark.parametrize("name", [name for name in DIAGRAMS.names() if name != "training"])  # which has four axes
def test_every_mark_in_the_legend_belongs_to_a_layer(name):
    diagram = of_one_view(name)
    marks_of_panel = diagram.marks(0, LEGEND_SIZE)
    always = {"", "diagonal"} if name == "reliability" else {""}  # which is drawn whatever is left out
    assert {mark.layer for mark in marks_of_panel} <= {*diagram.layers} | always
    assert not [mark.name for mark in marks_of_panel if mark.label and not mark.layer]
    bare = names_of(diagram.less(*diagram.layers))
    assert not bare & {mark.name for mark in marks_of_panel if mark.layer not in always}


def test_every_diagram_with_layers_is_among_them():
    names = {name for name, _ in LAYERS}
    assert {name for name in DIAGRAMS.names() if of_one_view(name).layers} == names


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_without_any_layer_it_still_draws_and_has_no_legend(name):
    full = of_one_view(name)
    bare = full.less(*full.layers)
    assert texts_of(bare) == []
    bare.draw().savefig(io.BytesIO())
    bare.draw(Figure().subplots())


def colors(ax: Any) -> Iterator[Any]:
    """Of all marks in axes and in those within, transparency aside."""
    for panel in [ax, *ax.child_axes]:
        for line in panel.lines:
            if len(line.get_xdata()):
                yield from (line.get_color(), line.get_markeredgecolor())
        yield from (shape.get_facecolor() for shape in panel.patches)
        for shape in panel.collections:
            yield from [*shape.get_facecolor(), *shape.get_edgecolor()]


@pytest.mark.parametrize("name", DIAGRAMS.names())
def test_no_entry_of_the_legend_is_without_a_mark(name):
    diagram = of_one_view(name)
    assert legend_of(diagram.less(*diagram.layers).draw().axes[0]) is None
    for layer in diagram.layers:
        alone = diagram.less(*(other for other in diagram.layers if other != layer))
        painted = {to_hex(color) for axes in alone.draw().axes for color in colors(axes)}
        for handles, label in alone.legend():
            for handle in handles if isinstance(handles, tuple) else [handles]:
                own = handle.get_facecolor() if hasattr(handle, "get_facecolor") else handle.get_color()
                # What several models share is gray in the legend.
                assert to_hex(own) in painted or (own == MUTED_COLOR and painted), f"{layer}: {label}"


def assert_within(figure: Figure) -> None:
    """Nothing is cut off at the edges of the figure."""
    figure.draw_without_rendering()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= width
    assert box.y1 <= height


def assert_apart(texts: Sequence[tuple[str, Any]]) -> None:
    """No two words overlap."""
    for i, (label, a) in enumerate(texts):
        for other, b in texts[:i]:
            disjoint = a.x1 <= b.x0 + 1 or b.x1 <= a.x0 + 1 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
            assert disjoint, f"{label!r} meets {other!r}"


ONE_VIEW = ("monitor", "simplex", "tetrahedron", "selective_risk", "decision_curve", "training", "groups")
GRIDS = [case for case in CASES if case[0] not in ONE_VIEW]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "views", "n_models"),
    [
        *((case, 1, 2) for case in CASES),
        *((case, 1, 8) for case in CASES if case[0] in OF_MODELS and case[0] != "training"),
        *((case, 4, 1) for case in GRIDS),
        *((case, 10, 1) for case in GRIDS if case[0] in ("comparison", "reliability")),
    ],
    ids=case_name,
)
def test_no_words_overlap_and_nothing_is_cut_off(case, views, n_models):
    figure = drawn(case, views, n_models).draw()
    assert_within(figure)
    texts = list(_words(figure))
    assert len(texts) > 6
    assert_apart(texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "views"), [*((case, 1) for case in CASES), *((case, 10) for case in GRIDS)], ids=case_name
)
def test_in_small_axes_everything_stays_within(case, views):
    figure = Figure(figsize=(3.4, 2.9) if views == 1 else (9, 7))
    ax = figure.add_axes((0.22, 0.2, 0.7, 0.68))
    diagram = drawn(case, views)
    assert diagram.draw(ax) is ax
    assert_within(figure)
    assert figure.axes == [ax]
    if views == 1:  # there is no room for numbers beside or in the picture
        assert not [text.get_text() for text in ax.texts if text.get_gid() in ("side", "numbers")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "views"), [*((case, 1) for case in CASES), *((case, 3) for case in GRIDS)], ids=case_name
)
def test_in_axes_that_are_given_nothing_meets_a_neighbor(case, views):
    figure = Figure(figsize=(11, 4.5))
    left, right = figure.subplots(1, 2)
    diagram = drawn(case, views)
    assert diagram.draw(right) is right
    assert figure.axes == [left, right]
    assert not left.has_data()
    assert not left.texts
    diagram.draw(left)
    assert_within(figure)
    assert left.get_tightbbox().x1 <= right.get_tightbbox().x0
    for ax in (left, right):
        assert ax.get_title()
        if views > 1 or ax.get_legend() is not None:  # there may be no place for one
            assert ax.get_legend().get_window_extent().y1 <= ax.get_window_extent().y1 + 1
        panels = [child for child in ax.child_axes if name_of(child) not in ("strip", "axis_strip", "key", "side")]
        for panel in panels or [ax]:
            for line in marks(panel, "crosses"):
                assert not any(
                    ax.get_legend().get_window_extent().contains(*point)
                    for point in panel.transData.transform(line.get_xydata())
                )


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_the_svg_stands_alone(case):
    text = drawn(case, views=2 if case in GRIDS else 1).svg()
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert "style" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    prefix = ids[0].partition("-")[0]
    assert all(element_id.startswith(prefix + "-") for element_id in ids)
    targets = re.findall(r'href="([^"]*)"', text) + re.findall(r"url\(([^)]*)\)", text)
    is_color_key = [target.startswith("data:image/png;base64,") for target in targets]
    assert sum(is_color_key) == (case[0] in ("simplex", "tetrahedron"))
    assert {target for target, is_image in zip(targets, is_color_key, strict=True) if not is_image} <= {
        f"#{i}" for i in ids
    }
    addresses = set(re.findall(r"https?://[^\"' <]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not places
    assert not re.search(r"<(!--|script|metadata|foreignObject)\b", text)


SMALLEST = [([0.5], [1]), ([0.0], [0]), ([1.0], [1]), ([1.0, 0.0], [0, 1]), ([0.3] * 9, [1] * 4 + [0] * 5)]


@pytest.mark.slow
@pytest.mark.parametrize(("p", "y"), SMALLEST)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case[0] not in (*OF_VECTORS, "training", "groups", "monitor")], ids=case_name
)
def test_the_smallest_data_can_be_drawn(case, p, y):
    name, settings = case
    recipe = DIAGRAMS.load(name)(**(QUICK.get(name, {}) | settings))
    if name == "calibration_belt" and {0.0, 1.0} & set(p):
        with refused("TO205", "with probability 0 or 1"):
            recipe([View(p, y, name="positive")])
        return
    recipe([View(p, y, name="confidence" if name == "selective_risk" else "positive")]).draw()
    if name in OF_MODELS:
        preds = to.Predictions(y, p)
        to.draw({"a": preds, "b": preds}, name, **(QUICK.get(name, {}) | settings)).draw()


@pytest.mark.parametrize("name", ["reliability_curve", "corp", "calibration_belt", "comparison"])
def test_diagrams_of_the_diagonal_have_the_same_scale_on_both_axes(name):
    diagram = of_one_view(name) if name != "comparison" else of_one_view(name, ("style", "diagonal"))
    figure = diagram.draw()
    figure.draw_without_rendering()
    (x0, y0), (x1, y1) = figure.axes[0].transData.transform([(0, 0), (1, 1)])
    assert x1 - x0 == pytest.approx(y1 - y0, rel=1e-6)

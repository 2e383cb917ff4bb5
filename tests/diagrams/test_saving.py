"""Pictures for papers and slides: the printed size, the size of type, embedded fonts, vectors, and equal bytes."""

from __future__ import annotations

import csv
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.axes import Axes
from PIL import Image

import trueodds as to
from tests.diagrams.test_drawing import QUICK, softer
from trueodds.cli import main
from trueodds.core.errors import InputError
from trueodds.diagrams import PREDICTION_DIAGRAMS
from trueodds.diagrams._style import publication, styling
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.presentation import Presentation

POINTS = 72


@pytest.fixture(scope="module")
def diagram() -> Diagram:
    return to.draw(softer(3), "reliability", lens="confidence")


def pdf_parts(path: Path) -> tuple[bytes, str]:
    """The objects of a PDF, and the drawing commands of its pages."""
    content = path.read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    commands = []
    for stream in streams:
        try:
            commands.append(zlib.decompress(stream).decode("latin1"))
        except zlib.error:
            continue
    return content, "\n".join(commands)


def page_size(path: Path) -> tuple[float, float]:
    """Width and height of the page of a PDF in inches."""
    _, _, width, height = map(float, re.search(rb"/MediaBox \[ ([\d. ]+) \]", path.read_bytes())[1].split())
    return width / POINTS, height / POINTS


def type_sizes(path: Path) -> list[float]:
    """The printed sizes of type in a PDF, in points."""
    commands = pdf_parts(path)[1]
    (scale,) = {float(match) for match in re.findall(r"^([\d.]+) 0 0 \1 0 0 cm$", commands, re.MULTILINE)} or {1.0}
    return sorted(scale * float(size) for size in re.findall(r"/F\d+ ([\d.]+) Tf", commands))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("style", "width", "inches"),
    [
        ("paper", None, 3.3),
        ("paper", "column", 3.3),
        ("paper", "page", 6.8),
        ("paper", 5, 5.0),
        ("slide", None, 10.0),
        ("slide", "column", 4.8),
        (None, "column", 3.3),
        (None, 4.5, 4.5),
    ],
)
def test_every_format_has_the_width_that_is_printed(
    diagram: Diagram, tmp_path: Path, style: str | None, width: float | str | None, inches: float
) -> None:
    for suffix in ("pdf", "svg", "png"):
        diagram.save(tmp_path / f"f.{suffix}", style=style, width=width)
    assert page_size(tmp_path / "f.pdf")[0] == pytest.approx(inches, abs=1e-4)
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1]) / POINTS == pytest.approx(inches, abs=1e-3)
    with Image.open(tmp_path / "f.png") as picture:
        resolution = picture.info["dpi"][0]
        assert picture.width / resolution == pytest.approx(inches, abs=0.02)
    assert resolution == pytest.approx(300 if style == "paper" else 200, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reliability", "cumulative", "confidence_histogram"])
@pytest.mark.parametrize(
    ("style", "width", "points"), [("paper", None, 8), ("paper", "page", 8), ("slide", "page", 18)]
)
def test_axis_labels_have_the_type_size_of_the_style(
    tmp_path: Path, name: str, style: str, width: str | None, points: float
) -> None:
    to.draw(softer(3), name, lens="confidence").save(tmp_path / "f.pdf", style=style, width=width)
    sizes = type_sizes(tmp_path / "f.pdf")
    # The labels of both axes are ordinary text; its size is estimated before the margins are known exactly.
    assert sum(abs(size - points) < 0.06 * points for size in sizes) >= 2
    assert min(sizes) > 0.7 * points


@pytest.mark.slow
def test_lines_reach_the_edge_of_a_reduced_page(tmp_path: Path) -> None:
    # The figure is drawn 8 inches wide and reduced to 6.8: lines were once clipped where the reduced page ends.
    to.draw(softer(3), "cumulative", lens="confidence").save(tmp_path / "f.pdf", style="paper", width="page")
    commands = pdf_parts(tmp_path / "f.pdf")[1]
    (scale,) = {float(match) for match in re.findall(r"^([\d.]+) 0 0 \1 0 0 cm$", commands, re.MULTILINE)}
    assert scale < 0.9
    right_ends = [scale * float(x) for x in re.findall(r"^([\d.]+) [\d.]+ l$", commands, re.MULTILINE)]
    # 29 points of the curve, besides 10 ends of grid lines and ticks, which are not clipped.
    assert sum(x > 0.87 * 6.8 * POINTS for x in right_ends) > 25


def slide_figure(diagram: Any) -> Any:
    size = publication.size_of_diagram(diagram, "slide", None).figsize
    return replace(diagram, presentation=Presentation(figsize=size, side_header=True)).draw()


def test_marks_in_the_legend_of_a_slide_do_not_touch() -> None:
    # The disk, the square and the triangle of the models touched: 22 points on lines of 18.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 200)
    y = (rng.random(200) < p).astype(int)
    diagram = to.draw({"a": to.Predictions(y, p), "b": to.Predictions(y, p**1.5)}, "murphy", style="plane")
    (legend,) = slide_figure(diagram).legends
    assert max(line.get_markersize() for line in legend.get_lines()) < 1.1 * legend.get_texts()[0].get_fontsize()


@pytest.mark.slow
def test_the_titles_of_the_panels_of_a_slide_are_complete() -> None:
    # "Accur…" stood above the second panel.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 100)
    y = (rng.random(100) < p).astype(int)
    epochs = {f"{run}/{epoch}": to.Predictions(y, p ** (epoch / 2)) for run in "ab" for epoch in (1, 2, 3)}
    diagram = to.draw(epochs, "training", resamples=19)
    titles = [title for ax in slide_figure(diagram).findobj(Axes) if (title := ax.get_title(loc="left"))]
    assert titles == ["Log loss", "Accuracy", "ECE", "p-value"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["reliability", "corp", "calibration_belt", "decision_curve", "murphy"])
def test_a_slide_is_landscape_and_has_its_title_and_its_legend_beside_the_axes(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 500)
    diagram = to.draw((rng.random(500) < p**1.5).astype(int), p, name)
    diagram.save(tmp_path / "f.pdf", style="slide")
    width, height = page_size(tmp_path / "f.pdf")
    assert (width, height) == (pytest.approx(10.0), pytest.approx(5.625))
    figure = slide_figure(diagram)
    figure.draw_without_rendering()
    axes = figure.axes[0].get_tightbbox()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == len(diagram.legend()) > 1
    for part in (legend, *figure.texts):
        box = part.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= axes.x0 + 1
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height
    assert axes.x1 <= figure.bbox.width + 1
    assert figure.axes[0].get_window_extent().height > 0.6 * figure.bbox.height


@pytest.mark.slow
def test_half_a_slide_is_not_higher_than_a_slide(diagram: Diagram, tmp_path: Path) -> None:
    diagram.save(tmp_path / "f.pdf", style="slide", width="column")
    assert page_size(tmp_path / "f.pdf")[1] <= 5.5 + 1e-6


@pytest.mark.slow
def test_a_pdf_embeds_truetype_fonts(diagram: Diagram, tmp_path: Path) -> None:
    diagram.save(tmp_path / "f.pdf", style="paper")
    objects, commands = pdf_parts(tmp_path / "f.pdf")
    assert b"/FontFile2" in objects
    assert b"/Type3" not in objects
    fonts = re.findall(rb"/BaseFont /([\w+-]+)", objects)
    assert fonts
    assert all(b"DejaVuSans" in font for font in fonts)
    assert re.search(r"^BT$", commands, re.MULTILINE)  # text, not outlines


@pytest.mark.slow
def test_marks_are_vectors_and_only_huge_collections_are_images(
    diagram: Diagram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diagram.save(tmp_path / "vector.pdf", style="paper")
    assert b"/Subtype /Image" not in (tmp_path / "vector.pdf").read_bytes()
    monkeypatch.setattr(publication, "MAX_VECTOR_MARKS", 3)
    diagram.save(tmp_path / "image.pdf", style="paper")
    objects, commands = pdf_parts(tmp_path / "image.pdf")
    assert b"/Subtype /Image" in objects
    assert re.search(r"^BT$", commands, re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pdf", "svg", "png"])
def test_the_same_numbers_give_the_same_bytes(diagram: Diagram, tmp_path: Path, suffix: str) -> None:
    for name in ("a", "b"):
        diagram.save(tmp_path / f"{name}.{suffix}", style="paper")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert b"CreationDate" not in content


def test_without_a_style_the_file_is_as_before(diagram: Diagram, tmp_path: Path) -> None:
    diagram.save(tmp_path / "f.pdf")
    assert page_size(tmp_path / "f.pdf") == pytest.approx(diagram.figure_size)
    assert b"/Type3" in (tmp_path / "f.pdf").read_bytes()


@pytest.mark.slow
def test_a_paper_has_no_title_unless_one_is_given(diagram: Diagram, tmp_path: Path) -> None:
    heights = {}
    for name, title in (("default", None), ("none", False), ("own", "Validation set")):
        diagram.save(tmp_path / f"{name}.pdf", style="paper", title=title)
        heights[name] = page_size(tmp_path / f"{name}.pdf")[1]
    assert heights["default"] == heights["none"] < heights["own"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in PREDICTION_DIAGRAMS if name not in ("simplex", "tetrahedron", "training", "groups")]
)
def test_every_diagram_can_be_saved_for_a_paper(name: str, tmp_path: Path) -> None:
    to.draw(softer(2), name, **QUICK.get(name, {})).save(tmp_path / "f.pdf", style="paper")
    width, height = page_size(tmp_path / "f.pdf")
    assert width == pytest.approx(3.3)
    assert 1.5 < height <= 1.5 * 3.3 + 1e-6


@pytest.mark.slow
def test_several_views_are_saved_for_a_paper(tmp_path: Path) -> None:
    to.draw(softer(6), "reliability", lens="classwise").save(tmp_path / "f.pdf", style="paper", width="page")
    assert page_size(tmp_path / "f.pdf")[0] == pytest.approx(6.8)
    assert min(type_sizes(tmp_path / "f.pdf")) > 5


def test_text_whose_words_all_stand_on_their_own_lines_is_wrapped() -> None:
    assert styling.wrap_text("Does confidence match", 1.0, 9.0) == "Does\nconfidence\nmatch"  # it once never returned


@pytest.mark.parametrize(
    "settings",
    [
        {"style": "poster"},
        {"style": "paper", "width": "half"},
        {"style": "paper", "width": 0.5},
        {"width": True},
        {"style": "paper", "figsize": (4, 3)},
        {"width": np.nan},
    ],
)
def test_invalid_styles_and_widths_are_coded(diagram: Diagram, tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        diagram.save(tmp_path / "f.pdf", **settings)
    assert caught.value.code == "TO203"
    assert not (tmp_path / "f.pdf").exists()


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_the_data_of_a_diagram_is_saved_as_the_command_saves_it(tmp_path: Path, suffix: str) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("label,p_0,p_1\n" + "0,0.8,0.2\n1,0.3,0.7\n" * 20, encoding="utf-8")
    diagram = to.draw(to.read(rows), "reliability", rng=0)
    saved, expected = tmp_path / f"saved.{suffix}", tmp_path / f"expected.{suffix}"
    diagram.save(str(saved))
    assert CliRunner().invoke(main, ["draw", str(rows), "--out", str(expected)]).exit_code == 0
    if suffix == "csv":
        assert saved.read_bytes() == expected.read_bytes()
        lines = list(csv.reader(saved.read_text(encoding="utf-8").splitlines()))
        assert lines[0] == list(diagram.table)
        assert len(lines) == 1 + len(diagram.table["view"])
    else:
        assert json.loads(saved.read_text(encoding="utf-8")) == diagram.to_dict()
        assert (
            json.loads(saved.read_text(encoding="utf-8"))["table"]
            == json.loads(expected.read_text(encoding="utf-8"))["table"]
        )


def test_the_data_of_a_grid_is_saved(tmp_path: Path) -> None:
    y, p = [0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4]
    grid = to.draw(y, {"a": p, "b": [0.5, 0.6, 0.7, 0.1]}, ["reliability", "cumulative"])
    grid.save(tmp_path / "g.csv")
    header, *lines = csv.reader((tmp_path / "g.csv").read_text(encoding="utf-8").splitlines())
    assert header == list(grid.frame())
    assert {line[0] for line in lines} == {"reliability", "cumulative"}
    assert len(lines) == sum(len(diagram.table["view"]) for diagram in grid.diagrams)
    grid.save(tmp_path / "g.json")
    assert json.loads((tmp_path / "g.json").read_text(encoding="utf-8")) == grid.to_dict()


def test_data_has_no_title_and_no_size(diagram: Diagram, tmp_path: Path) -> None:
    for settings in ({"title": "T"}, {"dpi": 100}, {"style": "paper"}, {"width": 3.0}):
        with pytest.raises(InputError, match="TO203"):
            diagram.save(tmp_path / "a.csv", **settings)
    with pytest.raises(InputError, match="TO703"):
        diagram.save(tmp_path / "missing" / "a.json")
    with pytest.raises(InputError, match=r"\.csv or \.json"):
        diagram.save(tmp_path / "a.xlsx")
    assert not list(tmp_path.iterdir())


def test_the_width_of_a_text_is_that_of_the_font_in_use() -> None:
    # Widths were kept by text and size alone, so that a diagram drawn in one font was laid out for another.
    widths = []
    for family in ("DejaVu Sans", "DejaVu Sans Mono", "DejaVu Sans"):
        with matplotlib.rc_context({"font.family": [family]}):
            widths.append(styling.text_width("illi", 8.0))
    assert widths[0] == widths[2] < widths[1]
    assert styling.text_width("illi", 16.0) == pytest.approx(2 * styling.text_width("illi", 8.0))

"""A grid of models and diagrams: which axes it shares, what it names, and how it is saved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import trueodds as to
from tests.diagrams.test_drawing import softer
from tests.diagrams.test_saving import page_size
from trueodds.core.errors import InputError
from trueodds.diagrams._style.grid_of_models import FittedNames, choose_model_columns, fit_names
from trueodds.diagrams.grid import DiagramGrid


@pytest.fixture(scope="module")
def models() -> dict[str, to.Predictions]:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, 2, 400)
    y = (rng.random(400) < 1 / (1 + np.exp(-log_odds))).astype(int)
    return {name: to.Predictions(y, 1 / (1 + np.exp(-factor * log_odds))) for name, factor in (("a", 1), ("b$x$", 3))}


@pytest.fixture(scope="module")
def grid(models: dict[str, to.Predictions]) -> DiagramGrid:
    return to.draw(models, ["reliability", "cumulative"])


def panels_of(grid: DiagramGrid, **settings: object) -> list[object]:
    """The axes of the cells, column by column."""
    return list(grid.draw(**settings).axes)


def test_a_column_shares_its_axes_and_a_cell_shows_its_own_model(
    grid: DiagramGrid, models: dict[str, to.Predictions]
) -> None:
    first, second, third, fourth = panels_of(grid)
    for upper, lower in ((first, second), (third, fourth)):
        assert (upper.get_xlim(), upper.get_ylim()) == (lower.get_xlim(), lower.get_ylim())
    alone = to.draw(models["b$x$"], "cumulative")
    shown = grid.diagrams[1].rows(1)
    assert np.array_equal(shown["difference"], alone.table["difference"], equal_nan=True)
    low, high = fourth.get_ylim()
    assert low < np.nanmin(shown["difference"]) < np.nanmax(shown["difference"]) < high


def test_names_stand_once_at_the_top_and_at_the_left(grid: DiagramGrid) -> None:
    figure = grid.draw()
    assert [text.get_text() for text in figure.texts] == ["a", "b$x$", "Reliability", "Cumulative"]
    upper, lower = figure.axes[:2]
    assert (upper.get_xlabel(), lower.get_xlabel()) == ("", "Predicted probability")
    assert not any(label.get_visible() for label in upper.get_xticklabels())
    assert any(label.get_visible() for label in lower.get_xticklabels())
    assert len(figure.legends) == 2
    assert not grid.draw(legend=False).legends


@pytest.mark.slow
def test_no_text_leaves_the_figure(grid: DiagramGrid) -> None:
    figure = grid.draw()
    figure.canvas.draw()
    texts = [*figure.texts, *(ax.xaxis.label for ax in figure.axes), *(ax.yaxis.label for ax in figure.axes)]
    for text in texts:
        box = text.get_window_extent()
        if text.get_text():
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= figure.bbox.x1 + 1
            assert box.y1 <= figure.bbox.y1 + 1


def test_the_frame_names_model_and_diagram(grid: DiagramGrid) -> None:
    frame = grid.frame()
    assert set(zip(frame["diagram"], frame["model"], strict=True)) == {
        (diagram, model) for diagram in ("reliability", "cumulative") for model in ("a", "b$x$")
    }
    assert json.loads(json.dumps(grid.to_dict(), allow_nan=False))["models"] == ["a", "b$x$"]


def test_a_list_of_diagrams_of_one_model_is_one_row(models: dict[str, to.Predictions]) -> None:
    grid = to.draw(models["a"], ["reliability", "corp", "murphy"], resamples=99)
    assert grid.models == ("",)
    assert [text.get_text() for text in grid.draw().texts] == ["Reliability", "Corp", "Murphy"]


def test_arrays_of_several_models_are_paired_with_the_outcomes() -> None:
    grid = to.draw([0, 1, 1, 0], {"a": [0.1, 0.8, 0.7, 0.4], "b": [0.3, 0.6, 0.5, 0.5]}, ["reliability"])
    assert grid.models == ("a", "b")


def test_settings_apply_to_the_diagrams_that_have_them(models: dict[str, to.Predictions]) -> None:
    grid = to.draw(models, ["reliability", "cumulative"], bins=5)
    assert str(grid.diagrams[0].settings["partition"]) == "uniform 5"
    with pytest.raises(InputError, match="TO202"):
        to.draw(models, ["reliability", "cumulative"], depth=5)


@pytest.mark.slow
def test_a_grid_is_saved_for_a_paper_with_the_same_bytes(grid: DiagramGrid, tmp_path: Path) -> None:
    for name in ("a", "b"):
        grid.save(tmp_path / f"{name}.pdf", style="paper")
        grid.save(tmp_path / f"{name}.svg", style="paper")
    assert page_size(tmp_path / "a.pdf")[0] == pytest.approx(6.8)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"/FontFile2" in (tmp_path / "a.pdf").read_bytes()
    grid.save(tmp_path / "slide.png", style="slide", title="Two models")


@pytest.mark.slow
def test_a_notebook_shows_the_picture_and_the_notes(grid: DiagramGrid) -> None:
    html = grid._repr_html_()
    assert "data:image/svg+xml;base64," in html
    assert html.count("<li>") == len(grid.notes)
    assert grid._repr_png_()[:4] == b"\x89PNG"
    assert repr(grid) == "grid · 2 models × 2 diagrams (reliability, cumulative) · n=400"


def test_layers_are_left_out_of_the_diagrams_that_have_them(grid: DiagramGrid) -> None:
    reduced = grid.less("strip", "band")
    assert [diagram.without for diagram in reduced.diagrams] == [{"strip"}, {"band"}]
    with pytest.raises(InputError, match="TO203"):
        grid.less("tail")


@pytest.mark.parametrize("names", [["reliability", "comparison"], ["corp", "calibration_belt"], ["reliability_curve"]])
def test_other_diagrams_share_a_grid(models: dict[str, to.Predictions], names: list[str]) -> None:
    assert len(panels_of(to.draw(models, names))) >= 2 * len(names)


@pytest.mark.slow
def test_the_models_of_one_diagram_stand_beside_each_other(models: dict[str, to.Predictions]) -> None:
    six = {f"model {i}": models["a"] for i in range(6)}
    grid = to.draw(six, ["reliability"])
    figure = grid.draw()
    positions = [ax.get_position() for ax in figure.axes]
    assert len({round(box.y0, 6) for box in positions}) == 2
    assert len({round(box.x0, 6) for box in positions}) == 3
    assert [ax.get_title(loc="left") for ax in figure.axes] == list(six)
    assert [text.get_text() for text in figure.texts] == ["Reliability"]
    # They fill the width, and only the outer panels have labels.
    assert max(box.x1 for box in positions) > 0.97
    assert [bool(ax.get_ylabel()) for ax in figure.axes] == [True, False, False] * 2
    assert [bool(ax.get_xlabel()) for ax in figure.axes] == [False] * 3 + [True] * 3
    limits = {(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes}
    assert len(limits) == 1


@pytest.mark.parametrize(
    ("n_models", "width", "n_columns"),
    [(6, 6.8, 3), (6, 3.3, 2), (6, 2.0, 1), (4, 6.8, 2), (5, 6.8, 3), (8, 10.0, 4), (2, 6.8, 2), (1, 6.8, 1)],
)
def test_the_number_of_columns_follows_from_the_width(n_models: int, width: float, n_columns: int) -> None:
    assert choose_model_columns(n_models, width) == n_columns


def test_a_number_of_columns_can_be_chosen(models: dict[str, to.Predictions]) -> None:
    for ncols in (1, 2, 5):
        figure = to.draw(models, ["reliability"], ncols=ncols).draw()
        assert len({round(ax.get_position().x0, 6) for ax in figure.axes}) == min(ncols, 2)
    for diagrams, value in ((["reliability", "corp"], 2), (["reliability"], 0), ("reliability", 2)):
        with pytest.raises(InputError, match=r"TO203.*ncols"):
            to.draw(models if isinstance(diagrams, list) else models["a"], diagrams, ncols=value)


@pytest.mark.slow
def test_a_grid_for_a_column_of_a_paper_wraps_to_its_width(models: dict[str, to.Predictions], tmp_path: Path) -> None:
    grid = to.draw({f"m{i}": models["a"] for i in range(6)}, ["reliability"])
    grid.save(tmp_path / "column.pdf", style="paper", width="column")
    grid.save(tmp_path / "page.pdf", style="paper")
    (column_width, column_height), (page_width, page_height) = (
        page_size(tmp_path / f"{name}.pdf") for name in ("column", "page")
    )
    assert (column_width, page_width) == (pytest.approx(3.3), pytest.approx(6.8))
    # Three rows of two panels are higher than wide, two rows of three panels are not.
    assert column_height > column_width
    assert page_height < page_width


@pytest.mark.slow
def test_versions_of_models_have_a_row_per_model(models: dict[str, to.Predictions]) -> None:
    before_after = {name: {"before": models[name], "after": models["a"]} for name in models}
    grid = to.draw(before_after, ["corp"], resamples=99)
    assert grid.models == ("a, before", "a, after", "b$x$, before", "b$x$, after")
    bottoms = [round(ax.get_position().y0, 6) for ax in grid.draw().axes]
    assert bottoms[0] == bottoms[1] > bottoms[2] == bottoms[3]
    assert grid.versions == ("before", "after")
    # Names of versions stand at the top only, and names of models at the left only.
    figure = grid.draw()
    assert [ax.get_title(loc="left").strip() for ax in figure.axes] == ["before", "after", "", ""]
    assert [text.get_text() for text in figure.texts] == ["a", "b$x$", "Corp"]
    assert all(ax.get_title(loc="right") for ax in figure.axes)
    # Another number of columns does not separate the versions, so every panel has its whole name.
    figure = to.draw(before_after, ["corp"], resamples=99, ncols=3).draw()
    assert [ax.get_title(loc="left") for ax in figure.axes] == list(grid.models)
    with pytest.raises(InputError, match="different versions"):
        to.draw({"a": {"before": models["a"]}, "b": {"after": models["a"]}}, ["corp"])


@pytest.mark.parametrize("width", [3.3, 5.5])
def test_long_names_that_differ_never_look_alike(models: dict[str, to.Predictions], width: float) -> None:
    prefix = "Wide ResNet-28-10 with temperature scaling and label smoothing, split number "
    grid = to.draw({f"{prefix}{i}": models["a"] for i in range(3)}, ["reliability"])
    figure = grid.draw(figsize=(width, width))
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title.replace("\n", " ") for title in titles] == list(grid.models)
    figure.canvas.draw()
    for ax in figure.axes:
        box = ax._left_title.get_window_extent()
        assert box.x1 <= figure.bbox.x1 + 1
        assert box.y1 <= figure.bbox.y1 + 1


def test_names_are_reduced_then_wrapped_then_cut_if_they_stay_distinct() -> None:
    assert fit_names(["short"], 100, 9.0) == FittedNames(("short",), 9.0)
    reduced = fit_names(["ResNet-110, CIFAR"], 75, 9.0)
    assert reduced.n_lines == 1
    assert 6.3 <= reduced.size < 9.0
    wrapped = fit_names(["ResNet-110, CIFAR-10", "ResNet-110, CIFAR-100"], 45, 9.0)
    assert wrapped.names == ("ResNet-110,\nCIFAR-10", "ResNet-110,\nCIFAR-100")
    long = "a name of very many words that nobody can read"
    cut = fit_names([f"{first} {long}" for first in "AB"], 40, 9.0)
    assert cut.n_lines == 3
    assert all(name.endswith("…") for name in cut.names)
    uncut = fit_names([f"{long} {last}" for last in "AB"], 40, 9.0)
    assert [name.replace("\n", " ") for name in uncut.names] == [f"{long} A", f"{long} B"]
    assert fit_names(["unbreakable" * 3, "unbreakable" * 2], 40, 9.0).n_lines > 1


@pytest.mark.slow
def test_a_paper_or_no_title_omits_the_name_of_a_single_diagram(models: dict[str, to.Predictions]) -> None:
    grid = to.draw(models, ["reliability"])
    assert [text.get_text() for text in grid.draw(title=False).texts] == []
    assert [text.get_text() for text in grid.draw(title="Two models").texts] == ["Two models"]
    several = to.draw(models, ["reliability", "cumulative"]).draw(title=False)
    assert [text.get_text() for text in several.texts] == ["a", "b$x$", "Reliability", "Cumulative"]


def test_invalid_grids_are_coded(models: dict[str, to.Predictions], grid: DiagramGrid, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="TO205"):
        to.draw({"a": softer(3), "b": softer(3)}, ["reliability"], lens="classwise")
    with pytest.raises(InputError, match="TO705"):
        to.draw({f"m{i}": models["a"] for i in range(9)}, ["reliability"] * 3)
    with pytest.raises(InputError, match="TO203"):
        to.draw(models, ["reliability"], ax=grid.draw().axes[0])
    with pytest.raises(InputError, match="TO203"):
        grid.draw(figsize=(2, 2))
    with pytest.raises(InputError, match="TO203"):
        grid.save(tmp_path / "f.doc")
    with pytest.raises(InputError, match="TO203"):
        grid.save(tmp_path / "f.pdf", style="paper", figsize=(5, 5))

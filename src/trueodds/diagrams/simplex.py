"""The simplex diagram: arrows from predictions to outcomes in triangles of three outcomes, or of a class and rivals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.diagrams import simplex_geometry, simplex_marks
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import format_level
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, Polygons, Text
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import lens_name, panel_limit_notes
from trueodds.diagrams.simplex_arrows import (
    REST_LABEL,
    CellArrows,
    SimplexRecipe,
    add_holm_pvalues,
    check_joint,
    default_grid,
    label_outcomes,
    method_notes,
    panel_rows,
    stack_outcomes,
)
from trueodds.lenses.view import View

# Bins per axis of the grid: 100 triangles, and 25 in the small triangles of more than three classes.
N_BINS_PER_AXIS, N_BINS_PER_AXIS_OF_MANY = 10, 5
_MIN_REST_SHARE = 1e-3  # share of a row's total below which the rest is summed directly, not by a difference


@dataclass(frozen=True)
class Simplex(SimplexRecipe):
    r"""Simplex diagram: arrows from mean prediction to observed frequency in the triangle of three outcomes.

    Each point of the triangle is a vector of three probabilities. In each cell, an arrow starts at the mean prediction
    and ends at the observed frequency of the outcomes. The shade of the cell is its share of the predictions, on a
    logarithmic scale if shares differ more than thirtyfold. Arrows of cells that do not deviate significantly are thin
    and gray.

    Parameters
    ----------
    partition : Partition, optional
        The cells. The default is a grid with 10 bins per axis (100 triangles), or 5 if every class has its own
        triangle. For a tally, it is the finest grid up to that size that nests in its own. The median-variance tree
        is ``partition="median-variance"``, whose cells are boxes clipped by the triangle.
    level : float, default=0.95
        A cell is significant if its p-value is at most 1 − `level`.
    simultaneous : bool, default=True
        Whether to apply Holm's correction over all cells of the diagram. A calibrated model then has a significant
        cell with probability at most 1 − `level`. Otherwise, each cell is tested separately.
    ellipses : bool, default=False
        Whether to draw, around the mean prediction of each significant cell, the region of the observed frequency
        under calibration, from the normal distribution with covariance :math:`V / (\sum w)^2`. Its probability is
        `level`, or 1 − (1 − level)/cells with `simultaneous`. The table contains the ellipses of all cells.

    Raises
    ------
    InputError
        TO704 for two outcomes or one probability per row; TO203 for an invalid setting; TO205 for a partition that
        needs one score per row or that splits the cells of a tally.

    See Also
    --------
    tetrahedron : The same diagram for four outcomes.

    Notes
    -----
    The arrow of the cell b goes from :math:`\bar p_b = \sum_b w p / \sum_b w` to
    :math:`\bar y_b = \sum_b w y / \sum_b w`. Calibration in the cell is tested with :math:`X_b^2 = d^\top V^+ d`,
    where :math:`d = \sum_b w (y - p)` and :math:`V = \sum_b w^2 (\operatorname{diag} p - p p^\top)` is the exact
    covariance. The null distribution is χ² with degrees of freedom equal to the rank of V. It is inaccurate if a cell
    expects fewer than 5 rows of an outcome. A rejection there must be confirmed by exact Poisson-binomial tests of
    the outcomes, with Bonferroni correction (note TN252). For calibrated sharp models (400 rows, 100 cells), χ² alone
    rejects some cell in 55 % of the data sets; with the confirmation, it rejected in none of 300, where 5 % is allowed.
    If outcomes are shares of votes, the empirical covariance of the residuals is used (note TN243).

    Views: joint. Three outcomes form one triangle: ``groups:[[0,1],[2],[3]]`` combines many classes into three, and
    ``top-2`` gives the first choice, the second choice and the rest. With more than three outcomes, each class has its
    own triangle: the class, its closest rival and the rest. The closest rival is the class c with the largest
    :math:`\sum w p_j p_c`, which does not depend on the outcomes. Triangles with the strongest evidence come first.
    For a tally, the lens needs a grid, and the number of bins must divide it. Units: probability.

    Columns of ``table``: ``view cell n weight share``, ``mean_prediction_0`` to ``_2``, ``outcome_frequency_0`` to
    ``_2``, ``distance`` (total variation), ``statistic df distribution pvalue holm beyond``, ``low_0`` to ``high_2``
    (the box of the cell), and with `ellipses` ``ellipse_long ellipse_short`` (diameters, in sides of the triangle) and
    ``ellipse_angle`` (degrees). ``distribution`` names the null distribution: ``chi-square``, ``exact by outcome`` or
    ``votes``. ``beyond`` is True for significant cells.

    Cost: O(nm log n) for m outcomes, O(nm²) with more than three.

    References
    ----------
    .. [1] Vaicenavicius et al. (2019), section 4.4 and figure 1. The tests of the cells are specific to this package.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> P = np.repeat([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]], 50, axis=0)
    >>> diagram = to.draw(np.repeat([0, 1, 2], [30, 20, 50]), P, "simplex")
    >>> diagram.table["outcome_frequency_1"].tolist(), diagram.table["beyond"].tolist()
    ([0.0, 0.4], [True, True])
    """

    name: ClassVar[str] = "simplex"
    ellipses: bool = False

    def diagram_with_outcome_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        arrows = [triangle for view in views for triangle in self._evaluate_triangles(view, names)]
        evidence = [-triangle.log_adjusted_pvalue for triangle in arrows]
        arrows = [arrows[i] for i in decreasing_order(evidence, [triangle.error for triangle in arrows])]
        tables = add_holm_pvalues(arrows, self.level, simultaneous=self.simultaneous)
        n_cells = sum(len(table["cell"]) for table in tables)
        cell_level = 1 - (1 - self.level) / n_cells if self.simultaneous else self.level
        if self.ellipses:
            tables = [
                table | triangle.ellipse_columns(cell_level) for table, triangle in zip(tables, arrows, strict=True)
            ]
        settings = self._settings | {"partition": str(arrows[0].partition)}
        if self.ellipses:
            settings["level_of_each_ellipse"] = cell_level
        notes = method_notes(arrows, self.level, simultaneous=self.simultaneous)
        notes += panel_limit_notes(len(arrows), SimplexDiagram.view_order)
        if any(view.p.shape[1] > 3 for view in views):
            text = (
                "Each panel shows a class, its closest rival and the other classes combined. The closest rival is the "
                "class with the largest mean product of both probabilities."
            )
            notes.append(Note("TN253", text))
        rows = panel_rows(arrows, tables)
        return self.build_diagram(SimplexDiagram, lens_name(views), tables, rows, settings, notes)

    def _evaluate_triangles(self, view: View, names: tuple[str, ...] | None) -> list[CellArrows]:
        """Evaluate one triangle for three outcomes, else one of each outcome, its closest rival and the rest."""
        check_joint(view, self.name)
        labels = label_outcomes(view, names)
        partition = self.partition or default_grid(
            view, N_BINS_PER_AXIS if len(labels) == 3 else N_BINS_PER_AXIS_OF_MANY
        )
        if len(labels) == 3:
            return [CellArrows(view, partition, labels, view.name, self.level)]
        triangles = []
        rest = label_rest(labels)
        totals = row_totals(view)
        for outcome, rival in enumerate(closest_rivals(view).tolist()):
            view_of_three = rival_view(view, outcome, rival, f"class:{labels[outcome]}", totals)
            corners = labels[outcome], labels[rival], rest
            triangles.append(CellArrows(view_of_three, partition, corners, labels[outcome], self.level))
        return triangles


def closest_rivals(view: View) -> Array:
    """The closest rival of each outcome, (m,): the outcome with the largest Σw p_j p_c.

    It does not depend on the observed outcomes, so that the tests of the cells keep their level.
    """
    p = view.p.astype(np.float64)
    cross_moments = (view.w[:, None] * p).T @ p
    np.fill_diagonal(cross_moments, -1.0)
    return np.argmax(cross_moments, axis=1)


def label_rest(names: Sequence[str]) -> str:
    """A label for the remaining outcomes that differs from all class names.

    >>> label_rest(["cat", "dog"]), label_rest(["rest", "dog"])
    ('rest', 'the rest')
    """
    return next((name for name in (REST_LABEL, "the rest", "all the rest") if name not in names), "rest of them")


def row_totals(view: View) -> tuple[Array, Array]:
    """Sums of the probabilities and of the outcomes of each row."""
    return view.p.sum(axis=1, dtype=np.float64), view.y.sum(axis=1, dtype=np.float64)


def rival_view(view: View, outcome: int, rival: int, name: str, totals: tuple[Array, Array] | None = None) -> View:
    """The joint view of an outcome, its rival and all other outcomes combined.

    `totals` are the `row_totals` of the view, which several rival views share; None computes them.
    """

    def three_columns(x: Array, total: Array) -> Array:
        """The columns (n, 3) of outcome, rival and rest, from the columns x (n, m) and their sum (n,)."""
        a, b = x[:, outcome].astype(np.float64), x[:, rival].astype(np.float64)
        rest = total - a - b
        # If the difference is nearly 0, it is a rounding error: sum the rest directly, so that 0 stays 0.
        has_no_rest = np.flatnonzero(rest < _MIN_REST_SHARE * total)
        rest[has_no_rest] = np.delete(x[has_no_rest], (outcome, rival), axis=1).sum(axis=1, dtype=np.float64)
        return np.stack([a, b, rest], axis=1)

    p_totals, y_totals = row_totals(view) if totals is None else totals
    w = None if view.is_unweighted else view.w
    further_sums = None if view.is_rows else {"ww": view.sums("ww")}
    return View(
        three_columns(view.p, p_totals),
        three_columns(view.y, y_totals),
        w,
        n=None if w is None else view.n,
        sums=further_sums,
        name=name,
        classes=3,
    )


MAX_CELLS_WITH_WIDE_EDGES = 60  # cells of a panel, beyond which wide edges would hide the shades


class SimplexDiagram(simplex_marks.ArrowDiagram):
    """One triangle for three outcomes, or one for each class with its rival and the rest.

    The shade of a cell is its share of the rows. An ellipse around the tail of a significant arrow contains its head if
    the cell is calibrated.
    """

    layers = ("cells", "arrows", "faded", "ellipses", "key")
    figure_size = (6.4, 5.6)
    view_order = "strongest evidence"
    aspect_ratio = 1.0
    hides_axes = True

    def default_title(self) -> str:
        if len(self.panels["view"]) > 1:
            return "For each class, its closest rival and the rest: do frequencies match predictions?"
        return "Do the observed frequencies of the three outcomes match the predictions?"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """Axes without ticks that contain the triangle and the names of its corners."""
        simplex_marks.hide_axes(ax)
        simplex_marks.EqualAspect(ax, *self._limits(size))

    def _limits(self, size: PanelSize) -> tuple[tuple[float, float], tuple[float, float]]:
        is_single_view = len(self.panels["view"]) == 1
        if is_single_view:
            left, right = -0.2, 1.36 if self.has_color_key(size) else 1.2
        else:
            left, right = -0.06, 1.06
        # The lines of the names are higher, in sides of the triangle, the smaller the axes are.
        points_per_side = simplex_marks.points_per_unit(
            size, width_in_units=right - left, height_in_units=1.12, is_single_panel=is_single_view
        )
        line_height = 1.35 * size.font_size / points_per_side
        return (left, -0.02 - line_height), (right, 0.885 + line_height)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The arrows, the shaded cells, the ellipses, the names of the corners, and the key of the shades."""
        rows, panel_row = self.rows(panel), self.panel_values(panel)
        tail, head = (
            simplex_geometry.to_triangle(stack_outcomes(rows, name))
            for name in ("mean_prediction", "outcome_frequency")
        )
        triangle = simplex_geometry.TRIANGLE
        marks = [
            *self.arrow_marks(panel, tail, head, size, np.arange(len(tail))),
            Polygons([triangle], facecolor="#FBFBFB", edgecolor="none", zorder=0.8),
            Line(*np.vstack([triangle, triangle[:1]]).T, name="edge", color="#7A7A7A", linewidth=1.0, zorder=1.5),
            *self._cell_marks(panel, tail),
        ]
        if "ellipse_long" in rows:
            beyond = {name: column[rows["beyond"]] for name, column in rows.items()}
            label = f"head if calibrated ({format_level(self.settings['level_of_each_ellipse'])})"
            shape = (beyond[f"ellipse_{name}"] for name in ("long", "short", "angle"))
            marks.append(Ellipses(*tail[rows["beyond"]].T, *shape, layer="ellipses", label=label))
        if self.has_color_key(size) and len(self.panels["view"]) == 1:
            ends = panel_row["share_low"], panel_row["share_high"]
            marks.append(simplex_marks.ColorKey(1.1, 0.36, 0.045, 0.4, *ends, layer="key"))
        return marks + self._corner_names(panel_row, size)

    def _cell_marks(self, panel: int, tail: Array) -> list[Mark]:
        """The cells in the color of their share of rows; those without area, such as corners, as dots at the `tail`."""
        rows, (label, key) = self.rows(panel), self.shade_label()
        colors = np.array(simplex_marks.cell_colors(rows, self.panel_values(panel)))
        low, high = (stack_outcomes(rows, name) for name in ("low", "high"))
        shapes = [simplex_geometry.cell_outline(a, b) for a, b in zip(low, high, strict=True)]
        is_empty = np.array([len(shape) == 0 for shape in shapes])
        triangles = [simplex_geometry.to_triangle(shape) for shape in shapes if len(shape)]
        width = 0.5 if len(shapes) <= MAX_CELLS_WITH_WIDE_EDGES else 0.25
        style: dict[str, Any] = {"facecolor": colors[~is_empty].tolist(), "edgecolor": "#B9C4CE", "linewidth": width}
        dots: dict[str, Any] = {"edgecolors": "#7A8794", "colors": colors[is_empty].tolist(), "zorder": 1.6}
        return [
            Polygons(triangles, layer="cells", label=label, key=key, zorder=1, **style),
            simplex_marks.CellDots(tail[is_empty, 0], tail[is_empty, 1], 26.0, layer="cells", name="dots", **dots),
        ]

    def _corner_names(self, panel_row: Mapping[str, Any], size: PanelSize) -> list[Mark]:
        """Each outcome at its corner, shortened to avoid overlap; in a grid within the width of the triangle."""
        is_single_view = len(self.panels["view"]) == 1
        (left, bottom), (right, top) = self._limits(size)
        points_per_side = simplex_marks.points_per_unit(
            size, width_in_units=right - left, height_in_units=top - bottom, is_single_panel=is_single_view
        )
        alignments, n_sides = (("center", "center"), 0.92) if is_single_view else (("left", "right"), 0.5)
        style: dict[str, Any] = {"fontsize": size.font_size, "fontweight": "bold", "zorder": 5}

        def fit(name: str, n_sides: float) -> str:
            return styling.shorten_text(name, n_sides * points_per_side, size.font_size, "bold")

        left_name, right_name, top_name = simplex_marks.corner_names(panel_row)
        return [
            Text(0.0, -0.02, fit(left_name, n_sides), ha=alignments[0], va="top", **style),
            Text(1.0, -0.02, fit(right_name, n_sides), ha=alignments[1], va="top", **style),
            Text(0.5, 0.885, fit(top_name, 1.1), ha="center", va="bottom", **style),
        ]


class Ellipses(Mark):
    """Outlines of ellipses, clipped by the triangle: `Ellipses(x, y, long, short, angle)`.

    `x` and `y` are the centers, `long` and `short` diameters, and `angle` is in degrees.
    """

    def draw(self, ax: Any) -> Iterable[Any]:
        from matplotlib.collections import EllipseCollection
        from matplotlib.patches import Polygon

        x, y, *shape = self.coordinates
        style: dict[str, Any] = {"facecolors": "none", "edgecolors": styling.TEXT_COLOR, "linewidths": 0.5}
        style |= {"alpha": 0.8, "zorder": 2.5, "offsets": np.stack([x, y], axis=1), "transOffset": ax.transData}
        ellipses = EllipseCollection(*shape, units="xy", **style)
        ellipses.set_clip_path(Polygon(simplex_geometry.TRIANGLE, transform=ax.transData))  # no frequency lies outside
        ax.add_collection(ellipses, autolim=False)
        return [ellipses]

    def legend_handle(self) -> Any:
        from matplotlib.lines import Line2D

        circle: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markeredgecolor": styling.TEXT_COLOR}
        return Line2D([], [], linestyle="none", **circle)

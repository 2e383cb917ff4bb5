"""Compute the simplex diagram of three outcomes, or of each class with its closest rival and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.core.errors import Note
from trueodds.diagrams import simplex_recipe
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.recipe import lens_of
from trueodds.diagrams.simplex.plot import SimplexDiagram
from trueodds.diagrams.simplex_arrows import Arrows, add_holm_pvalues, default_partition, method_notes, panel_rows
from trueodds.diagrams.simplex_recipe import SimplexRecipe
from trueodds.lenses.view import View

BINS, BINS_PER_CLASS = 10, 5  # of the grid on each axis: 100 triangles, and 25 in the small ones of many classes


@dataclass(frozen=True)
class Simplex(SimplexRecipe):
    r"""Arrows on the triangle of three probabilities, from what was said to what came, cell by cell.

    Answers: when it hesitates between three outcomes, do they come as often as it says, and where not? Each point of
    the triangle is a vector of three probabilities. The arrow of a cell starts at the mean prediction
    :math:`\bar p_b = \sum_b w p / \sum_b w` and ends at the outcome frequency :math:`\bar y_b = \sum_b w y / \sum_b w`;
    the shade of the cell is its share of the predictions, on a logarithmic scale where shares differ more than
    thirtyfold. An arrow is thin and gray where chance explains it: :math:`X_b^2 = d^\top V^+ d`, with
    :math:`d = \sum_b w (y - p)` and the exact covariance :math:`V = \sum_b w^2 (\operatorname{diag} p - p p^\top)`,
    is χ² with as many degrees of freedom as V has rank. That law is coarse where a cell expects fewer than 5 rows of an
    outcome: what it finds beyond chance there, the exact Poisson-binomial laws of the outcomes must confirm (Bonferroni
    over outcomes, note TN252): of calibrated sharp models (400 rows, 100 cells) χ² alone finds an arrow beyond chance in
    55 %, so confirmed in none of 300, where 5 % is allowed. Outcomes that are shares of votes are judged by the spread
    of their residuals (note TN243).

    Views: joint; three outcomes are one triangle (`groups:[[0,1],[2],[3]]` makes three of many, `top-2` the first
    choice, the second and the rest). More than three make one triangle for each class: the class, the rival beside
    which the model itself puts most probability (:math:`\max_c \sum w p_j p_c`, so that outcomes have no say in it), and
    the rest, those with the strongest evidence first. From a tally: the lens needs a grid, and `bins` must divide it.
    Units: probability. Cost: O(nm log n) for m outcomes, with more than three O(nm²).
    Raises TO704 for two outcomes or one probability per row, TO203 for an unknown setting, TO205 for a partition that
    needs one score per row, or that cuts the cells of a tally.
    Source: Vaicenavicius et al. (2019), section 4.4 and figure 1; the judgement of each cell is this project's own.

    Parameters
    ----------
    partition : Partition, optional
        The grid with 10 bins on every axis, 100 triangles, and with 5 where every class has a triangle of its own; of
        a tally the finest up to that which nests in its own.
        The median-variance tree is `partition="median-variance"`, its cells boxes cut by the triangle.
    level : float
        A cell strays beyond chance where its p-value is at most 1 − level.
    simultaneous : bool
        Holm's correction over all cells of the diagram, so that a calibrated model has an arrow beyond chance with
        probability at most 1 − level; otherwise each cell for itself.
    ellipses : bool
        Around each mean prediction where the frequency would fall if the model were calibrated, by the normal law with
        covariance V/(Σw)²: with probability `level`, with `simultaneous` 1 − (1 − level)/cells. Drawn are those of the
        cells beyond chance; the table holds all.

    Columns of `table`: view cell n weight share, mean_prediction_0 to _2, outcome_frequency_0 to _2, distance (total
    variation), statistic df law pvalue holm beyond, low_ and high_0 to _2 (the box of the cell), and with ellipses
    ellipse_long ellipse_short (diameters, in sides of the triangle) and ellipse_angle (degrees).

    >>> import numpy as np
    >>> P = np.repeat([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]], 50, axis=0)
    >>> Y = np.eye(3)[np.repeat([0, 1, 2], [30, 20, 50])]
    >>> diagram = Simplex()([View(P, Y, name="canonical")])
    >>> diagram.table["outcome_frequency_1"].tolist(), diagram.table["beyond"].tolist()
    ([0.0, 0.4], [True, True])
    """

    name: ClassVar[str] = "simplex"
    ellipses: bool = False

    def drawn(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram with the names of the outcomes."""
        arrows = [body for view in views for body in self._triangles(view, names)]
        arrows.sort(key=lambda body: (body.evidence, -body.error))
        tables = add_holm_pvalues(arrows, self.level, simultaneous=self.simultaneous)
        cells = sum(len(table["cell"]) for table in tables)
        cell_level = 1 - (1 - self.level) / cells if self.simultaneous else self.level
        if self.ellipses:
            made = (body.with_ellipses(cell_level) for body in arrows)
            tables = [{**table, **ellipse} for table, ellipse in zip(tables, made, strict=True)]
        settings = {
            "partition": str(arrows[0].partition),
            "level": self.level,
            "simultaneous": self.simultaneous,
            "ellipses": self.ellipses,
        }
        if self.ellipses:
            settings["level_of_each_ellipse"] = cell_level
        notes = method_notes(arrows, self.level, simultaneous=self.simultaneous)
        notes += layout.panel_limit_notes(len(arrows), SimplexDiagram.ranked)
        if any(view.p.shape[1] > 3 for view in views):
            text = "Each class is shown with the one that the model puts most probability beside, and the rest as one."
            notes.append(Note("TN253", text))
        return SimplexDiagram(
            self.name, lens_of(views), stack_tables(tables), panel_rows(arrows, tables), settings, tuple(notes)
        )

    def _triangles(self, view: View, names: tuple[str, ...] | None) -> list[Arrows]:
        simplex_recipe.check_joint(view, self.name)
        labels = simplex_recipe.label_outcomes(view, names)
        partition = self.partition or default_partition(view, BINS if len(labels) == 3 else BINS_PER_CLASS)
        if len(labels) == 3:
            return [Arrows(view, partition, labels, view.name, self.level)]
        made = []
        rest = simplex_recipe.label_rest(labels)
        sums = simplex_recipe.row_totals(view)
        for j, c in enumerate(simplex_recipe.closest_rivals(view)):
            three = simplex_recipe.rival_view(view, j, int(c), f"class:{labels[j]}", sums)
            made.append(Arrows(three, partition, (labels[j], labels[c], rest), labels[j], self.level))
        return made

"""Compute the simplex diagram of four outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from trueodds.core.errors import InputError
from trueodds.core.settings import Range
from trueodds.diagrams import simplex_recipe
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.simplex_arrows import Arrows, add_holm_pvalues, default_partition, method_notes, panel_rows
from trueodds.diagrams.simplex_recipe import SimplexRecipe
from trueodds.diagrams.tetrahedron.plot import TetrahedronDiagram
from trueodds.lenses.view import View

BINS = 5  # of the grid on each axis: 65 cells


@dataclass(frozen=True)
class Tetrahedron(SimplexRecipe):
    r"""Arrows in the tetrahedron of four probabilities, from what was said to what came, cell by cell.

    Answers: when it hesitates between four outcomes, do they come as often as it says, and where not? As `simplex`, with
    four corners: the arrow of a cell goes from :math:`\bar p_b = \sum_b w p / \sum_b w` to
    :math:`\bar y_b = \sum_b w y / \sum_b w`, the dot at its tail is the larger and darker the more predictions the cell
    holds, and an arrow that chance explains is thin and gray (the tests are those of `simplex`). The picture is a
    parallel projection without vanishing point, so that equal arrows in like directions are equally long; edges behind
    the body are dashed. `diagram.to_html("turn.html")` writes a page on which it turns, `diagram.turning()` the part
    of one.

    Views: joint, of four outcomes: four classes, four groups `groups:[[0,1],[2],[3],[4]]`, or `top-3`. From a tally: the
    lens needs a grid, and `bins` must divide it. Units: probability. Cost: O(n log n).
    Raises TO704 for another number of outcomes, TO203 for an unknown setting, TO205 for a partition that needs one
    score per row, or that cuts the cells of a tally.
    Source: Vaicenavicius et al. (2019), section 4.4; the judgement of each cell is this project's own.

    Parameters
    ----------
    partition : Partition, optional
        The grid with 5 bins on every axis, 65 cells; of a tally the finest up to 5 that nests in its own. The
        median-variance tree is `partition="median-variance"`.
    level : float
        A cell strays beyond chance where its p-value is at most 1 − level.
    simultaneous : bool
        Holm's correction over all cells; otherwise each cell for itself.
    azimuth, elevation : float
        Degrees from which it is seen. Azimuth 0 faces the side between the first two outcomes and the fourth, which is
        at the top; elevation 90 looks down on it.

    Columns of `table`: view cell n weight share, mean_prediction_0 to _3, outcome_frequency_0 to _3, distance (total
    variation), statistic df law pvalue holm beyond, low_ and high_0 to _3 (the box of the cell).

    >>> import numpy as np
    >>> P = np.repeat([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]], 50, axis=0)
    >>> Y = np.eye(4)[np.repeat([0, 1, 3], [30, 20, 50])]
    >>> diagram = Tetrahedron()([View(P, Y, name="canonical")])
    >>> diagram.table["outcome_frequency_3"].tolist(), diagram.table["beyond"].tolist()
    ([1.0, 0.0], [True, True])
    """

    name: ClassVar[str] = "tetrahedron"
    azimuth: Annotated[float, Range(-360, 360)] = 40.0
    elevation: Annotated[float, Range(-90, 90)] = 18.0

    def drawn(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram with the names of the outcomes."""
        view = views[0]
        simplex_recipe.check_joint(view, self.name)
        if len(views) > 1 or view.p.shape[1] != 4:
            raise InputError(
                "TO704",
                "A tetrahedron has four corners, one for each outcome.",
                f"{view.p.shape[1]} outcomes in the view {view.name!r}",
                "Use the diagram simplex, or lens='groups:[[…],[…],[…],[…]]' with four groups.",
            )
        arrows = [
            Arrows(
                view,
                self.partition or default_partition(view, BINS),
                simplex_recipe.label_outcomes(view, names),
                view.name,
                self.level,
            )
        ]
        tables = add_holm_pvalues(arrows, self.level, simultaneous=self.simultaneous)
        settings: dict[str, Any] = {
            "partition": str(arrows[0].partition),
            "level": self.level,
            "simultaneous": self.simultaneous,
            "azimuth": float(self.azimuth),
            "elevation": float(self.elevation),
        }
        notes = tuple(method_notes(arrows, self.level, simultaneous=self.simultaneous))
        return TetrahedronDiagram(
            self.name, view.name, stack_tables(tables), panel_rows(arrows, tables), settings, notes
        )

"""Compute the simplex diagram of four outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from trueodds.core.errors import InputError
from trueodds.core.settings import Range
from trueodds.diagrams import simplex_recipe
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.simplex_arrows import Arrows, add_holm_pvalues, default_grid, method_notes, panel_columns
from trueodds.diagrams.simplex_recipe import SimplexRecipe
from trueodds.diagrams.table_columns import stack_tables
from trueodds.diagrams.tetrahedron.plot import TetrahedronDiagram
from trueodds.lenses.view import View

N_BINS_PER_AXIS = 5  # of the grid on each axis: 65 cells


@dataclass(frozen=True)
class Tetrahedron(SimplexRecipe):
    r"""Simplex diagram of four outcomes: arrows from mean prediction to observed frequency in a tetrahedron.

    The diagram corresponds to ``simplex`` with four corners. In each cell, an arrow starts at the mean prediction and
    ends at the observed frequency of the outcomes. The dot at its tail is larger and darker, the more predictions the
    cell contains. Arrows of cells that do not deviate significantly are thin and gray. The figure is a parallel
    projection; hidden edges are dashed. ``diagram.to_html("rotate.html")`` writes a page on which the tetrahedron can
    be rotated, and ``diagram.interactive_html()`` returns the corresponding HTML fragment.

    Parameters
    ----------
    partition : Partition, optional
        The cells. The default is a grid with 5 bins per axis (65 cells). For a tally, it is the finest grid with up to
        5 bins that nests in its own. The median-variance tree is ``partition="median-variance"``.
    level : float, default=0.95
        A cell is significant if its p-value is at most 1 − `level`.
    simultaneous : bool, default=True
        Whether to apply Holm's correction over all cells. Otherwise, each cell is tested separately.
    azimuth, elevation : float, default=40.0, 18.0
        Viewing angles in degrees. Azimuth 0 faces the side with the first, second and fourth outcome; the fourth is at
        the top. Elevation 90 looks down from it.

    Raises
    ------
    InputError
        TO704 for another number of outcomes; TO203 for an invalid setting; TO205 for a partition that needs one score
        per row or that splits the cells of a tally.

    See Also
    --------
    simplex : The diagram for three outcomes.

    Notes
    -----
    The arrow of the cell b goes from :math:`\bar p_b = \sum_b w p / \sum_b w` to
    :math:`\bar y_b = \sum_b w y / \sum_b w`. The tests of the cells are those of ``simplex``.

    Views: joint, with four outcomes: four classes, four groups ``groups:[[0,1],[2],[3],[4]]``, or ``top-3``. For a
    tally, the lens needs a grid, and the number of bins must divide it. Units: probability.

    Columns of ``table``: ``view cell n weight share``, ``mean_prediction_0`` to ``_3``, ``outcome_frequency_0`` to
    ``_3``, ``distance`` (total variation), ``statistic df distribution pvalue holm beyond``, ``low_0`` to ``high_3``
    (the box of the cell).

    Cost: O(n log n).

    References
    ----------
    .. [1] Vaicenavicius et al. (2019), section 4.4. The tests of the cells are specific to this package.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> P = np.repeat([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]], 50, axis=0)
    >>> diagram = to.draw(np.repeat([0, 1, 3], [30, 20, 50]), P, "tetrahedron")
    >>> diagram.table["outcome_frequency_3"].tolist(), diagram.table["beyond"].tolist()
    ([1.0, 0.0], [True, True])
    """

    name: ClassVar[str] = "tetrahedron"
    azimuth: Annotated[float, Range(-360, 360)] = 40.0
    elevation: Annotated[float, Range(-90, 90)] = 18.0

    def diagram_with_outcome_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of a joint view whose outcomes have these names; None numbers them."""
        view = views[0]
        simplex_recipe.check_joint(view, self.name)
        if len(views) > 1 or view.p.shape[1] != 4:
            raise InputError(
                "TO704",
                "The diagram tetrahedron requires four outcomes.",
                f"{view.p.shape[1]} outcomes in the view {view.name!r}",
                "Use the diagram simplex or lens='groups:[[…],[…],[…],[…]]' with four groups.",
            )
        arrows = [
            Arrows(
                view,
                self.partition or default_grid(view, N_BINS_PER_AXIS),
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
            self.name, view.name, stack_tables(tables), panel_columns(arrows, tables), settings, notes
        )

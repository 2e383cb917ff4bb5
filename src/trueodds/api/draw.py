"""Draw a calibration diagram of one model or several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import data_notes, pairs_arrays, reported_call_settings, resolve_lens, resolve_method
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.errors import Note
from trueodds.core.rng import as_generator
from trueodds.data.predictions import Predictions
from trueodds.io.read import models_by_name

if TYPE_CHECKING:
    from trueodds.diagrams.base import Diagram


@pairs_arrays
def draw(
    data: Any,
    diagram: Any = "reliability",
    *,
    lens: Any = None,
    mode: str | None = None,
    weight_kind: str = "importance",
    rng: int | np.random.Generator = 0,
    ax: Any = None,
    title: str | bool | None = None,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    legend: bool | None = None,
    **settings: Any,
) -> Diagram:
    """Draw a calibration diagram of one model or several.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source, Tally or mapping
        Predictions with their outcomes, as in `measure`. A mapping of names to models, such as
        ``{"before": a, "after": b}``, is drawn by the diagrams that compare models.
    diagram : str or Recipe, default="reliability"
        Name of a diagram (``trueodds list diagrams`` prints them), or an instance with its settings.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. The default is that of the method if it has one
        (``"canonical"`` for proper scores), else ``"positive"`` for two classes and ``"confidence"`` for more.
    mode : {"exact", "tally"}, optional
        Keep the rows in memory (``"exact"``) or count them in the cells of a fine grid (``"tally"``). By default rows
        are kept if they have at most 20 million probabilities.
    weight_kind : {"importance", "frequency"}, default="importance"
        Whether a row of weight 2 is one row that counts double (``"importance"``) or two observed rows
        (``"frequency"``).
    rng : int or numpy.random.Generator, default=0
        Seed or random generator. The same call with the same seed returns the same result.
    ax : matplotlib.axes.Axes, optional
        Axes to draw the diagram on immediately.
    title : str or bool, optional
        A string replaces the headline. False or ``""`` removes the headline and the line with the result below it.
    figsize : (float, float), optional
        Width and height of the figure in inches.
    dpi : float, optional
        Resolution of the figure, in pixels per inch.
    legend : bool, optional
        Whether axes passed as `ax` get a legend. By default they get one if it covers no data.
    **settings
        Settings of the diagram.

    Returns
    -------
    Diagram
        The computed diagram, with `frame()`, `draw(ax)` and `save(path)`. `title`, `figsize`, `dpi` and `legend` apply
        wherever it is drawn, shown or saved. Remove layers with `less`, as in ``draw(preds).less("strip")``.

    Raises
    ------
    InputError
        As for `measure`. Also TO701 if matplotlib is needed and not installed, TO704 for a simplex or tetrahedron
        whose lens has another number of outcomes, TO705 for too many models.

    Examples
    --------
    >>> import trueodds as to
    >>> to.draw(to.Predictions([0, 1, 1], [0.2, 0.7, 0.9])).name
    'reliability'
    """
    from trueodds.diagrams import DIAGRAMS
    from trueodds.diagrams.presentation import Presentation
    from trueodds.diagrams.recipe import Recipe

    as_generator(rng)
    presentation = Presentation(title, figsize, dpi, legend)
    recipe = resolve_method(DIAGRAMS, Recipe, diagram, settings)
    models = {name: resolve_data(model, mode, weight_kind) for name, model in _models_by_name(data).items()}
    rows = next(iter(models.values()))
    computed_diagram = recipe.compare_models(models, resolve_lens(rows, lens, recipe), rng)
    notes = [*data_notes(*models.values()), *computed_diagram.notes]
    has_clusters = any(isinstance(model, Predictions) and model.cluster is not None for model in models.values())
    if has_clusters and not recipe.supports_clusters:
        text = "The error bars assume independent rows, but these rows are clustered: the bars are too short."
        notes.append(Note("TN248", text))
    settings_used = dict(computed_diagram.settings) | reported_call_settings(rng, rows, weight_kind)
    computed_diagram = replace(
        computed_diagram, settings=settings_used, notes=tuple(dict.fromkeys(notes)), presentation=presentation
    )
    if ax is not None:
        computed_diagram.draw(ax, figsize=figsize, dpi=dpi)
    return computed_diagram


def _models_by_name(data: Any) -> dict[str, Any]:
    """Return the models by name; a single model has an empty name."""
    return models_by_name(data) or {"": data}

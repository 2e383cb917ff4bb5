"""Draw a calibration diagram of one model or several, or of a monitor, or a grid of diagrams."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import data_notes, reported_call_settings, resolve_all, resolve_lens, resolve_method
from trueodds.api.array_arguments import accept_separate_arrays
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.rng import as_generator
from trueodds.io.models import join_versions, models_by_name, versions_by_model

if TYPE_CHECKING:
    from trueodds.diagrams.base import Diagram
    from trueodds.diagrams.grid import DiagramGrid
    from trueodds.diagrams.presentation import Presentation
    from trueodds.diagrams.recipe import Recipe
    from trueodds.monitoring.monitor_report import MonitorReport


@typing.overload
def draw(data: Any, diagram: list[str] | tuple[str, ...], **settings: Any) -> DiagramGrid: ...
@typing.overload
def draw(data: Any, diagram: Any = "reliability", **settings: Any) -> Diagram: ...
@accept_separate_arrays
def draw(
    data: Any,
    diagram: Any = "reliability",
    *,
    lens: Any = None,
    mode: str | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    ax: Any = None,
    title: str | bool | None = None,
    figsize: tuple[float, float] | None = None,
    dpi: float | None = None,
    legend: bool | None = None,
    ncols: int | None = None,
    **settings: Any,
) -> Diagram | DiagramGrid:
    """Draw a calibration diagram of one model or several, or of a monitor, or a grid of models and diagrams.

    Parameters
    ----------
    data : Predictions, (y_true, y_prob), Source, Tally, Monitor, MonitorReport or mapping
        Predictions with their outcomes, as in `measure`; for the diagram `monitor`, a monitor or its report. A mapping
        of names to models, such as ``{"before": a, "after": b}``, is drawn by the diagrams that compare models, or in a
        grid. A grid of one diagram also accepts a mapping of mappings, ``{"model": {"before": a, "after": b}}``, which
        gives a row per model and a column per inner name, such as a version or a data set.
    diagram : str, Recipe or list, default="reliability"
        Name of a diagram (``trueodds list diagrams`` prints them). An instance with its settings is accepted too. A
        list, such as ``["reliability", "corp"]``, gives a grid with a row per model and a column per diagram, which
        share their axes within a column. With a single diagram, such as ``["reliability"]``, the models fill the rows
        in turn.
    lens : str, Lens or callable, optional
        Which predicted probability is examined: ``"positive"``, ``"confidence"``, ``"classwise"``, ``"class:NAME"``,
        ``"top-label"``, ``"canonical"`` or another one. The default is that of the method if it has one
        (``"canonical"`` for proper scores), else ``"positive"`` for two classes and ``"confidence"`` for more.
    mode, weight_kind : as in `resolve_all`
    rng : as in `as_generator`
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
    ncols : int, optional
        Number of columns of a grid of one diagram. The default depends on the width of the figure.
    **settings
        Settings of the diagram. In a grid each applies to the diagrams that have it.

    Returns
    -------
    Diagram or DiagramGrid
        The computed diagram, with `frame()`, `draw(ax)` and `save(path)`. `title`, `figsize`, `dpi` and `legend` apply
        wherever it is drawn, shown or saved. Remove layers with `less`, as in ``draw(preds).less("strip")``. A list of
        diagrams gives a grid, with `frame()`, `draw()` and `save(path)`.

    Raises
    ------
    InputError
        As for `measure`. Also TO701 if matplotlib is needed and not installed, TO704 for a simplex or tetrahedron
        whose lens has another number of outcomes, TO705 for too many models, and those of `Monitor.report`.

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
    if isinstance(diagram, (list, tuple)) and diagram and all(isinstance(item, (str, Recipe)) for item in diagram):
        if ax is not None:
            fix = "Omit ax; to draw on an axes, call to.draw for each diagram."
            raise InputError("TO203", "A grid creates its own figure.", "ax and several diagrams", fix)
        presentation = Presentation(title, figsize, dpi, legend)
        call_settings = {"lens": lens, "mode": mode, "weight_kind": weight_kind, "rng": rng}
        return _draw_grid(data, diagram, settings, presentation, ncols, **call_settings)
    if ncols is not None:
        fix = "Omit ncols, or pass the diagram in a list: ['reliability']."
        raise InputError("TO203", "ncols is for grids only.", f"ncols={describe(ncols)}", fix)
    presentation = Presentation(title, figsize, dpi, legend)
    recipe = resolve_method(DIAGRAMS, Recipe, diagram, settings)
    if (report := _report_of(data)) is not None:
        of_rows = {"lens": lens, "mode": mode, "weight_kind": weight_kind}
        computed_diagram = replace(_draw_report(recipe, report, of_rows), presentation=presentation)
        if ax is not None:
            computed_diagram.draw(ax, figsize=figsize, dpi=dpi)
        return computed_diagram
    resolved = {name: resolve_all(model, mode, weight_kind) for name, model in _models_by_name(data).items()}
    models = {name: used_rows for name, (_, used_rows) in resolved.items()}
    rows = next(iter(models.values()))
    computed_diagram = recipe.draw_resolved(resolved, resolve_lens(rows, lens, recipe), rng)
    notes = [*data_notes(*models.values()), *computed_diagram.notes]
    has_clusters = any(model.cluster is not None for model in models.values())
    if has_clusters and not recipe.supports_clusters:
        text = "The error bars are too short: they assume independent rows, and these rows are clustered."
        notes.append(Note("TN248", text))
    settings_used = dict(computed_diagram.settings) | reported_call_settings(rng, rows, weight_kind)
    computed_diagram = replace(
        computed_diagram, settings=settings_used, notes=tuple(dict.fromkeys(notes)), presentation=presentation
    )
    if ax is not None:
        computed_diagram.draw(ax, figsize=figsize, dpi=dpi)
    return computed_diagram


def _report_of(data: Any) -> MonitorReport | None:
    """Return the report of a monitor, or a report as it is; None for predictions."""
    from trueodds.monitoring.monitor import Monitor
    from trueodds.monitoring.monitor_report import MonitorReport

    return data.report() if isinstance(data, Monitor) else data if isinstance(data, MonitorReport) else None


def _draw_report(recipe: Recipe, report: MonitorReport, of_rows: Mapping[str, Any]) -> Diagram:
    """Return the diagram of a report; raise TO205 for a diagram of predictions, and TO203 for arguments on rows."""
    if not recipe.takes_monitor:
        problem = f"The diagram {recipe.name} draws predictions, and a monitor keeps none."
        raise InputError("TO205", problem, "a monitor", "Draw the diagram 'monitor', or pass the predictions.")
    if given := [name for name, value in of_rows.items() if value is not None]:
        problem = f"A monitor has no rows, so that {given[0]} does not apply."
        raise InputError("TO203", problem, f"{given[0]}={describe(of_rows[given[0]])}", f"Omit {given[0]}.")
    return recipe.draw_report(report)


def _draw_grid(
    data: Any,
    diagrams: Sequence[str | Recipe],
    settings: Mapping[str, Any],
    presentation: Presentation,
    ncols: int | None,
    **call_settings: Any,
) -> DiagramGrid:
    """Draw every diagram of every model; each of the `settings` applies to the diagrams that have it.

    `call_settings` are the arguments of `draw` that apply to all diagrams, such as the lens.
    """
    from trueodds.diagrams import DIAGRAMS
    from trueodds.diagrams.grid import MAX_CELLS, DiagramGrid, stack_models

    version_names: tuple[str, ...] = ()
    models = _models_by_name(data)
    if len(diagrams) == 1 and (versions := versions_by_model(data)):
        version_names, models = join_versions(versions)
    if len(models) * len(diagrams) > MAX_CELLS:
        got = f"{len(models)} models × {len(diagrams)} diagrams"
        raise InputError("TO705", f"A grid has at most {MAX_CELLS} cells.", got, "Draw several grids.")
    settings_by_diagram = [
        {
            name: value
            for name, value in settings.items()
            if isinstance(diagram, str) and DIAGRAMS.has_setting(diagram, name)
        }
        for diagram in diagrams
    ]
    used_names = {name for diagram_settings in settings_by_diagram for name in diagram_settings}
    if unused := [name for name in settings if name not in used_names]:
        raise InputError("TO202", "None of these diagrams has this setting.", ", ".join(unused), "Omit it.")
    columns = []
    for diagram, diagram_settings in zip(diagrams, settings_by_diagram, strict=True):
        drawn = {name: draw(model, diagram, **call_settings, **diagram_settings) for name, model in models.items()}
        columns.append(stack_models(drawn))
    return DiagramGrid(tuple(models), tuple(columns), presentation, ncols, version_names)


def _models_by_name(data: Any) -> dict[str, Any]:
    """Return the models by name; a single model has an empty name."""
    return models_by_name(data) or {"": data}

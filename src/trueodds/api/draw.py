"""Draw a calibration diagram of one model or several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from trueodds.api.arguments import call_settings, data_notes, pairs_arrays, resolve_lens, resolve_method
from trueodds.api.collect_or_tally import resolve_data
from trueodds.core.errors import Note
from trueodds.core.rng import as_generator
from trueodds.data.predictions import Predictions
from trueodds.io.read import models_of

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
    """Where the probabilities are off: a diagram with `frame()`, `draw(ax)` and `save(path)`.

    With `ax` it is drawn there at once. Several models, `{"before": a, "after": b}`, are drawn by the diagrams that
    compare. Layers are left out by `less`, as in `draw(preds).less("strip")`. `title`, `figsize`, `dpi` and `legend`
    are those of `Diagram.draw` and hold wherever the diagram is drawn, shown or saved.

    >>> draw(Predictions([0, 1, 1], [0.2, 0.7, 0.9])).name
    'reliability'
    """
    from trueodds.diagrams import DIAGRAMS
    from trueodds.diagrams.presentation import Presentation
    from trueodds.diagrams.recipe import Recipe

    as_generator(rng)
    presentation = Presentation(title, figsize, dpi, legend)
    recipe = resolve_method(DIAGRAMS, Recipe, diagram, settings)
    models = {name: resolve_data(model, mode, weight_kind) for name, model in _models(data).items()}
    rows = next(iter(models.values()))
    picture = recipe.of_models(models, resolve_lens(rows, lens, recipe), rng)
    notes = [*data_notes(*models.values()), *picture.notes]
    clustered = any(isinstance(model, Predictions) and model.cluster is not None for model in models.values())
    if clustered and not recipe.clusters:
        text = "The bars take the rows as independent, and these come in clusters: the bars are too short."
        notes.append(Note("TN248", text))
    settings_used = dict(picture.settings) | call_settings(rng, rows, weight_kind)
    picture = replace(picture, settings=settings_used, notes=tuple(dict.fromkeys(notes)), presentation=presentation)
    if ax is not None:
        picture.draw(ax, figsize=figsize, dpi=dpi)
    return picture


def _models(data: Any) -> dict[str, Any]:
    """Models by name; one alone has none."""
    return models_of(data) or {"": data}

"""Colors, markers, line styles and matching views of several models in one diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams.recipe import lens_views
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally

Models = Mapping[str, Predictions | Tally]

# The colors of Okabe & Ito without yellow, which is hard to see on white, and a wine red: distinguishable with any
# color vision. In grayscale, markers and dashes distinguish models.
COLORS = ("#0072B2", "#C8450A", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LINE_STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.6)),
    (0, (1.2, 1.2)),
    (0, (5, 1.4, 1.2, 1.4)),
    (0, (8, 2)),
    (0, (2.5, 1.2)),
    (0, (8, 1.4, 1.2, 1.4, 1.2, 1.4)),
    (0, (1.2, 2.4)),
)
MAX_MODELS = len(COLORS)
MAX_NAME_WIDTH = 150.0  # maximum width of a name in a legend, in points
UNNAMED = "model"  # label of a model without a name


def views_by_model(models: Models, lens: Lens, diagram: str) -> dict[str, tuple[View, ...]]:
    """The views of each model under the lens: the same binary views in the same order."""
    if len(models) > MAX_MODELS:
        raise InputError(
            "TO705",
            f"A diagram can show at most {MAX_MODELS} models.",
            f"{len(models)} models",
            "Draw fewer models; to.compare ranks any number of them.",
        )
    sets = {name: lens_views(rows, lens) for name, rows in models.items()}
    first = next(iter(sets))
    view_names = [view.name for view in sets[first]]
    for name, views in sets.items():
        by_name = {view.name: view for view in views}
        if set(by_name) != set(view_names):
            raise InputError(
                "TO205",
                "All models must have the same views.",
                f"{first}: {', '.join(view_names[:5])}; {name}: {', '.join(list(by_name)[:5])}",
                "Pass models with the same classes, or a lens that applies to all of them, such as 'confidence'.",
            )
        joint = next((view for view in views if view.joint), None)
        if joint is not None:
            raise InputError(
                "TO205",
                f"The diagram {diagram} requires one probability per row; this lens has a vector per row.",
                f"lens={joint.name!r}",
                "Use lens='confidence', 'classwise' or 'class:NAME'.",
            )
        sets[name] = tuple(by_name[view_name] for view_name in view_names)
    return sets


def sentence_name(name: str) -> str:
    """The name of a model for use in a sentence."""
    return name or "the model"


def legend_name(name: str, size: float = 8.5) -> str:
    """The name of a model, shortened for a legend."""
    return styling.shorten_text(name or UNNAMED, MAX_NAME_WIDTH, size)

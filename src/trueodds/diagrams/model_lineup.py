"""Colors, markers, line styles and matching views of several models in one diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style import styling
from trueodds.diagrams.recipe import views_of
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally

Models = Mapping[str, Predictions | Tally]

# Okabe & Ito's colors without their yellow, which white paper swallows, and a wine red: told apart by every kind of
# color vision. In gray, marks and dashes tell models apart.
COLORS = ("#0072B2", "#C8450A", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#882255")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "p")
DASHES: tuple[Any, ...] = (
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
MAX_NAME_WIDTH = 150.0  # points that a name may take in a legend
UNNAMED = "model"  # what a model without a name is called in words


def views_by_model(models: Models, lens: Lens, diagram: str) -> dict[str, tuple[View, ...]]:
    """What the lens sees of each model: the same binary views in the same order."""
    if len(models) > MAX_MODELS:
        raise InputError(
            "TO705",
            f"No more than {MAX_MODELS} models can be told apart in one picture.",
            f"{len(models)} models",
            "Draw fewer at a time; to.compare ranks any number.",
        )
    sets = {name: views_of(rows, lens) for name, rows in models.items()}
    first = next(iter(sets))
    view_names = [view.name for view in sets[first]]
    for name, views in sets.items():
        by_name = {view.name: view for view in views}
        if set(by_name) != set(view_names):
            raise InputError(
                "TO205",
                "Models are shown beside each other through the same views.",
                f"{first}: {', '.join(view_names[:5])}; {name}: {', '.join(list(by_name)[:5])}",
                "Give models of the same classes, or a lens that all of them have, such as 'confidence'.",
            )
        joint = next((view for view in views if view.joint), None)
        if joint is not None:
            raise InputError(
                "TO205",
                f"The diagram {diagram} shows one stated probability per row; this lens has a vector per row.",
                f"lens={joint.name!r}",
                "Use lens='confidence', 'classwise' or 'class:NAME'.",
            )
        sets[name] = tuple(by_name[view_name] for view_name in view_names)
    return sets


def sentence_name(name: str) -> str:
    """A model's name in a sentence."""
    return name or "the model"


def legend_name(name: str, size: float = 8.5) -> str:
    """A model's name where room is scarce."""
    return styling.shorten_text(name or UNNAMED, MAX_NAME_WIDTH, size)

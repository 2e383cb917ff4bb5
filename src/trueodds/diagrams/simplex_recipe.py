"""Base class of the settings of the simplex diagrams, and the names of the outcomes at the corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.settings import Level
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BinnedRecipe
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Groups, class_number
from trueodds.lenses.ranked import TopK
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally, lens_views


@dataclass(frozen=True)
class SimplexRecipe(BinnedRecipe):
    """Settings of a diagram of joint views whose corners are labeled with the outcomes."""

    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    level: Level = 0.95
    simultaneous: bool = True

    def draw_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of one model, with outcome names at the corners."""
        if len(models) != 1:
            return super().draw_models(models, lens, rng)
        (data,) = models.values()
        return self.diagram_with_outcome_names(lens_views(data, lens), outcome_names(data, lens))

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of joint views, with numbered outcomes."""
        return self.diagram_with_outcome_names(views, None)

    def diagram_with_outcome_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of joint views whose outcomes have these names; None numbers them."""
        raise NotImplementedError


REST_LABEL = "rest"  # name of all other outcomes together


def outcome_names(data: Predictions | Tally, lens: Lens) -> tuple[str, ...] | None:
    """The names of the outcomes of a joint lens; None if they have no names.

    They are the classes, the groups of classes, or the ranks of the most probable classes and the rest.
    """
    names = [str(label) for label in data.classes]
    if isinstance(lens, Canonical):
        return tuple(names)
    if isinstance(lens, Groups):
        return tuple(" + ".join(names[class_number(c, data.classes)] for c in block) for block in lens.blocks)
    if isinstance(lens, TopK):
        return (*(_name_choice(rank) for rank in range(1, lens.size + 1)), REST_LABEL)
    return None


def label_outcomes(view: View, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the outcomes of a view, or numbers if it has no names."""
    m = view.p.shape[1]
    return tuple(names) if names is not None and len(names) == m else tuple(str(k) for k in range(m))


def check_joint(view: View, name: str) -> None:
    """Raise an error for a view without a probability vector per row."""
    if not view.joint:
        raise InputError(
            "TO704",
            f"The diagram {name} requires a probability vector per row.",
            f"the view {view.name!r} with one probability per row",
            "For two outcomes or a single class, use the diagram reliability; for more classes, use lens='canonical'.",
        )


def _name_choice(rank: int) -> str:
    """Name the outcome with the largest probability (rank 1), the second largest, and so on.

    >>> _name_choice(2), _name_choice(4)
    ('2nd choice', '4th choice')
    """
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(rank, "th")
    return f"{rank}{suffix} choice"

"""Base class of the settings of diagrams of multinomial log odds: class names and the baseline class of the odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trueodds.calibrators._glm.baseline_logits import check_baseline, resolve_class_name
from trueodds.core.errors import InputError
from trueodds.core.settings import Integer
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import Recipe
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class BaselineRecipe(Recipe):
    """Settings of a diagram whose odds are those of each class of a joint view against a baseline class.

    Attributes
    ----------
    classes : tuple of str or None
        The names of the classes; None takes those of the data, or numbers.
    baseline : int, str or None
        The baseline class by index or as ``class:NAME``; None is the last class.
    """

    classes: Sequence[str | int | float] | None = None
    baseline: Integer | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_baseline(self.baseline)
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(map(str, self.classes)))

    def draw_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of named models; class names default to those of the data if the lens keeps the classes."""
        if self.classes is None and isinstance(lens, Canonical) and len(models) == 1:
            (data,) = models.values()
            return replace(self, classes=tuple(map(str, data.classes))).draw_models(models, lens, rng)
        return super().draw_models(models, lens, rng)

    def baseline_index(self, view: View) -> int | None:
        """The index of the baseline class in a view; None for the default, or if a name does not apply."""
        if isinstance(self.baseline, str):
            return int(resolve_class_name(self.baseline, self.class_names(view.p.shape[1]))) if view.joint else None
        return self.baseline

    def class_names(self, k: int) -> tuple[Any, ...]:
        """Names of the k classes of a view: those of the setting, or numbers. Raises TO203 if their number differs."""
        if self.classes is None:
            return tuple(str(j) for j in range(k))
        if len(self.classes) != k:
            raise InputError(
                "TO203",
                "classes must have one name for each class.",
                f"{len(self.classes)} names, {k} classes",
                "Pass one name per class, or omit classes.",
            )
        return tuple(self.classes)

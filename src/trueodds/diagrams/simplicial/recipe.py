"""How is a picture of the simplex asked for? Its cells, how sure a verdict is to be, and names for its corners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.settings import Level
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import IMPORTANCE, BinnedRecipe, views_of
from trueodds.diagrams.simplicial import corners
from trueodds.lenses.lens import Lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class SimplexRecipe(BinnedRecipe):
    """A diagram of joint views whose corners bear the names of outcomes."""

    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    exempt: ClassVar[dict[str, str]] = IMPORTANCE
    level: Level = 0.95
    simultaneous: bool = True

    def of_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of one model, its corners named."""
        if len(models) != 1:
            return super().of_models(models, lens, rng)
        (rows,) = models.values()
        return self.drawn(views_of(rows, lens), corners.outcome_names(rows, lens))

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of joint views, their outcomes numbered."""
        return self.drawn(views, None)

    def drawn(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of joint views with the names of their outcomes."""
        raise NotImplementedError

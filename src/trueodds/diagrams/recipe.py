"""Base classes of the settings of diagrams: a recipe turns the views of a lens into a diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.core.errors import InputError
from trueodds.core.registry import dataclass_settings
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, Range, Settings
from trueodds.core.signatures import checks_method_call
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally, lens_views

MIN_BAND_DRAWS = 99  # fewer draws do not determine the quantiles of a band
BandDraws = Annotated[int, Range(MIN_BAND_DRAWS, 100_000_000)]
IMPORTANCE_WEIGHT_EXEMPTION = {"weight two": "weights are importance weights: the variance grows with their squares"}


@dataclass(frozen=True)
class Recipe(Settings):
    """The settings of a diagram. Called on the views of a lens, it returns the Diagram."""

    name: ClassVar[str]
    lens: ClassVar[str | None] = None  # default lens; None is the default of `draw`
    accepts_several_models: ClassVar[bool] = False  # whether it draws several models
    accepts_joint_views: ClassVar[bool] = False  # whether a view may hold a vector per row
    supports_clusters: ClassVar[bool] = False  # whether its intervals resample whole clusters
    random_columns: ClassVar[tuple[str, ...]] = ()  # columns that depend on random draws, and so on the order of rows
    count_columns: ClassVar[tuple[str, ...]] = ("n",)  # columns in which a weight of two differs from two rows
    exemptions: ClassVar[dict[str, str]] = {}  # laws of tests/laws that do not apply, each with the reason

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Names of the settings that `draw` may pass."""
        return dataclass_settings(cls)

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings by name, as a diagram records them."""
        return {name: getattr(self, name) for name in dataclass_settings(type(self))}

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Any:
        """Build the recipe from the settings that `draw` passes; the diagram's name in the registry is not used."""
        return cls(**settings)

    @checks_method_call
    def __call__(self, views: Sequence[View], rng: int | np.random.Generator = 0) -> Diagram:
        """Compute the diagram of these views."""
        for view in views:
            if view.joint and not self.accepts_joint_views:
                raise InputError(
                    "TO205",
                    f"The diagram {self.name} needs one predicted probability per row, but this lens gives a vector per"
                    " row.",
                    f"lens={view.name!r}",
                    "Use lens='confidence', 'classwise' or 'class:NAME'.",
                )
        return self.compute(tuple(views), as_generator(rng))

    def draw_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """Compute the diagram of named models. Most diagrams accept only one."""
        if len(models) != 1:
            raise InputError(
                "TO205",
                f"The diagram {self.name} draws one model at a time.",
                f"{len(models)} models",
                "Draw them one by one, or use the diagram 'comparison'.",
            )
        (data,) = models.values()
        return self(lens_views(data, lens), rng)

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """Compute the diagram. A diagram without random draws ignores `rng`."""
        raise NotImplementedError


@dataclass(frozen=True)
class BinnedRecipe(HasPartition, Recipe):
    """The settings of a diagram with bins, which can be given by name."""

    partition: Partition | None = None
    level: Level = 0.9


def lens_name(views: Sequence[View]) -> str:
    """Name of the lens that gave these views."""
    if len(views) == 1:
        return views[0].name
    return "classwise" if all(view.name.startswith("class:") for view in views) else "several"

"""Base classes of the settings of diagrams: a recipe turns the views of a lens into a diagram."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from trueodds.binning.partition import Partition
from trueodds.binning.partition_by_name import HasPartition
from trueodds.calibrators.mcllo import check_baseline, resolve_class_name
from trueodds.core.errors import InputError, Note
from trueodds.core.registry import dataclass_settings
from trueodds.core.rng import as_generator
from trueodds.core.settings import Integer, Level, Range, Settings
from trueodds.core.signatures import checks_method_call
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical
from trueodds.lenses.view import View
from trueodds.monitoring.monitor_report import MonitorReport
from trueodds.tallies.tally import Tally, lens_views

Models = Mapping[str, Predictions | Tally]  # the predictions of each model by its name
PlotT = TypeVar("PlotT", bound=Diagram)
MIN_BAND_DRAWS = 99  # fewer draws do not determine the quantiles of a band
BandDraws = Annotated[int, Range(MIN_BAND_DRAWS, 100_000_000)]
IMPORTANCE_WEIGHT_EXEMPTION = {"weight two": "weights are importance weights: the variance grows with their squares"}


@dataclass(frozen=True)
class Recipe(Settings):
    """The settings of a diagram. Called on the views of a lens, it returns the Diagram.

    Raises
    ------
    InputError
        TO203 for an invalid setting. TO205 for a joint view.
    """

    name: ClassVar[str]
    lens: ClassVar[str | None] = None  # default lens; None is the default of `draw`
    accepts_several_models: ClassVar[bool] = False  # whether it draws several models
    accepts_joint_views: ClassVar[bool] = False  # whether a view may hold a vector per row
    supports_clusters: ClassVar[bool] = False  # whether its intervals resample whole clusters
    needs_groups: ClassVar[bool] = False  # whether it draws the groups of the rows
    takes_monitor: ClassVar[bool] = False  # whether it draws a monitor instead of predictions
    random_columns: ClassVar[tuple[str, ...]] = ()  # columns that depend on random draws, and so on the order of rows
    count_columns: ClassVar[tuple[str, ...]] = ("n",)  # columns in which a weight of two differs from two rows
    exemptions: ClassVar[dict[str, str]] = {}  # laws of tests/laws that do not apply, each with the reason

    @property
    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in dataclass_settings(type(self))}

    @checks_method_call
    def __call__(self, views: Sequence[View], rng: int | np.random.Generator = 0) -> Diagram:
        """Compute the diagram of these views."""
        for view in views:
            if view.joint and not self.accepts_joint_views:
                raise InputError(
                    "TO205",
                    f"The diagram {self.name} needs one predicted probability per row, but this lens gives a vector per"
                    " row.",
                    f"⟨lens={view.name!r}⟩",
                    "Use ⟨lens='confidence'⟩, 'classwise' or 'class:NAME'.",
                )
        return self.compute(tuple(views), as_generator(rng))

    def draw_resolved(
        self,
        data: Mapping[str, tuple[Predictions | Tally, Predictions | Tally]],
        lens: Lens,
        rng: int | np.random.Generator = 0,
    ) -> Diagram:
        """Compute the diagram of named models, each with and without its rows of weight 0."""
        return self.draw_models({name: rows for name, (_, rows) in data.items()}, lens, rng)

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """Compute the diagram of named models. Most diagrams accept only one."""
        if len(models) != 1:
            raise InputError(
                "TO205",
                f"The diagram {self.name} draws one model at a time.",
                f"{len(models)} models",
                f"Pass [{self.name!r}], a list, for a grid with a panel per model, or use the diagram 'comparison'.",
            )
        (data,) = models.values()
        return self(lens_views(data, lens), rng)

    def draw_report(self, report: MonitorReport) -> Diagram:
        """Compute the diagram of the report of a monitor."""
        raise NotImplementedError

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """Compute the diagram. A diagram without random draws ignores `rng`."""
        raise NotImplementedError

    def build_diagram(
        self,
        plot: type[PlotT],
        lens: str,
        tables: Sequence[Mapping[str, Array]],
        panels: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any],
        notes: Iterable[Note] = (),
    ) -> PlotT:
        """Build the diagram of a table for each view or model, stacked, and of a row of `panels` for each view."""
        return plot(
            name=self.name,
            lens=lens,
            table=stack_tables(tables),
            panels=rows_to_columns(panels),
            settings=settings,
            notes=tuple(notes),
        )


@dataclass(frozen=True)
class BinnedRecipe(HasPartition, Recipe):
    """The settings of a diagram with bins, which can be given by name.

    Parameters
    ----------
    partition : Partition, optional
        The bins. By default 15 bins of equal width.
    """

    partition: Partition | None = None
    level: Level = 0.95


def lens_name(views: Sequence[View]) -> str:
    if len(views) == 1:
        return views[0].name
    return "classwise" if all(view.name.startswith("class:") for view in views) else "several"


@dataclass(frozen=True)
class BaselineRecipe(Recipe):
    """Settings of a diagram whose odds are those of each class of a joint view against a baseline class.

    Parameters
    ----------
    classes : sequence of str, optional
        The names of the classes of a joint view. By default, the names in the data if they are known.
    baseline : int or str, optional
        The baseline class by index, where negative indices count from the last class, or as ``class:cat``. The default
        is the last class.

    Raises
    ------
    InputError
        TO203 for an invalid setting.
    """

    classes: Sequence[str | int | float] | None = None
    baseline: Integer | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_baseline(self.baseline)
        if self.classes is not None:
            object.__setattr__(self, "classes", tuple(map(str, self.classes)))

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
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


def panel_limit_notes(
    n_views: int, view_order: str, table_content: str = "The table contains all of them."
) -> list[Note]:
    """Return the note TN245 that not every view is drawn, if there are more than `MAX_PANELS`.

    `table_content` is a sentence on what the table contains of the views that are not drawn.
    """
    if n_views <= MAX_PANELS:
        return []
    return [Note("TN245", f"Only {MAX_PANELS} of {n_views} views are drawn, {view_order} first. {table_content}")]

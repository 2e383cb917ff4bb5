"""Look up a partition by its name and settings, and choose the default partition of a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from trueodds.binning import PARTITION_NAMES
from trueodds.binning.equal_mass import EqualMass, Sweep, parse_mass
from trueodds.binning.median_variance import MedianVariance, PredictedClass
from trueodds.binning.partition import BinsOrEdges, Partition
from trueodds.binning.simplex_grid import Distinct, SimplexGrid
from trueodds.binning.uniform import FixedEdges, Uniform
from trueodds.core.errors import InputError, describe
from trueodds.core.registry import dataclass_settings
from trueodds.core.settings import Count, OneOf, check
from trueodds.kernels.bins import Closed
from trueodds.lenses.view import View

# The class of each partition, by its name, and the names of the settings that it takes.
PARTITION_TYPES: dict[str, tuple[type[Partition], tuple[str, ...]]] = {
    "uniform": (Uniform, ("bins", "closed", "range")),
    "equal-mass": (EqualMass, ("bins", "closed")),
    "sweep": (Sweep, ()),
    "median-variance": (MedianVariance, ("bins", "min_size")),
    "predicted-class": (PredictedClass, ()),
    "simplex-grid": (SimplexGrid, ("bins", "closed")),
    "distinct": (Distinct, ()),
}

PARTITION_SETTINGS = ("bins", "partition", "min_size", "closed", "range")  # the arguments of `as_partition`
# The annotations and the defaults of all but `partition`, for `check`.
_HINTS_AND_DEFAULTS: dict[str, tuple[Any, Any]] = {
    "bins": (BinsOrEdges | None, 15),
    "min_size": (Count | None, 10),
    "closed": (Closed | None, "right"),
    "range": (Literal["1/K"] | None, None),
}
_PARTITION_HINT = Annotated[str, OneOf(PARTITION_NAMES)] | Partition | None


def as_partition(
    partition: str | Partition | None = None,
    *,
    bins: int | str | Sequence[float] | None = None,
    min_size: int | None = None,
    closed: Closed | None = None,
    range: str | None = None,
) -> Partition | None:
    """Resolve a partition from its name and settings; None selects the default for the view (see `default_partition`).

    >>> str(as_partition("equal-mass", bins=10)), str(as_partition(bins=[0, 0.5, 1]))
    ('equal-mass 10', 'edges 0 0.5 1')
    """
    values = {"bins": bins, "min_size": min_size, "closed": closed, "range": range}
    settings = {
        name: check(name, value, *_HINTS_AND_DEFAULTS[name]) for name, value in values.items() if value is not None
    }
    if isinstance(partition, Partition):
        _reject_other_settings(settings, f"a partition that is given as {type(partition).__name__}", ())
        return partition
    if isinstance(partition, str) and partition.startswith("mass:"):
        _reject_other_settings(settings, f"partition {partition}", ("closed",))
        return parse_mass(partition, settings.get("closed", "right"))
    partition = check("partition", partition, _PARTITION_HINT)
    if partition == "edges" or (isinstance(settings.get("bins"), tuple) and partition in (None, "uniform")):
        _reject_other_settings(settings, "given edges", ("bins", "closed"))
        return FixedEdges(settings.get("bins", ()), settings.get("closed", "right"))
    if partition is None and not settings:
        return None
    name = str(partition or ("median-variance" if "min_size" in settings else "uniform"))
    partition_type, setting_names = PARTITION_TYPES[name]
    _reject_other_settings(settings, f"partition {name}", setting_names)
    return partition_type(**settings)


class HasPartition:
    """Mixin of methods with the field `partition`, which the public functions set by name and by bins.

    >>> from trueodds.estimators.binned import BinnedError
    >>> str(BinnedError.from_settings("ece", partition="equal-mass", bins=10).partition)
    'equal-mass 10'
    """

    partition: Partition | None
    has_equal_mass_bins: ClassVar[bool] = False  # whether a number of bins alone means bins of equal mass

    @classmethod
    def setting_names(cls: Any) -> tuple[str, ...]:
        """Names of the settings that the public functions may pass, those of the partition included."""
        return (*PARTITION_SETTINGS, *(name for name in dataclass_settings(cls) if name != "partition"))

    @classmethod
    def from_settings(cls: Any, _name: str, **settings: Any) -> Any:
        """Create the method from public settings; settings such as `bins` and `partition` determine its partition."""
        partition_settings = {name: settings.pop(name) for name in PARTITION_SETTINGS if name in settings}
        if not partition_settings:
            return cls(**settings)
        if cls.has_equal_mass_bins and "partition" not in partition_settings:
            has_edges = isinstance(check("bins", partition_settings.get("bins"), BinsOrEdges | None, 15), tuple)
            if not has_edges:
                partition_settings["partition"] = "equal-mass"
        return cls(partition=as_partition(**partition_settings), **settings)

    def partition_for(self, view: View) -> Partition:
        """The partition of the settings, or the default for this view."""
        return self.partition or default_partition(view)


def default_partition(view: View) -> Partition:
    """Default partition: 15 uniform bins for one score, and a tree or cells by predicted class for vectors.

    Three outcomes have few predicted classes, and a tree separates them.
    """
    if not view.joint:
        return _DEFAULT_BINS
    return _DEFAULT_CELLS if view.p.shape[1] >= FEWEST_CLASSES_WITH_CELLS else _DEFAULT_TREE


FEWEST_CLASSES_WITH_CELLS = 4  # outcomes of a vector from which on the cells are those of the predicted classes
_DEFAULT_TREE, _DEFAULT_CELLS, _DEFAULT_BINS = MedianVariance(), PredictedClass(), Uniform()


def _reject_other_settings(settings: dict[str, Any], partition_text: str, allowed_names: tuple[str, ...]) -> None:
    """Raise TO202 for a setting that `partition_text`, the partition in words, does not have."""
    for name in settings:
        if name not in allowed_names:
            raise InputError(
                "TO202",
                f"{partition_text[0].upper() + partition_text[1:]} takes no {name}.",
                f"⟨{name}={describe(settings[name])}⟩",
                f"It takes: {', '.join(allowed_names) or 'nothing'}.",
            )

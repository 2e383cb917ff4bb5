"""Base classes: the settings of a calibrator (CalibratorSpec) and the fitted map (CalibrationMap)."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from trueodds.calibrators._glm.fit_data import FitData
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MIN_PROB_OF_LOGITS, Probabilities, probabilities
from trueodds.calibrators._glm.row_sums import InMemory, RowSums
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.lenses.view import View


class Term(NamedTuple):
    """One part of a mixture: a weight, and softmax(W log p + b)."""

    weight: float
    W: Array  # (K, K)
    b: Array  # (K,)
    min_prob: float = 0.0  # what stands for a smaller p; with 0 an exact zero has the log −∞


class CalibrationMap(ABC):
    """From stated probabilities to believable ones; saved as its parameters, never as code."""

    name: ClassVar[str]  # the member whose file holds it
    n_passes: int | None = None  # over the data, where the fit was iterative
    converged: bool = True  # False where a parameter stopped at the end of its range
    logits: bool = False  # whether `apply` takes logits instead of probabilities
    takes_logs: ClassVar[bool] = False  # whether `apply` takes log-probabilities too, which no small one leaves

    @abstractmethod
    def apply(self, P: Any) -> Array:
        """The recalibrated rows of P (n, K), float64, rows summing to 1 (the identity's as nearly as they came)."""

    def interval(self, P: Any) -> tuple[Array, Array] | None:
        """Low and high ends (n, K) of each recalibrated probability, from maps that know them."""
        return None

    def terms(self, k: int) -> tuple[Term, ...] | None:
        """The map as a mixture of softmax(W log p + b), with logits in place of log p where it is of logits.

        None where it is no such mixture; then it cannot be written as ONNX.
        """
        return None

    def stages(self, k: int) -> tuple[tuple[Term, ...], ...] | None:
        """The map as such mixtures one after the other."""
        terms = self.terms(k)
        return None if terms is None else (terms,)

    @abstractmethod
    def describe(self) -> str:
        """The map in a few words, such as `T = 1.60`."""

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """Lines on each parameter and how sure it is, for people; none where parameters mean nothing by themselves."""
        return []

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The parameters as JSON holds them; numbers keep every bit."""

    @classmethod
    @abstractmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> CalibrationMap:
        """The map for K classes behind saved parameters; each is checked (InputError TO505)."""


@dataclasses.dataclass(frozen=True)
class CalibratorSpec(Settings, ABC):
    """How a map is fitted: settings in fields."""

    name: ClassVar[str]
    complexity: ClassVar[int]  # the rank by which the simpler of two equally good maps is chosen; identity is 0
    keeps_argmax: ClassVar[bool]  # whether the order within every row survives, so that no label changes
    map_type: ClassVar[type[CalibrationMap] | None] = None
    two_classes: ClassVar[bool] = False  # whether it is for two classes only
    candidate: ClassVar[bool] = True  # whether `auto` tries it unasked
    accepts_raw_arrays: ClassVar[bool] = (
        False  # whether fit and notes take any float type for P, and class numbers (n,) for Y
    )
    takes_logs: ClassVar[bool] = False  # whether P may be log-probabilities, which logits give in full
    exempt: ClassVar[Mapping[str, str]] = {}  # laws of the family that cannot apply, and why

    @abstractmethod
    def fit(self, P: Any, Y: Array, w: Array) -> CalibrationMap:
        """The map for probabilities P (n, K), outcome shares Y (n, K) and weights w (n,).

        A rule with the setting `logits=True` gets the logits in place of P, and its map takes logits.
        """

    def suits(self, n: int, k: int) -> bool:
        """Whether `auto` should try it unasked on n rows of K classes."""
        return self.candidate and not (self.two_classes and k > 2)

    def check_classes(self, k: int) -> None:
        """Refuse K classes where the map is for two."""
        if self.two_classes and k > 2:
            raise InputError(
                "TO511",
                f"{self.name} is a map for two classes.",
                f"{k} classes",
                "Fit a multiclass method, for instance mcllo with a penalty, structured or dirichlet.",
            )

    def declined(self, n: int, doubts: Sequence[Note]) -> tuple[CalibrationMap, Any] | None:
        """The identity and why, from a procedure that heeds doubts about the n rows; None where the rule is fitted."""
        return None

    def of_classes(self, classes: Sequence[Any]) -> CalibratorSpec:
        """The rule for classes of these names, with their numbers where its settings name some."""
        return self

    def explained(self, P: Any, Y: Array, w: Array, cluster: Array | None = None) -> tuple[CalibrationMap, Any]:
        """The map and, from a procedure that chooses, its report."""
        return self.fit(P, Y, w), None

    def notes(self, calibration_map: CalibrationMap, P: Any, Y: Array, w: Array) -> list[Note]:
        """Facts about this fit that belong beside its parameters."""
        return []

    def settings(self) -> dict[str, Any]:
        """The settings by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


class SummedSpec(CalibratorSpec):
    """How a map is fitted from nothing but sums over the rows: of those in memory, or in passes over a source."""

    @abstractmethod
    def fit_data(self, data: RowSums) -> Any:
        """The map for rows `FitData`, wherever they are."""

    @abstractmethod
    def fit_notes(self, calibration_map: CalibrationMap, data: RowSums) -> list[Note]:
        """Facts about this fit that belong beside its parameters."""

    def as_fit_data(self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None) -> FitData:
        """The rows as `fit_data` takes them."""
        return FitData.of(P, Y, w, cluster, getattr(self, "min_prob", MIN_PROB), bool(getattr(self, "logits", False)))

    def fit(self, P: Probabilities, Y: Array, w: Array) -> Any:
        """The map of these rows, in memory."""
        return self.fit_data(in_memory(self.as_fit_data(P, Y, w)))

    def explained(
        self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None
    ) -> tuple[CalibrationMap, Any]:
        """The same, with standard errors that know which rows hang together."""
        return self.fit_data(in_memory(self.as_fit_data(P, Y, w, cluster))), None

    def notes(self, calibration_map: CalibrationMap, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        """Facts about this fit that belong beside its parameters."""
        return self.fit_notes(calibration_map, in_memory(self.as_fit_data(P, Y, w)))


class TalliedSpec(CalibratorSpec):
    """How a map is fitted that needs nothing but cells of scores with their outcomes, one table per class."""

    @abstractmethod
    def of_views(self, views: Sequence[View]) -> Any:
        """The map from one view of cells for the second of two classes, or for every class."""

    @abstractmethod
    def fit_notes_of_views(self, calibration_map: CalibrationMap, views: Sequence[View]) -> list[Note]:
        """Facts about this fit that belong beside its parameters."""


def in_memory(data: FitData) -> InMemory:
    """Passes over rows that are in memory."""
    return InMemory(data, data, data.n * data.k)


def lower_min_prob_for_logs(spec: CalibratorSpec) -> CalibratorSpec:
    """The rule as it is fitted to log-probabilities: its floor, unless one was named, is for exact zeros alone."""
    if spec.takes_logs and getattr(spec, "min_prob", None) == MIN_PROB:
        return dataclasses.replace(spec, min_prob=MIN_PROB_OF_LOGITS)  # type: ignore[call-arg] # the rule has that setting
    return spec


def fit_and_apply(spec: CalibratorSpec, P: Probabilities, Y: Array, w: Array, to: Probabilities) -> Array:
    """What the rule, fitted to some rows, makes of others."""
    calibration_map = spec.fit(input_for(spec, P), Y, w)
    return calibration_map.apply(input_for(calibration_map, to))


def input_for(method: CalibratorSpec | CalibrationMap, P: Probabilities) -> Probabilities:
    """The rows as a rule or a map takes them: log-probabilities where it does, else probabilities."""
    return P if method.takes_logs else probabilities(P)

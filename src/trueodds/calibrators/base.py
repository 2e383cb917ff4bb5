"""Base classes: the settings of a calibrator (CalibratorSpec) and the fitted map (CalibrationMap)."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._glm.fit_data import FitData, InMemory, SummableRows
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MIN_PROB_OF_LOGITS,
    Probabilities,
    min_prob_for_slopes,
    to_probabilities,
)
from trueodds.calibrators.saved_parameters import FrozenDataclass, Saved
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Settings
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.view import View

MIN_ROWS_PER_CURVE = 2  # rows per class below which `auto` does not try a curve for each class


class SoftmaxTerm(NamedTuple):
    """One component of a mixture: a weight and softmax(W log p + b).

    Exact zeros give infinite logarithms. A weight of 0 times such a logarithm is 0. A class whose entry of W log p + b
    is +∞ gets probability 1; if all entries are −∞, the row is uniform over the classes with finite b.
    """

    weight: float
    W: Array  # (K, K), or its diagonal (K,)
    b: Array  # (K,)
    # Replaces a smaller p, with a diagonal W only where its entry is negative: one number, or one for each class (K,).
    # With 0, an exact zero has the log −∞.
    min_prob: float | Array = 0.0
    zeros_only: bool = False  # whether `min_prob` replaces exact zeros only
    normalized: bool = False  # whether log p is that of the row divided by its sum

    @property
    def min_prob_by_class(self) -> Array:
        """The smallest probability of each class, (K,), which replaces smaller ones; 0 for none."""
        min_prob = np.broadcast_to(self.min_prob, self.b.shape)
        return min_prob_for_slopes(self.W, min_prob) if self.W.ndim == 1 else min_prob


class MapTraits:
    """What holds for a fitted map unless its class has a class variable, a field or a property of the same name."""

    name: ClassVar[str]  # of the calibrator, whose class sets it
    n_passes: int | None = None  # over the data, where the fit was iterative
    converged: bool = True  # False if a parameter stopped at the end of its range
    logits: bool = False  # whether `apply` takes logits instead of probabilities
    takes_logs: ClassVar[bool] = False  # whether `apply` takes log-probabilities too, which do not underflow
    one_vs_rest: ClassVar[bool] = False  # whether each of more than two classes has a curve of its own
    required_columns: tuple[str, ...] = ()  # of the rows, beside the probabilities, which `apply` needs
    symbols: ClassVar[Mapping[str, str]] = {}  # attribute (a path) of each parameter, by its symbol in the literature


class CalibrationMap(MapTraits, Saved, ABC):
    """A fitted map from predicted to recalibrated probabilities; it is saved as its fields, never as code."""

    @abstractmethod
    def apply(self, P: Any) -> Array:
        """Recalibrate the rows of P (n, K); float64, rows sum to 1 (the identity leaves them as they are)."""

    def count_unknown(self, columns: Mapping[str, Array]) -> int:
        """Number of rows with a group or category that the fit did not have, by the columns that the map needs."""
        return 0

    def interval(self, P: Any) -> tuple[Array, Array] | None:
        """Lower and upper ends (n, K) of each recalibrated probability, or None if the map has no intervals."""
        return None

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The map as one mixture of softmax(W log p + b), with logits instead of log p for a map of logits.

        None if the map is no such mixture. By this form maps are converted to ONNX and PyTorch.
        """
        return None

    def mixture_stages(self, k: int) -> tuple[tuple[SoftmaxTerm, ...], ...] | None:
        """The map as a sequence of `mixture_terms`, each applied to the result of the one before, or None."""
        terms = self.mixture_terms(k)
        return None if terms is None else (terms,)

    @abstractmethod
    def describe(self) -> str:
        """The fitted parameters in a few words, such as `T = 1.60`."""

    def named_parameters(self) -> dict[str, Any]:
        """The parameters by their symbols in the literature: numbers and arrays; empty if the map is no formula."""
        return {symbol: attrgetter(path)(self) for symbol, path in self.symbols.items()}

    def named_intervals(self) -> dict[str, Array]:
        """The 95 % intervals of parameters (2,) or (m, 2) by their symbols; empty if standard errors are unknown."""
        return {}

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """Lines of text on each parameter and its uncertainty; empty if parameters have no meaning by themselves."""
        return []


class CalibratorSpec(FrozenDataclass, Settings, ABC):
    """The settings of a calibrator, in annotated fields, and its fitting routine.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Smallest probability inside a logarithm: the fit takes log(max(p, `min_prob`)). Where log-probabilities are
        known (`Predictions.from_logits`), the default applies to exact zeros only.
    """

    name: ClassVar[str]
    map_type: ClassVar[type[CalibrationMap] | None] = None  # to which the name is given, unless it has one
    keeps_argmax: ClassVar[bool] = False  # whether the order within every row is kept, and so every predicted class
    two_classes: ClassVar[bool] = False  # whether it supports two classes only
    candidate: ClassVar[bool] = True  # whether `auto` tries it by default
    # Whether fit and notes take any float type for P, and class numbers (n,) for Y.
    accepts_raw_arrays: ClassVar[bool] = False
    takes_logs: ClassVar[bool] = False  # whether P may be log-probabilities, which logits give without underflow
    exemptions: ClassVar[Mapping[str, str]] = {}  # general tests that cannot apply, and why
    example_settings: ClassVar[str] = ""  # of the example of its scikit-learn class, if defaults are not enough
    example_columns: ClassVar[str] = ""  # name of a column in that example, if the calibrator reads columns of the rows
    logits = False  # whether `fit` and the map take logits instead of P; some calibrators have it as a setting

    def __init_subclass__(cls, *, eq: bool = True, **more: Any) -> None:
        super().__init_subclass__(eq=eq, **more)
        if cls.map_type is not None and "name" not in vars(cls.map_type):
            cls.map_type.name = cls.name

    @abstractmethod
    def fit(self, P: Any, Y: Array, w: Array) -> CalibrationMap:
        """Fit the map to probabilities P (n, K), outcome shares Y (n, K) and weights w (n,)."""

    def is_suitable(self, n: int, k: int) -> bool:
        """Whether `auto` tries the calibrator by default on n rows of K classes."""
        if k <= 2:
            return self.candidate
        has_curves = self.map_type is not None and self.map_type.one_vs_rest
        return self.candidate and not self.two_classes and not (has_curves and n < MIN_ROWS_PER_CURVE * k)

    def check_classes(self, k: int) -> None:
        """Raise TO511 for more than two classes if the calibrator supports only two."""
        if self.two_classes and k > 2:
            raise InputError(
                "TO511",
                f"{self.name} supports two classes only.",
                f"{k} classes",
                "Fit a multiclass method, for instance mcllo with a penalty, structured or dirichlet.",
            )

    def refuse_implausible_predictions(self, n: int, doubts: Sequence[Note]) -> tuple[CalibrationMap, Any] | None:
        """Return (identity, report) if the data of n rows look implausible, else None.

        `doubts` are notes on data that were probably misread, such as predictions that look like labels. Only `auto`
        refuses them.
        """
        return None

    def unit_free(self) -> CalibratorSpec:
        """The calibrator for scores of an arbitrary unit, such as margins, if its settings have to change for them."""
        return self

    def with_columns(self, P: Any, preds: Predictions) -> Any:
        """The rows as `fit` takes them: the probabilities P (n, K), with other columns if the calibrator reads any."""
        return P

    def with_class_numbers(self, classes: Sequence[Any]) -> CalibratorSpec:
        """The calibrator for these class names, with numbers instead of names in its settings."""
        return self

    def fit_with_report(
        self, P: Any, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[CalibrationMap, Any]:
        """Fit the map, and return it with the report on the choice among candidates (of `auto`) or None.

        `cluster` (n,) labels rows that are not independent. On rows that the model was probably trained on, `auto`
        confirms nothing.
        """
        return self.fit(P, Y, w), None

    def notes(self, calibration_map: Any, P: Any, Y: Array, w: Array) -> list[Note]:
        """Coded facts about this fit, whose result is `calibration_map`, to rows of positive weight."""
        return []

    def settings(self) -> dict[str, Any]:
        """The settings by name, as a fitted calibrator and its file state them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


class SummedSpec(CalibratorSpec):
    """A calibrator that is fitted from sums over the rows, in memory or in passes over a source."""

    takes_logs = True

    @abstractmethod
    def fit_from_sums(self, data: SummableRows) -> Any:
        """Fit the map from sums over `FitData`, whose rows are in memory or streamed."""

    @abstractmethod
    def notes_from_sums(self, calibration_map: Any, data: SummableRows) -> list[Note]:
        """Coded facts about this fit, from sums over the rows."""

    def as_fit_data(self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None) -> FitData:
        """The rows as the `FitData` over which `fit_from_sums` takes sums."""
        return FitData.from_rows(P, Y, w, cluster, min_prob=getattr(self, "min_prob", MIN_PROB), logits=self.logits)

    def fit(self, P: Probabilities, Y: Array, w: Array) -> Any:
        return self.fit_from_sums(sums_in_memory(self.as_fit_data(P, Y, w)))

    def fit_with_report(
        self, P: Probabilities, Y: Array, w: Array, cluster: Array | None = None, *, trained_on_rows: bool = False
    ) -> tuple[CalibrationMap, Any]:
        return self.fit_from_sums(sums_in_memory(self.as_fit_data(P, Y, w, cluster))), None

    def notes(self, calibration_map: Any, P: Probabilities, Y: Array, w: Array) -> list[Note]:
        return self.notes_from_sums(calibration_map, sums_in_memory(self.as_fit_data(P, Y, w)))


class TalliedSpec(CalibratorSpec):
    """A calibrator that can be fitted to a tally: cells of similar scores with their outcomes, one table per class."""

    @abstractmethod
    def fit_from_views(self, views: Sequence[View]) -> Any:
        """Fit the map to views of cells: one view for the second of two classes, or one for every class."""

    @abstractmethod
    def notes_from_views(self, calibration_map: Any, views: Sequence[View]) -> list[Note]:
        """Coded facts about a fit to cells."""


def sums_in_memory(data: FitData) -> InMemory:
    return InMemory(rows=data, summary=data, n_probabilities=data.n * data.k)


def lower_min_prob_for_logs(spec: CalibratorSpec) -> CalibratorSpec:
    """The calibrator for log-probabilities: a default `min_prob` is lowered, so that it replaces exact zeros only."""
    if spec.takes_logs and getattr(spec, "min_prob", None) == MIN_PROB:
        return dataclasses.replace(spec, min_prob=MIN_PROB_OF_LOGITS)  # type: ignore[call-arg] # it has that setting
    return spec


def fit_and_apply(spec: CalibratorSpec, P: Probabilities, Y: Array, w: Array, P_held_out: Probabilities) -> Array:
    """Fit a calibrator to P, Y (n, K) and w (n,), and return the recalibrated `P_held_out` (m, K)."""
    calibration_map = spec.fit(to_accepted_input(spec, P), Y, w)
    return calibration_map.apply(to_accepted_input(calibration_map, P_held_out))


def to_accepted_input(method: CalibratorSpec | CalibrationMap, P: Probabilities) -> Probabilities:
    """The rows as a calibrator or map takes them: log-probabilities if it accepts them, else probabilities."""
    return P if method.takes_logs else to_probabilities(P)

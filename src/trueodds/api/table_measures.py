"""The measures of a table: resolve names, instances, lenses and settings to columns, and define accuracy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from trueodds.api.arguments import add_seed, resolve_method
from trueodds.binning.partition_by_name import PARTITION_SETTINGS
from trueodds.core.errors import InputError, describe
from trueodds.core.suggestions import resolve_synonym
from trueodds.core.typing import Array
from trueodds.core.weighted_sum import weighted_sum
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator, Mean, ProperScore
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View

Measures: TypeAlias = str | Estimator | Sequence[str | Estimator] | Mapping[str, str | Estimator]
Lenses: TypeAlias = str | Lens | Sequence[str | Lens | Callable[..., Any] | None] | Callable[..., Any] | None


@dataclass(frozen=True)
class Accuracy(Mean):
    """Share of rows whose most probable class was observed, which only tables offer: it is no measure of calibration.

    >>> from trueodds.lenses.view import View
    >>> Accuracy().value(View(p=[0.9, 0.8, 0.6, 0.7], y=[1, 0, 1, 1]))
    0.75
    """

    name: ClassVar[str] = "accuracy"
    lens: ClassVar[str | None] = "confidence"
    best_value: ClassVar[float] = 1.0
    lower_bound: ClassVar[float] = 0.0
    upper_bound: ClassVar[float] = 1.0

    def row_scores(self, view: View) -> Array:
        """Whether the predicted class was observed, (n,)."""
        return view.y

    def expected_if_calibrated(self, view: View) -> float:
        """Mean confidence."""
        return float(weighted_sum(view.w, view.p) / view.total)


@dataclass(frozen=True)
class RequestedColumn:
    """A requested column; the lens is None for the default of the method."""

    label: str
    method: Estimator
    lens: Any


def choose_columns(
    measures: Any, lenses: Any, settings: Mapping[str, Any], seed: int, generator: np.random.Generator
) -> list[RequestedColumn]:
    """Return the columns for every measure and lens; settings apply to the named measures that have them."""
    measures, lenses = (x.tolist() if isinstance(x, np.ndarray) else x for x in (measures, lenses))
    if isinstance(measures, (str, Estimator)):
        measures = [measures]
    if isinstance(lenses, (str, Lens)) or callable(lenses):
        lenses = [lenses]
    if not isinstance(measures, (Mapping, list, tuple)) or not measures:
        fix = "For instance measures=['ece', 'brier']."
        raise InputError("TO205", "A table needs at least one measure, in a list.", describe(measures), fix)
    if lenses is not None and (not isinstance(lenses, (list, tuple)) or not lenses):
        raise InputError("TO204", "lenses must be a list.", describe(lenses), "For instance lenses=['classwise'].")
    named = measures.items() if isinstance(measures, Mapping) else [(None, item) for item in measures]
    columns: list[RequestedColumn] = []
    used: set[str] = set()
    for label, item in named:
        _refuse_pair_and_classwise_name(item)
        is_name = isinstance(item, str) and item in ESTIMATORS.names()
        own_settings = {name: x for name, x in settings.items() if is_name and _applies(item, name, settings)}
        used |= set(own_settings)
        is_accuracy = isinstance(item, str) and item == Accuracy.name
        method = (
            Accuracy()
            if is_accuracy
            else resolve_method(ESTIMATORS, Estimator, item, add_seed(item, own_settings, seed, generator))
        )
        method_lenses = [None] if lenses is None or is_accuracy else lenses
        for lens in method_lenses:
            own_label = method.name if label is None else str(label)
            if len(method_lenses) > 1:
                own_label = f"{own_label} ({'default' if lens is None else lens})"
            columns.append(RequestedColumn(own_label, method, lens))
    if unused := [name for name in settings if name not in used]:
        raise InputError(
            "TO202", "No named measure of this table has this setting.", ", ".join(unused), "Leave it out."
        )
    return columns


def _refuse_pair_and_classwise_name(item: Any) -> None:
    """Raise TO201 for a name with its settings, and for names of the class-wise error, which here is "sce"."""
    fix = "The class-wise error is 'sce', as in {'cwECE': 'sce'}."
    if isinstance(item, (list, tuple)):
        fix = (
            f"Pass an instance such as estimators.BinnedError(), or settings of the whole table, such as bins=10. {fix}"
        )
        raise InputError("TO201", "A measure of a table must be a name or an instance.", describe(item), fix)
    if isinstance(item, str) and resolve_synonym(item, ESTIMATORS.names()) == ["ece with lens='classwise'"]:
        raise InputError("TO201", "Unknown estimator.", describe(item), fix)


def _applies(estimator: str, setting: str, settings: Mapping[str, Any]) -> bool:
    """Return whether a setting applies to an estimator: scores have bins only for their decomposition."""
    has_no_bins = issubclass(ESTIMATORS.load(estimator), ProperScore) and "decomposition" not in settings
    return ESTIMATORS.has_setting(estimator, setting) and not (has_no_bins and setting in PARTITION_SETTINGS)

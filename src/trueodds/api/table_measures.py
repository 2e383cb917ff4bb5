"""Resolve the requested measures, lenses and settings of `table` to columns; accuracy is defined here as a measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from trueodds.api.arguments import add_seed, resolve_method
from trueodds.binning.partition_by_name import PARTITION_SETTINGS
from trueodds.core.errors import InputError, describe
from trueodds.core.signatures import describe_row_argument
from trueodds.core.suggestions import list_names, resolve_synonym, suggest_setting
from trueodds.core.typing import Array
from trueodds.estimators import ESTIMATORS
from trueodds.estimators.base import Estimator, Mean, ProperScore
from trueodds.lenses.base import Lens
from trueodds.lenses.view import View

Measures: TypeAlias = str | Estimator | Sequence[str | Estimator] | Mapping[str, str | Estimator]
Lenses: TypeAlias = str | Lens | Sequence[str | Lens | Callable[..., Any] | None] | Callable[..., Any] | None


@dataclass(frozen=True)
class Accuracy(Mean):
    """Share of rows whose most probable class was observed. Only tables offer it, as it does not measure calibration.

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
        return view.mean(view.p)


@dataclass(frozen=True)
class RequestedColumn:
    """A measure through a lens, which is a column of the table."""

    label: str
    method: Estimator
    lens: Any  # None for the default lens of the method


def choose_columns(
    measures: Any, lenses: Any, settings: Mapping[str, Any], seed: int, generator: np.random.Generator
) -> list[RequestedColumn]:
    """Return a column for every measure and lens.

    Parameters
    ----------
    measures, lenses : object
        The arguments of `table`.
    settings : mapping
        Settings, which apply to the named measures that have them.
    seed : int
        Seed of randomized estimators.
    generator : numpy.random.Generator
        The generator of the call.

    Raises
    ------
    InputError
        TO201 and TO205 for invalid measures, TO204 for invalid lenses, TO202 for a setting that no measure has.
    """
    measures = measures.tolist() if isinstance(measures, np.ndarray) else measures
    lenses = lenses.tolist() if isinstance(lenses, np.ndarray) else lenses
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
        is_name = isinstance(item, str) and item in ESTIMATORS
        own_settings = {
            name: value for name, value in settings.items() if is_name and _setting_applies(item, name, settings)
        }
        used |= set(own_settings)
        method_lenses = [None] if lenses is None else lenses
        if isinstance(item, str) and item == Accuracy.name:
            method, method_lenses = Accuracy(), [None]
        else:
            method = resolve_method(ESTIMATORS, Estimator, item, add_seed(item, own_settings, seed, generator))
        for lens in method_lenses:
            column_label = method.name if label is None else str(label)
            if len(method_lenses) > 1:
                column_label = f"{column_label} ({'default' if lens is None else lens})"
            columns.append(RequestedColumn(column_label, method, lens))
    if unused := [name for name in settings if name not in used]:
        known = _known_settings([item for _, item in named], settings)
        fix = describe_row_argument(unused[0]) or suggest_setting(unused[0], settings[unused[0]], known)
        fix = fix or (list_names(known, as_code=True) if known else "Settings of an instance are set on the instance.")
        raise InputError("TO202", f"No measure of this table has the setting {unused[0]!r}.", "", fix)
    return columns


def _refuse_pair_and_classwise_name(item: Any) -> None:
    """Raise TO201 for a pair of a name and settings, and for names of the class-wise error, which is called "sce"."""
    fix = "The class-wise error is 'sce', as in {'cwECE': 'sce'}."
    if isinstance(item, (list, tuple)):
        fix = (
            "Pass an instance such as estimators.BinnedError(), or settings of the whole table, such as"
            f" ⟨bins=10⟩. {fix}"
        )
        raise InputError("TO201", "A measure of a table must be a name or an instance.", describe(item), fix)
    if isinstance(item, str) and resolve_synonym(item, ESTIMATORS.names()) == ["ece with ⟨lens='classwise'⟩"]:
        raise InputError("TO201", "Unknown estimator.", describe(item), fix)


def _known_settings(measures: Sequence[Any], settings: Mapping[str, Any]) -> list[str]:
    """Return the settings that at least one measure has that is given by its name."""
    names = [item for item in measures if isinstance(item, str) and item in ESTIMATORS]
    known = {
        name: None for item in names for name in ESTIMATORS.settings_of(item) if _setting_applies(item, name, settings)
    }
    return list(known)


def _setting_applies(estimator: str, setting: str, settings: Mapping[str, Any]) -> bool:
    """Return whether an estimator has a setting; settings of bins apply to proper scores only if decomposed."""
    has_no_bins = issubclass(ESTIMATORS.load(estimator), ProperScore) and "decomposition" not in settings
    return ESTIMATORS.has_setting(estimator, setting) and not (has_no_bins and setting in PARTITION_SETTINGS)

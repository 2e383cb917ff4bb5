"""Distinguish the data of one model, such as a mapping of columns, from those of several, as a mapping of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import PurePath
from typing import Any

from trueodds.core.errors import InputError, describe
from trueodds.core.formatting import VERSION_SEPARATOR, format_count
from trueodds.data.arrays import FROM_ESTIMATOR_REMEDY, is_classifier
from trueodds.data.class_names import column_names
from trueodds.data.predictions import Predictions
from trueodds.io.source import Source
from trueodds.tallies.tally import Tally

DATA_TYPES = (Predictions, Source, Tally)  # which hold the outcomes with the probabilities
_MAX_CHECKED_ITEMS = 100  # of a list, which is longer if its items are rows


def is_model(x: Any) -> bool:
    """Return whether an object has outcomes and probabilities, such as Predictions, a Source, a path or a table."""
    return isinstance(x, DATA_TYPES) or has_named_columns(x)


def has_named_columns(x: Any) -> bool:
    """Return whether an object is a path, a mapping or a table, whose columns `read` selects by their names."""
    if isinstance(x, (str, PurePath, Mapping)):
        return True
    return has_label(x) or (hasattr(x, "columns") and not hasattr(x, "__array__"))  # lazy frames and relations


def has_label(x: Any) -> bool:
    """Return whether an object is a data frame or mapping with a label column; other data frames are arrays."""
    names = [str(name) for name in x] if isinstance(x, Mapping) else column_names(x) or []
    return len(names) > 1 and ("label" in names or (isinstance(x, Mapping) and "labels" in names))


def is_pair(data: Any) -> bool:
    """Return whether this is a tuple (y_true, y_prob) of two arrays, and not a tuple of two models.

    >>> is_pair(([0, 1], [0.2, 0.7])), is_pair((([0, 1], [0.2, 0.7]), ([0, 1], [0.5, 0.5])))
    (True, False)
    >>> is_pair(("a.csv", "b.csv"))
    False
    """
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    return is_array(data[0]) and (is_array(data[1]) or is_pair(data[1]))  # two rows as tuples look like a pair


def is_array(x: Any) -> bool:
    """Return whether an object has one value or row per prediction: a list, an array or a frame without label."""
    if isinstance(x, Sequence) and not isinstance(x, (str, bytes)):
        return not is_pair(x) and not (len(x) > 0 and isinstance(x[0], (*DATA_TYPES, PurePath)))
    return hasattr(x, "__array__") and getattr(x, "ndim", 1) > 0 and not has_label(x)


def models_by_name(data: Any) -> dict[str, Any] | None:
    """Return several models by name, or None if `data` is one model, such as a mapping of columns."""
    if not isinstance(data, Mapping):
        return None
    holds_predictions = any(isinstance(model, DATA_TYPES) for model in data.values())
    if holds_predictions or (data and all(is_model(model) or is_pair(model) for model in data.values())):
        return {str(name): model for name, model in data.items()}
    return None


def versions_by_model(data: Any) -> dict[str, dict[str, Any]] | None:
    """Return the versions of each model of a mapping of mappings, such as before and after; None for other data."""
    if not isinstance(data, Mapping) or not data:
        return None
    versions = {str(name): models_by_name(model) for name, model in data.items()}
    if not any(versions.values()) and not any(isinstance(model, Mapping) and not model for model in data.values()):
        return None
    expected = next((list(model) for model in versions.values() if model), [])
    ordered = {}
    for name, model in versions.items():
        if not model or set(model) != set(expected):
            has, other = ", ".join(model or ()) or "none", f", not {', '.join(expected)}" if expected else ""
            fix = "Pass the same versions of every model, such as {'before': …, 'after': …}."
            raise InputError("TO205", "The models have different versions.", f"{has} of {name}{other}", fix)
        ordered[name] = {version: model[version] for version in expected}
    return ordered


def join_versions(versions: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of the versions, which are those of every model, and all versions of all models by name.

    >>> join_versions({"resnet": {"before": 1, "after": 2}})
    (('before', 'after'), {'resnet, before': 1, 'resnet, after': 2})
    """
    names = tuple(next(iter(versions.values())))
    for name, other in permutations(names, 2):
        if name.endswith(f"{VERSION_SEPARATOR}{other}"):  # so that no two models could have the same joined name
            fix = "Pass names without a comma."
            raise InputError("TO205", "The name of a version ends like that of another.", f"{name} and {other}", fix)
    joined = {
        f"{model}{VERSION_SEPARATOR}{name}": data for model, named in versions.items() for name, data in named.items()
    }
    return names, joined


def refuse_several_models(data: Any) -> None:
    """Raise TO205 for a mapping or a list of models, where one is expected."""
    models, got = models_by_name(data), ""
    if models:
        got = f"a mapping of {format_count(len(models), 'model')}: {', '.join(models)}"
    elif isinstance(data, (list, tuple)) and len(data) > 0 and all(map(_is_one_model, data)):
        got = f"a {type(data).__name__} of {format_count(len(data), 'model')}"
    if got:
        raise InputError("TO205", "Only one model is accepted here.", got, SEVERAL_MODELS_REMEDY)


SEVERAL_MODELS_REMEDY = (
    "Pass the model itself; for several use to.table(models), to.compare(models) or"
    ' to.draw({"a": a, "b": b}, ["reliability"]).'
)


def _is_one_model(x: Any) -> bool:
    """Return whether an item of a list is a model; a path is not, because several files may hold one model."""
    return isinstance(x, DATA_TYPES) or is_pair(x)


def refuse_classifiers(*data: Any) -> None:
    """Raise TO302 for a model, also in a pair or a mapping, where predictions are expected."""
    for x in data:
        if is_classifier(x):
            raise InputError("TO302", "A classifier has no rows to examine.", describe(x), FROM_ESTIMATOR_REMEDY)
        if isinstance(x, Mapping):
            refuse_classifiers(*x.values())
        elif isinstance(x, (list, tuple)) and len(x) <= _MAX_CHECKED_ITEMS:
            refuse_classifiers(*x)

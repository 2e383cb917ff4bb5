"""Select the rows whose predicted probabilities lie in a region of the probability simplex."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import call_user_function
from trueodds.core.suggestions import suggest_names
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.classes import class_number
from trueodds.lenses.ranked import Confidence

Region = str | Mapping[str, tuple[float, float]] | Callable[[Array], Array]

_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_CONDITION = re.compile(r"\s*(.+?)\s*(<=|>=|<|>)\s*([-+.\deE]+)\s*")


def select_region(preds: Predictions, region: Region) -> Predictions:
    """Select the rows inside a region A. Expectations over them are conditional on g(X) ∈ A.

    A region is a string of conditions such as `"confidence > 0.9 and class:cat >= 0.1"`, a mapping of the same names to
    closed ranges, or a function of P (n, K) that returns a mask (n,). It may depend on predictions only, so that null
    distributions remain exact.

    >>> select_region(Predictions([0, 1, 1], [0.1, 0.6, 0.95]), "confidence > 0.8").n
    2
    """
    mask = np.asarray(_rows_in_region(preds, region))
    if mask.shape != (preds.n,) or mask.dtype != bool:
        raise InputError(
            "TO203",
            "A region must return one boolean per row.",
            f"{mask.dtype} of shape {mask.shape} for {preds.n:,} rows",
            "Return a boolean mask (n,), for instance lambda P: P.max(axis=1) > 0.9.",
        )
    if not (mask & (preds.w > 0)).any():
        raise InputError("TO108", "No row lies in the region.", f"⟨region={describe(region)}⟩", "Widen it.")
    return preds[mask]


def _rows_in_region(preds: Predictions, region: Region) -> Any:
    """Mask (n,) of the rows inside; what a user's function returns is not checked yet."""
    if callable(region):
        return call_user_function("region", region, preds.P)
    if isinstance(region, Mapping):
        return _rows_in_ranges(preds, region)
    if isinstance(region, str):
        return _rows_with_conditions(preds, region)
    raise _invalid_region(describe(region))


def _rows_in_ranges(preds: Predictions, ranges: Mapping[str, tuple[float, float]]) -> Array:
    """Mask (n,) of the rows whose scores lie in closed ranges, given by the name of the score."""
    mask = np.ones(preds.n, dtype=bool)
    for name, limits in ranges.items():
        try:
            low, high = (float(limit) for limit in limits)
        except (TypeError, ValueError, OverflowError):
            raise _invalid_region(f"{describe(name)}: {describe(limits)}") from None
        score = _score_by_name(preds, name if isinstance(name, str) else describe(name))
        mask &= (score >= _round_bound(preds, low)) & (score <= _round_bound(preds, high))
    return mask


def _rows_with_conditions(preds: Predictions, region: str) -> Array:
    """Mask (n,) of the rows that fulfill all conditions of a text such as `confidence > 0.9 and class:cat >= 0.1`."""
    mask = np.ones(preds.n, dtype=bool)
    for condition in re.split(r"(?<=[\d.])\s+and\s+", region):
        match = _CONDITION.fullmatch(condition)
        try:
            name, comparison, bound = (match[1], match[2], float(match[3])) if match else ("", "", float("nan"))
        except ValueError:
            match = None
        if match is None:
            raise _invalid_region(describe(region))
        mask &= _COMPARISONS[comparison](_score_by_name(preds, name), _round_bound(preds, bound))
    return mask


def _score_by_name(preds: Predictions, name: str) -> Array:
    """The score (n,) that a condition names: confidence, positive or class:NAME."""
    if name == "confidence" and preds.kind != "multilabel":
        return Confidence().probabilities(preds)[0]
    if name == "positive" and preds.kind == "classes" and preds.k == 2:
        return preds.P[:, 1]
    if name.startswith("class:") and preds.kind != "confidence":
        return preds.P[:, class_number(name.removeprefix("class:"), preds.classes)]
    raise InputError(
        "TO203",
        "A region uses confidence, class:NAME or, for two classes, positive.",
        describe(name),
        suggest_names(name[:80], ["confidence", *(f"class:{label}" for label in preds.classes)]),
    )


def _round_bound(preds: Predictions, bound: float) -> float:
    """The bound in the type of the probabilities: for float32 it is the float32 value of 0.9, not the float64 value."""
    dtype = np.dtype(preds.dtype)
    return float(dtype.type(bound)) if dtype.kind == "f" else bound


def _invalid_region(received: str) -> InputError:
    return InputError(
        "TO203",
        "A region must be a string of conditions, a mapping of names to ranges, or a function of P.",
        received,
        "For instance ⟨region='confidence > 0.9 and class:cat >= 0.1'⟩, or {'confidence': (0.9, 1)}.",
    )

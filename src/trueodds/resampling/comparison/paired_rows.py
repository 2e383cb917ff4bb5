"""Whether two models predict the same rows, so that they are compared as paired samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import InputError
from trueodds.data.predictions import Predictions


def mismatch_reason(a: Predictions, b: Predictions) -> str:
    """Reason why two models cannot have the same rows; empty if they can."""
    if a.n != b.n:
        return f"they have {a.n:,} and {b.n:,} rows"
    for name in ("weight", "cluster"):
        if not _arrays_equal(getattr(a, name), getattr(b, name)):
            return f"their {name}s differ"
    if "confidence" in (a.kind, b.kind):
        return ""  # the outcome is whether the model was correct, which differs between models on the same rows
    if a.kind != b.kind:
        return "their outcomes are of different kinds"
    if _arrays_equal(_named_outcomes(a), _named_outcomes(b)):
        return ""
    same_class_names = set(map(str, a.classes)) == set(map(str, b.classes))
    if not same_class_names and a.k == b.k and (_has_numbered_classes(a) or _has_numbered_classes(b)):
        by_position = (_outcomes(a), _outcomes(b))  # the classes of one side have no names
        return "" if _arrays_equal(*by_position) else "their outcomes differ"
    if same_class_names and a.votes is None and b.votes is None and _arrays_equal(a.y, b.y):
        raise InputError(
            "TO205",
            "The labels of the models are equal as numbers of columns, but their columns are in different orders.",
            f"{', '.join(map(str, a.classes))} and {', '.join(map(str, b.classes))}",
            "List the columns of both in the order of the labels: probs=[…]. Or write names as labels.",
        )
    return "their outcomes differ" if same_class_names else "their classes have different names"


def same_rows(a: Predictions, b: Predictions, paired: bool | None) -> tuple[bool, str]:
    """Whether to compare row by row, and the reason; `paired` is the setting of the user."""
    if paired is False:
        return False, ""
    reason = mismatch_reason(a, b)
    if paired and reason:
        raise InputError(
            "TO205",
            "A paired comparison requires the same rows.",
            f"models with different rows: {reason}",
            "Pass the same rows in the same order, or use paired=False.",
        )
    if paired or reason:
        return bool(paired), reason
    if "confidence" in (a.kind, b.kind):
        return False, "correctness of each model does not identify the rows"
    return True, "their outcomes are equal"


def _has_numbered_classes(preds: Predictions) -> bool:
    """Whether the classes are only numbered 0..K−1."""
    return [str(name) for name in preds.classes] == [str(i) for i in range(preds.k)]


def _outcomes(preds: Predictions) -> Any:
    """Outcomes in the order of the columns: votes or independent labels (n, K), or class numbers (n,)."""
    return preds.y if preds.votes is None else preds.votes


def _named_outcomes(preds: Predictions) -> Any:
    """Outcomes by class name, because the class order may differ between models."""
    if preds.votes is not None or preds.kind == "multilabel":
        columns = preds.votes if preds.votes is not None else preds.y
        assert columns is not None
        return columns[:, np.argsort([str(name) for name in preds.classes], kind="stable")]
    assert preds.y is not None
    return np.array([str(name) for name in preds.classes])[preds.y]


def _arrays_equal(one: Any, other: Any) -> bool:
    """Whether two arrays are equal, or both are None."""
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))

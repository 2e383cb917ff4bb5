"""Whether models predict the same rows, so that they can be compared as paired samples, and alignment of these rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.prediction_arrays import replace_arrays
from trueodds.data.predictions import Predictions

PAIRING_REMEDY = (
    "Pass the same rows in the same order, or ids of the rows (⟨question=⟩, ⟨row_id=⟩), or use ⟨paired=False⟩."
)


def align_rows(models: Mapping[str, Predictions], paired: bool | None) -> tuple[dict[str, Predictions], list[Note]]:
    """Return the models with their rows in the order of the first model, by the ids of the rows, and notes.

    With ``paired=True`` only the rows that all models have are kept, and a note counts the others. Otherwise only
    models with exactly the ids of the first are put into its order. Without ids in all models, and with
    ``paired=False``, the rows stay as they are.

    >>> a = Predictions([0, 1, 1], [0.2, 0.7, 0.9]).with_row_id(["x", "y", "z"])
    >>> b = Predictions([1, 1, 0], [0.6, 0.8, 0.5]).with_row_id(["z", "y", "w"])
    >>> aligned, notes = align_rows({"a": a, "b": b}, True)
    >>> aligned["b"].p.tolist(), [note.code for note in notes]
    ([0.8, 0.6], ['TN272'])
    """
    if paired is False or any(preds.row_id is None for preds in models.values()):
        return dict(models), []
    ids = {name: _ids_as_text(preds) for name, preds in models.items()}
    first_name = next(iter(models))
    target_ids, notes = _common_ids(models, ids) if paired else (ids[first_name], [])
    aligned: dict[str, Predictions] = {}
    for name, preds in models.items():
        has_these_ids = paired or _are_permuted(ids[name], target_ids)
        aligned[name] = preds
        if has_these_ids and not np.array_equal(ids[name], target_ids):
            aligned[name] = preds[_positions(target_ids, ids[name])]
        if has_these_ids:
            aligned[name] = _with_equal_clusters(aligned[name], aligned[first_name])
    return aligned, notes


def _common_ids(models: Mapping[str, Predictions], ids: Mapping[str, Array]) -> tuple[Array, list[Note]]:
    """Return the ids that all models have, in the order of the first, and a note if some have others."""
    first_name, *other_names = models
    first_ids = ids[first_name]
    if all(np.array_equal(ids[name], first_ids) for name in other_names):
        return first_ids, []
    for name, values in ids.items():
        if not _are_unique(values):
            repeated, counts = np.unique(values, return_counts=True)
            got = f"{repeated[counts.argmax()]!s} in {counts.max():,} rows of {name}"
            raise InputError("TO205", "Rows are paired by their ids, which must be unique.", got, PAIRING_REMEDY)
    common = reduce(np.intersect1d, ids.values())
    if not common.size:
        got = f"for instance {first_ids[0]!s} in {first_name} and {ids[other_names[0]][0]!s} in {other_names[0]}"
        fix = "Pass the same field of all models as ⟨question=⟩ or ⟨row_id=⟩, or use ⟨paired=False⟩."
        raise InputError("TO205", "A paired comparison requires rows with the same ids, and no id is common.", got, fix)
    common_ids = first_ids[np.isin(first_ids, common)]
    others = {name: len(values) - len(common_ids) for name, values in ids.items() if len(values) > len(common_ids)}
    if not others:
        return common_ids, []
    verb = "1 row is" if len(common_ids) == 1 else f"{len(common_ids):,} rows are"
    counts_text = ", ".join(f"{name} has {count:,} more" for name, count in others.items())
    text = f"{verb} common to the models, by their ids, and only these are compared; {counts_text}."
    return common_ids, [Note("TN272", text)]


def mismatch_reason(a: Predictions, b: Predictions) -> str:
    """Return the reason why two models cannot have the same rows; empty if they can.

    Compared are the ids, the numbers of rows, weights, clusters and outcomes. Raises InputError if the outcomes are
    equal as numbers of columns, but the columns are in different orders.
    """
    if reason := _ids_mismatch_reason(a, b):
        return reason
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
        # The classes of one model have no names, so the classes are compared by position.
        return "" if _arrays_equal(_outcomes(a), _outcomes(b)) else "their outcomes differ"
    if same_class_names and a.votes is None and b.votes is None and _arrays_equal(a.y, b.y):
        raise InputError(
            "TO205",
            "The labels of the models are equal as numbers of columns, but their columns are in different orders.",
            f"{', '.join(map(str, a.classes))} and {', '.join(map(str, b.classes))}",
            "List the columns of both in the order of the labels: ⟨probs=[…]⟩. Or write names as labels.",
        )
    return "their outcomes differ" if same_class_names else "their classes have different names"


def same_rows(a: Predictions, b: Predictions, paired: bool | None) -> tuple[bool, str]:
    """Return whether to compare two models row by row, and why; raise InputError if ``paired=True`` is impossible."""
    if paired is False:
        return False, ""
    reason = mismatch_reason(a, b)
    if paired and reason:
        raise InputError(
            "TO205",
            "A paired comparison requires the same rows.",
            f"models with different rows: {reason}",
            PAIRING_REMEDY,
        )
    if paired or reason:
        return bool(paired), reason
    if a.row_id is not None and b.row_id is not None:
        return True, "the ids of their rows are equal"
    if "confidence" in (a.kind, b.kind) and not (a.kind == b.kind and _arrays_equal(a.y, b.y)):
        return False, "correctness of each model does not identify the rows"
    return True, "the outcomes are equal"


def _ids_mismatch_reason(a: Predictions, b: Predictions) -> str:
    """Return the reason why the ids of the rows differ; empty if they are equal, or one of the models has none."""
    if a.row_id is None or b.row_id is None:
        return ""
    if np.array_equal(_ids_as_text(a), _ids_as_text(b)):
        return ""
    n_common = count_common_ids(a, b)
    if n_common == a.n == b.n:
        return "their rows are in different orders"
    return f"{n_common:,} of their {a.n:,} and {b.n:,} rows have a common id"


def count_common_ids(a: Predictions, b: Predictions) -> int:
    return 0 if a.row_id is None or b.row_id is None else len(np.intersect1d(_ids_as_text(a), _ids_as_text(b)))


def _ids_as_text(preds: Predictions) -> Array:
    """Return the ids of the rows as text, because files of different formats may have the number 3 and the text "3"."""
    assert preds.row_id is not None
    return preds.row_id.astype(np.str_)


def _are_unique(ids: Array) -> bool:
    return len(np.unique(ids)) == len(ids)


def _are_permuted(ids: Array, other_ids: Array) -> bool:
    """Return whether rows have the same ids in any order; repeated ids must be in the same order."""
    if np.array_equal(ids, other_ids):
        return True
    return len(ids) == len(other_ids) and _are_unique(ids) and np.array_equal(np.sort(ids), np.sort(other_ids))


def _positions(target_ids: Array, ids: Array) -> Array:
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids, target_ids, sorter=order)]


def _with_equal_clusters(preds: Predictions, first: Predictions) -> Predictions:
    """Return the rows with the numbers of the clusters of the first model, if both form the same clusters."""
    are_equal = np.array_equal(_number_clusters(preds), _number_clusters(first))
    if preds is first or not are_equal or _arrays_equal(preds.cluster, first.cluster):
        return preds
    return replace_arrays(preds, cluster=first.cluster)


def _number_clusters(preds: Predictions) -> Array:
    """Return the clusters, numbered as they occur first; without clusters every row is one."""
    if preds.cluster is None:
        return np.arange(preds.n)
    _, first_rows, inverse = np.unique(preds.cluster, return_index=True, return_inverse=True)
    return np.asarray(first_rows[inverse.reshape(-1)])


def _has_numbered_classes(preds: Predictions) -> bool:
    return [str(name) for name in preds.classes] == [str(i) for i in range(preds.k)]


def _outcomes(preds: Predictions) -> Any:
    """Outcomes in the order of the columns: votes or independent labels (n, K), or class numbers (n,)."""
    return preds.y if preds.votes is None else preds.votes


def _named_outcomes(preds: Predictions) -> Any:
    """Outcomes by class name, because the class order may differ between models."""
    outcomes, class_names = _outcomes(preds), [str(name) for name in preds.classes]
    assert outcomes is not None
    if preds.votes is not None or preds.kind == "multilabel":
        return outcomes[:, np.argsort(class_names, kind="stable")]
    return np.array(class_names)[outcomes]


def _arrays_equal(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return first is second
    return bool(np.array_equal(first, second))

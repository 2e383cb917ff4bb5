"""The read-only arrays of predictions: probabilities, outcomes, weights, groups and clusters, and subsets of rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note
from trueodds.core.printable import to_printable
from trueodds.core.typing import Array
from trueodds.data.arrays import select_rows
from trueodds.data.labels import UNKNOWN_LABEL
from trueodds.data.probabilities import two_columns
from trueodds.data.remedies import count_phrase
from trueodds.data.weights import check_groups, repeat_rows, unit_weights

Groups = Mapping[str, Array]
T = TypeVar("T")
AnyPredictions = TypeVar("AnyPredictions", bound="PredictionArrays")

# All fields of predictions, which pickling, subsets and concatenation copy.
ARRAY_FIELDS = (
    "classes",
    "cluster",
    "counts",
    "dtype",
    "group",
    "is_expanded",
    "k",
    "kind",
    "labeled",
    "logits",
    "n",
    "notes",
    "p",
    "partial_y",
    "row_id",
    "votes",
    "weight",
)
# Fields with one entry or row per prediction, except for `labeled`, `group` and `cluster`, which are no plain columns.
ROW_ARRAYS = ("p", "logits", "partial_y", "votes", "counts", "weight", "row_id")


class PredictionArrays:
    """Base class of `Predictions`: its read-only arrays, with one row per prediction, and subsets of the rows."""

    __slots__ = (*ARRAY_FIELDS, "_cache", "_n_tied")

    n: int  # number of rows
    k: int  # number of classes
    dtype: str  # dtype of the probabilities, as given
    kind: str  # "classes", "confidence" or "multilabel"
    p: Array  # (n,) probability of the second class, or (n, K); as given
    logits: Array | None  # (n,) or (n, K) as given, if the probabilities were computed from logits
    labeled: Array | None  # (n,) whether a row has a label; None if all rows have one, or votes
    # (n,) int64 labels, −1 in rows without one; (n, K) int64 for multilabel, −1 if unknown; None with votes, or if no
    # outcomes were passed.
    partial_y: Array | None
    votes: Array | None  # (n, K) shares that sum to 1
    counts: Array | None  # (n,) number of votes of each row, if counts were given
    weight: Array | None  # (n,)
    group: Groups  # column name -> (n,) subgroup of each row
    cluster: Array | None  # (n,) int64, numbered from 0
    row_id: Array | None  # (n,) identifier of each row, by which models are paired
    classes: tuple[Any, ...]  # names of the classes
    notes: tuple[Note, ...]  # facts found in the validation
    is_expanded: bool  # whether rows were repeated as often as frequency weights say
    _n_tied: int | None  # number of rows with several largest probabilities; None until they are counted
    _cache: dict[Hashable, Any]  # values computed once for these rows

    def _set_arrays(self, values: Mapping[str, Any]) -> None:
        """Set all fields to these values, and make the arrays read-only."""
        self.record_tied(None)
        object.__setattr__(self, "_cache", {})
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(value) if name == "group" else value)

    def _copy_shared_arrays(self, *inputs: Array) -> None:
        """Copy group columns, and arrays that share memory with the caller's; weights, votes and clusters do not."""
        groups = {name: _read_only(labels.copy()) for name, labels in self.group.items()}
        shared = {name: getattr(self, name) for name in ("p", "logits", "partial_y")}
        copies = {
            name: array.copy(order="K")
            for name, array in shared.items()
            if array is not None and any(np.may_share_memory(array, other) for other in inputs)
        }
        self._set_arrays(copies | {"group": groups})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Predictions are read-only; build new ones instead of setting {name}.")

    @property
    def y(self) -> Array | None:
        """Labels as integers (n,), or (n, K) for independent labels, of which −1 is not known; None if there are votes.

        Raises InputError TO101 or TO103 if a row has no label: only `partial_y` can be read without `labeled`.
        """
        if self.labeled is not None:
            self.require_labels()
        return self.partial_y

    def require_labels(self) -> None:
        """Raise an error unless every row has an outcome: TO101 if none were passed, TO103 if some are missing."""
        if self.labeled is None:
            return
        if self.partial_y is None:
            raise InputError("TO101", "y_true is missing.", "None", "Pass an array.")
        raise InputError(
            "TO103",
            "Some rows have no label.",
            f"none in row {int(np.argmin(self.labeled))}{count_phrase(int((~self.labeled).sum()))}",
            "Fill or remove those rows; rows are never dropped silently.",
        )

    @property
    def P(self) -> Array:
        """The probabilities of all classes, (n, K). For binary predictions the first class has probability 1 − p."""
        return two_columns(self.p, self.logits) if self.p.ndim == 1 else self.p

    @property
    def Y(self) -> Array:
        """The outcomes as shares of each class, (n, K) float64: one-hot for labels, shares of the votes otherwise.

        A label that is not known is NaN.
        """
        if self.votes is not None:
            return self.votes
        assert self.y is not None
        if self.kind == "multilabel":
            return self.y.astype(np.float64) if self.known is None else np.where(self.known, self.y, np.nan)
        return np.eye(self.k)[self.y] if self.k <= 64 else _one_hot_matrix(self.y, self.k)

    @property
    def known(self) -> Array | None:
        """Mask (n, K) of the independent labels that are known; None if all are, as for mutually exclusive classes."""
        y = self.partial_y
        if self.kind != "multilabel" or y is None:
            return None
        return self.cached("known", lambda: None if (y >= 0).all() else _read_only(y >= 0))

    @property
    def w(self) -> Array:
        """The weights, (n,); all ones by default."""
        return unit_weights(self.n) if self.weight is None else self.weight

    @property
    def tied(self) -> int:
        """Number of rows with several largest probabilities."""
        if self._n_tied is None:
            if self.p.ndim == 1:
                self.record_tied(int((self.p == 1 - self.p).sum()))
            else:
                from trueodds.kernels.row_statistics import confidence_sums

                y = self.partial_y if self.labeled is None else None
                y = np.zeros(self.n, dtype=np.int64) if y is None or y.ndim == 2 else y
                self.record_tied(confidence_sums(self.p, y, np.array([0.0, 1.0]), "right")[1])
        assert self._n_tied is not None
        return self._n_tied

    def record_tied(self, count: int | None) -> None:
        """Store the number of tied rows that a pass over the rows has counted.

        Parameters
        ----------
        count : int or None
            The number; None if it is unknown.
        """
        object.__setattr__(self, "_n_tied", count)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Compute a value once and cache it with these rows.

        Parameters
        ----------
        key : hashable
            Key of the value in the cache.
        make : callable
            Computes the value, which must not hold a reference to these predictions.

        Returns
        -------
        object
            The cached value.
        """
        if key not in self._cache:
            self._cache[key] = make()
        cached: T = self._cache[key]
        return cached

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Any) -> Self:
        """Select rows by a mask, a slice or row numbers. Weights, groups and clusters are kept."""
        row_numbers = select_rows(rows, self.n)
        arrays = {name: getattr(self, name) for name in (*ROW_ARRAYS, "labeled", "cluster")}
        values = {name: array[row_numbers] for name, array in arrays.items() if array is not None}
        if "labeled" in values and values["labeled"].all():
            values["labeled"] = None
        if "cluster" in values:  # renumbered, so that clusters outside the subset leave no gaps
            values["cluster"] = np.unique(values["cluster"], return_inverse=True)[1].reshape(-1)
        if "weight" in values and not values["weight"].any():
            raise InputError(
                "TO110", "Every row of the subset has weight zero.", f"{len(row_numbers)} rows", "Check the mask."
            )
        values["group"] = {name: labels[row_numbers] for name, labels in self.group.items()}
        for labels in values["group"].values():
            labels.flags.writeable = False
        return replace_arrays(self, n=len(row_numbers), **values)

    def with_notes(self, *notes: Note) -> Self:
        """Return the same rows with additional notes.

        Parameters
        ----------
        *notes : Note
            The notes to add.

        Returns
        -------
        Predictions
            The rows with the notes.
        """
        new = replace_arrays(self, notes=(*self.notes, *notes))
        new.record_tied(self._n_tied)
        object.__setattr__(new, "_cache", self._cache)  # the rows are the same
        return new

    def with_row_id(self, row_id: ArrayLike) -> Self:
        """Return the same predictions with identifiers of the rows, by which `compare` pairs models.

        Parameters
        ----------
        row_id : array (n,)
            A number or text that is different for each row, such as the question.

        Returns
        -------
        Predictions
            The predictions with `row_id`, which subsets and recalibrated predictions keep.

        Raises
        ------
        InputError
            TO112 for missing values, or for another number of rows.

        Examples
        --------
        >>> from trueodds import Predictions
        >>> preds = Predictions([0, 1, 1], [0.2, 0.7, 0.9]).with_row_id(["q1", "q2", "q3"])
        >>> preds[1:].row_id.tolist()
        ['q2', 'q3']
        """
        return replace_arrays(self, row_id=check_groups({"row_id": row_id}, self.n)["row_id"].copy())

    def with_labels(self, labels: Array) -> Self:
        """Return the same predictions with other labels.

        Parameters
        ----------
        labels : array (n,) or (n, L)
            Class numbers; for independent labels a matrix of 0 and 1. Labels that are not known remain unknown.

        Returns
        -------
        Predictions
            The predictions with these labels, without votes.
        """
        y = labels.astype(np.int64) if self.known is None else np.where(self.known, labels, UNKNOWN_LABEL)
        return replace_arrays(self, partial_y=y, labeled=None, votes=None, counts=None)

    def without_clusters(self) -> Self:
        """Return the same predictions as independent rows.

        Returns
        -------
        Predictions
            The predictions without clusters.
        """
        return replace_arrays(self, cluster=None)

    def expand_frequencies(self) -> Self:
        """Repeat each row as often as its weight says, for ``weight_kind="frequency"``.

        Returns
        -------
        Predictions
            The repeated rows, without weights.
        """
        if self.weight is None:
            return self
        return replace_arrays(self[repeat_rows(self.weight)], weight=None, is_expanded=True)

    def without_weights(self) -> Self:
        """Return the same predictions, each of weight 1.

        Returns
        -------
        Predictions
            The predictions without weights.
        """
        return replace_arrays(self, weight=None)

    def __repr__(self) -> str:
        description = {
            "classes": f"{self.k} classes",
            "confidence": "confidence and correctness",
            "multilabel": f"{self.k} labels each",
        }
        extras = [name for name in ("weight", "cluster", "votes") if getattr(self, name) is not None]
        extras += [f"group {to_printable(name)}" for name in self.group]
        extras += [] if self.labeled is None else [f"{int((~self.labeled).sum()):,} without label"]
        return f"Predictions(n={self.n:,}, {description[self.kind]}{''.join(', ' + e for e in extras)})"


def replace_arrays(preds: AnyPredictions, **values: Any) -> AnyPredictions:
    """Return the predictions with other values of some fields, which are not validated again."""
    new = type(preds).__new__(type(preds))
    new._set_arrays({name: getattr(preds, name) for name in ARRAY_FIELDS} | values)
    return new


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


def _one_hot_matrix(y: Array, k: int) -> Array:
    Y = np.zeros((len(y), k))
    Y[np.arange(len(y)), y] = 1
    return Y

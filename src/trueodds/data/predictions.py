"""Checked, read-only predictions with their outcomes, weights, groups and clusters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, Note
from trueodds.core.printable import printable
from trueodds.core.typing import Array
from trueodds.data import argument_order, arrays, groups
from trueodds.data.arrays import select_rows
from trueodds.data.dense import from_dense
from trueodds.data.labels import (
    check_binary,
    check_class_names,
    check_correctness,
    check_labels,
    check_votes,
    classes_from_columns,
    refuse_other_columns,
)
from trueodds.data.probabilities import check_probabilities, note_doubtful_logits, softmax, two_columns
from trueodds.data.weights import check_weights, repeat_rows

Groups = Mapping[str, Array]
T = TypeVar("T")

FIELDS = (
    "classes",
    "cluster",
    "counts",
    "dtype",
    "group",
    "k",
    "kind",
    "logits",
    "n",
    "notes",
    "p",
    "votes",
    "weight",
    "y",
)


class Predictions:
    r"""Checked, read-only predictions with their outcomes.

    Parameters
    ----------
    y_true : array (n,) or (n, K)
        Labels: integers 0..K−1, or names that `classes` lists (where those are numbers, or look like numbers,
        a label is always a name). Or votes: (n, K) counts or shares of the people (or draws) that chose each
        class.
    y_prob : array (n,) or (n, K)
        The probability of the second class, or of each class. Values are kept as they are; a row may be off
        by 1e-5 from sum 1 (2e-3 for float16), or by `sum_tolerance`.
    weight : array (n,), optional
        How much each row counts, ≥ 0.
    group : array (n,) or mapping of name to array (n,), optional
        Subgroups that are audited apart.
    cluster : array (n,), optional
        Rows that are not independent of each other share a value.
    classes : sequence, optional
        The names of the classes in the order of the columns; a data frame's own, if they are `p_*` or the labels.

    Raises
    ------
    InputError
        TO101 to TO118: see the page of codes. Nothing is dropped, clipped or renormalized.

    Examples
    --------
    >>> preds = Predictions([0, 1, 1], [0.2, 0.7, 0.9])
    >>> preds.n, preds.k, preds[[0, 2]].n
    (3, 2, 2)
    >>> Predictions(["cat", "dog"], [[0.9, 0.1], [0.4, 0.6]], classes=["cat", "dog"]).y.tolist()
    [0, 1]
    """

    __slots__ = (*FIELDS, "_cache", "_tied")

    n: int
    k: int
    dtype: str  # of the probabilities, as given
    kind: str  # "classes", "confidence" or "multilabel"
    p: Array  # (n,) probability of the second class, or (n, K); as given
    logits: Array | None  # (n,) or (n, K) as given, where the probabilities were made of them
    y: Array | None  # (n,) int64 labels; (n, K) int64 for multilabel; None with votes
    votes: Array | None  # (n, K) shares that sum to 1
    counts: Array | None  # (n,) how many votes each row has, if whole numbers were given
    weight: Array | None  # (n,)
    group: Groups
    cluster: Array | None  # (n,) int64
    classes: tuple[Any, ...]
    notes: tuple[Note, ...]
    _tied: int | None
    _cache: dict[Hashable, Any]  # what was worked out once for these rows

    def __init__(
        self,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        sum_tolerance: float | None = None,
    ) -> None:
        y_raw, p_raw = arrays.as_array(y_true, "y_true"), arrays.as_array(y_prob, "y_prob")
        argument_order.refuse_swapped(y_raw, p_raw)
        classes, named = classes_from_columns(y_true, y_raw, y_prob, classes)
        p = arrays.as_float_array(p_raw, "y_prob")
        arrays.check_shape(p, "y_prob")
        k = 2 if p.ndim == 1 else p.shape[1]
        names = check_class_names(classes, k)
        arrays.check_same_length(y_raw, p, "y_true", "y_prob")
        notes = named + check_probabilities(p, p_raw.dtype, sum_tolerance, sums=True)
        votes = counts = y = None
        if y_raw.ndim == 2:
            votes, counts = check_votes(y_raw, k)
        else:
            y = check_labels(y_raw, k, names, has_names=classes is not None)
        self._set("classes", p, y, votes, counts, names, p_raw.dtype.name, notes, weight, group, cluster)

    def _set(
        self,
        kind: str,
        p: Array,
        y: Array | None,
        votes: Array | None,
        counts: Array | None,
        classes: tuple[Any, ...],
        dtype: str,
        notes: list[Note],
        weight: ArrayLike | None,
        group: ArrayLike | Groups | None,
        cluster: ArrayLike | None,
    ) -> None:
        n = len(p)
        values = {
            "kind": kind,
            "p": p,
            "logits": None,
            "y": y,
            "votes": votes,
            "counts": counts,
            "classes": classes,
            "dtype": dtype,
            "weight": check_weights(weight, n),
            "group": groups.check_groups(group, n),
            "cluster": groups.check_clusters(cluster, n),
            "n": n,
            "k": len(classes),
            "notes": tuple(notes),
        }
        self._fill(values)

    def _fill(self, values: Mapping[str, Any]) -> None:
        self.record_tied(None)
        object.__setattr__(self, "_cache", {})
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, MappingProxyType(value) if name == "group" else value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Predictions are read-only; build new ones instead of setting {name}.")

    @classmethod
    def from_logits(
        cls,
        y_true: ArrayLike,
        logits: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
    ) -> Predictions:
        """From logits or log-probabilities, (n, K), or (n,) for the log odds of the second class.

        >>> Predictions.from_logits([1], [[0.0, 0.0]]).p.tolist()
        [[0.5, 0.5]]
        """
        z = arrays.as_float_array(arrays.as_array(logits, "logits"), "logits")
        arrays.check_shape(z, "logits")
        classes, named = classes_from_columns(y_true, arrays.as_array(y_true, "y_true"), logits, classes)
        new = cls(y_true, softmax(z), weight=weight, group=group, cluster=cluster, classes=classes)
        new._fill({"logits": z, "notes": (*named, *new.notes, *note_doubtful_logits(z))})
        return new

    @classmethod
    def from_confidence(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
    ) -> Predictions:
        """From the confidence in the chosen answer and whether it was correct, both (n,).

        >>> Predictions.from_confidence([0.9, 0.6], [True, False]).kind
        'confidence'
        """
        c_raw, z_raw = arrays.as_array(confidence, "confidence"), arrays.as_array(correct, "correct")
        argument_order.refuse_swapped_confidence(c_raw, z_raw)
        c = arrays.as_float_array(c_raw, "confidence")
        arrays.check_one_dimensional(c, "confidence")
        arrays.check_same_length(z_raw, c, "correct", "confidence")
        notes = check_probabilities(c, c_raw.dtype, None, sums=False)
        z = check_correctness(z_raw)
        new = cls.__new__(cls)
        new._set("confidence", c, z, None, None, ("wrong", "correct"), c_raw.dtype.name, notes, weight, group, cluster)
        return new

    @classmethod
    def from_multilabel(
        cls,
        Y: ArrayLike,
        P: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
    ) -> Predictions:
        """From independent yes/no labels Y (n, L) of 0 and 1 and their probabilities P (n, L).

        >>> Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.9], [0.6, 0.7]]).k
        2
        """
        y_raw, p_raw = arrays.as_array(Y, "Y"), arrays.as_array(P, "P")
        argument_order.refuse_swapped_multilabel(y_raw, p_raw)
        refuse_other_columns(Y, P)
        p = arrays.as_float_array(p_raw, "P")
        arrays.check_two_dimensional(p, "P")
        arrays.check_same_shape(y_raw, p)
        notes = check_probabilities(p, p_raw.dtype, None, sums=False)
        y = check_binary(y_raw)
        names = check_class_names(classes, p.shape[1])
        new = cls.__new__(cls)
        new._set("multilabel", p, y, None, None, names, p_raw.dtype.name, notes, weight, group, cluster)
        return new

    @staticmethod
    def from_dense(
        labels: ArrayLike, probs: ArrayLike, *, axis: int | None = 1, logits: bool = False, **settings: Any
    ) -> Predictions:
        """From labels (images, …) and probabilities with classes along `axis`, or of one shape; see `data.dense`."""
        return from_dense(Predictions, labels, probs, axis=axis, logits=logits, **settings)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
    ) -> Predictions:
        """From a fitted scikit-learn classifier and held-out rows; the classes are the model's own."""
        if not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
            raise InputError(
                "TO117",
                "The model must be a fitted classifier with predict_proba and classes_.",
                type(model).__name__,
                "Fit it first, or pass its probabilities to Predictions(y_true, y_prob).",
            )
        return cls(y, model.predict_proba(X), weight=weight, group=group, cluster=cluster, classes=list(model.classes_))

    @property
    def P(self) -> Array:
        """The probabilities of all classes, (n, K); for a single column the first class has 1 − p."""
        return two_columns(self.p, self.logits) if self.p.ndim == 1 else self.p

    @property
    def Y(self) -> Array:
        """The outcomes as shares of each class, (n, K) float64: one-hot for hard labels, shares for votes."""
        if self.votes is not None:
            return self.votes
        assert self.y is not None
        if self.kind == "multilabel":
            return self.y.astype(np.float64)
        return np.eye(self.k)[self.y] if self.k <= 64 else _one_hot(self.y, self.k)

    @property
    def w(self) -> Array:
        """The weights, ones where none were given."""
        return np.ones(self.n) if self.weight is None else self.weight

    @property
    def tied(self) -> int:
        """How many rows have several largest probabilities."""
        if self._tied is None:
            if self.p.ndim == 1:
                self.record_tied(int((self.p == 1 - self.p).sum()))
            else:
                from trueodds.kernels.largest import largest_sums

                y = np.zeros(self.n, dtype=np.int64) if self.y is None or self.y.ndim == 2 else self.y
                self.record_tied(largest_sums(self.p, y, np.array([0.0, 1.0]), "right")[1])
        assert self._tied is not None
        return self._tied

    def record_tied(self, count: int | None) -> None:
        """Keeps that number where a pass over the rows has found it."""
        object.__setattr__(self, "_tied", count)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once for these rows; it must not hold them itself."""
        if key not in self._cache:
            self._cache[key] = make()
        cached: T = self._cache[key]
        return cached

    def __len__(self) -> int:
        return self.n

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_predictions, ({name: getattr(self, name) for name in FIELDS} | {"group": dict(self.group)},)

    def __getitem__(self, rows: Any) -> Predictions:
        """A subset by mask, slice or row numbers; it keeps everything that belongs to the rows."""
        where = select_rows(rows, self.n)
        new = Predictions.__new__(Predictions)
        values = {name: getattr(self, name) for name in FIELDS}
        for name in ("p", "logits", "y", "votes", "counts", "weight", "cluster"):
            if values[name] is not None:
                values[name] = values[name][where]
        if values["cluster"] is not None:  # numbered afresh, so that clusters outside the subset leave no gaps
            values["cluster"] = np.unique(values["cluster"], return_inverse=True)[1].reshape(-1)
        if values["weight"] is not None and not values["weight"].any():
            raise InputError(
                "TO110", "Every row of the subset has weight zero.", f"{len(where)} rows", "Check the mask."
            )
        values["group"] = {name: labels[where] for name, labels in self.group.items()}
        for labels in values["group"].values():
            labels.flags.writeable = False
        values["n"] = len(where)
        new._fill(values)
        return new

    def noted(self, *notes: Note) -> Predictions:
        """The same rows with more to mind."""
        new = self[:]
        object.__setattr__(new, "notes", (*self.notes, *notes))
        return new

    def with_labels(self, labels: Array) -> Predictions:
        """The same predictions with other hard labels: (n,) class numbers, (n, L) of 0 and 1 for multilabel."""
        new = self[:]
        for name, value in (("y", labels.astype(np.int64)), ("votes", None), ("counts", None)):
            object.__setattr__(new, name, value)
        return new

    def repeated(self) -> Predictions:
        """Each row as often as its weight says, without weights: `weight_kind="frequency"`."""
        if self.weight is None:
            return self
        many = self[repeat_rows(self.weight)]
        object.__setattr__(many, "weight", None)
        return many

    def __repr__(self) -> str:
        what = {
            "classes": f"{self.k} classes",
            "confidence": "confidence and correctness",
            "multilabel": f"{self.k} labels each",
        }
        extras = [name for name in ("weight", "cluster", "votes") if getattr(self, name) is not None]
        extras += [f"group {printable(name)}" for name in self.group]
        return f"Predictions(n={self.n:,}, {what[self.kind]}{''.join(', ' + e for e in extras)})"


def restore_predictions(values: dict[str, Any]) -> Predictions:
    """A copy, here or in another process, is as read-only as its original."""
    new = Predictions.__new__(Predictions)
    new._fill(values)
    return new


def _one_hot(y: Array, k: int) -> Array:
    Y = np.zeros((len(y), k))
    Y[np.arange(len(y)), y] = 1
    return Y

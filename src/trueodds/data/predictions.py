"""The class `Predictions`: validated, read-only predictions with their outcomes, weights, groups and clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import check
from trueodds.core.signatures import checks_arguments
from trueodds.core.typing import Array
from trueodds.data import arrays, weights
from trueodds.data.class_names import check_class_names, classes_from_columns, refuse_other_column_order
from trueodds.data.dense import rows_of_images
from trueodds.data.labels import check_correctness, check_labels, check_multilabel, check_votes, mark_unknown
from trueodds.data.prediction_arrays import ARRAY_FIELDS, ROW_ARRAYS, Groups, PredictionArrays, replace_arrays
from trueodds.data.probabilities import (
    check_log_odds,
    check_probabilities,
    note_doubtful_logits,
    sigmoid,
    softmax,
)
from trueodds.data.weights import check_weights


class Predictions(PredictionArrays):
    """Validated, read-only predictions with their outcomes.

    Parameters
    ----------
    y_true : array (n,) or (n, K), or None
        Labels: positions 0..K−1, or names of classes. If the names of all classes have numbers, such as 1, 2, 3 or
        class1, class2, class3, labels are these numbers: 1, 1.0, "1" and "01" are the same label. Or votes: (n, K)
        counts or shares of the people (or draws) that chose each class. None if the outcomes are not known yet; a
        single missing label is None or NaN. Only `Monitor` and `expect` take rows without a label; everything else
        raises an error.
    y_prob : array (n,) or (n, K)
        Predicted probability of the second class, or of each class. Values are used as they are. The sum of a row may
        deviate from 1 by 1e-5 (2e-3 for float16), or by `sum_tolerance`.
    weight : array (n,), optional
        Nonnegative weight of each row.
    group : array (n,) or mapping of name to array (n,), optional
        Subgroup of each row, in one group column or several named ones.
    cluster : array (n,), optional
        Cluster of each row. Rows of one cluster are not independent of each other.
    classes : sequence, optional
        Names of the classes in the order of the columns. The default is the columns of a data frame if they are named
        `p_*` or like the labels, or have numbers other than 0..K−1 in order. For arrays, the default is the categories
        of the labels (a pandas Categorical or a Polars Enum) if there is one per column.
    sum_tolerance : float, optional
        Largest deviation of the sum of a row from 1, for rounded tables.
    copy : bool, default=True
        Whether to copy arrays that are used as they are, so that later changes do not affect the predictions. With
        False, they are shared: do not change them afterwards.

    Attributes
    ----------
    n, k : int
        Number of rows and of classes.
    p : array (n,) or (n, K)
        The probabilities as given; `P` has those of all classes.
    logits : array or None
        The logits as given, if the probabilities were computed from logits.
    y : array (n,) or None
        Labels as integers, (n, K) for independent labels, of which −1 is not known. None if there are votes. Raises
        InputError TO101 or TO103 if a row has no label.
    labeled : array (n,) or None
        Whether each row has a label. None if all rows have one, or votes.
    partial_y : array (n,) or None
        Labels as in `y`, and −1 in rows without a label. None also if no labels were passed.
    votes : array (n, K) or None
        Shares of the votes for each class.
    weight, cluster : array (n,) or None
        As given; clusters are numbered.
    group : mapping of name to array (n,)
        The group columns.
    row_id : array (n,) or None
        Identifier of each row, which `with_row_id` adds.
    classes : tuple
        Names of the classes.
    kind : {"classes", "confidence", "multilabel"}
        What the probabilities are: of exclusive classes, of a correct answer, or of independent labels.
    notes : tuple of Note
        Facts about the data that were found in the validation.

    Raises
    ------
    InputError
        TO101 to TO118; see the page of codes. Rows are never dropped, clipped or renormalized.

    Examples
    --------
    >>> from trueodds import Predictions
    >>> preds = Predictions([0, 1, 1], [0.2, 0.7, 0.9])
    >>> preds.n, preds.k, preds[[0, 2]].n
    (3, 2, 2)
    >>> Predictions(["cat", "dog"], [[0.9, 0.1], [0.4, 0.6]], classes=["cat", "dog"]).y.tolist()
    [0, 1]
    """

    __slots__ = ()

    @checks_arguments
    def __init__(
        self,
        y_true: ArrayLike | None,
        y_prob: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        sum_tolerance: float | None = None,
        copy: bool = True,
    ) -> None:
        p_raw = arrays.as_array(y_prob, "y_prob")
        y_raw, labeled = arrays.as_labels(y_true, "y_true", len(p_raw))
        arrays.refuse_swapped(y_raw, p_raw)
        classes, column_notes = classes_from_columns(y_true, y_raw, y_prob, classes)
        p = arrays.as_float_array(p_raw, "y_prob")
        arrays.check_shape(p, "y_prob")
        k = 2 if p.ndim == 1 else p.shape[1]
        names = check_class_names(classes, k)
        arrays.check_same_length(y_raw, p, "y_true", "y_prob")
        votes = counts = y = None
        # Outcomes of a regression come before its forecasts, which could be taken for logits or percentages.
        labels_first = y_raw.ndim == 1 and (p.ndim == 1 or arrays.has_fractions(y_raw))
        if labels_first:
            y = check_labels(y_raw, k, names, has_names=classes is not None, is_single=p.ndim == 1)
        notes = column_notes + check_probabilities(p, p_raw.dtype, sum_tolerance, check_sums=True)
        if y_raw.ndim == 2:
            votes, counts = check_votes(y_raw, k)
        elif not labels_first:
            y = check_labels(y_raw, k, names, has_names=classes is not None)
        self._set_checked(
            p, names, kind="classes", labeled=labeled, partial_y=None if y_true is None else mark_unknown(y, labeled),
            votes=votes, counts=counts, dtype=p_raw.dtype.name, notes=tuple(notes),
            weight=weight, group=group, cluster=cluster,
        )  # fmt: skip
        if check("copy", copy, bool, True):
            self._copy_shared_arrays(y_raw, p_raw)

    def _set_checked(
        self,
        p: Array,
        classes: tuple[Any, ...],
        *,
        weight: ArrayLike | None,
        group: ArrayLike | Groups | None,
        cluster: ArrayLike | None,
        **fields: Any,
    ) -> None:
        """Check weights, groups and clusters, and set all fields; outcomes and logits not among `fields` are None."""
        n = len(p)
        optional_fields = ("logits", "partial_y", "labeled", "votes", "counts", "row_id")
        values = dict.fromkeys(optional_fields) | {"is_expanded": False} | fields
        values |= {"p": p, "classes": classes, "n": n, "k": len(classes), "weight": check_weights(weight, n)}
        values |= {"group": weights.check_groups(group, n), "cluster": weights.check_clusters(cluster, n)}
        self._set_arrays(values)

    @classmethod
    @checks_arguments
    def from_logits(
        cls,
        y_true: ArrayLike | None,
        logits: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        copy: bool = True,
    ) -> Predictions:
        """Create predictions from logits or log-probabilities.

        Parameters
        ----------
        y_true : array (n,) or (n, K), or None
            Labels or votes; None for rows without outcomes.
        logits : array (n,) or (n, K)
            Logit of the second class (its log odds), or logits of all classes.
        weight : array (n,), optional
            Nonnegative weight of each row.
        group : array (n,) or mapping of name to array (n,), optional
            Subgroup of each row, in one group column or several named ones.
        cluster : array (n,), optional
            Cluster of each row. Rows of one cluster are not independent of each other.
        classes : sequence, optional
            Names of the classes in the order of the columns.
        copy : bool, default=True
            Whether to copy arrays that are used as they are, so that later changes do not affect the predictions. With
            False, they are shared: do not change them afterwards.

        Returns
        -------
        Predictions
            The validated predictions.

        Examples
        --------
        >>> Predictions.from_logits([1], [[0.0, 0.0]]).p.tolist()
        [[0.5, 0.5]]
        """
        z_raw = arrays.as_array(logits, "logits")
        y_raw, _ = arrays.as_labels(y_true, "y_true", len(z_raw))
        z = arrays.as_float_array(z_raw, "logits")
        arrays.check_shape(z, "logits")
        classes, column_notes = classes_from_columns(y_true, y_raw, logits, classes)
        preds = cls(y_true, softmax(z), weight=weight, group=group, cluster=cluster, classes=classes, copy=False)
        preds._set_arrays({"logits": z, "notes": (*column_notes, *preds.notes, *note_doubtful_logits(z))})
        if check("copy", copy, bool, True):
            preds._copy_shared_arrays(y_raw, z_raw)
        return preds

    @classmethod
    @checks_arguments
    def from_confidence(
        cls,
        confidence: ArrayLike,
        correct: ArrayLike | None,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        copy: bool = True,
    ) -> Predictions:
        """Create predictions from confidence and correctness.

        Parameters
        ----------
        confidence : array (n,)
            Predicted probability that the chosen answer is correct.
        correct : array (n,) or None
            Whether the answer was correct: 0 and 1, booleans, or texts such as yes and no. None if that is not known
            yet.
        weight : array (n,), optional
            Nonnegative weight of each row.
        group : array (n,) or mapping of name to array (n,), optional
            Subgroup of each row, in one group column or several named ones.
        cluster : array (n,), optional
            Cluster of each row. Rows of one cluster are not independent of each other.
        copy : bool, default=True
            Whether to copy arrays that are used as they are, so that later changes do not affect the predictions. With
            False, they are shared: do not change them afterwards.

        Returns
        -------
        Predictions
            The validated predictions.

        Examples
        --------
        >>> Predictions.from_confidence([0.9, 0.6], [True, False]).kind
        'confidence'
        """
        confidence_raw = arrays.as_array(confidence, "confidence")
        correct_raw, labeled = arrays.as_labels(correct, "correct", len(confidence_raw))
        arrays.refuse_swapped_confidence(confidence_raw, correct_raw)
        prob = arrays.as_float_array(confidence_raw, "confidence")
        arrays.check_one_dimensional(prob, "confidence")
        arrays.check_same_length(correct_raw, prob, "correct", "confidence")
        notes = check_probabilities(prob, confidence_raw.dtype, None, check_sums=False)
        y = mark_unknown(check_correctness(correct_raw), labeled)
        preds = cls.__new__(cls)
        preds._set_checked(
            prob, ("wrong", "correct"), kind="confidence", labeled=labeled, partial_y=None if correct is None else y,
            dtype=confidence_raw.dtype.name, notes=tuple(notes), weight=weight, group=group, cluster=cluster,
        )  # fmt: skip
        if check("copy", copy, bool, True):
            preds._copy_shared_arrays(correct_raw, confidence_raw)
        return preds

    @classmethod
    @checks_arguments
    def from_multilabel(
        cls,
        Y: ArrayLike,
        P: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        logits: bool = False,
        missing: float | None = None,
        copy: bool = True,
    ) -> Predictions:
        """Create predictions of independent binary labels.

        Parameters
        ----------
        Y : array (n, L)
            Labels, 0 or 1. NaN (or None) is a label that is not known. Its row counts for the other labels only, and a
            note has the number of unknown labels.
        P : array (n, L)
            Predicted probability of each label.
        weight : array (n,), optional
            Nonnegative weight of each row.
        group : array (n,) or mapping of name to array (n,), optional
            Subgroup of each row, in one group column or several named ones.
        cluster : array (n,), optional
            Cluster of each row. Rows of one cluster are not independent of each other.
        classes : sequence, optional
            Names of the labels in the order of the columns.
        logits : bool, default=False
            Whether `P` holds log odds, whose sigmoid is the probability.
        missing : float, optional
            Value in `Y` that, like NaN, stands for a label that is not known, such as −1.
        copy : bool, default=True
            Whether to copy arrays that are used as they are, so that later changes do not affect the predictions. With
            False, they are shared: do not change them afterwards.

        Returns
        -------
        Predictions
            The validated predictions.

        Examples
        --------
        >>> Predictions.from_multilabel([[0, 1], [1, 1]], [[0.2, 0.9], [0.6, 0.7]]).k
        2
        >>> Predictions.from_multilabel([[0, 1], [1, None]], [[0.2, 0.9], [0.6, 0.7]]).notes[0].code
        'TN303'
        """
        y_raw, p_raw = arrays.as_array_with_missing(Y, "Y"), arrays.as_array(P, "P")
        arrays.refuse_swapped_multilabel(y_raw, p_raw)
        refuse_other_column_order(Y, P)
        p = arrays.as_float_array(p_raw, "P")
        arrays.check_two_dimensional(p, "P")
        arrays.check_same_shape(y_raw, p)
        names = check_class_names(classes, p.shape[1])
        y, notes = check_multilabel(y_raw, missing, names)
        z, dtype = None, p_raw.dtype
        if check("logits", logits, bool, False):
            z = check_log_odds(p)
            p, dtype = sigmoid(z), z.dtype
            notes += note_doubtful_logits(z.ravel())
        notes += check_probabilities(p, dtype, None, check_sums=False)
        preds = cls.__new__(cls)
        preds._set_checked(
            p, names, kind="multilabel", partial_y=y, logits=z, dtype=dtype.name, notes=tuple(notes),
            weight=weight, group=group, cluster=cluster,
        )  # fmt: skip
        if check("copy", copy, bool, True):
            preds._copy_shared_arrays(y_raw, p_raw)
        return preds

    @staticmethod
    @checks_arguments
    def from_dense(
        labels: ArrayLike,
        probs: ArrayLike,
        *,
        axis: int | None = 1,
        logits: bool = False,
        ignore: int | Sequence[int] | None = None,
        classes: Sequence[Any] | None = None,
        sum_tolerance: float | None = None,
    ) -> Predictions:
        """Create predictions from label maps and probability maps, such as images.

        Each pixel, voxel or token becomes a row, and each image a cluster.

        Parameters
        ----------
        labels : array (images, …)
            Class of each position as an integer.
        probs : array
            Probabilities with the classes along `axis`; or of the shape of `labels`, the probability of the second
            class.
        axis : int or None, default=1
            Axis of the classes; None if there is no such axis.
        logits : bool, default=False
            Whether `probs` are logits or log-probabilities.
        ignore : int or sequence of int, optional
            Labels that are no class, such as 255; they are left out and counted in a note.
        classes, sum_tolerance
            As for `Predictions`.

        Returns
        -------
        Predictions
            The validated predictions.
        """
        logits = check("logits", logits, bool, False)
        rows = rows_of_images(labels, probs, axis, ignore)
        settings: dict[str, Any] = {"cluster": rows.cluster, "classes": classes, "copy": False}
        try:
            if logits:
                preds = Predictions.from_logits(rows.labels, rows.probs, **settings)
            else:
                preds = Predictions(rows.labels, rows.probs, sum_tolerance=sum_tolerance, **settings)
        except InputError as problem:
            raise rows.restate_error(problem) from None
        return preds.with_notes(*rows.notes) if rows.notes else preds

    @classmethod
    @checks_arguments
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: ArrayLike | None,
        *,
        weight: ArrayLike | None = None,
        group: ArrayLike | Groups | None = None,
        cluster: ArrayLike | None = None,
    ) -> Predictions:
        """Create predictions from a fitted classifier and held-out rows.

        Parameters
        ----------
        model : estimator
            A fitted classifier with `predict_proba` and `classes_`, which gives the names of the classes.
        X : array or data frame (n, d)
            Features.
        y : array (n,) or None
            Labels; None for rows without outcomes.
        weight : array (n,), optional
            Nonnegative weight of each row.
        group : array (n,) or mapping of name to array (n,), optional
            Subgroup of each row, in one group column or several named ones.
        cluster : array (n,), optional
            Cluster of each row. Rows of one cluster are not independent of each other.

        Returns
        -------
        Predictions
            The validated predictions.

        Raises
        ------
        InputError
            TO117 if the model has no `predict_proba` or is not fitted, and as for `Predictions`.
        """
        y_prob = predict_probabilities(model, X)
        return cls(y, y_prob, weight=weight, group=group, cluster=cluster, classes=list(model.classes_))

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_predictions, (
            {name: getattr(self, name) for name in ARRAY_FIELDS} | {"group": dict(self.group)},
        )


def restore_predictions(values: dict[str, Any]) -> Predictions:
    """Restore a pickled or copied object, read-only like the original."""
    new = Predictions.__new__(Predictions)
    new._set_arrays(values)
    return new


def predict_probabilities(model: Any, X: Any) -> Any:
    """Return the probabilities that a fitted scikit-learn classifier predicts; raise TO117 if it cannot."""
    if hasattr(model, "predict_proba") and hasattr(model, "classes_"):
        return model.predict_proba(X)
    raise _no_probabilities_error(model)


def _no_probabilities_error(model: Any) -> InputError:
    name = type(model).__name__
    if hasattr(model, "decision_function") and not hasattr(model, "predict_proba"):
        problem = f"{name} has a decision_function, but no predict_proba."
        fix = (
            "Recalibrate it: RecalibratedClassifier(model). Predictions.from_logits(y, model.decision_function(X))"
            " reads its scores as logits."
        )
        return InputError("TO117", problem, describe(model), fix)
    if hasattr(model, "predict_proba"):
        return InputError("TO117", f"The {name} is not fitted: it has no classes_.", describe(model), "Fit it first.")
    problem = "The model must be a fitted classifier with predict_proba and classes_."
    return InputError("TO117", problem, name, "Pass its probabilities to Predictions(y_true, y_prob).")


def concatenate(parts: Sequence[Predictions]) -> Predictions:
    """Concatenate the rows of several Predictions in order, without validating them again.

    Raises InputError TO401 for another kind, other classes, columns that only one has, or clusters.

    >>> both = concatenate([Predictions([0, 1], [0.2, 0.7]), Predictions([1], [0.9])])
    >>> both.n, both.p.tolist()
    (3, [0.2, 0.7, 0.9])
    """
    first = parts[0]
    for other in parts[1:]:
        if _concatenation_key(other) != _concatenation_key(first):
            got = f"{_concatenation_key(first)} and {_concatenation_key(other)}"
            raise InputError(
                "TO401",
                "Predictions of different kinds or classes cannot be concatenated.",
                got,
                "Read them in the same way.",
            )
    if len(parts) == 1:
        return first
    values: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ROW_ARRAYS
        if getattr(first, name) is not None
    }
    if any(part.labeled is not None for part in parts):
        masks = [np.ones(part.n, dtype=bool) if part.labeled is None else part.labeled for part in parts]
        values["labeled"] = np.concatenate(masks)
    values["group"] = {name: np.concatenate([part.group[name] for part in parts]) for name in first.group}
    values["notes"] = tuple(dict.fromkeys(note for part in parts for note in part.notes))
    return replace_arrays(first, n=sum(part.n for part in parts), **values)


def _concatenation_key(preds: Predictions) -> tuple[object, ...]:
    """Return what must be equal; clustered rows match only themselves, because numbers of clusters are their own."""
    present_arrays = tuple(name for name in ROW_ARRAYS if getattr(preds, name) is not None)
    return (
        preds.kind,
        preds.classes,
        preds.p.shape[1:],
        present_arrays,
        tuple(sorted(preds.group)),
        preds.cluster is None or id(preds),
    )

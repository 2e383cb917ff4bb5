"""Convert the arguments of scikit-learn's metrics to predictions and to settings of estimators."""

from __future__ import annotations

import re
import warnings
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from trueodds.core.errors import InputError, describe
from trueodds.core.formatting import format_first
from trueodds.core.settings import BinCount, Described, check
from trueodds.core.typing import Array
from trueodds.data import arrays
from trueodds.data.predictions import Predictions
from trueodds.data.remedies import restate_own_arguments

Label: TypeAlias = bool | int | float | str
BinNumber: TypeAlias = int | Literal["auto"]
Norm: TypeAlias = Literal["l1", "l2", "max"]
Strategy: TypeAlias = Literal["uniform", "quantile"]

_ERRORS = {"l1": "ece", "l2": "rmsce", "max": "mce"}
_PARTITIONS = {"uniform": "uniform", "quantile": "equal-mass"}
_NUMBERED_PAIRS = ([0, 1], [-1, 1])  # labels of two classes of which the second is the event
_PROBABILITIES_OF_LOGITS = "scipy.special.expit(logits), or softmax(logits, axis=1)"


def evaluate_metric(
    estimator: str,
    y_true: ArrayLike | None,
    y_prob: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Label | None = None,
    labels: ArrayLike | None = None,
    *,
    lens: str | None = None,
    **settings: Any,
) -> float:
    """Return the value that `measure` estimates; a warning says why if it is not finite.

    Parameters
    ----------
    estimator : str
        Name of the estimator.
    y_true : array-like of shape (n,) or (n, K)
        Labels, or votes for each class.
    y_prob : array-like of shape (n,) or (n, K)
        Predicted probability of the class `pos_label`, or of each class, with the columns in the order of the sorted
        labels.
    sample_weight : array-like of shape (n,), optional
        Weights.
    pos_label : bool, int, float or str, optional
        Label of the event, of two classes. The default is 1 for labels in {0, 1} and {−1, 1} and for booleans. With
        one probability per row, other labels require it; with two columns the default is the second of the sorted
        labels.
    labels : array-like of shape (K,), optional
        Sorted labels of the columns. The default is the sorted labels of `y_true` if there is one for each column,
        else the integers from 0 to K − 1 if `y_true` has a 0 or is boolean, or −1 and 1 if it is −1. Others require it.
    lens : str, optional
        Which predicted probability is examined.
    **settings
        Settings of the estimator.

    Raises
    ------
    InputError
        TO101 to TO114 for invalid arrays, and TO105 if `pos_label` is not a label or the labels of the columns are
        unknown, TO106 if `pos_label` is missing, TO113 if `labels` are not sorted; TO203 for an invalid value; TO205
        for `labels` with one probability per row, or `pos_label` with more than two classes. It is a ValueError.
    """
    from trueodds.api.measure import measure  # which takes a second to import

    try:
        rows = _predictions(y_true, y_prob, sample_weight, pos_label, labels)
        estimate = measure(rows, estimator, lens=lens, interval=None, **settings)
    except InputError as problem:
        raise _adapt_remedy(problem) from None
    if not np.isfinite(estimate.value):
        reasons = " ".join(map(str, estimate.notes))
        warnings.warn(f"{estimate.estimator} is {estimate.value}. {reasons}", stacklevel=4)  # in the caller's line
    return float(estimate.value)


def bin_settings(n_bins: BinNumber, strategy: Strategy) -> dict[str, Any]:
    """Return the settings of an estimator with these bins.

    Parameters
    ----------
    n_bins : int or "auto", default=15
        Number of bins; "auto" is ⌈n^(2/5)⌉ for n rows.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equally many rows. Equal probabilities share a bin.
    """
    bins = check("n_bins", n_bins, BinCount | Literal["auto"], 15)
    return {"bins": bins, "partition": _PARTITIONS[check("strategy", strategy, Strategy, "uniform")]}


def error_of_norm(norm: Norm) -> str:
    """Return the name of the binned error with this norm.

    Parameters
    ----------
    norm : {"l1", "l2", "max"}, default="l1"
        How the distances of the bins are combined: by their mean, the root of their mean square, or their maximum.
    """
    return _ERRORS[check("norm", norm, Norm, "l1")]


def require_columns(y_prob: Any, metric_name: str) -> None:
    """Raise TO101 unless `y_prob` has a column for each class."""
    if (shape := arrays.as_array(y_prob, "y_prob").shape)[1:] == ():
        fix = "Pass the probabilities of all classes, as predict_proba returns them."
        raise InputError("TO101", f"{metric_name} needs a column of y_prob for each class.", f"shape {shape}", fix)


def _predictions(
    y_true: ArrayLike | None, y_prob: ArrayLike, sample_weight: Any, pos_label: Any, labels: Any
) -> Predictions:
    """Return the predictions, in which the event is the second of two classes."""
    pos_label = check("pos_label", pos_label, Annotated[Label | None, Described("a label")], None)
    p = arrays.as_array(y_prob, "y_prob")
    y, labeled = arrays.as_labels(y_true, "y_true", len(p))
    if p.ndim == 1 and labels is not None:
        fix = "Pass pos_label, the label of the event, or the probabilities of both classes."
        raise InputError("TO205", "labels are for one column of y_prob per class.", "one probability per row", fix)
    if pos_label is not None and (y.ndim == 2 or p.shape[1:] > (2,)):
        got = "votes" if y.ndim == 2 else f"{p.shape[1]} columns of y_prob"
        fix = "Leave it out; for one class against the rest pass y_true == pos_label and the column of this class."
        raise InputError("TO205", "pos_label is for the labels of two classes.", got, fix)
    if labeled is not None and y_true is not None:  # the error names these rows, not a missing pos_label
        return Predictions(np.where(labeled, 0.0, np.nan), y_prob, copy=False)
    if y.ndim != 1 or p.ndim > 2 or len(y) != len(p) or y_true is None or arrays.has_fractions(y):
        return Predictions(y_true, y_prob, weight=sample_weight, classes=_sorted_labels(labels), copy=False)
    if p.ndim == 1:
        return Predictions(_is_event(y, pos_label), y_prob, weight=sample_weight, copy=False)
    names = _sorted_labels(labels) or _labels_of_columns(y, p.shape[1])
    if pos_label is not None and p.shape[1] == 2:
        pair = names or [0, 1]
        if pos_label not in pair:
            raise InputError("TO105", "pos_label must be one of the labels.", repr(pos_label), f"They are {pair}.")
        if pos_label == pair[0]:
            return Predictions(y, p[:, ::-1], weight=sample_weight, classes=pair[::-1], copy=False)
    return Predictions(y_true, y_prob, weight=sample_weight, classes=names, copy=False)


def _sorted_labels(labels: Any) -> list[Any] | None:
    """Return the labels as a list; raise TO113 if they are not sorted, as the columns are expected to be."""
    if labels is None:
        return None
    names: list[Any] = arrays.as_array(labels, "labels").tolist()
    if sorted(names) != names:
        fix = f"Pass labels={describe(sorted(names))}, with the columns of y_prob in this order."
        raise InputError("TO113", "labels must be sorted, as the columns of predict_proba are.", describe(names), fix)
    return names


def _labels_of_columns(y: Array, k: int) -> list[Any] | None:
    """Return the sorted labels of K columns if each is observed, or if −1 alone is, of −1 and 1; else None.

    None stands for the integers from 0 to K − 1. Labels such as 1 and 2 of three columns could be these, or 1 to 3, if
    the rows are a fold without the third class: they raise TO105. So does 1 of two columns, of 0 and 1 or of 1 and 2.
    """
    observed: list[Any] = np.unique(y).tolist()
    if len(observed) == k:
        return observed if observed != list(range(k)) else None
    if k == 2 and observed == [-1]:
        return [-1, 1]
    if y.dtype.kind not in "USb" and 0 < len(observed) < k and observed[0] > 0:
        got = f"{k} columns and the labels {format_first(observed, 5)}"
        fix = f"Pass labels=range({k}) if labels count from 0, else the sorted labels of all columns."
        raise InputError("TO105", "Some classes have no row, so the labels of the columns are unknown.", got, fix)
    return None


def _is_event(y: Array, pos_label: Any) -> Array:
    """Return 1 for labels (n,) that are `pos_label`, by default 1, else 0; raise TO105 or TO106 if that is unclear."""
    observed: list[Any] = np.unique(y).tolist()
    is_text = y.dtype.kind in "US"
    got = f"the labels {observed}" if len(observed) < 10 else f"{len(observed):,} labels"
    if len(observed) > 2:
        problem = "One probability per row is for two classes."
        raise InputError("TO105", problem, got, "Pass the probabilities of all classes, one column each.")
    if pos_label is None:
        if not is_text and any(set(observed) <= set(pair) for pair in _NUMBERED_PAIRS):
            return np.equal(y, 1).astype(np.int64)
        fix = f"Pass pos_label={observed[-1]!r} if y_prob is the probability of this class."
        if is_text:
            raise InputError("TO106", "Labels are names, of which none is said to be the event.", got, fix)
        raise InputError("TO105", "Labels must be 0 and 1, or −1 and 1, without pos_label.", got, fix)
    if pos_label not in observed and (len(observed) == 2 or isinstance(pos_label, str) != is_text):
        raise InputError("TO105", "pos_label must be one of the labels.", repr(pos_label), f"They are {observed}.")
    return np.equal(y, pos_label).astype(np.int64)


def _adapt_remedy(problem: InputError) -> InputError:
    """Return the error of invalid data, with a remedy that refers to the arguments of a metric."""
    called = arrays.restate_called_order(problem, "Metrics take (y_true, y_prob): swap the two arguments.")
    restated = restate_own_arguments(called, logits=_PROBABILITIES_OF_LOGITS)
    text = restated.problem.replace("weight must", "sample_weight must").replace("classes must", "labels must")
    fix = re.sub(r"pass sum_tolerance=[^;]+(?=;)", "divide each row by its sum", restated.fix)
    return InputError(restated.code, text, restated.got, fix.replace("classes=", "labels="))

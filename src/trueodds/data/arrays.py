"""Convert input to arrays of numbers or names, check their shapes and the order of arguments, and select rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from trueodds.core.errors import MAX_LISTED_ITEMS, InputError, describe
from trueodds.core.printable import has_surrogates
from trueodds.core.typing import Array
from trueodds.data.remedies import count_phrase, number_text_remedies


def as_array(x: Any, name: str) -> Array:
    """Convert lists, NumPy arrays, torch tensors and columns of data frames to an array."""
    if x is None:
        raise InputError("TO101", f"{name} is missing.", "None", "Pass an array.")
    if type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "detach"):
        if x.requires_grad:
            fix = "Pass tensor.detach(), or compute it under torch.no_grad()."
            raise InputError("TO340", f"{name} is a tensor that requires grad.", f"shape {tuple(x.shape)}", fix)
        x = tensor_to_array(x)
    try:
        array = np.asarray(x)
    except (ValueError, TypeError, RuntimeError) as problem:
        raise InputError(
            "TO101",
            f"{name} is not an array.",
            str(problem).removeprefix("Got ").rstrip("."),
            "Pass rows of equal length; a tensor as tensor.detach().cpu().numpy().",
        ) from None
    if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
        raise InputError(
            "TO103",
            f"{name} has masked values.",
            f"{int(np.ma.getmaskarray(x).sum())} masked",
            "Fill or remove those rows.",
        )
    array = to_builtin_dtype(array)
    if array.dtype.kind == "O":
        array = _convert_objects(array, name)
    if array.dtype.kind == "U":
        if isinstance(x, (list, tuple)) and array.ndim == 1:
            _refuse_missing(list(x), array, name)  # NumPy converts None and NaN beside text to the texts None and nan
        _check_encodable(array, name)
    if array.ndim == 0:
        raise InputError("TO101", f"{name} must be an array.", describe(x), "Pass one value per row.")
    if len(array) == 0:
        raise InputError("TO108", f"{name} is empty.", f"shape {array.shape}", "Pass at least one row.")
    return array


def as_array_with_missing(x: Any, name: str) -> Array:
    """Convert like `as_array`, but missing values (None, NaN, NA, masked ones) become NaN instead of an error."""
    if np.ma.isMaskedArray(x):
        return as_array(np.ma.filled(x.astype(np.float64), np.nan), name)
    if hasattr(x, "requires_grad"):  # a tensor, which has no missing values but NaN
        return as_array(x, name)
    try:
        objects = np.asarray(x)
        if objects.dtype.kind == "O":
            is_missing = np.array([_is_missing(value) for value in objects.ravel()]).reshape(objects.shape)
            x = np.where(is_missing, np.nan, objects).astype(np.float64) if is_missing.any() else objects
    except (ValueError, TypeError, RuntimeError):
        pass  # rows of different lengths, or text: `as_array` raises the error
    return as_array(x, name)


def as_labels(x: Any, name: str, n: int) -> tuple[Array, Array | None]:
    """Return labels as an array without gaps, and the mask (n,) of rows that have one; None if all have, as in votes.

    A missing label (None, NaN, NA, NaT or masked) has the value of the first label, which is a placeholder. None
    instead of an array means `n` rows without a label.
    """
    if x is None:
        return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
    is_missing = _missing_labels(x)
    if is_missing is None or not is_missing.any():
        return as_array(x, name), None
    if is_missing.all():
        return np.zeros(len(is_missing), dtype=np.int64), ~is_missing
    is_list = isinstance(x, (list, tuple))
    labels = np.array(x, dtype=object) if is_list else to_builtin_dtype(np.array(_without_mask(x)))
    labels[is_missing] = labels[int(np.argmin(is_missing))]
    return as_array(labels, name), ~is_missing


def _missing_labels(x: Any) -> Array | None:
    """Return the mask of missing values among labels (n,); None for what is no list of labels, such as votes."""
    if hasattr(x, "requires_grad"):  # a tensor, which has no missing values but NaN
        return np.isnan(tensor_to_array(x)) if x.ndim == 1 and x.is_floating_point() else None
    try:
        labels = to_builtin_dtype(np.asarray(x))
    except (ValueError, TypeError, RuntimeError):
        return None  # rows of different lengths, for which `as_array` raises the error
    if labels.ndim != 1:
        return None
    labels = np.asarray(_without_mask(labels))
    is_masked = np.ma.getmaskarray(x) if np.ma.isMaskedArray(x) else np.zeros(len(labels), dtype=bool)
    if labels.dtype.kind == "f":
        return is_masked | np.isnan(labels)
    if labels.dtype.kind in "mM":
        return is_masked | np.isnat(labels)
    # NumPy converts None and NaN beside text to the texts None and nan.
    values = list(x) if labels.dtype.kind == "U" and isinstance(x, (list, tuple)) else labels
    has_objects = labels.dtype.kind == "O" or values is not labels
    return is_masked | np.array([_is_missing(value) for value in values]) if has_objects else is_masked


def _without_mask(x: Any) -> Any:
    return x.data if isinstance(x, np.ma.MaskedArray) else tensor_to_array(x) if hasattr(x, "requires_grad") else x


def to_builtin_dtype(array: Array) -> Array:
    """Return numbers of a type that a library adds to NumPy as float64, and variable text as objects."""
    if array.dtype.kind == "T":  # StringDType, whose missing values are objects
        return array.astype(object)
    is_added_by_library = array.dtype.isbuiltin == 2
    return array.astype(np.float64) if is_added_by_library and np.can_cast(array.dtype, np.float64) else array


def tensor_to_array(tensor: Any) -> Array:
    """Return a torch tensor as an array, without a copy on the CPU; bfloat16 becomes float32, which is exact."""
    tensor = tensor.detach()
    return np.asarray((tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).cpu().numpy())


def _convert_objects(array: Array, name: str) -> Array:
    """Convert objects of one plain kind to an array of that kind; missing values are an error."""
    values = array.ravel()
    _refuse_missing(values, array, name)
    kinds = {type(value) for value in values}
    if all(issubclass(kind, str) for kind in kinds):
        return array.astype(str)
    if all(issubclass(kind, (int, float, np.integer, np.floating, np.bool_)) for kind in kinds):
        converted = np.array(array.tolist())
        return _convert_long_integers(converted, name) if converted.dtype.kind == "O" else converted
    raise InputError(
        "TO114",
        f"{name} must contain numbers or names.",
        " and ".join(sorted(kind.__name__ for kind in kinds)),
        FROM_ESTIMATOR_REMEDY if any(map(is_classifier, values)) else "Convert the values to float64 or str.",
    )


FROM_ESTIMATOR_REMEDY = "This is a model: use Predictions.from_estimator(model, X, y)."


def is_classifier(x: Any) -> bool:
    """Return whether an object is a model that predicts, as those of scikit-learn, and no calibrator of the library."""
    is_calibrator, has_columns = hasattr(x, "make_spec"), hasattr(x, "columns")  # which may be called "fit"
    return hasattr(x, "fit") and hasattr(x, "predict") and not is_calibrator and not has_columns


def _refuse_missing(values: Any, array: Array, name: str) -> None:
    """Raise an error for None, NaN and NA among the values of an array, in its flat order."""
    missing_indices = [i for i, value in enumerate(values) if _is_missing(value)]
    if missing_indices:
        first = missing_indices[0]
        raise InputError(
            "TO103",
            f"{name} has missing values.",
            f"{describe(values[first])} in row {_row_of_index(array, first)}{count_phrase(len(missing_indices))}",
            "Fill or remove those rows.",
        )


def _convert_long_integers(array: Array, name: str) -> Array:
    try:
        return array.astype(np.float64)
    except OverflowError:
        bits, negative_index = max(
            (value.bit_length(), -i) for i, value in enumerate(array.ravel()) if isinstance(value, int)
        )
        raise InputError(
            "TO114",
            f"{name} contains an integer that no float can represent.",
            f"{bits:,} bits in row {_row_of_index(array, -negative_index)}",
            "Scale the values, or correct this one.",
        ) from None


def _check_encodable(array: Array, name: str) -> None:
    """Raise an error for text with a lone surrogate, which UTF-8 cannot encode."""
    texts = np.ascontiguousarray(array).ravel()
    if texts.size == 0 or texts.dtype.itemsize == 0 or texts.view(np.uint32).max() < 0xD800:
        return
    bad_indices = [i for i, value in enumerate(texts.tolist()) if has_surrogates(value)]
    if bad_indices:
        first = bad_indices[0]
        raise InputError(
            "TO114",
            f"{name} contains text that UTF-8 cannot encode: a lone surrogate.",
            f"{str(texts[first])!r} in row {_row_of_index(array, first)}{count_phrase(len(bad_indices))}",
            "Decode the names again, as UTF-8.",
        )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except Exception:  # noqa: BLE001 - pandas.NA has no truth value; an array or an object inside is not missing
        return type(value).__name__ == "NAType"


def as_float_array(array: Array, name: str) -> Array:
    """Convert to a floating-point array; float16 becomes float32, float32 and float64 are unchanged."""
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise _not_numeric_error(array, name)
    if array.dtype.itemsize < 4:
        return array.astype(np.float32)
    if array.dtype.itemsize > 8 or not array.dtype.isnative:
        return array.astype(np.float64)
    return array


def _not_numeric_error(array: Array, name: str) -> InputError:
    """Return the error of an array that does not hold numbers, with what the texts of `y_prob` look like."""
    got, fix = f"dtype {array.dtype}", "Convert it to float64."
    if array.dtype.kind in "US" and name == "y_prob":
        texts = array.ravel()[:MAX_LISTED_ITEMS].astype(str).tolist()
        got = f"{describe(texts[0])} in row 0"
        label_remedy = "If these are predicted labels, pass probabilities, for instance from predict_proba."
        fix = next(iter(number_text_remedies(texts)), label_remedy)
    return InputError("TO114", f"{name} must contain numbers.", got, fix)


def check_shape(p: Array, name: str) -> None:
    """Raise TO101 unless the shape is (n,) or (n, K) with K ≥ 2."""
    if p.ndim == 2 and p.shape[1] == 1:
        raise InputError(
            "TO101",
            f"{name} has a single column.",
            f"shape {p.shape}",
            f"Pass {name}[:, 0] as the probability of the second class.",
        )
    if p.ndim not in (1, 2) or p.shape[-1] == 0:
        fix = "Pass one row per prediction; for several models use to.table(y, {'name': p, …})."
        raise InputError("TO101", f"{name} must be (n,) or (n, K).", f"shape {p.shape}", fix)


def check_one_dimensional(x: Array, name: str) -> None:
    if x.ndim != 1:
        raise InputError(
            "TO101",
            f"{name} must be (n,).",
            f"shape {x.shape}",
            "Pass one value per row; for (n, K) probabilities use Predictions(y_true, y_prob).",
        )


def check_one_value_per_row(values: Array, n: int, name: str, code: str = "TO107") -> None:
    """Raise an error for an array of another shape than (n,)."""
    if values.shape != (n,):
        got = f"shape {values.shape} for {n:,} rows"
        raise InputError(code, f"{name} must have one value per row.", got, "Align it first.")


def check_two_dimensional(x: Array, name: str) -> None:
    if x.ndim != 2:
        raise InputError("TO101", f"{name} must be (n, L).", f"shape {x.shape}", "Pass one column per label.")


def check_same_length(y: Array, p: Array, y_name: str, p_name: str) -> None:
    if len(y) != len(p):
        fix = "Align the rows first; arrays are never truncated."
        if p.ndim == 2 and p.shape[1] == len(y):
            fix = f"{p_name} has one column per row of {y_name}: pass its transpose, {p_name}.T."
        raise InputError("TO107", f"{y_name} and {p_name} must have equal lengths.", f"{len(y):,} and {len(p):,}", fix)


def check_same_shape(y: Array, p: Array) -> None:
    if y.shape != p.shape:
        raise InputError(
            "TO107",
            "Y and P must have equal shapes.",
            f"{y.shape} and {p.shape}",
            "Pass one 0/1 column per probability column.",
        )


def _row_of_index(array: Array, flat_index: int) -> int:
    """Return the row of the value at an index of the flattened array."""
    return int(np.unravel_index(flat_index, array.shape)[0]) if array.ndim else 0


def refuse_first_invalid(p: Array, is_invalid: Array, code: str, problem: str, fix: str) -> None:
    """Raise an error for the first invalid value of an array (n,) or (n, K); `is_invalid` is a mask of its shape."""
    index = np.unravel_index(int(np.argmax(is_invalid)), is_invalid.shape)
    position = f"row {index[0]}" + (f", class {index[1]}" if p.ndim == 2 else "")
    raise InputError(code, problem, f"{p[index]} in {position}{count_phrase(int(is_invalid.sum()))}", fix)


def select_rows(rows: Any, n: int) -> Array:
    """Return the numbers (m,) of the selected rows out of n; raise an error for an invalid or empty selection.

    >>> select_rows([True, False, True], 3).tolist(), select_rows(slice(-1, None), 3).tolist()
    ([0, 2], [2])
    """
    try:
        selection = rows if isinstance(rows, slice) else np.asarray(rows)
        if isinstance(selection, np.ndarray) and selection.size == 0:
            selection = slice(0)
        row_numbers: Array = (
            np.arange(*selection.indices(n)) if isinstance(selection, slice) else np.arange(n)[selection]
        )
    except (IndexError, TypeError, ValueError, OverflowError) as problem:
        raise _no_subset_error(str(problem)) from None
    if row_numbers.ndim != 1:
        raise _no_subset_error(describe(rows))
    if len(row_numbers) == 0:
        raise InputError("TO108", "The subset has no rows.", "0 rows", "Check the mask.")
    return row_numbers


def _no_subset_error(got: str) -> InputError:
    return InputError(
        "TO118",
        "A subset must be selected by a mask of all rows, a slice or a list of row numbers.",
        got,
        "For a single row pass [i].",
    )


SWAP_REMEDY = " take (y_true, y_prob): swap the two arguments."


def refuse_swapped(y: Array, p: Array) -> None:
    if not has_fractions(y):  # the cheaper check first: arguments in the right order need no other
        return
    fix = f"Predictions{SWAP_REMEDY}"
    is_integer_or_text = p.dtype.kind in "biuUS"
    is_integral_float = p.dtype.kind == "f" and not has_fractions(p)
    if y.ndim == 2 and (is_integer_or_text or (p.ndim == 1 and is_integral_float and (p > 1).any())):
        raise InputError(
            "TO109",
            "The arguments look swapped: ⟨y_true⟩ has probabilities, ⟨y_prob⟩ has labels.",
            f"shapes {y.shape} and {p.shape}",
            fix,
        )
    if y.ndim == 1 and p.ndim == 1 and (is_integer_or_text or (is_integral_float and np.isfinite(p).all())):
        if not (np.nanmin(y) >= 0 and np.nanmax(y) <= 1) and len(np.unique(p)) > 2:
            return  # outcomes of a regression and rounded forecasts, which are no labels of two classes
        raise InputError(
            "TO109",
            "The arguments look swapped: ⟨y_true⟩ has fractions, ⟨y_prob⟩ has whole numbers.",
            f"⟨y_true⟩ begins {_first_values(y)}, ⟨y_prob⟩ begins {_first_values(p)}",
            fix,
        )


def _first_values(x: Array) -> str:
    """Return the first three values of an array as text, with few digits.

    >>> _first_values(np.array([0.44640568908896217, 0.355, 1.0, 0.2]))
    '0.446, 0.355, 1, …'
    """
    more = ", …" if x.size > 3 else ""
    first = x.ravel()[:3].tolist()
    return ", ".join(f"{value:.3g}" if isinstance(value, (int, float)) else repr(value) for value in first) + more


def restate_called_order(problem: InputError, fix: str) -> InputError:
    """Return the error of swapped arguments with the signature of the called function; other errors are unchanged."""
    if problem.code != "TO109" or problem.fix != f"Predictions{SWAP_REMEDY}":
        return problem
    return InputError(problem.code, problem.problem, problem.got, fix)


def refuse_swapped_confidence(confidence: Array, correct: Array) -> None:
    """Raise an error if the arguments (confidence, correct) of `from_confidence` look swapped."""
    if has_fractions(correct) and not has_fractions(confidence):
        raise InputError(
            "TO109",
            "The arguments look swapped: correct has fractions, confidence has 0 and 1.",
            f"correct begins {_first_values(correct)}",
            "⟨Call from_confidence(confidence, correct)⟩.",
        )


def refuse_swapped_multilabel(y: Array, p: Array) -> None:
    """Raise an error if the arguments (Y, P) of `from_multilabel` look swapped."""
    if has_fractions(y) and not has_fractions(p):
        raise InputError(
            "TO109",
            "The arguments look swapped: Y has fractions, P has 0 and 1.",
            f"Y begins {_first_values(y)}, P begins {_first_values(p)}",
            "⟨Call from_multilabel(Y, P)⟩.",
        )


def has_fractions(x: Array) -> bool:
    if x.dtype.kind != "f":
        return False
    finite = x[np.isfinite(x)]
    return bool((finite != np.rint(finite)).any())

"""Check predicted probabilities and logits, and convert logits to probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import NonNegative, check
from trueodds.core.typing import Array
from trueodds.data.arrays import refuse_first_invalid
from trueodds.data.remedies import LOGITS_REMEDY, predictions_call

MAX_COLUMNS_ADDED_SINGLY = 64  # number of columns up to which a loop over them is faster than a sum of rows
MIN_COMPILED_SIZE = 2**18  # number of values above which loading the compiled loop pays
NOTED_SUM_DEVIATION = 1e-9  # deviation of a row sum from 1 above which a note is added
MIN_ROWS_OF_DOUBTFUL_LOG_ODDS = 10  # number of rows; fewer log odds may lie in [0, 1] by chance
MAX_RESOLVED_LOG_ODDS = 37  # log odds beyond which a probability rounds to 1
MIN_SHARE_OF_SATURATED_ROWS = 0.99  # share of rows beyond them from which scores are not taken for logits
MAX_ROUNDING_DEVIATION = 0.1  # deviation from 1 up to which a row sum may come from rounding
# Rounding of a softmax row in this dtype; bfloat16 has three bits less than float16.
SUM_TOLERANCE_OF_DTYPE = {"float16": 2e-3, "bfloat16": 1.6e-2}
DEFAULT_SUM_TOLERANCE = 1e-5  # deviation of a row sum from 1 that is allowed in the other dtypes


class RowSumDeviations(NamedTuple):
    """The deviations of the row sums of a table from 1."""

    worst_row: int  # index of the row with the largest deviation
    largest: float  # this deviation
    n_inexact: int  # number of rows that deviate by more than rounding


def check_probabilities(p: Array, dtype: np.dtype[Any], sum_tolerance: float | None, *, check_sums: bool) -> list[Note]:
    """Check that probabilities are finite, in [0, 1] up to K roundings, and sum to 1; return notes.

    `dtype` is that of the input, from which p was converted, and gives the default of `sum_tolerance`.
    """
    k = 2 if p.ndim == 1 else p.shape[1]
    eps = float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(np.float64).eps)
    sum_tolerance = check("sum_tolerance", sum_tolerance, NonNegative | None, DEFAULT_SUM_TOLERANCE)
    notes: list[Note] = []
    lowest, highest, deviations = _summarize_probabilities(p, max(k * eps, NOTED_SUM_DEVIATION), check_sums=check_sums)
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        refuse_first_invalid(
            p,
            ~np.isfinite(p),
            "TO103",
            "Every probability must be a finite number.",
            "Fill or remove those rows; rows are never dropped silently.",
        )
    if lowest < 0 or highest > 1 + k * eps:
        fix = _suggest_meaning(p, lowest, highest)
        refuse_first_invalid(p, (p < 0) | (p > 1 + k * eps), "TO102", "Every probability must lie in [0, 1].", fix)
    if highest > 1:
        notes += notes_on_rounding(int((p > 1).sum()), highest - 1, 0, 0.0)
    if check_sums and p.ndim == 2:
        assert deviations is not None
        notes += _check_row_sums(p, dtype, sum_tolerance, deviations)
    return notes


def _suggest_meaning(p: Array, lowest: float, highest: float) -> str:
    """Return the remedy for values outside of [0, 1], from what they may be instead of probabilities."""
    if p.ndim == 1 and lowest >= -1 and highest < 10 and (p == np.rint(p)).all():
        return "If these are predicted labels, pass the probabilities, such as those of predict_proba."
    if p.ndim == 2 and lowest >= 0 and 1.01 < highest <= 2 and (p[p > 1] % 1 != 0).any():
        return f"If these are not normalized, divide each row by its sum; if logits, {LOGITS_REMEDY}."
    if p.ndim == 2 and p.shape[1] > 2 and int(((p < 0) | (p > 1)).any(axis=0).sum()) == 1:
        return f"If this column has no probabilities, such as ids, list only the others; if logits, {LOGITS_REMEDY}."
    if lowest >= 0 and 2 < highest <= 100:
        return f"If these are percentages, divide by 100; if logits, {LOGITS_REMEDY}."
    if p.ndim == 1 and (lowest < -1 or highest > 2):
        other = "if other scores, such as margins, fit the calibrator platt to them, read as logits, and apply it"
        return f"If these are logits, {LOGITS_REMEDY}; {other}."
    if p.ndim == 2 or lowest < -1e-3 or highest > 1.01:
        return f"If these are logits, {LOGITS_REMEDY}."
    return "Correct the values; nothing is clipped."  # inaccurate probabilities, a little outside of [0, 1]


def _summarize_probabilities(
    p: Array, max_exact_deviation: float, *, check_sums: bool
) -> tuple[float, float, RowSumDeviations | None]:
    """Return the smallest and largest value, and the deviations of row sums from 1; None unless checked."""
    if not (check_sums and p.ndim == 2):
        return float(p.min()), float(p.max()), None
    if p.size >= MIN_COMPILED_SIZE:
        from trueodds.kernels.row_statistics import check_table

        summary = check_table(p, max_exact_deviation)
        if summary.lowest >= 0 and np.isfinite(summary.highest):
            deviations = RowSumDeviations(summary.worst_row, summary.largest_deviation, summary.n_inexact)
            return summary.lowest, summary.highest, deviations
    deviation = np.abs(_sum_rows(p) - 1)
    worst = int(np.argmax(deviation))
    n_inexact = int((deviation > max_exact_deviation).sum())
    return float(p.min()), float(p.max()), RowSumDeviations(worst, float(deviation[worst]), n_inexact)


def _check_row_sums(
    p: Array, dtype: np.dtype[Any], sum_tolerance: float | None, deviations: RowSumDeviations
) -> list[Note]:
    """Raise TO104 if the sum of a row of p (n, K) differs too much from 1; return a note on smaller deviations."""
    worst_row, largest, n_inexact = deviations
    tolerance = sum_tolerance
    if tolerance is None:
        tolerance = SUM_TOLERANCE_OF_DTYPE.get(dtype.name, DEFAULT_SUM_TOLERANCE)
    if largest > tolerance:
        n_invalid = int((np.abs(_sum_rows(p) - 1) > tolerance).sum())
        fix = f"If these are logits, {LOGITS_REMEDY}; if labels are independent, use ⟨Predictions.from_multilabel⟩."
        if bool((_sum_rows(p) <= 1 + tolerance).all()):
            fix = f"If a class is missing, pass the columns of all classes; i{fix[1:]}"
        if largest <= MAX_ROUNDING_DEVIATION:
            argument = predictions_call(f"sum_tolerance={round_up(largest):g}")
            fix = f"If the table was rounded, pass {argument}; i{fix[1:]}"
        raise InputError(
            "TO104",
            f"The probabilities of a row must sum to 1 (within {tolerance:g}).",
            f"{p[worst_row].sum(dtype=np.float64):.6g} in row {worst_row} ({n_invalid:,} such rows)",
            fix,
        )
    return notes_on_rounding(0, 0.0, n_inexact, largest)


def notes_on_rounding(n_above: int, excess: float, n_inexact_sums: int, worst_sum: float) -> list[Note]:
    """Return notes on probabilities above 1, and on sums of rows other than 1, which are kept as given."""
    notes = []
    if n_above:
        subject = "value is" if n_above == 1 else "values are"
        text = f"{n_above:,} {subject} above 1 by rounding (at most {excess:.1e}); kept as given, binned as 1."
        notes.append(Note("TN102", text))
    if n_inexact_sums:
        subject = "row has a sum that deviates" if n_inexact_sums == 1 else "rows have sums that deviate"
        text = f"{n_inexact_sums:,} {subject} from 1 by up to {worst_sum:.1e}; the values are used as given."
        notes.append(Note("TN101", text))
    return notes


def round_up(x: float) -> float:
    """Return the smallest number with one significant digit that is not smaller than x > 0.

    >>> [round_up(x) for x in (0.01, 0.0100001, 0.0042)]
    [0.01, 0.02, 0.005]
    """
    unit = 10.0 ** np.floor(np.log10(x))
    return float(np.ceil(x / unit) * unit)


def _sum_rows(p: Array) -> Array:
    """Return row sums (n,) in float64; short rows are added column by column, which NumPy vectorizes over the rows."""
    if p.shape[1] > MAX_COLUMNS_ADDED_SINGLY:
        return np.asarray(p.sum(axis=1, dtype=np.float64))
    row_sums = p[:, 0].astype(np.float64)
    for c in range(1, p.shape[1]):
        row_sums += p[:, c]
    return row_sums


def check_logits(z: Array) -> Array:
    """Check logits and return them as float64, (n,) or (n, K); −inf is the logit of an exact zero."""
    if np.isnan(z).any() or (z == np.inf).any() or (z.ndim == 1 and np.isinf(z).any()):
        refuse_first_invalid(
            z,
            np.isnan(z) | (z == np.inf) | (np.isinf(z) & (z.ndim == 1)),
            "TO103",
            "Every logit must be a number below infinity.",
            "Fill or remove those rows.",
        )
    z = z.astype(np.float64)
    if z.ndim == 2 and (is_infinite := np.isinf(z).all(axis=1)).any():
        row = int(np.argmax(is_infinite))
        raise InputError(
            "TO103", "A row of logits must have a finite value.", f"-inf in all of row {row}", "Remove that row."
        )
    return z


def softmax(z: Array) -> Array:
    """Return the probabilities (n, K) of logits, or (n,) of log odds (n,), in float64; −inf is an exact zero."""
    z = check_logits(z)
    if z.ndim == 1:
        return sigmoid(z)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    probabilities: Array = e / e.sum(axis=1, keepdims=True)
    return probabilities


def sigmoid(z: Array) -> Array:
    exp_minus_abs = np.exp(-np.abs(z))  # at most 1, so that nothing overflows
    return np.where(z >= 0, 1 / (1 + exp_minus_abs), exp_minus_abs / (1 + exp_minus_abs))


def check_log_odds(z: Array) -> Array:
    """Return log odds of independent labels (n, L) as float64; those that are not finite raise InputError TO103."""
    if not np.isfinite(z).all():
        refuse_first_invalid(
            z, ~np.isfinite(z), "TO103", "Every logit must be a finite number.", "Fill or remove those rows."
        )
    return z.astype(np.float64)


def note_doubtful_logits(z: Array) -> list[Note]:
    """Return a note if logits look like probabilities or scores of another unit; they are read nevertheless."""
    return [*_note_scores_of_another_unit(z), *_note_probabilities(z)]


def _note_scores_of_another_unit(z: Array) -> list[Note]:
    """Return a note if nearly all probabilities of logits (n,) or (n, K) round to 0 or 1."""
    if len(z) < MIN_ROWS_OF_DOUBTFUL_LOG_ODDS:
        return []
    if z.ndim == 1:
        margin = np.abs(z)
    else:
        second, first = np.partition(z.astype(np.float64, copy=False), z.shape[1] - 2, axis=1)[:, -2:].T
        margin = first - second
    share = float((margin > MAX_RESOLVED_LOG_ODDS).mean())
    if share < MIN_SHARE_OF_SATURATED_ROWS:
        return []
    rows = "all rows" if share == 1 else f"{100 * share:.1f} % of the rows"
    text = (
        f"In {rows} the log odds are beyond ±{MAX_RESOLVED_LOG_ODDS}, where probabilities round to 0 or 1: these scores"
        " do not look like logits. They were read as logits, as requested. Only their ranks have a meaning; platt and"
        " isotonic turn scores of any unit into probabilities."
    )
    return [Note("TN193", text)]


def _note_probabilities(z: Array) -> list[Note]:
    """Return a note if logits (n,) or (n, K) look like probabilities."""
    if len(z) < (2 if z.ndim == 2 else MIN_ROWS_OF_DOUBTFUL_LOG_ODDS) or z.min() < 0 or z.max() > 1:
        return []
    if z.ndim == 2 and (np.abs(z.sum(axis=1) - 1) > DEFAULT_SUM_TOLERANCE).any():
        return []
    sums = " and every row sums to 1" if z.ndim == 2 else ""
    text = (
        f"These logits lie in [0, 1]{sums}, like probabilities; they were read as logits, as requested. If they are"
        " probabilities, pass them as such."
    )
    return [Note("TN108", text)]


def two_columns(p: Array, logits: Array | None = None) -> Array:
    """Return the probabilities (n, 2) of both classes from those of the second (n,), and from its log odds if known.

    If a probability is above 1 by rounding, that of the first class is 0.

    >>> two_columns(np.array([0.75])).tolist(), two_columns(np.array([1.0]), np.array([40.0])).round(20).tolist()
    ([[0.25, 0.75]], [[4.25e-18, 1.0]])
    """
    return np.stack([np.maximum(1 - p, 0) if logits is None else softmax(-logits), p], axis=1)


def prob_columns(p: Array) -> Array:
    """Return probabilities as float64 (n, K), converted before 1 − p is computed, so that float32 loses no digits."""
    p = p.astype(np.float64, copy=False)
    return two_columns(p) if p.ndim == 1 else p


def largest_probabilities(p: Array, *, of_size: int) -> tuple[Array, Array]:
    """Return the largest probability of each row of p (n,) or (n, K), and its class: the lowest one if several have it.

    `of_size` is the number of values of the table that has these rows. Loading a compiled loop pays for large ones.

    >>> [values.tolist() for values in largest_probabilities(np.array([0.25, 0.5, 0.75]), of_size=3)]
    [[0.75, 0.5, 0.75], [0, 0, 1]]
    """
    if p.ndim == 1 or p.shape[1] == 2:
        second = (p if p.ndim == 1 else p[:, 1]).astype(np.float64, copy=False)
        first = np.maximum(1 - second, 0) if p.ndim == 1 else p[:, 0].astype(np.float64, copy=False)
        return np.maximum(first, second), (second > first).astype(np.int64)
    if of_size < MIN_COMPILED_SIZE:
        return p.max(axis=1), p.argmax(axis=1)
    from trueodds.kernels.row_statistics import row_maxima

    return row_maxima(p)[:2]

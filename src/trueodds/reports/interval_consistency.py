"""Make the confidence intervals of an audit's errors consistent with its tests and with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueodds.core.errors import Note
from trueodds.core.formatting import format_number
from trueodds.core.results import Estimate, Interval, Verdict

RECONCILED_METHOD = "reconciled"  # the method of an interval that was changed; a note names the original one


def reconcile_intervals(
    errors: Sequence[Estimate],
    tests: Sequence[Verdict],
    n_classes: int,
    alpha: float,
    mean_gap: Interval | None = None,
) -> list[Estimate]:
    r"""Make the intervals of the errors consistent with the tests and with each other.

    An interval is extended to 0 if the test for the same lens does not reject. The interval of the first error is
    extended only to the lower limit of the absolute mean gap, whose interval for the same lens is `mean_gap`, because
    the error is at least the absolute mean gap. The interval of the canonical error is raised to that of the confidence
    error and to K/2 times that of the mean error of the classes; its lower limit is raised only if the test through its
    lens rejects. An interval is changed only if its limits, as they are displayed, change; it then has the method
    `reconciled` and a note.

    Notes
    -----
    Let q be the true class probabilities given the prediction p. The canonical error is the mean total variation
    :math:`\operatorname{E} \max_A |p(A) - q(A)| = \tfrac12 \operatorname{E} \sum_k |p_k - q_k|`. It is at least
    :math:`\operatorname{E} |p_c - q_c|` of the predicted class c, and exactly K/2 times the mean of
    :math:`\operatorname{E} |p_k - q_k|` over the classes. Both become smaller if rows of equal confidence, of equal
    :math:`p_k`, or of one bin are averaged (Jensen). Binned errors are therefore lower limits of the canonical error,
    except that its estimate averages rows too, within the cells of a tree.
    """
    pvalues = {test.lens: test.pvalue for test in tests}
    by_lens = {error.lens: error for error in errors}
    for i, (lens, error) in enumerate(by_lens.items()):
        smallest_low = max(0.0, mean_gap.low, -mean_gap.high) if i == 0 and mean_gap is not None else 0.0
        if error.interval is None or error.interval.low <= smallest_low or pvalues.get(lens, 0.0) <= alpha:
            continue
        if format_number(error.interval.low) != format_number(smallest_low):
            end = "0" if smallest_low == 0 else f"{format_number(smallest_low)}, the lower limit of the mean gap"
            by_lens[lens] = _replace_interval(
                error,
                replace(error.interval, low=smallest_low),
                f"The interval of the {lens} error ({_format_interval(error.interval)}) is extended to {end}, because"
                " the test for the same lens does not reject calibration.",
            )
    canonical = by_lens.get("canonical")
    if canonical is not None and canonical.interval is not None:
        rejected = pvalues.get("canonical", 0.0) <= alpha
        by_lens["canonical"] = _raise_limits(canonical, canonical.interval, by_lens, n_classes, rejected=rejected)
    return list(by_lens.values())


def _raise_limits(
    canonical: Estimate, interval: Interval, by_lens: dict[str, Estimate], n_classes: int, *, rejected: bool
) -> Estimate:
    """Return the canonical error with an interval whose limits are at least those of the coarser errors.

    `interval` is its interval, `by_lens` has the errors by lens, and `rejected` says whether its own test rejects. The
    coarser errors are those of the confidence and of the classes.
    """
    factors = (("confidence", 1.0), ("classwise", n_classes / 2))
    coarser_intervals = [
        (coarser, factor) for lens, factor in factors if lens in by_lens and (coarser := by_lens[lens].interval)
    ]
    low = 0.0
    if rejected:
        largest_low = max([interval.low, *(coarser.low * factor for coarser, factor in coarser_intervals)])
        low = min(largest_low, canonical.value)
    largest_high = max([interval.high, *(coarser.high * factor for coarser, factor in coarser_intervals)])
    high = min(largest_high, 1.0)
    if list(map(format_number, (low, high))) == list(map(format_number, (interval.low, interval.high))):
        return canonical
    end = "; its lower limit does not exceed the estimate" if interval.low < low == canonical.value else ""
    text = (
        f"The interval of the canonical error ({_format_interval(interval)}) is raised to the limits of the confidence"
        f" and class errors, because the true canonical error is at least as large{end}."
    )
    raised = _replace_interval(canonical, replace(interval, low=low, high=high), text)
    # A debiased value below the lower limit is wrong: the noise floor, which was subtracted, is larger than the bias.
    is_debiased_below = canonical.debiased is not None and canonical.debiased < low
    return replace(raised, debiased=None) if is_debiased_below else raised


def _replace_interval(error: Estimate, interval: Interval, text: str) -> Estimate:
    return replace(
        error,
        interval=replace(interval, method=RECONCILED_METHOD),
        settings={**error.settings, "interval": RECONCILED_METHOD},
        notes=(*error.notes, Note("TN269", text)),
    )


def _format_interval(interval: Interval) -> str:
    return f"{interval.method}, {format_number(interval.low)} to {format_number(interval.high)}"

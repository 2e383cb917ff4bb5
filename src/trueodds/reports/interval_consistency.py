"""Make the intervals of an audit consistent with its tests and with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueodds.core.results import Estimate, Verdict


def reconcile_intervals(
    errors: Sequence[Estimate], tests: Sequence[Verdict], classes: int, alpha: float
) -> list[Estimate]:
    """Make the intervals of the errors consistent with the tests and with each other.

    An interval is extended to 0 if the test of its lens does not reject. The canonical error, a total variation, is at
    least the confidence error and at least K/2 times the mean error of the classes. If its own test rejects, the limits
    of its interval are therefore at least theirs.
    """
    pvalues = {test.lens: test.pvalue for test in tests}
    by_lens = {error.lens: error for error in errors}
    for lens, error in by_lens.items():
        if error.interval is not None and error.interval.low > 0 and pvalues.get(lens, 0.0) > alpha:
            by_lens[lens] = replace(error, interval=replace(error.interval, low=0.0))
    canonical = by_lens.get("canonical")
    if canonical is not None and canonical.interval is not None:
        scaled = (("confidence", 1.0), ("classwise", classes / 2))
        coarser = [(ends, factor) for lens, factor in scaled if lens in by_lens and (ends := by_lens[lens].interval)]
        low = max([canonical.interval.low, *(ends.low * factor for ends, factor in coarser)])
        low = 0.0 if pvalues.get("canonical", 0.0) > alpha else low
        high = max([canonical.interval.high, *(ends.high * factor for ends, factor in coarser)])
        ends = replace(canonical.interval, low=min(low, canonical.value), high=min(high, 1.0))
        hides = (
            canonical.debiased is not None and canonical.debiased < ends.low
        )  # the noise floor was larger than the bias, so the debiased value is too small
        by_lens["canonical"] = replace(canonical, interval=ends, debiased=None if hides else canonical.debiased)
    return list(by_lens.values())

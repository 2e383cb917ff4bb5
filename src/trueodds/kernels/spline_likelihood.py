"""Sum the negative log-likelihood of logistic regression on a natural cubic spline, with its gradient and Hessian.

The log odds of an event are a cubic spline in the score that is linear beyond the outer knots. On the interval between
two knots, the spline is linear in four numbers: its values and its second derivatives at both knots. So the sums of
each interval have four parameters.
"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array
from trueodds.kernels import as_plain_array, compile_kernel, sum_blocks

N_SUMS = 15  # sums per interval: the value, its gradient (4) and the lower triangle of its Hessian (10)
_SCORES_PER_TASK = 2**14  # minimum number of scores per thread task


@compile_kernel
def _spline_likelihood(x, events, non_events, knots, knot_values, curvature, out):  # type: ignore[no-untyped-def]
    """Add the sums of `spline_likelihood` of sorted scores x (n,) to `out` (m − 1, 15)."""
    interval, basis = -1, np.empty(4)
    low = high = width = 0.0
    for i in range(x.shape[0]):
        if interval < 0 or (x[i] > high and interval < knots.shape[0] - 2):
            interval = max(interval, 0)
            while x[i] > knots[interval + 1] and interval < knots.shape[0] - 2:
                interval += 1
            low, high = knots[interval], knots[interval + 1]
            width = high - low
        upper_share = (x[i] - low) / width
        lower_share = 1.0 - upper_share
        basis[0], basis[1] = lower_share, upper_share
        # Outside the knots the spline is linear, without the cubic terms.
        basis[2] = (max(lower_share, 0.0) ** 3 - lower_share) * width * width / 6.0
        basis[3] = (max(upper_share, 0.0) ** 3 - upper_share) * width * width / 6.0
        eta = (
            basis[0] * knot_values[interval]
            + basis[1] * knot_values[interval + 1]
            + basis[2] * curvature[interval]
            + basis[3] * curvature[interval + 1]
        )
        exp_minus_abs_eta = np.exp(-abs(eta))
        larger_probability = 1.0 / (1.0 + exp_minus_abs_eta)
        smaller_probability = exp_minus_abs_eta * larger_probability
        event_probability, non_event_probability = (
            (larger_probability, smaller_probability) if eta >= 0.0 else (smaller_probability, larger_probability)
        )
        weight = events[i] + non_events[i]
        # No difference of nearly equal numbers, so that the gradient keeps its digits for nearly certain outcomes.
        slope = non_events[i] * event_probability - events[i] * non_event_probability
        hessian_factor = weight * larger_probability * smaller_probability
        out[interval, 0] += weight * np.log1p(exp_minus_abs_eta) + (
            non_events[i] * eta if eta >= 0.0 else -events[i] * eta
        )
        index = 5
        for row in range(4):
            out[interval, 1 + row] += slope * basis[row]
            for column in range(row + 1):
                out[interval, index] += hessian_factor * basis[row] * basis[column]
                index += 1


def spline_likelihood(
    x: Array, events: Array, non_events: Array, knots: Array, knot_values: Array, curvature: Array
) -> Array:
    """Return the negative log-likelihood of sorted scores, with derivatives, by interval between knots, (m − 1, 15).

    `events` and `non_events` are weights at each score; `knot_values` and `curvature` (m,) the spline's values and
    second derivatives at the knots. Columns: the value, the gradient in the values at both knots and the second
    derivatives at both, and the lower triangle of the Hessian, row by row.
    """
    rows = [as_plain_array(array) for array in (x, events, non_events)]
    spline = [as_plain_array(array) for array in (knots, knot_values, curvature)]

    def add_rows(start: int, stop: int, out: Array) -> None:
        _spline_likelihood(*(array[start:stop] for array in rows), *spline, out)

    shape = (len(knots) - 1, N_SUMS)
    if len(x) > _SCORES_PER_TASK:
        return sum_blocks(add_rows, len(x), shape, block=_SCORES_PER_TASK)
    out = np.zeros(shape)
    add_rows(0, len(x), out)  # few rows are faster without threads
    return out

"""Root search for an increasing function that is expensive to evaluate, such as a simulated power.

The function is interpolated after a transformation of its values that makes it nearly linear, so that few evaluations
suffice.
"""

from __future__ import annotations

from collections.abc import Callable

Curve = Callable[[float], float]

MAX_ITERATIONS = 60  # maximum number of evaluations; bisection alone would then reach double precision
OVERSHOOT = 1.02  # factor beyond the extrapolated root, so that one step usually brackets it
MIN_EXPANSION, MAX_EXPANSION = 1.05, 4.0  # limits of the factor by which x grows while the root is not bracketed
MIN_FRACTION = 0.05  # minimum distance of an interpolated x from both ends of the bracket, relative to its width


def find_root(
    curve: Curve,
    start: float,
    level: float,
    upper_bound: float,
    *,
    zero_value: float,
    linearize: Curve,
    value_tolerance: float,
    x_tolerance: float,
) -> tuple[float, float]:
    """Return the x in (0, upper_bound] where `curve` equals `level`, or else `upper_bound`, and the value there.

    `curve` is increasing with value `zero_value` at 0, and `start` is the first x tried. `linearize(value)` is
    approximately linear in x, which speeds up the search. The search stops if a value is within `value_tolerance` of
    the level, or if x is known up to the relative tolerance `x_tolerance`.

    While no value above the level is known, x grows by an extrapolated factor. Afterwards the root is bracketed, and
    the next x is interpolated between both ends of the bracket (regula falsi), but not too close to either.

    >>> tolerances = {"value_tolerance": 1e-9, "x_tolerance": 1e-9}
    >>> x, _ = find_root(lambda x: x * x, 1, 9, 100, zero_value=0, linearize=lambda v: v**0.5, **tolerances)
    >>> round(x, 6)
    3.0
    """
    target = linearize(level)
    lower_x, lower_value = 0.0, zero_value
    upper: tuple[float, float] | None = None  # x and value above the level
    x = min(start, upper_bound)
    for _ in range(MAX_ITERATIONS):
        value = curve(x)
        if abs(value - level) <= value_tolerance:
            return x, value
        if value >= level:
            upper = (x, value)
        elif x >= upper_bound:
            return x, value
        else:
            lower_x, lower_value = x, value
        lower_score = linearize(lower_value)
        if upper is None:
            gain = lower_score - linearize(zero_value)
            factor = (target - linearize(zero_value)) / gain if gain > 0 else MAX_EXPANSION
            x = min(upper_bound, x * min(max(OVERSHOOT * factor, MIN_EXPANSION), MAX_EXPANSION))
            continue
        upper_x, upper_value = upper
        width = upper_x - lower_x
        if width <= x_tolerance * upper_x:
            break
        score_difference = linearize(upper_value) - lower_score
        fraction = (target - lower_score) / score_difference if score_difference > 0 else 0.5
        x = lower_x + width * min(max(fraction, MIN_FRACTION), 1 - MIN_FRACTION)
    assert upper is not None
    return upper

"""Root of an increasing function, found by interpolation after a transformation that makes it nearly linear."""

from __future__ import annotations

from collections.abc import Callable

Curve = Callable[[float], float]


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
    """The x in (0, upper_bound] where `curve` equals `level`, with its value; `upper_bound` if there is none.

    `curve` is increasing with value `zero_value` at 0, and `start` is the first x tried. `linearize(value)` is
    approximately linear in x, which speeds up the search. The search stops if a value is within `value_tolerance` of
    the level, or if x is known up to the relative tolerance `x_tolerance`.

    >>> tolerances = {"value_tolerance": 1e-9, "x_tolerance": 1e-9}
    >>> x, _ = find_root(lambda x: x * x, 1, 9, 100, zero_value=0, linearize=lambda v: v**0.5, **tolerances)
    >>> round(x, 6)
    3.0
    """
    target = linearize(level)
    lower, upper = (0.0, zero_value), None
    x = min(start, upper_bound)
    for _ in range(60):
        value = curve(x)
        if abs(value - level) <= value_tolerance:
            return x, value
        if value >= level:
            upper = (x, value)
        elif x >= upper_bound:
            return x, value
        else:
            lower = (x, value)
        lower_score, (upper_x, upper_value) = linearize(lower[1]), upper or lower
        if upper is None:
            gain = lower_score - linearize(zero_value)
            factor = (target - linearize(zero_value)) / gain if gain > 0 else 4.0
            x = min(upper_bound, x * min(max(1.02 * factor, 1.05), 4.0))
            continue
        width = upper_x - lower[0]
        if width <= x_tolerance * upper_x:
            break
        score_difference = linearize(upper_value) - lower_score
        fraction = (target - lower_score) / score_difference if score_difference > 0 else 0.5
        x = lower[0] + width * min(max(fraction, 0.05), 0.95)
    assert upper is not None
    return upper

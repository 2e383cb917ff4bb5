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
    zero: float,
    straight: Curve,
    near: float,
    close: float,
) -> tuple[float, float]:
    """The x in (0, upper_bound] where `curve` equals `level`, with its value; `upper_bound` if there is none.

    `zero` is the value at 0. `straight(value)` is approximately linear in x, which speeds up the search. The search
    stops if a value is within `near` of the level, or if x is known up to the relative tolerance `close`.

    >>> x, _ = find_root(lambda x: x * x, 1, 9, 100, zero=0, straight=lambda v: v**0.5, near=1e-9, close=1e-9)
    >>> round(x, 6)
    3.0
    """
    target = straight(level)
    low, high = (0.0, zero), None
    x = min(start, upper_bound)
    for _ in range(60):
        value = curve(x)
        if abs(value - level) <= near:
            return x, value
        if value >= level:
            high = (x, value)
        elif x >= upper_bound:
            return x, value
        else:
            low = (x, value)
        bottom, (right, top) = straight(low[1]), high or low
        if high is None:
            gained = bottom - straight(zero)
            factor = (target - straight(zero)) / gained if gained > 0 else 4.0
            x = min(upper_bound, x * min(max(1.02 * factor, 1.05), 4.0))
            continue
        width = right - low[0]
        if width <= close * right:
            break
        rise = straight(top) - bottom
        part = (target - bottom) / rise if rise > 0 else 0.5
        x = low[0] + width * min(max(part, 0.05), 0.95)
    assert high is not None
    return high

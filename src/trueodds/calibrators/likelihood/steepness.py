"""Which power of the probabilities is best? Newton's method inside a bracket."""

from __future__ import annotations

import math
from collections.abc import Callable

from trueodds.tallies.likelihood import Likelihood

LOWEST, HIGHEST = 1e-3, 1e3  # the range of β = 1/T: beyond it rows are uniform, or all but 0 and 1
_WITHIN = 1e-11  # of β, how far from the minimum it may stop
_SLOPE = 10  # times that, the slope per row that may be left
_MAX_EVALUATIONS = 200


def steepness(sums: Callable[[float], Likelihood], start: float = 1.0, *, within: float = _WITHIN) -> tuple[float, int]:
    """The minimizing β and the passes taken, from sums that may come from anywhere: one call is one pass.

    Newton's step, or that of the series where higher derivatives are known, where it stays inside the bracket and,
    once the minimum is enclosed, at least halves the last one; else the bracket's middle in log β. The ends of the
    range are tried once, when a step leads beyond them.
    """
    low, high, beta, last = LOWEST, HIGHEST, start, math.inf
    untried = {LOWEST, HIGHEST}
    for n_passes in range(1, _MAX_EVALUATIONS):
        at = sums(beta)
        g, h = float(at.gradient[0]), float(at.hessian[0, 0])
        untried.discard(beta)
        if g == 0:
            # Without curvature either the rows are uniform, or so sure already that nothing is left to weigh.
            return (beta if h > 0 else 1.0 if beta <= 1 else HIGHEST), n_passes
        if (beta == LOWEST and g > 0) or (beta == HIGHEST and g < 0):
            return beta, n_passes
        low, high = (low, beta) if g > 0 else (beta, high)
        step, left = _step(g, h, at.beyond.tolist(), beta)
        near = left <= within * beta and h * left <= _SLOPE * within * at.weight
        if near or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), n_passes
        following, closed = beta + step, low > LOWEST and high < HIGHEST
        if n_passes == 1 and beta in (LOWEST, HIGHEST):  # a start that was none
            following = 1.0
        elif following <= LOWEST and LOWEST in untried:
            following = LOWEST
        elif following >= HIGHEST and HIGHEST in untried:
            following = HIGHEST
        elif not low < following < high or (abs(step) > 0.5 * last and (closed or n_passes > 20)):
            following = math.sqrt(low * high)
        last, beta = abs(following - beta), following
    return beta, n_passes


def _step(g: float, h: float, beyond: list[float], beta: float) -> tuple[float, float]:
    """To where the slope vanishes, and about how far from there it ends.

    The slope is g + h s + b₀ s²/2! + b₁ s³/3! + …; its terms fall about geometrically, and so does what they leave out.
    """
    if h <= 0:
        return -math.copysign(math.inf, g), math.inf
    newton = -g / h
    terms = [b / h / math.factorial(j) for j, b in enumerate(beyond, 2)]  # relative to h
    if not any(terms):
        return newton, 1e3 * newton * newton / beta
    ratio = max((abs(a) ** (1 / j) for j, a in enumerate(terms, 1) if a), default=0.0) * abs(newton)
    if not ratio < 0.3:
        return newton, math.inf
    s = newton
    for _ in range(50):
        slope = s - newton + sum(a * s ** (j + 1) for j, a in enumerate(terms, 1))
        derivative = 1 + sum((j + 1) * a * s**j for j, a in enumerate(terms, 1))
        before, s = s, s - slope / derivative
        if abs(s - before) <= 2**-52 * abs(s):  # no double lies nearer
            break
    return s, abs(newton) * ratio ** (len(terms) + 1) / (1 - ratio)


def valley(slopes: Callable[[float], tuple[float, float]], start: float = 1.0) -> tuple[float, int]:
    """The local minimum downhill from the start, of a loss that may have several, and the passes taken.

    `slopes` gives the loss's first and second derivative: β is doubled or halved until the slope turns, and Newton's
    steps inside that bracket end where it vanishes. Where it never turns, the end of the range.

    >>> valley(lambda b: (b - 3, 1.0))[0]
    3.0
    """
    beta, (g, h) = start, slopes(start)
    ends, n_passes, curved = [LOWEST, HIGHEST], 1, abs(h)
    if g == 0:
        return beta, n_passes
    while True:
        side = 0 if g < 0 else 1
        ends[side] = beta
        other = min(max(beta * (0.5 if side else 2.0), LOWEST), HIGHEST)
        if other == beta:
            return beta, n_passes
        there = slopes(other)
        n_passes += 1
        if there[0] == 0:  # where it is flat, too, it has fallen below what numbers hold, and falls on
            turns = abs(there[1]) > 1e-12 * curved
            return (other if turns else (LOWEST if side else HIGHEST)), n_passes
        if (there[0] < 0) != (g < 0):
            ends[1 - side] = other
            break
        beta, (g, h) = other, there
    low, high = ends
    while n_passes < _MAX_EVALUATIONS:
        step = -g / h if h > 0 else math.inf
        if abs(step) <= 1e-8 * beta or high - low <= 1e-15 * high:
            return min(max(beta + step, low), high), n_passes
        beta = beta + step if low < beta + step < high else math.sqrt(low * high)
        g, h = slopes(beta)
        n_passes += 1
        if g == 0:
            break
        low, high = (beta, high) if g < 0 else (low, beta)
    return beta, n_passes

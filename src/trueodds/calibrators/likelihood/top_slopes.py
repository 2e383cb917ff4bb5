"""How does the log loss of the top class change with the temperature?"""

from __future__ import annotations

import numpy as np

from trueodds.calibrators.likelihood.logs import Probabilities, floored, largest
from trueodds.calibrators.likelihood.parts import in_parts
from trueodds.core.typing import Array


def slopes(P: Probabilities, Y: Array, w: Array, min_prob: float, beta: float) -> tuple[float, float]:
    """The first and second derivative of the log loss of the top class by β.

    With μ and ν the mean and variance of the other classes' logs under q, relative to the top's, they are
    Σ w μ(c − s) and Σ w [ν(c − s) + μ² s(1 − s)].
    """
    first = second = 0.0
    for p, y, m in in_parts(P, Y, w):
        every, top = np.arange(len(p)), largest(p)
        correct = y[every, top] if y.ndim == 2 else top == y
        logs = floored(p, min_prob)
        logs = logs - logs[every, top][:, None]
        logs[every, top] = -np.inf
        runner_up = logs.max(axis=1)
        e = np.exp(beta * (logs - runner_up[:, None]))
        logs[every, top] = 0.0
        rest = e.sum(axis=1)
        mean = (e * logs).sum(axis=1) / rest
        variance = (e * (logs - mean[:, None]) ** 2).sum(axis=1) / rest
        odds = rest * np.exp(beta * runner_up)
        confidence = 1 / (1 + odds)
        first += float(m @ (mean * (correct - confidence)))
        second += float(m @ (variance * (correct - confidence) + mean**2 * confidence * odds * confidence))
    return first, second

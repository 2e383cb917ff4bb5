"""What lies between two values with their slopes? Cubic interpolation on a line and on a circle."""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array


def on_line(x: Array, nodes: Array, values: Array, slopes: Array) -> tuple[Array, Array]:
    """The cubic through rising nodes with their slopes, and its derivative, at x within them."""
    at = np.clip(np.searchsorted(nodes, x, "right") - 1, 0, len(nodes) - 2)
    gap = np.maximum(nodes[at + 1] - nodes[at], 1e-300)
    return _cubic((x - nodes[at]) / gap, gap, values[at], values[at + 1], slopes[at], slopes[at + 1])


def on_circle(angle: Array, values: Array, slopes: Array) -> Array:
    """The periodic cubic through values at angles 2πi/a."""
    gap = 2 * np.pi / len(values)
    place = (angle / gap) % len(values)
    at = place.astype(np.intp) % len(values)
    after = (at + 1) % len(values)
    return _cubic(place - np.floor(place), gap, values[at], values[after], slopes[at], slopes[after])[0]


def _cubic(u: Array, gap: Array | float, y0: Array, y1: Array, d0: Array, d1: Array) -> tuple[Array, Array]:
    rise, d0, d1 = y1 - y0, d0 * gap, d1 * gap
    a, b = 3 * rise - 2 * d0 - d1, d0 + d1 - 2 * rise
    return y0 + u * (d0 + u * (a + u * b)), (d0 + u * (2 * a + 3 * u * b)) / gap

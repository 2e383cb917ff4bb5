"""How dark is a cell, and where on the scale of shares does that lie?"""

from __future__ import annotations

import numpy as np

from trueodds.core.typing import Array

# One hue from nearly white to middle blue: each step is darker in gray too, and an arrow still stands out on the last.
STEPS = np.array([[0xF4, 0xF8, 0xFB], [0xCF, 0xE1, 0xEF], [0x9C, 0xC3, 0xE0], [0x5F, 0x9B, 0xC8], [0x2F, 0x72, 0xA8]])
DECADES = 30.0  # between the smallest and the largest share, from which on the scale is logarithmic


def scale_of(shares: Array) -> tuple[float, float, bool]:
    """The ends of the scale for these shares, and whether it is logarithmic."""
    low, high = float(shares.min()), float(shares.max())
    logarithmic = high > DECADES * low
    return (low if logarithmic else 0.0), high, logarithmic


def depth(share: Array, low: float, high: float, logarithmic: bool) -> Array:
    """The place of each share on the scale, 0 to 1."""
    x = np.asarray(share, dtype=np.float64)
    if logarithmic:
        return np.log(x / low) / np.log(high / low)
    return (x - low) / (high - low)


def colors(place: Array) -> list[str]:
    """The color at each place of the scale.

    >>> colors(np.array([0.0, 1.0]))
    ['#f4f8fb', '#2f72a8']
    """
    at = np.clip(place, 0.0, 1.0)
    grid = np.linspace(0, 1, len(STEPS))
    mixed = np.stack([np.interp(at, grid, STEPS[:, band]) for band in range(3)], axis=1)
    return ["#" + "".join(f"{round(x):02x}" for x in rgb) for rgb in mixed]

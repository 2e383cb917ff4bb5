"""Format numbers, percentages and settings as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def format_number(x: float | None) -> str:
    """Format a number with four decimals, or with three significant digits if it is very small or large.

    >>> format_number(0.039812), format_number(0.000012), format_number(0.001), format_number(None)
    ('0.0398', '1.2e-05', '0.001', '–')
    """
    if x is None:
        return "–"
    if not math.isfinite(x):
        return "inf" if x > 0 else "-inf" if x < 0 else "nan"
    if x == 0 or 0.001 <= abs(x) < 10:
        return f"{x:.4f}" if round(x, 3) != round(x, 6) else f"{x:.3g}"
    return f"{x:.3g}"


def format_percent(level: float) -> str:
    """Format a level as a percentage: 0.95 as 95%, 0.999 as 99.9%."""
    return f"{100 * level:.6g}%"


def format_settings(settings: Mapping[str, Any]) -> list[str]:
    """Describe the settings that affect the value in a few words; `to_dict` has all of them."""
    return [str(settings[key]) for key in ("partition", "distance", "aggregate") if settings.get(key) is not None]

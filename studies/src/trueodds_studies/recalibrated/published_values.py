"""What did the MCLLO paper print for its obesity study? Vennos, Xing & Franck (2026), section 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TABLE: Mapping[str, Mapping[str, Any]] = {
    "calibration rows": {"n": 396, "p": None, "ECE": 0.160, "accuracy": 0.851, "changed": None},
    "none": {"n": 132, "p": 0.014, "ECE": 0.127, "accuracy": 0.788, "changed": None},
    "MCLLO": {"n": 132, "p": 0.167, "ECE": 0.073, "accuracy": 0.811, "changed": 0.0227},
    "binning": {"n": 132, "p": 0.068, "ECE": 0.083, "accuracy": 0.810, "changed": 0.0303},
    "evidential (Xu)": {"n": 132, "p": 0.014, "ECE": 0.078, "accuracy": 0.811, "changed": 0.030},
}
"""The names of the last two rows are lost in the text at hand; it says that binning passes the test, which is p = .068."""

PARAMETERS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "delta": ((0.527, 0.241), (1.002, 0.406), (2.714, 1.404), (0.002, 0.001), (1.167, 0.391), (1.529, 0.524)),
    "gamma": ((2.785, 0.399), (2.211, 0.214), (1.719, 0.175), (4.698, 0.960), (2.387, 0.247), (2.020, 0.188)),
}
"""With their standard errors, against Normal Weight; the columns are taken as the other classes in alphabetical order."""

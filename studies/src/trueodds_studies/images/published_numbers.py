"""Published numbers for CIFAR-10 of Vennos, Xing and Franck (2026), and tables that compare ours with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueodds_studies.common.network_predictions import CIFAR10_CLASSES
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.images.split_results import ON_P

# Vennos, Xing & Franck (2026), section 4.2.3. The available text lacks the names of the rows and the p-values of the
# first, second and fourth row; the names were inferred from sentences that mention the ECE and p of a method.
PUBLISHED_SCORES = {
    "none, fitting rows": {"ECE": 0.033, "accuracy": 0.927},
    "none": {"ECE": 0.035, "accuracy": 0.930},
    "MCLLO": {"p": 0.133, "ECE": 0.021, "accuracy": 0.931, "changed": 0.0195},
    ON_P.label: {"ECE": 0.052, "accuracy": 0.930, "changed": 0.0},
    "binning": {"p": 0.337, "ECE": 0.025, "accuracy": 0.932, "changed": 0.008},
    "temperature on log p": {"p": 0.002, "ECE": 0.020, "accuracy": 0.930, "changed": 0.0},
    "vector on log p": {"p": 0.142, "ECE": 0.020, "accuracy": 0.931, "changed": 0.018},
}
"""By method: p-value of the MCLLO test, ECE, accuracy, and share of changed labels, on the held-out rows."""

# Section 4.2.1: estimate and standard error of each class against truck, in the order of CIFAR10_CLASSES.
PUBLISHED_DELTA = {
    "learning": (
        (1.461, 0.315),
        (0.710, 0.135),
        (1.275, 0.346),
        (1.966, 0.456),
        (0.908, 0.306),
        (3.095, 0.769),
        (1.166, 0.370),
        (1.785, 0.539),
        (1.111, 0.240),
    ),
    "held out": (
        (0.693, 0.338),
        (0.665, 0.211),
        (0.912, 0.496),
        (1.588, 0.708),
        (0.312, 0.234),
        (1.613, 0.824),
        (1.037, 0.635),
        (0.603, 0.439),
        (0.711, 0.331),
    ),
}
PUBLISHED_GAMMA = {
    "learning": (
        (0.705, 0.028),
        (0.679, 0.043),
        (0.692, 0.025),
        (0.711, 0.022),
        (0.732, 0.028),
        (0.685, 0.021),
        (0.659, 0.030),
        (0.729, 0.031),
        (0.621, 0.030),
    ),
    "held out": (
        (0.746, 0.061),
        (0.539, 0.060),
        (0.719, 0.052),
        (0.740, 0.047),
        (0.872, 0.073),
        (0.727, 0.046),
        (0.676, 0.060),
        (0.768, 0.077),
        (0.679, 0.075),
    ),
}

PUBLISHED_IMAGES = {5037: 1.00, 4526: 0.94}  # section 1: number of the image, and its probability of airplane
PUBLISHED_PROB_AFTER = 0.80  # of the second image, after recalibration


def compare_with_paper(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per published number: ours for the first split, and the minimum and maximum over the splits."""
    rows = []
    for method, numbers in PUBLISHED_SCORES.items():
        ours = [_method_row(cell, method) for cell in cells]
        for name, printed in numbers.items():
            values = [row[name] for row in ours]
            rows.append(
                {
                    "method": method,
                    "number": name,
                    "paper": printed,
                    "first split": values[0],
                    "minimum": min(values),
                    "maximum": max(values),
                    "within": min(values) <= printed <= max(values),
                }
            )
    return tuple(rows)


def compare_parameters(cells: Sequence[Row]) -> tuple[Row, ...]:
    """One row per class: published parameters and ours on both parts of the first split, with standard errors."""
    rows = []
    for j, name in enumerate(CIFAR10_CLASSES[:-1]):
        row: dict[str, Any] = {"class": name}
        for part, suffix in (("learning", ""), ("held out", ", held out")):
            ours = cells[0]["parameters"][part][j]
            for letter, key, printed in (("δ", "delta", PUBLISHED_DELTA), ("γ", "gamma", PUBLISHED_GAMMA)):
                row[f"{letter} paper{suffix}"] = _format_pair(*printed[part][j])
                row[f"{letter}{suffix}"] = _format_pair(ours[key], ours[f"{key}_se"])
        rows.append(row)
    return tuple(rows)


def _method_row(cell: Row, method: str) -> Row:
    """The scores of a method, or of no recalibration on the fitted rows for `none, fitting rows`."""
    if method == "none, fitting rows":
        return cell["learning"]
    return next(row for row in cell["methods"] if row["method"] == method)


def _format_pair(value: float | None, error: float | None) -> str:
    """Format as `estimate (standard error)`; the text for None states that no finite estimate exists."""
    return "not finite" if value is None or error is None else f"{value:.3f} ({error:.3f})"

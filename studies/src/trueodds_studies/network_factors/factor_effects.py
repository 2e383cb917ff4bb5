"""Effects of depth, width, batch normalization and weight decay on calibration, paired by training seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from trueodds_studies.common.mean_intervals import format_mean, interval_sign, mean_interval
from trueodds_studies.common.resumable_runs import Row
from trueodds_studies.network_factors.network_designs import LEVELS, NetworkDesign, design_at, list_designs

Runs = Mapping[NetworkDesign, Sequence[Row]]  # the trainings of each design, in the order of the seeds
MEASURES = {
    "error %": ("error", 100.0, 2),
    "ECE": ("ECE", 1.0, 4),
    "overconfidence": ("overconfidence", 1.0, 4),
    "T": ("temperature", 1.0, 3),
    "log loss": ("log loss", 1.0, 4),
}
"""By column of the tables: the key in the row of a training, the factor that it is multiplied by, and the digits."""
FACTOR_NAMES = {
    "depth": "depth", "width": "width", "batch_norm": "batch normalization", "weight_decay": "weight decay"
}  # fmt: skip
PUBLISHED_SIGNS = {"depth": 1, "width": 1, "batch_norm": 1, "weight_decay": -1}
"""The sign of the change of the ECE in Guo et al. (2017), from the lowest to the highest level."""
PUBLISHED_STATEMENTS = {
    "depth": "ECE increases with depth",
    "width": "ECE increases with width",
    "batch_norm": "ECE is higher with batch normalization",
    "weight_decay": "ECE decreases with weight decay",
}


def design_table(runs: Runs) -> tuple[Row, ...]:
    """One row per design: means over the trainings."""
    rows = []
    for design in list_designs():
        cells = runs[design]
        row: dict[str, Any] = {"network": str(design), "weights": cells[0]["weights"]}
        row["training error %"] = 100 * _mean(cells, "training error")
        for column, (key, factor, digits) in MEASURES.items():
            row[column] = format_mean([factor * cell[key] for cell in cells], digits)
        row |= {"noise floor": _mean(cells, "noise floor"), "refinement": _mean(cells, "refinement")}
        rows.append(row)
    return tuple(rows)


def effect_table(runs: Runs) -> tuple[Row, ...]:
    """One row per factor and pair of levels (lowest and highest, and neighbors): differences, higher minus lower."""
    rows = []
    for factor, levels in LEVELS.items():
        contrasts = list(dict.fromkeys([(levels[0], levels[-1]), *pairwise(levels)]))
        for low, high in contrasts:
            row = {"factor": FACTOR_NAMES[factor], "from": _format_level(low), "to": _format_level(high)}
            for column, (_, _, digits) in MEASURES.items():
                row[column] = format_mean(level_differences(runs, factor, low, high, column), digits, sign=True)
            excess = level_differences(runs, factor, low, high, "excess log loss")
            rows.append(row | {"excess log loss": format_mean(excess, 4, sign=True)})
    return tuple(rows)


def level_differences(runs: Runs, factor: str, low: Any, high: Any, column: str) -> list[float]:
    """The value of a column at the higher level minus that at the lower one, for each seed."""
    return [
        _column_value(b, column) - _column_value(a, column)
        for a, b in zip(runs[design_at(factor, low)], runs[design_at(factor, high)], strict=True)
    ]


def _column_value(cell: Row, column: str) -> float:
    """The value of a training in a column; the excess log loss is the part that temperature scaling removes."""
    if column == "excess log loss":
        return float(cell["log loss"] - cell["refinement"])
    key, factor, _ = MEASURES[column]
    return float(factor * cell[key])


def statement_table(runs: Runs) -> tuple[Row, ...]:
    """One row per statement of Guo et al. (2017): the effect from the lowest to the highest level, and the verdict."""
    rows = []
    for factor, levels in LEVELS.items():
        row: dict[str, Any] = {
            "statement": PUBLISHED_STATEMENTS[factor], "from": _format_level(levels[0]), "to": _format_level(levels[-1])
        }  # fmt: skip
        for column in ("ECE", "overconfidence", "excess log loss"):
            differences = level_differences(runs, factor, levels[0], levels[-1], column)
            row[f"change of {column}"] = format_mean(differences, 4, sign=True)
            row[f"by {column}"] = verdict(differences, PUBLISHED_SIGNS[factor])
        errors = level_differences(runs, factor, levels[0], levels[-1], "error %")
        row["change of error %"] = format_mean(errors, 2, sign=True)
        rows.append(row)
    return tuple(rows)


def verdict(differences: Sequence[float], published_sign: int) -> str:
    """`confirmed`, `opposite` or `undecided`: whether the 95 % interval of the mean difference has the published sign.

    >>> [verdict([x, x + 1e-3], 1) for x in (0.1, -0.1)], verdict([-1.0, 1.0], 1)
    (['confirmed', 'opposite'], 'undecided')
    """
    sign = interval_sign(mean_interval(differences)[1])
    return "undecided" if sign == 0 else "confirmed" if sign == published_sign else "opposite"


def overfit_table(runs: Runs) -> tuple[Row, ...]:
    """Change of test log loss and error from the epoch with the lowest validation log loss to the last one."""
    rows = []
    for design in list_designs():
        changes = [overfit_changes(cell["curve"]) for cell in runs[design]]
        losses, errors = [change["log loss"] for change in changes], [100 * change["error"] for change in changes]
        rows.append(
            {
                "network": str(design),
                "epoch of lowest log loss": format_mean([change["epoch"] for change in changes], 1),
                "change of log loss": format_mean(losses, 4, sign=True),
                "change of error %": format_mean(errors, 2, sign=True),
                "log loss increases": verdict(losses, 1),
                "error decreases": verdict(errors, -1),
            }
        )
    return tuple(rows)


def overfit_changes(curve: Sequence[Row]) -> dict[str, float]:
    """The epoch with the lowest validation log loss, and the changes of the test rows from it to the last epoch.

    >>> curve = [{"epoch": e, "validation log loss": v, "log loss": v, "error": 1 / e} for e, v in ((1, 2.0), (2, 3.0))]
    >>> overfit_changes(curve)
    {'epoch': 1, 'log loss': 1.0, 'error': -0.5}
    """
    first = curve[int(np.argmin([row["validation log loss"] for row in curve]))]
    return {"epoch": first["epoch"], **{key: curve[-1][key] - first[key] for key in ("log loss", "error")}}


def summarize(runs: Runs) -> str:
    """Which statements of the paper are confirmed, with the effects."""
    phrases = [
        f"{row['statement']}: {row['by ECE']} ({row['change of ECE']} from {row['from']} to {row['to']})"
        for row in statement_table(runs)
    ]
    overfit = overfit_table(runs)
    increases = sum(row["log loss increases"] == "confirmed" for row in overfit)
    both = sum(row["log loss increases"] == row["error decreases"] == "confirmed" for row in overfit)
    return (
        f"{'; '.join(phrases)}. After the epoch with the lowest validation log loss, the test log loss increases"
        f" significantly in {increases} of {len(overfit)} networks, and in {both} of them the error decreases."
    )


def _mean(cells: Sequence[Row], key: str) -> float:
    return float(np.mean([cell[key] for cell in cells]))


def _format_level(level: Any) -> str:
    """A level as text.

    >>> _format_level(False), _format_level(0.0001), _format_level(8)
    ('no', '0.0001', '8')
    """
    return ("no", "yes")[level] if isinstance(level, bool) else f"{level:g}"

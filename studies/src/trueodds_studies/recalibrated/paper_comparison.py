"""How do our splits stand beside what the MCLLO paper prints of its one?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds_studies.recalibrated.losses import column
from trueodds_studies.recalibrated.published_values import PARAMETERS, TABLE
from trueodds_studies.resumable_runs import Row

READINGS = {"evidential (Xu)": ("evidential (Xu)", "evidential, floor 1e-3", "evidential on p")}
"""The text of the evidential method was not at hand, and the paper does not say what it did with votes of 0."""

PAPER = """printed: of the paper's one split. The others: median over our splits of p, mean of the rest. The names of the last two printed rows
are lost; the text says that binning passes the test. Accuracy and changed are shares."""


def paper(results: Sequence[Row]) -> tuple[Row, ...]:
    """The table of section 4.3, printed and ours."""
    rows = []
    for method, printed in TABLE.items():
        rows.append({"method": method, "features": "printed"} | dict(printed))
        for features in dict.fromkeys(one["features"] for one in results):
            same = [one for one in results if one["features"] == features]
            names = READINGS.get(method, (method,))
            rows += [{"method": name, "features": features} | _middle(_method_rows(same, name)) for name in names]
    return tuple(rows)


def _method_rows(results: Sequence[Row], method: str) -> list[Row]:
    if method == "calibration rows":
        return [one["learn"] for one in results]
    every = [row for one in results for row in one["rows"]]
    return [row for row in every if row["method"] == method and row["baseline"] == "Normal Weight"]


def _middle(rows: Sequence[Row]) -> dict[str, Any]:
    middle = {"n": rows[0]["n"], "p": float(np.median(column(rows, "p")))}
    return middle | {name: float(column(rows, name).mean()) for name in ("ECE", "accuracy", "changed")}


ESTIMATES = """δ and γ against Normal Weight with standard errors, from the 396 calibration rows of the first split in which finite parameters are best.
finite: share of splits in which they are; middle: the median of γ among these. printed: the paper's."""


def estimates(results: Sequence[Row]) -> tuple[Row, ...]:
    """δ and γ of each class beside the printed ones."""
    rows: list[Row] = []
    for features in dict.fromkeys(one["features"] for one in results):
        same = [one for one in results if one["features"] == features]
        finite = [one for one in same if _finite(one)]
        for j, estimate in enumerate(finite[0]["parameters"] if finite else ()):
            row = {"features": features, "split": finite[0]["split"], "class": finite[0]["classes"][estimate["class"]]}
            for name in ("delta", "gamma"):
                row |= {name: estimate[name], f"{name} se": estimate[f"{name}_se"]}
                row |= {f"printed {name}": PARAMETERS[name][j][0], f"printed {name} se": PARAMETERS[name][j][1]}
            gammas = [one["parameters"][j]["gamma"] for one in finite]
            rows.append(row | {"middle": float(np.median(gammas)), "finite": len(finite) / len(same)})
    return tuple(rows)


def _finite(one: Row) -> bool:
    return bool(np.isfinite([parameter["gamma"] for parameter in one["parameters"]]).all())


def finite_sentence(results: Sequence[Row]) -> str:
    """How often the 396 rows have finite parameters."""
    return f"In {sum(map(_finite, results))} of {len(results)} fits on the calibration rows finite parameters are best."

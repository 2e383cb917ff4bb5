"""What do several splits say together of one method? Losses with standard errors, and differences on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds_studies.resumable_runs import Row


def mixed(P: Array, y: Array, n: int) -> float:
    """Log loss after 1/(n + 1) of the uniform is mixed in: what `auto` scores maps by that were fitted on n rows.

    >>> round(mixed(np.array([[0.0, 1.0]]), np.array([0]), 1), 4)  # −log(¼)
    1.3863
    """
    share = 1 / (n + 1)
    return float(-np.log((1 - share) * P[np.arange(len(y)), y] + share / P.shape[1]).mean())


def error(values: Array) -> float | None:
    """The standard error of a mean over splits; none of one split."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def column(rows: Sequence[Row], name: str) -> Array:
    """One number of each split."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def summarize_splits(rows: Sequence[Row]) -> dict[str, Any]:
    """A method's rows of several splits as one."""
    loss = column(rows, "mixed")
    return {
        "splits": len(rows),
        "loss": float(loss.mean()),
        "se": error(loss),
        "worst": float(loss.max()),
        "infinite": float(np.isinf(column(rows, "log loss")).mean()),
        "ECE": float(column(rows, "ECE").mean()),
        "p>.05": float((column(rows, "p") > 0.05).mean()),
        "accuracy": float(column(rows, "accuracy").mean()),
        "changed": float(column(rows, "changed").mean()),
    }


def changes(method_rows: Sequence[Row], none: Sequence[Row], *, shared: float) -> dict[str, Any]:
    """A method's losses less those without recalibration on the same rows.

    Splits of the same rows are not independent: the standard error of the mean over J of them is multiplied by
    √(1 + J · `shared`), shared being the rows judged on over the others. Source: Nadeau & Bengio (2003).
    """
    differences = column(method_rows, "mixed") - column(none, "mixed")
    se, choices = error(differences), [row["chose"] for row in method_rows]
    chose = ", ".join(f"{choices.count(name)} {name}" for name in sorted(set(choices)))
    return {
        "difference": float(differences.mean()),
        "difference se": se,
        "wide": None if se is None else se * float(np.sqrt(1 + len(differences) * shared)),
        "worse": float((differences > 0).mean()),
        "worst difference": float(differences.max()),
        "chose": chose if method_rows[0]["method"] == "auto" else "",
    }

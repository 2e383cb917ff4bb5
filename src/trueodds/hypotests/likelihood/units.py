"""Which rows of a view are independent of each other?"""

from __future__ import annotations

from trueodds.calibrators.likelihood.units import Units
from trueodds.core.errors import InputError
from trueodds.lenses.view import View


def single_rows(view: View, name: str) -> Units:
    """Every row by itself; cells of several rows have no scores of single ones."""
    if not view.is_rows and (view.n > 1).any():
        raise InputError(
            "TO403",
            f"The empirical variance of {name} squares the score of each row.",
            f"{len(view):,} cells of {view.n_rows:,} rows",
            "Use mode='exact', or variance='model'.",
        )
    return Units.of_rows(view.w)

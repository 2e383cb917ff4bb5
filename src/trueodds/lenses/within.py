"""A lens on one subgroup of the rows: the others stay in place with weight zero, so that draws are shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens import Lens, Outcomes
from trueodds.lenses.view import View


@dataclass(frozen=True, eq=False)
class Within(Lens):
    """A lens that looks only at the rows whose group column has one value."""

    lens: Lens
    column: str
    value: Any

    @property
    def name(self) -> str:  # type: ignore[override]
        """`confidence | site=A`."""
        return f"{self.lens.name} | {self.column}={self.value}"

    def rows(self, preds: Predictions) -> Array:
        """Which rows belong to the subgroup."""
        return np.asarray(preds.group[self.column] == self.value)

    def views(self, preds: Predictions) -> tuple[View, ...]:
        """The lens's own views, with weight zero outside the subgroup."""
        inside = self.rows(preds).astype(np.float64)
        label = f"{self.column}={self.value}"
        return tuple(
            View(
                v.p, v.y, v.w * inside,
                n=inside, name=f"{v.name} | {label}", classes=v.classes, votes=v.votes, exact=v.exact,
            )
            for v in self.lens.views(preds)
        )  # fmt: skip

    def outcomes(self, preds: Predictions) -> list[Outcomes]:
        """As the lens itself reads labels."""
        return self.lens.outcomes(preds)

    def columns(self, preds: Predictions) -> list[int]:
        """As the lens itself."""
        return self.lens.columns(preds)

"""What a test finds on one view: its statistic with all that belongs to it, and the same statistic for many draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.typing import Array
from trueodds.hypotests.votes import twice_the_mean
from trueodds.lenses.view import View

Reader = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class ViewResult:
    """What a test finds on one view."""

    statistic: float  # as it is shown
    pvalue: float  # under the asymptotic law; NaN where the test has none, or is not defined
    effect: float  # how far off, in probability units
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    settings_used: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()  # what holds for every null
    doubts: tuple[str, ...] = ()  # why the asymptotic law is not to be trusted here; said only where it is used
    summary: str = ""  # what is estimated, in words


class Cells:
    """A statistic that draws need many times over: sums of fixed cells, and what reads it from them.

    `reader` takes Σw (…, size), Σwp and Σwy (…, size) or (…, size, m) with leading axes that broadcast, and gives
    (…): greater is more surprising, |z| for a z of two sides.
    """

    def __init__(self, view: View, index: Array, size: int, reader: Reader) -> None:
        self.view, self.index, self.size, self.reader = view, index, size, reader

    @classmethod
    def of_rows(cls, view: View, reader: Reader) -> Cells:
        """Every row (or cell of a tally) by itself."""
        return cls(view, np.arange(len(view)), len(view), reader)

    def value(self) -> float:
        """The statistic of the view itself."""
        view, m = self.view, self.view.p.shape[1] if self.view.joint else 1
        w = np.bincount(self.index, view.w, self.size)
        p, y = (np.asarray(x, dtype=np.float64).reshape(len(view), m) for x in (view.p, view.y))
        wp, wy = (
            np.stack([np.bincount(self.index, view.w * x[:, c], self.size) for c in range(m)], axis=1) for x in (p, y)
        )
        shape = (1, self.size, m) if view.joint else (1, self.size)
        statistic: float = self.reader(w[None], wp.reshape(shape), wy.reshape(shape))[0]
        return statistic

    def statistic(self, w: Array, wp: Array, wy: Array) -> Array:
        """The statistic of each draw."""
        return self.reader(w, wp, wy)

    def centered_norms(self, w: Array, wp: Array, wy: Array, draws: tuple[Array, Array, Array]) -> Array | None:
        """None: it is no error that an interval is made for."""
        return None


def average_votes(results: Sequence[ViewResult]) -> ViewResult:
    """The mean of what was found with one vote per row, and a p-value from all of them; no summary, which is of one."""

    def mean(name: str, values: Sequence[float]) -> float:
        return twice_the_mean(values) if name in ("pvalue", "holm") else float(np.mean(values))

    first = results[0]
    parts = {
        part: {name: mean(name, [one.parts[part][name] for one in results]) for name in numbers}
        for part, numbers in first.parts.items()
        if all(part in one.parts for one in results)
    }
    return replace(
        first,
        statistic=mean("statistic", [one.statistic for one in results]),
        pvalue=mean("pvalue", [one.pvalue for one in results]),
        effect=mean("effect", [one.effect for one in results]),
        parts=parts,
        summary="",
    )

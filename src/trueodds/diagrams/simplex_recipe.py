"""Base class of the simplex diagrams and names of the outcomes at their corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.recipe import IMPORTANCE, BinnedRecipe, views_of
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Groups, class_number
from trueodds.lenses.ranked import TopK
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class SimplexRecipe(BinnedRecipe):
    """A diagram of joint views whose corners bear the names of outcomes."""

    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    exempt: ClassVar[dict[str, str]] = IMPORTANCE
    level: Level = 0.95
    simultaneous: bool = True

    def of_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of one model, its corners named."""
        if len(models) != 1:
            return super().of_models(models, lens, rng)
        (rows,) = models.values()
        return self.drawn(views_of(rows, lens), outcome_names(rows, lens))

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of joint views, their outcomes numbered."""
        return self.drawn(views, None)

    def drawn(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of joint views with the names of their outcomes."""
        raise NotImplementedError


REST = "rest"
_LITTLE = 1e-3  # of a row


def outcome_names(rows: Predictions | Tally, lens: Lens) -> tuple[str, ...] | None:
    """The names of the outcomes of a joint lens; None where they have none."""
    names = [str(label) for label in rows.classes]
    if isinstance(lens, Canonical):
        return tuple(names)
    if isinstance(lens, Groups):
        return tuple(" + ".join(names[class_number(c, rows.classes)] for c in block) for block in lens.blocks)
    if isinstance(lens, TopK):
        return (
            *("1st choice", "2nd choice", "3rd choice")[: lens.size],
            *map(_ordinal_choice, range(3, lens.size)),
            REST,
        )
    return None


def label_outcomes(view: View, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of a view's outcomes, numbers where it has none."""
    m = view.p.shape[1]
    return tuple(names) if names is not None and len(names) == m else tuple(str(k) for k in range(m))


def check_joint(view: View, name: str) -> None:
    """Refuse a view without a vector per row."""
    if not view.joint:
        raise InputError(
            "TO704",
            f"The diagram {name} shows the probabilities of several outcomes at once; here is one per row.",
            f"the view {view.name!r}",
            "Two outcomes, or one class, are drawn by the diagram reliability; for more use lens='canonical'.",
        )


def closest_rivals(view: View) -> Array:
    """The other outcome that the model puts most probability beside each one, (m,): the largest Σw p_j p_c.

    Outcomes have no say in it, so that tests of what is drawn keep their level.
    """
    p = view.p.astype(np.float64)
    cross_moments = (view.w[:, None] * p).T @ p
    np.fill_diagonal(cross_moments, -1.0)
    return np.argmax(cross_moments, axis=1)


def label_rest(names: Sequence[str]) -> str:
    """What the rest is called where a class may have that name.

    >>> label_rest(["cat", "dog"]), rest_beside(["rest", "dog"])
    ('rest', 'the rest')
    """
    return next((name for name in (REST, "the rest", "all the rest") if name not in names), "rest of them")


def row_totals(view: View) -> tuple[Array, Array]:
    """What all probabilities of a row sum to, and all its outcomes."""
    return view.p.sum(axis=1, dtype=np.float64), view.y.sum(axis=1, dtype=np.float64)


def rival_view(view: View, one: int, other: int, name: str, sums: tuple[Array, Array] | None = None) -> View:
    """The joint view of an outcome, another, and all the rest as one; `sums` are the `row_totals`, which many share."""

    def three(x: Array, total: Array) -> Array:
        a, b = x[:, one].astype(np.float64), x[:, other].astype(np.float64)
        rest = total - a - b
        # What is left of nearly nothing is rounding: there the rest itself is summed, and 0 stays 0.
        little = np.flatnonzero(rest < _LITTLE * total)
        rest[little] = np.delete(x[little], (one, other), axis=1).sum(axis=1, dtype=np.float64)
        return np.stack([a, b, rest], axis=1)

    of_p, of_y = row_totals(view) if sums is None else sums
    w = None if view.plain else view.w
    squares = None if view.is_rows else {"ww": view.sums("ww")}
    return View(
        three(view.p, of_p), three(view.y, of_y), w, n=None if w is None else view.n, sums=squares, name=name, classes=3
    )


def _ordinal_choice(place: int) -> str:
    return f"{place + 1}th choice"

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
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BinnedRecipe, lens_views
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Groups, class_number
from trueodds.lenses.ranked import TopK
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally


@dataclass(frozen=True)
class SimplexRecipe(BinnedRecipe):
    """Settings of a diagram of joint views whose corners are labeled with the outcomes."""

    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    level: Level = 0.95
    simultaneous: bool = True

    def compare_models(
        self, models: Mapping[str, Predictions | Tally], lens: Lens, rng: int | np.random.Generator = 0
    ) -> Diagram:
        """The diagram of one model, with outcome names at the corners."""
        if len(models) != 1:
            return super().compare_models(models, lens, rng)
        (data,) = models.values()
        return self.diagram_with_names(lens_views(data, lens), outcome_names(data, lens))

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of joint views, with numbered outcomes."""
        return self.diagram_with_names(views, None)

    def diagram_with_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of joint views with the names of their outcomes."""
        raise NotImplementedError


REST_LABEL = "rest"
_MIN_REST_SHARE = 1e-3  # fraction of the row total, below which the rest is summed directly


def outcome_names(data: Predictions | Tally, lens: Lens) -> tuple[str, ...] | None:
    """The names of the outcomes of a joint lens; None if they have no names."""
    names = [str(label) for label in data.classes]
    if isinstance(lens, Canonical):
        return tuple(names)
    if isinstance(lens, Groups):
        return tuple(" + ".join(names[class_number(c, data.classes)] for c in block) for block in lens.blocks)
    if isinstance(lens, TopK):
        return (
            *("1st choice", "2nd choice", "3rd choice")[: lens.size],
            *map(_ordinal_choice, range(3, lens.size)),
            REST_LABEL,
        )
    return None


def label_outcomes(view: View, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the outcomes of a view, or numbers if it has no names."""
    m = view.p.shape[1]
    return tuple(names) if names is not None and len(names) == m else tuple(str(k) for k in range(m))


def check_joint(view: View, name: str) -> None:
    """Raise an error for a view without a probability vector per row."""
    if not view.joint:
        raise InputError(
            "TO704",
            f"The diagram {name} requires a probability vector per row.",
            f"the view {view.name!r} with one probability per row",
            "For two outcomes or a single class, use the diagram reliability; for more classes, use lens='canonical'.",
        )


def closest_rivals(view: View) -> Array:
    """The closest rival of each outcome, (m,): the outcome with the largest Σw p_j p_c.

    It does not depend on the observed outcomes, so that the tests of the cells keep their level.
    """
    p = view.p.astype(np.float64)
    cross_moments = (view.w[:, None] * p).T @ p
    np.fill_diagonal(cross_moments, -1.0)
    return np.argmax(cross_moments, axis=1)


def label_rest(names: Sequence[str]) -> str:
    """A label for the remaining outcomes that differs from all class names.

    >>> label_rest(["cat", "dog"]), label_rest(["rest", "dog"])
    ('rest', 'the rest')
    """
    return next((name for name in (REST_LABEL, "the rest", "all the rest") if name not in names), "rest of them")


def row_totals(view: View) -> tuple[Array, Array]:
    """Sums of the probabilities and of the outcomes of each row."""
    return view.p.sum(axis=1, dtype=np.float64), view.y.sum(axis=1, dtype=np.float64)


def rival_view(view: View, outcome: int, rival: int, name: str, totals: tuple[Array, Array] | None = None) -> View:
    """The joint view of an outcome, another one, and the combined rest; `sums` are the `row_totals`, to reuse them."""

    def three_columns(x: Array, total: Array) -> Array:
        """The columns (n, 3) of outcome, rival and rest, from the columns x (n, m) and their sum (n,)."""
        a, b = x[:, outcome].astype(np.float64), x[:, rival].astype(np.float64)
        rest = total - a - b
        # If the difference is nearly 0, it is a rounding error: sum the rest directly, so that 0 stays 0.
        has_no_rest = np.flatnonzero(rest < _MIN_REST_SHARE * total)
        rest[has_no_rest] = np.delete(x[has_no_rest], (outcome, rival), axis=1).sum(axis=1, dtype=np.float64)
        return np.stack([a, b, rest], axis=1)

    p_totals, y_totals = row_totals(view) if totals is None else totals
    w = None if view.is_unweighted else view.w
    further_sums = None if view.is_rows else {"ww": view.sums("ww")}
    return View(
        three_columns(view.p, p_totals),
        three_columns(view.y, y_totals),
        w,
        n=None if w is None else view.n,
        sums=further_sums,
        name=name,
        classes=3,
    )


def _ordinal_choice(rank: int) -> str:
    """Name a rank that counts from 0, such as `4th choice`."""
    return f"{rank + 1}th choice"

"""Which outcomes stand at the corners: the classes, the groups, the ranks; or a class, its rival and the rest?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds.data.predictions import Predictions
from trueodds.lenses.lens import Canonical, Groups, Lens, TopK, class_number
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally

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
        return (*("1st choice", "2nd choice", "3rd choice")[: lens.size], *map(_th, range(3, lens.size)), REST)
    return None


def named(view: View, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of a view's outcomes, numbers where it has none."""
    m = view.p.shape[1]
    return tuple(names) if names is not None and len(names) == m else tuple(str(k) for k in range(m))


def joint(view: View, name: str) -> None:
    """Refuse a view without a vector per row."""
    if not view.joint:
        raise InputError(
            "TO704",
            f"The diagram {name} shows the probabilities of several outcomes at once; here is one per row.",
            f"the view {view.name!r}",
            "Two outcomes, or one class, are drawn by the diagram reliability; for more use lens='canonical'.",
        )


def rivals(view: View) -> Array:
    """The other outcome that the model puts most probability beside each one, (m,): the largest Σw p_j p_c.

    Outcomes have no say in it, so that tests of what is drawn keep their level.
    """
    p = view.p.astype(np.float64)
    cross_moments = (view.w[:, None] * p).T @ p
    np.fill_diagonal(cross_moments, -1.0)
    return np.argmax(cross_moments, axis=1)


def rest_beside(names: Sequence[str]) -> str:
    """What the rest is called where a class may have that name.

    >>> rest_beside(["cat", "dog"]), rest_beside(["rest", "dog"])
    ('rest', 'the rest')
    """
    return next((name for name in (REST, "the rest", "all the rest") if name not in names), "rest of them")


def totals(view: View) -> tuple[Array, Array]:
    """What all probabilities of a row sum to, and all its outcomes."""
    return view.p.sum(axis=1, dtype=np.float64), view.y.sum(axis=1, dtype=np.float64)


def against(view: View, one: int, other: int, name: str, sums: tuple[Array, Array] | None = None) -> View:
    """The joint view of an outcome, another, and all the rest as one; `sums` are the `totals`, which many share."""

    def three(x: Array, total: Array) -> Array:
        a, b = x[:, one].astype(np.float64), x[:, other].astype(np.float64)
        rest = total - a - b
        # What is left of nearly nothing is rounding: there the rest itself is summed, and 0 stays 0.
        little = np.flatnonzero(rest < _LITTLE * total)
        rest[little] = np.delete(x[little], (one, other), axis=1).sum(axis=1, dtype=np.float64)
        return np.stack([a, b, rest], axis=1)

    of_p, of_y = totals(view) if sums is None else sums
    w = None if view.plain else view.w
    squares = None if view.is_rows else {"ww": view.sums("ww")}
    return View(
        three(view.p, of_p), three(view.y, of_y), w, n=None if w is None else view.n, sums=squares, name=name, classes=3
    )


def _th(place: int) -> str:
    return f"{place + 1}th choice"

"""Look up a lens by name or callable, and choose the default lens for predictions."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

from trueodds.core.errors import InputError, describe
from trueodds.core.settings import check, parse_digits
from trueodds.core.suggestions import suggest_names
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Class, ClassName, Classwise, Groups, Positive
from trueodds.lenses.custom import Custom, Psi
from trueodds.lenses.ranked import Confidence, Rank, TopK, TopLabel

NAMES = (
    "canonical",
    "confidence",
    "positive",
    "classwise",
    "top-label",
    "top-2",
    "rank:2",
    "class:0",
    "groups:[[0,1],[2]]",
)


def as_lens(lens: str | Lens | Psi) -> Lens:
    """The lens behind a name, or a user's own ψ.

    >>> [str(as_lens(name)) for name in ("confidence", "top-2", "rank:2", "class:cat", "groups:[[0,1],[2]]")]
    ['confidence', 'top-2', 'rank:2', 'class:cat', 'groups:[[0,1],[2]]']
    """
    if isinstance(lens, Lens):
        return lens
    if callable(lens):
        return Custom(lens)
    if not isinstance(lens, str):
        raise InputError(
            "TO204", "A lens is a name, a Lens or a callable.", describe(lens), f"Names: {', '.join(NAMES)}."
        )
    plain: dict[str, type[Lens]] = {
        "canonical": Canonical, "confidence": Confidence, "positive": Positive, "classwise": Classwise,
        "top-label": TopLabel,
    }  # fmt: skip
    if lens in plain:
        return plain[lens]()
    for prefix, kind in (("top-", TopK), ("rank:", Rank)):
        if lens.startswith(prefix) and (number := parse_digits(lens.removeprefix(prefix))) is not None:
            return kind(number)
    if match := re.fullmatch(r"class:(.+)", lens, re.DOTALL):
        return Class(match[1])
    if lens.startswith("groups:"):
        return Groups(_blocks(lens))
    raise InputError("TO204", "There is no lens of that name.", describe(lens), suggest_names(lens[:80], NAMES))


def _blocks(text: str) -> tuple[tuple[Any, ...], ...]:
    try:
        blocks = json.loads(text.removeprefix("groups:"))
        return check("groups:", blocks, tuple[tuple[ClassName, ...], ...])
    except (ValueError, RecursionError):  # of which an InputError is one
        raise InputError(
            "TO204", "groups: takes a list of lists of classes.", describe(text), "For instance groups:[[0,1],[2]]."
        ) from None


class HasClasses(Protocol):
    """Predictions or a tally of them: what a default depends on."""

    @property
    def kind(self) -> str:
        """`classes`, `confidence` or `multilabel`."""
        ...

    @property
    def k(self) -> int:
        """How many classes."""
        ...


def default_lens(preds: HasClasses) -> Lens:
    """Positive for two classes, confidence above, every label for itself where labels are independent."""
    if preds.kind == "multilabel":
        return Classwise()
    if preds.kind == "confidence" or preds.k > 2:
        return Confidence()
    return Positive()

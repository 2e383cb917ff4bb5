"""Look up a lens by its name, make one from a callable, and choose the default lens for predictions."""

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

# Names, and an example of each pattern.
LENS_NAMES = (
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
_TYPES_BY_NAME: dict[str, type[Lens]] = {
    "canonical": Canonical,
    "confidence": Confidence,
    "positive": Positive,
    "classwise": Classwise,
    "top-label": TopLabel,
}


def as_lens(lens: str | Lens | Psi) -> Lens:
    """Resolve a lens from its name or a user-defined ψ.

    >>> [str(as_lens(name)) for name in ("confidence", "top-2", "rank:2", "class:cat", "groups:[[0,1],[2]]")]
    ['confidence', 'top-2', 'rank:2', 'class:cat', 'groups:[[0,1],[2]]']
    """
    if isinstance(lens, Lens):
        return lens
    if callable(lens):
        return Custom(lens)
    if not isinstance(lens, str):
        raise InputError(
            "TO204", "`lens` must be a name, a Lens or a callable.", describe(lens), f"Names: {', '.join(LENS_NAMES)}."
        )
    if lens in _TYPES_BY_NAME:
        return _TYPES_BY_NAME[lens]()
    for prefix, lens_type in (("top-", TopK), ("rank:", Rank)):
        if lens.startswith(prefix) and (size := parse_digits(lens.removeprefix(prefix))) is not None:
            return lens_type(size)
    if match := re.fullmatch(r"class:(.+)", lens, re.DOTALL):
        return Class(match[1])
    if lens.startswith("groups:"):
        return Groups(_parse_blocks(lens))
    raise InputError("TO204", "Unknown lens.", describe(lens), suggest_names(lens[:80], LENS_NAMES))


def _parse_blocks(text: str) -> tuple[tuple[Any, ...], ...]:
    try:
        blocks = json.loads(text.removeprefix("groups:"))
        return check("groups:", blocks, tuple[tuple[ClassName, ...], ...])
    except (ValueError, RecursionError):  # of which an InputError is one
        raise InputError(
            "TO204", "groups: takes a list of lists of classes.", describe(text), "For instance groups:[[0,1],[2]]."
        ) from None


class HasClasses(Protocol):
    """Predictions or a tally, on which the default lens depends."""

    @property
    def kind(self) -> str: ...

    @property
    def k(self) -> int: ...


def default_lens(preds: HasClasses) -> Lens:
    """Default lens: positive for two classes, confidence for more, class-wise for independent labels."""
    if preds.kind == "multilabel":
        return Classwise()
    if preds.kind == "confidence" or preds.k > 2:
        return Confidence()
    return Positive()

"""Which binary views a tally stores, and which lenses can be read from them."""

from __future__ import annotations

from typing import Any

from trueodds.lenses import classes as lenses
from trueodds.lenses.base import Lens

FIRST = ("confidence", "top-1", "rank:1")  # names of the same view


def default_views(kind: str, k: int, *, group: bool = False) -> tuple[int, range]:
    """Number of ranks and the classes that are kept by default. Groups keep only those of the default lens."""
    if kind == "confidence":
        return 1, range(0)
    if kind == "multilabel":
        return 0, range(k)
    if group:
        return (0, range(1, 2)) if k == 2 else (1, range(0))
    return (1 if k == 2 else 3), range(k)


def view_names(ranks: int, classes: range) -> tuple[str, ...]:
    """Slot names of these ranks and classes, by number."""
    return (*("confidence", "rank:2", "rank:3")[:ranks], *(f"class:{c}" for c in classes))


def stored_views_of_lens(lens: Lens, kind: str, classes: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Slots of the views of a lens, each with the name of the view; empty for a joint lens."""
    of_classes = kind != "confidence"
    if lens.name in FIRST:
        return [("confidence", lens.name)]
    if isinstance(lens, (lenses.Positive, lenses.Canonical)):
        return [("class:1", lens.name)] if kind == "classes" and len(classes) == 2 else []
    if isinstance(lens, lenses.Class) and of_classes:
        c = lenses.class_number(lens.which, classes)
        return [(f"class:{c}", f"class:{classes[c]}")]
    if isinstance(lens, lenses.Classwise) and of_classes:
        return [(f"class:{c}", f"class:{name}") for c, name in enumerate(classes)]
    return [(lens.name, lens.name)]


def lens_names(slots: tuple[str, ...], kind: str, classes: tuple[Any, ...]) -> list[str]:
    """Names of the lenses that these slots provide."""
    numbers = [name for name in slots if name.startswith("class:")]
    names = [name for name in slots if not name.startswith("class:")]
    if kind == "classes" and len(classes) == 2 and "class:1" in numbers:
        names += ["positive", "canonical"]
    if len(numbers) == len(classes):
        names.append("classwise")
    return names + [f"class:{classes[int(name.removeprefix('class:'))]}" for name in numbers]

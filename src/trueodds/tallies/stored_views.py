"""Which binary views a tally stores, and which lenses can be read from them."""

from __future__ import annotations

from typing import Any

from trueodds.lenses import classes as lenses
from trueodds.lenses.base import Lens

LARGEST_PROBABILITY_LENSES = ("confidence", "top-1", "rank:1")  # lens names of the view of the largest probability


def default_views(kind: str, k: int, *, is_group: bool = False) -> tuple[int, range]:
    """Number of ranks and the classes that are stored by default. Groups store only those of the default lens."""
    if kind == "confidence":
        return 1, range(0)
    if kind == "multilabel":
        return 0, range(k)
    if is_group:
        return (0, range(1, 2)) if k == 2 else (1, range(0))
    return (1 if k == 2 else 3), range(k)


def view_names(ranks: int, classes: range) -> tuple[str, ...]:
    """Names of the stored views of these ranks and classes, with classes by number."""
    return (*("confidence", "rank:2", "rank:3")[:ranks], *(f"class:{c}" for c in classes))


def stored_views_of_lens(lens: Lens, kind: str, classes: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Stored views of a lens, each with the view's name; empty if `positive` or `canonical` lacks two classes."""
    has_class_probabilities = kind != "confidence"
    if lens.name in LARGEST_PROBABILITY_LENSES:
        return [("confidence", lens.name)]
    if isinstance(lens, (lenses.Positive, lenses.Canonical)):
        return [("class:1", lens.name)] if kind == "classes" and len(classes) == 2 else []
    if isinstance(lens, lenses.Class) and has_class_probabilities:
        c = lenses.class_number(lens.class_name, classes)
        return [(f"class:{c}", f"class:{classes[c]}")]
    if isinstance(lens, lenses.Classwise) and has_class_probabilities:
        return [(f"class:{c}", f"class:{name}") for c, name in enumerate(classes)]
    return [(lens.name, lens.name)]


def lens_names(stored_names: tuple[str, ...], kind: str, classes: tuple[Any, ...]) -> list[str]:
    """Names of the lenses that these stored views provide."""
    class_view_names = [name for name in stored_names if name.startswith("class:")]
    names = [name for name in stored_names if not name.startswith("class:")]
    if kind == "classes" and len(classes) == 2 and "class:1" in class_view_names:
        names += ["positive", "canonical"]
    if len(class_view_names) == len(classes):
        names.append("classwise")
    return names + [f"class:{classes[int(name.removeprefix('class:'))]}" for name in class_view_names]

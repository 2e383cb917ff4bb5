"""Names of the binary views that a tally stores, and of the lenses that can be read from them."""

from __future__ import annotations

from typing import Any

from trueodds.lenses import classes as lenses
from trueodds.lenses.base import Lens

LARGEST_PROBABILITY_LENSES = ("confidence", "top-1", "rank:1")  # lenses that are read from the view `confidence`


def default_views(kind: str, k: int, *, is_group: bool = False) -> tuple[int, range]:
    """Return which views are stored by default: the number of largest probabilities, and the classes.

    The tally of a group stores only the views of the default lens.
    """
    if kind == "confidence":
        return 1, range(0)
    if kind == "multilabel":
        return 0, range(k)
    if is_group:
        return (0, range(1, 2)) if k == 2 else (1, range(0))
    return (1 if k == 2 else 3), range(k)


def view_names(ranks: int, classes: range) -> tuple[str, ...]:
    """Return the names of the views of the `ranks` largest probabilities and of the classes, which have numbers."""
    return (*("confidence", "rank:2", "rank:3")[:ranks], *(f"class:{c}" for c in classes))


def stored_views_of_lens(lens: Lens, kind: str, classes: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Return the views from which a lens is read: pairs of the stored name and the name of the view in the lens.

    The stored name has the number of a class, the other one its name. The list is empty if there are more than two
    classes and the lens is `positive` or `canonical`. Whether the views are stored is not checked.
    """
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
    """Return the names of the lenses that can be read from these stored views."""
    class_view_names = [name for name in stored_names if name.startswith("class:")]
    names = [name for name in stored_names if not name.startswith("class:")]
    if kind == "classes" and len(classes) == 2 and "class:1" in class_view_names:
        names += ["positive", "canonical"]
    if len(class_view_names) == len(classes):
        names.append("classwise")
    return names + [f"class:{classes[int(name.removeprefix('class:'))]}" for name in class_view_names]

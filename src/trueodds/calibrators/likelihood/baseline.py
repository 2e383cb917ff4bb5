"""Which class are the odds of the others taken against? By number, or by name where names are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trueodds.core.errors import InputError, describe

_NAMED = "class:"  # as in lens="class:cat"
_LISTED = 20


def check_baseline(baseline: Any) -> None:
    """Refuse what names no class."""
    if baseline is None or (isinstance(baseline, str) and baseline.startswith(_NAMED)):
        return
    if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
        raise InputError(
            "TO203", "baseline is the number of a class, or class: and its name.", describe(baseline),
            "For instance -1, or 'class:cat'.",
        )  # fmt: skip


def numbered(baseline: Any, classes: Sequence[Any]) -> Any:
    """The number behind a name, `class:cat`; numbers stay as they are.

    >>> numbered("class:dog", ["cat", "dog"]), numbered(-1, ["cat", "dog"])
    (1, -1)
    """
    if not isinstance(baseline, str):
        return baseline
    named = [str(name) for name in classes]
    if (name := baseline.removeprefix(_NAMED)) in named:
        return named.index(name)
    known = ", ".join(f"{j} is {label}" for j, label in enumerate(named[:_LISTED]))
    more = f" and {len(named) - _LISTED:,} more" if len(named) > _LISTED else ""
    raise InputError("TO203", f"baseline names no class: {known}{more}.", describe(baseline), "Give one of these.")


def baseline_of(baseline: Any, k: int) -> int:
    """Its number among k classes from 0 on; where none is given the last, of two classes the first.

    >>> baseline_of(None, 2), baseline_of(None, 5), baseline_of(-2, 5)
    (0, 4, 3)
    """
    if baseline is None:
        return 0 if k == 2 else k - 1
    if isinstance(baseline, str):
        raise InputError(
            "TO203", "The names of the classes are not known here.", describe(baseline), f"Their number: 0 to {k - 1}."
        )
    if not -k <= baseline < k:
        got = f"{baseline} of {k} classes"
        raise InputError("TO203", "baseline is the number of a class.", got, f"From {-k} to {k - 1}.")
    return int(baseline) % k

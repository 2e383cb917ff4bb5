"""A family's table from member name to the module and class that hold it, loaded on first use."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trueodds.core import synonyms
from trueodds.core.errors import InputError

# Where the names of the other families are looked up when one is not known in its own: the verb and its table.
FAMILIES = {
    "estimator": ("measure", "trueodds.estimators:ESTIMATORS"),
    "test": ("test", "trueodds.hypotests:TESTS"),
    "calibrator": ("fit", "trueodds.calibrators:CALIBRATORS"),
    "diagram": ("draw", "trueodds.diagrams:DIAGRAMS"),
}


def near(word: str, known: Iterable[str]) -> str:
    """The fix for an unknown word: what it is called here, the closest known ones, else all of them.

    >>> near("quantile", ["equal-mass", "uniform"]), near("unifrom", ["equal-mass", "uniform"])
    ('Did you mean equal-mass?', 'Did you mean uniform?')
    """
    known = sorted(known)
    return did_you_mean(word, known) or listed(known)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question whether one of the known words was meant; empty where none is close.

    >>> did_you_mean("n_bootstrap", ["level", "resamples"]), did_you_mean("eggs", ["level", "resamples"])
    ('Did you mean resamples?', '')
    """
    known = sorted(known)
    close = synonyms.resolve(word, known) or difflib.get_close_matches(word.lower(), known, n=3)
    return f"Did you mean {' or '.join(close)}?" if close else ""


def listed(names: Sequence[str], max_length: int = 200) -> str:
    """The known names as a sentence; of those that take more than so many characters the first, and how many follow.

    >>> listed(["beta", "platt"]), listed(["beta", "platt", "isotonic"], max_length=12)
    ('Known: beta, platt.', 'Known: beta, platt and 1 more.')
    """
    size, shown = 0, 0
    for name in names:
        size += len(name) + 2 * (shown > 0)
        if size > max_length and shown:
            break
        shown += 1
    more = f" and {len(names) - shown:,} more" if shown < len(names) else ""
    return f"Known: {', '.join(names[:shown])}{more}."


class Registry:
    """The members of one family; naming them loads nothing, asking for one loads its module.

    >>> colors = Registry("color", {"note": "trueodds.core.errors:Note"})
    >>> colors.names(), colors.load("note").__name__
    (('note',), 'Note')
    """

    def __init__(self, kind: str, table: Mapping[str, str], owners: Mapping[str, str] | None = None) -> None:
        """`owners` names the member of a setting that others are asked for by mistake."""
        self.kind = kind
        self._table = dict(table)
        self._owners = dict(owners or {})

    def names(self) -> tuple[str, ...]:
        """Every member's name, in the order of the table."""
        return tuple(self._table)

    def load(self, name: str) -> Any:
        """The member's class; an unknown name is an InputError that lists the near ones."""
        if name not in self._table:
            name = str(name)[:80]
            raise InputError("TO201", f"There is no {self.kind} of that name.", repr(name), self._hint(name))
        module, _, attribute = self._table[name].partition(":")
        return getattr(importlib.import_module(module), attribute)

    def _hint(self, word: str) -> str:
        """What an unknown name is called here, or in which other family it is; else the closest ones."""
        if self.kind not in FAMILIES or synonyms.resolve(word, self._table):
            return near(word, self._table)
        for kind, (verb, where) in FAMILIES.items():
            module, _, table = where.partition(":")
            others = getattr(importlib.import_module(module), table)
            if resolved := synonyms.resolve(word, others.names()):
                name = synonyms.target(resolved[0])
                article = "an" if kind[0] in "aeiou" else "a"
                return f"{name} is {article} {kind}: to.{verb}(preds, {name!r})."
        return synonyms.unrelated(word) or near(word, self._table)

    def takes(self, name: str, setting: str) -> bool:
        """Whether the member has a setting of that name."""
        return setting in self._accepted(name)

    def _accepted(self, name: str) -> tuple[str, ...]:
        method = self.load(name)
        return tuple(method.accepts() if hasattr(method, "accepts") else settings_of(method))

    def check(self, name: str, settings: Iterable[str], also: Iterable[str] = ()) -> None:
        """Refuse a setting that neither the member nor its caller (`also`) takes, and say which they take."""
        known = (*self._accepted(name), *also)
        for key in settings:
            if key not in known:
                fix = near(key[:80], known) if known else "It has no settings."
                if key in self._owners and not fix.startswith("Did you mean"):
                    fix += f" {key} is a setting of {self.kind} {self._owners[key]}."
                raise InputError("TO202", f"{self.kind} {name} takes no setting of that name.", repr(key[:80]), fix)

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """The member built from its settings; an unknown keyword is an InputError that lists the near ones."""
        method = self.load(name)
        self.check(name, settings)
        if hasattr(method, "from_settings"):
            return method.from_settings(name, **settings)
        return method(**settings)


def settings_of(method: Any) -> tuple[str, ...]:
    """The names of a dataclass's settings."""
    return tuple(field.name for field in dataclasses.fields(method) if field.init)

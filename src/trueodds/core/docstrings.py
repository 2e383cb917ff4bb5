"""Read the sections of numpydoc docstrings, and insert the text of parameters that is written once, elsewhere."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from textwrap import indent
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Any)

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$\n?", re.MULTILINE)
_ENTRY = re.compile(r"^(\S[^\n:]*?)(?: : ([^\n]*))?\n((?:[ ]{4}[^\n]*\n?|\n(?=\s*[ ]{4}))+)", re.MULTILINE)
_RAISES = re.compile(r"^[ \t]*Raises\n", re.MULTILINE)
_REFERENCE = re.compile(r"^([ \t]*)(\S[^\n:]*?) : (?:([^\n]*), )?as in `(\w+)`$", re.MULTILINE)


def docstring_sections(docstring: str | None) -> dict[str, str]:
    """Return the text of each section of a numpydoc docstring by title; the text before the first section under ''.

    >>> docstring_sections('''Summary.
    ...
    ...     Returns
    ...     -------
    ...     int
    ...         The size.
    ...     ''')
    {'': 'Summary.', 'Returns': 'int\\n    The size.'}
    """
    summary, *titles_and_texts = [text.strip("\n") for text in _TITLE.split(inspect.cleandoc(docstring or ""))]
    return {"": summary} | dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))


def insert_shared_parameters(documented: Documented) -> Documented:
    """Insert into a docstring the entries that other docstrings have, where it refers to them; usable as a decorator.

    An entry of the section Parameters or Raises may stand for entries of the same names in the docstring of a base
    class, or of a class or function that is known in the module::

        Parameters
        ----------
        partition, distance : as in `BinnedError`
        order : float, default=inf, as in `BinnedError`

    The first line becomes two entries, with types, defaults and texts of `BinnedError`. The second one keeps its own
    type and default, and gets the text. A class needs no such reference for what it inherits unchanged: it gets the
    entries of its base classes for the fields that it does not describe, and their section Raises if it has none.

    Subclasses of `Settings`, and functions with `checks_arguments` or `accept_separate_arrays`, are treated when they
    are defined, so that `help`, IPython and Sphinx see the complete docstring; other functions and classes need the
    decorator. Parameters that no class or function of its own has can be documented in the docstring of a class that
    exists for this purpose. A reference that cannot be resolved remains as it is (`tests/test_docstrings.py` allows
    none in the library).
    """
    docstring = documented.__doc__
    if docstring and "as in `" in docstring:
        docstring = resolve_references(docstring, lambda name: _find_source(documented, name).__doc__)
        documented.__doc__ = docstring
    if docstring and isinstance(documented, type):
        documented.__doc__ = _with_inherited_entries(documented, docstring)
    return documented


def _with_inherited_entries(cls: type, docstring: str) -> str:
    """Return the docstring of a class with the entries that it lacks and its base classes have."""
    bases = [base for base in cls.__mro__[1:] if base.__doc__]
    fields = [field.name for base in bases[::-1] if is_dataclass(base) for field in dataclass_fields(base)]
    own_annotations = vars(cls).get("__annotations__", {}).items()
    fields = list(dict.fromkeys([*fields, *(name for name, hint in own_annotations if "ClassVar" not in str(hint))]))
    missing = [name for name in fields if f" {name} : " not in docstring and f"\n{name} : " not in docstring]
    if missing:
        described_names = parameter_entries(docstring)
        missing = [name for name in missing if name not in described_names]
    known: dict[str, tuple[str | None, str]] = {}
    for base in bases[::-1] if missing else ():
        known |= parameter_entries(base.__doc__)
    inherited = {name: _format_entry(name, *known[name]) for name in missing if name in known}
    raising = [base for base in bases if _RAISES.search(base.__doc__ or "")]
    has_errors = bool(_RAISES.search(docstring)) or not raising
    if has_errors and not inherited:
        return docstring
    sections = docstring_sections(docstring)
    if inherited:
        described = {found[1].split(", ")[0]: found[0].rstrip() for found in _entries(sections.get("Parameters", ""))}
        entries = described | inherited
        order = [name for name in fields if name in entries]
        sections["Parameters"] = "\n".join(entries[name] for name in dict.fromkeys([*order, *entries]))
    if not has_errors:
        sections["Raises"] = docstring_sections(raising[0].__doc__)["Raises"]
    first = [title for title in ("Parameters", "Attributes", "Raises") if title in sections]
    titles = dict.fromkeys([*first, *list(sections)[1:]])
    text = "\n\n".join([sections[""], *(f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in titles)])
    margin = min(re.findall(r"\n( *)(?=\S)", docstring), default="")
    return indent(text, margin).removeprefix(margin)


def resolve_references(docstring: str, find_docstring: Callable[[str], str | None]) -> str:
    """Return a docstring with the entries to which it refers; `find_docstring` returns that of a class or function."""
    return _REFERENCE.sub(lambda found: _shared_entries(found, find_docstring(found[4])), docstring)


def _shared_entries(found: re.Match[str], shared_docstring: str | None) -> str:
    """Return the entries that a reference stands for, indented as it is."""
    margin, names, head, _ = found.groups()
    known = parameter_entries(shared_docstring)
    entries = []
    for name in names.split(", "):
        if name not in known:
            return found[0]
        shared_head, text = known[name]
        entries += [f"{margin}{line}".rstrip() for line in _format_entry(name, head or shared_head, text).split("\n")]
    return "\n".join(entries)


def _format_entry(name: str, head: str | None, text: str) -> str:
    return f"{name} : {head}\n{text}" if head else f"{name}\n{text}"


def _find_source(documented: Any, name: str) -> Any:
    """Return the base class, or the class or function known in the module, to which a docstring refers by name."""
    for base in getattr(documented, "__mro__", ())[1:]:
        if base.__name__ == name:
            return base
    module = sys.modules.get(documented.__module__)
    namespace: Mapping[str, Any] = getattr(documented, "__globals__", None) or getattr(module, "__dict__", {})
    return namespace.get(name)


def _entries(section: str) -> list[tuple[str, str, str | None, str]]:
    """Return each entry of a section, with its names, its type and its text."""
    return [(found[0], found[1], found[2], found[3]) for found in _ENTRY.finditer(f"{section}\n")]


def parameter_entries(docstring: str | None) -> dict[str, tuple[str | None, str]]:
    """Return the type and the text of every parameter and error that a docstring describes, by name."""
    sections = docstring_sections(docstring)
    return {
        name: (head, text.strip("\n"))
        for title in ("Parameters", "Raises")
        for _, names, head, text in _entries(sections.get(title, ""))
        for name in names.split(", ")
    }

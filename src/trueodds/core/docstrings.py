"""Read the sections of numpydoc docstrings, and insert the text of parameters that is written once, elsewhere."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Any)

_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}$\n?", re.MULTILINE)
_ENTRY = re.compile(r"^(\S[^\n:]*?)(?: : ([^\n]*))?\n((?:[ ]{4}[^\n]*\n?|\n(?=\s*[ ]{4}))+)", re.MULTILINE)
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
    type and default, and gets the text. Subclasses of `Settings`, and functions with `checks_arguments` or
    `accept_separate_arrays`, are treated when they are defined, so that `help`, IPython and Sphinx see the complete
    docstring; other functions and classes need the decorator. Parameters that no class or function of its own has can
    be documented in the docstring of a class that exists for this purpose. A reference that cannot be resolved
    remains as it is (`tests/test_docstrings.py` allows none in the library).
    """
    docstring = documented.__doc__
    if docstring and "as in `" in docstring:
        documented.__doc__ = resolve_references(docstring, lambda name: _find_source(documented, name).__doc__)
    return documented


def resolve_references(docstring: str, find_docstring: Callable[[str], str | None]) -> str:
    """Return a docstring with the entries to which it refers; `find_docstring` returns that of a class or function."""
    return _REFERENCE.sub(lambda found: _shared_entries(found, find_docstring(found[4])), docstring)


def _shared_entries(found: re.Match[str], shared_docstring: str | None) -> str:
    """Return the entries that a reference stands for, indented as it is."""
    indent, names, head, _ = found.groups()
    known = parameter_entries(shared_docstring)
    entries = []
    for name in names.split(", "):
        if name not in known:
            return found[0]
        shared_head, text = known[name]
        entry_head = head or shared_head
        lines = [f"{name} : {entry_head}" if entry_head else name, *text.split("\n")]
        entries += [f"{indent}{line}".rstrip() for line in lines]
    return "\n".join(entries)


def _find_source(documented: Any, name: str) -> Any:
    """Return the base class, or the class or function known in the module, to which a docstring refers by name."""
    for base in getattr(documented, "__mro__", ())[1:]:
        if base.__name__ == name:
            return base
    module = sys.modules.get(documented.__module__)
    namespace: Mapping[str, Any] = getattr(documented, "__globals__", None) or getattr(module, "__dict__", {})
    return namespace.get(name)


def parameter_entries(docstring: str | None) -> dict[str, tuple[str | None, str]]:
    """Return the type and the text of every parameter and error that a docstring describes, by name."""
    sections = docstring_sections(docstring)
    return {
        name: (head, text.strip("\n"))
        for title in ("Parameters", "Raises")
        for names, head, text in _ENTRY.findall(f"{sections.get(title, '')}\n")
        for name in names.split(", ")
    }

"""Docstrings as reStructuredText: characters that mean something else in it are escaped."""

from __future__ import annotations

import inspect
import re
from typing import Any

CODE_OR_MATH = re.compile(r"(``.+?``|:\w+:`[^`]*`|`[^`]*`_?)")
BAR = re.compile(r"(?<!\\)\|")
NUMPYDOC_LABEL = re.compile(r"\bR[0-9a-f]{12}-(?=\w)")  # what numpydoc puts before the name of a reference
TRAILING_UNDERSCORE = re.compile(r"(?<![\\\w*])([A-Za-z]\w*)_(?=[\s.,;:)\"'}]|$)")


def escape_line(line: str) -> str:
    r"""Return a line of text whose vertical bars and final underscores are literal.

    >>> escape_line("mean of |r − p| and ``|x|``; classes_ of the fit")
    'mean of \\|r − p\\| and ``|x|``; classes\\_ of the fit'
    """
    parts = CODE_OR_MATH.split(line)
    for number in range(0, len(parts), 2):
        parts[number] = TRAILING_UNDERSCORE.sub(r"\1\\_", BAR.sub(r"\|", parts[number]))
    return "".join(parts)


def escape_docstring(lines: list[str]) -> list[str]:
    r"""Return a docstring with escaped text. Formulas of their own, examples, and literal blocks stay as they are.

    >>> escape_docstring(["a |b|", "", ".. math::", "", "   |x|", "", ">>> x | y"])
    ['a \\|b\\|', '', '.. math::', '', '   |x|', '', '>>> x | y']
    """
    escaped = []
    block_indent: int | None = None
    is_example = False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.strip() and block_indent is not None and indent <= block_indent:
            block_indent = None
        is_example = line.lstrip().startswith(">>>") or (is_example and bool(line.strip()))
        if block_indent is None and not is_example:
            if line.lstrip().startswith(".. ") or line.rstrip().endswith("::"):
                block_indent = indent if line.lstrip().startswith((".. math::", ".. code")) else None
            else:
                line = escape_line(line)
        escaped.append(line)
    return escaped


def shorten_citation(text: str) -> str:
    """Return the text of a citation without the prefix that numpydoc adds to keep references apart.

    >>> shorten_citation("[Rdf5bcdeac2ce-1]")
    '[1]'
    """
    return NUMPYDOC_LABEL.sub("", text)


def shorten_citations(app: Any, document: Any) -> None:
    """Shorten the citations in a text. numpydoc does so only if they have a way back, which autodoc leaves out."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    for reference in document.findall(pending_xref):
        if reference.get("refdomain") == "citation":
            for text in list(reference.findall(nodes.Text)):
                text.parent.replace(text, nodes.Text(shorten_citation(text.astext())))


def escape_for_autodoc(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring that numpydoc has formatted."""
    lines[:] = escape_docstring(lines)


def skip_foreign_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that scikit-learn adds to a class."""
    module = getattr(obj, "__module__", None) or ""
    return True if module.startswith("sklearn") or name.endswith("_request") else None


def show_settings(app: Any, what: str, name: str, obj: Any, options: Any, signature: Any, returns: Any) -> Any:
    """Return the signature of the constructor of a class, without types, which the parameters state."""
    if what != "class":
        return None
    try:
        parameters = inspect.signature(obj).parameters.values()
    except (TypeError, ValueError):
        return None
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return str(inspect.Signature(plain)), None

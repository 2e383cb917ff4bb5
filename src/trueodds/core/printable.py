r"""Escape control characters in text from data, so that it can neither steer a terminal nor reorder the text around it.

Names of columns, classes, groups and files may hold terminal escapes, C1 controls, or controls of the text direction.
Results keep the real names. Wherever text is put out (`str`, the terminal, pictures, pages, messages) such a character
is written as Python would write it in a literal, `\x1b` or `\u202e`. So are lone surrogates, which no encoding takes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# C0 but the line feed, DEL and C1; the controls of the direction; the separators of lines and paragraphs; lone surrogates.
_UNSAFE = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE = re.compile(f"[\n{_UNSAFE}]")
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_IN_JSON = re.compile(r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..)")


def printable(text: object) -> str:
    r"""The text in one line, every unsafe character escaped. What is escaped already stays as it is.

    >>> print(printable("a\x1b[31m\u202eb"))
    a\x1b[31m\u202eb
    >>> printable("Größe ≤ 3") == "Größe ≤ 3"
    True
    """
    text = str(text)
    return text if text.isprintable() else _IN_A_LINE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """The same, but line breaks stay."""
    return _IN_LINES.sub(_escape, text)


def printable_tree(value: Any) -> Any:
    """Mappings and lists as they are, with all text in them printable.

    >>> printable_tree({"label": ["a\\x85", 1]})
    {'label': ['a\\\\x85', 1]}
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable_tree(key): printable_tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        shown = map(printable_tree, value)
        return tuple(shown) if isinstance(value, tuple) else list(shown)
    return value


def printable_json(text: str) -> str:
    r"""JSON text with the characters that a terminal would obey written as `\u....`: the same document.

    >>> print(printable_json('"a\u202e"'))
    "a\u202e"
    """
    return text if text.isprintable() else _IN_LINES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def without_surrogates(text: str) -> str:
    r"""JSON text in ASCII in which a lone surrogate, which many readers refuse, is the text of its escape.

    >>> print(without_surrogates(r'"a\udcff"'))
    "a\\udcff"
    """
    return _IN_JSON.sub(lambda match: f"\\{match[1]}" if match[1] else match[0], text)


def has_surrogates(text: str) -> bool:
    """Return whether the text has a lone surrogate, which UTF-8 cannot encode."""
    return _SURROGATE.search(text) is not None


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()

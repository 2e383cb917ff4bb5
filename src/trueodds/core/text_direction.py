"""Isolate names written from right to left, so that they do not change the order of the text around them.

The direction of punctuation and digits follows that of the letters beside them: without isolation ``"class {name}: 3"``
with a Hebrew name is displayed with the 3 in front of the name. The isolating characters are invisible. They are
inserted in pages only, after the control characters of the data have been escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

ISOLATE, END_OF_ISOLATE = "\u2068", "\u2069"  # FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE

_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_LETTER = re.compile(f"[{_LETTERS}]")
_WORDS = f"[{_LETTERS}]+(?:[\\s\\d]+[{_LETTERS}]+)*"


def isolate(text: str, names: Iterable[str] = ()) -> str:
    r"""Enclose text from right to left in isolating characters.

    Parameters
    ----------
    text : str
        Text in any script.
    names : iterable of str
        Names that may occur in the text. Each is isolated as a whole, with the digits and brackets in it.

    Returns
    -------
    str
        The text; the same without letters from right to left.

    Examples
    --------
    >>> isolate("cat: 3")
    'cat: 3'
    >>> isolate("\u05d0\u05d1 (2): 3", ["\u05d0\u05d1 (2)"]) == "\u2068\u05d0\u05d1 (2)\u2069: 3"
    True
    """
    return text if _LETTER.search(text) is None else _pattern(names).sub(_enclose, text)


def isolate_tree(value: Any, names: Iterable[str] = ()) -> Any:
    r"""Isolate all text from right to left in nested mappings, lists and tuples, keys included.

    Parameters
    ----------
    value : object
        Mappings, lists and tuples of JSON values.
    names : iterable of str
        Names that are isolated as a whole.

    Returns
    -------
    object
        A copy of the value.

    Examples
    --------
    >>> isolate_tree({"n": 3, "label": ["\u05d0"]}) == {"n": 3, "label": ["\u2068\u05d0\u2069"]}
    True
    """
    return _isolate_values(value, _pattern(names))


def _isolate_values(value: Any, pattern: re.Pattern[str]) -> Any:
    """Isolate all text in a value that matches the pattern."""
    if isinstance(value, str):
        return value if _LETTER.search(value) is None else pattern.sub(_enclose, value)
    if isinstance(value, Mapping):
        return {_isolate_values(key, pattern): _isolate_values(item, pattern) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_isolate_values(item, pattern) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of the names, the longest first, and of words from right to left."""
    affected = sorted({name for name in names if _LETTER.search(name)}, key=lambda name: (-len(name), name))
    return re.compile("|".join([*map(re.escape, affected), _WORDS]))


def _enclose(match: re.Match[str]) -> str:
    """Return the matched text between isolating characters."""
    return f"{ISOLATE}{match[0]}{END_OF_ISOLATE}"

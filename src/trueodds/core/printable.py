r"""Escape control characters in text from data, so that it cannot control a terminal or reorder surrounding text.

Names of columns, classes, groups and files may hold terminal escapes, C1 controls, or controls of the text direction.
Results keep the real names. Wherever text is put out (`str`, the terminal, pictures, pages, messages) such a character
is written as Python would write it in a literal, `\x1b` or `\u202e`. So are lone surrogates, which no encoding takes.

Names written from right to left are isolated on pages, after that: the direction of punctuation and digits follows that
of the letters beside them, so that ``"class {name}: 3"`` with a Hebrew name is displayed with the 3 in front of the
name. The isolating characters are invisible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# The C0 controls except the line feed, DEL, the C1 controls, bidirectional controls, line and paragraph separators, and
# lone surrogates.
_UNSAFE_RANGES = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE_OR_LINE_FEED = re.compile(f"[\n{_UNSAFE_RANGES}]")
_UNSAFE_CHARACTER = re.compile(f"[{_UNSAFE_RANGES}]")
# Spaces other than the blank, soft hyphens, zero-width characters and byte order marks.
_INVISIBLE_CHARACTER = re.compile("[\u00a0\u00ad\u1680\u180e\u2000-\u200f\u202f\u205f-\u2064\u3000\ufeff]")
# What reports and formulas contain, in the characters that every terminal has.
_ASCII_EQUIVALENTS = {
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "−": "-", "–": "-", "—": "-", "…": "...", "·": "|", "×": "x",
    "→": "->", "≤": "<=", "≥": ">=", "∞": "inf", "²": "^2", "’": "'", "“": '"', "”": '"', "α": "alpha", "γ": "gamma",
    "δ": "delta", "Δ": "Delta", "σ": "sigma", "Σ": "Sigma", "χ": "chi", "ψ": "psi",
}  # fmt: skip
# Text that a spreadsheet program evaluates: a formula with a function, a DDE call or a reference to another file.
# "+1", "-x" and "= 3" have no effect beyond their cell.
_FORMULA = re.compile(r"\s*[=+\-@].*[(|!]", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..)")


def to_printable(text: object) -> str:
    r"""Return text in one line with unsafe characters escaped; backslashes are not escaped again.

    >>> print(to_printable("a\x1b[31m\u202eb"))
    a\x1b[31m\u202eb
    >>> to_printable("Größe ≤ 3") == "Größe ≤ 3"
    True
    """
    text = str(text)
    return text if text.isprintable() else _UNSAFE_OR_LINE_FEED.sub(_escape, text)


def with_visible_characters(text: object) -> str:
    r"""Return printable text in which characters that look like nothing or like a blank are escaped as well.

    >>> print(with_visible_characters("label\u200b"), with_visible_characters("no\u00a0event"))
    label\u200b no\xa0event
    """
    text = to_printable(text)
    return text if text.isprintable() else _INVISIBLE_CHARACTER.sub(_escape, text)


def visible_part(text: str) -> str:
    r"""Return text without surrounding blanks and invisible characters, and with plain blanks, to compare names.

    >>> visible_part("\ufefflabel "), visible_part("no\u00a0event")
    ('label', 'no event')
    """
    letters = (" " if unicodedata.category(letter) == "Zs" else letter for letter in text)
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf").strip()


def printable_lines(text: str) -> str:
    """Return text with unsafe characters escaped, except line breaks."""
    return _UNSAFE_CHARACTER.sub(_escape, text)


def printable_tree(value: Any) -> Any:
    """Make all text in nested mappings and lists printable.

    >>> printable_tree({"label": ["a\\x85", 1]})
    {'label': ['a\\\\x85', 1]}
    """
    return _change_texts(value, to_printable)


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change all text in nested mappings, lists and tuples, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_change_texts(key, change): _change_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_change_texts(item, change) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return value


def spreadsheet_text(text: str) -> str:
    """Return printable text of a CSV file; an apostrophe keeps spreadsheet programs from evaluating it as a formula.

    >>> spreadsheet_text("=HYPERLINK(A1)"), spreadsheet_text("+ temperature"), spreadsheet_text("-0.5")
    ("'=HYPERLINK(A1)", '+ temperature', '-0.5')
    """
    text = to_printable(text)
    return f"'{text}" if is_formula(text) else text


def is_formula(text: str) -> bool:
    """Whether spreadsheet programs evaluate a text as a formula that can call functions or programs.

    >>> is_formula("=HYPERLINK(A1)"), is_formula("+1")
    (True, False)
    """
    return _FORMULA.match(text) is not None


def printable_json(text: str) -> str:
    r"""Escape terminal control characters in JSON text as `\u....`; the document is unchanged.

    >>> print(printable_json('"a\u202e"'))
    "a\u202e"
    """
    return text if text.isprintable() else _UNSAFE_CHARACTER.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def without_surrogates(text: str) -> str:
    r"""Replace lone surrogates in ASCII JSON text, which many parsers reject, by the text of their escapes.

    >>> print(without_surrogates(r'"a\udcff"'))
    "a\\udcff"
    """
    return _SURROGATE_ESCAPE.sub(lambda match: f"\\{match[1]}" if match[1] else match[0], text)


def replace_unencodable(problem: UnicodeError) -> tuple[str, int]:
    r"""Write characters that an encoding lacks as ASCII or as escapes; an error handler for `codecs.register_error`.

    Names in other alphabets stay distinct, which question marks would not be, and a minus sign stays a minus sign.

    >>> import codecs
    >>> codecs.register_error("trueodds", replace_unencodable)
    >>> "p ≤ 0.001, −0.2, 猫".encode("ascii", errors="trueodds").decode()
    'p <= 0.001, -0.2, \\u732b'
    """
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    letters = problem.object[problem.start : problem.end]
    return "".join(_ASCII_EQUIVALENTS.get(x) or x.encode("unicode_escape").decode() for x in letters), problem.end


def has_surrogates(text: str) -> bool:
    """Return whether the text has a lone surrogate, which UTF-8 cannot encode."""
    return _SURROGATE.search(text) is not None


def _escape(match: re.Match[str]) -> str:
    """Return the escape of the matched character in a Python literal."""
    return match[0].encode("unicode_escape").decode()


def escape_marks(name: str) -> str:
    """Return a name from the data so that no part of it is taken for marked code (see `errors`)."""
    return name.replace("⟨", r"\u27e8").replace("⟩", r"\u27e9")


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
    return text if _LETTER.search(text) is None else _isolate_matches(text, _pattern(names))


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
    pattern = _pattern(names)
    return _change_texts(value, lambda text: text if _LETTER.search(text) is None else _isolate_matches(text, pattern))


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of the names, the longest first, and of words from right to left."""
    affected = sorted({name for name in names if _LETTER.search(name)}, key=lambda name: (-len(name), name))
    return re.compile("|".join([*map(re.escape, affected), _WORDS]))


def _isolate_matches(text: str, pattern: re.Pattern[str]) -> str:
    """Enclose all matches of the pattern in isolating characters."""
    return pattern.sub(lambda match: f"{ISOLATE}{match[0]}{END_OF_ISOLATE}", text)

"""Look up codes of errors and notes: what each one means and what to do, for `trueodds explain` and docs/codes.md."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_MARKDOWN_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_MAX_NEAR_CODES = 3


@dataclass(frozen=True, slots=True)
class Code:
    """A code of an error or a note, with its meaning.

    Attributes
    ----------
    name : str
        The code: TO and three digits for an error, TN and three digits for a note.
    meaning : str
        What happened, in Markdown.
    remedy : str
        What to do, in Markdown.
    used_by : str
        The parts of the package that use the code.
    """

    name: str
    meaning: str
    remedy: str
    used_by: str

    @property
    def kind(self) -> str:
        """Whether the code is of an error or a note."""
        return "note" if self.name.startswith("TN") else "error"


@cache
def load_codes() -> dict[str, Code]:
    """Return all codes by name, in the order of the page of codes.

    >>> load_codes()["TO102"].meaning
    'A probability lies outside [0, 1].'
    """
    import tomllib

    entries = tomllib.loads(files("trueodds.core").joinpath("codes.toml").read_text(encoding="utf-8"))
    return {name: Code(name, *texts) for name, texts in entries.items()}


def normalize_code(text: str) -> str:
    """Return a code as messages print it, without brackets and in upper case.

    >>> normalize_code("[to102]")
    'TO102'
    """
    return text.strip().strip("[]").upper()


def find_near_codes(text: str) -> list[str]:
    """Return up to three codes that an unknown code may stand for, with the same number or a similar one.

    >>> find_near_codes("102"), find_near_codes("TO1022")[0]
    (['TO102', 'TN102'], 'TO102')
    """
    names = list(load_codes())
    same_number = [name for name in names if text.isdigit() and name.endswith(text.zfill(3))]
    code = normalize_code(text)
    code = code[:2] + code[2:].replace("O", "0")  # the letter O for the digit 0
    return same_number[:_MAX_NEAR_CODES] or difflib.get_close_matches(code, names, n=_MAX_NEAR_CODES)


def plain_text(markdown: str) -> str:
    """Convert a meaning or a remedy from Markdown to plain text, with the paths of linked pages.

    >>> plain_text("See [cli.md](cli.md#gates) and pass `mode=`.")
    'See docs/cli.md and pass `mode=`.'
    """
    return _MARKDOWN_LINK.sub(lambda match: f"docs/{match[1]}" if match[1].endswith(".md") else match[1], markdown)

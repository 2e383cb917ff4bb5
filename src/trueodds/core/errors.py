"""Input errors with a stable code, the problem, the value received, and the remedy; and coded notes on results.

Their texts mark what Python and the command line spell differently, arguments and calls: "Use ⟨mode='exact'⟩." Python
shows it without the marks, and another front end spells the marked code in its own way (`spell`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex

from trueodds.core.printable import escape_marks, to_printable, with_visible_characters

MAX_MESSAGE_LENGTH = 400  # characters of a message, so that it fits on a few lines of a terminal
MAX_GOT_LENGTH = 160  # characters of its part on what was got
MAX_VALUE_LENGTH = 80  # characters of a single value
MAX_LISTED_ITEMS = 8  # items of a list that are written out; of a longer one only the length is given
_MARKED_CODE = re.compile("⟨(.*?)⟩")


class Message(str):
    """A text as Python shows it, which knows the code that is marked in it. Adding texts keeps the marks.

    >>> message = Message("Use ⟨mode='exact'⟩.") + " Or ⟨bins=10⟩."
    >>> print(message)
    Use mode='exact'. Or bins=10.
    >>> spell(message, lambda code: "--" + code.replace("=", " "))
    "Use --mode 'exact'. Or --bins 10."
    """

    marked: str

    def __new__(cls, marked: str, shown: str | None = None) -> Message:
        message = super().__new__(cls, _MARKED_CODE.sub(r"\1", marked) if shown is None else shown)
        message.marked = marked
        return message

    def __add__(self, other: str) -> Message:
        return Message(self.marked + _marked(other))

    def __radd__(self, other: str) -> Message:
        return Message(_marked(other) + self.marked)

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> Message:
        """Replace a text, keeping the marks."""
        return Message(self.marked.replace(old, new, count))

    def __reduce__(self) -> tuple[type[Message], tuple[str, str]]:
        return Message, (self.marked, str(self))


def _marked(text: str) -> str:
    return text.marked if isinstance(text, Message) else text


def spell(text: str, spelling: Callable[[str], str]) -> str:
    """Return a text with the marked code as `spelling` spells it; a text without marks is unchanged."""
    return _MARKED_CODE.sub(lambda match: spelling(match[1]), _marked(text))


def parse_marks(text: str) -> str:
    """Return a text that may contain marks as a message; one without marks is unchanged."""
    return text if isinstance(text, Message) or "⟨" not in text else Message(text)


def argument(name: str, value: object) -> str:
    """Return an argument of a function as marked code, whose value may be a name from the data.

    >>> print(argument("label", "a⟩"))
    ⟨label='a\\u27e9'⟩
    """
    return f"⟨{name}={escape_marks(repr(value))}⟩"


class InputError(ValueError):
    """Error in the data or settings, with a stable code and the remedy.

    The message is one printable line of at most 400 characters. The middle of a longer value is replaced by an
    ellipsis.

    Parameters
    ----------
    code : str
        The code, such as TO102; all are listed in ``docs/codes.md``.
    problem : str
        What is wrong, as a sentence.
    got : str, default=""
        The value that was received.
    fix : str, default=""
        What to do, as a sentence.

    Attributes
    ----------
    code, problem, got, fix : str
        The parts of the message.

    Examples
    --------
    >>> print(InputError("TO102", "Every probability must lie in [0, 1].", "-2.0 in row 17", "Correct it."))
    [TO102] Every probability must lie in [0, 1]. Got -2.0 in row 17. Correct it.
    """

    def __init__(self, code: str, problem: str, got: str = "", fix: str = "") -> None:
        got = parse_marks(with_visible_characters(" ".join(line.strip() for line in _marked(got).split("\n"))))
        problem, fix = (parse_marks(with_visible_characters(_marked(text))) for text in (problem, fix))
        got = shorten(got, MAX_GOT_LENGTH)
        max_text_length = MAX_MESSAGE_LENGTH - len(_message(code, "", got, " "))
        if len(problem) + len(fix) > max_text_length:
            fix = shorten(fix, max(max_text_length - len(problem), max_text_length // 2))
            problem = shorten(problem, max_text_length - len(fix))
        self.code = code
        self.problem = problem
        self.got = got
        self.fix = fix
        super().__init__(code, problem, got, fix)

    def __str__(self) -> str:
        return _message(self.code, self.problem, self.got, self.fix)


def describe(value: object) -> str:
    """Describe a value for an error message: its `repr` if that is short, else its type and size.

    >>> describe("eec"), describe([0.5] * 300), describe(10**400)
    ("'eec'", 'list of 300', 'an integer of 1,329 bits')
    """
    kind = type(value).__name__
    if isinstance(shape := getattr(value, "shape", None), tuple) and shape:
        return f"{kind} of shape {shape}"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"an integer of {value.bit_length():,} bits"
    items = len(value) if isinstance(value, (list, tuple, dict, set, frozenset)) else 0
    try:
        text = "" if items > MAX_LISTED_ITEMS else escape_marks(" ".join(repr(value).split()))
    except Exception:  # noqa: BLE001 - whatever the repr of somebody's class raises, it is not about the value
        text = ""
    if not text or (items and len(text) > MAX_VALUE_LENGTH):
        return f"{kind} of {items:,}" if items else kind
    return shorten(text, MAX_VALUE_LENGTH)


@dataclass(frozen=True, slots=True)
class Note:
    """A fact about the data or the method that is not an error but should be reported with the result.

    Attributes
    ----------
    code : str
        The code, such as TN105; all are listed in ``docs/codes.md``.
    text : str
        The fact, in one or two sentences.
    """

    code: str
    text: str

    def __post_init__(self) -> None:
        if "⟨" in self.text:
            object.__setattr__(self, "text", parse_marks(self.text))

    def __str__(self) -> str:
        return to_printable(f"[{self.code}] {self.text}")

    def to_dict(self) -> dict[str, str]:
        """Return the note as a JSON object.

        Returns
        -------
        dict
            Code and text.
        """
        return {"code": self.code, "text": self.text}


def shorten(text: str, max_length: int) -> str:
    """Shorten a text to at most `max_length` characters, replacing its middle by an ellipsis.

    >>> shorten("[0.1, 0.2, 0.3, 0.4]", 12)
    '[0.1, 0.….4]'
    """
    if len(text) <= max_length:
        return text
    tail = (max_length - 1) // 3
    shown = f"{text[: max_length - 1 - tail]}…{text[len(text) - tail :]}"
    return Message(text.marked, shown) if isinstance(text, Message) else shown  # others spell the whole message


def _message(code: str, problem: str, got: str, fix: str) -> str:
    """Join the parts of a message, of which `got` and `fix` may be empty."""
    return f"[{code}] {problem}" + (f" Got {got}." if got else "") + (f" {fix}" if fix else "")


def install_command(extra: str) -> str:
    """Return the command that installs an optional dependency from a clone of the repository.

    >>> install_command("report")
    "Run in a clone of trueodds: pip install '.[report]'"
    """
    return f"Run in a clone of trueodds: pip install '.[{extra}]'"


def install_studies_command() -> str:
    """Return the command that installs the package of studies from a clone of the repository.

    >>> install_studies_command()
    'Run in a clone of trueodds: pip install ./studies'
    """
    return "Run in a clone of trueodds: pip install ./studies"
